"""a* and the other readings against brute force over all databases of small universes."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.people import merged
from congenial.figures.statements import at_least, at_most, count, linear, margin, total
from congenial.pairs import a_star, searched_distances
from congenial.pairs.a_star import reach
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.searched_distances import ListedDistances
from tests.pairs import brute
from tests.pairs.universes import CUBE, ONE, TWO, TWO_WAY, UNIVERSES, universes
from tests.worlds import levels


def truths(schema, databases):
    """a* of each reading by brute force: at least 1, and 0 where one database conforms."""
    least = int(len(databases) > 1)
    generating = max(least, brute.generating_a(schema, databases))
    return {
        "robust": max(generating, brute.robust_a(databases)),
        "existential": max(generating, brute.existential_a(schema, databases)),
        "literal": max(least, brute.literal_a(databases)),
    }


@pytest.mark.parametrize("name", UNIVERSES)
def test_every_reading_equals_brute_force(name):
    assert compare(universes(name)) >= 6


@pytest.mark.audit
@pytest.mark.parametrize("name", UNIVERSES)
def test_every_reading_for_every_value_of_the_figures(name):
    assert compare(universes(name, 1000, every=True)) >= 6


def compare(some) -> int:
    checked = 0
    for public, databases in some:
        for reading, brutal in truths(public.schema, databases).items():
            told = SemiAdjacent(public, reading).a_star
            assert told.value >= brutal
            assert not told.exact or told.value == brutal
            checked += 1
    return checked


def test_which_structures_are_exact_and_by_what():
    seen = {}
    for name in UNIVERSES:
        public, _ = next(iter(universes(name)))
        star = SemiAdjacent(public).a_star
        seen[name] = (star.by, star.exact)
    assert seen["one-way, 2 x 2 x 2"] == seen["joint"] == ("closed form", True)
    assert seen["overlapping"] == seen["weighted"] == ("enumeration", True)
    assert seen["margins and bound"] == ("enumeration", True)
    # n is public but follows from no published figure: bounded for every n.
    assert seen["weighted, no total"] == seen["a bound"] == ("Graver bound", False)


@pytest.mark.parametrize("name", UNIVERSES)
def test_remark_14_and_connectedness_by_name(name):
    for public, databases in universes(name, most=60):
        listed = a_star.listed_tables(merged(public))
        if listed is None or len(np.unique(listed.tables.sum(axis=1))) > 1:
            continue
        assert (listed.nearest, listed.farthest) == brute.remark_14(databases)
        for a in (1, 2, 3):
            assert listed.components(a) == brute.components(public.schema, databases, a)


@pytest.mark.parametrize("name", ["overlapping", "weighted, four", "chain", "one-way, 2 x 2 x 2"])
def test_graver_bound_and_integer_programme_agree_with_the_list(name):
    some = [(p, d) for p, d in universes(name) if len(merged(p).tables) > 1][:3]
    assert some
    for public, databases in some:
        of = merged(public)
        assert searched_distances.able(of)
        listed = ListedDistances(of.tables, of.several)
        assert max(2, listed.robust) == searched_distances.worst_distance(of)
        assert max(1, listed.existential) == searched_distances.worst_distance(of, tables_only=True)
        generating = max(searched_distances.generating_distance(of), int(listed.inside))
        assert generating == listed.generating
        bound = a_star.search(unlisted(public), "robust", "replace-one")
        assert bound.star.by == "Graver bound"
        assert bound.star.value >= truths(public.schema, databases)["robust"]


def unlisted(public):
    """The same figures, as if their conforming tables were too many."""
    of = merged(public)
    object.__setattr__(of, "tables", None)
    return of


def test_integer_programmes_are_used_where_the_basis_is_too_large(monkeypatch):
    public, databases = next(
        (p, d) for p, d in universes("overlapping") if len(merged(p).tables) > 1
    )
    monkeypatch.setattr(a_star, "graver", lambda rows: None)
    found = a_star.search(unlisted(public), "robust", "replace-one")
    assert (found.star.by, found.star.exact) == ("integer programme", True)
    assert found.star.value == truths(public.schema, databases)["robust"]
    monkeypatch.setattr(searched_distances, "MOST_TURNS", 0)
    with pytest.raises(StructureError, match="too many to work out"):
        a_star.search(unlisted(public), "robust", "replace-one")


def test_a_distance_is_called_exact_only_where_it_is_attained(monkeypatch):
    """With a bound, and at the least value that is ever used, a programme gives an upper bound."""
    monkeypatch.setattr(a_star, "graver", lambda rows: None)
    seen = set()
    for name in ("margins and bound", "overlapping", "weighted, four"):
        for public, databases in universes(name, most=8):
            found = a_star.search(unlisted(public), "robust", "replace-one").star
            if found.by == "integer programme":
                bounded = bool(len(merged(public).bounds))
                seen.add((bounded, found.value > 2, found.exact))
                assert found.value >= truths(public.schema, databases)["robust"]
    assert (False, True, True) in seen
    assert any(bounded for bounded, _, _ in seen)
    assert all(exact == (large and not bounded) for bounded, large, exact in seen)


def test_a_solver_that_breaks_a_figure_is_not_believed(monkeypatch):
    """A move that is off by one record in one cell keeps no figure about that cell."""
    public, _ = next((p, d) for p, d in universes("overlapping") if len(merged(p).tables) > 1)
    of, solve = merged(public), searched_distances._Programme.solve
    table = of.tables[0]
    source, target = int(np.argmax(table)), int(np.argmin(table))
    assert not np.any(of.equal @ searched_distances._cheapest(of, table, source, target, False))
    first = int(of.equal.indices[0])

    def off(programme, objective):
        found = solve(programme, objective)
        found[first] += 1
        return found

    monkeypatch.setattr(searched_distances._Programme, "solve", off)
    with pytest.raises(searched_distances.GaveUp):
        searched_distances._cheapest(of, table, source, target, False)


def test_all_two_way_margins_of_a_cube():
    """ERRATA: Theorem 16's bound of p + 1 and Remark 17 fail for overlapping margins."""
    for cells, a in ((np.array([0, 3, 5, 6]), 4), (np.array([0, 3, 5, 6, 6]), 5)):
        public = Figures(CUBE, TWO_WAY).evaluate(brute.table_of(CUBE, cells))
        adjacency = SemiAdjacent(public)
        assert (adjacency.records, adjacency.a_star.exact) == (a, True)
        # Within 3 records nothing differs: noise calibrated to that would be no noise.
        for within in (2, 3):
            with pytest.raises(StructureError, match="below a") as error:
                SemiAdjacent(public, within=within)
            assert "ruled out with certainty" in str(error.value)
        assert SemiAdjacent(public, within=a).records == a
    assert SemiAdjacent(Figures(CUBE, TWO_WAY)).records == 5  # the Graver bound is attained


