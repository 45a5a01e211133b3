"""What a plan says of the data and publishes exactly: the plan around the section of a release."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from congenial.data.about import About, MapShapes, read_map
from congenial.data.predicate import parse
from congenial.data.schema import Schema, Unit
from congenial.data.source import PlannedSource, UnitFile, resolve
from congenial.errors import PlanError, SchemaError, located
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.kinds.plan_sections import (
    AboutSection,
    DataSection,
    DeriveEntry,
    PublishEntry,
    Section,
)
from congenial.ledger.counted_unit import Unit as UnitKind
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.pairs.several_rows import SeveralRows

if TYPE_CHECKING:
    from congenial.data.derive import Derivation

Place = tuple[int | str, ...]

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TEXT = re.compile(r""""[^"]*"|'[^']*'|#.*""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")


@dataclass(frozen=True)
class PlanText:
    """The text of a plan and the name of its file, both empty for a plan that has none.

    >>> PlanText("plan.toml", "[data]\\nsource = 'a'").at("data", "source")
    'plan.toml, line 2: '
    """

    name: str = ""
    text: str = ""

    def at(self, *where: int | str) -> str:
        """File and line of a place, or of the closest table around it, as an error begins."""
        if not self.name:
            return ""
        around = (where[:length] for length in range(len(where), 0, -1))
        line = next((self._lines[place] for place in around if place in self._lines), None)
        return f"{self.name}, line {line}: " if line else f"{self.name}: "

    @cached_property
    def _lines(self) -> dict[Place, int]:
        """The line on which each table and key begins."""
        begins: dict[Place, int] = {}
        entries: dict[Place, int] = {}  # how many [[...]] of a name there were
        table: Place = ()
        quoted = ""  # what ends the text over several lines that this line is in
        depth = 0  # of the list over several lines that this line is in
        for number, line in enumerate(self.text.splitlines(), 1):
            inside = bool(quoted or depth)
            if not inside and (header := _HEADER.match(line)):
                parts = _parts(header[2])
                if header[1] == "[[":
                    entries[parts] = entries.get(parts, 0) + 1
                table = ()
                for length, part in enumerate(parts, 1):
                    table = (*table, part)
                    if parts[:length] in entries:
                        table = (*table, entries[parts[:length]] - 1)
                begins.setdefault(table, number)
            elif not inside and (key := _KEY.match(line)):
                place = (*table, *_parts(key[1]))
                for length in range(len(table) + 1, len(place) + 1):
                    begins.setdefault(place[:length], number)
            bare = _TEXT.sub("", line)  # without texts and the comment
            depth = max(0, depth + bare.count("[") - bare.count("]"))
            for mark in ('"""', "'''"):
                if quoted in ("", mark) and line.count(mark) % 2:
                    quoted = "" if quoted else mark
        return begins


NO_FILE = PlanText()


def _parts(key: str) -> Place:
    return tuple(part.strip("\"'") for part in _PART.findall(key))


