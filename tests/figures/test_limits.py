"""Published bounds on a released table, as simple as the exact figures make them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import Figures, publish
from congenial.figures.limits import FAR, bound_rows, conforming_tables, limits
from congenial.figures.statements import (
    at_least,
    at_most,
    count,
    linear,
    margin,
    structural_zeros,
    total,
)
from congenial.pairs.adjacency import SemiAdjacent

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[1, 2, 1], [0, 1, 1]]))

CASES = {
    "a cell": ((total(by="g"), at_most(count("x = 'b'", by="g"), 2)), 0),
    "all but one cell of a group": ((total(by="g"), at_least(count("x != 'c'", by="g"), 1)), 0),
    "a sum": ((total(), at_least(count("g = 'q'"), 2)), 1),
    "negative weights": (
        (total(), at_least(linear({"x = 'a'": -1, "x = 'b'": 2}), 1), at_most(count("x = 'c'"), 3)),
        2,
    ),
    "what every table has": (
        (total(), at_least(count("x = 'a'"), 0), at_most(count("x = 'b'"), 6), at_most(total(), 6)),
        0,
    ),
    "what margins fix": ((margin("g"), margin("x"), at_most(count("x != 'c'"), 4)), 0),
    "a cell of margins": (
        (margin("g"), margin("x"), at_most(linear({"g = 'p' and x = 'b'": 3}), 7)),
        0,
    ),
    "at least, of a cell with a weight": (
        (total(by="g"), at_least(linear({"g = 'p' and x = 'b'": 3}), 4)),
        0,
    ),
    "at most, of a cell with a negative weight": (
        (total(by="g"), at_most(linear({"g = 'p' and x = 'b'": -2}), -3)),
        0,
    ),
    "impossible cells": ((total(), structural_zeros("x = 'c'"), at_most(count("g = 'p'"), 5)), 1),
}
WITHOUT_C = Table(SCHEMA, SCHEMA.names, np.array([[3, 1, 0], [1, 1, 0]]))


def ways(people: int, cells: int):
    """All ways to put people into cells."""
    for bars in combinations(range(people + cells - 1), cells - 1):
        ends = np.array([-1, *bars, people + cells - 1])
        yield np.diff(ends) - 1


@pytest.mark.parametrize("name", CASES)
def test_simplified_bounds_leave_the_same_tables(name):
    statements, sums = CASES[name]
    table = WITHOUT_C if name == "impossible cells" else TABLE
    figures = publish(table, *statements)
    found = limits(figures, SCHEMA.names)
    assert found.sums == sums
    rows, least, most = bound_rows(figures, SCHEMA.names)
    exact = Figures(
        SCHEMA,
        tuple(s for s in statements if s.relation in ("=", "zero")),
        tuple(
            v
            for s, v in zip(statements, figures.values, strict=True)
            if s.relation in ("=", "zero")
        ),
    )
    for counts in ways(table.total, 6):
        if not exact.holds_for(Table(SCHEMA, SCHEMA.names, counts.reshape(2, 3))):
            continue
        told = np.all((rows @ counts >= least) & (rows @ counts <= most))
        assert found.hold(counts) == told


@pytest.mark.parametrize("name", CASES)
def test_all_conforming_tables_are_listed(name):
    statements, _ = CASES[name]
    table = WITHOUT_C if name == "impossible cells" else TABLE
    figures = publish(table, *statements)
    listed = {tuple(m) for m in conforming_tables(figures, SCHEMA.names).tolist()}
    counted = {
        tuple(m.tolist())
        for m in ways(table.total, 6)
        if figures.holds_for(Table(SCHEMA, SCHEMA.names, m.reshape(2, 3)))
    }
    assert listed == counted


def test_what_the_table_does_not_show_is_left_out():
    figures = publish(TABLE, total(), at_least(count("x = 'a'"), 1), at_most(count("g = 'p'"), 5))
    found = limits(figures, ("g",))
    assert found.sums == 0
    assert found.high.tolist() == [5, FAR]
    assert bound_rows(figures, ("g",))[0].toarray().tolist() == [[1, 0]]
    assert limits(publish(TABLE, total()), ("g",)).hold([3, 3])


def test_a_bound_by_finer_names_than_the_table_shows_is_left_out():
    county = {"levels": ["A", "B", "C"], "within": {"state": ["P", "P", "Q"]}}
    schema = Schema.from_dict({"county": county, "x": {"levels": ["a", "b"]}})
    table = Table(schema, schema.names, np.array([[1, 2], [0, 1], [3, 1]]))
    figures = publish(table, at_least(count("x = 'a'", by="county"), 0))
    assert limits(figures, ("county", "x")).low.tolist() == [0] * 6
    assert limits(figures, ("state", "x")).hold([0, 3, 3, 1])


def test_nothing_is_listed_before_figures_are_known_or_when_they_leave_too_much():
    assert conforming_tables(Figures(SCHEMA, (total(),)), SCHEMA.names) is None
    assert conforming_tables(publish(TABLE, count("x = 'a'")), SCHEMA.names) is None
    many = Table(SCHEMA, SCHEMA.names, np.full((2, 3), 1000))
    assert conforming_tables(publish(many, total()), SCHEMA.names) is None


def test_crossing_groups_of_several_cells_attain_their_sensitivity():
    """Total, female and voting age: three people make the same move inside one atom."""
    schema = Schema.from_dict(
        {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 5, 18, 65], "top": "65+"}}
    )
    told = (total(), count("sex = 'f'"), count("age >= 18"))
    many = Table(schema, schema.names, np.array([[4, 9, 20, 7], [5, 8, 22, 3]]))
    found = SemiAdjacent(publish(many, *told)).l1(schema.names)
    assert (found.value, found.exact) == (6, True)
    # Two women, and two people below 18: at most two can be in an atom of either.
    few = Table(schema, schema.names, np.array([[1, 0, 1, 0], [1, 0, 1, 0]]))
    pairs = SemiAdjacent(publish(few, *told))
    listed = conforming_tables(pairs.figures, schema.names)
    apart = np.abs(listed[:, None] - listed[None]).sum(axis=-1)
    true = int(apart[apart <= 2 * pairs.records].max())
    found = pairs.l1(schema.names)
    assert found.value >= true
    assert not found.exact or found.value == true
