"""The exact law of one split: weights, factors of the acceptance, proposals beyond the windows.

The argument is in `messages`. Everything here is rare and in ball arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb

from congenial.sampling.inversion import _Geometric, ball
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.messages import FACTOR, Node, lumps_of
from congenial.sampling.tree.split_constants import RARE, WHOLE


class SplitLaw:
    """How a sum x at a node is split into y for its left and x - y for its right part."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes

    # --- the exact factors -----------------------------------------------------------------------

    def weight(self, t: int, x: int, y: int) -> int:
        """n(y) as the compiled loop computes it, or 0 outside the windows."""
        v = self.nodes[t]
        a, b = self.nodes[v.left], self.nodes[v.right]
        z = x - y
        if not (v.lo <= x <= v.hi and a.lo <= y <= a.hi and b.lo <= z <= b.hi):
            return 0
        factor = FACTOR / float(v.s[x - v.lo])
        return int(float(a.m[y - a.lo]) * float(b.m[z - b.lo]) * factor) + 1

    def is_likely(self, t: int, x: int, y: int) -> bool:
        """Whether the factor of this outcome is left to the decision over all of them."""
        return self.weight(t, x, y) >= RARE

    def log_factor(self, t: int, x: int, y: int) -> Any:
        """log of the factor of one split: e^(-eps |x|) M_left M_right / (M 2^units q)."""
        v = self.nodes[t]
        a, b = self.nodes[v.left], self.nodes[v.right]
        ratio = a.value(y) * b.value(x - y)
        ratio /= v.value(x) * arb(2) ** v.units * self.chance(t, x, y)
        return ratio.log() - ball(v.eps * abs(x))

    def log_leaf(self, t: int, u: int) -> Any:
        """log of w(u) / M(u) for a leaf inside its bounds."""
        v = self.nodes[t]
        assert v.leaf is not None
        return v.leaf.log_ratio(u) - v.value(u).log()

    def chance(self, t: int, x: int, y: int) -> Any:
        """The exact probability with which y is proposed, as a ball."""
        n = self.weight(t, x, y)
        return arb(n) / 2**WHOLE if n else self._chance_outside(t, x, y)

    # --- a split in plain Python -----------------------------------------------------------------

    def draw(self, t: int, x: int, randomness: Randomness) -> int | None:
        """y given x at one node, wherever x is; None if rejected."""
        from congenial.sampling.tree import split_kernels

        v = self.nodes[t]
        if not v.lo <= x <= v.hi:
            return self._draw_outside(t, x, randomness)
        a, b = self.nodes[v.left], self.nodes[v.right]
        r = randomness.word() >> (64 - WHOLE)
        j = x - a.lo - b.lo
        first, last = max(0, j - len(b.m) + 1), min(len(a.m) - 1, j)
        factor = FACTOR / float(v.s[x - v.lo])
        y, _, before = split_kernels.scan(a.m, b.m, (first, last), first, (j, -1), factor, r)
        if y >= 0:
            return a.lo + int(y)
        return self.draw_lump(t, x, r - int(before), randomness)

    # --- outside the windows ---------------------------------------------------------------------

    def _lumps(self, t: int, x: int) -> list[tuple[int, float, int, bool, int]]:
        v = self.nodes[t]
        factor = FACTOR / float(v.s[x - v.lo])
        lumps = lumps_of(self.nodes[v.left], self.nodes[v.right])
        return [(int(lump[0] * factor) + 1, *lump[1:]) for lump in lumps]

    def draw_lump(self, t: int, x: int, r: int, randomness: Randomness) -> int | None:
        """An outcome with one child outside its window, or None (the room left for rounding)."""
        for weight, rate, edge, is_left, step in self._lumps(t, x):
            if r < weight:
                far = edge + step * int(_Geometric(Fraction(rate)).draw(randomness, 1)[0])
                return far if is_left else x - far
            r -= weight
        return None

    def _draw_outside(self, t: int, x: int, randomness: Randomness) -> int:
        """y given x beyond the window of its node: law ~ M_left(y) e^(t y), t Chernoff's."""
        parts = self._tilted(t, x)
        while True:
            r = randomness.word() >> (64 - WHOLE)
            for weight, rate, first, step in parts:
                if r < weight:
                    if rate is None:
                        return first
                    return first + step * int(_Geometric(rate).draw(randomness, 1)[0])
                r -= weight

    def _tilted(self, t: int, x: int) -> list[tuple[int, Fraction | None, int, int]]:
        """Parts (weight of 2^62, rate of a geometric tail or None, first point, direction)."""
        v = self.nodes[t]
        a = self.nodes[v.left]
        pull = v.pull_hi if x > v.hi else -v.pull_lo
        u = np.arange(len(a.m)) + (a.lo - (a.hi if x > v.hi else a.lo))
        weights = (a.m * np.exp(pull * u)).tolist()
        parts: list[tuple[float, Fraction | None, int, int]] = [
            (w, None, a.lo + i, 1) for i, w in enumerate(weights)
        ]
        for c, rate, edge, step in ((a.c_lo, a.t_lo, a.lo, -1), (a.c_hi, a.t_hi, a.hi, 1)):
            if c > 0:
                slope = Fraction(rate) - Fraction(pull) * step
                here = math.exp(pull * (edge - (a.hi if x > v.hi else a.lo)))
                parts.append((c * here / math.expm1(float(slope)), slope, edge + step, step))
        scale = 2.0**WHOLE * (1 - 2.0**-20) / math.fsum(p[0] for p in parts)
        return [(int(p[0] * scale) + 1, *p[1:]) for p in parts]

    def _chance_outside(self, t: int, x: int, y: int) -> Any:
        v = self.nodes[t]
        if v.lo <= x <= v.hi:
            total = arb(0)
            for weight, rate, edge, is_left, step in self._lumps(t, x):
                far = ((y if is_left else x - y) - edge) * step
                if far >= 0:
                    total += weight * geometric_pmf(Fraction(rate), far)
            return total / 2**WHOLE
        parts, total = self._tilted(t, x), arb(0)
        for weight, slope, first, step in parts:
            far = (y - first) * step
            if slope is None:
                total += weight if far == 0 else 0
            elif far >= 0:
                total += weight * geometric_pmf(slope, far)
        return total / sum(p[0] for p in parts)


def geometric_pmf(rate: Fraction, k: int) -> Any:
    """P(k) = (1 - e^-rate) e^(-rate k) as a ball."""
    return (1 - (-ball(rate)).exp()) * (-ball(rate * k)).exp()
