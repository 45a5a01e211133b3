"""What `congenial check` says about a protected table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.kinds.shared_words import (
    examine_inference,
    inference_words,
    per_unit,
    show_promise,
    show_want,
)

if TYPE_CHECKING:
    from congenial.kinds.single_table_offer import ReleaseCheck
    from congenial.privacy.description import Norm

_ERROR = ("what", "sums", "standard_deviation", "within", "level")
_ROW = ("max_rows", "units", "slots", "noise")
_PRINTED = ("what", "sums", "drawn", "sparse", "even")
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


def examine(one: ReleaseCheck) -> Document:
    """What a table release would promise, as plain data."""
    description = one.mechanism.description
    norm = description.norm
    return {
        "name": one.section.name,
        "kind": "table",
        "table": list(description.table),
        **({"units": True} if description.units else {}),
        "cells": int(one.support.labels.size),
        "degrees_of_freedom": one.support.degrees_of_freedom,
        "sensitivity": {
            "norm": _NORM_WORDS[norm],
            "value": one.sensitivity.value,
            "footing": one.sensitivity.footing,
        },
        "mechanism": description.mechanism,
        "law": description.law,
        "sampler": one.mechanism.sampler,
        "eps_per_cell": description.rate if norm == "l1" else None,
        "sigma_squared": description.variance if norm == "l2" else None,
        "epsilon_per_gauge": description.rate if norm == "gauge" else None,
        **({"rate_squared": description.scale} if norm == "length" else {}),
        **({"rate": description.rate} if norm == "linf" else {}),
        "per_person": one.guarantee.tradeoff.words,
        "nonnegative": one.section.nonnegative,
        "structure": one.support.structure,
        "groups": one.support.words,
        "normaliser_price": _normaliser_price(one),
        **_costs(one),
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [_picked(row, _ERROR) for row in one.errors],
        "printed_counts": _printed(one),
        "less_noise": _less_noise(one),
        "inference": _inference(one),
        "wanted": None if one.wanted is None else dict([one.wanted]),
        "unanswered": one.unanswered or None,
    }


def _picked(row: object, names: tuple[str, ...]) -> Document:
    return {name: getattr(row, name) for name in names}


def _printed(one: ReleaseCheck) -> Document | None:
    """How counts are made nonnegative, and what to expect of them."""
    if one.printed is None:
        return None
    return {
        "fit": one.printed.fit,
        "tables": [list(names) for names in one.printed.tables],
        "errors": [_picked(row, _PRINTED) for row in one.printed.rows],
        "unknown": one.printed.unknown or None,
    }


def _normaliser_price(one: ReleaseCheck) -> Document | None:
    """What conditioning adds to the loss, where it adds something."""
    if one.price is None:
        return None
    return {
        "epsilon": one.price.value,
        "gamma": one.price.value / (one.mechanism.description.rate * one.sensitivity.value),
        "basis": one.price.basis,
        "proved_bound": one.price.bound,
        "bounds_kept": _bounds_kept(one),
    }


def _costs(one: ReleaseCheck) -> Document:
    """What each published figure costs, with and without it, and all of them together."""
    from congenial.kinds.figure_costs import cost_of_all, figure_costs

    each = figure_costs(one.mechanism)
    together = cost_of_all(one.mechanism, each)
    return {
        "mandate_costs": [_picked(cost, _COST) for cost in each],
        "cost_of_all_figures": None if together is None else _picked(together, _COST),
        **_row_costs(one),
    }


def _row_costs(one: ReleaseCheck) -> Document:
    """What each row of a unit costs, where units have several under exact figures."""
    from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS

    if one.mechanism.adjacency.metric not in (ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS):
        return {}
    from congenial.kinds.row_costs import row_costs

    return {"row_costs": [_picked(cost, _ROW) for cost in row_costs(one.mechanism)]}


def _less_noise(one: ReleaseCheck) -> Document | None:
    """A mechanism that "auto" does not pick and that would have less noise."""
    from congenial.report.accuracy import less_noise

    found = less_noise(one.mechanism) if one.section.mechanism == "auto" else None
    return None if found is None else {"mechanism": found[0], "standard_deviation": found[1]}


def _inference(one: ReleaseCheck) -> Document:
    """Whether `congenial infer` will work on the bundle, and about how long it takes."""
    from congenial.figures.support import support
    from congenial.inference.feasibility import (
        expected_minutes,
        outlook,
        sampler_of_cells,
        usual_minutes,
    )

    made = one.mechanism
    found = outlook(made)
    if found.slow:
        return examine_inference(found, expected_minutes(made))
    known = support(made.adjacency.figures, made.description.table)
    sampler = sampler_of_cells(made) if found.way == "cells" else "lines"
    return examine_inference(found, usual_minutes(known.labels.size, sampler))


def _bounds_kept(one: ReleaseCheck) -> Document | None:
    """Published bounds on which counts are conditioned, and how often draws keep them."""
    from congenial.mechanisms.acceptance_pilot import acceptance
    from congenial.mechanisms.congenial import CongenialCounts

    assert isinstance(one.mechanism, CongenialCounts)
    known = one.mechanism.limits
    if not known.boxed and not known.sums:
        return None
    return {"cells": known.boxed, "sums": known.sums, "acceptance": acceptance(one.mechanism)}


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
    from congenial.privacy.numbers import number

    counted = ", counted in units" if one.get("units") else ""
    screen.heading(f"Release '{one['name']}': {' x '.join(one['table'])}{counted}")
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
            "Nonnegative": one["nonnegative"],
            **_price_words(one),
            "Inference": inference_words(one["inference"]),
        }
    )
    show_promise(one, screen)
    _show_errors(one, screen)
    _show_printed(one, screen)
    _show_costs(one, screen)
    _show_row_costs(one, screen)
    show_want(one, screen, want)


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
    """What becomes of the counts when they are made nonnegative."""
    printed = one["printed_counts"]
    if printed is None:
        return
    tables = [" x ".join(names) or "total" for names in printed["tables"]]
    how = f"fitted from coarse to fine: {', then '.join(tables)}"
    if printed["fit"] == "cells":
        how = "the nearest whole counts, cell by cell: sums of many small counts would be too large"
    screen.paragraph("")
    screen.paragraph(
        f"Printed counts: {how}. Any other sum is taken from the values as drawn, which are "
        "unbiased."
    )
    if printed["unknown"]:
        screen.paragraph(f"Errors of printed counts: {printed['unknown']}.")
        return
    rows = [
        (what, row["sums"], *(f"{row[part]:.2f}" for part in ("drawn", "sparse", "even")))
        for what, row in zip(tables, printed["errors"], strict=True)
    ]
    columns = ("root mean square error of", "sums", "as drawn", "printed, sparse", "printed, even")
    screen.table(columns, rows, numbers=columns[1:])
    screen.paragraph(
        "Simulated on tables made up from published figures, not on the data: everybody of a known "
        "sum in one cell (sparse), or spread over all of them (even)."
    )


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
