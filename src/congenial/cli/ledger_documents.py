"""A ledger's releases, prices and events as plain data, and how they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.cli.output import Document, heading, line, paragraph, table

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger
    from congenial.ledger.repair import Malformed
    from congenial.ledger.state import Entry
    from congenial.ledger.stores.store import Event


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


def summary(ledger: Ledger) -> Document:
    """Budget, what is spent of it and what is left."""
    limit = ledger.budget
    return {
        "ledger": ledger.where,
        "budget": "not set" if limit is None else limit.words,
        "spent": ledger.spent_words(),
        "left": ledger.left_words(),
    }


def approvals_document(ledger: Ledger) -> Document:
    """Whether plans need an approval, and where each one that was proposed stands."""
    known = ledger.approvals
    latest = {one.digest: one for one in known.proposals}
    plans = [
        {"plan_digest": digest, "proposed_by": sorted(known.proposers(digest)), "at": one.at}
        | {"standing": known.standing(digest)}
        for digest, one in latest.items()
    ]
    return {"required": known.required, "plans": plans}


def show_approvals(document: Document) -> None:
    """The same for people, where there is anything to say."""
    if not document["required"] and not document["plans"]:
        return
    heading("Plans proposed" + (" (approval is required)" if document["required"] else ""))
    rows = [
        (one["plan_digest"][:12], ", ".join(one["proposed_by"]), one["at"][:19], one["standing"])
        for one in document["plans"]
    ]
    table(("digest", "by", "when (UTC)", "standing"), rows)


def unreadable(one: Malformed) -> Document:
    """One event that cannot be read."""
    return {
        "event": one.id,
        "kind": one.kind,
        "at": one.at,
        "who": one.who,
        "digest": one.digest,
        "counts": one.counts,
    }


def show_unreadable(events: list[Document]) -> None:
    """Events that cannot be read, and the command that voids each."""
    if not events:
        return
    heading("Events that cannot be read")
    rows = [
        (str(one["event"]), one["kind"], one["at"][:19], one["who"], one["counts"] or "not voided")
        for one in events
    ]
    table(("event", "kind", "when (UTC)", "who", "counts as"), rows)
    for one in events:
        if one["counts"] is None:
            what = f"congenial ledger repair LEDGER {one['event']} {one['digest'][:16]}"
            line("An owner voids it", f"{what} --because REASON")


def entry_document(entry: Entry) -> Document:
    """One release."""
    from congenial.privacy.tradeoff import Tradeoff

    promised = entry.guarantee.get("tradeoff")  # the oldest ledgers did not write it
    law = getattr(entry.description, "only_law", entry.description)
    return {
        "id": entry.id,
        "name": entry.name,
        "at": entry.at,
        "who": entry.who,
        "status": entry.status,
        "counted": entry.counted,
        "promise": Tradeoff.from_dict(promised).words if promised else "not recorded",
        "persons": getattr(entry.description, "persons", True),
        "table": list(getattr(law, "table", ())),
        "bundle_digest": entry.bundle_digest,
        "plan_digest": entry.plan_digest,
    }


def show_entries(entries: list[Document]) -> None:
    """Releases as a table."""
    if not entries:
        paragraph("None.")
        return
    rows = [
        (one["id"], one["name"], one["at"][:19], one["who"], one["status"], _promised(one))
        for one in entries
    ]
    table(("id", "release", "when (UTC)", "who", "status", "promise"), rows)


def priced(ledger: Ledger) -> Document:
    """Releases with their own price when reserved and now, in the budget's unit, and the sums."""
    from congenial.ledger.budget import in_words

    limit, found = ledger.budget, ledger.prices()
    say = in_words if limit is None else limit.say
    known = {
        one.entry.id: {
            "then": say(one.then),
            "now": say(one.now),
            "repriced": one.then != one.now,
            "outdated": one.outdated,
        }
        for one in found.releases
    }
    refunded = {"then": None, "now": None, "repriced": False, "outdated": False}
    return {
        "releases": [entry_document(one) | known.get(one.id, refunded) for one in ledger.entries()],
        "sum_then": say(found.sum_then),
        "sum_now": say(found.sum_now),
        "together": say(found.together),
    }


def show_prices(document: Document) -> None:
    """What each counted release cost and costs, where figures published since changed that."""
    counted = [one for one in document["releases"] if one["counted"]]
    if any(one["repriced"] or one["outdated"] for one in counted):
        heading("Price of each release")
        rows = [(one["id"], one["name"], one["then"], one["now"]) for one in counted]
        rows.append(("", "sum", document["sum_then"], document["sum_now"]))
        table(("id", "release", "when reserved", "now"), rows)
    names = ", ".join(f"'{one['name']}' ({one['id']})" for one in counted if one["outdated"])
    if names:
        paragraph(
            f"Outdated texts: the bundles of {names} state what was promised before later figures. "
            "Pass on what holds now (`congenial reassess`)."
        )
    if document["sum_now"] != document["together"]:
        paragraph(
            f"One by one the releases cost {document['sum_now']}, together {document['together']}: "
            "no two databases are told apart best by all of them."
        )


def _promised(one: Document) -> str:
    """What a release promised, and what it was about where not about persons."""
    return one["promise"] if one["persons"] else f"{one['promise']}, not about persons"


def labels(payload: Document) -> list[str]:
    """The names of published figures."""
    return [str(statement["label"]) for statement in payload["statements"]]
