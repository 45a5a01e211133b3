"""What a plan would promise and cost, before any data are read: as planned, and with changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from congenial.desk.visit import NotHereError, Visit, planned
from congenial.errors import CongenialError
from congenial.ledger.roles import role_of
from congenial.publication.check_document import examine
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.report.error_bars import error_bars

SHOWN = 40  # rows of expected errors of one release


def show_price(visit: Visit) -> Response:
    """The price of the plan; beside it the same without some figures, or another plan."""
    want, problem = _want(visit), ""
    suppose = [one.strip() for one in visit.query.getlist("suppose") if one.strip()]
    without = [one for one in visit.query.getlist("without") if one in visit.plan.publish]
    columns = []
    try:
        columns.append(_column("As planned", examine(visit.plan, want, suppose)))
    except CongenialError as error:
        problem = str(error)
    if without and not problem:
        columns.append(_changed(f"Without {', '.join(without)}", _less(visit.plan, without)))
    beside = visit.query.get("beside", "")
    if beside and not problem:
        columns.append(_changed(f"Plan {beside}", _other(visit, beside)))
    return visit.page(
        "price.html",
        columns=columns,
        problem=problem,
        figures=list(visit.plan.publish),
        without=without,
        suppose=" ".join(suppose),
        others=[one for one in visit.desk.workspace.plans() if one != visit.key],
        beside=beside,
        axes=_margins(visit.plan),
        asked=visit.query,
    )


def _want(visit: Visit) -> str | None:
    """The wished accuracy of the page's fields, in the words of `congenial check --want`."""
    within = visit.query.get("within", "").strip()
    if not within:
        return None
    of, level = visit.query.get("of", "total"), visit.query.get("level", "95")
    names = [one for one in of.split(",") if one in _all_names(visit.plan)]
    what = f"margin({', '.join(repr(one) for one in names)})" if names else "total"
    return f"{what} within {within} at {level}%"


def _all_names(plan: Plan) -> set[str]:
    return {name for one in _margins(plan) for name in one.split(",")}


def _margins(plan: Plan) -> list[str]:
    """Tables that a wish can be about: those the plan releases, and single columns of them."""
    found: dict[str, None] = {}
    for section in plan.release:
        tables = getattr(section, "tables", None) or [getattr(section, "table", None) or []]
        for names in tables:
            found.update(dict.fromkeys([",".join(names), *names]) if names else {})
    return list(found)


def _less(plan: Plan, without: Sequence[str]) -> Plan:
    """The same plan with fewer figures; its ledger is as it was."""
    kept = {label: entry for label, entry in plan.publish.items() if label not in without}
    return Plan(
        data=plan.data,
        schema=plan.schema_,
        publish=kept,
        release=plan.release,
        budget=plan.budget,
        folder=plan.folder,
    )


def _other(visit: Visit, key: str) -> Plan:
    path = visit.desk.workspace.plans().get(key)
    if path is None:
        raise NotHereError("there is no such plan at this desk.", remedy="Choose one of the list.")
    plan = planned(visit.desk, path, Plan.read(path))
    ledger = open_ledger(plan, create=False, who=visit.who)
    if ledger is not None and role_of(ledger.roles, ledger.who) == "none":
        raise NotHereError("there is no such plan at this desk.", remedy="Choose one of the list.")
    return plan


def _changed(title: str, plan: Plan) -> dict[str, Any]:
    try:
        return _column(title, examine(plan))
    except CongenialError as error:
        return {"title": title, "problem": str(error), "releases": [], "document": None}


def _column(title: str, document: dict[str, Any]) -> dict[str, Any]:
    """One way to plan it: the document of `check`, and a picture of errors per release."""
    releases = [one | {"rows": _rows(one)} for one in document["releases"]]
    for one in releases:
        bars = [(row["what"], row["within"]) for row in one["rows"]]
        one["picture"] = error_bars(bars) if bars else ""
        one.setdefault("mandate_costs", [])
    return {"title": title, "problem": "", "releases": releases, "document": document}


def _rows(release: dict[str, Any]) -> list[dict[str, Any]]:
    """Expected errors of a release: what, how many sums, within, at which level."""
    told = [
        {"what": " x ".join(row["table"]) or "total", "sums": row["cells"]}
        | {name: row[name] for name in ("within", "level")}
        for row in release.get("tables", [])
    ]
    told += [
        {name: row[name] for name in ("what", "sums", "within", "level")}
        for row in release["errors"]
    ]
    return told[:SHOWN]
