"""The plan as a form and as text, side by side, checked as one types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from congenial.data.predicate import parse
from congenial.desk import plan_edits
from congenial.desk.visit import Visit, as_json, render, sentence
from congenial.desk.workspace import PlanConflictError, changed_lines, save, text_digest
from congenial.errors import CongenialError, PlanError
from congenial.kinds.registry import of_section
from congenial.privacy.numbers import LIMITED
from congenial.publication.plan import Plan

# The edits of the form: which function, and which fields of the page it takes.
EDITS: dict[str, tuple[Callable[..., str], tuple[str, ...]]] = {
    "set": (plan_edits.set_key, ("section", "entry", "field", "value")),
    "remove": (plan_edits.remove, ("section", "entry")),
    "set-column": (plan_edits.set_column, ("column", "kind", "listed", "missing", "other")),
    "derive-column": (
        plan_edits.derive_column,
        ("column", "way", "sources", "at", "dates", "between"),
    ),
    "add-figure": (plan_edits.add_figure, ("label", "by", "because", "condition")),
    "add-release": (plan_edits.add_release, ("name", "table", "parameter", "value")),
}
WAYS = {
    "age": "Age in full years on a day, from the date of birth",
    "year": "Year of a date",
    "month": "Month of a date",
    "join": "Several columns joined, such as tract and block",
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
    """What the form shows of a plan's text, which may be anything."""
    plan = plan_edits.read(text)
    releases = plan.get("release")
    return {
        "readable": bool(plan),
        "data": {name: str(_table(plan.get("data")).get(name, "")) for name in ("source", "unit")},
        "budget": _amounts(plan.get("budget")),
        "ways": WAYS,
        "dates": plan_edits.DATES,
        "derived": [
            {"name": name, "words": _words(entry)}
            for name, entry in _table(plan.get("derive")).items()
        ],
        "columns": [_column(name, entry) for name, entry in _table(plan.get("schema")).items()],
        "figures": [
            {"label": label, "words": _words(entry)}
            for label, entry in _table(plan.get("publish")).items()
        ],
        "releases": [
            _release(_table(entry)) for entry in (releases if isinstance(releases, list) else [])
        ],
    }


def _table(value: Any) -> dict[str, Any]:
    """A table of TOML, or nothing where something else stands."""
    return value if isinstance(value, dict) else {}


def _amounts(section: Any) -> dict[str, str]:
    """The numbers of a promise or of a budget that a section has, such as its epsilon."""
    return {name: str(_table(section)[name]) for name in LIMITED if name in _table(section)}


def _words(entry: Any) -> str:
    """An entry of a section in a few words: its keys with their values.

    >>> _words({"count": "age >= 18", "by": ["county", "sex"]})
    'count age >= 18, by county + sex'
    """
    return ", ".join(
        key if value is True else f"{key} {_joined(value, ' + ')}"
        for key, value in _table(entry).items()
    )


def _joined(names: Any, between: str) -> str:
    return between.join(map(str, names)) if isinstance(names, list) else str(names)


def _column(name: str, entry: Any) -> dict[str, Any]:
    """A column of the schema: its kind and its values, where a form can change them."""
    keys = _table(entry)
    kind = next((key for key in ("edges", "levels_file") if key in keys), "levels")
    values = keys.get(kind)
    listed = values if isinstance(values, list) else [values] if values else []
    drafted = listed == [plan_edits.PLACEHOLDER]
    return {
        "name": name,
        "label": str(keys.get("label", "")),
        "kind": kind,
        "open": drafted,
        "listed": "" if drafted else _joined(listed, ", "),
        "size": len(listed),
        "missing": str(keys.get("missing", "")),
        "other": str(keys.get("other", "")),
        "editable": plan_edits.can_set(keys),
    }


def _release(section: dict[str, Any]) -> dict[str, Any]:
    tables = section.get("tables")
    words = [_joined(names, " x ") for names in tables] if isinstance(tables, list) else []
    return {
        "name": str(section.get("name", "")),
        "amounts": _amounts(section),
        "words": "; ".join(words) or "can be changed in the text",
        "table": _joined(section["table"], ", ") if isinstance(section.get("table"), list) else "",
    }


def problem_of(visit: Visit, text: str) -> dict[str, str]:
    """What is wrong with a plan's text, if anything; reads no data."""
    try:
        plan = visit.parsed(text)
        _ = plan.figures, plan.source, plan.ledger
        _refuse_unknown_names(plan)
    except CongenialError as error:
        return {"state": "problem", "words": sentence(str(error))}
    return {
        "state": "fine",
        "words": "The plan is valid. Price shows what it costs and how large errors will be.",
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
    """Check the text in the page; for the page's own script."""
    text = visit.form.get("text", "")
    return as_json(problem_of(visit, text) | {"form": _form_html(visit, text)})


def edit_plan(visit: Visit) -> Response:
    """Apply an edit of the form to the text in the page; nothing is saved by it."""
    text = visit.form.get("text", "")
    name = visit.form.get("edit", "")
    if name not in EDITS:
        raise PlanError(f"the form has no edit '{name}'.", remedy="Open the page again.")
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
