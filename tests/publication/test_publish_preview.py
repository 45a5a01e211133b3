"""Before figures are public: what would be, which of them tell much, and a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app, output
from congenial.ledger.ledger import Ledger
from tests.commands import run, write_plan

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
block = { levels = ["a", "b", "c", "d"] }
age = { edges = [0, 18], top = "18+", whole = true }
[publish]
"People" = { total = true, by = ["block"] }
"Adults" = { count = "age >= 18", by = ["block"] }
[budget]
epsilon = 1
"""
# Block a: one child. b: two adults. c: three adults and two children. d: nobody.
PEOPLE = [("a", 5), ("b", 30), ("b", 40), ("c", 20), ("c", 30), ("c", 40), ("c", 1), ("c", 2)]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    rows = [f"{n},{block},{age}" for n, (block, age) in enumerate(PEOPLE)]
    (tmp_path / "people.csv").write_text("\n".join(["id,block,age", *rows]) + "\n")
    return write_plan(tmp_path, PLAN)


def told(document: Any) -> dict[tuple[str, str], tuple[int, list[list[str]]]]:
    return {(one["label"], one["kind"]): (one["groups"], one["where"]) for one in document}


def test_a_dry_run_shows_everything_and_records_nothing(plan: Path) -> None:
    document = run("publish", plan, "--dry-run", "--json")
    assert [one["value"] for one in document["figures"][0]["cells"]] == [1, 2, 5, 0]
    assert document["new"] == ["People", "Adults"]
    assert told(document["warnings"]) == {
        ("People", "few people"): (2, [["a"], ["b"]]),
        ("Adults", "few people"): (1, [["b"]]),
        ("Adults", "all alike"): (2, [["a"], ["b"]]),
    }
    assert sorted(one.name for one in plan.parent.iterdir()) == ["people.csv", "plan.toml"]
    screen = run("publish", plan, "--dry-run")
    assert "CONFIDENTIAL" in screen
    assert "they reveal each person's answer" in " ".join(screen.split())


def test_the_threshold_is_the_curators(plan: Path) -> None:
    for threshold, groups in ((0, 0), (2, 1), (3, 2), (6, 3)):
        found = told(
            run("publish", plan, "--dry-run", "--json", "--fewer-than", threshold)["warnings"]
        )
        assert found.get(("People", "few people"), (0, []))[0] == groups


def test_a_dry_run_says_what_earlier_promises_become(plan: Path) -> None:
    run("publish", plan)
    again = run("publish", plan, "--dry-run", "--json")
    assert again["new"] == []
    assert again["weaker"] is False


@pytest.mark.parametrize(("answer", "published"), [("n\n", False), ("", False), ("y\n", True)])
def test_on_a_terminal_it_asks(
    plan: Path, monkeypatch: pytest.MonkeyPatch, answer: str, published: bool
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    result = CliRunner().invoke(app, ["publish", str(plan)], input=answer)
    assert "This would be public" in result.stdout
    assert (result.exit_code == 0) is published
    ledger = plan.parent / "ledger.sqlite"
    assert (Ledger.exists(ledger) and bool(Ledger.open(ledger).figures.statements)) is published
    assert (plan.parent / "published").exists() is published


def test_yes_asks_nothing(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    assert "This would be public" not in run("publish", plan, "--yes")


def test_without_a_terminal_nothing_is_asked(plan: Path) -> None:
    assert "public from now on" in run("publish", plan)