def test_a_robust_distance_can_leave_no_noise():
    """ERRATA: tables (3,2,2) and (1,5,1) are conforming, robust a = 2, and S(A_2) = {0}."""
    schema = levels(w=3)
    statements = (total(), linear({"w = '0'": 4, "w = '1'": 3, "w = '2'": 1}))
    public = Figures(schema, statements).evaluate(brute.table_of(schema, [0, 0, 0, 1, 1, 2, 2]))
    found = reach(public)
    assert (found.distance.value, found.generating, found.connected) == (2, 3, True)
    assert SemiAdjacent(public).l1(["w"]).value == 6
    with pytest.raises(StructureError, match="never add up to"):
        SemiAdjacent(public, within=2)


def test_definition_13_as_printed_can_isolate_a_database():
    """ERRATA: D_t = {000, 001, 010, 100, 111} has a = 1, but 111 has no neighbour."""
    listed = ListedDistances(np.array([[3, 0], [2, 1], [0, 3]]), np.zeros(2, dtype=bool))
    assert (listed.literal, listed.nearest, listed.farthest, listed.robust) == (1, 1, 2, 2)
    assert listed.components(1) == 2
    assert listed.components(2) == 1


def test_definition_13_as_printed_is_at_most_two_for_one_way_margins():
    for public, _ in universes("one-way, 2 x 2 x 2"):
        assert SemiAdjacent(public, "literal").records <= 2
    assert SemiAdjacent(Figures(TWO, (margin("x"), margin("y")))).records == 3


