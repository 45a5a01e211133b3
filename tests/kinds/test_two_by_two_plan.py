"""A test of an odds ratio goes from a plan to a verified bundle, and is paid for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import congenial
from congenial.cli import app
from congenial.errors import BudgetError, BundleError, GuaranteeError, InferenceError, PlanError
from congenial.inference import OddsRatioRelease
from congenial.kinds.kind import PRODUCED
from congenial.kinds.two_by_two import KIND
from congenial.report.page import PageTable
from congenial.report.words import blocks
from tests.commands import refused, run, verified, write_plan
from tests.fuzz.bundles import forge

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
smoker = { levels = ["yes", "no"] }
ill = { levels = ["yes", "no"] }
age = { levels = ["young", "middle", "old"] }
[publish]
"By smoking" = { total = true, by = ["smoker"] }
"By illness" = { total = true, by = ["ill"] }
[[release]]
name = "smoking"
test = { odds_ratio = ["smoker", "ill"], power_at = [2, 3] }
epsilon = 1
[budget]
epsilon = 1.5
"""
CELLS = {("yes", "yes"): 40, ("yes", "no"): 60, ("no", "yes"): 25, ("no", "no"): 175}
FOLLOWS = PRODUCED  # p-value, decision, interval and power, from the noisy count


def write_people(folder: Path) -> None:
    rows = [cell for cell, many in CELLS.items() for _ in range(many)]
    ages = ("young", "middle", "old")
    lines = [f"{i},{smoker},{ill},{ages[i % 3]}" for i, (smoker, ill) in enumerate(rows)]
    (folder / "people.csv").write_text("\n".join(["id,smoker,ill,age", *lines]) + "\n")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    write_people(tmp_path)
    return write_plan(tmp_path, PLAN)


def test_from_a_plan_to_a_verified_bundle(plan: Path) -> None:
    before = run("check", plan, "--json")["releases"][0]
    assert before["power"] is None
    assert "once the exact figures are published" in run("check", plan, "--full").replace("\n", " ")
    run("publish", plan)
    now = run("check", plan, "--json")["releases"][0]
    assert [one["odds_ratio"] for one in now["power"]] == [2, 3]
    assert 0.72 < now["power"][0]["power"] < 0.723
    assert now["per_person"] == "epsilon = 1"
    assert "0.722" in run("check", plan, "--full")
    run("release", plan)
    folder = plan.parent / "bundles" / "smoking"
    checks = run("verify", folder, "--json")
    assert checks["holds"]
    assert FOLLOWS in {one["what"] for one in checks["checks"]}
    release = congenial.read(folder)
    assert isinstance(release, OddsRatioRelease)
    assert (release.test.rows, release.test.columns) == ((100, 200), (65, 235))
    told = json.loads((folder / "test.json").read_text())
    assert told["p_value"] == pytest.approx(release.p_value(), rel=1e-5)
    assert told["rejected"] == (release.p_value() <= 0.05)
    assert abs(release.count - 40) < 40  # e^-40 beyond
    low, high = release.odds_interval(0.9)
    assert low <= high
    ill = release.interval("smoker = 'yes' and ill = 'yes'", 0.9)  # as any other release is asked
    assert (ill.estimate, ill.level, ill.exact) == (release.count, 0.9, False)
    assert ill.low < release.count < ill.high
    fixed = release.interval("ill = 'yes'")
    assert (fixed.low, fixed.high, fixed.exact) == (65, 65, True)
    assert release.counts.drawn[0].sum(axis=0).tolist() == [65, 235]
    assert 0 < release.power(2) < release.power(4) < 1
    assert "epsilon = 1" in run("ledger", "show", plan.parent / "ledger.sqlite")
    assert "p_value()" in refused(folder, "infer", InferenceError.exit_code, ("--model", "poisson"))
    assert run("explain", folder, "--json")["failed"] == []


