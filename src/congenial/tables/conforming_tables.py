"""The set of conforming tables { m : low <= R m <= high, lower <= m <= upper }, cell by cell.

Sums that are published and bounds on sums are rows of one matrix; a published sum has low = high.
Everything here is public: the figures are published, and the rows are what they count.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.errors import FigureError, StructureError
from congenial.figures import lattice
from congenial.figures.lattice import connected
from congenial.figures.limits import FAR as FAR  # sums of a few counts and FAR still fit 64 bits
from congenial.figures.support import FROZEN, Support


@dataclass(frozen=True, eq=False)
class ConformingTables:
    """Tables that agree with what is published, as a flat vector of cells.

    rows: sparse matrix of integers, one column per cell; low, high: what each row's sum must lie
    between (-FAR or FAR for no bound); lower, upper: bounds of each cell.

    >>> two_bins = ConformingTables.of([[1, 1]], [7])
    >>> two_bins.holds([3, 4]), two_bins.holds([8, -1])
    (True, False)
    """

    rows: sp.csr_matrix = field(repr=False)
    low: Ints = field(repr=False)
    high: Ints = field(repr=False)
    lower: Ints = field(repr=False)
    upper: Ints = field(repr=False)

    def __post_init__(self) -> None:
        figures, cells = self.rows.shape
        if self.low.shape != (figures,) or self.high.shape != (figures,):
            raise StructureError(
                f"{figures} rows came with {self.low.size} figures.", remedy="Give one per row."
            )
        if self.lower.shape != (cells,) or self.upper.shape != (cells,):
            raise StructureError(
                f"{cells} cells came with {self.lower.size} bounds.",
                remedy="Give one per cell, or one number for all.",
            )
        if np.any(self.lower > self.upper) or np.any(self.low > self.high):
            raise FigureError(
                "a lower bound is above its upper bound.", remedy="Correct the bounds."
            )

    @classmethod
    def of(
        cls,
        A: Any,
        a: npt.ArrayLike,
        lower: npt.ArrayLike | None = 0,
        upper: npt.ArrayLike | None = None,
    ) -> ConformingTables:
        """{ m : A m = a, lower <= m <= upper }; None for no bound."""
        equal, figures = whole_matrix(A), np.asarray(a, dtype=np.int64).reshape(-1)
        ends = _per_cell(lower, equal.shape[1], -FAR), _per_cell(upper, equal.shape[1], FAR)
        return cls(equal, figures, figures, *ends)

    @classmethod
    def given(cls, support: Support, lower: npt.ArrayLike | None = 0) -> ConformingTables:
        """The tables that have every sum published in `support`; impossible cells are zero."""
        if support.totals is None:
            raise FigureError("the figures have no values yet.", remedy="Publish them first.")
        labels = support.labels.reshape(-1)
        inside = np.flatnonzero(labels >= 0)
        groups = sp.csr_matrix(
            (np.ones(inside.size, dtype=np.int64), (labels[inside], inside)),
            shape=(support.groups, labels.size),
        )
        alone = np.flatnonzero(~support.tied)
        rows, figures = [groups[alone]], [support.totals[alone]]
        for tie in support.ties:
            assert tie.values is not None
            rows.append(sp.csr_matrix(tie.equations) @ groups[tie.groups])
            figures.append(np.asarray(tie.values, dtype=np.int64))
        matrix, sums = sp.vstack(rows, format="csr"), np.concatenate(figures)
        frozen = labels == FROZEN
        least = np.where(frozen, 0, _per_cell(lower, labels.size, -FAR))
        return cls(matrix, sums, sums, least, np.where(frozen, 0, FAR))

    def plus(self, rows: Any, low: Ints, high: Ints | None = None) -> ConformingTables:
        """Those of these tables that have further sums, between ends if two are given."""
        return replace(
            self,
            rows=sp.vstack([self.rows, whole_matrix(rows)], format="csr"),
            low=np.concatenate([self.low, low]),
            high=np.concatenate([self.high, low if high is None else high]),
        )

    def part(self, cells: Any) -> ConformingTables:
        """What is said of some cells, of which every row has all or none."""
        rows = self.rows[:, cells]
        occupied = np.diff(rows.indptr) > 0
        ends = (self.low[occupied], self.high[occupied], self.lower[cells], self.upper[cells])
        return ConformingTables(rows[occupied], *ends)

    @property
    def is_sum(self) -> Any:
        """Which rows fix a sum; the others bound one."""
        return self.low == self.high

    @cached_property
    def sums_only(self) -> ConformingTables:
        """The set without bounds on sums."""
        at = self.is_sum
        return replace(self, rows=self.rows[at], low=self.low[at], high=self.high[at])

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.rows.shape[1])

    @cached_property
    def atoms(self) -> Ints:
        """Atom of each cell (0, 1, ...): cells with equal columns; -1 for a cell in no row."""
        columns = self.rows.tocsc()
        columns.sort_indices()
        entries = np.diff(columns.indptr)
        atoms, number = np.full(self.cells, -1, dtype=np.int64), 0
        for size in np.unique(entries[entries > 0]):
            alike = np.flatnonzero(entries == size)
            places = columns.indptr[alike][:, np.newaxis] + np.arange(size)
            lines = np.hstack([columns.indices[places], columns.data[places]])
            which = np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1)
            atoms[alike] = number + which
            number += int(which.max()) + 1
        return atoms

    @cached_property
    def counted(self) -> Any:
        """Which cells are in some row."""
        return self.rows.getnnz(axis=0) > 0

    @cached_property
    def parts(self) -> tuple[Ints, Ints]:
        """The part of each cell and of each row: rows of different parts have no cell in common."""
        at = self.rows.tocoo()
        joined = connected((at.row + self.cells, at.col), self.cells + self.rows.shape[0])
        return joined[: self.cells], joined[self.cells :]

    @cached_property
    def merged(self) -> sp.csr_matrix:
        """The rows on atoms: one column per atom."""
        return self.rows[:, np.unique(self.atoms, return_index=True)[1]][
            :, int(np.any(self.atoms < 0)) :
        ].tocsr()

    @cached_property
    def totals(self) -> Ints | None:
        """Each atom's total where the figures fix all of them (nested figures), else None."""
        if np.any(self.low != self.high):
            return None
        try:
            if lattice.rank(self.merged) < self.merged.shape[1]:
                return None
        except StructureError:  # too large for exact elimination: treat as crossing
            return None
        totals = lattice.atom_totals(self.merged, self.low)
        if totals is None:
            raise FigureError(
                "no table of whole numbers agrees with the figures.",
                remedy="Correct or leave out one of them.",
            )
        return totals

    def repeated(self, times: int) -> ConformingTables:
        """The same set for several tables at once, one after another: many draws, one programme."""
        if times == 1:
            return self
        return ConformingTables(
            sp.kron(sp.identity(times, dtype=np.int64), self.rows, format="csr"),
            *(np.tile(x, times) for x in (self.low, self.high, self.lower, self.upper)),
        )

    def holds(self, m: npt.ArrayLike) -> bool:
        """Whether a whole table conforms, in exact integer arithmetic."""
        table = np.asarray(m, dtype=np.int64).reshape(-1)
        inside = np.all((table >= self.lower) & (table <= self.upper))
        return bool(inside and np.all(self.rows_held(table)))

    def rows_held(self, table: Ints) -> Any:
        """Which rows a whole table has, in exact integer arithmetic."""
        sums = self.rows @ table
        return (sums >= self.low) & (sums <= self.high)


def whole_matrix(matrix: Any) -> sp.csr_matrix:
    """Any matrix of whole numbers as sparse int64, without stored zeros."""
    weights = sp.csr_matrix(matrix)
    whole = weights.astype(np.int64)
    if (whole != weights).nnz:
        raise StructureError("a figure has a weight that is not whole.", remedy="Scale it.")
    whole.eliminate_zeros()
    whole.sum_duplicates()
    return whole


def _per_cell(bound: npt.ArrayLike | None, cells: int, far: int) -> Ints:
    ends = np.asarray(far if bound is None else bound, dtype=np.int64)
    return np.array(np.broadcast_to(ends.reshape(-1) if ends.ndim else ends, (cells,)))
