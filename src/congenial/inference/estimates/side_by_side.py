"""Tables of two releases beside each other: their noise is independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    Floats,
    IndependentTables,
    ScaledLaw,
    Weights,
)


@dataclass(frozen=True, eq=False)
class SideBySide(IndependentTables):
    """`CellEstimates` of several tables, the cells of one after those of the other."""

    @property
    def name(self) -> str:
        """All names."""
        return " and ".join(one.name for one in self.tables)

    @property
    def schema(self) -> Schema:
        """The first table's."""
        return self.tables[0].schema

    @property
    def axes(self) -> tuple[str, ...]:
        """The first table's."""
        return self.tables[0].axes

    @property
    def published(self) -> Figures:
        """The first table's."""
        return self.tables[0].published

    @cached_property
    def cells(self) -> Floats:
        """All cells."""
        return np.concatenate([one.cells for one in self.tables])

    @cached_property
    def starts(self) -> list[int]:
        """Where each table's cells begin; at the end, how many cells there are."""
        return [0, *np.cumsum([one.cells.size for one in self.tables]).tolist()]

    def of_tables(self, weights: Weights) -> Sequence[tuple[CellEstimates, Weights]]:
        """For each table, the columns of its cells."""
        slices = [weights[:, start:stop] for start, stop in pairwise(self.starts)]
        return list(zip(self.tables, slices, strict=True))

    def laws(self, weights: Weights) -> list[ScaledLaw | None]:
        """Laws of sums of one table; differences between tables are simulated."""
        parts = self.of_tables(weights)
        used = np.stack([np.diff(part.indptr) > 0 for _, part in parts])
        laws: list[ScaledLaw | None] = [None] * weights.shape[0]
        for i in np.flatnonzero(used.sum(axis=0) == 1):
            table, part = parts[int(np.argmax(used[:, i]))]
            laws[i] = table.laws(part[[i]])[0]
        return laws
