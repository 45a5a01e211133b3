"""Reports where the law is not plain noise: counts given their signs, and levels of sums."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.invariants import publish
from congenial.figures.statements import margin
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.publication.bundle_texts import readme
from congenial.report import pictures, views
from congenial.report.tables_report import render
from congenial.sampling.randomness import SeededRandomness
from tests.publication.reading import Reader, words

SCHEMA = Schema.from_dict(
    {
        "race": {"levels": ["w", "b", "o"], "within": {"broad": ["w", "rest", "rest"]}},
        "sex": {"levels": ["f", "m"]},
    }
)
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[7, 4], [2, 3], [1, 5]]))


@pytest.fixture(autouse=True)
def tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "available", lambda: False)


@cache
def counts() -> Release:
    """Counts given that none is negative, with the margin of sex published."""
    target = Guarantee.pure("1/2", under=SemiAdjacent(publish(TABLE, margin("sex"))))
    return calibrate("congenial_counts", target, SCHEMA.names).release(
        TABLE, SeededRandomness(1), "counts"
    )


@cache
def crossing() -> Release:
    """Both margins are published: the law of a cell is simulated."""
    target = Guarantee.pure(1, under=SemiAdjacent(publish(TABLE, margin("race"), margin("sex"))))
    made = calibrate("congenial", target, SCHEMA.names)
    return made.release(TABLE, SeededRandomness(1), "crossing")


def test_a_report_of_counts_says_only_what_holds_for_them():
    page = render(counts(), counts().guarantee.explain())
    text, rows = words(page), Reader(page).rows
    assert "may be negative" not in text
    assert "Expected error" not in text
    assert "90% from" not in text
    assert "with 90% interval" not in text
    assert "release.interval(" not in text
    assert "drawn given that none is negative" in text
    assert ["f", "10", "exact"] in rows  # the published margin, from the released table
    assert not any(row[-1] == "exact" for row in rows if row[:2] == ["w", "f"])


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
    assert "simulated from the law of the noise" in text
    assert "exact because" not in text
    found = crossing().interval("race = 'w' and sex = 'f'", 0.9)
    assert found.basis.startswith("simulated")
    assert isinstance(found.low, int)
    assert isinstance(found.high, int)


def test_the_picture_of_simulated_noise_is_symmetric_and_says_so():
    noise = views.cell_noise(crossing())
    assert noise.simulated
    assert np.array_equal(noise.at, -noise.at[::-1])
    assert np.array_equal(noise.weight, noise.weight[::-1])
    assert noise.weight.sum() == pytest.approx(1, abs=0.02)
    assert "The picture is simulated" in words(render(crossing(), ""))


def test_a_caption_names_sums_only_where_the_legend_does():
    piece = views.view(crossing())
    assert piece is not None
    assert "of that colour" in views.sums_words(crossing(), [f"3 cells; {views.SUM}: 10"])
    assert views.sums_words(crossing(), ["part of a larger published sum"]) == (
        "The counts agree with every published sum."
    )
