"""Intervals of several sparse tables: cut to what published sums allow, in every place alike."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

import congenial
from congenial import ReplaceOne, Schema, SeededRandomness, SemiAdjacent, Table, TablesRelease
from congenial.exports.exported_tables import exported_bundle
from congenial.figures import count, margin, publish, total
from congenial.figures.limits import table_ranges
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.released import LEVEL
from congenial.mechanisms.tables_files import estimated_columns, with_ends
from congenial.report.tables_report import render
from congenial.tables.intervals import COUNTS, ends

COUNTIES, ILLS = 12, 10
SCHEMA = Schema.from_dict(
    {
        "county": {
            "levels": [f"c{i}" for i in range(COUNTIES)],
            "within": {"region": [f"r{i // 3}" for i in range(COUNTIES)]},
        },
        "ill": {"levels": [f"i{i}" for i in range(ILLS)]},
    }
)
NAMES = ("county", "ill")
TABLES = (NAMES, ("region", "ill"), ("ill",))
TRUTH = np.random.default_rng(3).poisson(np.where(np.arange(ILLS) < 2, 6.0, 0.1), (COUNTIES, ILLS))
TRUTH[0] = 0
TRUTH[0, 0] = 40  # everybody of a county, and of a region, in one cell: as many as there can be
TRUTH[1:3] = 0
TABLE = Table(SCHEMA, NAMES, TRUTH)
FIGURES = {
    "total": (total(),),
    "county": (margin("county"),),
    "crossing": (margin("county"), count("ill = 'i0' or ill = 'i3'")),
    "nested": (margin("county"), count("ill = 'i0' or ill = 'i3'", by="county")),
}


@lru_cache(maxsize=16)
def released(figures: str = "county", seed: int = 1) -> TablesRelease:
    """Three tables with much noise, given figures."""
    known = SemiAdjacent(publish(TABLE, *FIGURES[figures]))
    made = MeasuredTables.of(known, TABLES, "discrete_gaussian", [Fraction(60)] * len(TABLES))
    return made.release(TABLE, SeededRandomness(seed))


def most_of(names: tuple[str, ...]) -> np.ndarray:
    """The most that a cell can hold, given county totals: everybody of its area."""
    areas = TABLE.marginal(names).counts.reshape(-1, ILLS).sum(axis=1, keepdims=True)
    return np.broadcast_to(areas, (len(areas), ILLS)).reshape(TABLE.marginal(names).counts.shape)


@pytest.mark.parametrize("figures", FIGURES)
def test_no_truth_is_lost_by_cutting(figures) -> None:
    """Draw by draw: what the uncut interval covers is covered, and no end is impossible.

    The control cuts one person too low: it loses counts that the uncut intervals covered.
    """
    lost = narrower = 0
    for seed in (1, 2):
        release = released(figures, seed)
        for at, names in enumerate(TABLES):
            truth = TABLE.marginal(names).counts
            before = ends(release.estimates[at], release.deviations[at], 0.9)
            now = release.interval_ends(at, 0.9)
            covered = (before[0] <= truth) & (truth <= before[1])
            assert np.all((now[0] <= truth)[covered] & (truth <= now[1])[covered])
            assert np.all(
                (now[0] >= 0) & (now[1] <= (TRUTH.sum() if figures == "total" else most_of(names)))
            )
            assert np.all((now[0] <= release.counts[at]) & (release.counts[at] <= now[1]))
            narrower += np.count_nonzero(now[1] < before[1])
            lost += np.count_nonzero(covered & (truth > np.minimum(now[1], most_of(names) - 1)))
    assert narrower > 20 or figures == "total"
    assert lost > 0


def test_file_interval_estimate_report_and_export_say_the_same() -> None:
    release = released()
    exported = exported_bundle(release, {}, "", 0.9).tables
    for at, names in enumerate(TABLES):
        low, high = (one.reshape(-1).tolist() for one in release.interval_ends(at, 0.9))
        frame, rows = release.to_arrow(*names), release.intervals(names, 0.9)
        sheet = {one.name: one.values for one in exported[at].columns}
        printed = frame.rename_columns({"low_90": "low", "high_90": "high"})
        for told in (printed, rows):
            assert (told["low"].to_pylist(), told["high"].to_pylist()) == (low, high)
        assert (sheet["low_90"], sheet["high_90"]) == (low, high)
        assert rows["estimate"].to_pylist() == frame["estimate"].to_pylist()
    asked = congenial.estimate(release, "count() by county, ill", 0.9)
    most = most_of(NAMES).reshape(-1)
    assert all(0 <= row.low <= row.high <= most[cell] for cell, row in enumerate(asked))
    low, high = release.interval_ends(0, 0.9)
    for cell in ((0, 0), (1, 4), (11, 9)):
        found = release.interval(f"county = 'c{cell[0]}' and ill = 'i{cell[1]}'", 0.9)
        assert (found.low, found.high) == (low[cell], high[cell])


def test_the_total_is_a_table_without_axes() -> None:
    """Of a release without any figure, and of one whose figures tell it."""
    for known, possible in (
        (ReplaceOne(SCHEMA), (0, np.inf)),
        (released().guarantee.adjacency, None),
    ):
        tables = (NAMES, ())
        made = MeasuredTables.of(known, tables, "discrete_gaussian", [Fraction(60), None])
        release = made.release(TABLE, SeededRandomness(1))
        low, high = release.interval_ends(1, 0.9)
        assert np.shape(low) == np.shape(high) == ()
        least, most = possible or (TRUTH.sum(), TRUTH.sum())
        assert least <= low <= release.counts[1] <= high <= most
        assert "90%" in render(release, "promise")


def test_sums_are_cut_as_cells_are() -> None:
    release = released()
    two = release.interval("county = 'c4' and (ill = 'i4' or ill = 'i5')", 0.999999)
    assert (two.low, two.high) == (0, TRUTH[4].sum())
    more = release.interval("county = 'c4' or (county = 'c5' and ill = 'i9')", 0.999999)
    assert (more.low, more.high) == (TRUTH[4].sum(), TRUTH[4:6].sum())


def test_tables_of_parts_are_held_to_the_same_rules() -> None:
    release = released()
    ranges = table_ranges(release.published, NAMES)
    given = (release.estimates[0], release.deviations[0], release.counts[0], None)
    columns = estimated_columns(*given)
    again = with_ends(columns, ranges)
    assert again["high_90"].tolist() == release.interval_ends(0, LEVEL)[1].tolist()
    before = with_ends(columns, COUNTS)
    mixed, narrow = (
        again | {"high_90": before["high_90"]},
        again | {"high_90": again["high_90"] - 1},
    )
    for told, holds in ((again, True), (before, False), (mixed, False), (narrow, False)):
        expected = with_ends(told, ranges)  # what `verify` compares a part's file with
        assert all(np.array_equal(told[name], expected[name]) for name in told) is holds
