"""Noise in sums of the cells: a release with `levels`, or several tables measured at once.

p(y | x) ~ exp(-sum over nodes v of rate_v f(y_v - x_v)), x_v the sum over the cells below v, f the
absolute value or the square. Along a line of the latent table only the nodes change that are not
above as many ends that go up as ends that go down, and the law stays log-concave: tables are
redrawn exactly, as without levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import cell_index
from congenial.inference.cell_noise import Floats, Ints
from congenial.mechanisms.tables_release import TablesRelease


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """above: the node over each cell at each level, (cells, levels). rates and values of the nodes.

    rates: eps of each node, or 1 / (2 sigma^2) where the noise is Gaussian (`squared`).
    """

    above: Ints = field(repr=False)
    rates: Floats = field(repr=False)
    values: Ints = field(repr=False)
    squared: bool = False

    @classmethod
    def none(cls, cells: int) -> LevelNoise:
        """No noise in sums."""
        return cls(np.zeros((cells, 0), dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64))

    @classmethod
    def of_tables(cls, release: TablesRelease, cells: tuple[str, ...]) -> LevelNoise:
        """The measured tables of a release as sums of the cells of a finer one."""
        gaussian = release.description.family == "discrete_gaussian"
        tables = []
        for one, drawn in zip(release.description.measured, release.drawn, strict=True):
            rate = 1 / (2 * float(one.scale)) if gaussian else float(one.scale)
            index = _below(release.schema, cells, one.table)
            tables.append((index, rate, np.asarray(drawn, dtype=np.int64).reshape(-1)))
        return cls._of_tables(tables, squared=gaussian)

    @classmethod
    def _of_tables(cls, tables: list[tuple[Ints, float, Ints]], squared: bool) -> LevelNoise:
        """Tables as (node of each cell, rate, values), nodes numbered through."""
        sizes = [len(values) for _, _, values in tables]
        first = np.cumsum([0, *sizes[:-1]])
        above = [index + start for (index, _, _), start in zip(tables, first, strict=True)]
        rates = [np.full(len(values), rate) for _, rate, values in tables]
        values = np.concatenate([values for _, _, values in tables])
        return cls(np.stack(above, axis=1), np.concatenate(rates), values, squared)

    def gaps(self, x: Any) -> Ints:
        """Value minus sum of every node, for whole tables of shape (n, cells)."""
        whole = np.asarray(x).astype(np.int64)
        found = np.zeros((len(self.rates), len(whole)), dtype=np.int64)
        for column in self.above.T:
            np.add.at(found, column, whole.T)
        return np.ascontiguousarray(self.values - found.T)

    def log_weight(self, x: Any) -> Floats:
        """Log weight of what was drawn given each row of tables."""
        gaps = self.gaps(x).astype(float)
        return np.asarray(-((gaps * gaps if self.squared else np.abs(gaps)) @ self.rates))


def _below(schema: Schema, cells: tuple[str, ...], names: tuple[str, ...]) -> Ints:
    """The cell of the table over `names` that each cell belongs to, flat."""
    shape = tuple(axis.size for axis in schema.axes(cells))
    index = np.broadcast_to(cell_index(schema, cells, names), shape)
    return np.ascontiguousarray(index.reshape(-1), dtype=np.int64)
