"""Columns that files of records need and that say nothing: identifiers and dates, made up.

Nothing of the data enters: they are functions of a record's place in the file alone, and records
are in random order. Identifiers say what they are ("made-up-000001"); that dates are made up is
said in the data dictionary and in the report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from congenial.errors import StructureError

IDENTIFIER = "identifier"
LONGEST = 40  # characters of one that is made up
MADE_UP = "made up: says nothing about anybody"
SEED = 20261117  # public: which dates are written hides nothing


@dataclass(frozen=True)
class MadeUpColumn:
    """A column of identifiers, or of dates between two (both may occur)."""

    name: str
    between: tuple[date, date] | None = None

    def __post_init__(self) -> None:
        if self.between is not None and self.between[0] > self.between[1]:
            raise StructureError(
                f"made_up {self.name!r}: {self.between[0]} comes after {self.between[1]}.",
                remedy="Give the first date, then the last.",
            )

    def values(self, records: int) -> Any:
        """An Arrow array for so many records."""
        import pyarrow as pa

        if self.between is None:
            digits = max(6, len(str(records)))
            return pa.array([f"made-up-{at:0{digits}}" for at in range(1, records + 1)])
        days = (self.between[1] - self.between[0]).days + 1
        drawn = np.random.default_rng(SEED).integers(0, days, records)
        first = (self.between[0] - date(1970, 1, 1)).days
        return pa.array((first + drawn).astype(np.int32), type=pa.int32()).cast(pa.date32())

    @property
    def row(self) -> list[str]:
        """Its row of the data dictionary."""
        if self.between is None:
            return [self.name, "identifier", "", "", "", MADE_UP]
        first, last = self.between
        return [self.name, "date", "", str(first), "", f"{MADE_UP}; the last one is {last}"]

    def to_plain(self) -> str | list[str]:
        """As a plan writes it."""
        return IDENTIFIER if self.between is None else [str(day) for day in self.between]

    @classmethod
    def from_plain(cls, name: str, told: object) -> MadeUpColumn:
        """Inverse of `to_plain`."""
        if told == IDENTIFIER:
            return cls(name)
        try:
            first, last = (
                day if isinstance(day, date) else date.fromisoformat(day)
                for day in told  # type: ignore[attr-defined]
            )
        except (TypeError, ValueError):
            raise StructureError(
                f"made_up {name!r} is neither {IDENTIFIER!r} nor two dates.",
                remedy='Write "identifier", or ["2024-01-01", "2024-12-31"].',
            ) from None
        return cls(name, (first, last))


def with_made_up(table: Any, columns: Sequence[MadeUpColumn]) -> Any:
    """An Arrow table of records with the made-up columns after its own."""
    for one in columns:
        table = table.append_column(one.name, one.values(table.num_rows))
    return table


def read_made_up(data: Mapping[str, Any]) -> tuple[MadeUpColumn, ...]:
    """The columns that a plan or a law names."""
    return tuple(MadeUpColumn.from_plain(name, told) for name, told in data.items())
