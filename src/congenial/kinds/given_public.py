"""A table of counts given what is public already: [[release]] with `scenarios`.

Public are the plan's exact figures, earlier counts in a file (the prior), and what `given` says in
words. The Wasserstein exponential mechanism (partially-private-data, Theorem 9) promises epsilon
given all that. The ledger counts what one replaced record does to the same release, which needs no
beliefs: the loss grows with the change of the table, and one record changes it by 2 in l1.

Beliefs about answers are about one yes-or-no question: the released table has two cells, and `of`
names the level that counts as yes. Disclosure rules and dependence bounds (examples 2 and 4,
section 4.4) and finite tables of databases are all at the level of databases, where promises add
up.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from congenial.data.tabulate import Microdata
from congenial.data.text_files import read_rows
from congenial.errors import BundleError, DataError, GuaranteeError
from congenial.figures.support import support
from congenial.inference.feasibility import outlook_of_values
from congenial.kinds.given_public_document import Earlier, GivenPublicReport
from congenial.kinds.kind import (
    Checked,
    Document,
    Kind,
    Ready,
    Tell,
    examine_inference,
    planned,
    refuse_other_number,
)
from congenial.kinds.plan_sections import NamedSection, Positive, exact
from congenial.kinds.planned_data import PlannedData
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.tables_release import ERRORS
from congenial.mechanisms.wasserstein.base_measure import (
    Base,
    congenial,
    naive,
    prior_congenial,
    published_sums,
)
from congenial.mechanisms.wasserstein.exponential import ORDINARY, WassersteinExponential, rebuild
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta, person_promise
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios import (
    BoundedCounts,
    CountRule,
    DependentCounts,
    IndependentRecords,
    Scenarios,
    StatedLaws,
    k_anonymity,
    t_closeness,
)
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import rational
from congenial.privacy.numbers import number
from congenial.report.render import basis_of
from congenial.transport.delta_z import DistanceBound, delta_z

if TYPE_CHECKING:
    from congenial.figures.figures import Figures
    from congenial.privacy.guarantee import Guarantee

NUMBER_BYTES = 24  # of a count as text

INDEPENDENT: Literal["independent records"] = "independent records"
ANSWERS, DEPENDENT, LISTED = "independent answers", "dependent answers", "listed databases"
_RULE = {"of", "people"}

GRAMMAR = (
    f"must be {{ believe = '{INDEPENDENT}' }}, {{ believe = '{ANSWERS}', of = 'yes', people = 400, "
    "k_anonymity = 5 } (or t_closeness = 0.1, target = 0.3), "
    f"{{ believe = '{DEPENDENT}', of = 'yes', people = 400, chances = [0.1, 0.3] }}, "
    f"{{ believe = '{LISTED}', file = 'beliefs.csv' }}, or {{ distance = 2 }} where Delta_z is "
    "assumed; because = '...' may be added to the first and the last"
)


def _form(required: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One way to write `scenarios`, for editors that check a plan while it is written."""
    return {
        "type": "object",
        "properties": required | more,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 1}
_NUMBER = {"type": "number", "exclusiveMinimum": 0}
_PEOPLE = {"of": _TEXT, "people": _COUNT}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_PAIR = {"type": "array", "items": _SHARE, "minItems": 2, "maxItems": 2}
FORMS = [
    _form({"believe": {"const": INDEPENDENT}}, because=_TEXT),
    _form({"distance": _NUMBER}, because=_TEXT),
    _form({"believe": {"const": ANSWERS}, **_PEOPLE, "k_anonymity": _COUNT}),
    _form({"believe": {"const": ANSWERS}, **_PEOPLE, "t_closeness": _NUMBER, "target": _SHARE}),
    _form({"believe": {"const": DEPENDENT}, **_PEOPLE, "chances": _PAIR}),
    _form({"believe": {"const": LISTED}, "file": _TEXT}),
]


@dataclass(frozen=True)
class Believed:
    """Independent records, or the distance Delta_z that is assumed instead."""

    believe: Literal["independent records"] | None = None
    distance: Fraction | None = None
    because: str = ""


@dataclass(frozen=True)
class RuleBelieved:
    """Independent answers of `people`, of which a disclosure rule is public."""

    of: str
    people: int
    k: int | None = None
    t: Fraction | None = None
    target: Fraction | None = None

    distance: ClassVar[None] = None


