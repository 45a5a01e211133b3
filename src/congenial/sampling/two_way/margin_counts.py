"""Nonnegative tables with given margins around the true one: p(m) ~ a^||m - s||_1, drawn exactly.

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
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from congenial.errors import FigureError, StructureError
from congenial.privacy.columns_error import columns_error, columns_fit
from congenial.sampling.decide import pick_fast
from congenial.sampling.inversion import Floats, Ints, ball, positive_rational
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way.divide import Divide
from congenial.sampling.two_way.given_sum import pair_law
from congenial.sampling.two_way.lattice_gaussian import checked_tables
from congenial.sampling.two_way.two_way import refuse_if_rare, turned


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
        from congenial.sampling.two_way import margin_kernels as kernels

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
