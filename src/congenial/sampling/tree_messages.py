"""Exact draws of independent integers given their sum, or given sums all over a tree: messages.

The target is w(u) = prod over leaves w_i(u_i) x prod over inner nodes exp(-eps_v |x_v|), x_v = sum
of the leaves below v, x_root fixed. Its messages S_v(x) = sum_y M_left(y) M_right(x - y) and
M_v(x) = exp(-eps_v |x|) S_v(x) are sums of positive terms. Floats cannot hold them exactly, nor all
x, so each is replaced by an *upper bound* with full support:

- inside a window, the float sum times 1 + (a bound of its rounding error), plus the mass that
  outcomes outside the children's windows can have at most;
- beyond the window a geometric tail c exp(-t (x - edge)) that dominates by Chernoff's inequality,
  S_v(x) <= e^(-t x) sum_y M_left(y) e^(t y) max_z M_right(z) e^(t z), any t below the children's.

A draw goes down the tree: y given x has the integer weight n(y) = floor(2^62 M_left(y)
M_right(x - y) / S_v(x)) + 1 out of 2^62, so the proposal q(u) = prod n / 2^62 is known exactly, and
with M, S upper bounds every factor of

    w(u) / (M_root q(u)) = prod_leaves w_i/M_i x prod_v e^(-eps_v |x_v|) M_left M_right / (M_v
    n/2^62)

is at most 1. The draw is kept with that probability, in ball arithmetic: the result has *exactly*
the target law (H = 0 in the guarantee); nothing about it rests on floats being right, only
on their error bounds. Nearly every factor is 1 - O(2^-41): one word decides all of them at once,
unless it is among the last few; rare outcomes (n < 2^41) are checked one by one. Outcomes outside
a window (about 2^-60 of the time) take a slow path from there on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from flint import arb

from congenial.data.arrays import Floats
from congenial.errors import StructureError
from congenial.sampling.discrete import CellLaw, DiscreteGaussian, DoubleGeometric
from congenial.sampling.exact_decisions import ball

WHOLE = 62  # a row of integer weights fills at most 2^62
RARE = 1 << 41  # an outcome with a smaller weight is checked on its own
OUT_OF_WORDS, DONE = 0, 2


_CUT = 80 * math.log(2)  # a window ends where a message falls below 2^-80 of its largest value
WIDEST = 1 << 22  # largest window
_UNIT = 2.0**-52
_FUNCTION = 2.0**-45  # relative error of a float exp of an argument up to 67, rounded up
FACTOR = 2.0**WHOLE * (1 + 2.0**-48)  # so that rounding never makes n too small
_SLOPES = (0.99, 0.98, 0.96, 0.92)  # shares of the children's slope tried for a tail


class Weight(Protocol):
    """What a leaf's exact weight has to tell."""

    def allows(self, u: int) -> bool:
        """Whether u has any weight."""

    def log_ratio(self, u: int) -> Any:
        """log of the weight of an allowed u over the one that M = 1 stands for, as a ball."""


