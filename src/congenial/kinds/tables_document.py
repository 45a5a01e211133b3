"""What `congenial check` says about protected tables, one or several, at once or by parts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from congenial.kinds.kind import Document, Screen
from congenial.kinds.shared_words import (
    examine_inference,
    inference_words,
    per_unit,
    show_promise,
    show_want,
)
from congenial.mechanisms.parted_tables import PartedTables

if TYPE_CHECKING:
    from fractions import Fraction

    from congenial.kinds.tables import TablesCheck
    from congenial.kinds.tables_accuracy import PrintedTrial
    from congenial.mechanisms.congenial import CongenialCounts
    from congenial.mechanisms.measured_tables import MeasuredTables
    from congenial.mechanisms.mechanism import Mechanism
    from congenial.privacy.description import Norm

LEVEL = 0.9  # of the intervals that are printed
NOT_YET = "the exact figures are not published yet"  # as `tables.joint_estimator` says it
ACROSS = (
    " Tables marked 'estimates' cut across others: sums of whole counts would be off there, so "
    "estimates are printed; name the axis under keep to have whole counts follow it."
)
TRIED = (
    " Printed counts: root mean square error of whole counts on people made up from the public "
    "figures, spread as evenly as these allow; other people give other errors."
)
_ERROR = ("what", "sums", "standard_deviation", "within", "level")
_ROW = ("max_rows", "units", "slots", "noise")
_COST = (
    *("label", "loss", "loss_without", "deviation", "deviation_without", "trivial"),
    "told_by_others",
)
_NORM_WORDS: dict[Norm, str] = {
    "l1": "l1",
    "l2": "l2 squared",
    "gauge": "gauge of the hull",
    "length": "l2 squared",
    "linf": "largest entry",
}


def examine(one: TablesCheck) -> Document:
    """What tables would promise and how accurate each would be, as plain data."""
    made = one.mechanism
    told = made.description
    return {
        "name": one.section.name,
        "kind": "tables",
        **({"units": True} if told.units else {}),
        "law": told.measured[0].law,
        "per_person": one.guarantee.tradeoff.words,
        "keep": list(told.keep),
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        **_design(told.design),
        **(_in_parts(made) if isinstance(made, PartedTables) else _at_once(one, made)),
        "wanted": None if one.wanted is None else dict([one.wanted]),
        "unanswered": one.unanswered or None,
    }


def _at_once(one: TablesCheck, made: MeasuredTables) -> Document:
    """Tables that are drawn in one piece: each one's errors, and what to infer from them."""
    return {
        "tables": _tables(made),
        "whole_counts": _why_none(made),
        **({} if made.only is None else _one_law(one, made, made.only)),
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
        "types": design["types"],
        "certificate": design["certificate"],
        "design": design["words"],
    }


def _why_none(made: MeasuredTables) -> str | None:
    """Why no whole counts are printed; None where they are."""
    if not made.description.whole:
        real = made.description.measured[0].continuous
        return "the noise is real numbers" if real else "nonnegative = 'no'"
    return made.estimator.why_no_counts or None


def _tables(made: MeasuredTables) -> list[Document]:
    """What to expect of each table: its noise, and the worst cell's error."""
    from congenial.kinds.tables_accuracy import try_printed

    trial = try_printed(made)
    return [_row(made, at, trial) for at in range(len(made.description.tables))]


