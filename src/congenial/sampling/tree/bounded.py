"""Noise with bounded cells given group totals: nonnegative tables, upper bounds; drawn exactly.

p(m) ~ prod_i w(m_i - s_i), w double geometric or discrete Gaussian, on { l_i <= m_i <= h_i, group
totals fixed }. Given its total a group is a tree of sums with its total at the root (see
`messages`): cells in equal position share messages, a draw is linear in the cells, and log Z, which
the price of a sign constraint needs, is the root's message. Windows follow the noise, not the
counts, so totals of any size cost the same. Where bounds push a sum away from its total
(many empty cells), cells are tilted by e^(theta u): given the totals that is a constant.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import MandateError, StructureError
from congenial.sampling.discrete import DoubleGeometric, Floats
from congenial.sampling.inversion import Ints
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.groups import checked_labels
from congenial.sampling.tree.messages import Forest, Law, Leaf
from congenial.sampling.tree.splitter import Splitter

_FAR = 1 << 60  # stands for "no bound" in arrays of noise bounds


class BoundedGroups:
    """Noisy counts m around counts s, bounded cell by cell, given the total of each group.

    labels: the group of each cell as in `GroupedNoise`, -1 for a cell that keeps its count. centre:
    the counts s. low, high: bounds of m, one number or one per cell, None for no bound; s must be
    within. totals: the mandated totals, those of s unless given. Density, for conforming m:
    p(m) = prod_i exp(-eps |m_i - s_i|) / Z, or exp(-(m_i - s_i)^2 / (2 sigma2)) / Z.

    Exact: `log_ratio_error` and `mass_lost` are 0 by the argument in `messages`.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> groups = BoundedGroups([0, 0, 0], [2, 0, 5], DoubleGeometric(Fraction(1, 2)))
    >>> m = groups.draw(SeededRandomness(1))
    >>> int(m.sum()), bool(m.min() >= 0)
    (7, True)
    """

    log_ratio_error = 0.0
    mass_lost = 0.0

    def __init__(
        self,
        labels: npt.ArrayLike,
        centre: npt.ArrayLike,
        law: Law,
        low: npt.ArrayLike | None = 0,
        high: npt.ArrayLike | None = None,
        totals: npt.ArrayLike | None = None,
    ) -> None:
        self.labels = checked_labels(labels)
        self.centre = np.array(centre, dtype=np.int64).reshape(-1)
        self.law = law
        self.bounds = noise_bounds(self.centre, low, high, self.labels.size)
        free = self.labels >= 0
        groups = int(self.labels.max()) + 1
        self.true_totals = np.bincount(
            self.labels[free], self.centre[free].astype(float), groups
        ).astype(np.int64)
        wanted = self.true_totals if totals is None else np.array(totals, dtype=np.int64)
        if wanted.shape != (groups,):
            raise StructureError(
                f"{wanted.size} totals for {groups} groups.", remedy="Give one total per group."
            )
        self.totals: Ints = wanted
        self._shift: Ints = wanted - self.true_totals
        self._build(groups)

    def _build(self, groups: int) -> None:
        forest, planner = Forest(), LeafPlanner(self.law)
        members = np.argsort(self.labels, kind="stable")
        starts = np.searchsorted(self.labels[members], np.arange(groups + 1))
        shared: dict[tuple[bytes, Fraction], int] = {}
        self._roots, self._tilts, order = [], [], []
        for g in range(groups):
            cells = members[starts[g] : starts[g + 1]]
            if cells.size == 0:
                raise StructureError(
                    f"group {g} has no cell.",
                    remedy="Number the groups 0, 1, 2, ... without gaps.",
                )
            lows, highs = self.bounds[0][cells], self.bounds[1][cells]
            shift = int(self._shift[g])
            check_reachable(lows, highs, shift, f"group {g}")
            tilt = planner.tilt(lows, highs, shift)
            lows, highs = planner.shared_bounds(lows, highs, tilt)
            arranged = np.lexsort((highs, lows))
            lows, highs = lows[arranged], highs[arranged]
            key = (lows.tobytes() + highs.tobytes(), tilt)
            if key not in shared:
                shared[key] = planner.message(forest, lows, highs, tilt)
            self._roots.append(shared[key])
            self._tilts.append(tilt)
            order.append(cells[arranged])
        columns = np.concatenate(order) if order else np.empty(0, np.int64)
        self._forest = forest
        self._splitter = Splitter(forest, self._roots, columns, self.centre, self.bounds)

    @property
    def cells(self) -> int:
        """Number of cells, free or not."""
        return int(self.labels.size)

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of the product of weights over all conforming m; error below 1e-11 per
        1e6 cells.
        """
        return math.fsum(
            log_message(self._forest, root, int(x)) - float(tilt * int(x))
            for root, tilt, x in zip(self._roots, self._tilts, self._shift, strict=True)
        )

    def log_density(self, m: npt.ArrayLike) -> Any:
        """log p(m), -inf for m that does not conform; m has shape (..., cells)."""
        u = noise_of(m, self.centre)
        free = self.labels >= 0
        sums = np.zeros((self.totals.size, *u.shape[:-1]), dtype=np.int64)
        np.add.at(sums, self.labels[free], np.moveaxis(u[..., free], -1, 0))
        sums -= self._shift.reshape(-1, *(1,) * (u.ndim - 1))
        inside = np.all((u >= self.bounds[0]) & (u <= self.bounds[1]), axis=-1)
        inside &= ~np.any(sums, axis=0) & ~np.any(u[..., ~free], axis=-1)
        return np.where(inside, log_weight(self.law, u) - self.log_Z, -np.inf)[()]

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw: a count per cell."""
        one: Ints = self.draw_many(randomness, 1)[0]
        return one

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        return self._splitter.draw_all(randomness, n, self._shift.reshape(1, -1))


# --- shared with `elimination` -------------------------------------------------------------------


def noise_bounds(
    centre: Ints, low: npt.ArrayLike | None, high: npt.ArrayLike | None, cells: int
) -> tuple[Ints, Ints]:
    """Bounds of the noise m - s; MandateError unless low <= s <= high."""
    if centre.size != cells:
        raise StructureError(
            f"{centre.size} counts for {cells} cells.", remedy="Give one count per cell."
        )
    sides = []
    for bound, sign in ((low, -1), (high, 1)):
        side = np.full(cells, sign * _FAR)
        if bound is not None:
            side = np.broadcast_to(np.asarray(bound, dtype=np.int64), (cells,)) - centre
        if np.any(side * sign < 0):
            raise MandateError(
                "a count is outside its bounds.",
                remedy="Give bounds that the confidential table satisfies.",
            )
        sides.append(np.clip(side, -_FAR, _FAR))
    return sides[0], sides[1]


def noise_of(m: npt.ArrayLike, centre: Ints) -> Ints:
    """m - s, checked to have one value per cell."""
    counts = np.asarray(m, dtype=np.int64)
    if counts.shape[-1:] != centre.shape:
        raise StructureError(
            f"a table of {counts.shape[-1:]} cells, expected {centre.size}.",
            remedy="Give one value per cell.",
        )
    return np.asarray(counts - centre)


def log_weight(law: Law, u: Ints) -> Floats:
    """Sum over the last axis of log w(u)."""
    x = u.astype(float)
    if isinstance(law, DoubleGeometric):
        return np.asarray(-float(law.eps) * np.abs(x).sum(axis=-1))
    return np.asarray(-(x * x).sum(axis=-1) / float(2 * law.sigma2))


def log_message(forest: Forest, node: int, x: int) -> float:
    """log M(x) of a node, scale included."""
    v = forest.nodes[node]
    return v.log_scale + float(v.value(x).log())


def check_reachable(lows: Ints, highs: Ints, shift: int, name: str) -> None:
    """MandateError if no noise within the bounds has the sum `shift`."""
    least = -math.inf if np.any(lows <= -_FAR) else int(lows.sum())
    most = math.inf if np.any(highs >= _FAR) else int(highs.sum())
    if not least <= shift <= most:
        raise MandateError(
            f"the bounds of {name} cannot meet its total.", remedy="Change the total or the bounds."
        )


Alike = tuple[Floats, Floats, Ints]  # distinct (steps down, steps up) and how often they occur


def alike(lows: Ints, highs: Ints) -> Alike:
    """Count cells with equal noise bounds."""
    order = np.lexsort((highs, lows))
    lows, highs = lows[order], highs[order]
    new = np.flatnonzero(np.diff(lows, prepend=lows[0] - 1) | np.diff(highs, prepend=highs[0]))
    times = np.diff(new, append=lows.size)
    down, up = -lows[new].astype(float), highs[new].astype(float)
    down[down >= _FAR], up[up >= _FAR] = math.inf, math.inf
    return down, up, times


class LeafPlanner:
    """Chooses tilts and makes the messages of sums of bounded cells of one law."""

    def __init__(self, law: Law) -> None:
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

    def tilt(self, lows: Ints, highs: Ints, shift: int) -> Fraction:
        """A tilt that brings the mean of the sum within about half a standard deviation of shift,
        on a grid as coarse as that allows (so that groups share); 0 if it is there already.
        """
        cells = alike(lows, highs)
        theta = 0.0
        mean, variance = self.moments(cells, theta)
        if abs(mean - shift) <= math.sqrt(variance):
            return Fraction(0)
        least, most = self.range(lows, highs)
        for _ in range(100):  # Newton's method (d mean / d theta = variance) kept by bisection
            least, most = (theta, most) if mean < shift else (least, theta)
            theta += (shift - mean) / variance
            if not least < theta < most:
                theta = (least + most) / 2
            mean, variance = self.moments(cells, theta)
            if abs(mean - shift) <= 0.1 * math.sqrt(variance):
                break
        return self.rounded(theta, variance, lows, highs)

    def range(self, lows: Ints, highs: Ints) -> tuple[float, float]:
        """Tilts that leave every cell summable."""
        eps = float(self.law.eps) if isinstance(self.law, DoubleGeometric) else 0.0
        least, most = -eps - 60.0, eps + 60.0
        if isinstance(self.law, DoubleGeometric):
            least = -eps * (1 - 2.0**-10) if np.any(lows <= -_FAR) else least
            most = eps * (1 - 2.0**-10) if np.any(highs >= _FAR) else most
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
        return np.where(lows <= first, -_FAR, lows), np.where(highs >= last, _FAR, highs)

    def message(self, forest: Forest, lows: Ints, highs: Ints, tilt: Fraction) -> int:
        """The message of the sum of cells with these bounds, in this order."""
        parts = []
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            bounds = (None if low <= -_FAR else low, None if high >= _FAR else high)
            parts.append(forest.leaf(Leaf(self.law, *bounds, tilt)))
        return forest.combine(parts)


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
