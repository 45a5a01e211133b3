"""The sections of a plan: what each is, and all but its releases: [data], [about], [publish],
[budget], [derive].

Their keys are those of a curator; docs/reference/plan.md has a row for each. What a derived column
does is in `congenial.data.derive`; a recoding may come from a CSV file with a header and two
columns, the value found and the value wanted.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from congenial.data.about import ReliabilityLimits
from congenial.data.derive import DatePart, Joined, NumberWritten, Recoded, Tidied
from congenial.data.rational import fraction
from congenial.data.source import FileFormat
from congenial.errors import DataError, PlanError
from congenial.figures.statements import (
    Statement,
    at_least,
    at_most,
    count,
    linear,
    margin,
    structural_zeros,
    total,
)
from congenial.ledger.budget import Budget
from congenial.privacy.numbers import LIMITED, absurd

if TYPE_CHECKING:
    from congenial.data.derive import Derivation
    from congenial.data.schema import Schema


def exact(value: Any) -> Any:
    """A positive finite number as an exact fraction."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise ValueError("must be a number such as 0.5 or 1")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("must be finite; infinity and NaN would promise nothing")
    if value <= 0:
        raise ValueError("must be positive")
    try:
        return fraction(value)
    except ValueError:
        raise ValueError("must be between 1e-300 and 1e300") from None


Positive = Annotated[
    Fraction,
    BeforeValidator(exact),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),  # text is refused
]


_PYDANTIC = {name for name in dir(BaseModel) if not name.startswith("_")}  # hidden from completion


class Section(BaseModel):
    """Base of the sections: unknown keys are refused, values are not coerced."""

    model_config = ConfigDict(
        extra="forbid", strict=True, arbitrary_types_allowed=True, frozen=True
    )

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _PYDANTIC]


class NamedSection(Section):
    """Base of the [[release]] sections: what each of them has.

    `alone`: whether its promise is void beside anything else from the same data.
    """

    alone: ClassVar[bool] = False

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    mechanism: str = "auto"
    epsilon: Positive | None = None
    delta: Positive | None = None

    @model_validator(mode="after")
    def _sensible(self) -> NamedSection:
        for name in LIMITED:
            value = getattr(self, name, None)
            why = "" if value is None else absurd(name, value)
            if why:
                raise ValueError(why)
        return self

    def refused_beside(self, publishes: bool, others: int) -> str:
        """Why it cannot stand beside exact figures or other releases of a plan; empty if it can."""
        if not self.alone or not (publishes or others):
            return ""
        return (
            f"release '{self.name}' hides a property of the whole dataset, so nothing else may be "
            "released from the same data; put all statistics into it"
        )


def named_files(plan: Any) -> Iterator[str]:
    """The files that a plan names, as it writes them.

    >>> sorted(named_files({"schema": {"county": {"levels_file": "counties.csv"}}}))
    ['counties.csv']
    """
    if isinstance(plan, Mapping):
        for key, value in plan.items():
            if isinstance(value, str) and _names_a_file(str(key)):
                yield value
            else:
                yield from named_files(value)
    elif isinstance(plan, list | tuple):
        for value in plan:
            yield from named_files(value)


def _names_a_file(key: str) -> bool:
    return key in ("file", "prior") or key.endswith("_file")


def file_digests(plan: Any, folder: Path) -> dict[str, str]:
    """SHA-256 of every file that a plan in `folder` names, by the name it gives it."""
    return {name: _digest(folder / name, name) for name in sorted(set(named_files(plan)))}


def _digest(path: Path, name: str) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as reason:
        raise PlanError(
            f"'{name}', named in the plan, cannot be read: {reason.strerror}.",
            remedy="Check the path; it is relative to the plan's folder.",
        ) from None


class DataSection(Section):
    """[data]: where the confidential records are, and who is one person."""

    source: str
    unit: str | None = None
    max_rows: int | None = Field(default=None, ge=1)
    unit_source: str | None = None
    truncate: Literal["column order"] | None = None
    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    skip_blank_rows: bool = False

    @model_validator(mode="after")
    def _readable(self) -> DataSection:
        try:
            _ = self.file_format
        except DataError as error:
            raise ValueError(str(error).rstrip(".")) from None
        return self

    @property
    def file_format(self) -> FileFormat:
        """How the files are written."""
        return FileFormat(self.separator, self.encoding, self.sheet, self.skip_blank_rows)


