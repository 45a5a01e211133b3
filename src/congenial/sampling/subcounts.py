"""Counts that are part of other counts, 0 <= d <= c, around a centre: drawn exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.inversion import Floats, Ints, _bernoulli, ball
from congenial.sampling.randomness import Randomness, Words


def draw_below(
    counts: npt.ArrayLike,
    centres: npt.ArrayLike,
    rate: Fraction,
    randomness: Randomness,
    squared: bool = False,
) -> Ints:
    """Subordinate counts 0 <= d <= c, p(d) ~ exp(-rate |d - e|), drawn exactly, elementwise.

    e may be above c, by g = e - min(e, c). With a = |d - min(e, c)|: |d - e| = g + a, so that the
    l1 law is that around min(e, c); and (d - e)^2 = g^2 + 2 g a + a^2.

    Where the weights are nearly the same a uniform value is accepted with its weight; elsewhere
    noise that falls outside is drawn again. Either accepts more than a quarter; under the squared
    loss with e above c, where the noise is one factor and is accepted with the other, a seventh.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> draw_below([0, 3, 50], [0, 1, 2], Fraction(1), SeededRandomness(1)).shape
    (3,)
    """
    c, e = np.broadcast_arrays(np.asarray(counts, np.int64), np.asarray(centres, np.int64))
    top, near = c.reshape(-1), np.minimum(c, e).reshape(-1)
    over = (e.reshape(-1) - near) * squared
    law = _Law(rate, squared)
    out = np.zeros(top.size, dtype=np.int64)
    flat = (law.exponent(top, over) <= 1) & (top < 1 << 30)
    steep = ~flat & (over > 0)
    for chosen, draw in ((flat, law.uniform), (steep, law.steep), (~(flat | steep), law.noise)):
        places = np.flatnonzero(chosen & (top > 0))
        while places.size:
            d, kept = draw(top[places], near[places], over[places], randomness)
            out[places[kept]] = d[kept]
            places = places[~kept]
    return out.reshape(c.shape)


@dataclass(frozen=True)
class _Law:
    """p(d) ~ exp(-rate a), or exp(-rate (a^2 + 2 g a)), a = |d - near|; three ways to try a d."""

    rate: Fraction
    squared: bool

    def exponent(self, away: Ints, over: Ints) -> Floats:
        """rate a, or rate (a^2 + 2 g a), in doubles."""
        a = away.astype(float)
        return float(self.rate) * (a * (a + 2.0 * over) if self.squared else a)

    def uniform(
        self, top: Ints, near: Ints, over: Ints, randomness: Randomness
    ) -> tuple[Ints, Any]:
        """A uniform value, accepted with its weight."""
        words = randomness.words(2 * top.size).reshape(2, -1)
        d, fair = _uniform_upto(top, words[0])
        away = np.abs(d - near)

        def exact(i: int) -> Fraction:
            a, g = int(away[i]), int(over[i])
            return self.rate * (a * (a + 2 * g) if self.squared else a)

        return d, _accepted(self.exponent(away, over), exact, words[1], randomness) & fair

    def noise(self, top: Ints, near: Ints, over: Ints, randomness: Randomness) -> tuple[Ints, Any]:
        """Noise around the centre, accepted inside."""
        del over
        drawn = (
            DiscreteGaussian(1 / (2 * self.rate)) if self.squared else DoubleGeometric(self.rate)
        )
        d = near + drawn.draw(randomness, top.size)
        return d, (d >= 0) & (d <= top)

    def steep(self, top: Ints, near: Ints, over: Ints, randomness: Randomness) -> tuple[Ints, Any]:
        """A squared loss with the centre above: exp(-rate a^2) exp(-2 rate g a), a >= 0.

        The factor that falls faster is drawn from, and accepted with the other.
        """
        away = np.empty(top.size, dtype=np.int64)
        kept = np.zeros(top.size, dtype=bool)
        for g in np.unique(over).tolist():
            at, slope = np.flatnonzero(over == g), 2 * self.rate * g
            fast = slope * g * 2 >= 1
            law = DoubleGeometric(slope) if fast else DiscreteGaussian(1 / (2 * self.rate))
            a = law.draw(randomness, at.size)
            steps = np.maximum(a, 0) ** 2 if fast else np.maximum(a, 0)
            rest = self.rate if fast else slope
            gamma, exact = float(rest) * steps, partial(_product, rest, steps)
            sure = _accepted(gamma, exact, randomness.words(at.size), randomness)
            away[at], kept[at] = a, (a >= 0) & sure
        return near - away, kept & (away <= top)


def _product(rate: Fraction, steps: Ints, i: int) -> Fraction:
    return rate * int(steps[i])


def _accepted(
    gamma: Floats, exact: Callable[[int], Fraction], words: Words, randomness: Randomness
) -> Any:
    """True with probability exp(-gamma), exactly: doubles decide where they can."""
    p, u = np.exp(-gamma), words * 2.0**-64
    kept = u < p
    for i in np.flatnonzero(np.abs(u - p) < 2.0**-48).tolist():
        kept[i] = _bernoulli(partial(_log, exact(i)), randomness, words[i])
    return kept


def _log(gamma: Fraction) -> Any:
    return -ball(gamma)


def _uniform_upto(top: Ints, words: Words) -> tuple[Ints, Any]:
    """floor(word (c + 1) / 2^64), and whether the word is outside the surplus (Lemire)."""
    span = top.astype(np.uint64) + np.uint64(1)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    high = ((words >> half) * span + ((words & mask) * span >> half)) >> half  # span < 2^31
    surplus = (np.uint64(2**64 - 1) % span + np.uint64(1)) % span  # 2^64 mod span
    return high.astype(np.int64), words * span >= surplus
