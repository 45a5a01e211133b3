"""infer: from a release and a model to a posterior, without the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import CALL, COUNT, FLAG, SEVERAL, WHOLE, check_fields, expect
from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.inference.models.counts import Counts
from congenial.inference.models.model import Bindable, BoundModel
from congenial.inference.models.regressions import LogisticBound, Normal
from congenial.inference.observation import Observation, OtherCells, observe
from congenial.inference.posterior import (
    LEAST_EFFECTIVE,
    WORST_R_HAT,
    Posterior,
    refuse_unconverged,
)
from congenial.inference.samplers.chains import (
    Augmented,
    ChainSampler,
    Collapsed,
    Marginal,
)
from congenial.inference.samplers.general import Anything, ListedTables, RecordChains, listed_draws
from congenial.inference.samplers.given_sums import DrawsGivenSums
from congenial.inference.samplers.table_proposals import TableProposals
from congenial.mechanisms.tables_release import TablesRelease
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease

Method = Literal["auto", "exact", "augmentation"]
METHODS: tuple[Method, ...] = ("auto", "exact", "augmentation")
"""Names that `infer(..., method=)` takes."""
MOST_ROUNDS = 8  # a chain is continued up to this many times its first length


ExactDraws = Callable[[int, np.random.Generator], tuple[Floats, Any]]


def _silent(done: int, of: int, seconds: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Chain:
    """How chains are run: how many, steps thrown away first, and whether to refuse bad ones.

    `progress(done, of, seconds)` is told before the first step and after each: steps done, steps
    planned, and how long the rest will take.
    """

    chains: int = 4
    warmup: int = 1000
    check: bool = True
    progress: Callable[[int, int, float], None] = field(default=_silent, compare=False)

    def __post_init__(self) -> None:
        check_fields(self, InferenceError, chains=SEVERAL, warmup=COUNT, check=FLAG, progress=CALL)
        if self.chains < 2 or self.warmup < 0:
            raise InferenceError(
                f"{self.chains} chains with {self.warmup} steps of warm-up cannot be judged.",
                remedy="Use at least 2 chains and a warm-up >= 0.",
            )


DEFAULT_CHAIN = Chain()
MOST_DRAWS = 10**9


def infer(
    release: ValuesRelease | TablesRelease | Observation,
    model: Bindable,
    *,
    method: Method = "auto",
    draws: int = 4000,
    seed: int | None = None,
    public: bool = True,
    counts: bool = False,
    chain: Chain = DEFAULT_CHAIN,
) -> Posterior:
    """The posterior of the model's parameters given a release and the published figures.

    method: "exact" (independent draws; conjugate models, where published sums do not overlap or
    cross two by two), "augmentation" (chains over the latent table); "auto" takes "exact" where it
    can and "augmentation" otherwise. draws: how many, over all chains. public=False leaves the
    published figures out. counts=True also returns draws of the true counts, as "count". Chains are
    continued until they are worth 400 independent draws, and refused when they did not converge.

    Guarantee: what is released and published is all it looks at, so it costs no privacy. Assumes
    the model; the law of the noise is the bundle's own, and nothing about it is approximated.

    Source: partially-private-data, section 3; data augmentation after Ju, Awan, Gong and Rao
    (2022).

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> from congenial import release_table
    >>> from congenial.inference import Poisson
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = release_table(mechanism, Table(schema, ["sex"], [90, 110]), SeededRandomness(1))
    >>> posterior = infer(release, Poisson(), draws=400, seed=2)
    >>> len(posterior.summary())  # a rate for each cell
    2
    """
    expect(method, str, "the method", f"Use one of {', '.join(METHODS)}.", InferenceError)
    expect(draws, WHOLE, "draws", "Use a whole number, at least 100.", InferenceError)
    if method not in METHODS:
        raise InferenceError(
            f"method '{method}' is not known.", remedy=f"Use one of {', '.join(METHODS)}."
        )
    if draws < 100:
        raise InferenceError(f"{draws} draws are too few.", remedy="Use at least 100.")
    if draws > MOST_DRAWS:
        raise InferenceError("draws is above a billion.", remedy="4000 are usually enough.")
    bound = bind(release, model, public)
    expect(seed, (int, type(None)), "the seed", "Give a whole number.", InferenceError)
    if seed is not None and seed < 0:
        raise InferenceError("the seed is below 0.", remedy="Give a whole number from 0 on.")
    rng = np.random.default_rng(seed)
    exact = _exact_draws(bound) if method in ("auto", "exact") else None
    if method == "auto":
        method = "augmentation" if exact is None else "exact"
    if method == "exact":
        theta, x = _required(exact)(draws, rng)
        return _independent(bound, theta, x if counts else None)
    return _chains(_sampler(bound, chain, rng), draws, counts, chain)


def bind(
    release: ValuesRelease | TablesRelease | Observation,
    model: Bindable,
    public: bool = True,
) -> BoundModel:
    """The model tied to what the release says about its axes."""
    if not isinstance(model, Bindable):
        raise InferenceError(
            f"{type(model).__name__} is not a model.",
            remedy="Use poisson, ... (see MODELS), or Model(draw_prior, draw_data, log_density).",
        )
    try:
        return model.bind(observe(release, model.by, public))
    except OtherCells as reason:
        if not isinstance(model, Normal):
            raise
        remedy = (
            f"Use linear with outcome = {model.outcome} and no covariates: the same model, on "
            "the cells as released."
        )
        raise InferenceError(reason.what, remedy=remedy) from None


def _exact_draws(bound: BoundModel) -> ExactDraws | None:
    """What makes independent draws of (theta, x), where something does."""
    if bound.collapsed() is None:
        return None
    if bound.observation.listed is not None:
        return partial(listed_draws, bound)
    trees = DrawsGivenSums.of(bound)
    return None if trees is None else trees.draw


def _required(exact: ExactDraws | None) -> ExactDraws:
    if exact is None:
        raise InferenceError(
            "independent draws need a conjugate model of cells with noise of their own, and "
            "published sums of groups that do not overlap or cross two by two, or few possible "
            "tables.",
            remedy="Use method='augmentation'.",
        )
    return exact


def _independent(bound: BoundModel, theta: Floats, x: Any) -> Posterior:
    """Independent draws as one chain."""
    dims, reported = dict(bound.dims), bound.report(theta)
    if x is not None:
        reported["count"] = x.reshape(-1, *bound.observation.shape).astype(float)
        dims["count"] = bound.observation.dims
    return Posterior(
        {name: values[None] for name, values in reported.items()},
        dims,
        "exact",
        independent=True,
        notes=bound.observation.notes,
    )


def _sampler(bound: BoundModel, chain: Chain, rng: np.random.Generator) -> ChainSampler:
    observation = bound.observation
    if observation.listed is not None:
        return ListedTables(bound, chain.chains, rng)
    if observation.finer is None and (observation.noise is None or not observation.whole):
        kind = RecordChains if RecordChains.fits(bound) else Anything
        return kind(bound, chain.chains, rng)
    if bound.collapsed() is not None:
        whole = TableProposals.of(bound, chain.chains, rng)
        return whole or Collapsed(bound, chain.chains, rng)
    if isinstance(bound, Counts):
        if observation.unrelated:
            return Marginal(bound, chain.chains, rng)
        return Augmented(bound, chain.chains, rng)
    priced = observation.normaliser is not None or observation.levels is not None
    if isinstance(bound, LogisticBound) and bound.reduced is not None and not priced:
        return Marginal(bound.reduced, chain.chains, rng)
    if bound.parts is not None:
        return Augmented(bound, chain.chains, rng)
    return Anything(bound, chain.chains, rng)


def _chains(sampler: ChainSampler, draws: int, counts: bool, chain: Chain) -> Posterior:
    """Warm up, run, and go on until the draws are worth enough; then thin to what was asked."""
    length = -(-draws // chain.chains)
    clock = _Clock(chain, sampler.seconds)
    clock.tell(0, chain.warmup + length)
    for done in range(chain.warmup):
        sampler.iterate(learn=True)
        clock.tell(done + 1, chain.warmup + length)
    thetas: list[Floats] = []
    tables: list[Any] = []
    while True:
        for _ in range(length):
            sampler.iterate(learn=False)
            thetas.append(sampler.theta)
            if counts:
                tables.append(np.array(sampler.x))
            planned = chain.warmup + -(-len(thetas) // length) * length
            clock.tell(chain.warmup + len(thetas), planned)
        posterior = _collect(sampler, thetas, tables, len(thetas) // length)
        enough = (
            posterior.least_effective >= LEAST_EFFECTIVE and posterior.worst_r_hat <= WORST_R_HAT
        )
        if enough or len(thetas) >= MOST_ROUNDS * length:
            return refuse_unconverged(posterior) if chain.check else posterior


class _Clock:
    """Tells how far the chains are, and how long the rest will take.

    The first step is left out: it may have to wait for code to be compiled.
    """

    def __init__(self, chain: Chain, seconds: float) -> None:
        self._tell, self._each, self._begun = chain.progress, seconds, 0.0

    def tell(self, done: int, of: int) -> None:
        """`done` steps of `of` are done."""
        now = time.perf_counter()
        if done <= 1:
            self._begun = now
        else:
            self._each = (now - self._begun) / (done - 1)
        self._tell(done, of, self._each * (of - done))


def _collect(
    sampler: ChainSampler, thetas: list[Floats], tables: list[Any], thin: int
) -> Posterior:
    bound = sampler.bound
    theta = np.stack(thetas[thin - 1 :: thin], axis=1)
    chains, n = theta.shape[:2]
    reported = bound.report(theta.reshape(chains * n, -1))
    draws = {name: v.reshape(chains, n, *v.shape[1:]) for name, v in reported.items()}
    dims = dict(bound.dims)
    if tables:
        x = np.stack(tables[thin - 1 :: thin], axis=1).astype(float)
        draws["count"] = x.reshape(chains, n, *bound.observation.shape)
        dims["count"] = bound.observation.dims
    return Posterior(
        draws,
        dims,
        "augmentation",
        acceptance=sampler.acceptance,
        acceptance_floor=sampler.acceptance_floor,
        notes=(
            f"{sampler.words}; {n:,} of {len(thetas):,} steps of each chain kept",
            *bound.observation.notes,
        ),
    )
