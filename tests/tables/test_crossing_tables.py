"""Printed counts of tables that cross: each is about as good as its estimates."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import nnls

from congenial import AddRemove, Guarantee, Schema, SeededRandomness, SemiAdjacent, Table
from congenial.figures import Figures, count, publish, structural_zeros, total
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.tables import Measurements, Workload, rehearse, whole_counts
from congenial.tables.gradient_inverse import figure_matrix, indicators
from congenial.tables.node_order import NodeOrder
from congenial.tables.whole_counts import figure_classes, nearer, nonnegative_cells, weights_of

SIZES = {"a": 7, "b": 6, "c": 5, "d": 4, "e": 2}
SCHEMA = Schema.from_dict({name: {"integers": [1, size]} for name, size in SIZES.items()})
TABLES = (tuple(SIZES), ("a", "b", "c"), ("c", "d"), *((name,) for name in SIZES))
RNG = np.random.default_rng(3)
COUNTS = RNG.poisson(RNG.gamma(0.02, 30.0, tuple(SIZES.values())))  # nineteen of twenty are empty
PEOPLE = Table(SCHEMA, SCHEMA.names, COUNTS)
FIGURES = {
    "the total": (total(),),
    "by b": (total(by="b"), count("a >= 5", by="b")),
    "nothing": (),
}
RELEASES = 3
WIDE = (16, 7, 6, 5, 2, 9)


def made(figures):
    target = Guarantee.zero_concentrated("0.3", under=SemiAdjacent(publish(PEOPLE, *figures)))
    return calibrate_tables(target, TABLES)


def ratios(mechanism, people=PEOPLE) -> np.ndarray:
    """Root mean square error of printed counts relative to that of the estimates, by table."""
    tables = mechanism.estimator.workload.tables
    squares = np.zeros((2, len(tables)))
    for seed in range(RELEASES):
        release = mechanism.release(people, SeededRandomness(seed))
        for b, names in enumerate(tables):
            truth = people.marginal(names).counts
            for k, values in enumerate((release.estimates[b], release.counts[b])):
                squares[k, b] += np.mean((values - truth) ** 2)
        assert not release.published.statements or release.published.holds_for(
            Table(SCHEMA, SCHEMA.names, release.counts[0])
        )
    known = squares[0] > 1e-9  # not told by the figures
    return np.sqrt(squares[1, known] / squares[0, known])


@pytest.mark.parametrize("figures", FIGURES)
def test_printed_counts_of_crossing_tables_are_about_as_good_as_estimates(figures) -> None:
    found = ratios(made(FIGURES[figures]))
    assert found.max() < 1.06


def test_tables_of_which_one_nearly_settles_another() -> None:
    """Husbands and wives by sex: cells that are nearly empty in one table, and in all below it."""
    counts = COUNTS.copy()
    counts[:3, ..., 0] //= 50
    counts[3:, ..., 1] //= 50
    people = Table(SCHEMA, SCHEMA.names, counts)
    pairs = list(combinations(SIZES, 2))
    tables = (tuple(SIZES), *combinations(SIZES, 3), *pairs, *((name,) for name in SIZES))
    target = Guarantee.zero_concentrated("0.5", under=AddRemove(SCHEMA))
    found = ratios(calibrate_tables(target, tables), people)
    assert found.max() < 1.06


def test_planted_a_fit_along_one_attribute_only_is_worse(monkeypatch) -> None:
    monkeypatch.setattr(whole_counts, "_crossing", lambda _: [])
    assert ratios(made(FIGURES["nothing"])).max() > 5


def test_nodes_of_thousands_of_cells_have_an_order() -> None:
    """Six attributes without figures: whole counts, where nodes used to end at 2,000 cells."""
    schema = Schema.from_dict({f"v{i}": {"integers": [1, n]} for i, n in enumerate(WIDE)})
    work = Workload.of(schema, [schema.names, *((name,) for name in schema.names)])
    order = rehearse(Measurements(work, (1.0,) * 7, Figures(schema)))
    assert isinstance(order, NodeOrder)
    assert order.cells == 7 * 6 * 5 * 2 * 9


# ---- the parts -----------------------------------------------------------------------------------


SMALL = Schema.from_dict(
    {"a": {"integers": [1, 3]}, "b": {"levels": list("xyzu")}, "c": {"levels": ["n", "y"]}}
)


@pytest.mark.parametrize("figures", [(), (total(by="b"), count("c = 'y'", by="b"))])
@pytest.mark.parametrize("seed", range(4))
def test_targets_are_the_weighted_least_squares_fit_given_the_signs(figures, seed) -> None:
    rng = np.random.default_rng(seed)
    people = Table(SMALL, SMALL.names, rng.poisson(0.7, (3, 4, 2)))
    target = Guarantee.zero_concentrated("0.3", under=SemiAdjacent(publish(people, *figures)))
    tables = [["a", "b", "c"], ["a", "b"], ["b", "c"], ["a", "c"], ["c"]]
    fitted = calibrate_tables(target, tables).release(people, SeededRandomness(seed)).fitted
    work = fitted.measurements
    margins = list(work.margins)
    found, aim = nonnegative_cells(fitted, margins), fitted.cells
    matrix = np.vstack(
        [
            np.sqrt(weight) * indicators(margin).toarray()
            for margin, weight in zip(margins, weights_of(work, margins), strict=True)
        ]
    )
    known = figure_matrix(work.figure_rows, work.shape).toarray()
    matrix = np.vstack([matrix, 1e4 * known])  # figures, as nearly as rounding lets them
    best = nnls(matrix, matrix @ aim.reshape(-1))[0].reshape(aim.shape)
    assert found.min() >= 0
    assert np.abs(known @ (found - aim).reshape(-1)).max(initial=0) < 0.1
    for margin in margins:
        assert np.abs(margin.totals(found - best)).max() < 0.15


def test_moves_keep_every_figure_and_bring_tables_nearer() -> None:
    figures = (total(by="b"), structural_zeros("a = 1 and b = 2"))
    counts = COUNTS.copy()
    counts[0, 1] = 0
    people = Table(SCHEMA, SCHEMA.names, counts)
    known = publish(people, *figures)
    target = Guarantee.zero_concentrated("0.3", under=SemiAdjacent(known))
    release = calibrate_tables(target, TABLES).release(people, SeededRandomness(3))
    work = release.estimator.measurements
    margins = list(work.margins)
    targets = nonnegative_cells(release.fitted, margins)
    moved = nearer(work, margins, counts, targets)

    def distance(cells) -> float:
        return sum(float(((m.totals(cells) - m.totals(targets)) ** 2).sum()) for m in margins)

    assert known.holds_for(Table(SCHEMA, SCHEMA.names, moved))
    assert distance(moved) < 0.5 * distance(counts)
    alike, counted = figure_classes(work)
    assert counted.all()
    assert len(np.unique(alike)) == 6 + 5 * 4 * 2  # sums, and cells that are empty for sure


def test_cells_in_no_figure_take_people_in_and_give_them_away() -> None:
    release = made(FIGURES["nothing"]).release(PEOPLE, SeededRandomness(5))
    work, margins = release.estimator.measurements, list(release.estimator.measurements.margins)
    targets = np.ones(COUNTS.shape)
    moved = nearer(work, margins, np.zeros_like(COUNTS), targets)
    assert np.array_equal(moved, targets)
