"""The wrong analysis, to be shown beside the right one: the release taken for the truth.

And how wrong it is: how often its intervals cover the parameters of simulated releases, next to the
intervals that account for the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from congenial.data.arguments import COUNT, SEVERAL, SHARE, numbers, one_of, takes
from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.inference.inference import DEFAULT_CHAIN, Chain, bind, infer
from congenial.inference.latent_tables import FIXED, FREE, LatentTables
from congenial.inference.models.model import Bindable, BoundModel
from congenial.inference.observation import Observation
from congenial.inference.posterior import Posterior
from congenial.mechanisms.released import LEVEL
from congenial.mechanisms.tables_release import TablesRelease
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.sampling.randomness import SeededRandomness

TOLD = "the noise is ignored: intervals are too narrow"


def naive(
    release: ValuesRelease | TablesRelease | Observation,
    model: Bindable,
    *,
    draws: int = 4000,
    seed: int | None = None,
    chain: Chain = DEFAULT_CHAIN,
) -> Posterior:
    """The posterior of somebody who takes the released values for the true counts.

    Values below zero are taken as zero, values that are not whole are rounded; sums that are
    published are kept.
    """
    posterior = infer(
        _declared_known(bind(release, model)), model, draws=draws, seed=seed, chain=chain
    )
    return replace(posterior, notes=(TOLD, *posterior.notes))


def _declared_known(bound: BoundModel) -> Observation:
    """The same cells with every count fixed at the released value, made possible."""
    observation = bound.observation
    if not observation.whole:
        raise InferenceError("real-valued noise cannot be ignored in a model of counts.")
    x = observation.conforming.start(observation.y, bound.most)
    labels = np.full(len(x), FIXED, dtype=np.int64)
    fixed = LatentTables(labels, x, np.zeros(0, dtype=np.int64))
    noise = observation.noise or Observation.of_values(observation.y, "double_geometric", 1).noise
    alone = replace(observation, conforming=fixed, noise=noise, normaliser=None, density=None)
    return replace(alone, levels=None, listed=None, finer=None)


@dataclass(frozen=True)
class Coverage:
    """Share of intervals that contain the parameter they are for, over simulated releases.

    `standard_error` is that of `valid`, releases taken as the independent unit.
    """

    level: float
    releases: int
    intervals: int
    valid: float
    naive: float
    standard_error: float

    @property
    def words(self) -> str:
        """In a sentence."""
        return (
            f"Over {self.releases} simulated releases, {self.level:.0%} intervals covered "
            f"{self.valid:.1%} of the parameters (standard error {self.standard_error:.1%}); "
            f"those that ignore the noise covered {self.naive:.1%}."
        )


@takes(
    InferenceError,
    release=one_of(TablesRelease, ValuesRelease),
    releases=SEVERAL,
    level=SHARE,
    draws=SEVERAL,
    seed=COUNT,
    chain=Chain,
)
def coverage(
    release: TablesRelease | ValuesRelease,
    model: Bindable,
    *,
    releases: int = 100,
    level: float = LEVEL,
    draws: int = 1000,
    seed: int = 0,
    given: Posterior | Floats | None = None,
    chain: Chain = DEFAULT_CHAIN,
) -> Coverage:
    """How often intervals cover, for data like these: parameters, data and noise drawn afresh.

    Parameters come from the prior (then valid intervals cover at their level, exactly), or from
    `given`: a posterior from this release, or fixed values, which say more about the case at hand.
    Needs a model whose data conform to the published figures by themselves, or Poisson counts,
    which are drawn given published totals when the parameters are `given`.
    """
    bound = bind(release, model)
    rng = np.random.default_rng(seed)
    noise = SeededRandomness(seed)
    hits: list[float] = []
    wrong: list[float] = []
    count = 0
    for _ in range(releases):
        theta = _parameters(bound, rng, given)
        x = _data(bound, rng, theta, given is not None)
        again = _again(release, bound, x, noise)
        truth = bound.report(theta)
        inner = int(rng.integers(2**31))
        right = infer(again, model, draws=draws, seed=inner, chain=chain)
        taken = naive(again, model, draws=draws, seed=inner, chain=chain)
        hits.append(float(np.mean(_covers(right, truth, level))))
        wrong.append(float(np.mean(_covers(taken, truth, level))))
        count += len(_covers(right, truth, level))
    error = float(np.std(hits, ddof=1) / np.sqrt(releases)) if releases > 1 else np.nan
    return Coverage(level, releases, count, float(np.mean(hits)), float(np.mean(wrong)), error)


def _parameters(bound: BoundModel, rng: np.random.Generator, given: Any) -> Floats:
    if given is None:
        return bound.draw_prior(rng, 1)
    if not isinstance(given, Posterior):
        fixed = numbers(given, "given", InferenceError)
        if fixed.size != bound.size or not np.all(np.isfinite(fixed)):
            raise InferenceError(
                f"given is not {bound.size} finite numbers, one per parameter.",
                remedy="Give one number per parameter of the model, or a posterior.",
            )
        return fixed.reshape(1, bound.size)
    if set(given.draws) != set(bound.dims) or len(given.draws) != 1:
        raise InferenceError(
            "parameters can be taken from a posterior of one kind of parameter only.",
            remedy="Leave out given, and use the prior.",
        )
    name = next(iter(given.draws))
    draws = given[name]
    draw: Floats = draws[rng.integers(len(draws))].reshape(1, -1)
    return draw


def _data(bound: BoundModel, rng: np.random.Generator, theta: Floats, given: bool) -> Any:
    """A table of the model that agrees with the published figures."""
    x, conforming = bound.draw_data(rng, theta)[0], bound.observation.conforming
    if bound.observation.bounded:
        raise InferenceError(
            "the model does not draw tables that keep the public bounds.",
            remedy="Compare the two posteriors; coverage is for releases without bounds.",
        )
    if np.all(conforming.holds(x)):
        return x
    cells = bound.given(theta)
    poisson = cells is not None and not np.any(cells[..., 1]) and np.all(cells[..., 2] < 0)
    if not (given and poisson) or conforming.ties or np.any(conforming.labels == FREE):
        raise InferenceError(
            "the model does not draw tables that agree with the published figures.",
            remedy="Use a model given the totals (multinomial, binomial), a release without "
            "published sums, or parameters that are given.",
        )
    assert cells is not None
    x = conforming.known.copy()  # Poisson counts given their sum are multinomial
    for group, total in enumerate(conforming.totals.tolist()):
        inside = np.flatnonzero(conforming.labels == group)
        mean = cells[0, inside, 0]
        x[inside] = rng.multinomial(total, mean / mean.sum())
    return x


def _again(
    release: TablesRelease | ValuesRelease, bound: BoundModel, x: Any, noise: SeededRandomness
) -> TablesRelease | ValuesRelease:
    """The same release of another table."""
    table = release.table if isinstance(release, ValuesRelease) else release.only.table
    if bound.observation.names != table:
        raise InferenceError(
            "coverage is simulated for models of the cells as released.",
            remedy=f"Use by = {', '.join(table)}.",
        )
    if isinstance(release, ValuesRelease):
        drawn = release.law(x).draw_many(noise, 1)[0]
        return replace(release, values=tuple(int(v) for v in drawn))
    mechanism = release.only.mechanism
    return replace(release, drawn=(mechanism.draw(x.reshape(mechanism.shape), noise, 1)[0],))


def _covers(posterior: Posterior, truth: dict[str, Floats], level: float) -> Any:
    covered = []
    for name, value in truth.items():
        low, high = posterior.interval(name, level)
        covered.append(np.ravel((low <= value[0]) & (value[0] <= high)))
    return np.concatenate(covered)