def test_six_tests_against_a_budget_of_one(plan: Path) -> None:
    """Each is a release like any other: the first is drawn, five are refused and draw nothing."""
    section = PLAN[PLAN.index("[[release]]") : PLAN.index("[budget]")]
    more = "".join(section.replace('"smoking"', f'"smoking-{i}"') for i in range(5))
    write_plan(plan.parent, PLAN, ("[budget]", more + "[budget]"), ("1.5", "1"))
    run("publish", plan)
    run("release", plan, "--name", "smoking")
    for i in range(5):
        told = refused(plan, "release", BudgetError.exit_code, ("--name", f"smoking-{i}"))
        assert "the budget is epsilon = 1" in told.replace("\n", " ")
    assert [one.name for one in (plan.parent / "bundles").iterdir()] == ["smoking"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    write_people(folder)
    path = write_plan(folder, PLAN)
    return verified(path, "smoking")


CHANGES: dict[str, Any] = {
    "p_value": lambda old: 0.000123,
    "rejected": lambda old: not old,
    "interval": lambda old: [1.01, 1.02],
    "power": lambda old: [dict(one, power=0.999) for one in old],
    "uniform": lambda old: 1 - old,
    "count": lambda old: old + 1,
    "count_sd": lambda old: old / 2,
    "count_interval": lambda old: [old[0] + 1, old[1]],
    "margins": lambda old: {"rows": [101, 199], "columns": old["columns"]},
    "hypothesis": lambda old: "smoking is harmless",
    "question": lambda old: old | {"null_value": "2"},
}


@pytest.mark.parametrize("key", CHANGES)
def test_what_is_changed_is_noticed(good: Path, tmp_path: Path, key: str) -> None:
    """With digests that fit: each result is worked out again from the noisy count."""
    told = json.loads((good / "test.json").read_text())
    told[key] = CHANGES[key](told[key])
    text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
    forge(good, tmp_path / "bad", {"test.json": text.encode()})
    found = run("verify", tmp_path / "bad", "--json", code=1)
    assert not {one["what"]: one["holds"] for one in found["checks"]}[FOLLOWS]
    forge(good, tmp_path / "same", {"test.json": (good / "test.json").read_bytes()})
    (tmp_path / "same" / "release.json").write_bytes((good / "release.json").read_bytes())
    (tmp_path / "same" / "DIGEST.txt").write_bytes((good / "DIGEST.txt").read_bytes())
    run("verify", tmp_path / "same")


@pytest.mark.parametrize("content", ["{}", "[]", '{"count": 1.5, "uniform": 0.5}', "nonsense"])
def test_a_file_that_holds_no_test_is_refused_in_words(
    good: Path, tmp_path: Path, content: str
) -> None:
    forge(good, tmp_path / "bad", {"test.json": content.encode()})
    with pytest.raises(BundleError):
        congenial.read(tmp_path / "bad")


@pytest.mark.parametrize("half", ['"eps_cell": "1/4"', '"epsilon": "1/1"'])
def test_a_better_promise_is_noticed(good: Path, tmp_path: Path, half: str) -> None:
    """Half the loss, in the description alone or in the promise alone."""
    index = (good / "release.json").read_text()
    assert half in index
    better = index.replace(half, half[:-2] + {"4": "8", "1": "2"}[half[-2]] + '"')
    forge(good, tmp_path / "bad", {"release.json": better.encode()})
    run("verify", tmp_path / "bad", code=1)


def test_publishing_more_prices_it_again(plan: Path) -> None:
    """A figure published later is part of what everybody knows: the ledger says what it costs."""
    run("publish", plan)
    run("release", plan)
    more = '"Both" = { total = true, by = ["smoker", "ill"] }\n[[release]]\nname'
    write_plan(plan.parent, PLAN, ("[[release]]\nname", more))
    found = run("publish", plan, "--json")
    (release,) = found["releases"]
    assert release["after"] != release["before"]


ILL = '"By illness" = { total = true, by = ["ill"] }\n'
TEST = 'test = { odds_ratio = ["smoker", "ill"], power_at = [2, 3] }'
REFUSED = {
    "no margin": (ILL, "", "needs the counts by smoker and by ill"),
    "three levels": ('["smoker", "ill"], p', '["smoker", "age"], p', "two categories each"),
    "one axis": ('["smoker", "ill"], p', '["smoker", "smoker"], p', "attribute 'smoker'"),
    "delta": ("epsilon = 1\n", "epsilon = 1\ndelta = 0.01\n", "without delta"),
    "mechanism": ("epsilon = 1\n", 'epsilon = 1\nmechanism = "knorm"\n', "one mechanism"),
    "side": ("power_at", 'alternative = "both", power_at', "alternative = 'greater'"),
    "no pair": ('["smoker", "ill"], p', '["smoker"], p', "must be { odds_ratio"),
    "key": ("power_at", "sides = 2, power_at", "must be { odds_ratio"),
    "alpha": ("power_at", "alpha = 5, power_at", "between 0 and 1"),
    "null": ("power_at", "null_value = -1, power_at", "must be positive"),
    "bound": (
        ILL,
        ILL + '"Few" = { count = "age = \'old\'", at_most = 200 }\n',
        "cannot use bounds",
    ),
    "everything": (
        ILL,
        ILL + '"All" = { total = true, by = ["smoker", "ill"] }\n',
        "nothing else to be published",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_tested_is_refused_before_any_data(plan: Path, case: str) -> None:
    old, new, words = REFUSED[case]
    (plan.parent / "people.csv").unlink()
    write_plan(plan.parent, PLAN, (old, new))
    codes = (PlanError.exit_code, GuaranteeError.exit_code)
    found = CliRunner().invoke(app, ["check", str(plan)])
    assert found.exit_code in codes, found.stderr
    assert words in re.sub(r"\s+", " ", found.stderr)


def test_other_sides_and_values(plan: Path) -> None:
    asked = 'alternative = "two-sided", null_value = 1.5, alpha = 0.1, level = 0.9 }'
    write_plan(plan.parent, PLAN, ("power_at = [2, 3] }", asked))
    run("publish", plan)
    told = run("check", plan, "--json")["releases"][0]
    assert told["hypothesis"] == "the odds ratio is exactly 1.5"
    assert len(told["power"]) == 8
    run("release", plan)
    run("verify", plan.parent / "bundles" / "smoking")


def test_columns_of_numbers_are_columns_of_the_table() -> None:
    power = [{"odds_ratio": 2.0, "power": 0.5}]
    words = dict.fromkeys(("compares", "hypothesis", "per_person"), "x")
    shown = blocks(KIND.words, release=words | {"alpha": 0.05, "noise": 1.0, "power": power})
    (table,) = (block for block in shown if isinstance(block, PageTable))
    assert all(column.number for column in table.columns)
