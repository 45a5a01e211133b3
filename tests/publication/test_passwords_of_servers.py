"""A password of this machine goes to servers that its owner named, not to any that a plan names.

The server here listens on 127.0.0.2, which stands for a foreign machine, asks whoever comes for a
password in clear, as PostgreSQL may, and keeps what it is sent.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from congenial.data.source import refuse_unconfirmed
from congenial.errors import CongenialError, PlanError
from congenial.publication import workflow
from congenial.publication.plan import Plan
from tests.desk.desks import entered

FOREIGN = "127.0.0.2"
SECRET = "open-sesame-31"
PLAN = """
data.source = SOURCE
schema.sex.levels = ["f", "m"]
publish.All.total = true
budget = { ledger = LEDGER, epsilon = 1 }
"""


class Listener:
    """A server that wants a password."""

    def __init__(self) -> None:
        self.heard = b""
        self.socket = socket.create_server((FOREIGN, 0))
        self.socket.settimeout(20)
        self.url = f"postgresql://ann@{FOREIGN}:{self.socket.getsockname()[1]}/base"
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    while len(told := connection.recv(1000)) == 8:  # for encryption
                        connection.sendall(b"N")
                    self.heard += told
                    connection.sendall(b"R\0\0\0\x08\0\0\0\x03")  # a password in clear, please
                    self.heard += connection.recv(1000)
                except OSError:
                    pass


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.close()


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSWORD", "PGHOST", "PGHOSTADDR", "PGSERVICE", "PGSERVICEFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "passfile"))


def plan(folder: Path, source: str = "people.csv", ledger: str = "ledger.sqlite") -> Plan:
    (folder / "people.csv").write_text("sex\nf\nm\n")
    text = PLAN.replace("SOURCE", repr(source)).replace("LEDGER", repr(ledger))
    (folder / "plan.toml").write_text(text)
    return Plan.load(folder / "plan.toml")


def write_passfile(folder: Path, line: str) -> None:
    (folder / "passfile").write_text(f"# mine\n{line}\n")
    (folder / "passfile").chmod(0o600)


def publish(made: Plan) -> str:
    with pytest.raises(CongenialError) as caught:
        workflow.publish(made)
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("key", ["ledger", "source"])
def test_a_password_is_not_sent_where_only_a_plan_says(
    key: str, listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By PGPASSWORD, by a service, and by a line of ~/.pgpass for every host."""
    address = listener.url + ("?table=people" if key == "source" else "")
    made = plan(tmp_path, **{key: address})
    monkeypatch.setenv("PGPASSWORD", SECRET)
    words = publish(made)
    assert f"PGPASSWORD would be sent to '{FOREIGN}'" in words
    assert f"PGHOST={FOREIGN}" in words
    monkeypatch.delenv("PGPASSWORD")
    write_passfile(tmp_path, f"*:*:*:*:{SECRET}")
    assert "for every host" in publish(made)
    (tmp_path / "passfile").unlink()
    (tmp_path / "services").write_text(f"[mine]\nhost=localhost\npassword={SECRET}\n")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGSERVICE", "mine")
    assert "PGSERVICE" in publish(made)
    assert not listener.heard


@pytest.mark.parametrize("key", ["ledger", "source"])
@pytest.mark.parametrize("how", ["PGHOST", "passfile"])
def test_what_the_error_says_works(
    key: str, how: str, listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = listener.url + ("?table=people" if key == "source" else "")
    made = plan(tmp_path, **{key: address})
    if how == "PGHOST":
        monkeypatch.setenv("PGPASSWORD", SECRET)
        monkeypatch.setenv("PGHOST", FOREIGN)
    else:
        write_passfile(tmp_path, f"{FOREIGN}:*:*:ann:{SECRET}")
    publish(made)  # the server knows no more than this
    assert SECRET.encode() in listener.heard


def test_a_plan_names_neither_files_of_passwords_nor_another_address_of_a_host(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("PGHOST", "db.example")
    port = listener.url.rpartition(":")[2].partition("/")[0]
    for more in (f"hostaddr={FOREIGN}&port={port}", "passfile=/etc/x", "servicefile=x&service=y"):
        made = plan(tmp_path, ledger=f"postgresql://ann@db.example/base?{more}")
        assert f"a plan must not name {more.partition('=')[0]}" in publish(made)
    for host in (f"db.example,{FOREIGN}", f"localhost,{FOREIGN}"):
        made = plan(tmp_path, ledger=f"postgresql://ann@/base?host={host}&port={port},{port}")
        assert f"sent to '{FOREIGN}'" in publish(made)
    assert not listener.heard


def test_nothing_to_send_needs_no_confirmation(listener: Listener, tmp_path: Path) -> None:
    write_passfile(tmp_path, f"db.example:*:*:ann:{SECRET}")
    assert "only the plan names" not in publish(plan(tmp_path, ledger=listener.url))
    assert b"ann" in listener.heard
    assert SECRET.encode() not in listener.heard


def test_the_desk_says_it_too(
    listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(tmp_path, ledger=listener.url)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    me = entered(tmp_path)
    for page in ("/", "/plan/plan.toml/budget", "/plan/plan.toml/price"):
        assert "PGPASSWORD would be sent to" in me.get(page).text
    assert not listener.heard


def test_own_servers_need_no_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("PGHOST", "db.example,other.example")
    for where in (
        "/base",
        "localhost/base",
        "ann@127.0.0.1:5433/base",
        "[::1]/base",
        "/base?host=/run/postgresql",
        "/base?service=mine",
        "ann@db.example/base",
        "ann@DB.example/base",
        "ann@other.example/base",
    ):
        refuse_unconfirmed(f"postgresql://{where}")
    with pytest.raises(PlanError, match="sent to 'third"):
        refuse_unconfirmed("postgresql://third.example/base")
