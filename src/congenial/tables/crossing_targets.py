"""Nonnegative targets for whole counts of tables that cross: coarse tables are settled first.

Whole counts are fitted level by level of one attribute. A table that is no level of it (people by
race beside people by education and sex) is a sum over parts of nodes; cells made nonnegative would
push it up. So before the fit every table is made nonnegative by itself, from coarse to fine: the
nearest nonnegative values with the sums of all tables settled before it and of the figures, by
projections in turn. The cells that come out last have, nearly, the sums of every table, and stand
in for the estimates. Public values in, public values out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from congenial.data.workload import Ints, Margin
from congenial.tables.estimate import Estimates, finest
from congenial.tables.measurements import FigureRows, Floats, Measurements

LARGEST = 200_000  # cells
SWEEPS = 60
ENOUGH = 0.05  # people by which a sum may be off
NOWHERE = -1  # the block of cells that a sum leaves out


@dataclass(frozen=True, eq=False)
class KnownSums:
    """Sums over blocks of cells: `block[i]` of cell i (-1: in none), and the sum of each block."""

    block: Ints = field(repr=False)
    sums: Floats = field(repr=False)

    def off(self, values: Floats) -> float:
        """The largest distance of a block from its sum."""
        inside = self.block >= 0
        have = np.bincount(self.block[inside], values[inside], minlength=len(self.sums))
        return float(np.abs(have - self.sums).max(initial=0.0))

    def nearest(self, values: Floats) -> Floats:
        """The nearest nonnegative values with these sums: all of a block less one number, cut at 0.

        >>> sums = KnownSums(np.array([0, 0, 0, -1]), np.array([4.0]))
        >>> sums.nearest(np.array([5.0, 1.0, -3.0, 7.0])).tolist()
        [4.0, 0.0, 0.0, 7.0]
        """
        inside = np.flatnonzero(self.block >= 0)
        block, x = self.block[inside], values[inside]
        order = np.lexsort((-x, block))
        block, x = block[order], x[order]
        starts = np.searchsorted(block, np.arange(len(self.sums)))
        rank = np.arange(len(x)) - starts[block] + 1
        running = np.cumsum(x)
        before = np.concatenate([[0.0], running])[starts][block]
        less = (running - before - self.sums[block]) / rank  # if the first `rank` are positive
        positive = x - less > 0
        last = np.maximum(np.bincount(block[positive], minlength=len(self.sums)), 1)
        shift = less[np.minimum(starts + last - 1, len(less) - 1)]
        found = np.maximum(values, 0.0)
        found[inside[order]] = np.maximum(x - shift[block], 0.0)
        return found


def nonnegative_cells(estimates: Estimates, margins: Sequence[Margin]) -> Floats:
    """Nonnegative cells that nearly have the sums of all tables, each made nonnegative first."""
    work = estimates.measurements
    known = [sums for sums in map(_figure, _counted(work)) if sums is not None]
    cells = np.zeros(work.size)
    for margin in sorted({*margins, finest(work)}, key=lambda one: one.size):
        number = cell_numbers(margin)
        inside = [one for one in (_onto(number, margin.size, sums) for sums in known) if one]
        cells = _settled(estimates.totals(margin).reshape(-1), inside)
        known.append(KnownSums(number, cells))
    return cells.reshape(work.shape)


def _settled(values: Floats, known: Sequence[KnownSums]) -> Floats:
    """Nonnegative values near others with known sums, by projections in turn."""
    values = np.maximum(values, 0.0) if not known else values
    for _ in range(SWEEPS):
        for sums in known:
            values = sums.nearest(values)
        if all(sums.off(values) <= ENOUGH for sums in known):
            break
    return values


def cell_numbers(margin: Margin) -> Ints:
    """The cell of a table that every finest cell belongs to."""
    spread = margin.spread(np.arange(margin.size).reshape(margin.shape))
    return np.asarray(spread, dtype=np.int64).reshape(-1)


def _onto(number: Ints, size: int, sums: KnownSums) -> KnownSums | None:
    """The same sums over the cells of a table, if they are sums of these."""
    block = np.full(size, NOWHERE, dtype=np.int64)
    block[number] = sums.block
    return KnownSums(block, sums.sums) if np.array_equal(block[number], sums.block) else None


def _counted(work: Measurements) -> list[tuple[FigureRows, Floats, Measurements]]:
    """Exact figures with their values, and structural zeros."""
    equal = len(work.figures.equalities)
    found = [
        (one, work.published(i).astype(float), work)
        for i, one in enumerate(work.figure_rows[:equal])
    ]
    return found + [(one, np.zeros(one.by.shape), work) for one in work.figure_rows[equal:]]


def _figure(known: tuple[FigureRows, Floats, Measurements]) -> KnownSums | None:
    """A figure that counts people as sums over the cells; None for weighted ones."""
    figure, values, work = known
    along = [n if at in figure.mentions else 1 for at, n in enumerate(work.shape)]
    weight = np.broadcast_to(figure.weight.reshape(along), work.shape).reshape(-1)
    if not np.all((weight == 0) | (weight == 1)):
        return None
    block = np.where(weight == 1, cell_numbers(figure.by), NOWHERE)
    return KnownSums(block, values.reshape(-1))
