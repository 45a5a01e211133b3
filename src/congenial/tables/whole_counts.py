"""Nonnegative whole counts near all estimates at once: one set of counts whose sums are the tables.

Fitted from coarse to fine: every node's cells are chosen near their estimates, with the exact sums
that figures give and adding up to the counts of the node above. Making cells nonnegative one by one
would push sums up; here a sum is settled before its parts. Public values in, public values out: no
randomness, nothing spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import NAMES, takes
from congenial.data.arrays import Floats, Ints
from congenial.data.workload import Margin
from congenial.errors import StructureError
from congenial.tables.general_fit import LARGEST, PublicProgramme, fit_tables
from congenial.tables.gradient_inverse import GradientInverse
from congenial.tables.inverse import Inverse
from congenial.tables.linear_estimates import Estimates, choose_inverse, completed, finest, in_order
from congenial.tables.measurements import Measurements
from congenial.tables.node_order import Atoms, NodeOrder, node_order
from congenial.tables.sparse_tables import Names, sparse_cells
from congenial.tables.transport_fit import (
    TIES,
    Children,
    as_near_as_the_fit,
    whole_fit,
    without_ties,
)

# ---- Crossing tables ----
# Tables that cross, beside the fit from coarse to fine: nonnegative targets before it, and people
# who move after it.
#
# Whole counts are fitted level by level of one attribute. A table that is not a level of it
# (people by race beside people by education and sex) is a sum over parts of nodes.
#
# **Before** (`nonnegative_cells`). Cells made nonnegative would push such a sum up. So
# nonnegative cells x are found first that have every figure and make
#
#     sum_b w_b |T_b (x - e)|^2,   w_b = p_b (cells that a cell of table b adds up) ^ PRIORITY
#
# least, e the estimates and p_b the precision with which table b is known. With PRIORITY = 0
# these would be least squares given the signs: thousands of empty cells, each lifted a little,
# outweigh the few sums of a coarse table. Tables settled one after the other would be right one
# by one, but the sums of two tables that cross need not be those of any nonnegative cells. So all
# are fitted at once, by the alternating direction method of multipliers (Boyd, Parikh, Chu,
# Peleato and Eckstein 2011, sections 3.1 and 3.4): every step solves normal equations of the same
# structure as the estimates', by the same two solvers. An interior point method needs a matrix of
# all coarser cells.
#
# **After** (`nearer`). Cells are rounded node by node, and a table that is not a node adds up
# hundreds of roundings. People are moved one at a time, always where the sum of squared distances
# of all tables from their targets falls most: between two cells that no figure tells apart, or in
# and out of cells that no figure counts. So every figure stays as it is. Targets are on a grid,
# so that their sums are exact and whoever has them makes the same moves.
#
# Public values in, public values out.

CROSSING_LARGEST = 1_000_000  # cells that targets are found for
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
    tables = [*(margin for margin in dict.fromkeys(margins) if margin != every), every]
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
    weights = {margin: max(alone[margin], measured[margin]) for margin in margins}
    return [weights[margin] * (work.size / margin.size) ** PRIORITY for margin in margins]


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
        if aim.min(initial=0.0) >= 0:
            return aim
        inverse, every = self._inverse(), self.margins[-1]
        cells, dual = np.maximum(aim, 0.0), np.zeros_like(aim)
        for step in range(1, STEPS + 1):
            towards = (self.pull * (cells - dual - aim))[None]
            solved = aim + inverse.apply([(every, towards)]).totals(every)[0]
            relaxed = RELAXED * solved + (1 - RELAXED) * cells
            before, cells = cells, np.maximum(relaxed + dual, 0.0)
            dual = dual + relaxed - cells
            if step % BETWEEN == 0:
                off, moved = self._largest(solved - cells), self._largest(cells - before)
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
        inverse = choose_inverse(self.work.over(self.margins, precisions))
        if isinstance(inverse, GradientInverse):
            return replace(inverse, accuracy=ACCURACY)
        return inverse

    def _largest(self, cells: Floats) -> float:
        """The largest sum in any table, signs aside."""
        return max(float(np.abs(margin.totals(cells)).max()) for margin in self.margins)


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


FitMethod = NodeOrder | PublicProgramme  # the two fitters: nested sums, or anything


@dataclass(frozen=True, eq=False)
class WholeCounts:
    """Whole counts of the finest cells; every table is a sum of them.

    `order` is None where small tables were fitted by programmes, table by table.
    """

    measurements: Measurements
    order: NodeOrder | None
    cells: Ints = field(repr=False)

    def table(self, names: Sequence[str]) -> Ints:
        """Counts of the table over some axes, shaped by them in the order they are named."""
        work = self.measurements
        totals = work.margin(names).totals(self.cells)
        return np.asarray(in_order(totals, names, work), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LevelTargets:
    """What the nodes of one level should be near to, and how precisely: per node."""

    cells: Floats = field(repr=False)  # (nodes, cells of a node)
    p: Floats
    q: Floats


@takes(measurements=Measurements, keep=NAMES)
def rehearse(measurements: Measurements, keep: Sequence[str] = ()) -> FitMethod:
    """How whole counts will be fitted, from public figures alone: call it before a draw.

    From coarse to fine in compiled loops where sums nest (`transport_fit`), otherwise by quadratic
    and integer programmes (`general_fit`). With what it gives, a fit to any estimates has whole
    nonnegative counts that have every figure. Raises StructureError or FigureError where there are
    no whole counts, or none can be found.
    """
    for axis in keep:
        measurements.margin([axis])  # refuses what cuts the cells
    try:
        return rehearse_order(measurements, keep)
    except StructureError:
        if measurements.size > LARGEST:
            raise
    return PublicProgramme.of(measurements)


def rehearse_order(measurements: Measurements, keep: Sequence[str] = ()) -> NodeOrder:
    """The order of the fit; StructureError where there is none that sums can be attained in."""
    order = node_order(measurements, keep)
    for level in range(1, len(order.chain)):
        refuse_unattainable(order, level)
    return order


def refuse_unattainable(order: NodeOrder, level: int) -> None:
    """Sums that figures fix at a node must be sums that its children can have."""
    atoms, above = order.atoms[level], order.atoms[level - 1]
    if atoms.kernel is None or above.kernel is not None:
        return
    inside = atoms.of_cell == atoms.free
    blocks = np.unique(above.of_cell[inside])
    if np.any(blocks < 0):
        raise StructureError(
            "figures leave a sum of cells open below a node whose own sum they do not know.",
            remedy="Publish the same figures for the coarser areas too, or print the estimates.",
        )
    fixed = above.sums[:, blocks].sum(axis=1)
    low, high = (np.zeros(len(fixed), dtype=np.int64) for _ in range(2))
    parents = order.parents(level).array
    np.add.at(low, parents, atoms.low)
    np.add.at(high, parents, atoms.high)
    if np.any((fixed < low) | (fixed > high)):
        raise StructureError(
            "published sums of an area are out of reach of its parts.",
            remedy="Compute all figures from one dataset.",
        )


@takes(estimates=Estimates, keep=NAMES)
def fit_whole_counts(
    estimates: Estimates,
    keep: Sequence[str] = (),
    method: FitMethod | None = None,
    deviations: Mapping[Names, Floats] | None = None,
) -> WholeCounts:
    """Whole counts near all estimates. `keep` names partitions that become nodes of the fit.

    `method` is what `rehearse` found before the draw; with it there are always counts.
    `deviations`: of every table, where counts are aimed at posterior means (`sparse_tables`).
    """
    method = rehearse(estimates.measurements, keep) if method is None else method
    estimates = completed(estimates, CROSSING_LARGEST)
    if isinstance(method, PublicProgramme):
        return WholeCounts(estimates.measurements, None, fit_tables(estimates, keep, method))
    followed, targets = _crossing(method), None
    if deviations:
        targets = sparse_cells(estimates.measurements, estimates.cells, deviations)
    if targets is None:
        if not followed:
            return fit_to_targets(method, targets_of(estimates, method))
        targets = nonnegative_cells(estimates, followed)
    whole = fit_to_targets(method, level_targets(method, targets))
    if not followed:
        return whole
    return replace(whole, cells=nearer(method.measurements, followed, whole.cells, targets))


def level_targets(order: NodeOrder, cells: Floats) -> list[LevelTargets]:
    """Sums of given cells at every level, with the information below and at each node."""
    return _level_targets(order, lambda margin: margin.totals(cells))


def targets_of(estimates: Estimates, order: NodeOrder) -> list[LevelTargets]:
    """Estimates of every level, with the information below and at each node."""
    return _level_targets(order, estimates.totals)


def _level_targets(order: NodeOrder, totals_of: Callable[[Margin], Floats]) -> list[LevelTargets]:
    roles_found = []
    for level, (p, q) in enumerate(level_precisions(order)):
        totals = totals_of(order.level_margin(level))
        cells = np.moveaxis(totals, order.tree, 0).reshape(-1, order.cells)
        roles_found.append(LevelTargets(np.ascontiguousarray(cells), p, q))
    return roles_found


def _crossing(order: NodeOrder) -> list[Margin]:
    """Tables to be followed where some are sums over parts of nodes; none if all are nodes."""
    roles, work = order.roles(), order.measurements
    if work.size > CROSSING_LARGEST or "sum of nodes" not in roles.values():
        return []
    pairs = zip(roles.values(), work.margins, strict=True)
    levels = [order.level_margin(level) for level in range(len(order.chain))]
    return list(dict.fromkeys([*(margin for role, margin in pairs if role != "sum"), *levels]))


def level_precisions(order: NodeOrder) -> list[tuple[Floats, Floats]]:
    """Precision of a node's cells (p) and, beyond that, of its groups' sums (q), per level.

    From fine to coarse: a sum of independent parts has the sum of their variances, and what was
    measured at the node itself adds to its precision.
    """
    size = order.cells / (int(order.groups.max()) + 1)
    own = [own_precisions(order, level) for level in range(len(order.chain))]
    least = 1e-9 * max(order.measurements.precisions)  # no cell is left without any
    ends: list[tuple[Floats, Floats]] = []
    within, sums = np.zeros(0), np.zeros(0)
    for level in reversed(range(len(order.chain))):
        cell, group = own[level]
        if not ends:
            nodes = order.chain[level].size
            within = np.full(nodes, max(cell, least))
            sums = within + size * group
        else:
            parents = order.parents(level + 1).array
            within = 1 / np.bincount(parents, weights=1 / within) + cell
            sums = 1 / np.bincount(parents, weights=1 / sums) + cell + size * group
        ends.insert(0, (within, np.maximum(0.0, (sums - within) / size)))
    return ends


def own_precisions(order: NodeOrder, level: int) -> tuple[float, float]:
    """Precision with which a level's nodes are measured: cell by cell, and by groups' sums."""
    work, cell, group = order.measurements, 0.0, 0.0
    for b in work.measured:
        margin = work.margins[b]
        if margin.partitions[order.tree] != order.chain[level]:
            continue
        cells_shown = prod(margin.shape) // margin.shape[order.tree]
        if cells_shown == order.cells:
            cell += work.precisions[b]
        elif _shows_groups(order, margin):
            group += work.precisions[b]
    return cell, group


def _shows_groups(order: NodeOrder, margin: Margin) -> bool:
    inner = Margin(tuple(margin.partitions[at] for at in order.rest))
    numbers = inner.spread(np.arange(inner.size).reshape(inner.shape)).reshape(-1)
    return bool(np.array_equal(numbers, order.groups))


def fit_to_targets(
    order: NodeOrder, targets: Sequence[LevelTargets], top: Ints | None = None
) -> WholeCounts:
    """Whole counts near given targets, level by level; `top`: those of the top node, if known."""
    counts: Ints | None = None
    for level, target in enumerate(targets):
        if counts is None and top is not None:
            counts = top.reshape(1, -1)
            continue
        whole = np.zeros((order.chain[level].size, order.cells), dtype=np.int64)
        for nodes, columns in _families(order, level, counts):
            whole[nodes] = _fit_node(order, level, target, nodes, columns)
        counts = whole
    assert counts is not None
    return WholeCounts(order.measurements, order, _as_cells(order, counts))


def _families(
    order: NodeOrder, level: int, above: Ints | None
) -> Iterator[tuple[Ints, Ints | None]]:
    """Nodes of a level that have one parent, with the parent's counts; None at the top."""
    if above is None:
        yield np.zeros(1, dtype=np.int64), None
        return
    parents = order.parents(level).array
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(len(above) + 1))
    for node, columns in enumerate(above):
        yield by_parent[starts[node] : starts[node + 1]], columns


