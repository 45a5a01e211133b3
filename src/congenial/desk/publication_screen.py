"""Publishing the exact figures and drawing releases, as jobs with progress; the budget."""

from __future__ import annotations

from starlette.responses import Response

from congenial.desk.jobs import Tell, Work
from congenial.desk.rendering import address
from congenial.desk.visit import Visit
from congenial.errors import PlanError
from congenial.figures.figures import Figures
from congenial.ledger.ledger_document import ledger_document
from congenial.publication import workflow
from congenial.publication.number_of_people import PEOPLE, figures_beside
from congenial.publication.plan_ledger import standing
from congenial.report.words import blocks


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
