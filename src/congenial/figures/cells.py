"""Statements as columns of a matrix over cells, without ever building the matrix cell by cell.

Statements only see the attributes they mention. A statement puts each cell of that domain into one
of its rows with a weight; cells with equal columns are one class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.figures.statements import Statement

LARGEST_DOMAIN = 50_000_000  # cells of the attributes that the statements mention
TOGETHER = 2**20  # cells that are looked at together


@dataclass(frozen=True)
class Cells:
    """The domain of the attributes that some statements mention, at full resolution."""

    schema: Schema
    statements: tuple[Statement, ...]

    def __post_init__(self) -> None:
        if self.size > LARGEST_DOMAIN:
            raise StructureError(
                f"the exact figures use {', '.join(self.bases)}: {self.size} cells, more than "
                f"{LARGEST_DOMAIN}.",
                remedy="Publish fewer figures exactly, or figures by coarser attributes.",
            )

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """Attributes that some statement mentions, in schema order."""
        used: set[str] = set()
        for statement in self.statements:
            used.update(self.schema.axis(name).base for name in statement.by)
            for condition, _ in statement.terms:
                used.update(_mask(condition, self.schema)[0])
        return tuple(name for name in self.schema.names if name in used)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Levels of the mentioned attributes."""
        return tuple(self.schema.attribute(name).size for name in self.bases)

    @cached_property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    def spread(self, names: Sequence[str], values: Any) -> Any:
        """An array over `names` (in schema order) broadcast over all cells, flattened."""
        shape = [
            levels if name in names else 1
            for name, levels in zip(self.bases, self.shape, strict=True)
        ]
        return np.broadcast_to(np.asarray(values).reshape(shape), self.shape).reshape(-1)

    def column(self, statement: Statement, cells: Ints | None = None) -> tuple[Ints, Ints]:
        """For each cell, or each of some: the row of the statement it is in, and its weight."""
        at = None if cells is None else dict(zip(self.bases, self.places(cells), strict=True))
        size = self.size if cells is None else len(cells)
        row, weight = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        for name in statement.by:
            axis = self.schema.axis(name)
            of_base = axis.of_base
            own = self.spread((axis.base,), of_base) if at is None else of_base[at[axis.base]]
            row = row * axis.size + own
        for condition, factor in statement.terms:
            names, mask = _mask(condition, self.schema)
            if at is None:
                weight += factor * self.spread(names, mask.astype(np.int64))
            else:
                weight += factor * mask[tuple(at[name] for name in names)]
        return row, weight

    def places(self, cells: Ints) -> tuple[Ints, ...]:
        """Levels of some cells, one array for each attribute."""
        return np.unravel_index(cells, self.shape) if self.shape else ()

    def told_apart(self, statements: Sequence[Statement]) -> Ints:
        """One cell for each combination of levels that the statements tell apart."""
        return self.alike(statements).first

    def touched(self, statements: Sequence[Statement]) -> Any:
        """Which cells some statement gives a weight."""
        alike = self.alike(statements)
        return alike.over_cells(self.touched_at(statements, alike.first))

    def touched_at(self, statements: Sequence[Statement], cells: Ints) -> Any:
        """Which of some cells some statement gives a weight."""
        touched = np.zeros(len(cells), dtype=bool)
        for statement in statements:
            touched |= self.column(statement, cells)[1] != 0
        return touched

    def classes(self, statements: Sequence[Statement]) -> Ints:
        """A number shared by cells with equal columns; 0, 1, ... without a gap."""
        alike = self.alike(statements)
        return np.asarray(alike.over_cells(self.classes_at(statements, alike.first)))

    def classes_at(self, statements: Sequence[Statement], cells: Ints) -> Ints:
        """The same for some cells, by themselves."""
        classes = np.zeros(len(cells), dtype=np.int64)
        for by in dict.fromkeys(statement.by for statement in statements):
            row, code = classes, np.zeros_like(classes)
            counted = np.zeros(len(classes), dtype=bool)
            for statement in (other for other in statements if other.by == by):  # of the same rows
                row, weight = self.column(statement, cells)
                code, counted = _numbered(code, weight), counted | (weight != 0)
            classes = _numbered(classes, np.where(counted, row + 1, 0), np.where(counted, code, 0))
        return classes

    def alike(self, statements: Sequence[Statement]) -> LevelsAlike:
        """Levels of each attribute that no statement tells apart, taken together."""
        codes: dict[str, list[Any]] = {name: [] for name in self.bases}
        for statement in statements:
            for name in statement.by:
                axis = self.schema.axis(name)
                codes[axis.base].append(axis.of_base)
            for condition, _ in statement.terms:
                names, mask = _mask(condition, self.schema)
                for place, name in enumerate(names):
                    lines = np.moveaxis(mask, place, 0).reshape(mask.shape[place], -1)
                    codes[name].append(np.unique(lines, axis=0, return_inverse=True)[1].reshape(-1))
        sizes = zip(self.bases, self.shape, strict=True)
        return LevelsAlike(
            tuple(_numbered(np.zeros(size, dtype=np.int64), *codes[name]) for name, size in sizes)
        )

    def matrix(self, statements: Sequence[Statement], cells: Ints) -> sp.csr_matrix:
        """The statements' rows (one per cell of `by`) restricted to some cells."""
        blocks = []
        for statement in statements:
            row, weight = self.column(statement, cells)
            entry = weight != 0
            blocks.append(
                sp.csr_matrix(
                    (weight[entry], (row[entry], np.flatnonzero(entry))),
                    shape=(self.schema.size(statement.by), len(cells)),
                    dtype=np.int64,
                )
            )
        if not blocks:
            return sp.csr_matrix((0, len(cells)), dtype=np.int64)
        return sp.vstack(blocks, format="csr")

    def sums(self, statement: Statement, counts: Ints) -> Ints:
        """The statement's figures for counts over the cells, shaped by its axes."""
        figures = np.zeros(self.schema.size(statement.by), dtype=np.int64)
        for cells in stretches(self.size):
            row, weight = self.column(statement, cells)
            np.add.at(figures, row, weight * counts[cells])
        return figures.reshape([axis.size for axis in self.schema.axes(statement.by)])


