"""Double geometric noise given that the noise of each group of cells sums to zero, drawn exactly.

A double geometric variable is g - g' with g, g' geometric(a), a = exp(-eps_cell): P(u) is the sum
over j of (1 - a)^2 a^(2j + |u|) = (1 - a)/(1 + a) a^|u|. Take k of them. Their sum is zero if and
only if the g_i and the g'_i have the same total Q. The vector g has probability (1 - a)^k a^(sum
g), so given Q it is uniform over the C(Q+k-1, k-1) weak compositions of Q into k parts; g'
likewise, independently. Hence Q has law ~ [C(Q+k-1, k-1) a^Q]^2. So a draw is one integer (by
`ExactLaw`) and two uniform subsets: linear in the cells, no chain, no rejection at the level of the
table.

The normaliser is a Legendre polynomial:

    Z_k = sum over {u : sum u = 0} of a^||u||_1
        = (1-a^2)^(1-k) sum_j C(k-1,j)^2 a^(2j) = P_(k-1)(coth eps_cell).

*Proof.* The probability that the sum is zero is ((1-a)/(1+a))^k Z_k, and through Q it is the sum of
[C(Q+k-1, k-1) (1-a)^k a^Q]^2. So Z_k = (1-a^2)^k sum_Q C(Q+k-1, k-1)^2 a^(2Q). With n = k - 1 and
x = a^2 the series is F(n+1, n+1; 1; x), which Euler's transformation turns into
(1-x)^(-2n-1) sum_j C(n,j)^2 x^j; and P_n(z) = sum_j C(n,j)^2 ((z-1)/2)^j ((z+1)/2)^(n-j) at
z = (1+x)/(1-x) = coth(eps_cell).

Fixed totals decouple the groups, so any laminar family of sums with noise on the leaves reduces to
this case.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.exact_decisions import ball, exp_ball, positive_rational, working_precision
from congenial.sampling.inversion import ExactLaw
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness


class Groups(IntegerLaw):
    """Independent noise on cells, given that each group of cells sums to zero.

    labels: for each cell the number of its group, 0, 1, 2, ... (every number used), or -1 for a
    cell that is not free and gets no noise; a group of one cell gets 0. Draws are exact.
    """

    log_ratio_error = 0.0

    def __init__(self, labels: npt.ArrayLike) -> None:
        self.labels = checked_labels(labels)
        self.sizes: Ints = np.bincount(self.labels[self.labels >= 0]).astype(np.int64)
        if np.any(self.sizes == 0):
            raise StructureError(
                f"group {int(np.argmin(self.sizes))} has no cell.",
                remedy="Number the groups 0, 1, 2, ... without gaps.",
            )

    @classmethod
    def of_sizes(cls, sizes: npt.ArrayLike, parameter: Fraction | int) -> Self:
        """Groups of the given sizes, in order: sizes (8, 38) are cells 0..7 and 8..45."""
        counts = np.asarray(sizes, dtype=np.int64)
        return cls(np.repeat(np.arange(counts.size), counts), parameter)  # type: ignore[call-arg]

    @property
    def cells(self) -> int:
        """Number of cells, free or not."""
        return int(self.labels.size)

    @abstractmethod
    def _log_normaliser(self, k: int) -> float:
        """log Z_k of one group of k cells."""

    @abstractmethod
    def _log_weight(self, noise: Ints) -> Floats:
        """Log weight of each noise vector, cells in the last dimension."""

    @cached_property
    def log_Z(self) -> float:
        """Sum over groups of log Z_k."""
        sizes, times = np.unique(self.sizes, return_counts=True)
        return math.fsum(
            t * self._log_normaliser(int(k)) for k, t in zip(sizes, times, strict=True)
        )

    def log_density(self, u: npt.ArrayLike) -> Any:
        """log p(u), or -inf if a group sum or a fixed cell is not zero.

        u has shape (..., cells); the result has the leading shape, a plain number for one vector.
        """
        noise = np.asarray(u, dtype=np.int64)
        if noise.shape[-1:] != (self.cells,):
            raise StructureError(
                f"noise has {noise.shape[-1:]} cells, the groups have {self.cells}.",
                remedy="Give one value per cell.",
            )
        free = self.labels >= 0
        sums = np.zeros((self.sizes.size, *noise.shape[:-1]), dtype=np.int64)
        np.add.at(sums, self.labels[free], np.moveaxis(noise[..., free], -1, 0))
        inside = ~np.any(sums, axis=0) & ~np.any(noise[..., ~free], axis=-1)
        return np.where(inside, self._log_weight(noise) - self.log_Z, -np.inf)[()]


def checked_labels(labels: npt.ArrayLike) -> Ints:
    """Labels as a flat read-only array, refused when they are not group numbers."""
    flat = np.asarray(labels).reshape(-1)
    if flat.size == 0 or not np.issubdtype(flat.dtype, np.integer) or int(flat.min()) < -1:
        raise StructureError(
            "group labels must be integers >= -1, at least one.",
            remedy="Number the groups 0, 1, 2, ... and mark cells without noise by -1.",
        )
    fixed = flat.astype(np.int64)
    fixed.flags.writeable = False
    return fixed


_CHUNK = 1 << 20  # cells drawn at a time by draw_many
_DENSE = 64  # more than this many places per cell: subsets are hashed, not marked in a bitmap
_WIDEST = 1 << 60


def legendre(n: int, eps: Fraction) -> Any:
    """P_n(coth eps) as a ball at the current precision."""
    return (1 / ball(eps).tanh()).legendre_p(n)


@lru_cache(maxsize=4096)
def log_normaliser(k: int, eps_cell: Fraction) -> float:
    """Return log Z_k: the log of the sum of exp(-eps_cell ||u||_1) over integer u in k cells with
    sum 0.

    >>> from math import log, tanh
    >>> round(log_normaliser(2, Fraction(1)), 6) == round(log(1 / tanh(1)), 6)
    True
    """
    with working_precision(128):
        return float(legendre(k - 1, eps_cell).log())


@dataclass(frozen=True)
class SharedTotal(ExactLaw):
    """The law of Q = sum g' where sum g = Q + n, for k >= 2 cells and a surplus n >= 0.

    p(Q) ~ C(Q+k-1, k-1) C(Q+n+k-1, k-1) X^Q on Q >= 0, X = exp(-2 eps_cell). Log-concave:
    w(Q+1)/w(Q) = (Q+k)(Q+n+k) / ((Q+1)(Q+n+1)) X decreases.
    """

    k: int
    eps_cell: Fraction
    surplus: int = 0
    lowest = 0

    @cached_property
    def mode(self) -> int:
        """The smallest Q >= 0 with ratio <= 1: that is (1-X) Q^2 + B Q + C >= 0 with
        B = n + 2 - X (n + 2k), whose discriminant is n^2 (1-X)^2 + 4 X (k-1)^2. Its roots are not
        whole, since X is transcendental, so that some precision tells the ceiling.
        """
        k, n, precision = self.k, self.surplus, 128
        while True:
            with working_precision(precision):
                x = exp_ball(-2 * self.eps_cell)
                root = (n * n * (1 - x) ** 2 + 4 * x * (k - 1) ** 2).sqrt()
                turn = ((root - (n + 2 - x * (n + 2 * k))) / (2 * (1 - x))).ceil()
                if turn.upper() <= 0:
                    return 0
                if turn.lower() == turn.upper():
                    return int(turn.lower().unique_fmpz())
            precision *= 2

    def _ratio(self, x: int) -> Any:
        first = arb(x + self.k) / (x + 1)
        y = x + self.surplus
        return first * (arb(y + self.k) / (y + 1)) * exp_ball(-2 * self.eps_cell)

    def _ratios(self, x: Ints) -> Floats:
        with working_precision(128):
            fall = float(exp_ball(-2 * self.eps_cell))
        first, y = (x + self.k) / (x + 1), x + self.surplus
        return np.asarray(first * (first if not self.surplus else (y + self.k) / (y + 1)) * fall)

    def _log_weight(self, x: int) -> Any:
        def log_binomials(q: int) -> Any:
            first, y = arb(q + self.k).lgamma() - arb(q + 1).lgamma(), q + self.surplus
            return 2 * first if y == q else first + arb(y + self.k).lgamma() - arb(y + 1).lgamma()

        away = ball(2 * self.eps_cell * (x - self.mode))
        return log_binomials(x) - log_binomials(self.mode) - away


class GroupedNoise(Groups):
    """Double geometric noise on cells, given that each group of cells sums to zero.

    Labels as in `Groups`. Density, for u with all group sums 0 and u = 0 on cells that are not
    free: p(u) = exp(-eps_cell ||u||_1) / prod over groups of Z_k.

    Any rational eps_cell > 0 and any group size; a draw is linear in the cells (plus a sort where
    eps_cell is so small that the noise has more than 64 values per cell). Groups of one size share
    one table.
    """

    def __init__(self, labels: npt.ArrayLike, eps_cell: Fraction | int) -> None:
        super().__init__(labels)
        self.eps_cell = positive_rational("eps_cell", eps_cell)
        drawn = np.flatnonzero(self.sizes >= 2)
        members = np.argsort(self.labels, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)]) + int(np.sum(self.labels < 0))
        keep = np.repeat(self.sizes >= 2, self.sizes)
        self._order: Ints = members[starts[0] :][keep].astype(np.int64)
        self._drawn_sizes: Ints = self.sizes[drawn]
        self._offsets: Ints = np.concatenate([[0], np.cumsum(self._drawn_sizes)]).astype(np.int64)

    def _log_normaliser(self, k: int) -> float:
        return log_normaliser(k, self.eps_cell)

    def _log_weight(self, noise: Ints) -> Floats:
        norm: Floats = np.abs(noise.astype(float)).sum(axis=-1)
        return -float(self.eps_cell) * norm

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells).

        Words: draws are made in chunks of max(1, 2^20 // cells). A chunk takes the Q of all its
        groups, sizes in ascending order, by `ExactLaw.draw`; then, draw by draw and group by
        group, the subsets for g and g', from blocks of words. What is left of a chunk's last block
        is thrown away, never used again.
        """
        out = np.zeros((n, self.cells), dtype=np.int64)
        if self._drawn_sizes.size == 0:
            return out
        rows = max(1, _CHUNK // self.cells)
        for start in range(0, n, rows):
            self._fill(out[start : start + rows], randomness)
        return out

    def _fill(self, out: Ints, randomness: Randomness) -> None:
        from congenial.sampling import word_kernels  # numba only when something is drawn

        q = self._totals(randomness, len(out))
        need = _words_expected(q, self._drawn_sizes)
        widest = int(self._drawn_sizes.max())
        places = q + self._drawn_sizes - 1
        tallest = int(np.where(places <= _DENSE * self._drawn_sizes, places, 1).max())
        task = 0
        words = randomness.words(need)
        while True:
            task, used = word_kernels.fill_groups(
                out, q, self._order, self._offsets, task, words, widest, tallest
            )
            if task == q.size:
                return
            more = randomness.words(64 + need // 16)
            words = np.concatenate([words[used:], more])
            words.flags.writeable = False  # as `words()` returns it: one compiled signature

    def _totals(self, randomness: Randomness, n: int) -> Ints:
        """Q for n draws of every group, shape (n, groups drawn)."""
        q = np.empty((n, self._drawn_sizes.size), dtype=np.int64)
        for k in np.unique(self._drawn_sizes):
            these = self._drawn_sizes == k
            law = SharedTotal(int(k), self.eps_cell)
            q[:, these] = law.draw(randomness, n * int(these.sum())).reshape(n, -1)
        if int(q.max()) > _WIDEST:
            raise StructureError(
                f"eps_cell = {self.eps_cell} makes noise too wide for 64 bits.",
                remedy="Use a larger eps_cell.",
            )
        return q


def _words_expected(q: Ints, sizes: Ints) -> int:
    """Words the subsets are likely to take: two per (draw, group), as many integers to a word as
    in the kernels for the largest q of the group, some spare.
    """
    largest = q.max(axis=0)
    per_word = np.maximum(1, np.floor(60 / np.log2(np.maximum(largest + sizes - 1, 2))))
    per_subset = np.ceil(np.minimum(largest, sizes - 1) / per_word)
    return int(2 * len(q) * per_subset.sum() * 1.01) + 16
