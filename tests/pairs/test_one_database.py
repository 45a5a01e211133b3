"""a* = 0 where one database conforms (semi-dp, Example 3), against all databases of few people."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from congenial import Guarantee, Schema, SemiAdjacent, Table, calibrate
from congenial.errors import FigureError, StructureError
from congenial.figures import Statement, at_least, at_most, count, linear, margin, publish, total
from congenial.privacy.semantics import neighbourhood

SCHEMA = Schema.from_dict({"a": {"levels": list("pq")}, "b": {"levels": list("xyz")}})
BIT = Schema.from_dict({"x": {"levels": ["0", "1"]}})
FIGURES: dict[str, tuple[Schema, tuple[Statement, ...]]] = {
    "ones": (BIT, (total(), count("x = '1'"))),
    "twice the ones": (BIT, (total(), linear({"x = '1'": 2}))),
    "one margin": (SCHEMA, (margin("a"),)),
    "both margins": (SCHEMA, (margin("a"), margin("b"))),
    "no ones": (BIT, (total(), at_most(count("x = '1'"), 0))),
    "many ones": (BIT, (total(), at_least(count("x = '1'"), 2))),
    "crossing counts": (SCHEMA, (total(), linear({"a = 'p'": 1, "b = 'x'": 2}))),
}


def databases(schema: Schema, people: int):
    """Tables of all databases of that many people, with how many databases have each."""
    shape = tuple(len(schema.axis(name).levels) for name in schema.names)
    cells = int(np.prod(shape))
    tables: dict[tuple[int, ...], int] = {}
    for records in product(range(cells), repeat=people):
        key = tuple(np.bincount(np.array(records, dtype=int), minlength=cells).tolist())
        tables[key] = tables.get(key, 0) + 1
    return {key: (np.array(key).reshape(shape), times) for key, times in tables.items()}


@pytest.mark.parametrize("people", [0, 1, 2, 3])
@pytest.mark.parametrize("name", FIGURES)
def test_a_star_is_zero_exactly_where_one_database_conforms(name, people):
    schema, statements = FIGURES[name]
    every = databases(schema, people)
    checked = 0
    for counts, _ in every.values():
        table = Table(schema, schema.names, counts)
        try:
            figures = publish(table, *statements)
        except FigureError:  # a bound that this database breaks
            continue
        conforming = sum(
            times
            for other, times in every.values()
            if figures.holds_for(Table(schema, schema.names, other))
        )
        for reading in ("robust", "existential", "literal"):
            pairs = SemiAdjacent(figures, reading)
            assert (pairs.a_star.value == 0) == (conforming == 1)
            assert pairs.records >= 1
        assert SemiAdjacent(figures, metric="symmetric difference").a_star.value >= 1
        checked += 1
    assert checked or (name, people) in {("many ones", 0), ("many ones", 1)}


EVERYBODY_KNOWN = {
    "all have one answer": publish(Table(BIT, ("x",), np.array([3, 0])), margin("x")),
    "a public bound": publish(
        Table(BIT, ("x",), np.array([3, 0])), total(), at_most(count("x = '1'"), 0)
    ),
    "nobody": publish(Table(SCHEMA, ("a", "b"), np.zeros((2, 3), dtype=np.int64)), total()),
}


@pytest.mark.parametrize("name", EVERYBODY_KNOWN)
def test_words_say_that_nothing_is_left_and_a_release_is_refused(name):
    pairs = SemiAdjacent(EVERYBODY_KNOWN[name])
    assert pairs.a_star.words.startswith("0 (exact, by ")
    assert pairs.words.endswith("so nothing but numbers that are summed is left to protect")
    assert neighbourhood(pairs) == "destroyed"
    assert pairs.nothing_left
    for mechanism in ("auto", "congenial_counts"):
        with pytest.raises(StructureError, match="nothing is left to protect"):
            calibrate(mechanism, Guarantee.pure(1, under=pairs))


def test_one_table_of_two_people_is_not_one_database():
    """They can change places: two records differ, though no table does."""
    pairs = SemiAdjacent(publish(Table(BIT, ("x",), np.array([2, 1])), margin("x")))
    assert (pairs.a_star.value, pairs.nothing_left) == (2, True)
    assert "2 people's records" in pairs.words


def test_a_wider_distance_may_still_be_asked_for():
    known = EVERYBODY_KNOWN["nobody"]
    assert SemiAdjacent(known, within=2).records == 2
    assert SemiAdjacent(known).records == 1  # losses per record are still counted
