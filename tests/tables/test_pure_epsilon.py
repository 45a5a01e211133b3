"""Designs for pure epsilon against a grid of all designs, and promises of epsilon with delta."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from benchmarks.crossing_epsilon import cases, rows_of

from congenial.errors import PlanError
from congenial.figures.statements import count, margin, total
from congenial.privacy.conversions import zcdp_epsilon
from congenial.privacy.gaussian_draw import lattice_epsilon
from congenial.tables.aims import PowerMean
from congenial.tables.design import Even, Keep, Weighted, design, loss_of
from congenial.tables.optimise import Problem, _local, _starts
from congenial.tables.promise import law_and_promise
from tests.pairs.test_difference_types import districts
from tests.tables.test_design import HALF, world
from tests.worlds import schema_of

DISTRICT_TABLES = [
    ["district", "race", "adult"],
    ["district", "race"],
    ["county", "race", "adult"],
    ["county", "race"],
    ["race", "adult"],
    ["race"],
]


def on_a_grid(problem, steps=60):
    """The least error over all shares of the promise in steps of 1/60, for two or three tables."""
    size, most = problem.types.shape[1], problem.types.max(axis=0)
    shares = [s for s in product(range(steps + 1), repeat=size - 1) if sum(s) <= steps]
    points = (np.maximum([*s, steps - sum(s)], 1e-9) / most for s in shares)
    return min(problem.value(x / (problem.types @ x).max()) for x in points)


@pytest.mark.parametrize("figures", [(), (margin("x"),)], ids=["free", "margin"])
@pytest.mark.parametrize("sizes", [(2, 3), (5, 7), (2, 40), (12, 3)], ids=str)
@pytest.mark.parametrize("absolute", [True, False])
def test_the_search_for_pure_epsilon_finds_the_best_of_a_grid(sizes, figures, absolute):
    """The problem is not convex: parameters of some tables are 0 at the best one."""
    schema = schema_of(x=sizes[0], y=sizes[1])
    work, types, model = world(schema, [["x", "y"], ["x"], ["y"]], figures)
    aim = Weighted((1, 1, 1), absolute=absolute)
    found = design(work, types, model, Fraction(1), aim, "geometric")
    open_ = np.array(types.absolutes).any(axis=0)
    problem = Problem(
        model, np.array(types.absolutes, float)[:, open_], open_, found.objective, squared=True
    )
    x = np.array([float(value) for value in found.parameters])[open_]
    assert problem.value(x) <= on_a_grid(problem) * (1 + 1e-4)
    first = _local(problem, np.where(np.arange(len(x)) == 0, 1e-6, 1) / problem.types.max(axis=0))
    assert problem.value(x) <= problem.value(first) * (1 + 1e-9)


def test_the_default_aim_uses_what_is_left_as_well_as_any_split_of_a_grid():
    """Districts by race: what the finest table leaves goes to one coarse table, as on the grid."""
    work, types, model = world(
        districts(), DISTRICT_TABLES, (total(by="county"), count("adult = 'yes'", by="district"))
    )
    found = design(work, types, model, Fraction(1), Keep(), "geometric")
    x = np.array([float(value) for value in found.parameters])
    coarser = PowerMean.geometric(np.array([0.0] + [0.2] * 5))
    left = 1 - types.absolutes[0][0] * x[0]

    def error(shares):
        eps = np.array([x[0], *(left * np.array(shares) / np.array(types.absolutes[0][1:]))])
        return coarser.value(model.variances(eps**2 / 2))

    grid = [s for s in product(range(7), repeat=5) if sum(s) == 6]
    reached = coarser.value(model.variances(x**2 / 2))
    assert reached <= min(error(np.array(s) / 6) for s in grid) * (1 + 1e-4)
    assert reached < 0.9 * error(np.full(5, 0.2))  # evenly split, it buys less


def test_one_start_of_the_search_can_end_elsewhere():
    """The negative control of the search: a single start stops at a worse design."""
    schema = schema_of(x=2, y=40)
    work, types, model = world(schema, [["x", "y"], ["x"], ["y"]])
    found = design(work, types, model, Fraction(1), Even(), "geometric")
    norms = np.array(types.absolutes, float)
    problem = Problem(model, norms, norms.any(axis=0), found.objective, squared=True)
    ends = [problem.value(_local(problem, start)) for start in _starts(problem)]
    x = np.array([float(value) for value in found.parameters])
    assert problem.value(x) <= min(ends) * (1 + 1e-6)
    assert max(ends) > 1.001 * min(ends)


def test_tables_that_add_nothing_are_not_drawn():
    schema = schema_of(x=2, y=3)
    work, types, model = world(schema, [["x", "y"], ["x"], ["y"]])
    found = design(work, types, model, Fraction(1), Even(), "geometric")
    assert found.parameters[1:] == (0, 0)
    assert found.scales[1:] == (None, None)
    assert loss_of(types, "geometric", found.parameters) > Fraction(999_999, 1_000_000)


def test_epsilon_with_delta_is_the_largest_rho_that_meets_it():
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    law, rho = law_and_promise(epsilon=epsilon, delta=delta)
    assert law == "gaussian"
    assert lattice_epsilon(rho, 1e-6) <= 1 < lattice_epsilon(rho * Fraction(1_001, 1_000), 1e-6)
    assert zcdp_epsilon(rho, 1e-6) > 1  # which a conversion of rho alone would not allow
    assert law_and_promise(rho=Fraction(1, 3)) == ("gaussian", Fraction(1, 3))
    assert law_and_promise(epsilon=epsilon) == ("geometric", epsilon)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({}, "is rho, epsilon, or"),
        ({"rho": HALF, "epsilon": HALF}, "is rho, epsilon, or"),
        ({"rho": HALF, "delta": HALF}, "is rho, epsilon, or"),
        ({"epsilon": HALF, "delta": Fraction(0)}, "outside 0"),
        ({"epsilon": HALF, "delta": Fraction(1)}, "outside 0"),
    ],
)
def test_a_promise_is_stated_in_one_way(stated, message):
    with pytest.raises(PlanError, match=message):
        law_and_promise(**stated)


# ---- stated and true errors of several tables under pure epsilon and crossing figures ------------


@pytest.mark.parametrize("number", [0, 2])
def test_stated_deviations_and_levels_are_true_ones(number: int) -> None:
    """By draws with other seeds; the proved bounds and normal shapes of before must fail."""
    rows = list(rows_of(list(cases())[number], "1/10", 500))
    now, before = ([row for row in rows if row["as"] == label] for label in ("now", "before"))
    for row in now:
        assert row["sd ratio"] == pytest.approx(1, abs=0.07), row
        assert 0.87 <= row["0.9"] <= 0.95, row
        assert row["0.99"] >= 0.98, row
    assert all(row["sd ratio"] > 1.3 and row["0.9"] > 0.95 for row in before)
