"""Independent integers given their sum, drawn exactly from messages of positive terms.

x_i in 0 .. cap_i with weights h_i, sum x = n. Messages f_i(k) = weight of rows i, i+1, ... with sum
k, in doubles, decide almost every draw; the rest is decided in ball arithmetic from the same words,
so the law is exact: H = 0. In a row the values are tried in the order centre, +1, -1, +2, -2, ...

`Intervals`: h_i is 1 on lo_i .. hi_i and falls by exp(-rate) per step outside. One column of a
table around its true value is of this kind (lo = hi = s, rate = eps_cell), and so are the last two
columns given what the others leave (`margin_counts`), hence 2 x c tables.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb_poly

from congenial.errors import StructureError
from congenial.sampling.ball_precision import working_precision
from congenial.sampling.decide import pick
from congenial.sampling.inversion import Floats, Ints, ball
from congenial.sampling.randomness import Randomness

_LARGEST = 1 << 27  # doubles held by one sampler (1 GiB)


def check_memory(entries: int) -> None:
    """StructureError if this many doubles would not fit."""
    if entries > _LARGEST:
        raise StructureError(
            "the margins are so large that the tables of this sampler would pass 1 GiB.",
            remedy="Use noise without sign constraint, or coarser categories.",
        )


def message_slack(rows: int, n: int) -> float:
    """Relative error of messages in doubles (see `two_way_kernels`), weights included."""
    return (rows + 1) * (4 * n + 1024) * 2.0**-53


class GivenSum(ABC):
    """x with sum n and weights h; a subclass gives h in doubles and in balls.

    f[i] is scaled to maximum 1, scale[i] f[i] being the sum made of f[i + 1]; modes say where the
    search in a row starts. `draw` takes one word per row but the last, more where it is open.
    """

    def __init__(self, h: Floats, cap: Ints, modes: Ints, n: int) -> None:
        self.h, self.cap, self.modes, self.n = h, cap, modes, int(n)
        self.tail: Ints = np.cumsum(modes[::-1])[::-1].copy()
        self.f, self.scale = np.empty((len(modes) + 1, self.n + 1)), np.empty(len(modes))
        self.slack = message_slack(len(modes), self.n)
        self._fill()

    @abstractmethod
    def exact_weights(self, i: int) -> list[Any]:
        """h_i(0), h_i(1), ... h_i(min(cap_i, n)) as balls at the working precision."""

    @abstractmethod
    def _fill(self) -> None:
        """Compute f and scale."""

    @property
    def law(self) -> tuple[Any, ...]:
        """What the compiled search needs."""
        return self.f, self.scale, self.h, self.cap, self.modes, self.tail

    def log_messages(self, i: int) -> Floats:
        """log f_i(k) for all k; -inf where doubles are not trusted."""
        f = self.f[i]
        logs = np.log(f, where=f >= 1e-250, out=np.full(len(f), -np.inf))
        return np.asarray(logs + math.fsum(np.log(self.scale[i:])))

    @property
    def log_Z(self) -> float:
        """log of the sum of the weights; absolute error below `slack` (1e-10 or so)."""
        value = float(self.log_messages(0)[self.n])
        if value > -math.inf:
            return value
        with working_precision(256):
            return float(self.exact_messages(0)[self.n].log())

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw."""
        from congenial.sampling.two_way import margin_kernels as kernels

        search: Any = kernels.draw_rows
        x = np.zeros(len(self.modes), dtype=np.int64)
        i, k, at = 0, self.n, 0
        words = randomness.words(len(x) - 1)
        while True:
            status, i, k, at = search(x, i, k, words, at, *self.law, self.slack)
            if status == kernels.FINISHED:
                return x
            x[i] = self.settle(i, k, int(words[at - 1]), randomness)  # CELL: words never run out
            k -= int(x[i])
            i += 1

    def settle(self, i: int, k: int, word: int, randomness: Randomness) -> int:
        """x_i given the rest k of the sum, in ball arithmetic, from an open word."""
        from congenial.sampling.two_way import margin_kernels as kernels

        most = min(int(self.cap[i]), k)
        centre = int(kernels.middle(i, k, self.modes, self.tail, most))
        places = [centre]
        for step in range(1, most + 1):
            places += [y for y in (centre + step, centre - step) if 0 <= y <= most]

        def weights() -> list[Any]:
            h, f = self.exact_weights(i), self.exact_messages(i + 1)
            return [h[y] * f[k - y] for y in places]

        return places[pick(word, 64, weights, randomness)]

    def exact_messages(self, i: int) -> Any:
        """f_i as a power series of balls, index k up to n."""
        product = arb_poly([1])
        for row in range(i, len(self.modes)):
            product *= arb_poly(self.exact_weights(row))
            product = arb_poly(product.coeffs()[: self.n + 1])
        return product


class Intervals(GivenSum):
    """Weights exp(-rate * distance of x_i from lo_i .. hi_i) on 0 .. cap_i.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> s = np.array([2, 0, 5])
    >>> int(Intervals(s, s, np.array([7, 7, 7]), 7, Fraction(1)).draw(SeededRandomness(1)).sum())
    7
    """

    def __init__(self, lo: Ints, hi: Ints, cap: Ints, n: int, rate: Fraction) -> None:
        check_memory(2 * (len(lo) + 1) * (n + 1))
        self.lo, self.hi, self.rate = lo, hi, rate
        x = np.arange(n + 1)
        away = np.maximum(np.maximum(lo[:, None] - x, x - hi[:, None]), 0)
        super().__init__(np.exp(-float(rate) * away), cap, lo, n)

    def _fill(self) -> None:
        from congenial.sampling.two_way import margin_kernels as kernels

        ratio = math.exp(-float(self.rate))
        kernels.messages(self.lo, self.hi, self.cap, ratio, self.f, self.scale)

    def exact_weights(self, i: int) -> list[Any]:
        """exp(-rate * distance) as balls."""
        lo, hi, top = int(self.lo[i]), int(self.hi[i]), min(int(self.cap[i]), self.n)
        return [(-ball(self.rate * max(lo - x, x - hi, 0))).exp() for x in range(top + 1)]


def pair_law(s1: Ints, s2: Ints, rest: Ints, n: int, eps: Fraction) -> Intervals:
    """The first of two columns, with sum n, whose rows add up to `rest`."""
    d = rest - s1 - s2
    lo = np.maximum(0, s1 + np.minimum(d, 0))
    hi = np.minimum(rest, s1 + np.maximum(d, 0))
    return Intervals(lo, hi, rest, n, 2 * eps)
