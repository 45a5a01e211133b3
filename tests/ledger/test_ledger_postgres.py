"""A ledger on a real PostgreSQL server: faults, secrets, privileges, and what a crash leaves."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import psycopg
import pytest

from congenial.errors import BudgetError, LedgerError
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger, append_reserve
from congenial.ledger.stores import postgres as postgres_module
from congenial.ledger.stores.store import Log
from tests.ledger.conftest import Postgres
from tests.ledger.ledgers import SCHEMA, described, promise, spend

PASSWORD = "hush-hush"


@pytest.fixture
def schema(make_schema: Callable[[], str]) -> str:
    return make_schema()


@pytest.fixture
def url(postgres: Postgres, schema: str) -> str:
    return postgres.url(schema)


@pytest.fixture
def ledger(url: str) -> Ledger:
    return Ledger.open(url, SCHEMA, budget=Budget(epsilon=2))


def refused(call: Callable[[], object]) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        call()
    error = caught.value
    assert error.remedy
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    for word in ("psycopg", "sqlalche", PASSWORD, "sesame"):
        assert word not in str(error).lower()
    return error


# ---- places, passwords, servers that are not there --------------------------------------------


def test_the_writer_is_the_database_user_and_cannot_be_another(url: str, ledger: Ledger) -> None:
    spend(ledger, described())
    assert {event.who for event in ledger.events()} == {"postgres"}
    assert "the database user writes" in str(refused(lambda: Ledger.open(url, who="ann")))


def test_schemas_hold_separate_ledgers(postgres: Postgres, make_schema: Callable[[], str]) -> None:
    one, two = (Ledger.open(postgres.url(make_schema()), SCHEMA) for _ in range(2))
    spend(one, described())
    assert (one.spent().epsilon, two.spent().epsilon) == (1, 0)
    assert one.where != two.where


def test_other_tables_are_not_taken_for_a_ledger(postgres: Postgres, schema: str, url: str) -> None:
    postgres.run(f"CREATE TABLE {schema}.events (id integer)")
    assert "not a ledger" in str(refused(lambda: Ledger.open(url, SCHEMA)))
    columns = f"SELECT count(*) FROM information_schema.columns WHERE table_schema = '{schema}'"
    assert postgres.run(columns) == [(1,)]


def test_a_login_works_and_its_password_is_nowhere(
    postgres: Postgres, schema: str, url: str
) -> None:
    postgres.run(f"GRANT ALL ON SCHEMA {schema} TO locked")
    for secret in ("locked:open%20sesame@", "locked@"):
        where = url.replace("postgres@", secret, 1)
        where += "" if ":" in secret else "&password=open%20sesame"
        ledger = Ledger.open(where, SCHEMA, budget=Budget(epsilon=2))
        spend(ledger, described(), secret.partition("@")[2] or "r")
        told = repr(ledger.events()) + ledger.where + repr(ledger._store._engine)
        assert "sesame" not in told
        error = refused(lambda where=where: Ledger.open(where, SCHEMA, budget=Budget(epsilon=3)))
        assert "locked@" in str(error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"postgres@": f"locked:{PASSWORD}@"}, "refused the login"),
        ({"postgres@": "locked@"}, "refused the login"),
        ({"postgres@": f"stranger:{PASSWORD}@"}, "no such database or user"),
        ({"@/postgres": f":{PASSWORD}@/absent"}, "no such database or user"),
        ({"&options": f"&password={PASSWORD}&colour=red&options"}, "parameter"),
        ({"postgres@": f"postgres:{PASSWORD}@", "?host=": "?host=/absent"}, "cannot be reached"),
    ],
)
def test_logins_and_servers_that_fail(
    url: str, change: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    for old, new in change.items():
        url = url.replace(old, new, 1)
    for call in (lambda: Ledger.open(url, SCHEMA), lambda: Ledger.exists(url)):
        assert words in str(refused(call))


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{PASSWORD}@x@host/base",
        f"postgresql://user:x@{PASSWORD}@host/base",
        f"postgresql://user:x@host:{PASSWORD}/base",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    assert "cannot be read" in str(refused(lambda: Ledger.open(url, SCHEMA)))


def test_a_schema_that_is_not_there(postgres: Postgres) -> None:
    url = postgres.url("nowhere")
    assert "not there" in str(refused(lambda: Ledger.open(url, SCHEMA)))


def test_without_the_driver_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"pip install 'congenial\[postgres\]'"):
        Ledger.open("postgresql://user@host/base", SCHEMA)


@pytest.mark.parametrize(("code", "words"), [("53100", "room"), ("57014", "interrupted")])
def test_other_faults_have_their_words(code: str, words: str) -> None:
    faults = postgres_module.PostgresStore.FAULTS.items()
    (found,) = (what for prefix, (what, _) in faults if code.startswith(prefix))
    assert words in found


# ---- append-only -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET who = 'x'",
        "DELETE FROM events",
        "TRUNCATE events",
        "INSERT INTO events "
        "SELECT 99, at, who, kind, release, payload, 'x', 'y' FROM events LIMIT 1",
        "INSERT INTO events SELECT * FROM events WHERE id = 1 "
        "ON CONFLICT (id) DO UPDATE SET who = 'x'",
    ],
)
def test_events_are_append_only(url: str, ledger: Ledger, statement: str) -> None:
    before = ledger.events()
    with psycopg.connect(url) as raw, pytest.raises(psycopg.Error, match="append-only"):
        raw.execute(statement)
    assert ledger.events() == before


def test_a_change_by_the_administrator_is_noticed(
    postgres: Postgres, schema: str, ledger: Ledger
) -> None:
    postgres.run(
        f"ALTER TABLE {schema}.events DISABLE TRIGGER ALL",
        f"UPDATE {schema}.events SET who = 'x' WHERE id = 2",
    )
    assert "altered at event 2" in str(refused(ledger.spent))


def test_users_have_no_more_privileges_than_their_role(
    postgres: Postgres, schema: str, ledger: Ledger
) -> None:
    user = f"u_{schema}"
    postgres.run(f"CREATE USER {user}")
    theirs = postgres.url(schema, user)
    assert "not for this user" in str(refused(lambda: Ledger.open(theirs)))
    assert "no user of that name" in str(refused(lambda: ledger.grant("public", "owner")))
    assert ledger.roles == {}
    for role, privileges in (
        ("releaser", {("events", "INSERT"), ("events", "SELECT")}),
        ("reviewer", {("events", "INSERT"), ("events", "SELECT")}),
        ("reader", {("events", "SELECT")}),
        ("owner", {("events", "INSERT"), ("events", "SELECT")}),
        ("none", set()),
    ):
        ledger.grant(user, role)
        found = postgres.run(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants "
            f"WHERE grantee = '{user}' AND table_schema = '{schema}'"
        )
        read = ("ledger", "roles", "reviews", "verdicts")
        also = {(one, "SELECT") for one in read} if privileges else set()
        if ("events", "INSERT") in privileges:  # whoever writes may lock out other writers
            also |= {("writers", "SELECT"), ("writers", "UPDATE")}
        assert set(found) == privileges | also
    assert "does not allow" in str(refused(lambda: Ledger.open(theirs)))


def test_a_temporary_table_does_not_stand_in_for_the_roles(
    postgres: Postgres, schema: str, ledger: Ledger
) -> None:
    user = f"u_{schema}"
    postgres.run(f"CREATE USER {user}")
    ledger.grant(user, "releaser")
    row = "7, 'now', current_user, 'budget', NULL, '{}', 'p', 'd'"
    with psycopg.connect(postgres.url(schema, user)) as raw:
        raw.execute("CREATE TEMPORARY TABLE roles AS SELECT current_user AS who, 'owner' AS role")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="role"):
            raw.execute(f"INSERT INTO {schema}.events VALUES ({row})")


# ---- locks, lost connections, restarts -----------------------------------------------------------


def test_a_locked_ledger(url: str, ledger: Ledger) -> None:
    impatient = Ledger.open(url, timeout=0.1)
    with ledger._store.writing():
        assert impatient.spent().epsilon == 0  # readers do not wait
        error = refused(lambda: impatient.set_budget(Budget(epsilon=9)))
    assert "locked by another process for more than 0.1 s" in str(error)
    impatient.set_budget(Budget(epsilon=9))


def test_writes_reach_the_disk_whatever_the_default(
    postgres: Postgres, schema: str, ledger: Ledger
) -> None:
    url = postgres.url(schema) + "%20-csynchronous_commit%3Doff"
    with Ledger.open(url)._store.writing() as log:
        told = log._connection.exec_driver_sql("SHOW synchronous_commit").scalar()
    assert told == "on"


def end_backend(postgres: Postgres, log: Log) -> None:
    pid = log._connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
    postgres.run(f"SELECT pg_terminate_backend({pid}, 5000)")


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", ["reserve", "draw"])
def test_a_connection_lost_between_statements(
    postgres: Postgres,
    url: str,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    moment: str,
) -> None:
    """Before the event is written, or after it and before the commit."""
    append = Log.append

    def lose(log: Log, kind: str, *told: object) -> None:
        if kind == step and moment == "before":
            end_backend(postgres, log)
        append(log, kind, *told)  # type: ignore[arg-type]
        if kind == step and moment == "after":
            end_backend(postgres, log)

    drawn = []

    def release() -> None:
        with ledger.reserve(described(), promise(ledger), "r") as reservation:
            reservation.mark_drawn()
            drawn.append("noise")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "append", lose)
        assert "was lost" in str(refused(release))
    assert not drawn
    # The lock went with the connection; a reservation whose draw is in doubt stays counted.
    expected = [] if step == "reserve" else ["reserved"]
    assert [entry.status for entry in ledger.pending()] == expected
    spend(Ledger.open(url, timeout=1), described())
    assert ledger.spent().epsilon == 1 + len(expected)


def test_an_answer_lost_after_the_commit_is_counted(
    postgres: Postgres, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has it and the client does not know: it counts, and nothing is drawn."""
    reservation = ledger.reserve(described(), promise(ledger), "r")
    commit = psycopg.Connection.commit

    def commit_and_lose(connection: psycopg.Connection) -> None:
        commit(connection)
        connection.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Connection, "commit", commit_and_lose)
        assert "may be recorded or not" in str(refused(reservation.mark_drawn))
    assert [entry.status for entry in ledger.pending()] == ["drawn"]
    assert ledger.spent().epsilon == 1


