"""Who may do what, checked by the program and by the databases themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy.exc import DBAPIError

from congenial.errors import LedgerError
from congenial.ledger.budget import Budget
from congenial.ledger.ledger import Ledger
from congenial.ledger.roles import ROLES, allowed, role_of
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, promise, spend

ODD = """o'neil "x" %s :y"""  # a name that must be quoted everywhere
PLAN = "7" * 64  # a digest
As = Callable[[str], Ledger]


@pytest.fixture
def as_user(place: str, request: pytest.FixtureRequest) -> As:
    """Open one ledger as different users; the first is ann, who starts it."""
    if not place.startswith("postgresql"):

        def by_name(who: str) -> Ledger:
            return Ledger.open(place, SCHEMA, who=who)

        by_name("ann")
        return by_name
    postgres = request.getfixturevalue("postgres")
    schema = place.partition("search_path%3D")[2]
    users = postgres.run("SELECT rolname FROM pg_roles")
    for user in ("ann", "bob", ODD):
        if (user,) not in users:
            quoted = user.replace('"', '""')
            postgres.run(f'CREATE USER "{quoted}"')
    postgres.run(f"ALTER SCHEMA {schema} OWNER TO ann")

    def by_login(who: str) -> Ledger:
        return Ledger.open(postgres.url(schema, who), SCHEMA)

    by_login("ann")
    return by_login


def attempts(ledger: Ledger) -> dict[str, bool]:
    """What the ledger lets its user do; the ledger was prepared to refuse nothing else."""

    def may(deed: Callable[[], object]) -> bool:
        try:
            deed()
        except LedgerError:
            return False
        return True

    return {
        "read": may(ledger.spent),
        "release": may(lambda: spend(ledger, described())),
        "publish": may(lambda: ledger.publish(COUNTIES, accept_weaker=True)),
        "budget": may(lambda: ledger.set_budget(Budget(epsilon=100))),
        "unit": may(lambda: ledger.change_unit("several rows", 2, accept_weaker=True)),
        "grant": may(lambda: ledger.grant(ODD, "reader")),
        "review": may(lambda: ledger.review(PLAN, "approve")),
        "require": may(ledger.require_approval),
    }


MAY = {
    "reader": {"read"},
    "reviewer": {"read", "review"},
    "releaser": {"read", "release"},
    "publisher": {"read", "release", "publish"},
    "owner": {"read", "review", "release", "publish", "budget", "unit", "grant", "require"},
}


@pytest.mark.parametrize("role", MAY)
def test_each_role_may_what_it_says(as_user: As, role: str) -> None:
    as_user("ann").grant("bob", role)
    as_user("ann").propose(PLAN)
    found = attempts(as_user("bob"))
    assert {deed for deed, done in found.items() if done} == MAY[role]
    assert as_user("ann").roles["bob"] == role


def test_the_first_grant_makes_an_owner_and_shuts_out_the_others(as_user: As) -> None:
    ann = as_user("ann")
    assert ann.roles == {}
    spend(ann, described())
    ann.grant(ODD, "releaser")
    assert ann.roles == {"ann": "owner", ODD: "releaser"}
    last = ann.events()[-1]
    assert (last.kind, last.who, last.payload) == ("grant", "ann", {"who": ODD, "role": "releaser"})
    spend(as_user(ODD), described())
    assert {entry.who for entry in ann.entries()} == {"ann", ODD}
    before = ann.events()
    ann.grant(ODD, "releaser")  # the same again is not news
    assert ann.events() == before


def test_a_refusal_names_role_and_remedy(as_user: As) -> None:
    as_user("ann").grant("bob", "releaser")
    before = as_user("ann").events()
    with pytest.raises(LedgerError, match=r"'bob' is a releaser.*role publisher.*'ann'.*grant"):
        as_user("bob").publish(COUNTIES)
    assert as_user("ann").events() == before


def test_a_role_is_taken_back_between_reserve_and_draw(as_user: As) -> None:
    ann = as_user("ann")
    ann.grant("bob", "releaser")
    bob = as_user("bob")
    reservation = bob.reserve(described(), promise(bob), "r")
    ann.grant("bob", "none")
    with pytest.raises(LedgerError):
        reservation.mark_drawn()
    assert ann.spent().epsilon == 1  # still counted
    ann.abandon(reservation.id)
    assert ann.spent().epsilon == 0


