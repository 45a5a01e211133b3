"""Variances of the best linear estimates of several tables, before anything is drawn.

Noise of precision p_b on each table T_b, together with exact figures, gives every table a
generalised least squares estimate. Each attribute has a chain of partitions; its functions split
into orthogonal steps from one partition to the next finer one. A table whose blocks have equal
sizes measures every step it contains with information p_b m_b (m_b finest cells per block), so
attributes with equal blocks decouple: per product of steps A the information is the sum over tables
that contain A. One attribute may have blocks of any size (geography): per A its nodes are estimated
by two passes over a tree, up and down. Exact figures have infinite information on the steps that
they contain, with blocks of any size.

Regions and urban areas of the same counties cut across each other: their partitions are no chain.
Each then has steps of its own, taken to be orthogonal to the others', as they are where regions and
urban areas are crossed evenly. That is good enough to choose precisions, and designs say so.

Variances are those of continuous noise: upper bounds for discrete Gaussian noise given figures.
Derivatives go backwards through both passes: exact to rounding, for twice the work of a variance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from congenial.data.arrays import Floats
from congenial.data.workload import Margin, Partition, Workload
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.pairs.figure_margins import figure_margins


class VarianceModel(Protocol):
    """What a design needs to know of the estimates: convex in p, and V(t p) = V(p) / t."""

    def variances(self, precisions: Floats) -> Floats:
        """Mean variance of the cells of each table, for positive precisions."""
        ...

    def gains(self, precisions: Floats, weights: Floats) -> Floats:
        """-d/dp_c of sum_b weights_b V_b, for each table c; not negative."""
        ...


@dataclass(frozen=True, eq=False)
class Tree:
    """One attribute's chain, coarsest first, nodes that look alike kept once.

    Nodes of a step look alike if what is below and above them does. `parents[k]` is the node above
    each node of step k+1, `alike[k]` how many such children the parent has, `counts[k]` how many
    such nodes there are in all.
    """

    parents: tuple[NDArray[np.int64], ...] = field(repr=False)
    alike: tuple[Floats, ...] = field(repr=False)
    counts: tuple[Floats, ...] = field(repr=False)

    @classmethod
    def of(cls, chain: Sequence[Partition]) -> Tree:
        """The tree of partitions, each refined by the next, the first of one block."""
        shapes, children = _shapes(chain)
        nodes, parents, alike, counts = [int(shapes[0][0])], [], [], [np.ones(1)]
        for step in children:
            above, below, times = [], [], []
            for at, shape in enumerate(nodes):
                for child, number in step[shape]:
                    above.append(at)
                    below.append(child)
                    times.append(float(number))
            parents.append(np.array(above, dtype=np.int64))
            alike.append(np.array(times))
            counts.append(counts[-1][parents[-1]] * alike[-1])
            nodes = below
        return cls(tuple(parents), tuple(alike), tuple(counts))

    def totals(self, information: Floats, exact: NDArray[np.bool_]) -> Floats:
        """Sum over the nodes of each step of the variances of their totals.

        `information` and `exact` have one column per step, the last one measured or exact; rows
        are independent problems.
        """
        steps = self._steps(information, exact)
        variances = [v @ count for v, count in zip(steps.variance, self.counts, strict=False)]
        return np.stack(variances, axis=1)

    def slopes(self, information: Floats, exact: NDArray[np.bool_], pull: Floats) -> Floats:
        """Derivative of the sum of `pull` times `totals` by each entry of `information`.

        The two passes of `_steps`, backwards: one line for each line there.
        """
        steps, leaf = self._steps(information, exact), information.shape[1] - 1
        starts = [self._starts(k) for k in range(leaf)]
        to_alone: list[Floats] = [np.zeros_like(alone) for alone in steps.alone]
        to_below: list[Floats] = [np.zeros_like(below) for below in steps.below]
        felt = pull[:, leaf:] * self.counts[leaf]
        for k in range(leaf - 1, -1, -1):
            share, above = steps.share[k], steps.variance[k][:, self.parents[k]]
            sums = steps.below[k][:, self.parents[k]]
            rest = np.divide(above, sums, out=np.zeros_like(sums), where=sums != 0)
            to_alone[k + 1] = felt * (1 - 2 * share + 2 * share * rest)
            to_below[k] = np.add.reduceat(felt * share**2 * (1 - 2 * rest), starts[k], axis=1)
            felt = np.add.reduceat(felt * share**2, starts[k], axis=1)
            felt = felt + pull[:, k, None] * self.counts[k]
        to_alone[0] = to_alone[0] + felt
        gradients = []
        for k in range(leaf):
            gradients.append(-(to_alone[k] * steps.alone[k] ** 2).sum(axis=1))
            free = np.where(exact[:, k, None], 0, to_alone[k])
            passed = to_below[k] + free / (1 + steps.below[k] * information[:, k, None]) ** 2
            to_alone[k + 1] = to_alone[k + 1] + passed[:, self.parents[k]] * self.alike[k]
        gradients.append(-(to_alone[leaf] * steps.alone[leaf] ** 2).sum(axis=1))
        return np.stack(gradients, axis=1)

    def _starts(self, k: int) -> NDArray[np.int64]:
        """Where the children of each node of a step begin."""
        return np.searchsorted(self.parents[k], np.arange(len(self.counts[k])))

    def _steps(self, information: Floats, exact: NDArray[np.bool_]) -> _Steps:
        """From the leaves up, what each node's own branch says of its total; then down."""
        leaf = information.shape[1] - 1
        ones = np.ones((1, len(self.counts[leaf])))
        up = np.where(exact[:, leaf:], 0, 1 / np.where(exact, 1, information)[:, leaf:]) * ones
        alone: list[Floats] = [up]
        below: list[Floats] = []
        shares: list[Floats] = []
        for k in range(leaf - 1, -1, -1):
            below.insert(0, np.add.reduceat(alone[0] * self.alike[k], self._starts(k), axis=1))
            here = below[0] / (1 + below[0] * information[:, k, None])
            alone.insert(0, np.where(exact[:, k, None], 0, here))
        variance = [alone[0]]
        for k in range(leaf):
            sums = below[k][:, self.parents[k]]
            share = np.divide(alone[k + 1], sums, out=np.zeros_like(sums), where=sums != 0)
            shares.append(share)
            above = variance[k][:, self.parents[k]]
            variance.append(alone[k + 1] * (1 - share) + share**2 * above)
        return _Steps(alone, below, shares, variance)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Variances at every step of a tree, one line per problem: of a node's total from its own
    branch alone, of its children's sum, its share in that sum, and of its total from everything.
    """

    alone: list[Floats]
    below: list[Floats]
    share: list[Floats]
    variance: list[Floats]


Children = list[dict[int, list[tuple[int, int]]]]


def _shapes(chain: Sequence[Partition]) -> tuple[list[NDArray[np.int64]], Children]:
    """What is below each node as a number, and the children (shape, how many) of each shape."""
    shapes = [np.zeros(chain[-1].size, dtype=np.int64)]
    children: Children = []
    for coarse, fine in reversed(list(pairwise(chain))):
        parent = np.zeros(fine.size, dtype=np.int64)
        parent[fine.array] = coarse.array
        below: list[Counter[int]] = [Counter() for _ in range(coarse.size)]
        for node, shape in zip(parent.tolist(), shapes[0].tolist(), strict=True):
            below[node][shape] += 1
        kinds = {
            kind: k for k, kind in enumerate(sorted({tuple(sorted(b.items())) for b in below}))
        }
        children.insert(0, {k: list(kind) for kind, k in kinds.items()})
        shapes.insert(0, np.array([kinds[tuple(sorted(b.items()))] for b in below]))
    return shapes, children


@dataclass(frozen=True, eq=False)
class Information:
    """Tables, figures and steps: the variance model of attributes that decouple, and one tree.

    `chains[j]` are the partitions of attribute j, one block first. `tree` is the attribute whose
    blocks may be unequal, or None. `approximate`: tables show further attributes in unequal blocks,
    taken to be equal, or in partitions that cut across each other; good enough to choose
    precisions, not to state variances. `moved`: the tables that look-alikes move (None: all); what
    only the others show is not measured, and has no variance here.
    """

    workload: Workload
    figures: tuple[Margin, ...]
    chains: tuple[tuple[Partition, ...], ...]
    tree: int | None
    approximate: bool = False
    moved: tuple[bool, ...] | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        figures: Figures,
        *,
        people_kept: bool = True,
        approximate: bool = False,
        moved: tuple[bool, ...] | None = None,
    ) -> Information:
        """The model of a workload under exact figures.

        StructureError where it does not decouple, unless an approximation will do. Figures that
        are no full margins are left out, which can only enlarge variances.
        """
        names = [n for n in workload.schema.names if n in {*workload.axes, *figures.bases}]
        exact = figure_margins(figures, names, people_kept=people_kept).margins
        at = [names.index(name) for name in workload.axes]
        margins = tuple(Margin(tuple(margin.partitions[k] for k in at)) for margin in exact)
        chains = tuple(_chain(workload, margins, k) for k in range(len(at)))
        crossing = [k for k, chain in enumerate(chains) if not _nests(chain)]
        unequal = [axis for axis in _unequal(workload) if axis not in crossing]
        if crossing and not approximate:
            raise StructureError(
                f"partitions of '{workload.axes[crossing[0]]}' do not nest; variances have no "
                "closed form.",
                remedy="Use a model of variances that solves for them.",
            )
        if len(unequal) > 1 and not approximate:
            named = " and ".join(repr(workload.axes[axis]) for axis in unequal)
            raise StructureError(
                f"tables show {named} in blocks of unequal sizes; variances have no closed form.",
                remedy="Use a model of variances that solves for them.",
            )
        tree = max(unequal, key=lambda axis: workload.finest[axis], default=None)
        return cls(workload, margins, chains, tree, bool(crossing) or len(unequal) > 1, moved)

    # ---- steps ---------------------------------------------------------------------------------

    @cached_property
    def _others(self) -> list[int]:
        return [k for k in range(len(self.chains)) if k != self.tree]

    def _steps(self, margin: Margin) -> tuple[int, ...]:
        """How far along its chain each attribute but the tree is shown."""
        return tuple(self.chains[k].index(margin.partitions[k]) for k in self._others)

    @cached_property
    def _refines(self) -> list[NDArray[np.bool_]]:
        """For each attribute but the tree: whether a partition (rows) contains a step (columns)."""
        return [
            np.array(
                [
                    [partition.refines(step) for step in self.chains[k]]
                    for partition in self.chains[k]
                ]
            )
            for k in self._others
        ]

    def _inside(self, margin: Margin) -> NDArray[np.bool_]:
        """Which products of steps a table contains."""
        refined = np.ones(len(self._products), dtype=bool)
        for column, step in enumerate(self._steps(margin)):
            refined &= self._refines[column][step][self._products[:, column]]
        return refined

    def _level(self, margin: Margin) -> int:
        tree = self.tree
        return 0 if tree is None else self.chains[tree].index(margin.partitions[tree])

    @cached_property
    def _nodes(self) -> Tree:
        return Tree.of([Partition.whole(1)] if self.tree is None else self.chains[self.tree])

    @cached_property
    def _products(self) -> NDArray[np.int64]:
        """Products of steps that some table contains, one step per attribute but the tree."""
        subsets = set()
        for margin in self.workload.margins:
            steps = zip(self._refines, self._steps(margin), strict=True)
            subsets |= set(
                product(*(np.flatnonzero(refines[step]).tolist() for refines, step in steps))
            )
        return np.array(sorted(subsets), dtype=np.int64).reshape(len(subsets), len(self._others))

    @cached_property
    def _dimensions(self) -> Floats:
        """Dimension of each product of steps."""
        sizes = np.ones(len(self._products))
        for column, k in enumerate(self._others):
            own: list[int] = []
            for step, partition in enumerate(self.chains[k]):
                coarser = zip(self._refines[column][step], own, strict=False)
                own.append(max(1, partition.size - sum(size for inside, size in coarser if inside)))
            sizes *= np.array(own)[self._products[:, column]]
        return sizes

    @cached_property
    def _contains(self) -> Floats:
        """Finest cells per block of each table (rows), where it contains a product of steps."""
        rows = []
        for margin in self.workload.margins:
            per_block = prod(self.chains[k][-1].size / margin.shape[k] for k in self._others)
            rows.append(self._inside(margin) * per_block)
        return np.array(rows)

    @cached_property
    def _levels(self) -> NDArray[np.int64]:
        return np.array([self._level(margin) for margin in self.workload.margins])

    @cached_property
    def _tables_at(self) -> list[tuple[int, slice | NDArray[np.int64]]]:
        """Tables by the level of the tree they show."""
        levels = np.unique(self._levels)
        if len(levels) == 1:
            return [(int(levels[0]), slice(None))]  # no copies
        return [(int(k), np.flatnonzero(self._levels == k)) for k in levels]

    @cached_property
    def _exact(self) -> NDArray[np.bool_]:
        """Which levels of the tree figures tell, for each product of steps."""
        exact = np.zeros((len(self._products), len(self._nodes.counts)), dtype=bool)
        for margin in self.figures:
            exact[self._inside(margin), self._level(margin)] = True
        if self.moved is not None:
            exact[~self._contains[np.array(self.moved)].any(axis=0)] = True
        return exact

    @cached_property
    def _groups(self) -> list[tuple[int, NDArray[np.int64]]]:
        """Products by the finest level of the tree at which some table contains them."""
        levels = np.where(self._contains > 0, self._levels[:, None], -1)
        finest = np.maximum(levels.max(axis=0), _last(self._exact))
        return [(int(k), np.flatnonzero(finest == k)) for k in np.unique(finest)]

    # ---- variances -----------------------------------------------------------------------------

    def _information(self, precisions: NDArray[Any]) -> NDArray[Any]:
        """Per product (rows) and level of the tree."""
        information = np.zeros(
            (len(self._products), len(self._nodes.counts)), dtype=precisions.dtype
        )
        for k, at in self._tables_at:
            information[:, k] = precisions[at] @ self._contains[at]
        return information

    def _totals(self, information: NDArray[Any]) -> NDArray[Any]:
        gradient = np.zeros_like(information)
        for level, rows in self._groups:
            part = information[rows, : level + 1]
            gradient[rows, : level + 1] = self._nodes.totals(part, self._exact[rows, : level + 1])
        return gradient

    @cached_property
    def _weights(self) -> Floats:
        """What one unit of a product's totals adds to the mean variance of a table's cells."""
        sizes = np.array([margin.size for margin in self.workload.margins], dtype=float)
        return np.asarray(self._contains * self._dimensions / sizes[:, None])

    def variances(self, precisions: Floats) -> Floats:
        """Mean variance of the cells of each table."""
        totals = self._totals(self._information(np.asarray(precisions, dtype=float)))
        variances = np.zeros(len(self._levels))
        for k, at in self._tables_at:
            variances[at] = self._weights[at] @ totals[:, k]
        return variances

    def gains(self, precisions: Floats, weights: Floats) -> Floats:
        """-d/dp_c of sum_b weights_b V_b, for each table c."""
        information = self._information(np.asarray(precisions, dtype=float))
        pull = np.zeros_like(information)
        for k, at in self._tables_at:
            pull[:, k] = np.asarray(weights)[at] @ self._weights[at]
        slopes = np.zeros_like(information)
        for level, rows in self._groups:
            part = (rows, slice(level + 1))
            parts = (information[part], self._exact[part], pull[part])
            slopes[part] = self._nodes.slopes(*parts)
        variances = np.zeros(len(self._levels))
        for k, at in self._tables_at:
            variances[at] = -self._contains[at] @ slopes[:, k]
        return np.maximum(variances, 0)


def _last(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Last true column of each row, -1 if none."""
    reverse = flags.shape[1] - 1 - np.argmax(flags[:, ::-1], axis=1)
    return np.where(flags.any(axis=1), reverse, -1)


def _chain(workload: Workload, figures: Sequence[Margin], axis: int) -> tuple[Partition, ...]:
    """All partitions of an attribute that occur, one block first, then by their sizes."""
    partitions = {Partition.whole(workload.finest[axis])}
    partitions |= {margin.partitions[axis] for margin in (*figures, *workload.margins)}
    return tuple(sorted(partitions, key=lambda one: (one.size, one.blocks)))


def _nests(chain: Sequence[Partition]) -> bool:
    """Whether each partition is refined by the next."""
    return all(fine.refines(coarse) for coarse, fine in pairwise(chain))


def _unequal(workload: Workload) -> list[int]:
    """The attributes that some table shows in blocks of unequal sizes."""
    return [
        axis
        for axis in range(len(workload.axes))
        if any(len(set(np.bincount(m.partitions[axis].array))) > 1 for m in workload.margins)
    ]
