"""What `congenial check` says about a release given public information."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen
from congenial.kinds.shared_words import examine_inference, inference_words, show_promise

if TYPE_CHECKING:
    from congenial.kinds.given_public_offer import ScenariosCheck


def examine(one: ScenariosCheck) -> Document:
    """The check of one section as plain data; from public parameters alone."""
    from congenial.inference.feasibility import outlook_of_values

    made, earlier = one.mechanism, one.earlier
    return {
        "name": one.section.name,
        "kind": "values",
        "table": list(made.table),
        "cells": made.base.cells,
        "mechanism": made.name,
        "base_measure": made.base.kind,
        "earlier": None if earlier is None else vars(earlier) | {"words": earlier.words},
        "loss": made.loss,
        "rate": made.rate,
        "factor": made.factor,
        "delta_z": {
            "value": made.bound.value,
            "measure": made.bound.measure,
            "assumed": made.bound.basis == "estimate",
        },
        "known": list(made.pairs.facts),
        "level": made.pairs.level,
        "certified": made.certified,
        "per_record": made.description.epsilon,
        "per_person": one.persons.tradeoff.words,
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "persons": one.persons.explain(),
        "belief": made.words,
        "errors": [],
        "inference": examine_inference(outlook_of_values(made.loss, made.base)),
        "wanted": None,
    }


def show(one: Document, screen: Screen) -> None:
    """The check of one section for people."""
    from congenial.privacy.numbers import number

    screen.heading(f"Release '{one['name']}': {' x '.join(one['table'])}, given what is public")
    distance = one["delta_z"]
    told = f"{distance['value']:g} in {distance['measure']}"
    weighed = {"Dirichlet parameters": one["earlier"]["words"]} if one["earlier"] else {}
    screen.facts(
        {
            "Cells": one["cells"],
            "Known to all": "; ".join(one["known"]) or "nothing",
            "Base measure": one["base_measure"],
            **weighed,
            "Delta_z": f"{told} (ASSUMED, not derived)" if distance["assumed"] else told,
            "Loss": one["loss"] if one["certified"] else f"{one['loss']} (a chain: not certified)",
            "Rate": f"{number(one['rate'])} (a parameter of the noise, not the promise)",
            "Factor for the normaliser": one["factor"],
            "Per person, beliefs aside": one["per_person"],
            "Inference": inference_words(one["inference"]),
        }
    )
    show_promise(one, screen)
    screen.paragraph(f"Without any assumption about beliefs. {one['persons']}")
    screen.paragraph("")
    screen.paragraph(
        "Two releases: promises of this kind add up with other releases from the same data."
        if one["level"] == "database"
        else "No second release: a promise with an assumed distance does not add up with another."
    )
