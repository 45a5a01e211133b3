"""Approval of plans: who proposed one, what reviewers said about it, and whether it is needed.

    require   an owner: only approved plans are published and released from here on; or no longer
    propose   somebody puts a plan up for review: its digest, its text, digests of its files
    approve   a reviewer's word that it may be released
    refuse    a reviewer's word that it may not, with the reason
    withdraw  a reviewer takes the word back

A plan is approved while a reviewer's last word on it is "approve" and nobody's is "refuse". The
word of somebody who proposed the plan does not count, nor does that of whoever releases it: two
people have looked at what is released. It is asked before figures are published, when a release is
reserved and once more when it is drawn; what was drawn by then stays drawn.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from congenial.errors import LedgerError

if TYPE_CHECKING:
    from congenial.ledger.stores.store import Event

Word = Literal["approve", "refuse", "withdraw"]
Standing = Literal["not proposed", "proposed", "approved", "refused"]
KINDS = ("require", "propose", "approve", "refuse", "withdraw")
LONGEST_REASON = 500  # characters
LONGEST_PLAN = 500_000  # characters of a plan's text that the ledger keeps


@dataclass(frozen=True)
class ProposedPlan:
    """A plan that was put up for review: its digest, its text and the digests of its files."""

    digest: str
    who: str
    at: str
    text: str = field(repr=False)
    files: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Review:
    """What somebody said about a plan, and why."""

    digest: str
    who: str
    at: str
    word: Word
    because: str


@dataclass(frozen=True)
class Approvals:
    """What the events about approval add up to: which plans were proposed, by whom, and what
    reviewers said of them last.

    A plan is known by its digest with files. It is approved by somebody who neither proposed it nor
    releases it; a word that is withdrawn counts no more. `required` is whether releases and
    publications of plans without an approval are refused. `Ledger.approvals` gives one,
    `PlanReview` adds to it.
    """

    required: bool = False
    proposals: tuple[ProposedPlan, ...] = ()
    reviews: tuple[Review, ...] = ()

    def proposal(self, digest: str) -> ProposedPlan | None:
        """The plan with this digest, as it was last proposed."""
        return next((one for one in reversed(self.proposals) if one.digest == digest), None)

    def proposers(self, digest: str) -> set[str]:
        """Everybody who proposed the plan: none of them can approve it."""
        return {one.who for one in self.proposals if one.digest == digest}

    def standing_reviews(self, digest: str) -> tuple[Review, ...]:
        """Each reviewer's last word on a plan, without those that were withdrawn."""
        last = {one.who: one for one in self.reviews if one.digest == digest}
        return tuple(one for one in last.values() if one.word != "withdraw")

    def approvers(self, digest: str, without: Collection[str] = ()) -> set[str]:
        """Whose approval counts, were the plan released by people named in `without`."""
        said = {one.who for one in self.standing_reviews(digest) if one.word == "approve"}
        return said - self.proposers(digest) - set(without)

    def refusals(self, digest: str) -> tuple[Review, ...]:
        """The refusals that stand."""
        return tuple(one for one in self.standing_reviews(digest) if one.word == "refuse")

    def standing(self, digest: str) -> Standing:
        """Where a plan stands."""
        if self.refusals(digest):
            return "refused"
        if self.approvers(digest):
            return "approved"
        return "proposed" if self.proposal(digest) else "not proposed"

    def last_approved(self, but: str = "") -> ProposedPlan | None:
        """The plan that was approved last and still is, another than the one with digest `but`."""
        for review in reversed(self.reviews):
            digest = review.digest
            if review.word == "approve" and digest != but and self.standing(digest) == "approved":
                return self.proposal(digest)
        return None


def after_event(approvals: Approvals, event: Event) -> Approvals:
    """What holds after one more event; ValueError, KeyError or TypeError for one that is none."""
    payload = event.payload
    if event.kind == "require":
        return replace(approvals, required=_truth(payload["approval"]))
    digest = _digest(payload["plan_digest"])
    if event.kind == "propose":
        text, files = written_text(payload["plan"]), dict(payload["files"])
        new = ProposedPlan(digest, event.who, event.at, text, files)
        return replace(approvals, proposals=(*approvals.proposals, new))
    words: dict[str, Word] = {"approve": "approve", "refuse": "refuse", "withdraw": "withdraw"}
    because = written_text(payload["because"])
    said = Review(digest, event.who, event.at, words[event.kind], because)
    return replace(approvals, reviews=(*approvals.reviews, said))


def refuse_unapproved(approvals: Approvals, digest: str, *releasers: str) -> None:
    """LedgerError where approval is required and this plan, released by these people, has none."""
    if not approvals.required:
        return
    refusals = approvals.refusals(digest)
    if refusals:
        first = refusals[0]
        raise LedgerError(
            f"'{first.who}' refused this plan: {first.because}",
            remedy="Change the plan and propose it again, or ask for the refusal to be withdrawn.",
        )
    if not approvals.approvers(digest, releasers):
        alone = approvals.approvers(digest)
        what = f"only '{next(iter(alone))}' approved it, who releases it" if alone else "nobody did"
        raise LedgerError(
            f"this ledger requires that somebody else approves a plan, and {what}.",
            remedy=_next_step(approvals, digest),
        )


def _next_step(approvals: Approvals, digest: str) -> str:
    if approvals.proposal(digest) is None:
        return (
            "Propose it with `congenial propose PLAN`, and have a reviewer run `congenial approve "
            "PLAN`. Any change to the plan, or to a file it names, needs a new approval."
        )
    return "It is proposed: have a reviewer run `congenial approve PLAN`."


def refuse_review(approvals: Approvals, digest: str, who: str, word: Word) -> None:
    """LedgerError when `who` cannot say this word on this plan."""
    if approvals.proposal(digest) is None:
        raise LedgerError(
            "this plan was not proposed, as it is now.",
            remedy="Whoever wrote it runs `congenial propose PLAN`; a change needs that again.",
        )
    if word == "withdraw":
        if who not in {one.who for one in approvals.standing_reviews(digest)}:
            raise LedgerError(
                f"'{who}' has neither approved nor refused this plan.",
                remedy="Only the own word can be withdrawn; refuse the plan instead.",
            )
    elif who in approvals.proposers(digest):
        raise LedgerError(
            f"'{who}' proposed this plan, and nobody reviews a plan of their own.",
            remedy="Ask somebody else with the role reviewer or owner.",
        )


def check_because(because: str, word: Word) -> str:
    """The reason of a review; a refusal must have one."""
    told = " ".join(because.split())
    if len(told) > LONGEST_REASON or not told.isprintable():
        raise LedgerError(
            "the reason of a review is one line of text.",
            remedy=f"Say it in at most {LONGEST_REASON} characters (--because).",
        )
    if word == "refuse" and not told:
        raise LedgerError("a refusal is recorded with its reason.", remedy="Give --because.")
    return told


def _digest(value: Any) -> str:
    text = written_text(value)
    if len(text) != 64:
        raise ValueError(len(text))
    return text


def written_text(value: Any) -> str:
    """A value of an event that must be text."""
    if not isinstance(value, str):
        raise TypeError(type(value))
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(type(value))
    return value
