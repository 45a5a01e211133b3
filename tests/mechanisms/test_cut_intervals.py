"""Intervals of sparse tables: cut to what published sums allow, never beside a printed count."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

import congenial
from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table, calibrate, verify
from congenial.figures import margin, publish, total
from congenial.mechanisms import TablesRelease
from congenial.publication import bundle
from congenial.publication.verification import SYSTEM
from congenial.report.tables_report import render
from tests.publication.reading import cells_of

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
    """A sparse table at epsilon = 1/2; with both margins at rho = 1/50."""
    figures = {"county": (margin("county"),), "both": (margin("county"), margin("ill"))}
    known = SemiAdjacent(publish(TABLE, *figures.get(figure, (total(),))))
    gaussian = Guarantee.zero_concentrated("1/50", known)
    target = gaussian if figure == "both" else Guarantee.pure("1/2", known)
    mechanism = calibrate("auto", target, NAMES)
    return congenial.release_table(mechanism, TABLE, SeededRandomness(seed))


def uncut(release) -> tuple[np.ndarray, np.ndarray]:
    """Ends around the counts as drawn, cut at 0 alone."""
    drawn, half = release.drawn[0], release.estimator.reach(NAMES, 0.9)
    return np.maximum(0, drawn - half), np.maximum(0, drawn) + half


def outside(low, values, high) -> int:
    return int(np.count_nonzero((values < low) | (values > high)))


def test_no_printed_count_lies_outside_its_interval() -> None:
    release = released()
    (_, low, high), (printed,) = release.cell_errors(), release.counts
    before = uncut(release)
    assert outside(before[0], printed, before[1]) > 5  # the control: around the draw alone
    assert outside(low, printed, high) == 0
    totals = TRUTH.sum(axis=1, keepdims=True)
    assert np.all(high <= np.maximum(totals, printed))
    assert np.count_nonzero(high < before[1]) > 50  # some are narrower now


@pytest.mark.parametrize("figure", ["total", "county", "both"])
def test_no_truth_is_lost_by_cutting(figure) -> None:
    """Draw by draw: what the uncut interval covers is covered; the exact law gave it its level.

    The control cuts one person too low: it loses counts that the uncut intervals covered.
    """
    lost = 0
    for seed in range(1, 4):
        release = released(figure, seed)
        before, (_, low, high) = uncut(release), release.cell_errors()
        covered = (before[0] <= TRUTH) & (before[1] >= TRUTH)
        assert np.all((low <= TRUTH)[covered] & (high >= TRUTH)[covered])
        most = TRUTH.sum(axis=1, keepdims=True) - 1
        lost += np.count_nonzero(covered & (np.minimum(high, most) < TRUTH))
    assert lost > 0 or figure != "county"


def test_file_interval_estimate_and_report_say_the_same() -> None:
    release = released()
    low, high = (one.reshape(-1).tolist() for one in release.cell_errors()[1:])
    asked = congenial.estimate(release, "count() by county, ill", 0.9)
    printed = release.to_arrow().rename_columns({"low_90": "low", "high_90": "high"})
    for told in (release.intervals(NAMES, 0.9), printed):
        assert (told["low"].to_pylist(), told["high"].to_pylist()) == (low, high)
    listed = [(one["low"], one["high"]) for one in cells_of(render(release, "promise"), *NAMES)]
    assert listed == list(zip(low, high, strict=True))
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


def test_verify_accepts_these_ends_and_no_others(tmp_path, monkeypatch) -> None:
    release, before = released(), uncut(released())
    sd, low, high = release.cell_errors()
    refused = "the data files have the expected form"
    told = {
        "as they are": ((low, high), []),
        "wide": (before, [refused]),
        "mixed": ((low, before[1]), [refused]),
        "narrow": ((low, high - 1), [refused]),
    }
    promise = release.guarantee.explain()
    page = render(release, promise)
    for name, (ends, fails) in told.items():
        errors = (sd, *(one.astype(np.int64) for one in ends))
        with monkeypatch.context() as forged:
            forged.setattr(TablesRelease, "cell_errors", lambda *_, errors=errors: errors)
            again = replace(release)  # its files are not made yet
            bundle.write(again, tmp_path / name, promise, page).publish()
        found = [one.what for one in verify(tmp_path / name) if not one.holds]
        assert found == [*fails, SYSTEM], name
