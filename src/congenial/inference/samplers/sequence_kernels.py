"""Compiled loops over counts that follow each other: each drawn given those before it.

A count x has weight exp(-r^2 (x - c)^2 / 2) G(x + a) / G(x + 1) on 0, 1, 2, ...; its centre c
depends on the counts before. Weights are added up from the centre outwards, until what is left is
below 1e-18 of them. Far enough from 0 the factor of the model is left to the weight of the whole
draw: the sum of the others is then known.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.inference.samplers.count_kernels import FAR, HALF_LOG_2_PI, TINY, _log_gamma

SMOOTH = 0.7  # up to this r the weights of all integers sum to sqrt(2 pi) / r within 1e-17
CLEAR = 4.5  # standard deviations from 0 beyond which counts below 0 are drawn, to be thrown away
FLAT = 9.0  # beyond which the factor of the model hardly bends


@numba.njit(cache=True, error_model="numpy")
def _mode(c: Any, r: Any, a: Any) -> Any:
    """Where weights are highest, a spike at 0 aside: at the centre, or above it where a > 1."""
    low = max(np.int64(round(c)), np.int64(0))
    high = low if a <= 1 else max(low, np.int64(math.ceil(c + math.log(a) / (r * r))))
    while low < high:
        x = low + (high - low) // 2
        if math.log((x + a) / (x + 1)) > r * r * (x - c + 0.5):
            low = x + 1
        else:
            high = x
    return low


@numba.njit(cache=True, error_model="numpy")
def _sums(here: Any, c: Any, r: Any, a: Any) -> Any:
    """Sums of w, w (x - here) and w (x - here)^2, weights w over that of `here`."""
    shrink = math.exp(-r * r)
    total, first, second = 1.0, 0.0, 0.0
    w, step, x = 1.0, math.exp(-r * r * (here - c + 0.5)), here
    while w > TINY * total:
        w *= step * (x + a) / (x + 1)
        step *= shrink
        x += 1
        total += w
        first += w * (x - here)
        second += w * (x - here) ** 2
    w, step, x = 1.0, math.exp(r * r * (here - c - 0.5)), here
    while x > 0 and w > TINY * total:
        w *= step * x / (x - 1 + a)
        step *= shrink
        x -= 1
        total += w
        first += w * (x - here)
        second += w * (x - here) ** 2
    return total, first, second


@numba.njit(cache=True, error_model="numpy")
def count_moments(centre: Any, sd: Any, shapes: Any) -> Any:
    """Mean and variance of each count, (counts, 2)."""
    out = np.empty((centre.size, 2))
    for j in range(centre.size):
        here = _mode(centre[j], 1 / sd[j], shapes[j])
        total, first, second = _sums(here, centre[j], 1 / sd[j], shapes[j])
        out[j, 0] = here + first / total
        out[j, 1] = second / total - (first / total) ** 2
    return out


@numba.njit(cache=True, error_model="numpy")
def _total(here: Any, c: Any, r: Any, whole: Any) -> Any:
    """The sum over 0, 1, ... of flat weights, over that of `here`: the whole, less what is below 0.

    whole: the sum over all integers.
    """
    shrink, w = math.exp(-r * r), math.exp(0.5 * r * r * ((here - c) ** 2 - (1 + c) ** 2))
    step, total = math.exp(-r * r * (1.5 + c)), whole
    while w > TINY * whole:
        total -= w
        w *= step
        step *= shrink
    return total


@numba.njit(cache=True, error_model="numpy")
def _outwards(target: Any, here: Any, c: Any, r: Any, a: Any, least: Any) -> Any:
    """Where weights, over that of `here` and added up from it outwards, pass the target.

    Counts are not below `least`, and weights fall on both sides of `here`.
    """
    tiny = TINY * (1 + target)
    target -= 1.0
    shrink, more = math.exp(-r * r), math.exp(-r * r * (here - c + 0.5))
    high, up = here, 1.0
    low, down, less = here, 1.0, math.exp(r * r * (here - c - 0.5))
    while target >= 0:
        up *= more if a == 1 else more * (high + a) / (high + 1)
        more *= shrink
        high += 1
        target -= up
        if target < 0:
            return high
        if low > least:
            down *= less if a == 1 else less * low / (low - 1 + a)
            less *= shrink
            low -= 1
            target -= down
            if target < 0:
                return low
        if up <= tiny and (low == least or down <= tiny):
            break  # rounding: the weights add up to less than their known sum
    return here


@numba.njit(cache=True, error_model="numpy")
def draw_count(rng: Any, c: Any, r: Any, a: Any) -> Any:
    """A count, and the logarithm of what its weight is too small by (in units of sqrt(2 pi) / r).

    That is the sum of all weights; or, far from 0, the factor of the model at the count, which is 0
    below 0.
    """
    here = max(np.int64(round(c)), np.int64(0))
    smooth = c > 0 and r <= SMOOTH
    whole = math.exp(0.5 * (r * (here - c)) ** 2 + HALF_LOG_2_PI) / r if smooth else 0.0
    if smooth and c * r > (CLEAR if a == 1 else FLAT):
        x = _outwards(rng.random() * whole, here, c, r, 1.0, -FAR)
        if x < 0:
            return x, -np.inf
        return x, 0.0 if a == 1 else _log_gamma(x + a) - _log_gamma(x + 1.0)
    if a == 1 and smooth:
        total = _total(here, c, r, whole)
    else:
        here = _mode(c, r, a)
        total = _sums(here, c, r, a)[0]
    mass = math.log(total * r) - HALF_LOG_2_PI - 0.5 * (r * (here - c)) ** 2
    if a != 1:
        mass += _log_gamma(here + a) - _log_gamma(here + 1.0)
    return _outwards(rng.random() * total, here, c, r, a, np.int64(0)), mass


@numba.njit(cache=True, error_model="numpy")
def draw_block(rng: Any, first: Any, pull: Any, factor: Any, centre: Any, law: Any, away: Any,
               log_weights: Any) -> None:  # fmt: skip
    """Counts first, first + 1, ... of every draw, given those before, in place.

    factor: R of all counts; away: counts minus centre, (counts, draws); pull: R times away over the
    counts before the block, (counts of the block, draws). law: origin o, slope b, bend k and shape
    a of each count: exp(b (x - o) - k (x - o)^2 / 2) stands for the factor of the model in R and in
    the centre, and is divided out.
    """
    for row in range(pull.shape[0]):
        j = first + row
        for k in range(first, j):
            for i in range(away.shape[1]):
                pull[row, i] += factor[j, k] * away[k, i]
        origin, slope, bend, a = law[j]
        square = factor[j, j] ** 2
        r = math.sqrt(square - bend)
        for i in range(away.shape[1]):
            e = centre[j] - pull[row, i] / factor[j, j] - origin
            lean = (square * e - slope) / r
            x, mass = draw_count(rng, origin + lean / r, r, a)
            away[j, i] = x - centre[j]
            log_weights[i] += mass + 0.5 * (lean * lean - square * e * e)
