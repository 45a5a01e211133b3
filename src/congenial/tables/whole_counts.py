"""Nonnegative whole counts near all estimates at once: one set of counts whose sums are the tables.

Fitted from coarse to fine: every node's cells are chosen near their estimates, with the exact sums
that figures give and adding up to the counts of the node above. Making cells nonnegative one by one
would push sums up; here a sum is settled before its parts. Public values in, public values out: no
randomness, nothing spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from congenial.data.argument_rules import NAMES, takes
from congenial.data.workload import Ints, Margin
from congenial.errors import StructureError
from congenial.tables.crossing_tables import LARGEST as CROSSING_LARGEST
from congenial.tables.crossing_tables import nearer, nonnegative_cells
from congenial.tables.general_fit import LARGEST, PublicProgramme, fit_tables
from congenial.tables.linear_estimates import Estimates, completed, in_order
from congenial.tables.measurements import Floats, Measurements
from congenial.tables.node_order import Atoms, NodeOrder, node_order
from congenial.tables.transport_fit import (
    TIES,
    Children,
    as_near_as_the_fit,
    whole_fit,
    without_ties,
)

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
    known = np.unique(above.of_cell[inside])
    if np.any(known < 0):
        raise StructureError(
            "figures leave a sum of cells open below a node whose own sum they do not know.",
            remedy="Publish the same figures for the coarser areas too, or print the estimates.",
        )
    fixed = above.sums[:, known].sum(axis=1)
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
    estimates: Estimates, keep: Sequence[str] = (), method: FitMethod | None = None
) -> WholeCounts:
    """Whole counts near all estimates. `keep` names partitions that become nodes of the fit.

    `method` is what `rehearse` found before the draw; with it there are always counts.
    """
    method = rehearse(estimates.measurements, keep) if method is None else method
    estimates = completed(estimates, CROSSING_LARGEST)
    if isinstance(method, PublicProgramme):
        return WholeCounts(estimates.measurements, None, fit_tables(estimates, keep, method))
    followed = _crossing(method)
    if not followed:
        return fit_to_targets(method, targets_of(estimates, method))
    targets = nonnegative_cells(estimates, followed)
    whole = fit_to_targets(method, _level_targets(method, lambda margin: margin.totals(targets)))
    return replace(whole, cells=nearer(method.measurements, followed, whole.cells, targets))


def targets_of(estimates: Estimates, order: NodeOrder) -> list[LevelTargets]:
    """Estimates of every level, with the information below and at each node."""
    return _level_targets(order, estimates.totals)


def _level_targets(order: NodeOrder, totals_of: Callable[[Margin], Floats]) -> list[LevelTargets]:
    found = []
    for level, (p, q) in enumerate(level_precisions(order)):
        totals = totals_of(order.level_margin(level))
        cells = np.moveaxis(totals, order.tree, 0).reshape(-1, order.cells)
        found.append(LevelTargets(np.ascontiguousarray(cells), p, q))
    return found


def _crossing(order: NodeOrder) -> list[Margin]:
    """Tables to be followed where some are sums over parts of nodes; none if all are nodes."""
    roles, work = order.roles(), order.measurements
    if work.size > CROSSING_LARGEST or "sum of nodes" not in roles.values():
        return []
    pairs = zip(roles.values(), work.margins, strict=True)
    levels = [order.level_margin(level) for level in range(len(order.chain))]
    return list(dict.fromkeys([*(one for role, one in pairs if role != "sum"), *levels]))


def level_precisions(order: NodeOrder) -> list[tuple[Floats, Floats]]:
    """Precision of a node's cells (p) and, beyond that, of its groups' sums (q), per level.

    From fine to coarse: a sum of independent parts has the sum of their variances, and what was
    measured at the node itself adds to its precision.
    """
    size = order.cells / (int(order.groups.max()) + 1)
    own = [own_precisions(order, level) for level in range(len(order.chain))]
    least = 1e-9 * max(order.measurements.precisions)  # no cell is left without any
    found: list[tuple[Floats, Floats]] = []
    within, sums = np.zeros(0), np.zeros(0)
    for level in reversed(range(len(order.chain))):
        cell, group = own[level]
        if not found:
            nodes = order.chain[level].size
            within = np.full(nodes, max(cell, least))
            sums = within + size * group
        else:
            parents = order.parents(level + 1).array
            within = 1 / np.bincount(parents, weights=1 / within) + cell
            sums = 1 / np.bincount(parents, weights=1 / sums) + cell + size * group
        found.insert(0, (within, np.maximum(0.0, (sums - within) / size)))
    return found


def own_precisions(order: NodeOrder, level: int) -> tuple[float, float]:
    """Precision with which a level's nodes are measured: cell by cell, and by groups' sums."""
    work, cell, group = order.measurements, 0.0, 0.0
    for b in work.measured:
        margin = work.margins[b]
        if margin.partitions[order.tree] != order.chain[level]:
            continue
        shown = prod(margin.shape) // margin.shape[order.tree]
        if shown == order.cells:
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
        found = np.zeros((order.chain[level].size, order.cells), dtype=np.int64)
        for nodes, columns in _families(order, level, counts):
            found[nodes] = _fit_node(order, level, target, nodes, columns)
        counts = found
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
        known = Atoms(atoms.of_cell, atoms.sums[nodes], atoms.kernel)
        children = replace(children, rows=known.given(chosen))
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
    found = np.zeros((len(nodes), order.cells), dtype=np.int64)
    found[:, order.possible] = whole_fit(_children(order, level, target, nodes, columns))
    return found


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
    known = Atoms(atoms.of_cell, atoms.sums[nodes], atoms.kernel)
    return known.given(_OpenSums.of(atoms, target, nodes, columns).whole())


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
        off, least = (np.sum((one - self.real) ** 2) for one in (chosen, self.whole()))
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
