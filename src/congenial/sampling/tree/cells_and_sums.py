"""What a tree of sums is made of: cells with their noise, and nested sets of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import FigureError, StructureError
from congenial.figures.limits import FAR
from congenial.sampling.discrete import CellLaw, DoubleGeometric, Floats
from congenial.sampling.inversion import Ints
from congenial.sampling.tree.bounded_sums import BoundedSum
from congenial.sampling.tree.tilts import NO_BOUND


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Counts s, the law of the noise in each (laws[kind]), and bounds of the noise."""

    centre: Ints = field(repr=False)
    laws: Sequence[CellLaw]
    kind: Ints
    low: Ints = field(repr=False)
    high: Ints = field(repr=False)

    @classmethod
    def of_one_law(
        cls,
        centre: npt.ArrayLike,
        law: CellLaw,
        low: npt.ArrayLike | None,
        high: npt.ArrayLike | None,
    ) -> NoisyCells:
        """low, high: bounds of m, one number or one per cell, None for none; s must be within."""
        s = np.array(centre, dtype=np.int64).reshape(-1)
        sides = []
        for bound, sign in ((low, -1), (high, 1)):
            side = np.full(s.size, sign * NO_BOUND)
            if bound is not None:
                side = np.broadcast_to(np.asarray(bound, dtype=np.int64), s.shape) - s
            if np.any(side * sign < 0):
                raise FigureError(
                    "a count is outside its bounds.",
                    remedy="Give bounds that the confidential table satisfies.",
                )
            sides.append(np.clip(side, -NO_BOUND, NO_BOUND))
        return cls(s, [law], np.zeros(s.size, dtype=np.int64), *sides)

    def noise(self, m: npt.ArrayLike) -> Ints:
        """m - s, checked to have one value per cell."""
        counts = np.asarray(m, dtype=np.int64)
        if counts.shape[-1:] != self.centre.shape:
            raise StructureError(
                f"a table of {counts.shape[-1:]} cells, expected {self.centre.size}.",
                remedy="Give one value per cell.",
            )
        return np.asarray(counts - self.centre)

    def log_weight(self, u: Ints) -> Any:
        """Sum over cells of log w(u); -inf outside the bounds."""
        laws = enumerate(self.laws)
        logs = sum(log_weight(law, u[..., self.kind == k]) for k, law in laws)
        inside = np.all((u >= self.low) & (u <= self.high), axis=-1)
        return np.where(inside, logs, -np.inf)


def log_weight(law: CellLaw, u: Ints) -> Floats:
    """Sum over the last axis of log w(u)."""
    x = u.astype(float)
    if isinstance(law, DoubleGeometric):
        return np.asarray(-float(law.eps) * np.abs(x).sum(axis=-1))
    return np.asarray(-(x * x).sum(axis=-1) / float(2 * law.sigma2))


@dataclass(frozen=True, eq=False)
class NestedSums:
    """Nested sets of cells, and what is asked of the sum over each.

    of_cell: the smallest set each cell is in, -1 for a cell that keeps its count. parent: the next
    larger set, -1 for none; a set comes after all sets inside it. fixed: the sum is that of s.
    rate: x_v weighs exp(-rate |x_v|). least, most: bounds of the sum of m (FAR: none).
    """

    of_cell: Ints = field(repr=False)
    parent: Ints
    fixed: npt.NDArray[np.bool_]
    rate: Sequence[Fraction]
    least: Ints
    most: Ints

    @classmethod
    def fixing(cls, of_cell: Ints, sets: int) -> NestedSums:
        """Sets apart from each other, the sum of each fixed."""
        zero = np.zeros(sets, dtype=np.int64)
        return cls(of_cell, zero - 1, zero == 0, [Fraction(0)] * sets, zero - FAR, zero + FAR)

    @classmethod
    def of_groups(cls, labels: Ints, sums: Sequence[BoundedSum] = ()) -> NestedSums:
        """Groups 0, 1, ... of fixed sum; bounded sums inside them, small ones first."""
        sizes = np.bincount(labels[labels >= 0])
        if np.any(sizes == 0):
            raise StructureError(
                f"group {int(np.argmin(sizes))} has no cell.",
                remedy="Number the groups 0, 1, 2, ... without gaps.",
            )
        holder = [*(int(labels[one.cells[0]]) for one in sums), *range(sizes.size)]
        number = np.argsort(np.argsort(holder, kind="stable"))
        groups = number[len(sums) :]
        made = cls.fixing(np.append(groups, -1)[labels], len(holder))
        top = np.full(labels.size, -1)  # the largest bounded set that holds a cell, so far
        for i, one in enumerate(sums):
            v, inside = number[i], top[one.cells]
            made.of_cell[one.cells[inside < 0]] = v
            made.parent[inside[inside >= 0]], made.parent[v] = v, groups[holder[i]]
            made.fixed[v], made.least[v], made.most[v] = False, one.least, one.most
            top[one.cells] = v
        return made

    @cached_property
    def bounded(self) -> npt.NDArray[np.bool_]:
        """Which sums have a bound."""
        return (self.least > -FAR) | (self.most < FAR)

    @cached_property
    def root(self) -> Ints:
        """For each set the set that is drawn first: the next fixed one, or the largest."""
        root = np.arange(len(self.parent))
        for v in np.flatnonzero(~self.fixed & (self.parent >= 0))[::-1].tolist():
            root[v] = root[self.parent[v]]
        return root

    @cached_property
    def cells(self) -> list[Ints]:
        """For each set the cells that are in no smaller one."""
        return _grouped(self.of_cell, len(self.parent))

    @cached_property
    def cells_below(self) -> list[Ints]:
        """For each root all its cells but those in fixed sets inside it."""
        return _grouped(np.append(self.root, -1)[self.of_cell], len(self.parent))

    def of(self, u: Ints) -> Ints:
        """Sums over all sets, first axis, of values of shape (..., cells)."""
        x = np.zeros((len(self.parent), *u.shape[:-1]), dtype=np.int64)
        inside = self.of_cell >= 0
        np.add.at(x, self.of_cell[inside], np.moveaxis(u[..., inside], -1, 0))
        for level in self._levels:
            np.add.at(x, self.parent[level], x[level])
        return x

    @cached_property
    def _levels(self) -> list[Ints]:
        """Sets inside others, the innermost first: those of one level are added up together."""
        depth, above = np.zeros(len(self.parent), dtype=np.int64), self.parent
        while np.any(above >= 0):
            depth += above >= 0
            above = np.where(above >= 0, self.parent[above], -1)
        return [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=0)), 0, -1)]


def _grouped(labels: Ints, sets: int) -> list[Ints]:
    """The cells with label 0, 1, ..., each in order."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(sets + 1))
    return [order[a:b] for a, b in pairwise(starts.tolist())]
