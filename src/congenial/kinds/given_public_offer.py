"""A table of counts given what is public, from a plan: read z, calibrate, and get ready to draw.

Public are the plan's exact figures, earlier counts in a file (the prior), and what `given` says in
words. The Wasserstein exponential mechanism (partially-private-data, Theorem 9) promises epsilon
given all that. The ledger counts what one replaced record does to the same release, which needs no
beliefs: the loss grows with the change of the table, and one record changes it by 2 in l1.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from congenial.data.csv_text import read_rows
from congenial.data.tabulate import Microdata
from congenial.errors import DataError, GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.figures.support import support
from congenial.kinds.given_public import (
    DependentBelieved,
    PriorCounts,
    RuleBelieved,
    ScenariosSection,
)
from congenial.kinds.kind import Offer, Setting, Tell, planned
from congenial.kinds.plan_scenarios import refuse_false, scenarios
from congenial.mechanisms.cell_errors import ERRORS
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.wasserstein.base_measure import (
    Base,
    congenial,
    naive,
    prior_congenial,
    published_sums,
)
from congenial.mechanisms.wasserstein.exponential import ORDINARY, WassersteinExponential
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta, person_promise
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.pairs.scenarios.scenarios import Scenarios, StatedLaws
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.report.given_public_report import Earlier, GivenPublicReport
from congenial.sampling.randomness import Randomness
from congenial.transport.delta_z import DistanceBound, delta_z

NUMBER = 24  # bytes of a count as text


@dataclass(frozen=True)
class ScenariosCheck:
    """What a release given public information would promise, and to whom."""

    section: ScenariosSection
    mechanism: WassersteinExponential
    guarantee: Guarantee
    persons: Guarantee
    earlier: Earlier | None


def build(plan: Setting, section: ScenariosSection, figures: Invariants) -> WassersteinExponential:
    """The mechanism of one section given `figures`, with or without their figures."""
    if plan.unit.max_rows is not None:
        raise GuaranteeError(
            f"release '{section.name}': scenarios are about one record per person.",
            remedy="Leave max_rows out, or release a table without scenarios.",
        )
    pairs = _pairs(plan, section, figures)
    made = WassersteinExponential(
        pairs,
        _distance(section, pairs),
        _base(plan, section, figures),
        section.epsilon,
        section.loss,
        ORDINARY[section.loss],
        tuple(section.table),
    )
    if section.basis == "theorem" and made.guarantee.basis != "theorem":
        raise GuaranteeError(
            f"release '{section.name}' asks for basis = 'theorem', and its promise is an "
            f"{made.guarantee.basis}.",
            remedy="Use loss = 'l1' and scenarios that give the distance; or leave basis out.",
        )
    return made


def check(plan: Setting, section: ScenariosSection, figures: Invariants) -> ScenariosCheck:
    """What it promises, from public parameters alone."""
    made = build(plan, section, figures)
    return ScenariosCheck(
        section,
        made,
        planned(made.guarantee, plan),
        _persons(plan, made, figures),
        _earlier(plan, section),
    )


def _persons(plan: Setting, made: WassersteinExponential, figures: Invariants) -> Guarantee:
    """What is promised without any assumption about beliefs."""
    persons = person_promise(made.description, figures)
    assert persons is not None
    return planned(persons, plan)


@contextmanager
def offer(
    plan: Setting,
    section: ScenariosSection,
    made: WassersteinExponential,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw."""
    axes = [plan.schema.axis(name).base for name in section.table]
    names = [name for name in plan.schema.names if name in axes or name in figures.bases]
    progress("reading the data")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        table = data.tabulate(names)
    if figures.values is not None:
        figures.refuse_other_data(table)
    truth = table.marginal(section.table).counts.reshape(-1)
    refuse_false(plan, section, truth)
    law = made.law(truth)
    _ = law.groups if isinstance(law, TableLaw) else law.start.groups  # refuses what is too wide
    prepared = GivenPublicReport(_persons(plan, made, figures), _earlier(plan, section))

    def draw() -> ValuesRelease:
        return made.release(truth, randomness, section.name)

    yield Offer(
        section.name,
        made.description,
        planned(made.guarantee, plan),
        draw,
        lambda: made_up(made, section.name),
        prepared.render,
        lambda now: now.figures == figures,
        made.base.cells * NUMBER,
    )


