"""The law p(y | x) ~ nu(y) exp(-rate loss(y - T(x))) for losses that are sums over cells.

Given the public sums the cells are independent, so every group is drawn by itself, exactly: noise
given a sum where no sign binds (`TreeOfSums`), weighted counts given a total elsewhere
(`CountsGivenTotal`), and single cells by rejection.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Ints
from congenial.errors import FigureError, StructureError
from congenial.mechanisms.wasserstein.base_measure import Base
from congenial.sampling.counts_given_total import CountCell, CountsGivenTotal, draw_below
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree_of_sums import TreeOfSums


class TableLaw:
    """y given T(x) = `truth` under `base` and the loss |.|_1, or the squared l2 loss.

    Exact: draws are independent and follow the stated law with H = 0.
    """

    def __init__(
        self, base: Base, truth: npt.ArrayLike, rate: Fraction, squared: bool = False
    ) -> None:
        self.base, self.rate, self.squared = base, rate, squared
        self.truth = np.asarray(truth, dtype=np.int64).reshape(-1)
        self._check()

    def _check(self) -> None:
        base, x = self.base, self.truth
        if x.size != base.cells:
            raise StructureError(
                f"{x.size} counts for {base.cells} cells.", remedy="Give one count per cell."
            )
        if any(value is None for _, value in base.totals):
            raise FigureError(
                "the sums of this base measure are not published yet.",
                remedy="Publish them first.",
            )
        if not base.holds(x):
            raise FigureError(
                "the data do not agree with the public figures.",
                remedy="Use the data from which the figures were computed.",
            )

    @cached_property
    def noise(self) -> DoubleGeometric | DiscreteGaussian:
        """The law of one free cell."""
        return DiscreteGaussian(1 / (2 * self.rate)) if self.squared else DoubleGeometric(self.rate)

    @cached_property
    def _whole_of(self) -> dict[int, int]:
        return dict(self.base.parts)

    @cached_property
    def _part_of(self) -> dict[int, int]:
        return {whole: part for part, whole in self.base.parts}

    @cached_property
    def _free(self) -> list[int]:
        """Cells in no public sum and part of nothing."""
        grouped = {i for group, _ in self.base.totals for i in group}
        return [i for i in range(self.base.cells) if i not in grouped and i not in self._whole_of]

    @cached_property
    def groups(self) -> list[TreeOfSums | CountsGivenTotal]:
        """The law of each group given its sum."""
        return [self._group(group, total or 0) for group, total in self.base.totals]

    def _group(self, group: tuple[int, ...], total: int) -> TreeOfSums | CountsGivenTotal:
        if not self.base.nonnegative:
            return TreeOfSums.of_groups(
                [0] * len(group), self.truth[list(group)], self.noise, low=None
            )
        return CountsGivenTotal([self._cell(i) for i in group], total)

    def _cell(self, i: int) -> CountCell:
        shape, part = self.base.shapes[i], self._part_of.get(i)
        return CountCell(
            int(self.truth[i]),
            self.rate,
            Fraction(1) if shape is None else shape,
            None if part is None else int(self.truth[part]),
            self.squared,
        )

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        y = np.empty((n, self.base.cells), dtype=np.int64)
        for (group, _), law in zip(self.base.totals, self.groups, strict=True):
            y[:, list(group)] = law.draw_many(randomness, n)
        for i in self._free:
            y[:, i] = self._single(i, randomness, n)
        if self.base.parts:
            parts, wholes = (list(side) for side in zip(*self.base.parts, strict=True))
            y[:, parts] = draw_below(
                y[:, wholes], self.truth[parts], self.rate, randomness, self.squared
            )
        return y

    def _single(self, i: int, randomness: Randomness, n: int) -> Ints:
        """A cell by itself: noise, drawn again where it makes the count negative."""
        drawn = self.truth[i] + self.noise.draw(randomness, n)
        while self.base.nonnegative and (drawn < 0).any():
            negative = np.flatnonzero(drawn < 0)
            drawn[negative] = self.truth[i] + self.noise.draw(randomness, negative.size)
        return np.asarray(drawn)

    def log_density(self, y: npt.ArrayLike) -> Any:
        """log p(y | x), normalised; -inf off the support; y has shape (..., cells)."""
        table = np.asarray(y, dtype=np.int64)
        logs = np.zeros(table.shape[:-1])
        for (group, _), law in zip(self.base.totals, self.groups, strict=True):
            logs = logs + law.log_density(table[..., list(group)])
        for i in self._free:
            logs = logs + self._log_single(i, table[..., i])
        for part, whole in self.base.parts:
            logs = logs + self._log_part(part, table[..., part], table[..., whole])
        return logs[()] if isinstance(logs, np.ndarray) else logs

    def _log_single(self, i: int, y: Ints) -> Any:
        logs = self.noise.log_pmf(y - self.truth[i])
        if not self.base.nonnegative:
            return logs
        above = 1 - float(np.asarray(self.noise.cdf(-1 - self.truth[i])))
        return np.where(y >= 0, logs - np.log(above), -np.inf)

    def _log_part(self, part: int, y: Ints, whole: Ints) -> Any:
        away = np.abs(y - self.truth[part]).astype(float)
        inside = (y >= 0) & (y <= whole)
        cell = self._cell(self._whole_of[part])
        mass = np.log(cell.mass_below(np.maximum(whole, 0)))
        logs = -float(self.rate) * (away**2 if self.squared else away) - mass
        return np.where(inside, logs, -np.inf)
