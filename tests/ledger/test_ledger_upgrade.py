"""Ledgers of older versions, in both databases, and their explicit upgrade."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from congenial.errors import LedgerError
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger
from congenial.ledger.migrations import migrate
from congenial.ledger.state import opening
from congenial.ledger.stores.postgres import PostgresStore
from congenial.ledger.stores.sqlite import SqliteStore
from congenial.ledger.stores.store import VERSION, Log, Store
from tests.ledger.ledgers import SCHEMA, described, promise, spend

# As written by the software of version 1, word for word.
VERSION_1 = """
CREATE TABLE events (
\tid INTEGER NOT NULL, \n\tat TEXT NOT NULL, \n\twho TEXT NOT NULL, \n\tkind TEXT NOT NULL, \n\trelease TEXT, \n\
\tpayload TEXT NOT NULL, \n\tprevious TEXT NOT NULL, \n\tdigest TEXT NOT NULL, \n\tPRIMARY KEY (id), \n\
\tUNIQUE (previous), \n\tUNIQUE (digest)
);
CREATE TABLE ledger (
\tversion INTEGER NOT NULL
);
INSERT INTO "ledger" VALUES(1);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events WHEN NEW.id <> (SELECT COALESCE(MAX(id), 0) + 1 FROM events) BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
"""  # noqa: E501


def store_at(place: str) -> Store:
    if place.startswith("postgresql"):
        return PostgresStore(place, 10.0)
    return SqliteStore(Path(place), 10.0)


@pytest.fixture(params=[1, 2, 3, 4])
def version(request: pytest.FixtureRequest) -> int:
    """Each version that was ever published, but the current one."""
    return int(request.param)


@pytest.fixture
def old(place: str, version: int) -> str:
    """A ledger of an old version with a budget and a release that was drawn."""
    store = store_at(place)
    if isinstance(store, SqliteStore):
        with closing(sqlite3.connect(place)) as raw:
            raw.executescript(VERSION_1)
    with store._begin(write=True) as connection:
        if isinstance(store, PostgresStore):
            migrate(connection, 0, 1)
        if version > 1:
            migrate(connection, 1, version)
        log = Log(connection, (), store._writer(connection))
        log.append("open", None, opening(SCHEMA, None, None))
        log.append("budget", None, Budget(epsilon=2).to_dict())
        guarantee = {"promised": "then"}
        payload = {"name": "r", "description": described().to_dict(), "plan_digest": "p"}
        log.append("reserve", "abc", payload | {"guarantee": guarantee})
        log.append("draw", "abc", {})
    return place


def shape(place: str) -> set[tuple[str, ...]]:
    """Tables, views and triggers, as the database has them."""
    store = store_at(place)
    listed = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    if isinstance(store, PostgresStore):
        listed = """
        SELECT 'column', table_name::text, column_name::text, data_type::text, is_nullable::text
          FROM information_schema.columns WHERE table_schema = current_schema()
        UNION SELECT 'trigger', trigger_name, event_manipulation, action_timing, ''
          FROM information_schema.triggers WHERE trigger_schema = current_schema()
        UNION SELECT 'constraint', conname, contype::text, '', '' FROM pg_constraint
          WHERE connamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
        UNION SELECT 'function', proname, prosrc, prosecdef::text, '' FROM pg_proc
          WHERE pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
        """
    with store._begin(write=False) as connection:
        return {tuple(row) for row in connection.exec_driver_sql(listed)}


@pytest.mark.parametrize("version", [1], indirect=True)
def test_version_1_is_refused_untouched_and_told_how_to_upgrade(old: str) -> None:
    before = store_at(old).read()
    with pytest.raises(LedgerError, match=r"version 1.*congenial ledger upgrade"):
        Ledger.open(old, SCHEMA)
    assert store_at(old).read() == before


@pytest.mark.parametrize("version", [2], indirect=True)
def test_version_2_is_used_as_it_is(old: str) -> None:
    was = shape(old)
    ledger = Ledger.open(old, SCHEMA)
    assert (ledger.version, ledger.spent().epsilon) == (2, 1)
    spend(ledger, described())
    with ledger._store.writing() as log:
        log.append("reserve", "x", {})  # its database takes anything, which an owner can void
    (bad,) = ledger.malformed()
    assert ledger.repair(bad.id, bad.digest, "a test").counts == "nothing"
    assert ledger.spent().epsilon == 2
    assert shape(old) == was
    Ledger.upgrade(old)
    again = Ledger.open(old)
    assert (again.version, again.spent().epsilon, len(again.malformed())) == (VERSION, 2, 1)


def test_upgrade_keeps_history_and_spending(old: str, version: int) -> None:
    before = store_at(old).read()
    done = Ledger.upgrade(old)
    assert (done.before, done.after) == (version, VERSION)
    ledger = Ledger.open(old, SCHEMA, budget=Budget(epsilon=2))
    assert ledger.events()[:-1] == before
    assert ledger.events()[-1].kind == "upgrade"
    assert ledger.spent().epsilon == 1
    assert [entry.status for entry in ledger.pending()] == ["drawn"]
    spend(ledger, described())
    assert ledger.spent().epsilon == 2
    ledger.grant("postgres" if "postgresql" in old else "ann", "owner")
    again = Ledger.upgrade(old)
    assert (again.before, again.after, again.backup) == (VERSION, VERSION, "")


def test_an_upgraded_ledger_has_the_tables_of_a_new_one(
    old: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    new = str(tmp_path / "new.sqlite")
    if old.startswith("postgresql"):
        new = request.getfixturevalue("postgres").url(request.getfixturevalue("make_schema")())
    Ledger.open(new, SCHEMA)
    assert shape(old) != shape(new)
    Ledger.upgrade(old)
    assert shape(old) == shape(new)


def test_a_failed_upgrade_changes_nothing(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    was, before = shape(old), store_at(old).read()

    def fail(*_: object) -> None:
        raise sa.exc.DBAPIError("INSERT", {}, ValueError())

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", fail)
        with pytest.raises(LedgerError):
            Ledger.upgrade(old)
    assert shape(old) == was
    assert store_at(old).read() == before
    Ledger.upgrade(old)
    assert Ledger.open(old).spent().epsilon == 1


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_file_is_copied_before_it_is_changed(old: str, version: int) -> None:
    whole = store_at(old).read()
    backup = Ledger.upgrade(old).backup
    assert Path(backup).parent == Path(old).parent
    assert store_at(backup).read() == whole
    assert Ledger.exists(backup)
    assert Ledger.upgrade(backup).before == version  # the copy is a ledger like any other
    assert Ledger.open(backup).spent().epsilon == 1


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_damaged_ledger_is_not_upgraded(old: str) -> None:
    with closing(sqlite3.connect(old)) as raw:
        raw.execute("DROP TRIGGER events_are_not_changed")
        raw.execute("UPDATE events SET who = 'x' WHERE id = 2")
        raw.commit()
    with pytest.raises(LedgerError, match="altered at event 2"):
        Ledger.upgrade(old)
    assert [one.name for one in Path(old).parent.iterdir()] == ["ledger.sqlite"]


def test_there_must_be_something_to_upgrade(place: str) -> None:
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.upgrade(place)
    assert not Ledger.exists(place)


def test_a_newer_ledger_is_left_alone(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA)
    with ledger._store._begin(write=True) as connection:
        connection.exec_driver_sql(f"UPDATE ledger SET version = {VERSION + 1}")
    for call in (Ledger.open, Ledger.upgrade):
        with pytest.raises(LedgerError, match="Upgrade congenial"):
            call(place)
    assert promise(ledger)
