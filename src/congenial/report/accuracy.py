"""Expected error, from public parameters alone: bounds valid for every dataset.

Errors of the values as drawn have an exact law that does not depend on the data. Projection to
nonnegative values moves the table towards the truth in total squared error, but its effect on one
cell depends on confidential counts and is therefore never computed here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from congenial.data.advance import Advance
from congenial.data.table import cell_index, select
from congenial.errors import CongenialError, PlanError
from congenial.mechanisms.released import LEVEL
from congenial.privacy.numbers import LARGEST_PARAMETER

if TYPE_CHECKING:
    from congenial.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class ErrorRow:
    """Largest error over the sums of one kind: `within` at `level`, and its standard deviation."""

    what: str
    sums: int
    standard_deviation: float
    within: float
    level: float


def error_rows(mechanism: Mechanism, level: float = LEVEL) -> list[ErrorRow]:
    """Errors of the whole table, each one-way margin, and single cells, worst cell of each.

    Empty for a mechanism whose error depends on the data.
    """
    if not mechanism.additive:
        return []
    names = mechanism.description.table
    wanted: list[tuple[str, ...]] = [(), *((name,) for name in names)]
    if len(names) > 1:
        wanted.append(names)
    return [_worst(mechanism, margin, level) for margin in wanted]


def cell_deviation(mechanism: Mechanism) -> float | None:
    """Standard deviation of the noisiest cell; None where errors depend on the data."""
    if not mechanism.additive:
        return None
    return _worst(mechanism, mechanism.description.table, LEVEL).standard_deviation


def _worst(mechanism: Mechanism, margin: tuple[str, ...], level: float) -> ErrorRow:
    schema = mechanism.adjacency.schema
    sums = math.prod(len(axis.levels) for axis in schema.axes(margin))
    index = cell_index(schema, mechanism.description.table, margin)
    cells = np.broadcast_to(index, mechanism.shape)
    laws, _ = mechanism.different_error_laws(cells, sums)
    what = " x ".join(margin) if margin else "total"
    number = mechanism.description.magnitude
    unit = 1 if number is None else float(number.step)
    return ErrorRow(
        what,
        sums,
        unit * max(law.variance for law in laws) ** 0.5,
        unit * max(float(law.interval(level)) for law in laws),
        level,
    )


def less_noise(mechanism: Mechanism) -> tuple[str, float] | None:
    """A mechanism on request whose cells have at least 3 % less noise at the same promise, and its
    standard deviation; small tables with both margins published only, where it is quick.
    """
    from congenial.mechanisms.congenial import Congenial
    from congenial.mechanisms.knorm import KNorm

    description = mechanism.description
    if description.mechanism != Congenial.name or math.prod(mechanism.shape) > 25:
        return None
    try:
        other = KNorm.calibrate(mechanism.guarantee, description.table)
    except CongenialError:
        return None
    ours, theirs = cell_deviation(mechanism), cell_deviation(other)
    assert ours is not None
    assert theirs is not None
    return (other.name, theirs) if theirs < 0.97 * ours else None


@dataclass(frozen=True)
class Want:
    """A wish such as "margin('county','sex') within 50 at 95%"."""

    text: str
    margin: tuple[str, ...] | None
    condition: str
    within: float
    level: float
    progress: Callable[[str], Any] = field(default=lambda _: None, compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, progress: Callable[[str], Any] = lambda _: None) -> Want:
        """Read a wish; what it asks for is `total`, `margin('a', 'b')` or `count("condition")`."""
        match = re.fullmatch(
            r"\s*(?P<what>total(?:\(\))?|margin\((?P<names>[^()]*)\)|count\((?P<quote>['\"])"
            r"(?P<condition>.*)(?P=quote)\))\s+within\s+(?P<within>[0-9.]+)\s+at\s+"
            r"(?P<level>[0-9.]+)\s*%\s*",
            text,
        )
        if match is None:
            raise PlanError(
                f"--want {text!r} cannot be read.",
                remedy="Write: margin('county','sex') within 50 at 95%, or count(\"age >= 65\") "
                "within 100 at 90%, or total within 10 at 95%.",
            )
        level = float(match["level"]) / 100
        if not 0 < level < 1:
            raise PlanError(f"--want: {match['level']}% is not between 0% and 100%.")
        names = match["names"]
        margin = None
        if names is not None:
            margin = tuple(part.strip().strip("'\"") for part in names.split(",") if part.strip())
        elif match["condition"] is None:
            margin = ()
        within = float(match["within"])
        return cls(text, margin, match["condition"] or "", within, level, progress)

    def error(self, mechanism: Mechanism) -> float:
        """The half-width that holds at the wanted level, for the worst sum asked about."""
        if self.margin is not None:
            return _worst(mechanism, self.margin, self.level).within
        schema, names = mechanism.adjacency.schema, mechanism.description.table
        law = mechanism.error_law(select(self.condition, schema, names))
        return float(law.interval(self.level))


def smallest(want: Want, build: Callable[[Fraction], Mechanism]) -> Fraction:
    """The least epsilon, rho or mu (to three digits, rounded up) whose release meets the wish.

    Zero when what is asked about is published exactly.
    """
    return least(want, lambda parameter: want.error(build(parameter)))


CLOSE = Fraction(1, 2000)  # how near, in proportion, the least parameter is looked for


def least(want: Want, error: Callable[[Fraction], float]) -> Fraction:
    """The same, where `error` is that of what is asked about, given the parameter."""
    # noise at a thousandth is wide and slow: asked only where there seems to be none at all
    if error(Fraction(1)) == 0 and error(Fraction(1, 1000)) == 0:
        return Fraction(0)
    high = Fraction(1)
    while error(high) > want.within:
        if high == LARGEST_PARAMETER:
            raise PlanError(
                f"--want {want.text!r} needs more than {LARGEST_PARAMETER}, the most a plan may "
                "promise.",
                remedy="Ask for a larger error, a coarser table, or publish the statistic exactly.",
            )
        high = min(2 * high, Fraction(LARGEST_PARAMETER))
    low = high / 2
    while low > Fraction(1, 1000) and error(low) <= want.within:
        low, high = low / 2, low
    while (high - low) / high > CLOSE:
        done = math.log(float((high - low) / high)) / math.log(CLOSE)
        want.progress(Advance("looking for the least budget", done))
        middle = (low + high) / 2
        if error(middle) <= want.within:
            high = middle
        else:
            low = middle
    return _round_up(high)


def _round_up(value: Fraction) -> Fraction:
    """To three significant digits, upwards."""
    unit = Fraction(1)
    while value / unit >= 1000:
        unit *= 10
    while value / unit < 100:
        unit /= 10
    return -(-value // unit) * unit


def plain(value: float) -> Any:
    """A number for people: whole when it is whole."""
    return int(value) if float(value).is_integer() else round(float(value), 2)