@dataclass(frozen=True)
class DependentBelieved:
    """Answers that depend on one person's: chances of a yes between two bounds."""

    of: str
    people: int
    low: Fraction
    high: Fraction

    distance: ClassVar[None] = None


@dataclass(frozen=True)
class ListedBelieved:
    """A file of databases and how likely each scenario takes them."""

    file: str

    distance: ClassVar[None] = None


AnyBelief = Believed | RuleBelieved | DependentBelieved | ListedBelieved


def belief(value: Any) -> AnyBelief:
    """What a plan says, or ValueError with the grammar."""
    entries = dict(value) if isinstance(value, dict) else {}
    answers = (
        _of_answers(entries) if entries.get("believe") in (ANSWERS, DEPENDENT, LISTED) else None
    )
    answers = answers or _of_records(entries)
    if answers is None:
        raise ValueError(GRAMMAR)
    return answers


def _of_records(told: dict[str, Any]) -> Believed | None:
    because, (key, value) = told.pop("because", ""), next(iter(told.items()), ("", None))
    if len(told) != 1 or not isinstance(because, str):
        return None
    if (key, value) == ("believe", INDEPENDENT):
        return Believed(believe=INDEPENDENT, because=because)
    return Believed(distance=exact(value), because=because) if key == "distance" else None


def _of_answers(told: dict[str, Any]) -> AnyBelief | None:
    keys, believe = set(told) - {"believe"}, told["believe"]
    if believe == LISTED:
        named = keys == {"file"} and isinstance(told["file"], str)
        return ListedBelieved(told["file"]) if named else None
    if not (isinstance(told.get("of"), str) and _count(told.get("people"))):
        return None
    who: tuple[str, int] = told["of"], told["people"]
    if believe == DEPENDENT:
        chances = told.get("chances")
        if keys != _RULE | {"chances"} or not isinstance(chances, list) or len(chances) != 2:
            return None
        return DependentBelieved(*who, _share(chances[0]), _share(chances[1]))
    if keys == _RULE | {"k_anonymity"} and _count(told["k_anonymity"]):
        return RuleBelieved(*who, k=told["k_anonymity"])
    if keys == _RULE | {"t_closeness", "target"}:
        return RuleBelieved(*who, t=exact(told["t_closeness"]), target=_share(told["target"]))
    return None


def _share(value: Any) -> Fraction:
    """A number from 0 to 1, exactly."""
    none = isinstance(value, int | Decimal) and not isinstance(value, bool) and value == 0
    share: Fraction = Fraction(0) if none else exact(value)
    if share > 1:
        raise ValueError("target and chances are shares, from 0 to 1")
    return share


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


@dataclass(frozen=True)
class PriorCounts:
    """`base_measure` with `prior`: a file of earlier counts, and what they weigh."""

    prior: str
    alpha: Fraction
    kappa: Fraction


def _base_measure(value: Any) -> Any:
    if value in ("naive", "congenial"):
        return value
    if not isinstance(value, dict) or set(value) != {"prior", "alpha", "kappa"}:
        raise ValueError(
            "must be 'naive', 'congenial', or { prior = 'last-release.csv', alpha = 0.1, "
            "kappa = 0.5 }"
        )
    if not isinstance(value["prior"], str):
        raise ValueError("prior must name a CSV file")
    return PriorCounts(value["prior"], exact(value["alpha"]), exact(value["kappa"]))


class ScenariosSection(NamedSection):
    """[[release]] with `scenarios`: a table of counts, protected given what is public already."""

    table: list[str] = Field(min_length=1)
    scenarios: Annotated[AnyBelief, BeforeValidator(belief), WithJsonSchema({"anyOf": FORMS})]
    given: list[str] = []
    base_measure: Annotated[str | PriorCounts, BeforeValidator(_base_measure)] = "congenial"
    loss: Literal["l1", "l2"] = "l1"
    epsilon: Positive
    basis: Literal["theorem"] | None = None

    @model_validator(mode="after")
    def _possible(self) -> ScenariosSection:
        if self.delta is not None:
            raise ValueError("scenarios promise epsilon without delta; leave delta out")
        if self.mechanism not in ("auto", "wasserstein_exponential"):
            raise ValueError(f"mechanism = {self.mechanism!r} cannot use scenarios; write 'auto'")
        return self

    def refused_beside(self, publishes: bool, others: int) -> str:
        """Beside no other release where its distance is assumed: such promises do not add up."""
        if self.scenarios.distance is None or not others:
            return super().refused_beside(publishes, others)
        return (
            f"release '{self.name}' assumes its distance, and such a promise cannot be combined "
            "with other releases from the same data; write believe = 'independent records'"
        )


