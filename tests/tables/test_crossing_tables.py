"""Printed counts of tables that cross: each is about as good as its estimates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from congenial import Guarantee, Schema, SemiAdjacent, Table, publish
from congenial.figures.statements import count, structural_zeros, total
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.sampling import SeededRandomness
from congenial.tables import whole_counts
from congenial.tables.crossing_rounding import figure_classes, nearer
from congenial.tables.crossing_targets import KnownSums, nonnegative_cells

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


def made(figures):
    target = Guarantee.zero_concentrated("0.3", under=SemiAdjacent(publish(PEOPLE, *figures)))
    return calibrate_tables(target, TABLES)


def ratios(figures) -> np.ndarray:
    """Root mean square error of printed counts relative to that of the estimates, by table."""
    mechanism, squares = made(figures), np.zeros((2, len(TABLES)))
    for seed in range(RELEASES):
        release = mechanism.release(PEOPLE, SeededRandomness(seed))
        for b, names in enumerate(TABLES):
            truth = PEOPLE.marginal(names).counts
            for k, values in enumerate((release.estimates[b], release.counts[b])):
                squares[k, b] += np.mean((values - truth) ** 2)
        assert release.published.holds_for(Table(SCHEMA, SCHEMA.names, release.counts[0]))
    known = squares[0] > 1e-9  # not told by the figures
    return np.sqrt(squares[1, known] / squares[0, known])


@pytest.mark.parametrize("figures", FIGURES)
def test_printed_counts_of_crossing_tables_are_about_as_good_as_estimates(figures) -> None:
    assert ratios(FIGURES[figures]).max() < 1.15


def test_planted_a_fit_along_one_attribute_only_is_worse(monkeypatch) -> None:
    monkeypatch.setattr(whole_counts, "_crossing", lambda _: [])
    assert ratios(FIGURES["nothing"]).max() > 5


# ---- the parts -----------------------------------------------------------------------------------


def test_the_nearest_values_with_known_sums() -> None:
    rng = np.random.default_rng(4)
    for _ in range(12):
        values = rng.normal(1, 3, 8)
        block, sums = rng.permutation([-1, 0, 0, 0, 1, 1, 2, 2]), rng.gamma(1.0, 3.0, 3)
        found = KnownSums(block, sums).nearest(values)
        held = [
            {"type": "eq", "fun": lambda x, here=block == k, want=sums[k]: x[here].sum() - want}
            for k in range(3)
        ]
        best = minimize(
            lambda x, v=values: ((x - v) ** 2).sum(),
            np.maximum(found, 0.1),
            bounds=[(0, None)] * 8,
            constraints=held,
            options={"ftol": 1e-12},
        )
        assert KnownSums(block, sums).off(found) < 1e-9
        assert found.min() >= 0
        assert ((found - values) ** 2).sum() <= best.fun + 1e-5


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
