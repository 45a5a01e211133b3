"""What is estimated, for several groups at once: sums, ratios, and arithmetic on them.

A sum of cells has its exact law. Everything else that is a function of sums is worked out from
joint simulated errors, turned round: if the estimates are s and a draw of their errors is e, then
s - e is a simulated truth, and the interval holds the middle share of the values f(s - e). For a
ratio A / B that is Fieller's method with any law of the errors: at most a share p of the values
(a - e_A) / (b - e_B) lies above r where a - r b is at most the (1 - p)-quantile of e_A - r e_B,
which is a test of A - r B = 0 whose law is public. Simulated truths keep to what can be: counts are
not negative, a part is no larger than its whole, and sums stay within what the figures leave.

An interval must also hold *given that one is printed*. A denominator B that is not published is
divided by only if its estimate b exceeds a number c that its error alone exceeds with probability
CLEAR. That selects errors: of a small B only those above c - B are ever used. So truths are
simulated from these errors alone, too, with B as small as b allows: the least B for which P(e >= b
- B) / P(e > c - B), the chance of such an estimate once it is above c, is at least FORGONE of what
the level leaves. Larger B select less, down to nothing, so the interval reaches over the middle of
both: all truths, and those selected. Then P(it misses | b > c) <= P(B is smaller | b > c) + P(it
misses | e > c - B), at most what the level leaves. That is an argument, not a proof: it takes for
granted that selection falls with B and that an interval is printed wherever b > c, while too few
selected draws refuse one as well. `python -m benchmarks estimates` measures what holds. Where b is
large nothing is selected, and nothing is lost.

How far intervals reach (`IntervalCover`) is read off simulated errors by upper confidence bounds of
quantiles, wrong with probability at most 1e-6: an interval keeps its level whatever was drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.figures.limits import SumRanges
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    ScaledLaw,
    Weights,
    possible_sums,
)
from congenial.tables.simulated_errors import DRAWS, upper_rank

FORGONE = 0.1  # of what the level leaves, where draws are selected (see `quantities`)


@dataclass(frozen=True)
class IntervalCover:
    """`level` for a law that is known, `rank` among the sizes of simulated errors."""

    level: float
    rank: int

    @classmethod
    def of_one(cls, level: float) -> IntervalCover:
        """Each interval holds by itself."""
        return cls(level, _rank(level))

    @classmethod
    def of_all(cls, level: float, sizes: Floats) -> IntervalCover:
        """All intervals hold together; `sizes` are joint draws of |error|, (DRAWS, estimates).

        Every estimate gets the same rank, the least for which all of them cover at the level.
        """
        ranks = np.column_stack([_ranks(size) for size in sizes.T if size.any()] or [[0] * DRAWS])
        largest = np.sort(ranks.max(axis=1))
        rank = max(int(largest[_rank(level) - 1]), 1)
        if rank >= DRAWS:
            raise InferenceError(
                f"{ranks.shape[1]} estimates cannot be covered jointly at {level} by {DRAWS:,} "
                "simulated tables.",
                remedy="Ask for fewer at once, for a lower level, or one by one.",
            )
        return cls(rank / DRAWS, rank)

    def split(self, parts: int) -> IntervalCover:
        """For each of several intervals that are to hold together (Bonferroni)."""
        rank = DRAWS - (DRAWS - self.rank) // parts
        if rank >= DRAWS:
            raise InferenceError(
                f"{DRAWS:,} simulated tables are too few for an expression of so many parts.",
                remedy="Ask for a lower level, or for the parts.",
            )
        return IntervalCover(1 - (1 - self.level) / parts, rank)

    def reach(self, sizes: Any) -> Floats:
        """For each column of |error| draws, how far an interval reaches."""
        return np.asarray(np.partition(sizes, self.rank - 1, axis=0)[self.rank - 1])

    def middle(self, truths: Any) -> tuple[float, float] | None:
        """The ends of the middle share of simulated truths; one that is not defined is outside.

        Of fewer than all draws with more to spare; None where they are too few.
        """
        n, rank = len(truths), self.rank
        if n < DRAWS:
            rank = upper_rank(1 - (1 - self.level) * (1 - FORGONE), n) if n else 1
        if rank > n:
            return None
        undefined = np.isnan(truths)
        tail = (n - rank) // 2
        low = np.partition(np.where(undefined, -np.inf, truths), tail)[tail]
        high = np.partition(np.where(undefined, np.inf, truths), n - 1 - tail)[n - 1 - tail]
        return float(low), float(high)

    def reaches(self, sizes: Any, distances: Any) -> Any:
        """For each column of |error| draws, whether an interval reaches so far.

        distances <= reach(sizes), by counting: far quicker than finding the quantile.

        >>> sizes = np.array([[1.0], [2.0], [2.0], [7.0]])
        >>> [bool(IntervalCover(0.5, 3).reaches(sizes, far)[0]) for far in (1.9, 2.0, 2.1)]
        [True, True, False]
        """
        return np.count_nonzero(sizes < distances, axis=0) < self.rank


def _rank(level: float) -> int:
    rank = upper_rank(level, DRAWS)
    if rank > DRAWS:
        raise InferenceError(
            f"a level of {level} needs more than {DRAWS:,} simulated tables.",
            remedy="Ask for at most 0.998.",
        )
    return rank


def _ranks(sizes: Floats) -> Any:
    """How many draws are at most as large as each."""
    return np.searchsorted(np.sort(sizes), sizes, side="right")


PUBLISHED = "published exactly"
SIMULATED = "joint simulation from the public law of the noise"
INVERTED = "inversion of jointly simulated errors"
TOGETHER = "intervals of its two sides that hold together"
NOT_DETERMINED = "not determined"
MAY_BE_ZERO = f"{NOT_DETERMINED}: the denominator is too small beside the noise"
NOBODY = "nobody is there, so there is no share or ratio"

CLEAR = 0.03  # the chance with which the error alone is as large as a denominator must be
FINE = 64  # denominators that are tried
_ROUNDING = 1e-9  # by which a multiple may miss a whole number

Operator = Literal["+", "-", "*", "/"]
_OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


@dataclass
class Ends:
    """Interval ends of every group, the method of each, and what a reader must know besides."""

    low: Floats
    high: Floats
    methods: list[str]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.notes = self.notes or [""] * len(self.methods)


class Quantity(ABC):
    """Something that is estimated for each of several groups."""

    @property
    @abstractmethod
    def values(self) -> Floats:
        """The estimates; nan where there is none."""

    @abstractmethod
    def sizes(self) -> Floats:
        """Joint draws of the size of the error that intervals are made of, (DRAWS, groups)."""

    @abstractmethod
    def ends(self, cover: IntervalCover) -> Ends:
        """The intervals."""

    @property
    def deviations(self) -> Floats:
        """Standard deviations of the errors; nan where none is stated."""
        return np.full(len(self.values), np.nan)


class OfSums(Quantity):
    """A function of sums of cells."""

    @abstractmethod
    def parts(self) -> list[CellSums]:
        """The sums it is a function of."""

    @abstractmethod
    def dividing(self) -> list[CellSums]:
        """The sums it divides by."""

    @abstractmethod
    def numerators(self) -> list[CellSums]:
        """The sums that it would be divided by if something were divided by it."""

    @abstractmethod
    def evaluate(self, sums: list[Any]) -> Any:
        """The function, for arrays of the sums; nan where it is not defined."""


@dataclass(frozen=True, eq=False)
class CellSums(OfSums):
    """Weighted sums of cells, plus a constant."""

    source: CellEstimates
    weights: Weights
    constant: Floats

    @classmethod
    def of(cls, source: CellEstimates, weights: Weights, constant: Any = 0.0) -> CellSums:
        """With canonical weights: no entry is stored twice, and none that is zero."""
        weights = sp.csr_array(weights)
        weights.sum_duplicates()
        weights.eliminate_zeros()
        return cls(source, weights, np.full(weights.shape[0], 1.0) * constant)

    @cached_property
    def values(self) -> Floats:
        """The sums of the estimated cells; whole people where published figures tell the sum."""
        sums = np.asarray(self.weights @ self.source.cells)
        starts = self.weights.indptr
        for i in np.flatnonzero((np.diff(starts) > 0) & self.known):
            sums[i] = _whole(self.weights.data[starts[i] : starts[i + 1]], sums[i])
        return sums + self.constant

    @cached_property
    def known(self) -> Any:
        """Which sums follow from the published figures."""
        return self.source.known(self.weights)

    @property
    def is_constant(self) -> bool:
        """Whether it has no cells at all."""
        return bool(self.weights.nnz == 0)

    @cached_property
    def errors(self) -> Floats:
        """Joint draws of the errors, (DRAWS, groups)."""
        return self.source.errors(self.weights)

    @cached_property
    def laws(self) -> list[ScaledLaw | None]:
        """Tabulated laws of the errors."""
        return self.source.laws(self.weights)

    def sizes(self) -> Floats:
        """|error|."""
        return np.abs(self.errors)

    @property
    def deviations(self) -> Floats:
        """From the law where there is one, otherwise from the covariance."""
        deviations = np.zeros(len(self.values))
        for i, law in enumerate(self.laws):
            if not self.known[i]:
                row = self.weights[[i]]
                deviations[i] = (
                    law.deviation if law else float(self.source.covariance(row)[0, 0]) ** 0.5
                )
        return deviations

    def ends(self, cover: IntervalCover) -> Ends:
        """By the law of the sum, or by simulation; cut to what the published figures allow."""
        reach = np.zeros(len(self.values))
        methods = [PUBLISHED] * len(reach)
        for i, law in enumerate(self.laws):
            if law and not self.known[i]:
                reach[i], methods[i] = law.reach(cover.level), _plainly(law.basis)
        rest = [i for i, law in enumerate(self.laws) if law is None and not self.known[i]]
        if rest:
            errors = self.source.errors(self.weights[rest])
            reach[rest] = cover.reach(np.abs(errors))
            for i in rest:
                methods[i] = SIMULATED
        return Ends(*self.ranges.ends(self.values, reach), methods)

    @cached_property
    def counts(self) -> Any:
        """Which of them count people: no weight is negative, and nothing is added."""
        least = self.weights.min(axis=1).toarray().reshape(-1) if self.weights.nnz else 0.0
        return np.asarray((least >= 0) & (self.constant == 0))

    @cached_property
    def ranges(self) -> SumRanges:
        """How small and large the sums can be: counts are not negative, and no larger than a
        published sum that contains them; other combinations may be anything.
        """
        counts = np.flatnonzero(self.counts)
        least, most = np.full(len(self.values), -np.inf), np.full(len(self.values), np.inf)
        possible = possible_sums(self.source, self.weights[counts])
        least[counts], most[counts] = possible.least, possible.most
        return SumRanges(least, most)

    @cached_property
    def truths(self) -> Floats:
        """Simulated truths, within what can be, (DRAWS, groups)."""
        return np.clip(self.values - self.errors, self.ranges.least, self.ranges.most)

    def clear_of_zero(self, i: int, cover: IntervalCover) -> Any:
        """Which draws have errors that a denominator may have if it is divided by (see module).

        None where its estimate is too small.
        """
        errors = self.errors[:, i]
        if self.known[i]:
            return np.ones(len(errors), dtype=np.bool_)
        value, least = float(self.values[i]), max(float(self.ranges.least[i]), 0.0)
        if value < 0 and not self.counts[i]:
            value, errors = -value, -errors
        limit = float(np.quantile(errors, 1 - CLEAR))
        if min(value, float(self.ranges.most[i])) <= limit:
            return None
        truths, ordered = np.linspace(least, max(value, least), FINE), np.sort(errors)
        as_large = len(errors) - np.searchsorted(ordered, value - truths)
        answered = len(errors) - np.searchsorted(ordered, limit - truths, "right")
        likely = as_large >= FORGONE * (1 - cover.level) * np.maximum(answered, 1)
        smallest = truths[max(int(np.argmax(likely)) - 1, 0)]
        return errors > limit - smallest

    def parts(self) -> list[CellSums]:
        """Itself."""
        return [self]

    def dividing(self) -> list[CellSums]:
        """None."""
        return []

    def numerators(self) -> list[CellSums]:
        """Itself."""
        return [self]

    def evaluate(self, sums: list[Any]) -> Any:
        """The sum itself."""
        return sums[0]

    def at(self, rows: Any) -> CellSums:
        """Some of the groups."""
        return CellSums(self.source, self.weights[rows], self.constant[rows])

    def times(self, factor: Any) -> CellSums:
        """Multiplied, group by group."""
        factors = np.full(len(self.constant), 1.0) * factor
        weights = sp.diags_array(factors) @ self.weights
        return CellSums.of(self.source, weights, self.constant * factor)

    def shifted(self, number: Any) -> CellSums:
        """Plus a number for each group."""
        return CellSums.of(self.source, self.weights, self.constant + number)

    @property
    def largest_weight(self) -> float:
        """Of all cells in all groups, in absolute value."""
        return float(np.abs(self.weights.data).max(initial=0.0)) or 1.0

    def plus(self, other: CellSums, factor: Any = 1.0) -> CellSums:
        """Plus a multiple of another."""
        more = other.times(factor)
        return CellSums.of(self.source, self.weights + more.weights, self.constant + more.constant)

    def same(self, other: CellSums) -> bool:
        """Whether both are the same sums."""
        return (
            self.weights.shape == other.weights.shape
            and np.array_equal(self.constant, other.constant)
            and abs(self.weights - other.weights).sum() == 0
        )


class Inverted(OfSums):
    """A function of sums whose interval holds the middle of simulated truths (see module)."""

    limits: tuple[Any, Any] = (-np.inf, np.inf)  # between which every truth lies, by group

    @cached_property
    def values(self) -> Floats:
        """The function of the estimates, within its limits; nan where it is not defined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.evaluate([part.values for part in self.parts()]), dtype=float)
        return np.where(np.isfinite(value), np.clip(value, *self.limits), np.nan)

    @cached_property
    def truths(self) -> Floats:
        """The function of simulated truths, (DRAWS, groups)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            truths = np.array(self.evaluate([part.truths for part in self.parts()]))
        for part in self.dividing():  # one that changes its sign has no middle
            truths[part.truths * np.sign(part.values) < 0] = np.nan
        return truths

    def sizes(self) -> Floats:
        """How far from the middle of all simulated truths each of them ranks."""
        order = np.argsort(np.argsort(np.nan_to_num(self.truths), axis=0), axis=0)
        away = np.abs(order - (len(order) - 1) / 2)
        return np.where(np.ptp(np.nan_to_num(self.truths), axis=0) > 0, away, 0.0)

    @property
    def deviations(self) -> Floats:
        """Of simulated truths; nan where some are not defined."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.std(self.truths, axis=0))

    def ends(self, cover: IntervalCover) -> Ends:
        """For each group the middle of the truths that are simulated for it."""
        groups = len(self.values)
        low, high = (np.broadcast_to(end, groups).astype(float) for end in self.limits)
        ends = Ends(low.copy(), high.copy(), [INVERTED] * groups)
        for i in range(groups):
            if any(part.known[i] and part.values[i] == 0 for part in self.dividing()):
                ends.low[i] = ends.high[i] = np.nan
                ends.methods[i], ends.notes[i] = "none", NOBODY
                continue
            middle = self._middle(i, cover)
            if middle is None or np.isinf(middle).all() or np.isnan(self.values[i]):
                bounded = np.isfinite(low[i]) and np.isfinite(high[i])
                ends.low[i], ends.high[i] = (low[i], high[i]) if bounded else (-np.inf, np.inf)
                ends.notes[i] = MAY_BE_ZERO
                continue
            ends.low[i] = np.clip(min(middle[0], self.values[i]), low[i], high[i])
            ends.high[i] = np.clip(max(middle[1], self.values[i]), low[i], high[i])
        return ends

    def _middle(self, i: int, cover: IntervalCover) -> tuple[float, float] | None:
        """The ends for group i, from all truths and from those selected; None without answer."""
        truths, chosen = self.truths[:, i], np.ones(len(self.truths), dtype=np.bool_)
        for part in self.dividing():
            selected = part.clear_of_zero(i, cover)
            if selected is None:
                return None
            chosen &= selected
        everything = cover.middle(truths)
        if chosen.all() or everything is None:
            return everything
        some = cover.middle(truths[chosen])
        if some is None:
            return None
        return min(some[0], everything[0]), max(some[1], everything[1])