def test_a_disconnected_universe_is_reported():
    """Weights 5, 3, 2 with the total: the only step is too long for the robust distance."""
    schema = levels(w=3)
    for public, databases in list(universes("weighted")):
        found = reach(public)
        parts = brute.components(public.schema, databases, int(found.star.value))
        assert found.connected == (parts == 1)
    statements = (total(), linear({"w = '0'": 4, "w = '1'": 3, "w = '2'": 1}))
    public = Figures(schema, statements).evaluate(brute.table_of(schema, [0, 0, 0, 1, 1, 2, 2]))
    listed = a_star.listed_tables(merged(public))
    assert listed.components(2) == 2


def test_bounds_need_compensation_of_their_own():
    """Without the bound one person moves alone; with it somebody must take her place."""
    free = Figures(TWO, (total(),))
    bounded = Figures(TWO, (total(), at_least(count("x = '0'"), 1)))
    table = brute.table_of(TWO, [0, 3, 3])
    assert SemiAdjacent(free.evaluate(table)).records == 1
    adjacency = SemiAdjacent(bounded.evaluate(table))
    assert (adjacency.records, adjacency.a_star.by) == (2, "enumeration")
    assert "the public bounds" in adjacency.words


def test_a_wider_reach_is_allowed_and_remembered():
    adjacency = SemiAdjacent(Figures(TWO, (margin("x"), margin("y"))), within=5)
    assert adjacency.records == 5
    assert adjacency.to_dict()["within"] == 5
    again = SemiAdjacent.from_dict(adjacency.figures, adjacency.to_dict())
    assert again.same(adjacency)
    assert adjacency.covers(SemiAdjacent(adjacency.figures))
    assert not SemiAdjacent(adjacency.figures).covers(adjacency)


def test_what_is_too_large_is_refused_with_a_remedy():
    """Many overlapping weighted counts, nothing published yet."""
    schema = levels(a=4, b=4, c=4)
    statements = (
        margin("a", "b"),
        margin("b", "c"),
        margin("a", "c"),
        linear({"a = '0'": 3, "b = '1' and c = '2'": 5}),
    )
    with pytest.raises(StructureError, match="no proof covers these exact figures") as error:
        SemiAdjacent(Figures(schema, statements))
    assert error.value.remedy


# ---- symmetric difference ----------------------------------------------------------------------

BY_ROWS = {
    "county totals": (TWO, (margin("x"),), 3),
    "one count": (TWO, (count("x = '0'"),), 3),
    "margins": (TWO, (margin("x"), margin("y")), 4),
    "no total": (ONE, (count("w in ('0', '1')"), count("w in ('1', '2')")), 3),
    "weighted": (levels(w=3), (linear({"w = '0'": 2, "w = '1'": 1, "w = '2'": 1}),), 4),
    "bound": (ONE, (total(), at_most(count("w = '0'"), 1)), 3),
}


