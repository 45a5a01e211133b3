"""The SQL that turns records into cells: one integer code per axis, then GROUP BY.

Nothing here touches data. Identifiers and labels are quoted by the dialect; `vector_statistics`
assembles its own SELECT through the same dialect. Codes below zero say why a row has no cell
(`Refusal`); they let one pass over the data both count and find every reason to refuse.

How a value finds its level:
- categorical: by the text form of the column, so codes stored as integers match "1", "2" and
  truth values match "true", "false";
- bins, integers: by comparison in the column's own type. An edge is taken exactly for whole and
  decimal columns and rounded to the column's precision for floating ones, so that a value written
  0.7 lies at the edge 0.7. Text is read as a number in double precision; text that is none may
  still be the label of a level, such as "90+".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Literal, Protocol

from congenial.data.attribute import REFUSE, Attribute, Axis
from congenial.data.magnitude import Magnitude
from congenial.data.rational import Number
from congenial.data.schema import Schema
from congenial.errors import DataError

ColumnKind = Literal["whole", "decimal", "float", "double", "text", "boolean", "date", "nested"]


_LISTED = 1000  # labels that are written one by one
_BETWEEN = "\x1f"  # the unit separator
_NUMBER = "congenial_number_"  # the number that a text is read as, one for each axis
# As long as no number of this form is too large or too small for double precision.
_DIGITS = r"([0-9]{1,150}\.?[0-9]{0,150}|\.[0-9]{1,150})(e[-+]?[0-9]{1,2})?"
_A_NUMBER = rf"^\s*[-+]?(inf|infinity|nan|{_DIGITS})\s*$"


class Refusal(IntEnum):
    """Why a row has no cell; used as a negative code."""

    MISSING = -1
    OUTSIDE = -2
    NOT_A_NUMBER = -3
    INFINITE = -4


@dataclass(frozen=True)
class ColumnType:
    """How a column is stored.

    It never carries the database's own name of a type: an enumeration's name lists its values.
    """

    kind: ColumnKind
    scale: int = 0


class Dialect:
    """What differs between databases; the base class speaks DuckDB's."""

    text_type = "VARCHAR"
    types = {"float": "FLOAT", "double": "DOUBLE"}
    whole_type = "HUGEINT"  # for whole numbers beyond 64 bits
    # Kinds of column that can hold NaN, which is taken for a missing value.
    with_nan: frozenset[str] = frozenset({"float", "double", "text"})

    def identifier(self, name: str) -> str:
        """Quote a column or table name."""
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Quote a text value."""
        return "'" + value.replace("'", "''") + "'"

    def text_form(self, expression: str, stored: ColumnType) -> str:
        """The text a value is matched by."""
        if stored.kind == "text":
            return expression
        return f"CAST({expression} AS {self.text_type})"

    def is_nan(self, expression: str) -> str:
        """Whether a number is not a number."""
        return f"isnan({expression})"

    def read_number(self, expression: str) -> str:
        """A number written as text; NULL where it is none. "1_0" is none, though SQL reads it."""
        text = f"CAST({expression} AS {self.text_type})"
        return f"CASE WHEN contains({text}, '_') THEN NULL ELSE TRY_CAST({text} AS DOUBLE) END"

    def read_date(self, expression: str, layout: str | None) -> str:
        """A date written as text, NULL where it is none; empty where it cannot be read so."""
        if layout is None:
            return f"TRY_CAST({expression} AS DATE)"
        return f"CAST(try_strptime({expression}, {self.text(layout)}) AS DATE)"

    def quotient(self, number: str, divisor: str) -> str:
        """number / divisor without its remainder, exactly; both whole and not negative."""
        return f"({number}) // ({divisor})"

    def decimal(self, scaled: int, scale: int) -> str:
        """The decimal number scaled / 10^scale, exactly."""
        if abs(scaled) >= 10**38:  # beyond every value the column can hold
            return f"CAST('{'-' if scaled < 0 else ''}inf' AS DOUBLE)"
        return f"CAST('{_pointed(scaled, scale)}' AS DECIMAL(38,{scale}))"

    def level_rows(self, labels: Sequence[str], codes: Sequence[int]) -> str:
        """A query with columns `label` and `code`; long lists travel as two literals, since a
        million of them would take gigabytes to parse. Labels have no control characters.
        """
        if len(labels) > _LISTED:
            texts = f"string_split({self.text(_BETWEEN.join(labels))}, chr({ord(_BETWEEN)}))"
            numbers = f"string_split('{' '.join(map(str, codes))}', ' ')"
            return f"SELECT unnest({texts}) AS label, CAST(unnest({numbers}) AS INTEGER) AS code"
        listed = ", ".join(self.text(label) for label in labels)
        numbers = ", ".join(map(str, codes))
        return f"SELECT unnest([{listed}]) AS label, unnest([{numbers}]) AS code"

    def recoding_rows(self, labels: Sequence[str], targets: Sequence[str]) -> str:
        """A query with columns `label` and `target`, both texts."""
        columns = (", ".join(map(self.text, texts)) for texts in (labels, targets))
        return "SELECT " + ", ".join(
            f"unnest([{listed}]) AS {name}"
            for listed, name in zip(columns, ("label", "target"), strict=True)
        )


class PostgresDialect(Dialect):
    """PostgreSQL with standard_conforming_strings on, as `postgres_source` sets it."""

    types = {"float": "REAL", "double": "DOUBLE PRECISION"}
    whole_type = "NUMERIC"
    with_nan = frozenset({"float", "double", "decimal", "text"})

    def text_form(self, expression: str, stored: ColumnType) -> str:  # noqa: ARG002
        """Text compared byte by byte, whatever the column's type and collation.

        The cast also takes the padding off a char(n).
        """
        return f'CAST({expression} AS VARCHAR) COLLATE "C"'

    def is_nan(self, expression: str) -> str:
        """PostgreSQL's NaN equals itself, in floating and decimal columns alike."""
        return f"{expression} = 'NaN'"

    def read_number(self, expression: str) -> str:
        """PostgreSQL stops at the first text that is not a number: a pattern looks first."""
        text = f"CAST({expression} AS VARCHAR)"
        return (
            f"CASE WHEN {text} ~* '{_A_NUMBER}' THEN CAST({text} AS DOUBLE PRECISION) ELSE NULL END"
        )

    def quotient(self, number: str, divisor: str) -> str:
        """As elsewhere, by a function of numerics."""
        return f"div({number}, {divisor})"

    def read_date(self, expression: str, layout: str | None) -> str:  # noqa: ARG002
        """PostgreSQL stops at the first text that is no date: dates are stored as dates there."""
        return ""

    def recoding_rows(self, labels: Sequence[str], targets: Sequence[str]) -> str:
        """Two arrays unnested side by side."""
        arrays = (
            f"ARRAY[{', '.join(map(self.text, texts))}]::text[]" for texts in (labels, targets)
        )
        return f"SELECT label, target FROM unnest({', '.join(arrays)}) AS v(label, target)"

    def decimal(self, scaled: int, scale: int) -> str:
        """A numeric without limits; trailing zeros are left out."""
        while scale > 0 and scaled % 10 == 0:
            scaled, scale = scaled // 10, scale - 1
        return f"CAST('{_pointed(scaled, scale)}' AS NUMERIC)"

    def level_rows(self, labels: Sequence[str], codes: Sequence[int]) -> str:
        """Two arrays unnested side by side."""
        listed = ", ".join(self.text(label) for label in labels)
        numbers = ", ".join(map(str, codes))
        arrays = f"ARRAY[{listed}]::text[], ARRAY[{numbers}]::integer[]"
        return f"SELECT label, code FROM unnest({arrays}) AS v(label, code)"


