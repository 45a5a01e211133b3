"""Integers on cells given a tree of sums: fixed, bounded or weighted; drawn exactly.

p(m) ~ prod_i w_i(u_i) prod_v exp(-rate_v |x_v|), u = m - s, x_v the sum of u over a set v of cells,
on { l_i <= m_i <= h_i, x_v = 0 for fixed sets, least_v <= sum of m over v <= most_v }. The sets
nest. Messages go up the tree and sums are drawn down it (see `tree_messages`): independent exact
draws, linear in the cells; equal subtrees share their messages, and log Z, which the price of a
sign constraint needs, is the product of the roots' messages. A fixed set cuts the tree: what is
inside it and what is outside are independent. At a bounded set the message is cut where the bound
ends, so that sums beyond it are not proposed. Windows follow the noise, not the counts, so totals
of any size cost the same.

**Tilts.** Where bounds push a sum away from its total (many empty cells), cells are tilted by
e^(theta u): given the total that is a constant, and it centres the windows of the messages. A poor
choice costs time and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Floats, Ints
from congenial.errors import FigureError, StructureError
from congenial.figures.limits import FAR, Limits
from congenial.figures.support import Support
from congenial.sampling.discrete import CellLaw, DoubleGeometric
from congenial.sampling.grouped_noise import checked_labels
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree_messages import Forest, Leaf
from congenial.sampling.tree_splitter import Splitter

NO_BOUND = 1 << 60  # stands for "no bound" in arrays of noise bounds

Alike = tuple[Floats, Floats, Ints]  # distinct (steps down, steps up) and how often they occur


def alike(lows: Ints, highs: Ints) -> Alike:
    """Count cells with equal noise bounds."""
    order = np.lexsort((highs, lows))
    lows, highs = lows[order], highs[order]
    new = np.flatnonzero(np.diff(lows, prepend=lows[0] - 1) | np.diff(highs, prepend=highs[0]))
    times = np.diff(new, append=lows.size)
    down, up = -lows[new].astype(float), highs[new].astype(float)
    down[down >= NO_BOUND], up[up >= NO_BOUND] = math.inf, math.inf
    return down, up, times


class LeafPlanner:
    """Chooses tilts for sums of bounded cells of one law."""

    def __init__(self, law: CellLaw) -> None:
        self.law = law
        self._reach: dict[Fraction, tuple[int, int]] = {}

    def moments(self, cells: Alike, theta: float) -> tuple[float, float]:
        """Mean and variance of the sum of independent tilted cells, to a few digits."""
        down, up, times = cells
        mean, variance = (
            _geometric_moments(float(self.law.eps), down, up, theta)
            if isinstance(self.law, DoubleGeometric)
            else _gaussian_moments(float(self.law.sigma2), down, up, theta)
        )
        return float(times @ mean), float(times @ variance)

    def tilt(self, lows: Ints, highs: Ints) -> Fraction:
        """A tilt that brings the mean of the sum within about half a standard deviation of zero,
        on a grid as coarse as that allows (so that groups share); 0 if it is there already.
        """
        cells = alike(lows, highs)
        theta = 0.0
        mean, variance = self.moments(cells, theta)
        if abs(mean) <= math.sqrt(variance):
            return Fraction(0)
        least, most = self.range(lows, highs)
        for _ in range(100):  # Newton's method (d mean / d theta = variance) kept by bisection
            least, most = (theta, most) if mean < 0 else (least, theta)
            theta += -mean / variance
            if not least < theta < most:
                theta = (least + most) / 2
            mean, variance = self.moments(cells, theta)
            if abs(mean) <= 0.1 * math.sqrt(variance):
                break
        return self.rounded(theta, variance, lows, highs)

    def range(self, lows: Ints, highs: Ints) -> tuple[float, float]:
        """Tilts that leave every cell summable."""
        eps = float(self.law.eps) if isinstance(self.law, DoubleGeometric) else 0.0
        least, most = -eps - 60.0, eps + 60.0
        if isinstance(self.law, DoubleGeometric):
            least = -eps * (1 - 2.0**-10) if np.any(lows <= -NO_BOUND) else least
            most = eps * (1 - 2.0**-10) if np.any(highs >= NO_BOUND) else most
        return least, most

    def rounded(self, theta: float, variance: float, lows: Ints, highs: Ints) -> Fraction:
        """theta on a dyadic grid of about half a standard deviation's worth, within range."""
        bits = max(1, math.ceil(math.log2(4 * math.sqrt(variance) + 1e-9)))
        least, most = self.range(lows, highs)
        while True:
            near = Fraction(round(theta * 2**bits), 2**bits)
            if least <= near <= most:
                return near
            bits += 1

    def shared_bounds(self, lows: Ints, highs: Ints, tilt: Fraction) -> tuple[Ints, Ints]:
        """Bounds outside the window of an unbounded cell say nothing inside it: drop them."""
        if isinstance(self.law, DoubleGeometric) and abs(tilt) >= self.law.eps:
            return lows, highs
        if tilt not in self._reach:
            leaf = Leaf(self.law, None, None, tilt)
            self._reach[tilt] = leaf.edge(-1), leaf.edge(+1)
        first, last = self._reach[tilt]
        return np.where(lows <= first, -NO_BOUND, lows), np.where(highs >= last, NO_BOUND, highs)

    def leaf(self, low: int, high: int, tilt: Fraction) -> Leaf:
        """A cell with these noise bounds."""
        ends = (None if low <= -NO_BOUND else low, None if high >= NO_BOUND else high)
        return Leaf(self.law, *ends, tilt)


