"""The order in which whole counts are fitted, from coarse to fine, worked out from public figures.

One attribute carries a chain of nested partitions, as in `structure`; a node is a block of one of
them, and holds the counts of all other attributes (its cells) that are added up in that block. Each
level is fitted inside the one above it. Figures fix sums of a node's cells: cells that no figure
tells apart are one atom. If a level's figures fix every atom, or all but one degree of freedom
(a total, one attribute and another one: a 2 x 2 table of atoms), whole counts exist wherever bounds
that children imply are kept by their parents; these bounds are worked out here, bottom-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.workload import Margin, Partition
from congenial.errors import FigureError, StructureError
from congenial.tables.measurements import Measurements, common_refinement, relative
from congenial.tables.structure import figure_rows

CONCERNS = "a figure or a structural zero concerns"
LARGEST_NODE = 4_000  # cells of a node


@dataclass(frozen=True, eq=False)
class Atoms:
    """Sums of a level's nodes that figures know: `of_cell` numbers atoms (-1: no figure sees it).

    `sums[node, atom]` are known where `kernel` is None; otherwise they are `sums` plus any multiple
    of `kernel` (entries -1, 0, 1) that keeps them nonnegative and `low <= sums[:, free] <= high`.
    """

    of_cell: Ints
    sums: Ints = field(repr=False)
    kernel: Ints | None = None
    low: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    high: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @property
    def free(self) -> int:
        """The atom whose sum is chosen where one degree of freedom is left."""
        assert self.kernel is not None
        return int(np.flatnonzero(self.kernel)[0])

    def given(self, chosen: Ints) -> Ints:
        """All atoms' sums, given those of the free atom."""
        assert self.kernel is not None
        step = (chosen - self.sums[:, self.free]) * self.kernel[self.free]
        return np.asarray(self.sums + step[:, None] * self.kernel)


@dataclass(frozen=True, eq=False)
class NodeOrder:
    """The levels of the fit from coarse to fine, and what becomes of each table."""

    measurements: Measurements
    tree: int
    chain: tuple[Partition, ...]  # from coarse (one block) to fine
    groups: Ints  # of a node's cells: sums that are fitted beside the cells
    possible: Any  # cells of a node that are not structurally zero
    atoms: tuple[Atoms, ...]
    kept: tuple[str, ...] = ()

    @property
    def cells(self) -> int:
        """Cells of a node."""
        return len(self.groups)

    @cached_property
    def rest(self) -> tuple[int, ...]:
        """Places of the attributes of a node's cells."""
        return tuple(at for at in range(len(self.measurements.shape)) if at != self.tree)

    def parents(self, level: int) -> Partition:
        """The node of the level above that each node belongs to."""
        return relative(self.chain[level - 1], self.chain[level])

    def level_margin(self, level: int) -> Margin:
        """The table of all nodes' cells."""
        partitions = [Partition.levels(levels) for levels in self.measurements.shape]
        partitions[self.tree] = self.chain[level]
        return Margin(tuple(partitions))

    def roles(self) -> dict[tuple[str, ...], str]:
        """Per table of the workload: how well its printed counts can follow its estimates.

        "node": fitted as such; "group sums": fitted beside the cells of its level; "sum of nodes":
        added up from cells of its level without a term of its own; "sum": below that, a sum over
        parts of nodes, which keeps a bias.
        """
        tables = self.measurements.workload.tables
        pairs = zip(tables, self.measurements.margins, strict=True)
        return {names: self.role(margin) for names, margin in pairs}

    def role(self, margin: Margin) -> str:
        """The same for one table over the cells."""
        if margin.partitions[self.tree] not in self.chain:
            return "sum"
        numbers = _cell_numbers(margin, self.rest)
        if len(np.unique(numbers)) == self.cells:
            return "node"
        return "group sums" if np.array_equal(numbers, self.groups) else "sum of nodes"


def node_order(measurements: Measurements, keep: Sequence[str] = ()) -> NodeOrder:
    """The order of the fit; StructureError where figures have no place in it, before any draw."""
    reasons: list[str] = []
    by_size = sorted(range(len(measurements.shape)), key=lambda at: -measurements.shape[at])
    for tree in by_size:
        order = _order_at(measurements, tree, keep)
        if isinstance(order, NodeOrder):
            return order
        reasons.append(order)
    telling = [reason for reason in reasons if not reason.startswith(CONCERNS)] or reasons
    raise StructureError(
        f"whole counts cannot be fitted from coarse to fine: {telling[0]}.",
        remedy="Print the estimates, or publish figures that follow the tables.",
    )


def order_along(measurements: Measurements, tree: int, groups: Ints) -> NodeOrder:
    """The order along one attribute with given groups; StructureError where there is none."""
    order = _order_at(measurements, tree, ())
    if isinstance(order, str):
        raise StructureError(
            f"whole counts cannot be fitted from coarse to fine: {order}.",
            remedy="Publish figures that follow the tables.",
        )
    return replace(order, groups=groups)


