"""Several tables from a plan: what they promise, how accurate they are; ready to draw."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.figures.invariants import Invariants
from congenial.kinds import several_tables_building
from congenial.kinds.kind import (
    Offer,
    Setting,
    Tell,
    planned,
    refuse_other_rows,
    refuse_other_units,
    tabulate,
)
from congenial.kinds.several_tables import TablesSection
from congenial.kinds.several_tables_accuracy import needed
from congenial.ledger.ledger import Ledger
from congenial.mechanisms.joint_tables import JointTables
from congenial.privacy.guarantee import Guarantee
from congenial.report.accuracy import Want
from congenial.report.several_tables_report import render
from congenial.sampling.randomness import Randomness

TOGETHER = 2**26  # common cells up to which all tables are counted at once


@dataclass(frozen=True)
class TablesCheck:
    """What several tables would promise and how accurate each would be."""

    section: TablesSection
    mechanism: JointTables
    guarantee: Guarantee
    wanted: tuple[str, Fraction] | None = None  # a parameter, and the value that a wish needs
    unanswered: str = ""  # why a wish about a sum that the tables show has no answer


def check(
    plan: Setting, section: TablesSection, figures: Invariants, wish: Want | None = None
) -> TablesCheck:
    """What it promises and how accurate it is, from public parameters alone."""
    mechanism = build(plan, section, figures)
    wanted, unanswered = (None, "") if wish is None else needed(section, mechanism, wish)
    return TablesCheck(
        section, mechanism, planned(mechanism.guarantee, plan, section.delta), wanted, unanswered
    )


def build(plan: Setting, section: TablesSection, figures: Invariants) -> JointTables:
    """Which tables are measured and how precisely, over databases that agree with the figures."""
    return several_tables_building.build(plan, section, figures)


@contextmanager
def offer(
    plan: Setting,
    section: TablesSection,
    mechanism: JointTables,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw."""
    guarantee = planned(mechanism.guarantee, plan, section.delta)
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        progress("reading the data")
        tables = counted(plan, data, mechanism, progress)

        def holds(now: Ledger) -> bool:
            known = now.figures
            if known == figures:
                return True
            return build(plan, section, known) == mechanism

        yield Offer(
            section.name,
            mechanism.description,
            guarantee,
            lambda: replace(
                mechanism.release_each(tables, randomness, section.name), guarantee=guarantee
            ),
            lambda: replace(mechanism.made_up(section.name), guarantee=guarantee),
            render,
            holds,
        )


def counted(plan: Setting, data: Microdata, mechanism: JointTables, progress: Tell) -> list[Table]:
    """CONFIDENTIAL: the counts of every measured table, checked against the figures.

    All at once where their common cells are few enough, otherwise table by table.
    """
    schema, figures = plan.schema, mechanism.adjacency.figures.bases
    shown = [schema.axes(one.description.table) for one in mechanism.mechanisms]
    bases = [{axis.base for axis in axes} for axes in shown]
    everything = in_order(plan, {*figures}.union(*bases))
    refuse_other_units(mechanism.adjacency.everything, data)

    def count(names: set[str]) -> Table:
        if mechanism.adjacency.counts_units:
            return data.tabulate_units(in_order(plan, names))
        return tabulate(data, in_order(plan, names), progress)

    if mechanism.adjacency.counts_units:
        refuse_other_rows(mechanism.adjacency.everything, data, progress)
    if schema.size(everything) <= TOGETHER:
        table = count({*everything})
        mechanism.check(table)
        return [table] * len(bases)
    mechanism.check(count({*figures}))
    return [count(names) for names in bases]


def in_order(plan: Setting, names: set[str]) -> list[str]:
    """Attributes in the order of the schema."""
    return [name for name in plan.schema.names if name in names]
