"""Rigorous bounds of a cumulative distribution function F, for drawing by inversion.

Two forms of the same thing. `boundaries` is ball arithmetic (arb) at any resolution: slow to build,
as tight as asked, needed about once in a million draws or less. `word_bounds` is double precision
with every rounding error accounted for: built in well under a millisecond, one 64-bit bound on
each side of F(x), good for all but about 1e-9 of the draws of an ordinary law. What the second
cannot decide is handed to the first, so the second only has to be right, never sharp.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.sampling.ball_precision import working_precision

if TYPE_CHECKING:
    from congenial.sampling.inversion import ExactLaw

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

_TAIL_BITS = 80  # a ball table leaves out at most 2^-80 of its own resolution
_U = 2.0**-53  # unit round-off of a double
_LEAST = 2.0**-70  # a word table leaves out weights below this (the mode has weight 1)
_TOP = np.uint64(2**64 - 1)
_GUIDE_BITS = 12  # at most this many leading bits of a word narrow the search


def bits_at(level: int) -> int:
    """How many bits of U are known in round `level`: 16, 80, 144, ..."""
    return 16 + 64 * level


# --- ball arithmetic -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Boundaries:
    """Integer bounds lower[i] <= F(first + i) 2^bits <= upper[i]; `below` bounds F(first - 1)."""

    first: int
    below: int
    lower: list[int]
    upper: list[int]

    def locate(self, prefix: int) -> int | None:
        """Return the x decided by U in [prefix, prefix + 1] / 2^bits, or None."""
        i = bisect_right(self.lower, prefix)
        if i == len(self.lower) or prefix < (self.upper[i - 1] if i else self.below):
            return None
        return self.first + i


def _side(law: ExactLaw, step: int, tiny: Any) -> tuple[list[Any], Any]:
    """Weights (mode = 1) away from the mode on one side, and a ball that holds the mass left out.

    Ratios decrease away from the mode, so the mass beyond x is at most w(x) r / (1 - r) with the
    next r.
    """
    weights: list[Any] = []
    x, w = law.mode, arb(1)
    while True:
        if step < 0 and x == law.lowest:
            return weights, arb(0)
        r = law._ratio(x) if step > 0 else 1 / law._ratio(x - 1)
        w_next = w * r
        if w_next < tiny and r < 1:
            beyond = w_next / (1 - r)
            if beyond < tiny:
                return weights, arb(0).union(beyond)
        weights.append(w_next)
        x, w = x + step, w_next


def _integer_bounds(value: Any) -> tuple[int, int]:
    """Integers around a ball, one apart unless the ball touches an integer."""
    whole = value.floor().unique_fmpz()
    if whole is not None:
        return int(whole), int(whole) + 1
    return int(value.lower().floor().unique_fmpz()), int(value.upper().ceil().unique_fmpz())


@lru_cache(maxsize=32)  # for the rare draw that a word table does not decide
def boundaries(law: ExactLaw, level: int) -> Boundaries:
    """The bounds of one round, by summing positive balls outwards from the mode."""
    bits = bits_at(level)
    with working_precision(bits + _TAIL_BITS + 64):
        tiny = arb(2) ** -(bits + _TAIL_BITS)
        left, left_tail = _side(law, -1, tiny)
        right, right_tail = _side(law, +1, tiny)
        weights = [*reversed(left), arb(1), *right]
        total = left_tail + right_tail
        for w in weights:
            total += w
        scale = arb(2) ** bits / total
        below = int((left_tail * scale).upper().ceil().unique_fmpz())
        lower, upper, running = [], [], left_tail
        for w in weights:
            running += w
            low, high = _integer_bounds(running * scale)
            lower.append(low)
            upper.append(min(1 << bits, high))  # F <= 1
    return Boundaries(law.mode - len(left), below, lower, upper)


# --- double precision ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WordBounds:
    """lower[i] <= F(first + i) 2^64 <= upper[i + 1], and F(first - 1) 2^64 <= upper[0].

    Both arrays ascend. guide, of length 2^g, holds at t the first i with lower[i] > t 2^(64 - g).
    """

    first: int
    lower: Words
    upper: Words
    guide: npt.NDArray[np.int32]


def _outward(law: ExactLaw, step: int) -> tuple[Floats, float]:
    """Weights (mode = 1) on one side, nearest first, and an upper bound of the mass left out."""
    parts: list[Floats] = []
    x, w, size = law.mode, 1.0, 256
    while True:
        if step < 0 and law.lowest is not None:
            size = min(size, x - law.lowest)
            if size == 0:
                return np.concatenate([*parts, np.empty(0)]), 0.0
        away = np.arange(size, dtype=np.int64)
        with np.errstate(over="ignore", under="ignore"):
            r = law._ratios(x + away) if step > 0 else 1 / law._ratios(x - 1 - away)
            weights: Floats = w * np.cumprod(r, dtype=np.float64)
        if weights[-1] < _LEAST:
            end = int(np.argmax(weights < _LEAST))
            # far below the mode r is below 1 by much more than its error; 1e-300 is for underflow
            tail = 1.001 * float(weights[end]) / (1 - float(r[end])) + 1e-300
            return np.concatenate([*parts, weights[:end]]), tail
        parts.append(weights)
        x, w, size = x + step * size, float(weights[-1]), 2 * size


def _error(weights: Floats) -> Floats:
    """Relative error bound of weights made by `_outward`, nearest first.

    A ratio is off by (16 + 4 |log r|) u (the contract of `_ratios`), its inverse and the running
    product by u each; the |log r| up to a weight w sum to |log w|, up to errors far below the
    slack.
    """
    steps = np.arange(1, weights.size + 1)
    return np.asarray((20.0 * steps + 5 * np.abs(np.log(weights)) + 20) * _U)


def _to_words(fractions: Floats, up: bool) -> Words:
    """floor or ceiling of fractions x 2^64, at most 2^64 - 1."""
    scaled = np.maximum(np.ceil(fractions * 2.0**64) if up else np.floor(fractions * 2.0**64), 0.0)
    inside = scaled < 2.0**64
    return np.where(inside, np.where(inside, scaled, 0).astype(np.uint64), _TOP)


@lru_cache(maxsize=2048)
def word_bounds(law: ExactLaw, bits: int = 64) -> WordBounds:
    """Bounds of F as words. `bits` < 64 widens them to multiples of 2^(64 - bits), for tests.

    With A the mass up to x and B the mass beyond, F = A / (A + B) is bounded by giving every
    weight the error that favours one side, and every sum of m positive terms m u. The mass left
    out counts on the side that widens the bound.
    """
    left, left_tail = _outward(law, -1)
    right, right_tail = _outward(law, +1)
    weights = np.concatenate([left[::-1], [1.0], right])
    error = np.concatenate([_error(left)[::-1], [0.0], _error(right)])
    sums = (weights.size + 8) * _U  # rounding of a running sum and of the few operations on it
    small = np.cumsum(weights * (1 - error)) * (1 - sums)
    large = (left_tail + np.cumsum(weights * (1 + error))) * (1 + sums)
    beyond_small = np.append(np.cumsum((weights * (1 - error))[::-1])[::-1][1:], 0.0) * (1 - sums)
    beyond_large = np.append(np.cumsum((weights * (1 + error))[::-1])[::-1][1:], 0.0) * (1 + sums)
    lower = small / (small + (beyond_large + right_tail) * (1 + sums)) * (1 - 8 * _U)
    upper = np.append(left_tail / small[-1], large / (large + beyond_small)) * (1 + 8 * _U)
    lows = np.maximum.accumulate(_to_words(lower, up=False))
    highs = np.minimum.accumulate(_to_words(upper, up=True)[::-1])[::-1]
    if bits < 64:
        grain = np.uint64((1 << (64 - bits)) - 1)
        lows &= ~grain
        highs = np.where(highs > _TOP - grain, _TOP, (highs + grain) & ~grain)
    g = min(_GUIDE_BITS, max(4, lows.size.bit_length() + 1))
    starts = np.arange(1 << g, dtype=np.uint64) << np.uint64(64 - g)
    guide = np.searchsorted(lows, starts, side="right").astype(np.int32)
    highs = np.ascontiguousarray(highs)
    for array in (lows, highs, guide):
        array.flags.writeable = False
    return WordBounds(law.mode - left.size, lows, highs, guide)