class PlannedData(Section):
    """The data, what a record is, who is one person, and what is published exactly."""

    data: DataSection
    derive: dict[str, DeriveEntry] = {}
    schema_: dict[str, Any] = Field(alias="schema")
    publish: dict[str, PublishEntry] = {}
    about: AboutSection = AboutSection()
    folder: Path = Field(default=Path(), exclude=True)
    _file: PlanText = NO_FILE

    @cached_property
    def schema(self) -> Schema:  # type: ignore[override]
        """What a record is."""
        try:
            schema = Schema.from_dict(self.schema_, self.folder)
        except SchemaError as error:
            column = re.match(r"attribute '([^']*)'", error.what)
            at = self._file.at("schema", *([column[1]] if column else []))
            raise SchemaError(f"{at}{error.what}", remedy=error.remedy) from error
        for attribute in schema.attributes:
            if "..." in attribute.levels:
                raise PlanError(
                    f"schema.{attribute.name}: '...' is a placeholder of the draft.",
                    remedy="Fill in the categories, or delete the line if no release needs this "
                    "column.",
                )
            if attribute.of != "row" and self.data.max_rows is None:
                raise PlanError(
                    f'schema.{attribute.name}: of = "{attribute.of}" is only for units with '
                    "several rows.",
                    remedy="Give data.unit and data.max_rows, or leave `of` out.",
                )
        words = self.about.model_dump(exclude={"map"}, exclude_none=True)
        return replace(schema, about=replace(About.from_dict(words), map=self._map(schema)))

    def _map(self, schema: Schema) -> MapShapes | None:
        """The outlines of areas, where the plan names a map."""
        named = self.about.map
        if named is None:
            return None
        levels = schema.axis(named.axis).levels
        return read_map(self.folder / named.file, named.file, named.property, named.axis, levels)

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The figures, in the order of the file."""
        return tuple(
            entry.statement(f"{label}{self._of_kept_rows(entry)}")
            for label, entry in self.publish.items()
        )

    def _of_kept_rows(self, entry: PublishEntry) -> str:
        """What is added to the name of a figure that counts rows, where some are left out."""
        if self.data.truncate is None or entry.units or entry.structural_zeros is not None:
            return ""
        return f" (at most {self.data.max_rows} rows of each {self.data.unit})"

    @cached_property
    def stated(self) -> Figures:
        """The figures under [publish], without values; contradictory ones are refused."""
        for label, statement in zip(self.publish, self.statements, strict=True):
            with located(f"{self._file.at('publish', label)}publish.{label}"):
                self.schema.axes(statement.by)
                for condition, _ in statement.terms:
                    if condition:
                        parse(condition, self.schema)
        planned = Figures.of(self.schema, self.statements)
        planned.refuse_clash()
        if self.data.max_rows is not None and planned.of_units is not None:
            from congenial.figures.unit_clash import refuse_unmet

            refuse_unmet(planned, self.data.max_rows)
        return planned

    @property
    def unit(self) -> Unit:
        """Who is one person in the data."""
        return Unit(self.data.unit, self.data.max_rows, self.data.truncate is not None)

    @property
    def unit_kind(self) -> UnitKind:
        """How the ledger counts: records replaced, rows that come and go, or rows of a unit that
        change while the published figures stay.
        """
        if self.data.max_rows is None:
            return "replace-one"
        return "several rows" if self.publish else "add-remove"

    def adjacency(self, figures: Figures) -> Adjacency:
        """Which datasets must look alike, given what is published."""
        if self.data.max_rows is not None:
            if not self.publish:
                return AddRemove(self.schema, self.data.max_rows)
            return SeveralRows.given(figures, self.data.max_rows)
        return SemiAdjacent(figures)

    @property
    def source(self) -> PlannedSource:
        """Where the confidential records are, how they are read, and what is derived from them."""
        rows = self.place("data.source", self.data.source)
        if self.data.unit_source is None or self.data.unit is None:
            return rows
        counted = any(entry.units for entry in self.publish.values())
        units = UnitFile(self.folder / self.data.unit_source, self.data.unit, counted)
        return replace(rows, units=units)

    def place(self, key: str, address: str) -> PlannedSource:
        """The records that `key` of this plan names, read as its own: a path, or an address
        without a password.
        """
        refuse_password(key, address)
        where = resolve(address, self.folder)
        return PlannedSource(where, self.data.file_format, self.derivations)

    @cached_property
    def derivations(self) -> tuple[Derivation, ...]:
        """The columns that are made from columns of the data, in the order of the file."""
        return tuple(
            entry.derivation(name, self.folder, self.schema) for name, entry in self.derive.items()
        )


def refuse_password(key: str, address: str) -> None:
    """A plan is a document that travels; what opens a database does not belong in it."""
    if "://" not in address:
        return
    if "password=" in address or ":" in address.partition("://")[2].rpartition("@")[0]:
        raise PlanError(
            f"{key}: a plan must not contain a password.",
            remedy="Put it in ~/.pgpass or PGPASSWORD.",
        )