@dataclass(frozen=True, eq=False)
class Ratio(Inverted):
    """Sums over sums, perhaps times a number (per cent) and plus one (growth)."""

    top: CellSums
    bottom: CellSums
    factor: Any = 1.0
    plus: Any = 0.0

    @cached_property
    def rest(self) -> CellSums | None:
        """The whole less its part, where the ratio is the share of a part."""
        rest = self.bottom.plus(self.top, -1.0)
        return rest if self.top.counts.all() and rest.counts.all() else None

    @cached_property
    def limits(self) -> tuple[Any, Any]:  # type: ignore[override]
        """What the figures leave: of a share, between its least and its most part of the whole."""
        top, other = self.top.ranges, (self.rest or self.bottom).ranges
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.rest is None:
                counts = self.top.counts & self.bottom.counts
                above, both = other.least > 0, counts & (other.least >= 0)
                lost = np.where(above, top.least / other.least, -np.inf)
                low = np.where(top.least < 0, lost, np.nan_to_num(top.least / other.most))
                low = np.where(both, low, -np.inf)
                high = np.where(both & above, top.most / other.least, np.inf)
                high = np.where(both & (top.most < 0), np.nan_to_num(top.most / other.most), high)
            else:
                low = np.where(top.least > 0, top.least / (top.least + other.most), 0.0)
                high = np.where(other.least > 0, top.most / (top.most + other.least), 1.0)
                high = np.where(np.isnan(high), 1.0, high)  # no most, so all may be of the part
        ends = [self._moved(end) for end in (low, high)]
        return np.minimum(*ends), np.maximum(*ends)

    def _moved(self, ratio: Any) -> Any:
        return self.factor * ratio + self.plus

    def ends(self, cover: IntervalCover) -> Ends:
        """A scaled sum where the denominator is published, otherwise by inversion."""
        ends = super().ends(cover)
        rows = np.flatnonzero(np.asarray(self.bottom.known) & (self.bottom.values != 0))
        if len(rows):
            count = len(ends.low)
            factor, plus = np.broadcast_to(self.factor, count), np.broadcast_to(self.plus, count)
            exact = self.top.at(rows).times(factor[rows] / self.bottom.values[rows]).ends(cover)
            limits = [end[rows] for end in self.limits]
            ends.low[rows] = np.clip(exact.low + plus[rows], *limits)
            ends.high[rows] = np.clip(exact.high + plus[rows], *limits)
            for i, method in zip(rows, exact.methods, strict=True):
                ends.methods[i], ends.notes[i] = method, ""
        return ends

    def parts(self) -> list[CellSums]:
        """Numerator and denominator, and of a share the rest."""
        return [self.top, self.bottom, *([self.rest] if self.rest is not None else [])]

    def dividing(self) -> list[CellSums]:
        """The denominator."""
        return [self.bottom]

    def numerators(self) -> list[CellSums]:
        """The numerator."""
        return [self.top]

    def evaluate(self, sums: list[Any]) -> Any:
        """Their ratio; of a share the part over part and rest, neither of them negative."""
        if self.rest is None:
            return self._moved(sums[0] / sums[1])
        part, rest = np.maximum(sums[0], 0.0), np.maximum(sums[2], 0.0)
        return self._moved(part / (part + rest))


