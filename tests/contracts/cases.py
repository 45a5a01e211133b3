"""The small universes of the exact audit, and what a mechanism may refuse there; a mechanism joins
by registering.
"""

from __future__ import annotations

from functools import cache

from congenial.audit.universes import UNIVERSES
from tests.audit.every_mechanism import Case, table_cases

__all__ = ["UNIVERSES", "cases"]

# What a mechanism may refuse; anything else it must serve.
CROSSING = ("both margins", "margins of 2 x 3", "crossing groups", "crossing, no total")
REFUSED = {  # two-way tables of single cells only
    ("knorm", universe.label)
    for universe in UNIVERSES
    if universe.label not in ("both margins", "margins of 2 x 3")
}
REFUSED |= {  # a chain is for ties only: the rest has exact draws
    ("congenial_chain", universe.label) for universe in UNIVERSES if universe.label not in CROSSING
}


@cache  # several modules ask for them while tests are collected
def cases() -> list[Case]:
    """Every registered mechanism, under every target it takes, on every universe it can serve."""
    found = list(table_cases(UNIVERSES))
    for case in found:
        assert case.mechanism is not None or (case.name, case.universe.label) in REFUSED
    return [case for case in found if case.mechanism is not None]
