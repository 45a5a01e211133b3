"""Approval from plan to release by commands, and that a digest covers the files a plan names."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.desk.workspace import changed_lines
from congenial.errors import PlanError
from congenial.kinds.plan_sections import DeriveEntry
from congenial.publication import drawing_by_parts
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from tests.commands import run

PLAN = """
[data]
source = "people.csv"
[schema]
sex = { levels_file = "sexes.csv" }
[publish]
"All" = { total = true }
[[release]]
name = "t"
table = ["sex"]
epsilon = 1
[budget]
epsilon = 2
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("sex\n" + "f\nm\nm\n" * 9)
    (tmp_path / "sexes.csv").write_text("sex\nf\nm\n")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def be(monkeypatch: pytest.MonkeyPatch):
    """Become another user of the system, as far as a SQLite ledger can tell."""

    def become(who: str) -> None:
        monkeypatch.setenv("LOGNAME", who)

    return become


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code not in (0, 70), result.output
    return result.stderr


def test_the_way_of_a_plan_by_commands(plan: Path, be) -> None:
    be("ann")
    assert run("ledger", "require", plan, "--json")["approval_required"]
    for who, role in (("bob", "publisher"), ("cyd", "reviewer")):
        run("ledger", "grant", plan, who, role)
    assert "was not proposed" in refused("approve", plan)
    be("bob")
    assert "somebody else approves" in refused("publish", plan)
    assert run("propose", plan, "--json")["standing"] == "proposed"
    assert "role reviewer" in refused("approve", plan)
    be("cyd")
    assert "with its reason" in refused("approve", plan, "--refuse")
    told = run("approve", plan, "--because", "as agreed")
    assert "Approved by 'cyd'" in told
    assert "as agreed" in told
    assert told.rstrip().endswith(f"Next: congenial publish {plan}")
    be("bob")
    run("publish", plan)
    (plan.parent / "sexes.csv").write_text("sex\nm\nf\n")  # the plan itself is as it was
    assert refused("release", plan)
    (plan.parent / "sexes.csv").write_text("sex\nf\nm\n")
    run("release", plan)
    be("cyd")
    after = run("approve", plan, "--withdraw", "--json")
    assert (after["standing"], after["drawn_before"]) == ("proposed", ["t"])
    shown = run("ledger", "show", plan)
    assert "approval is required" in shown


def test_a_release_is_refused_before_data_are_read(plan: Path, be) -> None:
    be("ann")
    run("ledger", "require", plan)
    (plan.parent / "people.csv").unlink()
    for command in ("publish", "release"):
        assert "somebody else approves" in refused(command, plan)


def test_the_digest_covers_the_files_a_plan_names(plan: Path) -> None:
    before = Plan.load(plan).digest
    (plan.parent / "sexes.csv").write_text("sex\nf\nm\nx\n")
    assert Plan.load(plan).digest != before
    (plan.parent / "sexes.csv").write_text("sex\nf\nm\n")
    assert Plan.load(plan).digest == before
    (plan.parent / "people.csv").write_text("sex\nm\n")  # the data are no part of the plan
    assert Plan.load(plan).digest == before
    (plan.parent / "sexes.csv").unlink()
    with pytest.raises(PlanError, match=r"sexes.csv"):
        _ = Plan.load(plan).digest


def test_the_digest_covers_recodings(plan: Path) -> None:
    recodings = plan.parent / "codes.csv"
    recodings.write_text("found,wanted\n1,f\n2,m\n")
    (key,) = [name for name in DeriveEntry.model_fields if name.endswith("file")]
    plan.write_text(PLAN + f'[derive.gender]\nrecode = "sex"\n{key} = "codes.csv"\n')
    before = Plan.load(plan).digest
    recodings.write_text("found,wanted\n1,m\n2,f\n")
    assert Plan.load(plan).digest != before


def test_a_difference_is_shown_by_lines(plan: Path, be) -> None:
    be("ann")
    run("propose", plan)
    ledger_text = Plan.read(plan)
    before = open_ledger(Plan.load(plan), create=False).approvals.proposals[-1]
    assert before.text == ledger_text
    assert list(before.files) == ["sexes.csv"]
    changed = changed_lines(before.text, ledger_text.replace("epsilon = 1\n", "epsilon = 1.5\n"))
    assert "-epsilon = 1" in changed
    assert "+epsilon = 1.5" in changed
    assert changed_lines(before.text, ledger_text) == []


def test_parts_are_reserved_for_the_plan_that_was_approved(plan: Path) -> None:
    loaded: Any = Plan.load(plan)
    asked: list[Any] = []

    class Reserved(Exception):
        pass

    class Asked:
        def reserve(self, *given: object) -> None:
            asked.extend(given)
            raise Reserved

    offer: Any = SimpleNamespace(description=None, guarantee=None, name="t")
    none: Any = None
    with pytest.raises(Reserved):
        drawing_by_parts._reserved(loaded, offer, none, none, none, Asked())  # type: ignore[arg-type]
    assert asked[-1] == loaded.digest
