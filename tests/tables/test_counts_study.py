"""Printed counts are about as good as their estimates on tables from sparse to dense."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.tables_study import (
    FIGURES,
    LIMIT,
    PROMISES,
    TABLES,
    Setting,
    mechanism,
    rows_of,
    settings,
)

from congenial.sampling import SeededRandomness

RELEASES = 8
MANY = 80  # where so few seem to break the rule, which is about the error in the long run


def broken(one: Setting, releases: int) -> list[dict[str, Any]]:
    """Tables of a setting that break the rule over so many releases."""
    return [row for row in rows_of(one, releases) if row["rule"] == "broken"]


def test_a_few_settings_keep_the_rule() -> None:
    for one in (
        Setting(0.05, "uneven", "counties and adults", "rho = 0.1", "keep"),
        Setting(3.0, "one large group", "counties", "rho = 2", "even"),
        Setting(300.0, "even", "the total", "epsilon = 1", "keep"),
    ):
        assert [row["rule"] for row in rows_of(one, RELEASES)] == ["kept"] * len(TABLES)


@pytest.mark.audit
@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("figures", FIGURES)
def test_every_setting_keeps_the_rule(figures: str, promise: str) -> None:
    chosen = [one for one in settings() if (one.figures, one.promise) == (figures, promise)]
    assert len(chosen) == 30
    doubted = [one for one in chosen if broken(one, RELEASES)]
    assert [row for one in doubted for row in broken(one, MANY)] == []


def test_planted_cells_made_nonnegative_one_by_one_break_the_rule() -> None:
    made, table = mechanism(Setting(0.5, "uneven", "the total", "rho = 0.1", "keep"))
    squares = np.zeros(2)
    for seed in range(RELEASES):
        release = made.release(table, SeededRandomness(seed))
        truth = table.marginal(("group",)).counts
        cells = np.maximum(np.rint(release.estimates[0]), 0)
        alone = cells.sum(axis=(0, 2))
        squares += [np.mean((v - truth) ** 2) for v in (release.estimates[-1], alone)]
    assert np.sqrt(squares[1] / squares[0]) > 3 * LIMIT