class SparkDialect(Dialect):
    """Spark SQL. Text travels as hexadecimal digits: what a backslash means is a setting there."""

    text_type = "STRING"
    whole_type = "DECIMAL(38,0)"

    def quotient(self, number: str, divisor: str) -> str:
        """As elsewhere."""
        return f"({number}) div ({divisor})"

    def identifier(self, name: str) -> str:
        """Quote a column or table name."""
        return "`" + name.replace("`", "``") + "`"

    def text(self, value: str) -> str:
        """Quote a text value."""
        return f"decode(X'{value.encode().hex()}', 'UTF-8')"

    def level_rows(self, labels: Sequence[str], codes: Sequence[int]) -> str:
        """Rows (label, code)."""
        return self._rows(labels, codes, "code: INT")

    def recoding_rows(self, labels: Sequence[str], targets: Sequence[str]) -> str:
        """Rows (label, target)."""
        return self._rows(labels, targets, "target: STRING")

    def _rows(self, labels: Sequence[str], others: Sequence[object], column: str) -> str:
        """One literal, parsed once: 1e5 literals would overwhelm the planner."""
        name = column.partition(":")[0]
        pairs = [{"label": a, name: b} for a, b in zip(labels, others, strict=True)]
        rows = self.text(json.dumps(pairs, ensure_ascii=False))
        return f"SELECT inline(from_json({rows}, 'ARRAY<STRUCT<label: STRING, {column}>>'))"

    def read_number(self, expression: str) -> str:
        """As elsewhere; Java also reads "12d" and "12f"."""
        suffixed = f"{expression} RLIKE '[0-9.][dDfF][ ]*$'"
        return f"CASE WHEN {suffixed} THEN NULL ELSE TRY_CAST({expression} AS DOUBLE) END"

    def read_date(self, expression: str, layout: str | None) -> str:
        """Text as 2020-04-01 only: Spark's patterns are not Python's."""
        return f"TRY_CAST({expression} AS DATE)" if layout is None else ""


