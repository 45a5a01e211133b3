"""Values that have no cell: one pass counts them all, a second looks at the columns that have some.

CONFIDENTIAL: what comes back are counts and values of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from congenial.data.attribute import Attribute
from congenial.data.data_problems import DataProblem, Example, PlanLine, ProblemKind
from congenial.data.derive import NO_DATE, DatePart, Derivation, derived
from congenial.data.schema import Schema, Unit
from congenial.data.source import Source
from congenial.data.sql import ColumnType, Refusal, coded
from congenial.data.suggestions import Suggestion, for_dates, for_levels, for_numbers

ROW = "congenial_row"  # a column with the number of each record, where records have an order
MOST_VALUES = 1000  # values of one column that are looked at
AT_MOST_ROWS = 5  # row numbers shown for one value

KINDS: dict[Refusal, ProblemKind] = {
    Refusal.MISSING: "missing values",
    Refusal.OUTSIDE: "not in the schema",
    Refusal.NOT_A_NUMBER: "not a number",
}


@dataclass(frozen=True)
class OpenedRecords:
    """CONFIDENTIAL: an opened source under a name, and whether its rows are numbered."""

    source: Source
    name: str
    types: Mapping[str, ColumnType]
    numbered: bool

    def under(self, derivations: Sequence[Derivation]) -> OpenedRecords:
        """With derived columns."""
        name, types = derived(self.name, self.types, derivations, self.source.dialect)
        return OpenedRecords(self.source, name, types, self.numbered)

    def column(self, name: str) -> str:
        """A column of `src` in SQL."""
        return f"src.{self.source.dialect.identifier(name)}"

    def text(self, name: str) -> str:
        """The text of a column of `src` in SQL."""
        return self.source.dialect.text_form(self.column(name), self.types[name])

    @property
    def beside(self) -> list[str]:
        """The number of each row, where there is one."""
        return [f"{self.column(ROW)} AS row_number"] if self.numbered else []

    def grouped(self, rows: str) -> tuple[list[Example], int]:
        """Values of a query with `value` and perhaps `row_number`, the most frequent first, and how
        many different ones there are.
        """
        at = f", min(row_number, {AT_MOST_ROWS}) AS at" if self.numbered else ""
        found = self.source.run(
            f"SELECT value, COUNT(*) AS n, COUNT(*) OVER () AS every{at} FROM ({rows}) AS odd "
            f"GROUP BY value ORDER BY n DESC, value LIMIT {MOST_VALUES}"
        ).to_pylist()
        return [_example(row) for row in found], int(found[0]["every"]) if found else 0

    def count(self, rows: str) -> int:
        """How many rows a query has."""
        found = self.source.run(f"SELECT COUNT(*) AS n FROM ({rows}) AS counted")
        return int(found["n"][0].as_py())


def _example(row: Mapping[str, Any]) -> Example:
    value = row["value"]
    return Example(None if value is None else str(value), int(row["n"]), tuple(row.get("at") or ()))


def count_refusals(records: OpenedRecords, schema: Schema, names: Sequence[str]) -> tuple[int, Any]:
    """The number of rows, and of rows without a level, by column and reason: one pass over all."""
    axes = [schema.axis(name) for name in names]
    dialect = records.source.dialect
    rows = coded(axes, schema, records.types, records.name, dialect, ["1 AS one"])
    sums = [
        f"SUM(CASE WHEN c{at} = {int(reason)} THEN 1 ELSE 0 END) AS r{at}_{-int(reason)}"
        for at in range(len(axes))
        for reason in Refusal
    ]
    listed = ", ".join(["COUNT(*) AS n", *sums])
    found = records.source.run(f"SELECT {listed} FROM ({rows}) AS coded").to_pylist()[0]
    return int(found["n"]), {
        (name, reason): int(found[f"r{at}_{-int(reason)}"] or 0)
        for at, name in enumerate(names)
        for reason in Refusal
    }


def refused_values(
    records: OpenedRecords,
    schema: Schema,
    column: str,
    reason: Refusal,
    count: int,
    examples: int,
) -> tuple[DataProblem | None, tuple[PlanLine, ...]]:
    """The values of one column that are refused for one reason, in `count` rows, as a problem.

    Text that is no date is left to `undated`.
    """
    beside = [f"{records.text(column)} AS value", *records.beside]
    axes = [schema.axis(column)]
    dialect = records.source.dialect
    rows = coded(axes, schema, records.types, records.name, dialect, beside)
    refused = f"SELECT * FROM ({rows}) AS coded WHERE c0 = {int(reason)}"
    every, distinct = records.grouped(refused)
    found = [one for one in every if one.value != NO_DATE]
    dateless = sum(one.rows for one in every) - sum(one.rows for one in found)
    if not found:
        return None, ()
    attribute = schema.attribute(column)
    values = {one.value: one.rows for one in found if one.value is not None}
    suggestion = _suggestion(attribute, reason, values)
    shown = tuple(
        Example(one.value, one.rows, one.at, suggestion.meant.get(one.value or ""))
        for one in found[:examples]
    )
    words, remedy = _words(attribute, reason)
    different = distinct - (len(every) - len(found)) if values else 0
    problem = DataProblem(
        KINDS[reason],
        column,
        count - dateless,
        words,
        remedy,
        suggestion.pattern,
        different,
        shown,
    )
    return problem, suggestion.lines


def _suggestion(attribute: Attribute, reason: Refusal, values: Mapping[str, int]) -> Suggestion:
    if reason is Refusal.NOT_A_NUMBER:
        return for_numbers(attribute, values)
    if reason is Refusal.OUTSIDE and attribute.kind == "categorical":
        return for_levels(attribute.name, attribute.levels, values)
    return Suggestion("", {})


def _words(attribute: Attribute, reason: Refusal) -> tuple[str, str]:
    if reason is Refusal.MISSING:
        return "empty, and the schema has no category for it", (
            'Add a category for them in the schema: missing = "unknown".'
        )
    if reason is Refusal.NOT_A_NUMBER:
        return "text that is not a number", (
            "Where text means an open class, such as 85+, give that label as top or bottom in "
            "the schema. Recode text for a missing value to empty text, and give missing in the "
            "schema."
        )
    if attribute.kind == "categorical":
        return "values that are not a category of the schema", (
            "Recode them in [derive], add categories, or put them into one category: other = "
            '"other".'
        )
    return "numbers between or beyond those of the schema", (
        "Widen edges or integers, add top or bottom, or put them into one category: other = "
        '"other".'
    )


def undated(
    records: OpenedRecords, one: DatePart, examples: int
) -> tuple[DataProblem | None, tuple[PlanLine, ...]]:
    """Text in a column of dates that is no date in the layout that the plan gives."""
    stored = records.types[one.column]
    if stored.kind != "text":
        return None, ()
    read = records.source.dialect.read_date(records.column(one.column), one.layout)
    beside = ", ".join([f"{records.column(one.column)} AS value", *records.beside])
    where = f"{records.column(one.column)} IS NOT NULL AND ({read}) IS NULL"
    undated_rows = f"SELECT {beside} FROM {records.name} AS src WHERE {where}"
    found, distinct = records.grouped(undated_rows)
    if not found:
        return None, ()
    dated = f"SELECT 1 AS n FROM {records.name} AS src WHERE ({read}) IS NOT NULL"
    if one.invalid_is_missing and records.count(dated):
        return None, ()
    layouts = for_dates([value.value for value in found if value.value is not None])
    pattern = f"dates written as {' or '.join(layouts)}" if layouts else ""
    problem = DataProblem(
        "not a date",
        one.column,
        records.count(undated_rows),
        f"not a valid date in the format {one.layout or '%Y-%m-%d'}",
        f'Say how dates are written in derive.{one.name}: format = "{(*layouts, "%d.%m.%Y")[0]}". '
        "Where a few dates do not exist, correct them, or count them as missing: "
        f'invalid = "missing" in derive.{one.name} and missing = "unknown" in schema.{one.name}.',
        pattern,
        distinct,
        tuple(found[:examples]),
    )
    return problem, ()


def blank_rows(
    records: OpenedRecords, columns: Sequence[str]
) -> tuple[DataProblem | None, tuple[PlanLine, ...]]:
    """Rows in which every column that is used is empty."""
    blank = " AND ".join(f"{records.column(one)} IS NULL" for one in columns)
    count = records.count(f"SELECT 1 AS n FROM {records.name} AS src WHERE {blank}")
    if not count:
        return None, ()
    words = "rows that are completely empty"
    remedy = "Delete them in the file, or leave them out: skip_blank_rows = true in [data]."
    line = PlanLine("data", "skip_blank_rows", "true")
    return DataProblem("blank rows", "", count, words, remedy), (line,)


def unit_problems(records: OpenedRecords, unit: Unit, examples: int) -> list[DataProblem]:
    """Rows without a unit, and units with more rows than they may have."""
    assert unit.column is not None
    text = records.text(unit.column)
    grouped = f"SELECT {text} AS value, COUNT(*) AS k FROM {records.name} AS src GROUP BY {text}"
    sums = records.source.run(
        "SELECT SUM(CASE WHEN value IS NULL THEN k ELSE 0 END) AS missing, "
        f"SUM(CASE WHEN value IS NOT NULL AND k > {unit.rows} THEN k ELSE 0 END) AS many, "
        f"SUM(CASE WHEN value IS NOT NULL AND k > {unit.rows} THEN 1 ELSE 0 END) AS units "
        f"FROM ({grouped}) AS units"
    ).to_pylist()[0]
    found = []
    if sums["missing"]:
        words = "rows without a value for the unit"
        remedy = "Every record needs a value that identifies its unit."
        missing = int(sums["missing"])
        found.append(DataProblem("unit missing", unit.column, missing, words, remedy))
    if sums["many"] and not unit.truncate:
        limit = f"{unit.rows} row{'s' if unit.rows > 1 else ''}"
        words = f"rows of units that have more than {limit}"
        shown = _repeated(records, unit, text) if examples else []
        found.append(
            DataProblem(
                "unit repeated",
                unit.column,
                int(sums["many"]),
                words,
                unit.remedy,
                distinct=int(sums["units"]),
                examples=tuple(shown[:examples]),
            )
        )
    return found


def _repeated(records: OpenedRecords, unit: Unit, text: str) -> list[Example]:
    beside = ", ".join([f"{text} AS value", *records.beside])
    owned = f"SELECT {beside} FROM {records.name} AS src WHERE {text} IS NOT NULL"
    found, _ = records.grouped(owned)
    return [one for one in found if one.rows > unit.rows]
