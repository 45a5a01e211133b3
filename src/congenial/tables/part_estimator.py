"""Least squares and whole counts of one part of a nation: up to its top, and down again.

A part is a tree whose top is one node. Going up it tells what its own tables say of that node
(`Below`), a few numbers whatever its size; when the nodes above have been settled, they come back
(`Above`), and the part settles its own areas. Same equations, same numbers, as if all parts were
one tree (`tree_passes`), but nobody holds more than one part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.workload import Ints, Margin, Partition
from congenial.tables.linear_estimates import Estimates, in_order, measured_values
from congenial.tables.measurements import Floats, Measurements
from congenial.tables.node_order import NodeOrder, order_along
from congenial.tables.structure import Separation, separate_along
from congenial.tables.tree_inverse import ContrastPasses, Contrasts, TreeInverse, TreeSolution
from congenial.tables.tree_passes import TreePasses, Upward
from congenial.tables.whole_counts import (
    as_near,
    fit_to_targets,
    level_precisions,
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
class PartEstimator:
    """One part: its own tables with their precisions (0 above it), figures, and the geography.

    `flat` and `groups` are decided for the nation: attributes that separate, and sums of cells that
    are fitted beside the cells.
    """

    work: Measurements
    tree: int
    flat: tuple[int, ...]
    groups: Ints = field(repr=False)

    @cached_property
    def separation(self) -> Separation:
        """How the part's normal equations come apart."""
        return separate_along(self.work, self.tree, self.flat)

    @cached_property
    def inverse(self) -> PartInverse:
        """The part's passes."""
        return PartInverse(self.work, self.separation)

    @cached_property
    def order(self) -> NodeOrder:
        """The order in which its whole counts are fitted."""
        found = order_along(self.work, self.tree, self.groups)
        for level in range(1, len(found.chain)):
            refuse_unattainable(found, level)
        return found

    # ---- up ----------------------------------------------------------------------------------

    def upward(self, values: Sequence[Any]) -> dict[Contrasts, Upward]:
        """The pass up, from the part's tables as drawn; None for tables above it."""
        work = self.work
        terms = []
        for b in work.measured:
            y = measured_values(work, b, values) - work.start_totals(work.margins[b])
            terms.append((work.margins[b], (work.precisions[b] * y)[None]))
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
            {contrasts: one.sums[-1][:, 0] for contrasts, one in found.items()},
            {contrasts: one.levels[-1].summed[0] for contrasts, one in passes.items()},
            self.work.start_totals(self.top).reshape(-1),
            float(p[0]),
            float(q[0]),
            low,
            high,
        )

    @property
    def top(self) -> Margin:
        """The table of the top node's cells."""
        partitions = [Partition.levels(levels) for levels in self.work.shape]
        partitions[self.tree] = Partition.whole(self.work.shape[self.tree])
        return Margin(tuple(partitions))

    # ---- down --------------------------------------------------------------------------------

    def settled(self, found: Mapping[Contrasts, Upward], above: Above) -> PartEstimates:
        """Estimates and whole counts of everything in the part."""
        leaves = {}
        for contrasts, part in self.inverse.parts.items():
            root = above.means[contrasts][:, None]
            leaves[contrasts] = part.passes.downward(found[contrasts], root)
            part.passes.top = above.covariances[contrasts]
        fitted = Estimates(self.work, self.inverse, TreeSolution(self.inverse, 1, leaves))
        targets = targets_of(fitted, self.order)
        whole = fit_to_targets(self.order, targets, above.counts)
        return PartEstimates(self, fitted, whole.cells, above.counts)


@dataclass(frozen=True, eq=False)
class PartEstimates:
    """Estimates, standard deviations and whole counts of a part's tables."""

    estimator: PartEstimator
    fitted: Estimates
    cells: Ints = field(repr=False)
    top: Ints = field(repr=False)  # counts of the top node

    def deviations(self, names: Sequence[str]) -> Floats:
        """Standard deviation of every cell of a table, whatever the family of noise bounds."""
        work = self.estimator.work
        variances = self.estimator.inverse.variances(work.margin(names))
        assert variances is not None  # all tables of the workload separate
        return in_order(np.sqrt(variances), names, work)

    def counts(self, names: Sequence[str]) -> Ints:
        """Whole counts of a table."""
        work = self.estimator.work
        totals = work.margin(names).totals(self.cells)
        return np.asarray(in_order(totals, names, work), dtype=np.int64)

    def fit(self, cells: Ints) -> bool:
        """Whether other whole counts are as near to the estimates; their sums are not looked at."""
        order = self.estimator.order
        return as_near(order, targets_of(self.fitted, order), cells, self.top)
