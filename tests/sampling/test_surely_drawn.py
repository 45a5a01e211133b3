"""Whether tied noise can be drawn is told before its tables are built, and told right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, SemiAdjacent, calibrate, count, total
from congenial.errors import StructureError
from congenial.sampling import DiscreteGaussian, DoubleGeometric, SeededRandomness, elimination
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.joining_order import components, surely_drawn

SEED = 20_261_116
SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 29]}})
CENSUS = (total(), count("sex = 'f'"), count("age >= 18"))


def two_way(rows, columns):
    """Both margins of a table of groups, as equations on their totals."""
    grid = np.arange(rows * columns).reshape(rows, columns)
    return np.stack([np.isin(np.arange(grid.size), line) for line in [*grid, *grid.T]]).astype(int)


def certain(equations, sizes, law):
    rows = [{i: int(v) for i, v in enumerate(row) if v} for row in equations]
    return surely_drawn(components(rows, len(sizes)), sizes, law)


def built(equations, sizes, law):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    try:
        return CrossingGroups(labels, np.zeros(len(labels), int), equations, law, low=None)
    except StructureError:
        return None


@pytest.mark.parametrize("law", [DoubleGeometric(Fraction(1, 3)), DiscreteGaussian(Fraction(900))])
@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (2, 3), (2, 5), (3, 4)])
def test_what_is_surely_drawn_can_be_built(law, rows, columns):
    sizes = np.arange(rows * columns) % 4 + 1
    equations = two_way(rows, columns)
    assert not certain(equations, sizes, law) or built(equations, sizes, law) is not None


def test_the_usual_case_is_certain_and_wide_noise_is_not():
    sizes = np.array([18, 18, 67, 67])
    assert certain(two_way(2, 2), sizes, DoubleGeometric(Fraction(1, 4)))
    assert not certain(two_way(2, 2), sizes, DoubleGeometric(Fraction(1, 10**6)))
    assert not certain(two_way(4, 5), np.ones(20, int), DoubleGeometric(Fraction(1)))
    # Sums that are all known leave nothing to join, and still need windows for their cells.
    assert not certain(np.eye(2, dtype=int), np.array([5, 5]), DoubleGeometric(Fraction(1, 10**9)))


def test_windows_are_within_what_is_reckoned_with():
    """The bound on the states holds: a window is no wider than its cells' together."""
    law, sizes = DoubleGeometric(Fraction(1, 4)), np.array([3, 8, 2, 5])
    crossing = built(two_way(2, 2), sizes, law)
    given = crossing._given_totals
    cell = 222  # 80 log(2) / eps, rounded up
    for atom, size in enumerate(sizes):
        assert given.forest.nodes[given.roots[atom]].hi <= cell * size


def test_calibration_builds_no_tables_and_a_draw_does(monkeypatch):
    made = []

    class Counted(elimination.TreeOfSums):
        def __init__(self, *given, **named):
            made.append(1)
            super().__init__(*given, **named)

    monkeypatch.setattr(elimination, "TreeOfSums", Counted)
    target = Guarantee.pure(1, under=SemiAdjacent(Figures(SCHEMA, CENSUS)))
    mechanism = calibrate("congenial", target)
    mechanism.error_law(np.arange(60).reshape(2, 30) < 7)
    assert not made
    mechanism.noise(SeededRandomness(SEED), 1)
    assert made == [1]
