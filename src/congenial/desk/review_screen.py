"""Review: what changed since the last approved plan, what is promised, and a word on it."""

from __future__ import annotations

from starlette.responses import Response

from congenial.desk.visit import Visit
from congenial.errors import CongenialError, LedgerError
from congenial.publication import plan_approval
from congenial.publication.check_document import examine


def show_review(visit: Visit) -> Response:
    """The plan as a reviewer sees it."""
    ledger = visit.ledger
    known = None if ledger is None else ledger.approvals
    stands = plan_approval.standing(visit.plan, ledger)
    before = None if known is None else known.last_approved(but=stands.digest)
    problem, document = "", None
    try:
        document = examine(visit.plan, progress=visit.tell)
    except CongenialError as error:
        problem = str(error)
    me = visit.name if ledger is None else ledger.who
    return visit.page(
        "review.html",
        stands=stands,
        text=visit.text,
        files=visit.plan.file_digests,
        before=before,
        changes=[] if before is None else plan_approval.difference(before.text, visit.text),
        document=document,
        problem=problem,
        may_propose=visit.may("propose") and not stands.proposers,  # who proposes cannot approve
        may_review=visit.may("approve") and stands.standing != "not proposed",
        own=me in stands.proposers,
        said=next((one for one in stands.reviews if one.who == me), None),
        may_require=visit.may("require"),
        in_a_file=ledger is None or not ledger.where.startswith("postgresql"),
        shown=visit.plan.schema.shown,
        role=visit.role,
        team=visit.desk.settings.for_a_team,
    )


def _same_plan(visit: Visit) -> None:
    """What is approved is the plan that was on the page, not one saved in between."""
    if visit.form.get("digest") != visit.plan.digest_with_files:
        raise LedgerError(
            "the plan, or a file it names, was changed since this page was opened.",
            remedy="Open the review again and look at what changed; nothing was recorded.",
        )


def propose_plan(visit: Visit) -> Response:
    """Put the plan up for review."""
    _same_plan(visit)
    plan_approval.propose(visit.path, who=visit.who)
    return visit.go("plan", visit.key, "review")


def approve_plan(visit: Visit) -> Response:
    """Approve the plan."""
    _same_plan(visit)
    plan_approval.approve(visit.plan, visit.form.get("because", ""), who=visit.who)
    return visit.go("plan", visit.key, "review")


def refuse_plan(visit: Visit) -> Response:
    """Refuse the plan, with the reason."""
    _same_plan(visit)
    plan_approval.refuse(visit.plan, visit.form.get("because", ""), who=visit.who)
    return visit.go("plan", visit.key, "review")


def withdraw_word(visit: Visit) -> Response:
    """Take the own word back."""
    _same_plan(visit)
    plan_approval.withdraw(visit.plan, who=visit.who)
    return visit.go("plan", visit.key, "review")


def require_approval(visit: Visit) -> Response:
    """Have the ledger require approval, or no longer."""
    plan_approval.require(visit.plan, visit.form.get("needed") == "yes", who=visit.who)
    return visit.go("plan", visit.key, "review")
