"""The desk of a team: roles, the proxy that knows people, forms of others, and several at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from congenial.desk.desk_app import SCREENS
from congenial.desk.desk_settings import DeskSettings
from congenial.desk.workspace import PlanConflictError, save, text_digest
from congenial.errors import PlanError
from congenial.ledger.ledger import Ledger
from congenial.ledger.roles import allowed
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from tests.desk.desks import (
    MARKER,
    ORIGIN,
    PLAN,
    PORT,
    SECRET,
    Team,
    place,
)

pytestmark = pytest.mark.usefixtures("counted_requests")


@pytest.fixture
def ledger(folder: Path) -> Ledger:
    """The plan's ledger with one person for each role."""
    plan = Plan.load(folder / "plan.toml")
    made = open_ledger(plan, create=True, who="owner")
    assert made is not None
    for role in ("reader", "reviewer", "releaser", "publisher"):
        made.grant(role, role)
    return made


PEOPLE = ("stranger", "reader", "reviewer", "releaser", "publisher", "owner")


@pytest.mark.parametrize("who", PEOPLE)
def test_every_screen_asks_for_its_role(folder: Path, ledger: Ledger, who: str) -> None:
    """What the ledger's roles allow, and not more; readers are everybody with a role."""
    visitor = Team(folder).visitor(who)
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
            assert answer.status_code in (200, 404), (who, screen.path)
        else:  # without a digest or a tick nothing is recorded, and that says another thing
            assert "needs the role" not in answer.text
    assert [one.kind for one in ledger.events()[len(before) :]] in ([], ["require"])
    assert ("plan.toml" in visitor.get("/").text) == (who != "stranger")


def test_a_team_is_known_by_its_proxy_only(folder: Path, ledger: Ledger) -> None:
    del ledger
    client = Team(folder).visitor("owner").client
    for headers in (
        {"Congenial-Proxy-Secret": "wrong"},
        {"Congenial-Proxy-Secret": ""},
        {"X-User": ""},
        {"X-User": " "},
        {"X-User": "x" * 65},
    ):
        assert client.get("/", headers=headers).status_code == 401
    twice = [("X-User", "owner"), ("X-User", "reader"), ("Congenial-Proxy-Secret", SECRET)]
    assert client.get("/", headers=twice).status_code == 401
    assert client.get("/enter?token=x").status_code in (401, 404)
    assert client.get("/", headers={"host": f"127.0.0.1:{PORT}"}).status_code == 421


def test_the_form_of_one_person_is_not_anothers(folder: Path, ledger: Ledger) -> None:
    team = Team(folder)
    stolen = team.visitor("owner").csrf()
    fields = {"csrf": stolen, "digest": Plan.load(folder / "plan.toml").digest}
    answer = team.visitor("releaser").client.post("/plan/plan.toml/propose", data=fields)
    assert (answer.status_code, "not from a page of this desk" in answer.text) == (403, True)
    assert not ledger.approvals.proposals


REACHES = (
    ('"counties.csv"', '"../secret.csv"'),
    ('"counties.csv"', '"OUTSIDE/secret.csv"'),
    ('"counties.csv"', '"link.csv"'),
    ('"people.csv"', '"../secret.csv"'),
    ('"people.csv"', '"spark:OUTSIDE/secret.csv"'),
    ('"people.csv"', '"file:///secret.csv"'),
    ('"ledger.sqlite"', '"../other.sqlite"'),
    ('"ledger.sqlite"', '"sqlite:///OUTSIDE/other.sqlite"'),
)


@pytest.mark.parametrize(("name", "other"), REACHES)
def test_a_plan_of_a_team_reaches_no_file_outside(
    folder: Path, ledger: Ledger, name: str, other: str
) -> None:
    """By no screen, whoever wrote the plan: the desk would read as the user who runs it."""
    del ledger
    outside = folder.parent
    (outside / "secret.csv").write_text(f"county\n{MARKER}\n")
    (folder / "link.csv").symlink_to(outside / "secret.csv")
    assert name in PLAN
    text = PLAN.replace(name, other.replace("OUTSIDE", str(outside)))
    owner = Team(folder).visitor("owner")
    saved = owner.post("/plan/plan.toml/save", {"text": text, "opened": text_digest(PLAN)})
    assert saved.status_code == 422
    assert (folder / "plan.toml").read_text() == PLAN
    head = {"x-csrf-token": owner.csrf()}
    told = owner.client.post("/plan/plan.toml/check", json={"text": text}, headers=head)
    assert "outside the folder" in told.text
    (folder / "plan.toml").write_text(text)  # by other means
    for screen in SCREENS:
        if screen.needs != "nothing":
            path = place(screen)
            answer = owner.get(path) if screen.method == "GET" else owner.post(path)
            assert answer.status_code in (404, 422), path
            assert MARKER not in answer.text
    assert not (outside / "other.sqlite").exists()
    assert MARKER not in owner.get("/").text


def test_settings_that_would_let_anybody_in_are_refused(folder: Path) -> None:
    for more in (
        {"host": "0.0.0.0"},
        {"user_header": "X-User", "public_origin": ORIGIN},
        {"user_header": "X-User", "proxy_secret": "short", "public_origin": ORIGIN},
        {"user_header": "X-User", "proxy_secret": SECRET, "public_origin": "http://desk"},
    ):
        with pytest.raises(PlanError):
            DeskSettings(folder, **more)
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
    assert sorted(one.name for one in folder.iterdir()) == [
        "counties.csv",
        "people.csv",
        "plan.toml",
    ]


def test_of_two_who_publish_at_once_one_does(
    folder: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the other is told so; what one of them reads meanwhile is not the other's."""
    begun, go = [], threading.Event()

    def slow(*_: object, who: str, **__: object) -> None:
        begun.append(who)
        go.wait(30)

    monkeypatch.setattr("congenial.desk.publication_screen.workflow.publish", slow)
    team = Team(folder)
    first, second = team.visitor("owner"), team.visitor("publisher")
    fields = {"sure": "publish", "digest": Plan.load(folder / "plan.toml").digest}
    job = first.post("/plan/plan.toml/publish", fields)
    assert job.status_code == 303
    refused = second.post("/plan/plan.toml/publish", fields)
    assert (refused.status_code, "running for this plan already" in refused.text) == (422, True)
    assert second.get(job.headers["location"]).status_code == 404
    assert second.get("/plan/plan.toml/release").status_code == 200
    go.set()
    assert begun == ["owner"]
    assert not [one for one in ledger.events() if one.kind == "mandates"]
