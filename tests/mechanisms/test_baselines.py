"""Projections against brute force over all whole tables, and the comparison of methods."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from congenial import Schema, SeededRandomness, Table, count, publish, structural_zeros, total
from congenial.errors import FigureError, StructureError
from congenial.figures.support import support
from congenial.papers.post_processing import (
    ConformingTables,
    compare,
    least_absolute,
    least_squares,
    nearest_in,
    rounded,
    topdown,
)
from congenial.papers.post_processing.methods import METHODS
from congenial.tables.conforming_tables import FAR
from congenial.tables.water_levels import WaterLevels
from tests.worlds import one_way_margins

ALPHA = 1e-6


def two_way_of_three() -> np.ndarray:
    """All two-way margins of a 2 x 2 x 2 table: not totally unimodular."""
    index = np.indices((2, 2, 2))
    return np.array(
        [
            ((index[i] == a) & (index[j] == b)).ravel()
            for i, j in ((0, 1), (0, 2), (1, 2))
            for a, b in product(range(2), repeat=2)
        ]
    ).astype(int)


MATRICES = {  # name: (rows, whether two nested families)
    "partition": (np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]), True),
    "nested": (np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]), True),
    "crossing": (np.array([[1] * 6, [1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1]]), True),
    "two-way 2 x 3": (one_way_margins(2, 3), True),
    "weights": (np.array([[4, 3, 1, 1]]), False),
    "odd cycle": (np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]]), False),
    "two-way of 2 x 2 x 2": (two_way_of_three(), False),
}


def cases(rows: np.ndarray, number: int, top: int = 3):
    rng = np.random.default_rng(len(rows) + rows.shape[1])
    for _ in range(number):
        s = rng.integers(0, top + 1, rows.shape[1])
        yield s, s + np.rint(rng.laplace(0, 2, rows.shape[1])).astype(int)


@pytest.fixture(scope="module")
def boxes() -> dict[int, np.ndarray]:
    return {d: np.array(list(product(range(4), repeat=d))) for d in (4, 5, 6, 8)}


@pytest.mark.parametrize("name", MATRICES)
def test_nearest_and_rounded_against_brute_force(name, boxes):
    rows, nested = MATRICES[name]
    randomness = SeededRandomness(3)
    for s, y in cases(rows, 6):
        conforming = ConformingTables.of(rows, rows @ s, upper=3)
        box = boxes[rows.shape[1]]
        tables = box[(box @ rows.T == rows @ s).all(axis=1)]
        m = nearest_in(y, conforming, randomness)
        assert ((m - y) ** 2).sum() == ((tables - y) ** 2).sum(axis=1).min()
        x = least_squares(y, conforming)
        assert np.allclose(rows @ x, rows @ s, atol=1e-6)
        assert x.min() >= -1e-6
        assert x.max() <= 3 + 1e-6
        assert ((x - y) ** 2).sum() <= ((tables - y) ** 2).sum(axis=1).min() + 1e-5
        z = rounded(x, conforming, randomness)
        down, up = np.floor(x + 1e-5), np.ceil(x - 1e-5)
        near = tables[((tables >= down) & (tables <= up)).all(axis=1)]
        if len(near):
            least = np.abs(near - x).sum(axis=1).min()
            assert np.abs(z - x).sum() == pytest.approx(least, abs=1e-3)
        else:
            assert not nested  # unimodular rows always leave a table next to x
        l1 = least_absolute(y, conforming, 0.3)
        assert np.allclose(rows @ l1, rows @ s, atol=1e-6)
        least = np.abs(tables - y).sum(axis=1).min()
        assert np.abs(l1 - y).sum() <= least + 1e-6
        if nested:  # the optimum is attained by a whole table
            assert np.abs(l1 - y).sum() == pytest.approx(least, abs=1e-6)


def test_quadratic_programme_agrees_with_closed_form():
    """The optimality conditions hold, by the closed form and by the solver."""
    rows = np.array([[1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1]])
    y = np.array([9, -4, 2, 1, -7, 0, 3])
    closed = ConformingTables.of(rows, [5, 2])
    # the same set written with a bound that does nothing goes to the solver
    general = closed.plus(np.ones((1, 7)), np.array([0]), np.array([99]))
    assert closed.totals is not None
    assert general.totals is None
    x = least_squares(y, closed)
    assert np.allclose(x, least_squares(y, general), atol=1e-5)
    for group in (slice(0, 3), slice(3, 7)):
        moved = (x - y)[group]
        level = moved[x[group] > 1e-9]
        assert np.ptp(level) < 1e-9  # all positive cells move alike, zeros by at least as much
        assert np.all(moved >= level[0] - 1e-9)


def test_bounds_on_statistics_are_kept():
    rows, y = [[1, 1, 1, 1]], np.array([5, 0, 1, 4])
    conforming = ConformingTables.of(rows, [10]).plus(
        [[0, 1, 1, 0]], np.array([4]), np.array([FAR])
    )
    m = nearest_in(y, conforming, SeededRandomness(1))
    assert m.sum() == 10
    assert m[1] + m[2] == 4
    assert ((m - y) ** 2).sum() == min(
        sum((a - b) ** 2 for a, b in zip(z, y, strict=True))
        for z in product(range(11), repeat=4)
        if sum(z) == 10 and z[1] + z[2] >= 4
    )
    assert np.allclose(least_squares(y, conforming)[1:3].sum(), 4, atol=1e-6)


def test_impossible_and_loose_cells():
    """A structural zero stays zero, cells in no figure are cut at zero, the figure is kept."""
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [1, 5]}})
    table = Table(schema, schema.names, [[8, 0, 3, 6, 1], [2, 4, 0, 1, 30]])
    zero = structural_zeros("sex = 'm' and age = 3")
    figures = publish(table, count("age <= 2"), zero)
    conforming = ConformingTables.given(support(figures, schema.names))
    y = np.array([[9, -3, -1, 4, 2], [-5, 6, 7, -2, 31]])
    m = nearest_in(y.reshape(-1), conforming, SeededRandomness(1)).reshape(2, 5)
    assert m[:, :2].sum() == 14
    assert m[1, 2] == 0
    assert m[:, 2:].tolist() == [[0, 4, 2], [0, 0, 31]]
    assert conforming.repeated(3).holds(np.tile(m.reshape(-1), 3))


def test_levels_fill_any_total_within_bounds():
    labels, v = np.array([0, 0, 1, -1, 1, 1]), np.array([3, 9, -2, 5, 0, 4])
    low, high = np.full(6, -1), np.array([9, 4, 2, 0, 2, 9])
    levels = WaterLevels(labels, v, low, high)
    for a, b in product(range(-2, 14), range(-3, 14)):
        cells = levels.fill(np.array([a, b]), SeededRandomness(1))
        assert np.bincount(levels.label, cells).tolist() == [a, b]
        assert np.all((cells >= levels.lower) & (cells <= levels.upper))
    with pytest.raises(FigureError, match="cannot meet"):
        levels.fill(np.array([14, 0]), SeededRandomness(1))


@pytest.mark.parametrize(
    "rows", [np.ones((1, 4), int), one_way_margins(2, 2)], ids=["group", "2 x 2"]
)
def test_ties_favour_no_cell(rows):
    """alpha = 1e-6: all nearest tables that symmetry makes equal are equally often chosen."""
    y = np.full(4, len(rows) == 1, dtype=int)
    figures = [2] if len(rows) == 1 else [1, 1, 1, 1]
    randomness, draws = SeededRandomness(7), 400
    together = ConformingTables.of(rows, figures).repeated(draws)
    first = int(nearest_in(np.tile(y, draws), together, randomness)[::4].sum())
    low, high = binom.ppf([ALPHA / 2, 1 - ALPHA / 2], draws, 0.5)
    print(f"seed 7: first cell {first} of {draws}")
    assert low <= first <= high


@pytest.mark.parametrize(
    ("rows", "figures", "upper"),
    [
        ([[1, 1]], [-1], None),
        ([[2, 2]], [3], None),
        (one_way_margins(2, 2), [1, 1, 2, 1], None),
        (one_way_margins(2, 2), [3, 0, 2, 1], 1),
        ([[4, 6]], [9], None),
    ],
)
def test_impossible_figures_are_refused(rows, figures, upper):
    with pytest.raises(FigureError):
        nearest_in(
            np.zeros(np.shape(rows)[1], int), ConformingTables.of(rows, figures, upper=upper)
        )


def test_bad_input_is_refused():
    with pytest.raises(StructureError, match="whole"):
        nearest_in([0.5, 1], ConformingTables.of([[1, 1]], [1]))
    with pytest.raises(StructureError, match="not whole"):
        ConformingTables.of([[0.5, 1]], [1])
    with pytest.raises(StructureError, match="one per cell"):
        nearest_in([1, 2, 3], ConformingTables.of([[1, 1]], [1]))
    with pytest.raises(StructureError, match="share"):
        least_absolute([1, 2], ConformingTables.of([[1, 1]], [2]), beta=2)
    with pytest.raises(FigureError, match="above"):
        ConformingTables.of([[1, 1]], [2], lower=3, upper=1)


def test_two_bins_give_the_papers_family():
    """m_1 = s_1 + beta u_1 - (1 - beta) u_2, and beta = 1/2 is the l2 projection."""
    conforming = ConformingTables.of([[1, 1]], [30], lower=None)
    for u1, u2, beta in product((-3, 2), (-1, 4), (0.0, 0.3, 1.0)):
        m = least_absolute([10 + u1, 20 + u2], conforming, beta)
        assert m[0] == pytest.approx(10 + beta * u1 - (1 - beta) * u2)
        x = least_squares([10 + u1, 20 + u2], conforming)
        assert x[0] == pytest.approx(10 + (u1 - u2) / 2)


SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [1, 5]}})
TABLE = Table(SCHEMA, SCHEMA.names, [[8, 0, 3, 6, 1], [2, 4, 0, 1, 30]])
CROSSING = (total(), count("sex = 'f'"), count("age >= 3"))


@pytest.mark.parametrize("statements", [(total(),), (total(by="sex"),), CROSSING])
def test_every_method_keeps_what_it_says(statements):
    figures = publish(TABLE, *statements)
    found = compare(TABLE, figures, 1, list(METHODS), 12, SeededRandomness(1))
    known = ConformingTables.given(support(figures, SCHEMA.names))
    assert known.holds(TABLE.counts)
    for name, method in METHODS.items():
        row = found.overall(name)
        assert row["figures_kept"] == method.keeps
        assert not (method.nonnegative and row["negative_share"])
        assert row["cells"] == 10
    signed = found.overall("condition_nonnegative")["eps_cell"]
    assert signed < found.overall("condition")["eps_cell"]
    assert "Comparison(8 methods)" in repr(found)  # no error is printed by accident
    told = found.to_dict()
    assert len(told["rows"][0]) == len(told["columns"])
    assert sum(r["cells"] for r in found.rows if r["method"] == "plain noise") == 20  # all + parts


def test_methods_are_named():
    with pytest.raises(StructureError, match="no method is called 'best'"):
        compare(TABLE, publish(TABLE, total()), 1, ["best"])


def test_projecting_plain_noise_is_biased_towards_zero_cells():
    """The mean error of empty cells is positive by projection and zero by conditioning."""
    counts = np.zeros((2, 5), dtype=int)
    counts[0, 0] = 100
    table = Table(SCHEMA, SCHEMA.names, counts)
    methods = ["condition", "project", "condition_project"]
    found = compare(table, publish(table, total()), 1, methods, 600, SeededRandomness(4))
    zero = {r["method"]: r["mean_error"] for r in found.rows if r["count"] == "0"}
    spread = 2.8 / np.sqrt(9 * 600)  # of a mean over nine cells whose noise has deviation 2.8
    assert abs(zero["conditioned on the figures"]) < 5 * spread
    assert zero["plain, then nearest whole table"] > 5 * spread
    assert zero["conditioned on the figures, then nearest whole table"] > 5 * spread


def test_topdown_scales_with_large_counts():
    """Millions of people, fractional least squares: sums are kept exactly."""
    rng = np.random.default_rng(1)
    rows, s = one_way_margins(3, 4), rng.integers(0, 4_000_000, 12)
    y = s + rng.integers(-9, 10, 12)
    conforming = ConformingTables.of(rows, rows @ s)
    for m in (topdown(y, conforming, SeededRandomness(1)), nearest_in(y, conforming)):
        assert np.array_equal(rows @ m, rows @ s)
        assert np.abs(m - y).max() <= 30
