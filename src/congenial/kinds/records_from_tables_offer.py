"""Records from tables, from a plan: what they promise; ready to choose, measure and fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError, SchemaError, StructureError
from congenial.figures.cells import Cells
from congenial.figures.invariants import Invariants
from congenial.kinds.kind import Offer, Setting, Tell, planned, refuse_other_units
from congenial.kinds.records_from_tables import TableRecordsSection
from congenial.ledger.ledger import Ledger
from congenial.pairs.adjacency import Adjacency
from congenial.pairs.sensitive_values import SensitiveValues, refuse_unpublished
from congenial.privacy.composition import joint_loss
from congenial.privacy.guarantee import Guarantee
from congenial.report.records_from_tables_report import render
from congenial.sampling.randomness import Randomness
from congenial.synthesis.from_tables.column_rules import ColumnRules
from congenial.synthesis.from_tables.figure_targets import KeptFigures
from congenial.synthesis.from_tables.rows_of_records import rows_apart
from congenial.synthesis.from_tables.table_records import TableRecords
from congenial.tables.promise import law_and_promise


@dataclass(frozen=True)
class RecordsCheck:
    """What records from tables would promise."""

    section: TableRecordsSection
    mechanism: TableRecords
    guarantee: Guarantee
    counted: str

    @property
    def pure_is_better(self) -> bool:
        """Whether epsilon without the delta of the plan would have less noise in every table."""
        if self.section.delta is None:
            return False
        made, budget = self.mechanism, self.mechanism.budget
        amount = Fraction(self.section.epsilon or 0) / rows_apart(made.adjacency, made.names)
        pure = replace(budget, law="geometric", amount=amount)
        both = [*zip(pure.column_scales, budget.column_scales, strict=True)]
        if budget.rounds:
            both.append((pure.pair_scale, budget.pair_scale))
        return all(
            pure.deviation(one) < budget.deviation(other) for one, other in both if one and other
        )


def pairs_of(
    plan: Setting, section: TableRecordsSection, figures: Invariants
) -> Adjacency | SensitiveValues:
    """What must look alike: the plan's pairs; where figures are about public columns only, one
    person's other values.
    """
    about = Cells(plan.schema, (*figures.equalities, *figures.bounds)).bases
    if not section.public or plan.unit.max_rows is not None or set(about) & set(section.synthesise):
        return plan.adjacency(figures)
    known = {*section.public, *about}
    return SensitiveValues(figures, tuple(name for name in plan.schema.names if name in known))


def build(plan: Setting, section: TableRecordsSection, figures: Invariants) -> TableRecords:
    """The mechanism of one section over the databases that agree with `figures`."""
    law, amount = law_and_promise(rho=section.rho, epsilon=section.epsilon, delta=section.delta)
    names = [*section.synthesise, *section.public]
    for name in names:
        plan.schema.attribute(name)  # raises when it is unknown
    refuse_unpublished(figures, tuple(section.public))
    try:
        KeptFigures(
            figures.of_rows, tuple(names)
        )  # refuses what is too large before look-alikes are
        made = TableRecords.calibrate(
            pairs_of(plan, section, figures),
            names,
            amount if law == "gaussian" else None,
            section.rounds,
            epsilon=amount if law == "geometric" else None,
            weights=section.weights,
            rules=_rules(section),
        )
        return replace(made, copies=section.copies, records=section.records)
    except (GuaranteeError, SchemaError, StructureError) as reason:
        what = f"release '{section.name}': {reason.what}"
        raise type(reason)(what, remedy=reason.remedy) from None


def _rules(section: TableRecordsSection) -> ColumnRules:
    tails = {name: one.model_dump(exclude_none=True) for name, one in section.tails.items()}
    return ColumnRules.of(section.coarse, section.quantiles, section.spikes, tails, section.made_up)


def check(plan: Setting, section: TableRecordsSection, figures: Invariants) -> RecordsCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    for name in made.names:
        made.law((name,))  # refused here is what no exact sampler draws
    counted = joint_loss([made.description], plan.adjacency(figures)).tradeoff.words
    return RecordsCheck(section, made, planned(made.guarantee, plan, section.delta), counted)


@contextmanager
def offer(
    plan: Setting,
    section: TableRecordsSection,
    made: TableRecords,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and count the data; a fit to tables of nobody is rehearsed before anything is spent."""
    progress("reading the data")
    guarantee = planned(made.guarantee, plan, section.delta)
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        refuse_other_units(figures, data)
        truths, n = made.fetch(data)
    progress("rehearsing the fit")
    made.rehearse(n)

    def holds(now: Ledger) -> bool:
        known = now.figures
        return known == figures or build(plan, section, known) == made

    yield Offer(
        section.name,
        made.description,
        guarantee,
        lambda: replace(
            made.release((truths, n), randomness, section.name, progress), guarantee=guarantee
        ),
        lambda: replace(made.made_up(n, section.name), guarantee=guarantee),
        render,
        holds,
    )