@dataclass(frozen=True, eq=False)
class Arithmetic(Inverted):
    """left operator right, where that is neither a sum nor one ratio.

    Where a side is a quantile or an index: intervals of both sides that hold together (Bonferroni),
    put through the operation; that keeps the level whatever the laws are.
    """

    operator: Operator
    left: Quantity
    right: Quantity

    @property
    def of_sums(self) -> bool:
        """Whether it is a function of sums."""
        sides = (self.left, self.right)
        return all(isinstance(side, OfSums) and getattr(side, "of_sums", True) for side in sides)

    @cached_property
    def values(self) -> Floats:
        """The operation on the estimates."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = _OPERATIONS[self.operator](self.left.values, self.right.values)
        return np.where(np.isfinite(value), value, np.nan)

    def parts(self) -> list[CellSums]:
        """The sums of both sides."""
        assert isinstance(self.left, OfSums)
        assert isinstance(self.right, OfSums)
        return self.left.parts() + self.right.parts()

    def dividing(self) -> list[CellSums]:
        """The denominators of both sides, and what it divides by."""
        assert isinstance(self.left, OfSums)
        assert isinstance(self.right, OfSums)
        more = self.right.numerators() if self.operator == "/" else []
        return [*self.left.dividing(), *self.right.dividing(), *more]

    def numerators(self) -> list[CellSums]:
        """Those of both sides."""
        assert isinstance(self.left, OfSums)
        assert isinstance(self.right, OfSums)
        return self.left.numerators() + self.right.numerators()

    def evaluate(self, sums: list[Any]) -> Any:
        """The operation on arrays of the sums."""
        assert isinstance(self.left, OfSums)
        assert isinstance(self.right, OfSums)
        taken = len(self.left.parts())
        sides = self.left.evaluate(sums[:taken]), self.right.evaluate(sums[taken:])
        return _OPERATIONS[self.operator](*sides)

    def sizes(self) -> Floats:
        """Of a function of sums as of any; otherwise the larger of both sides'."""
        if self.of_sums:
            return super().sizes()
        return np.maximum(_standard(self.left.sizes()), _standard(self.right.sizes()))

    @property
    def deviations(self) -> Floats:
        """Where it is a function of sums."""
        return super().deviations if self.of_sums else np.full(len(self.values), np.nan)

    def ends(self, cover: IntervalCover) -> Ends:
        """By inversion, or from both sides."""
        return super().ends(cover) if self.of_sums else self._together(cover)

    def _together(self, cover: IntervalCover) -> Ends:
        half = cover.split(2)
        left, right = self.left.ends(half), self.right.ends(half)
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = [
                _OPERATIONS[self.operator](end, other)
                for end in (left.low, left.high)
                for other in (right.low, right.high)
            ]
        low, high = np.min(corners, axis=0), np.max(corners, axis=0)
        notes = [note or other for note, other in zip(left.notes, right.notes, strict=True)]
        if self.operator == "/":
            crossed = (right.low <= 0) & (right.high >= 0)
            low, high = np.where(crossed, -np.inf, low), np.where(crossed, np.inf, high)
            notes = [MAY_BE_ZERO if c else n for c, n in zip(crossed, notes, strict=True)]
        return Ends(low, high, [TOGETHER] * len(low), notes)


