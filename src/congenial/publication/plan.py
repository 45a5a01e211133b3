"""The plan file: one TOML file says what is protected, what is published exactly, and what is
released.

Numbers are read as exact decimals, so epsilon = 0.1 is one tenth. Every error names the key, the
value, the rule and the remedy.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PlainValidator, SerializeAsAny, ValidationError, model_validator

from congenial.data.about import About
from congenial.data.arguments import PATH, expect
from congenial.data.predicate import parse
from congenial.data.schema import Schema, Unit
from congenial.data.source import PlannedSource, UnitFile, resolve
from congenial.errors import PlanError, SchemaError, located, some_of
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.kinds import registry
from congenial.kinds.kind import NamedSection, Section
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.publication.plan_sections import (
    AboutSection,
    BudgetSection,
    DataSection,
    DeriveEntry,
    PublishEntry,
)
from congenial.publication.plan_text import NO_FILE, PlanText

if TYPE_CHECKING:
    from congenial.data.about import MapShapes
    from congenial.data.derive import Derivation
    from congenial.ledger.counted_unit import Unit as UnitKind


def _section(value: Any) -> NamedSection:
    """A [[release]] as the section of its kind, which is loaded for it."""
    if isinstance(value, NamedSection):
        return value
    section: type[NamedSection] = registry.by_key(registry.key_of(value)).section
    return section.model_validate(value)


AnySection = Annotated[NamedSection, PlainValidator(_section, json_schema_input_type=dict)]


class Plan(Section):
    """A whole plan: data, schema, exact figures, releases and budget. `Plan.load(path)` reads one.

    What is wrong is refused with the key, the value, the rule and a remedy (`PlanError`), before
    any data are read. Keys: docs/reference/plan, and `congenial schema` for editors.

    >>> plan = Plan.parse(
    ...     '''
    ...     data.source = "people.csv"
    ...     schema.sex.levels = ["f", "m"]
    ...     budget.epsilon = 4
    ...     [[release]]
    ...     name = "sex"
    ...     table = ["sex"]
    ...     epsilon = 1
    ...     ''',
    ...     Path(),
    ... )
    >>> plan.release[0].table, plan.schema.names
    (['sex'], ('sex',))
    """

    data: DataSection
    derive: dict[str, DeriveEntry] = {}
    schema_: dict[str, Any] = Field(alias="schema")
    publish: dict[str, PublishEntry] = {}
    release: list[SerializeAsAny[AnySection]] = []
    budget: BudgetSection
    about: AboutSection = AboutSection()
    folder: Path = Field(default=Path(), exclude=True)
    _file: PlanText = NO_FILE

    def __repr__(self) -> str:
        names = some_of([one.name for one in self.release])[:120]
        figures = f"{len(self.statements)} exact figures"
        return f"Plan({self.schema!r}; {figures}; releases {names or 'none'})"

    @model_validator(mode="after")
    def _names_differ(self) -> Plan:
        if not self.release and not self.publish:
            raise ValueError("must have [publish] or [[release]]")
        names = [r.name for r in self.release]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two releases are called '{name}'; give each its own name")
        if self.about.quote and self.about.quote not in names:
            raise ValueError(
                f"about.quote names '{self.about.quote}', which is not a release of this plan"
            )
        if self.data.max_rows is not None and self.data.unit is None:
            raise ValueError("max_rows needs data.unit, the column that identifies a person")
        if self.data.unit_source is not None and self.data.max_rows is None:
            raise ValueError("unit_source needs data.unit, by which it is joined, and max_rows")
        if self.data.truncate is not None and self.data.max_rows is None:
            raise ValueError(
                "truncate needs data.max_rows, the number of rows to keep for each unit"
            )
        if self.data.max_rows is None and any(entry.units for entry in self.publish.values()):
            raise ValueError(
                "units = true counts units with several rows, so it needs data.unit and max_rows"
            )
        for section in sorted(self.release, key=lambda one: not one.alone):
            why = section.refused_beside(bool(self.publish), len(self.release) - 1)
            if why:
                raise ValueError(why)
        return self

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read and validate a plan file; relative paths in it start at its folder."""
        return cls.parse(cls.read(path), Path(path).parent, Path(path).name)

    @staticmethod
    def read(path: str | Path) -> str:
        """The text of a plan file."""
        expect(path, PATH, "the plan", "Give the path of a file.", PlanError)
        try:
            return Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise PlanError(
                f"there is no plan at '{path}'.", remedy="Try `congenial init`."
            ) from None
        except (OSError, UnicodeDecodeError) as reason:
            raise PlanError(f"'{path}' cannot be read: {reason}.") from None

    @classmethod
    def parse(cls, text: str, folder: Path, name: str = "") -> Plan:
        """Validate the text of a plan; errors name the file, if it has a name, and the line."""
        file = PlanText(name, text)
        try:
            values = tomllib.loads(text, parse_float=Decimal)
        except RecursionError:
            raise PlanError("the plan is nested too deeply to be read.") from None
        except ArithmeticError:  # decimal's, for an exponent of many digits
            raise PlanError(
                "the plan has a number whose exponent is too long to be read.",
                remedy="Write numbers such as 0.5 or 1e-9.",
            ) from None
        except ValueError as reason:  # tomllib's own, and Python's for numbers that are too long
            raise PlanError(f"{name or 'the plan'} is not valid TOML: {reason}.") from None
        try:
            plan = cls.model_validate(values | {"folder": folder})
        except ValidationError as error:
            from congenial.publication.plan_problems import first_problem

            raise first_problem(error, values, file=file) from None
        plan._file = file
        return plan

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
        words = self.about.model_dump(exclude={"map"})
        return replace(schema, about=About(**words, map=self._map(schema)))

    def _map(self, schema: Schema) -> MapShapes | None:
        """The outlines of areas, where the plan names a map."""
        named = self.about.map
        if named is None:
            return None
        from congenial.data.about import read_map

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
    def figures(self) -> Figures:
        """The figures without values, the number of people among them where the promise makes it
        public (`number_of_people`); contradictory ones are refused.
        """
        from congenial.publication.number_of_people import figures_beside

        return figures_beside(self, Figures(self.schema))

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

    def adjacency(self, figures: Figures | None = None) -> Adjacency:
        """Which datasets must look alike, given published values when there are any."""
        known = self.figures if figures is None else figures
        if self.data.max_rows is not None:
            if not self.publish:
                return AddRemove(self.schema, self.data.max_rows)
            from congenial.pairs.several_rows import SeveralRows

            return SeveralRows.given(known, self.data.max_rows)
        return SemiAdjacent(known)

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
        _refuse_password(key, address)
        where = resolve(address, self.folder)
        return PlannedSource(where, self.data.file_format, self.derivations)

    @cached_property
    def derivations(self) -> tuple[Derivation, ...]:
        """The columns that are made from columns of the data, in the order of the file."""
        return tuple(
            one.derivation(name, self.folder, self.schema) for name, one in self.derive.items()
        )

    @property
    def ledger(self) -> str:
        """Where the ledger is: a path, or a URL without a password."""
        where = self.budget.ledger.removeprefix("sqlite:///")
        _refuse_password("budget.ledger", where)
        return where if "://" in where else str(self.folder / where)

    @cached_property
    def file_digests(self) -> dict[str, str]:
        """SHA-256 of the files that the plan names besides its data, by name."""
        from congenial.publication.plan_sections import file_digests

        return file_digests(self._plain(), self.folder)

    @cached_property
    def digest(self) -> str:
        """Identity of what was planned, and what is approved: of the plan's settings and the files
        it names, not of the data; comments and layout do not count.
        """
        plain = self._plain()
        if self.file_digests:  # levels as read from them
            plain |= {"files": self.file_digests, "levels": self.schema.digest}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()

    def _plain(self) -> dict[str, Any]:
        return self.model_dump(mode="json", by_alias=True, fallback=str)

    def of(self, key: str) -> list[Any]:
        """The sections of the kind of release that a key tells."""
        return [section for section in self.release if registry.of_section(section).key == key]

    def place_of(self, section: NamedSection) -> str:
        """A release in words, as an error begins: file, line and name."""
        index = next((i for i, one in enumerate(self.release) if one.name == section.name), 0)
        return f"{self._file.at('release', index)}release '{section.name}'"

    def named(self, name: str) -> NamedSection:
        """The release section of that name."""
        for section in self.release:
            if section.name == name:
                return section
        names = ", ".join(r.name for r in self.release)
        raise PlanError(f"the plan has no release '{name}'.", remedy=f"It has: {names}.")


# How the digest is named wherever it is shown.
DIGEST_OF = "Digest of the plan and the files it names (not the data)"


def _refuse_password(key: str, address: str) -> None:
    """A plan is a document that travels; what opens a database does not belong in it."""
    if "://" not in address:
        return
    if "password=" in address or ":" in address.partition("://")[2].rpartition("@")[0]:
        raise PlanError(
            f"{key}: a plan must not contain a password.",
            remedy="Put it in ~/.pgpass or PGPASSWORD.",
        )
