"""All datasets of a few units with several rows each: the truth that `SeveralRows` must bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np

from congenial import Schema, total
from congenial.figures.cells import Cells
from congenial.figures.invariants import Invariants


@dataclass(frozen=True)
class Units:
    """`number` units with `least` to `most` rows each over the cells of a schema."""

    schema: Schema
    figures: Invariants
    number: int
    most: int
    least: int = 0

    @cached_property
    def contents(self) -> Any:
        """Counts by cell of everything one unit can own."""
        cells = self.schema.size(self.schema.names)
        sets = [
            np.bincount(np.asarray(rows, dtype=np.int64), minlength=cells)
            for size in range(self.least, self.most + 1)
            for rows in combinations_with_replacement(range(cells), size)
        ]
        return np.array(sets)

    @cached_property
    def slots(self) -> Any:
        """Rows added, removed or changed between two contents."""
        apart = self.contents[:, None, :] - self.contents[None, :, :]
        return np.maximum(np.maximum(apart, 0).sum(axis=2), np.maximum(-apart, 0).sum(axis=2))

    @cached_property
    def datasets(self) -> Any:
        """Every dataset: which content each unit has."""
        return np.array(list(product(range(len(self.contents)), repeat=self.number)))

    @cached_property
    def tables(self) -> Any:
        """The table of rows of every dataset."""
        return self.contents[self.datasets].sum(axis=1)

    def groups(self) -> list[Any]:
        """Datasets that agree with each other in all figures."""
        every = total(by=self.schema.names)
        cells = Cells(self.schema, (*self.figures.statements, every))
        matrix = cells.matrix(self.figures.equalities, np.arange(cells.size)).toarray()
        values = self.tables @ matrix.T
        labels = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)

    def look_alikes(
        self, group: Any, units: int, slots: int, rows: int
    ) -> Iterator[tuple[int, Any]]:
        """For every dataset of a group, up to the names of the units after the first, those of the
        group that are close in units, slots and table of rows.
        """
        data, tables = self.datasets[group], self.tables[group]
        for k in np.flatnonzero(np.all(np.diff(data[:, 1:], axis=1) >= 0, axis=1)):
            u = tables - tables[k]
            seen = np.maximum(np.maximum(u, 0).sum(axis=1), np.maximum(-u, 0).sum(axis=1))
            moved = self.slots[data[k], data].sum(axis=1)
            near = ((data != data[k]).sum(axis=1) <= units) & (moved <= slots) & (seen <= rows)
            yield int(k), near

    def unreached(self, units: int, slots: int, rows: int) -> int:
        """Cases (dataset, content the first unit may have) without a look-alike that gives it."""
        missing = 0
        for group in self.groups():
            first = self.datasets[group][:, 0]
            possible = len(np.unique(first))
            for _, near in self.look_alikes(group, units, slots, rows):
                missing += possible - len(np.unique(first[near]))
        return missing

    def farthest(self, units: int, slots: int, rows: int) -> tuple[int, int]:
        """Largest l1 and squared l2 distance of row tables of look-alikes."""
        l1 = l2 = 0
        for group in self.groups():
            for k, near in self.look_alikes(group, units, slots, rows):
                u = self.tables[group[near]] - self.tables[group[k]]
                l1 = max(l1, int(np.abs(u).sum(axis=1).max(initial=0)))
                l2 = max(l2, int(np.square(u).sum(axis=1).max(initial=0)))
        return l1, l2
