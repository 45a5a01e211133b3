"""The inverse where flat attributes separate: one pair of passes on a tree per set of contrasts.

For a set A of flat attributes let u_A be the part of the cells that is a contrast in every
attribute of A, summed over the other flat attributes. A table b that shows A and k further cells
per cell of A measures u_A with precision p_b / k, at its level of the tree and its partition of the
core. The u_A do not touch: each is a problem of its own, and table b is the sum of its u_A, spread
over k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.workload import Margin, Partition
from congenial.tables.inverse import Terms, not_determined
from congenial.tables.measurements import Measurements, relative
from congenial.tables.structure import Separation
from congenial.tables.tree_passes import TreePasses

SHORT = 8  # numbers of a short sum
Contrasts = tuple[int, ...]
Sums = dict[Contrasts, Floats]  # of a vector over flat attributes


@dataclass(frozen=True, eq=False)
class ContrastPasses:
    """One set of contrasts: the passes, and the partition of the chain that its leaves are."""

    leaf: int
    passes: TreePasses


@dataclass(frozen=True, eq=False)
class TreeInverse:
    """M^+ by two passes on a tree per set of contrasts; exact up to rounding."""

    measurements: Measurements
    separation: Separation
    parts: dict[Contrasts, ContrastPasses] = field(init=False)

    def __post_init__(self) -> None:
        parts = {}
        for contrasts in self._contrasts():
            parts[contrasts] = self._part(contrasts)
        object.__setattr__(self, "parts", parts)

    @property
    def method(self) -> str:
        """How the normal equations are solved."""
        return "closed form" if self.separation.is_closed_form else "two passes on a tree"

    @property
    def reason(self) -> str:
        """Why this method serves."""
        names = self.measurements.names
        tree = names[self.separation.tree]
        if self.separation.is_closed_form:
            return (
                "every attribute is shown by levels or not at all, and figures treat levels alike"
            )
        core = [names[at] for at in self.separation.core]
        beside = f", with {' and '.join(core)} at its nodes" if core else ""
        return f"partitions of {tree} nest{beside}; the other attributes separate"

    # ---- setting up --------------------------------------------------------------------------

    def _contrasts(self) -> list[Contrasts]:
        margins = (self.measurements.margins[b] for b in self.measurements.measured)
        subsets = {subset for margin in margins for subset in self.separation.subsets(margin)}
        return sorted(subsets, key=lambda one: (len(one), one))

    def _part(self, contrasts: Contrasts) -> ContrastPasses:
        leaf, information, parents, fixed = self._levels(contrasts)
        passes = TreePasses(self.separation.chain[leaf].size, parents, information, fixed)
        return ContrastPasses(leaf, passes)

    def _levels(
        self, contrasts: Contrasts, at_least: int | None = None
    ) -> tuple[int, list[Floats], list[Partition], list[Floats]]:
        """The finest level that is measured, and from there on: information, parents, figures.

        `at_least`: a level from which to start, measured or not.
        """
        separation, width = self.separation, prod(self.separation.core_shape)
        chain = separation.chain
        information = [np.zeros((width, width)) for _ in chain]
        leaf = len(chain) if at_least is None else at_least
        for b in self.measurements.measured:
            margin = self.measurements.margins[b]
            if set(contrasts) <= set(separation.shown(margin)):
                level, k = separation.level(margin), separation.summed(margin, contrasts)
                leaf = min(leaf, level)
                information[level] += self.measurements.precisions[b] / k * self._blocks(margin)
        parents = [
            relative(up, at) for at, up in zip(chain[leaf:], chain[leaf + 1 :], strict=False)
        ]
        fixed = [separation.fixed(contrasts, level) for level in range(leaf, len(chain))]
        return leaf, information[leaf:], parents, fixed

    def _core_margin(self, margin: Margin) -> Margin:
        return Margin(tuple(margin.partitions[at] for at in self.separation.core))

    def _blocks(self, margin: Margin) -> Floats:
        """E'E of the table's partition of the core cells."""
        core = self._core_margin(margin)
        cells = prod(self.separation.core_shape)
        unit = np.eye(cells).reshape(cells, *self.separation.core_shape)
        return core.spread(core.totals(unit)).reshape(cells, cells)

    # ---- solving -----------------------------------------------------------------------------

    def apply(self, terms: Terms) -> TreeSolution:
        """M^+ times the sum of T_b' w_b."""
        supported = [self._supported(margin, values) for margin, values in terms]
        return self._solution(supported, self._touched(supported))

    def totals(self, terms: Terms, margin: Margin) -> Floats:
        """`apply(terms).totals(margin)`, without solving for contrasts that the table sums over."""
        supported = [self._supported(margin, values) for margin, values in terms]
        visible = {*self.separation.subsets(self.separation.supported(margin))}
        wanted = [subset for subset in self._touched(supported) if subset in visible]
        return self._solution(supported, wanted).totals(margin)

    def _solution(self, terms: Terms, wanted: Sequence[Contrasts]) -> TreeSolution:
        batch = len(terms[0][1])
        means: dict[Contrasts, Floats] = {}
        sums: list[Sums] = [{(): values} for _, values in terms]
        for contrasts in wanted:
            term = self.given(contrasts, terms, sums)
            if any(level is not None for level in term):
                means[contrasts] = self.parts[contrasts].passes.solve(term)
        return TreeSolution(self, batch, means)

    def given(
        self, contrasts: Contrasts, terms: Terms, sums: Sequence[Sums] | None = None
    ) -> list[Floats | None]:
        """The information vectors on one set of contrasts, per level of its passes. `sums`: of each
        term over flat attributes, as far as another set of contrasts has needed them.
        """
        sums = [{(): values} for _, values in terms] if sums is None else sums
        part = self.parts[contrasts]
        by_level: list[Floats | None] = [None] * len(part.passes.levels)
        for (margin, _), summed in zip(terms, sums, strict=True):
            if set(contrasts) <= set(self.separation.shown(margin)):
                if self.settled(margin, contrasts):
                    continue
                at = self.separation.level(margin) - part.leaf
                here = self.contrast(margin, summed, contrasts)
                before = by_level[at]
                by_level[at] = here if before is None else before + here
        return by_level

    def _supported(self, margin: Margin, values: Floats) -> tuple[Margin, Floats]:
        """The same linear form over a table that separates."""
        finer = self.separation.supported(margin)
        return finer, sums_of(finer, margin).spread(values)

    def _touched(self, terms: Terms) -> list[Contrasts]:
        subsets = {subset for margin, _ in terms for subset in self.separation.subsets(margin)}
        return sorted(subset for subset in subsets if subset in self.parts)

    def settled(self, margin: Margin, contrasts: Contrasts) -> bool:
        """Whether figures alone fix this part of a table; an error if nothing does."""
        part, level = self.parts.get(contrasts), self.separation.level(margin)
        if part is not None and level >= part.leaf:
            return False
        if len(self.separation.fixed(contrasts, level)) < prod(self.separation.core_shape):
            raise not_determined(self.measurements.names, margin)
        return True

    def contrast(self, margin: Margin, sums: Sums, contrasts: Contrasts) -> Floats:
        """The information a table's vector holds on u_A: shaped (batch x A, nodes, core)."""
        separation = self.separation
        part = _summed(sums, tuple(at for at in separation.shown(margin) if at not in contrasts))
        for at in contrasts:
            part = part - _sum(part, 1 + at) / part.shape[1 + at]
        part = part / separation.summed(margin, contrasts)
        order = [0, *(1 + at for at in contrasts), 1 + separation.tree]
        order += [1 + at for at in separation.core]
        rest = [axis for axis in range(part.ndim) if axis not in order]
        moved = np.squeeze(part.transpose(order + rest), tuple(range(len(order), part.ndim)))
        spread = self._core_margin(margin).spread(moved)
        return spread.reshape(-1, margin.shape[separation.tree], prod(separation.core_shape))

    # ---- covariances -------------------------------------------------------------------------

    def variances(self, margin: Margin) -> Floats | None:
        """Variance of every cell of a table, as a read-only array; None if it does not separate."""
        if self.separation.supported(margin) != margin:
            return None
        separation, core = self.separation, self._core_margin(margin)
        cells = prod(separation.core_shape)
        sums = core.totals(np.eye(cells).reshape(cells, *separation.core_shape))
        sums = sums.reshape(cells, -1).T
        total = np.zeros((margin.shape[separation.tree], len(sums)))
        for contrasts in separation.subsets(margin):
            if self.settled(margin, contrasts):
                continue
            part, level = self.parts[contrasts], separation.level(margin)
            matrices, kinds = part.passes.covariances[level - part.leaf]
            scale = prod(1 - 1 / separation.shape[at] for at in contrasts)
            scale /= separation.summed(margin, contrasts) ** 2
            total += scale * np.einsum("ki,nij,kj->nk", sums, matrices, sums)[kinds]
        return self._placed(np.maximum(total, 0.0), margin)

    def _placed(self, values: Floats, margin: Margin) -> Floats:
        """Values over (nodes, core cells) broadcast over the table."""
        separation = self.separation
        axes = [separation.tree, *separation.core]
        order = sorted(axes)
        shape = [margin.shape[at] for at in axes]
        moved = values.reshape(shape).transpose([axes.index(at) for at in order])
        padded = [margin.shape[at] if at in axes else 1 for at in range(len(margin.shape))]
        return np.broadcast_to(moved.reshape(padded), margin.shape)


