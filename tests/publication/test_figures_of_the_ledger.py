"""A ledger may hold figures that the plan at hand does not name; they count all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.kinds.tables import TablesKind
from congenial.publication.plan import Plan
from tests.commands import refused, run, write_plan

PLAN = """\
[data]
source = "people.csv"
unit = "id"

[schema]
x = { levels = ["a", "b", "c", "d"] }
g = { levels = ["p", "q"] }

[budget]
epsilon = 20
delta = 1e-9

FIGURES
[[release]]
name = "one"
table = ["g", "x"]
epsilon = 1
"""
BY_G = '[publish."By g"]\ntotal = true\nby = ["g"]\n\n'
EVERYBODY = '[publish."Everybody"]\ntotal = true\n\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{i},{'abcd'[i % 4]},{'pq'[i % 2]}" for i in range(12)]
    (tmp_path / "people.csv").write_text("id,x,g\n" + "\n".join(rows) + "\n")
    return tmp_path


def plan(folder: Path, figures: str, *changes: tuple[str, str]) -> Path:
    return write_plan(folder, PLAN, ("FIGURES\n", figures), *changes)


def test_check_and_reassess_know_figures_of_another_plan(folder: Path) -> None:
    run("release", plan(folder, ""))
    run("publish", plan(folder, BY_G), "--accept-weaker")
    other = plan(folder, EVERYBODY)  # By g stays published
    told = run("check", other, "--json")
    labels = ["Number of people", "By g", "Everybody"]  # the first by the release
    assert [one["label"] for one in told["figures"]] == labels
    assert told["adjacency"]["records"] == 2
    assert told["budget"]["spent"].startswith("epsilon = 2 ")
    again = run("reassess", other, "--json")
    assert again["mandates"] == labels
    robust = next(row for row in again["rows"] if row["reading"] == "robust")
    assert (robust["records"], robust["promise"]) == (2, "epsilon = 2")


def test_values_of_figures_may_make_a_release_possible(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with large weights: a* is too much to work out for every value, and easy for one."""
    build = TablesKind.build

    def needs_values(kind: TablesKind, plan: Plan, section: Any, figures: Figures) -> Any:
        if figures.values is None:
            raise StructureError("publishing the figures first may help.")
        return build(kind, plan, section, figures)

    monkeypatch.setattr(TablesKind, "build", needs_values)
    path = plan(folder, BY_G)
    assert "may help" in refused(path, code=StructureError.exit_code)
    run("publish", path)
    run("release", path)
    run("verify", folder / "bundles" / "one")


def test_figures_after_which_a_release_cannot_work_are_not_published(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their values decide, and a release that is drawn already does not."""

    def never(_: TablesKind, plan: Plan, section: Any, figures: Figures) -> Any:
        if figures.values is not None:
            raise StructureError("nothing is left to protect.")

    monkeypatch.setattr(TablesKind, "build", never)
    path = plan(folder, BY_G)
    refused(path, "publish", code=StructureError.exit_code)
    assert not (folder / "published").exists()
    assert not (folder / "ledger.sqlite").exists()
    monkeypatch.undo()
    run("release", plan(folder, ""))
    monkeypatch.setattr(TablesKind, "build", never)
    run("publish", plan(folder, BY_G), "--accept-weaker")
