"""Records from measured tables, as files: the records, and every measurement with its law."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod, sqrt
from typing import Any, ClassVar, Self

import numpy as np

from congenial._exports import public
from congenial.data.arrays import Ints
from congenial.data.engines.checked_parquet import Expected, as_parquet
from congenial.data.predicate import parse
from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.data.text_files import rows_csv, table_csv
from congenial.errors import BundleError
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.released import LEVEL, Interval, check_level
from congenial.mechanisms.tables_release import ERRORS, TablesRelease
from congenial.synthesis.from_tables.column_rules import (
    INSIDE,
    LONGEST,
    ColumnRules,
    MadeUpColumn,
    with_made_up,
)
from congenial.synthesis.from_tables.junction_tree import Axes
from congenial.synthesis.from_tables.measuring_budget import FAMILY, SCALE, variance_of
from congenial.synthesis.from_tables.private_quantiles import (
    Cuts,
    binned_schema,
    cuts_from_plain,
    cuts_to_plain,
)
from congenial.synthesis.from_tables.table_records import RecordsProcedure
from congenial.synthesis.record_files import (
    DICTIONARY,
    RecordCopies,
    dictionary,
    dictionary_rows,
    expected_copy,
    level_numbers,
)

# ---- measured.csv: all measured tables cell by cell, and how far each value may be off ----
# One row for each cell of each table: `table` names its columns, every column of the records (and
# every coarser name that was counted by) holds a label, or nothing where the table does not have
# it; then the value as drawn, its standard deviation, and the ends of a 90 % interval for the
# true count.

MEASURED = "measured.csv"
OFF = dict.fromkeys(ERRORS, 1e-6)  # standard deviations by which other machines may round
TABLE, ESTIMATE = "table", "estimate"


def measured_csv(tables: Sequence[TablesRelease]) -> bytes:
    """The file."""
    rows: list[Sequence[Any]] = [_header(tables)]
    for table in tables:
        errors = [column.reshape(-1).tolist() for column in table.cell_errors()]
        rows += [
            (*cells, *ends) for cells, *ends in zip(_cells(tables, table), *errors, strict=True)
        ]
    return rows_csv(rows).encode()


def _header(tables: Sequence[TablesRelease]) -> list[str]:
    numbers = (TABLE, ESTIMATE, *ERRORS)
    return [TABLE, *label_names(_axes(tables), numbers), ESTIMATE, *ERRORS]


def _axes(tables: Sequence[TablesRelease]) -> list[str]:
    """All columns of the tables, in the order in which they come."""
    return list(dict.fromkeys(name for table in tables for name in table.tables[0]))


def _cells(tables: Sequence[TablesRelease], one: TablesRelease) -> Iterator[list[Any]]:
    """What stands before the errors in each row of a table."""
    axes, name = _axes(tables), " x ".join(one.tables[0])
    levels = [axis.levels for axis in one.schema.axes(one.tables[0])]
    for labels, value in zip(product(*levels), one.drawn[0].reshape(-1).tolist(), strict=True):
        label_of = dict(zip(one.tables[0], labels, strict=True))
        yield [name, *(label_of.get(axis, "") for axis in axes), value]


MEASUREMENTS = "measurements.json"
NAMED = 6  # measured tables that a message names
SCALES: dict[str, str] = {
    FAMILY[law]: SCALE[law] for law in FAMILY
}  # what measurements call their scale


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """One measured table: whole numbers as drawn.

    `family`: "discrete_gaussian" noise whose variance is `scale`, or "double_geometric" noise whose
    rate is `scale` (epsilon per cell).
    """

    axes: Axes
    scale: Fraction
    values: Ints
    family: str = "discrete_gaussian"

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in a cell, before figures are kept."""
        return sqrt(variance_of(self.family, self.scale))

    def to_dict(self) -> dict[str, Any]:
        """Plain data; cells in the order of the schema's levels, the last axis fastest."""
        return {
            "axes": list(self.axes),
            SCALES[self.family]: str(self.scale),
            "values": self.values.reshape(-1).tolist(),
        }


