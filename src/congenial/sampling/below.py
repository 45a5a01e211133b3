"""Counts that are part of other counts, 0 <= d <= c, around a centre: drawn exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.exact import Ints, _bernoulli, ball
from congenial.sampling.randomness import Randomness, Words


def draw_below(
    counts: npt.ArrayLike,
    centres: npt.ArrayLike,
    rate: Fraction,
    randomness: Randomness,
    squared: bool = False,
) -> Ints:
    """Subordinate counts 0 <= d <= c, p(d) ~ exp(-rate |d - e|), drawn exactly, elementwise.

    Where rate c is small a uniform value is accepted with the weight; elsewhere noise that falls
    outside is drawn again. Either accepts more than a quarter.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> draw_below([0, 3, 50], [0, 1, 2], Fraction(1), SeededRandomness(1)).shape
    (3,)
    """
    c, e = np.broadcast_arrays(np.asarray(counts, np.int64), np.asarray(centres, np.int64))
    top, centre = c.reshape(-1), e.reshape(-1)
    out = np.zeros(top.size, dtype=np.int64)
    law: DoubleGeometric | DiscreteGaussian = DoubleGeometric(rate)
    power = 1.0
    if squared:
        law, power = DiscreteGaussian(1 / (2 * rate)), 2.0
    reach = np.maximum(top, np.abs(centre))
    flat = (float(rate) * reach.astype(float) ** power <= 1) & (reach < 1 << 30)
    for chosen, draw in ((flat, _uniform_kept), (~flat, _noise_kept)):
        places = np.flatnonzero(chosen & (top > 0))
        while places.size:
            d, kept = draw(top[places], centre[places], law, rate, squared, randomness)
            out[places[kept]] = d[kept]
            places = places[~kept]
    return out.reshape(c.shape)


def _noise_kept(
    top: Ints, centre: Ints, law: Any, rate: Fraction, squared: bool, randomness: Randomness
) -> tuple[Ints, Any]:
    del rate, squared
    d = centre + law.draw(randomness, top.size)
    return d, (d >= 0) & (d <= top)


def _uniform_kept(
    top: Ints, centre: Ints, law: Any, rate: Fraction, squared: bool, randomness: Randomness
) -> tuple[Ints, Any]:
    del law
    words = randomness.words(2 * top.size).reshape(2, -1)
    d, fair = _uniform_upto(top, words[0])
    away = np.abs(d - centre)
    gamma = float(rate) * (away**2 if squared else away)
    p, u = np.exp(-gamma), words[1] * 2.0**-64
    kept = u < p
    for i in np.flatnonzero(np.abs(u - p) < 2.0**-48).tolist():
        exponent = rate * int(away[i]) ** (2 if squared else 1)
        kept[i] = _bernoulli(lambda g=exponent: -ball(g), randomness, words[1, i])  # type: ignore[misc]
    return d, kept & fair


def _uniform_upto(top: Ints, words: Words) -> tuple[Ints, Any]:
    """floor(word (c + 1) / 2^64), and whether the word is outside the surplus (Lemire)."""
    span = top.astype(np.uint64) + np.uint64(1)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    high = ((words >> half) * span + ((words & mask) * span >> half)) >> half  # span < 2^31
    surplus = (np.uint64(2**64 - 1) % span + np.uint64(1)) % span  # 2^64 mod span
    return high.astype(np.int64), words * span >= surplus