def test_a_server_that_crashes_and_comes_back(postgres: Postgres, ledger: Ledger) -> None:
    reservation = ledger.reserve(described(), promise(ledger), "r")
    reservation.mark_drawn()
    before = ledger.events()
    process = postgres.server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)  # immediate: no clean shutdown, recovery on the next start
    process.wait(20)
    try:
        assert "cannot be reached" in str(refused(ledger.spent))
        assert "cannot be reached" in str(refused(lambda: reservation.commit("d")))
    finally:
        postgres.server.ensure_postgres_running()
    assert ledger.events() == before
    reservation.commit("d")
    spend(ledger, described())
    with pytest.raises(BudgetError):
        ledger.reserve(described(), promise(ledger), "beyond")


def test_a_writer_who_passes_the_lock_by_cannot_fork_the_history(
    url: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted defect: without the lock the chain itself still refuses the second of two."""
    monkeypatch.setattr(postgres_module, "_TAKE_LOCK", "SELECT 1")
    ledger.set_budget(Budget(epsilon=1))

    def slip_in() -> None:
        with ledger._writing("reserve") as (log, _):
            spend(Ledger.open(url), described(), "first")
            append_reserve(log, described(), promise(ledger), "second", "")

    assert "refused a change" in str(refused(slip_in))
    assert [entry.name for entry in ledger.entries()] == ["first"]
    assert ledger.spent().epsilon == 1
