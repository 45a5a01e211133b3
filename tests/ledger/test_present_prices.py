"""`ledger show` after a weakening: prices then and now, sums that add up, outdated texts."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial import Budget, Ledger, Plan, count
from congenial.cli import app
from congenial.kinds.tables import TablesKind
from congenial.publication import workflow
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, promise, published, spend


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=100))
    spend(ledger, described("sex"), "early")
    return ledger


def shown(ledger: Ledger) -> tuple[dict[str, Any], str]:
    outputs = []
    for words in (["--json"], []):
        result = CliRunner().invoke(app, ["ledger", "show", ledger.where, *words])
        assert result.exit_code == 0, result.stderr
        outputs.append(result.stdout)
    return json.loads(outputs[0]), " ".join(outputs[1].split())


def test_before_and_after_a_weakening(ledger: Ledger) -> None:
    document, text = shown(ledger)
    assert "Price of each release" not in text
    ledger.publish(COUNTIES, accept_weaker=True)
    spend(ledger, described("age"), "late")
    document, text = shown(ledger)
    told = {one["name"]: (one["then"], one["now"], one["outdated"]) for one in document["releases"]}
    assert told == {
        "early": ("epsilon = 1", "epsilon = 2", True),
        "late": ("epsilon = 2", "epsilon = 2", False),
    }
    assert document["sum_then"] == "epsilon = 3"
    assert document["sum_now"] == document["spent"] == "epsilon = 4"
    assert document["sum_now"] == document["together"]
    assert "Outdated texts: the bundles of 'early'" in text
    assert "'late' (" not in text


def test_a_sum_above_the_joint_price_is_explained(ledger: Ledger) -> None:
    """Adults may only change sex, minors only county: nobody moves in both tables at once."""
    spend(ledger, described("county", scale=Fraction(3, 2)), "county")
    figures = published(
        (count("age < 18", by="sex"), [5, 6]), (count("age >= 18", by="county"), [7, 8, 9])
    )
    ledger.publish(figures, accept_weaker=True)
    document, text = shown(ledger)
    prices = ledger.prices()
    assert prices.together.epsilon < prices.sum_now.epsilon
    assert prices.sum_now.epsilon == sum(one.now.epsilon for one in prices.releases)
    assert document["sum_now"] != document["together"]
    assert f"cost {document['sum_now']}, together {document['together']}:" in text


def test_refunded_releases_have_no_price(ledger: Ledger) -> None:
    ledger.abandon(ledger.reserve(described("age"), promise(ledger), "given up").id)
    document, _ = shown(ledger)
    assert document["releases"][1]["now"] is None
    assert document["sum_now"] == "epsilon = 1"


PLAN = """
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[data]
source = "people.csv"
unit = "id"
[[release]]
name = "first"
table = ["sex"]
epsilon = 1.0
[[release]]
name = "second"
table = ["age"]
epsilon = 1.0
[budget]
epsilon = 4.0
"""


def test_check_does_not_work_out_what_is_released_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "".join(f"{i},{'fm'[i % 2]},{i}\n" for i in range(40))
    (tmp_path / "people.csv").write_text("id,sex,age\n" + rows)
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = Plan.load(tmp_path / "plan.toml")
    workflow.release(plan, "first")
    built: list[str] = []
    usual = TablesKind.check

    def checked(kind, plan, section, *rest, **asked):  # type: ignore[no-untyped-def]
        built.append(section.name)
        return usual(kind, plan, section, *rest, **asked)

    monkeypatch.setattr(TablesKind, "check", checked)
    result = CliRunner().invoke(app, ["check", str(tmp_path / "plan.toml")])
    assert result.exit_code == 0, result.stderr
    assert built == ["second"]
    assert "Already released, so not worked out again: first." in result.stdout
    assert [one.section.name for one in workflow.check(plan, again=True).releases] == [
        "first",
        "second",
    ]