DUCKDB = Dialect()
POSTGRES = PostgresDialect()
SPARK = SparkDialect()


class Relation(Protocol):
    """Records that SQL can name: a source, or a query over one."""

    @property
    def name(self) -> str:
        """What SQL calls them: a quoted name, or a query in brackets."""

    @property
    def types(self) -> Mapping[str, ColumnType]:
        """How each column is stored."""

    @property
    def dialect(self) -> Dialect:
        """What differs between databases."""


def tabulation(records: Relation, axes: Sequence[Axis], schema: Schema) -> str:
    """Count records per combination of codes: columns c0, c1, ..., n; with no axes the total."""
    if not axes:
        return f"SELECT COUNT(*) AS n FROM {records.name} AS src"
    keys = ", ".join(f"c{at}" for at in range(len(axes)))
    rows = coded(records, axes, schema)
    return f"SELECT {keys}, COUNT(*) AS n FROM ({rows}) AS coded GROUP BY {keys}"


def summation(
    records: Relation,
    axes: Sequence[Axis],
    schema: Schema,
    magnitude: Magnitude,
    unit: str | None = None,
) -> str:
    """Sum a number over records per combination of codes: c0, c1, ..., s, why.

    Sums are in steps of the number. `why` is below 0 (a `Refusal`) where some row has none. `unit`:
    the column that tells the rows of a unit, for numbers with a cap.
    """
    column = value = f"src.{records.dialect.identifier(magnitude.column)}"
    read = []
    if records.types[magnitude.column].kind == "text":
        number = records.dialect.identifier(f"{_NUMBER}summed")
        read, value = [f"{records.dialect.read_number(column)} AS {number}"], f"src.{number}"
    number, refusal = _steps_of(magnitude, records, column, value)
    beside = [f"{number} AS v", f"{refusal} AS why"]
    if magnitude.cap is not None:
        beside.append(f"src.{records.dialect.identifier(str(unit))} AS u")
    rows = coded(records, axes, schema, beside, read)
    if magnitude.cap is not None:
        rows = _capped(rows, len(axes), int(magnitude.cap / magnitude.step), records.dialect)
    keys = ", ".join(f"c{at}" for at in range(len(axes)))
    sums = "CAST(COALESCE(SUM(v), 0) AS DECIMAL(38,0)) AS s, MIN(why) AS why, COUNT(*) AS n"
    grouped = f"GROUP BY {keys}" if axes else ""
    return f"SELECT {', '.join(filter(None, (keys, sums)))} FROM ({rows}) AS coded {grouped}"


