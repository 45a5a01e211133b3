"""Attributes of units and figures about units: numbers against whole databases of units."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Schema, count, linear, margin, structural_zeros, total
from congenial.errors import FigureError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement, of_units
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.several_rows import SeveralRows
from congenial.pairs.stored_pairs import read_pairs
from congenial.privacy.composition import moves
from tests.pairs.units import Units

TENURE = Schema.from_dict(
    {"tenure": {"levels": ["own", "rent"], "of": "unit"}, "x": {"levels": ["A", "B"]}}
)
BLOCKS = Schema.from_dict(
    {
        "block": {"levels": ["1", "2", "3"], "of": "unit", "within": {"state": ["P", "P", "Q"]}},
        "x": {"levels": ["A"]},
    }
)
TWO = Schema.from_dict(
    {
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "kind": {"levels": ["0", "1", "2"], "of": "unit"},
        "x": {"levels": ["A"]},
    }
)
UNITS, BY_TENURE = of_units(total()), of_units(total(by="tenure"))
Case = tuple[Schema, tuple[Statement, ...], int, int, int, tuple[int, int]]

# schema, figures, units, most rows, least rows; units and slots apart as the theory has them
UNIVERSES: list[Case] = [
    (TENURE, (), 3, 2, 0, (1, 2)),
    (TENURE, (total(),), 3, 2, 0, (3, 4)),
    (TENURE, (margin("x"),), 3, 2, 0, (3, 4)),
    (TENURE, (total(), UNITS), 3, 2, 1, (2, 3)),
    (TENURE, (total(), BY_TENURE), 3, 2, 1, (3, 3)),
    (TENURE, (total(), BY_TENURE), 3, 2, 0, (4, 4)),
    (TENURE, (margin("x"), BY_TENURE), 3, 2, 1, (5, 5)),
    (TENURE, (margin("x"), BY_TENURE), 3, 2, 0, (4, 4)),
    (TENURE, (total(by="tenure"), BY_TENURE), 3, 2, 1, (3, 5)),
    (TENURE, (total(by="tenure"), BY_TENURE), 3, 2, 0, (4, 6)),
    (TENURE, (total(by=["tenure", "x"]), BY_TENURE), 3, 2, 1, (5, 7)),
    (TENURE, (total(by="tenure"), total(), BY_TENURE), 3, 2, 1, (3, 5)),
    (BLOCKS, (total(by="state"), of_units(total(by="block"))), 4, 2, 1, (3, 5)),
    (BLOCKS, (total(by="state"), of_units(total(by="block"))), 4, 2, 0, (4, 6)),
    (BLOCKS, (total(by="state"), of_units(total(by="block"))), 3, 3, 1, (4, 8)),
    (TWO, (total(), of_units(margin("tenure")), of_units(margin("kind"))), 3, 2, 1, (4, 3)),
    (TWO, (total(), of_units(count("kind = '1'"))), 3, 2, 1, (3, 3)),
    (TWO, (total(by="tenure"), BY_TENURE), 3, 2, 1, (3, 5)),
    (TWO, (total(), BY_TENURE, of_units(structural_zeros("kind = '2'"))), 3, 2, 1, (3, 3)),
]


def _apart(pairs: SeveralRows) -> tuple[int, int, int]:
    return pairs.units, pairs.slots, pairs.records


def _rows_only(schema: Schema) -> list[str]:
    return [name for name in schema.names if name not in schema.of_units]


def _hold(pairs: SeveralRows, truth: Units) -> None:
    """Reach and sensitivities are never below those over whole databases."""
    schema, apart = pairs.schema, _apart(pairs)
    assert truth.unreached(*apart) == 0, pairs.published.told
    for shown, names in (("all", schema.names), ("rows", _rows_only(schema))):
        l1, l2 = truth.farthest(*apart, shown)
        assert l1 <= pairs.l1(names).value
        assert l2 <= pairs.l2_squared(names).value
    l1, l2 = truth.farthest(*apart, "units")
    assert l1 <= 2 * pairs.units
    if pairs.never_empty:
        assert l1 <= pairs.tables_of_units.l1(schema.of_units).value
        assert l2 <= pairs.tables_of_units.l2_squared(schema.of_units).value


@pytest.mark.parametrize("case", UNIVERSES, ids=lambda case: f"{len(case[1])}-{case[2:]}")
def test_any_unit_can_be_given_any_rows_and_any_class(case: Case) -> None:
    schema, statements, number, most, least, stated = case
    figures = Figures.of(schema, statements)
    pairs = SeveralRows(figures, most, never_empty=least == 1)
    assert (pairs.units, pairs.slots) == stated
    truth = Units(schema, figures, number, most, least)
    if not any(one.relation == "zero" for one in figures.told):
        _hold(pairs, truth)


@pytest.mark.parametrize(
    "figure", [total(by="tenure"), total(by=["tenure", "x"]), count("x = 'A'", by="tenure")]
)
def test_rows_by_class_with_any_number_of_empty_units(figure: Statement) -> None:
    """Nothing is known about units: one without rows takes what a unit leaves behind."""
    figures = Figures(TENURE, (figure,))
    pairs = SeveralRows(figures, 2)
    assert (pairs.units, pairs.slots) == (4, 6)
    _hold(pairs, Units(TENURE, figures, 3, 2, spare=True))


def _random_case(rng: np.random.Generator) -> tuple[Schema, Figures, int]:
    """Classes and cells at random, figures about rows and units of every covered shape."""
    classes, cells = int(rng.integers(2, 4)), int(rng.integers(1, 3))
    levels = [str(i) for i in range(classes)]
    parents = [str(i) for i in rng.integers(0, 2, classes)]
    schema = Schema.from_dict(
        {
            "block": {"levels": levels, "of": "unit", "within": {"state": parents}},
            "x": {"levels": ["A", "B"][:cells]},
        }
    )
    rows = [
        (total(),),
        (margin("x"),),
        (total(), linear({"x = 'A'": int(rng.integers(1, 4))})),
        (total(by="state"),),
        (total(by="block"),),
        (total(by=["state", "x"]), total()),
    ]
    units = [
        (UNITS,),
        (of_units(total(by="block")),),
        (of_units(total(by="state")),),
        (of_units(count("block = '0'")),),
        (of_units(linear({"block = '0'": 1, "block = '1'": 2})),),
    ]
    chosen = rows[rng.integers(len(rows))] + units[rng.integers(len(units))]
    return schema, Figures.of(schema, chosen), int(rng.integers(0, 2))


def _random_universes(wanted: int, seed: int) -> int:
    """Checks so many; returns how many more were refused."""
    rng, tried, refused = np.random.default_rng(seed), 0, 0
    while tried < wanted:
        schema, figures, least = _random_case(rng)
        try:
            pairs = SeveralRows(figures, 2, never_empty=least == 1)
            pairs.units  # noqa: B018 - worked out when asked for
        except StructureError:
            refused += 1
            continue
        tried += 1
        _hold(pairs, Units(schema, figures, 3, 2, least))
    return refused


def test_random_universes() -> None:
    assert _random_universes(8, 20261117) > 0


@pytest.mark.audit
def test_two_hundred_random_universes() -> None:
    assert _random_universes(200, 20261118) > 0


# ---- planted ------------------------------------------------------------------------------------


def test_households_that_exchange_their_tenure_move_all_their_rows() -> None:
    """(own, AA), (rent, BB) -> (rent, AA), (own, BB): no slot changes and the table moves by 8."""
    figures = Figures.of(TENURE, (total(), BY_TENURE))
    pairs, truth = (
        SeveralRows(figures, 2, never_empty=True),
        Units(TENURE, figures, 2, 2, least=1),
    )
    assert truth.farthest(2, 0, 0)[0] == 8
    assert pairs.l1(TENURE.names).value >= 8
    planted = 2 * pairs.slots  # as if a table of rows saw slots only
    three = Units(TENURE, figures, 3, 2, least=1)
    assert three.farthest(*_apart(pairs))[0] > planted


def test_the_numbers_of_rows_alone_leave_a_class_out_of_reach() -> None:
    """Planted: forgetting the unit that gives its class, today's a*, and k times it."""
    figures = Figures.of(TENURE, (total(), BY_TENURE))
    pairs, truth = SeveralRows(figures, 2, True), Units(TENURE, figures, 3, 2, least=1)
    units, slots, rows = _apart(pairs)
    assert truth.unreached(units - 1, slots, rows) > 0
    assert truth.unreached(units, slots - 1, rows) > 0
    one_row = int(SemiAdjacent(figures.of_rows).a_star.value)
    assert truth.unreached(2 * one_row, 2 * one_row, 2 * one_row) > 0


