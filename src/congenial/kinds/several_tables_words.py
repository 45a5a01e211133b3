"""What `congenial check` says about several tables."""

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
    from congenial.kinds.several_tables_offer import TablesCheck
    from congenial.kinds.several_tables_trial import PrintedTrial

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


def examine(one: TablesCheck) -> Document:
    """What several tables would promise and how accurate each would be, as plain data."""
    from congenial.kinds.several_tables_trial import try_printed

    told = one.mechanism.description
    design, estimator = told.design, one.mechanism.estimator
    trial = try_printed(one.mechanism)
    return {
        "name": one.section.name,
        "kind": "tables",
        "law": told.measured[0].law,
        "per_person": one.guarantee.tradeoff.words,
        "aim": design["aim"],
        "types": design["types"],
        "certificate": design["certificate"],
        "design": design["words"],
        "tables": [_row(one, at, trial) for at in range(len(told.tables))],
        "keep": list(told.keep),
        "whole_counts": estimator.why_no_counts or None,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        "inference": _inference(one),
        "wanted": None if one.wanted is None else dict([one.wanted]),
        "unanswered": one.unanswered or None,
    }


def _inference(one: TablesCheck) -> Document:
    """Whether `congenial infer` will work on the bundle, and about how long it takes."""
    from congenial.inference.feasibility import (
        outlook_of_tables,
        sampler_of_tables,
        usual_minutes,
    )

    cells, told = one.mechanism.estimator.measurements.size, one.mechanism.description
    found, sampler = outlook_of_tables(told), sampler_of_tables(told)
    return examine_inference(found, usual_minutes(cells, sampler))


def _row(one: TablesCheck, at: int, trial: PrintedTrial | None) -> Document:
    """What to expect of one table: its noise, and the worst cell's error."""
    from congenial.tables.intervals import half_width

    told, estimator = one.mechanism.description, one.mechanism.estimator
    names = told.tables[at]
    found = estimator.deviations(names)
    worst = float(found.values.max(initial=0.0))
    return {
        "table": list(names),
        "cells": int(found.values.size),
        "measured": estimator.scales[at] is not None,
        "noise": estimator.scales[at],
        "standard_deviation": worst,
        "basis": found.basis,
        "within": half_width(LEVEL) * worst,
        "level": LEVEL,
        "whole_counts": not estimator.why_no_counts and names not in estimator.across,
        "printed_error": None if trial is None else _known(trial.errors[at]),
        "printed_inside": None if trial is None else _known(trial.inside[at]),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def show(one: Document, screen: Screen, want: str | None = None) -> None:
    """The same for people."""
    screen.heading(f"Release '{one['name']}': {len(one['tables'])} tables under one promise")
    types = one["types"]
    screen.facts(
        {
            "Noise": f"{one['law']}, table by table, given the figures that each shows",
            per_unit(one): one["per_person"],
            "Priced over": f"{_types(len(types['maximal']))} between look-alikes "
            f"({types['footing']}, by {types['method']}): {types['reason']}",
            "Aim": one["aim"],
            "Design": one["design"],
            "Whole counts": _whole(one),
            "Inference": inference_words(one["inference"]),
        }
    )
    show_promise(one, screen)
    _show_tables(one, screen)
    show_want(one, screen, want)


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


def _noise(row: Document) -> str:
    if row["measured"]:
        return "yes"
    return "no: figures tell it" if not row["standard_deviation"] else "no: summed from others"


def _whole(one: Document) -> str:
    if one["whole_counts"] == NOT_YET:
        return "worked out once the exact figures are published"
    if one["whole_counts"] is not None:
        return f"none, estimates are printed: {one['whole_counts']}"
    kept = f" and every {' and '.join(one['keep'])}" if one["keep"] else ""
    return (
        f"fitted so that every table{kept} is a sum of them; other sums are taken from the "
        "estimates"
    )
