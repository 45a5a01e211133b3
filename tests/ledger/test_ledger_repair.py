"""Events that are chained correctly and cannot be read: refused, survived, voided by an owner."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from congenial import Budget, Figures, Ledger, total
from congenial.cli import app
from congenial.errors import LedgerError
from congenial.ledger.counted_unit import Unit
from congenial.ledger.state import VALUES
from congenial.ledger.stores.store import Event, Log
from congenial.privacy.descriptions import RecordDescription
from tests.ledger.conftest import Postgres
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, promise, published, spend
from tests.ledger.test_ledger_roles import As, as_user

__all__ = ["as_user"]


def contradiction() -> dict[str, Any]:
    """One figure with two values; twice the same value is one figure."""
    told = COUNTIES.to_dict()
    (figure,) = told["statements"]
    return told | {"statements": [figure, figure | {"values": [5, 7, 8]}]}


LAW = described().to_dict()
OF_UNITS = Figures(SCHEMA, of_units=published((total(), 5))).to_dict()
RECORDS = RecordDescription("records", SCHEMA, {}, epsilon=Fraction(1)).to_dict()
PURE = {"kind": "pure", "epsilon": "1"}
PROMISE = {"tradeoff": PURE, "adjacency": {"metric": "replace-one"}, "basis": "theorem"}
GOOD = {"name": "r", "description": LAW, "guarantee": PROMISE, "plan_digest": ""}


def promising(**wrong: Any) -> dict[str, Any]:
    """A reservation whose promise is wrong in one place."""
    return GOOD | {"guarantee": PROMISE | wrong}


# What can be read and has no price would stop everybody, too.
UNPRICED = ("reserve", "x", GOOD | {"description": LAW | {"units": True}})
HOSTILE: list[tuple[str, str | None, Any]] = [
    ("reserve", "x", {}),
    ("reserve", "x", []),
    ("reserve", "x", 7),
    ("reserve", None, GOOD),
    ("reserve", "", GOOD),
    ("reserve", "x", GOOD | {"name": ["list"]}),
    ("reserve", "x", GOOD | {"plan_digest": None}),
    ("reserve", "x", GOOD | {"guarantee": "strong"}),
    ("reserve", "x", GOOD | {"guarantee": {}}),
    ("reserve", "x", promising(basis=None)),
    ("reserve", "x", promising(tradeoff=3)),
    ("reserve", "x", promising(tradeoff=PURE | {"epsilon": "a lot"})),
    ("reserve", "x", promising(adjacency={"metric": 3})),
    ("reserve", "x", promising(adjacency={"metric": "m", "reading": "tea"})),
    ("reserve", "x", promising(adjacency=[])),
    ("reserve", "x", GOOD | {"description": {}}),
    ("reserve", "x", GOOD | {"description": LAW | {"parameter": {"eps_cell": "0"}}}),
    ("reserve", "x", GOOD | {"description": LAW | {"parameter": {"eps_cell": "1/0"}}}),
    ("reserve", "x", GOOD | {"description": LAW | {"table": ["absent"]}}),
    ("reserve", "x", GOOD | {"description": described(support=COUNTIES).to_dict()}),
    ("reserve", "taken", GOOD),
    ("draw", "absent", {}),
    ("draw", "taken", {}),
    ("commit", "waiting", {"bundle_digest": ""}),
    ("draw", "waiting", []),
    ("commit", "absent", {"bundle_digest": ""}),
    ("commit", "open", {"bundle_digest": 4}),
    ("commit", "open", []),
    ("abandon", "absent", {}),
    ("abandon", "taken", {}),
    ("mandates", None, {}),
    ("mandates", None, {"statements": [{}], "published": True}),
    ("mandates", None, {"statements": 5, "published": True}),
    ("mandates", None, contradiction()),
    ("refund", "taken", {}),
    UNPRICED,
    ("reserve", "x", GOOD | {"description": LAW | {"parameter": {"eps_cell": "1e999999999"}}}),
    ("reserve", "x", promising(adjacency={"metric": VALUES})),
    ("reserve", "x", promising(adjacency={"metric": VALUES, "public": 7})),
    ("mandates", None, OF_UNITS),
    ("propose", None, {}),
    ("propose", None, {"plan_digest": "1", "plan": "", "files": {}}),
]


def forge(ledger: Ledger, kind: str, release: str | None, payload: Any) -> bool:
    """Write an event as it is, past the program's own check; whether the database took it."""
    try:
        with ledger._store.writing() as log:
            log.append(kind, release, payload)
    except (LedgerError, DBAPIError):
        return False
    return True


