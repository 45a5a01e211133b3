"""The door of the desk: tokens, addresses, forms of other sites, sizes, paths, and hostile noise.

Screens are taken from where they are registered, so that a new one is tested without being named.
All of it belongs to the audit, too.
"""

from __future__ import annotations

import asyncio
import random
import string
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from congenial.desk.access import HEADERS
from congenial.desk.desk_app import SCREENS
from congenial.desk.desk_settings import LARGEST_REQUEST, DeskSettings
from congenial.desk.visit import DeskPage
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
    Client,
    Team,
    entered,
    single,
    write_folder,
)

EVERY = pytest.mark.parametrize("screen", SCREENS, ids=lambda one: f"{one.method} {one.path}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "desk")


@pytest.fixture(autouse=True)
def _requests(attempt: Callable[..., None]) -> Iterator[None]:
    before = Client.sent
    yield
    attempt("desk", requests=Client.sent - before)


def place(screen: DeskPage) -> str:
    """An address of the screen."""
    return screen.path.format(plan="plan.toml", job="x", release="people", file="report.html")


def unchanged(folder: Path) -> bool:
    text = (folder / "plan.toml").read_text()
    return "Who lives where" in text and not (folder / "ledger.sqlite").exists()


@EVERY
def test_nothing_without_the_token(folder: Path, screen: DeskPage) -> None:
    _, client = single(folder)
    for headers in ({}, {"cookie": "congenial_desk=guess"}, {"X-User": "ann"}):
        answer = client.request(screen.method, place(screen), headers=headers)
        assert answer.status_code == 401
        assert "plan" not in answer.text
    assert unchanged(folder)


def test_the_token_works_once(folder: Path) -> None:
    settings, client = single(folder)
    wrong = client.get("/enter?token=" + "x" * 43, follow_redirects=False)
    assert wrong.status_code == 401
    first = client.get(f"/enter?token={settings.token}", follow_redirects=False)
    cookie = first.headers["set-cookie"].lower()
    assert first.status_code == 303
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    again = client.get(f"/enter?token={settings.token}", follow_redirects=False)
    assert again.headers["location"] == "/"  # the same browser goes on
    client.cookies.clear()
    assert client.get(f"/enter?token={settings.token}").status_code == 401
    assert settings.token not in repr(settings)


@pytest.mark.parametrize(
    "screen", [one for one in SCREENS if one.method == "POST"], ids=lambda one: one.path
)
def test_forged_forms_do_nothing(folder: Path, screen: DeskPage) -> None:
    """Without the secret, with another's, from another site, and in a form it does not take."""
    me = entered(folder)
    good = {"csrf": me.csrf(), "sure": "publish", "text": "x = 1"}
    path = place(screen)
    site = {"origin": "https://evil.example"}
    attempts = [
        {"data": good | {"csrf": ""}},
        {"data": good | {"csrf": "x" * 43}},
        {"data": good, "headers": site},
        {"data": good, "headers": {"sec-fetch-site": "cross-site"}},
        {"json": good},
        {"content": b"csrf=" + good["csrf"].encode(), "headers": {"content-type": "text/plain"}},
        {"files": {"csrf": ("f", good["csrf"])}},
    ]
    for more in attempts:
        assert me.client.post(path, **more).status_code in (403, 415), more
    assert me.client.get(path).status_code in (404, 405)
    assert me.client.put(path).status_code == 405
    assert unchanged(folder)


@EVERY
def test_every_answer_has_its_headers(folder: Path, screen: DeskPage) -> None:
    me = entered(folder)
    answer = me.get(place(screen)) if screen.method == "GET" else me.post(place(screen))
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "server" not in answer.headers
    assert MARKER not in answer.text


def test_another_address_is_not_ours(folder: Path) -> None:
    """A name whose server was turned to this machine (DNS rebinding) leads nowhere."""
    me = entered(folder)
    for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""):
        assert me.client.get("/", headers={"host": host}).status_code == 421


TRAVERSALS = (
    "../outside.toml",
    "..%2foutside.toml",
    "..%252foutside.toml",
    "....//outside.toml",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "..\\outside.toml",
    ":..:outside.toml",
    "plan.toml%00.html",
    "people.csv",
    "counties.csv",
    "%c0%ae%c0%ae/outside.toml",
    "link.toml",
)


def test_no_path_leads_out(folder: Path) -> None:
    me = entered(folder)
    (folder / "link.toml").symlink_to(folder.parent / "outside.toml")
    secret = folder.parent / "secret.txt"
    secret.write_text(MARKER)
    for name in TRAVERSALS:
        for path in (
            f"/plan/{name}",
            f"/plan/{name}/budget",
            f"/plan/plan.toml/bundle/{name}",
            f"/plan/plan.toml/bundle/people/{name}",
            f"/plan/plan.toml/bundle/people/../../{name}",
            f"/static/{name}",
            f"/static/../{name}",
            f"/job/{name}",
        ):
            answer = me.get(path)
            assert answer.status_code in (400, 404, 405), path
            assert MARKER not in answer.text
    drafted = me.post("/plans", {"data": "../secret.txt", "name": "p"})
    assert drafted.status_code == 404
    named = me.post("/plans", {"data": "people.csv", "name": "../../p"})
    assert named.status_code == 422
    assert sorted(one.name for one in folder.parent.iterdir()) == [
        "desk",
        "outside.toml",
        "secret.txt",
    ]