def as_near(
    order: NodeOrder, targets: Sequence[LevelTargets], cells: Ints, top: Ints | None = None
) -> bool:
    """Whether whole counts are as near to the targets as a fit, level by level given the one above.

    Counts that differ from a fit by ties only are. That sums are as published is for others to say.
    `top`: the counts of the top node, if known.
    """
    above: Ints | None = None
    for level, target in enumerate(targets):
        totals = order.level_margin(level).totals(cells)
        counts = np.moveaxis(totals, order.tree, 0).reshape(-1, order.cells)
        if above is None and top is not None:
            if not np.array_equal(counts, top.reshape(1, -1)):
                return False
            above = counts
            continue
        for nodes, columns in _families(order, level, above):
            if columns is not None and len(nodes) == 1:
                continue  # the parent's counts
            if not _family_as_near(order, level, target, nodes, columns, counts[nodes]):
                return False
        above = counts
    return True


def _family_as_near(
    order: NodeOrder,
    level: int,
    target: LevelTargets,
    nodes: Ints,
    columns: Ints | None,
    counts: Ints,
) -> bool:
    """Whether counts of nodes with one parent are as near as a fit: open sums, then cells."""
    atoms, children = order.atoms[level], _children(order, level, target, nodes, columns)
    if atoms.kernel is not None:
        chosen = counts[:, atoms.of_cell == atoms.free].sum(axis=1)
        if not _OpenSums.of(atoms, target, nodes, columns).as_near(chosen):
            return False
        here = Atoms(atoms.of_cell, atoms.sums[nodes], atoms.kernel)
        children = replace(children, rows=here.given(chosen))
    return as_near_as_the_fit(children, counts[:, order.possible])