def with_bounds(order: NodeOrder, low: Ints, high: Ints) -> NodeOrder:
    """The same order where more is known of what the finest nodes can hold."""
    atoms = list(order.atoms)
    if atoms[-1].kernel is None:
        return order
    last = atoms[-1]
    low, high = np.maximum(low, last.low), np.minimum(high, last.high)
    atoms[-1] = Atoms(last.of_cell, last.sums, last.kernel, low, high)
    for level in reversed(range(len(atoms) - 1)):
        if atoms[level].kernel is not None:
            atoms[level] = _pushed(atoms[level], atoms[level + 1], order.parents(level + 1))
            _refuse_impossible(atoms[level])
    return replace(order, atoms=tuple(atoms))


def groups_of(measurements: Measurements, tree: int) -> Ints:
    """The sums of a node's cells that are fitted beside the cells."""
    return _groups(measurements, [at for at in range(len(measurements.shape)) if at != tree])


def _order_at(measurements: Measurements, tree: int, keep: Sequence[str]) -> NodeOrder | str:
    name = measurements.names[tree]
    figures = measurements.figure_rows
    for axis in keep:
        if measurements.workload.schema.axis(axis).base != name:
            return f"'{axis}' is to be kept and is no partition of {name}"
    if measurements.figures.bounds:
        return "there are public bounds"
    if any(tree in figure.mentions for figure in figures):
        return f"{CONCERNS} some levels of {name} only"
    chain = _chain(measurements, tree)
    if chain is None:
        return f"partitions of {name} do not nest"
    rest = [at for at in range(len(measurements.shape)) if at != tree]
    if prod(measurements.shape[at] for at in rest) > LARGEST_NODE:
        return f"a node of {name} has more than {LARGEST_NODE} cells"
    for axis in keep:
        chain = _with_kept(measurements, chain, tree, axis)
    possible = _possible(measurements, rest)
    levels = [_known(measurements, tree, partition, rest) for partition in chain]
    atoms = _all_atoms(levels, chain, possible)
    if isinstance(atoms, str):
        return atoms
    groups = _groups(measurements, rest)
    return NodeOrder(measurements, tree, chain, groups, possible, atoms, tuple(keep))


def _chain(measurements: Measurements, tree: int) -> tuple[Partition, ...] | None:
    """From one block to levels, with every partition of figures and of tables that nests."""
    levels = measurements.shape[tree]
    figures = [figure.by.partitions[tree] for figure in measurements.figure_rows]
    chain = {Partition.whole(levels), Partition.levels(levels), *figures}
    if not _nested(chain):
        return None
    for margin in measurements.margins:
        trial = {*chain, margin.partitions[tree]}
        if _nested(trial):
            chain = trial
    return tuple(sorted(chain, key=lambda one: one.size))


def _nested(partitions: set[Partition]) -> bool:
    ordered = sorted(partitions, key=lambda one: -one.size)
    return all(ordered[i].refines(ordered[i + 1]) for i in range(len(ordered) - 1))


def _with_kept(
    measurements: Measurements, chain: tuple[Partition, ...], tree: int, axis: str
) -> tuple[Partition, ...]:
    """The chain with a named partition inside the finest level that does not refine it."""
    partition = measurements.margin([axis]).partitions[tree]
    below = next(i for i, level in enumerate(chain) if level.refines(partition))
    if below == 0:
        return chain
    between = common_refinement([chain[below - 1], partition])
    return chain if between in chain else (*chain[:below], between, *chain[below:])


def _possible(measurements: Measurements, rest: Sequence[int]) -> Any:
    cells = prod(measurements.shape[at] for at in rest)
    possible = np.ones(cells, dtype=bool)
    for figure in measurements.figure_rows[len(measurements.figures.equalities) :]:
        along = [measurements.shape[at] if at in figure.mentions else 1 for at in rest]
        shape = [measurements.shape[at] for at in rest]
        possible &= (np.broadcast_to(figure.weight.reshape(along), shape) == 0).reshape(-1)
    return possible


def _groups(measurements: Measurements, rest: Sequence[int]) -> Ints:
    """The sums of cells that get a term of their own: those of the largest such measured table."""
    cells = prod(measurements.shape[at] for at in rest)
    best = np.arange(cells)
    reasons = []
    for b in measurements.measured:
        numbers = _cell_numbers(measurements.margins[b], rest)
        size = int(numbers.max()) + 1
        if 1 < size < cells:
            reasons.append((size, measurements.precisions[b], numbers))
    return max(reasons, key=lambda each: each[:2])[2] if reasons else best


def _cell_numbers(margin: Margin, rest: Sequence[int]) -> Ints:
    """Which cell of a table each cell of a node belongs to, the tree's attribute aside."""
    inner = Margin(tuple(margin.partitions[at] for at in rest))
    numbers = inner.spread(np.arange(inner.size).reshape(inner.shape))
    return np.asarray(numbers, dtype=np.int64).reshape(-1)


# ---- what figures know of each level ---------------------------------------------------------


