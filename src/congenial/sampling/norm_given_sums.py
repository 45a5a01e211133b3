"""Integer noise in the l2 or the largest-entry norm, given published sums; drawn exactly.

p(u) ~ exp(-rate ||u||) on the integer tables whose published sums are zero, with ||u|| the l2 norm
or the largest absolute entry (semi-dp, Algorithms 5 and 6, on the integers and on the kernel of the
figures). With the l1 norm this law is that of independent double geometric noise given the sums
(`ConditionedNoise`), which is also what is proposed here.

**Thinning.** Over d cells that vary ||u||_2 >= ||u||_1 / sqrt(d) and ||u||_inf >= ||u||_1 / d'
(d' = d, less one for each group of known sum with an odd number of cells, whose entries cannot all
be 1 or -1). Propose double geometric noise at the rate c, rational and at most rate / sqrt(d) or
rate / d', and keep it with probability exp(-(rate ||u|| - c ||u||_1)). Doubles with certified
bounds decide what is clear, ball arithmetic the rest: H = 0. The share that is kept falls
by about a quarter with each free direction for l2, by two thirds for the largest entry. Running
time depends on the figures, the rate and chance, never on data.

**Normaliser, l2.** exp(-r ||u||) is a mixture of Gaussian weights: with t of the Levy density
f(t) = r / (2 sqrt(pi)) t^(-3/2) exp(-r^2 / (4 t)), the integral of f(t) exp(-t ||u||^2) is
exp(-r ||u||). So Z = 1 + integral of f(t) (Theta(t) - 1), where Theta(t) is the normaliser of
discrete Gaussian noise with variance 1 / (2 t) given the same sums, which is known. In log t both
ends fall off faster than any exponential, and the trapezoidal rule converges as fast.

**Normaliser, largest entry.** The points with largest entry at most m are those of m times a
polytope, the cube cut by the equations. Where every corner of it is whole (equations that form the
incidence matrix of a graph with two sides, so that they are totally unimodular), their number is a
polynomial in m of degree k (Ehrhart), so Z = h(q) / (1 - q)^k with q = exp(-rate) and k + 1
coefficients h that counts up to m = k give exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.figures.support import Support
from congenial.sampling.conditioned import ConditionedNoise
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.exact_decisions import all_below, ball, first_kept, positive_rational
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness, SeededRandomness

_STEP = 0.25  # in log t; halving it changes nothing that doubles show
_NEGLIGIBLE = 34.0  # -log of what is left out at either end, relative to the largest weight
_MOST_STATES = 20_000  # partial sums kept while tables are counted


def log_sum_of_lengths(square: Fraction, support: Support) -> float | None:
    """log of the sum of exp(-sqrt(square) ||u||_2), to 1e-6; None where Gaussian noise has none."""
    k, r2 = support.degrees_of_freedom, float(square)
    # f Theta peaks near t = r2 / (2 (k + 1)); r2 / (4 t) and 2 t end it on either side
    low = math.log(r2 / (4 * (_NEGLIGIBLE + 4 * (k + 1))))
    high = math.log(_NEGLIGIBLE / 2 + 2)
    points = np.arange(low, max(high, low + 1), _STEP)
    logs = []
    for x in points.tolist():
        theta = _log_theta(math.exp(x), support)
        if theta is None:
            return None
        levy = math.log(r2 / (4 * math.pi)) / 2 - x / 2 - r2 / (4 * math.exp(x))
        logs.append(levy + _log_less_one(theta))
    return _log_of_one_and(np.array(logs) + math.log(_STEP))


def _log_less_one(log: float) -> float:
    """log(e^log - 1); -inf where nothing is left."""
    if log <= 0:
        return -math.inf
    return log if log > 40 else math.log(math.expm1(log))


def _log_of_one_and(logs: Floats) -> float:
    return float(np.logaddexp.reduce(np.append(logs, 0.0)))


def _log_theta(t: float, support: Support) -> float | None:
    """log of the sum of exp(-t ||u||_2^2) over the tables whose published sums are zero."""
    variance = Fraction(1 / (2 * t))
    try:
        return ConditionedNoise(DiscreteGaussian(variance), support).log_Z
    except StructureError:
        return None


def log_sum_of_largest(rate: Fraction, support: Support) -> float | None:
    """log of the sum of exp(-rate ||u||_inf); None where no polynomial is known."""
    if not all(_of_two_sides(kind.pattern.equations) for kind in support.ties.kinds):
        return None
    k = support.degrees_of_freedom
    counts = [_within(m, support) for m in range(k + 1)]
    if None in counts:
        return None
    q = math.exp(-float(rate))
    h = [
        sum((-1) ** i * math.comb(k + 1, i) * (counts[j - i] or 0) for i in range(j + 1))
        for j in range(k + 1)
    ]
    return math.log(math.fsum(c * q**j for j, c in enumerate(h))) - k * math.log1p(-q)


def _of_two_sides(equations: Ints) -> bool:
    """Whether every group is in one sum, or in two sums of different sides."""
    if not np.all((equations == 0) | (equations == 1)):
        return False
    rows = _less_what_they_contain(equations)
    if np.any(rows.sum(axis=0) > 2):
        return False
    meets = (rows @ rows.T > 0) & ~np.eye(len(rows), dtype=bool)
    side = np.zeros(len(rows), dtype=np.int64)
    for start in range(len(rows)):
        if not side[start]:
            side[start], waiting = 1, [start]
            while waiting:
                row = waiting.pop()
                if np.any(side[meets[row]] == side[row]):
                    return False
                waiting += np.flatnonzero(meets[row] & (side == 0)).tolist()
                side[meets[row]] = -side[row]
    return True


def _less_what_they_contain(equations: Ints) -> Ints:
    """The same equations, of which no sum contains another: that one is taken off."""
    rows = np.unique(equations, axis=0)
    for _ in range(rows.size):  # every step takes at least one group off a sum
        inside = np.all(rows[:, None] >= rows[None], axis=2) & rows.any(axis=1)
        inside &= ~np.eye(len(rows), dtype=bool)
        if not inside.any():
            break
        larger, smaller = np.argwhere(inside)[0]
        rows[larger] -= rows[smaller]
    return np.unique(rows[rows.any(axis=1)], axis=0)


def _within(m: int, support: Support) -> int | None:
    """How many tables with zero sums have no entry beyond m; None where that takes too long."""
    number: int = (2 * m + 1) ** support.loose
    cell = [1] * (2 * m + 1)
    for size in support.sizes[~support.tied].tolist():
        number *= _summed(cell, size)[m * size]
    for tie in support.ties:
        tied_sums = _tied(m, support.sizes[tie.groups], tie.equations)
        if tied_sums is None:
            return None
        number *= tied_sums
    return number


def _summed(cell: list[int], size: int) -> list[int]:
    """In how many ways `size` entries have each sum."""
    numbers = [1]
    for _ in range(size):
        longer = [0] * (len(numbers) + len(cell) - 1)
        for i, ways in enumerate(numbers):
            for j, more in enumerate(cell):
                longer[i + j] += ways * more
        numbers = longer
    return numbers


def _tied(m: int, sizes: Ints, equations: Ints) -> int | None:
    """How many entries of tied groups satisfy the equations, group by group."""
    reached: Counter[tuple[int, ...]] = Counter({(0,) * len(equations): 1})
    left = m * equations @ sizes  # what later groups can still make good
    for group, size in enumerate(sizes.tolist()):
        ways, column = _summed([1] * (2 * m + 1), size), equations[:, group].tolist()
        left = left - m * size * equations[:, group]
        further: Counter[tuple[int, ...]] = Counter()
        for sums, before in reached.items():
            for i, more in enumerate(ways):
                to = tuple(s + (i - m * size) * c for s, c in zip(sums, column, strict=True))
                if all(abs(s) <= most for s, most in zip(to, left.tolist(), strict=True)):
                    further[to] += before * more
        reached = further
        if len(reached) > _MOST_STATES:
            return None
    return reached[(0,) * len(equations)]


NoiseNorm = Literal["l2", "linf"]

LEAST_KEPT = 1e-3  # share of proposals that must be kept
MOST_FREE = 60  # free directions beyond which nothing is tried
_PROPOSALS = 2000  # of the trial
_SEED = 20200101  # public: everybody gets the same answer
_SLACK = 2.0**-40  # relative error granted to logarithms in doubles
_BATCH = 1 << 16  # proposals at a time, at most
_BITS = 24  # of the rate of the proposals


class NormGivenSums(WeightedLaw):
    """Noise ~ exp(-rate ||u||) on tables of which the sums that `support` names are zero.

    norm: "l2" or "linf". scale: the square of the rate for "l2" (a rational where the sensitivity
    is a root), the rate itself for "linf". Tables with too many free cells for exact draws are
    refused. log_Z is None where the sums cross other than as margins of two attributes.

    >>> from congenial import Schema, Figures, total
    >>> from congenial.figures.support import support
    >>> schema = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}})
    >>> known = support(Figures(schema, (total(),)), ("x",))
    >>> u = NormGivenSums("l2", Fraction(1, 4), known).draw(SeededRandomness(1))
    >>> int(u.sum())
    0
    """

    log_ratio_error = 0.0

    def __init__(self, norm: NoiseNorm, scale: Fraction, support: Support) -> None:
        self.norm, self.support = norm, support
        self.scale = positive_rational("scale", scale)
        if support.degrees_of_freedom > MOST_FREE:
            raise self._too_large()
        self.per_cell = self._rate_of_proposals()
        self.proposals = ConditionedNoise(DoubleGeometric(self.per_cell), support)
        if self.kept < LEAST_KEPT:
            raise self._too_large()

    def _too_large(self) -> StructureError:
        return StructureError(
            f"{self.norm} noise is drawn exactly for small tables only, and these figures leave "
            f"{self.support.degrees_of_freedom:,} directions free.",
            remedy="Use mechanism = 'congenial' (l1 noise), or release a coarser table.",
        )

    def _rate_of_proposals(self) -> Fraction:
        """c: the largest rational of a few bits with c ||u||_1 <= rate ||u||."""
        sizes = self.support.sizes[~self.support.tied]
        alone = sizes[sizes > 1]  # a group of one cell is fixed
        tied = int(self.support.sizes[self.support.tied].sum())
        others = self.support.loose + tied
        if self.norm == "linf":
            return self.scale / max(1, others + int((alone - alone % 2).sum()))
        return _root_below(self.scale / max(1, others + int(alone.sum())))

    @cached_property
    def kept(self) -> float:
        """About which share of proposals is kept, from public draws."""
        u = self.proposals.draw_many(SeededRandomness(_SEED), _PROPOSALS)
        return float(np.exp(self._log_kept(u)).mean())

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-rate ||u||), or None where it is not computed."""
        if self.norm == "l2":
            return log_sum_of_lengths(self.scale, self.support)
        return log_sum_of_largest(self.scale, self.support)

    def log_weight(self, u: Any) -> Any:
        """-rate ||u||, or -inf where a published sum is not zero; u of shape (..., cells)."""
        values = np.asarray(u, dtype=np.int64)
        off = np.isneginf(self.proposals.log_density(values))
        return np.where(off, -np.inf, -self._rated(values))[()]

    def _rated(self, u: Ints) -> Floats:
        """Rate times the norm, in doubles."""
        if self.norm == "l2":
            return np.asarray(np.sqrt(float(self.scale) * (u.astype(float) ** 2).sum(axis=-1)))
        return float(self.scale) * np.asarray(np.abs(u).max(axis=-1, initial=0), dtype=float)

    def _log_kept(self, u: Ints) -> Floats:
        return np.asarray(float(self.per_cell) * np.abs(u).sum(axis=-1) - self._rated(u))

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells): the first n proposals that are kept.

        Words: batches of proposals, then a word for each decision, then what open decisions need.
        """
        if n == 0:
            return np.empty((0, self.support.labels.size), dtype=np.int64)
        return first_kept(n, _BATCH, partial(self._batch, randomness))

    def _batch(self, randomness: Randomness, size: int) -> Ints:
        """Those of `size` proposals that are kept."""
        tables: Ints = self.proposals.draw_many(randomness, size)
        words = randomness.words(size)
        slack = _SLACK * (1 + self._rated(tables))

        def exact(i: int) -> Callable[[], Any]:
            return partial(self._exact_log_kept, tables[i])

        return tables[all_below(words, self._log_kept(tables), slack, exact, randomness)]

    def _exact_log_kept(self, table: Ints) -> Any:
        """c ||u||_1 - rate ||u|| as a ball at the working precision."""
        proposed = ball(self.per_cell * int(np.abs(table).sum()))
        if self.norm == "l2":
            return proposed - ball(self.scale * int((table**2).sum())).sqrt()
        return proposed - ball(self.scale * int(np.abs(table).max(initial=0)))


def _root_below(square: Fraction) -> Fraction:
    """A rational just below the root, of about `_BITS` bits."""
    shift = _BITS - (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    shift = max(0, shift)
    return Fraction(math.isqrt(square.numerator * 4**shift // square.denominator), 2**shift)
