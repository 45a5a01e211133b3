"""The door of the desk: tokens, addresses, forms of other sites, sizes, paths, and hostile noise.

Screens are taken from where they are registered, so that a new one is tested without being named.
All of it belongs to the audit, too.
"""

from __future__ import annotations

import asyncio
import random
import socket
import string
import threading
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from congenial.desk.access import HEADERS, LARGEST_REQUEST, DeskSettings
from congenial.desk.desk_app import SCREENS
from congenial.desk.release_screens import REPORT_HEADERS
from congenial.desk.visit import DeskPage
from tests.desk.desks import (
    MARKER,
    PORT,
    entered,
    place,
    serving,
    single,
)

pytestmark = pytest.mark.usefixtures("counted_requests")
EVERY = pytest.mark.parametrize("screen", SCREENS, ids=lambda one: f"{one.method} {one.path}")


def unchanged(folder: Path) -> bool:
    text = (folder / "plan.toml").read_text()
    return "Who lives where" in text and not (folder / "ledger.sqlite").exists()


@EVERY
def test_nothing_without_the_token(folder: Path, screen: DeskPage) -> None:
    _, client = single(folder)
    for headers in ({}, {"cookie": "congenial_desk=guess"}):
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
    of_report = REPORT_HEADERS if "rehearsal" in screen.path else {}
    for name, value in (HEADERS | of_report).items():
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
    monkeypatch.setattr("congenial.desk.price_screen._check", lambda *_: go.wait(10))
    answers = [me.get("/plan/plan.toml/price").status_code for _ in range(5)]
    assert (answers[0], answers[-1]) == (200, 503)  # how far it is, and then an end
    go.set()
    other = threading.Event()
    monkeypatch.setattr("congenial.desk.visit.SLOWEST_ANSWER", 0.2)
    slow_deed = "congenial.ledger.ledger.Ledger.require_approval"
    monkeypatch.setattr(slow_deed, lambda *_, **__: other.wait(10))
    assert me.post("/plan/plan.toml/require", {"needed": "yes"}).status_code == 503
    other.set()


def test_an_unforeseen_error_says_only_its_type(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    me = entered(folder)

    def fail(*_: object) -> None:
        raise ValueError(MARKER)

    monkeypatch.setattr("congenial.desk.release_screens.ledger_document", fail)
    monkeypatch.setattr("congenial.desk.visit.open_ledger", lambda *_, **__: fail())
    answer = me.get("/plan/plan.toml/budget")
    assert (answer.status_code, answer.text) == (500, "Unexpected error: ValueError.\n")
    out = capfd.readouterr()
    assert MARKER not in out.out + out.err


# ---- connections that never send a whole request ------------------------------------------------

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


def connected(port: int, told: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=20)
    made.sendall(told)
    return made


def closed_within(one: socket.socket, seconds: float, trickle: bytes = b"") -> bool:
    """Whether the desk ends the connection while bytes keep coming."""
    end = time.monotonic() + seconds
    one.settimeout(0.05)
    while time.monotonic() < end:
        try:
            one.sendall(trickle)
            if not one.recv(65_536):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_half_sent_heads_do_not_keep_others_out(folder: Path) -> None:
    """110 connections that wait for nothing: whoever sends a request is answered at once."""
    with serving(DeskSettings(folder)) as port, ExitStack() as opened:
        for told in [HALF] * 60 + [b""] * 50:
            opened.enter_context(connected(port, told))
        for _ in range(3):
            answer = httpx.get(f"http://127.0.0.1:{port}/", trust_env=False, timeout=20)
            assert answer.status_code == 401  # and not 503: no link was opened


@pytest.mark.parametrize(
    ("told", "trickle"),
    [
        (b"", b""),
        (HALF, b""),
        (HALF, b"x"),
        # Answered before its body came, which then never ends.
        (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", b"x"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", b"x"),
        # A second head on the same connection.
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + HALF, b"x"),
    ],
)
def test_a_connection_without_a_request_is_ended(
    folder: Path, told: bytes, trickle: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a byte comes now and then."""
    monkeypatch.setattr("congenial.desk.server.SLOWEST_HEAD", 0.4)
    monkeypatch.setattr("congenial.desk.server.IDLE", 1)
    with serving(DeskSettings(folder)) as port, connected(port, told) as one:
        assert closed_within(one, 10, trickle)


def test_a_head_in_two_parts_is_read(folder: Path) -> None:
    with serving(DeskSettings(folder)) as port, connected(port, HALF) as one:
        time.sleep(0.2)
        one.sendall(b"\r\n\r\n")
        assert one.recv(1000).startswith(b"HTTP/1.1 421")


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
