"""What the tests of the desk share: a folder with a plan and people, and visitors."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from congenial.desk.access import DeskSettings
from congenial.desk.desk_app import build
from congenial.desk.server import listen, server_of
from congenial.desk.visit import DeskPage

MARKER = "zz-marker-7f3a"  # stands for a confidential value in the data
PORT = 8123

PLAN = """# Who lives where
[data]
source = "people.csv"
unit = "person_id"

[schema]
county = { levels_file = "counties.csv" }
sex = { levels = ["female", "male"] }

[publish]
"Population" = { total = true, by = ["county"], because = "statute" }

[[release]]
name = "people"
table = ["county", "sex"]
epsilon = 1.0   # per person

[budget]
ledger = "ledger.sqlite"
epsilon = 4.0
"""


def write_folder(folder: Path) -> Path:
    """A folder with 60 people, the plan, and a secret beside it that no page may show."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [f"{MARKER}-{i},{'AABBBC'[i % 6]},{('female', 'male')[i % 2]}" for i in range(60)]
    (folder / "people.csv").write_text("person_id,county,sex\n" + "\n".join(rows) + "\n")
    (folder / "counties.csv").write_text("county\nA\nB\nC\n")
    (folder / "plan.toml").write_text(PLAN)
    (folder.parent / "outside.toml").write_text(f'data = "{MARKER}"\nbudget = 1\n')
    return folder


LOOP = asyncio.new_event_loop()  # one for all clients


@contextmanager
def serving(settings: DeskSettings) -> Iterator[int]:
    """Run a desk; its port."""
    opened = listen(settings)
    server = server_of(settings)
    running = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    running.start()
    try:
        yield opened.getsockname()[1]
    finally:
        server.should_exit = True
        running.join(120)


class Client:
    """A browser that keeps cookies; requests go to the application itself, not over a network."""

    sent = 0  # requests of all clients

    def __init__(self, app: ASGIApp, base_url: str) -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=base_url)
        self.cookies = self._client.cookies

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        Client.sent += 1
        return LOOP.run_until_complete(self._client.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)

    def put(self, path: str, **more: Any) -> httpx.Response:
        return self.request("PUT", path, **more)


@dataclass
class Visitor:
    """Somebody with a browser that keeps cookies, sends forms, and finds secrets of forms."""

    client: Client

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, follow_redirects=False, **more)

    def csrf(self) -> str:
        found = re.search(r'name="csrf" content="([^"]+)"', self.get("/").text)
        assert found
        return found[1]

    def digest(self, key: str = "plan.toml") -> str:
        pages = "".join(self.get(f"/plan/{key}/{step}").text for step in ("publish", "release"))
        found = re.search(r'name="digest" value="([^"]+)"', pages)
        return found[1] if found else ""

    def post(self, path: str, fields: dict[str, str] | None = None, **more: Any) -> Any:
        data = {"csrf": self.csrf()} | (fields or {})
        return self.client.post(path, data=data, follow_redirects=False, **more)


def single(folder: Path) -> tuple[DeskSettings, Client]:
    """A desk, and a client that has not come in yet."""
    settings = DeskSettings(folder, port=PORT)
    client = Client(build(settings), base_url=f"http://127.0.0.1:{PORT}")
    return settings, client


def entered(folder: Path) -> Visitor:
    """Whoever opened the link of a desk."""
    settings, client = single(folder)
    assert client.get(f"/enter?token={settings.token}", follow_redirects=False).status_code == 303
    return Visitor(client)


@dataclass
class Colleague(Visitor):
    """Somebody at a desk of their own, under their own login."""

    who: str
    monkeypatch: pytest.MonkeyPatch

    def get(self, path: str, **more: Any) -> Any:
        self.monkeypatch.setenv("LOGNAME", self.who)
        return super().get(path, **more)

    def post(self, path: str, fields: dict[str, str] | None = None, **more: Any) -> Any:
        self.monkeypatch.setenv("LOGNAME", self.who)
        return super().post(path, fields, **more)


def place(screen: DeskPage) -> str:
    """An address of the screen."""
    return screen.path.format(plan="plan.toml", job="x", release="people", file="report.html")
