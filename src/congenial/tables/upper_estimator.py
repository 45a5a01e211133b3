"""Least squares and whole counts above the parts of a nation, from what the parts say (`Below`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from congenial.data.workload import Ints, Margin
from congenial.tables.linear_estimates import in_order, measured_values
from congenial.tables.measurements import Floats, Measurements
from congenial.tables.node_order import NodeOrder, order_along, with_bounds
from congenial.tables.part_estimator import Above, Below
from congenial.tables.structure import Separation, separate_along
from congenial.tables.tree_inverse import ContrastPasses, Contrasts, TreeInverse, TreeSolution
from congenial.tables.tree_passes import TreePasses
from congenial.tables.whole_counts import (
    LevelTargets,
    fit_to_targets,
    own_precisions,
    refuse_unattainable,
)


@dataclass(frozen=True, eq=False)
class UpperInverse(TreeInverse):
    """The passes above the parts; each stands over the sums of the parts' children."""

    below: Sequence[Below] = field(repr=False)

    def _contrasts(self) -> list[Contrasts]:
        flat = self.separation.flat
        return [one for size in range(len(flat) + 1) for one in combinations(flat, size)]

    def _part(self, contrasts: Contrasts) -> ContrastPasses:
        _, information, parents, fixed = self._levels(contrasts, 0)
        summed = np.stack([one.covariances[contrasts] for one in self.below])
        return ContrastPasses(0, TreePasses.over(summed, parents, information, [fixed[0], *fixed]))


@dataclass(frozen=True, eq=False)
class UpperEstimator:
    """What lies above the parts: tables with their precisions (0 below), figures, and the parts."""

    work: Measurements
    tree: int
    flat: tuple[int, ...]
    groups: Ints = field(repr=False)
    below: Sequence[Below] = field(repr=False)

    @cached_property
    def separation(self) -> Separation:
        """How the normal equations come apart."""
        return separate_along(self.work, self.tree, self.flat)

    @cached_property
    def inverse(self) -> UpperInverse:
        """The passes above the parts."""
        return UpperInverse(self.work, self.separation, self.below)

    @cached_property
    def start(self) -> Floats:
        """The parts' cells of some table that has the figures."""
        cells = np.stack([one.start for one in self.below])
        rest = [levels for at, levels in enumerate(self.work.shape) if at != self.tree]
        return np.moveaxis(cells.reshape(-1, *rest), 0, self.tree)

    @cached_property
    def order(self) -> NodeOrder:
        """The order in which whole counts are fitted, down to the parts."""
        found = order_along(self.work, self.tree, self.groups)
        low, high = (np.array([getattr(one, end) for one in self.below]) for end in ("low", "high"))
        found = with_bounds(found, low, high)
        for level in range(1, len(found.chain)):
            refuse_unattainable(found, level)
        return found

    def settled(self, values: Sequence[Any]) -> UpperEstimates:
        """Estimates and whole counts, from the tables above the parts as drawn; None below."""
        work = self.work
        terms = []
        for b in work.measured:
            margin = work.margins[b]
            y = measured_values(work, b, values) - margin.totals(self.start)
            terms.append((margin, (work.precisions[b] * y)[None]))
        found = {}
        for contrasts, part in self.inverse.parts.items():
            means = np.stack([one.means[contrasts] for one in self.below], axis=1)
            found[contrasts] = part.passes.solve(self.inverse.given(contrasts, terms), means)
        solution = TreeSolution(self.inverse, 1, found)
        return UpperEstimates(self, solution, self._whole(solution))

    def _whole(self, solution: TreeSolution) -> Ints:
        targets = []
        for level, (p, q) in enumerate(self._precisions()):
            margin = self.order.level_margin(level)
            totals = margin.totals(self.start) + solution.totals(margin)[0]
            cells = np.moveaxis(totals, self.tree, 0).reshape(-1, self.order.cells)
            targets.append(LevelTargets(np.ascontiguousarray(cells), p, q))
        return fit_to_targets(self.order, targets).cells

    def _precisions(self) -> list[tuple[Floats, Floats]]:
        """As `level_precisions`, on top of what the parts have."""
        order = self.order
        size = order.cells / (int(order.groups.max()) + 1)
        within = np.array([one.p for one in self.below])
        sums = within + size * np.array([one.q for one in self.below])
        found: list[tuple[Floats, Floats]] = []
        for level in reversed(range(len(order.chain))):
            cell, group = own_precisions(order, level)
            if found:
                parents = order.parents(level + 1).array
                within = 1 / np.bincount(parents, weights=1 / within)
                sums = 1 / np.bincount(parents, weights=1 / sums)
            within, sums = within + cell, sums + cell + size * group
            found.insert(0, (within, np.maximum(0.0, (sums - within) / size)))
        return found


@dataclass(frozen=True, eq=False)
class UpperEstimates:
    """Estimates, standard deviations and whole counts of the tables above the parts."""

    estimator: UpperEstimator
    solution: TreeSolution = field(repr=False)
    cells: Ints = field(repr=False)

    def totals(self, margin: Margin) -> Floats:
        """Estimates of a table, with one axis per attribute of the cells."""
        return np.asarray(margin.totals(self.estimator.start) + self.solution.totals(margin)[0])

    def table(self, names: Sequence[str]) -> Floats:
        """Estimates of a table, shaped by its axes as named."""
        work = self.estimator.work
        return in_order(self.totals(work.margin(names)), names, work)

    def deviations(self, names: Sequence[str]) -> Floats:
        """Standard deviation of every cell of a table."""
        work = self.estimator.work
        variances = self.estimator.inverse.variances(work.margin(names))
        assert variances is not None  # all tables of the workload separate
        return in_order(np.sqrt(variances), names, work)

    def counts(self, names: Sequence[str]) -> Ints:
        """Whole counts of a table."""
        work = self.estimator.work
        totals = work.margin(names).totals(self.cells)
        return np.asarray(in_order(totals, names, work), dtype=np.int64)

    def above(self, part: int) -> Above:
        """What comes back to a part."""
        passes = {c: one.passes for c, one in self.estimator.inverse.parts.items()}
        covariances = {}
        for contrasts, one in passes.items():
            matrices, kinds = one.covariances[0]
            covariances[contrasts] = matrices[kinds[part]]
        counts = np.moveaxis(self.cells, self.estimator.tree, 0)[part]
        means = {contrasts: x[:, part] for contrasts, x in self.solution.parts.items()}
        return Above(means, covariances, counts.reshape(-1))
