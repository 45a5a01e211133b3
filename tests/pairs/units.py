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
from congenial.figures.figures import Figures


@dataclass(frozen=True)
class Units:
    """`number` units with `least` to `most` rows each over the cells of a schema.

    Attributes of units are the same in all rows of a unit. `spare`: only datasets in which a unit
    other than the first is empty are asked for look-alikes (no limit to the number of units).
    """

    schema: Schema
    figures: Figures
    number: int
    most: int
    least: int = 0
    spare: bool = False

    @cached_property
    def _of_units(self) -> Any:
        """Class of every cell of the schema: its levels of the attributes of units, as a number."""
        names = self.schema.names
        shape = [self.schema.attribute(name).size for name in names]
        places = np.unravel_index(np.arange(int(np.prod(shape))), shape)
        found = np.zeros(int(np.prod(shape)), dtype=np.int64)
        for name, size, at in zip(names, shape, places, strict=True):
            if name in self.schema.of_units:
                found = found * size + at
        return found

    @cached_property
    def _contents(self) -> list[tuple[int, Any]]:
        cells = len(self._of_units)
        found = []
        for one in range(int(self._of_units.max()) + 1):
            own = np.flatnonzero(self._of_units == one)
            for size in range(self.least, self.most + 1):
                for rows in combinations_with_replacement(own, size):
                    counts = np.bincount(np.asarray(rows, dtype=np.int64), minlength=cells)
                    found.append((one, counts))
        return found

    @cached_property
    def classes(self) -> Any:
        """The class of everything one unit can be."""
        return np.array([one for one, _ in self._contents])

    @cached_property
    def contents(self) -> Any:
        """Counts by cell of the rows of everything one unit can be."""
        return np.array([counts for _, counts in self._contents])

    def _free(self, counts: Any) -> Any:
        """Counts of rows without the attributes of units."""
        names = self.schema.names
        shape = [self.schema.attribute(name).size for name in names]
        summed = tuple(i + 1 for i, name in enumerate(names) if name in self.schema.of_units)
        return counts.reshape(-1, *shape).sum(axis=summed).reshape(len(counts), -1)

    @cached_property
    def slots(self) -> Any:
        """Rows added, removed or changed between two contents, attributes of units aside."""
        own = self._free(self.contents)
        return _larger_side(own[:, None, :] - own[None, :, :])

    @cached_property
    def datasets(self) -> Any:
        """Every dataset: which content each unit has."""
        return np.array(list(product(range(len(self.contents)), repeat=self.number)))

    @cached_property
    def tables(self) -> Any:
        """The table of rows of every dataset."""
        return self.contents[self.datasets].sum(axis=1)

    @cached_property
    def tables_of_units(self) -> Any:
        """Units of every class in every dataset."""
        here = self.classes[:, None] == np.arange(int(self.classes.max()) + 1)
        return here[self.datasets].sum(axis=1)

    @cached_property
    def counts_of_counts(self) -> Any:
        """Units of every class and number of rows in every dataset."""
        sizes = self.contents.sum(axis=1)
        key = self.classes * (self.most + 1) + sizes
        here = key[:, None] == np.arange(int(key.max()) + 1)
        return here[self.datasets].sum(axis=1)

    def _figures_about_units(self) -> Any:
        of_units = self.figures.of_units
        if of_units is None:
            return np.zeros((len(self.datasets), 0), dtype=np.int64)
        first = np.unique(self._of_units, return_index=True)[1]
        return self.tables_of_units @ self._matrix(of_units)[:, first].T

    def _matrix(self, figures: Figures) -> Any:
        every = total(by=self.schema.names)
        cells = Cells(self.schema, (*figures.statements, every))
        return cells.matrix(figures.equalities, np.arange(cells.size)).toarray()

    def groups(self) -> list[Any]:
        """Datasets that agree with each other in all figures."""
        of_rows = self.tables @ self._matrix(self.figures.of_rows).T
        values = np.hstack([of_rows, self._figures_about_units()])
        labels = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
        order = np.argsort(labels, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)

    def look_alikes(
        self, group: Any, units: int, slots: int, rows: int
    ) -> Iterator[tuple[int, Any]]:
        """For every dataset of a group, up to the names of the units after the first, those of the
        group that are close in units, slots and table of rows.
        """
        data, tables = self.datasets[group], self._free(self.tables[group])
        asked = np.all(np.diff(data[:, 1:], axis=1) >= 0, axis=1)
        if self.spare:
            asked &= (self.contents[data[:, 1:]].sum(axis=2) == 0).any(axis=1)
        for k in np.flatnonzero(asked):
            seen = _larger_side(tables - tables[k])
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

    def farthest(self, units: int, slots: int, rows: int, shown: str = "all") -> tuple[int, int]:
        """Largest l1 and squared l2 distance of look-alikes' tables.

        `shown`: tables of rows with "all" attributes or those of "rows" alone, of "units", or of
        units by "sizes" too.
        """
        tables = {
            "all": lambda: self.tables,
            "rows": lambda: self._free(self.tables),
            "units": lambda: self.tables_of_units,
            "sizes": lambda: self.counts_of_counts,
        }[shown]()
        l1 = l2 = 0
        for group in self.groups():
            for k, near in self.look_alikes(group, units, slots, rows):
                u = tables[group[near]] - tables[group[k]]
                l1 = max(l1, int(np.abs(u).sum(axis=1).max(initial=0)))
                l2 = max(l2, int(np.square(u).sum(axis=1).max(initial=0)))
        return l1, l2


def _larger_side(difference: Any) -> Any:
    up, down = np.maximum(difference, 0).sum(axis=-1), np.maximum(-difference, 0).sum(axis=-1)
    return np.maximum(up, down)