@dataclass(frozen=True, eq=False)
class LevelsAlike:
    """For each attribute, a number that levels share which nothing tells apart."""

    of_level: tuple[Ints, ...]

    @cached_property
    def first(self) -> Ints:
        """One cell of each combination of such numbers."""
        at = [first_places(numbers) for numbers in self.of_level]
        shape = tuple(len(numbers) for numbers in self.of_level)
        if not at:
            return np.zeros(1, dtype=np.int64)
        return np.asarray(np.ravel_multi_index(np.ix_(*at), shape)).reshape(-1)

    def over_cells(self, values: Any) -> Any:
        """Values of the combinations, spread over all cells."""
        if all(
            numbers[-1] == len(numbers) - 1 and np.all(np.diff(numbers) == 1)
            for numbers in self.of_level
        ):
            return values
        shape = [int(numbers.max()) + 1 for numbers in self.of_level]
        return values.reshape(shape)[np.ix_(*self.of_level)].reshape(-1)


def first_places(numbers: Ints) -> Ints:
    """Where each of the numbers 0, 1, ... comes first; those left out (negative) are nowhere."""
    first = np.full(int(numbers.max(initial=-1)) + 1, -1, dtype=np.int64)
    for places in stretches(len(numbers), backward=True):
        there = places[numbers[places] >= 0][::-1]
        first[numbers[there]] = there
    return first


def stretches(size: int, backward: bool = False) -> Iterator[Ints]:
    """0, 1, ..., size - 1, some at a time: what is worked out of them takes little memory.

    `backward`: the last of them come first, each stretch still in order.
    """
    starts = range(0, size, TOGETHER)
    for start in reversed(starts) if backward else starts:
        yield np.arange(start, min(start + TOGETHER, size))


def _numbered(*keys: Ints) -> Ints:
    """Numbers 0, 1, ... of the different combinations of keys, in ascending order."""
    combined, largest = keys[0], int(keys[0].max(initial=0))
    for key in keys[1:]:
        low = int(key.min(initial=0))
        width = int(key.max(initial=0)) - low + 1
        if (largest + 1) * width >= 2**62:
            combined = np.unique(combined, return_inverse=True)[1].reshape(-1)
            largest = int(combined.max(initial=0))
        combined, largest = combined * width + (key - low), (largest + 1) * width - 1
    if largest > 8 * len(combined) + 1000:
        return np.asarray(np.unique(combined, return_inverse=True)[1]).reshape(-1)
    there = np.zeros(largest + 1, dtype=bool)
    there[combined] = True
    return (np.cumsum(there) - 1)[combined]


@lru_cache(maxsize=64)
def _mask(condition: str, schema: Schema) -> tuple[tuple[str, ...], Any]:
    """Attributes a condition mentions, and which of their combinations meet it."""
    if not condition:
        return (), np.ones((), dtype=bool)
    predicate = parse(condition, schema)
    return predicate.bases, predicate.mask()