def _standard(sizes: Floats) -> Floats:
    """Sizes in units of their own root mean square."""
    scale = np.sqrt(np.mean(sizes**2, axis=0))
    return np.asarray(sizes / np.where(scale > 0, scale, 1.0))


def combine(operator: Operator, left: Quantity, right: Quantity) -> Quantity:
    """left operator right, as a sum or a single ratio wherever that is what it is."""
    if isinstance(right, CellSums) and right.is_constant:
        quantity = _with_constant(operator, left, right.constant)
    elif isinstance(left, CellSums) and left.is_constant and operator != "/":
        if operator == "-":
            return combine("+", combine("*", right, left.times(0).shifted(-1.0)), left)
        return combine(operator, right, left)
    elif isinstance(left, CellSums) and isinstance(right, CellSums):
        quantity = _of_sums(operator, left, right)
    elif isinstance(left, Ratio) and isinstance(right, Ratio) and left.bottom.same(right.bottom):
        quantity = _of_ratios(operator, left, right)
    else:
        quantity = None
    return quantity if quantity is not None else Arithmetic(operator, left, right)


def _with_constant(operator: Operator, left: Quantity, number: Floats) -> Quantity | None:
    if operator == "/":
        if np.any(number == 0):
            raise InferenceError(
                "the expression always divides by 0.",
                remedy="Divide by a count that can be above 0, such as count(age >= 65).",
            )
        operator, number = "*", 1 / number
    number = -number if operator == "-" else number
    if isinstance(left, Ratio):
        if operator == "*":
            return replace(left, factor=left.factor * number, plus=left.plus * number)
        return replace(left, plus=left.plus + number)
    if isinstance(left, CellSums):
        if operator == "*":
            return left.times(number)
        return left.shifted(number)
    return None


