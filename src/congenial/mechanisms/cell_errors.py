"""How far each cell of one table may be off, for its files: standard deviation and interval ends.

All of it follows from the values as drawn, the public law of the noise and the published figures,
so that `verify` works it out again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from congenial.data.engines.checked_parquet import numbers
from congenial.figures.sum_ranges import SumRanges, cell_ranges
from congenial.figures.support import support
from congenial.mechanisms.released import FILE_LEVEL

if TYPE_CHECKING:
    from congenial.figures.invariants import Invariants
    from congenial.mechanisms.mechanism import Mechanism
    from congenial.privacy.description import Description

ERRORS = ("sd", "low", "high")
AGAIN = 1e-6  # relative error of a standard deviation that is worked out again
SIMULATED_AGAIN = 0.25  # the same of a law whose simulated draws were others
Agreement = Literal["equal", "near", ""]


def number_columns(description: Description, errors: bool) -> list[str]:
    """The columns of a table's files that are no labels.

    Values that were projected come with those drawn. Counts drawn given their signs have an error
    that depends on the data, and so no columns that say how large it is.
    """
    known = [*ERRORS] if errors and not description.nonnegative else []
    drawn = ["count_as_drawn"] if description.post_processing == "project" else []
    return ["count", *known, *drawn]


def has_errors(description: Description, names: Sequence[str]) -> bool:
    """Whether a file of these columns has those of errors; files of format 1 have not."""
    known = number_columns(description, errors=True)
    return list(names[-len(known) :]) == known


@dataclass(frozen=True)
class CellErrors:
    """Standard deviation, and ends of the interval for the true count, of every cell in order."""

    sd: Any
    low: Any
    high: Any

    @classmethod
    def of(
        cls, mechanism: Mechanism, figures: Invariants, drawn: Any, printed: Any = None
    ) -> CellErrors:
        """From the law of the noise and the figures; ends as `Release.interval` has them.

        `printed`: the counts beside them, where they are not those drawn.
        """
        return CellSpread.of(mechanism).errors(figures, drawn, printed)

    @classmethod
    def uncut(cls, mechanism: Mechanism, drawn: Any) -> CellErrors:
        """Around the values as drawn, cut at 0 alone: as files had them before."""
        return CellSpread.of(mechanism).uncut(drawn)

    @classmethod
    def read(cls, table: Any) -> CellErrors:
        """The columns of a file."""
        return cls(*(numbers(table[name]) for name in ERRORS))

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns by name."""
        return dict(zip(ERRORS, (self.sd, self.low, self.high), strict=True))

    def follow_from(
        self, mechanism: Mechanism, figures: Invariants, drawn: Any, printed: Any = None
    ) -> Agreement:
        """Whether these are the errors of the law and the figures, worked out again.

        Files written before intervals were cut to the figures have wider ones, which is as true.
        A law that is simulated has the same draws everywhere, from public words, as long as the
        samplers are the same: those of other software make errors that are near.
        """
        spread = CellSpread.of(mechanism)
        expected = spread.errors(figures, drawn, printed), spread.uncut(drawn)
        if any(spread.equal(self, one) for one in expected):
            return "equal"
        return "near" if any(spread.near(self, one) for one in expected) else ""


@dataclass(frozen=True)
class CellSpread:
    """The law of each cell's noise: standard deviation, how far it reaches, whether simulated."""

    names: tuple[str, ...]
    sd: Any
    half: Any
    simulated: Any

    @classmethod
    def of(cls, mechanism: Mechanism) -> CellSpread:
        """Of every cell in order, from the different laws there are."""
        cells = math.prod(mechanism.shape)
        index = np.arange(cells).reshape(mechanism.shape)
        laws, of_cell = mechanism.different_error_laws(index, cells)
        sd = np.sqrt([float(law.variance) for law in laws])[of_cell]
        half = np.array([law.interval(FILE_LEVEL) for law in laws])[of_cell]
        simulated = np.array([hasattr(law, "draws") for law in laws], dtype=bool)[of_cell]
        return cls(mechanism.description.table, sd, half, simulated)

    def errors(self, figures: Invariants, drawn: Any, printed: Any) -> CellErrors:
        """With ends cut to what the figures allow."""
        flat, half = drawn.reshape(-1), self.half.astype(drawn.dtype)
        ranges = cell_ranges(support(figures, self.names))
        return CellErrors(self.sd, *interval_ends(ranges, flat, half, printed))

    def uncut(self, drawn: Any) -> CellErrors:
        """With ends cut at 0 alone."""
        flat, half = drawn.reshape(-1), self.half.astype(drawn.dtype)
        return CellErrors(self.sd, np.maximum(0, flat - half), np.maximum(0, flat) + half)

    def equal(self, told: CellErrors, again: CellErrors) -> bool:
        """Whether errors are those worked out again, but for rounding."""
        return self._within(told, again, np.full(len(self.sd), AGAIN))

    def near(self, told: CellErrors, again: CellErrors) -> bool:
        """The same, where those of a simulated law may rest on other draws."""
        return self._within(told, again, np.where(self.simulated, SIMULATED_AGAIN, AGAIN))

    def _within(self, told: CellErrors, again: CellErrors, reach: Any) -> bool:
        """Whether errors differ by no more than a share `reach` of the width."""
        off = np.where(reach > AGAIN, 1, AGAIN) + reach * self.half
        ends = (np.abs(told.low - again.low) <= off) & (np.abs(told.high - again.high) <= off)
        return bool(np.all(ends & (np.abs(told.sd - again.sd) <= reach * again.sd)))


def interval_ends(
    ranges: SumRanges, values: Any, half: Any, printed: Any = None
) -> tuple[Any, Any]:
    """Ends of intervals for sums of cells: around the sums as drawn, cut to what the figures allow.

    `half`: how far the law of the noise reaches. An interval is widened to the sum as printed
    (None: there is none), which loses no coverage, so that no printed count lies outside its own.
    """
    low, high = ranges.ends(values, half)
    if printed is None:
        return low, high
    return np.minimum(low, printed.reshape(-1)), np.maximum(high, printed.reshape(-1))
