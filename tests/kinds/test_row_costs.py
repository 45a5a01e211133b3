"""What `check` says each row of a unit costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial import Schema, margin
from congenial.figures.invariants import Invariants
from congenial.kinds.row_costs import row_costs
from congenial.mechanisms.calibrate import calibrate
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.guarantee import Guarantee
from congenial.publication.check_document import examine
from congenial.publication.plan import Plan
from tests.publication.test_several_rows_plan import PLAN

SCHEMA = Schema.from_dict(
    {"area": {"levels": ["A", "B"]}, "ill": {"levels": ["0", "1"]}, "sex": {"levels": ["f", "m"]}}
)
FIGURES = Invariants(SCHEMA, (margin("area"), margin("ill")))


def test_noise_is_that_of_the_sensitivities_and_no_multiple() -> None:
    """2 x 2 margins: Delta_1 is 4, 12, 16 and 24 at one to four rows."""
    pairs = SeveralRows(FIGURES, 3)
    made = calibrate("congenial", Guarantee.pure(1, pairs), ["area", "ill"])
    found = row_costs(made)
    assert [one.max_rows for one in found] == [1, 2, 3, 4]
    assert [one.noise * 16 for one in found] == pytest.approx([4, 12, 16, 24])
    assert [(one.units, one.slots) for one in found] == [(3, 3), (5, 6), (7, 9), (9, 12)]


def test_many_rows_are_thinned_out_and_the_plan_and_one_more_stay() -> None:
    made = calibrate("auto", Guarantee.zero_concentrated(1, SeveralRows(FIGURES, 40)), ["sex"])
    found = [one.max_rows for one in row_costs(made)]
    assert found == [1, 10, 20, 30, 40, 41]


def test_units_with_one_row_have_no_such_cost() -> None:
    made = calibrate("auto", Guarantee.pure(1, SemiAdjacent(FIGURES)), ["area", "sex"])
    assert row_costs(made) == []


def test_check_shows_it(tmp_path: Path) -> None:
    document = examine(Plan.parse(PLAN, tmp_path))
    shown = document["releases"][0]["row_costs"]
    assert [one["max_rows"] for one in shown] == [1, 2, 3, 4]
    assert shown[2]["noise"] == 1