def _of_sums(operator: Operator, left: CellSums, right: CellSums) -> Quantity | None:
    if operator in "+-":
        return left.plus(right, 1.0 if operator == "+" else -1.0)
    if operator != "/":
        return None
    top, bottom = left.largest_weight, right.largest_weight  # 100 women over everybody is a share
    return Ratio(left.times(1 / top), right.times(1 / bottom), top / bottom)


def _of_ratios(operator: Operator, left: Ratio, right: Ratio) -> Quantity | None:
    """Of ratios with the same denominator."""
    if operator in "+-":
        sign = 1.0 if operator == "+" else -1.0
        top = left.top.times(left.factor).plus(right.top, sign * right.factor)
        return Ratio(top, left.bottom, plus=left.plus + sign * right.plus)
    if operator == "/" and not np.any(left.plus) and not np.any(right.plus):
        return Ratio(left.top, right.top, left.factor / right.factor)
    return None


def _whole(weights: Any, total: float) -> float:
    """A weighted sum of whole numbers, from one with rounding errors.

    With weights that are multiples of the least of them, so is the sum; of others it is as it was.

    >>> _whole(np.array([1.0, 2.0]), 655.9999999999999), _whole(np.array([1.0, 0.3]), 1.6)
    (656.0, 1.6)
    """
    least = float(np.abs(weights).min())
    multiples = weights / least
    if np.abs(multiples - np.rint(multiples)).max() > _ROUNDING:
        return float(total)
    return least * round(total / least)


def _plainly(basis: str) -> str:
    """The footing of a law in the words of this package."""
    return "exact law of the noise" if basis.startswith("exact") else basis.partition(":")[0]