@dataclass(frozen=True)
class ScenariosCheck(Checked):
    """What a release given public information would promise, and to whom."""

    mechanism: WassersteinExponential
    persons: Guarantee
    earlier: Earlier | None


class GivenPublic(Kind[ScenariosSection]):
    """Counts drawn around the true ones, protected given what somebody knows already."""

    key = "scenarios"
    name = "values"
    section = ScenariosSection
    words = "check_given_public.txt"
    release_class = ValuesRelease
    instead: ClassVar[str] = ""

    # ---- from the plan to a draw ---------------------------------------------------------------

    def build(
        self, plan: PlannedData, section: ScenariosSection, figures: Figures
    ) -> WassersteinExponential:
        """The mechanism of one section given `figures`, with or without their figures."""
        if plan.unit.max_rows is not None:
            raise GuaranteeError(
                f"release '{section.name}': scenarios need one record per person.",
                remedy="Leave out max_rows, or release a table without scenarios.",
            )
        pairs = _pairs(plan, section, figures)
        mechanism = WassersteinExponential(
            pairs,
            _distance(section, pairs),
            _base(plan, section, figures),
            section.epsilon,
            section.loss,
            ORDINARY[section.loss],
            tuple(section.table),
        )
        if section.basis == "theorem" and mechanism.guarantee.basis != "theorem":
            raise GuaranteeError(
                f"release '{section.name}' asks for basis = 'theorem', and its promise is an "
                f"{mechanism.guarantee.basis}.",
                remedy="Use loss = 'l1' and scenarios that give the distance, or leave out basis.",
            )
        return mechanism

    def check(
        self,
        plan: PlannedData,
        section: ScenariosSection,
        figures: Figures,
    ) -> ScenariosCheck:
        """What it promises, from public parameters alone."""
        mechanism = self.build(plan, section, figures)
        return ScenariosCheck(
            section,
            mechanism,
            self.promise(plan, section, mechanism),
            _planned_for_persons(plan, mechanism, figures),
            _earlier(plan, section),
        )

    def ready(
        self,
        plan: PlannedData,
        section: ScenariosSection,
        built: WassersteinExponential,
        figures: Figures,
        data: Microdata,
        progress: Tell,  # noqa: ARG002 - it is one step
    ) -> Ready:
        """The counts of the table, of which what is public is true."""
        axes = [plan.schema.axis(name).base for name in section.table]
        names = [name for name in plan.schema.names if name in axes or name in figures.bases]
        table = data.tabulate(names)
        if figures.values is not None:
            figures.refuse_other_data(table)
        truth = table.marginal(section.table).counts.reshape(-1)
        _refuse_false(plan, section, truth)
        law = built.law(truth)
        _ = law.groups if isinstance(law, TableLaw) else law.start.groups  # refuses too wide ones
        persons = _planned_for_persons(plan, built, figures)
        nobody = (0,) * built.base.cells
        parts = (section.name, built.description, built.guarantee, "made up", False, nobody)
        return Ready(
            draw=lambda randomness: built.release(truth, randomness, section.name),
            made_up=lambda: ValuesRelease(*parts),
            room=built.base.cells * NUMBER_BYTES,
            report=GivenPublicReport(persons, _earlier(plan, section)).render,
        )

    def shown(self, section: ScenariosSection) -> Sequence[str]:
        """The axes of the table."""
        return section.table

    # ---- the bundle ----------------------------------------------------------------------------

    def report(self, release: ValuesRelease, promise: str) -> str:
        """The report; earlier counts, which no bundle holds, are those on the page it came with."""
        origin, leans = release.origin, release.base.kind == "prior-congenial"
        basis: Any = basis_of(origin.page()) if origin is not None and leans else None
        earlier = None if basis is None else Earlier.from_dict(basis)
        report = GivenPublicReport(_promised_to_persons(release), earlier)
        return report.render(release, promise)

    def rebuilt(self, release: ValuesRelease) -> Iterable[WassersteinExponential]:
        """One for each way to find Delta_z; none where values are no counts."""
        if "base_measure" not in release.description.law:
            return ()
        return rebuild(release.description, release.guarantee)

    def checks(self, release: ValuesRelease) -> dict[str, bool]:
        """The promise, and the public figures that counts agree with."""
        checks = super().checks(release)
        if "base_measure" in release.description.law:
            checks["the counts agree with every public figure"] = release.agrees
        return checks

    # ---- telling people ------------------------------------------------------------------------

    def examine(self, checked: ScenariosCheck) -> Document:
        """The check of one section as plain data; from public parameters alone."""
        mechanism, earlier = checked.mechanism, checked.earlier
        return {
            **super().examine(checked),
            "title": f"{' x '.join(mechanism.table)}, given public information",
            "table": list(mechanism.table),
            "cells": mechanism.base.cells,
            "mechanism": mechanism.name,
            "base_measure": mechanism.base.kind,
            "earlier": None if earlier is None else vars(earlier) | {"words": earlier.words},
            "loss": mechanism.loss,
            "rate": mechanism.rate,
            "factor": mechanism.factor,
            "delta_z": {
                "value": mechanism.bound.value,
                "measure": mechanism.bound.measure,
                "assumed": mechanism.bound.basis == "estimate",
            },
            "known": list(mechanism.pairs.facts),
            "level": mechanism.pairs.level,
            "certified": mechanism.certified,
            "per_record": mechanism.description.epsilon,
            "per_person": checked.persons.tradeoff.words,
            "persons": checked.persons.explain(),
            "belief": mechanism.words,
            "inference": examine_inference(outlook_of_values(mechanism.loss, mechanism.base)),
        }


