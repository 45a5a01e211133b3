"""Least squares and whole counts of a nation cut into parts: same equations, same numbers, as if
all parts were one tree (`tree_passes`), but nobody holds more than one part.

A part is a tree whose top is one node. Going up it says what its own tables tell of that node
(`Below`), a few numbers whatever its size. What lies above the parts is a tree whose leaves are
these nodes; once it is settled, they come back (`Above`), and each part settles its own areas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.workload import Margin, Partition
from congenial.tables.inverse import Terms
from congenial.tables.linear_estimates import Estimates, in_order, measured_values
from congenial.tables.measurements import Measurements
from congenial.tables.node_order import NodeOrder, order_along, with_bounds
from congenial.tables.structure import Separation, separate_along
from congenial.tables.tree_inverse import ContrastPasses, Contrasts, TreeInverse, TreeSolution
from congenial.tables.tree_passes import TreePasses, Upward
from congenial.tables.whole_counts import (
    LevelTargets,
    WholeCounts,
    as_near,
    fit_to_targets,
    level_precisions,
    own_precisions,
    refuse_unattainable,
    targets_of,
)


@dataclass(frozen=True, eq=False)
class Below:
    """What a part says of its top node.

    `means` and `covariances` of the sum of its children, per set of contrasts; `start`: the top
    node's cells of some table that has the figures; `p`, `q`: precision of its cells and groups;
    `low`, `high`: bounds of a sum that figures leave open.
    """

    means: Mapping[Contrasts, Floats]
    covariances: Mapping[Contrasts, Floats]
    start: Floats = field(repr=False)
    p: float
    q: float
    low: int
    high: int


@dataclass(frozen=True, eq=False)
class Above:
    """What is settled of a part's top node: least squares with covariances, and whole counts."""

    means: Mapping[Contrasts, Floats]
    covariances: Mapping[Contrasts, Floats]
    counts: Ints = field(repr=False)


@dataclass(frozen=True, eq=False)
class Settled:
    """Estimates, standard deviations and whole counts of all tables, of a part or above the parts.

    `deviations` are standard deviations whatever the family of the noise.
    """

    estimates: Estimates
    whole: WholeCounts

    def deviations(self, names: Sequence[str]) -> Floats:
        """Standard deviation of every cell of a table."""
        work, inverse = self.estimates.measurements, self.estimates.inverse
        assert isinstance(inverse, TreeInverse)
        variances = inverse.variances(work.margin(names))
        assert variances is not None  # all tables of the workload separate
        return in_order(np.sqrt(variances), names, work)


@dataclass(frozen=True, eq=False)
class _TreePiece:
    """A tree that is cut out of the nation's: tables with their precisions (0 where they are drawn
    elsewhere), figures, and the place of the geography among the attributes.

    `flat` and `groups` are decided for the nation: attributes that separate, and sums of cells that
    are fitted beside the cells.
    """

    work: Measurements
    tree: int
    flat: tuple[int, ...]
    groups: Ints = field(repr=False)

    @cached_property
    def separation(self) -> Separation:
        """How the normal equations come apart."""
        return separate_along(self.work, self.tree, self.flat)

    @cached_property
    def order(self) -> NodeOrder:
        """The order in which whole counts are fitted."""
        order = self._order()
        for level in range(1, len(order.chain)):
            refuse_unattainable(order, level)
        return order

    def _order(self) -> NodeOrder:
        return order_along(self.work, self.tree, self.groups)

    def _start(self, margin: Margin) -> Floats:
        """A table of some cells that have the figures."""
        return self.work.start_totals(margin)

    def _terms(self, values: Sequence[Any]) -> Terms:
        """What the drawn tables say, each times its precision; `values` of others are None."""
        work, terms = self.work, []
        for b in work.measured:
            y = measured_values(work, b, values) - self._start(work.margins[b])
            terms.append((work.margins[b], (work.precisions[b] * y)[None]))
        return terms


# ---- a part ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PartInverse(TreeInverse):
    """The passes of one part, each with its top node as a level of its own."""

    def _part(self, contrasts: Contrasts) -> ContrastPasses:
        leaf, information, parents, fixed = self._levels(contrasts)
        size = self.separation.chain[-1].size
        passes = TreePasses(
            self.separation.chain[leaf].size,
            [*parents, Partition.whole(size)],
            [*information, np.zeros_like(information[0])],
            [*fixed, fixed[-1]],
        )
        return ContrastPasses(leaf, passes)


@dataclass(frozen=True, eq=False)
class PartEstimator(_TreePiece):
    """One part: up to its top node, and down from it."""

    @cached_property
    def inverse(self) -> PartInverse:
        """The part's passes."""
        return PartInverse(self.work, self.separation)

    @property
    def top(self) -> Margin:
        """The table of the top node's cells."""
        partitions = [Partition.levels(levels) for levels in self.work.shape]
        partitions[self.tree] = Partition.whole(self.work.shape[self.tree])
        return Margin(tuple(partitions))

    def upward(self, values: Sequence[Any]) -> dict[Contrasts, Upward]:
        """The pass up, from the part's tables as drawn; None for tables above it."""
        terms = self._terms(values)
        return {
            contrasts: part.passes.upward(self.inverse.given(contrasts, terms))
            for contrasts, part in self.inverse.parts.items()
        }

    def below(self, found: Mapping[Contrasts, Upward]) -> Below:
        """What the part says of its top node."""
        passes = {contrasts: part.passes for contrasts, part in self.inverse.parts.items()}
        p, q = level_precisions(self.order)[0]
        atoms = self.order.atoms[0]
        low, high = (0, 0) if atoms.kernel is None else (int(atoms.low[0]), int(atoms.high[0]))
        return Below(
            {contrasts: part.sums[-1][:, 0] for contrasts, part in found.items()},
            {contrasts: part.levels[-1].summed[0] for contrasts, part in passes.items()},
            self._start(self.top).reshape(-1),
            float(p[0]),
            float(q[0]),
            low,
            high,
        )

    def settled(self, found: Mapping[Contrasts, Upward], above: Above) -> Settled:
        """Estimates and whole counts of everything in the part."""
        leaves = {}
        for contrasts, part in self.inverse.parts.items():
            root = above.means[contrasts][:, None]
            leaves[contrasts] = part.passes.downward(found[contrasts], root)
            part.passes.top = above.covariances[contrasts]
        fitted = Estimates(self.work, self.inverse, TreeSolution(self.inverse, 1, leaves))
        targets = targets_of(fitted, self.order)
        return Settled(fitted, fit_to_targets(self.order, targets, above.counts))

    def as_near(self, settled: Settled, cells: Ints, top: Ints) -> bool:
        """Whether other whole counts below the same top node are as near to the estimates as the
        fitted ones; their sums are not looked at.
        """
        return as_near(self.order, targets_of(settled.estimates, self.order), cells, top)


