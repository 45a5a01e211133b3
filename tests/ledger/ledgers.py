"""What the tests of the ledger share: a population, descriptions that cost one, a server."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from congenial import Figures, Guarantee, Ledger, Schema, total
from congenial.figures.statements import Statement
from congenial.privacy.description import Description, Family

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
HALF = Fraction(1, 2)
NONE = Figures(SCHEMA)


def described(
    *table: str,
    scale: Fraction = HALF,
    family: Family = "double_geometric",
    support=NONE,
    **numerics,
) -> Description:
    """With eps_cell = 1/2 and no figures the loss is exactly epsilon = 1."""
    return Description("plain", table or ("sex",), family, scale, support, **numerics)


def promise(ledger: Ledger) -> Guarantee:
    return Guarantee.pure(1, under=ledger.adjacency)


def published(*figures: tuple[Statement, int | list[int] | list[list[int]]]) -> Figures:
    values = tuple(np.asarray(value, dtype=np.int64) for _, value in figures)
    return Figures(SCHEMA, tuple(statement for statement, _ in figures), values)


COUNTIES = published((total("county"), [5, 7, 9]))


def spend(ledger: Ledger, description: Description, name: str = "r") -> str:
    with ledger.reserve(description, promise(ledger), name) as reservation:
        reservation.mark_drawn()
        reservation.commit("d" * 64)
    return reservation.id
