"""An estimate from a plan: calibrate, read the data, and get ready to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.kinds.convex_estimate import EstimateSection
from congenial.kinds.kind import Offer, Setting, Tell, planned
from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease, GradientEstimate
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.report.convex_estimate_report import render
from congenial.sampling.randomness import Randomness


@dataclass(frozen=True)
class EstimateCheck:
    """What an estimate would promise."""

    section: EstimateSection
    mechanism: GradientEstimate
    guarantee: Guarantee


def build(plan: Setting, section: EstimateSection, figures: Invariants) -> GradientEstimate:
    """The mechanism of one section given `figures`, with or without their values."""
    adjacency = plan.adjacency(figures)
    if not isinstance(adjacency, SemiAdjacent):
        raise GuaranteeError(
            f"release '{section.name}': an estimate is about one record per person.",
            remedy="Leave max_rows out.",
        )
    return GradientEstimate(adjacency, EstimateSpec.read(section.estimate), section.epsilon)


def check(plan: Setting, section: EstimateSection, figures: Invariants) -> EstimateCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    return EstimateCheck(section, made, planned(made.guarantee, plan))


@contextmanager
def offer(
    plan: Setting,
    section: EstimateSection,
    made: GradientEstimate,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw."""
    progress("reading the data")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        if figures.values is not None:
            names = [name for name in plan.schema.names if name in figures.bases]
            figures.refuse_other_data(data.tabulate(names, resume=plan.resume))
        numbers = made.spec.query(plan.schema).records(data).numbers
    made.per_record.log_density(made.spec.data(numbers))  # refuses what the numerics cannot do

    def draw() -> EstimateRelease:
        return made.release(numbers, randomness, section.name)

    yield Offer(
        section.name,
        made.description,
        planned(made.guarantee, plan),
        draw,
        lambda: made_up(made, section.name),
        render,
        lambda now: now.figures == figures,
    )


def made_up(made: GradientEstimate, name: str) -> EstimateRelease:
    """A release of the same form about nobody: the lowest corner of the grid."""
    values = tuple(float(v) for v in np.asarray(made.spec.statistic.box.low))
    return EstimateRelease(name, made.description, made.guarantee, "made up", False, values)
