"""What each mandate and each row of a unit costs, and hierarchies and signs from a plan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from congenial import Guarantee, Plan, Schema, SemiAdjacent, Table, calibrate
from congenial.errors import StructureError
from congenial.figures import Figures, count, margin, publish, total
from congenial.kinds import tables_document
from congenial.kinds.tables_document import cost_of_all, figure_costs, row_costs
from congenial.mechanisms.congenial import CongenialCounts
from congenial.pairs.several_rows import SeveralRows
from congenial.publication.check_document import examine
from tests.publication.test_several_rows_plan import PLAN as ROWS_PLAN

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
COUNTS = np.random.default_rng(1).integers(1, 40, (3, 2, 3))
TABLE = Table(SCHEMA, SCHEMA.names, COUNTS)


def test_each_mandate_against_the_release_without_it():
    figures = publish(TABLE, total(), total(by="county"), count("age >= 18", by="county"))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    county, adults = figure_costs(mechanism)  # the number of people is public in any case
    assert county.loss == adults.loss == 1
    assert adults.loss_without == 1  # the counties alone already need two records
    assert adults.deviation < adults.deviation_without  # but it fixes sums
    assert county.loss_without == pytest.approx(1)


def test_figures_that_tell_each_other_cost_something_together():
    """Each of three figures follows from the other two and looks free; together they cost 2."""
    halves = [count(f"sex = '{one}'", by="county") for one in "fm"]
    figures = publish(TABLE, total(by="county"), *halves)
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    costs = figure_costs(mechanism)
    assert all(one.trivial and one.told_by_others for one in costs)
    note = tables_document._cost_note(vars(costs[0]) | {"trivial": True})
    assert note == "follows from the other figures"
    together = cost_of_all(mechanism, figure_costs(mechanism))
    assert (together.loss_without, together.loss) == (0.5, 1)
    assert together.deviation > together.deviation_without
    alone = publish(TABLE, total(by="county"))
    lone = calibrate("auto", Guarantee.pure(1, SemiAdjacent(alone)), SCHEMA.names)
    assert cost_of_all(lone, figure_costs(lone)) is None
    assert not figure_costs(lone)[0].told_by_others


def test_a_figure_that_seems_to_help_is_explained():
    figures = publish(TABLE, total(), total(by="county"), count("age >= 18", by="county"))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    notes = [
        tables_document._cost_note(vars(one) | {"trivial": one.trivial})
        for one in figure_costs(mechanism)
    ]
    helps = "less noise, less protection"
    assert notes == [helps, helps]


def test_a_lone_mandate_doubles_the_loss_of_the_same_noise():
    figures = publish(TABLE, total(by="county"))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    (county,) = figure_costs(mechanism)
    assert (county.loss_without, county.loss) == (0.5, 1)
    assert county.deviation > county.deviation_without


def test_counts_have_no_error_law_but_a_cost():
    figures = publish(TABLE, total(by="county"))
    mechanism = CongenialCounts.calibrate(Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    (county,) = figure_costs(mechanism)
    assert county.deviation is None
    assert 0 < county.loss_without < county.loss
    assert mechanism.price.value > 0
    with pytest.raises(StructureError, match="depends on the data"):
        mechanism.error_law(np.arange(np.prod(mechanism.shape)).reshape(mechanism.shape) == 0)
    assert mechanism.error_law(np.ones(mechanism.shape, dtype=bool)).variance == 0  # published


# ---- what each row of a unit costs --------------------------------------------------------------

ROWS = Schema.from_dict(
    {"area": {"levels": ["A", "B"]}, "ill": {"levels": ["0", "1"]}, "sex": {"levels": ["f", "m"]}}
)
MARGINS = Figures(ROWS, (margin("area"), margin("ill")))


def test_noise_is_that_of_the_sensitivities_and_no_multiple() -> None:
    """2 x 2 margins: Delta_1 is 4, 12, 16 and 24 at one to four rows."""
    pairs = SeveralRows(MARGINS, 3)
    made = calibrate("congenial", Guarantee.pure(1, pairs), ["area", "ill"])
    found = row_costs(made)
    assert [one.max_rows for one in found] == [1, 2, 3, 4]
    assert [one.noise * 16 for one in found] == pytest.approx([4, 12, 16, 24])
    assert [(one.units, one.slots) for one in found] == [(3, 3), (5, 6), (7, 9), (9, 12)]


def test_many_rows_are_thinned_out_and_the_plan_and_one_more_stay() -> None:
    made = calibrate("auto", Guarantee.zero_concentrated(1, SeveralRows(MARGINS, 40)), ["sex"])
    found = [one.max_rows for one in row_costs(made)]
    assert found == [1, 10, 20, 30, 40, 41]


def test_units_with_one_row_have_no_such_cost() -> None:
    made = calibrate("auto", Guarantee.pure(1, SemiAdjacent(MARGINS)), ["area", "sex"])
    assert row_costs(made) == []


def test_check_shows_what_a_row_costs(tmp_path: Path) -> None:
    document = examine(Plan.parse(ROWS_PLAN, tmp_path))
    shown = document["releases"][0]["row_costs"]
    assert [one["max_rows"] for one in shown] == [1, 2, 3, 4]
    assert shown[2]["noise"] == 1
