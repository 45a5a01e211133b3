"""Difference types of several tables against brute force over whole databases."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from congenial import AddRemove, ReplaceOne, Schema, SemiAdjacent, Table
from congenial.data.workload import Workload
from congenial.figures import Figures, at_most, count, linear, margin, structural_zeros, total
from congenial.pairs.difference_types import difference_types, maximal, widened
from congenial.pairs.figure_margins import figure_margins
from congenial.pairs.set_types import list_types
from congenial.pairs.several_rows import SeveralRows
from tests.pairs.random_figures import figures as random_figures
from tests.tables.brute import all_types, by_figures, cells_of, maximal_types
from tests.worlds import schema_of


def listed(schema, statements, tables, a):
    """What set partitions say, as sets."""
    figures, work = Figures(schema, statements), Workload.of(schema, tables)
    margins = figure_margins(figures, schema.names, people_kept=True)
    wide = [widened(one, work.axes, schema.names, work) for one in work.margins]
    norms = list_types(margins, wide, a)
    return set(maximal(norms.squares)), set(maximal(norms.absolutes)), margins


FLAT = schema_of(x=2, y=3)
CUBE = schema_of(x=3, y=2, z=3)
GEO = schema_of(g=[0, 0, 1, 1, 1], x=2)
PARTS = schema_of(x=2, y=[0, 0, 1, 1])

# name: schema, figures, tables, records; every type that is listed occurs
OCCURRING = {
    "no figures": (FLAT, (), [["x", "y"], ["y"], []], 2),
    "a total": (FLAT, (total(),), [["x", "y"], ["x"], []], 3),
    "one margin": (FLAT, (margin("x"),), [["x", "y"], ["x"], ["y"]], 3),
    "two margins": (FLAT, (margin("x"), margin("y")), [["x", "y"], ["x"]], 3),
    "two margins of three": (
        CUBE,
        (margin("x"), margin("y")),
        [["x", "y", "z"], ["x", "y"], ["x", "z"], ["z"]],
        2,
    ),
    "a margin and a pair": (CUBE, (margin("x", "y"), margin("z")), [["x", "z"], ["y", "z"]], 2),
    "chain of pairs": (
        CUBE,
        (margin("x", "y"), margin("y", "z")),
        [["x", "y", "z"], ["x", "z"], ["x"]],
        2,
    ),
    "geography, coarse figure": (GEO, (margin("g_wide"),), [["g", "x"], ["g_wide", "x"], ["x"]], 3),
    "geography, fine figure": (GEO, (margin("g"),), [["g", "x"], ["g_wide", "x"], ["x"]], 3),
    "geography crossed": (
        GEO,
        (margin("g_wide"), margin("x")),
        [["g", "x"], ["g_wide", "x"], ["g"]],
        2,
    ),
    "a count with its total": (FLAT, (total(), count("y = 'y0'")), [["x", "y"], ["y"]], 2),
    "counts of parts": (
        PARTS,
        (total(), count("x = 'x0'"), count("y in ('y0', 'y1')")),
        [["x", "y"], ["x", "y_wide"], ["y"]],
        3,
    ),
    "a crossing with its margins": (
        PARTS,
        (
            total(),
            count("x = 'x0'"),
            count("y in ('y0', 'y1')"),
            count("x = 'x0' and y in ('y0', 'y1')"),
        ),
        [["x", "y"], ["x", "y_wide"], ["y"]],
        2,
    ),
}


@pytest.mark.parametrize("name", OCCURRING)
def test_set_partitions_equal_brute_force(name):
    schema, statements, tables, a = OCCURRING[name]
    squares, absolutes, figures = listed(schema, statements, tables, a)
    assert not figures.others
    assert (squares, absolutes) == all_types(schema, statements, tables, a)


# Levels too few for what is listed, figures that are no margins, partitions that do not nest
DOMINATED = {
    "one level": (schema_of(x=1, y=3), (margin("y"),), [["x", "y"], ["x"]], 2),
    "two by two": (
        schema_of(x=2, y=2, z=2),
        (margin("x"), margin("y"), margin("z")),
        [["x", "y", "z"], ["x", "y"], ["x", "z"]],
        3,
    ),
    "weighted": (FLAT, (total(), linear({"x = 'x0'": 2, "y = 'y0'": 1})), [["x", "y"], ["y"]], 3),
    "a crossing alone": (FLAT, (total(), count("x = 'x0' and y = 'y0'")), [["x", "y"], ["y"]], 2),
    "not a rectangle": (FLAT, (total(), count("x = 'x0' or y = 'y0'")), [["x", "y"], ["y"]], 2),
    "one level of a crossing": (
        CUBE,
        (margin("x"), count("y = 'y0' and x = 'x0'")),
        [["x", "y"], ["z"]],
        2,
    ),
    "zeros": (
        FLAT,
        (margin("x"), margin("y"), structural_zeros("x = 'x0' and y = 'y0'")),
        [["x", "y"], ["y"]],
        3,
    ),
}


def crossing_schema():
    """Two coarser names of one attribute that do not nest."""
    within = {"north": ["n", "n", "s", "s", "s"], "urban": ["u", "r", "u", "r", "r"]}
    return Schema.from_dict(
        {"g": {"levels": list("abcde"), "within": within}, "x": {"levels": ["0", "1"]}}
    )


NOT_NESTED = crossing_schema()
DOMINATED |= {
    "not nested, crossing figure": (
        NOT_NESTED,
        (margin("north"),),
        [["g", "x"], ["urban", "x"], ["urban"]],
        2,
    ),
    "not nested, both exact": (
        NOT_NESTED,
        (margin("north"), margin("urban")),
        [["g", "x"], ["urban", "x"], ["north", "x"], ["g"]],
        2,
    ),
    "not nested, fine figure": (
        NOT_NESTED,
        (margin("g"), margin("x")),
        [["g", "x"], ["urban", "x"], ["north", "x"]],
        2,
    ),
}


def exceeded(mine, theirs):
    """Brute-force vectors that no listed vector reaches."""
    return {
        v for v in theirs if not any(all(x >= y for x, y in zip(w, v, strict=True)) for w in mine)
    }


@pytest.mark.parametrize("name", DOMINATED)
def test_no_pair_exceeds_what_set_partitions_say(name):
    schema, statements, tables, a = DOMINATED[name]
    squares, absolutes, _ = listed(schema, statements, tables, a)
    brute = all_types(schema, statements, tables, a)
    assert not exceeded(squares, brute[0])
    assert not exceeded(absolutes, brute[1])


def publish_from(schema, statements, database):
    cells = cells_of(schema)
    counts = np.zeros([schema.attribute(name).size for name in schema.names], dtype=np.int64)
    for i in database:
        counts[tuple(cells[i].values())] += 1
    return Figures(schema, statements).evaluate(Table(schema, schema.names, counts))


SMALL = OCCURRING | DOMINATED
PEOPLE = {"chain of pairs": (3,), "a margin and a pair": (3,), "two margins of three": (3,)}


@pytest.mark.parametrize("name", SMALL)
def test_published_figures_against_every_pair_of_databases(name):
    """Never below the enumerated loss, and equal to it where it is called exact."""
    schema, statements, tables, _ = SMALL[name]
    exact = 0
    for n in PEOPLE.get(name, (3, 4)):
        groups = sorted(by_figures(schema, statements, n).values(), key=lambda d: (-len(d), d))
        for databases in [*groups[:4], *groups[5::9]][:9]:
            if len(databases) > 60:
                continue
            adjacency = SemiAdjacent(publish_from(schema, statements, databases[0]))
            found = difference_types(adjacency, Workload.of(schema, tables))
            brute = maximal_types(schema, tables, databases, adjacency.records)
            assert not exceeded(found.squares, brute[0])
            assert not exceeded(found.absolutes, brute[1])
            if found.exact:
                exact += 1
                assert (set(found.squares), set(found.absolutes)) == brute
    assert exact or not statements


def test_a_bound_on_a_figure_only_takes_pairs_away():
    schema = schema_of(x=1, y=3)
    statements = (margin("x"), at_most(count("y = 'y0'"), 1))
    work = Workload.of(schema, [["x", "y"], ["y"]])
    planned = difference_types(SemiAdjacent(Figures(schema, statements)), work)
    brute = all_types(schema, (margin("x"),), work.tables, planned.records)
    assert not planned.exact
    assert not exceeded(planned.squares, brute[0])


# ---- numbers worked out by hand ------------------------------------------------------------------


def districts(n=400):
    return Schema.from_dict(
        {
            "district": {
                "levels": [str(i) for i in range(n)],
                "within": {"county": [str(i // 40) for i in range(n)]},
            },
            "race": {"levels": list("abcdefgh")},
            "adult": {"levels": ["no", "yes"]},
        }
    )


def test_districts_by_race():
    """County totals and voting age per district: a* = 2, and sum p <= rho / a^2."""
    schema = districts()
    figures = (total(by="county"), count("adult = 'yes'", by="district"))
    counts = np.full((400, 8, 2), 2)
    public = Figures(schema, figures).evaluate(Table(schema, schema.names, counts))
    tables = [["district", "race", "adult"], ["district", "race"], ["county", "race", "adult"]]
    work = Workload.of(schema, [*tables, ["county", "race"], ["race", "adult"], ["race"]])
    adjacency = SemiAdjacent(public)
    found = difference_types(adjacency, work)
    assert adjacency.records == 2
    assert found.squares == ((8,) * 6,)
    assert found.absolutes == ((4,) * 6,)
    assert found.exact


def counties(n=300):
    within = {"state": [str(i // 60) for i in range(n)]}
    return Schema.from_dict(
        {
            "county": {"levels": [str(i) for i in range(n)], "within": within},
            "sex": {"levels": ["f", "m"]},
            "age": {"integers": [0, 22], "within": {"va": ["no"] * 4 + ["yes"] * 19}},
        }
    )


COUNTY_FIGURES = (
    total(by="county"),
    count("sex = 'f'", by="county"),
    count("age >= 4", by="county"),
)
COUNTY_TABLES = [
    ["county", "sex", "age"],
    ["county", "age"],
    ["state", "sex", "age"],
    ["state", "age"],
    ["sex", "age"],
    ["age"],
]


def published_counties():
    schema = counties()
    counts = np.ones((300, 2, 23), dtype=np.int64)
    return Figures(schema, COUNTY_FIGURES).evaluate(Table(schema, schema.names, counts))


def test_total_female_and_voting_age_per_county():
    adjacency = SemiAdjacent(published_counties())
    found = difference_types(adjacency, Workload.of(counties(), COUNTY_TABLES))
    assert adjacency.records == 3
    assert found.squares == ((18,) * 6,)
    assert found.exact


def test_a_table_that_the_figures_nearly_tell_has_types_of_its_own():
    work = Workload.of(counties(), [*COUNTY_TABLES, ["county", "sex", "va"]])
    found = difference_types(SemiAdjacent(published_counties()), work)
    assert found.squares == ((18,) * 6 + (0,), (8, 10, 8, 10, 8, 10, 4))


@pytest.mark.parametrize(("a", "types"), [(2, 3), (3, 2)])
def test_three_flat_attributes_under_one_way_margins(a, types):
    schema = schema_of(x=3, y=4, z=3)
    tables = [list(pair) for pair in combinations("xyz", 2)]
    squares, _, _ = listed(schema, tuple(margin(n) for n in "xyz"), [*tables, list("xyz")], a)
    assert len(squares) == types


def test_replacing_adding_and_removing_without_figures():
    schema = schema_of(x=2, y=3, z=[0, 1, 1])
    work = Workload.of(schema, [["x", "y", "z"], ["z_wide"], []])
    replaced = difference_types(ReplaceOne(schema), work)
    assert (replaced.squares, replaced.absolutes) == (((2, 2, 0),), ((2, 2, 0),))
    assert replaced.exact
    added = difference_types(AddRemove(schema), work)
    assert (added.squares, added.absolutes, added.exact) == (((1, 1, 1),), ((1, 1, 1),), True)
    three = difference_types(AddRemove(schema, 3), work)
    assert (three.squares, three.absolutes) == (((9, 9, 9),), ((3, 3, 3),))


def test_rows_that_come_and_go_under_figures():
    schema = schema_of(x=2, y=3)
    work = Workload.of(schema, [["x", "y"], ["x"], []])
    kept = SemiAdjacent(Figures(schema, (margin("x"),)), metric="symmetric difference")
    assert difference_types(kept, work).squares == ((2, 0, 0),)
    loose = Figures(schema, (count("x = 'x0'"),))
    found = difference_types(SemiAdjacent(loose, metric="symmetric difference"), work)
    assert max(found.squares)[2] == 4  # two more people, whom no figure counts


def test_too_many_types_are_a_bound_that_says_so():
    schema = schema_of(**dict.fromkeys("abcdef", 4))
    adjacency = SemiAdjacent(Figures(schema, tuple(margin(n) for n in schema.names)))
    tables = [list(pair) for pair in combinations("abcdef", 2)]
    found = difference_types(adjacency, Workload.of(schema, [*tables, ["a"]]))
    a = adjacency.records
    assert found.squares == ((2 * a * a,) * 15 + (0,),)
    assert found.method == "bound"
    assert "too many" in found.words


def test_the_existential_reading_is_a_bound():
    public = published_counties()
    found = difference_types(
        SemiAdjacent(public, "existential"), Workload.of(counties(), COUNTY_TABLES)
    )
    assert not found.exact
    assert "rule" in found.reason


# ---- planted defects: what the comparison above rejects ------------------------------------------


def test_a_type_left_out_is_noticed():
    schema, statements, tables, a = OCCURRING["two margins of three"]
    squares, _, _ = listed(schema, statements, tables, a)
    brute, _ = all_types(schema, statements, tables, a)
    assert len(squares) > 1
    for one in squares:
        assert exceeded(squares - {one}, brute)


def test_the_bound_over_allowed_replacements_only_is_too_low():
    """Two margins of 2 x 2 allow no single replacement, so the maximum is over nothing."""
    schema, both, tables = schema_of(x=2, y=2), (margin("x"), margin("y")), [["x", "y"]]
    allowed = all_types(schema, both, tables, 1)[0]
    assert allowed == {(0,)}
    a = 3
    planted = {tuple(a * a * c for c in vector) for vector in allowed}
    assert exceeded(planted, all_types(schema, both, tables, a)[0])
    assert not exceeded(listed(schema, both, tables, a)[0], all_types(schema, both, tables, a)[0])


def test_a_figure_that_does_not_hold_is_noticed():
    """Types worked out under one figure too many are below what databases do."""
    schema, statements, tables, a = OCCURRING["one margin"]
    brute = all_types(schema, statements, tables, a)[0]
    more = listed(schema, (*statements, margin("y")), tables, a)[0]
    assert exceeded(more, brute)


# ---- figures as nobody would choose them ---------------------------------------------------------

RANDOM_SCHEMAS = (schema_of(x=2, y=3), schema_of(g=[0, 0, 1], x=2), schema_of(x=4), PARTS)


def random_case(seed):
    """Figures, margins among them, and tables at random; some of one coarser name."""
    rng = random.Random(seed)
    schema = rng.choice(RANDOM_SCHEMAS)
    names = [name for one in schema.attributes for name in (one.name, *one.coarser)]
    chosen = {name for name in names if rng.random() < 0.4}
    margins = tuple(margin(name) for name in names if name in chosen)
    statements = tuple(dict.fromkeys((total(), *margins, *random_figures(rng, schema)[:2])))
    tables = []
    for _ in range(rng.randint(1, 3)):
        axes = [rng.choice((one.name, *one.coarser)) for one in schema.attributes]
        tables.append([axis for axis in axes if rng.random() < 0.7])
    labels = [one.label for one in statements]
    unique = tuple(s for i, s in enumerate(statements) if s.label not in labels[:i])
    return schema, unique, tables


@pytest.mark.parametrize("seed", range(24))
def test_random_figures_against_every_pair_of_databases(seed):
    schema, statements, tables = random_case(seed)
    groups = sorted(by_figures(schema, statements, 3).values(), key=lambda d: (-len(d), d))
    for databases in groups[::5][:4]:
        adjacency = SemiAdjacent(publish_from(schema, statements, databases[0]))
        if adjacency.records > 4 or len(databases) > 40:
            continue
        found = difference_types(adjacency, Workload.of(schema, tables))
        brute = maximal_types(schema, tables, databases, adjacency.records)
        assert not exceeded(found.squares, brute[0])
        assert not exceeded(found.absolutes, brute[1])
        if found.exact:
            assert (set(found.squares), set(found.absolutes)) == brute
    squares, absolutes, _ = listed(schema, statements, tables, 2)
    brute = all_types(schema, statements, tables, 2)
    assert not exceeded(squares, brute[0])
    assert not exceeded(absolutes, brute[1])


@pytest.mark.parametrize("statements", [(), (total(),), (total(by="a"),)], ids=str)
def test_units_with_several_rows_are_never_priced_below_their_own_bound(statements) -> None:
    """Types of a unit's rows hold all differences that are listed; one row's own would not."""
    schema = Schema.from_dict({"a": {"levels": ["p", "q"]}, "b": {"levels": ["r", "s", "t"]}})
    work = Workload.of(schema, [["a", "b"], ["b"], []])
    pairs = SeveralRows(Figures(schema, statements), max_rows=2)
    types = difference_types(pairs, work)
    listed = pairs.differences(tuple(total(by=names) for names in work.tables))
    assert listed is not None
    cells = listed.seen(0)  # at most so many rows come, and as many go; the list has more
    both = np.maximum(np.maximum(cells, 0).sum(axis=1), np.maximum(-cells, 0).sum(axis=1))
    norms = np.stack([np.square(listed.seen(k)).sum(axis=1) for k in range(3)], axis=1)
    for row in np.unique(norms[both <= pairs.records], axis=0):
        assert any(np.all(row <= np.array(top)) for top in types.squares)
    assert not types.exact
    for k, names in enumerate(work.tables):
        alone = max(top[k] for top in types.squares)
        assert alone >= pairs.l2_squared(names).value
