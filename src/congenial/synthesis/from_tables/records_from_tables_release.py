"""Records from measured tables, as files: the records, and every measurement with its law."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from congenial.data.csv_text import table_csv
from congenial.data.rational import fraction
from congenial.errors import BundleError
from congenial.mechanisms.record_release import FOLLOWS, Made, RecordRelease
from congenial.synthesis.from_tables.junction_tree import Axes, Ints
from congenial.synthesis.records_from_models_release import (
    DICTIONARY,
    agrees,
    as_parquet,
    dictionary,
    expected_copy,
    level_numbers,
)

MEASUREMENTS = "measurements.json"
RECORDS = "records.parquet"


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """One measured table: whole numbers as drawn, discrete Gaussian noise of this variance."""

    axes: Axes
    variance: Fraction
    values: Ints

    def to_dict(self) -> dict[str, Any]:
        """Plain data; cells in the order of the schema's levels, the last axis fastest."""
        return {
            "axes": list(self.axes),
            "variance": str(self.variance),
            "values": self.values.reshape(-1).tolist(),
        }


@dataclass(frozen=True)
class TableRecordsRelease(RecordRelease):
    """Synthetic records, and the measured tables they were made from.

    Intervals come from the measurements, not from counting records: `measured` has every table as
    drawn with its variance. `moved`: records changed at the end so that all figures hold.
    """

    kind: ClassVar[str] = "records from tables"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        ("records.parquet, .csv", "synthetic records; no row is a real person's"),
        (MEASUREMENTS, "every table as measured, in order, with the variance of its noise"),
        (DICTIONARY, "every column and level: type, interval, and how it is written"),
    )
    usage: ClassVar[tuple[str, ...]] = (
        "release.to_pandas()",
        "release.measured[0].axes, release.measured[0].values   # a table as measured",
    )

    records: Any = field(repr=False)
    measured: tuple[MeasuredTable, ...] = field(repr=False)
    moved: int = 0

    def to_arrow(self) -> Any:
        """The records as an Arrow table."""
        return self.records

    def to_pandas(self) -> Any:
        """The records as a pandas frame (extra `frames`)."""
        return self.records.to_pandas()

    def to_polars(self) -> Any:
        """The records as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.records)

    @property
    def names(self) -> Axes:
        """The columns."""
        return tuple(self.records.column_names)

    def known(self, one: str, other: str) -> str:
        """How the records know a pair of columns: measured together, or only implied."""
        held = [m for m in self.measured if {one, other} <= set(m.axes)]
        return "measured" if held else "implied by the fit"

    def payload(self) -> dict[str, bytes]:
        """Files for the bundle."""
        told = {"moved": self.moved, "measured": [one.to_dict() for one in self.measured]}
        return {
            DICTIONARY: dictionary(self.schema, self.names),
            MEASUREMENTS: (json.dumps(told, indent=1) + "\n").encode(),
            RECORDS: as_parquet(self.records),
            "records.csv": table_csv(self.records),
        }

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> Self:
        """Read what `payload` wrote; BundleError when something is missing or damaged."""
        law, schema = common["description"].law, common["guarantee"].adjacency.schema
        for file in (RECORDS, MEASUREMENTS):
            if file not in payload:
                raise BundleError(f"{file} is missing.", remedy="Get the bundle again.")
        expected = expected_copy(RECORDS, schema, law["columns"], None)
        try:
            told = json.loads(payload[MEASUREMENTS])
            measured = tuple(_measured(schema, one) for one in told["measured"])
            moved = told["moved"]
            if type(moved) is not int:
                raise TypeError(moved)
        except (ArithmeticError, ValueError, KeyError, TypeError, RecursionError):
            raise BundleError(
                f"{MEASUREMENTS} cannot be read.", remedy="Get the bundle again."
            ) from None
        return cls(
            **common, records=expected.read(payload[RECORDS]), measured=measured, moved=moved
        )

    def rebuilt(self) -> Iterator[Made]:
        """The mechanism of this law over these pairs."""
        yield self._mechanism()

    def _mechanism(self) -> Any:
        from congenial.synthesis.from_tables.table_records import TableRecords

        pairs: Any = self.guarantee.adjacency
        return TableRecords.from_dict(pairs, self.description.law)

    def checks(self) -> dict[str, bool]:
        """What must be so for a bundle to be what it says, and whether it is."""
        made = self._mechanism()
        pairs = [one for one in self.measured if len(one.axes) == 2]
        singles = [(name,) for name in made.names if made.law((name,)) is not None]
        allowed: dict[Axes, Fraction] = dict.fromkeys(singles, made.first_variance)
        if made.rounds:
            allowed |= dict.fromkeys(made.pairs, made.variance)
        axes = [one.axes for one in self.measured]
        levels = level_numbers(self.schema, self.records)
        return {
            FOLLOWS: self.follows,
            "it has the columns it should have": self.names == made.names,
            "every measured table is one of its procedure, measured once, with its noise": (
                len(set(axes)) == len(axes)
                and set(singles) <= set(axes)
                and len(pairs) <= made.rounds
                and all(allowed.get(one.axes) == one.variance for one in self.measured)
            ),
            "every measured table agrees with the figures it shows": all(
                made.kept.agrees_with(one.axes, one.values) for one in self.measured
            ),
            "no more records were changed than there are": 0 <= self.moved <= self.records.num_rows,
            "every value is one the schema knows": all((one >= 0).all() for one in levels.values()),
            "the records agree with every published figure and rule they show": agrees(
                self.published, levels, self.records.num_rows, figures=True
            ),
        }

    def __repr__(self) -> str:
        promise = self.guarantee.tradeoff.words
        return f"TableRecordsRelease({self.name!r}: {', '.join(self.names)}; {promise})"


def _measured(schema: Any, data: Mapping[str, Any]) -> MeasuredTable:
    axes = tuple(str(name) for name in data["axes"])
    shape = tuple(schema.attribute(name).size for name in axes)
    values = np.array(data["values"], dtype=np.int64)
    whole = all(type(value) is int for value in data["values"])
    if values.size != np.prod(shape) or not whole or len(set(axes)) != len(axes):
        raise ValueError(axes)
    return MeasuredTable(axes, fraction(str(data["variance"])), values.reshape(shape))