def test_a_class_that_no_figure_tells_is_free() -> None:
    """Planted the other way: no unit is charged for a class that may change alone."""
    figures = Figures(TENURE, (total(),))
    without = Schema.from_dict({"x": {"levels": ["A", "B"]}})
    plain = SeveralRows(Figures(without, (total(),)), 2)
    assert _apart(SeveralRows(figures, 2)) == _apart(plain)


# ---- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "full", "words"),
    [
        ((total(by="tenure"),), True, "but units are not"),
        ((total(by="tenure"), UNITS), True, "the number of units in each class"),
        ((total(), count("tenure = 'own'"), BY_TENURE), True, "condition on an attribute of units"),
        ((total(by="tenure"), margin("x"), BY_TENURE), True, "is not published for each tenure"),
        ((structural_zeros("tenure = 'own' and x = 'A'"), total()), False, "condition"),
        ((count("x = 'A'"), BY_TENURE), True, "number of rows"),
    ],
)
def test_open_cases_are_refused_by_name(
    statements: tuple[Statement, ...], full: bool, words: str
) -> None:
    with pytest.raises(StructureError, match=words):
        SeveralRows(Figures.of(TENURE, statements), 2, never_empty=full).units  # noqa: B018


def test_figures_about_units_name_attributes_of_units_only() -> None:
    with pytest.raises(FigureError, match="counts units by 'x'"):
        Figures.of(TENURE, (of_units(margin("x")),))


