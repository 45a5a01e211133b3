"""A ledger as plain data: what `congenial ledger` prints and exports, and the desk shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from congenial.ledger.budget import in_words
from congenial.privacy.tradeoff import Tradeoff

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger
    from congenial.ledger.repair import MalformedEvent
    from congenial.ledger.state import Entry
    from congenial.ledger.stores.store import Event

Document = dict[str, Any]


def ledger_document(ledger: Ledger) -> Document:
    """What is published, spent and left; every release with its price; roles and approvals."""
    malformed = ledger.malformed()
    unread = {event.id for event in malformed}
    return {
        **summary(ledger),
        "published": [
            {"at": event.at, "who": event.who, "labels": _labels(event)}
            for event in ledger.events()
            if event.kind == "mandates" and event.id not in unread
        ],
        "unreadable": [malformed_document(event) for event in malformed],
        **_priced(ledger),
        "roles": ledger.roles,
        "approvals": _approvals(ledger),
    }


def summary(ledger: Ledger) -> Document:
    """Budget, what is spent of it and what is left."""
    budget = ledger.budget
    return {
        "ledger": ledger.where,
        "budget": "not set" if budget is None else budget.words,
        "spent": ledger.spent_words(),
        "left": ledger.left_words(),
    }


def entry_document(entry: Entry) -> Document:
    """One release."""
    law = getattr(entry.description, "only_law", entry.description)
    return {
        "id": entry.id,
        "name": entry.name,
        "at": entry.at,
        "who": entry.who,
        "status": entry.status,
        "counted": entry.counted,
        "promise": Tradeoff.from_dict(entry.guarantee["tradeoff"]).words,
        "persons": getattr(entry.description, "persons", True),
        "table": list(getattr(law, "table", ())),
        "bundle_digest": entry.bundle_digest,
        "plan_digest": entry.plan_digest,
    }


def pending(ledger: Ledger) -> list[Document]:
    """Releases that were reserved or drawn and never finished."""
    return [entry_document(entry) for entry in ledger.pending()]


def malformed_document(event: MalformedEvent) -> Document:
    """One event that cannot be read."""
    return {
        "event": event.id,
        "kind": event.kind,
        "at": event.at,
        "who": event.who,
        "digest": event.digest,
        "counts": event.counts,
    }


def event_document(event: Event) -> Document:
    """One event: what is in every event, the digests it names, its payload as text and as data."""
    try:
        payload = event.payload
    except ValueError:  # one that `repair` lists; its text is exported all the same
        payload = {}
    if not isinstance(payload, dict):
        payload = {}
    named = {key: payload.get(key, "") for key in ("name", "plan_digest", "bundle_digest")}
    return event.written | named | {"payload": payload}


def _priced(ledger: Ledger) -> Document:
    """Releases with their own price when reserved and now, in the budget's unit, and the sums."""
    budget, prices = ledger.budget, ledger.prices()
    say = in_words if budget is None else budget.say
    of_release = {
        release.entry.id: {
            "then": say(release.then),
            "now": say(release.now),
            "repriced": release.then != release.now,
            "outdated": release.outdated,
        }
        for release in prices.releases
    }
    refunded = {"then": None, "now": None, "repriced": False, "outdated": False}
    return {
        "releases": [
            entry_document(entry) | of_release.get(entry.id, refunded) for entry in ledger.entries()
        ],
        "sum_then": say(prices.sum_then),
        "sum_now": say(prices.sum_now),
        "together": say(prices.together),
    }


def _approvals(ledger: Ledger) -> Document:
    """Whether plans need an approval, and where each one that was proposed stands."""
    approvals = ledger.approvals
    plans = [
        {
            "plan_digest": plan.digest,
            "proposed_by": list(plan.proposers),
            "at": plan.proposals[-1].at,
            "standing": plan.standing,
        }
        for plan in approvals.plans()
    ]
    return {"required": approvals.required, "plans": plans}


def _labels(event: Event) -> list[str]:
    """The names of the figures that an event publishes."""
    return [str(statement["label"]) for statement in event.payload["statements"]]
