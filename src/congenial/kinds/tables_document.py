"""The check of protected tables as plain data; `report/words/check_tables.txt` has the words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from congenial.data.arguments import takes
from congenial.data.magnitude import Magnitude
from congenial.errors import CongenialError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.figures.support import support
from congenial.inference.feasibility import (
    Outlook,
    expected_minutes,
    outlook,
    outlook_of_tables,
    sampler_of_cells,
    sampler_of_tables,
    usual_minutes,
)
from congenial.kinds.kind import Document, examine_inference
from congenial.kinds.tables_accuracy import PrintedTrial, try_printed
from congenial.kinds.tables_section import TablesCheck
from congenial.mechanisms.acceptance_pilot import acceptance
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.measured_tables import MeasuredTables, whose_number
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.one_table import OneTable
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.released import LEVEL
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS, Adjacency
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import conditions, joint_loss, largest_change
from congenial.privacy.description import Description, Norm
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated
from congenial.report.accuracy import cell_deviation, error_rows, less_noise
from congenial.tables.sparse_tables import WORDS

NOT_YET = "the exact figures are not published yet"  # as `tables.joint_estimator` says it
SUMS_WHY = "its models are for counts of people, and these are sums of a number"
SUMS_REMEDY = "Use the estimates with their intervals."
_ERROR = ("what", "sums", "standard_deviation", "within", "level")
_ROW = ("max_rows", "units", "slots", "noise")
_COST = (
    *("label", "loss", "loss_without", "deviation", "deviation_without", "trivial"),
    "told_by_others",
)
AIMS = {
    "keep": "the most detailed table",
    "even": "every table, relative to what it could have alone",
    "largest": "the table with the largest relative error",
}
_PARAMETERS = {"Gaussian": "mu", "ZeroConcentrated": "rho", "GaussianDraw": "rho"}
_SCALES: dict[Norm, str] = {
    "l2": "Variance per cell",
    "gauge": "Epsilon per unit of gauge",
    "length": "Epsilon per unit of the l2 norm, squared",
    "linf": "Epsilon per unit of the largest entry",
}
_NORM_WORDS: dict[Norm, str] = {
    "l1": "l1",
    "l2": "l2 squared",
    "gauge": "gauge of the hull",
    "length": "l2 squared",
    "linf": "largest entry",
}


def examine(one: TablesCheck) -> Document:
    """What is special about tables: noise, price, and how accurate each would be."""
    mechanism = one.mechanism
    description = mechanism.description
    whose = whose_number(mechanism.adjacency)
    sums = [
        _summed(measure.magnitude, whose)
        for measure in description.measures
        if measure.magnitude is not None
    ]
    document = {
        "title": _title(one),
        **({"units": True} if description.units else {}),
        **({"sums": sums, "counts": description.magnitude is None} if sums else {}),
        "law": description.measured[0].law,
        "keep": list(description.keep),
        "errors": [],
        "figure_costs": [],
        **_design(description.design),
        **(
            _in_parts(mechanism)
            if isinstance(mechanism, PartedTables)
            else _at_once(one, mechanism)
        ),
        "wanted": None if one.wanted is None else dict([one.wanted]),
        "unanswered": one.unanswered or None,
        "no_accuracy": "Errors depend on the data, so none can be stated in advance.",
    }
    return document | {"whole_counts_words": _whole(document)}


def _summed(number: Magnitude, whose: str) -> Document:
    """The number that is summed, and what its bounds mean."""
    return {
        **number.to_dict(),
        "words": number.words_of(whose),
        "whose": whose,
        "label": number.label,
        "largest": max(abs(float(number.low)), abs(float(number.high))),
    }


def _title(one: TablesCheck) -> str:
    tables, measures = one.mechanism.description.tables, one.mechanism.description.measures
    numbers = [measure.magnitude for measure in measures if measure.magnitude is not None]
    summed = list(dict.fromkeys(number.column for number in numbers))
    if summed:
        many = f"{len(tables)} tables" if len(tables) > 1 else f"table {_named(tables[0])}"
        counts = "counts and " if len(measures) > len(numbers) else ""
        by = "" if numbers[0].within is None else f" by {numbers[0].within[0]}"
        return f"{many}, {counts}sums of {' and '.join(summed)}{by}"
    if isinstance(one.mechanism, PartedTables):
        return f"{len(tables)} tables, in {len(one.mechanism.parts.labels):,} parts"
    if len(tables) > 1:
        return f"{len(tables)} tables"
    units = ", counted in units" if one.mechanism.description.units else ""
    return f"table {_named(tables[0])}{units}"


def _named(names: tuple[str, ...]) -> str:
    return " x ".join(names) or "total"


def _at_once(one: TablesCheck, made: MeasuredTables) -> Document:
    """Tables that are drawn in one piece: each one's errors, and what to infer from them."""
    law: Document = {}
    if made.beside:
        pass  # each measure has a law, and its tables have rows of their own
    elif made.only is not None and made.description.magnitude is not None:
        law = {"errors": _error_rows(made.only)}
    elif made.only is not None:
        law = _one_law(one, made, made.only)
    return {
        "tables": _tables(made),
        "whole_counts": _why_none(made),
        "how_counted": WORDS if made.estimator.sparse else "",
        **law,
        "inference": _inference(made),
    }


