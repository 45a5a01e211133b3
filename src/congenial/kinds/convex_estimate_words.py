"""What `congenial check` says about an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.kinds.shared_words import show_promise
from congenial.privacy.numbers import number

if TYPE_CHECKING:
    from congenial.kinds.convex_estimate_offer import EstimateCheck


def examine(one: EstimateCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    made, persons = one.mechanism, one.persons
    return {
        "name": one.section.name,
        "kind": "estimate",
        "per_person": (one.guarantee if persons is None else persons).tradeoff.words,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "errors": [],
        "wanted": None,
        "estimates": list(made.spec.names),
        "mechanism": made.name,
        "per_record": number(made.description.epsilon),
        "accuracy": made.accuracy,
        "units": made.spec.units,
        **_law(one),
    }


def _law(one: EstimateCheck) -> Document:
    """The grid, and what the promise counts on: records that differ, or beliefs."""
    from congenial.mechanisms.wasserstein.gradient_estimate import GradientEstimate
    from congenial.mechanisms.wasserstein.mean_given_public import MeanGivenPublic
    from congenial.transport.delta_z import meaning

    made, persons = one.mechanism, one.persons
    if isinstance(made, GradientEstimate):
        return {"records": made.adjacency.records, "points": made.spec.points}
    assert persons is not None
    on_unit = {"unit": number(made.unit)} if isinstance(made, MeanGivenPublic) else None
    return {
        **(on_unit or {"points": made.spec.points}),
        "delta_z": {"value": made.bound.value, "measure": made.bound.measure},
        "known": list(made.pairs.facts),
        "level": made.pairs.level,
        "persons": persons.explain(),
        "belief": meaning(made.epsilon),
    }


def show(one: Document, screen: Screen) -> None:
    """The same for people."""
    screen.heading(f"Release '{one['name']}': {', '.join(one['estimates'])}")
    given = "delta_z" in one
    screen.facts(
        {
            **(_given_public(one) if given else _over_records(one)),
            "Error": one["accuracy"],
            **({"Units": one["units"]} if one["units"] else {}),
        }
    )
    if not given:
        screen.paragraph("")
        screen.paragraph(one["promise"])
        return
    show_promise(one, screen)
    screen.paragraph(f"Without any assumption about beliefs. {one['persons']}")


def _over_records(one: Document) -> Document:
    return {
        "Per record": f"epsilon = {one['per_record']}",
        "Records that may differ": one["records"],
        "Grid": _points(one),
    }


def _points(one: Document) -> str:
    return f"{one['points']:,} public points per number"


def _given_public(one: Document) -> Document:
    distance, what = one["delta_z"], f"the {one['estimates'][0].split()[0]}"
    alone = "" if one["level"] == "database" else " (no other release from these data)"
    return {
        "Known to all": "; ".join(one["known"]) or "nothing",
        "Delta_z": f"{distance['value']:g} {'records' if not alone else 'for ' + what}",
        "Grid": f"multiples of {one['unit']}" if "unit" in one else _points(one),
        "Per person, beliefs aside": f"{one['per_person']}{alone}",
    }
