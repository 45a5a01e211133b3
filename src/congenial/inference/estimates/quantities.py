"""What is estimated, for several groups at once: sums, ratios, and arithmetic on them.

A quantity knows its values, joint draws of the size of its error, and its interval for a cover.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from congenial.data.advance import one_by_one
from congenial.errors import InferenceError
from congenial.figures.limits import SumRanges
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    Floats,
    ScaledLaw,
    Weights,
    possible_sums,
)
from congenial.inference.estimates.fieller import fieller
from congenial.inference.estimates.interval_cover import IntervalCover

PUBLISHED = "published exactly"
SIMULATED = "joint simulation from the public law of the noise"
FIELLER = "Fieller's, with the simulated law of the noise"
MAY_BE_ZERO = "the denominator may be 0, so the ratio may be anything"
NOBODY = "nobody is there, so there is no share or ratio"

_ROUNDING = 1e-9  # by which a multiple may miss a whole number

Operator = Literal["+", "-", "*", "/"]


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


class Smooth(Quantity):
    """A quantity that is a smooth function of sums of cells."""

    @abstractmethod
    def parts(self) -> list[CellSums]:
        """The sums it is a function of."""

    @abstractmethod
    def divisors(self) -> list[bool]:
        """Which of them it divides by."""

    @abstractmethod
    def evaluate(self, sums: list[Any]) -> Any:
        """The function, for arrays of the sums."""


@dataclass(frozen=True, eq=False)
class CellSums(Smooth):
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
        found = np.asarray(self.weights @ self.source.cells)
        starts = self.weights.indptr
        for i in np.flatnonzero((np.diff(starts) > 0) & self.known):
            found[i] = _whole(self.weights.data[starts[i] : starts[i + 1]], found[i])
        return found + self.constant

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
        found = np.zeros(len(self.values))
        for i, law in enumerate(self.laws):
            if not self.known[i]:
                one = self.weights[[i]]
                found[i] = law.deviation if law else float(self.source.covariance(one)[0, 0]) ** 0.5
        return found

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
        return Ends(*self._ranges.ends(self.values, reach), methods)

    @cached_property
    def _ranges(self) -> SumRanges:
        """How small and large the sums can be: counts are not negative, and no larger than a
        published sum that contains them; other combinations may be anything.
        """
        lowest = self.weights.min(axis=1).toarray().reshape(-1) if self.weights.nnz else 0.0
        counts = np.flatnonzero((np.asarray(lowest) >= 0) & (self.constant == 0))
        least, most = np.full(len(self.values), -np.inf), np.full(len(self.values), np.inf)
        found = possible_sums(self.source, self.weights[counts])
        least[counts], most[counts] = found.least, found.most
        return SumRanges(least, most)

    def parts(self) -> list[CellSums]:
        """Itself."""
        return [self]

    def divisors(self) -> list[bool]:
        """None."""
        return [False]

    def evaluate(self, sums: list[Any]) -> Any:
        """The sum itself."""
        return sums[0]

    def times(self, factor: Any) -> CellSums:
        """Multiplied, group by group."""
        factors = np.full(len(self.constant), 1.0) * factor
        weights = sp.diags_array(factors) @ self.weights
        return CellSums.of(self.source, weights, self.constant * factor)

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


@dataclass(frozen=True, eq=False)
class Ratio(Smooth):
    """Sums over sums. `within`: between which numbers the truth must lie."""

    top: CellSums
    bottom: CellSums
    within: tuple[float, float] = (-np.inf, np.inf)

    @cached_property
    def values(self) -> Floats:
        """The ratio of the estimates, inside its limits; nan where the denominator is 0."""
        bottom = np.where(self.bottom.values == 0, np.nan, self.bottom.values)
        return np.clip(self.top.values / bottom, *self.within)

    def sizes(self) -> Floats:
        """|error of top - ratio x bottom| at the estimate, which Fieller's method inverts."""
        return np.abs(self.top.errors - np.nan_to_num(self.values) * self.bottom.errors)

    def ends(self, cover: IntervalCover) -> Ends:
        """A scaled sum where the denominator is published, otherwise Fieller's method."""
        groups = len(self.values)
        ends = Ends(np.full(groups, np.nan), np.full(groups, np.nan), [FIELLER] * groups)
        known = np.asarray(self.bottom.known)
        nobody = known & (self.bottom.values == 0)
        self._scaled(ends, np.flatnonzero(known & ~nobody), cover)
        self._inverted(ends, np.flatnonzero(~known), cover)
        for i in np.flatnonzero(nobody):
            ends.methods[i], ends.notes[i] = "none", NOBODY
        return ends

    def _scaled(self, ends: Ends, rows: Any, cover: IntervalCover) -> None:
        if not len(rows):
            return
        top = CellSums.of(self.top.source, self.top.weights[rows], self.top.constant[rows])
        found = top.times(1 / self.bottom.values[rows]).ends(cover)
        ends.low[rows] = np.clip(found.low, *self.within)
        ends.high[rows] = np.clip(found.high, *self.within)
        for i, method in zip(rows, found.methods, strict=True):
            ends.methods[i] = method

    def _inverted(self, ends: Ends, rows: Any, cover: IntervalCover) -> None:
        for i in one_by_one(rows, "working out intervals of ratios"):
            low, high = fieller(
                (float(self.top.values[i]), float(self.bottom.values[i])),
                (self.top.errors[:, i], self.bottom.errors[:, i]),
                cover,
            )
            ends.low[i], ends.high[i] = np.clip([low, high], *self.within)
            if np.isinf(low):
                ends.notes[i] = MAY_BE_ZERO

    def parts(self) -> list[CellSums]:
        """Numerator and denominator."""
        return [self.top, self.bottom]

    def divisors(self) -> list[bool]:
        """The denominator."""
        return [False, True]

    def evaluate(self, sums: list[Any]) -> Any:
        """Their ratio."""
        return sums[0] / sums[1]


def combine(operator: Operator, left: Quantity, right: Quantity) -> Quantity:
    """left operator right, as a sum or a single ratio wherever that is what it is."""
    from congenial.inference.estimates.arithmetic import Arithmetic

    if isinstance(right, CellSums) and right.is_constant:
        found = _with_constant(operator, left, right.constant)
    elif isinstance(left, CellSums) and left.is_constant and operator in "+*":
        return combine(operator, right, left)
    elif isinstance(left, CellSums) and isinstance(right, CellSums):
        found = _of_sums(operator, left, right)
    elif isinstance(left, Ratio) and isinstance(right, Ratio) and left.bottom.same(right.bottom):
        found = _of_ratios(operator, left, right)
    else:
        found = None
    return found if found is not None else Arithmetic(operator, left, right)


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
            return Ratio(left.top.times(number), left.bottom)
        return Ratio(left.top.plus(left.bottom, number), left.bottom)
    if isinstance(left, CellSums):
        if operator == "*":
            return left.times(number)
        return CellSums.of(left.source, left.weights, left.constant + number)
    return None


def _of_sums(operator: Operator, left: CellSums, right: CellSums) -> Quantity | None:
    if operator in "+-":
        return left.plus(right, 1.0 if operator == "+" else -1.0)
    return Ratio(left, right) if operator == "/" else None


def _of_ratios(operator: Operator, left: Ratio, right: Ratio) -> Quantity | None:
    if operator in "+-":
        return Ratio(left.top.plus(right.top, 1.0 if operator == "+" else -1.0), left.bottom)
    return Ratio(left.top, right.top) if operator == "/" else None


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
