"""Independent integers given their sum, drawn exactly from messages of positive terms.

x_i in 0 .. cap_i with weights h_i, sum x = n. Messages f_i(k) = weight of rows i, i+1, ... with sum
k, in doubles, decide almost every draw; the rest is decided in ball arithmetic from the same words,
so the law is exact: H = 0. In a row the values are tried in the order centre, +1, -1, +2, -2, ...

`Intervals`: h_i is 1 on lo_i .. hi_i and falls by exp(-rate) per step outside. One column of a
table around its true value is of this kind (lo = hi = s, rate = eps_cell), and so are the last two
columns given what the others leave (below), hence 2 x c tables.

Nonnegative tables with given margins by divide and conquer.

**Divide and conquer.** Let columns be independent, each with weight a^||x - s_j||_1 given its sum;
the target is their law given the row sums. Drawn are the first row given its sum, then the other
rows of all columns but the last two (those with the largest sums), each column given its sum. With
R = what is left of the rows and n = what is left of the two columns, accept with probability
g(R, n)/sqrt(A_1(n_1) A_2(n_2)): g = weight of all ways to fill the rest, A_j(k) = sum over x >= 0
with sum k of a^(2 ||x - s_j||_1) without the first row. It is at most 1 by Cauchy-Schwarz, and
exact because the first row is drawn with the weights sqrt(A_j) in these two columns (`FirstRow`),
which the acceptance takes back. Then the last two columns are drawn.

**The last two columns.** With d = R_i - s_i1 - s_i2, x in row i of the first costs |x - s_i1| +
|R_i - x - s_i2| = |d| + 2 (distance of x from [s_i1 + min(d, 0), s_i1 + max(d, 0)]); cut to
0 .. R_i that is a row of `Intervals` at rate 2 eps_cell.

Doubles decide what is certain, ball arithmetic the rest: H = 0. How many proposals a draw
takes, hence its running time, depends on s.

Nonnegative tables with given margins around the true one: p(m) ~ a^||m - s||_1, drawn exactly.

m runs over integer r x c tables, m >= 0, with the margins of the confidential table s,
a = exp(-eps_cell). The law, its normaliser and the running time of a draw depend on s: the price of
that for a promise is log Z(s') - log Z(s) (the normaliser price), and an observer who can time
a draw learns something about s. The support is finite and public.

Three ways, chosen by margins and eps_cell alone:
- "two columns" (2 x c): one column given its sum (`Intervals`), no rejection;
- "columns" (3 x c, small): dynamic programming over columns, state = what is left of two rows;
- "divide and conquer" (to about 10 x 10): `divide`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from flint import arb_poly

from congenial.errors import FigureError, StructureError
from congenial.privacy.columns_error import columns_error, columns_fit
from congenial.sampling.exact_decisions import (
    ball,
    below,
    pick,
    pick_fast,
    positive_rational,
    working_precision,
)
from congenial.sampling.inversion import Floats, Ints
from congenial.sampling.lattice_gaussian import checked_tables
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way_noise import refuse_if_rare, turned

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
        from congenial.sampling import two_way_kernels as kernels

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
        from congenial.sampling import two_way_kernels as kernels

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
        from congenial.sampling import two_way_kernels as kernels

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


_JUDGE = 2.0**-30  # absolute error granted to log probabilities in doubles, which make 2^-36


class FirstRow(GivenSum):
    """The first row of a proposal of `Divide`: x_j in column j has the weight a^|x - s_1j| times
    what the rest of the column weighs: its message, or for the last two columns the square root of
    its message at twice the rate.
    """

    def __init__(self, s: Ints, columns: list[Intervals], eps: Fraction) -> None:
        self._s, self._columns, self._eps = s[0], columns, eps
        n = int(s[0].sum())
        cap = np.minimum(s.sum(axis=0), n)
        check_memory(2 * s.shape[1] * (n + 1))
        h = np.zeros((s.shape[1], int(cap.max()) + 1))
        for j, law in enumerate(columns):
            x = np.arange(int(cap[j]) + 1)
            logs = law.log_messages(1)[law.n - x] * self._share(j)
            logs = logs - float(eps) * np.abs(x - int(s[0, j]))
            h[j, : len(x)] = np.exp(logs - logs.max())
        super().__init__(h, cap, s[0].copy(), n)

    def _share(self, j: int) -> float:
        return 1.0 if j < len(self._columns) - 2 else 0.5

    def _fill(self) -> None:
        self.f[-1] = 0.0
        self.f[-1, 0] = 1.0
        for j in range(len(self.h) - 1, -1, -1):  # direct sums of positive terms
            row = np.convolve(self.h[j, : int(self.cap[j]) + 1], self.f[j + 1])[: self.n + 1]
            self.scale[j] = row.max()
            self.f[j] = row / self.scale[j]

    def exact_weights(self, i: int) -> list[Any]:
        """The weights of column i as balls."""
        law = self._columns[i]
        rest = law.exact_messages(1)
        root = self._share(i) < 1
        out = []
        for x in range(int(self.cap[i]) + 1):
            w = rest[law.n - x]
            away = (-ball(self._eps * abs(x - int(self._s[i])))).exp()
            out.append(away * (w.sqrt() if root else w))
        return out


class Divide:
    """r x c by divide and conquer: exact, by rejection; log_Z is not computed.

    `proposals` counts the proposals of the last draw: it depends on s, do not publish it.
    """

    name = "divide and conquer"
    log_Z: float | None = None
    log_ratio_error = 0.0

    def __init__(self, s: Ints, eps: Fraction) -> None:
        # by public sums: the row with the largest first, the two such columns last
        self._rows = np.argsort(-s.sum(axis=1), kind="stable")
        self._columns = np.argsort(s.sum(axis=0), kind="stable")
        self._s = np.ascontiguousarray(s[np.ix_(self._rows, self._columns)])
        self._sums, self._eps = self._s.sum(axis=0), eps
        r, c = s.shape
        widest = int(self._sums.max()) + 1
        check_memory(2 * c * (r + 1) * widest)
        self._laws = [self._column(j, eps if j < c - 2 else 2 * eps) for j in range(c)]
        self._first = FirstRow(self._s, self._laws, eps)
        self._stack = self._stacked(self._laws[: c - 2], widest)
        self._log_a = np.full((2, widest), -np.inf)
        for t, law in enumerate(self._laws[c - 2 :]):
            self._log_a[t, : law.n + 1] = law.log_messages(1)
        self.slack = 2 * message_slack(r, widest) + message_slack(c, self._first.n)
        self.judge_slack = _JUDGE + 4 * self.slack
        self.proposals = 0

    def _column(self, j: int, rate: Fraction) -> Intervals:
        s, n = self._s[:, j].copy(), int(self._sums[j])
        return Intervals(s, s, np.full_like(s, n), n, rate)

    def _stacked(self, laws: list[Intervals], widest: int) -> tuple[Any, ...]:
        """The laws of the columns as arrays with the column as first index."""
        r = self._s.shape[0]
        f, h = np.zeros((len(laws), r + 1, widest)), np.zeros((len(laws), r, widest))
        for j, law in enumerate(laws):
            f[j, :, : law.n + 1], h[j, :, : law.n + 1] = law.f, law.h
        rest = [np.array([part[i] for part in (law.law for law in laws)]) for i in (1, 3, 4, 5)]
        return f, rest[0], h, rest[1], rest[2], rest[3]

    def _last_two(self, row: Ints, left: Ints) -> Intervals:
        """The last two columns without the first row, given what is left for them."""
        s1, s2 = self._s[1:, -2].copy(), self._s[1:, -1].copy()
        return pair_law(s1, s2, left[1:].copy(), int(self._sums[-2] - row[-2]), self._eps)

    def _log_acceptance(self, row: Ints, left: Ints) -> Any:
        """log of the acceptance as a ball."""
        law = self._last_two(row, left)
        norm = int(np.abs(left - self._s[:, -2] - self._s[:, -1])[1:].sum())
        logs = law.exact_messages(0)[law.n].log() - ball(self._eps * norm)
        for t in (-2, -1):
            column = self._laws[t]
            logs -= column.exact_messages(1)[column.n - int(row[t])].log() / 2
        return logs

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw."""
        from congenial.sampling import two_way_kernels as kernels

        r, c = self._s.shape
        m, row = np.zeros((c, r), dtype=np.int64), np.zeros(c, dtype=np.int64)
        left = self._s.sum(axis=1)
        state = np.array([-1, 0, left[0], 1])
        by_column = np.ascontiguousarray(self._s.T)
        words, at = randomness.words(64 * r * c), 0
        while True:
            status, at = kernels.divide(
                m, state, words, at, left, by_column, self._sums, row, self._first.law,
                self._stack, self._log_a, float(self._eps), self.slack, self.judge_slack,
            )  # fmt: skip
            if status == kernels.WORDS:
                words, at = randomness.words(512 * r * c), 0
            elif status == kernels.CELL:
                self._settle(m, row, state, int(words[at - 1]), randomness)
            elif status == kernels.FINISHED or below(
                int(words[at - 1]), 64, partial(self._log_acceptance, row, left), randomness
            ):
                break
            else:
                kernels.restart(m, state, left)
        self.proposals = int(state[3])
        return self._assemble(m.T, row, left, randomness)

    def _settle(self, m: Ints, row: Ints, state: Ints, word: int, randomness: Randomness) -> None:
        """One open cell in ball arithmetic."""
        j, i, k = state[:3].tolist()
        law, place = (self._first, row) if j < 0 else (self._laws[j], m[j])
        place[i] = law.settle(i, k, word, randomness)
        state[1], state[2] = i + 1, k - place[i]

    def _assemble(self, m: Ints, row: Ints, left: Ints, randomness: Randomness) -> Ints:
        m[0] = row
        m[1:, -2] = self._last_two(row, left).draw(randomness)
        m[1:, -1] = left[1:] - m[1:, -2]
        out = np.empty_like(m)
        out[np.ix_(self._rows, self._columns)] = m
        return out


