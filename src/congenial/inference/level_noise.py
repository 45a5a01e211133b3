"""Noise in sums of the cells too: the law of a release with `levels`, as an analyst sees it.

p(y | x) ~ exp(-eps_cell |u|_1 - sum over nodes v of eps_v |u_v|), u = y - x, u_v its sum over the
cells below v. Along a line of the latent table only the nodes change that are above one end and not
above the other, and the law stays log-concave: tables are redrawn exactly, as without levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from congenial.data.table import cell_index
from congenial.inference.cell_noise import Floats, Ints
from congenial.mechanisms.single_table_release import Release


@dataclass(frozen=True, eq=False)
class LevelNoise:
    """above: the node over each cell at each level, (cells, levels). rates: eps of each node."""

    above: Ints = field(repr=False)
    rates: Floats = field(repr=False)

    @classmethod
    def none(cls, cells: int) -> LevelNoise:
        """No noise in sums."""
        return cls(np.zeros((cells, 0), dtype=np.int64), np.zeros(0))

    @classmethod
    def of_release(cls, release: Release) -> LevelNoise:
        """The levels of a release, nodes numbered through."""
        columns, rates, first = [], [], 0
        for names, eps in release.description.levels:
            index = cell_index(release.schema, release.table, names)
            columns.append(first + np.broadcast_to(index, release.values.shape).reshape(-1))
            nodes = release.schema.size(names)
            rates.append(np.full(nodes, float(eps)))
            first += nodes
        above = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int64)
        return cls(above, np.concatenate(rates))

    def sums(self, u: Any) -> Ints:
        """u_v of every node, for whole noise of shape (n, cells)."""
        whole = np.asarray(u).astype(np.int64)
        found = np.zeros((len(self.rates), len(whole)), dtype=np.int64)
        for column in self.above.T:
            np.add.at(found, column, whole.T)
        return np.ascontiguousarray(found.T)

    def log_weight(self, u: Any) -> Floats:
        """-sum of eps_v |u_v| for each row."""
        return np.asarray(-(np.abs(self.sums(u)) @ self.rates))
