"""Approval of plans in the ledger: who may say what, when it counts, and past the program."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest
from sqlalchemy.exc import DBAPIError

from congenial.errors import LedgerError
from congenial.ledger.ledger import Ledger
from tests.ledger.ledgers import COUNTIES, described, promise
from tests.ledger.test_ledger_roles import ODD, As, Undo, as_user

__all__ = ["as_user"]  # a fixture

PLAN, OTHER = "1" * 64, "2" * 64


@pytest.fixture
def team(as_user: As) -> As:
    """ann owns and requires approval, bob releases, and a person with an odd name reviews."""
    ann = as_user("ann")
    ann.grant("bob", "publisher")
    ann.grant(ODD, "reviewer")
    ann.require_approval()
    as_user("bob").propose(PLAN, "a plan", {"levels.csv": "0" * 64})
    return as_user


def release(ledger: Ledger, plan: str = PLAN) -> str:
    with ledger.reserve(described(), promise(ledger), "r", plan) as reservation:
        reservation.mark_drawn()
        reservation.commit("d" * 64)
    return reservation.id


def test_only_an_approved_plan_is_published_and_released(team: As) -> None:
    bob, reviewer = team("bob"), team(ODD)
    for deed in (
        lambda: bob.publish(COUNTIES, plan_digest=PLAN),
        lambda: release(bob),
        lambda: bob.refuse_unapproved(PLAN),
    ):
        with pytest.raises(LedgerError, match="requires that somebody else approves"):
            deed()
    assert bob.spent().epsilon == 0
    reviewer.review(PLAN, "approve")
    assert bob.approvals.plan(PLAN).standing == "approved"
    bob.publish(COUNTIES, plan_digest=PLAN)
    release(bob)
    for other in (OTHER, ""):  # an approval is of one plan
        with pytest.raises(LedgerError, match="nobody did"):
            release(bob, other)


def test_nobody_approves_a_plan_of_their_own(team: As) -> None:
    ann = team("ann")
    ann.propose(OTHER)
    with pytest.raises(LedgerError, match="'ann' proposed this plan"):
        ann.review(OTHER, "approve")
    with pytest.raises(LedgerError, match=r"'bob' is a publisher.*role reviewer"):
        team("bob").review(PLAN, "approve")
    ann.review(PLAN, "approve")  # an owner reviews what others propose
    with pytest.raises(LedgerError, match="only 'ann' approved it, who releases it"):
        release(team("ann"))
    ann.propose(PLAN)  # from here on it is hers, too
    with pytest.raises(LedgerError, match="nobody did"):
        release(team("bob"))


def test_a_plan_is_proposed_before_it_is_approved(team: As) -> None:
    with pytest.raises(LedgerError, match="was not proposed"):
        team(ODD).review(OTHER, "approve")
    with pytest.raises(LedgerError, match="role releaser"):  # beside the releaser, not above
        team(ODD).propose(OTHER)


def test_a_refusal_stands_until_it_is_withdrawn(team: As) -> None:
    ann, odd, bob = team("ann"), team(ODD), team("bob")
    ann.review(PLAN, "approve")
    with pytest.raises(LedgerError, match="with its reason"):
        odd.review(PLAN, "refuse", " ")
    odd.review(PLAN, "refuse", "too fine")
    assert bob.approvals.plan(PLAN).standing == "refused"
    with pytest.raises(LedgerError, match="refused this plan: too fine"):
        release(bob)
    odd.review(PLAN, "withdraw")
    with pytest.raises(LedgerError, match="neither approved nor refused"):
        odd.review(PLAN, "withdraw")
    release(bob)


def test_an_approval_is_withdrawn_between_reserve_and_draw(team: As) -> None:
    bob, odd = team("bob"), team(ODD)
    odd.review(PLAN, "approve")
    drawn = release(bob)
    reservation = bob.reserve(described(), promise(bob), "second", PLAN)
    odd.review(PLAN, "withdraw")
    assert odd.drawn_from(PLAN) == ("r",)  # what was drawn stays
    with pytest.raises(LedgerError, match="nobody did"):
        reservation.mark_drawn()
    bob.abandon(reservation.id)
    assert [one.id for one in bob.entries() if one.counted] == [drawn]


def test_nothing_is_asked_where_nothing_is_required(team: As) -> None:
    team("ann").require_approval(False)
    release(team("bob"), "")
    with pytest.raises(LedgerError, match="role owner"):
        team("bob").require_approval(False)


def test_what_was_drawn_without_a_plan_is_refused(team: As) -> None:
    class Drawn:
        description, guarantee, name = described(), promise(team("bob")), "r"

    with pytest.raises(LedgerError, match="requires that somebody else"):
        team("bob").record(Drawn())
    assert team("bob").entries() == ()


def test_the_last_approved_plan_is_found(team: As) -> None:
    bob, odd = team("bob"), team(ODD)
    assert team("bob").approvals.last_approved() is None
    odd.review(PLAN, "approve")
    bob.propose(OTHER, "a second plan")
    odd.review(OTHER, "approve")
    known = team("bob").approvals
    found = [known.last_approved(), known.last_approved(but=OTHER)]
    assert [one and one.text for one in found] == ["a second plan", "a plan"]


FORGED = [
    ("bob", "approve", {"plan_digest": PLAN, "because": ""}),
    ("bob", "require", {"approval": False}),
    ("bob", "reserve", {"name": "r", "description": {}, "guarantee": {}, "plan_digest": PLAN}),
    ("bob", "mandates", {"statements": [], "plan_digest": PLAN}),
    ("bob", "mandates", {"statements": []}),
    ("bob", "propose", {"plan_digest": PLAN, "plan": 1, "files": {}}),
    ("bob", "propose", {"plan_digest": "1", "plan": "", "files": {}}),
    (ODD, "approve", {"plan_digest": OTHER, "because": ""}),
    (ODD, "approve", {"plan_digest": PLAN}),
    (ODD, "refuse", {"plan_digest": PLAN, "because": ""}),
    (ODD, "withdraw", {"plan_digest": PLAN, "because": ""}),
    (ODD, "reserve", {"name": "r", "description": {}, "guarantee": {}, "plan_digest": PLAN}),
    (ODD, "grant", {"who": ODD, "role": "owner"}),
    ("ann", "require", {"approval": "no"}),
]


@pytest.mark.parametrize(("who", "kind", "payload"), FORGED)
def test_the_database_refuses_forgeries(
    team: As, who: str, kind: str, payload: dict[str, object]
) -> None:
    """Events that somebody adds past the program, in their own name."""
    with pytest.raises((DBAPIError, LedgerError)), team(who)._store.writing() as log:
        log.append(kind, "x" if kind == "reserve" else None, payload)
    assert [one.kind for one in team("ann").events()][-1] == "propose"


def allowed_by_the_database(team: As, *steps: tuple[str, str, str]) -> bool:
    """Whether reserve and draw of PLAN by bob pass, after reviews written past the program."""
    for who, kind, because in steps:
        with team(who)._store.writing() as log:
            log.append(kind, None, {"plan_digest": PLAN, "because": because})
    with suppress(Undo), team("bob")._store.writing() as log:
        told = {"name": "r", "description": {}, "guarantee": {}, "plan_digest": PLAN}
        try:
            log.append("reserve", "x", told)
            log.append("draw", "x", {})
        except DBAPIError:
            return False
        raise Undo
    return True


def test_the_database_agrees_on_what_is_approved(team: As) -> None:
    """The rule is written twice; negative control: an approval lets the same events pass."""
    assert not allowed_by_the_database(team)
    assert allowed_by_the_database(team, (ODD, "approve", ""))
    assert not allowed_by_the_database(team, (ODD, "withdraw", ""))
    assert allowed_by_the_database(team, ("ann", "approve", ""))
    assert not allowed_by_the_database(team, (ODD, "refuse", "no"))
    assert allowed_by_the_database(team, (ODD, "withdraw", ""))
    team("ann").propose(PLAN)
    assert not allowed_by_the_database(team)


def test_withdrawing_and_drawing_at_once_leaves_one_winner(team: As) -> None:
    """Whichever comes first: nothing is drawn after a withdrawal in the history."""
    team(ODD).review(PLAN, "approve")
    bob, odd = team("bob"), team(ODD)
    reservation = bob.reserve(described(), promise(bob), "r", PLAN)
    ready = threading.Barrier(2)

    def draw() -> None:
        ready.wait()
        with suppress(LedgerError):
            reservation.mark_drawn()

    def withdraw() -> None:
        ready.wait()
        odd.review(PLAN, "withdraw")

    runs = [threading.Thread(target=one) for one in (draw, withdraw)]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    kinds = [one.kind for one in team("ann").events()]
    assert "withdraw" in kinds
    if "draw" in kinds:
        assert kinds.index("draw") < kinds.index("withdraw")