def _capped(rows: str, keys: int, cap: int, dialect: Dialect) -> str:
    """The same; of a unit u whose |v| add up to t > cap each |v| becomes floor(|v| cap / t)."""
    codes = "".join(f"c{at}, " for at in range(keys))
    totals = f"SELECT {codes}v, why, SUM(ABS(v)) OVER (PARTITION BY u) AS t FROM ({rows}) AS rows_"
    size = f"CAST(ABS(v) AS {dialect.whole_type}) * {cap}"
    scaled = f"SIGN(v) * CAST({dialect.quotient(size, 't')} AS BIGINT)"
    cut = f"CASE WHEN t > {cap} THEN CAST({scaled} AS BIGINT) ELSE v END AS v"
    return f"SELECT {codes}{cut}, why FROM ({totals}) AS totals"


def _steps_of(magnitude: Magnitude, records: Relation, column: str, value: str) -> tuple[str, str]:
    """The steps of one row's number, cut to the bounds, rounded (halves upwards), less its shift;
    and why it has none, 0 where it has.

    Whole and decimal columns are rounded in exact arithmetic. With step p / q and a value x above
    the bound L p / q, its steps are L + floor((2 (x q - L p) + p) / 2 p). Floating columns and text
    are rounded in double precision, and the bounds kept whatever it does.
    """
    dialect, stored = records.dialect, records.types[magnitude.column]
    low, high = magnitude.lowest, magnitude.highest
    p, q = magnitude.step.numerator, magnitude.step.denominator
    refused = []
    if stored.kind == "text":
        refused.append(f"WHEN {value} IS NULL THEN {int(Refusal.NOT_A_NUMBER)}")
    absent = f"{column} IS NULL"
    if stored.kind in dialect.with_nan:
        absent += f" OR {dialect.is_nan(value)}"
    if stored.kind in ("float", "double", "text"):
        double = dialect.types["double"]
        infinite = f"CAST('inf' AS {double})"
        refused.append(
            f"WHEN {value} = {infinite} OR {value} = -{infinite} THEN {int(Refusal.INFINITE)}"
        )
        rounded = f"floor(CAST({value} AS {double}) * {float(q)!r} / {float(p)!r} + 0.5)"
        inside = f"CAST(GREATEST({low}, LEAST({high}, {rounded})) AS BIGINT)"
    else:
        scale = 10**stored.scale
        whole = f"CAST({value} AS {dialect.whole_type})"
        if stored.scale:
            whole = f"CAST({value} * {scale} AS {dialect.whole_type})"
        above = f"2 * ({whole} * {q} - ({low * p * scale})) + {p * scale}"
        inside = f"({low}) + CAST({dialect.quotient(above, str(2 * p * scale))} AS BIGINT)"
    edges = [_literal(edge, stored, dialect) for edge in (magnitude.low, magnitude.high)]
    cut = _balanced(value, edges, [f"({low})", inside, f"({high})"])
    missing = "NULL" if magnitude.missing is None else str(int(magnitude.missing / magnitude.step))
    why = int(Refusal.MISSING) if magnitude.missing is None else 0
    steps = f"CASE WHEN {absent} THEN {missing} ELSE {cut} END - ({magnitude.offset})"
    return steps, f"CASE WHEN {absent} THEN {why} {' '.join(refused)} ELSE 0 END"


def coded(
    records: Relation,
    axes: Sequence[Axis],
    schema: Schema,
    beside: Sequence[str] = (),
    read: Sequence[str] = (),
) -> str:
    """Records with one code per axis, c0, c1, ..., and the expressions `beside` it over `src`.

    Text is read as a number once, in a query of its own below: a code compares it several times.
    `read`: numbers that `beside` needs from there.
    """
    dialect, source = records.dialect, records.name
    select, joins, numbers = list(beside), [], list(read)
    for at, axis in enumerate(axes):
        attribute, stored = schema.attribute(axis.base), records.types[axis.base]
        column = value = f"src.{dialect.identifier(axis.base)}"
        if attribute.kind != "categorical" and stored.kind == "text":
            number = dialect.identifier(f"{_NUMBER}{at}")
            numbers.append(f"{dialect.read_number(column)} AS {number}")
            value = f"src.{number}"
        coding = _Coding(attribute, axis, column, value, stored, dialect, f"l{at}")
        select.append(f"CAST({coding.code} AS INTEGER) AS c{at}")
        joins.append(coding.join)
    if numbers:
        source = f"(SELECT src.*, {', '.join(numbers)} FROM {source} AS src)"
    return f"SELECT {', '.join(select)} FROM {source} AS src {' '.join(joins)}"


