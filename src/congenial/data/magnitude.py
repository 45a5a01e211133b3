"""A number that is summed (cost, payroll, hours, a weight): its column, public bounds and step.

Every person's number is cut to the bounds and rounded to a multiple of the step before it is
summed, so that one person changes a sum by a known amount and sums are whole numbers of steps. The
bounds are multiples of the step, and so is 0: a cell of nobody has the sum 0.

Where people are counted under the same promise, S - c n is measured in place of the sum S, with a
public c. One person moves it by at most max(|L - c|, |U - c|), half the range at its middle. The
sum is that plus c times the estimated count. Exact counts make S - c n and S move alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.attribute import check_name
from congenial.data.rational import Number, exact, written
from congenial.errors import SchemaError

MOST_STEPS = 2**40  # from 0 to a bound: sums of 4 million people fit into 62 bits


@dataclass(frozen=True)
class Magnitude:
    """The number in `column`, cut to [`low`, `high`] and rounded to multiples of `step`.

    `missing`: what a person without a number counts as; None: such data are refused. `within`: an
    attribute and the level whose people are summed; all others count as 0 (bounds by class).
    `shift`: c, where sums of the number minus c are measured beside counts. `cap`: what the numbers
    of one unit with several rows may add up to in size; those of a unit with more are scaled down
    by one factor and rounded towards 0. `origin`: how the column is derived, as a digest; empty for
    a column of the data. Columns of one name with unlike origins are priced as two numbers.

    >>> cost = Magnitude.of("cost", [0, 50_000], 10)
    >>> cost.lowest, cost.highest
    (0, 5000)
    >>> cost.words
    "each person's cost is cut to 0 to 50000 and rounded to a multiple of 10 before it is summed"
    """

    column: str
    low: Number
    high: Number
    step: Number = 1
    missing: Number | None = None
    within: tuple[str, str] | None = None
    shift: Number = Fraction(0)
    cap: Number | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        check_name(self.column, "summed column")
        if self.within is not None and not self.low <= 0 <= self.high:
            raise SchemaError(
                f"sum of {self.column!r}: bounds by class do not include 0, and people of other "
                "classes count as 0.",
                remedy="Start the bounds at 0, or give one pair of bounds for everybody.",
            )
        if self.step <= 0:
            raise SchemaError(
                f"sum of {self.column!r}: step = {written(self.step)} is not positive.",
                remedy="Give what sums are rounded to, such as step = 10.",
            )
        if not self.low < self.high:
            equal = self.low == self.high
            raise SchemaError(
                f"sum of {self.column!r}: between = [{written(self.low)}, {written(self.high)}] is "
                f"{'a single number' if equal else 'in the wrong order'}.",
                remedy="If everybody has this number, the sum is a count times it."
                if equal
                else "Give the smaller number first.",
            )
        stated = [("between", self.low), ("between", self.high), ("shift", self.shift)]
        if self.missing is not None:
            stated.append(("missing", self.missing))
        if self.cap is not None:
            stated.append(("cap", self.cap))
            self._refuse_cap(self.cap)
        for key, number in stated:
            self._refuse_off_grid(key, number)
        if self.missing is not None and not self.low <= self.missing <= self.high:
            raise SchemaError(
                f"sum of {self.column!r}: missing = {written(self.missing)} is not within between.",
                remedy="Widen between, or count people without a number as another one.",
            )
        if self.shift and (self.within is not None or not self.low <= self.shift <= self.high):
            raise SchemaError(
                f"sum of {self.column!r}: shift = {written(self.shift)} is not within between, or "
                "the bounds are by class.",
                remedy="Leave out the shift.",
            )
        if max(abs(self.lowest), abs(self.highest)) > MOST_STEPS:
            raise SchemaError(
                f"sum of {self.column!r}: between reaches more than 2^40 steps from 0.",
                remedy="Use a larger step.",
            )

    def _refuse_cap(self, cap: Number) -> None:
        if self.within is not None or not self.low <= 0 <= self.high:
            raise SchemaError(
                f"sum of {self.column!r}: cap is for bounds that include 0, and not by class.",
                remedy="Start the bounds at 0, or leave out cap.",
            )
        if not 0 < cap <= MOST_STEPS * self.step:
            raise SchemaError(
                f"sum of {self.column!r}: cap = {written(cap)} is not positive, or beyond 2^40 "
                "steps.",
                remedy="Give what the numbers of one unit may add up to.",
            )

    def _refuse_off_grid(self, key: str, number: Number) -> None:
        if number % self.step:
            raise SchemaError(
                f"sum of {self.column!r}: {key} names {written(number)}, which is not a multiple "
                f"of step = {written(self.step)}.",
                remedy="Use multiples of the step.",
            )

    @classmethod
    def of(
        cls,
        column: str,
        between: Any,
        step: Any = 1,
        missing: Any = None,
        within: tuple[str, str] | None = None,
        cap: Any = None,
    ) -> Magnitude:
        """The number with bounds and step as a plan writes them."""
        if not isinstance(between, list | tuple) or len(between) != 2:
            raise SchemaError(
                f"sum of {column!r}: between is not a pair of numbers.",
                remedy="Give the lowest and the highest, such as between = [0, 50000].",
            )
        low, high = (exact(end, "between") for end in between)
        absent = None if missing is None else exact(missing, "missing")
        most = None if cap is None else exact(cap, "cap")
        return cls(column, low, high, exact(step, "step"), absent, within, cap=most)

    @property
    def centred(self) -> Magnitude:
        """The same, measured from the middle of its bounds; by class or with a cap it stays as is.

        >>> str(Magnitude.of("cost", [1000, 2000], 100).centred.shift)
        '1500'
        """
        if self.within is not None or self.cap is not None:
            return self
        return replace(self, shift=self.step * ((self.lowest + self.highest) // 2))

    @property
    def label(self) -> str:
        """What a measure of it is called: the column, and the class if it is of one."""
        return self.column if self.within is None else f"{self.column} ({' = '.join(self.within)})"

    @property
    def lowest(self) -> int:
        """The lower bound in steps."""
        return int(self.low / self.step)

    @property
    def highest(self) -> int:
        """The upper bound in steps."""
        return int(self.high / self.step)

    @property
    def offset(self) -> int:
        """The shift in steps."""
        return int(self.shift / self.step)

    @property
    def words(self) -> str:
        """What happens to the number before it is summed, as a clause."""
        return self.words_of("person")

    def words_of(self, whose: str) -> str:
        """The same of each row, where a person may have several."""
        between = f"{written(self.low)} to {written(self.high)}"
        of_class = "" if self.within is None else f", where {' is '.join(self.within)},"
        absent = "" if self.missing is None else f"; without one it is {written(self.missing)}"
        if self.cap is not None:
            absent += f"; the numbers of a unit are scaled down to {written(self.cap)} in all"
        shifted = ""
        if self.shift:
            apart = f"everybody's difference from {written(self.shift)}"
            shifted = f"; the sum is {written(self.shift)} for every {whose} counted plus {apart}"
        return (
            f"each {whose}'s {self.column}{of_class} is cut to {between} and rounded to a multiple "
            f"of {written(self.step)} before it is summed{absent}{shifted}"
        )

    @property
    def whole(self) -> bool:
        """Whether all multiples of the step are whole numbers."""
        return self.step.denominator == 1

    def shown(self, steps: Any) -> Any:
        """Numbers of steps in the units of the column: whole where these are whole numbers, others
        to 12 digits, so that they are the same once they were read back.
        """
        values = np.asarray(steps)
        if np.issubdtype(values.dtype, np.integer):
            whole = values * self.step.numerator
            return whole if self.whole else whole / self.step.denominator
        return _digits(values * self.step.numerator / self.step.denominator)

    def steps(self, shown: Any) -> Any:
        """Inverse of `shown` for whole numbers of steps."""
        values = np.asarray(shown)
        if np.issubdtype(values.dtype, np.integer):
            return values // int(self.step)
        return np.rint(values * self.step.denominator / self.step.numerator).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        missing = {} if self.missing is None else {"missing": written(self.missing)}
        within = {} if self.within is None else {"within": list(self.within)}
        between = [written(self.low), written(self.high)]
        plain = {"column": self.column, "between": between, "step": written(self.step)}
        shift = {"shift": written(self.shift)} if self.shift else {}
        cap = {} if self.cap is None else {"cap": written(self.cap)}
        origin = {"origin": self.origin} if self.origin else {}
        return plain | missing | within | shift | cap | origin

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Magnitude:
        """Inverse of `to_dict`."""
        within = tuple(map(str, data["within"])) if "within" in data else None
        if within is not None and len(within) != 2:
            raise SchemaError("a class is not an attribute and a level.")
        number = data["column"], data["between"], data["step"], data.get("missing")
        of_class = None if within is None else (within[0], within[1])
        stated = cls.of(*number, of_class, data.get("cap"))
        shift = exact(data.get("shift", 0), "shift")
        return replace(stated, shift=shift, origin=str(data.get("origin", "")))


def _digits(values: Any) -> Any:
    """The nearest numbers with 12 digits, each as the double that is nearest to it."""
    size = np.floor(np.log10(np.where(values == 0, 1, np.abs(values))))
    up, down = 10.0 ** np.maximum(11 - size, 0), 10.0 ** np.maximum(size - 11, 0)
    return np.rint(values * up / down) / up * down
