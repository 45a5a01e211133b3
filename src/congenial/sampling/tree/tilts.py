"""How cells of a tree of sums are tilted, and the messages of their sums.

Where bounds push a sum away from its total (many empty cells), cells are tilted by e^(theta u):
given the total that is a constant, and it centres the windows of `messages`. A poor choice costs
time and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from congenial.sampling.discrete import CellLaw, DoubleGeometric, Floats
from congenial.sampling.inversion import Ints
from congenial.sampling.tree.messages import Leaf

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
    found: list[tuple[float, float]] = []
    for piece in pieces:
        parts = [found[i] for i in piece.below]
        parts += [planner.moments(piece.own, theta)] if piece.own is not None else []
        mean, variance = sum(p[0] for p in parts), sum(p[1] for p in parts)
        found.append(_cut_normal(mean, variance, piece.low, piece.high))
    return found[-1]


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