_MISSING = "COALESCE(SUM(CASE WHEN u IS NULL THEN k ELSE 0 END), 0) AS missing"
_LARGEST = "COALESCE(MAX(k), 0) AS largest"


def rows_per_unit(records: Relation, column: str) -> str:
    """One row: how many rows lack the unit, and the largest number of rows of one unit."""
    unit = records.dialect.identifier(column)
    grouped = f"SELECT {unit} AS u, COUNT(*) AS k FROM {records.name} AS src GROUP BY {unit}"
    return f"SELECT {_MISSING}, {_LARGEST} FROM ({grouped}) AS units"


def units_per_class(records: Relation, column: str, axes: Sequence[Axis], schema: Schema) -> str:
    """Count units per combination of codes: c0, c1, ..., d0, d1, ..., n, where d0 > 0 says that c0
    differs between rows of some unit; and beside them what `rows_per_unit` tells, so that one pass
    does for both.
    """
    unit, keys = records.dialect.identifier(column), len(axes)
    rows = coded(records, axes, schema, (f"src.{unit}",))
    own = "".join(f", MIN(c{at}) AS c{at}, MAX(c{at}) AS h{at}" for at in range(keys))
    grouped = f"SELECT {unit} AS u, COUNT(*) AS k{own} FROM ({rows}) AS coded GROUP BY {unit}"
    totals = f"COUNT(*) AS n, {_MISSING}, {_LARGEST}"
    if not keys:
        return f"SELECT {totals} FROM ({grouped}) AS units"
    codes = ", ".join(f"c{at}" for at in range(keys))
    apart = ", ".join(f"MAX(h{at} - c{at}) AS d{at}" for at in range(keys))
    return f"SELECT {codes}, {apart}, {totals} FROM ({grouped}) AS units GROUP BY {codes}"


def rule_code(rule: str, attribute: Attribute, axis: Axis, refusal: Refusal) -> int:
    """The code of a missing or foreign value: the declared level's, or the refusal."""
    return int(refusal) if rule == REFUSE else int(axis.of_base[attribute.code(rule)])


@dataclass(frozen=True)
class _Coding:
    """The values of one column as codes of an axis.

    `value` is the column, or the number that its text is read as; `labels` what a join calls the
    labels that the text of the column is looked up in.
    """

    attribute: Attribute
    axis: Axis
    column: str
    value: str
    stored: ColumnType
    dialect: Dialect
    labels: str

    @property
    def code(self) -> str:
        """The code of a row."""
        attribute, value = self.attribute, self.value
        missing = rule_code(attribute.missing, attribute, self.axis, Refusal.MISSING)
        other = rule_code(attribute.other, attribute, self.axis, Refusal.OUTSIDE)
        cases = [f"WHEN {self.column} IS NULL THEN {missing}"]
        if attribute.kind == "categorical":
            return f"CASE {cases[0]} ELSE COALESCE({self.labels}.code, {other}) END"
        if self.stored.kind == "text":
            unread = str(int(Refusal.NOT_A_NUMBER))
            label = f"COALESCE({self.labels}.code, {unread})" if self.join else unread
            cases.append(f"WHEN {value} IS NULL THEN {label}")
        if self.stored.kind in self.dialect.with_nan:
            cases.append(f"WHEN {self.dialect.is_nan(value)} THEN {missing}")
        if attribute.whole_values and self.stored.kind != "whole":
            cases.append(f"WHEN {value} <> floor({value}) THEN {other}")
        return f"CASE {' '.join(cases)} ELSE {self._by_edges(other)} END"

    def _by_edges(self, other: int) -> str:
        """The code of a number; integers that are levels themselves are shifted, not compared."""
        attribute, value = self.attribute, self.value
        if attribute.kind == "integers" and self.axis.name == attribute.name:
            assert attribute.low is not None
            assert attribute.high is not None
            edges: list[Number] = [attribute.low, attribute.high + 1]
            codes = [str(other), f"CAST({value} AS BIGINT) - ({attribute.low})", str(other)]
        else:
            edges, step_codes = steps(attribute, self.axis, other)
            codes = [str(code) for code in step_codes]
        literals = [_literal(edge, self.stored, self.dialect) for edge in edges]
        return _balanced(value, literals, codes)

    @cached_property
    def join(self) -> str:
        """Labels of a categorical column, or in a text column of numbers those that are none."""
        attribute = self.attribute
        if attribute.kind == "categorical":
            labels: Sequence[str] = attribute.levels
            codes = self.axis.of_base.tolist()
        elif self.stored.kind == "text":
            beside = own_labels(attribute)
            labels, codes = list(beside), [int(self.axis.of_base[at]) for at in beside.values()]
        else:
            return ""
        if not labels:
            return ""
        rows = self.dialect.level_rows(labels, codes)
        text = self.dialect.text_form(self.column, self.stored)
        return f"LEFT JOIN ({rows}) AS {self.labels} ON {self.labels}.label = {text}"


