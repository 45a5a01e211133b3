"""Nearest tables inside groups of known total: one water level per group, all groups at once.

argmin of sum (m_i - v_i)^2 over m with sum m = T and l <= m <= u is m_i = clip(v_i + c, l_i, u_i)
for one level c: there the derivatives m_i - v_i of the cells between their bounds are equal,
and no cell at a bound would gain by leaving it. The sum rises with c, so c is found by bisection.
On whole numbers c is whole too: raising a cell from v_i + c costs (c + 1)^2 - c^2 = 2c + 1, so
units are taken level by level, and the last few go to cells chosen at random among those that rise
at that level, which all cost the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import FigureError
from congenial.sampling.randomness import Randomness
from congenial.tables.conforming_tables import FAR


class WaterLevels:
    """Cells in groups, each with a draw v and bounds; sums at given levels, for all groups.

    labels: group of each cell (0, 1, ..., every number used), -1 for a cell of no group.
    """

    def __init__(self, labels: Ints, values: Ints, lower: Ints, upper: Ints) -> None:
        inside = np.flatnonzero(labels >= 0)
        self.order: Ints = inside[np.argsort(labels[inside], kind="stable")]
        self.label: Ints = labels[self.order]
        self.values, self.lower, self.upper = (x[self.order] for x in (values, lower, upper))
        self.groups = int(self.label[-1]) + 1 if self.label.size else 0
        self._starts = np.searchsorted(self.label, np.arange(self.groups))
        span = np.abs(self.values) + np.where(self.upper < FAR, np.abs(self.upper), 0)
        span += np.where(self.lower > -FAR, np.abs(self.lower), 0)
        self.span = self._sums(span) + 1

    def _sums(self, x: Ints) -> Ints:
        if self.groups == 0:
            return np.zeros(0, np.int64)
        return np.asarray(np.add.reduceat(x, self._starts), dtype=np.int64)

    def at(self, level: Ints) -> Ints:
        """Cells when each group stands at its level."""
        cells: Ints = np.clip(self.values + level[self.label], self.lower, self.upper)
        return cells

    def sums(self, level: Ints) -> Ints:
        """Each group's sum at its level."""
        return self._sums(self.at(level))

    def rising(self, level: Ints) -> Ints:
        """How many cells of each group rise when its level does: the units that cost 2c + 1."""
        moved = self.values + level[self.label]
        return self._sums(((moved >= self.lower) & (moved < self.upper)).astype(np.int64))

    @property
    def least(self) -> Ints:
        """Smallest possible sum of each group, at most -FAR for none."""
        open_ = self._sums((self.lower <= -FAR).astype(np.int64)) > 0
        return np.where(open_, -FAR, self._sums(np.maximum(self.lower, -FAR // 2)))

    @property
    def most(self) -> Ints:
        """Largest possible sum of each group, at least FAR for none."""
        open_ = self._sums((self.upper >= FAR).astype(np.int64)) > 0
        return np.where(open_, FAR, self._sums(np.minimum(self.upper, FAR // 2)))

    def below(self, totals: Any) -> Ints:
        """The largest whole level at which each group's sum does not exceed its total."""
        reach = np.ceil(np.abs(np.asarray(totals, dtype=float))).astype(np.int64) + self.span
        low, high = -reach, reach
        while np.any(high - low > 1):
            middle = (low + high) // 2
            fits = self.sums(middle) <= totals
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        level: Ints = low
        return level

    def real(self, totals: Ints) -> Floats:
        """The nearest real cells with these totals, in the order of `order`.

        Between two whole levels the same cells rise, so one division finds the level between.
        """
        level = self.below(totals)
        share = (totals - self.sums(level)) / np.maximum(self.rising(level), 1)
        moved = self.values + level[self.label] + share[self.label]
        return np.asarray(np.clip(moved, self.lower, self.upper))

    def fill(self, totals: Ints, randomness: Randomness) -> Ints:
        """The nearest whole cells with these totals, in the order of `order`; ties at random."""
        if np.any(totals < self.least) or np.any(totals > self.most):
            raise FigureError(
                "the bounds of the cells cannot meet a total.",
                remedy="Correct the figure or the bounds.",
            )
        level = self.below(totals)
        cells = self.at(level)
        missing = totals - self._sums(cells)
        moved = self.values + level[self.label]
        able = np.flatnonzero(
            (moved >= self.lower) & (moved < self.upper) & (missing[self.label] > 0)
        )
        # A random order by sorting fresh words: ties among 64-bit words are as good as never.
        able = able[np.lexsort((randomness.words(able.size), self.label[able]))]
        first = np.searchsorted(self.label[able], np.arange(self.groups))
        rank = np.arange(able.size) - first[self.label[able]]
        cells[able[rank < missing[self.label[able]]]] += 1
        return cells
