"""What `congenial check` says about an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.privacy.numbers import number

if TYPE_CHECKING:
    from congenial.kinds.convex_estimate_offer import EstimateCheck


def examine(one: EstimateCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    made = one.mechanism
    return {
        "name": one.section.name,
        "kind": "estimate",
        "per_person": one.guarantee.tradeoff.words,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        "wanted": None,
        "estimates": list(made.spec.names),
        "mechanism": made.name,
        "per_record": number(made.description.epsilon),
        "records": made.adjacency.records,
        "points": made.spec.points,
        "accuracy": made.accuracy,
        "units": made.spec.units,
    }


def show(one: Document, screen: Screen) -> None:
    """The same for people."""
    screen.heading(f"Release '{one['name']}': {', '.join(one['estimates'])}")
    screen.facts(
        {
            "Per record": f"epsilon = {one['per_record']}",
            "Records that may differ": one["records"],
            "Grid": f"{one['points']:,} public points per number",
            "Error": one["accuracy"],
            **({"Units": one["units"]} if one["units"] else {}),
        }
    )
    screen.paragraph("")
    screen.paragraph(one["promise"])
