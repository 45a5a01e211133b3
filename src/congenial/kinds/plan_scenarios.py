"""What a plan's `scenarios` are as a class of beliefs, and whether data can be told so.

Disclosure rules and dependence bounds (partially-private-data, examples 2 and 4, section 4.4) and
finite tables of databases, all at the level of databases, where promises add up.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from congenial.data.csv_text import read_rows
from congenial.errors import DataError, GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.figures.support import support
from congenial.kinds.given_public import (
    DependentBelieved,
    ListedBelieved,
    RuleBelieved,
    ScenariosSection,
)
from congenial.kinds.kind import Setting
from congenial.pairs.scenarios.count_rules import (
    BoundedCounts,
    CountRule,
    DependentCounts,
    k_anonymity,
    t_closeness,
)
from congenial.pairs.scenarios.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios.scenarios import IndependentRecords, Scenarios
from congenial.pairs.scenarios.statistic_laws import rational


def scenarios(plan: Setting, section: ScenariosSection, figures: Invariants) -> Scenarios:
    """The class of beliefs that a plan names; not for an assumed distance."""
    told = section.scenarios
    if isinstance(told, ListedBelieved):
        return _listed(plan, section, figures, told.file)
    if isinstance(told, RuleBelieved):
        _refuse_other_question(plan, section, told.of)
        refuse_other_number(figures, told.people)
        return BoundedCounts(told.people, _rule(told))
    if isinstance(told, DependentBelieved):
        _refuse_other_question(plan, section, told.of)
        refuse_other_number(figures, told.people)
        return DependentCounts(told.people, told.low, told.high, alike=True)
    return IndependentRecords("replace-one")


def refuse_false(plan: Setting, section: ScenariosSection, truth: Any) -> None:
    """Refuse data of which the public rule or number is not true, without saying by how much."""
    told = section.scenarios
    if isinstance(told, RuleBelieved | DependentBelieved) and int(truth.sum()) != told.people:
        raise DataError(
            f"release '{section.name}': scenarios are about {told.people} people, and the data "
            "have another number.",
            remedy="Give the number that is public.",
        )
    if isinstance(told, RuleBelieved):
        levels = plan.schema.axis(section.table[0]).levels
        low, high = _rule(told).range(told.people)
        if not low <= int(truth[list(levels).index(told.of)]) <= high:
            raise DataError(
                f"release '{section.name}': '{_rule(told).label}' is named as public, and it does "
                "not hold for these data.",
                remedy="Leave the rule out: { believe = 'independent records' }.",
            )


def _rule(told: RuleBelieved) -> CountRule:
    return k_anonymity(told.k) if told.k is not None else t_closeness(told.t, told.target)


def _refuse_other_question(plan: Setting, section: ScenariosSection, of: str) -> None:
    axes = plan.schema.axes(section.table)
    if len(axes) != 1 or len(axes[0].levels) != 2 or of not in axes[0].levels:
        raise GuaranteeError(
            f"release '{section.name}': these scenarios are about one question with two answers, "
            f"of which '{of}' is one.",
            remedy="Release the table of one attribute with two levels and name one of them; or "
            "believe = 'independent records'.",
        )


def refuse_other_number(figures: Invariants, people: int) -> None:
    """Refuse a number of people other than the published one, once it is published."""
    if figures.values is None or not figures.equalities:
        return
    known = support(figures, ()).totals
    if known is not None and len(known) == 1 and int(known[0]) != people:
        raise GuaranteeError(
            f"scenarios are about {people} people, and {int(known[0])} are published.",
            remedy="Give the published number.",
        )


def _listed(
    plan: Setting, section: ScenariosSection, figures: Invariants, address: str
) -> FiniteScenarios:
    """The databases of a file: columns `scenario`, `weight` and one for each person."""
    axis = plan.schema.axis(section.table[0])
    if len(section.table) != 1:
        raise GuaranteeError(
            f"release '{section.name}': listed databases hold one answer for each person.",
            remedy="Release the table of one attribute.",
        )
    rows = _rows(plan, address)
    people = [name for name in rows[0] if name not in ("scenario", "weight")]
    weights: dict[str, dict[tuple[int, ...], Any]] = {}
    for line, row in enumerate(rows, start=2):
        answers = [row[name] for name in people]
        if any(answer not in axis.levels for answer in answers):
            raise DataError(
                f"scenarios.file: row {line} of '{address}' has an answer that is no level of "
                f"'{axis.name}'.",
                remedy=f"Use the categories that the schema gives '{axis.name}'.",
            )
        database = tuple(axis.levels.index(answer) for answer in answers)
        weights.setdefault(row["scenario"], {})[database] = _weight(row["weight"], line, address)
    if not all(sum(given.values()) for given in weights.values()):
        raise DataError(
            f"scenarios.file: '{address}' has a scenario in which every weight is zero.",
            remedy="Give one of its databases a weight, or leave the scenario out.",
        )
    databases = sorted({one for given in weights.values() for one in given})
    found = FiniteScenarios.of(
        databases,
        {
            label: [given.get(one, 0) / sum(given.values()) for one in databases]
            for label, given in weights.items()
        },
    )
    _refuse_impossible(section, figures, found, address)
    return found


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
    section: ScenariosSection, figures: Invariants, found: FiniteScenarios, address: str
) -> None:
    """Refuse databases that contradict what is published, once it is."""
    known = support(figures, tuple(section.table))
    if known.totals is None:
        return
    cells = known.labels.size
    for row in found.possible:
        if not known.agrees([row.count(cell) for cell in range(cells)]):
            raise DataError(
                f"scenarios.file: '{address}' lists a database that does not agree with the "
                "published figures.",
                remedy="List databases that are possible given them.",
            )


def _rows(plan: Setting, address: str) -> list[dict[str, str]]:
    try:
        with (plan.folder / address).open(newline="", encoding="utf-8-sig") as file:
            rows = read_rows(file)
    except (OSError, UnicodeDecodeError, ValueError):
        rows = []
    if not rows or not {"scenario", "weight"} < set(rows[0]):
        raise DataError(
            f"scenarios.file: '{address}' cannot be read as a list of databases.",
            remedy="Give a CSV file with the columns scenario, weight and one for each person.",
        )
    return rows
