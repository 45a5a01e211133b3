"""Two Gaussian laws, equal covariances or not: the exact delta at epsilon.

Equal covariances: G_mu with mu the Mahalanobis distance of the means (Balle and Wang 2018). Unequal
ones: the privacy loss L = log p1/p2 is a quadratic in independent normals with a known moment
generating function M, and

    delta(eps) = E_1 (1 - e^{eps - L})_+ = (1 / 2 pi i) int M(s) e^{-s eps} / (s (s + 1)) ds

over a vertical line to the right of 0, taken through the saddle point, so that small deltas keep
their digits. In one dimension {L > eps} is an interval or its complement, and delta is closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from congenial.data.arrays import Floats
from congenial.errors import GuaranteeError
from congenial.pairs.stated_laws import VectorLaw
from congenial.privacy.conversions import gaussian_delta

Pairing = Sequence[tuple[int, int]]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 32
_ROUNDS = 400
_NEGLIGIBLE = 1e-7  # share of the integral that is bounded instead of computed
_ROUNDING = 1 + 2.0**-40  # sums and inverses of a few dozen terms, with room to spare
_NOTHING = 1e-60  # a delta below this need not be computed, only bounded
_CANCELLED = 1e-6  # a sum below this share of its terms has too few digits left
_ALIKE = 5e-13  # coefficients of squares below this: covariances that agree but for rounding
_SLACK = 1e-9  # what such squares add to the loss, with probability above 1 - 1e-100


def mahalanobis(difference: Any, covariance: Any) -> float:
    """sqrt(d' C^-1 d), rounded up by more than its arithmetic can lose."""
    d = np.asarray(difference, dtype=np.float64)
    deviation = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviation, deviation)
    values = np.linalg.eigvalsh(correlation)
    if values[0] <= 0:
        return math.inf
    solved = np.linalg.solve(np.linalg.cholesky(correlation), d / deviation)
    loss = 1 + 64 * len(d) ** 2 * 2.0**-52 * float(values[-1] / values[0])
    return math.sqrt(float(solved @ solved)) * loss


def pair_delta(
    mean: Any, covariance: Any, other_mean: Any, other_covariance: Any, epsilon: float
) -> float:
    """delta(epsilon) of N(mean, covariance) against N(other_mean, other_covariance).

    Exact up to about six digits; what the integration leaves out is added, so it is not too small.
    Both orders of a pair need a call each.
    """
    first, other = (
        np.atleast_2d(np.asarray(c, dtype=float)) for c in (covariance, other_covariance)
    )
    m1, m2 = (np.atleast_1d(np.asarray(m, dtype=float)) for m in (mean, other_mean))
    if np.array_equal(first, other):
        return gaussian_delta(mahalanobis(m1 - m2, first), epsilon)
    if len(m1) == 1 and min(first[0, 0], other[0, 0]) <= 0:
        raise GuaranteeError("a distribution has no variance.", remedy="Give a positive variance.")
    a, b, c = _quadratic(m1, first, m2, other)
    if np.abs(a).max() <= _ALIKE:
        return _alike(m1 - m2, first, other, epsilon)
    if len(m1) == 1:
        return _on_the_line(m1[0], first[0, 0], m2[0], other[0, 0], epsilon)
    return _by_contour(a, b, c, epsilon)


def _alike(d: Floats, one: Floats, other: Floats, epsilon: float) -> float:
    """Covariances equal but for rounding: the formula for equal ones, towards more loss.

    The loss is linear but for |sum a x^2| <= 5e-13 chi^2, below 1e-9 unless chi^2 > 2000.
    """
    mu = max(mahalanobis(d, one), mahalanobis(d, other)) * (1 + 1e-11)
    return min(1.0, gaussian_delta(mu, max(0.0, epsilon - _SLACK)) + 1e-100)


class Moments(NamedTuple):
    """Mean and covariance of a law, without its name."""

    mean: Floats
    covariance: Floats


def worst_delta(
    laws: Sequence[VectorLaw | Moments], pairs: Pairing, noise_covariance: Any, epsilon: float
) -> float:
    """Largest delta over all pairs in both orders, noise N(0, S) added to every law."""
    added = np.asarray(noise_covariance, dtype=np.float64)
    largest = 0.0
    for i, j in pairs:
        first, other = laws[i], laws[j]
        a, b = first.covariance + added, other.covariance + added
        largest = max(largest, pair_delta(first.mean, a, other.mean, b, epsilon))
        if not np.array_equal(a, b):
            largest = max(largest, pair_delta(other.mean, b, first.mean, a, epsilon))
    return largest


def shared_distance(
    laws: Sequence[VectorLaw | Moments], pairs: Pairing, noise_covariance: Any
) -> float:
    """Largest Mahalanobis distance over pairs, each taken to share the covariance of either law."""
    return max(
        mahalanobis(laws[i].mean - laws[j].mean, law.covariance + noise_covariance)
        for i, j in pairs
        for law in (laws[i], laws[j])
    )


def _quadratic(m1: Floats, c1: Floats, m2: Floats, c2: Floats) -> tuple[Floats, Floats, Floats]:
    """L = sum of a x^2 + b x + c with x standard normal under the first law."""
    root = np.linalg.cholesky(c1)
    half = np.linalg.solve(root, np.linalg.solve(root, c2).T)
    values, vectors = np.linalg.eigh((half + half.T) / 2)
    shift = vectors.T @ np.linalg.solve(root, m2 - m1)
    a = (1 - values) / (2 * values)
    return a, -shift / values, shift**2 / (2 * values) + np.log(values) / 2


