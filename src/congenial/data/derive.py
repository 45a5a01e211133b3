"""Columns made from the columns of the data, row by row: parts of dates, joined keys, recodings.

    age   = DatePart("age", "birth", "age", at=date(2020, 4, 1))
    block = Joined("block", ("tract", "number"))
    sex   = Recoded("sex", "sex", {"1": "f", "2": "m"})

Each is one expression in the SQL of the engine that holds the data, so nothing is copied. What a
row becomes depends on that row and on the plan alone: how many rows a person has, and hence every
promise, stays as it was. A derived column may have the name of the column it is made from, and may
use columns derived before it.

Text that is no date or no number stays text that is none, so that tabulating refuses it: it is
taken for a missing value only where the plan says so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from congenial.data.sql import ColumnType, Dialect
from congenial.errors import DataError

NO_DATE = "no date"
Part = Literal["year", "month", "age"]
Case = Literal["lower", "upper", "levels"]


@dataclass(frozen=True)
class DerivedColumn:
    """A derived column in SQL: its expression over `src`, a join it needs, how it is stored."""

    expression: str
    stored: ColumnType
    join: str = ""


@dataclass(frozen=True)
class Derivation:
    """A column called `name` that is made from others."""

    name: str

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """The columns it is made from."""

    @abstractmethod
    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:
        """The column in SQL; DataError where a column it needs is stored otherwise."""


@dataclass(frozen=True)
class OfOneColumn(Derivation):
    """A column that is made from one other."""

    column: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The column it is made from."""
        return (self.column,)


@dataclass(frozen=True)
class DatePart(OfOneColumn):
    """The year or the month of a date, or the age in full years of who was born then, `at` a day.

    Who was born on 29 February is a year older on 1 March of other years. `layout` says how text
    writes a date, as in "%d.%m.%Y"; without it, text must read 2020-04-01. Text that is no
    such date is refused, or is a missing value where the plan says so.
    """

    part: Part
    at: date | None = None
    layout: str | None = None
    invalid_is_missing: bool = False

    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:
        """A whole number; from text, the text of one."""
        column, stored = f"src.{dialect.identifier(self.column)}", types[self.column]
        if stored.kind == "date" and self.layout is None:
            return DerivedColumn(self._number(f"CAST({column} AS DATE)"), ColumnType("whole"))
        read = dialect.read_date(column, self.layout) if stored.kind == "text" else ""
        if not read:
            raise DataError(
                f"column {self.column!r}, from which {self.name!r} is derived, has no readable "
                "dates there.",
                remedy="Store it as a date; text in this form is read from CSV, Excel and Parquet "
                "files.",
            )
        text = f"CAST({self._number(read)} AS {dialect.text_type})"
        if self.invalid_is_missing:
            return DerivedColumn(text, ColumnType("text"))
        number = f"COALESCE({text}, '{NO_DATE}')"  # dates without end have no year either
        return DerivedColumn(
            f"CASE WHEN {column} IS NULL THEN NULL ELSE {number} END", ColumnType("text")
        )

    def _number(self, day: str) -> str:
        if self.part != "age":
            return f"CAST(EXTRACT({self.part.upper()} FROM {day}) AS INTEGER)"
        assert self.at is not None
        birthday = f"EXTRACT(MONTH FROM {day}) * 100 + EXTRACT(DAY FROM {day})"
        ahead = f"CASE WHEN {birthday} > {self.at.month * 100 + self.at.day} THEN 1 ELSE 0 END"
        return f"CAST({self.at.year} - EXTRACT(YEAR FROM {day}) - {ahead} AS INTEGER)"


