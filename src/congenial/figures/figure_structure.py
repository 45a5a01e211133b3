"""The structure of figures, from their words alone: which cells they see, their matrix, its rank.

The matrix is never built cell by cell. Statements only see the attributes they mention; cells whose
columns are equal are merged into *atoms*, and structure, rank and redundancy are decided on atoms.
No value of a figure is looked at here: `Figures` adds them. So what is worked out is the same
for figures that are planned, computed, read back from a ledger or joined to it, and is kept once
for all of them while one is in use: for a nation it is most of the memory and of the time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeVar, overload
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp

from congenial.data.schema import Schema
from congenial.figures import lattice
from congenial.figures.blocks import Blocks
from congenial.figures.blocks import blocks as find_blocks
from congenial.figures.cells import Cells, first_places
from congenial.figures.lattice import Ints
from congenial.figures.statements import Statement

Structure = Literal["none", "laminar", "two-way", "one-way", "general"]
T = TypeVar("T")


class shared_property(cached_property[T]):
    """A cached property that the same statements over one schema share."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Self | T:
        """The value, worked out by the first of them that was asked for anything."""
        if instance is None:
            return self
        first = vars(instance).get(_FIRST)
        if first is None:
            first = _IN_USE.setdefault((id(instance.schema), instance.statements), instance)
            if first is not instance:
                vars(instance)[_FIRST] = first  # which lives as long as this one does
        found: T = super().__get__(first, owner)
        return found


_FIRST = "_first"
# A structure holds its schema: no other schema has its number while the structure is in use.
_IN_USE: WeakValueDictionary[tuple[int, tuple[Statement, ...]], FigureStructure] = (
    WeakValueDictionary()
)


@dataclass(frozen=True)
class FigureStructure:
    """Statements about the cells of a schema, and what kind of set they are."""

    schema: Schema
    statements: tuple[Statement, ...] = ()

    @shared_property
    def cells(self) -> Cells:
        """The cells the statements can see."""
        return Cells(self.schema, self.statements)

    @property
    def bases(self) -> tuple[str, ...]:
        """Attributes that some statement mentions, in schema order."""
        return self.cells.bases

    @property
    def equalities(self) -> tuple[Statement, ...]:
        """The statements published exactly."""
        return tuple(s for s in self.statements if s.relation == "=")

    @property
    def bounds(self) -> tuple[Statement, ...]:
        """The statements that only bound a statistic."""
        return tuple(s for s in self.statements if s.relation in (">=", "<="))

    @property
    def zeros(self) -> tuple[Statement, ...]:
        """The statements that say which cells are impossible."""
        return tuple(s for s in self.statements if s.relation == "zero")

    @shared_property
    def atoms(self) -> Ints:
        """Atom of each cell: cells with equal columns share one; -1 for impossible cells.

        Atom 0 is the *loose* one, touched by no equality statement; it may be empty.
        """
        cells, alike = self.cells, self.cells.alike((*self.equalities, *self.zeros))
        classes = cells.classes_at(self.equalities, alike.first)
        labels = np.where(cells.touched_at(self.equalities, alike.first), classes + 1, 0)
        if self.zeros:
            labels[cells.touched_at(self.zeros, alike.first)] = -1
        there = np.zeros(int(labels.max(initial=0)) + 1, dtype=bool)
        there[labels[labels > 0]] = True
        number = np.cumsum(there)[np.maximum(labels, 0)]
        numbered = np.where(labels > 0, number, labels).astype(np.int32)  # below LARGEST_DOMAIN
        return np.asarray(alike.over_cells(numbered))

    @shared_property
    def first_cells(self) -> Ints:
        """The first cell of each atom 0, 1, ...; -1 for the loose one where it is empty."""
        found = first_places(self.atoms)
        return found if len(found) else np.full(1, -1, dtype=np.int64)

    @shared_property
    def matrix(self) -> sp.csr_matrix:
        """Equality statements (rows, one per cell of `by`) on atoms 1, 2, ... (columns)."""
        return self.cells.matrix(self.equalities, self.first_cells[1:])

    @shared_property
    def rank(self) -> int:
        """Number of independent published figures."""
        return lattice.rank(self.matrix)

    @property
    def tells_total(self) -> bool:
        """Whether one of the figures is the number of people itself."""
        return any(one.is_total for one in self.statements)

    @shared_property
    def tells_people(self) -> bool:
        """Whether the figures, of whatever values, fix the number of people."""
        loose = self.first_cells[0] >= 0
        return bool(self.equalities) and not loose and lattice.tells_sum(self.matrix)

    @shared_property
    def structure(self) -> Structure:
        """What kind of set the figures are; each kind has its own exact mathematics.

        "laminar": every atom's total follows from what is published, so groups decouple (nested
        totals, and any other statements of full rank on their atoms). "two-way": what is left are
        tables of atoms of which both margins are published; "one-way": the same with more margins.
        """
        if not self.equalities:
            return "none"
        if self.rank == self.matrix.shape[1]:
            return "laminar"
        if any(kind.features is None for kind in self.blocks.kinds):
            return "general"
        two = all(len(kind.levels) == 2 for kind in self.blocks.kinds)
        return "two-way" if two else "one-way"

    @shared_property
    def blocks(self) -> Blocks:
        """Groups of atoms whose totals are tied, when people are only moved and never added.

        Atom numbers are those of `atoms`, the loose atom 0 included: n is public.
        """
        if not self.equalities or self.rank == self.matrix.shape[1]:
            return Blocks()  # every atom's total is known
        loose = int(self.first_cells[0] >= 0)
        matrix = self.matrix
        if loose:
            matrix = sp.hstack([sp.csr_matrix((matrix.shape[0], 1), dtype=np.int64), matrix])
            matrix = lattice.with_ones(matrix)
        return Blocks(
            replace(kind, atoms=kind.atoms + 1 - loose) for kind in find_blocks(matrix).kinds
        )

    @shared_property
    def redundant(self) -> tuple[str, ...]:
        """Labels of statements that follow from those before them."""
        sizes = [self.schema.size(statement.by) for statement in self.equalities]
        ranks = lattice.ranks_of_first(self.matrix, np.cumsum(sizes))
        more = np.diff(ranks, prepend=0)
        named = zip(self.equalities, more, strict=True)
        return tuple(statement.label for statement, new in named if not new)
