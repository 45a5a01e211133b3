"""A test of an odds ratio from a plan: what it promises and detects, and getting ready to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from congenial.data.tabulate import Microdata
from congenial.errors import CongenialError, GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.inference.odds_ratio import Alternative
from congenial.inference.odds_ratio_question import OddsRatioQuestion
from congenial.inference.odds_ratio_release import OddsRatioMechanism, OddsRatioRelease
from congenial.kinds.kind import Offer, Setting, Tell, planned, tabulate
from congenial.kinds.two_by_two import OddsRatioSection
from congenial.ledger.ledger import Ledger
from congenial.privacy.guarantee import Guarantee
from congenial.report.two_by_two_report import render
from congenial.sampling.randomness import Randomness, SeededRandomness


@dataclass(frozen=True)
class OddsRatioCheck:
    """What a test would promise, and its power where the margins are known."""

    section: OddsRatioSection
    mechanism: OddsRatioMechanism
    guarantee: Guarantee
    power: dict[float, float] | None


def build(plan: Setting, section: OddsRatioSection, figures: Invariants) -> OddsRatioMechanism:
    """The mechanism of one section given figures, with or without their values."""
    if plan.unit.max_rows is not None:
        raise GuaranteeError(
            f"release '{section.name}': the test of an odds ratio is about one record per person.",
            remedy="Leave max_rows out, or release a table instead.",
        )
    asked = section.test
    question = OddsRatioQuestion(
        asked.null_value,
        cast(Alternative, asked.alternative),
        asked.alpha,
        asked.level,
        asked.power_at,
    )
    target = Guarantee.pure(section.epsilon, plan.adjacency(figures))
    try:
        made = OddsRatioMechanism.calibrate(target, asked.odds_ratio, question)
        _ = made.test  # refuses margins that leave too much to weigh
    except CongenialError as reason:
        raise type(reason)(
            f"release '{section.name}': {reason.what}", remedy=reason.remedy
        ) from None
    return made


def check(plan: Setting, section: OddsRatioSection, figures: Invariants) -> OddsRatioCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    power = None if made.test is None else made.power()
    return OddsRatioCheck(section, made, planned(made.guarantee, plan), power)


@contextmanager
def offer(
    plan: Setting,
    section: OddsRatioSection,
    made: OddsRatioMechanism,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw."""
    axes = {plan.schema.axis(name).base for name in section.test.odds_ratio}
    names = [name for name in plan.schema.names if name in axes or name in figures.bases]
    progress("reading the data")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        table = tabulate(data, names, progress)
    made.counts.check(table)

    def holds(now: Ledger) -> bool:
        return now.figures == figures or build(plan, section, now.figures) == made

    yield Offer(
        section.name,
        made.description,
        planned(made.guarantee, plan),
        lambda: made.release(table, randomness, section.name),
        lambda: made_up(made, section.name),
        render,
        holds,
    )


def made_up(made: OddsRatioMechanism, name: str) -> OddsRatioRelease:
    """A release of the same form around a count of zero."""
    return made.around(0, 0.5, SeededRandomness(0), name)