@dataclass(frozen=True)
class Joined(Derivation):
    """The texts of several columns one after the other; missing where one of them is."""

    columns: tuple[str, ...]
    between: str = ""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns joined."""
        return self.columns

    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:
        """A text."""
        texts = [_text(name, types, dialect) for name in self.columns]
        between = f" || {dialect.text(self.between)} || " if self.between else " || "
        return DerivedColumn(between.join(texts), ColumnType("text"))


@dataclass(frozen=True)
class Recoded(OfOneColumn):
    """The text that a recoding gives for another; texts it does not name stay as they are.

    A recoding to the empty text makes a value missing.
    """

    to: Mapping[str, str] = field(hash=False)

    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:
        """A text, found by a join with the recoding."""
        text = _text(self.column, types, dialect)
        rows = dialect.recoding_rows(list(self.to), list(self.to.values()))
        return DerivedColumn(
            f"CASE WHEN recoding.label IS NULL THEN {text} ELSE NULLIF(recoding.target, '') END",
            ColumnType("text"),
            f"LEFT JOIN ({rows}) AS recoding ON recoding.label = {text}",
        )


@dataclass(frozen=True)
class Tidied(OfOneColumn):
    """A text without blanks around it, in one case, or with zeros in front up to a width.

    case = "levels": a text that is one of `levels` but for its case is written as that level is.
    """

    trim: bool = False
    case: Case | None = None
    width: int | None = None
    levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        spelled = {level.lower() for level in self.levels}
        if self.case == "levels" and len(spelled) < len(self.levels):
            raise DataError(
                f"derive.{self.name}: two categories of {self.name!r} differ only in upper and "
                "lower case.",
                remedy="Use recode, which assigns each value to a category.",
            )

    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:
        """A text; missing where only blanks were left."""
        text = _text(self.column, types, dialect)
        if self.trim:
            text = f"NULLIF(TRIM({text}), '')"
        if self.case == "levels":
            rows = dialect.recoding_rows(self.levels, self.levels)
            join = f"LEFT JOIN ({rows}) AS spelled ON LOWER(spelled.label) = LOWER({text})"
            written = f"COALESCE(spelled.target, {text})"
            return DerivedColumn(written, ColumnType("text"), join)
        if self.case is not None:
            text = f"{self.case.upper()}({text})"
        if self.width is not None:
            text = (
                f"CASE WHEN LENGTH({text}) < {self.width} THEN LPAD({text}, {self.width}, '0') "
                f"ELSE {text} END"
            )
        return DerivedColumn(text, ColumnType("text"))


@dataclass(frozen=True)
class NumberWritten(OfOneColumn):
    """A number written with another decimal mark, or with marks between thousands."""

    decimal: str = "."
    thousands: str = ""

    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:
        """The number as a plan's edges are written."""
        if types[self.column].kind != "text":
            raise DataError(
                f"column {self.column!r}, from which {self.name!r} is derived, is not text.",
                remedy="Leave out the derivation: the column is stored as numbers already.",
            )
        text = _text(self.column, types, dialect)
        for mark, instead in ((self.thousands, ""), (self.decimal, ".")):
            if mark and mark != instead:
                text = f"REPLACE({text}, {dialect.text(mark)}, '{instead}')"
        return DerivedColumn(text, ColumnType("text"))


def _text(name: str, types: Mapping[str, ColumnType], dialect: Dialect) -> str:
    stored = types[name]
    if stored.kind in ("float", "double", "nested"):
        raise DataError(
            f"column {name!r} is stored in a type that has no unique text, and a column is "
            "derived from its text.",
            remedy="Store it as text or whole numbers (in pandas, astype('Int64')).",
        )
    return dialect.text_form(f"src.{dialect.identifier(name)}", stored)


def needed(wanted: Sequence[str], derivations: Sequence[Derivation]) -> list[str]:
    """Columns of the data that the wanted columns are made from, each once.

    >>> needed(["block", "sex"], [Joined("block", ("tract", "number"))])
    ['sex', 'tract', 'number']
    """
    columns = list(dict.fromkeys(wanted))
    for derivation in reversed(derivations):
        if derivation.name in columns:
            columns.remove(derivation.name)
            columns += [name for name in derivation.inputs if name not in columns]
    return columns


@dataclass(frozen=True)
class RowsOfUnit(Derivation):
    """The number of rows that share the value of `unit`: no plan derives it, schemas ask for it."""

    unit: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """The column that names the unit."""
        return (self.unit,)

    def made(self, types: Mapping[str, ColumnType], dialect: Dialect) -> DerivedColumn:  # noqa: ARG002
        """A whole number, counted beside every row."""
        rows = f"COUNT(*) OVER (PARTITION BY src.{dialect.identifier(self.unit)})"
        return DerivedColumn(rows, ColumnType("whole"))


def derived(
    name: str,
    types: Mapping[str, ColumnType],
    derivations: Sequence[Derivation],
    dialect: Dialect,
) -> tuple[str, dict[str, ColumnType]]:
    """What SQL calls the records of `name` with the derived columns, and how each is stored."""
    stored = dict(types)
    for derivation in derivations:
        column = derivation.made(stored, dialect)
        others = [
            f"src.{dialect.identifier(other)}" for other in stored if other != derivation.name
        ]
        own = f"{column.expression} AS {dialect.identifier(derivation.name)}"
        name = f"(SELECT {', '.join([*others, own])} FROM {name} AS src {column.join})"
        stored.pop(derivation.name, None)
        stored[derivation.name] = column.stored
    return name, stored


def used(wanted: Sequence[str], derivations: Sequence[Derivation]) -> tuple[Derivation, ...]:
    """The derivations that the wanted columns rest on, in order."""
    steps: list[Derivation] = []
    columns = set(wanted)
    for derivation in reversed(derivations):
        if derivation.name in columns:
            columns = (columns - {derivation.name}) | set(derivation.inputs)
            steps.insert(0, derivation)
    return tuple(steps)
