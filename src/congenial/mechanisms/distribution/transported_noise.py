"""Wasserstein mechanisms: Laplace noise scaled to how far mass must move between two laws.

W_inf (Theorem 3.1, pure), (W, delta)-closeness (Theorem 3.2), and a bound from the spread around
the means (Theorem 3.3). distribution-privacy; distances are l1, from `transport`. Gaussian laws
with one covariance are translations: W_inf is ||d||_1; and F = rest + (d / m) u, with m the
Mahalanobis distance of the means and u normal with mean 0 or m and independent of the rest, so the
one-dimensional coupling of u gives (W, delta) with W = ||d||_1 (1 - 2 Phi^-1((1 + delta)/2) / m).
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.errors import StructureError
from congenial.mechanisms.distribution.expected_value import UP
from congenial.mechanisms.distribution.gaussians import mahalanobis
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.stated_laws import DiscreteLaw, VectorLaw, pmf, sample
from congenial.privacy.numbers import smallest

_SIGNS = 16  # dimensions for which all sign patterns are looked at


def wasserstein_noise(
    pairs: DistributionPairs, epsilon: float, delta: float = 0.0, assume_equal: bool = False
) -> VectorNoise:
    """Lap(W / epsilon) in every statistic, W the largest W_inf, or (W, delta) where delta > 0.

    `assume_equal` takes Gaussian laws of a pair to share a covariance although the fitted ones
    differ; the mean of the two is used for (W, delta).
    """
    reach = max(_reach(pairs, i, j, delta, assume_equal) for i, j in pairs.pairs)
    return _everywhere(pairs, reach, epsilon)


def bounded_noise(pairs: DistributionPairs, epsilon: float, delta: float) -> VectorNoise:
    """Lap((Delta_E + 2 c) / epsilon): c holds ||F - E F||_1 with probability 1 - delta/2."""
    centre = float(np.abs(pairs.differences).sum(axis=1).max())
    used = {i for pair in pairs.pairs for i in pair}
    widest = max(radius(pairs.laws[i], delta / 2) for i in used)
    return _everywhere(pairs, centre + 2 * widest, epsilon)


def _everywhere(pairs: DistributionPairs, reach: float, epsilon: float) -> VectorNoise:
    if reach <= 0:
        return VectorNoise.none(pairs.dimension)
    return VectorNoise.laplace(np.eye(pairs.dimension), reach * UP / epsilon)


def _reach(pairs: DistributionPairs, i: int, j: int, delta: float, assume_equal: bool) -> float:
    """W of one pair."""
    from congenial.transport.wasserstein import distance  # compiled loops, only where needed

    first, other = pairs.laws[i], pairs.laws[j]
    if isinstance(first, DiscreteLaw) and isinstance(other, DiscreteLaw):
        empirical = pairs.origin.kind == "empirical"
        return distance(
            _transported(first, empirical), _transported(other, empirical), delta=_rational(delta)
        ).require()
    if isinstance(first, DiscreteLaw) or isinstance(other, DiscreteLaw):
        raise StructureError(
            f"laws {first.label!r} and {other.label!r} are of different kinds.",
            remedy="Give two normal or two discrete distributions.",
        )
    equal = np.array_equal(first.covariance, other.covariance)
    if not equal and not assume_equal:
        raise StructureError(
            f"the covariances of {first.label!r} and {other.label!r} differ: no finite distance "
            "moves one distribution onto the other.",
            remedy="Assume equal covariances, or use empirical distributions.",
        )
    d = first.mean - other.mean
    return _shift(d, (first.covariance + other.covariance) / 2, delta)


def _shift(d: Floats, covariance: Floats, delta: float) -> float:
    """W for N(0, C) against N(d, C)."""
    from scipy.special import ndtri

    whole = float(np.abs(d).sum())
    if delta == 0 or whole == 0:
        return whole
    m = mahalanobis(d, covariance)
    saved = 2 * float(ndtri(0.5 + delta / 2 * (1 - 2.0**-40)))
    return whole * max(0.0, 1 - saved / m)


def _transported(law: DiscreteLaw, empirical: bool) -> Any:
    """The law as `transport` reads it."""
    if empirical:
        least = min(law.masses)
        repeats = [int(mass / least) for mass in law.masses]
        if all(mass == least * k for mass, k in zip(law.masses, repeats, strict=True)):
            return sample(np.repeat(law.points, repeats, axis=0))
    return pmf(law.points, list(law.masses))


def _rational(delta: float) -> Fraction:
    return Fraction(repr(delta)) if delta else Fraction(0)


def radius(law: VectorLaw, tail: float) -> float:
    """c with P(||F - E F||_1 > c) <= tail.

    Gaussian: ||x||_1 is the largest of the 2^m signed sums, each normal, and their tails add up.
    """
    from scipy.special import ndtr

    if isinstance(law, DiscreteLaw):
        return _discrete_radius(law, tail)
    signs = signed_sums(law.dimension)
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", signs, law.covariance, signs)) * UP
    return smallest(lambda c: 2 * float(ndtr(-c / deviations).sum()) <= tail)


def signed_sums(m: int) -> Floats:
    """The signs of the sums +- x_1 +- ... +- x_m, each up to its own sign."""
    if m > _SIGNS:
        raise StructureError(
            f"{m} statistics have too many signed sums.",
            remedy=f"Release at most {_SIGNS} at once.",
        )
    return np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=m - 1)])


def _discrete_radius(law: DiscreteLaw, tail: float) -> float:
    away = [
        [float(abs(Fraction(x) - m)) for x, m in zip(atom, law.exact_mean, strict=True)]
        for atom in law.atoms
    ]
    distances = np.array(away).sum(axis=1) * UP
    order = np.argsort(distances)[::-1]
    beyond = Fraction(0)
    for at in order:
        beyond += law.masses[at]
        if beyond > tail:
            return float(distances[at])
    return math.inf