@dataclass(frozen=True)
class Leaf:
    """w(u) = exp(log weight of the law at u + tilt u) for low <= u <= high (None: no bound).

    The tilt multiplies the law given a sum by a constant; it centres the windows.
    """

    law: CellLaw
    low: int | None = None
    high: int | None = None
    tilt: Fraction = Fraction(0)

    def exponent(self, u: int) -> Fraction:
        """log w(u) for u inside the bounds."""
        if isinstance(self.law, DoubleGeometric):
            return self.tilt * u - self.law.eps * abs(u)
        return self.tilt * u - Fraction(u * u) / (2 * self.law.sigma2)

    def allows(self, u: int) -> bool:
        """Whether u is inside the bounds."""
        return (self.low is None or u >= self.low) and (self.high is None or u <= self.high)

    def log_ratio(self, u: int) -> Any:
        """log w(u)/w(mode) as a ball, for u inside the bounds."""
        return ball(self.exponent(u) - self.exponent(self.mode))

    @cached_property
    def mode(self) -> int:
        """A point of largest weight; StructureError if there is none."""
        if isinstance(self.law, DoubleGeometric):
            unbounded = (self.tilt >= self.law.eps and self.high is None) or (
                self.tilt <= -self.law.eps and self.low is None
            )
            if unbounded:
                raise StructureError(
                    f"a tilt of {self.tilt} is too strong for an unbounded cell.",
                    remedy="Use a tilt below eps_cell in absolute value.",
                )
            peak = 0
            if abs(self.tilt) > self.law.eps:
                peak = (self.high if self.tilt > 0 else self.low) or 0
        else:
            peak = round(self.tilt * self.law.sigma2)
        if self.low is not None:
            peak = max(peak, self.low)
        return peak if self.high is None else min(peak, self.high)

    def edge(self, step: int) -> int:
        """The last point from the mode in direction `step` with a weight above 2^-80 of it."""
        bound = self.low if step < 0 else self.high
        floor = self.exponent(self.mode) - Fraction(_CUT)
        reach = 1
        while True:
            x = self.mode + step * reach
            if bound is not None and (x - bound) * step >= 0:
                x, reach = bound, abs(bound - self.mode)
                if self.exponent(x) >= floor:
                    return x
            if self.exponent(x) < floor:
                break
            reach *= 2
        inside, outside = 0, reach
        while outside - inside > 1:
            middle = (inside + outside) // 2
            if self.exponent(self.mode + step * middle) >= floor:
                inside = middle
            else:
                outside = middle
        return self.mode + step * inside

    def exponents(self, lo: int, hi: int) -> Floats:
        """Floats of exponent(u) - exponent(mode), u = lo .. hi, without cancellation."""
        u = np.arange(lo, hi + 1, dtype=np.float64)
        mode = self.mode
        if isinstance(self.law, DiscreteGaussian):
            d = u - mode
            drift = float(self.tilt - Fraction(mode) / self.law.sigma2)
            return np.asarray(d * (drift - d / float(2 * self.law.sigma2)))
        up, down = float(self.tilt - self.law.eps), float(self.tilt + self.law.eps)
        start = mode
        pieces = up * (np.maximum(u, 0) - max(start, 0)) + down * (np.minimum(u, 0) - min(start, 0))
        return np.asarray(pieces)


@dataclass(frozen=True, eq=False)
class Node:
    """One distinct message: window lo .. lo + len(m) - 1, M and S there, geometric tails beyond.

    M(x) = c_hi exp(-t_hi (x - hi)) for x > hi (nothing if c_hi = 0), likewise below. `pull_*` is
    Chernoff's t. M is in units of 2^units, S is not.
    """

    left: int
    right: int
    eps: Fraction
    leaf: Weight | None
    lo: int
    m: Floats
    s: Floats
    c_lo: float
    t_lo: float
    c_hi: float
    t_hi: float
    pull_lo: float = 0.0
    pull_hi: float = 0.0
    units: int = 0
    slack: float = 0.0  # bound of 1 - factor for an outcome inside the windows, n not counted
    floor: float = 0.0  # how much of M comes from outside the children's windows
    log_scale: float = 0.0  # log of what M has to be multiplied with

    @property
    def hi(self) -> int:
        """Last point of the window."""
        return self.lo + len(self.m) - 1

    @cached_property
    def top(self) -> float:
        """An upper bound of M over all integers."""
        return float(max(self.m.max(), self.beyond))

    @property
    def beyond(self) -> float:
        """An upper bound of M outside the window."""
        sides = (self.c_lo * math.exp(-self.t_lo), self.c_hi * math.exp(-self.t_hi))
        return max(sides) * (1 + _FUNCTION)

    def vanishes(self, x: int) -> bool:
        """Whether M(x) = 0: beyond a window that holds all there is on its side."""
        return (x > self.hi and self.c_hi == 0) or (x < self.lo and self.c_lo == 0)

    def value(self, x: int) -> Any:
        """M(x) as a ball, anywhere."""
        if self.lo <= x <= self.hi:
            return arb(float(self.m[x - self.lo]))
        if x > self.hi:
            return arb(self.c_hi) * (-ball(Fraction(self.t_hi) * (x - self.hi))).exp()
        return arb(self.c_lo) * (-ball(Fraction(self.t_lo) * (self.lo - x))).exp()


def _leaf_node(leaf: Leaf) -> Node:
    lo, hi = leaf.edge(-1), leaf.edge(+1)
    if hi - lo > WIDEST:
        raise StructureError(
            "the noise of one cell is too wide for a table.", remedy="Use a larger epsilon."
        )
    m = np.exp(leaf.exponents(lo, hi)) * (1 + _FUNCTION)
    tails = []
    for edge, step in ((lo, -1), (hi, 1)):
        c, slope = 0.0, math.inf
        if leaf.allows(edge + step):
            # the weights are log-concave: the next ratio bounds all later ones
            fall = leaf.exponent(edge) - leaf.exponent(edge + step)
            c, slope = float(m[edge - lo]), float(fall) * (1 - 4 * _UNIT)
        tails.append((c, slope))
    return Node(
        -1, -1, Fraction(0), leaf, lo, m, m, *tails[0], *tails[1], slack=2 * _FUNCTION,
        log_scale=float(leaf.exponent(leaf.mode)),
    )  # fmt: skip