@pytest.fixture
def team(as_user: As) -> As:
    """A ledger of ann's with releases in each state, on which bob may release and publish."""
    ann = as_user("ann")
    ann.set_budget(Budget(epsilon=100))
    ann.grant("bob", "publisher")
    with ann._store.writing() as log:
        for name, steps in (("waiting", 0), ("open", 1), ("taken", 2)):
            log.append("reserve", name, GOOD | {"name": name})
            for step, said in (("draw", {}), ("commit", {"bundle_digest": ""}))[:steps]:
                log.append(step, name, said)
    return as_user


def without_the_check(team: As) -> None:
    """As in a ledger of before version 3: the database takes any payload."""
    with team("ann")._store._begin(write=True) as connection:
        on = " ON events" if connection.dialect.name == "postgresql" else ""
        connection.exec_driver_sql(f"DROP TRIGGER events_are_well_formed{on}")


def survives(team: As, event: tuple[str, str | None, Any]) -> None:
    """Whatever bob wrote: reading goes on, nothing is spent, and ann can mend it."""
    ann = team("ann")
    before = len(ann.events())
    if not forge(team("bob"), *event):
        assert len(ann.events()) == before
        return
    ann = team("ann")
    (bad,) = [one for one in ann.malformed() if one.counts is None]
    assert (bad.id, bad.who) == (before + 1, "bob")
    assert "cannot be read" in ann.spent_words()
    assert ann.left_words() == "unknown"
    for call in (
        ann.spent,
        lambda: ann.publish(COUNTIES),
        lambda: ann.preview(described()),
        lambda: ann.reserve(described(), promise(ann), "r"),
    ):
        with pytest.raises(LedgerError, match=rf"event {bad.id} .*congenial ledger repair"):
            call()
    with pytest.raises(LedgerError, match="bob"):
        team("bob").repair(bad.id, bad.digest, "mine")
    counted = ann.repair(bad.id, bad.digest[:12], "forged").counts
    if counted == "unknown":
        with pytest.raises(LedgerError, match="nothing more"):
            ann.reserve(described(), promise(ann), "r")
        ann.repair(bad.id, bad.digest, "bob drew nothing", nothing_drawn=True)
    spend(ann, described())
    assert all(one.counts == "nothing" for one in ann.malformed())


@pytest.mark.parametrize(
    "event", [HOSTILE[0], HOSTILE[10], HOSTILE[13], HOSTILE[24], UNPRICED], ids=str
)
def test_a_forged_event_is_refused_or_mended(team: As, event: Any) -> None:
    survives(team, event)


def test_pairs_that_are_not_named_in_text_cannot_be_read(team: As) -> None:
    """Also where the database takes any payload: the program itself refuses them."""
    without_the_check(team)
    survives(team, ("reserve", "x", promising(adjacency={"metric": 3})))


@pytest.mark.audit
@pytest.mark.parametrize("checked", [True, False])
def test_a_releaser_cannot_brick_the_ledger(
    team: As, checked: bool, attempt: Callable[..., None]
) -> None:
    """Every hostile event in turn, on one ledger, with and without the database's own check."""
    attempt("forged events", events=len(HOSTILE))
    if not checked:
        without_the_check(team)
    for n, (kind, release, payload) in enumerate(HOSTILE):
        if kind != "refund":  # kinds that are not known are the owner's
            survives(team, (kind, f"x{n}" if release == "x" else release, payload))
    assert team("ann").spent().epsilon > 0


