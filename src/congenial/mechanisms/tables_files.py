"""The files of tables in a bundle: one Parquet and one CSV file per table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from congenial.data.about import ReliabilityLimits
from congenial.data.engines.checked_parquet import (
    Expected,
    as_parquet,
    column_names,
    numbers,
    refused,
)
from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema
from congenial.data.text_files import rounded, table_csv
from congenial.figures.limits import SumRanges
from congenial.mechanisms.cell_labels import label_columns, label_names, with_words
from congenial.mechanisms.released import LEVEL
from congenial.privacy.description import Description
from congenial.privacy.descriptions import TablesDescription
from congenial.tables.intervals import ends, interval_names, reliability
from congenial.tables.joint_estimator import NOISELESS

NUMBERS = ("estimate", "sd")
ENDS = interval_names(LEVEL)
RELIABILITY = "reliability"  # in CSV files only
LARGEST = 2.0**62  # beyond it no whole number of 64 bits is near


def file_name(tables: Sequence[tuple[str, ...]], at: int) -> str:
    """The name of a table's files without ending: its place, and its axes where they are plain.

    >>> file_name([("county", "sex")], 0)
    'table'
    >>> file_name([("county", "sex"), ()], 0), file_name([("county", "sex"), ()], 1)
    ('table-1-county-sex', 'table-2-total')
    """
    if len(tables) == 1:
        return "table"
    words = re.sub(r"[^A-Za-z0-9]+", "-", "-".join(tables[at]) or "total").strip("-")[:60]
    return f"table-{at + 1}-{words}".rstrip("-")


def measure_ends(description: TablesDescription) -> list[str]:
    """What the names of files end with, for each measure of a release: nothing for the first, the
    number's column, where it is plain, for those beside it.
    """
    named = [
        re.sub(r"[^A-Za-z0-9]+", "-", other.of).strip("-")[:40] for other in description.beside
    ]
    return ["", *(f".{at + 2}-{name}".rstrip("-") for at, name in enumerate(named))]


def with_end(file: str, end: str) -> str:
    """The name of a file of that measure.

    >>> with_end("table-1-ward.csv", ".2-cost")
    'table-1-ward.2-cost.csv'
    """
    stem, _, kind = file.rpartition(".")
    return f"{stem}{end}.{kind}"


def part_name(number: int) -> str:
    """The file of a part in the folder of a table that is cut into parts."""
    return f"part-{number:05d}.parquet"


@dataclass(frozen=True)
class TableFile:
    """One table of a release: its axes, and which columns it has.

    `whole`: whole counts. `drawn`: values as drawn, where they are not the estimates. `only`: the
    law of the one measured table, whose estimates are as drawn; None where there are several.
    Counts that were drawn given their signs have no estimates with their uncertainty, because it
    depends on the data. `magnitude`: the number that is summed, in whose units the files are.
    """

    schema: Schema
    tables: tuple[tuple[str, ...], ...]
    at: int
    whole: bool
    drawn: bool
    only: Description | None = None
    magnitude: Magnitude | None = None

    @classmethod
    def of(cls, schema: Schema, description: TablesDescription, at: int, whole: bool) -> TableFile:
        """A table of a release as its description has it."""
        only, measured = description.only_law, {law.table for law in description.measured}
        return cls(
            schema,
            description.tables,
            at,
            whole,
            only is None and description.tables[at] in measured,
            only,
            description.magnitude,
        )

    @classmethod
    def found(
        cls, schema: Schema, description: TablesDescription, at: int, payload: Mapping[str, bytes]
    ) -> TableFile:
        """The same as a bundle has it: with one column more where there are whole counts."""
        file = f"{file_name(description.tables, at)}.parquet"
        columns = len(column_names(file, payload[file]))
        whole = cls.of(schema, description, at, True)
        there = columns == len(description.tables[at]) + len(whole.columns)
        printed = description.whole or whole.signed
        return whole if printed and there else replace(whole, whole=False)

    @property
    def name(self) -> str:
        """File name without ending."""
        return file_name(self.tables, self.at)

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels of its axes."""
        return tuple(axis.size for axis in self.schema.axes(self.tables[self.at]))

    @property
    def signed(self) -> bool:
        """Whether counts were drawn given their signs."""
        return self.only is not None and self.only.nonnegative

    @property
    def columns(self) -> list[str]:
        """The columns that are no labels."""
        errors = [] if self.signed else [*NUMBERS, *ENDS]
        drawn = ["count_as_drawn"] if self.drawn else []
        columns = [*(["count"] if self.whole else []), *errors, *drawn]
        return [self._named(name) for name in columns]

    def _named(self, name: str) -> str:
        """A column of counts as it is called where sums are in it."""
        if self.magnitude is None:
            return name
        if self.magnitude.shift and name == "count_as_drawn":
            return "shifted_sum_as_drawn"
        return name.replace("count", "sum")

    @property
    def expected(self) -> Expected:
        """What the Parquet file must hold."""
        import pyarrow as pa

        axes = self.schema.axes(self.tables[self.at])
        labels = label_names(self.tables[self.at], self.columns)
        fields = [(label, pa.string()) for label in labels]
        real = {*NUMBERS} if self.only is None or self.only.continuous else {"sd"}
        if self.magnitude is not None and not self.magnitude.whole:
            real = {*self.columns}
        fields += [(name, pa.float64() if name in real else pa.int64()) for name in self.columns]
        longest = max((len(level.encode()) for axis in axes for level in axis.levels), default=0)
        return Expected(f"{self.name}.parquet", pa.schema(fields), math.prod(self.shape), longest)

    def table(self, columns: Mapping[str, Any]) -> Any:
        """One row per cell: labels and numbers, as an Arrow table."""
        import pyarrow as pa

        named = label_columns(self.schema, self.tables[self.at], self.columns)
        for name, values in columns.items():
            if self._named(name) in self.columns:
                printed = values if self.magnitude is None else self.magnitude.shown(values)
                named[self._named(name)] = pa.array(np.reshape(printed, -1))
        return pa.table(named).select([*named][: len(named) - len(self.columns)] + self.columns)

    def written(self, columns: Mapping[str, Any]) -> dict[str, bytes]:
        """Both files."""
        table = self.table(columns)
        labelled = with_words(table, self.schema, self.tables[self.at])
        shortened = ["estimate"] if self.only is None else []  # values as drawn have a density
        marked = with_reliability(labelled, self.columns, self.schema.about.reliability)
        return {
            f"{self.name}.parquet": as_parquet(table),
            f"{self.name}.csv": table_csv(rounded(marked, *shortened)),
        }

    def read(self, payload: Mapping[str, bytes]) -> dict[str, Any]:
        """Its numbers, shaped by its axes; BundleError if the file is another."""
        file = f"{self.name}.parquet"
        table = self.expected.read(payload[file], self.columns)
        if any(table[name].null_count for name in self.columns):
            raise refused(file, "has cells without a number")
        read = {name: numbers(table[name]).reshape(self.shape) for name in self.columns}
        if self.magnitude is not None:
            read = self._in_steps(read)
        printed = [read[name] for name in NUMBERS if name in read]
        if not all((np.abs(values) < LARGEST).all() for values in printed):  # so is no NaN
            raise refused(file, "has an estimate or a standard deviation that is not possible")
        return read

    def _in_steps(self, read: Mapping[str, Any]) -> dict[str, Any]:
        """Columns of sums in steps of the number, named as those of counts."""
        number = self.magnitude
        assert number is not None
        drawn = ["estimate"] if self.only is not None else []
        whole = {*ENDS, "sum", "sum_as_drawn", "shifted_sum_as_drawn", *drawn}
        factor = number.step.denominator / number.step.numerator
        return {
            name.replace("shifted_", "").replace("sum", "count"): number.steps(values)
            if name in whole
            else values * factor
            for name, values in read.items()
        }