class _Way(Protocol):
    """One way to draw: a table with positive margins and at least two columns."""

    name: str
    log_Z: float | None
    log_ratio_error: float

    def draw(self, randomness: Randomness) -> Ints: ...


class TwoColumns:
    """r x 2: exact, no rejection."""

    name = "two columns"
    log_ratio_error = 0.0

    def __init__(self, s: Ints, eps: Fraction) -> None:
        self._rows = s.sum(axis=1)
        first, second = s[:, 0].copy(), s[:, 1].copy()
        self._law = pair_law(first, second, self._rows, int(first.sum()), eps)
        self.log_Z: float | None = self._law.log_Z

    def draw(self, randomness: Randomness) -> Ints:
        """One exact draw."""
        x = self._law.draw(randomness)
        return np.column_stack([x, self._rows - x])


class Columns:
    """3 x c: dynamic programming over columns; log_ratio_error is its H.

    f_j(t1, t2) is the weight of columns j, j+1, ... when t1, t2 are left of the first two rows, a
    sum of positive terms in doubles with relative error (terms + 700) 2^-52 per column. A column is
    drawn with the true a^(...) and these f_j as they are, exactly; so a draw is off by at most
    twice the sum of those errors in log probability, and no outcome is lost.
    """

    name = "columns"

    def __init__(self, s: Ints, eps: Fraction) -> None:
        self._s, self._eps = s, eps
        rows, columns = s.sum(axis=1).tolist(), s.shape[1]
        self._f = np.zeros((columns + 1, rows[0] + 1, rows[1] + 1))
        self._f[columns, 0, 0] = 1.0
        left = 0
        for j in range(columns - 1, -1, -1):
            left += int(s[:, j].sum())
            self._fill(j, left)
        self.log_ratio_error = columns_error(s.sum(axis=0))
        self.log_Z: float | None = math.log(self._f[0, rows[0], rows[1]])

    @staticmethod
    def fits(s: Ints, eps: Fraction) -> bool:
        """Whether work and memory are small and no weight leaves the range of doubles."""
        return columns_fit(s.sum(axis=1), s.sum(axis=0), eps)

    def _powers(self, j: int) -> tuple[Floats, Floats, Floats]:
        """a^|x - s_ij|, x = 0 .. n_j, for the three rows."""
        x = np.arange(int(self._s[:, j].sum()) + 1)
        one, two, three = (np.exp(-float(self._eps) * np.abs(x - v)) for v in self._s[:, j])
        return one, two, three

    def _fill(self, j: int, left: int) -> None:
        from congenial.sampling import two_way_kernels as kernels

        third = int(self._s[2].sum())
        kernels.add_column(self._f[j + 1], *self._powers(j), left, third, self._f[j])

    def draw(self, randomness: Randomness) -> Ints:
        """One draw, column by column."""
        out = np.empty_like(self._s)
        t1, t2 = self._s[:2].sum(axis=1).tolist()
        for j in range(self._s.shape[1] - 1):
            n = int(self._s[:, j].sum())
            x = np.array([(a, b, n - a - b) for a in range(min(n, t1) + 1)
                          for b in range(min(n - a, t2) + 1)])  # fmt: skip
            f = self._f[j + 1][t1 - x[:, 0], t2 - x[:, 1]]
            x, f = x[f > 0], f[f > 0]
            away = np.abs(x - self._s[:, j]).sum(axis=1)
            weights = f * np.exp(-float(self._eps) * away)

            def exact(away: Ints = away, f: Floats = f) -> list[Any]:
                return [
                    (-ball(self._eps * int(d))).exp() * float(v)
                    for d, v in zip(away, f, strict=True)
                ]

            slack = (len(x) + 700) * 2.0**-52
            out[:, j] = x[pick_fast(weights, slack, exact, randomness)]
            t1, t2 = t1 - int(out[0, j]), t2 - int(out[1, j])
        last = self._s.sum(axis=1) - out[:, :-1].sum(axis=1)
        out[:, -1] = last
        return out


