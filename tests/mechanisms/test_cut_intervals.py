"""Intervals of sparse tables: cut to what published sums allow, never beside a printed count."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import congenial
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.invariants import publish
from congenial.figures.statements import margin, total
from congenial.kinds.tables import _errors
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.cell_errors import CellErrors, CellSpread
from congenial.mechanisms.projection.projection import project
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.report.views import shown
from congenial.sampling.randomness import SeededRandomness

COUNTIES, ILLS = 20, 30  # 600 cells
SCHEMA = Schema.from_dict(
    {
        "county": {"levels": [f"c{i}" for i in range(COUNTIES)]},
        "ill": {"levels": [f"i{i}" for i in range(ILLS)]},
    }
)
NAMES = ("county", "ill")
MEANS = np.where(np.arange(ILLS) < 3, 8.0, 0.05)
TRUTH = np.random.default_rng(3).poisson(MEANS, (COUNTIES, ILLS)).astype(np.int64)
TRUTH[0] = 0
TRUTH[0, 0] = 40  # everybody of a county in one cell: its largest possible count is the true one
TABLE = Table(SCHEMA, NAMES, TRUTH)


@lru_cache(maxsize=8)
def released(figure: str = "county", seed: int = 1):
    """A sparse table at epsilon = 1/2, made nonnegative; with both margins at rho = 1/50."""
    figures = {"county": (margin("county"),), "both": (margin("county"), margin("ill"))}
    known = SemiAdjacent(publish(TABLE, *figures.get(figure, (total(),))))
    gaussian = Guarantee.zero_concentrated("1/50", known)
    target = gaussian if figure == "both" else Guarantee.pure("1/2", known)
    mechanism = calibrate("auto", target, NAMES)
    return project(mechanism.release(TABLE, SeededRandomness(seed)))


def uncut(release) -> tuple[np.ndarray, np.ndarray]:
    """Ends around the counts as drawn, cut at 0 alone."""
    drawn, half = release.raw.reshape(-1), CellSpread.of(release.mechanism).half
    return np.maximum(0, drawn - half), np.maximum(0, drawn) + half


def outside(low, values, high) -> int:
    return int(np.count_nonzero((values < low) | (values > high)))


def test_no_printed_count_lies_outside_its_interval() -> None:
    release = released()
    errors, printed = release.errors, release.values.reshape(-1)
    low, high = uncut(release)
    assert outside(low, printed, high) > 5  # the control: around the draw alone
    assert outside(errors.low, printed, errors.high) == 0
    totals = np.repeat(TRUTH.sum(axis=1), ILLS)
    assert np.all(errors.high <= np.maximum(totals, printed))
    assert np.count_nonzero(errors.high < high) > 50  # some are narrower now


@pytest.mark.parametrize("figure", ["total", "county", "both"])
def test_no_truth_is_lost_by_cutting(figure) -> None:
    """Draw by draw: what the uncut interval covers is covered; the exact law gave it its level.

    The control cuts one person too low: it loses counts that the uncut intervals covered.
    """
    lost = 0
    for seed in range(1, 4):
        release = released(figure, seed)
        truth, (low, high) = TRUTH.reshape(-1), uncut(release)
        covered = (low <= truth) & (truth <= high)
        errors = release.errors
        assert np.all((errors.low <= truth)[covered] & (truth <= errors.high)[covered])
        most = np.repeat(TRUTH.sum(axis=1), ILLS) - 1
        lost += np.count_nonzero(covered & (truth > np.minimum(errors.high, most)))
    assert lost > 0 or figure != "county"


def test_file_interval_estimate_and_report_say_the_same() -> None:
    release = released()
    rows = release.intervals(NAMES, 0.9)
    asked = congenial.estimate(release, "count() by county, ill", 0.9)
    listed = shown(release, NAMES)
    low, high = release.errors.low, release.errors.high
    assert rows["low"].to_pylist() == low.tolist() == [one.low for one in listed]
    assert rows["high"].to_pylist() == high.tolist() == [one.high for one in listed]
    for at in (0, 31, 299, 599):
        one = release.interval(f"county = 'c{at // ILLS}' and ill = 'i{at % ILLS}'", 0.9)
        assert (one.low, one.high) == (low[at], high[at])
    most = TRUTH.sum(axis=1).repeat(ILLS)
    for at, row in enumerate(asked):
        assert low[at] <= row.low <= row.high <= min(high[at], most[at])


def test_sums_are_cut_as_cells_are() -> None:
    release = released()
    two = "county = 'c1' and (ill = 'i4' or ill = 'i5')"
    assert release.interval(two, 0.999999).high == TRUTH[1].sum()
    whole = release.interval("county = 'c1'", 0.9)
    assert whole.low == whole.high == TRUTH[1].sum()
    more = release.interval("county = 'c1' or (county = 'c2' and ill = 'i9')", 0.999999)
    assert (more.low, more.high) == (TRUTH[1].sum(), TRUTH[1].sum() + TRUTH[2].sum())


def test_verify_accepts_these_ends_and_no_others() -> None:
    release = released()
    low, high = uncut(release)
    wide = CellErrors(release.errors.sd, low, high)
    mixed = CellErrors(release.errors.sd, release.errors.low, high)
    narrow = CellErrors(release.errors.sd, release.errors.low, release.errors.high - 1)
    for told, holds in ((release.errors, True), (wide, False), (mixed, False), (narrow, False)):
        again = replace(release)
        vars(again)["errors"] = told
        assert [one.holds for one in _errors(again)] == [holds]