KIND = GivenPublic()


# ---- what persons are promised -------------------------------------------------------------------


def _planned_for_persons(
    plan: PlannedData, mechanism: WassersteinExponential, figures: Figures
) -> Guarantee:
    """What is promised without any assumption about beliefs."""
    persons = person_promise(mechanism.description, figures)
    assert persons is not None
    return planned(persons, plan)


def _promised_to_persons(release: ValuesRelease) -> Guarantee:
    """The same of what was released; BundleError where it is nothing."""
    persons = KIND.further_promise(release)
    if persons is None:
        raise BundleError(
            f"release '{release.name}' promises nothing about individual people, which a plan "
            "cannot release.",
            remedy="Write its report from Python.",
        )
    return persons


# ---- what is believed ----------------------------------------------------------------------------


def _pairs(plan: PlannedData, section: ScenariosSection, figures: Figures) -> SecretPairs:
    believed = section.scenarios
    public = list(section.given)
    if isinstance(section.base_measure, PriorCounts):
        public.append(f"the counts in '{Path(section.base_measure.prior).name}'")
    if isinstance(believed, RuleBelieved | DependentBelieved):
        public.append(f"what is counted is {section.table[0]} = {believed.of}")
    scenario: Scenarios
    if believed.distance is None:
        scenario = _scenarios(plan, section, figures)
    else:
        ground = f" ({believed.because})" if believed.because else ""
        scenario = StatedLaws(
            "one person's answer moves the law of the table by at most "
            f"{number(believed.distance)} in {section.loss}{ground}"
        )
    return SecretPairs(
        plan.schema,
        (scenario,),
        tuple(public),
        "query" if believed.distance is not None else "database",
        figures if figures.statements else None,
    )


def _distance(section: ScenariosSection, pairs: SecretPairs) -> DistanceBound:
    """Delta_z of the scenarios, in records; or as assumed, in the norm of the loss."""
    if section.scenarios.distance is None:
        return delta_z(pairs)
    return assumed_delta(section.scenarios.distance, section.loss)


