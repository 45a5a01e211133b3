"""How far each cell of one table may be off, for its files: standard deviation and interval ends.

All of it follows from the values as drawn, the public law of the noise and the published figures,
so that `verify` works it out again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


def number_columns(description: Description) -> list[str]:
    """The columns of a table's files that are no labels.

    Values that were projected come with those drawn. Counts drawn given their signs have an error
    that depends on the data, and so no columns that say how large it is.
    """
    known = [] if description.nonnegative else [*ERRORS]
    drawn = ["count_as_drawn"] if description.post_processing == "project" else []
    return ["count", *known, *drawn]


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
    def read(cls, table: Any) -> CellErrors:
        """The columns of a file."""
        return cls(*(numbers(table[name]) for name in ERRORS))

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns by name."""
        return dict(zip(ERRORS, (self.sd, self.low, self.high), strict=True))

    def follow_from(
        self, mechanism: Mechanism, figures: Invariants, drawn: Any, printed: Any = None
    ) -> bool:
        """Whether these are the errors of the law and the figures, worked out again, but for
        rounding. A law that is simulated has the same draws everywhere, from public words.
        """
        again = CellErrors.of(mechanism, figures, drawn, printed)
        off = AGAIN * (1 + again.high - again.low)
        ends = (np.abs(self.low - again.low) <= off) & (np.abs(self.high - again.high) <= off)
        return bool(np.all(ends & (np.abs(self.sd - again.sd) <= AGAIN * again.sd)))


@dataclass(frozen=True)
class CellSpread:
    """The law of each cell's noise: standard deviation, and how far it reaches."""

    names: tuple[str, ...]
    sd: Any
    half: Any

    @classmethod
    def of(cls, mechanism: Mechanism) -> CellSpread:
        """Of every cell in order, from the different laws there are."""
        cells = math.prod(mechanism.shape)
        index = np.arange(cells).reshape(mechanism.shape)
        laws, of_cell = mechanism.different_error_laws(index, cells)
        sd = np.sqrt([float(law.variance) for law in laws])[of_cell]
        half = np.array([law.interval(FILE_LEVEL) for law in laws])[of_cell]
        return cls(mechanism.description.table, sd, half)

    def errors(self, figures: Invariants, drawn: Any, printed: Any) -> CellErrors:
        """With ends cut to what the figures allow."""
        flat, half = drawn.reshape(-1), self.half.astype(drawn.dtype)
        ranges = cell_ranges(support(figures, self.names))
        return CellErrors(self.sd, *interval_ends(ranges, flat, half, printed))


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
