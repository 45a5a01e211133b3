"""A mean, a sum, a quantile or a regression: [[release]] with `estimate`.

With `scenarios` it is protected given what somebody who knows public figures believes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError
from congenial.figures.figures import Figures
from congenial.kinds.kind import (
    Checked,
    Document,
    Kind,
    Ready,
    Tell,
    planned,
    refuse_other_number,
)
from congenial.kinds.plan_sections import NamedSection, Positive, exact
from congenial.kinds.planned_data import PlannedData
from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
from congenial.mechanisms.wasserstein.gradient_estimate import (
    EstimateRelease,
    GradientEstimate,
    GradientGivenPublic,
)
from congenial.mechanisms.wasserstein.mean_given_public import MeanGivenPublic, MeanOfEverybody
from congenial.mechanisms.wasserstein.secret_promise import person_promise
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.scenarios import IndependentRecords, PublicMean, Scenarios, given_means
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.privacy.tradeoff import Pure
from congenial.report.page import PageColumn, amount, table
from congenial.report.release_page import Headline, release_page
from congenial.transport.delta_z import meaning

GivenPublic = MeanGivenPublic | GradientGivenPublic
ForAnybody = GradientEstimate | MeanOfEverybody
AnyEstimate = ForAnybody | GivenPublic

INDEPENDENT, NORMAL = "independent records", "normal records"
GRAMMAR = (
    f"with an estimate must be {{ believe = '{INDEPENDENT}', people = 400 }} or {{ believe = "
    f"'{NORMAL}', people = 400, variance = 90, means = {{ 'last year' = {{ people = 400, error = "
    "0.5 } } }; means may be left out"
)
_COUNT = {"type": "integer", "minimum": 1}
_NUMBER = {"type": "number", "exclusiveMinimum": 0}


def _form(**keys: Any) -> dict[str, Any]:
    """A table of these keys, of which `means` may be left out."""
    return {
        "type": "object",
        "properties": keys,
        "required": [key for key in keys if key != "means"],
        "additionalProperties": False,
    }


_MEANS = {"type": "object", "additionalProperties": _form(people=_COUNT, error=_NUMBER)}
FORMS = [
    _form(believe={"const": INDEPENDENT}, people=_COUNT),
    _form(believe={"const": NORMAL}, people=_COUNT, variance=_NUMBER, means=_MEANS),
]


@dataclass(frozen=True)
class RecordsBelieved:
    """What is believed of `people` records: independent; normal too, where `variance` is given.

    `means`: public means of normal records, each with its people and the size of its error.
    """

    people: int
    variance: Fraction | None = None
    means: tuple[tuple[str, int, Fraction], ...] = ()


def _believed(value: Any) -> RecordsBelieved:
    entries = dict(value) if isinstance(value, dict) else {}
    believe, people = entries.pop("believe", None), entries.pop("people", None)
    keys = {NORMAL: {"variance", "means"}, INDEPENDENT: set[str]()}.get(believe)
    if keys is None or not _count(people) or set(entries) | {"means"} != keys | {"means"}:
        raise ValueError(GRAMMAR)
    if believe == INDEPENDENT:
        return RecordsBelieved(people)
    means = entries.get("means", {})
    if not isinstance(means, dict):
        raise ValueError(GRAMMAR)
    named = tuple((label, *_public_mean(mean)) for label, mean in means.items())
    return RecordsBelieved(people, exact(entries["variance"]), named)


def _public_mean(value: Any) -> tuple[int, Fraction]:
    if not isinstance(value, dict) or set(value) != {"people", "error"}:
        raise ValueError(GRAMMAR)
    if not _count(value["people"]):
        raise ValueError(GRAMMAR)
    return value["people"], exact(value["error"])


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class EstimateSection(NamedSection):
    """[[release]] with `estimate`: a statistic that minimises a convex loss, drawn near it."""

    estimate: dict[str, Any]
    scenarios: (
        Annotated[RecordsBelieved, BeforeValidator(_believed), WithJsonSchema({"anyOf": FORMS})]
        | None
    ) = None
    given: list[str] = []
    epsilon: Positive

    @model_validator(mode="after")
    def _possible(self) -> EstimateSection:
        if self.delta is not None:
            raise ValueError("an estimate promises epsilon without delta; leave delta out")
        if self.mechanism not in ("auto", self._own):
            raise ValueError(
                f"mechanism = {self.mechanism!r} cannot make this estimate; write 'auto'"
            )
        if self.scenarios is None and self.given:
            raise ValueError(
                "given needs scenarios: it lists what the people with those beliefs already know"
            )
        normal = self.scenarios is not None and self.scenarios.variance is not None
        if normal and not self._adds_up:
            raise ValueError(
                f"given '{NORMAL}' one answer moves every number of the data, and only a mean or "
                f"a sum can be bounded; write believe = '{INDEPENDENT}'"
            )
        return self

    @property
    def counts_everybody(self) -> bool:
        """Whether it is a mean or sum that is better with the number of people as a figure."""
        return self.scenarios is None and self._adds_up

    @property
    def _adds_up(self) -> bool:
        return bool({"mean", "sum"} & set(self.estimate))

    @property
    def _own(self) -> str:
        """The mechanism that makes it."""
        if self.scenarios is None:
            return "grid_geometric" if self._adds_up else "k_norm_gradient"
        return "wasserstein_exponential" if self._adds_up else "wasserstein_gradient"

    def refused_beside(self, publishes: bool, others: int) -> str:
        """Beside no other release where records are believed to be normal."""
        if self.scenarios is None or self.scenarios.variance is None or not others:
            return super().refused_beside(publishes, others)
        return (
            f"release '{self.name}' rests on the distribution of its own mean, and such a promise "
            "cannot be combined with other releases from the same data; write believe = "
            f"'{INDEPENDENT}'"
        )


@dataclass(frozen=True)
class EstimateCheck(Checked):
    """What an estimate would promise; `persons`: to anybody, where that is another promise."""

    mechanism: AnyEstimate
    persons: Guarantee | None


class EstimateKind(Kind[EstimateSection]):
    """A statistic near its best value for the data, by the K-norm gradient mechanism."""

    key = "estimate"
    name = "estimate"
    section = EstimateSection
    words = "check_estimate.txt"
    release_class = EstimateRelease
    instead: ClassVar[str] = (
        "Its noise is described in release.json: see docs/how-to/estimate-a-statistic."
    )

    # ---- from the plan to a draw ---------------------------------------------------------------

    def build(self, plan: PlannedData, section: EstimateSection, figures: Figures) -> AnyEstimate:
        """The mechanism of one section given `figures`, with or without their values."""
        adjacency = plan.adjacency(figures)
        if not isinstance(adjacency, SemiAdjacent):
            raise GuaranteeError(
                f"release '{section.name}': an estimate needs one record per person.",
                remedy="Leave out max_rows.",
            )
        spec = EstimateSpec.read(section.estimate)
        if section.scenarios is None:
            noise = MeanOfEverybody if spec.adds_up and figures.tells_people else GradientEstimate
            return noise(adjacency, spec, section.epsilon)
        refuse_other_number(figures, section.scenarios.people)
        pairs = _pairs(section, spec, section.scenarios, figures)
        given_public: type[GivenPublic] = MeanGivenPublic if spec.adds_up else GradientGivenPublic
        return given_public(pairs, spec, section.scenarios.people, section.epsilon)

    def check(
        self,
        plan: PlannedData,
        section: EstimateSection,
        figures: Figures,
    ) -> EstimateCheck:
        """What it promises, from public parameters alone."""
        mechanism = self.build(plan, section, figures)
        persons = None
        if not isinstance(mechanism, ForAnybody):
            persons = person_promise(mechanism.description, figures)
        return EstimateCheck(
            section,
            mechanism,
            self.promise(plan, section, mechanism),
            None if persons is None else planned(persons, plan),
        )

    def ready(
        self,
        plan: PlannedData,
        section: EstimateSection,
        built: AnyEstimate,
        figures: Figures,
        data: Microdata,
        progress: Tell,  # noqa: ARG002 - it is one step
    ) -> Ready:
        """The numbers that the statistic is about."""
        if figures.values is not None:
            names = [name for name in plan.schema.names if name in figures.bases]
            figures.refuse_other_data(data.tabulate(names))
        numbers = built.spec.query(plan.schema, built.cuts).records(data).numbers
        built.check_data(numbers)
        return Ready(
            draw=lambda randomness: built.release(numbers, randomness, section.name),
            made_up=lambda: _made_up(built, section.name),
        )

    # ---- the bundle ----------------------------------------------------------------------------

    def report(self, release: EstimateRelease, promise: str) -> str:
        """Its numbers, the promise, and how to use it, as one HTML document.

        Everything on the page is released or public.
        """
        values = table(
            [PageColumn("what"), PageColumn("released value", number=True)],
            [list(row) for row in zip(release.spec.names, release.values, strict=True)],
            "A random value near the best one for these data, on a public grid.",
        )
        persons = self.further_promise(release)
        pairs = zip(release.spec.names, release.values, strict=True)
        return release_page(
            "convex_estimate.html",
            release,
            promise,
            headlines=[Headline(name, amount(value), "with noise") for name, value in pairs],
            values=values,
            persons=persons,
        )

    def rebuilt(self, release: EstimateRelease) -> Iterable[AnyEstimate]:
        """The mechanism, from what the bundle says of it."""
        pairs, promised = release.guarantee.adjacency, release.guarantee.tradeoff
        if not isinstance(promised, Pure):
            return
        spec, law, epsilon = release.spec, release.description.law, Fraction(promised.eps)
        if isinstance(pairs, SemiAdjacent) and "people" in law:
            yield MeanOfEverybody(pairs, spec, epsilon)
        elif isinstance(pairs, SemiAdjacent):
            yield GradientEstimate(pairs, spec, epsilon)
        elif isinstance(pairs, SecretPairs):
            family = MeanGivenPublic if spec.adds_up else GradientGivenPublic
            yield family(pairs, spec, law["people"], epsilon)

    def checks(self, release: EstimateRelease) -> dict[str, bool]:
        """The promise, and the grid that values lie on."""
        return super().checks(release) | {"the values lie on the public grid": release.on_grid}

    # ---- what `congenial check` says -----------------------------------------------------------

    def examine(self, checked: EstimateCheck) -> Document:
        """The check of one section as plain data; from public parameters alone."""
        mechanism, persons = checked.mechanism, checked.persons
        return {
            **super().examine(checked),
            "per_person": (checked.guarantee if persons is None else persons).tradeoff.words,
            "estimates": list(mechanism.spec.names),
            "mechanism": mechanism.name,
            "per_record": number(mechanism.description.epsilon),
            "title": ", ".join(mechanism.spec.names),
            "accuracy_words": mechanism.accuracy,
            "units": mechanism.spec.units,
            **_noise(checked),
        }


def _pairs(
    section: EstimateSection, spec: EstimateSpec, records: RecordsBelieved, figures: Figures
) -> SecretPairs:
    """The secrets, what is believed of the records and what is public."""
    believed: tuple[Scenarios, ...] = (IndependentRecords("replace-one"),)
    if records.variance is not None:
        assert spec.between is not None
        width = Fraction(spec.between[1]) - Fraction(spec.between[0])
        means = [PublicMean(label, people, error**2) for label, people, error in records.means]
        believed = given_means(records.people, records.variance, width, means)
    return SecretPairs(
        figures.schema,
        believed,
        (*section.given, *(_fact(*mean) for mean in records.means)),
        "database" if records.variance is None else "query",
        figures if figures.statements else None,
    )


def _fact(label: str, people: int, error: Fraction) -> str:
    return f"{label}, a mean of {people} people known to within a normal error of {number(error)}"


def _made_up(mechanism: AnyEstimate, name: str) -> EstimateRelease:
    """A release of the same form about nobody."""
    return EstimateRelease(
        name, mechanism.description, mechanism.guarantee, "made up", False, mechanism.example
    )


def _noise(checked: EstimateCheck) -> Document:
    """The grid, and what the promise counts on: records that differ, or beliefs."""
    mechanism, persons = checked.mechanism, checked.persons
    if isinstance(mechanism, GradientEstimate):
        return {"records": mechanism.adjacency.records, "points": mechanism.spec.points}
    if isinstance(mechanism, MeanOfEverybody):
        return {"records": mechanism.adjacency.records, "unit": number(mechanism.unit)}
    assert persons is not None
    grid: Document = {"points": mechanism.spec.points}
    if isinstance(mechanism, MeanGivenPublic):
        grid = {"unit": number(mechanism.unit)}
    return {
        **grid,
        "delta_z": {"value": mechanism.bound.value, "measure": mechanism.bound.measure},
        "known": list(mechanism.pairs.facts),
        "level": mechanism.pairs.level,
        "persons": persons.explain(),
        "belief": meaning(mechanism.epsilon),
    }


KIND = EstimateKind()