def _scenarios(plan: PlannedData, section: ScenariosSection, figures: Figures) -> Scenarios:
    """The class of beliefs that a plan names; not for an assumed distance."""
    believed = section.scenarios
    if isinstance(believed, ListedBelieved):
        return _listed(plan, section, figures, believed.file)
    if isinstance(believed, RuleBelieved):
        _refuse_other_question(plan, section, believed.of)
        refuse_other_number(figures, believed.people)
        return BoundedCounts(believed.people, _rule(believed))
    if isinstance(believed, DependentBelieved):
        _refuse_other_question(plan, section, believed.of)
        refuse_other_number(figures, believed.people)
        return DependentCounts(believed.people, believed.low, believed.high, alike=True)
    return IndependentRecords("replace-one")


def _rule(believed: RuleBelieved) -> CountRule:
    if believed.k is not None:
        return k_anonymity(believed.k)
    return t_closeness(believed.t, believed.target)


def _refuse_other_question(plan: PlannedData, section: ScenariosSection, of: str) -> None:
    axes = plan.schema.axes(section.table)
    if len(axes) != 1 or len(axes[0].levels) != 2 or of not in axes[0].levels:
        raise GuaranteeError(
            f"release '{section.name}': these scenarios need a question with two answers, one of "
            f"which is '{of}'.",
            remedy="Release the table of an attribute with two categories and name one of them, or "
            "write believe = 'independent records'.",
        )


def _refuse_false(plan: PlannedData, section: ScenariosSection, truth: Any) -> None:
    """Refuse data of which the public rule or number is not true, without saying by how much."""
    believed = section.scenarios
    if not isinstance(believed, RuleBelieved | DependentBelieved):
        return
    if int(truth.sum()) != believed.people:
        raise DataError(
            f"release '{section.name}': scenarios are about {believed.people} people, but the "
            "data have a different number.",
            remedy="Give the published number.",
        )
    if isinstance(believed, RuleBelieved):
        rule, levels = _rule(believed), plan.schema.axis(section.table[0]).levels
        low, high = rule.range(believed.people)
        if not low <= int(truth[list(levels).index(believed.of)]) <= high:
            raise DataError(
                f"release '{section.name}': '{rule.label}' is listed as known, but it is not true "
                "for these data.",
                remedy="Leave it out: { believe = 'independent records' }.",
            )


def _listed(
    plan: PlannedData, section: ScenariosSection, figures: Figures, address: str
) -> FiniteScenarios:
    """The databases of a file: columns `scenario`, `weight` and one for each person."""
    axis = plan.schema.axis(section.table[0])
    if len(section.table) != 1:
        raise GuaranteeError(
            f"release '{section.name}': listed databases have one answer for each person.",
            remedy="Release the table of one attribute.",
        )
    rows = _listed_rows(plan.folder / address, address)
    people = [name for name in rows[0] if name not in ("scenario", "weight")]
    weights: dict[str, dict[tuple[int, ...], Any]] = {}
    for line, row in enumerate(rows, start=2):
        answers = [row[name] for name in people]
        if any(answer not in axis.levels for answer in answers):
            raise DataError(
                f"scenarios.file: row {line} of '{address}' has an answer that is not a "
                f"category of '{axis.name}'.",
                remedy=f"Use the categories that the schema gives '{axis.name}'.",
            )
        database = tuple(axis.levels.index(answer) for answer in answers)
        weights.setdefault(row["scenario"], {})[database] = _weight(row["weight"], line, address)
    if not all(sum(weighed.values()) for weighed in weights.values()):
        raise DataError(
            f"scenarios.file: '{address}' has a scenario in which every weight is zero.",
            remedy="Give one of its databases a weight, or leave out the scenario.",
        )
    databases = sorted({database for weighed in weights.values() for database in weighed})
    scenarios = FiniteScenarios.of(
        databases,
        {
            label: [weighed.get(database, 0) / sum(weighed.values()) for database in databases]
            for label, weighed in weights.items()
        },
    )
    _refuse_impossible(section, figures, scenarios, address)
    return scenarios


def _listed_rows(path: Path, address: str) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = read_rows(file)
    except (OSError, UnicodeDecodeError, ValueError):
        rows = []
    if not rows or not {"scenario", "weight"} < set(rows[0]):
        raise DataError(
            f"scenarios.file: '{address}' cannot be read as a list of databases.",
            remedy="Give a CSV file with the columns scenario, weight and one for each person.",
        )
    return rows


