"""Errors of estimates from several tables, from draws of the public laws of their noise.

Sums of double geometric noise have longer tails than normal ones, and noise given crossing figures
has no simple law. Estimates are linear in the tables as drawn, so their errors are the same linear
combinations of tables of noise, which anybody can draw. Half-widths are upper confidence bounds of
quantiles (`upper_rank`). Beyond the highest level that the draws serve they follow from that level:
the noise is log-concave, so P(|error| > h) is a log-concave function of h that begins at 1, and
falls at least as fast beyond h as it did on average before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.workload import Margin
from congenial.sampling.randomness import Randomness, SeededRandomness
from congenial.tables.inverse import Inverse
from congenial.tables.measurements import Measurements

Noise = Callable[[Randomness, int], Any]
DRAWS = 10_000  # of the noise
FEWEST = 1_500  # draws, enough for a level of .99
NUMBERS = 5_000_000  # drawn at most
BLOCK = 4_000_000  # numbers drawn at a time
SEED = 20260101  # public: everybody gets the same intervals
FALSE_ALARM = 1e-6
SLACK = 1e-6  # ends that are whole in exact arithmetic are rounded alike everywhere


@dataclass(frozen=True, eq=False)
class SimulatedErrors:
    """Estimates from measured tables, and what draws the noise of each."""

    measurements: Measurements
    inverse: Inverse
    noise: tuple[Noise, ...]
    draws: int = field(init=False)

    def __post_init__(self) -> None:
        work = self.measurements
        cells = sum(work.margins[b].size for b in work.measured)
        object.__setattr__(self, "draws", min(DRAWS, NUMBERS // cells))

    @property
    def serves(self) -> bool:
        """Whether the tables are small enough."""
        return self.draws >= FEWEST

    @cached_property
    def _tables(self) -> list[Any]:
        """Tables of noise, flat, one for each measured table."""
        work = self.measurements
        pairs = zip(self.noise, work.measured, strict=True)
        return [
            np.concatenate([*noise_blocks(draw, work.margins[b].size, stream, self.draws)])
            for stream, (draw, b) in enumerate(pairs)
        ]

    def reach(self, margin: Margin, weights: Floats, level: float) -> Floats:
        """h with P(|error| <= h) >= level of combinations of a table's cells: (k, *margin.shape)"""
        solved, work = self.inverse.apply([(margin, weights)]), self.measurements
        errors = np.zeros((self.draws, len(weights)))
        for b, drawn in zip(work.measured, self._tables, strict=True):
            shares = work.precisions[b] * solved.totals(work.margins[b])
            errors += drawn @ self._as_drawn(shares, b).T
        served = min(level, highest_level(self.draws))
        rank = upper_rank(served, self.draws)
        reached = np.partition(np.abs(errors), rank - 1, axis=0)[rank - 1]
        longer = math.log1p(-level) / math.log1p(-served)
        return np.asarray(reached * longer + SLACK)

    def _as_drawn(self, shares: Floats, b: int) -> Floats:
        """Rows by attributes of the cells, as flat rows by the axes of a table as named."""
        work = self.measurements
        schema, names = work.workload.schema, work.workload.tables[b]
        places = [work.names.index(schema.axis(name).base) for name in names]
        ordered = sorted(places)
        rest = tuple(1 + at for at in range(shares.ndim - 1) if at not in places)
        turned = np.squeeze(shares, rest).transpose([0, *(1 + ordered.index(at) for at in places)])
        return np.ascontiguousarray(turned.reshape(len(shares), -1))


def noise_blocks(noise: Noise, cells: int, stream: int, draws: int = DRAWS) -> Iterator[Any]:
    """Tables of noise, flat and some at a time; the same every time."""
    source, step = SeededRandomness(SEED + stream), max(1, min(draws, BLOCK // max(cells, 1)))
    for start in range(0, draws, step):
        drawn = noise(source, min(step, draws - start))
        yield drawn.reshape(len(drawn), -1)


@lru_cache(maxsize=64)
def upper_rank(level: float, n: int) -> int:
    """k such that the k-th smallest of n draws is above the level quantile, but for false alarms.

    More than n where n draws are too few.

    >>> upper_rank(0.95, 10_000), upper_rank(0.95, 100)
    (9601, 101)
    """
    if level >= 1:
        return n + 1
    # It is above unless k or more fell below the quantile: P(at least k of n) at most the alarm.
    k = np.arange(1, n + 1)
    ratios = np.log((n - k + 1) / k) + math.log(level / (1 - level))  # of P(k of n) to P(k - 1)
    chances = np.exp(n * math.log1p(-level) + np.cumsum(ratios))
    at_least = np.cumsum(chances[::-1])[::-1]
    return int(np.argmax(np.append(at_least <= FALSE_ALARM, True))) + 1


def highest_level(n: int) -> float:
    """The highest level, in thousandths, that n draws bound: level^n is at most the false alarm."""
    return int(1000 * FALSE_ALARM ** (1 / n)) / 1000