def test_a_large_request_is_not_read(folder: Path) -> None:
    me = entered(folder)
    answer = me.post("/plan/plan.toml/check", {"text": "x" * (LARGEST_REQUEST + 1)})
    assert answer.status_code == 413

    async def endless() -> AsyncIterator[bytes]:
        yield b"csrf="
        for _ in range(40):
            yield b"y" * 100_000

    kind = {"content-type": "application/x-www-form-urlencoded"}
    answer = me.client.post("/plan/plan.toml/check", content=endless(), headers=kind)
    assert answer.status_code == 413
    assert unchanged(folder)


def test_a_slow_request_and_a_slow_page_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = entered(folder)
    kind = {"content-type": "application/x-www-form-urlencoded"}

    async def slow() -> AsyncIterator[bytes]:
        yield b"csrf="
        await asyncio.sleep(5)
        yield b"x"

    monkeypatch.setattr("congenial.desk.access.SLOWEST_REQUEST", 0.05)
    answer = me.client.post("/plan/plan.toml/check", content=slow(), headers=kind)
    assert answer.status_code == 408
    go = threading.Event()
    monkeypatch.setattr("congenial.desk.visit.PATIENCE", 0.1)
    monkeypatch.setattr("congenial.desk.visit.SLOWEST_WORK", 0.3)
    monkeypatch.setattr("congenial.desk.price_screen.examine", lambda *_: go.wait(10))
    answers = [me.get("/plan/plan.toml/price").status_code for _ in range(5)]
    assert (answers[0], answers[-1]) == (200, 503)  # how far it is, and then an end
    go.set()
    other = threading.Event()
    monkeypatch.setattr("congenial.desk.visit.SLOWEST_ANSWER", 0.2)
    slow_deed = "congenial.desk.review_screen.plan_approval.require"
    monkeypatch.setattr(slow_deed, lambda *_, **__: other.wait(10))
    assert me.post("/plan/plan.toml/require", {"needed": "yes"}).status_code == 503
    other.set()


def test_an_unforeseen_error_says_only_its_type(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    me = entered(folder)

    def fail(*_: object) -> None:
        raise ValueError(MARKER)

    monkeypatch.setattr("congenial.desk.publication_screen.budget_document", fail)
    monkeypatch.setattr("congenial.desk.visit.open_ledger", lambda *_, **__: fail())
    answer = me.get("/plan/plan.toml/budget")
    assert (answer.status_code, answer.text) == (500, "Unexpected error: ValueError.\n")
    out = capfd.readouterr()
    assert MARKER not in out.out + out.err


# ---- a team --------------------------------------------------------------------------------------


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
    fields = {"csrf": stolen, "digest": Plan.load(folder / "plan.toml").digest_with_files}
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


# ---- hostile noise -------------------------------------------------------------------------------

ALPHABET = string.printable + "\x00\x7fäß中💥"


@pytest.mark.audit
def test_a_thousand_hostile_requests(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Mangled paths, queries, forms and JSON from somebody who is in: nothing is written, nothing
    is quoted, and the desk answers afterwards.
    """
    me = entered(folder)
    random.seed(20)
    words = [
        "plan",
        "plan.toml",
        "..",
        "bundle",
        "people",
        "static",
        "save",
        "check",
        "draw",
        "%2e",
    ]
    names = [
        "csrf",
        "text",
        "opened",
        "digest",
        "name",
        "sure",
        "edit",
        "section",
        "field",
        "value",
    ]

    def noise(most: int) -> str:
        return "".join(random.choices(ALPHABET, k=random.randrange(most)))

    secret = me.csrf()
    for at in range(1000):
        parts = [random.choice([*words, noise(12)]) for _ in range(random.randrange(1, 6))]
        path = "/" + quote("/".join(parts), safe="/%.:~!$&'()*+,;=@|")
        fields = {random.choice(names): noise(200) for _ in range(random.randrange(5))}
        if random.random() < 0.7:
            fields["csrf"] = secret
        if at % 3 == 0:
            answer = me.client.get(path, params={noise(5): noise(50)})
        elif at % 3 == 1:
            answer = me.client.post(path, data=fields)
        else:
            answer = me.client.post(path, json=fields, headers={"x-csrf-token": secret})
        assert answer.status_code < 500, (path, fields)
        assert MARKER not in answer.text
    assert unchanged(folder)
    assert me.get("/").status_code == 200
    out = capfd.readouterr()
    assert MARKER not in out.out + out.err