class TwoWayCounts(WeightedLaw):
    """Tables m >= 0 with the margins of s, p(m) = exp(-eps_cell ||m - s||_1) / Z(s).

    s: the confidential table, integers >= 0 of shape (r, c); it stays inside and is not shown.
    `way` names the method, log_Z is None for "divide and conquer", `log_ratio_error` is H (0 unless
    way is "columns"). Shapes beyond about 10 x 10 are refused.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> s = np.array([[3, 0, 2], [1, 4, 0]])
    >>> m = TwoWayCounts(s, 1).draw(SeededRandomness(1))
    >>> (m.sum(axis=0) == s.sum(axis=0)).all() and (m.sum(axis=1) == s.sum(axis=1)).all()
    np.True_
    """

    def __init__(self, s: npt.ArrayLike, eps_cell: Fraction | int) -> None:
        self.eps_cell = positive_rational("eps_cell", eps_cell)
        self._s = checked_counts(s)
        self.shape: tuple[int, int] = (self._s.shape[0], self._s.shape[1])
        # a row or column with sum zero is zero in every table: a public fact, left out
        self._free = np.ix_(self._s.sum(axis=1) > 0, self._s.sum(axis=0) > 0)
        core = self._s[self._free]
        self._turned = turned((core.shape[0], core.shape[1]))
        self._way = choose_way(
            np.ascontiguousarray(core.T if self._turned else core), self.eps_cell
        )

    def __repr__(self) -> str:
        return f"TwoWayCounts({self.shape[0]} x {self.shape[1]}, eps_cell={self.eps_cell})"

    @property
    def way(self) -> str:
        """How a draw is made."""
        return self._way.name if self._way else "one table"

    @property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-eps_cell ||m - s||_1); confidential. None where not computed."""
        return self._way.log_Z if self._way else 0.0

    @property
    def log_ratio_error(self) -> float:
        """H: the law drawn from is within this of the stated one, in log probability."""
        return self._way.log_ratio_error if self._way else 0.0

    def log_weight(self, m: npt.ArrayLike) -> Any:
        """-eps_cell ||m - s||_1, or -inf off the support: the log density up to log Z.

        m has shape (..., r, c); the result has the leading shape.
        """
        return log_weight(self._s, self.eps_cell, m)

    def draw(self, randomness: Randomness) -> Ints:
        """One draw, shape (r, c). Its running time depends on s and on chance."""
        out = np.zeros(self.shape, dtype=np.int64)
        if self._way is None:
            return self._s.copy()
        core = self._way.draw(randomness)
        out[self._free] = core.T if self._turned else core
        return out

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent draws, shape (n, r, c), one after the other."""
        out = np.empty((n, *self.shape), dtype=np.int64)
        for i in range(n):
            out[i] = self.draw(randomness)
        return out