@dataclass(frozen=True, eq=False)
class TreeSolution:
    """M^+ h as one array per set of contrasts."""

    inverse: TreeInverse
    batch: int
    parts: dict[Contrasts, Floats]

    def totals(self, margin: Margin) -> Floats:
        """Its sums over the cells of a table."""
        finer = self.inverse.separation.supported(margin)
        if finer != margin:
            return np.asarray(sums_of(finer, margin).totals(self.totals(finer)))
        total = np.zeros((self.batch, *margin.shape))
        for contrasts in self.inverse.separation.subsets(margin):
            if not self.inverse.settled(margin, contrasts) and contrasts in self.parts:
                total += self._part(margin, contrasts)
        return total

    def _part(self, margin: Margin, contrasts: Sequence[int]) -> Floats:
        separation = self.inverse.separation
        part = self.inverse.parts[tuple(contrasts)]
        values = self.parts[tuple(contrasts)]
        shape = [separation.shape[at] for at in contrasts]
        values = values.reshape(self.batch, *shape, part.passes.leaves, *separation.core_shape)
        tree = relative(separation.chain[separation.level(margin)], separation.chain[part.leaf])
        lead = [Partition.levels(levels) for levels in shape]
        core = [margin.partitions[at] for at in separation.core]
        sums = Margin((*lead, tree, *core)).totals(values)
        sums = sums / separation.summed(margin, contrasts)
        places = [*contrasts, separation.tree, *separation.core]
        order = sorted(range(len(places)), key=places.__getitem__)
        moved = sums.transpose([0, *(1 + axis for axis in order)])
        padded = [margin.shape[at] if at in places else 1 for at in range(len(margin.shape))]
        return np.asarray(moved.reshape(self.batch, *padded))


def _summed(sums: Sums, over: Contrasts) -> Floats:
    """A vector's sums over some attributes, one after the other; `sums` keeps all on the way."""
    if over not in sums:
        sums[over] = _sum(_summed(sums, over[:-1]), 1 + over[-1])
    return sums[over]


def _sum(values: Floats, axis: int) -> Floats:
    """The sum over one axis, which stays; short ones are added up slice by slice, since NumPy's
    sums over two or three numbers each take ten times as long.
    """
    if values.shape[axis] > SHORT:
        return np.asarray(values.sum(axis=axis, keepdims=True))
    slices = np.split(values, values.shape[axis], axis)
    return np.asarray(sum(slices[1:], slices[0]))


def sums_of(finer: Margin, coarse: Margin) -> Margin:
    """The map from a table to sums of its cells."""
    pairs = zip(coarse.partitions, finer.partitions, strict=True)
    return Margin(tuple(relative(first, other) for first, other in pairs))
