"""How far each cell of one table may be off, for its files: standard deviation and interval ends.

All of it follows from the values as drawn and the public law of the noise, so that `verify` works
it out again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from congenial.data.engines.checked_parquet import numbers
from congenial.mechanisms.released import FILE_LEVEL

if TYPE_CHECKING:
    from congenial.mechanisms.mechanism import ErrorLaw, Mechanism
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
    def of(cls, mechanism: Mechanism, drawn: Any, level: float = FILE_LEVEL) -> CellErrors:
        """From the law of the noise; ends as `Release.interval` has them."""
        return cls._of_laws(*_laws_of_cells(mechanism), drawn.reshape(-1), level)

    @classmethod
    def _of_laws(cls, laws: Sequence[ErrorLaw], of_cell: Any, flat: Any, level: float) -> Self:
        half = np.array([law.interval(level) for law in laws], dtype=flat.dtype)[of_cell]
        sd = np.sqrt([float(law.variance) for law in laws])[of_cell]
        return cls(sd, np.maximum(0, flat - half), np.maximum(0, flat) + half)

    @classmethod
    def read(cls, table: Any) -> CellErrors:
        """The columns of a file."""
        return cls(*(numbers(table[name]) for name in ERRORS))

    @property
    def columns(self) -> Mapping[str, Any]:
        """The columns by name."""
        return dict(zip(ERRORS, (self.sd, self.low, self.high), strict=True))

    def follow_from(self, mechanism: Mechanism, drawn: Any) -> Agreement:
        """Whether these are the errors of the law, worked out again.

        A law that is simulated has the same draws everywhere, from public words, as long as the
        samplers are the same: those of other software make errors that are near.
        """
        flat, (laws, of_cell) = drawn.reshape(-1), _laws_of_cells(mechanism)
        again = CellErrors._of_laws(laws, of_cell, flat, FILE_LEVEL)
        if self._within(again, flat, np.full(len(flat), AGAIN)):
            return "equal"
        simulated = np.array([hasattr(law, "draws") for law in laws], dtype=bool)[of_cell]
        near = self._within(again, flat, np.where(simulated, SIMULATED_AGAIN, AGAIN))
        return "near" if near else ""

    def _within(self, again: CellErrors, flat: Any, reach: Any) -> bool:
        """Whether these differ from others by no more than a share `reach` of the width."""
        half = again.high - np.maximum(0, flat)
        told = self.high - np.maximum(0, flat)
        ends = np.abs(told - half) <= np.where(reach > AGAIN, 1, AGAIN) + reach * half
        low = np.isclose(self.low, np.maximum(0, flat - told), rtol=AGAIN, atol=AGAIN)
        return bool(np.all(ends & low & (np.abs(self.sd - again.sd) <= reach * again.sd)))


def _laws_of_cells(mechanism: Mechanism) -> tuple[list[ErrorLaw], Any]:
    """The different laws of single cells, and the number of each cell's."""
    cells = math.prod(mechanism.shape)
    return mechanism.different_error_laws(np.arange(cells).reshape(mechanism.shape), cells)