@pytest.mark.parametrize("name", BY_ROWS)
def test_symmetric_difference_against_brute_force(name):
    schema, statements, n = BY_ROWS[name]
    attained = False
    for public, tables in brute.by_rows(schema, statements, n):
        adjacency = SemiAdjacent(public, metric="symmetric difference")
        brutal = max(brute.participation(tables), brute.generating_rows(tables))
        assert adjacency.records >= brutal
        assert not adjacency.a_star.exact or adjacency.records == brutal
        attained |= adjacency.records == brutal
        moves = brute.differences_by_rows(tables, adjacency.records)
        for names in [schema.names, schema.names[:1]]:
            images = [brute.onto(schema, u, names) for u in moves]
            for told, norms in (
                (adjacency.l1(names), [np.abs(u).sum() for u in images]),
                (adjacency.l2_squared(names), [np.square(u).sum() for u in images]),
                (adjacency.linf(names), [np.abs(u).max() for u in images]),
            ):
                assert told.value >= max(norms)
    assert attained


def test_a_free_cell_attains_what_symmetric_difference_states():
    """People of a cell that no figure counts come and go as they like, unless a bound holds them.

    Then the same number is an upper bound: at most one of 'w = 2' cannot be two people more.
    """
    figure = (count("w = '0'"),)
    for bounds in ((), (at_most(count("w = '2'"), 1),)):
        public = Figures(ONE, (*figure, *bounds))
        told = SemiAdjacent(public, metric="symmetric difference")
        assert not told.people_kept
        assert told.linf(("w",)).value == told.records
        assert told.linf(("w",)).exact == (not bounds)


def test_readings_that_symmetric_difference_does_not_have_are_refused():
    with pytest.raises(StructureError, match="needs a public number of people"):
        SemiAdjacent(Figures(TWO, (margin("x"),)), "existential", "symmetric difference")


def test_unknown_readings_and_metrics_are_refused():
    public = Figures(TWO, (margin("x"),))
    with pytest.raises(StructureError, match="reading = 'hopeful' is not known"):
        SemiAdjacent(public, "hopeful")
    with pytest.raises(StructureError, match="metric = 'edit' is not known"):
        SemiAdjacent(public, metric="edit")


def test_one_conforming_table_means_nothing_is_left():
    """Two people who can be told apart may change places, but the table is known."""
    public = Figures(TWO, (margin("x", "y"),)).evaluate(brute.table_of(TWO, [0, 3]))
    adjacency = SemiAdjacent(public)
    assert (adjacency.records, adjacency.nothing_left) == (2, True)
    diagonal = Figures(TWO, (margin("x"), margin("y"))).evaluate(brute.table_of(TWO, [0, 1]))
    assert SemiAdjacent(diagonal).nothing_left  # all of one x: the margin of y is the table
    assert not SemiAdjacent(Figures(TWO, (margin("x"),))).nothing_left


def test_equal_figures_are_searched_once(monkeypatch):
    """Plan, ledger and bundle read figures of their own, and ask for the same distance."""
    calls, search = [], a_star.search
    monkeypatch.setattr(
        a_star, "search", lambda *asked: [calls.append(asked[1:]), search(*asked)][1]
    )
    statements = (margin("x"), count("x = '1' or y = '1'"), at_least(count("y = '1'"), 1))
    table = brute.table_of(TWO, [0, 1, 2, 2, 3])
    same = [Figures(TWO, statements).evaluate(table) for _ in range(3)]
    assert len({SemiAdjacent(one).a_star for one in same}) == 1
    _ = SemiAdjacent(same[0], "existential").a_star
    other = Figures(TWO, statements).evaluate(brute.table_of(TWO, [0, 0, 2, 2, 3]))
    _ = SemiAdjacent(other).a_star
    assert [reading for reading, _ in calls] == ["robust", "existential", "robust"]


def test_nothing_left_is_told_as_by_the_whole_sensitivity():
    whole = Figures(TWO, (margin("x", "y"),)).evaluate(brute.table_of(TWO, [0, 3]))
    some, seen = [whole], set()
    for name in UNIVERSES:
        some += [public for public, _ in universes(name, most=12)]
    for public in some:
        pairs = SemiAdjacent(public)
        assert pairs.nothing_left == (pairs.l1(pairs.schema.names).value == 0)
        seen.add((public.structure, pairs.nothing_left))
    assert {("laminar", True), ("laminar", False), ("general", False)} <= seen
