"""Which sums published figures fix, against all tables that agree with them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.statements import Statement, count, margin, total
from congenial.figures.support import support

SCHEMA = Schema.from_dict({"a": {"levels": ["p", "q"]}, "b": {"levels": ["r", "s", "t"]}})
TABLE = np.array([[2, 1, 2], [1, 2, 1]])

CELLS = np.arange(6).reshape(2, 3)
BY_A = [[int(c in row) for c in range(6)] for row in CELLS.tolist()]
BY_B = [[int(c in column) for c in range(6)] for column in CELLS.T.tolist()]

# figures as the program takes them, and as rows of a matrix over the six cells
FIGURES: dict[str, tuple[tuple[Statement, ...], list[list[int]]]] = {
    "nothing": ((), []),
    "total": ((total(),), [[1] * 6]),
    "one margin": ((margin("a"),), BY_A),
    "counts in no margin": (
        (count("b = 'r'", by="a"),),
        [[1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]],
    ),
    "both margins": ((margin("a"), margin("b")), BY_A + BY_B),
    "margins and a cell": (
        (margin("a"), margin("b"), count("a = 'p' and b = 'r'")),
        [*BY_A, *BY_B, [1, 0, 0, 0, 0, 0]],
    ),
}


def conforming(rows: list[list[int]]) -> np.ndarray:
    """Every table with entries of at most 3 on which the rows sum to what they do on TABLE."""
    matrix = np.array([*rows, [0] * 6])
    every = np.array(list(product(range(4), repeat=6)))
    return every[np.all(every @ matrix.T == matrix @ TABLE.reshape(-1), axis=1)]


@pytest.mark.parametrize("name", FIGURES)
def test_fixed_sums_are_those_that_never_differ(name: str):
    figures, rows = FIGURES[name]
    tables = conforming(rows)
    known = support(publish(Table(SCHEMA, SCHEMA.names, TABLE), *figures), SCHEMA.names)
    for chosen in product((0, 1), repeat=6):
        taken = np.array(chosen, dtype=bool)
        values = tables[:, taken].sum(axis=1)
        found = known.fixes(np.where(taken, 0, -1), 1)[0]
        assert found == bool(np.all(values == values[0])), chosen


def test_several_sums_at_once():
    known = support(publish(Table(SCHEMA, SCHEMA.names, TABLE), margin("b")), SCHEMA.names)
    assert known.fixes(np.array([[0, 1, -1], [0, 2, -1]]), 4).tolist() == [True, False, False, True]


def test_the_structure_in_words():
    table = Table(SCHEMA, SCHEMA.names, TABLE)
    told = support(publish(table, margin("a")), SCHEMA.names).words
    assert told.startswith("2 groups of cells whose sum is known; ")
    crossing = support(publish(table, margin("a"), margin("b")), SCHEMA.names).words
    assert crossing.startswith("6 groups of which only sums over several are known; ")
