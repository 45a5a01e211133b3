"""The sensitivity space S, its norms, rank and hull, against brute force and known sets."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import count, linear, margin, total
from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.papers import Hull, sensitivity, side_by_side
from congenial.papers.sensitivity_spaces import _bounded, _farthest
from tests.pairs import brute
from tests.pairs.universes import CUBE, TWO, TWO_WAY, UNIVERSES, universes
from tests.worlds import levels


def tables_of(schema):
    return [q for k in range(1, len(schema.names) + 1) for q in combinations(schema.names, k)]


@pytest.mark.parametrize("name", UNIVERSES)
def test_space_and_norms_equal_brute_force(name):
    for public, databases in list(universes(name))[::5]:
        schema = public.schema
        for reading in ("robust", "existential"):
            adjacency = SemiAdjacent(public, reading)
            moves = brute.differences(schema, databases, adjacency.records)
            for names in tables_of(schema):
                seen = np.array([brute.onto(schema, u, names).reshape(-1) for u in moves])
                elements = np.unique(seen, axis=0)
                told = sensitivity(adjacency, names)
                closed = adjacency._moves
                for one, norm, bound in (
                    (told.l1, np.abs(seen).sum(axis=1), closed.joint_l1([(names, Fraction(1))])),
                    (
                        told.l2_squared,
                        np.square(seen).sum(axis=1),
                        closed.joint_l2_squared([(names, Fraction(1))]),
                    ),
                    (told.linf, np.abs(seen).max(axis=1), closed.linf(names)),
                ):
                    assert bound.value >= one.value >= norm.max()
                    assert not one.exact or one.value == norm.max()
                    fewer = public.bounds or reading == "existential"
                    assert not bound.exact or fewer or bound.value == norm.max()
                if told.l1.exact:
                    assert np.array_equal(told.elements, elements)
                    assert told.rank.value == np.linalg.matrix_rank(elements)


@pytest.mark.parametrize(
    ("shape", "records", "size", "l1", "square", "rank"),
    [
        ((2, 2), 3, 3, 4, 4, 1),
        ((2, 5), 3, 21, 4, 4, 4),
        ((3, 3), 3, 31, 6, 6, 4),  # printed: 19, the hexagons are missing
        ((3, 4), 3, 85, 6, 6, 6),  # printed: 37
        ((4, 4), 3, 265, 6, 6, 9),
        ((3, 4), 2, 37, 4, 4, 6),
    ],
)
def test_two_way_tables_given_both_margins(shape, records, size, l1, square, rank):
    """ERRATA on Proposition 32: A_3 adds 12 C(r,3) C(c,3) hexagons."""
    schema = levels(r=shape[0], c=shape[1])
    public = Figures(schema, (margin("r"), margin("c")))
    adjacency = SemiAdjacent(public, "robust" if records == 3 else "existential")
    assert adjacency.records == records
    found = sensitivity(adjacency, ("r", "c"))
    told = (found.size, found.l1.value, found.l2_squared.value, found.linf.value, found.rank.value)
    assert told == (size, l1, square, 1, rank)
    # Every difference but 0 is a corner: each is needed to say which noise is enough.
    assert len(found.vertices) == size - 1


def test_hull_of_three_by_three():
    schema = levels(r=3, c=3)
    found = sensitivity(SemiAdjacent(Figures(schema, (margin("r"), margin("c")))), ("r", "c"))
    rng = np.random.default_rng(7)
    for _ in range(8):
        w = rng.integers(-4, 5, (3, 3)).astype(float)
        w -= w.mean(axis=0)
        w -= w.mean(axis=1, keepdims=True)
        assert found.hull.gauge(w) == pytest.approx(np.abs(w).max())
    assert found.hull.gauge(np.eye(3)) == np.inf  # margins change
    printed = sensitivity(
        SemiAdjacent(Figures(schema, (margin("r"), margin("c"))), "existential"), ("r", "c")
    )
    hexagon = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]])
    assert printed.hull.gauge(hexagon) == pytest.approx(2)  # so the printed hull loses 2 eps


def test_vertices_leave_out_mixtures():
    square = np.array([[x, y] for x in (-2, 0, 2) for y in (-2, 0, 2)])
    assert sorted(map(tuple, Hull(square).vertices.tolist())) == [
        (-2, -2),
        (-2, 2),
        (2, -2),
        (2, 2),
    ]
    diamond = np.array([[0, 0], [2, 0], [-2, 0], [0, 2], [0, -2], [1, 1], [-1, -1]])
    assert len(Hull(diamond).vertices) == 4
    assert Hull(np.zeros((1, 3), dtype=np.int64)).vertices.tolist() == [[0, 0, 0]]


def test_containment_order_of_norm_balls():
    """Definition 8: the hull is inside every ball; of the balls some hold each other, some not."""
    flat = sensitivity(SemiAdjacent(Figures(TWO, (margin("x"), margin("y")))), ("x", "y"))
    assert all(flat.contains(ball, "hull") for ball in ("l1", "l2", "linf"))
    assert not any(flat.contains("hull", ball) for ball in ("l1", "l2", "linf"))
    assert flat.contains("l1", "linf") is True  # Delta_inf = 1, d = 4 and Delta_1 = 4
    assert flat.contains("l2", "linf") is True
    assert flat.contains("linf", "l1") is False
    line = sensitivity(AddRemove(levels(w=1), 2), ("w",))  # one number: all balls are one
    assert all(
        line.contains(a, b) is not False
        for a in ("hull", "l1", "l2", "linf")
        for b in ("hull", "l1", "linf")
    )
    full = sensitivity(AddRemove(TWO, 1), ("x", "y"))
    assert full.contains("hull", "l1") is True  # the hull of one added row is the l1 ball
    assert full.contains("hull", "linf") is False


def test_spaces_side_by_side():
    """Proposition 24: S_Semi in S_Group, and the norms of S_Group at most a times those of S_DP."""
    for schema, statements in ((TWO, (margin("x"), margin("y"))), (CUBE, TWO_WAY[:2])):
        spaces = side_by_side(SemiAdjacent(Figures(schema, statements)), schema.names)
        group = {u.tobytes() for u in spaces.group.elements}
        assert all(u.tobytes() in group for u in spaces.semi.elements)
        a, rows = spaces.records, spaces.rows()
        assert [row["space"] for row in rows] == ["a * S_DP", "S_Group", "S_Semi"]
        for key in ("Delta_1", "Delta_2^2", "Delta_inf"):
            assert rows[2][key] <= rows[1][key] <= rows[0][key]
        whole = Hull(spaces.dp.elements)
        for u in spaces.group.elements[:: len(spaces.group.elements) // 10]:
            assert whole.gauge(u) <= a + 1e-7


def test_any_linear_query():
    """A query may be statements with weights; S is the same as brute force finds."""
    schema = levels(x=2, y=3)
    statements = (margin("x"), margin("y"))
    query = (linear({"x = '0' and y = '0'": 2, "y = '1'": -1, "x = '1' and y = '2'": 3}), total())
    table = brute.table_of(schema, (0, 1, 2, 3, 4))
    public = Figures(schema, statements).evaluate(table)
    adjacency = SemiAdjacent(public)
    found = sensitivity(adjacency, query)
    weights = np.array([[2, -1, 0], [0, -1, 3]])
    databases = next(
        d for d in brute.conforming(schema, statements, 5).values() if (0, 1, 2, 3, 4) in d
    )
    moves = brute.differences(schema, databases, adjacency.records)
    values = {(int((u * weights).sum()), 0) for u in moves}
    assert {tuple(row) for row in found.elements.tolist()} == values
    assert found.rank.value == 1
    # Too large to be listed: a bound from the two answers farthest apart.
    wide = levels(a=9, b=9, c=9)
    coarse = sensitivity(
        SemiAdjacent(Figures(wide, (margin("a"), margin("b")))),
        linear({"a = '0'": 5, "b = '1'": -2}),
    )
    assert coarse.elements is None or coarse.l1.value <= 3 * 7
    far = sensitivity(
        SemiAdjacent(Figures(wide, (margin("a"), margin("b"), margin("c")))),
        [
            linear({"a = '0' and c = '0'": 5, "b = '1'": -2}, by="c"),
            count("a = '3'", by=("b", "c")),
        ],
    )
    assert far.elements is None
    assert far.l1.value >= 4 * 5
    assert not far.l1.exact
    with pytest.raises(StructureError, match="too large to be listed"):
        _ = far.hull


def test_the_two_answers_farthest_apart_are_reached():
    """The bound for queries too large to list, where one person's two answers attain it."""
    one = ReplaceOne(levels(x=2))
    apart = (linear({"x = '0'": 1}), linear({"x = '1'": 1}))
    assert [s.value for s in _farthest(one, apart)] == [2, 4, 1]
    assert sensitivity(one, apart).l1.value == 2
    opposite = (linear({"x = '0'": 1, "x = '1'": -1}),)
    assert [s.value for s in _farthest(one, opposite)] == [2, 4, 2]
    assert sensitivity(one, opposite).l2_squared.value == 4