@pytest.mark.parametrize(
    ("unit", "events"),
    [
        (
            "add-remove",
            [("mandates", COUNTIES.to_dict()), ("reserve", GOOD | {"description": RECORDS})],
        ),
        (
            "several rows",
            [
                ("mandates", OF_UNITS),  # how many rows there are is not told
                ("reserve", GOOD | {"description": RECORDS}),
            ],
        ),
    ],
)
def test_what_has_no_price_is_not_read(tmp_path: Path, unit: Unit, events: Any) -> None:
    """Every total and every command that prices would be refused behind it, for ever."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, adjacency=unit, max_rows=2)
    for n, (kind, payload) in enumerate(events):
        assert forge(ledger, kind, f"x{n}" if kind == "reserve" else None, payload)
        assert len(ledger.malformed()) == n + 1
    for one in ledger.malformed():
        ledger.repair(one.id, one.digest, "forged", nothing_drawn=True)
    assert ledger.spent().epsilon == 0


def test_figures_that_no_dataset_has_together_are_not_read(tmp_path: Path) -> None:
    """One by one they can be had; behind both nothing had a price, and no repair took them."""
    ledger = Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=9))
    ledger.publish(COUNTIES)
    before = spend(ledger, described()) and ledger.spent()
    assert forge(ledger, "mandates", None, published((total("sex"), [12, 11])).to_dict())
    (bad,) = ledger.malformed()
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger.spent()
    ledger.repair(bad.id, bad.digest, "forged", nothing_drawn=True)
    assert ledger.spent() == before


def test_the_database_takes_no_empty_reservation(team: As) -> None:
    assert not forge(team("bob"), "reserve", "x", {})
    assert not forge(team("ann"), "refund", "taken", {})
    assert not forge(team("ann"), "grant", None, {"who": "ann", "role": "reader"})  # no owner left
    assert not forge(team("ann"), "repair", None, {"event": 1, "digest": "", "counts": "nothing"})
    assert not team("ann").malformed()


def test_what_an_old_ledger_holds_is_voided_conservatively(team: As) -> None:
    without_the_check(team)
    bob = team("bob")
    forged: list[tuple[str, str | None, Any]] = [
        ("reserve", "undrawn", {}),
        ("reserve", "drawn", {}),
        ("draw", "drawn", {}),
        ("draw", "waiting", []),
        ("mandates", None, {}),
    ]
    assert all(forge(bob, *event) for event in forged)
    ann = team("ann")
    events: dict[int, Event] = {event.id: event for event in ann.events()}
    counts = {
        (one.kind, one.release): ann.repair(one.id, one.digest, "forged").counts
        for one in ann.malformed()
    }
    assert counts == {
        ("reserve", "undrawn"): "nothing",
        ("reserve", "drawn"): "unknown",
        ("draw", "drawn"): "unknown",
        ("draw", "waiting"): "nothing",  # the release itself is counted as drawn
        ("mandates", None): "unknown",
    }
    status = {entry.id: entry.status for entry in ann.entries()}
    assert status["waiting"] == "drawn"
    assert "is unknown, so this may be too little" in ann.spent_words()
    repairs = [event for event in ann.events() if event.kind == "repair"]
    assert [event.who for event in repairs] == ["ann"] * 5
    assert all(events[event.payload["event"]].digest for event in repairs)


def test_roles_and_finished_work_are_recorded_beside_an_unreadable_event(team: As) -> None:
    without_the_check(team)
    forge(team("bob"), "reserve", "x", {})
    ann = team("ann")
    ann.grant("bob", "none")
    ann._step("open", "commit", {"bundle_digest": "d"})
    ann.abandon("waiting")
    with pytest.raises(LedgerError):
        ann.repair(1, ann.events()[0].digest, "not that one")
    with pytest.raises(LedgerError, match="reason"):
        ann.repair(ann.malformed()[0].id, ann.malformed()[0].digest, " ")


def test_the_program_reads_what_it_is_about_to_write(
    team: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_the_check(team)
    ann = team("ann")
    before = ann.events()
    with pytest.raises(LedgerError, match="not written"), ann._writing("reserve") as (log, _):
        log.append("reserve", "x", {})
    assert ann.events() == before


def test_the_commands_say_what_to_do(team: As) -> None:
    without_the_check(team)
    forge(team("bob"), "reserve", "x", {})
    where = team("ann").where

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["ledger", *words])
        assert result.exit_code == code, result.stderr
        return result.stdout + result.stderr

    for command in ("show", "repair"):
        assert "congenial ledger repair LEDGER" in run(command, where)
    assert len(json.loads(run("export", where))["events"]) == len(team("ann").events())
    assert "taken" not in run("pending", where)
    listed = json.loads(run("repair", where, "--json"))
    (bad,) = listed["unreadable"]
    assert (bad["kind"], bad["counts"], listed["left"]) == ("reserve", None, "unknown")
    if where.startswith("postgresql"):
        words = ("repair", where, str(bad["event"]), bad["digest"][:12], "--because", "forged")
        mended = json.loads(run(*words, "--json"))
        assert mended["unreadable"][0]["counts"] == "nothing"
        assert mended["left"] == "epsilon = 97"


def test_nobody_without_a_role_can_lock_out_writers(
    postgres: Postgres, make_schema: Callable[[], str]
) -> None:
    schema = make_schema()
    user = f"u_{schema}"
    postgres.run(f"CREATE USER {user}", f"GRANT USAGE ON SCHEMA {schema} TO {user}")
    ledger = Ledger.open(postgres.url(schema), SCHEMA, timeout=0.2)
    ledger.grant("postgres", "owner")
    advisory = "SELECT pg_advisory_xact_lock(1129270855, CAST(oid AS integer)) FROM pg_namespace"
    for statement in (
        f"{advisory} WHERE nspname = '{schema}'",
        f"SELECT * FROM {schema}.writers FOR UPDATE",
        f"SELECT * FROM {schema}.writers FOR KEY SHARE",
        f"LOCK TABLE {schema}.writers IN ACCESS SHARE MODE",
        f"LOCK TABLE {schema}.events IN ACCESS SHARE MODE",
    ):
        with psycopg.connect(postgres.url(schema, user)) as raw:
            with suppress(psycopg.errors.InsufficientPrivilege):
                raw.execute(statement)
            spend(ledger, described())
    ledger.grant(user, "reader")
    with psycopg.connect(postgres.url(schema, user)) as raw:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            raw.execute("SELECT * FROM writers FOR UPDATE")
        raw.rollback()
        raw.execute("LOCK TABLE events IN ACCESS SHARE MODE")
        spend(ledger, described())


def test_adding_an_event_does_not_read_the_whole_history(team: As) -> None:
    """The database finds roles and a release's last event by index."""
    ann = team("ann")
    ask = "SELECT kind FROM events WHERE release = 'r' ORDER BY id DESC LIMIT 1"
    explain = "EXPLAIN QUERY PLAN"
    with ann._store._begin(write=True) as connection:
        if connection.dialect.name == "postgresql":
            explain = "EXPLAIN"
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # the table is small
        plans = [
            " ".join(str(row) for row in connection.exec_driver_sql(f"{explain} {one}"))
            for one in (ask, "SELECT * FROM roles")
        ]
    assert "events_of_a_release" in plans[0]
    assert "events_that_grant" in plans[1]


def test_a_log_without_a_check_writes_anything(team: As) -> None:
    """Negative control: what `forge` does is what the program's own check prevents."""
    without_the_check(team)
    ann = team("ann")
    with ann._store.writing() as log:
        assert isinstance(log, Log)
        log.append("reserve", "x", {})
    assert len(ann.malformed()) == 1
