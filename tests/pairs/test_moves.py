"""Closed forms over many atoms at once, against the same sums made atom by atom."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Schema, SemiAdjacent, Table, count, publish, total
from congenial.figures.people import People
from congenial.pairs.adjacency import Moves
from congenial.pairs.pairs import Weighted
from tests.worlds import levels

SEED = 20_261_116
SCHEMA = Schema.from_dict(
    {
        "place": {"integers": [1, 7]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
TABLES = [("sex",), ("place",), ("age", "sex"), ("place", "age"), ("place", "sex", "age")]


def atom_by_atom(moves: Moves, releases: list[Weighted]) -> tuple[Fraction, bool, Fraction]:
    """Value of `joint_l1`, whether its movers are known, and value of `joint_l2_squared`."""
    people = moves.groups.people
    seen = [(moves._varies(names) & (people > 0), w) for names, w in releases]
    price = [sum((w for s, w in seen if s[i]), Fraction(0)) for i in range(len(people))]
    left, value, known = moves.moves, Fraction(0), True
    for atom in sorted(range(len(price)), key=lambda i: -price[i]):
        movers = int(min(left, people[atom]))
        value += 2 * movers * price[atom]
        left -= movers
        known = known and (movers == 0 or moves._known(atom))
    able = sum(p for p, v in zip(people, price, strict=True) if v)
    movers = int(min(moves.moves, able))
    best = max(range(len(price)), key=lambda i: (price[i], people[i]))
    return value, known, 2 * movers**2 * price[best]


def universes() -> list[Figures]:
    """None, one and two nested figures, with and without their values, with empty places."""
    chance = np.random.default_rng(SEED)
    places = chance.integers(0, 4, size=7)
    minors = chance.integers(0, places + 1)
    by_place, by_minors = total("place"), count("age < 18", by="place")
    return [
        Figures(SCHEMA),
        Figures(SCHEMA, (by_place,)),
        Figures(SCHEMA, (by_place,), (places,)),
        Figures(SCHEMA, (by_place, by_minors), (places, minors)),
        Figures(SCHEMA, (by_minors,), (minors,)),
    ]


@pytest.mark.parametrize("moves", [1, 2, 3, 8])
@pytest.mark.parametrize("which", range(5))
def test_many_atoms_at_once_as_atom_by_atom(which: int, moves: int) -> None:
    chance = np.random.default_rng(SEED + which)
    made = Moves(People(universes()[which]), moves)
    assert made.nested
    for size in (1, 2, 4):
        for _ in range(6):
            chosen = chance.choice(len(TABLES), size=size, replace=False)
            weights = chance.integers(1, 4, size=size)
            releases = [
                (TABLES[i], Fraction(int(w), 2)) for i, w in zip(chosen, weights, strict=True)
            ]
            value, known, square = atom_by_atom(made, releases)
            found = made.joint_l1(releases)
            assert found.value == value
            assert known or not found.exact
            assert made.joint_l2_squared(releases).value == square


def test_before_publication_people_surely_exist_only_where_everybody_is_in_one_atom():
    """Bounds are then attained; by areas nobody knows which of them has people."""
    schema = levels(x=2, y=3)
    alone, apart = (SemiAdjacent(Figures(schema, (one,))) for one in (total(), total(by="x")))
    for norm in ("l1", "l2_squared", "linf"):
        assert getattr(alone, norm)(schema.names).exact
        assert not getattr(apart, norm)(schema.names).exact
    existential = SemiAdjacent(apart.published, "existential")
    assert existential.records == 1
    assert not existential.linf(schema.names).exact


def test_an_area_that_cannot_move_vouches_for_nobody():
    """Two areas under three one-way margins: the one that could move four people has too few of
    them, and in the other everybody is on one level of two margins.
    """
    schema = levels(area=2, x=2, y=2, z=2)
    counts = np.zeros((2, 2, 2, 2), dtype=np.int64)
    counts[0, 0, 0, 0] = counts[0, 1, 0, 0] = counts[0, 0, 1, 0] = counts[0, 0, 0, 1] = 1
    counts[1, 0, 0] = 5, 4
    figures = [count(f"{name} = '1'", by="area") for name in "xyz"]
    pairs = SemiAdjacent(publish(Table(schema, schema.names, counts), total(by="area"), *figures))
    closed = pairs._moves.joint_l1([(schema.names, Fraction(1))])
    listed = pairs.differences((total(by=schema.names),))
    assert listed is not None
    assert listed.exact
    farthest = int(np.abs(listed.seen(0)).sum(axis=1).max())
    assert (pairs.records, farthest, int(closed.value)) == (4, 6, 8)
    assert not closed.exact
    assert pairs.l1(schema.names).value == farthest
