"""Statements as columns of a matrix over cells, without ever building the matrix cell by cell.

Statements only see the attributes they mention. A statement puts each cell of that domain into one
of its rows with a weight; cells with equal columns are one class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.figures.lattice import Ints
from congenial.figures.statements import Statement

LARGEST_DOMAIN = 50_000_000  # cells of the attributes that the statements mention


@dataclass(frozen=True)
class Cells:
    """The domain of the attributes that some statements mention, at full resolution."""

    schema: Schema
    statements: tuple[Statement, ...]

    def __post_init__(self) -> None:
        if self.size > LARGEST_DOMAIN:
            raise StructureError(
                f"the figures mention {', '.join(self.bases)}: {self.size} cells, more than "
                f"{LARGEST_DOMAIN}.",
                remedy="Mandate fewer or coarser attributes.",
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

    def column(self, statement: Statement) -> tuple[Ints, Ints]:
        """For each cell: the row of the statement it belongs to, and its weight there."""
        row = np.zeros(self.size, dtype=np.int64)
        for name in statement.by:
            axis = self.schema.axis(name)
            row = row * axis.size + self.spread((axis.base,), axis.of_base)
        weight = np.zeros(self.size, dtype=np.int64)
        for condition, factor in statement.terms:
            names, mask = _mask(condition, self.schema)
            weight += factor * self.spread(names, mask.astype(np.int64))
        return row, weight

    def touched(self, statements: Sequence[Statement]) -> Any:
        """Which cells some statement gives a weight."""
        found = np.zeros(self.size, dtype=bool)
        for statement in statements:
            found |= self.column(statement)[1] != 0
        return found

    def classes(self, statements: Sequence[Statement]) -> Ints:
        """A number shared by cells with equal columns."""
        classes = np.zeros(self.size, dtype=np.int64)
        for statement in statements:
            row, weight = self.column(statement)
            low, high = int(weight.min(initial=0)), int(weight.max(initial=0))
            code = np.where(weight == 0, 0, 1 + row * (high - low + 1) + (weight - low))
            codes, code = np.unique(code, return_inverse=True)
            classes = np.unique(classes * len(codes) + code, return_inverse=True)[1]
        return classes

    def matrix(self, statements: Sequence[Statement], cells: Ints) -> sp.csr_matrix:
        """The statements' rows (one per cell of `by`) restricted to some cells."""
        blocks = []
        for statement in statements:
            row, weight = self.column(statement)
            entry = weight[cells] != 0
            blocks.append(
                sp.csr_matrix(
                    (weight[cells][entry], (row[cells][entry], np.flatnonzero(entry))),
                    shape=(self.schema.size(statement.by), len(cells)),
                    dtype=np.int64,
                )
            )
        if not blocks:
            return sp.csr_matrix((0, len(cells)), dtype=np.int64)
        return sp.vstack(blocks, format="csr")

    def sums(self, statement: Statement, counts: Ints) -> Ints:
        """The statement's figures for counts over the cells, shaped by its axes."""
        row, weight = self.column(statement)
        figures = np.zeros(self.schema.size(statement.by), dtype=np.int64)
        np.add.at(figures, row, weight * counts)
        return figures.reshape([axis.size for axis in self.schema.axes(statement.by)])


@lru_cache(maxsize=64)
def _mask(condition: str, schema: Schema) -> tuple[tuple[str, ...], Any]:
    """Attributes a condition mentions, and which of their combinations meet it."""
    if not condition:
        return (), np.ones((), dtype=bool)
    predicate = parse(condition, schema)
    return predicate.bases, predicate.mask()