def _in_parts(made: PartedTables) -> Document:
    """Tables that are drawn part by part: how precise each is on average, without its cells."""
    design = made.description.design
    rows = [
        {
            "table": list(names),
            "cells": made.schema.size(names),
            "measured": made.scales[at] is not None,
            "noise": made.scales[at],
            "whole_counts": True,
            "below": at in made.below,
            "standard_deviation": design["mean_variances"][at] ** 0.5,
        }
        for at, names in enumerate(made.tables)
    ]
    parts = {"by": made.parts.parts, "many": len(made.parts.labels)}
    return {"tables": rows, "whole_counts": None, "parts": parts}


def _design(design: Mapping[str, Any]) -> Document:
    """How the noise was shared out over the tables."""
    if not design:
        return {}
    return {
        "aim": design["aim"],
        "aim_words": AIMS.get(design["aim"], design["aim"]),
        "types": design["types"],
        "certificate": design["certificate"],
        "design": design["words"],
    }


def _why_none(made: MeasuredTables) -> str | None:
    """Why no whole counts are printed; None where they are."""
    if not made.description.whole:
        number = made.description.magnitude
        if number is not None and number.lowest < 0:
            return "sums may be negative"
        real = made.description.measured[0].continuous
        return "the noise is real numbers" if real else "nonnegative = 'no'"
    return made.estimator.why_no_counts or None


def _tables(made: MeasuredTables) -> list[Document]:
    """What to expect of each table: its noise, and the worst cell's error."""
    rows = []
    for measure in made.measures:
        trial = try_printed(measure)
        of = {"of": measure.description.of} if made.beside else {}
        rows += [_row(measure, at, trial) | of for at in range(len(made.description.tables))]
    return rows