def test_large_tables_in_closed_form_are_exact_with_enough_people():
    """Six margins and many people on each level: Delta_1 = 2 a occurs, though S is not listed."""
    schema = levels(a=2, b=2, c=2, d=2, e=2, f=2)
    rng = np.random.default_rng(3)
    database = rng.integers(0, 64, 200)
    public = Figures(schema, tuple(margin(n) for n in schema.names)).evaluate(
        brute.table_of(schema, database)
    )
    adjacency = SemiAdjacent(public)
    assert adjacency.a_star.exact
    found = sensitivity(adjacency, schema.names)
    assert found.l1.exact
    assert found.l1.value == 2 * adjacency.records
    assert found.rank.value == 64 - 7
    few = Figures(schema, tuple(margin(n) for n in schema.names)).evaluate(
        brute.table_of(schema, [0, 63, 1, 2])
    )
    assert not sensitivity(SemiAdjacent(few), schema.names).l1.exact  # too few for two swaps


def test_few_tables_are_subtracted_where_multisets_are_too_many():
    schema = levels(a=2, b=3, c=3)
    pairs = tuple(margin(*some) for some in combinations(schema.names, 2))
    database = np.random.default_rng(20240901).integers(0, 18, 30)
    public = Figures(schema, pairs).evaluate(brute.table_of(schema, database))
    adjacency = SemiAdjacent(public)
    found = sensitivity(adjacency, schema.names)
    assert adjacency.records == 7  # 18 cells: more than 40,000 multisets of seven
    cubes = found.elements.reshape(-1, 2, 3, 3)
    assert not any(np.any(cubes.sum(axis=k)) for k in (1, 2, 3))
    told = (found.l1.value, found.l2_squared.value, found.linf.value, found.rank.value)
    assert (told, found.l1.by, found.l1.exact) == ((12, 12, 1, 4), "enumeration", True)


