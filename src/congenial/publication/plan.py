"""The plan file: one TOML file says what is protected, what is published exactly, and what is
released.

Numbers are read as exact decimals, so epsilon = 0.1 is one tenth. Every error names the key, the
value, the rule and the remedy.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    PlainValidator,
    SerializeAsAny,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from congenial.data.arguments import PATH, expect
from congenial.errors import PlanError, some_of
from congenial.figures.figures import Figures
from congenial.kinds import registry
from congenial.kinds.plan_sections import (
    BudgetSection,
    NamedSection,
    file_digests,
)
from congenial.kinds.planned_data import PlannedData, PlanText, refuse_password
from congenial.pairs.pairs import Adjacency
from congenial.publication.number_of_people import figures_beside
from congenial.publication.plan_problems import first_problem

if TYPE_CHECKING:
    pass


def _section(value: Any) -> NamedSection:
    """A [[release]] as the section of its kind, which is loaded for it."""
    if isinstance(value, NamedSection):
        return value
    section: type[NamedSection] = registry.by_key(registry.key_of(value)).section
    return section.model_validate(value)


AnySection = Annotated[NamedSection, PlainValidator(_section, json_schema_input_type=dict)]


class Plan(PlannedData):
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

    release: list[SerializeAsAny[AnySection]] = []
    budget: BudgetSection

    def __repr__(self) -> str:
        names = some_of([section.name for section in self.release])[:120]
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
            raise first_problem(cls, error, values, file=file) from None
        plan._file = file
        return plan

    @cached_property
    def figures(self) -> Figures:
        """The figures without values, the number of people among them where the promise makes it
        public (`number_of_people`); contradictory ones are refused.
        """
        return figures_beside(self, self.release, Figures(self.schema))

    def adjacency(self, figures: Figures | None = None) -> Adjacency:
        """Which datasets must look alike, given published values when there are any."""
        return super().adjacency(self.figures if figures is None else figures)

    @property
    def ledger(self) -> str:
        """Where the ledger is: a path, or a URL without a password."""
        where = self.budget.ledger.removeprefix("sqlite:///")
        refuse_password("budget.ledger", where)
        return where if "://" in where else str(self.folder / where)

    @cached_property
    def file_digests(self) -> dict[str, str]:
        """SHA-256 of the files that the plan names besides its data, by name."""
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
        index = next(
            (i for i, release in enumerate(self.release) if release.name == section.name), 0
        )
        return f"{self._file.at('release', index)}release '{section.name}'"

    def named(self, name: str) -> NamedSection:
        """The release section of that name."""
        for section in self.release:
            if section.name == name:
                return section
        names = ", ".join(r.name for r in self.release)
        raise PlanError(f"the plan has no release '{name}'.", remedy=f"It has: {names}.")


def refuse_section(name: str, value: Any) -> None:
    """PlanError if a plan does not take this value of a section, whatever the others are.

    >>> refuse_section("publish", {"Adults": {"count": "age >= 18"}})
    """
    model: Any = Plan.model_fields[name].annotation
    try:
        TypeAdapter(model).validate_python(value)
    except ValidationError as error:
        raise first_problem(Plan, error, {name: value}, (name,)) from None


# How the digest is named wherever it is shown.
DIGEST_OF = "Digest of the plan and the files it names (not the data)"
