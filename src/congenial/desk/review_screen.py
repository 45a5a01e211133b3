"""Review: what changed since the last approved plan, what is promised, and approve or refuse it."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from congenial.desk.jobs import Tell
from congenial.desk.publication_screen import start_job
from congenial.desk.rendering import address
from congenial.desk.visit import Visit
from congenial.desk.workspace import changed_lines
from congenial.errors import CongenialError, LedgerError
from congenial.ledger.approvals import Word
from congenial.publication import plan_ledger, table_audit
from congenial.publication.check_document import examine, words
from congenial.publication.plan import DIGEST_OF
from congenial.report.words import sections

USUAL = 200_000  # draws of each pair of neighbours
EFFORTS = {
    "40000": "quickly: 40,000 draws of each pair",
    str(USUAL): "as usual: 200,000 draws",
    "1000000": "as the command does: 1,000,000 draws",
}


def show_review(visit: Visit) -> Response:
    """The plan as a reviewer sees it."""
    ledger = visit.ledger
    stands = plan_ledger.standing(visit.plan, ledger)
    before = None if ledger is None else ledger.approvals.last_approved(but=stands.digest)
    problem, check = "", []
    try:
        check = sections(words(examine(visit.plan, progress=visit.tell)))
    except CongenialError as error:
        problem = str(error)
    me = visit.name if ledger is None else ledger.who
    return visit.page(
        "review.html",
        stands=stands,
        text=visit.text,
        files=visit.plan.file_digests,
        digest_of=DIGEST_OF,
        before=before,
        changes=[] if before is None else changed_lines(before.text, visit.text),
        check=check,
        problem=problem,
        may_propose=visit.may("propose") and not stands.proposers,  # who proposes cannot approve
        may_review=visit.may("approve") and stands.standing != "not proposed",
        own=me in stands.proposers,
        said=next((one for one in stands.reviews if one.who == me), None),
        may_require=visit.may("require"),
        in_a_file=ledger is None or not ledger.where.startswith("postgresql"),
        role=visit.role,
        audits=table_audit.audit_results(visit.plan),
        may_audit=_may_audit(visit) and bool(table_audit.attacked(visit.plan)),
        efforts=EFFORTS,
    )


def _may_audit(visit: Visit) -> bool:
    """For the plan's reviewers, and those who may propose it."""
    return visit.may("approve") or visit.may("propose")


def audit_plan(visit: Visit) -> Response:
    """Attack what the plan would release, and keep the result beside it for its reviewers."""
    if not _may_audit(visit):
        raise LedgerError(
            f"'{visit.name}' is a {visit.role} of this ledger: an attack is for those who review "
            "or propose plans.",
            remedy="Ask an owner of the ledger for a role.",
        )
    visit.refuse_stale()
    plan, folder = visit.plan, visit.path.parent / table_audit.AUDITS
    draws = visit.form.get("draws", "")
    effort = table_audit.AuditEffort(int(draws) if draws in EFFORTS else USUAL)

    def work(tell: Tell) -> None:
        tell("looking for neighbours to attack")
        for one in table_audit.attack_plan(plan, effort, progress=tell):
            table_audit.write_audit(one, folder)

    then = address("plan", visit.key, "review")
    return start_job(visit, "Trying to break the promise", work, then)


def propose_plan(visit: Visit) -> Response:
    """Put the plan up for review."""
    visit.refuse_stale()
    plan_ledger.propose(visit.path)
    return visit.go("plan", visit.key, "review")


def review_plan(word: Word) -> Callable[[Visit], Response]:
    """What approves or refuses the plan, or withdraws the visitor's own review."""

    def recorded(visit: Visit) -> Response:
        visit.refuse_stale()
        plan_ledger.review(visit.plan, word, visit.form.get("because", ""))
        return visit.go("plan", visit.key, "review")

    return recorded


def require_approval(visit: Visit) -> Response:
    """Have the ledger require approval, or no longer."""
    plan_ledger.opened_or_made(visit.plan).require_approval(visit.form.get("needed") == "yes")
    return visit.go("plan", visit.key, "review")
