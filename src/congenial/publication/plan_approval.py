"""Approval of a plan as functions: require it, propose, approve, refuse, withdraw, compare.

What they record is in `congenial.ledger.approvals`. The commands `congenial propose` and `congenial
approve` and the desk call these.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from congenial.errors import LedgerError
from congenial.ledger.approvals import Review, Standing
from congenial.ledger.ledger import Ledger
from congenial.ledger.plan_review import PlanReview
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger


@dataclass(frozen=True)
class PlanStanding:
    """Where a plan stands in its ledger."""

    digest: str
    standing: Standing
    required: bool
    proposers: tuple[str, ...]
    reviews: tuple[Review, ...]

    @property
    def words(self) -> str:
        """One sentence about it."""
        said = {
            "not proposed": "It has not been proposed for review.",
            "proposed": f"Proposed by {_names(self.proposers)}; nobody has reviewed it yet.",
            "approved": f"Approved by {_names(self._who('approve'))}.",
            "refused": f"Refused by {_names(self._who('refuse'))}.",
        }[self.standing]
        rule = "requires" if self.required else "does not require"
        return f"{said} The ledger {rule} an approval."

    def _who(self, word: str) -> tuple[str, ...]:
        own = self.proposers if word == "approve" else ()
        return tuple(one.who for one in self.reviews if one.word == word and one.who not in own)


def standing(plan: Plan, ledger: Ledger | None) -> PlanStanding:
    """Where a plan stands; a ledger that is not there yet has heard nothing."""
    if ledger is None:
        return PlanStanding(plan.digest, "not proposed", False, (), ())
    known = ledger.approvals
    proposers = tuple(sorted(known.proposers(plan.digest)))
    reviews = known.standing_reviews(plan.digest)
    return PlanStanding(
        plan.digest,
        known.standing(plan.digest),
        known.required,
        proposers,
        reviews,
    )


def require(plan: Plan, needed: bool = True) -> PlanStanding:
    """Have the plan's ledger require approval, or no longer; it is started where it is absent."""
    ledger = _open(plan)
    PlanReview(ledger).require(needed)
    return standing(plan, ledger)


def propose(path: Path) -> PlanStanding:
    """Put the plan at `path` up for review; its ledger is started where it is absent."""
    text = Plan.read(path)
    plan = Plan.parse(text, path.parent)
    _ = plan.invariants  # what cannot be planned is not proposed
    ledger = _open(plan)
    PlanReview(ledger).propose(plan.digest, text, plan.file_digests)
    return standing(plan, ledger)


def approve(plan: Plan, because: str = "") -> PlanStanding:
    """Approve a plan that somebody else proposed."""
    ledger = _known(plan)
    PlanReview(ledger).approve(plan.digest, because)
    return standing(plan, ledger)


def refuse(plan: Plan, because: str) -> PlanStanding:
    """Refuse a plan that somebody else proposed, with the reason."""
    ledger = _known(plan)
    PlanReview(ledger).refuse(plan.digest, because)
    return standing(plan, ledger)


def withdraw(plan: Plan, because: str = "") -> tuple[PlanStanding, tuple[str, ...]]:
    """Take the own word on a plan back; with the names of releases that were drawn before."""
    ledger = _known(plan)
    drawn = PlanReview(ledger).withdraw(plan.digest, because)
    return standing(plan, ledger), drawn


def difference(old: str, new: str) -> list[str]:
    """What changed from one plan's text to another, as the lines of a diff without its head."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=3)
    return list(lines)[2:]


def _open(plan: Plan) -> Ledger:
    ledger = open_ledger(plan, create=True)
    assert ledger is not None
    return ledger


def _known(plan: Plan) -> Ledger:
    ledger = open_ledger(plan, create=False)
    if ledger is None:
        raise LedgerError(
            f"there is no ledger at '{plan.ledger}' yet, so no plan has been proposed.",
            remedy="The author of the plan runs `congenial propose PLAN` first.",
        )
    return ledger


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
