"""The plan file: one TOML file says what is protected, what is published exactly, and what is
released.

Numbers are read as exact decimals, so epsilon = 0.1 is one tenth. Every error names the key, the
value, the rule and the remedy.
"""

from __future__ import annotations

import difflib
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
    AboutSection,
    BudgetSection,
    DataSection,
    DeriveEntry,
    NamedSection,
    PublishEntry,
    Section,
    file_digests,
)
from congenial.kinds.planned_data import NO_FILE, Place, PlannedData, PlanText, refuse_password
from congenial.pairs.pairs import Adjacency
from congenial.publication.number_of_people import figures_beside

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
            raise _first_problem(error, values, file=file) from None
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
        raise _first_problem(error, {name: value}, (name,)) from None


# How the digest is named wherever it is shown.
DIGEST_OF = "Digest of the plan and the files it names (not the data)"


# ---- what is wrong with a plan, in words: the key, the value, the rule, the remedy ----

_SMALL_COUNTS = (
    "Small counts are not left out: noise protects them as it protects large ones. To see exact "
    "figures about few people, run `congenial publish --dry-run --fewer-than 10`."
)
_SIZE_OF_NOISE = (
    "The promise decides the size of the noise. State epsilon, rho or mu, or an accuracy; "
    "`congenial check` shows the margins of error."
)
_EXACT = (
    "An exact figure is published as it is: not rounded, without noise, however small it is. "
    "If that reveals too much, release a protected table instead."
)
_ROUNDING = (
    "Rounding adds error and protects nobody. Leave it out; you can round the released tables for "
    "print."
)
_ENDS = (
    "The schema does this. Give the open class a label there, such as "
    'age = { edges = [0, 18, 65], top = "65+" }.'
)
# Keys that other tools have, and why a plan has none of them.
ABSENT = {
    **dict.fromkeys(("round_to", "rounding", "round", "base"), _ROUNDING),
    **dict.fromkeys(
        ("suppress_below", "suppress", "suppression", "threshold", "min_count", "min_cell_size"),
        _SMALL_COUNTS,
    ),
    **dict.fromkeys(("noise", "noise_scale", "scale", "sigma", "variance"), _SIZE_OF_NOISE),
    **dict.fromkeys(("top_code", "top_coding", "bottom_code", "bottom_coding"), _ENDS),
    **dict.fromkeys(
        ("weight", "survey_weight", "weight_column"),
        "Records are counted without survey weights. For weighted counts release the sum of the "
        'weights: sum = "weight", with public bounds such as between = [0, 500] and a step.',
    ),
    **dict.fromkeys(
        ("k", "k_anonymity", "l_diversity", "t_closeness"),
        "Such rules do not limit what somebody with other knowledge can infer. State a promise "
        "instead: epsilon, rho or mu.",
    ),
    "sensitivity": "It follows from the exact figures and from how many rows a person may have. "
    "Leave it out; if people have several rows, give max_rows in [data].",
    "bounds": "Bounds are public: between = [0, 50000]. If nothing public says how large numbers "
    "get, draw a quantile first (estimate = { quantile = ... }), then state it in between.",
    "seed": "Whoever knows the seed can remove the noise, so a plan has none. To try a plan, run "
    "`congenial release --seed 1`: its bundles are marked NOT FOR PUBLICATION.",
}

_SEE = "see docs/reference/plan.md."


def _first_problem(
    error: ValidationError,
    values: dict[str, Any],
    section: Place = (),
    file: PlanText = NO_FILE,
) -> PlanError:
    """Line, key, value, rule and remedy of the first problem in a plan, or in a section of it."""
    problems = error.errors(include_url=False)
    # A misspelt key is both unknown and missing; the first says more.
    problem = min(problems, key=lambda p: p["type"] != "extra_forbidden")
    where = (*section, *problem["loc"])
    at = file.at(*where)
    what, remedy = _problem(problem, where, values)
    return PlanError(f"{at}{what.removeprefix('the plan: ') if at else what}", remedy=remedy)


def _problem(problem: Any, where: Place, values: dict[str, Any]) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    kind = _kind_at(where, values)
    keys = _keys(where, kind)
    key = _key(where, values)
    if problem["type"] == "extra_forbidden":
        others = _kinds_with(where, kind)
        if others:
            return f"{key}: belongs to {others}, not to {kind}.", f"Keys: {', '.join(keys)}."
        unknown = f"{key}: unknown key."
        if where[-1] in ABSENT:
            return unknown, _why_absent(str(where[-1]), where[0] == "publish")
        near = difflib.get_close_matches(str(where[-1]), keys, 1, 0.6)
        return unknown, f"Did you mean '{near[0]}'?" if near else f"Keys: {', '.join(keys)}."
    if problem["type"] == "missing":
        return f"{key}: missing.", f"Add it: {_SEE}"
    rule = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    refused = problem["input"]
    value = f" = {_written(refused)}" if isinstance(refused, str | int | Decimal) else ""
    if problem["type"] == "list_type" and isinstance(refused, str):
        return f"{key}{value}: must be a list.", f"Write [{_written(refused)}]."
    if problem["type"] == "string_pattern_mismatch":  # only names have a pattern
        rule = (
            "must begin with a letter or digit and have only letters, digits, '-' and '_' (at "
            "most 64)"
        )
    if problem["type"] == "literal_error" and where[-1] == "total":
        rule = "must be true, or leave the entry out"
    return f"{key}{value}: {rule.rstrip('.')}.", _SEE.capitalize()


def _why_absent(key: str, of_exact_figure: bool) -> str:
    """Why a plan does not have a key that other tools have, and what to write instead."""
    if of_exact_figure and ABSENT[key] in (_ROUNDING, _SMALL_COUNTS, _SIZE_OF_NOISE):
        return _EXACT
    return ABSENT[key]


def _kind_at(location: Place, values: dict[str, Any]) -> str:
    """The key of the kind of release that a place is in; empty outside of releases."""
    if location[:1] != ("release",) or len(location) < 3 or not isinstance(location[1], int):
        return ""
    return registry.key_of(values["release"][location[1]])


def _kinds_with(location: Place, kind: str) -> str:
    """The keys of the kinds of release that take a key which this kind does not; empty if none."""
    if not kind or len(location) != 3:
        return ""
    others = [
        each_kind.key
        for each_kind in registry.every_kind()
        if location[2] in each_kind.section.model_fields
    ]
    return "" if location[2] in others else " or ".join(others)


def _written(value: str | int | Decimal) -> str:
    """A value as a plan writes it: texts are quoted, so that "1" is not taken for 1."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _key(where: Place, values: dict[str, Any]) -> str:
    """A place in words: a release by its name where it has one."""
    words = ".".join(str(part) for part in where) or "the plan"
    if where[:1] != ("release",) or len(where) < 2 or not isinstance(where[1], int):
        return words
    section = values["release"][where[1]]
    name = section.get("name") if isinstance(section, dict) else None
    place = f"release '{name}'" if isinstance(name, str) else f"release number {where[1] + 1}"
    return ": ".join([place, *words.split(".", 2)[2:]])


def _keys(location: Place, kind: str) -> list[str]:
    """The keys that are allowed at a place."""
    sections: dict[Any, type[Section]] = {
        "data": DataSection,
        "publish": PublishEntry,
        "derive": DeriveEntry,
        "about": AboutSection,
        "budget": BudgetSection,
    }
    model: type[Section] = Plan
    if kind:
        model = registry.by_key(kind).section
    elif len(location) > 1:
        model = sections.get(location[0], Plan)
    return [field.alias or name for name, field in model.model_fields.items() if name != "folder"]
