from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from congenial import Budget, CongenialError, Guarantee, Ledger, ReplaceOne
from congenial.errors import LedgerError
from congenial.ledger.stores import store as store_module
from congenial.ledger.stores.sqlite import SqliteStore
from congenial.privacy.composition import Loss
from tests.ledger.ledgers import SCHEMA, described, spend


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.open(path, SCHEMA, budget=Budget(epsilon=2))


def test_a_ledger_is_one_file(path: Path, ledger: Ledger) -> None:
    assert Ledger.open(f"sqlite:///{path}", SCHEMA).events() == ledger.events()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert ledger.where == str(path)


def test_writer_is_named(path: Path) -> None:
    ledger = Ledger.open(path, SCHEMA, who="curator")
    spend(ledger, described())
    assert {event.who for event in ledger.events()} == {"curator"}


def test_unknown_user_is_called_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert Ledger.open(path, SCHEMA).events()[0].who == "unknown"


# ---- history and faults -------------------------------------------------------------------------


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        for (name,) in raw.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
        raw.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET who = 'somebody else' WHERE id = 1",
        "UPDATE events SET payload = replace(payload, '1/2', '1/200') WHERE kind = 'reserve'",
        "UPDATE events SET at = '1999-01-01T00:00:00+00:00' WHERE id = 3",
        "UPDATE events SET kind = 'abandon' WHERE kind = 'commit'",
        "DELETE FROM events WHERE kind = 'draw'",
        "DELETE FROM events WHERE id = 1",
    ],
)
def test_altered_history_is_noticed(path: Path, ledger: Ledger, statement: str) -> None:
    spend(ledger, described())
    tamper(path)
    assert Ledger.open(path).spent().epsilon == 1  # without the triggers, untouched: still fine
    tamper(path, statement)
    with pytest.raises(LedgerError, match=r"altered at event \d+"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="altered"):
        ledger.reserve(described(), Guarantee.pure(1, under=ReplaceOne(SCHEMA)), "r")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET who = 'x'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events "
        "SELECT id, at, 'x', kind, release, payload, previous, digest FROM events WHERE id = 1",
        "INSERT INTO events "
        "SELECT 99, at, who, kind, release, payload, 'x', 'y' FROM events LIMIT 1",
    ],
)
def test_events_are_append_only(path: Path, ledger: Ledger, statement: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        with pytest.raises(sqlite3.IntegrityError, match=r"append-only|malformed"):
            raw.execute(statement)
        raw.commit()
    assert len(Ledger.open(path).events()) == 2


def test_a_clock_going_backwards_is_harmless(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        years = iter((2040, 2039, 2001))

        @classmethod
        def now(cls, zone):
            return store_module_datetime(next(cls.years), 1, 1, tzinfo=zone)

    store_module_datetime = store_module.datetime
    monkeypatch.setattr(store_module, "datetime", Clock)
    spend(ledger, described())
    assert [event.id for event in ledger.events()] == [1, 2, 3, 4, 5]
    assert ledger.entries()[0].status == "committed"


def refused(where: object, *args, **kwargs) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(where, *args, **kwargs)
    error = caught.value
    assert error.remedy
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert "sqlalche" not in str(error).lower()
    return error


def test_files_that_are_not_ledgers(tmp_path: Path) -> None:
    garbage, empty, other = tmp_path / "garbage", tmp_path / "empty", tmp_path / "other.sqlite"
    garbage.write_bytes(b"not a database at all, but long enough to be read as one." * 50)
    empty.touch()
    with closing(sqlite3.connect(other)) as raw:
        raw.execute("CREATE TABLE events (id INTEGER)")
        raw.execute("CREATE TABLE ledger (name TEXT)")
        raw.commit()
    contents = other.read_bytes()
    assert "not a ledger" in str(refused(garbage, SCHEMA))
    assert "empty file" in str(refused(empty, SCHEMA))  # a truncated ledger must not start afresh
    assert "not a ledger" in str(refused(other, SCHEMA))
    assert other.read_bytes() == contents
    refused(tmp_path, SCHEMA)


def test_truncated_ledger(path: Path, ledger: Ledger) -> None:
    for _ in range(2):
        spend(ledger, described())
    whole = path.read_bytes()
    for keep in (50, 100, 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 10):
        path.write_bytes(whole[:keep])
        refused(path, SCHEMA)
    path.write_bytes(whole)
    assert Ledger.open(path).spent().epsilon == 2


def test_places_that_cannot_be_reached(tmp_path: Path) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("x")
    for where in (a_file / "ledger.sqlite", tmp_path / "absent" / "ledger.sqlite"):
        assert "cannot be reached" in str(refused(where, SCHEMA))
    assert "no ledger" in str(refused(tmp_path / "ledger.sqlite"))
    assert "no ledger" in str(refused(tmp_path / "ledger.sqlite", SCHEMA, create=False))
    assert "SQLite file" in str(refused(":memory:", SCHEMA))
    assert "SQLite file" in str(refused("mysql://user:secret@host/base", SCHEMA))
    assert "secret" not in str(refused("mysql://user:secret@host/base", SCHEMA))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_ledger_that_vanishes_is_not_started_afresh(path: Path, ledger: Ledger) -> None:
    path.unlink()
    with pytest.raises(LedgerError, match="cannot be reached"):
        ledger.set_budget(Budget(epsilon=9))
    assert not path.exists()


def test_other_formats_are_left_alone(path: Path, ledger: Ledger) -> None:
    tamper(path, f"UPDATE ledger SET format = {store_module.FORMAT + 1}")
    assert "the version that wrote it" in str(refused(path))
    tamper(path, "ALTER TABLE ledger RENAME COLUMN format TO version")
    assert "before the first publication" in str(refused(path))


def test_unknown_events_are_not_skipped(path: Path, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="refused"), ledger._store.writing() as log:
        log.append("refund", "r", {})
    tamper(path)  # drops the triggers
    with ledger._store.writing() as log:
        log.append("refund", "r", {})
    with pytest.raises(LedgerError, match=r"event 3 \('refund'\).*ledger repair"):
        Ledger.open(path).spent()


def test_locked_ledger(path: Path, ledger: Ledger) -> None:
    impatient = Ledger.open(path, timeout=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN EXCLUSIVE")
        for call in (impatient.spent, lambda: impatient.set_budget(Budget(epsilon=9))):
            with pytest.raises(
                LedgerError, match=r"locked by another process for more than 0.05 s"
            ):
                call()
        raw.execute("ROLLBACK")
    assert impatient.budget == Budget(epsilon=2)


def test_what_is_reserved_waits_longer(path: Path, ledger: Ledger) -> None:
    """A draw, and a bundle that is out, are recorded although others write for long."""
    impatient = Ledger.open(path, timeout=0.1)
    promise = Guarantee.pure(1, under=ReplaceOne(SCHEMA))
    reservation = impatient.reserve(described(), promise, "r")
    for step in (reservation.mark_drawn, lambda: reservation.commit("0" * 64)):
        raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        with closing(raw):
            raw.execute("BEGIN EXCLUSIVE")
            with pytest.raises(LedgerError, match="locked by another process"):
                impatient.set_budget(Budget(epsilon=9))
            ending = threading.Timer(0.2, raw.execute, ["ROLLBACK"])
            ending.start()
            step()
            ending.join()
    assert [entry.status for entry in ledger.entries()] == ["committed"]
    assert impatient._store.timeout == 0.1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("SQLITE_FULL", "disk"),
        ("SQLITE_READONLY_DBMOVED", "may not be written"),
        ("SQLITE_IOERR_FSYNC", "failed"),
        ("SQLITE_BUSY_SNAPSHOT", "locked"),
        ("SQLITE_CORRUPT", "damaged"),
    ],
)
def test_faults_of_the_disk_are_told_with_a_remedy(path: Path, code: str, words: str) -> None:
    error = SqliteStore(path, 10.0)._fault(code)
    assert words in str(error)
    assert error.remedy


def test_disk_full_loses_nothing(path: Path, ledger: Ledger, monkeypatch) -> None:
    """A page limit makes SQLite itself report a full disk in the middle of a write."""
    spend(ledger, described())
    connect = type(ledger._store)._connect

    def small(self):
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 1")  # not below what is there already
        return connection

    before = ledger.events()
    with monkeypatch.context() as patch:
        patch.setattr(type(ledger._store), "_connect", small)
        full = Ledger.open(path)
        with pytest.raises(LedgerError, match="full"):
            full.grant("x" * 9000, "owner")
    assert Ledger.open(path).events() == before


def test_no_error_of_the_database_escapes_as_something_else(path: Path, ledger: Ledger) -> None:
    tamper(path, "DROP TABLE events")
    for call in (ledger.spent, lambda: ledger.set_budget(Budget(epsilon=1))):
        with pytest.raises(CongenialError):
            call()


def test_two_open_ledgers_see_each_other_and_a_restored_copy(path: Path, ledger: Ledger) -> None:
    other = Ledger.open(path)
    spend(ledger, described(), "mine")
    copy = path.read_bytes()
    spend(other, described(), "theirs")
    assert [entry.name for entry in ledger.entries()] == ["mine", "theirs"]
    assert ledger.spent() == other.spent() == Loss(epsilon=Fraction(2))
    path.write_bytes(copy)  # an older copy comes back: what it says counts, not what is remembered
    assert [entry.name for entry in ledger.entries()] == ["mine"]
    spend(ledger, described(), "instead")
    assert [entry.name for entry in other.entries()] == ["mine", "instead"]
