"""epsilon with delta of one draw of discrete Gaussian noise, on any lattice.

**Bound.** Noise y on a lattice (whole tables, or those that agree with exact figures) with weight
exp(-sum_b |y_b|^2 / (2 sigma_b^2)), and two databases whose tables differ by v, a vector of the
lattice. The lattice splits into lines { y + k v }. Adding v maps each line to itself, so a line has
the same mass under both databases, and on it the noise is a discrete Gaussian on Z + c, of scale
1/mu with mu^2 = sum_b |v_b|^2 / sigma_b^2, against itself moved by 1. delta(epsilon) is the mean
over lines of that of one line:

    delta(epsilon) <= sup over c of delta_c(mu, epsilon).

It depends on mu alone, not on the lattice. (A single line need not keep rho = mu^2 / 2; their mean
does, so the smaller of this and the conversion from rho holds.) Nothing unconditioned replaces it:
given the sum of two cells with sigma = 1, v = (1, -1) has delta(0) = .564; without the sum it is
.502, and .520 for the continuous Gaussian of the same mu.

**Monotone in mu.** Let mu' < mu. Beside a draw at mu' release another, independent one on Z whose
own mu'' has mu'^2 + mu''^2 = mu^2. Who drops it knows less, and both together are a draw at mu. So
pairs that differ by less have no more than the bound at the largest mu, sqrt(2 rho).

**One line.** In units of the scale the points are z = b + (s + k) mu, b = epsilon/mu - mu/2, 0 < s
<= 1, k whole; P(z) > e^epsilon Q(z) exactly for k >= 0, and with w(z) = exp(-z^2 / 2)

    delta_c = sum over k >= 0 of w(z_k) (1 - exp(-(s + k) mu^2)) / sum over all k of w(z_k).

**Certified.** On a cell s1 <= s <= s2 the numerator is at most its terms with the largest w of the
cell and the last factor at s2; the denominator is a theta function, which falls with the distance
from its points to 0 (Jacobi's triple product), so it is at least its value at the farthest s. Cells
whose bound may be the largest are split until it is within `TIGHT` of a value attained. Sums are of
positive terms, so floating point errs by far less than `ROUNDING`.

Only for one draw whose parameters do not depend on earlier results: releases one after the other
are added as rho.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from congenial.privacy.conversions import zcdp_delta, zcdp_epsilon, zcdp_rho
from congenial.privacy.numbers import (
    SMALLEST,
    ULP,
    FloatArray,
    Number,
    above,
    below,
    parameter,
    probability,
)

TIGHT = 1e-4  # the bound found is at most so much above the supremum, relatively
ROUNDING = 1e-9
SMALLEST_MU = 1e-3  # below it sums are long and little is gained: the conversion from rho counts
LARGEST_MU = 5.0  # beyond it there is no privacy left to state more sharply
_FAR = 80.0  # where sums stop, in w's exponent beyond its largest value; the rest is bounded
_CELLS, _SPLIT, _ROUNDS = 32, 8, 12


def lattice_delta(rho: Number, epsilon: Number) -> float:
    """Least delta known at epsilon for one draw of discrete Gaussian noise with this rho.

    The smaller of the bound of this module and the conversion from rho, rounded up.

    >>> round(lattice_delta(1, 0), 3), round(lattice_delta("1/2", 1), 3)
    (0.564, 0.143)
    """
    size, eps = parameter(rho, "rho"), below(parameter(epsilon, "epsilon"))
    mu = math.sqrt(above(2 * Fraction(size))) * (1 + 2 * ULP)
    converted = zcdp_delta(size, eps)
    if not SMALLEST_MU <= mu <= LARGEST_MU:
        return converted
    return min(converted, _supremum(mu, eps))


def lattice_epsilon(rho: Number, delta: float) -> float:
    """Least epsilon known at delta for one draw of discrete Gaussian noise, rounded up.

    >>> round(lattice_epsilon("1/2", 1e-6), 2)
    5.04
    """
    size, target = parameter(rho, "rho"), probability(delta)
    return _epsilon(size, target)


@lru_cache(maxsize=512)
def _epsilon(rho: Number, delta: float) -> float:
    high, low = zcdp_epsilon(rho, delta), 0.0
    if math.isinf(high) or lattice_delta(rho, 0.0) <= delta:
        return high if math.isinf(high) else 0.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if lattice_delta(rho, middle) <= delta else (middle, high)
    return high


@lru_cache(maxsize=512)
def lattice_rho(epsilon: Number, delta: float) -> float:
    """Calibrate: the greatest rho of one draw that keeps epsilon at delta, rounded down.

    Aims three times `TIGHT` below delta, so that any smaller rho states no more than epsilon.

    >>> round(lattice_rho(1, 1e-6), 4)
    0.0279
    """
    eps, target = parameter(epsilon, "epsilon"), probability(delta)
    low = zcdp_rho(eps, target)
    if not 0 < low < math.inf:
        return low
    high, enough = 2 * low, target * (1 - 3 * TIGHT)
    while lattice_delta(high, eps) <= enough:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if lattice_delta(middle, eps) <= enough else (low, middle)
    return low


@lru_cache(maxsize=4096)
def _supremum(mu: float, eps: float) -> float:
    """A bound of delta over all offsets, `TIGHT`."""
    starts, width, largest = np.arange(_CELLS) / _CELLS, 1 / _CELLS, 0.0
    for _ in range(_ROUNDS):
        # the value at a cell's end is attained; its bound is not
        attained, bound = (
            _over_cells(mu, eps, starts + width, 0.0),
            _over_cells(mu, eps, starts, width),
        )
        largest = max(largest, float(attained.max()))
        if float(bound.max()) <= largest * (1 + TIGHT):
            break
        starts = starts[bound > largest * (1 + TIGHT / 2)]
        width /= _SPLIT
        starts = (starts[:, np.newaxis] + width * np.arange(_SPLIT)).reshape(-1)
    else:
        return min(1.0, float(max(bound.max(), largest)) * (1 + ROUNDING) + SMALLEST)
    return min(1.0, largest * (1 + TIGHT) * (1 + ROUNDING) + SMALLEST)


def _over_cells(mu: float, eps: float, starts: FloatArray, width: float) -> FloatArray:
    """A bound of delta_c for s from each start, `width` far; the value at s itself for width 0."""
    b = eps / mu - mu / 2
    nearest = max(b, 0.0)  # w is largest there: w(nearest) is taken out of the sums
    terms = math.ceil((math.sqrt(nearest**2 + _FAR) - b) / mu) + 1
    steps = np.arange(terms)
    z = b + (starts[:, np.newaxis] + steps) * mu
    closest = np.clip(0.0, z, z + width * mu)
    weights = np.exp((nearest**2 - closest**2) / 2)
    factors = -np.expm1(-(starts[:, np.newaxis] + width + steps) * mu**2)
    last = b + (starts + terms) * mu
    rest = np.exp((nearest**2 - last**2) / 2) / -np.expm1(-last * mu)
    above_line = (weights * factors).sum(axis=1) + rest
    return np.asarray(
        above_line * math.exp(-(nearest**2) / 2) / _least_theta(mu, eps, starts, width)
    )


def _least_theta(mu: float, eps: float, starts: FloatArray, width: float) -> FloatArray:
    """The least sum of all w over each cell: at the offset farthest from 0, at most 1/2."""
    offset = eps / mu**2 - 0.5 + starts
    unsure = 4 * ULP * (1 + np.abs(offset))  # digits that the whole part took
    ends = np.stack([offset - unsure, offset + width + unsure])
    far = np.abs(ends - np.rint(ends)).max(axis=0)
    halves = np.floor(ends[1] - 0.5) != np.floor(ends[0] - 0.5)  # the cell holds some k + 1/2
    far = np.where(halves, 0.5, far)
    reach = math.ceil(math.sqrt(_FAR) / mu) + 1
    points = (far[:, np.newaxis] + np.arange(-reach, reach + 1)) * mu
    return np.asarray(np.exp(-(points**2) / 2).sum(axis=1))
