"""Nonnegative tables with given margins by divide and conquer (the law of `margin_counts`).

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
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from congenial.sampling.decide import below
from congenial.sampling.inversion import Ints, ball
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way.given_sum import (
    GivenSum,
    Intervals,
    check_memory,
    message_slack,
    pair_law,
)

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
        from congenial.sampling.two_way import margin_kernels as kernels

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
