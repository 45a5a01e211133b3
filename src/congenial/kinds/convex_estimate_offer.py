"""An estimate from a plan: calibrate, read the data, and get ready to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.kinds.convex_estimate import EstimateSection, RecordsBelieved
from congenial.kinds.kind import Offer, Setting, Tell, planned
from congenial.kinds.plan_scenarios import refuse_other_number
from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
from congenial.mechanisms.wasserstein.gradient_estimate import (
    EstimateRelease,
    GradientEstimate,
    GradientGivenPublic,
)
from congenial.mechanisms.wasserstein.mean_given_public import MeanGivenPublic
from congenial.mechanisms.wasserstein.secret_promise import person_promise
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.scenarios.group_means import PublicMean, given_means
from congenial.pairs.scenarios.scenarios import IndependentRecords, Scenarios
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.report.convex_estimate_report import render
from congenial.sampling.randomness import Randomness

Given = MeanGivenPublic | GradientGivenPublic
AnyEstimate = GradientEstimate | Given


@dataclass(frozen=True)
class EstimateCheck:
    """What an estimate would promise."""

    section: EstimateSection
    mechanism: AnyEstimate
    guarantee: Guarantee
    persons: Guarantee | None


def build(plan: Setting, section: EstimateSection, figures: Invariants) -> AnyEstimate:
    """The mechanism of one section given `figures`, with or without their values."""
    adjacency = plan.adjacency(figures)
    if not isinstance(adjacency, SemiAdjacent):
        raise GuaranteeError(
            f"release '{section.name}': an estimate is about one record per person.",
            remedy="Leave max_rows out.",
        )
    spec = EstimateSpec.read(section.estimate)
    if section.scenarios is None:
        return GradientEstimate(adjacency, spec, section.epsilon)
    refuse_other_number(figures, section.scenarios.people)
    pairs = _pairs(section, spec, section.scenarios, figures)
    given: type[Given] = MeanGivenPublic if spec.adds_up else GradientGivenPublic
    return given(pairs, spec, section.scenarios.people, section.epsilon)


def _pairs(
    section: EstimateSection, spec: EstimateSpec, told: RecordsBelieved, figures: Invariants
) -> SecretPairs:
    """The secrets, what is believed of the records and what is public."""
    believed: tuple[Scenarios, ...] = (IndependentRecords("replace-one"),)
    if told.variance is not None:
        assert spec.between is not None
        width = Fraction(spec.between[1]) - Fraction(spec.between[0])
        means = [PublicMean(label, people, error**2) for label, people, error in told.means]
        believed = given_means(told.people, told.variance, width, means)
    return SecretPairs(
        figures.schema,
        believed,
        (*section.given, *(_fact(*mean) for mean in told.means)),
        "database" if told.variance is None else "query",
        figures if figures.statements else None,
    )


def _fact(label: str, people: int, error: Fraction) -> str:
    return f"{label}, a mean of {people} people known to within a normal error of {number(error)}"


def check(plan: Setting, section: EstimateSection, figures: Invariants) -> EstimateCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    persons = _persons(plan, made, figures)
    return EstimateCheck(section, made, planned(made.guarantee, plan), persons)


def _persons(plan: Setting, made: AnyEstimate, figures: Invariants) -> Guarantee | None:
    """What is promised to anybody, where the promise is one given public information."""
    if isinstance(made, GradientEstimate):
        return None
    persons = person_promise(made.description, figures)
    return None if persons is None else planned(persons, plan)


@contextmanager
def offer(
    plan: Setting,
    section: EstimateSection,
    made: AnyEstimate,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw."""
    progress("reading the data")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        if figures.values is not None:
            names = [name for name in plan.schema.names if name in figures.bases]
            figures.refuse_other_data(data.tabulate(names))
        numbers = made.spec.query(plan.schema, made.cuts).records(data).numbers
    made.check_data(numbers)
    persons = _persons(plan, made, figures)

    def draw() -> EstimateRelease:
        return made.release(numbers, randomness, section.name)

    yield Offer(
        section.name,
        made.description,
        planned(made.guarantee, plan),
        draw,
        lambda: made_up(made, section.name),
        lambda release, promise: render(release, promise, persons),
        lambda now: now.figures == figures,
    )


def made_up(made: AnyEstimate, name: str) -> EstimateRelease:
    """A release of the same form about nobody."""
    return EstimateRelease(name, made.description, made.guarantee, "made up", False, made.example)
