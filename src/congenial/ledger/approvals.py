"""Approval of plans: who proposed one, what reviewers said about it, and whether it is needed.

    require   an owner: only approved plans are published and released from here on; or no longer
    propose   somebody puts a plan up for review: its digest, its text, digests of its files
    approve   a reviewer: it may be released
    refuse    a reviewer: it may not, with the reason
    withdraw  a reviewer takes the approval or refusal back

A plan is known by its digest (`Plan.digest`: of the plan and the files it names). It is approved
while a reviewer's last word on it is "approve" and nobody's is "refuse". The approval of somebody
who proposed the plan does not count, nor does that of whoever releases it: two people have looked
at what is released. Approval is checked before figures are published, when a release is reserved
and once more when it is drawn; what was drawn by then stays drawn.

`Ledger` writes these events (`require_approval`, `propose`, `review`); the rules are here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from congenial.data.arguments import expect
from congenial.errors import LedgerError

if TYPE_CHECKING:
    from congenial.ledger.stores.store import Event

Word = Literal["approve", "refuse", "withdraw"]
Standing = Literal["not proposed", "proposed", "approved", "refused"]
KINDS = ("require", "propose", "approve", "refuse", "withdraw")
_WORDS: tuple[Word, ...] = get_args(Word)
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
class PlanStanding:
    """Where one plan stands in its ledger.

    `reviews` are each reviewer's last word, without those that were withdrawn; `required` is
    whether the ledger refuses to publish and release plans that are not approved.
    """

    digest: str
    required: bool = False
    proposals: tuple[ProposedPlan, ...] = ()
    reviews: tuple[Review, ...] = ()

    @property
    def proposers(self) -> tuple[str, ...]:
        """Everybody who proposed the plan: none of them can approve it."""
        return tuple(sorted({proposal.who for proposal in self.proposals}))

    def approvers(self, without: Collection[str] = ()) -> tuple[str, ...]:
        """Whose approval counts, were the plan released by people named in `without`."""
        barred = {*self.proposers, *without}
        return tuple(r.who for r in self.reviews if r.word == "approve" and r.who not in barred)

    @property
    def refusals(self) -> tuple[Review, ...]:
        """The refusals that stand."""
        return tuple(review for review in self.reviews if review.word == "refuse")

    @property
    def standing(self) -> Standing:
        """In a word."""
        if self.refusals:
            return "refused"
        if self.approvers():
            return "approved"
        return "proposed" if self.proposals else "not proposed"

    @property
    def words(self) -> str:
        """In a sentence, and whether the ledger requires an approval."""
        said = {
            "not proposed": "It is not proposed for review.",
            "proposed": f"Proposed by {_names(self.proposers)}; nobody has reviewed it yet.",
            "approved": f"Approved by {_names(self.approvers())}.",
            "refused": f"Refused by {_names(review.who for review in self.refusals)}.",
        }[self.standing]
        rule = "requires" if self.required else "does not require"
        return f"{said} The ledger {rule} an approval."

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for commands."""
        return {
            "plan_digest": self.digest,
            "standing": self.standing,
            "approval_required": self.required,
            "proposed_by": list(self.proposers),
            "reviews": [
                {"who": r.who, "at": r.at, "said": r.word, "because": r.because}
                for r in self.reviews
            ],
            "words": self.words,
        }


