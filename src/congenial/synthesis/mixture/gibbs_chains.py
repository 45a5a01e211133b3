"""Runs the compiled Gibbs sampler: several chains at once, what they look like, whether to trust
them.

Components have no names of their own: a chain may swap them at any time, so convergence is judged
by functions of the draws that do not change when labels are permuted (`functionals`), on ranks
turned into normal scores, since some of them have heavy tails.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from congenial.data.arguments import COUNT, REAL, SEVERAL, TEXT, check_fields
from congenial.data.arrays import Floats, Ints
from congenial.errors import GuaranteeError
from congenial.sampling.convergence import effective_draws, normal_scores, split_r_hat
from congenial.synthesis.mixture import gibbs_kernels
from congenial.synthesis.mixture.parameters import MixturePrior, Parameters
from congenial.synthesis.record_model import refuse_unconverged

_POINTS = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of y at which the predictive law is watched
PREDICTIVE = "P(y <= "  # how the names of those functionals begin
_WATCHED = 50  # records whose predictors it is averaged over


@dataclass(frozen=True)
class Run:
    """How the chains are run, and when they are refused.

    Each chain does `warmup` sweeps, then keeps every `thin`-th. Refused are chains with an R-hat
    above `r_hat` or fewer than `effective` effective draws in any functional that is judged: all of
    them, or only those of the predictive law, which is what synthetic records depend on. (With more
    components than a law needs, chains may differ for long in how they share it out.)
    """

    chains: int = 4
    warmup: int = 1000
    thin: int = 2
    r_hat: float = 1.05
    effective: float = 100
    judged: Literal["all", "predictive"] = "all"

    def __post_init__(self) -> None:
        check_fields(
            self,
            GuaranteeError,
            chains=SEVERAL,
            warmup=COUNT,
            thin=SEVERAL,
            r_hat=REAL,
            effective=REAL,
            judged=TEXT,
        )
        if self.judged not in ("all", "predictive"):
            raise GuaranteeError(
                f"judged = {self.judged!r} is not known.", remedy='Use "all" or "predictive".'
            )


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Split R-hat and effective draws of label-invariant functionals, on normal scores of ranks.

    means: of each functional in each chain, (chains, functionals). within: its standard deviation
    inside a chain. Both as they are, to see what chains disagree about.
    """

    names: tuple[str, ...]
    r_hat: Floats
    effective: Floats
    means: Floats
    within: Floats

    @property
    def predictive(self) -> tuple[float, float]:
        """Fewest effective draws and largest R-hat of the predictive law."""
        own = [name.startswith(PREDICTIVE) for name in self.names]
        return float(self.effective[own].min()), float(self.r_hat[own].max())

    @property
    def worst(self) -> dict[str, Any]:
        """The functional with the fewest effective draws, how its chains differ, and the largest
        R-hat of all.
        """
        at = int(np.argmin(self.effective))
        return {
            "functional": self.names[at],
            "effective": float(self.effective[at]),
            "r_hat": float(self.r_hat.max()),
            "means": self.means[:, at].tolist(),
            "within": float(self.within[at]),
        }


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """Draws of a weighted posterior, chain after chain. CONFIDENTIAL, and no exact sample.

    The density is proportional to prior(theta) prod_i p(y_i | x_i, theta)^alpha_i, with the weights
    alpha_i of `MixtureRegression.fit`. What comes of it has no proved privacy: chains only come
    near this law, and local mode gives an estimate of epsilon. `parameters` has one row per draw,
    the draws of the first chain first; `occupied` counts components that hold a record. Components
    may swap names between draws: functions that do not look at names are what `diagnostics` judges.
    Chains that disagree are refused before there is a fit (`Run.r_hat`, `Run.effective`).

    Source: pseudo-posterior, section 5 and Appendix B.

    >>> from congenial.synthesis.mixture import MixtureRegression
    >>> rng = np.random.default_rng(1)
    >>> rows = np.column_stack([np.arange(40) % 2, rng.normal(size=40)])
    >>> model = MixtureRegression(3, run=Run(chains=2, warmup=200, r_hat=1.5, effective=10))
    >>> fit = model.fit(rows, np.ones(40), 400, rng)
    >>> fit.chains, fit.occupied.shape, bool(fit.diagnostics.r_hat.max() <= 1.5)
    (2, (400,), True)
    """

    parameters: Parameters
    chains: int
    occupied: Ints  # (draws,) components with a record
    diagnostics: Diagnostics


