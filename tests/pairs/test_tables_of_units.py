"""Tables of units as pairs: what they condition on, refuse, and cost beside tables of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from congenial import Schema, total
from congenial.errors import GuaranteeError, StructureError
from congenial.figures.invariants import Invariants
from congenial.figures.statements import of_units
from congenial.mechanisms.calibrate import calibrate
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import read_pairs
from congenial.pairs.several_rows import SeveralRows
from congenial.pairs.tables_of_units import TablesOfUnits
from congenial.privacy.composition import joint_loss
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee

SCHEMA = Schema.from_dict(
    {
        "block": {"levels": ["1", "2", "3"], "of": "unit"},
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "x": {"levels": ["A", "B"]},
    }
)
FIGURES = Invariants.of(SCHEMA, (total(), of_units(total(by="block"))))
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
    with pytest.raises(GuaranteeError, match="table of units"):
        joint_loss([rows], UNITS)
    with pytest.raises(GuaranteeError, match="table of units"):
        joint_loss([units], SemiAdjacent(FIGURES.of_rows))


def test_refusals() -> None:
    with pytest.raises(StructureError, match="cannot show 'x'"):
        UNITS.l1(["tenure", "x"])
    free = SeveralRows(Invariants(SCHEMA, (total(),)), 3)
    with pytest.raises(StructureError, match="number of units"):
        _ = free.tables_of_units
