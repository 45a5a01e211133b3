"""Partial synthesis from a plan: what is promised about values, and what the ledger counts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from congenial import read
from congenial.errors import BudgetError
from congenial.ledger.ledger import Ledger
from congenial.publication import workflow
from congenial.publication.plan import Plan
from tests.kinds.test_records_from_models_plan import (
    PEOPLE,
    PLAN,
    PUBLISH,
    checked_again,
    run,
    write,
)

PARTIAL = PLAN.replace("region = { floor = 0.02 }\n", "").replace(
    "epsilon = 8\n", 'M = 0.5\npublic = ["region"]\n'
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = write(tmp_path_factory.mktemp("partial"), PARTIAL)
    assert run("publish", path).exit_code == 0
    result = run("release", path)
    assert result.exit_code == 0, result.stderr
    return path


def test_values_cost_two_m_and_the_ledger_counts_records(finished):
    """M = 0.5, two copies: 2 M m = 2 for a person's values, and a* = 2 times that in the ledger."""
    folder = finished.parent / "bundles" / "people"
    release = read(folder)
    assert release.guarantee.adjacency.metric == "replace-one value"
    assert release.guarantee.tradeoff.eps == 2
    plan = Plan.load(finished)
    assert Ledger.open(plan.ledger, plan.schema).spent().epsilon == 4
    assert run("verify", folder).exit_code == 0
    page = (folder / "report.html").read_text()
    assert "epsilon = 2 per person, for kids, income" in page
    assert "anybody&#39;s region, taken as known" in page
    shown = json.loads(run("explain", folder, "--json").stdout)["promises"][0]["promise"]
    assert "same region for everybody that differ in one person's kids, income" in shown
    assert "Spent: epsilon = 4 for whole records of epsilon = 10." in page
    frame = release.to_pandas(2)
    assert len(frame) == PEOPLE
    assert frame["region"].tolist() == release.to_pandas(1)["region"].tolist()


def test_check_says_both_numbers(finished, tmp_path):
    path = write(tmp_path, PARTIAL)
    assert run("publish", path).exit_code == 0
    for document in (checked_again(finished), json.loads(run("check", path, "--json").stdout)):
        (one,) = document["releases"]
        assert (one["per_person"], one["counted"]) == ("epsilon = 2", 4)
        assert one["protects"] == ["kids", "income"]
    out = " ".join(run("check", path, "--full").stdout.split())
    assert "Per person epsilon = 2, for kids, income" in out
    assert "In the ledger epsilon = 4, for a person's whole record" in out


def test_the_target_is_for_values_and_the_budget_for_records(tmp_path):
    """epsilon = 6 of the values is M = 1.5, which the ledger counts as 12 of its 10."""
    path = write(tmp_path, PARTIAL.replace("M = 0.5", "epsilon = 6"))
    assert run("publish", path).exit_code == 0
    (one,) = workflow.check(Plan.load(path)).releases
    assert one.mechanism.bound == Fraction(3, 2)
    assert "The budget does not allow this" in run("check", path, "--full").stdout
    refused = run("release", path)
    assert refused.exit_code == BudgetError.exit_code
    assert not (tmp_path / "bundles").exists()


def test_a_figure_about_a_value_brings_the_usual_price_back(finished, tmp_path):
    """Published later: reassess prices the old release over the shrunken universe, at a*."""
    other = tmp_path / "later.toml"
    added = '"By kids" = { count = "kids >= 3" }\n[[release]]'
    other.write_text(finished.read_text().replace("[[release]]", added))
    folder = finished.parent / "bundles" / "people"
    silent = tmp_path / "silent.toml"  # says nothing of the figure that the files show
    silent.write_text(finished.read_text().replace(PUBLISH, ""))
    for path in (other, silent):
        document = json.loads(run("reassess", path, "--bundle", folder, "--json").stdout)
        robust = next(row for row in document["rows"] if row["reading"] == "robust")
        assert robust["records"] >= 2
        assert robust["promise"] == f"epsilon = {2 * robust['records']}"


SMALL = """
[data]
source = "people.csv"
[schema]
region = { levels = ["north", "west"] }
kids = { integers = [0, 6] }
income = { edges = [0, 50, 200], top = "200+" }
[publish]
"By region" = { total = true, by = ["region"] }
"Rich" = { count = "income >= 200" }
[[release]]
name = "people"
M = 1
public = ["region"]
[release.model]
kids = "multinomial"
[budget]
epsilon = 100
"""


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        ("", "", ("region", "income")),  # income is in no file, and taken as known
        ('public = ["region"]', "", None),  # nothing is: whole records
        ("income >= 200", "income >= 200 and kids = 0", None),  # a value cannot change alone
    ],
)
def test_figures_about_columns_no_file_has(tmp_path, old, new, known):
    (one,) = workflow.check(Plan.parse(SMALL.replace(old, new, 1), tmp_path)).releases
    pairs = one.guarantee.adjacency
    assert getattr(pairs, "public", None) == known
    assert one.guarantee.tradeoff.eps == 2 * pairs.records
    assert one.counted == 2 * workflow.check(Plan.parse(SMALL, tmp_path)).plan.adjacency().records