def log_weight(s: Ints, eps: Fraction, m: npt.ArrayLike) -> Any:
    """-eps ||m - s||_1 where m >= 0 has the margins of s, else -inf; m has shape (..., r, c)."""
    tables = checked_tables(m, (s.shape[0], s.shape[1]))
    off = (tables < 0).any(axis=(-2, -1))
    for axis in (-1, -2):
        off |= (tables.sum(axis=axis) != s.sum(axis=axis)).any(axis=-1)
    norm = np.abs((tables - s).astype(float)).sum(axis=(-2, -1))
    return np.where(off, -np.inf, -float(eps) * norm)[()]


def choose_way(s: Ints, eps: Fraction) -> _Way | None:
    """The way for a table with positive margins, already turned; by public margins alone."""
    r, c = s.shape
    if min(r, c) <= 1:
        return None
    if c == 2:
        return TwoColumns(s, eps)
    if min(r, c) == 3:
        three = s if r == 3 else np.ascontiguousarray(s.T)
        order = np.argsort(three.sum(axis=1), kind="stable")  # the largest row is implied
        if Columns.fits(three[order], eps):
            return _Reordered(Columns(np.ascontiguousarray(three[order]), eps), order, r != 3)
    refuse_if_rare(r, c)
    return Divide(s, eps)


class _Reordered:
    """Undoes a permutation of rows and a transposition."""

    def __init__(self, way: _Way, order: Ints, transpose: bool) -> None:
        self._way, self._order, self._transpose = way, order, transpose
        self.name, self.log_Z, self.log_ratio_error = way.name, way.log_Z, way.log_ratio_error

    def draw(self, randomness: Randomness) -> Ints:
        """One draw of the inner way, put back in place."""
        inner = self._way.draw(randomness)
        out = np.empty_like(inner)
        out[self._order] = inner
        return out.T if self._transpose else out


def checked_counts(s: npt.ArrayLike) -> Ints:
    """s as a two-way table of integers >= 0; FigureError or StructureError, no value shown."""
    table = np.asarray(s)
    if table.ndim != 2 or table.size == 0 or not np.issubdtype(table.dtype, np.integer):
        raise StructureError(
            "a two-way table of integers is needed.", remedy="Give an array of shape (r, c)."
        )
    if (table < 0).any():
        raise FigureError(
            "the table has a negative cell, which contradicts m >= 0.",
            remedy="Give counts, or use TwoWayNoise, which has no sign constraint.",
        )
    fixed = table.astype(np.int64)
    fixed.flags.writeable = False
    return fixed