def compress(design: Floats, y: Floats, w: Floats) -> gibbs_kernels.GibbsRecords:
    """Rows of the design without their zeros: a row of indicators has few entries."""
    row, column = np.nonzero(design)
    start = np.searchsorted(row, np.arange(len(design) + 1))
    return gibbs_kernels.GibbsRecords(start, column, design[row, column], y, w)


def start_groups(y: Floats, groups: int) -> Ints:
    """At most so many groups: each value that over 2 % of the records share, the rest by rank.

    A narrow component on a heap (zero income) is found at once or, from elsewhere, hardly ever.
    """
    values, counts = np.unique(y, return_counts=True)
    heaps = values[np.argsort(-counts)][: int((counts > 0.02 * len(y)).sum())][: groups - 1]
    label = np.full(len(y), -1)
    for at, value in enumerate(heaps if len(y) > 50 else heaps[:0]):
        label[y == value] = at
    rest, first = label < 0, int(label.max()) + 1
    rank = np.argsort(np.argsort(y[rest], kind="stable"))
    label[rest] = first + rank * (groups - first) // max(len(rank), 1)
    return np.asarray(np.unique(label, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def start_state(
    r: gibbs_kernels.GibbsRecords, K: int, R: int, groups: int, rng: Any
) -> gibbs_kernels.GibbsState:
    """Groups with their means and spreads; everything else at random."""
    label = start_groups(r.y, groups)
    groups = int(label.max()) + 1
    beta, sigma = rng.standard_normal((K, R)), 1 + rng.standard_exponential(K)
    for k in range(groups):
        beta[k, 0], sigma[k] = r.y[label == k].mean(), r.y[label == k].std() + 0.1
        beta[k, 1:] = 0.0
    return gibbs_kernels.GibbsState(
        label=label,
        log_pi=np.full(K, -np.log(K)),
        beta=beta,
        sigma=sigma,
        a=np.ones(1),
        sd=np.ones(R),
        F=np.eye(R),
    )


def empty_sums(K: int, R: int) -> gibbs_kernels.Sums:
    """Room for the sums of K components."""
    return gibbs_kernels.Sums(
        np.zeros(K, np.int64), np.zeros(K), np.zeros((K, R, R)), np.zeros((K, R)), np.zeros(K)
    )


def room(draws: int, K: int, R: int) -> gibbs_kernels.KeptStates:
    """Room for so many kept states."""
    return gibbs_kernels.KeptStates(
        np.empty((draws, K)),
        np.empty((draws, K, R)),
        np.empty((draws, K)),
        np.empty(draws),
        np.empty((draws, R)),
        np.empty((draws, R, R)),
        np.empty(draws, np.int64),
    )


def hyper(prior: MixturePrior) -> gibbs_kernels.Hyper:
    """The prior as the kernels take it."""
    return gibbs_kernels.Hyper(float(prior.shape), float(prior.rate), float(prior.least_sd))


def run_chain(
    r: gibbs_kernels.GibbsRecords,
    K: int,
    R: int,
    prior: MixturePrior,
    run: Run,
    draws: int,
    chain: int,
    rng: Any,
) -> gibbs_kernels.KeptStates:
    """One chain. Chains start from different numbers of groups, so that R-hat has a say, and from
    many: components merge more easily than they split.
    """
    groups = min(K - (K // 2) * chain // max(run.chains - 1, 1), len(r.y))
    s, t, h = start_state(r, K, R, groups, rng), empty_sums(K, R), hyper(prior)
    s.sigma[:] = np.maximum(s.sigma, prior.least_sd)
    t.count[:] = np.bincount(s.label, minlength=K)
    if run.warmup:
        gibbs_kernels.run(r, s, t, h, rng, run.warmup, room(1, K, R))
    states = room(draws, K, R)
    gibbs_kernels.run(r, s, t, h, rng, run.thin, states)
    return states


def sample(
    r: gibbs_kernels.GibbsRecords,
    K: int,
    R: int,
    prior: MixturePrior,
    run: Run,
    draws: int,
    rng: Any,
) -> tuple[Parameters, Ints]:
    """At least `draws` draws in all from run.chains chains, on all cores."""
    each = -(-draws // run.chains)
    keys = rng.integers(2**64, size=(run.chains, 2), dtype=np.uint64)
    generators = [np.random.Generator(np.random.Philox(key=key)) for key in keys]
    with ThreadPoolExecutor(min(run.chains, os.cpu_count() or 1)) as pool:
        parts = list(
            pool.map(
                lambda c: run_chain(r, K, R, prior, run, each, c, generators[c]),
                range(run.chains),
            )
        )
    whole = gibbs_kernels.KeptStates(
        *(np.concatenate(column) for column in zip(*parts, strict=True))
    )
    return as_parameters(whole), whole.occupied


def as_parameters(kept: gibbs_kernels.KeptStates) -> Parameters:
    """Kept states with the correlation matrix in place of the factor of Sigma^-1."""
    covariance = np.linalg.inv(kept.F @ np.swapaxes(kept.F, 1, 2))
    root = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    correlation = covariance / (root[:, :, None] * root[:, None, :])
    at = np.arange(kept.sd.shape[1])
    correlation[:, at, at] = 1.0
    return Parameters(kept.log_pi, kept.beta, kept.sigma, kept.a, kept.sd, correlation)


def functionals(p: Parameters, design: Floats, y: Floats) -> tuple[Floats, tuple[str, ...]]:
    """(draws, functionals) that do not depend on the numbering of components, and their names.

    log of the concentration; log of the coefficients' scales; sum_k pi_k beta_k; sum_k pi_k log
    sigma_k; log det of the correlation; the predictive distribution function at quantiles of y,
    averaged over evenly spaced records.
    """
    pi, R = np.exp(p.log_pi), p.sd.shape[1]
    named: list[tuple[str, Floats]] = [("log concentration", np.log(p.concentration))]
    named += [(f"log sd[{j}]", np.log(p.sd[:, j])) for j in range(R)]
    mean = np.einsum("sk,skr->sr", pi, p.beta)
    named += [(f"mean coefficient[{j}]", mean[:, j]) for j in range(R)]
    named.append(("mean log sigma", (pi * np.log(p.sigma)).sum(axis=1)))
    if R > 1:
        named.append(("log det correlation", np.linalg.slogdet(p.correlation)[1]))
    watched = design[np.linspace(0, len(design) - 1, min(_WATCHED, len(design))).astype(int)]
    centre = p.beta @ watched.T  # (draws, components, watched)
    for share, q in zip(_POINTS, np.quantile(y, _POINTS), strict=True):
        below = ndtr((q - centre) / p.sigma[:, :, None]).mean(axis=2)
        named.append((f"{PREDICTIVE}its {share} quantile)", (pi * below).sum(axis=1)))
    return np.column_stack([values for _, values in named]), tuple(name for name, _ in named)


def diagnose(values: Floats, names: Sequence[str], chains: int) -> Diagnostics:
    """Diagnostics of functionals (draws of all chains, functionals)."""
    as_is = values.reshape(chains, -1, values.shape[1])
    by_chain = normal_scores(as_is)
    within = np.sqrt(as_is.var(axis=1).mean(axis=0))
    return Diagnostics(
        tuple(names),
        split_r_hat(by_chain),
        effective_draws(by_chain),
        as_is.mean(axis=1),
        within,
    )


def refuse(values: Floats, names: Sequence[str], run: Run) -> None:
    """Raise GuaranteeError with the worst functional's diagnostics unless the chains converged."""
    judged = [run.judged == "all" or name.startswith(PREDICTIVE) for name in names]
    names = [name for name, is_judged in zip(names, judged, strict=True) if is_judged]
    by_chain = values[:, judged].reshape(run.chains, -1, len(names))
    if np.isfinite(by_chain).all():
        by_chain = normal_scores(by_chain)
    refuse_unconverged(by_chain, names, run.r_hat, run.effective)
