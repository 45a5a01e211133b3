"""A ledger that went missing, however it is spelled, is not a fresh budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from congenial.errors import LedgerError
from congenial.ledger.ledger import Ledger
from congenial.ledger.stores.postgres import PostgresStore
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import note
from tests.crash.population import Population


def people(folder: Path) -> None:
    folder.mkdir()
    rows = "".join(f"{i},{'AB'[i % 2]},{'fm'[i % 3 % 2]},{i}\n" for i in range(60))
    (folder / "people.csv").write_text("id,county,sex,age\n" + rows)


@pytest.mark.parametrize("again", ["ledger.sqlite", "./ledger.sqlite", "other.sqlite"])
def test_figures_recorded_in_a_ledger_refuse_a_fresh_one(tmp_path: Path, again: str) -> None:
    folder = tmp_path / "population"
    people(folder)
    workflow.publish(Population(folder, "ledger.sqlite", 3).plan("first"))
    (folder / "ledger.sqlite").unlink()
    plan = Population(folder, again, 3).plan("first")
    for call in (
        lambda: workflow.check(plan),
        lambda: workflow.publish(plan),
        lambda: workflow.release(plan, "first"),
        lambda: workflow.refuse_excess(plan, ["first", "first"]),
    ):
        with pytest.raises(LedgerError, match="how much budget is spent is unknown"):
            call()
    assert not (folder / again).exists()


def test_another_ledger_that_exists_is_not_a_fresh_budget(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "population", tmp_path / "elsewhere"
    people(folder)
    people(elsewhere)
    workflow.publish(Population(folder, "ledger.sqlite", 3).plan("first"))
    plan = Population(folder, "other.sqlite", 3).plan("first")
    Ledger.open(
        folder / "other.sqlite", plan.schema, adjacency="replace-one", budget=plan.budget.budget()
    )
    for call in (
        lambda: workflow.check(plan),
        lambda: workflow.publish(plan),
        lambda: workflow.release(plan, "first"),
    ):
        with pytest.raises(LedgerError, match="recorded in another ledger"):
            call()
    # The ledger itself may be moved, and be spelled in any way.
    (folder / "ledger.sqlite").rename(folder / "moved.sqlite")
    for again in ("moved.sqlite", "./moved.sqlite", "sqlite:///moved.sqlite"):
        assert workflow.check(Population(folder, again, 3).plan("first")).published
    workflow.release(Population(folder, "moved.sqlite", 3).plan("first"), "first")


WITHOUT_FIGURES = """
[data]
source = "people.csv"
[schema]
age = { integers = [0, 59] }  # many cells: no two draws are the same
[[release]]
name = "first"
table = ["age"]
epsilon = 1
[[release]]
name = "second"
table = ["age"]
epsilon = 1
[budget]
epsilon = 1
"""


def test_a_bundle_refuses_a_fresh_ledger(tmp_path: Path) -> None:
    """No figure is published, and the second release would have had the budget once more."""
    folder = tmp_path / "population"
    people(folder)
    plan = Plan.parse(WITHOUT_FIGURES, folder)
    workflow.release(plan, "first")
    (folder / "ledger.sqlite").unlink()
    for call in (lambda: workflow.check(plan), lambda: workflow.release(plan, "second")):
        with pytest.raises(
            LedgerError, match=r"bundles/first' was recorded.*unknown. Restore the newest"
        ):
            call()
    assert not (folder / "ledger.sqlite").exists()


def copies(ledger: Path, *release: Any) -> dict[str, bytes]:
    """What the ledger held before, during and after an attempt at "second" without a draw."""
    found = {"older copy": ledger.read_bytes()}
    with Ledger.open(ledger).reserve(*release, "second"):
        found["reserved then"] = ledger.read_bytes()
    return found | {"cancelled then": ledger.read_bytes()}


@pytest.mark.parametrize(
    "how", ["older copy", "reserved then", "cancelled then", "another", "same name"]
)
def test_a_bundle_that_the_ledger_does_not_hold(tmp_path: Path, how: str) -> None:
    """An older copy of a ledger, or somebody else's, would give its budget once more.

    The older copy may know the name from a release that was reserved then, or given up before its
    draw: neither is the bundle's.
    """
    folder, elsewhere = tmp_path / "population", tmp_path / "elsewhere"
    text = WITHOUT_FIGURES.replace("[budget]\nepsilon = 1", "[budget]\nepsilon = 2")
    plans = []
    for place in (folder, elsewhere):
        people(place)
        plans.append(Plan.parse(text, place))
    plan, other = plans
    ledger = folder / "ledger.sqlite"
    workflow.release(other, "first" if how == "same name" else "second")
    release = workflow.release(plan, "first").release
    before = copies(ledger, release.description, release.guarantee)
    workflow.release(plan, "second")
    workflow.check(plan)
    if how in before:
        ledger.write_bytes(before[how])
    else:
        ledger.write_bytes((elsewhere / "ledger.sqlite").read_bytes())
    lost = "second" if how in before else "first"
    again = tmp_path / "again"
    for call in (lambda: workflow.check(plan), lambda: workflow.release(plan, "second", again)):
        with pytest.raises(LedgerError, match=rf"bundles/{lost}' is not in the ledger"):
            call()


def test_the_note_of_the_ledger_holds_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "population"
    people(folder)
    plan = Population(folder, "postgresql://ann@host/base?sslkey=hush&host=h", 3).plan("first")

    class Elsewhere:
        where = PostgresStore(plan.ledger.replace("ann@", "ann:hush@"), 1.0).where
        identity = "d" * 64

    told = note(plan, Elsewhere())  # type: ignore[arg-type]
    assert told == {"recorded_in": "postgresql://ann@host/base?host=h", "ledger": "d" * 64}
