"""What a bundle says to an analyst, a journalist and a privacy engineer."""

from __future__ import annotations

import re

import numpy as np
import pytest

import congenial as cg
from congenial.errors import BundleError
from congenial.mechanisms import calibrate_tables
from congenial.mechanisms.congenial import CongenialCounts
from congenial.report.explained_for import explained_for
from tests.plans import released

SCHEMA = cg.Schema.from_dict(
    {"county": {"levels": ["A", "B", "C"]}, "age": {"edges": [0, 18, 65], "top": "65+"}}
)
TABLE = cg.Table(SCHEMA, ["county", "age"], np.arange(9).reshape(3, 3) * 11 + 2)


def release(mechanism="auto", figures=True):
    under = cg.ReplaceOne(SCHEMA)
    if figures:
        under = cg.SemiAdjacent(cg.publish(TABLE, cg.total(by="county")))
    made = cg.calibrate(mechanism, cg.Guarantee.pure(1, under=under))
    return cg.release_table(made, TABLE, cg.SeededRandomness(1), name="by age")


def told(one, reader):
    return dict(explained_for(one, reader))


def test_a_journalist_reads_errors_in_people():
    found = told(release(), "journalist")
    half = release().interval("county = 'A' and age < 18", 0.9)
    reach = half.high - max(half.estimate, 0)
    assert f"within {reach:,.0f} of the true count" in found["How far off a number can be"]
    assert "Totals by county are exact" in found["How far off a number can be"]
    assert "right at most 74 times in 100" in found["What is promised to people"]
    assert "facts about groups" in found["What is not covered"]


def test_an_analyst_reads_the_law_and_a_question_that_works():
    one = release()
    found = told(one, "analyst")
    assert "eps_cell = 1/4" in found["The noise"]
    assert "Which column" in found
    assert found["What is known"] == one.guarantee.published_clause()
    assert "county" in found["What is known"]
    only = one.only
    as_drawn = cg.TablesRelease.of_one(
        "by age", only.description, only.guarantee, only.values, one.randomness, False
    )
    assert "Which column" not in told(as_drawn, "analyst")
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


def test_an_analyst_reads_how_counts_were_made_nonnegative():
    fitted = release()
    assert fitted.estimator.order is not None
    words = told(fitted, "analyst")["Which column"]
    assert "fitted from coarse to fine" in words
    assert "cell by cell" not in words
    assert "total, then" in words or "county" in words


KINDS = [
    "crossing/auto",
    "assumed-distance/assumed",
    "statistics-edges/quarter",
    "synthetic-partial/people",
]


def written(bundle, folder):
    plan, name = bundle.split("/")
    if not (folder / plan).exists():
        (folder / plan).mkdir()
        released(folder / plan, plan)
    return cg.read(folder / plan / "bundles" / name)


@pytest.mark.parametrize("bundle", KINDS)
def test_nobody_but_analysts_reads_file_names(bundle, tmp_path):
    one = written(bundle, tmp_path)
    found = told(one, "journalist")
    assert not re.search(r"\.(csv|parquet|json|cff)", " ".join(found.values()))
    assert ", )" not in " ".join(told(one, "engineer").values())
    assert told(one, "analyst")["Files"]


def test_odds_of_any_person_are_told_where_datasets_are_compared(tmp_path):
    """Beliefs, and records of which some columns are public, have a promise of their own."""
    for bundle in KINDS[1:]:
        one = written(bundle, tmp_path)
        words = told(one, "journalist")["What is promised to people"]
        assert words == one.guarantee.in_short["Protected"]
        assert "every record except yours and" not in words
    words = told(release(), "journalist")["What is promised to people"]
    assert "every record except yours and at most one other" in words


def test_a_journalist_reads_which_tables_there_are():
    under = cg.SemiAdjacent(cg.publish(TABLE, cg.total()))
    made = calibrate_tables(cg.Guarantee.pure(1, under=under), [["county", "age"], ["age"]])
    one = made.release(TABLE, cg.SeededRandomness(1), name="two")
    assert told(one, "journalist")["What this is"].startswith("Counts by county, age; by age. Some")
