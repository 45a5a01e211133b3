"""What a bundle says to an analyst, a journalist and a privacy engineer."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import BundleError
from congenial.mechanisms.congenial import CongenialCounts
from congenial.report.explained_for import explained_for

SCHEMA = cg.Schema.from_dict(
    {"county": {"levels": ["A", "B", "C"]}, "age": {"edges": [0, 18, 65], "top": "65+"}}
)
TABLE = cg.Table(SCHEMA, ["county", "age"], np.arange(9).reshape(3, 3) * 11 + 2)


def release(mechanism="auto", figures=True):
    under = cg.ReplaceOne(SCHEMA)
    if figures:
        under = cg.SemiAdjacent(cg.publish(TABLE, cg.total(by="county")))
    made = cg.calibrate(mechanism, cg.Guarantee.pure(1, under=under))
    return made.release(TABLE, cg.SeededRandomness(1), name="by age")


def told(one, reader):
    return dict(explained_for(one, reader))


def test_a_journalist_reads_errors_in_people():
    found = told(release(), "journalist")
    half = release().interval("county = 'A' and age < 18", 0.9)
    reach = half.high - max(half.estimate, 0)
    assert f"within {reach:,.0f} of the true count" in found["How far off a number can be"]
    assert "Totals by county are exact" in found["How far off a number can be"]
    assert "2.72 times as likely" in found["What is promised to people"]


def test_an_analyst_reads_the_law_and_a_question_that_works():
    one = release()
    found = told(one, "analyst")
    assert "eps_cell = 1/4" in found["The noise"]
    assert "Which column" not in found
    assert found["What is known"] == one.guarantee.published_clause()
    assert "county" in found["What is known"]
    assert "Which column" in told(cg.project(one), "analyst")
    question = found["Ask"].split('"')[1]
    assert len(one.estimate(question)) == 3


def test_an_engineer_reads_the_building_blocks():
    found = told(release(), "engineer")
    assert "pure" in found["Trade-off"] or "epsilon = 1" in found["Trade-off"]
    assert found["Numerics"] == "H = 0"
    assert "Population" in found["Conditioned on"]
    assert told(release(figures=False), "engineer")["Conditioned on"] == "nothing"


def test_counts_given_their_signs_have_no_error_to_tell():
    one = release(CongenialCounts)
    assert "How far off a number can be" not in told(one, "journalist")
    assert "congenial infer" in told(one, "analyst")["Ask"]


def test_no_other_reader():
    with pytest.raises(BundleError, match="analyst, journalist, engineer"):
        explained_for(release(), "lawyer")