def test_the_last_owner_stays_and_roles_are_known_words(as_user: As) -> None:
    ann = as_user("ann")
    for who, role, words in (
        ("ann", "reader", "only owner"),
        ("bob", "king", "not a role"),
        (" ", "reader", "named user"),
        ("b\0b", "reader", "named user"),
    ):
        with pytest.raises(LedgerError, match=words):
            ann.grant(who, role)
    assert ann.roles == {}
    ann.grant("bob", "owner")
    ann.grant("ann", "reader")
    with pytest.raises(LedgerError):
        ann.grant("ann", "owner")
    as_user("bob").grant("ann", "owner")
    assert as_user("bob").roles == {"ann": "owner", "bob": "owner"}


def test_everybody_is_an_owner_before_the_first_grant() -> None:
    assert role_of({}, "anybody") == "owner"
    assert role_of({"ann": "owner"}, "anybody") == "none"


class Undo(Exception):
    """Ends a transaction without a trace."""


RESERVE = {"name": "r", "description": {}, "guarantee": {}, "plan_digest": ""}
BUDGET: dict[str, object] = {"epsilon": "9", "delta": None, "rho": None}
WELL_FORMED: dict[str, dict[str, object]] = {
    "reserve": RESERVE,
    "draw": {},
    "commit": {"bundle_digest": ""},
    "abandon": {},
    "mandates": {"statements": []},
    "budget": BUDGET,
    "unit": {"kind": "several rows", "max_rows": 2},
    "grant": {"who": "bob", "role": "owner"},
    "repair": {"event": 1, "counts": "nothing", "because": "a test"},
    "require": {"approval": True},
    "propose": {"plan_digest": "8" * 64, "plan": "", "files": {}},
    "approve": {"plan_digest": PLAN, "because": ""},
    "refuse": {"plan_digest": PLAN, "because": "no"},
    "withdraw": {"plan_digest": PLAN, "because": ""},
}
BEFORE = {
    "draw": ["reserve"],
    "commit": ["reserve", "draw"],
    "abandon": ["reserve"],
    "withdraw": ["approve"],
}


def database_allows(ledger: Ledger, role: str, who: str, kind: str) -> bool:
    """Whether the database takes such an event from bob, once his role is this; then undo all."""
    passed = True
    with suppress(Undo), ledger._store.writing() as log:
        for step in BEFORE.get(kind, []):
            log.append(step, "r", WELL_FORMED[step])
        if role != "owner":
            log.append("grant", None, {"who": "bob", "role": role})
        log.who = who
        try:
            log.append(kind, "r", WELL_FORMED[kind] | {"digest": log.events[0].digest})
        except DBAPIError:
            passed = False
        raise Undo
    return passed


@pytest.mark.parametrize("role", ROLES)
def test_the_database_agrees_with_the_program(as_user: As, role: str) -> None:
    """The rule is written twice, in Python for its words and in SQL for its force."""
    as_user("ann").grant("bob", "owner")
    as_user("ann").propose(PLAN)
    bob = as_user("bob")
    roles = {"ann": "owner", "bob": role}
    for kind in WELL_FORMED:
        assert database_allows(bob, role, "bob", kind) == allowed(roles, "bob", kind)
    # In PostgreSQL nobody writes in another's name; a file cannot tell.
    in_a_file = not bob.where.startswith("postgresql")
    assert database_allows(bob, role, "ann", "reserve") == in_a_file
    assert [event.kind for event in bob.events()] == ["open", "grant", "grant", "propose"]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_in_a_file_roles_guard_against_accidents_only(as_user: As, place: str) -> None:
    """What the documentation says, held: the owner of the file can put the check aside."""
    as_user("ann").grant("bob", "reader")
    with closing(sqlite3.connect(Path(place))) as raw:
        raw.execute("DROP TRIGGER events_are_allowed")
        raw.commit()
    with as_user("bob")._store.writing() as log:
        log.append("budget", None, Budget(epsilon=9).to_dict())
    assert as_user("ann").budget == Budget(epsilon=9)
