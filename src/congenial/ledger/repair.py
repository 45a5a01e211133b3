"""Events of a ledger that cannot be read, and how an owner voids them.

An event can be chained correctly and still say nothing, or nothing that has a price: whoever may
release can write one past this program, as far as the database's own checks let it. It stays in the
history. Reading goes on behind it, totals name it, and nothing more is reserved, drawn or published
until an owner's `repair` event names it by number and digest and says what it counts as:

    nothing   nothing was drawn or published because of it
    unknown   something may have been: no budget allows a further release

The program decides for "nothing" by itself where no `draw` or `commit` names the release. Otherwise
it needs the owner's word, which stays in the history with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from congenial.errors import LedgerError
from congenial.ledger import approvals
from congenial.ledger.stores.store import Event, Log

Counts = Literal["nothing", "unknown"]

_SPENDS = ("draw", "commit")
_HARMLESS = ("reserve", "abandon", "budget", "grant", "repair", *approvals.KINDS)


@dataclass(frozen=True)
class MalformedEvent:
    """An event that cannot be read; `counts` is what an owner said it counts as, if one did."""

    id: int
    kind: str
    digest: str
    release: str | None
    who: str
    at: str
    known_release: bool  # its release is counted as drawn on its own
    counts: Counts | None = None

    @property
    def words(self) -> str:
        """The event by number and kind."""
        return f"event {self.id} ('{self.kind}')"


def default_count(malformed: MalformedEvent, events: Sequence[Event]) -> Counts:
    """What an event counts as when the owner says nothing about it: unknown unless nothing can
    have been drawn or published by it.
    """
    if malformed.known_release:
        return "nothing"
    drawn = any(
        event.kind in _SPENDS and event.release == malformed.release and event.id != malformed.id
        for event in events
    )
    harmless = malformed.kind in _HARMLESS and not (malformed.kind == "reserve" and drawn)
    return "nothing" if harmless else "unknown"


def voided(
    malformed: tuple[MalformedEvent, ...], payload: dict[str, Any]
) -> tuple[MalformedEvent, ...]:
    """The same events with one of them voided; ValueError when there is no such event."""
    counts = payload["counts"]
    if counts not in get_args(Counts) or not isinstance(payload["because"], str):
        raise ValueError(counts)
    named = (payload["event"], payload["digest"])
    place = [(event.id, event.digest) for event in malformed].index(named)
    new = replace(malformed[place], counts=counts)
    return (*malformed[:place], new, *malformed[place + 1 :])


def event_to_void(malformed: Sequence[MalformedEvent], number: int, digest: str) -> MalformedEvent:
    """The event with this number and this beginning of its digest (12 digits or more)."""
    for event in malformed:
        if event.id == number and len(digest) >= 12 and event.digest.startswith(digest):
            return event
    listed = "; ".join(f"{event.words}, digest {event.digest}" for event in malformed)
    raise LedgerError(
        f"the ledger has no unreadable event {number} with that digest.",
        remedy=f"Name one of: {listed}." if listed else "Every event of this ledger can be read.",
    )


def void(log: Log, event: MalformedEvent, because: str, nothing_drawn: bool) -> None:
    """Add the event that voids another, unless it was voided like this before."""
    counts: Counts = "nothing" if nothing_drawn else default_count(event, log.events)
    payload = {
        "event": event.id,
        "digest": event.digest,
        "counts": counts,
        "because": approvals.check_reason(because, "a repair", needed=True),
    }
    if event.counts != counts:
        log.append("repair", None, payload)


def refuse_unread(malformed: Sequence[MalformedEvent]) -> None:
    """LedgerError while an event cannot be read and no owner has voided it."""
    unread = [event for event in malformed if event.counts is None]
    if unread:
        first = unread[0]
        events = ", ".join(event.words for event in unread)
        raise LedgerError(
            f"the ledger's {events} by '{first.who}' cannot be read: what is spent is not known.",
            remedy=f"An owner voids it: `congenial ledger repair LEDGER {first.id} {first.digest} "
            "--because REASON`; without a number, that command lists such events.",
        )


def refuse_unknown(malformed: Sequence[MalformedEvent], *, limited: bool) -> None:
    """LedgerError while spending is unknown: an event cannot be read, or was voided as unknown.

    A ledger without a budget (not `limited`) goes on after the latter.
    """
    refuse_unread(malformed)
    unknown = [event for event in malformed if event.counts == "unknown"]
    if unknown and limited:
        first = unknown[0]
        raise LedgerError(
            f"{first.words} was voided, and what was drawn or published by it is unknown: the "
            "budget allows nothing more.",
            remedy="If an owner knows that nothing was, they say so: `congenial ledger repair "
            f"LEDGER {first.id} {first.digest} --nothing-drawn --because REASON`.",
        )


def doubt(malformed: Sequence[MalformedEvent]) -> str:
    """What the totals leave out, as a clause to add; empty where every event was read."""
    said = [
        f"{event.words} cannot be read"
        if event.counts is None
        else f"what {event.words} spent is unknown"
        for event in malformed
        if event.counts != "nothing"
    ]
    return f"; {', '.join(said)}, so this may be too little" if said else ""