def made_up(made: WassersteinExponential, name: str) -> ValuesRelease:
    """A release of the same form in which nobody is counted."""
    zeros = (0,) * made.base.cells
    return ValuesRelease(name, made.description, made.guarantee, "made up", False, zeros)


# ---- what is believed ----------------------------------------------------------------------------


def _pairs(plan: Setting, section: ScenariosSection, figures: Invariants) -> SecretPairs:
    told = section.scenarios
    given = list(section.given)
    if isinstance(section.base_measure, PriorCounts):
        given.append(f"the counts in '{Path(section.base_measure.prior).name}'")
    if isinstance(told, RuleBelieved | DependentBelieved):
        given.append(f"what is counted is {section.table[0]} = {told.of}")
    scenario: Scenarios
    if told.distance is None:
        scenario = scenarios(plan, section, figures)
    else:
        ground = f" ({told.because})" if told.because else ""
        scenario = StatedLaws(
            "one person's answer moves the law of the table by at most "
            f"{number(told.distance)} in {section.loss}{ground}"
        )
    return SecretPairs(
        plan.schema,
        (scenario,),
        tuple(given),
        "query" if told.distance is not None else "database",
        figures if figures.statements else None,
    )


def _distance(section: ScenariosSection, pairs: SecretPairs) -> DistanceBound:
    """Delta_z of the scenarios, in records; or as assumed, in the norm of the loss."""
    if section.scenarios.distance is None:
        return delta_z(pairs)
    return assumed_delta(section.scenarios.distance, section.loss)


# ---- what is known of the table ------------------------------------------------------------------


def _base(plan: Setting, section: ScenariosSection, figures: Invariants) -> Base:
    table = tuple(section.table)
    cells = plan.schema.size(table)
    if section.base_measure == "naive":
        return naive(cells)
    known = support(figures, table)
    if known.degrees_of_freedom == 0:
        raise GuaranteeError(
            f"nothing is left to protect in the table over {', '.join(table)}: the published "
            "figures fix every cell.",
            remedy="Publish the table exactly, or drop a figure.",
        )
    totals = published_sums(known)
    before = _earlier(plan, section)
    if before is None:
        return congenial(cells, totals)
    return prior_congenial(cells, totals, before.counts, alpha=before.alpha, kappa=before.kappa)


def _earlier(plan: Setting, section: ScenariosSection) -> Earlier | None:
    """What the base measure leans on, if it does."""
    told = section.base_measure
    if not isinstance(told, PriorCounts):
        return None
    counts = _counts(plan, section, told.prior)
    return Earlier(Path(told.prior).name, counts, told.alpha, told.kappa)


def _counts(plan: Setting, section: ScenariosSection, address: str) -> tuple[int, ...]:
    """The counts of an earlier release in the order of the table; below zero they count as zero."""
    axes = plan.schema.axes(section.table)
    rows, labels = _rows(plan.folder / address, address, section.table)
    found: dict[tuple[str, ...], int] = {}
    for line, row in enumerate(rows, start=2):
        cell = tuple(row[label] for label in labels)
        known = all(label in axis.levels for label, axis in zip(cell, axes, strict=True))
        whole = re.fullmatch(r"-?\d{1,18}", (row["count"] or "").strip())
        if not known or whole is None or cell in found:
            raise DataError(
                f"base_measure.prior: row {line} of '{address}' repeats a cell, or has a label "
                "that is not in the schema or a count that is not whole.",
                remedy="Give each cell of the table once.",
            )
        found[cell] = max(int(whole[0]), 0)
    missing = plan.schema.size(tuple(section.table)) - len(found)
    if missing:
        raise DataError(
            f"base_measure.prior: '{address}' lacks {missing} cells of the table.",
            remedy="Give each cell of the table once; a count of 0 is written as 0.",
        )
    return tuple(found[cell] for cell in product(*(axis.levels for axis in axes)))


def _rows(
    place: Path, address: str, table: Sequence[str]
) -> tuple[list[dict[str, str]], tuple[str, ...]]:
    """The lines of a CSV file with a column for each axis and one for the count, and the names of
    the axes' columns: files that say how far counts may be off call some of them otherwise.
    """
    try:
        with place.open(newline="", encoding="utf-8-sig") as file:
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
            f"base_measure.prior: '{address}' lacks rows or one of the columns "
            f"{', '.join(wanted)}.",
            remedy="Give one row per cell of the table, with its labels and its count.",
        )
    return rows, labels