class MapEntry(Section):
    """map of [about]: a GeoJSON file of areas, and the property that holds the codes of levels."""

    file: str
    property: str
    axis: str


class AboutSection(Section):
    """[about]: words for readers of what comes out, and a map."""

    title: str = ""
    agency: str = ""
    date: str = ""
    contact: str = ""
    quote: str = ""
    reliability: list[Decimal] | None = Field(default=None, min_length=2, max_length=2)
    map: MapEntry | None = None

    @field_validator("date", mode="before")
    @classmethod
    def _written(cls, value: Any) -> Any:
        return value.isoformat() if isinstance(value, date) else value

    @property
    def limits(self) -> ReliabilityLimits:
        """What is called reliable."""
        return ReliabilityLimits(*map(float, self.reliability or ()))


class PublishEntry(Section):
    """One entry of [publish]: a statistic published exactly, unprotected."""

    total: Literal[True] | None = None
    margin: list[str] | None = None
    count: str | None = None
    linear: dict[str, int] | None = None
    structural_zeros: str | None = None
    by: list[str] = []
    at_least: int | None = None
    at_most: int | None = None
    because: str = ""
    units: bool = False

    @model_validator(mode="after")
    def _one_kind(self) -> PublishEntry:
        kinds = ("total", "margin", "count", "linear", "structural_zeros")
        named_kinds = [kind for kind in kinds if getattr(self, kind) is not None]
        if len(named_kinds) != 1:
            raise ValueError(f"must have exactly one of {', '.join(kinds)}")
        if self.at_least is not None and self.at_most is not None:
            raise ValueError("has at_least and at_most: write two entries, one with each")
        if self.by and named_kinds[0] in ("margin", "structural_zeros"):
            raise ValueError(f"takes no `by` with {named_kinds[0]}: leave `by` out")
        return self

    def statement(self, label: str) -> Statement:
        """The figure this entry stands for."""
        if self.total is not None:
            figure = total(self.by)
        elif self.margin is not None:
            figure = margin(*self.margin)
        elif self.count is not None:
            figure = count(self.count, self.by)
        elif self.linear is not None:
            figure = linear(self.linear, self.by)
        else:
            figure = structural_zeros(self.structural_zeros or "")
        if self.at_least is not None:
            figure = at_least(figure, self.at_least)
        elif self.at_most is not None:
            figure = at_most(figure, self.at_most)
        figure = figure.named(label, self.because)
        return replace(figure, units=True) if self.units else figure


class BudgetSection(Section):
    """[budget]: the ledger of this population and what may be spent on it in all."""

    ledger: str = "ledger.sqlite"
    epsilon: Positive | None = None
    delta: Positive | None = None
    rho: Positive | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> BudgetSection:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("must have epsilon (with or without delta) or rho")
        if self.delta is not None and self.epsilon is None:
            raise ValueError("delta needs epsilon")
        return self

    def budget(self) -> Budget:
        """The limit the ledger enforces."""
        return Budget(self.epsilon, self.delta, self.rho)


# Each kind of derivation, and the keys that go with it.
KINDS: dict[str, tuple[str, ...]] = {
    "year": ("format", "invalid"),
    "month": ("format", "invalid"),
    "age": ("at", "format", "invalid"),
    "join": ("between",),
    "recode": ("to", "to_file"),
    "tidy": ("trim", "case", "width"),
    "number": ("decimal", "thousands"),
}


