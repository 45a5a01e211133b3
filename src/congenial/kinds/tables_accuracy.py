"""Accuracies of tables: those a plan asks for, those that `--want` asks about, and what to expect
of printed counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from congenial.data.workload import Workload
from congenial.errors import (
    BundleError,
    CongenialError,
    PlanError,
    PredicateError,
    SchemaError,
    StructureError,
)
from congenial.kinds.tables_section import TablesSection
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.released import LEVEL
from congenial.mechanisms.tables_release import TablesEstimator, showing
from congenial.pairs.difference_types import DifferenceTypes
from congenial.privacy.gaussian_draw import lattice_rho
from congenial.privacy.numbers import LARGEST_PARAMETER, number
from congenial.report.accuracy import Want, least, smallest
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.design import Design
from congenial.tables.intervals import ends_within, half_width, reliability
from congenial.tables.joint_estimator import Answer

DRAWS, ENOUGH = 3, 10_000  # of made-up people at most, and cells that are enough, to see what
# becomes of printed counts
LARGEST = 2_000_000  # cells of which that is quick
UNSTATED = 10  # times the least standard deviation asked for: what other tables are held to


def limits_of(
    section: TablesSection, workload: Workload, types: DifferenceTypes
) -> dict[int, float]:
    """The largest variance of a cell that the accuracies of a section allow, by table.

    The least promise leaves nothing for a table that nobody asked about. If it is no sum of one
    that somebody did, it is held to `UNSTATED` times the closest one, for a little more.
    """
    stated = _stated(section, workload)
    open_ = [b for b in range(len(workload.tables)) if any(row[b] for row in types.squares)]
    closest = min((stated[b] for b in open_ if b in stated), default=None)
    if closest is None:
        return stated
    margins = workload.margins
    sums = {b for b in open_ if any(margins[a].refines(margins[b]) for a in stated)}
    return {b: UNSTATED**2 * closest for b in open_ if b not in sums} | stated


def _stated(section: TablesSection, workload: Workload) -> dict[int, float]:
    assert section.accuracy is not None
    variances: dict[int, float] = {}
    for text in section.accuracy:
        want = _read(section, text)
        at = _place(section, workload.tables, want)
        variance = (want.within / half_width(want.level)) ** 2
        variances[at] = min(variance, variances.get(at, variance))
    return variances


def finds_pure(section: TablesSection) -> bool:
    """Whether the least epsilon without a delta is asked for."""
    return section.find == "epsilon" and section.delta is None


def _read(section: TablesSection, text: str) -> Want:
    try:
        want = Want.parse(text)
    except PlanError as reason:
        what = reason.what.replace("--want", "accuracy")
        raise PlanError(f"release '{section.name}': {what}", remedy=reason.remedy) from None
    if not want.within > 0:
        raise PlanError(
            f"release '{section.name}': accuracy {text!r}: no noise is that small.",
            remedy="Ask for more than 0, or publish the table exactly.",
        )
    return want


def _place(section: TablesSection, tables: Sequence[tuple[str, ...]], want: Want) -> int:
    for at, names in enumerate(tables):
        if want.margin is not None and set(names) == set(want.margin):
            return at
    listed = "; ".join(f"margin({', '.join(map(repr, names))})" for names in tables)
    raise PlanError(
        f"release '{section.name}': accuracy {want.text!r} is not about one of its tables.",
        remedy=f"Add the table to `tables`, or ask about one of: {listed}.",
    )


def refuse_beyond(section: TablesSection, found: Design) -> Design:
    """Refuse accuracies that need more than a plan may promise, and say what it can have."""
    if found.promise <= LARGEST_PARAMETER:
        return found
    gaussian = found.law == "gaussian"
    factor = float(found.promise) / LARGEST_PARAMETER
    name = "rho" if gaussian else "epsilon"
    raise PlanError(
        f"release '{section.name}': these accuracies need {name} = {number(found.promise)}, and "
        f"even the largest that a plan may state, {LARGEST_PARAMETER}, protects nobody.",
        remedy=f"With errors {sqrt(factor) if gaussian else factor:.3g} times as large "
        f"{name} = {LARGEST_PARAMETER} is enough; ask for far larger ones, or publish the tables "
        "exactly.",
    )


# ---- --want --------------------------------------------------------------------------------------

Needed = tuple[tuple[str, Fraction] | None, str]


def needed_of_one(want: Want, key: str, built: Callable[[Fraction], Mechanism]) -> Needed:
    """The parameter of the plan and the least value that meets a wish about one table, or why there
    is none. `built`: the mechanism with another value of the parameter.
    """
    try:
        return (key, smallest(want, built)), ""
    except (BundleError, PredicateError, SchemaError):
        return None, ""  # the table does not show what is asked about
    except StructureError as reason:
        return None, reason.what


def needed(section: TablesSection, made: MeasuredTables, want: Want) -> Needed:
    """The same for several tables, or one whose noise was found for an aim.

    Precisions keep their proportions; only the promise changes. Neither where no table shows it.
    """
    try:
        if not _shown(made, want):
            return None, ""
        now = _error(made.estimator, want)
    except StructureError as reason:
        return None, reason.what
    except CongenialError:
        return None, ""
    promise = Fraction(made.description.design["promise"])

    def gaussian(rho: float) -> float:
        return now * sqrt(float(promise) / rho) if rho > 0 else float("inf") if now else 0.0

    if made.description.family == "double_geometric":
        return ("epsilon", least(want, lambda x: _error(_scaled(made, x / promise), want))), ""
    if section.epsilon is not None or section.find == "epsilon":
        delta = float(section.delta or 0)
        return ("epsilon", least(want, lambda x: gaussian(lattice_rho(x, delta)))), ""
    return ("rho", least(want, lambda x: gaussian(float(x)))), ""


def _shown(made: MeasuredTables, want: Want) -> bool:
    """Whether the tables have the columns that are asked about."""
    schema = made.adjacency.schema
    asked = {schema.axis(name).base for name in want.margin or ()}
    return asked <= {schema.axis(name).base for names in made.description.tables for name in names}


def _scaled(made: MeasuredTables, factor: Fraction) -> TablesEstimator:
    laws = [
        replace(measured_table, scale=measured_table.scale * factor)
        for measured_table in made.description.measured
    ]
    description = replace(made.description, measured=tuple(laws))
    return MeasuredTables(made.adjacency, description).estimator


def _error(estimator: TablesEstimator, want: Want) -> float:
    """Half the width of the worst interval that is asked about."""
    if want.margin is not None:
        return float(np.max(estimator.reach(want.margin, want.level), initial=0.0))
    names, cells = showing(estimator.workload, want.condition)
    return estimator.reach_of_sum(names, cells, want.level)


# ---- printed counts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PrintedTrial:
    """Per table: root mean square error of printed counts, and their share inside intervals; no
    numbers (NaN) for a table without printed counts. `evenly`: how many cells of the made-up people
    would be caution and poor.
    """

    errors: tuple[float, ...]
    inside: tuple[float, ...]
    evenly: tuple[tuple[int, int], ...]


def try_printed(made: MeasuredTables) -> PrintedTrial | None:
    """What to expect of printed counts, tried on people made up from the public figures alone; None
    where no whole counts are printed, or it would take long.

    Whole counts depend on the data through their signs, so their error has no law that holds for
    every table. It is tried instead: made-up people are spread over the cells as evenly as the
    figures allow, the tables are drawn from them with the noise of the plan, fitted and compared.

    A few draws of a small table are few numbers, which by chance may lie far from what their
    standard deviation says. Printed counts and estimates share that chance. So draws only tell how
    much larger or smaller the error of printed counts is than that of the estimates; this is known.
    """
    if not made.description.whole or made.estimator.size > LARGEST:
        return None
    if made.description.magnitude is not None:  # sums have no size that figures tell
        return None
    people = made.estimator.rehearsal
    if isinstance(people, str):
        return None
    tables = made.description.tables
    squares, inside = np.zeros((2, len(tables))), np.zeros(len(tables))
    draws = min(DRAWS, -(-ENOUGH // made.estimator.size))
    for draw in range(draws):
        answered = _drawn(made, people, SeededRandomness(draw + 1))
        for at, names in enumerate(tables):
            counts, truth = answered.counts[at], people.table(names)
            if counts is None:
                squares[0, at] = inside[at] = np.nan
                continue
            reach = made.estimator.reach(names, LEVEL)
            low, high = ends_within(answered.estimates[at], reach)
            pair = (counts, answered.estimates[at])
            squares[:, at] += [float(np.mean((values - truth) ** 2)) / draws for values in pair]
            inside[at] += float(np.mean((low <= counts) & (counts <= high))) / draws
    errors = (_printed_error(made, names, *squares[:, at]) for at, names in enumerate(tables))
    evenly = (_evenly(made, names, people.table(names)) for names in tables)
    return PrintedTrial(tuple(errors), tuple(inside.tolist()), tuple(evenly))


def _evenly(made: MeasuredTables, names: tuple[str, ...], counts: Any) -> tuple[int, int]:
    """How many of these cells would be marked caution, and how many poor."""
    limits = made.description.support.schema.about.reliability
    marks = reliability(counts, made.estimator.deviations(names).values, limits)
    return int(np.sum(marks == "caution")), int(np.sum(marks == "poor"))


def _printed_error(
    made: MeasuredTables, names: tuple[str, ...], printed: float, estimated: float
) -> float:
    """Root mean square error of printed counts: that of the estimates, and what the fit changed.

    `printed`, `estimated`: mean squares in the draws. Rounding adds to a mean square; counts that
    cannot be negative are better by a factor.
    """
    variance = float(np.mean(made.estimator.deviations(names).values ** 2))
    if printed >= estimated:
        return float(np.sqrt(variance + printed - estimated))
    return float(np.sqrt(variance * printed / estimated))


def _drawn(made: MeasuredTables, people: Any, source: SeededRandomness) -> Answer:
    values = {
        mechanism.description.table: mechanism.draw(
            people.table(mechanism.description.table), source, 1
        )[0]
        for mechanism in made.mechanisms
    }
    return made.estimator.answer([values.get(names) for names in made.description.tables])