def steep(t: float) -> float:
    """e^t - 1, which bounds on the mass of a tail divide by; less where that is no double."""
    return math.expm1(min(t, 700.0))


def lumps_of(a: Node, b: Node) -> list[tuple[float, float, int, bool, int]]:
    """Outcomes outside a window: (mass at most, rate, first point, whether it is y, direction)."""
    out = []
    for child, other, is_left in ((a, b, True), (b, a, False)):
        for c, t, edge, step in (
            (child.c_lo, child.t_lo, child.lo, -1),
            (child.c_hi, child.t_hi, child.hi, 1),
        ):
            if c > 0:
                mass = c / steep(t) * other.top * (1 + 16 * _UNIT)
                out.append((mass, t, edge + step, is_left, step))
    return out


def _chernoff(a: Node, b: Node, step: int, past: int, slope: float) -> tuple[float, float]:
    """(c, t) with S(x) <= c exp(-t |x - edge|) beyond the edge of the window; least tail mass.

    The edge lies -past inside the sum of the children's edges; the slope of log S there is the best
    t where the children's tails allow it.
    """
    sides = [
        (n.m, 1 - len(n.m), (n.c_lo, n.t_lo, n.c_hi, n.t_hi))
        if step > 0
        else (n.m[::-1].copy(), 1 - len(n.m), (n.c_hi, n.t_hi, n.c_lo, n.t_lo))
        for n in (a, b)
    ]
    steepest = min([s[2][3] for s in sides if s[2][2] > 0], default=40.0)
    best = (math.inf, math.inf, 0.0)
    tried = [slope * f for f in (1.1, 1.0, 0.9, 0.7) if slope * f < 0.99 * steepest]
    for t in [*tried, *(steepest * share for share in _SLOPES)]:
        total, _ = _exponential_sum(*sides[0], t)
        _, top = _exponential_sum(*sides[1], t)
        exponent = -t * past
        if exponent > 600 or not math.isfinite(total * top):
            continue
        # sums of positive terms: each exp is off by some t len units, the sum by len more
        rounding = 1 + 8 * _UNIT * (len(a.m) + len(b.m) + 64) * (1 + t)
        c = total * top * math.exp(exponent) * rounding
        best = min(best, (c / steep(t), c, t))
    return best[1], best[2]


def _exponential_sum(m: Floats, lo: int, tails: Any, t: float) -> tuple[float, float]:
    """(sum, maximum) over all integers of m(x) e^(t x); tails = (c_lo, t_lo, c_hi, t_hi), with
    -t_lo < t < t_hi.
    """
    c_lo, t_lo, c_hi, t_hi = tails
    with np.errstate(over="ignore"):
        weights = m * np.exp(t * np.arange(lo, lo + len(m)))
        total, top = float(weights.sum()), float(weights.max())
        for c, fall, edge in ((c_hi, t_hi - t, lo + len(m) - 1), (c_lo, t_lo + t, lo)):
            if c > 0:
                last = c * float(np.exp(t * edge))
                total += last / steep(fall)
                top = max(top, last * math.exp(-fall))
    return total, top


