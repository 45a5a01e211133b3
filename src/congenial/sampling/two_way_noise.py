"""Double geometric noise given both margins of a table, without sign constraint, drawn exactly.

p(u) ~ a^||u||_1 on integer r x c tables with zero row and column sums, a = exp(-eps_cell).

**Divide and conquer.** Columns with sum zero are independent (`GroupedNoise`); what is left is
that they add up to zero. All columns but two are proposed, their sum is -delta, and the proposal
is accepted with probability f_2(delta)/f_2(0), f_2(delta) = sum over v with sum 0 of
a^(||v||_1 + ||delta - v||_1), which is largest at 0 (Cauchy-Schwarz); then v and delta - v are the
last two columns. About (2/c)^((r-1)/2) of the proposals survive.

**The last two columns.** With b = a^2, a row's weight a^(|v| + |d - v|) is a^|d| b^(distance of v
from the interval between 0 and d) = a^|d| (D_d * G)(v): G has the generating function
1/((1-bx)(1-b/x)) and D_d is positive on that interval: 1 - b at its ends, (1-b)^2 inside (1 - b^2
if d = 0). Hence, with N_r(n) the coefficient of x^n in G^r,

    f_2(delta) = a^||delta||_1 sum over w of prod D_{delta_i}(w_i) N_r(sum w):

a finite sum of positive terms, no window, although the support is unbounded. To draw v: draw w row
by row, then e with law ~ b^||e||_1 and sum -sum w as the difference of two uniform compositions
(as in `grouped_noise`), v = w + e. N_r is finite too (Pfaff's transformation):
N_r(n) = b^n C(n+r-1, r-1) (1-z)^-r sum_k (r)_k (r-1)!/((r-1-k)! k! (n+1)_k) (z/(1-z))^k, z = b^2.

Doubles decide what is certain, ball arithmetic the rest: H = 0. Running time depends on
the shape, eps_cell and chance, never on data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.exact_decisions import (
    ball,
    below,
    exp_ball,
    pick,
    positive_rational,
    working_precision,
)
from congenial.sampling.grouped_noise import GroupedNoise, SharedTotal, log_normaliser
from congenial.sampling.lattice_gaussian import checked_shape, checked_tables, zero_margins
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness

RAREST = 1e-7  # a shape where a smaller share of proposals survives is refused
_SLACK = 2.0**-30  # relative error granted to doubles, which make 2^-36 at eps_cell = 1e-4
_BATCH = 1 << 19  # cells proposed at a time


def survivors(rows: int, columns: int) -> float:
    """About the share of proposals that survive when all columns but two are proposed."""
    return 1.0 if columns <= 2 else (2 / columns) ** ((rows - 1) / 2)


def turned(shape: tuple[int, int]) -> bool:
    """Whether to exchange rows and columns: two columns are best, else what survives more often."""
    r, c = shape
    return survivors(c, r) > survivors(r, c)


def refuse_if_rare(rows: int, columns: int) -> None:
    """StructureError for shapes that would take too many proposals."""
    if survivors(rows, columns) < RAREST:
        raise StructureError(
            f"a {rows} x {columns} table with both margins is too large for exact draws of this "
            "law: fewer than one proposal in ten million would be accepted.",
            remedy="Use discrete Gaussian noise, a smaller table, or an uncertified chain.",
        )


@lru_cache(maxsize=1 << 16)
def profile_ball(r: int, n: int, eps: Fraction, precision: int) -> Any:
    """N_r(n)/N_r(0) as a ball."""

    def times(n: int) -> Any:
        z = (-ball(4 * eps)).exp()
        total, term = arb(0), arb(1)
        for k in range(r):
            total += term
            term *= arb((r + k) * (r - 1 - k)) / ((n + 1 + k) * (k + 1)) * (z / (1 - z))
        return total * math.comb(n + r - 1, r - 1) * (-ball(2 * eps * n)).exp()

    with working_precision(precision):
        return times(n) / times(0)


def _ends(size: int, b: Any) -> list[Any]:
    """D_d for |d| = size."""
    if size == 0:
        return [1 - b * b]
    return [1 - b, *[(1 - b) ** 2] * (size - 1), 1 - b]


class TwoWayNoise(WeightedLaw):
    """Independent double geometric noise on an r x c table, given zero row and column sums.

    Density p(u) = exp(-eps_cell ||u||_1) / Z; log_Z is known for min(r, c) <= 2 and None otherwise
    (`log_weight` is always there). Any eps_cell; 2 x c of any size, 3 x c to some thousand columns,
    square tables to about 14 x 14; larger ones are refused. A draw takes time ~ 1/eps_cell.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> u = TwoWayNoise((3, 5), 1).draw(SeededRandomness(1))
    >>> bool(u.sum(axis=0).any() or u.sum(axis=1).any())
    False
    """

    log_ratio_error = 0.0

    def __init__(self, shape: tuple[int, int], eps_cell: Fraction | int) -> None:
        self.eps_cell = positive_rational("eps_cell", eps_cell)
        self.shape = checked_shape(shape)
        self._turned = turned(self.shape)
        self._rows, self._columns = self.shape[::-1] if self._turned else self.shape
        refuse_if_rare(self._rows, self._columns)
        self.judge_slack = _SLACK

    @property
    def expected_acceptance(self) -> float:
        """About the share of proposals that survive."""
        return survivors(self._rows, self._columns)

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-eps_cell ||u||_1), or None where it is not computed."""
        if min(self.shape) == 1:
            return 0.0
        # rows u and -u: one row at twice eps_cell
        return log_normaliser(max(self.shape), 2 * self.eps_cell) if min(self.shape) == 2 else None

    def log_weight(self, u: npt.ArrayLike) -> Any:
        """-eps_cell ||u||_1, or -inf where a margin is not zero: the log density up to log Z.

        u has shape (..., r, c); the result has the leading shape.
        """
        noise = checked_tables(u, self.shape)
        norm = np.abs(noise.astype(float)).sum(axis=(-2, -1))
        return np.where(zero_margins(noise), -float(self.eps_cell) * norm, -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, r, c).

        Words: proposals in batches of public size; a batch takes its columns by
        `GroupedNoise.draw_many`, then a word for each acceptance; survivors, in order, take what
        open decisions and the last two columns need. What is left of a batch is thrown away.
        """
        if min(self.shape) == 1:
            return np.zeros((n, *self.shape), dtype=np.int64)
        if self._columns == 2:
            noise = GroupedNoise.of_sizes([self._rows], 2 * self.eps_cell).draw_many(randomness, n)
            tables = np.stack([noise, -noise], axis=2)
        else:
            tables = np.empty((0, self._rows, self._columns), dtype=np.int64)
            while len(tables) < n:
                tables = np.concatenate([tables, self._batch(randomness, n - len(tables))])
        out: Ints = tables.swapaxes(1, 2) if self._turned else tables
        return np.ascontiguousarray(out)

    def _batch(self, randomness: Randomness, wanted: int) -> Ints:
        """At most `wanted` tables, the first survivors of one batch of proposals."""
        from congenial.sampling import two_way_kernels as kernels

        cells = self._rows * (self._columns - 2)
        size = min(math.ceil(1.1 * wanted / self.expected_acceptance) + 8, max(1, _BATCH // cells))
        columns = self._proposals.draw_many(randomness, size)
        columns = columns.reshape(size, self._columns - 2, self._rows).swapaxes(1, 2)
        delta = np.ascontiguousarray(-columns.sum(axis=2))
        words = randomness.words(size)
        verdicts = np.empty(size, dtype=np.int8)
        profile, bounds = self._tables
        kernels.screen(
            delta, words, float(self.eps_cell), profile, bounds, self.judge_slack, verdicts
        )
        accepted = [
            t
            for t in np.flatnonzero(verdicts).tolist()
            if verdicts[t] == 1
            or below(
                int(words[t]), 64, partial(self._log_acceptance, delta[t].tolist()), randomness
            )
        ][:wanted]
        v = self._split(delta[accepted], randomness)
        return np.concatenate(
            [columns[accepted], v[:, :, None], (delta[accepted] - v)[:, :, None]], axis=2
        )

    @cached_property
    def _proposals(self) -> GroupedNoise:
        return GroupedNoise.of_sizes([self._rows] * (self._columns - 2), self.eps_cell)

    @cached_property
    def _tables(self) -> tuple[Floats, Floats]:
        """N_r(n)/N_r(0), and per row the log of its factor in a bound of f_2/f_2(0): the sum
        without the constraint sum v = 0, a^|d| (|d| + 1 + 2b/(1-b)) per row.

        They reach as far as that bound can exceed 2^-66: with ||delta||_1 = 2n it is at most what
        equal |delta_i| give (concavity).
        """
        r, eps = self._rows, float(self.eps_cell)
        b = math.exp(-2 * eps)
        wide = 1 + 2 * b / (1 - b)
        # f_2(0) = (1 - b^2)^r N_r(0), the normaliser of r cells at 2 eps
        with working_precision(128):
            base = log_normaliser(r, 2 * self.eps_cell) / r
        n = 1
        while r * (math.log(2 * n / r + wide) - base) - 2 * n * eps > -66 * math.log(2):
            n += 1 + n // 8
        profile = np.array([float(profile_ball(r, k, self.eps_cell, 128)) for k in range(n + 1)])
        d = np.arange(2 * n + 1)
        return profile, np.log(d + wide) - eps * d - base

    def _log_acceptance(self, delta: list[int]) -> Any:
        """log f_2(delta)/f_2(0) as a ball at the working precision."""
        b = exp_ball(-2 * self.eps_cell)
        norm = sum(map(abs, delta))
        whole = self._messages(delta)[0][0]
        return (whole / (1 - b * b) ** len(delta)).log() - ball(self.eps_cell * norm)

    def _messages(self, delta: list[int]) -> list[list[Any]]:
        """Balls G_i(t), t from -(downs of rows < i) up: the weight of rows i, i+1, ... when the
        rows above have sum w = t.
        """
        b = exp_ball(-2 * self.eps_cell)
        ups, downs = (sum(max(0, s * d) for d in delta) for s in (1, -1))
        last = [
            profile_ball(len(delta), abs(t), self.eps_cell, ctx.prec)
            for t in range(-downs, ups + 1)
        ]
        out = [last]
        for d in reversed(delta):
            ends, f = _ends(abs(d), b), out[0]
            out.insert(
                0,
                [
                    sum((e * f[t + k] for k, e in enumerate(ends)), arb(0))
                    for t in range(len(f) - abs(d))
                ],
            )
        return out

    def _split(self, delta: Ints, randomness: Randomness) -> Ints:
        """For each delta a v ~ prod of a^(|v_i| + |delta_i - v_i|) with sum 0."""
        from congenial.sampling import two_way_kernels as kernels

        v = np.empty_like(delta)
        words = randomness.words(delta.size).reshape(delta.shape)
        profile, eps = self._tables[0], float(self.eps_cell)
        for t in range(len(delta)):
            if not kernels.split_rows(delta[t], words[t], eps, profile, self.judge_slack, v[t]):
                v[t] = self._split_exactly(delta[t].tolist(), words[t].tolist(), randomness)
        total = -v.sum(axis=1)
        q = np.empty_like(total)
        for size in np.unique(np.abs(total)).tolist():
            these = np.abs(total) == size
            law = SharedTotal(self._rows, 2 * self.eps_cell, size)
            q[these] = law.draw(randomness, int(these.sum()))
        task = 0
        while task < len(v):
            fresh = randomness.words(4 * self._rows * (len(v) - task) + 64)
            task, _ = kernels.spread(q, total, task, fresh, v)
        return v

    def _split_exactly(self, delta: list[int], words: list[int], source: Randomness) -> list[int]:
        """w row by row in ball arithmetic, a given word for each row, more where it is open."""
        w: list[int] = []
        at = 0  # index of the sum so far in the messages
        for i, d in enumerate(delta):

            def weights(i: int = i, d: int = d, at: int = at) -> list[Any]:
                message = self._messages(delta)[i + 1]
                ends = _ends(abs(d), exp_ball(-2 * self.eps_cell))
                return [e * message[at + k] for k, e in enumerate(ends)]

            step = pick(words[i], 64, weights, source) if d else 0
            w.append(step + min(d, 0))
            at += step
        return w
