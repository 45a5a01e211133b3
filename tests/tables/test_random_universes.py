"""Two hundred small universes: promises against every pair of whole databases.

Figures of every kind (margins, weighted sums, counts of one level, crossings without their margins,
structural zeros), partitions that do not nest, attributes with one level, both readings. Never
below the enumerated loss, equal to it where it is called exact.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from congenial import SemiAdjacent, count, linear, margin, structural_zeros, total
from congenial.tables import Workload, difference_types, joint_epsilon, joint_rho
from tests.pairs.random_figures import condition
from tests.pairs.test_difference_types import (
    GEO,
    NOT_NESTED,
    PARTS,
    exceeded,
    publish_from,
    schema_of,
)
from tests.tables.brute import by_figures, maximal_types

SCHEMAS = (
    schema_of(x=2, y=3),
    schema_of(x=1, y=4),
    schema_of(g=[0, 0, 1], x=2),
    schema_of(x=2, y=2, z=2),
    schema_of(x=5),
    PARTS,
    GEO,
    NOT_NESTED,
)
UNIVERSES, BATCH = 200, 25
MOST_PAIRS, MOST_RECORDS = 45, 4


def statement(rng, schema):
    """A figure of any kind."""
    names = [name for one in schema.attributes for name in (one.name, *one.coarser)]
    wide = [one for one in schema.attributes if one.size > 1]
    one = rng.choice(wide)
    level = rng.choice(one.levels)
    kinds = [
        lambda: margin(rng.choice(names)),
        lambda: margin(*rng.sample(schema.names, min(2, len(schema.names)))),
        lambda: count(f"{one.name} = '{level}'"),  # one level only
        lambda: count(condition(rng, narrowed(schema))),  # perhaps a crossing, without its margins
        lambda: linear({f"{one.name} = '{level}'": 2, condition(rng, narrowed(schema)): 1}),
        lambda: structural_zeros(condition(rng, narrowed(schema))),
    ]
    return rng.choice(kinds)()


def narrowed(schema):
    """The schema without attributes of one level, which no condition can split."""
    return replace(schema, attributes=tuple(one for one in schema.attributes if one.size > 1))


def universe(seed):
    """A schema, figures, tables, a reading and a number of people."""
    rng = random.Random(seed)
    schema = rng.choice(SCHEMAS)
    figures = [total()] + [statement(rng, schema) for _ in range(rng.randint(0, 3))]
    labels = [one.label for one in figures]
    figures = tuple(one for i, one in enumerate(figures) if one.label not in labels[:i])
    tables = []
    for _ in range(rng.randint(1, 4)):
        axes = [rng.choice((one.name, *one.coarser)) for one in schema.attributes]
        tables.append([axis for axis in axes if rng.random() < 0.7])
    reading = "existential" if rng.random() < 0.3 else "robust"
    return schema, figures, tables, reading, rng.choice((2, 3))


def losses(rng, found, brute):
    """rho and epsilon of random parameters: what is promised, and the largest enumerated."""
    p = [Fraction(rng.randint(0, 5), 7) for _ in found.tables]
    pairs = []
    for priced, vectors, half in ((joint_rho, brute[0], 2), (joint_epsilon, brute[1], 1)):
        worst = max((sum(c * v for c, v in zip(row, p, strict=True)) for row in vectors), default=0)
        pairs.append((priced(found, p), Fraction(worst) / half))
    return pairs


def checked(seed):
    """How many promises of one universe were exact, and how many were compared."""
    schema, figures, tables, reading, people = universe(seed)
    rng, exact, compared = random.Random(seed), 0, 0
    groups = sorted(by_figures(schema, figures, people).values(), key=lambda d: (-len(d), d))
    for databases in groups[:: max(1, len(groups) // 3)][:3]:
        adjacency = SemiAdjacent(publish_from(schema, figures, databases[0]), reading)
        if adjacency.records > MOST_RECORDS or len(databases) > MOST_PAIRS:
            continue
        found = difference_types(adjacency, Workload.of(schema, tables))
        brute = maximal_types(schema, tables, databases, adjacency.records)
        assert not exceeded(found.squares, brute[0])
        assert not exceeded(found.absolutes, brute[1])
        for promised, enumerated in losses(rng, found, brute):
            assert promised.value >= enumerated
            compared += 1
            if promised.exact:
                exact += 1
                assert promised.value == enumerated
        if found.exact:
            assert (set(found.squares), set(found.absolutes)) == brute
    return exact, compared


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(batch, marks=pytest.mark.audit if batch > 1 else ())
        for batch in range(UNIVERSES // BATCH)
    ],
)
def test_promises_of_random_universes(batch):
    results = [checked(seed) for seed in range(batch * BATCH, (batch + 1) * BATCH)]
    assert sum(compared for _, compared in results) > BATCH
    assert sum(exact for exact, _ in results) > 0


def test_planted_a_type_left_out_and_half_the_precision_are_noticed(monkeypatch):
    """The same comparison rejects types without the largest, and a loss at half the precision."""
    whole = difference_types

    def without_largest(adjacency, work):
        found = whole(adjacency, work)
        nothing = ((0,) * len(found.tables),)
        return replace(found, squares=found.squares[1:] or nothing)

    monkeypatch.setitem(globals(), "difference_types", without_largest)
    assert any(fails(seed) for seed in range(BATCH))
    monkeypatch.setitem(globals(), "difference_types", whole)
    stated = joint_rho
    halved = lambda found, p: stated(found, [value / 2 for value in p])  # noqa: E731
    monkeypatch.setitem(globals(), "joint_rho", halved)
    assert any(fails(seed) for seed in range(BATCH))


def fails(seed):
    try:
        checked(seed)
    except AssertionError:
        return True
    return False


def test_every_kind_of_universe_is_among_them():
    cases = [universe(seed) for seed in range(UNIVERSES)]
    relations = {one.relation for _, figures, *_ in cases for one in figures}
    assert {"=", "zero"} <= relations
    assert {reading for *_, reading, _ in cases} == {"robust", "existential"}
    assert {id(schema) for schema, *_ in cases} == {id(one) for one in SCHEMAS}
    weighted = [one for _, figures, *_ in cases for one in figures if len(one.terms) > 1]
    assert len(weighted) > 20


# ---- a type that occurs beside one that may not ----------------------------------------------


def test_a_loss_is_exact_where_a_type_that_occurs_attains_it():
    from tests.pairs.test_difference_types import COUNTY_TABLES, counties, published_counties

    work = Workload.of(counties(), [*COUNTY_TABLES, ["county", "sex", "va"]])
    found = difference_types(SemiAdjacent(published_counties()), work)
    assert not found.exact
    assert found.occurs((18,) * 6 + (0,))
    assert not found.occurs((8, 10, 8, 10, 8, 10, 4))
    assert "1 known to occur, 1 upper bounds" in found.words
    even = [Fraction(1, 7)] * 7
    assert joint_rho(found, even).exact  # the first type is the worst
    nearly_told = [Fraction(0)] * 6 + [Fraction(1)]
    assert not joint_rho(found, nearly_told).exact
    existential = SemiAdjacent(published_counties(), "existential")
    assert not difference_types(existential, work).occurring