@dataclass(frozen=True)
class Piece:
    """A sum seen from afar: its own cells, the numbers of the pieces inside it, its bounds."""

    own: Alike | None
    below: list[int]
    low: float = -math.inf
    high: float = math.inf


def balanced_tilt(
    planner: LeafPlanner, pieces: Sequence[Piece], lows: Ints, highs: Ints
) -> Fraction:
    """A tilt at which the last piece, bounds on sums counted, is about zero.

    Bounded sums are taken as cut normal laws.
    """
    least, most = planner.range(lows, highs)
    if isinstance(planner.law, DoubleGeometric):  # stronger tilts make windows very wide
        least, most = max(least, -float(planner.law.eps) / 2), min(most, float(planner.law.eps) / 2)
    for _ in range(50):
        theta = (least + most) / 2
        mean, variance = _sum_moments(planner, pieces, theta)
        least, most = (theta, most) if mean < 0 else (least, theta)
    return planner.rounded(theta, max(variance, 1.0), lows, highs)


def _sum_moments(
    planner: LeafPlanner, pieces: Sequence[Piece], theta: float
) -> tuple[float, float]:
    """Mean and variance of the last piece under a tilt, about."""
    moments: list[tuple[float, float]] = []
    for piece in pieces:
        parts = [moments[i] for i in piece.below]
        parts += [planner.moments(piece.own, theta)] if piece.own is not None else []
        mean, variance = sum(p[0] for p in parts), sum(p[1] for p in parts)
        moments.append(_cut_normal(mean, variance, piece.low, piece.high))
    return moments[-1]


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


def _truncated(n: Floats, slope: float) -> tuple[Floats, Floats, Floats]:
    """log mass, mean and variance of weights e^(slope j), j = 0 .. n (n may be infinite)."""
    a = min(max(abs(slope), 1e-9), 700.0)  # beyond, there is the first point alone
    terms = np.minimum(n, 1e15) + 1
    q = np.exp(-np.minimum(terms * a, 700))
    flat = terms * a < 1e-3
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(flat, (terms - 1) / 2, 1 / math.expm1(a) - terms * q / (1 - q))
        spread = math.exp(-a) / math.expm1(-a) ** 2 - terms**2 * q / (1 - q) ** 2
        variance = np.where(flat, (terms**2 - 1) / 12, spread)
        log_mass = np.where(flat, np.log(terms), np.log((1 - q) / -math.expm1(-a)))
    if slope > 0:
        log_mass, mean = log_mass + slope * (terms - 1), terms - 1 - mean
    return log_mass, mean, np.maximum(variance, 0.0)


