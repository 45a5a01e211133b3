"""Tables that cross, beside the fit from coarse to fine: nonnegative targets before it, and people
who move after it.

Whole counts are fitted level by level of one attribute. A table that is not a level of it (people
by race beside people by education and sex) is a sum over parts of nodes.

**Before** (`nonnegative_cells`). Cells made nonnegative would push such a sum up. So nonnegative
cells x are found first that have every figure and make

    sum_b w_b |T_b (x - e)|^2,   w_b = p_b (cells that a cell of table b adds up) ^ PRIORITY

least, e the estimates and p_b the precision with which table b is known. With PRIORITY = 0 these
would be least squares given the signs: thousands of empty cells, each lifted a little, outweigh
the few sums of a coarse table. Tables settled one after the other would be right one by one, but
the sums of two tables that cross need not be those of any nonnegative cells. So all are fitted at
once, by the alternating direction method of multipliers (Boyd, Parikh, Chu, Peleato and Eckstein
2011, sections 3.1 and 3.4): every step solves normal equations of the same structure as the
estimates', by the same two solvers. An interior point method needs a matrix of all coarser cells.

**After** (`nearer`). Cells are rounded node by node, and a table that is not a node adds up
hundreds of roundings. People are moved one at a time, always where the sum of squared distances of
all tables from their targets falls most: between two cells that no figure tells apart, or in and
out of cells that no figure counts. So every figure stays as it is. Targets are on a grid, so that
their sums are exact and whoever has them makes the same moves.

Public values in, public values out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from congenial.data.workload import Ints, Margin
from congenial.tables.gradient_inverse import GradientInverse
from congenial.tables.inverse import Inverse
from congenial.tables.linear_estimates import Estimates, choose_inverse, finest
from congenial.tables.measurements import Floats, Measurements

LARGEST = 1_000_000  # cells that targets are found for
LARGEST_MOVED = 200_000  # cells between which people are moved
MOVES = 3_000
PRIORITY = 1.5
ENOUGH = 0.05  # people by which the sum of a table may miss those of nonnegative cells
STEPS = 500
BETWEEN = 10  # steps from one look at the residuals to the next
RELAXED = 1.6
BALANCED = 2.0  # how far apart the two residuals' roots may be, by a factor
MOST = 5.0  # by which the pull changes at once
SMALLEST = 1e-12
ACCURACY = 1e-5  # of conjugate gradients, per step
GRID = 2.0**-20  # on which sums of targets are exact


def nonnegative_cells(estimates: Estimates, margins: Sequence[Margin]) -> Floats:
    """Nonnegative cells whose tables are near the estimates, coarse ones nearest."""
    work, every = estimates.measurements, finest(estimates.measurements)
    tables = [*(one for one in dict.fromkeys(margins) if one != every), every]
    fit = _Fit(work, tables, weights_of(work, tables))
    return np.asarray(np.rint(fit.solve(estimates.totals(every)) / GRID) * GRID)


def weights_of(work: Measurements, margins: Sequence[Margin]) -> list[float]:
    """What a squared distance in each table weighs; all are above 0, measured or not."""
    measured = dict.fromkeys([*margins, finest(work)], 0.0)
    for margin, precision in zip(work.margins, work.precisions, strict=True):
        measured[margin] = measured.get(margin, 0.0) + precision
    cell = measured[finest(work)] or min(
        p * m.size / work.size for m, p in measured.items() if p > 0
    )
    alone = {margin: cell * margin.size / work.size for margin in margins}  # from its cells only
    known = {margin: max(alone[margin], measured[margin]) for margin in margins}
    return [known[margin] * (work.size / margin.size) ** PRIORITY for margin in margins]


class _Fit:
    """The fit to some tables, the last of which shows all cells."""

    def __init__(
        self, work: Measurements, margins: Sequence[Margin], weights: Sequence[float]
    ) -> None:
        self.work, self.margins, self.weights = work, margins, weights
        largest = max(w * work.size / m.size for m, w in zip(margins, weights, strict=True))
        self.pull = float(np.sqrt(weights[-1] * largest))

    def solve(self, aim: Floats) -> Floats:
        """The nearest nonnegative cells; `aim` has every figure."""
        inverse, every = self._inverse(), self.margins[-1]
        cells, dual = np.maximum(aim, 0.0), np.zeros_like(aim)
        for step in range(1, STEPS + 1):
            towards = (self.pull * (cells - dual - aim))[None]
            found = aim + inverse.apply([(every, towards)]).totals(every)[0]
            relaxed = RELAXED * found + (1 - RELAXED) * cells
            before, cells = cells, np.maximum(relaxed + dual, 0.0)
            dual = dual + relaxed - cells
            if step % BETWEEN == 0:
                off, moved = self._largest(found - cells), self._largest(cells - before)
                if max(off, moved) <= ENOUGH:
                    break
                factor = float(np.clip(np.sqrt(off / max(moved, SMALLEST)), 1 / MOST, MOST))
                if max(factor, 1 / factor) > BALANCED:
                    self.pull, dual = self.pull * factor, dual / factor
                    inverse = self._inverse()
        return cells

    def _inverse(self) -> Inverse:
        """Of the normal equations with a pull towards given cells beside."""
        precisions = [*self.weights[:-1], self.weights[-1] + self.pull]
        found = choose_inverse(self.work.over(self.margins, precisions))
        if isinstance(found, GradientInverse):
            return replace(found, accuracy=ACCURACY)
        return found

    def _largest(self, cells: Floats) -> float:
        """The largest sum in any table, signs aside."""
        return max(float(np.abs(one.totals(cells)).max()) for one in self.margins)


def nearer(work: Measurements, margins: Sequence[Margin], cells: Ints, targets: Floats) -> Ints:
    """Whole cells with the same figures whose tables are nearer to those of the targets."""
    if work.size > LARGEST_MOVED:
        return cells
    from congenial.tables.transport_kernels import CellIndex, move_people  # compiles

    alike, counted = figure_classes(work)
    order = np.argsort(alike, kind="stable")  # cells of one class stand side by side
    classes = np.append(np.flatnonzero(np.diff(alike[order], prepend=-1)), len(order))
    numbers = np.stack([cell_numbers(margin)[order] for margin in margins]).astype(np.int32)
    members = np.argsort(numbers, axis=1, kind="stable").astype(np.int32)
    sizes = [np.bincount(number, minlength=numbers.max() + 1) for number in numbers]
    starts = np.concatenate([np.zeros((len(numbers), 1), np.int64), np.cumsum(sizes, 1)], axis=1)
    z = cells.reshape(-1)[order]
    off = z - targets.reshape(-1)[order]
    pull = np.zeros(work.size)
    for number in numbers:
        pull += np.bincount(number, off)[number]
    free = np.flatnonzero(~counted[order])
    move_people(z, pull, CellIndex(numbers, members, starts, classes, free), MOVES)
    moved = np.empty_like(z)
    moved[order] = z
    return moved.reshape(cells.shape)


def figure_classes(work: Measurements) -> tuple[Ints, NDArray[np.bool_]]:
    """Classes of cells that no figure tells apart, and whether any figure counts the cell."""
    labels, counted = [np.zeros(work.size)], np.zeros(work.size, dtype=bool)
    for figure in work.figure_rows:
        along = [n if at in figure.mentions else 1 for at, n in enumerate(work.shape)]
        weight = np.broadcast_to(figure.weight.reshape(along), work.shape).reshape(-1)
        labels += [weight, np.where(weight != 0, cell_numbers(figure.by), -1)]
        counted |= weight != 0
    return np.unique(np.stack(labels), axis=1, return_inverse=True)[1].reshape(-1), counted


def cell_numbers(margin: Margin) -> Ints:
    """The cell of a table that every finest cell belongs to."""
    spread = margin.spread(np.arange(margin.size).reshape(margin.shape))
    return np.asarray(spread, dtype=np.int64).reshape(-1)
