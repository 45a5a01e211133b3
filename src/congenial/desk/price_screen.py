"""What a plan would promise and cost, before any data are read: as planned, and with changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from congenial.data.schema import Schema
from congenial.desk.visit import NotHereError, Visit
from congenial.errors import CongenialError
from congenial.publication.check_document import examine
from congenial.publication.plan import Plan
from congenial.report.svg import error_bars

SHOWN = 40  # rows of expected errors of one release


def show_price(visit: Visit) -> Response:
    """The price of the plan; beside it the same without some figures, or another plan."""
    want, problem = _want(visit), ""
    suppose = [one.strip() for one in visit.query.getlist("suppose") if one.strip()]
    without = [one for one in visit.query.getlist("without") if one in visit.plan.publish]
    columns = []
    try:
        columns.append(
            _column("As planned", visit.plan, examine(visit.plan, want, suppose, visit.tell))
        )
    except CongenialError as error:
        problem = str(error)
    if without and not problem:
        columns.append(_changed(visit, f"Without {', '.join(without)}", _less(visit.plan, without)))
    beside = visit.query.get("beside", "")
    if beside and not problem:
        columns.append(_changed(visit, f"Plan {beside}", _other(visit, beside)))
    return visit.page(
        "price.html",
        columns=columns,
        problem=problem,
        figures=list(visit.plan.publish),
        without=without,
        suppose=" ".join(suppose),
        others=[one for one in visit.desk.workspace.plans() if one != visit.key],
        beside=beside,
        axes={one: shown_table(visit.plan.schema, one.split(",")) for one in _margins(visit.plan)},
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
        tables = getattr(section, "tables", None)
        if not isinstance(tables, list):  # "auto" chooses sums of one table
            tables = [getattr(section, "table", None) or []]
        for names in tables:
            found.update(dict.fromkeys([",".join(names), *names]) if names else {})
    return list(found)


def _less(plan: Plan, without: Sequence[str]) -> Plan:
    """The same plan with fewer figures; its ledger is as it was."""
    kept = {label: entry for label, entry in plan.publish.items() if label not in without}
    given = {one.alias or name: getattr(plan, name) for name, one in Plan.model_fields.items()}
    return Plan(**given | {"publish": kept})


def _other(visit: Visit, key: str) -> Plan:
    path = visit.desk.workspace.plans().get(key)
    if path is None:
        raise NotHereError("there is no such plan at this desk.", remedy="Choose one of the list.")
    return Plan.load(path)


def _changed(visit: Visit, title: str, plan: Plan) -> dict[str, Any]:
    try:
        return _column(title, plan, examine(plan, progress=visit.tell))
    except CongenialError as error:
        return {"title": title, "problem": str(error), "releases": [], "document": None}


def _column(title: str, plan: Plan, document: dict[str, Any]) -> dict[str, Any]:
    """One way to plan it: the document of `check`, and a picture of errors per release."""
    releases = [one | {"rows": _rows(plan.schema, one)} for one in document["releases"]]
    for one in releases:
        bars = [(row["what"], row["error"]) for row in one["rows"]]
        one["picture"] = error_bars(bars) if bars else ""
        one.setdefault("figure_costs", [])
    return {"title": title, "problem": "", "releases": releases, "document": document}


def shown_table(schema: Schema, names: Sequence[str]) -> str:
    """A table in words: the labels of its columns, or their names where they have none."""
    return " x ".join(schema.shown(name) for name in names) or "total"


def _rows(schema: Schema, release: dict[str, Any]) -> list[dict[str, Any]]:
    """Expected errors of a release: what, how many sums, and how far off."""
    tables, errors = release.get("tables", []), release["errors"]
    if len(tables) == 1 and release["kind"] == "tables":  # `errors` has every kind of sum of it
        tables = []
    told = [_row(shown_table(schema, one["table"]), one["cells"], one) for one in tables]
    told += [_row(_words(schema, one["what"]), one.get("sums"), one) for one in errors]
    return told[:SHOWN]


def _row(what: str, sums: int | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """One line: an error that is kept with some probability, or else a standard deviation."""
    sums_words = "" if sums is None else f"{sums:,}"
    if "within" in row:
        level = f"{100 * row['level']:.0f} %"
        return {"what": what, "sums": sums_words, "error": row["within"], "kept": level}
    deviation = row["standard_deviation"] if "standard_deviation" in row else row["deviation"]
    return {"what": what, "sums": sums_words, "error": deviation, "kept": "standard deviation"}


def _words(schema: Schema, what: str) -> str:
    """What an error is of, as `check` writes it: a table, or the name of a statistic."""
    names = [] if what == "total" else what.split(" x ")
    known = all(name in _axes(schema) for name in names)
    return shown_table(schema, names) if known else what


def _axes(schema: Schema) -> set[str]:
    return {name for one in schema.attributes for name in (one.name, *one.coarser)}
