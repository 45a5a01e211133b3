"""Stated and true errors of several tables under pure epsilon and crossing figures."""

from __future__ import annotations

import pytest
from benchmarks.crossing_epsilon import cases, rows_of


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
