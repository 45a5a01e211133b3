"""What `congenial check` says about several tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.kinds.want_words import show_want

if TYPE_CHECKING:
    from congenial.kinds.several_tables_offer import TablesCheck

LEVEL = 0.9  # of the intervals that are printed


def examine(one: TablesCheck) -> Document:
    """What several tables would promise and how accurate each would be, as plain data."""
    from congenial.privacy.semantics import belief_words

    told = one.mechanism.description
    design, estimator = told.design, one.mechanism.estimator
    return {
        "name": one.section.name,
        "kind": "tables",
        "law": told.measured[0].law,
        "per_person": one.guarantee.tradeoff.words,
        "aim": design["aim"],
        "types": design["types"],
        "certificate": design["certificate"],
        "design": design["words"],
        "tables": [_row(one, at) for at in range(len(told.tables))],
        "keep": list(told.keep),
        "whole_counts": estimator.why_no_counts or None,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "belief": belief_words(one.guarantee),
        "errors": [],
        "wanted": None if one.wanted is None else dict([one.wanted]),
        "unanswered": one.unanswered or None,
    }


def _row(one: TablesCheck, at: int) -> Document:
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
    }


def show(one: Document, screen: Screen, want: str | None = None) -> None:
    """The same for people."""
    screen.heading(f"Release '{one['name']}': {len(one['tables'])} tables under one promise")
    types = one["types"]
    screen.facts(
        {
            "Noise": f"{one['law']}, table by table, given the figures that each shows",
            "Per person": one["per_person"],
            "Priced over": f"{len(types['maximal'])} maximal types of differences "
            f"({types['footing']}, by {types['method']}): {types['reason']}",
            "Aim": one["aim"],
            "Design": one["design"],
            "Whole counts": _whole(one),
        }
    )
    screen.paragraph("")
    screen.paragraph(one["promise"])
    screen.paragraph("")
    screen.paragraph(one["belief"])
    screen.paragraph("")
    screen.table(
        ("table", "cells", "noise drawn", "standard deviation", "within", "at"),
        [
            (
                " x ".join(row["table"]) or "total",
                f"{row['cells']:,}",
                _noise(row),
                f"{row['standard_deviation']:.2f}",
                f"{row['within']:.2f}",
                f"{row['level']:.0%}",
            )
            for row in one["tables"]
        ],
        numbers="cells,standard deviation,within,at",
    )
    show_want(one, screen, want)


def _noise(row: Document) -> str:
    if row["measured"]:
        return "yes"
    return "no: figures tell it" if not row["standard_deviation"] else "no: summed from others"


def _whole(one: Document) -> str:
    if one["whole_counts"] is not None:
        return f"not printed, estimates are: {one['whole_counts']}"
    kept = f" and {', '.join(one['keep'])}" if one["keep"] else ""
    return (
        f"fitted so that every table{kept} is a sum of them; other sums are taken from the "
        "estimates"
    )