def _known(
    measurements: Measurements, tree: int, partition: Partition, rest: Sequence[int]
) -> tuple[Floats, Ints]:
    """Rows over a node's cells that figures fix, and their values at every node of a level."""
    cells = prod(measurements.shape[at] for at in rest)
    rows, values = [np.zeros((0, cells))], [np.zeros((partition.size, 0), dtype=np.int64)]
    for i, figure in enumerate(measurements.figure_rows[: len(measurements.figures.equalities)]):
        finer = figure.by.partitions[tree]
        if not finer.refines(partition):
            continue
        counts = measurements.published(i)
        moved = np.moveaxis(counts, tree, 0).reshape(finer.size, -1)
        sums = np.zeros((partition.size, moved.shape[1]), dtype=np.int64)
        np.add.at(sums, relative(partition, finer).array, moved)
        inside = figure_rows(figure, rest, measurements.shape)
        used = np.any(inside != 0, axis=1)
        rows.append(inside[used])
        values.append(sums[:, used])
    return np.vstack(rows), np.hstack(values)


def _all_atoms(
    levels: Sequence[tuple[Floats, Ints]], chain: Sequence[Partition], possible: Any
) -> tuple[Atoms, ...] | str:
    """Atoms of every level from coarse to fine; bounds go up from fine to coarse."""
    all_lists: list[Atoms] = []
    for level in reversed(range(len(chain))):
        atoms = _atoms(*levels[level], possible)
        if isinstance(atoms, str):
            return atoms
        if all_lists and all_lists[0].kernel is not None and atoms.kernel is not None:
            if not np.array_equal(all_lists[0].of_cell, atoms.of_cell):
                return "figures of two levels each leave one sum open"
            atoms = _pushed(atoms, all_lists[0], relative(chain[level], chain[level + 1]))
        _refuse_impossible(atoms)
        all_lists.insert(0, atoms)
    return tuple(all_lists)


def _atoms(rows: Floats, values: Ints, possible: Any) -> Atoms | str:
    """Cells with equal columns as atoms, and what the figures say of their sums."""
    columns = np.where(possible, rows, 0.0)
    used = np.any(columns != 0, axis=0)
    of_cell = np.full(len(possible), -1, dtype=np.int64)
    if not used.any():
        return Atoms(of_cell, np.zeros((len(values), 0), dtype=np.int64))
    distinct, number = np.unique(columns[:, used].T, axis=0, return_inverse=True)
    of_cell[used] = number.reshape(-1)
    matrix = distinct.T
    solved = np.linalg.lstsq(matrix, values.T.astype(float), rcond=None)[0].T
    _, sizes, right = np.linalg.svd(matrix)
    rank = int(np.sum(sizes > 1e-9))
    kernel = right[rank:]
    if len(kernel) > 1:
        return "the figures leave several sums of cells open"
    if not len(kernel):
        sums = np.rint(solved).astype(np.int64)
        return _checked(Atoms(of_cell, sums), matrix, values)
    unit = kernel[0] / np.abs(kernel[0]).max()
    whole = np.rint(unit).astype(np.int64)
    if np.abs(unit - whole).max() > 1e-9:
        return "a weighted figure leaves a sum of cells open"
    free = int(np.flatnonzero(whole)[0])
    step = (np.rint(solved[:, free]) - solved[:, free]) * whole[free]
    sums = np.rint(solved + step[:, None] * whole).astype(np.int64)
    atoms = Atoms(of_cell, sums, whole)
    checked = _checked(atoms, matrix, values)
    return checked if isinstance(checked, str) else _bounded(checked)


def _checked(atoms: Atoms, matrix: Floats, values: Ints) -> Atoms | str:
    if not np.array_equal(np.rint(atoms.sums @ matrix.T).astype(np.int64), values):
        return "the figures have no whole solution per node"
    return atoms


def _bounded(atoms: Atoms) -> Atoms:
    """The least and largest sum of the free atom that leaves no atom negative."""
    assert atoms.kernel is not None
    direction = atoms.kernel * atoms.kernel[atoms.free]
    base = atoms.sums[:, [atoms.free]]
    low = (base - atoms.sums)[:, direction == 1].max(axis=1)
    down = direction == -1
    high = (base + atoms.sums)[:, down].min(axis=1) if down.any() else np.full(len(base), 2**62)
    return Atoms(atoms.of_cell, atoms.sums, atoms.kernel, np.maximum(low, 0), high)


def _pushed(atoms: Atoms, below: Atoms, parents: Partition) -> Atoms:
    """Bounds of the free atom that the children imply."""
    low, high = (np.zeros(parents.size, dtype=np.int64) for _ in range(2))
    np.add.at(low, parents.array, below.low)
    np.add.at(high, parents.array, below.high)
    low, high = np.maximum(low, atoms.low), np.minimum(high, atoms.high)
    return Atoms(atoms.of_cell, atoms.sums, atoms.kernel, low, high)


def _refuse_impossible(atoms: Atoms) -> None:
    fixed = atoms.kernel is None
    bad = np.any(atoms.sums < 0) if fixed else np.any(atoms.high < atoms.low)
    if bad:
        raise FigureError(
            "no whole counts agree with all published figures.",
            remedy="Compute the figures from one dataset.",
        )