def own_labels(attribute: Attribute) -> dict[str, int]:
    """Labels of a numeric attribute that its numbers do not show: "90+", "0-4", "unknown".

    A label that is itself a number ("18") is read as that number.
    """
    first = len(attribute.intervals) if attribute.kind == "integers" else 0
    beside = enumerate(attribute.levels[first:], first)
    return {label: code for code, label in beside if not _is_number(label)}


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def steps(attribute: Attribute, axis: Axis, other: int) -> tuple[list[Number], list[int]]:
    """The step function from number to code: edges, and one code more than edges.

    Neighbouring intervals of one coarser level are merged.
    """
    edges: list[Number] = []
    codes: list[int] = [other]
    for code, (lower, _) in enumerate(attribute.intervals):
        target = int(axis.of_base[code])
        if lower is None:
            codes = [target]
        elif codes[-1] != target:
            edges.append(lower)
            codes.append(target)
    last = attribute.intervals[-1][1]
    if last is not None and codes[-1] != other:
        edges.append(last)
        codes.append(other)
    return edges, codes


def _balanced(value: str, edges: Sequence[str], codes: Sequence[str]) -> str:
    """A step function as nested CASE, as deep as the logarithm of the number of edges."""
    if not edges:
        return codes[0]
    middle = len(edges) // 2
    below = _balanced(value, edges[:middle], codes[: middle + 1])
    above = _balanced(value, edges[middle + 1 :], codes[middle + 1 :])
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"


def _literal(edge: Number, stored: ColumnType, dialect: Dialect) -> str:
    """`edge` in the column's type, such that ``value < literal`` is exactly ``value < edge``."""
    if stored.kind == "whole":
        return str(math.ceil(edge))
    if stored.kind == "decimal":
        return dialect.decimal(math.ceil(edge * 10**stored.scale), stored.scale)
    width = dialect.types["float" if stored.kind == "float" else "double"]
    return f"CAST('{float(edge)!r}' AS {width})"


def _pointed(scaled: int, scale: int) -> str:
    """scaled / 10^scale with a decimal point."""
    digits = str(abs(scaled)).zfill(scale + 1)
    point = len(digits) - scale
    return f"{'-' if scaled < 0 else ''}{digits[:point]}.{digits[point:]}"


_STORED = {
    "boolean": "truth values",
    "date": "dates or times",
    "nested": "lists, structures or an unknown type",
    "float": "floating-point numbers",
    "double": "floating-point numbers",
}


def check_number(column: str, stored: ColumnType) -> None:
    """Raise DataError if a column is stored in a form that cannot be summed."""
    if stored.kind in ("boolean", "date", "nested"):
        raise DataError(
            f"column {column!r} is stored as {_STORED[stored.kind]}, and cannot be summed.",
            remedy="Store it as numbers.",
        )


def check_type(attribute: Attribute, stored: ColumnType) -> None:
    """Raise DataError if a column is stored in a form that its levels cannot be found in."""
    if attribute.kind == "categorical":
        if stored.kind in ("float", "double", "nested"):
            raise DataError(
                f"column {attribute.name!r} is stored as {_STORED[stored.kind]}, but the schema "
                "lists text categories for it.",
                remedy="Store it as text or whole numbers (in pandas, astype('Int64')).",
            )
    elif stored.kind in ("boolean", "date", "nested"):
        raise DataError(
            f"column {attribute.name!r} is stored as {_STORED[stored.kind]}, but the schema "
            "compares it with numbers.",
            remedy="Store it as numbers, or list its categories (levels).",
        )