def _row(made: MeasuredTables, at: int, trial: PrintedTrial | None) -> Document:
    told, estimator = made.description, made.estimator
    names = told.tables[at]
    laws = {law.table: law for law in told.measured}
    row: Document = {
        "table": list(names),
        "cells": told.support.schema.size(names),
        "measured": names in laws,
        "noise": laws[names].scale if names in laws else None,
        "whole_counts": estimator.has_counts and estimator.prints(names),
        "printed_error": None if trial is None else _known(trial.errors[at]),
        "printed_inside": None if trial is None else _known(trial.inside[at]),
    }
    if told.only_law is not None and told.only_law.nonnegative:  # errors depend on the data
        return row | {"standard_deviation": None, "basis": None, "within": None, "level": LEVEL}
    found, reach = estimator.deviations(names), estimator.reach(names, LEVEL)
    return row | {
        "standard_deviation": float(found.values.max(initial=0.0)),
        "basis": found.basis,
        "within": float(reach.max(initial=0.0)),
        "level": LEVEL,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _inference(made: MeasuredTables) -> Document:
    """Whether `congenial infer` will work on the bundle, and about how long it takes."""
    from congenial.inference.feasibility import (
        expected_minutes,
        outlook,
        outlook_of_tables,
        sampler_of_cells,
        sampler_of_tables,
        usual_minutes,
    )

    told, only = made.description, made.only
    if only is None:
        cells = made.estimator.size
        return examine_inference(
            outlook_of_tables(told), usual_minutes(cells, sampler_of_tables(told))
        )
    found = outlook(only)
    if found.slow:
        return examine_inference(found, expected_minutes(only))
    sampler = sampler_of_cells(only) if found.way == "cells" else "lines"
    return examine_inference(found, usual_minutes(math.prod(only.shape), sampler))


# ---- one measured table ----------------------------------------------------------------------


def _one_law(one: TablesCheck, tables: MeasuredTables, made: Mechanism) -> Document:
    """The law of one table, what it was calibrated to, and what each figure costs."""
    from congenial.figures.support import support
    from congenial.privacy.composition import largest_change
    from congenial.report.accuracy import error_rows

    description = made.description
    norm, known = description.norm, support(description.support, description.table)
    sensitivity = largest_change(description, made.adjacency)
    return {
        "table": list(description.table),
        "cells": int(known.labels.size),
        "degrees_of_freedom": known.degrees_of_freedom,
        "sensitivity": {
            "norm": _NORM_WORDS[norm],
            "value": sensitivity.value,
            "footing": sensitivity.footing,
        },
        "mechanism": description.mechanism,
        "sampler": made.sampler,
        "eps_per_cell": description.rate if norm == "l1" else None,
        "sigma_squared": description.variance if norm == "l2" else None,
        "epsilon_per_gauge": description.rate if norm == "gauge" else None,
        **({"rate_squared": description.scale} if norm == "length" else {}),
        **({"rate": description.rate} if norm == "linf" else {}),
        "nonnegative": _nonnegative(tables, made),
        "structure": known.structure,
        "groups": known.words,
        "normaliser_price": _normaliser_price(made, sensitivity.value),
        **_costs(made),
        "errors": [_picked(row, _ERROR) for row in error_rows(made)],
        "fitted": _fitted(tables),
        "less_noise": _less_noise(one, made),
    }


def _nonnegative(tables: MeasuredTables, made: Mechanism) -> str:
    """What keeps printed counts from being negative."""
    if made.nonnegative:
        return "condition"
    return "project" if tables.description.whole else "no"


def _fitted(tables: MeasuredTables) -> list[list[str]] | None:
    """The tables that whole counts are fitted to, from coarse to fine; None where none are."""
    from congenial.mechanisms.one_table import OneTable

    estimator = tables.estimator
    if not isinstance(estimator, OneTable) or not estimator.has_counts:
        return None
    return None if estimator.order is None else [list(names) for names in estimator.fitted_tables]


def _picked(row: object, names: tuple[str, ...]) -> Document:
    return {name: getattr(row, name) for name in names}


def _normaliser_price(made: Mechanism, sensitivity: Fraction) -> Document | None:
    """What conditioning on counts >= 0 adds to the loss, where it adds something."""
    from congenial.mechanisms.congenial import CongenialCounts

    if not isinstance(made, CongenialCounts):
        return None
    return {
        "epsilon": made.price.value,
        "gamma": made.price.value / (made.description.rate * sensitivity),
        "basis": made.price.basis,
        "proved_bound": made.price.bound,
        "bounds_kept": _bounds_kept(made),
    }


def _bounds_kept(made: CongenialCounts) -> Document | None:
    """Published bounds on which counts are conditioned, and how often draws keep them."""
    from congenial.mechanisms.acceptance_pilot import acceptance

    known = made.limits
    if not known.boxed and not known.sums:
        return None
    return {"cells": known.boxed, "sums": known.sums, "acceptance": acceptance(made)}


def _costs(made: Mechanism) -> Document:
    """What each published figure costs, with and without it, and all of them together."""
    from congenial.kinds.figure_costs import cost_of_all, figure_costs
    from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS

    each = figure_costs(made)
    together = cost_of_all(made, each)
    costs: Document = {
        "mandate_costs": [_picked(cost, _COST) for cost in each],
        "cost_of_all_figures": None if together is None else _picked(together, _COST),
    }
    if made.adjacency.metric in (ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS):
        from congenial.kinds.row_costs import row_costs

        costs["row_costs"] = [_picked(cost, _ROW) for cost in row_costs(made)]
    return costs


def _less_noise(one: TablesCheck, made: Mechanism) -> Document | None:
    """A mechanism that "auto" does not pick and that would have less noise."""
    from congenial.report.accuracy import less_noise

    found = less_noise(made) if one.section.mechanism == "auto" else None
    return None if found is None else {"mechanism": found[0], "standard_deviation": found[1]}


# ---- for people ------------------------------------------------------------------------------


_SCALES = {
    "sigma_squared": "Variance per cell",
    "epsilon_per_gauge": "Epsilon per unit of gauge",
    "rate_squared": "Epsilon per unit of the l2 norm, squared",
    "rate": "Epsilon per unit of the largest entry",
}


def _scale(one: Document) -> Document:
    """The parameter of the noise, under the name that its law gives it."""
    from congenial.privacy.numbers import number

    if one["eps_per_cell"] is None:
        return {told: number(one[key]) for key, told in _SCALES.items() if one.get(key) is not None}
    told = f"{number(one['eps_per_cell'])} (a parameter of the noise, not the promise)"
    return {"Epsilon per cell": told}


def show(one: Document, screen: Screen, want: str | None = None) -> None:
    """The same for people."""
    if "mechanism" in one:
        _show_one_law(one, screen)
    else:
        _show_several(one, screen)
    show_promise(one, screen)
    if "parts" in one:
        _show_parts(one, screen)
    elif len(one["tables"]) == 1:
        _show_errors(one, screen)
        _show_printed(one, screen)
    else:
        _show_tables(one, screen)
    if "mandate_costs" in one:
        _show_costs(one, screen)
        _show_row_costs(one, screen)
    show_want(one, screen, want)


def _heading(one: Document) -> str:
    tables = one["tables"]
    if "parts" in one:
        cut = f"{len(tables)} tables under one promise, in {one['parts']['many']:,} parts"
        return f"Release '{one['name']}': {cut}"
    if len(tables) > 1:
        return f"Release '{one['name']}': {len(tables)} tables under one promise"
    counted = ", counted in units" if one.get("units") else ""
    return f"Release '{one['name']}': {' x '.join(tables[0]['table']) or 'total'}{counted}"


def _show_one_law(one: Document, screen: Screen) -> None:
    """The law of one table."""
    from congenial.privacy.numbers import number

    screen.heading(_heading(one))
    sensitivity = one["sensitivity"]
    screen.facts(
        {
            "Cells": f"{one['cells']}: {one['groups']}",
            "Sensitivity": f"{number(sensitivity['value'])} in {sensitivity['norm']} "
            f"({sensitivity['footing']}): the most that the tables of two look-alikes differ by",
            "Mechanism": f"{one['mechanism']}: {one['law']}",
            "Drawn by": one["sampler"],
            **_scale(one),
            per_unit(one): one["per_person"],
            **_design_words(one),
            **_price_words(one),
            "Whole counts": _whole(one),
            "Inference": inference_words(one["inference"]),
        }
    )


def _show_several(one: Document, screen: Screen) -> None:
    """How noise is shared out over several tables."""
    types = one["types"]
    screen.heading(_heading(one))
    screen.facts(
        {
            "Noise": f"{one['law']}, table by table, given the figures that each shows",
            per_unit(one): one["per_person"],
            "Priced over": f"{_types(len(types['maximal']))} between look-alikes "
            f"({types['footing']}, by {types['method']}): {types['reason']}",
            **_design_words(one),
            "Whole counts": _whole(one),
            **_inference_or_parts(one),
        }
    )


def _inference_or_parts(one: Document) -> Document:
    if "parts" not in one:
        return {"Inference": inference_words(one["inference"])}
    return {"Parts": f"by {one['parts']['by']}: each is drawn, estimated and written on its own"}


def _design_words(one: Document) -> Document:
    return {"Aim": one["aim"], "Design": one["design"]} if "design" in one else {}


def _types(many: int) -> str:
    return "1 largest type of differences" if many == 1 else f"{many} largest types of differences"


def _show_tables(one: Document, screen: Screen) -> None:
    tried = any(row["printed_error"] is not None for row in one["tables"])
    head = ["table", "cells", "noise drawn", "standard deviation", "within", "at"]
    rows = []
    for row in one["tables"]:
        told = [" x ".join(row["table"]) or "total", f"{row['cells']:,}", _noise(row)]
        told += [f"{row['standard_deviation']:.2f}", f"{row['within']:.2f}", f"{row['level']:.0%}"]
        error = row["printed_error"]
        rows.append([*told, "estimates" if error is None else f"{error:.2f}"] if tried else told)
    columns = (*head, "printed counts") if tried else tuple(head)
    screen.table(columns, rows, numbers={*columns} - {"table", "noise drawn"})
    basis = {row["basis"] for row in one["tables"]}
    screen.paragraph(
        "Standard deviation of the worst cell's estimate"
        f"{' (a proved bound)' if 'bound' in basis else ''}; its interval is taken to be normal."
        + (TRIED if tried else "")
        + (ACROSS if tried and not all(row["whole_counts"] for row in one["tables"]) else "")
    )


def _show_parts(one: Document, screen: Screen) -> None:
    """The tables of a nation, and which of them are cut into parts."""
    rows = [
        [
            " x ".join(row["table"]) or "total",
            f"{row['cells']:,}",
            _noise(row),
            f"by {one['parts']['by']}" if row["below"] else "in one file",
            f"{row['standard_deviation']:.2f}",
        ]
        for row in one["tables"]
    ]
    head = ("table", "cells", "noise drawn", "written", "standard deviation")
    screen.table(head, rows, numbers=("cells", "standard deviation"))
    screen.paragraph(
        "Standard deviation of the estimates, as the root of the mean variance of a table's cells."
    )


def _noise(row: Document) -> str:
    if row["measured"]:
        return "yes"
    return "no: figures tell it" if not row["standard_deviation"] else "no: summed from others"


def _whole(one: Document) -> str:
    """What is printed of counts that cannot be negative."""
    if one.get("nonnegative") == "condition":
        return "counts are drawn given that none is negative"
    if one["whole_counts"] == NOT_YET:
        return "worked out when the exact figures are known"
    if one["whole_counts"] is not None:
        return f"none, estimates are printed: {one['whole_counts']}"
    if len(one["tables"]) == 1 and "parts" not in one:
        return "fitted to the draw; other sums are taken from the draw, which is unbiased"
    kept = f" and every {' and '.join(one['keep'])}" if one["keep"] else ""
    return (
        f"fitted so that every table{kept} is a sum of them; other sums are taken from the "
        "estimates"
    )


def _price_words(one: Document) -> Document:
    """The two prices apart, where counts are conditioned to be nonnegative."""
    from congenial.privacy.numbers import number

    price = one["normaliser_price"]
    if price is None:
        return {}
    adjacency = one["eps_per_cell"] * one["sensitivity"]["value"]
    kept, bound, more = price["bounds_kept"], price["proved_bound"], {}
    what = "counts >= 0" if kept is None else "counts >= 0 and public bounds"
    proved = "" if bound is None else f"; the proved bound is {number(bound)}"
    if kept is not None and kept["sums"]:
        tries = kept["acceptance"] and 1 / kept["acceptance"]
        told = f"about {tries:.3g} draws at worst on made-up tables" if tries else "not yet tried"
        more = {"Bounds on sums": f"{kept['sums']}, kept by drawing again: {told}"}
    return {
        "Adjacency price": f"epsilon {number(adjacency)} (records that may differ)",
        "Normaliser price": f"epsilon {number(price['epsilon'])} ({what}), gamma = "
        f"{number(price['gamma'])}; {price['basis']}{proved}",
        **more,
    }


def _show_errors(one: Document, screen: Screen) -> None:
    if not one["errors"]:
        screen.paragraph("Errors depend on the data, so none can be stated beforehand.")
        return
    screen.table(
        ("error of", "sums", "standard deviation", "within", "at"),
        [
            (
                row["what"],
                row["sums"],
                f"{row['standard_deviation']:.2f}",
                _within(row["within"]),
                f"{row['level']:.0%}",
            )
            for row in one["errors"]
        ],
        numbers=("sums", "standard deviation", "within", "at"),
    )
    less = one["less_noise"]
    if less is not None:
        screen.paragraph(
            f"Less noise: with mechanism = '{less['mechanism']}' a cell's standard deviation is "
            f"{less['standard_deviation']:.2f}. Its draws are slower, and for most shapes its "
            "density is known up to a constant only."
        )


def _show_printed(one: Document, screen: Screen) -> None:
    """What becomes of one table's counts when they are fitted."""
    row = one["tables"][0]
    if not row["whole_counts"] or one.get("nonnegative") == "condition":
        return
    how = "the nearest whole counts, cell by cell: sums of many small counts would be too large"
    if one.get("fitted"):
        tables = [" x ".join(names) or "total" for names in one["fitted"]]
        how = f"fitted from coarse to fine: {', then '.join(tables)}"
    error = row["printed_error"]
    told = (
        ""
        if error is None
        else (
            f" Root mean square error of a printed cell: {error:.2f}, on people made up from the "
            "published figures and spread as evenly as these allow; other people give other errors."
        )
    )
    screen.paragraph("")
    screen.paragraph(f"Printed counts: {how}.{told}")


def _within(value: float) -> str:
    """A half-width: whole as it is, otherwise two decimals, rounded up."""
    return f"{value:g}" if value == int(value) else f"{math.ceil(100 * value) / 100:.2f}"


def _show_costs(one: Document, screen: Screen) -> None:
    """One line a figure: what it costs in the promise and in error."""
    if not one["mandate_costs"]:
        return
    rows = []
    together = [one["cost_of_all_figures"]] if one["cost_of_all_figures"] else []
    for cost in [*one["mandate_costs"], *together]:
        without, error = cost["loss_without"], cost["deviation_without"]
        loss = "-" if without is None else f"{without:.4g} -> {cost['loss']:.4g}"
        noise = "-" if error is None else f"{error:.3g} -> {cost['deviation']:.3g}"
        rows.append((cost["label"], loss, noise, _cost_note(cost)))
    kinds = {"gaussian": "mu", "zero-concentrated": "rho"}
    parameter = kinds.get(one["guarantee"]["tradeoff"]["kind"], "epsilon")
    screen.paragraph("")
    screen.table(
        ("figure", f"{parameter} at equal noise", "deviation at equal promise", "note"), rows
    )
    screen.paragraph(
        "What each figure costs, as without it -> with it: the promise of the same noise, and the "
        "standard deviation of the noisiest cell at the same promise."
        + (" Costs do not add up: the last line leaves all of them out." if together else "")
    )
    if any(_seems_to_help(cost) for cost in [*one["mandate_costs"], *together]):
        screen.paragraph(
            "A smaller number with a figure is no gain in privacy: what the figure fixes needs no "
            "noise, but is not protected; and where fewer datasets agree with it, the promise is "
            "about less."
        )


def _show_row_costs(one: Document, screen: Screen) -> None:
    """One line a number of rows: how far look-alikes are apart, and the noise it takes."""
    if not one.get("row_costs"):
        return
    screen.paragraph("")
    screen.paragraph(
        "What each row of a unit costs, if max_rows were: units and rows in which look-alikes "
        "differ, and the noise of the same promise beside this plan's."
    )
    rows = [
        (cost["max_rows"], cost["units"], cost["slots"], f"{cost['noise']:.3g}")
        for cost in one["row_costs"]
    ]
    columns = ("max_rows", "units", "rows", "noise")
    screen.table(columns, rows, numbers=("max_rows", "units", "rows", "noise"))


def _cost_note(cost: Document) -> str:
    if cost["loss_without"] is None:
        return "cannot be built without it"
    if cost["deviation_without"] is None:
        return "errors depend on the data"
    if cost["trivial"]:
        told = cost["told_by_others"]
        return "the other figures tell it too" if told else "changes nothing"
    return "less noise, less protected" if _seems_to_help(cost) else ""


def _seems_to_help(cost: Document) -> bool:
    """Whether a number is smaller with the figure than without it."""
    pairs = (("loss", "loss_without"), ("deviation", "deviation_without"))
    return any(
        cost[given] is not None and cost[without] is not None and cost[given] < cost[without]
        for given, without in pairs
    )