def test_figures_about_units_are_never_taken_for_figures_about_rows() -> None:
    with pytest.raises(FigureError, match="the other figures count rows"):
        Figures(TENURE, (BY_TENURE,))
    with pytest.raises(FigureError, match="one row per unit"):
        SemiAdjacent(Figures.of(TENURE, (total(), BY_TENURE)))


# ---- written ------------------------------------------------------------------------------------


def test_written_and_read_back() -> None:
    figures = Figures.of(TENURE, (total(), BY_TENURE))
    again = Figures.from_dict(TENURE, figures.to_dict())
    assert again == figures
    assert again.told == figures.told
    pairs = SeveralRows(figures, 3, never_empty=True)
    assert read_pairs(again, pairs.to_dict()).same(pairs)
    assert figures.digest != figures.of_rows.digest
    assert "of_units" not in figures.of_rows.to_dict()


def test_the_promise_says_where_the_number_of_units_is_kept() -> None:
    pairs = SeveralRows(Figures.of(TENURE, (total(), BY_TENURE)), 3, never_empty=True)
    assert "datasets of the same number of units with at most 3 rows each" in pairs.words
    free = SeveralRows(Figures(TENURE, (total(),)), 3)
    assert "same number" not in free.words


def test_moves_of_a_table_that_shows_a_unit_attribute() -> None:
    """Gauges count the rows of all units that differ, too."""
    pairs = SeveralRows(Figures.of(TENURE, (total(), BY_TENURE)), 3, never_empty=True)
    assert moves(pairs, ("x",)) == pairs.records
    assert moves(pairs, TENURE.names) == 3 * pairs.units