def _join(a: Node, b: Node, left: int, right: int, eps: Fraction) -> Node:
    """The message of a node over two children."""
    lumps = lumps_of(a, b)
    lumped = math.fsum(lump[0] for lump in lumps)
    floor = lumped + a.floor * float(b.m.sum()) + b.floor * float(a.m.sum())
    core = np.convolve(a.m, b.m)
    terms = min(len(a.m), len(b.m))
    # half of it for the rounding of sums, the rest for the + 1 of each weight and for FACTOR
    slack = (terms + 256) * _UNIT
    s = (core + lumped) * (1 + slack)
    lo = a.lo + b.lo
    x = np.abs(np.arange(lo, lo + len(s), dtype=np.float64))
    m = s * np.exp(-float(eps) * x) * (1 + _FUNCTION)
    # what lies below the children's own tails would only carry them along
    least = min(4 * floor, float(core[m.argmax()]) / 2)
    keep = np.flatnonzero((m >= m.max() * math.exp(-_CUT)) & (core >= least))
    first, last = int(keep[0]), int(keep[-1])
    if last - first > WIDEST:
        raise StructureError(
            "the noise in a sum is too wide for a table.", remedy="Use a larger epsilon."
        )
    tails: list[float] = []
    pulls = []
    for step, index, child_tails in ((-1, first, a.c_lo + b.c_lo), (1, last, a.c_hi + b.c_hi)):
        cut = index > 0 if step < 0 else index < len(s) - 1
        if not cut and child_tails == 0:
            tails += [0.0, math.inf]
            pulls.append(0.0)
            continue
        past = -index if step < 0 else index - (len(s) - 1)
        inner = core[index - 8 * step] if 0 <= index - 8 * step < len(core) else core.max()
        slope = max(math.log(float(inner) / float(core[index])) / 8, 1e-9)
        c, t = _chernoff(a, b, step, past, slope)
        edge = lo + index
        if edge * step >= 0:  # beyond the edge the node's own weight falls too
            c *= math.exp(-float(eps) * abs(edge)) * (1 + _FUNCTION)
            tails += [c, t + float(eps) * (1 - 4 * _UNIT)]
        else:
            tails += [c, t]
        pulls.append(t)
    units = math.frexp(float(m.max()))[1]
    unit = 2.0**-units
    return Node(
        left, right, eps, None, lo + first, m[first : last + 1] * unit, s[first : last + 1],
        tails[0] * unit, tails[1], tails[2] * unit, tails[3], pulls[0], pulls[1], units,
        slack=2 * _FUNCTION + 2.0**-47,
        floor=floor * unit,
        log_scale=a.log_scale + b.log_scale + units * math.log(2),
    )  # fmt: skip


class Forest:
    """Distinct messages, each made once: equal leaves and equal subtrees share one."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._leaves: dict[Leaf, int] = {}
        self._joins: dict[tuple[int, int, Fraction], int] = {}
        self._heights: list[int] = []

    def leaf(self, leaf: Leaf) -> int:
        """The number of a leaf's message."""
        if leaf not in self._leaves:
            self._leaves[leaf] = self.add(_leaf_node(leaf))
        return self._leaves[leaf]

    def add(self, leaf: Node) -> int:
        """The number of a leaf's message that is made elsewhere."""
        self.nodes.append(leaf)
        self._heights.append(0)
        return len(self.nodes) - 1

    def join(self, left: int, right: int, eps: Fraction = Fraction(0)) -> int:
        """The number of the message of a node over two others, weighted by exp(-eps |sum|)."""
        key = (left, right, eps)
        if key not in self._joins:
            self.nodes.append(_join(self.nodes[left], self.nodes[right], left, right, eps))
            self._heights.append(1 + max(self._heights[left], self._heights[right]))
            self._joins[key] = len(self.nodes) - 1
        return self._joins[key]

    def cut(self, node: int, lo: int, hi: int) -> int:
        """The number of a node's message where the sum is only allowed to be lo .. hi.

        Beyond an end inside the window nothing is left; an end outside it cuts nothing.
        """
        v = self.nodes[node]
        if v.leaf is not None or lo > v.hi or hi < v.lo or (lo <= v.lo and hi >= v.hi):
            return node
        first, last = max(lo - v.lo, 0), min(hi, v.hi) - v.lo
        below = (0.0, math.inf) if lo > v.lo else (v.c_lo, v.t_lo)
        above = (0.0, math.inf) if hi < v.hi else (v.c_hi, v.t_hi)
        window = slice(first, last + 1)
        self.nodes.append(
            replace(
                v, lo=v.lo + first, m=v.m[window], s=v.s[window],
                c_lo=below[0], t_lo=below[1], c_hi=above[0], t_hi=above[1],
            )
        )  # fmt: skip
        self._heights.append(self._heights[node])
        return len(self.nodes) - 1

    def combine(self, parts: list[int], eps: Fraction = Fraction(0)) -> int:
        """The message of a node over any number (>= 1) of others, in order, by halves.

        Runs of equal parts are halved at powers of two, so that they share. A single part cannot
        carry a weight of its own.
        """
        if len(parts) == 1:
            assert eps == 0
            return parts[0]
        half = 1 << (len(parts) - 1).bit_length() - 1
        return self.join(self.combine(parts[:half]), self.combine(parts[half:]), eps)

    def height(self, node: int) -> int:
        """Edges from the node to its deepest leaf."""
        return self._heights[node]
