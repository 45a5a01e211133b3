"""a*, Delta_1 and Delta_2 against brute force over all databases of small universes."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from congenial import AddRemove, ReplaceOne, Schema, SemiAdjacent
from congenial.figures import Figures, count, lattice, linear, margin, structural_zeros, total
from congenial.pairs.universe import Universe
from tests.pairs.brute import conforming, differences, onto, robust_a, table_of
from tests.pairs.universes import UNIVERSES, universes

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["a", "b", "c"], "within": {"state": ["N", "N", "S"]}},
        "sex": {"levels": ["f", "m"]},
    }
)
WIDE = Schema.from_dict({"age": {"integers": [0, 3]}, "sex": {"levels": ["f", "m"]}})

LAMINAR = {
    "nothing": (SCHEMA, ()),
    "total": (SCHEMA, (total(),)),
    "county": (SCHEMA, (total(by="county"),)),
    "state": (SCHEMA, (total(by="state"),)),
    "tree": (SCHEMA, (total(by="state"), count("sex = 'f'", by="county"))),
    "one count": (SCHEMA, (count("county = 'a'"),)),
    "adults": (WIDE, (total(), count("age >= 2"))),
    "weighted": (WIDE, (linear({"age >= 2": 2, "age < 2": 3}), total())),
    "zeros": (WIDE, (count("age >= 2"), structural_zeros("age = 0 and sex = 'm'"))),
    "fixed": (SCHEMA, (margin("county", "sex"),)),
    "nested ages": (WIDE, (count("age >= 1"), count("age >= 2"), count("age >= 3"))),
    "crossing but saturated": (
        WIDE,
        (total(), count("age >= 2"), count("sex = 'f'"), count("age >= 2 and sex = 'f'")),
    ),
}
QUERIES = {
    "SCHEMA": [("county", "sex"), ("sex",), ("state",), ("state", "sex"), ("county",)],
    "WIDE": [("age", "sex"), ("age",), ("sex",)],
}


def cases():
    for name, (schema, statements) in LAMINAR.items():
        for n in (1, 2, 3):
            yield pytest.param(schema, statements, n, id=f"{name}-n{n}")


@pytest.mark.parametrize(("schema", "statements", "n"), cases())
def test_a_star_and_sensitivities_equal_brute_force(schema, statements, n):
    queries = QUERIES["SCHEMA" if schema is SCHEMA else "WIDE"]
    for databases in conforming(schema, statements, n).values():
        published = Figures(schema, statements).evaluate(table_of(schema, databases[0]))
        adjacency = SemiAdjacent(published)
        # The loose atom's people are not published, so only an upper bound is promised there.
        everything_known = 0 not in published.atoms
        if everything_known:
            assert adjacency.records == max(1, robust_a(databases))
        else:
            assert adjacency.records >= robust_a(databases)
        moves = differences(schema, databases, adjacency.records)
        for names in queries:
            l1 = max(int(np.abs(onto(schema, u, names)).sum()) for u in moves)
            l2 = max(int((onto(schema, u, names) ** 2).sum()) for u in moves)
            if everything_known:
                assert adjacency.l1(names).value == l1
            assert adjacency.l1(names).value >= l1
            assert adjacency.l2_squared(names).value >= l2
            if everything_known and adjacency.l2_squared(names).exact:
                assert adjacency.l2_squared(names).value == l2


@pytest.mark.parametrize(("schema", "statements", "n"), cases())
def test_joint_suprema_bound_and_attain(schema, statements, n):
    names = QUERIES["SCHEMA" if schema is SCHEMA else "WIDE"][:3]
    releases = [(q, Fraction(i + 1, 3)) for i, q in enumerate(names)]
    for databases in conforming(schema, statements, n).values():
        published = Figures(schema, statements).evaluate(table_of(schema, databases[0]))
        adjacency = SemiAdjacent(published)
        moves = differences(schema, databases, adjacency.records)
        truth = max(
            sum((w * int(np.abs(onto(schema, u, q)).sum()) for q, w in releases), Fraction(0))
            for u in moves
        )
        square = max(
            sum((w * int((onto(schema, u, q) ** 2).sum()) for q, w in releases), Fraction(0))
            for u in moves
        )
        for told, brute in (
            (adjacency.joint_l1(releases), truth),
            (adjacency.joint_l2_squared(releases), square),
        ):
            assert told.value >= brute
            if told.exact and 0 not in published.atoms:
                assert told.value == brute


def test_without_values_the_numbers_hold_for_every_value():
    for schema, statements in LAMINAR.values():
        planned = SemiAdjacent(Figures(schema, statements))
        for databases in conforming(schema, statements, 2).values():
            published = Figures(schema, statements).evaluate(table_of(schema, databases[0]))
            known = SemiAdjacent(published)
            assert planned.records >= known.records
            assert planned.l1(schema.names).value >= known.l1(schema.names).value


def test_replace_one_is_ordinary_differential_privacy():
    adjacency = ReplaceOne(SCHEMA)
    assert adjacency.records == 1
    assert adjacency.l1(["county", "sex"]).value == 2
    assert adjacency.l2_squared(["county", "sex"]).value == 2
    assert adjacency.l1([]).value == 0


def test_add_remove_counts_rows():
    adjacency = AddRemove(SCHEMA, 3)
    assert adjacency.l1(["sex"]).value == 3
    assert adjacency.l2_squared(["sex"]).value == 9
    assert adjacency.joint_l1([(("sex",), Fraction(1, 2)), (("county",), Fraction(1))]).value == 4.5


def test_a_planted_wrong_a_is_noticed():
    """The brute force can fail: a = 1 is too small as soon as two groups are non-empty."""
    statements = (total(by="county"),)
    databases = max(conforming(SCHEMA, statements, 2).values(), key=len)
    assert robust_a(databases) == 2


def test_universe_enumerates_conforming_tables():
    schema, statements = LAMINAR["adults"]
    published = Figures(schema, statements).evaluate(table_of(schema, (0, 4)))
    tables = list(Universe(published).tables(2))
    assert len(tables) == 16  # one of 4 young cells and one of 4 old ones
    assert all(published.holds_for(table) for table in tables)


CROSSING = {
    "two margins": (SCHEMA, (margin("county"), margin("sex")), 3),
    "total, female, adults": (WIDE, (total(), count("sex = 'f'"), count("age >= 2")), 3),
    "without the total": (WIDE, (count("sex = 'f'"), count("age >= 2")), 3),
    "nested and crossing": (WIDE, (margin("sex"), count("age >= 2"), count("age >= 3")), 3),
    "three margins": (
        Schema.from_dict({k: {"levels": ["0", "1"]} for k in ("x", "y", "z")}),
        (margin("x"), margin("y"), margin("z")),
        4,
    ),
}


# Released tables that show two atoms of a block as one cell, where a swap doubles: square 8, not 4.
CROSSING |= {
    "crossing halves of one attribute": (
        Schema.from_dict(
            {"q": {"levels": ["0", "1", "2", "3"], "within": {"par": ["e", "o", "o", "e"]}}}
        ),
        (total(), count("q in ('0', '1')"), count("q in ('0', '2')")),
        3,
    ),
    "a and a xor b": (
        Schema.from_dict({"a": {"levels": ["0", "1"]}, "b": {"levels": ["0", "1"]}}),
        (margin("a"), count("(a = '0' and b = '1') or (a = '1' and b = '0')")),
        3,
    ),
}
MERGED = {"crossing halves of one attribute": ("q", "par")}


@pytest.mark.parametrize("name", CROSSING)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_crossing_margins_against_brute_force(name, n):
    """Bounds hold for every value of the figures, and are attained once there are enough people."""
    schema, statements, a = CROSSING[name]
    released = {key: value[0].names for key, value in CROSSING.items()} | MERGED
    attained = False
    for databases in list(conforming(schema, statements, n).values())[:: 3 if n > 2 else 1]:
        published = Figures(schema, statements).evaluate(table_of(schema, databases[0]))
        adjacency = SemiAdjacent(published)
        truth = robust_a(databases)
        assert adjacency.records >= truth
        attained |= adjacency.records == truth == a
        moves = differences(schema, databases, adjacency.records)
        for names in [schema.names, *((one,) for one in released[name])]:
            l1 = max(int(np.abs(onto(schema, u, names)).sum()) for u in moves)
            l2 = max(int((onto(schema, u, names) ** 2).sum()) for u in moves)
            assert adjacency.l1(names).value >= l1
            assert adjacency.l2_squared(names).value >= l2
    if n >= a:
        assert attained


def test_sensitivities_of_two_way_tables():
    """One cell per atom: swaps (4), or hexagons (6) when three levels meet on both sides."""
    for levels, l1, l2 in (((2, 5), 4, 4), ((3, 4), 6, 6)):
        schema = Schema.from_dict(
            {"r": {"integers": [1, levels[0]]}, "c": {"integers": [1, levels[1]]}}
        )
        adjacency = SemiAdjacent(Figures(schema, (margin("r"), margin("c"))))
        assert adjacency.records == 3
        assert adjacency.l1(("r", "c")).value == l1
        assert adjacency.l2_squared(("r", "c")).value == l2
    # Total + female + voting age has many cells per atom: three people move inside them.
    paper = Figures(WIDE, (total(), count("sex = 'f'"), count("age >= 2")))
    assert SemiAdjacent(paper).l1(("age", "sex")).value == 6


def test_empty_levels_do_not_count():
    table = table_of(SCHEMA, (0, 0, 1))  # all of county a
    adjacency = SemiAdjacent(Figures(SCHEMA, (margin("county"), margin("sex"))).evaluate(table))
    assert adjacency.records == 2


@pytest.mark.parametrize(
    "statements",
    [
        (total(), total(by="state"), count("sex = 'f' or sex = 'm'")),
        (total().named("one"), total().named("two"), total().named("three")),
        (margin("state"), margin("sex"), structural_zeros("state = 'S' and sex = 'm'")),
    ],
)
def test_figures_that_determine_their_groups_have_no_blocks(statements):
    figures = Figures(SCHEMA, statements)
    assert figures.structure == "laminar"
    assert len(figures.blocks) == 0
    assert SemiAdjacent(figures).records <= 2


def test_nothing_is_left_when_repeated_totals_fix_the_table():
    schema = Schema.from_dict(
        {"c": {"levels": ["a", "b"], "within": {"st": ["s", "s"], "nat": ["n", "n"]}}}
    )
    adjacency = SemiAdjacent(Figures(schema, (total(by="c"), total(by="st"), total(by="nat"))))
    assert adjacency.l1(["c"]).value == 0


def test_impossible_cells_are_part_of_the_words():
    public = Figures(SCHEMA, (total(), structural_zeros("county = 'a' and sex = 'm'")))
    assert "what is impossible by definition" in SemiAdjacent(public).words
    assert "Impossible: county = 'a'" in Universe(public).words
    alone = Figures(SCHEMA, (structural_zeros("sex = 'm'"),))
    assert "two datasets of the same size" not in SemiAdjacent(alone).words


def test_weights_are_ordered_exactly():
    """Two weights that floats cannot tell apart: the dearer one must be counted."""
    schema = Schema.from_dict({k: {"levels": ["0", "1"]} for k in "gxy"})
    table = table_of(schema, (0, 0, 7, 7))
    public = Figures(
        schema,
        (total(by="g"), count("g = '0' and x = '0'"), count("g = '1' and y = '0'")),
    ).evaluate(table)
    more = 1 + Fraction(1, 10**20)
    for heavy, light in ((more, Fraction(1)), (Fraction(1), more)):
        both = SemiAdjacent(public).joint_l1([(("g", "y"), heavy), (("g", "x"), light)])
        assert both.value == 4 * more


@pytest.mark.parametrize("name", CROSSING)
def test_level_totals_are_the_margins(name):
    """The people on each level decide a*; they must be right for every conforming table."""
    schema, statements, _ = CROSSING[name]
    for databases in conforming(schema, statements, 3).values():
        table = table_of(schema, databases[0])
        published = Figures(schema, statements).evaluate(table)
        counts = table.marginal(published.bases).counts.reshape(-1)
        people = np.bincount(published.atoms, weights=counts)
        for kind in published.blocks:
            told = published.level_totals(kind)
            if told is None:
                continue
            for level, totals in zip(kind.features.T, told, strict=True):
                for atoms, of_block in zip(kind.atoms, totals, strict=True):
                    truth = np.bincount(level, weights=people[atoms])
                    assert np.array_equal(of_block, truth)


def test_a_fractional_solution_still_gives_the_margins():
    """Four corners of a cube form a basis of determinant 2: halves must not be cut off."""
    matrix = sp.csr_matrix(
        np.array([[1, 1, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]], dtype=np.int64)
    )
    values = np.array([2, 1, 1, 1])
    x = lattice.solution(matrix, values)
    assert np.allclose(matrix @ x, values)
    assert lattice.atom_totals(matrix, values) is None


def tables_of(schema):
    return [q for k in range(1, len(schema.names) + 1) for q in combinations(schema.names, k)]


@pytest.mark.parametrize("name", ["one-way, 2 x 2 x 2", "overlapping", "weighted, four", "joint"])
def test_joint_suprema_equal_brute_force(name):
    for public, databases in list(universes(name))[::5]:
        schema = public.schema
        adjacency = SemiAdjacent(public)
        releases = [(q, Fraction(i + 1, 3)) for i, q in enumerate(tables_of(schema))]
        moves = differences(schema, databases, adjacency.records)
        for joint, power in ((adjacency.joint_l1, 1), (adjacency.joint_l2_squared, 2)):
            truth = max(
                sum(
                    (w * int((np.abs(onto(schema, u, q)) ** power).sum()) for q, w in releases),
                    Fraction(0),
                )
                for u in moves
            )
            assert joint(releases).exact
            assert joint(releases).value == truth


def test_planned_numbers_hold_for_every_value():
    for name in ("one-way, 2 x 2 x 2", "overlapping", "weighted, four", "margins and bound"):
        schema, statements = UNIVERSES[name][:2]
        planned = SemiAdjacent(Figures(schema, statements))
        for public, _ in list(universes(name))[::12]:
            known = SemiAdjacent(public)
            assert planned.records >= known.records
            for names in tables_of(schema):
                assert planned.l1(names).value >= known.l1(names).value
                assert planned.linf(names).value >= known.linf(names).value
                assert planned.l2_squared(names).value >= known.l2_squared(names).value