def _as_cells(order: NodeOrder, counts: Ints) -> Ints:
    shape = order.measurements.shape
    moved = counts.reshape(shape[order.tree], *(shape[at] for at in order.rest))
    return np.moveaxis(moved, 0, order.tree)


def _fit_node(
    order: NodeOrder, level: int, target: LevelTargets, nodes: Ints, columns: Ints | None
) -> Ints:
    """Whole counts of some nodes of a level that have one parent (None: no parent)."""
    if columns is not None and len(nodes) == 1:
        return columns[None]
    counts = np.zeros((len(nodes), order.cells), dtype=np.int64)
    counts[:, order.possible] = whole_fit(_children(order, level, target, nodes, columns))
    return counts


def _children(
    order: NodeOrder, level: int, target: LevelTargets, nodes: Ints, columns: Ints | None
) -> Children:
    """The fit of some nodes that have one parent."""
    atoms = order.atoms[level]
    cells = np.flatnonzero(order.possible)
    return Children(
        target.cells[np.ix_(nodes, cells)],
        target.p[nodes],
        target.q[nodes],
        np.unique(order.groups[cells], return_inverse=True)[1].reshape(-1),
        atoms.of_cell[cells],
        _atom_sums(atoms, target, nodes, columns),
        None if columns is None else columns[cells],
    )


