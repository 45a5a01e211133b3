"""Figures on merged cells: A z = t, B z >= b, z >= 0 whole; cells that the figures cannot tell
apart are one.

Where `Figures` merges what the equalities cannot tell apart, this also keeps apart what only a
bound tells apart, and leaves out cells that the published figures show to be empty. Whole tables
between given limits are listed where they are few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.errors import FigureError
from congenial.figures import lattice
from congenial.figures.cells import first_places
from congenial.figures.figures import Figures
from congenial.figures.lattice import Ints

LARGEST_LIST = 20_000  # partly filled tables kept while whole ones are listed


@dataclass(frozen=True, eq=False)
class Merged:
    """Atoms (columns) under equalities `equal @ z = values` and bounds `least @ z >= bounds`.

    `several`: whether an atom stands for two or more answers; `of_cell`: atom of each cell the
    figures see, -1 where nobody can be. `values` is None before the figures are published.
    """

    figures: Figures
    equal: sp.csr_matrix = field(repr=False)
    values: Ints | None = field(repr=False)
    least: sp.csr_matrix = field(repr=False)
    bounds: Ints = field(repr=False)
    several: Any = field(repr=False)
    of_cell: Ints = field(repr=False)

    @property
    def atoms(self) -> int:
        """Number of atoms."""
        return int(self.equal.shape[1])

    @cached_property
    def with_sum(self) -> sp.csr_matrix:
        """The equalities and, as n is public, the sum."""
        ones = sp.csr_matrix(np.ones((1, self.atoms), dtype=np.int64))
        return sp.vstack([self.equal, ones], format="csr")

    @cached_property
    def sum_kept(self) -> bool:
        """Whether the figures, of whatever values, fix the number of people."""
        return lattice.tells_sum(self.equal)

    @cached_property
    def people(self) -> int | None:
        """The number of people, where the published figures tell it."""
        if self.values is None or not self.sum_kept:
            return None
        return int(np.rint(lattice.solution(self.equal, self.values).sum()))

    @cached_property
    def most(self) -> Ints | None:
        """An upper bound on each atom's people; None where the figures give none."""
        if self.values is None:
            return None
        most = np.full(self.atoms, -1 if self.people is None else self.people, dtype=np.int64)
        dense = self.equal.toarray()
        for row, value in zip(dense, self.values, strict=True):
            if np.all(row >= 0):
                inside = row > 0
                limit = value // np.maximum(row, 1)
                most = np.where(inside & ((most < 0) | (limit < most)), limit, most)
        return None if np.any(most < 0) else most

    @cached_property
    def tables(self) -> Ints | None:
        """All conforming tables (rows), or None if they are infinite, unknown or too many.

        FigureError if there is none: over an empty universe every loss would be 0.
        """
        if self.values is None or self.most is None or self.atoms > 64:
            return None
        rows = np.vstack([self.equal.toarray(), self.least.toarray()])
        low = np.concatenate([self.values, self.bounds])
        high = np.concatenate([self.values, np.full(len(self.bounds), np.iinfo(np.int64).max)])
        if self.people is not None:  # implied, but it cuts early
            rows = np.vstack([rows, np.ones((1, self.atoms), dtype=np.int64)])
            low, high = np.append(low, self.people), np.append(high, self.people)
        found = list_tables(rows, low, high, self.most)
        if found is not None and not len(found):
            raise FigureError(
                "no dataset agrees with all published figures and bounds.",
                remedy="Compute all of them from the same dataset; for a new population, use a new "
                "ledger.",
            )
        return found


def merged(figures: Figures) -> Merged:
    """The figures on atoms, without those the figures show to be empty."""
    cells = figures.cells
    counted = figures.equalities + figures.bounds
    possible = ~cells.touched(figures.zeros)
    classes = np.where(possible, cells.classes(counted), -1)
    sizes = np.bincount(classes[possible])
    labels = np.flatnonzero(sizes)
    first, sizes = first_places(classes)[labels], sizes[labels]
    equal = cells.matrix(figures.equalities, first)
    values = None if figures.values is None else figures.flat_values
    kept = np.flatnonzero(~_empty(equal, values))
    least, bounds = _bounds(figures, first[kept])
    unseen = prod(
        figures.schema.attribute(name).size
        for name in figures.schema.names
        if name not in figures.bases
    )
    number = np.full(int(labels.max(initial=0)) + 2, -1, dtype=np.int64)  # -1 stays -1
    number[labels[kept]] = np.arange(len(kept))
    several = sizes[kept] * unseen > 1
    return Merged(figures, equal[:, kept], values, least, bounds, several, number[classes])


def _empty(equal: sp.csr_matrix, values: Ints | None) -> Any:
    """Atoms of a sum without negative weights that was published as zero."""
    found = np.zeros(equal.shape[1], dtype=bool)
    if values is not None and equal.shape[0] and equal.shape[1]:
        positive = np.asarray(equal.min(axis=1).todense()).reshape(-1) >= 0
        found[equal[np.flatnonzero(positive & (values == 0))].indices] = True
    return found


def _bounds(figures: Figures, cells: Ints) -> tuple[sp.csr_matrix, Ints]:
    """All bounds in the form B z >= b."""
    matrices, limits = [sp.csr_matrix((0, len(cells)), dtype=np.int64)], [np.zeros(0, np.int64)]
    for statement in figures.bounds:
        sign = 1 if statement.relation == ">=" else -1
        matrix = figures.cells.matrix([statement], cells)
        matrices.append(sign * matrix)
        limits.append(np.full(matrix.shape[0], sign * int(statement.bound or 0), dtype=np.int64))
    return sp.vstack(matrices, format="csr"), np.concatenate(limits)


def list_tables(rows: Any, low: Ints, high: Ints, most: Ints) -> Ints | None:
    """All whole 0 <= m <= most with low <= rows @ m <= high, one per row; None if too many.

    Partly filled tables grow cell by cell; those whose missing part cannot meet the limits are
    dropped at once.

    >>> list_tables(np.array([[1, 2]]), np.array([4]), np.array([4]), np.array([9, 9])).tolist()
    [[0, 2], [2, 1], [4, 0]]
    """
    cells = rows.shape[1]
    partial = np.zeros((1, 0), dtype=np.int64)
    sums = np.zeros((1, len(rows)), dtype=np.int64)
    for j in range(cells):
        rest = rows[:, j + 1 :] * most[j + 1 :]
        least, largest = np.minimum(rest, 0).sum(axis=1), np.maximum(rest, 0).sum(axis=1)
        steps = np.arange(int(most[j]) + 1)
        if len(partial) * len(steps) * max(1, len(rows)) > 500 * LARGEST_LIST:
            return None
        grown = sums[:, None, :] + steps[None, :, None] * rows[:, j]
        open_ = np.all((grown + least <= high) & (grown + largest >= low), axis=2)
        at, count = np.nonzero(open_)
        if len(at) > LARGEST_LIST:
            return None
        partial = np.hstack([partial[at], steps[count][:, None]])
        sums = grown[at, count]
    return partial
