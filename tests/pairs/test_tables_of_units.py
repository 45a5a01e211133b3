"""Tables of units as pairs: what they condition on, refuse, and cost beside tables of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, SemiAdjacent, calibrate, total
from congenial.errors import GuaranteeError, StructureError
from congenial.figures.statements import Statement, of_units
from congenial.pairs.several_rows import SeveralRows, TablesOfUnits
from congenial.pairs.stored_pairs import read_pairs
from congenial.privacy import Description, joint_loss
from tests.pairs.units import Units

SCHEMA = Schema.from_dict(
    {
        "block": {"levels": ["1", "2", "3"], "of": "unit"},
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "x": {"levels": ["A", "B"]},
    }
)
FIGURES = Figures.of(SCHEMA, (total(), of_units(total(by="block"))))
ROWS = SeveralRows(FIGURES, 3, never_empty=True)
UNITS = ROWS.tables_of_units
TABLE = ["block", "tenure"]


def test_written_and_read_back() -> None:
    assert isinstance(UNITS, TablesOfUnits)
    again = read_pairs(FIGURES, UNITS.to_dict())
    assert again.same(UNITS)
    assert UNITS.covers(again)
    assert not UNITS.covers(ROWS)
    assert not ROWS.covers(UNITS)


def test_noise_is_given_the_figures_about_units() -> None:
    made = calibrate("auto", Guarantee.pure(1, UNITS), TABLE)
    assert made.description.units
    assert made.description.support == FIGURES.of_units
    again = Description.from_dict(SCHEMA, made.description.to_dict())
    assert again == made.description
    assert "units" not in replace(made.description, units=False).to_dict()


def test_sensitivity_is_that_of_a_units() -> None:
    """a = k + 1 = 4: three households change their size, and one gives its block."""
    assert UNITS.units == 4
    assert UNITS.l1(TABLE).value == 8
    assert UNITS.l2_squared(TABLE).value == 32
    assert UNITS.linf(TABLE).value == 4
    assert UNITS.l1(["block"]).value == 0  # published


def test_rows_and_units_are_at_most_the_sum_and_never_taken_for_each_other() -> None:
    rows = calibrate("auto", Guarantee.pure(1, ROWS), ["x"]).description
    units = calibrate("auto", Guarantee.pure(Fraction(1, 2), UNITS), TABLE).description
    assert joint_loss([rows, units], ROWS).epsilon == Fraction(3, 2)
    assert joint_loss([units], ROWS).epsilon == Fraction(1, 2)
    with pytest.raises(GuaranteeError, match="tables of units"):
        joint_loss([rows], UNITS)
    with pytest.raises(GuaranteeError, match="tables of units"):
        joint_loss([units], SemiAdjacent(FIGURES.of_rows))


def test_refusals() -> None:
    with pytest.raises(StructureError, match="cannot show 'x'"):
        UNITS.l1(["tenure", "x"])
    free = SeveralRows(Figures(SCHEMA, (total(),)), 3)
    with pytest.raises(StructureError, match="number of units"):
        _ = free.tables_of_units


# ---- counts of counts ---------------------------------------------------------------------------

SIZED = Schema.from_dict(
    {
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "size": {"integers": [1, 2], "of": "unit size"},
        "x": {"levels": ["A"]},
    }
)
PLAIN = Schema.from_dict({"tenure": SIZED.to_dict()["tenure"], "x": SIZED.to_dict()["x"]})


@pytest.mark.parametrize(
    "statements",
    [
        (total(), of_units(total())),
        (total(), of_units(total(by="tenure"))),
        (total(by="tenure"), of_units(total(by="tenure"))),
    ],
)
def test_counts_of_counts_never_move_further_over_whole_databases(
    statements: tuple[Statement, ...],
) -> None:
    """Sizes are what the rows say; in the pairs they are free, which is more."""
    pairs = SeveralRows(Figures.of(SIZED, statements), 2, never_empty=True)
    truth = Units(PLAIN, Figures.of(PLAIN, statements), 4, 2, least=1)
    l1, l2 = truth.farthest(pairs.units, pairs.slots, pairs.records, "sizes")
    by_tenure = len(statements[0].by) > 0  # with two sizes, both totals then tell everything
    assert (l1 == 0) == by_tenure
    assert l1 <= pairs.tables_of_units.l1(["tenure", "size"]).value
    assert l2 <= pairs.tables_of_units.l2_squared(["tenure", "size"]).value


def test_figures_that_see_sizes_are_refused_by_name() -> None:
    for statements in ((total(by="size"),), (total(), of_units(total(by="size")))):
        figures = Figures.of(SIZED, statements)
        with pytest.raises(StructureError, match="uses 'size', the number of rows of a unit"):
            SeveralRows.given(figures, 2).units  # noqa: B018


def test_tables_of_rows_that_show_sizes_count_all_rows_of_the_units() -> None:
    pairs = SeveralRows(Figures.of(SIZED, (total(),)), 2)
    assert pairs.rows_apart(["size", "x"]) == 2 * pairs.units
    assert "size" not in pairs.words


def test_several_tables_never_cost_more_than_one_by_one() -> None:
    """Types of differences do not know published values that leave little; single tables do."""
    counted = Figures(SCHEMA, (total(by="block"),), (np.array([2, 1, 1]),))
    figures = Figures(SCHEMA, (total(),), (np.array(8),), counted)
    pairs = SeveralRows(figures, 3, never_empty=True).tables_of_units
    tables = [(("block", "tenure"), Fraction(1)), (("tenure",), Fraction(2))]
    for joint in (pairs.joint_l1, pairs.joint_l2_squared):
        assert joint(tables).value <= sum(joint([one]).value for one in tables)