def _atom_sums(atoms: Atoms, target: LevelTargets, nodes: Ints, columns: Ints | None) -> Ints:
    """Sums of atoms at some nodes: known, or chosen first where one degree of freedom is left."""
    if atoms.kernel is None:
        return atoms.sums[nodes]
    here = Atoms(atoms.of_cell, atoms.sums[nodes], atoms.kernel)
    return here.given(_OpenSums.of(atoms, target, nodes, columns).whole())


@dataclass(frozen=True, eq=False)
class _OpenSums:
    """Sums of some nodes that figures leave open: where they should be, and between which ends."""

    real: Floats
    low: Ints
    high: Ints
    total: int | None

    @classmethod
    def of(cls, atoms: Atoms, target: LevelTargets, nodes: Ints, columns: Ints | None) -> _OpenSums:
        inside = atoms.of_cell == atoms.free
        aim = target.cells[np.ix_(nodes, np.flatnonzero(inside))].sum(axis=1)
        low, high = atoms.low[nodes], atoms.high[nodes]
        if columns is None:
            return cls(np.clip(aim, low, high), low, high, None)
        total = int(columns[inside].sum())
        return cls(_between(aim, 1 / target.p[nodes], low, high, total), low, high, total)

    def whole(self) -> Ints:
        """The nearest whole numbers."""
        real = without_ties(self.real, self.real)
        if self.total is None:
            return np.rint(real).astype(np.int64)
        return _within_bounds(real, self.low, self.high, self.total)

    def as_near(self, chosen: Ints) -> bool:
        """Whether other whole numbers between the ends are as near, ties and rounding aside."""
        off, least = (np.sum((counts - self.real) ** 2) for counts in (chosen, self.whole()))
        inside = np.all((self.low <= chosen) & (chosen <= self.high))
        return bool(inside and off <= least + TIES * len(chosen))


def _between(aim: Floats, variance: Floats, low: Ints, high: Ints, total: int) -> Floats:
    """Numbers near `aim` between bounds, with a given sum: a common shift per variance."""
    reach = float(np.max((np.abs(aim) + np.abs(low) + np.abs(high) + 1) / variance))
    down, up = -reach, reach
    for _ in range(200):
        middle = (down + up) / 2
        if np.clip(aim + middle * variance, low, high).sum() < total:
            down = middle
        else:
            up = middle
    return np.clip(aim + up * variance, low, high)


def _within_bounds(x: Floats, low: Ints, high: Ints, total: int) -> Ints:
    """Whole numbers between bounds with a given sum: floors, then the largest fractions up."""
    whole = np.clip(np.floor(x + 1e-9), low, high).astype(np.int64)
    order = np.argsort(whole - x, kind="stable")
    while whole.sum() != total:
        step = 1 if whole.sum() < total else -1
        able = [i for i in order if low[i] <= whole[i] + step <= high[i]]
        if not able:
            raise StructureError(
                "no whole counts keep the bounds that the figures imply.",
                remedy="Compute all figures from one dataset.",
            )
        for i in able[: abs(total - int(whole.sum()))]:
            whole[i] += step
    return whole
