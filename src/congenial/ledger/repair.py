"""Events of a ledger that cannot be read, and how an owner voids them.

An event can be chained correctly and still say nothing, or nothing that has a price: whoever may
release can write one past this program, and ledgers before version 3 took any payload. It stays in
the history. Reading goes on behind it, totals name it, and nothing more is reserved, drawn or
published until an owner's `repair` event names it by number and digest and says what it counts as:

    nothing   nothing was drawn or published because of it
    unknown   something may have been: no budget allows a further release

What the program can tell itself is "nothing" where no `draw` or `commit` names the release. Else it
takes the owner's word, which stays in the history with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from congenial.errors import LedgerError
from congenial.ledger.stores.store import Event, Log

if TYPE_CHECKING:
    from congenial.ledger.state import LedgerState

Counts = Literal["nothing", "unknown"]
LONGEST_REASON = 500

_SPENDS = ("draw", "commit")
_REVIEW = ("require", "propose", "approve", "refuse", "withdraw")
_HARMLESS = ("reserve", "abandon", "budget", "grant", "repair", *_REVIEW)


@dataclass(frozen=True)
class Malformed:
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


def default_count(one: Malformed, events: Sequence[Event]) -> Counts:
    """What an event counts as when the owner says nothing about it: unknown unless nothing can
    have been drawn or published by it.
    """
    if one.known_release:
        return "nothing"
    drawn = any(
        event.kind in _SPENDS and event.release == one.release and event.id != one.id
        for event in events
    )
    harmless = one.kind in _HARMLESS and not (one.kind == "reserve" and drawn)
    return "nothing" if harmless else "unknown"


def voided(malformed: tuple[Malformed, ...], payload: dict[str, Any]) -> tuple[Malformed, ...]:
    """The same events with one of them voided; ValueError when there is no such event."""
    counts = payload["counts"]
    if counts not in get_args(Counts) or not isinstance(payload["because"], str):
        raise ValueError(counts)
    place = [(one.id, one.digest) for one in malformed].index((payload["event"], payload["digest"]))
    old = malformed[place]
    new = Malformed(**(vars(old) | {"counts": counts}))
    return (*malformed[:place], new, *malformed[place + 1 :])


def named(state: LedgerState, event: int, digest: str) -> Malformed:
    """The event to void, by its number and the beginning of its digest (12 digits or more)."""
    for one in state.malformed:
        if one.id == event and len(digest) >= 12 and one.digest.startswith(digest):
            return one
    listed = "; ".join(f"{one.words}, digest {one.digest}" for one in state.malformed)
    raise LedgerError(
        f"event {event} with that digest is not one that cannot be read.",
        remedy=f"Name one of: {listed}." if listed else "Every event of this ledger can be read.",
    )


def void(log: Log, one: Malformed, because: str, nothing_drawn: bool) -> None:
    """Add the event that voids another, unless it was voided like this before."""
    counts: Counts = "nothing" if nothing_drawn else default_count(one, log.events)
    payload = {
        "event": one.id,
        "digest": one.digest,
        "counts": counts,
        "because": check_reason(because),
    }
    if one.counts != counts:
        log.append("repair", None, payload)


def check_reason(because: str) -> str:
    """The owner's reason for a repair, if it is one line of text."""
    if not because.strip() or not because.isprintable() or len(because) > LONGEST_REASON:
        raise LedgerError(
            "a repair is recorded with its reason.",
            remedy=f"Say it in one line of at most {LONGEST_REASON} characters (--because).",
        )
    return because


def refuse_unread(state: LedgerState) -> None:
    """LedgerError while an event cannot be read and no owner has voided it."""
    unread = [one for one in state.malformed if one.counts is None]
    if unread:
        first = unread[0]
        told = ", ".join(one.words for one in unread)
        raise LedgerError(
            f"the ledger's {told} by '{first.who}' cannot be read: what is spent is not known.",
            remedy=f"An owner voids it: `congenial ledger repair LEDGER {first.id} {first.digest} "
            "--because REASON`; without a number, that command lists such events.",
        )


def refuse_unknown(state: LedgerState) -> None:
    """LedgerError while spending is unknown: an event cannot be read, or was voided as unknown."""
    refuse_unread(state)
    unknown = [one for one in state.malformed if one.counts == "unknown"]
    if unknown and state.budget is not None:
        first = unknown[0]
        raise LedgerError(
            f"{first.words} was voided, and what was drawn or published by it is unknown: the "
            "budget allows nothing more.",
            remedy="If an owner knows that nothing was, they say so: `congenial ledger repair "
            f"LEDGER {first.id} {first.digest} --nothing-drawn --because REASON`.",
        )


def doubt(state: LedgerState) -> str:
    """What the totals leave out, as a clause to add; empty where every event was read."""
    said = [
        f"{one.words} cannot be read"
        if one.counts is None
        else f"what {one.words} spent is unknown"
        for one in state.malformed
        if one.counts != "nothing"
    ]
    return f"; {', '.join(said)}, so this may be too little" if said else ""
