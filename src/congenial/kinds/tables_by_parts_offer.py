"""Tables by parts from a plan: what they promise, how accurate they are; ready to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from congenial.data.source import POSTGRES_SCHEMES
from congenial.errors import PlanError, StructureError
from congenial.figures.invariants import Invariants
from congenial.kinds.kind import Offer, Setting, Tell, planned
from congenial.kinds.parted_run import NationRun
from congenial.kinds.tables import (
    aim_words,
    designed,
    named_tables,
)
from congenial.kinds.tables_by_parts import PartsSection
from congenial.ledger.ledger import Ledger
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.tables_calibration import TablesProblem
from congenial.privacy.guarantee import Guarantee
from congenial.report.tables_by_parts_report import render
from congenial.sampling.randomness import Randomness


@dataclass(frozen=True)
class PartsCheck:
    """What tables by parts would promise."""

    section: PartsSection
    mechanism: PartedTables
    guarantee: Guarantee


def build(plan: Setting, section: PartsSection, figures: Invariants) -> PartedTables:
    """The mechanism of one section over the databases that agree with `figures`."""
    _refuse_database(plan, section)
    if figures.bounds:
        raise PlanError(
            f"release '{section.name}': '{figures.bounds[0].label}' bounds a statistic, and "
            "tables by parts keep no bounds.",
            remedy="Leave out parts: several tables in memory keep bounds.",
        )
    adjacency = plan.adjacency(figures)
    try:
        asked = TablesProblem(adjacency, named_tables(plan.schema, section))
        made = asked.parted(designed(section, asked), aim_words(section), section.parts)
        _refuse_unknown_level(section, made)
        made.refuse_undrawable()
        return made
    except StructureError as reason:
        what = f"release '{section.name}': {reason.what}"
        raise StructureError(what, remedy=reason.remedy) from None


def _refuse_database(plan: Setting, section: PartsSection) -> None:
    """Parts are counted into files beside the bundle, which no PostgreSQL server writes."""
    if str(plan.source.address).startswith(POSTGRES_SCHEMES):
        raise PlanError(
            f"release '{section.name}': parts are not counted by PostgreSQL.",
            remedy="Export the records to Parquet files, or leave out parts.",
        )


def _refuse_unknown_level(section: PartsSection, made: PartedTables) -> None:
    """Parts must be areas that some table or figure shows: whole counts are settled there first."""
    shown = [*made.tables, *(one.by for one in made.figures.equalities)]
    if not any(section.parts in names for names in shown):
        raise PlanError(
            f"release '{section.name}': parts = '{section.parts}', which no table and no figure "
            "shows.",
            remedy=f"Add a table over {section.parts}, such as "
            f"{list(made.summed(made.tables[made.below[0]]))}.",
        )


def check(plan: Setting, section: PartsSection, figures: Invariants) -> PartsCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    return PartsCheck(section, made, planned(made.guarantee, plan, section.delta))


@contextmanager
def offer(
    plan: Setting,
    section: PartsSection,
    made: PartedTables,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """A run that reads, checks and draws part by part."""
    guarantee = planned(made.guarantee, plan, section.delta)
    run = NationRun(plan, made, section.name, randomness, progress, section.workers)

    def holds(now: Ledger) -> bool:
        known = now.figures
        return known == figures or build(plan, section, known) == made

    def made_up() -> Any:
        return replace(run.made_up(), guarantee=guarantee)

    given = (section.name, made.description, guarantee, None, made_up, render, holds)
    yield Offer(*given, run=run)
