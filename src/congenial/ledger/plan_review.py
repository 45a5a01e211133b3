"""The verbs of approval: require it, propose a plan, approve, refuse, withdraw.

`PlanReview(ledger)` writes to a ledger what `ledger.approvals` then says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from congenial.data.arguments import expect
from congenial.errors import LedgerError
from congenial.ledger.approvals import LONGEST_PLAN, Word, check_because, refuse_review

if TYPE_CHECKING:
    from congenial.ledger.ledger import Ledger


class PlanReview:
    """Approval of plans in one ledger. Plans are named by their digest (`Plan.digest`).

    Somebody proposes, somebody else approves or refuses; with `require`, only approved plans are
    published and released, by somebody who did not approve them. Who may do what follows from
    roles (`Ledger.grant`).

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from congenial import Ledger, Schema
    >>> with TemporaryDirectory() as folder:
    ...     schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    ...     ledger = Ledger.open(Path(folder) / "ledger.sqlite", schema, who="ann")
    ...     PlanReview(ledger).propose("0" * 64, "the text of the plan")
    ...     ledger.approvals.proposers("0" * 64)
    {'ann'}
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def require(self, needed: bool = True) -> None:
        """Have only approved plans published and released from here on, or no longer; owners."""
        with self._ledger._writing("require") as (log, state):
            if state.approvals.required != needed:
                log.append("require", None, {"approval": needed})

    def propose(self, digest: str, text: str = "", files: Mapping[str, str] | None = None) -> None:
        """Put a plan up for review; its text lets a reviewer see what changed since.

        A text that is too long for the ledger is left out: the digest stands for it.
        """
        _check_digest(digest)
        with self._ledger._writing("propose") as (log, state):
            if log.who in state.approvals.proposers(digest):
                return
            kept = text if len(text) <= LONGEST_PLAN else ""
            payload = {"plan_digest": digest, "plan": kept, "files": dict(files or {})}
            log.append("propose", None, payload)

    def approve(self, digest: str, because: str = "") -> None:
        """Say that the plan may be released; not for those who proposed it."""
        self._say("approve", digest, because)

    def refuse(self, digest: str, because: str) -> None:
        """Say that the plan may not be released, and why; it stands until withdrawn."""
        self._say("refuse", digest, because)

    def withdraw(self, digest: str, because: str = "") -> tuple[str, ...]:
        """Take the own word back; the names of releases that were drawn before, and stay."""
        self._say("withdraw", digest, because)
        return tuple(
            one.name
            for one in self._ledger.entries()
            if one.plan_digest == digest and one.was_drawn
        )

    def _say(self, word: Word, digest: str, because: str) -> None:
        _check_digest(digest)
        reason = check_because(because, word)
        with self._ledger._writing(word) as (log, state):
            refuse_review(state.approvals, digest, log.who, word)
            standing = {one.who: one for one in state.approvals.standing_reviews(digest)}
            said = standing.get(log.who)
            if said is None or (said.word, said.because) != (word, reason):
                log.append(word, None, {"plan_digest": digest, "because": reason})


def _check_digest(digest: str) -> None:
    expect(digest, str, "the plan's digest", "Give Plan.digest.", LedgerError)
    if len(digest) != 64:
        raise LedgerError("the digest of a plan has 64 digits.", remedy="Give Plan.digest.")
