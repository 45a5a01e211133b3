"""CONFIDENTIAL records by their levels, for columns whose bins are only drawn later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from congenial.data.records import codes, fetch
from congenial.data.table import Table
from congenial.data.tabulate import Microdata, refuse
from congenial.synthesis.from_tables.junction_tree import Axes, Ints
from congenial.synthesis.from_tables.private_quantiles import bin_of_level

if TYPE_CHECKING:
    from congenial.synthesis.from_tables.table_records import TableRecords


@dataclass(frozen=True, eq=False)
class CountedRecords:
    """CONFIDENTIAL: the level of every record in each column, and how many people a row is."""

    levels: Mapping[str, Ints] = field(repr=False)
    times: Ints = field(repr=False)

    @classmethod
    def read(cls, data: Table | Microdata, names: Sequence[str]) -> CountedRecords:
        """All records, as far as these columns go."""
        if isinstance(data, Table):
            counts = data.marginal(names).counts
            places = np.nonzero(counts)
            return cls(dict(zip(names, places, strict=True)), counts[places])
        data.check_unit()
        found, _ = fetch(data, names)
        levels = {}
        for name in names:
            levels[name] = codes(data.schema.attribute(name), found[name])
            refuse(data.schema.axis(name), levels[name], data.schema)
        return cls(levels, np.ones(found.num_rows, dtype=np.int64))

    def counts(self, name: str, size: int) -> Ints:
        """People by level of one column."""
        return np.bincount(self.levels[name], self.times, size).astype(np.int64)

    def tables(self, made: TableRecords) -> dict[Axes, Ints]:
        """Every table that may be measured, by the bins that were drawn."""
        fine, schema, cuts = made.adjacency.schema, made.schema, dict(made.cuts)
        levels = dict(self.levels)
        for one in made.rules.quantiles:
            binned = bin_of_level(one, fine.attribute(one.name), cuts[one.name])
            levels[one.name] = binned[levels[one.name]]
        found = {}
        for axes in made.scales:
            told = [schema.axis(name) for name in axes]
            counts = np.zeros(made.shape(axes), dtype=np.int64)
            np.add.at(counts, tuple(axis.of_base[levels[axis.base]] for axis in told), self.times)
            found[axes] = counts
        return found
