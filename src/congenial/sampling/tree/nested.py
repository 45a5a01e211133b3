"""Counts given group totals and bounds on nested sums: messages up a tree of sums, cut at bounds.

p(m) ~ prod_i w(m_i - s_i) on { l_i <= m_i <= h_i, group totals fixed, sums over nested sets of
cells within their bounds }. As in `bounded`, with a node of the tree for every bounded set: its
message is cut where the bound ends, so that sums beyond it are never proposed. A bound far out in
a message's tail leaves the tail; whoever draws checks the bounds once more (`kept`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.figures.lattice import Ints
from congenial.figures.limits import FAR, Limits
from congenial.figures.support import Support
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.bounded import (
    LeafPlanner,
    alike,
    log_message,
    log_weight,
    noise_bounds,
    noise_of,
)
from congenial.sampling.tree.messages import Forest, Law
from congenial.sampling.tree.splitter import Splitter


@dataclass(frozen=True, eq=False)
class BoundedSum:
    """The sum over some cells of one group lies between least and most (FAR: no bound)."""

    cells: Ints = field(repr=False)
    least: int
    most: int


def nested_sums(limits: Limits, support: Support) -> tuple[list[BoundedSum], Ints]:
    """Bounds on sums that are nested inside groups of known total, small ones first, and the rows
    of `limits` that they stand for.
    """
    labels = support.labels.reshape(-1)
    found: list[tuple[int, Ints, int, int]] = []
    for row in range(limits.sums):
        at = limits.rows.indices[limits.rows.indptr[row] : limits.rows.indptr[row + 1]]
        weights = limits.rows.data[limits.rows.indptr[row] : limits.rows.indptr[row + 1]]
        group = int(labels[at[0]])
        if np.any(weights != weights[0]) or np.any(labels[at] != group):
            continue
        if group < 0 or support.tied[group]:
            continue
        ends = [(int(limits.least[row]), -FAR), (int(limits.most[row]), FAR)]
        w = int(weights[0])
        (low, _), (high, _) = ends if w > 0 else reversed(ends)
        least = -FAR if abs(low) >= FAR else -(-low // w)
        most = FAR if abs(high) >= FAR else high // w
        found.append((row, np.sort(at).astype(np.int64), least, most))
    found.sort(key=lambda one: len(one[1]))
    top, sums, rows = np.full(labels.size, -1), list[BoundedSum](), []
    for row, cells, least, most in found:
        below, times = np.unique(top[cells], return_counts=True)
        if all(t < 0 or len(sums[t].cells) == n for t, n in zip(below, times, strict=True)):
            top[cells] = len(sums)
            sums.append(BoundedSum(cells, least, most))
            rows.append(row)
    return sums, np.array(rows, dtype=np.int64)


class NestedGroups:
    """Noisy counts m around s, as `BoundedGroups`, with bounds on nested sums of cells too.

    sums: nested sets, each inside one group, small ones first. Exact when draws are checked
    against the bounds once more.

    >>> from fractions import Fraction
    >>> from congenial.sampling.discrete import DoubleGeometric
    >>> from congenial.sampling.randomness import SeededRandomness
    >>> pair = BoundedSum(np.array([0, 1]), 0, 3)
    >>> law = DoubleGeometric(Fraction(1, 4))
    >>> groups = NestedGroups([0, 0, 0, 0], [2, 0, 5, 1], law, 0, None, [pair])
    >>> m = groups.draw_many(SeededRandomness(1), 50)
    >>> bool(m[:, :2].sum(axis=1).max() <= 3), int(m[0].sum())
    (True, 8)
    """

    def __init__(
        self,
        labels: Any,
        centre: Any,
        law: Law,
        low: Any,
        high: Any,
        sums: Sequence[BoundedSum],
    ) -> None:
        self.labels = np.asarray(labels, dtype=np.int64)
        self.centre = np.array(centre, dtype=np.int64).reshape(-1)
        self.law, self.sums = law, sums
        self.bounds = noise_bounds(self.centre, low, high, self.labels.size)
        self._planner = LeafPlanner(law)
        self._build(balanced=False)
        if not self.sharp:
            self._build(balanced=True)
        self._splitter = Splitter(self._forest, self._roots, self._order, self.centre, self.bounds)

    def _build(self, balanced: bool) -> None:
        """Make the messages; `balanced`: tilted with the bounds on sums in view."""
        self._forest = Forest()
        groups = int(self.labels.max()) + 1
        members = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[members], np.arange(groups + 1))
        inside: list[list[BoundedSum]] = [[] for _ in range(groups)]
        for one in self.sums:
            inside[int(self.labels[one.cells[0]])].append(one)
        self._roots, order = [], []
        for g in range(groups):
            cells = members[starts[g] : starts[g + 1]]
            self._tilt = self._balanced(cells, inside[g] if balanced else [])
            root, arranged = self._group(cells, inside[g])
            self._roots.append(root)
            order.append(arranged)
        self._order = np.concatenate(order)

    def _group(self, cells: Ints, sums: list[BoundedSum]) -> tuple[int, Ints]:
        """The message of a group and its cells in the order of drawing."""
        made: dict[int, tuple[int, Ints]] = {}  # of nested sets that are in no larger one so far
        top = np.full(self.labels.size if sums else 0, -1)
        for i, one in enumerate(sums):
            below = np.unique(top[one.cells])
            within = [made.pop(t) for t in below[below >= 0].tolist()]
            node, arranged = self._joined(one.cells, within)
            shift = int(self.centre[one.cells].sum())
            made[i] = self._forest.cut(node, one.least - shift, one.most - shift), arranged
            top[one.cells] = i
        return self._joined(cells, list(made.values()))

    def _balanced(self, cells: Ints, sums: list[BoundedSum]) -> Fraction:
        """A tilt at which the group's sum, bounds counted, is about zero: it centres the windows.

        Bounded sums are taken as cut normal laws; a poor choice costs time and nothing else.
        """
        lows, highs = self.bounds[0][cells], self.bounds[1][cells]
        if not sums:
            return self._planner.tilt(lows, highs, 0)
        pieces = self._pieces(cells, sums)
        least, most = self._planner.range(lows, highs)
        if isinstance(self.law, DoubleGeometric):  # stronger tilts make windows very wide
            least, most = max(least, -float(self.law.eps) / 2), min(most, float(self.law.eps) / 2)
        for _ in range(50):
            theta = (least + most) / 2
            mean, variance = self._moments(pieces, theta)
            least, most = (theta, most) if mean < 0 else (least, theta)
        return self._planner.rounded(theta, max(variance, 1.0), lows, highs)

    def _pieces(self, cells: Ints, sums: list[BoundedSum]) -> list[Any]:
        """For each bounded sum, and last the group: its own cells, the sums below it, its ends."""
        top, pieces = np.full(self.labels.size, -1), []
        for i, one in enumerate([*sums, BoundedSum(cells, -FAR, FAR)]):
            bare = one.cells[top[one.cells] < 0]
            below = np.unique(top[one.cells])
            own = alike(self.bounds[0][bare], self.bounds[1][bare]) if bare.size else None
            shift = int(self.centre[one.cells].sum())
            ends = (
                -math.inf if one.least <= -FAR else one.least - shift,
                math.inf if one.most >= FAR else one.most - shift,
            )
            pieces.append((own, below[below >= 0].tolist(), ends))
            top[one.cells] = i
        return pieces

    def _moments(self, pieces: list[Any], theta: float) -> tuple[float, float]:
        """Mean and variance of the group's sum under a tilt, about."""
        found: list[tuple[float, float]] = []
        for own, below, ends in pieces:
            parts = [found[i] for i in below]
            parts += [self._planner.moments(own, theta)] if own is not None else []
            mean, variance = sum(p[0] for p in parts), sum(p[1] for p in parts)
            found.append(_cut_normal(mean, variance, *ends))
        return found[-1]

    def _joined(self, cells: Ints, parts: list[tuple[int, Ints]]) -> tuple[int, Ints]:
        """The message of the sum over `cells`, some of which are in `parts` already."""
        taken = np.concatenate([np.empty(0, np.int64), *(part[1] for part in parts)])
        bare = np.setdiff1d(cells, taken)
        nodes, order = [], []
        if bare.size:
            lows, highs = self._planner.shared_bounds(
                self.bounds[0][bare], self.bounds[1][bare], self._tilt
            )
            arranged = np.lexsort((highs, lows))
            nodes.append(
                self._planner.message(self._forest, lows[arranged], highs[arranged], self._tilt)
            )
            order.append(bare[arranged])
        nodes += [part[0] for part in parts]
        order += [part[1] for part in parts]
        return self._forest.combine(nodes), np.concatenate(order)

    @property
    def sharp(self) -> bool:
        """Whether few draws are wasted. Not so where many sums press against their bounds at once:
        messages are upper bounds, and what they say so far out is mostly allowance for tails.
        """
        nodes = [self._forest.nodes[root] for root in self._roots]
        return all(v.lo <= 0 <= v.hi and v.m[-v.lo] > 8 * v.floor for v in nodes)

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of the product of weights over all conforming m, to about 1e-10."""
        return math.fsum(log_message(self._forest, root, 0) for root in self._roots)

    def log_density(self, m: Any) -> Any:
        """log p(m), -inf for m that does not conform; m has shape (..., cells)."""
        u = noise_of(m, self.centre)
        free = self.labels >= 0
        totals = np.zeros((len(self._roots), *u.shape[:-1]), dtype=np.int64)
        np.add.at(totals, self.labels[free], np.moveaxis(u[..., free], -1, 0))
        inside = np.all((u >= self.bounds[0]) & (u <= self.bounds[1]), axis=-1)
        inside &= ~np.any(totals, axis=0) & ~np.any(u[..., ~free], axis=-1)
        for one in self.sums:
            held = (u[..., one.cells] + self.centre[one.cells]).sum(axis=-1)
            inside &= (held >= one.least) & (held <= one.most)
        return np.where(inside, log_weight(self.law, u) - self.log_Z, -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent draws, shape (n, cells)."""
        nothing = np.zeros((1, len(self._roots)), dtype=np.int64)
        return self._splitter.draw_all(randomness, n, nothing)


def _cut_normal(mean: float, variance: float, low: float, high: float) -> tuple[float, float]:
    """Mean and variance of a normal law given low <= x <= high."""
    from scipy.special import ndtr

    sd = math.sqrt(max(variance, 1e-12))
    a, b = (low - 0.5 - mean) / sd, (high + 0.5 - mean) / sd
    if a < -8 and b > 8:
        return mean, variance
    if a > 8 or b < -8:  # all mass is next to the near end
        end, far = (low, a) if a > 8 else (high, b)
        return end, max(variance / far**2, 0.1)
    mass = float(ndtr(b) - ndtr(a))
    at_a, at_b = (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) for z in (a, b))
    drift = (at_a - at_b) / mass
    slope = ((a * at_a if a > -40 else 0.0) - (b * at_b if b < 40 else 0.0)) / mass
    return mean + sd * drift, max(variance * (1 + slope - drift**2), 0.1)
