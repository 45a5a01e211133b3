"""What exact figures leave of the people: who is known to be where, and which tables conform.

`People` has the atoms of the equalities (`Figures.atoms`) with the people in each as far as the
published figures tell, and the levels of margins that cross. Before figures are published, and for
people no figure counts, sizes are unknown and taken as large, which can only enlarge distances and
sensitivities.

`People.merged` also keeps apart what only a bound tells apart, and leaves out cells that the
published figures show to be empty: A z = t, B z >= b, z >= 0 whole. Whole tables between given
limits are listed where they are few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.errors import FigureError
from congenial.figures import lattice
from congenial.figures.blocks import BlockKind
from congenial.figures.cells import first_places
from congenial.figures.figures import Figures

LARGEST_LIST = 20_000  # partly filled tables kept while whole ones are listed


@dataclass(frozen=True, eq=False)
class Crossing:
    """One-way blocks of one kind: people on each level of each feature, or None while unknown.

    `totals[k]` has one line a block and one column a level of feature k.
    """

    block: BlockKind
    totals: list[Ints] | None

    @cached_property
    def shown(self) -> Ints:
        """Non-empty levels of each feature (columns) of each block (lines)."""
        if self.totals is None:
            return np.tile(np.array(self.block.levels), (len(self.block.atoms), 1))
        return np.stack([np.count_nonzero(level, axis=1) for level in self.totals], axis=1)

    @cached_property
    def margins(self) -> Ints:
        """Features with two or more non-empty levels, of each block."""
        return np.asarray(np.count_nonzero(self.shown >= 2, axis=1))

    @cached_property
    def people(self) -> Ints | None:
        """People in each block."""
        return None if self.totals is None else self.totals[0].sum(axis=1)


@dataclass(frozen=True, eq=False)
class People:
    """Atoms of figures that are nested, or cross as margins do, and who is known to be in them."""

    figures: Figures

    @cached_property
    def merged(self) -> Merged:
        """The figures on merged cells, bounds among them."""
        return merged(self.figures)

    @cached_property
    def people(self) -> Any:
        """People in each atom (0 is the loose one), `inf` where unknown."""
        present = self.figures.first_cells >= 0
        people = np.where(present, np.inf, 0.0)
        totals = self.figures.atom_totals
        if totals is not None:
            people[1:] = np.where(present[1:], totals, 0)
        elif self.figures.values is not None:  # atoms outside crossing margins have known totals
            alone = np.ones(len(people), dtype=bool)
            alone[0] = False
            for kind in self.figures.blocks:
                alone[kind.atoms] = False
            if alone.any():
                people[alone] = np.rint(self.figures.some_solution[np.flatnonzero(alone) - 1])
        return people

    @cached_property
    def crossings(self) -> tuple[Crossing, ...]:
        """The blocks of crossing margins, kind by kind."""
        kinds = self.figures.blocks
        return tuple(Crossing(kind, self.figures.level_totals(kind)) for kind in kinds)

    @cached_property
    def margins(self) -> int:
        """Most features with two or more non-empty levels in one block; 0 without blocks."""
        return max((int(crossing.margins.max()) for crossing in self.crossings), default=0)

    @cached_property
    def loose(self) -> bool:
        """Whether there are people whom no figure counts, as far as is known."""
        return bool(self.people[0] > 0)

    @cached_property
    def known(self) -> bool:
        """Whether the sizes of all groups are published."""
        return not self.loose and self.figures.values is not None

    @cached_property
    def crossed(self) -> Any:
        """Which atoms belong to a block of crossing margins."""
        inside = np.zeros(len(self.people), dtype=bool)
        for crossing in self.crossings:
            inside[crossing.block.atoms] = True
        return inside

    @cached_property
    def parts(self) -> int:
        """Atoms and blocks with people in them: groups between which nobody can move alone."""
        blocks = sum(
            len(crossing.block.atoms)
            if crossing.people is None
            else int(np.count_nonzero(crossing.people))
            for crossing in self.crossings
        )
        return int(np.count_nonzero(self.people[~self.crossed])) + blocks

    @property
    def several(self) -> bool:
        """Whether the figures tell apart two people, or may do so."""
        return self.parts > 1 or any(np.any(crossing.margins) for crossing in self.crossings)


@lru_cache(maxsize=16)
def people_under(figures: Figures) -> People:
    """Who is where under some figures; what was worked out is kept for those who ask again."""
    return People(figures)


# ---- figures on merged cells -------------------------------------------------------------------


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
        tables = list_tables(rows, low, high, self.most)
        if tables is not None and not len(tables):
            raise FigureError(
                "no dataset agrees with all published figures and bounds.",
                remedy="Compute all of them from the same dataset; for a new population, use a new "
                "ledger.",
            )
        return tables


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
    inhabited = np.flatnonzero(~_empty(equal, values))
    least, bounds = _bounds(figures, first[inhabited])
    unseen = prod(
        figures.schema.attribute(name).size
        for name in figures.schema.names
        if name not in figures.bases
    )
    number = np.full(int(labels.max(initial=0)) + 2, -1, dtype=np.int64)  # -1 stays -1
    number[labels[inhabited]] = np.arange(len(inhabited))
    several = sizes[inhabited] * unseen > 1
    return Merged(figures, equal[:, inhabited], values, least, bounds, several, number[classes])


def _empty(equal: sp.csr_matrix, values: Ints | None) -> Any:
    """Atoms of a sum without negative weights that was published as zero."""
    empty = np.zeros(equal.shape[1], dtype=bool)
    if values is not None and equal.shape[0] and equal.shape[1]:
        positive = np.asarray(equal.min(axis=1).todense()).reshape(-1) >= 0
        empty[equal[np.flatnonzero(positive & (values == 0))].indices] = True
    return empty


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