def test_one_record_is_ordinary_privacy():
    schema = Schema.from_dict({"g": {"levels": ["a", "b"]}, "x": {"integers": [0, 2]}})
    found = sensitivity(ReplaceOne(schema), ("g", "x"))
    assert (found.size, found.l1.value, found.l2_squared.value, found.linf.value) == (31, 2, 2, 1)
    rows = sensitivity(AddRemove(schema, 2), ("x",))
    assert (rows.l1.value, rows.l2_squared.value, rows.linf.value) == (2, 4, 2)
    assert rows.l1.exact


# ---- the rank of S where S is not listed, against that of the listed elements -------------------

SCHEMA = Schema.from_dict({"a": {"levels": list("pq")}, "b": {"levels": list("xyz")}})
BOTH = Figures(SCHEMA, (margin("a"), margin("b")))
CASES = {
    "cells, no figure": (Figures(SCHEMA), (total(by=("a", "b")),), 5),
    "cells, the total": (Figures(SCHEMA, (total(),)), (total(by=("a", "b")),), 5),
    "cells, one margin": (Figures(SCHEMA, (margin("b"),)), (total(by=("a", "b")),), 3),
    "cells, both margins": (BOTH, (total(by=("a", "b")),), 2),
    "a margin that is published": (BOTH, (margin("b"),), 0),
    "a margin beside another": (Figures(SCHEMA, (margin("a"),)), (margin("b"),), 2),
    "counts that overlap": (
        Figures(SCHEMA),
        (count("a = 'p'"), count("b = 'x'"), linear({"a = 'p'": 1, "b = 'x'": 1})),
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rank_without_a_list_is_that_of_the_list(name):
    figures, query, rank = CASES[name]
    pairs = SemiAdjacent(figures)
    listed = sensitivity(pairs, query)
    assert listed.elements is not None
    assert np.linalg.matrix_rank(listed.elements) == listed.rank.value == rank
    bounded = _bounded(pairs, query, listed.dimension).rank
    assert (int(bounded.value), bounded.exact) == (rank, False)


def test_people_who_come_and_go_have_one_direction_more():
    cells = (total(by=("a", "b")),)
    assert _bounded(AddRemove(SCHEMA), cells, 6).rank.value == 6
    assert _bounded(SemiAdjacent(Figures(SCHEMA)), cells, 6).rank.value == 5