@dataclass(frozen=True)
class Approvals:
    """What the events about approval add up to: whether one is required, every proposal, and
    everything that reviewers said. `Ledger.approvals` gives one.
    """

    required: bool = False
    proposals: tuple[ProposedPlan, ...] = ()
    reviews: tuple[Review, ...] = ()

    def plan(self, digest: str) -> PlanStanding:
        """Where the plan with this digest stands."""
        proposals = tuple(p for p in self.proposals if p.digest == digest)
        last = {review.who: review for review in self.reviews if review.digest == digest}
        reviews = tuple(review for review in last.values() if review.word != "withdraw")
        return PlanStanding(digest, self.required, proposals, reviews)

    def plans(self) -> tuple[PlanStanding, ...]:
        """Every plan that was proposed, in the order of its first proposal."""
        digests = dict.fromkeys(proposal.digest for proposal in self.proposals)
        return tuple(self.plan(digest) for digest in digests)

    def last_approved(self, but: str = "") -> ProposedPlan | None:
        """The plan that was approved last and still is, another than the one with digest `but`."""
        for review in reversed(self.reviews):
            if review.word == "approve" and review.digest != but:
                plan = self.plan(review.digest)
                if plan.standing == "approved":
                    return plan.proposals[-1]
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
    because = written_text(payload["because"])
    review = Review(digest, event.who, event.at, check_word(event.kind), because)
    return replace(approvals, reviews=(*approvals.reviews, review))


def refuse_unapproved(plan: PlanStanding, *releasers: str) -> None:
    """LedgerError where approval is required and this plan, released by these people, has none."""
    if not plan.required:
        return
    if plan.refusals:
        first = plan.refusals[0]
        raise LedgerError(
            f"'{first.who}' refused this plan: {first.because}",
            remedy="Change the plan and propose it again, or ask for the refusal to be withdrawn.",
        )
    if not plan.approvers(releasers):
        approvers = plan.approvers()
        what = f"only '{approvers[0]}' approved it, who releases it" if approvers else "nobody did"
        raise LedgerError(
            f"this ledger requires that somebody else approves a plan, and {what}.",
            remedy=_next_step(plan),
        )


def _next_step(plan: PlanStanding) -> str:
    if not plan.proposals:
        return (
            "Propose it with `congenial propose PLAN`, and have a reviewer run `congenial approve "
            "PLAN`. Any change to the plan, or to a file it names, needs a new approval."
        )
    return "It is proposed: have a reviewer run `congenial approve PLAN`."


def refuse_review(plan: PlanStanding, who: str, word: Word) -> None:
    """LedgerError when `who` cannot say this word on this plan."""
    if not plan.proposals:
        raise LedgerError(
            "this version of the plan was not proposed.",
            remedy="Whoever wrote it runs `congenial propose PLAN`; a change needs that again.",
        )
    if word == "withdraw":
        if who not in {review.who for review in plan.reviews}:
            raise LedgerError(
                f"'{who}' has neither approved nor refused this plan.",
                remedy="You can withdraw only your own approval or refusal; refuse the plan "
                "instead.",
            )
    elif who in plan.proposers:
        raise LedgerError(
            f"'{who}' proposed this plan, and nobody reviews a plan of their own.",
            remedy="Ask somebody else with the role reviewer or owner.",
        )


def check_word(word: str) -> Word:
    """What a review says, if it is one of the three words."""
    expect(word, str, "the word of a review", f"Use one of {', '.join(_WORDS)}.", LedgerError)
    for allowed in _WORDS:
        if word == allowed:
            return allowed
    raise LedgerError(f"a review cannot say '{word}'.", remedy=f"Use one of {', '.join(_WORDS)}.")


def check_reason(because: str, of: str, needed: bool) -> str:
    """The reason of a review or a repair: one line, which some need."""
    expect(because, str, "the reason", "Give text.", LedgerError)
    reason = " ".join(because.split())
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        raise LedgerError(
            f"the reason of {of} is one line of at most {LONGEST_REASON} characters.",
            remedy="Shorten it (--because).",
        )
    if needed and not reason:
        raise LedgerError(f"{of} is recorded with its reason.", remedy="Give --because.")
    return reason


def check_digest(digest: str) -> str:
    """A plan's digest, if it is one."""
    expect(digest, str, "the plan's digest", "Give Plan.digest.", LedgerError)
    if len(digest) != 64:
        raise LedgerError("the digest of a plan has 64 digits.", remedy="Give Plan.digest.")
    return digest


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


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
