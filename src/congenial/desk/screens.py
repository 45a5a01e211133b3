"""The screens of the desk but for the plan's form and its price: the first page, a bundle, the
figures and releases of a plan, the budget, the check of the records, the review.

What the records hold is confidential: how many rows, which values and which rows stand in a private
folder on the desk's machine, and no page shows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response

from congenial.desk import plan_edits
from congenial.desk.jobs import Tell, Work
from congenial.desk.visit import NotHereError, Visit, address, as_json
from congenial.desk.workspace import changed_lines, save, text_digest
from congenial.errors import CongenialError, LedgerError, PlanError
from congenial.figures.figures import Figures
from congenial.ledger.approvals import Word
from congenial.ledger.budget import in_words
from congenial.ledger.ledger_document import ledger_document, summary
from congenial.publication import data_report, plan_ledger, table_audit, workflow
from congenial.publication.bundle import DIGEST, INDEX, read, read_index
from congenial.publication.check_document import examine, words
from congenial.publication.draft import write_draft
from congenial.publication.number_of_people import PEOPLE, figures_beside
from congenial.publication.plan import DIGEST_OF, Plan
from congenial.publication.plan_ledger import open_ledger, standing
from congenial.publication.verification import verification_document
from congenial.report.words import blocks, sections

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


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
    if not _NAME.fullmatch(name):
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


# A report is ours, yet bundles travel: it runs nothing, and reaches nothing of the desk.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


def _folder(visit: Visit) -> Path:
    """The folder of a release of the plan that has a bundle."""
    name = str(visit.route["release"])
    if not _NAME.fullmatch(name) or name not in {one.name for one in visit.plan.release}:
        raise NotHereError("the plan has no such release.", remedy="Start at the plan.")
    folder = visit.path.parent / "bundles" / name
    inside = folder.resolve().is_relative_to(visit.desk.workspace.folder.resolve())
    if not inside or not (folder / INDEX).is_file():
        raise NotHereError(f"'{name}' has no bundle yet.", remedy="Release it first.")
    return folder


def _files(folder: Path) -> list[str]:
    """The files that the bundle lists, and its index."""
    listed = read_index(folder).get("files", {})
    names = [one for one in listed if isinstance(one, str)] + [INDEX, DIGEST]
    return [one for one in names if (folder / one).is_file() and not (folder / one).is_symlink()]


def show_bundle(visit: Visit) -> Response:
    """The bundle of one release."""
    folder = _folder(visit)
    verified: dict[str, Any] = {"holds": False, "checks": []}
    in_short, problem = {}, ""
    try:
        verified = verification_document(folder, progress=visit.tell)
        in_short = read(folder).guarantee.in_short
    except CongenialError as error:
        problem = str(error)
    index = read_index(folder)
    return visit.page(
        "bundle.html",
        name=folder.name,
        in_short=in_short,
        promise=str(index.get("promise", "")),
        now=_now(visit, folder.name),
        publishable=index.get("publishable") is True,
        digest=(folder / DIGEST).read_text(encoding="utf-8").strip(),
        verified=verified,
        written=blocks("verify.txt", verification=verified) if verified["checks"] else [],
        problem=problem,
        files=[{"name": one, "size": (folder / one).stat().st_size} for one in _files(folder)],
    )


def _now(visit: Visit, name: str) -> str:
    """What the release costs now that more may have been published."""
    if visit.ledger is None:
        return ""
    budget = visit.ledger.budget
    say = in_words if budget is None else budget.say
    for one in visit.ledger.prices().releases:
        if one.entry.name == name:
            then, now = say(one.then), say(one.now)
            if then == now:
                return f"This release alone still promises {now}."
            return f"This release alone promised {then}; with what was published since: {now}."
    return ""


def send_file(visit: Visit) -> Response:
    """One file of a bundle; the report to read, the others to keep."""
    folder = _folder(visit)
    name = str(visit.route["file"])
    if name not in _files(folder):
        raise NotHereError("the bundle has no such file.", remedy="Start at the bundle.")
    if name == "report.html" and visit.query.get("keep") != "yes":
        headers = {"content-security-policy": REPORT_POLICY}
        return FileResponse(folder / name, media_type="text/html", headers=headers)
    return FileResponse(
        folder / name, media_type="application/octet-stream", filename=f"{folder.name}-{name}"
    )


def show_release(visit: Visit) -> Response:
    """What is published and drawn of the plan, and what comes next."""
    plan, ledger = visit.plan, visit.ledger
    known = Figures(plan.schema) if ledger is None else ledger.figures
    new = [one for one in figures_beside(plan, known).told if one not in known.told]
    apart = ledger is not None and bool(ledger.roles)  # a publisher may be somebody else
    left = [one.label for one in new if apart or one != PEOPLE]
    entries = {} if ledger is None else {one.name: one for one in ledger.entries() if one.counted}
    stands = standing(plan, ledger)
    return visit.page(
        "release.html",
        stands=stands,
        ready=not stands.required or stands.standing == "approved",
        figures=[one.label for one in plan.statements],
        people=PEOPLE in (*new, *known.told),
        left=left,
        released=bool(entries),
        releases=[
            {
                "name": one.name,
                "entry": entries.get(one.name),
                "bundle": _has_bundle(visit, one.name),
            }
            for one in plan.release
        ],
        may_publish=visit.may("mandates"),
        may_release=visit.may("reserve"),
        role=visit.role,
    )


def _has_bundle(visit: Visit, name: str) -> bool:
    return (visit.path.parent / "bundles" / name / "release.json").is_file()


def _confirmed(visit: Visit, word: str) -> None:
    """Neither figures nor noise can be taken back: a tick in the form says that this is known."""
    if visit.form.get("sure") != word:
        raise PlanError("this cannot be taken back.", remedy="Tick the box that says so first.")
    visit.refuse_stale()


def publish_figures(visit: Visit) -> Response:
    """Compute, record and write the exact figures."""
    _confirmed(visit, "publish")
    weaker = visit.form.get("weaker") == "yes"

    def work(tell: Tell) -> None:
        tell("reading the data")
        workflow.publish(visit.plan, accept_weaker=weaker, progress=tell)

    return start_job(
        visit, "Publishing the exact figures", work, address("plan", visit.key, "release")
    )


def draw_release(visit: Visit) -> Response:
    """Draw a release and write its bundle."""
    _confirmed(visit, "release")
    name = visit.plan.named(visit.form.get("name", "")).name

    def work(tell: Tell) -> None:
        tell("reading the data")
        workflow.release(visit.plan, name, progress=tell)

    return start_job(visit, f"Releasing '{name}'", work, address("plan", visit.key, "bundle", name))


def start_job(visit: Visit, title: str, work: Work, then: str) -> Response:
    """Run work for the plan, and send the visitor to its progress."""
    job = visit.desk.jobs.start(title, visit.key, then, work)
    return visit.go("job", job.id)


def show_budget(visit: Visit) -> Response:
    """What is spent and left, release by release, and what has not ended."""
    ledger = visit.ledger
    return visit.page(
        "budget.html",
        limit=visit.plan.budget.budget().words,
        ledger=blocks("ledger.txt", ledger=ledger_document(ledger)) if ledger else None,
        place=visit.plan.ledger,
        in_a_file=ledger is None or not ledger.where.startswith("postgresql"),
    )


# ---- the check of the records --------------------------------------------------------------------


EXAMPLES = 20  # values of each problem, in the private folder only
WORDS = {
    "not in the schema": "values that the plan does not name",
    "unit missing": "rows that do not say whose they are",
    "unit repeated": "more rows of one person than the plan allows",
    "blank rows": "some rows are empty throughout",
}


def show_data(visit: Visit) -> Response:
    """What the last check found, in kinds of problems, and what can be done about it."""
    return visit.page(
        "data.html",
        found=_found(visit),
        source=visit.plan.data.source,
        place=data_report.FOLDER,
        may_check=visit.may("reserve"),
        may_fix=visit.may("propose"),
        note=data_report.SCHEMA_IS_PUBLIC,
        opened=text_digest(visit.text),
        added=visit.query.get("added") == "yes",
    )


def _found(visit: Visit) -> dict[str, Any] | None:
    """The last check without its numbers and values; lines that quote a value are counted only."""
    try:
        path = visit.path.parent / data_report.FOLDER / "problems.json"
        told = json.loads(path.read_text(encoding="utf-8"))
        names = ("column", "kind", "remedy")
        problems = [{name: str(one[name]) for name in names} for one in told["problems"]]
        for one in problems:
            one["kind"] = WORDS.get(one["kind"], one["kind"])
        lines = [one for one in told["lines"] if not one["shows_values"]]
        missing = [one for one in lines if not _is_there(visit.text, one)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {
        "fits": not problems,
        "problems": problems,
        "lines": missing,
        "quoting": len(lines) < len(told["lines"]),
    }


def _is_there(text: str, line: dict[str, Any]) -> bool:
    """Whether the plan has a line already."""
    said = plan_edits.read(text).get(line["section"])
    wanted = plan_edits.read(line["line"])
    return isinstance(said, dict) and all(said.get(key) == value for key, value in wanted.items())


def fix_plan(visit: Visit) -> Response:
    """Add the lines that were suggested and quote no value to the plan."""
    text = visit.text
    found = _found(visit) or {"lines": []}
    for one in found["lines"]:
        text = plan_edits.add_line(text, one["section"], one["line"])
    visit.parsed(text)
    save(visit.path, text, visit.form.get("opened", ""))
    answer = visit.go("plan", visit.key, "data")
    answer.headers["location"] += "?added=yes"
    return answer


def check_records(visit: Visit) -> Response:
    """Look at the records, and write what is wrong with them to the private folder."""
    plan, folder = visit.plan, visit.path.parent / data_report.FOLDER

    def work(tell: Tell) -> None:
        tell("looking at the files")
        data_report.write(data_report.check_records(plan, EXAMPLES, progress=tell), folder)

    return start_job(visit, "Checking the records", work, address("plan", visit.key, "data"))


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
