"""The error of fitted laws: what it can do to a promise, and noise that allows for it.

A law fitted to R subsets, each of which uses a share f = k/N of a group of the modelling data, is
worth 1 / (1/R + f / (1 - f)) independent datasets: the subsets are a sample, so is the file they
come from; they spread less than new datasets would, by 1 - f. A parametric bootstrap redraws means
and covariances as fits of that worth would vary, keeps the noise and looks at the epsilon or delta
it then gives; the promise shows an upper confidence bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from congenial.errors import StructureError
from congenial.mechanisms.distribution.calibrated_noise import CalibratedNoise
from congenial.mechanisms.distribution.gaussians import Moments, mahalanobis, worst_delta
from congenial.mechanisms.distribution.transported_noise import radius, signed_sums
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.stated_laws import GaussianLaw
from congenial.privacy.conversions import gaussian_epsilon
from congenial.privacy.numbers import small

Refits = list[list[Moments]]
M = TypeVar("M", bound=CalibratedNoise)

CONFIDENCE = 0.95
DRAWS = 299
FEWER_DRAWS = 59  # where each needs a numerical integral
MODELS = 39  # refits that noise is built for, before it is scaled to the bound
USED_UP = "its subsets use nearly all modelling records of some group"
_SEED = 20230425  # of the bootstrap: the same fit always shows the same bound
_GRID = 24


@dataclass(frozen=True)
class SamplingError:
    """What the error of fitted laws can do: an upper confidence bound of epsilon or delta."""

    parameter: str
    bound: float
    confidence: float
    words: str

    def beside(self, promised: float) -> str:
        """The bound beside what is promised of the same parameter, and what may be done."""
        number = f"{self.bound:.4g}" if self.parameter == "epsilon" else small(self.bound)
        bound = f"up to {number}" if math.isfinite(self.bound) else "without any bound"
        words = (
            f"{self.parameter} = {promised:.4g} is promised if the fitted distributions are "
            f"right; allowing for their sampling error it is {bound} ({100 * self.confidence:g} % "
            "upper bound)"
        )
        if self.bound <= promised:
            return f"{words}, so the promise is kept."
        return (
            f"{words}. To keep the promise anyway, write confidence = {self.confidence:g} (more "
            "noise), or use more modelling data."
        )


def cost_words(ratio: float) -> str:
    """What allowing for the error of the fit costs, beside the same release without it."""
    return (
        f" Allowing for it makes the expected error {ratio:.3g} times what it is with "
        'confidence = "off".'
    )


def sampling_error(mechanism: CalibratedNoise, confidence: float = CONFIDENCE) -> SamplingError:
    """Upper confidence bound of epsilon (Laplace noise) or delta (Gaussian noise, or none).

    Laws that are samples themselves have no such bound; there, what lies beyond a sample counts.
    """
    percent = f"{100 * confidence:g} %"
    if not mechanism.pairs.gaussian:
        unseen = 1 - (1 - confidence) ** (1 / max(1, mechanism.pairs.origin.replications))
        words = (
            f"up to {small(unseen)} of a law may lie beyond its sample ({percent} confidence), "
            "which counts against delta"
        )
        return SamplingError("delta", mechanism.target.delta + unseen, confidence, words)
    parameter = "epsilon" if mechanism.noise.family == "laplace" else "delta"
    if not _known(mechanism.pairs):
        words = f"sampling error of the fit: not known, {USED_UP}"
        return SamplingError(parameter, math.inf, confidence, words)
    bound = _bound(mechanism, confidence, _refits_for(mechanism))
    rounded = f"{bound:.4g}" if parameter == "epsilon" else small(bound)
    words = f"sampling error of the fit: {percent} upper bound for {parameter} is {rounded}"
    if math.isinf(bound):
        words = (
            "sampling error of the fit: it leaves open directions without noise, which no epsilon "
            "covers at delta = 0"
        )
    return SamplingError(parameter, bound, confidence, words)


def models_within_error(pairs: DistributionPairs) -> DistributionPairs:
    """The pairs, and refits of all their laws beside them: what noise has to hide, fit allowed for.

    Directions of the means then differ a little, as they may in truth.
    """
    laws, every = list(pairs.laws), list(pairs.pairs)
    for number, refit in enumerate(refits(pairs, MODELS)):
        start = len(laws)
        laws += [
            GaussianLaw.of(f"{law.label} (refit {number})", again.mean, again.covariance)
            for law, again in zip(pairs.laws, refit, strict=True)
        ]
        every += [(i + start, j + start) for i, j in pairs.pairs]
    return replace(pairs, laws=tuple(laws), pairs=tuple(every))


def enlarged_for_fit(mechanism: M, confidence: float = CONFIDENCE) -> M:
    """The same noise, scaled up until the upper confidence bound itself meets the target.

    Refused where no scale does it: noise along few directions does not reach what the fit leaves
    open in the others.
    """
    need_gaussian(mechanism.pairs)
    drawn, noise = _refits_for(mechanism), mechanism.noise
    laplace = noise.family == "laplace"
    allowed = float(mechanism.target.epsilon) if laplace else mechanism.target.delta

    def scaled(factor: float) -> M:
        return replace(mechanism, noise=replace(noise, scales=noise.scales * factor))

    low, high = 1.0, 1.0
    while _bound(scaled(high), confidence, drawn) > allowed:
        low, high = high, 2 * high
        if high > 16:
            raise StructureError(
                "no amount of this noise makes up for the error of the fit.",
                remedy="Use more modelling data, or a mechanism with noise in every statistic.",
            )
    while high - low > 0.01 * low:
        middle = (low + high) / 2
        good = _bound(scaled(middle), confidence, drawn) <= allowed
        low, high = (low, middle) if good else (middle, high)
    return scaled(high)


def as_is_delta(pairs: DistributionPairs, epsilon: float, enough: float = 1.0) -> float:
    """delta of releasing without noise: exact, or a 95 % upper confidence bound for fitted laws.

    Once the plain delta is above `enough`, it is returned without the bound.
    """
    need_gaussian(pairs)
    nothing = VectorNoise.none(pairs.dimension).covariance
    delta = worst_delta(pairs.laws, pairs.pairs, nothing, epsilon)
    if not pairs.fitted or delta > enough:
        return delta
    drawn = refits(pairs, FEWER_DRAWS)
    deltas = [worst_delta(laws, pairs.pairs, nothing, epsilon) for laws in drawn]
    return max(delta, _upper(deltas, CONFIDENCE))


def refits(pairs: DistributionPairs, draws: int) -> Refits:
    """Laws as other samples of the same worth might have given them."""
    if not _known(pairs):
        raise StructureError(
            f"the sampling error of the fit is not known: {USED_UP}.",
            remedy="Give more modelling data, fit distributions of fewer records, or ignore the "
            'error: confidence = "off".',
        )
    generator = np.random.Generator(np.random.Philox(_SEED))
    roots = [np.linalg.cholesky(law.covariance) for law in pairs.laws]
    return [
        [_refit(law, root, generator) for law, root in zip(pairs.laws, roots, strict=True)]
        for _ in range(draws)
    ]


def _known(pairs: DistributionPairs) -> bool:
    """Whether the modelling data leave enough unused to tell their own sampling error."""
    worths = [law.worth for law in pairs.laws if isinstance(law, GaussianLaw)]
    return all(worth is None or worth > 0 for worth in worths)


def _refit(law: object, root: Any, generator: np.random.Generator) -> Moments:
    assert isinstance(law, GaussianLaw)
    m = law.dimension
    if law.worth is None or math.isinf(law.worth):
        return Moments(law.mean, law.covariance)
    freedom = max(law.worth, m + 1.0)  # fewer have no regular covariance
    # Bartlett: T T' of this random triangle is a standard Wishart matrix
    triangle = np.tril(generator.standard_normal((m, m)), -1)
    triangle[np.diag_indices(m)] = np.sqrt(generator.chisquare(freedom - np.arange(m)))
    spread = root @ triangle
    mean = law.mean + root @ generator.standard_normal(m) / math.sqrt(law.worth)
    return Moments(mean, spread @ spread.T / freedom)


def _refits_for(mechanism: CalibratedNoise) -> Refits:
    closed = mechanism.noise.family == "laplace" or mechanism.assumed_equal
    return refits(mechanism.pairs, DRAWS if closed else FEWER_DRAWS)


def _bound(mechanism: CalibratedNoise, confidence: float, drawn: Refits) -> float:
    """Upper bound of the epsilon (Laplace noise) or delta (Gaussian, or none) the noise gives."""
    if mechanism.name == "bounded_wasserstein":
        return _upper(_bounded_epsilons(mechanism, drawn), confidence)
    if mechanism.noise.family == "laplace":
        return _upper(_laplace_epsilons(mechanism, drawn), confidence)
    return _upper([mechanism.delta(laws) for laws in drawn], confidence)


def _laplace_epsilons(mechanism: CalibratedNoise, drawn: Refits) -> list[float]:
    """For each refit the epsilon at the promised delta.

    The means differ by V a + r, V the directions with noise. Moving by V a costs sum |a_j| / b_j,
    moving by r only the laws' own spread hides: G_mu, mu the Mahalanobis length of r, least for
    a = (V' C^-1 V)^-1 V' C^-1 d. One after the other: eps_1 + eps_2 and e^{eps_1} delta_2.
    """
    noise, pairs = mechanism.noise, mechanism.pairs.pairs
    along, aside = np.zeros((len(drawn), len(pairs))), np.zeros((len(drawn), len(pairs)))
    for at, laws in enumerate(drawn):
        for k, (i, j) in enumerate(pairs):
            d, shared = laws[i].mean - laws[j].mean, (laws[i].covariance + laws[j].covariance) / 2
            steps: Any = noise.directions.T @ d
            if noise.rank < noise.dimension:
                weighted = np.linalg.solve(shared, noise.directions)
                steps = np.linalg.solve(noise.directions.T @ weighted, weighted.T @ d)
                aside[at, k] = mahalanobis(d - noise.directions @ steps, shared)
            along[at, k] = float((np.abs(steps) / noise.scales).sum())
    if not aside.any():
        return [float(largest) for largest in along.max(axis=1)]
    delta = mechanism.target.delta * math.exp(-float(along.max()))
    grid = np.linspace(0.0, float(aside.max()), _GRID)
    costs = np.array([gaussian_epsilon(mu, delta) for mu in grid.tolist()])
    rest = costs[np.searchsorted(grid, aside)]  # the next grid point: not too small
    return [float(largest) for largest in (along + rest).max(axis=1)]


def _bounded_epsilons(mechanism: CalibratedNoise, drawn: Refits) -> list[float]:
    """For each refit (Delta_E + 2 c) / b, which Theorem 3.3 gives at the promised delta.

    c comes from deviations of signed sums and grows with them: a refit has at most the fitted c
    times the largest quotient of its deviations and the fitted ones.
    """
    pairs, tail = mechanism.pairs, mechanism.target.delta / 2
    signs = signed_sums(pairs.dimension)
    own = [np.einsum("ij,jk,ik->i", signs, law.covariance, signs) for law in pairs.laws]
    radii = [radius(law, tail) for law in pairs.laws]
    reaches = []
    for laws in drawn:
        wider = [
            np.einsum("ij,jk,ik->i", signs, law.covariance, signs) / before
            for law, before in zip(laws, own, strict=True)
        ]
        c = [r * math.sqrt(float(variance.max())) for r, variance in zip(radii, wider, strict=True)]
        reaches.append(
            max(
                float(np.abs(laws[i].mean - laws[j].mean).sum()) + 2 * max(c[i], c[j])
                for i, j in pairs.pairs
            )
        )
    return [reach / float(mechanism.noise.scales.min()) for reach in reaches]


def _upper(values: list[float], confidence: float) -> float:
    """The order statistic that a further value exceeds with probability 1 - confidence at most."""
    most = len(values) / (len(values) + 1)
    if not 0 < confidence <= most:
        raise StructureError(
            f"confidence = {confidence:g} cannot be shown by {len(values)} refits of the "
            "distributions.",
            remedy=f"Use a confidence above 0 and at most {math.floor(1000 * most) / 1000:g}.",
        )
    return sorted(values)[math.ceil(confidence * (len(values) + 1)) - 1]


def need_gaussian(pairs: DistributionPairs) -> None:
    """Refuse laws that are not Gaussian."""
    if not pairs.gaussian:
        raise StructureError(
            "this diagnostic is for normal distributions.",
            remedy="Fit normal distributions, or compare the empirical ones by a Wasserstein "
            "mechanism.",
        )
