"""Several people with one folder and one ledger, each at a desk of their own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from congenial.desk.access import DeskSettings
from congenial.desk.desk_app import SCREENS
from congenial.desk.workspace import PlanConflictError, save, text_digest
from congenial.errors import PlanError
from congenial.ledger.ledger import Ledger
from congenial.ledger.roles import allowed
from congenial.publication.plan import Plan
from tests.desk.desks import PLAN, entered, place
from tests.desk.test_desk import AtOwnDesk, a_ledger

pytestmark = pytest.mark.usefixtures("counted_requests")


@pytest.fixture
def ledger(folder: Path) -> Ledger:
    """The plan's ledger with one person for each role."""
    roles = ("reader", "reviewer", "releaser", "publisher")
    return a_ledger(folder, "owner", **dict(zip(roles, roles, strict=True)))


PEOPLE = ("stranger", "reader", "reviewer", "releaser", "publisher", "owner")


@pytest.mark.parametrize("who", PEOPLE)
def test_every_screen_asks_for_its_role(ledger: Ledger, who: str, at_own_desk: AtOwnDesk) -> None:
    """What the ledger's roles allow, and not more; readers are everybody with a role."""
    visitor = at_own_desk(who)
    before = ledger.events()
    for screen in SCREENS:
        if screen.needs == "nothing":
            continue
        allowed_here = (
            who != "stranger"
            if screen.needs == "read"
            else allowed(ledger.roles, who, screen.needs)
        )
        path = place(screen)
        answer = visitor.get(path) if screen.method == "GET" else visitor.post(path)
        if not allowed_here:
            assert answer.status_code == 403, (who, screen.path)
            assert "has no role" in answer.text or "needs the role" in answer.text
        elif screen.method == "GET":
            assert answer.status_code in (200, 303, 404), (who, screen.path)
        else:  # without a digest or a tick nothing is recorded, and that says another thing
            assert "needs the role" not in answer.text
    assert [one.kind for one in ledger.events()[len(before) :]] in ([], ["require"])


def test_a_desk_is_on_this_machine_only(folder: Path) -> None:
    with pytest.raises(PlanError, match="this machine only"):
        DeskSettings(folder, host="0.0.0.0")
    with pytest.raises(PlanError, match="no folder"):
        DeskSettings(folder / "none")


def test_of_those_who_save_at_once_one_does(folder: Path) -> None:
    """Eight people opened the same text; what seven of them wrote is refused, and nothing mixed."""
    path, gate = folder / "plan.toml", threading.Barrier(8)

    def write(n: int) -> bool:
        gate.wait()
        try:
            save(path, PLAN + f"# {n}\n" * 500, text_digest(PLAN))
        except PlanConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as people:
        saved = list(people.map(write, range(8)))
    assert sum(saved) == 1
    assert path.read_text() == PLAN + f"# {saved.index(True)}\n" * 500
    assert sorted(one.name for one in folder.iterdir() if one.name[0] != ".") == [
        "counties.csv",
        "people.csv",
        "plan.toml",
    ]


def test_a_plan_is_published_once_at_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second try from another page is refused; other pages can be read meanwhile."""
    begun, go = [], threading.Event()

    def slow(*_: object, **__: object) -> None:
        begun.append(1)
        go.wait(30)

    monkeypatch.setattr("congenial.desk.release_screens.workflow.publish", slow)
    me = entered(folder)
    fields = {"sure": "publish", "digest": Plan.load(folder / "plan.toml").digest}
    assert me.post("/plan/plan.toml/make-public", fields).status_code == 303
    refused = me.post("/plan/plan.toml/make-public", fields)
    assert (refused.status_code, "running for this plan already" in refused.text) == (422, True)
    assert me.get("/plan/plan.toml/release").status_code == 200
    go.set()
    assert begun == [1]
