"""Accuracies of several tables: those a plan asks for, and those that `--want` asks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np

from congenial.data.workload import Workload
from congenial.errors import CongenialError, PlanError, StructureError
from congenial.kinds.several_tables import TablesSection
from congenial.mechanisms.joint_tables import JointTables
from congenial.mechanisms.several_tables_release import showing
from congenial.pairs.difference_types import DifferenceTypes
from congenial.privacy.conversions import zcdp_rho
from congenial.privacy.numbers import LARGEST_PARAMETER, number
from congenial.report.accuracy import Want, least
from congenial.tables.design import Design
from congenial.tables.intervals import half_width
from congenial.tables.joint_estimator import JointEstimator

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
    found: dict[int, float] = {}
    for text in section.accuracy:
        want = _read(section, text)
        at = _place(section, workload.tables, want)
        variance = (want.within / half_width(want.level)) ** 2
        found[at] = min(variance, found.get(at, variance))
    return found


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
        f"release '{section.name}': accuracy {want.text!r} is about none of its tables.",
        remedy=f"Name the table among `tables`, or ask about one of: {listed}.",
    )


def refuse_beyond(section: TablesSection, found: Design) -> Design:
    """Refuse accuracies that need more than a plan may promise, and say what it can have."""
    if found.promise <= LARGEST_PARAMETER:
        return found
    gaussian = found.law == "gaussian"
    factor = float(found.promise) / LARGEST_PARAMETER
    name = "rho" if gaussian else "epsilon"
    raise PlanError(
        f"release '{section.name}': these accuracies need {name} = {number(found.promise)}, and a "
        f"plan may promise at most {LARGEST_PARAMETER}, which protects nobody.",
        remedy=f"With errors {sqrt(factor) if gaussian else factor:.3g} times as large "
        f"{name} = {LARGEST_PARAMETER} is enough; ask for far larger ones, or publish the tables "
        "exactly.",
    )


# ---- --want --------------------------------------------------------------------------------------


def needed(
    section: TablesSection, made: JointTables, want: Want
) -> tuple[tuple[str, Fraction] | None, str]:
    """The parameter of the plan and the least value that meets a wish, or why there is none.

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
        return ("epsilon", least(want, lambda x: gaussian(zcdp_rho(x, delta)))), ""
    return ("rho", least(want, lambda x: gaussian(float(x)))), ""


def _shown(made: JointTables, want: Want) -> bool:
    """Whether the tables have the columns that are asked about."""
    schema = made.adjacency.schema
    asked = {schema.axis(name).base for name in want.margin or ()}
    return asked <= {*made.estimator.covariance.measurements.names}


def _scaled(made: JointTables, factor: Fraction) -> JointEstimator:
    scales = tuple(None if s is None else s * factor for s in made.estimator.scales)
    return replace(made.estimator, scales=scales)


def _error(estimator: JointEstimator, want: Want) -> float:
    """Half the width of the worst interval that is asked about."""
    if want.margin is not None:
        worst = float(np.max(estimator.deviations(want.margin).values, initial=0.0))
    else:
        worst = estimator.deviation_of_sum(*showing(estimator.workload, want.condition))
    return half_width(want.level) * worst