@dataclass(frozen=True)
class TableRecordsRelease(RecordCopies):
    """Synthetic records, and the measured tables they were made from.

    Intervals come from the measurements, not from counting records: `measured` has every table as
    drawn with its law. All `copies` come from one fit, so that they show nothing of the noise in
    it. `moved`: records changed at the end so that all figures hold, in all copies.
    """

    kind: ClassVar[str] = "records from tables"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "records.parquet, .csv",
            "synthetic records (several copies: records-1 and so on); no row is a real person's",
        ),
        (
            MEASURED,
            "the same tables cell by cell: the value as drawn, its standard deviation, and a 90 % "
            "interval for the true count",
        ),
        (MEASUREMENTS, "every table as measured, in order, with the law of its noise"),
        (DICTIONARY, "every column and level: type, interval, and how it is written"),
    )
    usage: ClassVar[tuple[str, ...]] = (
        "release.to_pandas()",
        'release.estimate("<expression>")   # with intervals, from the measured tables',
    )

    tolerances: ClassVar[Mapping[str, float]] = OFF

    measured: tuple[MeasuredTable, ...] = field(repr=False)
    moved: int = 0
    cuts: tuple[tuple[str, Cuts], ...] = field(default=(), repr=False)

    @property
    def names(self) -> Axes:
        """The columns; made-up ones are not among them."""
        return tuple(self.copies[0].column_names)

    @property
    def made_up(self) -> tuple[MadeUpColumn, ...]:
        """The columns that say nothing: identifiers and dates."""
        rules: ColumnRules = self.procedure.rules
        return rules.made_up

    @property
    def counted_schema(self) -> Schema:
        """What was counted: the schema, with bins for columns cut at private quantiles."""
        schema: Schema = self.procedure.schema
        return schema

    def to_arrow(self, copy: int = 1) -> Any:
        """One copy as an Arrow table, made-up columns last; copies are counted from 1."""
        return with_made_up(super().to_arrow(copy), self.made_up)

    def known(self, one: str, other: str) -> str:
        """How the records know a pair of columns: measured together, settled by figures, or only
        implied.
        """
        candidates = [m for m in self.measured if {one, other} == {self._base(a) for a in m.axes}]
        if not candidates:
            settled = self.procedure.settled((one, other))
            return "fixed by published figures" if settled else "implied by the fit"
        coarse = [axis for axis in candidates[0].axes if self._base(axis) != axis]
        return "measured" + (f" by {' and '.join(coarse)}" if coarse else "")

    def _base(self, axis: str) -> str:
        return self.counted_schema.axis(axis).base

    # ---- what can be asked -------------------------------------------------------------------

    def tables_about(self, columns: Collection[str]) -> list[TablesRelease]:
        """The measured tables that show these columns together, at some resolution, each as a
        release with the law of its noise; the one whose sums over other columns have the least
        noise comes first. A table that the figures settle is exact.
        """
        asked = {self.schema.axis(name).base for name in columns}
        axes = tuple(name for name in self.names if name in asked)
        if axes and self.procedure.settled(axes):
            return [self._as_release(self._settled(axes))]
        candidates = [
            table for table in self.measured if asked <= {self._base(name) for name in table.axes}
        ]
        return [
            self._as_release(table)
            for table in sorted(candidates, key=lambda m: self._noise(m, asked))
        ]

    def measured_tables(self) -> tuple[TablesRelease, ...]:
        """Each measured table as a release of its own, with the law of its noise."""
        return self._laws

    @cached_property
    def _laws(self) -> tuple[TablesRelease, ...]:
        return tuple(self._as_release(table) for table in self.measured)

    def sums_of(self, table: TablesRelease) -> list[TablesRelease]:
        """The measured tables whose cells are sums of a table's: some of its axes alone."""
        inside = [
            measured for measured in self.measured if set(measured.axes) < set(table.tables[0])
        ]
        return [self._as_release(measured) for measured in inside]

    def _noise(self, one: MeasuredTable, bases: Collection[str]) -> float:
        """The variance of a sum over the columns that are not asked about."""
        other = [name for name in one.axes if self._base(name) not in bases]
        return one.deviation**2 * prod(self.counted_schema.axis(name).size for name in other)

    def _settled(self, axes: Axes) -> MeasuredTable:
        """A table that follows from the figures, which the records keep."""
        levels = level_numbers(self.schema, self.copies[0])
        counts = np.zeros([self.schema.axis(name).size for name in axes], dtype=np.int64)
        np.add.at(counts, tuple(levels[name] for name in axes), 1)
        return MeasuredTable(axes, Fraction(1), counts, FAMILY[self.procedure.budget.law])

    def _as_release(self, one: MeasuredTable) -> TablesRelease:
        """A table of its own, with its part of the law."""
        description = self.procedure.table_description(one.axes, one.scale)
        title = f"{self.name}: {' x '.join(one.axes)}"
        promise = replace(self.guarantee, adjacency=self.procedure.counted_adjacency)
        return TablesRelease.of_one(
            title, description, promise, one.values, self.randomness, self.publishable
        )

    def estimate(self, what: Any, level: float = LEVEL, **options: Any) -> Any:
        """Estimates with intervals from the measured tables, not from counting records: an
        `EstimateTable`, see `congenial.estimate`.
        """
        return public("estimate")(self, what, level, **options)

    def interval(self, condition: str, /, level: float = LEVEL) -> Interval:
        """Interval for the number of people who meet a condition, from what was measured of them:
        the same as `estimate` gives.
        """
        check_level(level)
        parse(condition, self.schema)
        estimate = self.estimate(f"count({condition})", level)[0]
        return Interval(
            estimate.value,
            estimate.low,
            estimate.high,
            level,
            estimate.low == estimate.high,
            estimate.method,
        )

    def instead(self) -> str:
        """What can be asked of it."""
        named = list(dict.fromkeys(" x ".join(table.axes) for table in self.measured))
        more = f" and {len(named) - NAMED} more in measured.csv" if len(named) > NAMED else ""
        return f"Ask about columns measured together: {'; '.join(named[:NAMED])}{more}."

    def payload(self) -> dict[str, bytes]:
        """Files for the bundle."""
        plain = {"moved": self.moved, "measured": [table.to_dict() for table in self.measured]}
        if self.cuts:
            plain["quantiles"] = {
                name: cuts_to_plain(self.schema.attribute(name), cuts) for name, cuts in self.cuts
            }
        files = {
            DICTIONARY: dictionary(self.dictionary_rows, self.schema),
            MEASUREMENTS: (json.dumps(plain, indent=1) + "\n").encode(),
            MEASURED: measured_csv(self._laws),
        }
        for at, file in enumerate(files_of_records(len(self.copies)), start=1):
            table = self.to_arrow(at)
            files[f"{file}.parquet"] = as_parquet(table)
            files[f"{file}.csv"] = table_csv(table)
        return files

    @property
    def dictionary_rows(self) -> list[list[str]]:
        """The rows of the data dictionary; cut columns by their bins, made-up columns last."""
        tails = {
            key: words for tail in self.procedure.rules.tails for key, words in tail.words.items()
        }
        rows = dictionary_rows(self.counted_schema, self.names, INSIDE, tails)
        return [*rows, *(column.row for column in self.made_up)]

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> Self:
        """Read what `payload` wrote; BundleError when something is missing or damaged."""
        law, schema = common["description"].law, common["guarantee"].adjacency.schema
        made_up = ColumnRules.from_dict(law).made_up
        written = [f"{file}.parquet" for file in files_of_records(law.get("copies", 1))]
        for file in (*written, MEASUREMENTS, MEASURED):
            if file not in payload:
                raise BundleError(f"{file} is missing.", remedy="Get a new copy of the bundle.")
        copies = tuple(
            _with(expected_copy(file, schema, law["columns"], law.get("records")), made_up).read(
                payload[file], list(law["columns"])
            )
            for file in written
        )
        try:
            document = json.loads(payload[MEASUREMENTS])
            cuts = _cuts(schema, law, document.get("quantiles", {}))
            counted = binned_schema(schema, ColumnRules.from_dict(law).quantiles, dict(cuts))
            measured = tuple(_measured(counted, entry) for entry in document["measured"])
            moved = document["moved"]
            if type(moved) is not int:
                raise TypeError(moved)
        except (ArithmeticError, LookupError, ValueError, TypeError, RecursionError, StopIteration):
            raise BundleError(
                f"{MEASUREMENTS} cannot be read.", remedy="Get a new copy of the bundle."
            ) from None
        release = cls(**common, copies=copies, measured=measured, moved=moved, cuts=cuts)
        _ = release.procedure  # a law that cannot be read is noticed here, and not when it is used
        return release

    @cached_property
    def procedure(self) -> RecordsProcedure:
        """What drew it, from its public description."""
        pairs: Any = self.guarantee.adjacency
        return replace(RecordsProcedure.from_dict(pairs, self.description.law), cuts=self.cuts)

    def __repr__(self) -> str:
        promise = self.guarantee.tradeoff.words
        return f"TableRecordsRelease({self.name!r}: {', '.join(self.names)}; {promise})"