# ---- above the parts ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class UpperInverse(TreeInverse):
    """The passes above the parts; each stands over the sums of the parts' children."""

    below: Sequence[Below] = field(repr=False)

    def _contrasts(self) -> list[Contrasts]:
        flat = self.separation.flat
        return [subset for size in range(len(flat) + 1) for subset in combinations(flat, size)]

    def _part(self, contrasts: Contrasts) -> ContrastPasses:
        _, information, parents, fixed = self._levels(contrasts, 0)
        summed = np.stack([part.covariances[contrasts] for part in self.below])
        return ContrastPasses(0, TreePasses.over(summed, parents, information, [fixed[0], *fixed]))


@dataclass(frozen=True, eq=False)
class UpperEstimates(Estimates):
    """Estimates around a table of the parts that has their figures: `start`."""

    start: Floats = field(repr=False)

    def totals(self, margin: Margin) -> Floats:
        """Estimates of a table, with one axis per attribute of the cells."""
        return np.asarray(margin.totals(self.start) + self.solution.totals(margin)[0])


@dataclass(frozen=True, eq=False)
class UpperEstimator(_TreePiece):
    """What lies above the parts, from what the parts say."""

    below: Sequence[Below] = field(repr=False)

    @cached_property
    def inverse(self) -> UpperInverse:
        """The passes above the parts."""
        return UpperInverse(self.work, self.separation, self.below)

    @cached_property
    def start(self) -> Floats:
        """The parts' cells of some table that has the figures."""
        cells = np.stack([part.start for part in self.below])
        rest = [levels for at, levels in enumerate(self.work.shape) if at != self.tree]
        return np.moveaxis(cells.reshape(-1, *rest), 0, self.tree)

    def _start(self, margin: Margin) -> Floats:
        return np.asarray(margin.totals(self.start))

    def _order(self) -> NodeOrder:
        """Down to the parts, each with the bounds of what it leaves open."""
        low, high = (
            np.array([getattr(part, end) for part in self.below]) for end in ("low", "high")
        )
        return with_bounds(super()._order(), low, high)

    def settled(self, values: Sequence[Any]) -> Settled:
        """Estimates and whole counts, from the tables above the parts as drawn; None below."""
        terms, means_above = self._terms(values), {}
        for contrasts, part in self.inverse.parts.items():
            means = np.stack([part.means[contrasts] for part in self.below], axis=1)
            means_above[contrasts] = part.passes.solve(self.inverse.given(contrasts, terms), means)
        solution = TreeSolution(self.inverse, 1, means_above)
        fitted = UpperEstimates(self.work, self.inverse, solution, self.start)
        return Settled(fitted, fit_to_targets(self.order, self._targets(fitted)))

    def _targets(self, fitted: Estimates) -> list[LevelTargets]:
        targets = []
        for level, (p, q) in enumerate(self._precisions()):
            totals = fitted.totals(self.order.level_margin(level))
            cells = np.moveaxis(totals, self.tree, 0).reshape(-1, self.order.cells)
            targets.append(LevelTargets(np.ascontiguousarray(cells), p, q))
        return targets

    def _precisions(self) -> list[tuple[Floats, Floats]]:
        """As `level_precisions`, on top of what the parts have."""
        order = self.order
        size = order.cells / (int(order.groups.max()) + 1)
        within = np.array([part.p for part in self.below])
        sums = within + size * np.array([part.q for part in self.below])
        limits: list[tuple[Floats, Floats]] = []
        for level in reversed(range(len(order.chain))):
            cell, group = own_precisions(order, level)
            if limits:
                parents = order.parents(level + 1).array
                within = 1 / np.bincount(parents, weights=1 / within)
                sums = 1 / np.bincount(parents, weights=1 / sums)
            within, sums = within + cell, sums + cell + size * group
            limits.insert(0, (within, np.maximum(0.0, (sums - within) / size)))
        return limits

    def above(self, settled: Settled, part: int) -> Above:
        """What comes back to a part."""
        covariances = {}
        for contrasts, one in self.inverse.parts.items():
            matrices, kinds = one.passes.covariances[0]
            covariances[contrasts] = matrices[kinds[part]]
        counts = np.moveaxis(settled.whole.cells, self.tree, 0)[part]
        solution = settled.estimates.solution
        assert isinstance(solution, TreeSolution)
        means = {contrasts: x[:, part] for contrasts, x in solution.parts.items()}
        return Above(means, covariances, counts.reshape(-1))
