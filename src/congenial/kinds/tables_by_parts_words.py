"""What `congenial check` says about tables by parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.kinds.shared_words import show_promise

if TYPE_CHECKING:
    from congenial.kinds.tables_by_parts_offer import PartsCheck


def examine(one: PartsCheck) -> Document:
    """What tables by parts would promise and how accurate each would be, as plain data."""
    made = one.mechanism
    told, design = made.description, made.description.design
    return {
        "name": one.section.name,
        "kind": "tables by parts",
        "law": told.measured[0].law,
        "per_person": one.guarantee.tradeoff.words,
        "aim": design["aim"],
        "types": design["types"],
        "design": design["words"],
        "parts": {"by": told.parts, "many": len(made.parts.labels)},
        "tables": [_row(one, at) for at in range(len(told.tables))],
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        "wanted": None,
    }


def _row(one: PartsCheck, at: int) -> Document:
    """What to expect of one table: its noise, and the error of its cells."""
    made = one.mechanism
    return {
        "table": list(made.tables[at]),
        "cells": made.schema.size(made.tables[at]),
        "measured": made.scales[at] is not None,
        "noise": made.scales[at],
        "below": at in made.below,
        "standard_deviation": made.description.design["mean_variances"][at] ** 0.5,
    }


def show(one: Document, screen: Screen) -> None:
    """The same for people."""
    parts, types = one["parts"], one["types"]
    screen.heading(
        f"Release '{one['name']}': {len(one['tables'])} tables under one promise, in "
        f"{parts['many']:,} parts"
    )
    screen.facts(
        {
            "Noise": f"{one['law']}, table by table, given the figures that each shows",
            "Per person": one["per_person"],
            "Priced over": f"{len(types['maximal'])} largest types of differences between "
            f"look-alikes ({types['footing']}, by {types['method']}): {types['reason']}",
            "Aim": one["aim"],
            "Design": one["design"],
            "Parts": f"by {parts['by']}: each is drawn, estimated and written on its own",
        }
    )
    show_promise(one, screen)
    rows = [
        [
            " x ".join(row["table"]) or "total",
            f"{row['cells']:,}",
            "yes" if row["measured"] else "no: summed from others",
            f"by {parts['by']}" if row["below"] else "in one file",
            f"{row['standard_deviation']:.2f}",
        ]
        for row in one["tables"]
    ]
    head = ("table", "cells", "noise drawn", "written", "standard deviation")
    screen.table(head, rows, numbers=("cells", "standard deviation"))
    screen.paragraph(
        "Standard deviation of the estimates, as the root of the mean variance of a table's cells. "
        "Whole counts are fitted from coarse to fine; every table is a sum of them."
    )
