"""The screens on which numbers become public: exact figures, releases, bundles with their reports,
questions to a bundle, and the budget.

Figures that are not published yet are shown on request only, to whoever may publish them.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, HTMLResponse, Response

from congenial.desk.jobs import Tell
from congenial.desk.plan_steps import has_bundle, unpublished
from congenial.desk.screens import NAME, start_job
from congenial.desk.visit import NotHereError, Visit, address, sentence
from congenial.errors import CongenialError, PlanError
from congenial.inference.estimates.answers import answer_tables
from congenial.inference.estimates.estimating import estimate
from congenial.kinds.registry import of_section
from congenial.ledger.ledger import Ledger
from congenial.ledger.ledger_document import ledger_document
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.privacy.composition import joint_loss
from congenial.publication import workflow
from congenial.publication.bundle import DIGEST, INDEX, read, read_index
from congenial.publication.number_of_people import PEOPLE, figures_beside
from congenial.publication.plan_ledger import BUNDLES, exact_figures, standing
from congenial.publication.published_document import of_preview, preview_words
from congenial.publication.verification import verification_document
from congenial.report.page_data import script_source
from congenial.report.release_page import in_short as promise_in_short
from congenial.report.words import Block, blocks

MOST_ROWS = 60  # of an answer
SHOWN = 200  # numbers of each exact figure that a preview shows


# ---- exact figures -------------------------------------------------------------------------------


def show_publish(visit: Visit, preview: Sequence[Block] = ()) -> Response:
    """The exact figures: which are public, which are to be."""
    plan, ledger = visit.plan, visit.ledger
    published_now = exact_figures(plan, ledger)
    figures = (*published_now.told, *figures_beside(plan, plan.release, published_now).told)
    return visit.page(
        "publish.html",
        step="publish",
        stands=(stands := standing(plan, ledger)),
        ready=not stands.required or stands.standing == "approved",
        figures=[statement.label for statement in plan.statements],
        people=PEOPLE in figures,
        left=unpublished(plan, ledger),
        released=ledger is not None and any(entry.counted for entry in ledger.entries()),
        may_publish=visit.may("mandates"),
        role=visit.role,
        preview=preview,
    )


def preview_figures(visit: Visit) -> Response:
    """What would be public, with warnings for small figures. CONFIDENTIAL until it is published."""
    visit.refuse_stale()
    document = of_preview(visit.plan, workflow.preview(visit.plan, progress=visit.tell))
    preview = preview_words(document, visit.plan.schema, SHOWN)
    return show_publish(visit, preview)


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
        visit, "Publishing the exact figures", work, address("plan", visit.key, "publish")
    )


# ---- releases ------------------------------------------------------------------------------------


def show_release(visit: Visit) -> Response:
    """What is drawn of the plan, and what comes next."""
    plan, ledger = visit.plan, visit.ledger
    names = [section.name for section in plan.release]
    entries = [] if ledger is None else ledger_document(ledger)["releases"]
    drawn = {
        entry["name"]: entry for entry in entries if entry["counted"] and entry["name"] in names
    }
    stands = standing(plan, ledger)
    return visit.page(
        "release.html",
        step="release",
        stands=stands,
        ready=not stands.required or stands.standing == "approved",
        left=unpublished(plan, ledger),
        recorded=blocks("ledger.txt", ledger={"releases": list(drawn.values())}) if drawn else [],
        releases=[
            {"name": name, "drawn": name in drawn, "bundle": has_bundle(plan, name)}
            for name in names
        ],
        may_release=visit.may("reserve"),
        role=visit.role,
    )


def show_rehearsal(visit: Visit) -> Response:
    """The report of a release about made-up people; reads no data, spends nothing."""
    section = visit.plan.named(str(visit.route["release"]))
    kind = of_section(section)
    built = kind.build(visit.plan, section, exact_figures(visit.plan, visit.ledger))
    if not isinstance(built, MeasuredTables):
        raise NotHereError(
            "there is no report with made-up people for this kind of release.",
            remedy="See `congenial demo` for how a report looks.",
        )
    release = built.made_up(section.name)
    report = kind.report(release, release.guarantee.explain())
    banner = (
        "<p><strong>MADE-UP PEOPLE: protected numbers on this page are about nobody. Exact "
        "figures that are public already are real.</strong></p>"
    )
    return _report(report.replace("<body>", f"<body>{banner}", 1))


def draw_release(visit: Visit) -> Response:
    """Draw a release and write its bundle."""
    _confirmed(visit, "release")
    name = visit.plan.named(visit.form.get("name", "")).name

    def work(tell: Tell) -> None:
        tell("reading the data")
        workflow.release(visit.plan, name, progress=tell)

    return start_job(visit, f"Releasing '{name}'", work, address("plan", visit.key, "bundle", name))


# ---- bundles -------------------------------------------------------------------------------------


# A report is ours, yet bundles travel: it runs no script but ours, and reaches nothing of the desk.
REPORT_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    f"script-src {script_source()}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox allow-scripts allow-downloads",
    "x-frame-options": "SAMEORIGIN",
}


def _report(text: str) -> Response:
    return HTMLResponse(text, headers=REPORT_HEADERS)


def show_read(visit: Visit) -> Response:
    """The first bundle of the plan."""
    name = next(
        (section.name for section in visit.plan.release if has_bundle(visit.plan, section.name)),
        None,
    )
    if name is None:
        return visit.page("bundle.html", step="read", name="", names=[])
    return visit.go("plan", visit.key, "bundle", name)


def _folder(visit: Visit) -> Path:
    """The folder of a release of the plan that has a bundle."""
    name = str(visit.route["release"])
    if not NAME.fullmatch(name) or name not in {section.name for section in visit.plan.release}:
        raise NotHereError("the plan has no such release.", remedy="Start at the plan.")
    folder = visit.path.parent / BUNDLES / name
    inside = folder.resolve().is_relative_to(visit.desk.workspace.folder.resolve())
    if not inside or not (folder / INDEX).is_file():
        raise NotHereError(f"'{name}' has no bundle yet.", remedy="Release it first.")
    return folder


def _files(folder: Path) -> list[str]:
    """The files that the bundle lists, and its index."""
    listed = read_index(folder).get("files", {})
    names = [file for file in listed if isinstance(file, str)] + [INDEX, DIGEST]
    return [
        file_name
        for file_name in names
        if (folder / file_name).is_file() and not (folder / file_name).is_symlink()
    ]


def show_bundle(visit: Visit) -> Response:
    """The bundle of one release: its report, a question to it, its checks and files."""
    folder = _folder(visit)
    in_short: list[Block] = []
    written: list[Block] = []
    problem, answer, refused = "", [], ""
    question = visit.query.get("of", "").strip()
    index = read_index(folder)
    promise = str(index.get("promise", ""))
    try:
        release = read(folder)
        short = dict(promise_in_short(release.guarantee, promise))
        in_short = blocks("promise.txt", release={"in_short": short})
        if question:
            try:
                answer = _answer(release, question)
            except CongenialError as error:
                refused = sentence(str(error))
        else:
            verified = verification_document(folder, progress=visit.tell)
            written = blocks("verify.txt", verification=verified)
    except CongenialError as error:
        problem = str(error)
    visit.look("read")
    return visit.page(
        "bundle.html",
        step="read",
        name=folder.name,
        names=[
            section.name for section in visit.plan.release if has_bundle(visit.plan, section.name)
        ],
        in_short=in_short,
        promise=promise,
        now=_now(visit, folder.name),
        publishable=index.get("publishable") is True,
        digest=(folder / DIGEST).read_text(encoding="utf-8").strip(),
        written=written,
        problem=problem,
        files=[{"name": file, "size": (folder / file).stat().st_size} for file in _files(folder)],
        question=question,
        answer=answer,
        refused=refused,
        examples=_examples(visit, folder.name),
    )


def _answer(release: Any, question: str) -> list[Any]:
    """What `congenial estimate` answers, in the same words."""
    answers = estimate([release], [question], 0.9)
    return blocks(
        "estimate.txt",
        answers=answer_tables(answers.to_dicts()),
        most=MOST_ROWS,
        tests=[],
        level=0.9,
        jointly=False,
        file="",
    )


def _examples(visit: Visit, name: str) -> list[str]:
    """Questions that fit the release: its own columns and categories."""
    section = visit.plan.named(name)
    axes = [axis for axis in of_section(section).shown(section) if axis in visit.plan.schema.names]
    if not axes:
        return []
    count = "count()" if getattr(section, "sum", None) is None else f"sum({section.sum})"  # type: ignore[attr-defined]
    questions = [f"{count} by {axes[0]}"]
    if count == "count()" and len(axes) > 1:
        questions.append(f"count() by {axes[0]}, {axes[1]}")
    if count != "count()":
        questions.append(f"mean({section.sum}) by {axes[0]}")  # type: ignore[attr-defined]
    return questions


def _now(visit: Visit, name: str) -> list[Block]:
    """What the release costs now that more may have been published."""
    releases = [] if visit.ledger is None else ledger_document(visit.ledger)["releases"]
    counted = [entry for entry in releases if entry["name"] == name and entry["counted"]]
    return [block for entry in counted for block in blocks("now.txt", release=entry)]


def send_zip(visit: Visit) -> Response:
    """The whole bundle as one file: what it lists, and nothing beside it."""
    folder = _folder(visit)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in _files(folder):
            packed.write(folder / name, f"{folder.name}/{name}")
    headers = {"content-disposition": f'attachment; filename="{folder.name}.zip"'}
    return Response(buffer.getvalue(), media_type="application/zip", headers=headers)


def send_file(visit: Visit) -> Response:
    """One file of a bundle; the report to read, the others to keep."""
    folder = _folder(visit)
    name = str(visit.route["file"])
    if name not in _files(folder):
        raise NotHereError("the bundle has no such file.", remedy="Start at the bundle.")
    if name == "report.html" and visit.query.get("keep") != "yes":
        return _report((folder / name).read_text(encoding="utf-8"))
    return FileResponse(
        folder / name, media_type="application/octet-stream", filename=f"{folder.name}-{name}"
    )


# ---- the budget ----------------------------------------------------------------------------------


def show_budget(visit: Visit) -> Response:
    """What is spent and left over time, release by release, and what has not ended."""
    ledger = visit.ledger
    return visit.page(
        "budget.html",
        step="budget",
        limit=visit.plan.budget.budget().words,
        ledger=blocks("ledger.txt", ledger=ledger_document(ledger)) if ledger else None,
        spent=_over_time(ledger) if ledger else [],
        place=visit.plan.ledger,
        in_a_file=ledger is None or not ledger.where.startswith("postgresql"),
    )


def _over_time(ledger: Ledger) -> list[dict[str, Any]]:
    """After each release, the share of the budget that all releases up to it cost together, at
    today's prices.
    """
    budget, counted = ledger.budget, [past for past in ledger.entries() if past.counted]
    if budget is None:
        return []
    spent = []
    for at, entry in enumerate(counted, 1):
        try:
            loss = joint_loss([past.description for past in counted[:at]], ledger.adjacency)
            share = float(budget.spent(loss) / budget.cap)
        except CongenialError:
            continue
        spent.append(
            {"at": entry.at, "name": entry.name, "share": share, "words": budget.say(loss)}
        )
    return spent