def _row(made: MeasuredTables, at: int, trial: PrintedTrial | None) -> Document:
    description, estimator = made.description, made.estimator
    names = description.tables[at]
    laws = {law.table: law for law in description.measured}
    row: Document = {
        "table": list(names),
        "cells": description.support.schema.size(names),
        "measured": names in laws,
        "noise": laws[names].scale if names in laws else None,
        "whole_counts": estimator.has_counts and estimator.prints(names),
        "printed_error": None if trial is None else _known(trial.errors[at]),
        "printed_inside": None if trial is None else _known(trial.inside[at]),
        "evenly": None if trial is None else list(trial.evenly[at]),
    }
    law = description.only_law
    if law is not None and law.nonnegative:  # errors depend on the data
        return row | {
            "standard_deviation": None,
            "basis": None,
            "within": None,
            "level": LEVEL,
        }
    deviations, reach = estimator.deviations(names), estimator.reach(names, LEVEL)
    unit = 1 if description.magnitude is None else float(description.magnitude.step)
    return row | {
        "standard_deviation": unit * float(deviations.values.max(initial=0.0)),
        "basis": deviations.basis,
        "within": unit * float(reach.max(initial=0.0)),
        "level": LEVEL,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _inference(made: MeasuredTables) -> Document:
    """Whether `congenial infer` will work on the bundle, and about how long it takes."""
    description, only = made.description, made.only
    if description.magnitude is not None:
        return examine_inference(Outlook("none", SUMS_WHY, SUMS_REMEDY))
    if only is None:
        cells = made.estimator.size
        return examine_inference(
            outlook_of_tables(description), usual_minutes(cells, sampler_of_tables(description))
        )
    outlook_of_law = outlook(only)
    if outlook_of_law.slow:
        return examine_inference(outlook_of_law, expected_minutes(only))
    sampler = sampler_of_cells(only) if outlook_of_law.way == "cells" else "lines"
    return examine_inference(outlook_of_law, usual_minutes(math.prod(only.shape), sampler))


# ---- one measured table ----------------------------------------------------------------------


def _one_law(one: TablesCheck, tables: MeasuredTables, made: Mechanism) -> Document:
    """The law of one table, what it was calibrated to, and what each figure costs."""
    description = made.description
    norm, law_support = description.norm, support(description.support, description.table)
    sensitivity = largest_change(description, made.adjacency)
    return {
        "table": list(description.table),
        "cells": int(law_support.labels.size),
        "degrees_of_freedom": law_support.degrees_of_freedom,
        "sensitivity": {
            "norm": _NORM_WORDS[norm],
            "value": sensitivity.value,
            "footing": sensitivity.footing,
        },
        "mechanism": description.mechanism,
        "sampler": made.sampler,
        "scale": _scale(description),
        "eps_per_cell": description.rate if norm == "l1" else None,
        "sigma_squared": description.variance if norm == "l2" else None,
        "epsilon_per_gauge": description.rate if norm == "gauge" else None,
        **({"rate_squared": description.scale} if norm == "length" else {}),
        **({"rate": description.rate} if norm == "linf" else {}),
        "nonnegative": _nonnegative(tables, made),
        "structure": law_support.structure,
        "groups": law_support.words,
        "normaliser_price": _normaliser_price(made, sensitivity.value),
        **_costs(made),
        "errors": _error_rows(made),
        "fitted": _fitted(tables),
        "less_noise": _less_noise(one, made),
    }


def _error_rows(made: Mechanism) -> list[Document]:
    return [_picked(row, _ERROR) for row in error_rows(made)]


def _nonnegative(tables: MeasuredTables, made: Mechanism) -> str:
    """What keeps printed counts from being negative."""
    if made.nonnegative:
        return "condition"
    return "project" if tables.description.whole else "no"


def _fitted(tables: MeasuredTables) -> list[list[str]] | None:
    """The tables that whole counts are fitted to, from coarse to fine; None where none are."""
    estimator = tables.estimator
    if not isinstance(estimator, OneTable) or not estimator.has_counts:
        return None
    return None if estimator.order is None else [list(names) for names in estimator.fitted_tables]


def _picked(row: object, names: tuple[str, ...]) -> Document:
    return {name: getattr(row, name) for name in names}


def _normaliser_price(made: Mechanism, sensitivity: Fraction) -> Document | None:
    """What conditioning on counts >= 0 adds to the loss, where it adds something."""
    if not isinstance(made, CongenialCounts):
        return None
    return {
        "adjacency": made.description.rate * sensitivity,
        "epsilon": made.price.value,
        "gamma": made.price.value / (made.description.rate * sensitivity),
        "basis": made.price.basis,
        "proved_bound": made.price.bound,
        "bounds_kept": _bounds_kept(made),
    }


def _bounds_kept(made: CongenialCounts) -> Document | None:
    """Published bounds on which counts are conditioned, and how often draws keep them."""
    limits_of_table = made.limits
    if not limits_of_table.boxed and not limits_of_table.sums:
        return None
    return {
        "cells": limits_of_table.boxed,
        "sums": limits_of_table.sums,
        "acceptance": acceptance(made),
    }


def _costs(made: Mechanism) -> Document:
    """What each published figure costs, with and without it, and all of them together."""
    each = figure_costs(made)
    together = cost_of_all(made, each)
    rows = [*each, *([] if together is None else [together])]
    costs: Document = {
        "figure_costs": [_cost(_picked(row, _COST)) for row in rows],
        "cost_of_all_figures": None if together is None else _picked(together, _COST),
        "parameter": _PARAMETERS.get(type(made.guarantee.tradeoff).__name__, "epsilon"),
    }
    if made.adjacency.metric in (ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS):
        costs["row_costs"] = [_picked(cost, _ROW) for cost in row_costs(made)]
    return costs


def _less_noise(one: TablesCheck, made: Mechanism) -> Document | None:
    """A mechanism that "auto" does not pick and that would have less noise."""
    less = less_noise(made) if one.section.mechanism == "auto" else None
    return None if less is None else {"mechanism": less[0], "standard_deviation": less[1]}


# ---- for people ------------------------------------------------------------------------------


def _scale(description: Any) -> list[tuple[str, str]]:
    """The parameter of the noise, under the name that its norm gives it."""
    norm = description.norm
    if norm == "l1":
        scale_words = f"{number(description.rate)} (a parameter of the noise, not the promise)"
        return [("Epsilon per cell", scale_words)]
    names = {"l2": "variance", "length": "scale"}
    return [(_SCALES[norm], number(getattr(description, names.get(norm, "rate"))))]


def _whole(one: Document) -> str:
    """What is printed of counts that cannot be negative."""
    if one.get("nonnegative") == "condition":
        return "drawn so that none is negative"
    if one["whole_counts"] == NOT_YET:
        return "known once the exact figures are published"
    if one["whole_counts"] is not None:
        return f"none, estimates are printed: {one['whole_counts']}"
    if "sums" in one:
        return "sums are fitted so that tables add up, none is negative, and all are in steps"
    if len(one["tables"]) == 1 and "parts" not in one:
        return (
            "fitted to the drawn values; other sums come from the drawn values, which are unbiased"
        )
    matched = f" and every {' and '.join(one['keep'])}" if one["keep"] else ""
    fitted = (
        f"fitted so that every table{matched} is a sum of them; other sums come from the estimates"
    )
    return f"{fitted}. {one['how_counted']}" if one.get("how_counted") else fitted


def _cost(cost: Document) -> Document:
    """What one figure costs, with the words of its row."""
    without, error = cost["loss_without"], cost["deviation_without"]
    return cost | {
        "loss_words": "-" if without is None else f"{without:.4g} -> {cost['loss']:.4g}",
        "deviation_words": "-" if error is None else f"{error:.3g} -> {cost['deviation']:.3g}",
        "note": _cost_note(cost),
        "seems_to_help": _seems_to_help(cost),
    }


def _cost_note(cost: Document) -> str:
    if cost["loss_without"] is None:
        return "cannot be built without it"
    if cost["deviation_without"] is None:
        return "errors depend on the data"
    if cost["trivial"]:
        others = cost["told_by_others"]
        return "follows from the other figures" if others else "changes nothing"
    return "less noise, less protection" if _seems_to_help(cost) else ""


def _seems_to_help(cost: Document) -> bool:
    """Whether a number is smaller with the figure than without it."""
    pairs = (("loss", "loss_without"), ("deviation", "deviation_without"))
    return any(
        cost[with_it] is not None and cost[without] is not None and cost[with_it] < cost[without]
        for with_it, without in pairs
    )


# ---- what each figure costs: the release as planned beside the same without it -------------------


ALL_TOGETHER = "all figures together"
LARGEST_TABLE = 5_000_000  # cells, beyond which plans with a figure less are not worked out


@dataclass(frozen=True)
class FigureCost:
    """One figure of one release, or all of them, with and without it.

    `loss`: what the same noise promises with the figure published, `loss_without` if it were not,
    both in the parameter of the promise. `deviation`, `deviation_without`: standard deviation of
    the noisiest cell, at equal promise. None where the release cannot be built without the figure,
    or where errors depend on the data. `told_by_others`: the other figures tell it as well, so that
    leaving it out alone changes nothing.
    """

    label: str
    loss: float
    loss_without: float | None
    deviation: float | None
    deviation_without: float | None
    told_by_others: bool = False

    @property
    def trivial(self) -> bool:
        """Whether publishing it changes nothing (congenial-dp, Example 5.1)."""
        same = self.loss == self.loss_without and self.deviation == self.deviation_without
        return same and self.deviation is not None


def figure_costs(mechanism: Mechanism) -> list[FigureCost]:
    """The cost of every figure and bound that could be left out, in the order of the plan."""
    priced = _priced(mechanism)
    if not priced or prod(mechanism.shape) > LARGEST_TABLE:
        return []
    deviation = cell_deviation(mechanism)
    return [_cost_of_figure(mechanism, statement, deviation) for statement in priced]


def _priced(mechanism: Mechanism) -> list[Statement]:
    """The figures and bounds that could be left out: not rules that are zero by definition, nor the
    number of people where records are replaced, which is public in any case.
    """
    replaced = mechanism.adjacency.metric == "replace-one"
    stated = mechanism.adjacency.everything.told
    return [s for s in stated if s.relation != "zero" and not (replaced and s.is_total)]


def cost_of_all(mechanism: Mechanism, costs: Sequence[FigureCost]) -> FigureCost | None:
    """The cost of all figures and bounds together; None where there is at most one.

    Costs of single figures do not add up: of two figures that tell the same, each looks free.
    `costs` are these.
    """
    if len(costs) < 2:
        return None
    none_left = _without(mechanism.adjacency.everything, _priced(mechanism))
    return _compared(mechanism, ALL_TOGETHER, none_left, costs[0].deviation)


def _cost_of_figure(
    mechanism: Mechanism, statement: Statement, deviation: float | None
) -> FigureCost:
    figures = mechanism.adjacency.everything
    others = _without(figures, [statement])
    comparison = _compared(mechanism, statement.label, others, deviation)
    figure = statement.relation == "="
    return replace(comparison, told_by_others=figure and _ranks(others) == _ranks(figures))


def _ranks(figures: Figures) -> tuple[int, int]:
    """Independent figures about rows and about units."""
    return figures.rank, 0 if figures.of_units is None else figures.of_units.rank


def _compared(
    mechanism: Mechanism, label: str, figures: Figures, deviation: float | None
) -> FigureCost:
    """The release as planned beside the same release under fewer figures."""
    tradeoff, description = mechanism.guarantee.tradeoff, mechanism.description
    loss = _parameter(tradeoff)
    try:
        adjacency = _given(mechanism.adjacency, figures)
        other = _alike(mechanism, Guarantee(adjacency, tradeoff))
        law = replace(description, support=adjacency.figures)
        before = _parameter(joint_loss([law], adjacency).tradeoff)
        if description.nonnegative:
            loss, before = _comparable(description, mechanism.adjacency, law, adjacency)
    except CongenialError:
        return FigureCost(label, loss, None, deviation, None)
    return FigureCost(label, loss, before, deviation, cell_deviation(other))


def _comparable(
    law: Description, pairs: Adjacency, other: Description, others: Adjacency
) -> tuple[float, float]:
    """Losses of counts with and without a figure: both enumerated, or both by the proved bound."""
    with_it, without = conditions(law, pairs), conditions(other, others)
    if with_it.enumerated is None or without.enumerated is None:
        with_it, without = (replace(condition, enumerated=None) for condition in (with_it, without))
    return float(with_it.loss(law.scale)), float(without.loss(other.scale))


def _alike(mechanism: Mechanism, target: Guarantee) -> Mechanism:
    """The same kind of mechanism for another target."""
    description = mechanism.description
    alike: Mechanism = calibrate(type(mechanism), target, description.table)
    return alike


def _given(adjacency: Adjacency, figures: Figures) -> Adjacency:
    """The same unit of protection under other figures."""
    if isinstance(adjacency, SeveralRows):
        return replace(adjacency, published=figures)
    return SemiAdjacent(figures)


def _without(figures: Figures, left_out: Sequence[Statement]) -> Figures:
    units = figures.of_units
    if units is not None:
        units = _without(
            units, [replace(statement, units=False) for statement in left_out if statement.units]
        )
    left = [i for i, s in enumerate(figures.statements) if s not in left_out]
    values = None if figures.values is None else tuple(figures.values[i] for i in left)
    statements = tuple(figures.statements[i] for i in left)
    none_left = units is None or not units.statements
    return Figures(figures.schema, statements, values, None if none_left else units)


def _parameter(tradeoff: Tradeoff) -> float:
    """The one number of a promise: epsilon, rho or mu."""
    if isinstance(tradeoff, ZeroConcentrated):
        return float(tradeoff.rho)
    if isinstance(tradeoff, Gaussian):
        return float(tradeoff.mu)
    return float(tradeoff.eps) if isinstance(tradeoff, Pure | Approximate) else float("nan")


# ---- what each row that a unit may have costs ----------------------------------------------------


MOST_LISTED = 5  # numbers of rows, the plan's own and one more among them


@dataclass(frozen=True)
class RowCost:
    """Units with at most `max_rows` rows: how far look-alikes are apart, and the noise it takes.

    `noise`: standard deviation at equal promise, as a multiple of the plan's own.
    """

    max_rows: int
    units: int
    slots: int
    noise: float


@takes(mechanism=Mechanism)
def row_costs(mechanism: Mechanism) -> list[RowCost]:
    """Fewer rows, as many as the plan allows, and one more; nothing where units have one row.

    Nor where the price of signs or another norm would change with it.
    """
    pairs, description = mechanism.adjacency, mechanism.description
    signed = description.nonnegative
    if not isinstance(pairs, SeveralRows) or signed or description.norm not in ("l1", "l2"):
        return []
    return [_cost_of_rows(mechanism, pairs, rows) for rows in _listed(pairs.max_rows)]


def _listed(most: int) -> list[int]:
    """The plan's own number, one more, and some below it."""
    if most < MOST_LISTED:
        return list(range(1, most + 2))
    step = most / (MOST_LISTED - 1)
    return sorted({1, *(round(step * i) for i in range(1, MOST_LISTED)), most + 1})


def _cost_of_rows(mechanism: Mechanism, pairs: SeveralRows, rows: int) -> RowCost:
    other, table = replace(pairs, max_rows=rows), mechanism.description.table
    if mechanism.description.norm == "l1":
        noise = float(other.l1(table).value / pairs.l1(table).value)
    else:
        noise = float(other.l2_squared(table).value / pairs.l2_squared(table).value) ** 0.5
    return RowCost(rows, other.units, other.slots, noise)
