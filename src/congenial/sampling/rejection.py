"""Tables drawn until bounds on sums of cells hold: exact rejection, one independent part at a time.

A sampler draws tables whose parts (groups of known total, ties, single cells) are independent of
each other. Bounds join some parts; parts that no bound joins are accepted by themselves, so that a
bound per county is met county by county and not by all counties at once. Whatever is accepted has
exactly the sampler's law given the bounds. How many tables that takes depends on the centre of
the law, which is confidential.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from congenial.figures.connected import connected
from congenial.figures.lattice import Ints
from congenial.figures.limits import Limits
from congenial.figures.support import LOOSE, Support
from congenial.sampling.randomness import Randomness

_CHUNK = 1 << 21  # cells proposed at a time, at most

Draw = Callable[[Randomness, int], Ints]


def parts_of(support: Support) -> Ints:
    """A number for each cell, shared by those whose counts depend on each other; -1 for none."""
    labels = support.labels.reshape(-1)
    part = np.arange(support.groups)
    for tie in support.ties:
        part[tie.groups] = tie.groups[0]
    of_cell = np.append(part, -1)[np.maximum(labels, -1)]
    loose = labels == LOOSE
    of_cell[loose] = support.groups + np.arange(np.count_nonzero(loose))
    return of_cell


class KeptBounds:
    """Independent draws of `propose`, given that every bound on a sum holds.

    `part` numbers the independent parts of a table, cell by cell (-1: a cell that never varies).
    """

    def __init__(self, propose: Draw, part: Ints, limits: Limits) -> None:
        self._propose, self._limits, self.sums = propose, limits, limits.sums
        rows, cells = limits.rows.nonzero()
        nodes = int(part.max(initial=-1)) + 1
        varies = part[cells] >= 0
        ends = rows[varies], limits.sums + part[cells][varies]
        component = connected(ends, limits.sums + nodes)
        used, self._of_row = np.unique(component[: limits.sums], return_inverse=True)
        self.components = len(used)
        number = np.full(int(component.max(initial=0)) + 1, -1)
        number[used] = np.arange(len(used))
        of_part = np.append(number[component[limits.sums :]], -1)
        self._of_cell = of_part[part]  # component of each cell, -1 where no bound matters
        self._cells = [np.flatnonzero(self._of_cell == c) for c in range(self.components)]

    def kept(self, m: Ints) -> Any:
        """For each table and component, whether its bounds hold; shape (tables, components)."""
        sums = (self._limits.rows @ m.T).T
        broken = (sums < self._limits.least) | (sums > self._limits.most)
        found = np.zeros((len(m), self.components), dtype=bool)
        for row, component in enumerate(self._of_row.tolist()):
            found[:, component] |= broken[:, row]
        return ~found

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells); takes as long as it takes."""
        m = self._propose(randomness, n)
        kept = self.kept(m)
        waiting = [np.flatnonzero(~kept[:, c]) for c in range(self.components)]
        batch = 16
        while longest := max(map(len, waiting), default=0):
            batch = min(max(2 * batch, longest), max(1, _CHUNK // m.shape[1]))
            fresh = self._propose(randomness, batch)
            good = self.kept(fresh)
            for component, cells in enumerate(self._cells):
                found = np.flatnonzero(good[:, component])
                take = min(len(found), len(waiting[component]))
                rows = waiting[component][:take]
                m[np.ix_(rows, cells)] = fresh[np.ix_(found[:take], cells)]
                waiting[component] = waiting[component][take:]
        return m

    def acceptance(self, randomness: Randomness, n: int) -> float:
        """The share of n proposals whose worst component is accepted."""
        return float(self.kept(self._propose(randomness, n)).mean(axis=0).min(initial=1.0))
