"""The set of conforming tables { m : low <= R m <= high, lower <= m <= upper }, cell by cell.

Equalities A m = a and bounds B m >= b are rows of one matrix; an equality has low = high.
Everything here is public: the figures are published, and the rows are what they count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.errors import MandateError, StructureError
from congenial.figures import lattice
from congenial.figures.lattice import Ints
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
            raise MandateError(
                "a lower bound is above its upper bound.", remedy="Correct the bounds."
            )

    @classmethod
    def of(
        cls,
        A: Any,
        a: npt.ArrayLike,
        B: Any | None = None,
        b: npt.ArrayLike | None = None,
        lower: npt.ArrayLike | None = 0,
        upper: npt.ArrayLike | None = None,
    ) -> ConformingTables:
        """{ m : A m = a, B m >= b, lower <= m <= upper }; None for no bound."""
        equal, figures = whole_matrix(A), np.asarray(a, dtype=np.int64).reshape(-1)
        cells = equal.shape[1]
        least, bounds = sp.csr_matrix((0, cells), dtype=np.int64), np.zeros(0, np.int64)
        if B is not None and b is not None:
            least, bounds = whole_matrix(B), np.asarray(b, dtype=np.int64).reshape(-1)
        if least.shape[1] != cells:
            raise StructureError(
                f"B has {least.shape[1]} columns and A {cells}.", remedy="Give one per cell."
            )
        return cls(
            sp.vstack([equal, least], format="csr"),
            np.concatenate([figures, bounds]),
            np.concatenate([figures, np.full(bounds.size, FAR)]),
            _per_cell(lower, cells, -FAR),
            _per_cell(upper, cells, FAR),
        )

    @classmethod
    def given(cls, support: Support, lower: npt.ArrayLike | None = 0) -> ConformingTables:
        """The tables that have every sum published in `support`; impossible cells are zero."""
        if support.totals is None:
            raise MandateError("the figures have no values yet.", remedy="Publish them first.")
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
        matrix, told = sp.vstack(rows, format="csr"), np.concatenate(figures)
        frozen = labels == FROZEN
        least = np.where(frozen, 0, _per_cell(lower, labels.size, -FAR))
        return cls(matrix, told, told, least, np.where(frozen, 0, FAR))

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.rows.shape[1])

    @cached_property
    def atoms(self) -> Ints:
        """Atom of each cell (0, 1, ...): cells with equal columns; -1 for a cell in no row."""
        columns = self.rows.tocsc()
        columns.sort_indices()
        touched = np.diff(columns.indptr) > 0
        keys = [
            (columns.indices[i:j].tobytes(), columns.data[i:j].tobytes())
            for i, j in zip(columns.indptr[:-1], columns.indptr[1:], strict=True)
        ]
        number = {
            key: k
            for k, key in enumerate(
                dict.fromkeys(key for key, t in zip(keys, touched, strict=True) if t)
            )
        }
        return np.array([number.get(key, -1) for key in keys], dtype=np.int64)

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
        found = lattice.atom_totals(self.merged, self.low)
        if found is None:
            raise MandateError(
                "no table of whole numbers agrees with the figures.",
                remedy="Correct or leave out one of them.",
            )
        return found

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
        sums = self.rows @ table
        return bool(
            np.all((sums >= self.low) & (sums <= self.high))
            and np.all((table >= self.lower) & (table <= self.upper))
        )


def whole_matrix(matrix: Any) -> sp.csr_matrix:
    """Any matrix of whole numbers as sparse int64, without stored zeros."""
    given = sp.csr_matrix(matrix)
    whole = given.astype(np.int64)
    if (whole != given).nnz:
        raise StructureError("a figure has a weight that is not whole.", remedy="Scale it.")
    whole.eliminate_zeros()
    whole.sum_duplicates()
    return whole


def _per_cell(bound: npt.ArrayLike | None, cells: int, far: int) -> Ints:
    given = np.asarray(far if bound is None else bound, dtype=np.int64)
    return np.array(np.broadcast_to(given.reshape(-1) if given.ndim else given, (cells,)))
