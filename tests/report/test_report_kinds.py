"""Reports where the law is not plain noise: counts given their signs, and levels of sums."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table, calibrate
from congenial.errors import StructureError
from congenial.figures import margin, publish
from congenial.mechanisms import TablesRelease, release_table
from congenial.publication.bundle_texts import readme
from congenial.report.tables_report import render
from tests.publication.reading import Reader, cells_of, words

SCHEMA = Schema.from_dict(
    {
        "race": {"levels": ["w", "b", "o"], "within": {"broad": ["w", "rest", "rest"]}},
        "sex": {"levels": ["f", "m"]},
    }
)
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[7, 4], [2, 3], [1, 5]]))


@cache
def counts() -> TablesRelease:
    """Counts given that none is negative, with the margin of sex published."""
    target = Guarantee.pure("1/2", under=SemiAdjacent(publish(TABLE, margin("sex"))))
    return release_table(
        calibrate("congenial_counts", target, SCHEMA.names), TABLE, SeededRandomness(1), "counts"
    )


@cache
def crossing() -> TablesRelease:
    """Both margins are published: the law of a cell is simulated."""
    target = Guarantee.pure(1, under=SemiAdjacent(publish(TABLE, margin("race"), margin("sex"))))
    made = calibrate("congenial", target, SCHEMA.names)
    return release_table(made, TABLE, SeededRandomness(1), "crossing")


@cache
def nested() -> TablesRelease:
    """One margin is published: the law of every sum is tabulated."""
    target = Guarantee.pure(1, under=SemiAdjacent(publish(TABLE, margin("sex"))))
    made = calibrate("congenial", target, SCHEMA.names)
    return release_table(made, TABLE, SeededRandomness(1), "nested")


def test_a_report_of_counts_says_only_what_holds_for_them():
    page = render(counts(), counts().guarantee.explain())
    text = words(page)
    assert "may be negative" not in text
    assert "Expected error" not in text
    assert "release.interval(" not in text
    assert "drawn so that none is negative" in text
    assert [one["exact"] for one in cells_of(page, "sex")] == [True, True]  # the published margin
    cell = cells_of(page, "race", "sex")[0]
    assert cell == {"race": "w", "sex": "f", "value": counts().counts[0][0, 0], "exact": False}


def test_the_arithmetic_of_counts_includes_the_price_of_their_signs():
    rows = dict(row for row in Reader(render(counts(), "")).rows if len(row) == 2)
    assert rows["Per person (the promise)"] == "epsilon = 0.5"
    assert rows["How they go together"].endswith("for counts >= 0 = 0.5 per person")


def test_a_readme_offers_what_the_release_can_do():
    assert "release.interval(" not in readme(counts(), "")
    assert "release.interval(" in readme(crossing(), "")


def test_a_sum_that_is_published_has_an_interval_whatever_the_law_is():
    found = counts().interval("sex = 'f'", 0.9)
    assert (found.estimate, found.low, found.high, found.exact) == (10, 10, 10, True)
    assert counts().intervals("sex", 0.9)["high"].to_pylist() == [10, 12]
    with pytest.raises(StructureError, match="depends on the data"):
        counts().interval("race = 'w'", 0.9)


def test_simulated_intervals_are_not_called_exact():
    text = words(render(crossing(), ""))
    assert "simulated from the public law of the noise" in text
    assert "coverage of the intervals is exact" not in text
    assert "coverage of the intervals is exact" in words(render(nested(), ""))
    found = crossing().interval("race = 'w' and sex = 'f'", 0.9)
    assert found.basis.startswith("simulated")
    assert isinstance(found.low, int)
    assert isinstance(found.high, int)
