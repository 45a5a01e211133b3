"""Whole counts of tables that cross, after rounding: people move so that sums are near again.

Cells are rounded node by node, and a table that is no node adds up hundreds of roundings. People
are moved one at a time, always where the sum of squared distances of all tables from their targets
falls most; between two cells that no figure tells apart, or in and out of cells that no figure
counts. So every figure stays as it is. Targets are on a grid, so that their sums are exact and
whoever has them makes the same moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from congenial.data.workload import Ints, Margin
from congenial.tables.crossing_targets import cell_numbers
from congenial.tables.measurements import Floats, Measurements

LARGEST = 200_000  # cells
MOVES = 3_000


def nearer(work: Measurements, margins: Sequence[Margin], cells: Ints, targets: Floats) -> Ints:
    """Whole cells with the same figures whose tables are nearer to those of the targets."""
    if work.size > LARGEST:
        return cells
    z = cells.reshape(-1).copy()
    off = z - targets.reshape(-1)
    numbers = [cell_numbers(margin) for margin in margins]
    moves = _Moves(work, numbers, off)
    for _ in range(MOVES):
        up, down = moves.best(z)
        if up < 0 and down < 0:
            break
        for cell, step in ((up, 1), (down, -1)):
            if cell >= 0:
                z[cell] += step
                moves.moved(cell, step)
    return z.reshape(cells.shape)


class _Moves:
    """What one person more in a cell does to all distances: `pull` is half the derivative."""

    def __init__(self, work: Measurements, numbers: Sequence[Ints], off: Floats) -> None:
        self.numbers = numbers
        self.pull = np.zeros(work.size)
        for number in numbers:
            self.pull += np.bincount(number, off)[number]
        alike, counted = figure_classes(work)
        self.order = np.argsort(alike, kind="stable")
        self.starts = np.flatnonzero(np.diff(alike[self.order], prepend=-1))
        self.free = ~counted

    def moved(self, cell: int, step: int) -> None:
        """One person more or less in a cell."""
        for number in self.numbers:
            self.pull[number == number[cell]] += step

    def best(self, z: Ints) -> tuple[int, int]:
        """The cells that one person enters and leaves; -1 for none: nothing gets nearer."""
        found = [self._alone(z), self._between(z)]
        gain, up, down = min(found)
        return (up, down) if gain < 0 else (-1, -1)

    def _alone(self, z: Ints) -> tuple[float, int, int]:
        """In or out of cells that no figure counts."""
        cells = np.flatnonzero(self.free)
        if not len(cells):
            return 0.0, -1, -1
        enter = cells[np.argmin(self.pull[cells])]
        leave = cells[np.argmax(np.where(z[cells] > 0, self.pull[cells], -np.inf))]
        gains = 2 * self.pull[enter], -2 * self.pull[leave] if z[leave] > 0 else np.inf
        one = int(enter), -1
        other = -1, int(leave)
        tables = len(self.numbers)
        return min((gains[0] + tables, *one), (gains[1] + tables, *other))

    def _between(self, z: Ints) -> tuple[float, int, int]:
        """From one cell to another that no figure tells apart from it."""
        pull = self.pull[self.order]
        low = np.minimum.reduceat(pull, self.starts)
        high = np.maximum.reduceat(np.where(z[self.order] > 0, pull, -np.inf), self.starts)
        at = int(np.argmin(low - high))
        stop = self.starts[at + 1] if at + 1 < len(self.starts) else len(pull)
        inside = self.order[self.starts[at] : stop]
        up = int(inside[np.argmin(self.pull[inside])])
        down = int(inside[np.argmax(np.where(z[inside] > 0, self.pull[inside], -np.inf))])
        if up == down or z[down] == 0:
            return 0.0, -1, -1
        apart = sum(int(number[up] != number[down]) for number in self.numbers)
        return float(2 * (self.pull[up] - self.pull[down]) + 2 * apart), up, down


def figure_classes(work: Measurements) -> tuple[Ints, np.ndarray]:
    """Classes of cells that no figure tells apart, and whether any figure counts the cell."""
    labels, counted = [np.zeros(work.size)], np.zeros(work.size, dtype=bool)
    for figure in work.figure_rows:
        along = [n if at in figure.mentions else 1 for at, n in enumerate(work.shape)]
        weight = np.broadcast_to(figure.weight.reshape(along), work.shape).reshape(-1)
        labels += [weight, np.where(weight != 0, cell_numbers(figure.by), -1)]
        counted |= weight != 0
    return np.unique(np.stack(labels), axis=1, return_inverse=True)[1].reshape(-1), counted