def _log_transform(s: Any, a: Floats, b: Floats, c: Floats) -> Any:
    s = np.asarray(s)[..., None]
    rest = 1 - 2 * a * s
    return (s * c - np.log(rest) / 2 + s * s * b * b / (2 * rest)).sum(axis=-1)


def _by_contour(a: Floats, b: Floats, c: Floats, epsilon: float) -> float:
    """The integral over the line through the saddle point, panel by panel.

    Every line between 0 and `top`, the pole of M nearest to it, gives the same integral; far from
    the saddle it is a small difference of huge terms, which is refused.
    """
    if a.max() < 0 and float((c - b * b / (4 * a)).sum()) <= epsilon:
        return 0.0  # the loss is bounded, and below epsilon
    top = 1 / (2 * a.max()) if a.max() > 0 else math.inf
    centre, peak = _saddle(a, b, c, epsilon, top)
    crude = math.exp(min(peak, 700.0)) * (centre + 1) / 2 * _ROUNDING
    if crude < _NOTHING:  # the integral of absolute values, M taken as on the real line
        return crude
    rest = 1 - 2 * a * centre
    curvature = float((2 * a * a / rest**2 + b * b / rest**3).sum())
    width = min(centre, 1.0, top - centre, 2 / math.sqrt(curvature)) / 2
    delta = _integrate(lambda s: _log_transform(s, a, b, c) - s * epsilon - peak, centre, width)
    return min(1.0, delta / math.pi * math.exp(min(peak, 700.0)) * _ROUNDING)


def _saddle(a: Floats, b: Floats, c: Floats, epsilon: float, top: float) -> tuple[float, float]:
    """Where the integrand is least on the real line between 0 and `top`, and its log there."""
    from scipy.optimize import minimize_scalar

    def place(x: float) -> float:
        return 1 / (1 / top + math.exp(-x))  # like e^x, and below `top`

    def height(x: float) -> float:
        s = place(x)
        if (1 - 2 * a * s).min() <= 0:  # rounded up to the pole
            return 1e300
        plain = float(_log_transform(s, a, b, c))
        return plain - s * epsilon - math.log(s) - math.log1p(s)

    low = min(-30.0, math.log(top) - 30) if math.isfinite(top) else -30.0
    optimum = minimize_scalar(height, bounds=(low, 30), method="bounded", options={"xatol": 0.01})
    return place(float(optimum.x)), height(float(optimum.x))


def _integrate(exponent: Any, centre: float, width: float) -> float:
    """Integral over t > 0 of the real part at centre + i t, and a bound for what is left out.

    The factor M falls along the line, so beyond t the rest is at most |value| |s| |s + 1| / t.
    """
    total, size, start = 0.0, 0.0, 0.0
    rest = math.inf
    for _ in range(_ROUNDS):
        edges = start + width * np.arange(_PANELS + 1)
        t = edges[:-1, None] + (_NODES + 1) / 2 * width
        s = centre + 1j * t
        values = np.exp(exponent(s) - np.log(s) - np.log(1 + s))
        total += float((values.real * _WEIGHTS).sum()) * width / 2
        size += float((np.abs(values) * _WEIGHTS).sum()) * width / 2
        start = float(edges[-1])
        rest = float(np.abs(values[-1, -1] * s[-1, -1] * (s[-1, -1] + 1))) / start
        if rest < _NEGLIGIBLE * max(total, 1e-300):
            break
        turn = np.abs(np.angle(values[-1, 1:] / values[-1, :-1]))
        if float(np.nanmax(turn)) < 0.2:
            width *= 1.5
    if not (math.isfinite(size + rest) and rest <= total and total >= _CANCELLED * size):
        raise GuaranteeError(
            "the delta of two normal distributions cannot be computed to enough digits.",
            remedy="Leave out statistics that nearly determine each other.",
        )
    return total + rest


def _on_the_line(m1: float, v1: float, m2: float, v2: float, epsilon: float) -> float:
    from scipy.special import ndtr

    a = (1 / v2 - 1 / v1) / 2
    b = (m1 - m2) / v2  # L(m1 + x) = a x^2 + b x + c
    c = (m1 - m2) ** 2 / (2 * v2) + math.log(v2 / v1) / 2 - epsilon
    square = b * b - 4 * a * c
    if square <= 0:
        return 0.0 if a < 0 else max(0.0, -math.expm1(epsilon))
    q = -(b + math.copysign(math.sqrt(square), b)) / 2
    low, high = sorted((q / a, c / q if q else 0.0))

    def mass(mean: float, variance: float) -> float:
        ends = [(m1 + x - mean) / math.sqrt(variance) for x in (low, high)]
        if a < 0:
            left, right = (ends[0], ends[1]) if ends[0] + ends[1] < 0 else (-ends[1], -ends[0])
            return float(ndtr(right) - ndtr(left))
        return float(ndtr(ends[0]) + ndtr(-ends[1]))

    return min(1.0, max(0.0, (mass(m1, v1) - math.exp(epsilon) * mass(m2, v2)) + 2.0**-50))