def _geometric_moments(eps: float, down: Floats, up: Floats, theta: float) -> tuple[Floats, Floats]:
    """Mean and variance of weights e^(theta u - eps |u|), -down <= u <= up."""
    mass_up, mean_up, var_up = _truncated(up, theta - eps)
    mass_down, mean_down, var_down = _truncated(np.maximum(down - 1, 0), -theta - eps)
    mass_down = np.where(down < 1, -np.inf, mass_down - theta - eps)
    share = 1 / (1 + np.exp(np.clip(mass_down - mass_up, -700, 700)))  # of u >= 0
    below = -1 - mean_down
    mean = share * mean_up + (1 - share) * below
    second = share * (var_up + mean_up**2) + (1 - share) * (var_down + below**2)
    return mean, np.maximum(second - mean**2, 1e-12)


def _gaussian_moments(
    sigma2: float, down: Floats, up: Floats, theta: float
) -> tuple[Floats, Floats]:
    """Mean and variance of weights e^(theta u - u^2 / (2 sigma2)), -down <= u <= up."""
    width = math.ceil(12 * math.sqrt(sigma2)) + 2
    peak = np.round(np.clip(theta * sigma2, -down, up))
    u = peak[:, None] + np.linspace(-width, width, min(2 * width + 1, 4001)).round()
    inside = (u >= -down[:, None]) & (u <= up[:, None])
    d = u - peak[:, None]
    logs = d * (theta - peak[:, None] / sigma2) - d * d / (2 * sigma2)
    w = np.where(inside, np.exp(np.minimum(logs, 0.0)), 0.0)
    mass = w.sum(axis=1)
    mean = (w * u).sum(axis=1) / mass
    return mean, np.maximum((w * u * u).sum(axis=1) / mass - mean**2, 1e-12)


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
    nested: list[tuple[int, Ints, int, int]] = []
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
        nested.append((row, np.sort(at).astype(np.int64), least, most))
    nested.sort(key=lambda one: len(one[1]))
    top, sums, rows = np.full(labels.size, -1), list[BoundedSum](), []
    for row, cells, least, most in nested:
        below, times = np.unique(top[cells], return_counts=True)
        if all(t < 0 or len(sums[t].cells) == n for t, n in zip(below, times, strict=True)):
            top[cells] = len(sums)
            sums.append(BoundedSum(cells, least, most))
            rows.append(row)
    return sums, np.array(rows, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Counts s, the law of the noise in each (laws[kind]), and bounds of the noise."""

    centre: Ints = field(repr=False)
    laws: Sequence[CellLaw]
    kind: Ints
    low: Ints = field(repr=False)
    high: Ints = field(repr=False)

    @classmethod
    def of_one_law(
        cls,
        centre: npt.ArrayLike,
        law: CellLaw,
        low: npt.ArrayLike | None,
        high: npt.ArrayLike | None,
    ) -> NoisyCells:
        """low, high: bounds of m, one number or one per cell, None for none; s must be within."""
        s = np.array(centre, dtype=np.int64).reshape(-1)
        sides = []
        for bound, sign in ((low, -1), (high, 1)):
            side = np.full(s.size, sign * NO_BOUND)
            if bound is not None:
                side = np.broadcast_to(np.asarray(bound, dtype=np.int64), s.shape) - s
            if np.any(side * sign < 0):
                raise FigureError(
                    "a count is outside its bounds.",
                    remedy="Give bounds that the confidential table satisfies.",
                )
            sides.append(np.clip(side, -NO_BOUND, NO_BOUND))
        return cls(s, [law], np.zeros(s.size, dtype=np.int64), *sides)

    def noise(self, m: npt.ArrayLike) -> Ints:
        """m - s, checked to have one value per cell."""
        counts = np.asarray(m, dtype=np.int64)
        if counts.shape[-1:] != self.centre.shape:
            raise StructureError(
                f"a table of {counts.shape[-1:]} cells, expected {self.centre.size}.",
                remedy="Give one value per cell.",
            )
        return np.asarray(counts - self.centre)

    def log_weight(self, u: Ints) -> Any:
        """Sum over cells of log w(u); -inf outside the bounds."""
        laws = enumerate(self.laws)
        logs = sum(log_weight(law, u[..., self.kind == k]) for k, law in laws)
        inside = np.all((u >= self.low) & (u <= self.high), axis=-1)
        return np.where(inside, logs, -np.inf)


def log_weight(law: CellLaw, u: Ints) -> Floats:
    """Sum over the last axis of log w(u)."""
    x = u.astype(float)
    if isinstance(law, DoubleGeometric):
        return np.asarray(-float(law.eps) * np.abs(x).sum(axis=-1))
    return np.asarray(-(x * x).sum(axis=-1) / float(2 * law.sigma2))


@dataclass(frozen=True, eq=False)
class NestedSums:
    """Nested sets of cells, and what is asked of the sum over each.

    of_cell: the smallest set each cell is in, -1 for a cell that keeps its count. parent: the next
    larger set, -1 for none; a set comes after all sets inside it. fixed: the sum is that of s.
    rate: x_v weighs exp(-rate |x_v|). least, most: bounds of the sum of m (FAR: none).
    """

    of_cell: Ints = field(repr=False)
    parent: Ints
    fixed: npt.NDArray[np.bool_]
    rate: Sequence[Fraction]
    least: Ints
    most: Ints

    @classmethod
    def fixing(cls, of_cell: Ints, sets: int) -> NestedSums:
        """Sets apart from each other, the sum of each fixed."""
        zero = np.zeros(sets, dtype=np.int64)
        return cls(of_cell, zero - 1, zero == 0, [Fraction(0)] * sets, zero - FAR, zero + FAR)

    @classmethod
    def of_groups(cls, labels: Ints, sums: Sequence[BoundedSum] = ()) -> NestedSums:
        """Groups 0, 1, ... of fixed sum; bounded sums inside them, small ones first."""
        sizes = np.bincount(labels[labels >= 0])
        if np.any(sizes == 0):
            raise StructureError(
                f"group {int(np.argmin(sizes))} has no cell.",
                remedy="Number the groups 0, 1, 2, ... without gaps.",
            )
        holder = [*(int(labels[total.cells[0]]) for total in sums), *range(sizes.size)]
        number = np.argsort(np.argsort(holder, kind="stable"))
        groups = number[len(sums) :]
        nest = cls.fixing(np.append(groups, -1)[labels], len(holder))
        top = np.full(labels.size, -1)  # the largest bounded set that holds a cell, so far
        for i, total in enumerate(sums):
            v, inside = number[i], top[total.cells]
            nest.of_cell[total.cells[inside < 0]] = v
            nest.parent[inside[inside >= 0]], nest.parent[v] = v, groups[holder[i]]
            nest.fixed[v], nest.least[v], nest.most[v] = False, total.least, total.most
            top[total.cells] = v
        return nest

    @cached_property
    def bounded(self) -> npt.NDArray[np.bool_]:
        """Which sums have a bound."""
        return (self.least > -FAR) | (self.most < FAR)

    @cached_property
    def root(self) -> Ints:
        """For each set the set that is drawn first: the next fixed one, or the largest."""
        root = np.arange(len(self.parent))
        for v in np.flatnonzero(~self.fixed & (self.parent >= 0))[::-1].tolist():
            root[v] = root[self.parent[v]]
        return root

    @cached_property
    def cells(self) -> list[Ints]:
        """For each set the cells that are in no smaller one."""
        return _grouped(self.of_cell, len(self.parent))

    @cached_property
    def cells_below(self) -> list[Ints]:
        """For each root all its cells but those in fixed sets inside it."""
        return _grouped(np.append(self.root, -1)[self.of_cell], len(self.parent))

    def of(self, u: Ints) -> Ints:
        """Sums over all sets, first axis, of values of shape (..., cells)."""
        x = np.zeros((len(self.parent), *u.shape[:-1]), dtype=np.int64)
        inside = self.of_cell >= 0
        np.add.at(x, self.of_cell[inside], np.moveaxis(u[..., inside], -1, 0))
        for level in self._levels:
            np.add.at(x, self.parent[level], x[level])
        return x

    @cached_property
    def _levels(self) -> list[Ints]:
        """Sets inside others, the innermost first: those of one level are added up together."""
        depth, above = np.zeros(len(self.parent), dtype=np.int64), self.parent
        while np.any(above >= 0):
            depth += above >= 0
            above = np.where(above >= 0, self.parent[above], -1)
        return [np.flatnonzero(depth == d) for d in range(int(depth.max(initial=0)), 0, -1)]


def _grouped(labels: Ints, sets: int) -> list[Ints]:
    """The cells with label 0, 1, ..., each in order."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(sets + 1))
    return [order[a:b] for a, b in pairwise(starts.tolist())]


_Part = tuple[int, list[Ints]]  # a message and the cells below it, in its order (-1: no cell)
_NO_CELL = np.array([-1])
_NOTHING = Leaf(DoubleGeometric(Fraction(1)), 0, 0)  # a cell that is always zero


class TreeOfSums(IntegerLaw):
    """The law above for given cells and sums; `of_groups` and `levels` make the usual trees.

    tilts: one per set, for whoever draws the roots' sums (`elimination`); found here otherwise.
    """

    log_ratio_error = 0.0

    def __init__(
        self, cells: NoisyCells, sums: NestedSums, tilts: Sequence[Fraction] | None = None
    ) -> None:
        if cells.centre.shape != sums.of_cell.shape:
            raise StructureError(
                f"{cells.centre.size} counts for {sums.of_cell.size} cells.",
                remedy="Give one count per cell.",
            )
        self.cells, self.sums = cells, sums
        self._planners = [LeafPlanner(law) for law in cells.laws]
        self._build(self._tilted() if tilts is None else list(tilts))
        if tilts is None and self._tilts_help and np.any(sums.bounded) and not self.sharp:
            self._build(self._balanced())
        bounds = (cells.low, cells.high)
        self.splitter = Splitter(self.forest, self.roots, self._order, cells.centre, bounds)

    @classmethod
    def of_groups(
        cls,
        labels: npt.ArrayLike,
        centre: npt.ArrayLike,
        law: CellLaw,
        low: npt.ArrayLike | None = 0,
        high: npt.ArrayLike | None = None,
        sums: Sequence[BoundedSum] = (),
    ) -> TreeOfSums:
        """Noisy counts m around counts s, bounded cell by cell, given the total of each group.

        labels: the group of each cell as in `GroupedNoise`, -1 for a cell that keeps its count.
        low, high: bounds of m, one number or one per cell, None for no bound; s must be within.
        sums: bounds on sums inside groups, nested, small ones first.

        >>> from congenial.sampling.randomness import SeededRandomness
        >>> law, pair = DoubleGeometric(Fraction(1, 2)), BoundedSum(np.array([0, 1]), 0, 3)
        >>> groups = TreeOfSums.of_groups([0, 0, 0], [2, 0, 5], law, sums=[pair])
        >>> m = groups.draw(SeededRandomness(1))
        >>> int(m.sum()), bool(m.min() >= 0), bool(m[:2].sum() <= 3)
        (7, True, True)
        """
        group = checked_labels(labels)
        return cls(NoisyCells.of_one_law(centre, law, low, high), NestedSums.of_groups(group, sums))

    # --- messages --------------------------------------------------------------------------------

    @property
    def _tilts_help(self) -> bool:
        """Whether all roots are fixed, which makes a tilt a constant, and cells are of one law."""
        return len(self._planners) == 1 and not any(self.sums.rate)

    def _tilted(self) -> list[Fraction]:
        """For each root a tilt that centres its sum, bounds on cells in view."""
        tilts = [Fraction(0)] * len(self.sums.parent)
        for v in np.unique(self.sums.root).tolist() if self._tilts_help else ():
            if (cells := self.sums.cells_below[v]).size:
                bounds = self.cells.low[cells], self.cells.high[cells]
                tilts[v] = self._planners[0].tilt(*bounds)
        return tilts

    def _balanced(self) -> list[Fraction]:
        """The same with bounds on sums in view, for roots that have some inside."""
        tilts, sums = self._tilted(), self.sums
        for root in np.unique(sums.root[sums.bounded]).tolist():
            inside = np.flatnonzero(sums.root == root).tolist()
            cells = self.sums.cells_below[root]
            pieces = [self._piece(v, inside) for v in inside]
            bounds = self.cells.low[cells], self.cells.high[cells]
            tilts[root] = balanced_tilt(self._planners[0], pieces, *bounds)
        return tilts

    def _piece(self, v: int, inside: list[int]) -> Piece:
        bare, sums = self.sums.cells[v], self.sums
        own = alike(self.cells.low[bare], self.cells.high[bare]) if bare.size else None
        below = [i for i, w in enumerate(inside) if sums.parent[w] == v and not sums.fixed[w]]
        least, most, shift = int(sums.least[v]), int(sums.most[v]), int(self._centres[v])
        return Piece(
            own,
            below,
            -math.inf if least <= -FAR else least - shift,
            math.inf if most >= FAR else most - shift,
        )

    @cached_property
    def _centres(self) -> Ints:
        """The sums of s."""
        return self.sums.of(self.cells.centre)

    def _build(self, tilts: list[Fraction]) -> None:
        """Make the messages, sets in turn; the cells in the order of drawing."""
        self.forest, self.roots, self.tilts = Forest(), list[int](), tilts
        self._shared: dict[Any, int] = {}
        for law in self.cells.laws if len(self.cells.laws) > 1 else ():
            self.forest.leaf(Leaf(law))  # numbered in this order, which that of equal sums follows
        order, parts = list[Ints](), dict[int, list[_Part]]()
        for v, parent in enumerate(self.sums.parent.tolist()):
            inside, tilt = parts.pop(v, []), tilts[self.sums.root[v]]
            if not inside and not self.sums.cells[v].size:
                continue
            if not self.sums.fixed[v] and parent >= 0:
                node, cells = self._message(v, inside, tilt, self.sums.rate[v])
                parts.setdefault(parent, []).append((self._cut(v, node), cells))
                continue
            node, cells = self._message(v, inside, tilt, Fraction(0))
            if not self.sums.fixed[v]:  # a sum x with weight e^(-rate |x|): a cell -x beside it
                node, cells = self._mirrored(v, node), [*cells, _NO_CELL]
            self.roots.append(node)
            order += cells
        self._order = np.concatenate([np.empty(0, dtype=np.int64), *order])

    def _message(self, v: int, parts: list[_Part], tilt: Fraction, rate: Fraction) -> _Part:
        """The message of a set of its own cells and of other sets, and their order in it.

        Sets with equal messages are put next to each other, so that they share; a message that is
        cut is nobody else's.
        """
        bare, has_cut = self.sums.cells[v], v in self._holds_bounded
        kind, low, high = self._ends(bare, tilt)
        arranged = np.lexsort((high, low, kind))
        kind, low, high = kind[arranged], low[arranged], high[arranged]
        if not has_cut:
            parts = sorted(parts, key=lambda part: part[0])
        nodes = [node for node, _ in parts]
        key = (kind.tobytes(), low.tobytes(), high.tobytes(), tuple(nodes), tilt, rate)
        alone = bare.size + len(parts) == 1 and rate > 0  # a weight needs two to be joined
        if key not in self._shared:
            each = list(zip(kind.tolist(), low.tolist(), high.tolist(), strict=True))
            leaf_of = {cell: self._leaf(*cell, tilt) for cell in dict.fromkeys(each)}
            leaves = [leaf_of[cell] for cell in each]
            if has_cut and leaves:
                leaves = [self.forest.combine(leaves)]
            nodes = [*leaves, *nodes, *([self.forest.leaf(_NOTHING)] if alone else [])]
            self._shared[key] = self.forest.combine(nodes, rate)
        below = [bare[arranged], *(cells for _, blocks in parts for cells in blocks)]
        return self._shared[key], [*below, *([_NO_CELL] if alone else [])]

    def _leaf(self, kind: int, low: int, high: int, tilt: Fraction) -> int:
        return self.forest.leaf(self._planners[kind].leaf(low, high, tilt))

    @cached_property
    def _holds_bounded(self) -> set[int]:
        """Sets right around a bounded one."""
        return set(self.sums.parent[self.sums.bounded].tolist())

    def _ends(self, cells: Ints, tilt: Fraction) -> tuple[Ints, Ints, Ints]:
        """Kind and bounds of cells, without bounds that say nothing."""
        kind, low, high = (x[cells] for x in (self.cells.kind, self.cells.low, self.cells.high))
        for k, planner in enumerate(self._planners):
            these = kind == k
            low[these], high[these] = planner.shared_bounds(low[these], high[these], tilt)
        return kind, low, high

    def _cut(self, v: int, node: int) -> int:
        if not self.sums.bounded[v]:
            return node
        shift = int(self._centres[v])
        return self.forest.cut(
            node, int(self.sums.least[v]) - shift, int(self.sums.most[v]) - shift
        )

    def _mirrored(self, v: int, node: int) -> int:
        if self.sums.rate[v] == 0:
            raise StructureError(
                f"sum {v} is neither fixed nor weighted, and no other holds it.",
                remedy="Leave it out: what is inside it is independent.",
            )
        return self.forest.join(node, self.forest.leaf(Leaf(DoubleGeometric(self.sums.rate[v]))))

    @property
    def sharp(self) -> bool:
        """Whether few draws are wasted. Not so where many sums press against their bounds at once:
        messages are upper bounds, and what they say so far out is mostly allowance for tails.
        """
        nodes = [self.forest.nodes[root] for root in self.roots]
        return all(v.lo <= 0 <= v.hi and v.m[-v.lo] > 8 * v.floor for v in nodes)

    # --- use -------------------------------------------------------------------------------------

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of all weights; error below 1e-11 per 1e6 cells, 1e-10 with bounded
        sums.
        """
        return math.fsum(log_message(self.forest, root, 0) for root in self.roots)

    def log_density(self, m: npt.ArrayLike) -> Any:
        """log p(m), -inf for m that does not conform; m has shape (..., cells)."""
        u, sums = self.cells.noise(m), self.sums
        x = sums.of(u)
        inside = ~np.any(x[sums.fixed], axis=0) & ~np.any(u[..., sums.of_cell < 0], axis=-1)
        logs = self.cells.log_weight(u) - self.log_Z
        for v in np.flatnonzero(sums.bounded | np.array([r > 0 for r in sums.rate])).tolist():
            value = x[v] + self._centres[v]
            inside &= (value >= sums.least[v]) & (value <= sums.most[v])
            logs = logs - float(sums.rate[v]) * np.abs(x[v])
        return np.where(inside, logs, -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        nothing = np.zeros((1, len(self.roots)), dtype=np.int64)
        out = self.splitter.draw_all(randomness, n, nothing)
        again = self._beyond(out)
        while again.size:  # a bound far out in a message's tail has left the tail
            out[again] = self.splitter.draw_all(randomness, again.size, nothing)
            again = again[self._beyond(out[again])]
        return out

    def _beyond(self, m: Ints) -> Ints:
        """The draws in which a sum is beyond its bounds."""
        bounded = self.sums.bounded
        if not np.any(bounded):
            return np.empty(0, dtype=np.int64)
        values = self.sums.of(m)[bounded].T
        off = (values < self.sums.least[bounded]) | (values > self.sums.most[bounded])
        return np.flatnonzero(np.any(off, axis=1))


def log_message(forest: Forest, node: int, x: int) -> float:
    """log M(x) of a node, scale included."""
    v = forest.nodes[node]
    return v.log_scale + float(v.value(x).log())
