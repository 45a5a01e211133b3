"""The plan as a form and as text, side by side, checked as one types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from congenial.data.predicate import parse
from congenial.desk import derived_columns, plan_edits
from congenial.desk.rendering import render, sentence
from congenial.desk.visit import Visit, as_json
from congenial.desk.workspace import PlanConflictError, changed_lines, save, text_digest
from congenial.errors import CongenialError, PlanError
from congenial.kinds.registry import of_section
from congenial.publication.plan import Plan

EDITS: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
    "set": (plan_edits.set_value, ("section", "field", "value")),
    "parameter": (plan_edits.set_parameter, ("release", "value")),
    "table": (plan_edits.set_table, ("release", "value")),
    "set-column": (plan_edits.set_column, ("column", "kind", "listed", "blank", "other")),
    "derive-column": (
        derived_columns.derive_column,
        ("column", "way", "sources", "at", "dates", "between"),
    ),
    "remove-column": (plan_edits.remove_column, ("column",)),
    "add-figure": (plan_edits.add_figure, ("label", "by", "because", "condition")),
    "remove-figure": (plan_edits.remove_figure, ("label",)),
    "add-release": (plan_edits.add_release, ("name", "table", "parameter", "value")),
    "remove-release": (plan_edits.remove_release, ("release",)),
}


def show_plan(visit: Visit) -> Response:
    """The plan to read and to change."""
    return _editor(visit, visit.text, text_digest(visit.text))


def _editor(visit: Visit, text: str, opened: str, status: int = 200, **more: Any) -> Response:
    shown = {"conflict": None, "saved": visit.query.get("saved") == "yes", "problem": ""} | more
    return visit.page(
        "plan.html",
        status,
        text=text,
        opened=opened,
        form=form_of(text),
        check=problem_of(visit, text),
        may_save=_may_save(visit),
        **shown,
    )


def _may_save(visit: Visit) -> bool:
    try:
        return visit.may("propose")
    except CongenialError:
        return True


def form_of(text: str) -> dict[str, Any]:
    """What the form shows of a plan's text, whatever that holds."""
    plan = plan_edits.read(text)
    data, budget = _table(plan.get("data")), _table(plan.get("budget"))
    sections = plan.get("release")
    releases = sections if isinstance(sections, list) else []
    return {
        "readable": bool(plan),
        "data": {name: str(data.get(name, "")) for name in ("source", "unit")},
        "budget": {name: str(budget[name]) for name in ("epsilon", "rho") if name in budget},
        "ways": derived_columns.WAYS,
        "dates": derived_columns.DATES,
        "derived": [_derived(name, entry) for name, entry in _table(plan.get("derive")).items()],
        "columns": [_column(name, entry) for name, entry in _table(plan.get("schema")).items()],
        "figures": [
            {"label": label, "words": _figure_words(_table(entry))}
            for label, entry in _table(plan.get("publish")).items()
        ],
        "releases": [_release(_table(one)) for one in releases],
    }


def _derived(name: str, entry: Any) -> str:
    """A column that is made from others, in a few words."""
    said = _table(entry)
    way = next(iter(said), "")
    return f"{name}: {way} of {_joined(said.get(way, ''), ' + ')}"


def _column(name: str, entry: Any) -> dict[str, Any]:
    """A column of the schema: its kind and its values, where a form can change them."""
    said = _table(entry)
    kind = next((one for one in ("edges", "levels_file") if one in said), "levels")
    values = said.get(kind)
    listed = values if isinstance(values, list) else [values] if values else []
    return {
        "name": name,
        "label": str(said.get("label", "")),
        "kind": kind,
        "open": listed == [plan_edits.PLACEHOLDER],
        "listed": "" if listed == [plan_edits.PLACEHOLDER] else _joined(listed, ", "),
        "size": len(listed),
        "blank": str(said.get("missing", "")),
        "other": str(said.get("other", "")),
        "editable": plan_edits.can_set(said),
    }


def _table(value: Any) -> dict[str, Any]:
    """A table of TOML, or nothing where something else stands."""
    return value if isinstance(value, dict) else {}


def _joined(names: Any, between: str) -> str:
    return between.join(map(str, names)) if isinstance(names, list) else str(names)


def _figure_words(entry: dict[str, Any]) -> str:
    """A figure in a few words."""
    kinds = ("count", "margin", "linear", "structural_zeros")
    kind = next((one for one in kinds if one in entry), "total")
    said = "total" if kind == "total" else f"{kind} {_joined(entry[kind], ' x ')}"
    return f"{said} by {_joined(entry['by'], ', ')}" if entry.get("by") else said


def _release(one: dict[str, Any]) -> dict[str, str]:
    key = next((name for name in plan_edits.PARAMETERS if name in one), "")
    tables = one.get("tables", [one["table"]] if "table" in one else [])
    words = [_joined(names, " x ") for names in tables] if isinstance(tables, list) else []
    return {
        "name": str(one.get("name", "")),
        "parameter": key,
        "value": str(one.get(key, "")),
        "words": "; ".join(words) or "other",
        "table": _joined(one["table"], ", ") if isinstance(one.get("table"), list) else "",
    }


def problem_of(visit: Visit, text: str) -> dict[str, str]:
    """What is wrong with a plan's text, if anything; reads no data."""
    try:
        plan = visit.parsed(text)
        _ = plan.invariants, plan.source, plan.ledger
        _refuse_unknown_names(plan)
    except CongenialError as error:
        return {"state": "problem", "words": sentence(str(error))}
    return {
        "state": "fine",
        "words": "The plan can be read, and its figures go together. What it costs is under Price.",
    }


def _refuse_unknown_names(plan: Plan) -> None:
    """SchemaError for a column or a condition that the schema does not know."""
    for statement in plan.statements:
        plan.schema.axes(statement.by)
        for condition, _ in statement.terms:
            if condition:
                parse(condition, plan.schema)
    for section in plan.release:
        for name in of_section(section).shown(section):
            plan.schema.axis(name)


def check_plan(visit: Visit) -> Response:
    """Check the text as it stands in the page; for the page's own script."""
    text = visit.form.get("text", "")
    told = problem_of(visit, text)
    return as_json(told | {"form": _form_html(visit, text)})


def edit_plan(visit: Visit) -> Response:
    """Apply an edit of the form to the text in the page; nothing is saved by it."""
    text = visit.form.get("text", "")
    name = visit.form.get("edit", "")
    if name not in EDITS:
        raise PlanError("there is no such edit.", remedy="Open the page again.")
    edit, names = EDITS[name]
    try:
        text = edit(text, *(visit.form.get(field, "") for field in names))
    except CongenialError as error:
        return as_json(
            {"state": "problem", "words": sentence(str(error)), "text": None, "form": None}
        )
    return as_json(problem_of(visit, text) | {"text": text, "form": _form_html(visit, text)})


def _form_html(visit: Visit, text: str) -> str:
    return render("plan_form.html", form=form_of(text), may_save=_may_save(visit))


def save_plan(visit: Visit) -> Response:
    """Save the text, unless somebody else did in between: then both are shown."""
    text = visit.form.get("text", "").replace("\r\n", "\n")
    try:
        save(visit.path, text, visit.form.get("opened", ""))
    except PlanConflictError as error:
        theirs = Plan.read(visit.path)
        lines = changed_lines(theirs, text)
        return _editor(visit, text, text_digest(theirs), 409, conflict=lines, problem=str(error))
    except PlanError as error:
        return _editor(visit, text, visit.form.get("opened", ""), 422, problem=str(error))
    answer = visit.go("plan", visit.key)
    answer.headers["location"] += "?saved=yes"
    return answer