def _day(value: Any) -> Any:
    """A day, which TOML writes with or without quotes."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be a date such as 2020-04-01") from None


class DeriveEntry(Section):
    """One derived column: one of `year`, `month`, `age`, `join`, `recode`, `tidy`, `number`."""

    year: str | None = None
    month: str | None = None
    age: str | None = None
    join: list[str] | None = None
    recode: str | None = None
    tidy: str | None = None
    number: str | None = None
    at: Annotated[date, BeforeValidator(_day)] | None = None
    format: str | None = None
    invalid: Literal["refuse", "missing"] = "refuse"
    between: str = ""
    to: dict[str, str] | None = None
    to_file: str | None = None
    trim: bool = False
    case: Literal["lower", "upper", "levels"] | None = None
    width: int | None = Field(default=None, ge=1, le=64)
    decimal: str = Field(default=".", min_length=1, max_length=1)
    thousands: str = Field(default="", max_length=1)

    @model_validator(mode="after")
    def _one_kind(self) -> DeriveEntry:
        named_kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(named_kinds) != 1:
            raise ValueError(f"must have exactly one of {', '.join(KINDS)}")
        kind, goes_with = named_kinds[0], KINDS[named_kinds[0]]
        strange = [key for key in self.model_fields_set if key != kind and key not in goes_with]
        if strange:
            raise ValueError(f"{strange[0]} cannot be used with {kind}, which takes {goes_with}")
        why = self._incomplete(kind)
        if why:
            raise ValueError(why)
        return self

    def _incomplete(self, kind: str) -> str:
        """What a kind still needs; empty where it has it."""
        if kind == "age" and self.at is None:
            return "age needs the day on which it is measured: write at = 2020-04-01"
        if kind == "join" and len(self.join or ()) < 2:
            return "join needs two or more columns"
        if kind == "recode" and (self.to is None) == (self.to_file is None):
            return (
                "recode needs `to` (a table) or `to_file` (a CSV file with two columns), not both"
            )
        if kind == "tidy" and not (self.trim or self.case or self.width):
            return "tidy needs trim, case or width"
        if self.case == "levels" and self.width:
            return "case = 'levels' already writes values as the categories: leave out width"
        if kind == "number" and self.decimal == self.thousands:
            return "decimal and thousands must be different characters"
        return ""

    def derivation(self, name: str, folder: Path, schema: Schema) -> Derivation:
        """The derived column called `name`; a file of recodings is relative to `folder`."""
        for part in ("year", "month", "age"):
            column = getattr(self, part)
            if column is not None:
                return DatePart(name, column, part, self.at, self.format, self.invalid == "missing")
        makers: dict[str, Callable[[str], Derivation]] = {
            "recode": lambda column: Recoded(name, column, self._recoding(name, folder)),
            "tidy": lambda column: Tidied(
                name, column, self.trim, self.case, self.width, self._spelled(name, schema)
            ),
            "number": lambda column: NumberWritten(name, column, self.decimal, self.thousands),
        }
        for kind, make in makers.items():
            if getattr(self, kind) is not None:
                return make(getattr(self, kind))
        return Joined(name, tuple(self.join or ()), self.between)

    def _spelled(self, name: str, schema: Schema) -> tuple[str, ...]:
        """The levels that case = "levels" writes values as."""
        if self.case != "levels":
            return ()
        if name not in schema.names or schema.attribute(name).kind != "categorical":
            raise PlanError(
                f"derive.{name}: case = 'levels' needs categories (levels) of '{name}' in "
                "[schema].",
                remedy=(
                    "Give the derived column the name of an attribute that has levels in [schema]."
                ),
            )
        return schema.attribute(name).levels

    def _recoding(self, name: str, folder: Path) -> dict[str, str]:
        return self.to if self.to is not None else _from_file(name, self.to_file or "", folder)


def _from_file(name: str, file: str, folder: Path) -> dict[str, str]:
    where = f"derive.{name}: the recoding '{file}'"
    try:
        with (folder / file).open(newline="", encoding="utf-8-sig") as text:
            rows = [row for row in csv.reader(text, strict=True) if row][1:]
    except OSError as reason:
        raise PlanError(
            f"{where} cannot be read: {reason.strerror}.",
            remedy="Check the name; it is relative to the plan's folder.",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise PlanError(f"{where} is not a CSV file in UTF-8.") from None
    if not rows or any(len(row) != 2 for row in rows):
        raise PlanError(
            f"{where} has rows without exactly two columns.",
            remedy=(
                "Write a header row, then in each row the value in the data and the value to use "
                "instead."
            ),
        )
    if len({row[0] for row in rows}) != len(rows):
        raise PlanError(f"{where} lists a value twice.", remedy="Keep one row for each value.")
    return {row[0]: row[1] for row in rows}
