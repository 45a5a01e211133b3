"""The study of a made-up county, on a small one."""

from __future__ import annotations

from benchmarks.households import MOST, RHO, study_rows, together_rows


def test_whole_households_cost_what_the_theory_says() -> None:
    """a = 2 + k - l and c = 3k - l: people by age move by c rows, households by size by a units."""
    people, persons, sizes = study_rows(400)
    assert people["rows or units apart"] == 3 * MOST - 1
    assert persons["rows or units apart"] == 1
    assert sizes["rows or units apart"] == MOST + 1
    ratio = people["standard deviation"] / persons["standard deviation"]
    assert abs(ratio - (3 * MOST - 1)) < 1e-6


def test_people_by_age_and_households_by_size_lose_less_together() -> None:
    """9 sizes that change leave 18 of 23 rows: (18 / 23)^2 rho for people, and rho for sizes."""
    (both,) = together_rows()
    assert both["rho, one by one"] > 2 * RHO * (1 - 1e-6)
    assert abs(both["rho"] / RHO - (1 + (18 / 23) ** 2)) < 1e-3