def estimated_columns(estimates: Any, deviations: Any, counts: Any, drawn: Any) -> dict[str, Any]:
    """The columns of a table that was estimated with others, but for the ends of its intervals;
    estimates are whole where figures tell a cell. `drawn`: as drawn, or None.
    """
    deviations = np.where(deviations < NOISELESS, 0.0, deviations)
    estimates = np.where(deviations == 0, np.rint(estimates), estimates)
    columns = {"count": counts, "estimate": estimates, "sd": deviations}
    return columns if drawn is None else columns | {"count_as_drawn": drawn}


def with_ends(columns: Mapping[str, Any], ranges: SumRanges) -> dict[str, Any]:
    """The same with the ends of intervals, which follow from what is printed and from figures."""
    printed = columns["estimate"], columns["sd"], LEVEL, columns["count"]
    low, high = ends(*printed, ranges)
    return {**columns, **dict(zip(ENDS, (low, high), strict=True))}


def with_reliability(table: Any, columns: Sequence[str], limits: ReliabilityLimits) -> Any:
    """The table for readers with a word for each cell after the ends of its interval; `columns` are
    its numbers with all digits, behind the labels. A table without errors stays as it is.
    """
    if "sd" not in columns:
        return table
    import pyarrow as pa

    first = len(table.column_names) - len(columns)
    number, error = (table.column(first + columns.index(x)) for x in (columns[0], "sd"))
    words = reliability(number.to_numpy(), error.to_numpy(), limits)
    name = label_names([RELIABILITY], table.column_names)[0]
    return table.add_column(first + columns.index(ENDS[1]) + 1, name, pa.array(words))


def said(names: Sequence[str]) -> str:
    """A table in words, by its axes."""
    return " x ".join(names) if names else "total"