def _weight(text: str, line: int, address: str) -> Fraction:
    """A weight; an error names the row and quotes nothing of the file."""
    try:
        weight = rational(text)
    except GuaranteeError:
        weight = Fraction(-1)
    if weight < 0:
        raise DataError(
            f"scenarios.file: row {line} of '{address}' has a weight that is not a number of zero "
            "or more.",
            remedy="Write whole numbers or fractions.",
        )
    return weight


def _refuse_impossible(
    section: ScenariosSection, figures: Figures, scenarios: FiniteScenarios, address: str
) -> None:
    """Refuse databases that contradict what is published, once it is."""
    published = support(figures, tuple(section.table))
    if published.totals is None:
        return
    cells = published.labels.size
    for database in scenarios.possible:
        if not published.agrees([database.count(cell) for cell in range(cells)]):
            raise DataError(
                f"scenarios.file: '{address}' lists a database that contradicts the published "
                "figures.",
                remedy="List only databases that agree with them.",
            )


# ---- what is known of the table ------------------------------------------------------------------


def _base(plan: PlannedData, section: ScenariosSection, figures: Figures) -> Base:
    table = tuple(section.table)
    cells = plan.schema.size(table)
    if section.base_measure == "naive":
        return naive(cells)
    published = support(figures, table)
    if published.degrees_of_freedom == 0:
        raise GuaranteeError(
            f"nothing is left to protect in the table over {', '.join(table)}: the published "
            "figures fix every cell.",
            remedy="Publish the table exactly, or drop a figure.",
        )
    totals = published_sums(published)
    earlier = _earlier(plan, section)
    if earlier is None:
        return congenial(cells, totals)
    return prior_congenial(cells, totals, earlier.counts, alpha=earlier.alpha, kappa=earlier.kappa)


def _earlier(plan: PlannedData, section: ScenariosSection) -> Earlier | None:
    """What the base measure leans on, if it does."""
    measure = section.base_measure
    if not isinstance(measure, PriorCounts):
        return None
    counts = _earlier_counts(plan, section, measure.prior)
    return Earlier(Path(measure.prior).name, counts, measure.alpha, measure.kappa)


def _earlier_counts(plan: PlannedData, section: ScenariosSection, address: str) -> tuple[int, ...]:
    """The counts of an earlier release in the order of the table; below zero they count as zero."""
    axes = plan.schema.axes(section.table)
    rows, labels = _earlier_rows(plan.folder / address, address, section.table)
    counts: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(rows, start=2):
        cell = tuple(row[label] for label in labels)
        in_schema = all(label in axis.levels for label, axis in zip(cell, axes, strict=True))
        whole = re.fullmatch(r"-?\d{1,18}", (row["count"] or "").strip())
        if not in_schema or whole is None or cell in counts:
            raise DataError(
                f"base_measure.prior: row {line} of '{address}' repeats a cell, or has a label "
                "that is not in the schema or a count that is not whole.",
                remedy="Give each cell of the table once.",
            )
        counts[cell] = max(int(whole[0]), 0)
    missing = plan.schema.size(tuple(section.table)) - len(counts)
    if missing:
        raise DataError(
            f"base_measure.prior: '{address}' has no row for {missing} cells of the table.",
            remedy="Give each cell of the table once; a count of 0 is written as 0.",
        )
    return tuple(counts[cell] for cell in product(*(axis.levels for axis in axes)))


def _earlier_rows(
    path: Path, address: str, table: Sequence[str]
) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """The lines of a CSV file with a column for each axis and one for the count, and the names of
    the axes' columns: files that say how far counts may be off call some of them otherwise.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = read_rows(file)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise DataError(
            f"base_measure.prior: '{address}' cannot be read as CSV.",
            remedy="Give the table.csv or values.csv of an earlier bundle, or a file like it.",
        ) from None
    beside = ("count", *ERRORS) if rows and set(ERRORS) <= set(rows[0]) else ("count",)
    labels = label_names(table, beside)
    wanted = [*labels, "count"]
    if not rows or any(name not in rows[0] for name in wanted):
        raise DataError(
            f"base_measure.prior: '{address}' has no rows, or lacks one of the columns "
            f"{', '.join(wanted)}.",
            remedy="Give one row per cell of the table, with its labels and its count.",
        )
    return rows, labels
