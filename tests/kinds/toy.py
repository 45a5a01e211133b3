"""A kind of release in one file: how many people meet a condition, with double geometric noise.

[[release]] with `how_many = "age >= 18"`. It is small on purpose: it shows what a kind must say
(section, mechanism, release, kind), and CONTRIBUTING.md walks through it. Replacing one record
changes the number by at most 1, so noise p(u) ~ exp(-epsilon |u|) promises epsilon per person.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from congenial import Figures, Guarantee, Schema, SeededRandomness
from congenial.data.predicate import parse
from congenial.data.table import select
from congenial.data.tabulate import Microdata
from congenial.errors import BundleError, PlanError
from congenial.kinds.kind import Kind, Ready, Tell
from congenial.kinds.plan_sections import NamedSection, Positive
from congenial.kinds.planned_data import PlannedData
from congenial.mechanisms.released import RecordRelease
from congenial.pairs.pairs import Adjacency
from congenial.privacy.descriptions import RecordDescription
from congenial.report.release_page import release_page
from congenial.sampling import DoubleGeometric, Randomness, SystemRandomness

FILE = "how-many.csv"


# ---- 1. the section of a plan -------------------------------------------------------------------


class HowManySection(NamedSection):
    """[[release]] with `how_many`: a condition, and epsilon per person."""

    how_many: str
    epsilon: Positive


# ---- 2. the mechanism: public inputs, a promise, a draw -----------------------------------------


@dataclass(frozen=True)
class NoisyCount:
    """Adds p(u) ~ exp(-epsilon |u|) to the number of people who meet a condition."""

    pairs: Adjacency
    condition: str
    epsilon: Fraction

    @property
    def description(self) -> RecordDescription:
        law = {"condition": self.condition, "epsilon": str(self.epsilon)}
        return RecordDescription("noisy_count", self.pairs.schema, law, self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee.pure(self.epsilon, self.pairs)

    def release(self, truth: int, randomness: Randomness | None, name: str) -> CountRelease:
        source = SystemRandomness() if randomness is None else randomness
        value = truth + int(DoubleGeometric(self.epsilon).draw(source, 1)[0])
        return CountRelease(
            name, self.description, self.guarantee, source.label, source.publishable, value
        )


# ---- 3. what is released: its files, and what must hold of them ---------------------------------


@dataclass(frozen=True)
class CountRelease(RecordRelease):
    """One number."""

    kind: ClassVar[str] = "how many"
    contents: ClassVar[tuple[tuple[str, str], ...]] = ((FILE, "the condition and the number"),)
    usage: ClassVar[tuple[str, ...]] = ("release.value",)
    value: int

    @property
    def condition(self) -> str:
        return str(self.description.law["condition"])

    def payload(self) -> dict[str, bytes]:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(
            [("condition", "number"), (self.condition, self.value)]
        )
        return {FILE: out.getvalue().encode()}

    def to_arrow(self) -> Any:
        import pyarrow as pa

        return pa.table({"condition": [self.condition], "number": [self.value]})

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> CountRelease:
        rows = list(csv.reader(io.StringIO(payload[FILE].decode())))
        if len(rows) != 2 or rows[1][0] != common["description"].law["condition"]:
            raise BundleError(f"{FILE} does not hold the number it should.")
        return cls(**common, value=int(rows[1][1]))


# ---- 4. the kind: what plan, workflow, bundle, verify and commands ask --------------------------


class HowMany(Kind[HowManySection]):
    """The number of people who meet a condition."""

    key = "how_many"
    name = CountRelease.kind
    section = HowManySection
    release_class = CountRelease
    given_figures = False

    def build(self, plan: PlannedData, section: HowManySection, figures: Figures) -> NoisyCount:
        parse(section.how_many, plan.schema)  # refuses what cannot be read
        if figures.statements:
            raise PlanError(f"release '{section.name}' does not keep exact figures.")
        return NoisyCount(plan.adjacency(figures), section.how_many, section.epsilon)

    def ready(
        self,
        plan: PlannedData,
        section: HowManySection,
        built: NoisyCount,
        figures: Figures,
        data: Microdata,
        progress: Tell,
    ) -> Ready:
        truth = counted(data, plan.schema, section.how_many)
        return Ready(
            draw=lambda randomness: built.release(truth, randomness, section.name),
            made_up=lambda: built.release(0, SeededRandomness(0), section.name),
        )

    def rebuilt(self, release: CountRelease) -> Iterator[NoisyCount]:
        pairs = release.guarantee.adjacency
        assert isinstance(pairs, Adjacency)
        epsilon = Fraction(release.description.law["epsilon"])
        yield NoisyCount(pairs, release.condition, epsilon)

    def report(self, release: CountRelease, words: str) -> str:
        return release_page(PAGE, release, words)


PAGE = """{% extends "report.html" %}
{% set title = release.name %}
{% set contents = [("number", "The number"), ("promise", "The promise")] %}
{% block lead %}One number.{% endblock %}
{% block number %}
<p>{{ release.condition }}: {{ "{:,}".format(release.value) }} people, with noise.</p>
{% endblock %}
{% block promise %}
{% include "promise.html" %}
{% endblock %}
"""


def counted(data: Microdata, schema: Schema, condition: str) -> int:
    """CONFIDENTIAL: how many people meet the condition."""
    table = data.tabulate(schema.names)
    return int(table.counts[select(condition, schema, schema.names)].sum())
