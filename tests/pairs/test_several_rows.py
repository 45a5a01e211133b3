"""Units with several rows: numbers of units, rows and sensitivities against whole databases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from congenial import Schema, count, linear, margin, structural_zeros, total
from congenial.errors import FigureError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.several_rows import SeveralRows, uniform_reach
from congenial.pairs.stored_pairs import read_pairs
from tests.pairs.units import Units

AREAS = Schema.from_dict({"area": {"levels": ["A", "B"]}, "ill": {"levels": ["0", "1"]}})
THREE = Schema.from_dict({"x": {"levels": ["p", "q", "r"]}})
FIVE = Schema.from_dict({"x": {"integers": [1, 5]}})
WIDE = Schema.from_dict({"x": {"levels": ["p", "q", "r"]}, "y": {"levels": ["0", "1"]}})

# schema, figures, units, most rows, least rows
UNIVERSES: list[tuple[Schema, tuple[Statement, ...], int, int, int]] = [
    (AREAS, (), 3, 2, 0),
    (AREAS, (total(),), 3, 2, 0),
    (AREAS, (total(),), 3, 2, 1),
    (AREAS, (total(by="area"),), 3, 2, 0),
    (AREAS, (total(by="area"),), 3, 2, 1),
    (AREAS, (margin("area"), margin("ill")), 3, 2, 0),
    (AREAS, (margin("area"), margin("ill")), 3, 2, 1),
    (AREAS, (count("ill = '1'"),), 3, 2, 0),
    (AREAS, (count("ill = '1'", by="area"),), 3, 2, 0),
    (AREAS, (total(by="area"), structural_zeros("area = 'A' and ill = '1'")), 3, 2, 0),
    (THREE, (total(),), 4, 2, 0),
    (THREE, (total(),), 4, 2, 1),
    (THREE, (total(),), 3, 3, 0),
    (THREE, (total(),), 3, 3, 1),
    (THREE, (margin("x"),), 4, 2, 0),
    (THREE, (margin("x"),), 4, 2, 1),
    (THREE, (margin("x"),), 3, 3, 1),
    (THREE, (linear({"x = 'p'": 1, "x = 'q'": 2}),), 4, 2, 0),
    (THREE, (total(), linear({"x = 'q'": 1, "x = 'r'": 2})), 4, 2, 0),
    (THREE, (total(), linear({"x = 'q'": 1, "x = 'r'": 2})), 4, 2, 1),
    (THREE, (total(), linear({"x = 'q'": 2, "x = 'r'": 3})), 4, 2, 1),
    (FIVE, (total(), count("x <= 2"), count("x >= 2")), 3, 2, 0),
    (FIVE, (count("x <= 2"), count("x >= 2")), 3, 2, 0),
    (WIDE, (margin("x"), margin("y")), 3, 2, 0),
    (WIDE, (margin("x"), margin("y")), 3, 2, 1),
]


def _apart(pairs: SeveralRows) -> tuple[int, int, int]:
    return pairs.units, pairs.slots, pairs.records


@pytest.mark.parametrize("case", UNIVERSES, ids=lambda case: f"{len(case[1])}-{case[2:]}")
def test_any_unit_can_be_given_any_rows(
    case: tuple[Schema, tuple[Statement, ...], int, int, int],
) -> None:
    """Whole databases: within a units and b slots there is always one with the rows wanted."""
    schema, statements, number, most, least = case
    figures = Figures(schema, statements)
    pairs = SeveralRows(figures, most, never_empty=least == 1)
    truth = Units(schema, figures, number, most, least)
    assert truth.unreached(*_apart(pairs)) == 0
    l1, l2 = truth.farthest(*_apart(pairs))
    assert l1 <= pairs.l1(schema.names).value
    assert l2 <= pairs.l2_squared(schema.names).value


def _random_figures(rng: np.random.Generator, schema: Schema) -> tuple[Statement, ...]:
    levels = [f"x = {level}" for level in range(1, 6)]
    found: list[Statement] = [total()] if rng.random() < 0.5 else []
    for _ in range(int(rng.integers(1, 3))):
        chosen = rng.choice(5, size=int(rng.integers(1, 4)), replace=False)
        weights = {levels[i]: int(rng.integers(1, 3)) for i in chosen}
        found.append(linear(weights))
    return tuple(found)


def test_random_figures_never_leave_a_unit_without_a_look_alike() -> None:
    """Weighted sums at random over five cells; those for which nothing is proved are refused."""
    rng, tried, refused = np.random.default_rng(20261116), 0, 0
    while tried < 40:
        statements = _random_figures(rng, FIVE)
        least = int(rng.integers(0, 2))
        figures = Figures(FIVE, statements)
        try:
            pairs = SeveralRows(figures, 2, never_empty=least == 1)
        except StructureError:
            refused += 1
            continue
        tried += 1
        truth = Units(FIVE, figures, 2, 2, least)
        assert truth.unreached(*_apart(pairs)) == 0, statements
        l1, l2 = truth.farthest(*_apart(pairs))
        assert l1 <= pairs.l1(("x",)).value
        assert l2 <= pairs.l2_squared(("x",)).value
    assert refused > 0  # l = 1 without the number of rows is an open case


@pytest.mark.parametrize(
    ("figures", "units", "slots"),
    [
        ((total(),), 3, 4),
        ((total(by="area"),), 3, 4),
        ((margin("area"), margin("ill")), 5, 6),
    ],
)
def test_the_numbers_are_needed(figures: Sequence[Statement], units: int, slots: int) -> None:
    """Planted: one slot fewer, or the number of one row, leaves somebody without a look-alike."""
    pairs = SeveralRows(Figures(AREAS, tuple(figures)), 2)
    assert _apart(pairs) == (units, slots, slots)
    truth = Units(AREAS, pairs.published, 3, 2)
    if figures[0] == total():
        assert truth.unreached(units, slots - 1, slots) > 0
    one_row = int(SemiAdjacent(pairs.published).a_star.value)
    assert truth.unreached(one_row, one_row, one_row) > 0


def test_units_that_always_have_a_row_need_more() -> None:
    """{A}, {B}, {B}, {A, A} with {A} turned into {B, B}: four units and five slots, not three."""
    letters = Schema.from_dict({"x": {"levels": ["A", "B", "C"]}})
    figures = Figures(letters, (margin("x"),))
    free, full = SeveralRows(figures, 2), SeveralRows(figures, 2, never_empty=True)
    truth = Units(letters, figures, 4, 2, least=1)
    assert truth.unreached(*_apart(free)) > 0
    assert truth.unreached(*_apart(full)) == 0


def test_what_one_more_row_costs() -> None:
    """2 x 2 margins: Delta_1 is 4, 12, 16 at one, two and three rows; never a multiple."""
    figures = Figures(AREAS, (margin("area"), margin("ill")))
    found = [int(SeveralRows(figures, k).l1(("area", "ill")).value) for k in (1, 2, 3)]
    assert found == [4, 12, 16]


def test_written_and_read_back() -> None:
    """Bundles and ledgers keep it as plain data."""
    figures = Figures(AREAS, (total(by="area"),))
    for pairs in (SeveralRows(figures, 3), SeveralRows(figures, 3, never_empty=True)):
        again = read_pairs(figures, pairs.to_dict())
        assert again.same(pairs)
        assert pairs.covers(again)
    assert not SeveralRows(figures, 2).covers(SeveralRows(figures, 3))


def test_larger_units_are_not_covered() -> None:
    """Fewer units and rows apart, but of units with more rows: other pairs."""
    schema = Schema.from_dict({"x": {"levels": ["p", "q", "r"]}})
    weighted = linear({"x = 'p'": 1, "x = 'q'": 2, "x = 'r'": 3})
    small = SeveralRows(Figures(schema, (weighted,)), 2)
    large = SeveralRows(Figures(schema, (weighted, total(by="x"))), 4)
    assert not small.covers(large)


@pytest.mark.parametrize("rows", [0, -1, 10**9])
def test_refuses_numbers_of_rows_nobody_means(rows: int) -> None:
    """Words instead of an overflow."""
    with pytest.raises(FigureError, match="max_rows"):
        SeveralRows(Figures(AREAS), rows)


def test_refuses_the_open_case() -> None:
    """Units that are never empty, number of rows unknown."""
    with pytest.raises(StructureError, match="number of rows"):
        SeveralRows(Figures(AREAS, (count("ill = '1'"),)), 2, never_empty=True)


def test_uniform_reach_does_not_look_at_values() -> None:
    """Published values can make one row cheaper; several rows pass through other values."""
    unpublished = Figures(AREAS, (margin("area"), margin("ill")))
    values = (np.array([3, 0]), np.array([2, 1]))
    published = Figures(AREAS, unpublished.statements, values)
    assert uniform_reach(published) == uniform_reach(unpublished)
    assert SemiAdjacent(published).a_star.value < uniform_reach(published).value
