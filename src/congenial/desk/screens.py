"""The first page of the desk, jobs, the check of the records, the review.

What the records hold is confidential: how many rows, which values and which rows stand in a private
folder on the desk's machine, and no page shows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.responses import Response

from congenial.desk import plan_edits
from congenial.desk.jobs import Tell, Work
from congenial.desk.visit import NotHereError, Visit, address, as_json
from congenial.desk.workspace import changed_lines, save
from congenial.errors import CongenialError, LedgerError, PlanError
from congenial.ledger.approvals import Word
from congenial.ledger.ledger_document import summary
from congenial.publication import data_report, plan_ledger, table_audit
from congenial.publication.check_document import examine, words
from congenial.publication.draft import write_draft
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.publication.plan_ledger import open_ledger, standing
from congenial.report.words import sections

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def show_overview(visit: Visit) -> Response:
    """Every plan with its ledger, what is spent there, and where the plan stands."""
    workspace = visit.desk.workspace
    plans = [_row(key, path) for key, path in workspace.plans().items()]
    return visit.page(
        "overview.html",
        folder=str(workspace.folder),
        plans=plans,
        data=list(workspace.data_files()),
    )


def _row(key: str, path: Path) -> dict[str, Any]:
    """One plan, in a line."""
    row: dict[str, Any] = {"key": key, "problem": "", "ledger": None, "standing": ""}
    try:
        plan = Plan.load(path)
        ledger = open_ledger(plan, create=False)
        row["standing"] = standing(plan, ledger).standing
        row["releases"] = [section.name for section in plan.release]
        if ledger is not None:
            row["ledger"] = summary(ledger) | {"pending": len(ledger.pending())}
    except CongenialError as error:
        return row | {"problem": str(error)}
    return row


def make_plan(visit: Visit) -> Response:
    """A first plan for a data file: names of its columns, and no value of it."""
    name = visit.form.get("name", "")
    source = visit.desk.workspace.data_files().get(visit.form.get("data", ""))
    if source is None:
        raise NotHereError("there is no such data file here.", remedy="Choose one of the list.")
    if not NAME.fullmatch(name):
        raise PlanError(
            "a plan's name is letters, digits, '-' and '_'.", remedy="Give another name."
        )
    out = source.parent / f"{name}.toml"
    write_draft(source, out)
    return visit.go("plan", visit.desk.workspace.key(out))


def show_job(visit: Visit) -> Response:
    """How far a job is; as data for the page's own script."""
    job = visit.desk.jobs.find(str(visit.route["job"]))
    if job is None:
        raise NotHereError("there is no such job.", remedy="Start at the folder.")
    if visit.query.get("as") == "json":
        return as_json(job.document())
    return visit.page("job.html", job=job, now=job.document(), key=job.plan)


def start_job(visit: Visit, title: str, work: Work, then: str) -> Response:
    """Run work for the plan, and send the visitor to its progress."""
    job = visit.desk.jobs.start(title, visit.key, then, work)
    return visit.go("job", job.id)


# ---- the check of the records --------------------------------------------------------------------


EXAMPLES = 20  # values of each problem, in the private folder only
WORDS = {
    "not in the schema": "values that the plan does not name",
    "unit missing": "rows that do not say whose they are",
    "unit repeated": "more rows of one person than the plan allows",
    "blank rows": "some rows are empty throughout",
}


def last_check(visit: Visit) -> dict[str, Any] | None:
    """The last check without its numbers and values; lines that quote a value are counted only."""
    try:
        path = visit.path.parent / data_report.FOLDER / "problems.json"
        document = json.loads(path.read_text(encoding="utf-8"))
        names = ("column", "kind", "remedy")
        problems = [
            {name: str(problem[name]) for name in names} for problem in document["problems"]
        ]
        for problem in problems:
            problem["kind"] = WORDS.get(problem["kind"], problem["kind"])
        lines = [line for line in document["lines"] if not line["shows_values"]]
        missing = [line for line in lines if not _is_there(visit.text, line)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {
        "fits": not problems,
        "problems": problems,
        "lines": missing,
        "quoting": len(lines) < len(document["lines"]),
    }


def _is_there(text: str, line: dict[str, Any]) -> bool:
    """Whether the plan has a line already."""
    said = plan_edits.read(text).get(line["section"])
    wanted = plan_edits.read(line["line"])
    return isinstance(said, dict) and all(said.get(key) == value for key, value in wanted.items())


def fix_plan(visit: Visit) -> Response:
    """Add the lines that were suggested and quote no value to the plan."""
    text = visit.text
    check = last_check(visit) or {"lines": []}
    for line in check["lines"]:
        text = plan_edits.add_line(text, line["section"], line["line"])
    visit.parsed(text)
    save(visit.path, text, visit.form.get("opened", ""), "suggested fixes")
    return visit.go("plan", visit.key, "categories")


def check_records(visit: Visit) -> Response:
    """Look at the records, and write what is wrong with them to the private folder."""
    plan, folder = visit.plan, visit.path.parent / data_report.FOLDER

    def work(tell: Tell) -> None:
        tell("looking at the files")
        data_report.write(data_report.check_records(plan, EXAMPLES, progress=tell), folder)

    return start_job(visit, "Checking the records", work, address("plan", visit.key, "categories"))


# ---- review --------------------------------------------------------------------------------------


USUAL = 200_000  # draws of each pair of neighbours
EFFORTS = {
    "40000": "quickly: 40,000 draws of each pair",
    str(USUAL): "as usual: 200,000 draws",
    "1000000": "as the command does: 1,000,000 draws",
}


def show_review(visit: Visit) -> Response:
    """The plan as a reviewer sees it."""
    ledger = visit.ledger
    visit.look("review")
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
        step="review",
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
        said=next((review for review in stands.reviews if review.who == me), None),
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
        for result in table_audit.attack_plan(plan, effort, progress=tell):
            table_audit.write_audit(result, folder)

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