def _measured(schema: Any, data: Mapping[str, Any]) -> MeasuredTable:
    axes = tuple(str(name) for name in data["axes"])
    shape = tuple(schema.axis(name).size for name in axes)
    values = np.array(data["values"], dtype=np.int64)
    whole = all(type(value) is int for value in data["values"])
    if values.size != np.prod(shape) or not whole or len(set(axes)) != len(axes):
        raise ValueError(axes)
    family = next(name for name, key in SCALES.items() if key in data)
    scale = fraction(str(data[SCALES[family]]))
    return MeasuredTable(axes, scale, values.reshape(shape), family)


def _cuts(
    schema: Schema, law: Mapping[str, Any], data: Mapping[str, Any]
) -> tuple[tuple[str, Cuts], ...]:
    """Where columns were cut; ValueError for what could not have been drawn."""
    cuts_by_name = []
    for bins in ColumnRules.from_dict(law).quantiles:
        attribute = schema.attribute(bins.name)
        cuts = cuts_from_plain(attribute, data[bins.name])
        if not bins.possible(attribute, cuts):
            raise ValueError(bins.name)
        cuts_by_name.append((bins.name, cuts))
    if len(cuts_by_name) != len(data):
        raise ValueError(law["columns"])
    return tuple(cuts_by_name)


def _with(expected: Expected, made_up: Sequence[MadeUpColumn]) -> Expected:
    """A file that has made-up columns as well."""
    import pyarrow as pa

    schema, longest = expected.schema, expected.longest
    for column in made_up:
        schema = schema.append(pa.field(column.name, column.values(1).type))
        longest = max(longest, LONGEST)
    return replace(expected, schema=schema, longest=longest)


def files_of_records(copies: int) -> list[str]:
    """The names of the files of records, without what they end with."""
    return ["records"] if copies == 1 else [f"records-{at}" for at in range(1, copies + 1)]
