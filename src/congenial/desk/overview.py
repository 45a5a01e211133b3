"""The first page of the desk: plans of the folder with their ledgers, and data without a plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.responses import Response

from congenial.desk.visit import NotHereError, Visit, as_json
from congenial.errors import CongenialError, PlanError
from congenial.ledger.ledger_document import summary
from congenial.publication.draft import write_draft
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger, standing

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
