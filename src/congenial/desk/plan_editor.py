"""The steps in which a plan is written: its data, categories, exact figures and tables, each a
screen of choices beside the plan's text. Every change is saved, and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from starlette.datastructures import QueryParams
from starlette.responses import Response

from congenial.data.durable_files import write_new
from congenial.data.engines import open_source
from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.desk import plan_edits
from congenial.desk.plan_steps import drawn_of
from congenial.desk.screens import NAME, last_check
from congenial.desk.visit import NotHereError, Visit, as_json, sentence
from congenial.desk.workspace import (
    PlanConflictError,
    changed_lines,
    history,
    save,
    undo,
)
from congenial.errors import CongenialError, PlanError
from congenial.kinds.plan_sections import KINDS
from congenial.kinds.registry import of_section
from congenial.kinds.tables_section import automatic
from congenial.privacy.numbers import LIMITED
from congenial.publication.draft import columns_of
from congenial.publication.plan import Plan

# The edits of the screens: which function, which fields of the page it takes, and what it did.
EDITS: dict[str, tuple[Callable[..., str], tuple[str, ...], str]] = {
    "set": (plan_edits.set_key, ("section", "entry", "field", "value"), "{field} of {section}"),
    "remove": (plan_edits.remove, ("section", "entry"), "{entry} removed"),
    "set-column": (
        plan_edits.set_column,
        ("column", "kind", "listed", "missing", "other"),
        "categories of {column}",
    ),
    "set-column-by-looking": (
        plan_edits.set_column_by_looking,
        ("column", "kind", "listed", "missing", "other"),
        "categories of {column}",
    ),
    "recode": (plan_edits.recode, ("column", "value", "to"), "recoding of {column}"),
    "derive-column": (
        plan_edits.derive_column,
        ("column", "way", "sources", "at", "dates", "between"),
        "column {column}",
    ),
    "add-figure": (
        plan_edits.add_figure,
        ("label", "by", "because", "condition"),
        "exact figure {label}",
    ),
    "toggle-by": (plan_edits.toggle_by, ("entry", "name"), "{name} of exact figure {entry}"),
    "add-release": (
        plan_edits.add_release,
        ("name", "table", "parameter", "value"),
        "release {name}",
    ),
    "toggle-axis": (
        plan_edits.toggle_axis,
        ("entry", "at", "name"),
        "{name} in a table of {entry}",
    ),
    "add-table": (plan_edits.add_table, ("entry",), "a table of {entry}"),
    "remove-table": (plan_edits.remove_table, ("entry", "at"), "a table of {entry} removed"),
    "sum": (
        plan_edits.set_sum,
        ("entry", "column", "low", "high", "step"),
        "what {entry} counts or sums",
    ),
    "promise": (
        plan_edits.set_promise,
        ("section", "entry", "parameter", "value", "delta"),
        "promise of {entry}",
    ),
}
WAYS = {
    "age": "Age in full years on a day, from the date of birth",
    "year": "Year of a date",
    "month": "Month of a date",
    "join": "Several columns joined, such as tract and block",
}
PARAMETERS = ("epsilon", "rho", "mu")


# ---- the screens ---------------------------------------------------------------------------------


def show_data(visit: Visit, **more: Any) -> Response:
    """Which file, and whose rows."""
    data = _table(plan_edits.read(visit.text).get("data"))
    files = visit.desk.workspace.data_files()
    beside = visit.path.parent
    names = [file.relative_to(beside).as_posix() for file in files.values() if _below(file, beside)]
    return _screen(visit, "data", data=data, files=names, columns=_columns_in_file(visit), **more)


def _below(path: Any, folder: Any) -> bool:
    return bool(path.is_relative_to(folder))


def show_categories(visit: Visit, **more: Any) -> Response:
    """The columns of the tables and the values that each may have."""
    values = plan_edits.read(visit.text)
    columns = [_column(name, entry) for name, entry in _table(values.get("schema")).items()]
    derived = _table(values.get("derive"))
    unit = _table(values.get("data")).get("unit")
    used = {name for entry in derived.values() for name in _sources(entry)}
    spare = [
        name
        for name in _columns_in_file(visit)
        if name != unit and name not in used and all(name != row["name"] for row in columns)
    ]
    chosen = visit.query.get("column") or next((c["name"] for c in columns if c["open"]), "")
    column = next((row for row in columns if row["name"] == chosen), None)
    if column is None and columns and chosen not in (*spare, "+"):
        column = columns[0]
    return _screen(
        visit,
        "categories",
        columns=columns,
        spare=spare,
        column=column,
        adds=chosen if column is None else "",
        derived={name: _words(entry) for name, entry in derived.items()},
        ways=WAYS,
        dates=plan_edits.DATES,
        found=last_check(visit),
        **({"values": None} | more),
    )


def show_figures(visit: Visit, **more: Any) -> Response:
    """What is published exactly."""
    values = plan_edits.read(visit.text)
    schema = _schema(visit)
    figures = [
        {
            "label": label,
            "words": _words({key: value for key, value in _table(entry).items() if key != "by"}),
            "by": _table(entry).get("margin", _table(entry).get("by", [])),
            "chips": "structural_zeros" not in _table(entry),
        }
        for label, entry in _table(values.get("publish")).items()
    ]
    return _screen(
        visit,
        "figures",
        figures=figures,
        axes=_axes(schema),
        conditions=_conditions(schema, _table(values.get("schema"))),
        **more,
    )


def show_tables(visit: Visit, **more: Any) -> Response:
    """The releases, each with its tables as rows of ticks."""
    values = plan_edits.read(visit.text)
    listed = values.get("release")
    releases = [_release(_table(entry)) for entry in (listed if isinstance(listed, list) else [])]
    wanted = visit.query.get("release")
    chosen = next((release for release in releases if release["name"] == wanted), None)
    if chosen is None and wanted != "+" and releases:
        chosen = releases[0]
    schema = _schema(visit)
    budget = _amounts(values.get("budget"))
    return _screen(
        visit,
        "tables",
        releases=releases,
        release=chosen,
        axes=_axes(schema),
        parts=[name for attribute in schema.attributes for name in attribute.coarser]
        if schema
        else [],
        numbers=_columns_in_file(visit),
        several="max_rows" in _table(values.get("data")),
        usual=next((name for name in budget if name in PARAMETERS), "epsilon"),
        budget=budget,
        parameters=PARAMETERS,
        **more,
    )


def show_text(visit: Visit, **more: Any) -> Response:
    """The plan as text, its history, and what differs where somebody else saved it."""
    page: dict[str, Any] = {"conflict": None, "mine": None} | more
    earlier = history(visit.path)[::-1]
    texts = [visit.text, *(earlier_text.text for earlier_text in earlier)]
    changes = [changed_lines(old, new) for new, old in pairwise(texts)]
    return _screen(visit, "text", history=list(zip(earlier, changes, strict=True)), **page)


SCREENS: dict[str, Callable[..., Response]] = {
    "data": show_data,
    "categories": show_categories,
    "figures": show_figures,
    "tables": show_tables,
    "text": show_text,
}


def _screen(visit: Visit, step: str, status: int = 200, **shown: Any) -> Response:
    """A page with what every step of the plan shows; `refused` is an edit that was not done."""
    about: dict[str, Any] = {"refused": None, "asked": visit.form, "problem": ""}
    check = problem_of(visit, visit.text)
    return visit.page(f"{step}.html", status, step=step, check=check, **(about | shown))


def show_first(visit: Visit) -> Response:
    """The step that comes next."""
    return visit.go("plan", visit.key, visit.next_step)


# ---- what the screens show of a plan's text, which may be anything -------------------------------


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


def _sources(entry: Any) -> list[str]:
    """Columns that a derived column is computed from."""
    addresses = [value for key, value in _table(entry).items() if key in KINDS]
    return [
        str(name) for value in addresses for name in (value if isinstance(value, list) else [value])
    ]


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
    """A release: its tables, or what kind it is where it has none."""
    tables = plan_edits.tables_of(section)
    amounts = _amounts(section)
    between = section.get("between")
    low, high = between if isinstance(between, list) and len(between) == 2 else ("", "")
    return {
        "name": str(section.get("name", "")),
        "amounts": amounts,
        "parameter": next((name for name in PARAMETERS if name in amounts), ""),
        "tables": tables,
        "words": "" if tables else _words(section),
        "sum": str(section.get("sum", "")),
        "low": low,
        "high": high,
        "step": section.get("step", ""),
        "counts": section.get("counts") is True,
        "units": section.get("units") is True,
        "parts": str(section.get("parts", "")),
        "nonnegative": str(section.get("nonnegative", "")),
    }


def _columns_in_file(visit: Visit) -> list[str]:
    """Names of the columns of the plan's file; none where they cannot be read."""
    source = str(_table(plan_edits.read(visit.text).get("data")).get("source", ""))
    if not source or "://" in source:
        return []
    try:
        return list(columns_of(visit.path.parent / source))
    except CongenialError:
        return []


def _schema(visit: Visit) -> Schema | None:
    """The schema, also of a plan of which some columns have no values yet."""
    try:
        return visit.parsed(visit.text).schema
    except CongenialError:
        pass
    try:
        return visit.parsed(without_placeholders(visit.text)).schema
    except CongenialError:
        return None


def without_placeholders(text: str) -> str:
    """A plan in which columns without values have some, so that the rest of it can be read."""
    for name, entry in _table(plan_edits.read(text).get("schema")).items():
        if entry == {"levels": [plan_edits.PLACEHOLDER]}:
            text = plan_edits.set_column(text, name, "levels", "a, b")
    return text


def _axes(schema: Schema | None) -> list[tuple[str, str, int]]:
    """Every axis that a table can have: its name, how readers call it, and its categories."""
    if schema is None:
        return []
    names = [
        name for attribute in schema.attributes for name in (attribute.name, *attribute.coarser)
    ]
    return [(name, schema.shown(name), schema.axis(name).size) for name in names]


MOST_CONDITIONS = 40  # categories of a column that a list of conditions has


def _conditions(schema: Schema | None, written: Mapping[str, Any]) -> dict[str, list[str]]:
    """Whom a figure can count, for each column: those in a category, or from a number on.

    Categories of a file are left out: it may be the records, and no page quotes them.
    """
    by_attribute: dict[str, list[str]] = {}
    for attribute in () if schema is None else schema.attributes:
        keys, levels = _table(written.get(attribute.name)), attribute.levels[:MOST_CONDITIONS]
        if "levels" in keys:
            by_attribute[attribute.name] = [
                f"{attribute.name} = '{level}'" for level in levels if "'" not in level
            ]
        elif "edges" in keys and isinstance(keys["edges"], list):
            by_attribute[attribute.name] = [
                f"{attribute.name} >= {edge}" for edge in keys["edges"][1:MOST_CONDITIONS]
            ]
    return {name: conditions for name, conditions in by_attribute.items() if conditions}


# ---- whether the plan is valid -------------------------------------------------------------------


def problem_of(visit: Visit, text: str) -> dict[str, str]:
    """What is wrong with a plan's text, if anything; reads no data."""
    try:
        plan = visit.plan if text == visit.text else visit.parsed(text)
        _ = plan.figures, plan.source, plan.ledger
        _refuse_unknown_names(plan)
    except CongenialError as error:
        return {"state": "problem", "words": sentence(str(error))}
    return {"state": "fine", "words": "The plan is valid."}


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
    return as_json(problem_of(visit, visit.form.get("text", "")))


def show_keys(visit: Visit) -> Response:  # noqa: ARG001 - the same for everybody
    """The keys of every section, for the page's own script."""
    return as_json(plan_edits.plan_keys())


# ---- changes -------------------------------------------------------------------------------------


def edit_plan(visit: Visit) -> Response:
    """Carry out an edit of a screen, save the plan, and show the screen again; an edit that is
    refused is explained beside the field that it came from.
    """
    name = visit.form.get("edit", "")
    if name not in (*EDITS, "suggest"):
        raise PlanError(f"there is no edit '{name}'.", remedy="Open the page again.")
    try:
        _refuse_locked(visit)
        if name == "suggest":
            text, why = _suggested(visit), "suggested tables of {entry}"
        else:
            edit, names, why = EDITS[name]
            text = edit(visit.text, *(visit.form.get(field, "") for field in names))
        fields = {key: visit.form.get(key, "") for key in ("entry", "section", "field", "column")}
        fields |= {key: visit.form.get(key, "") for key in ("label", "name")}
        save(visit.path, text, visit.form.get("opened", ""), why.format(**fields))
    except PlanConflictError:
        raise
    except CongenialError as error:
        refused = {"place": visit.form.get("place", name), "words": sentence(str(error))}
        return _again(visit, status=422, refused=refused)
    return _back(visit)


def _suggested(visit: Visit) -> str:
    """The tables of a release with the sums that readers usually ask for."""
    schema, entry = _schema(visit), visit.form.get("entry", "")
    listed = _table(plan_edits.read(visit.text)).get("release", [])
    section = next(
        (_table(release) for release in listed if _table(release).get("name") == entry), {}
    )
    bases: dict[str, str] = {}
    for names in plan_edits.tables_of(section):
        for name in names:
            if schema is not None:
                bases.setdefault(schema.axis(name).base, name)
    if schema is None or not bases:
        raise PlanError("no column of the release is ticked.", remedy="Tick some first.")
    tables = automatic(schema, list(bases.values()))
    changed: str = plan_edits.set_tables(visit.text, entry, tables)
    return changed


def _view(visit: Visit) -> tuple[str, str]:
    """The screen that a form was on, and its query."""
    name, _, query = visit.query.get("view", "data?").partition("?")
    return (name if name in (*SCREENS, "price") else "data"), query


def _again(visit: Visit, **more: Any) -> Response:
    name, query = _view(visit)
    if name not in SCREENS:  # accuracy and price: the promise has its field among the tables
        name, query = "tables", str(QueryParams({"release": visit.form.get("entry", "")}))
        more["refused"]["place"] = "promise"
    visit.query = QueryParams(query)
    return SCREENS[name](visit, **more)


def _back(visit: Visit) -> Response:
    name, query = _view(visit)
    follow = visit.form.get("follow", "")  # what an edit opens: a column or a release
    if follow:
        query = str(QueryParams({follow: visit.form.get("name") or visit.form.get("column", "")}))
    answer = visit.go("plan", visit.key, name)
    answer.headers["location"] += f"?{query}" if query else ""
    return answer


def _refuse_locked(visit: Visit) -> None:
    """Refuse to change a plan of which something was drawn."""
    try:
        drawn = drawn_of(visit.plan, visit.ledger)
    except CongenialError:
        return
    if drawn:
        raise PlanError(
            f"the plan is locked: {', '.join(drawn)} was drawn from it.",
            remedy="Copy it under another name, and change the copy.",
        )


def save_plan(visit: Visit) -> Response:
    """Save the text, unless somebody else did in between: then both are shown."""
    text = visit.form.get("text", "").replace("\r\n", "\n")
    try:
        _refuse_locked(visit)
        save(visit.path, text, visit.form.get("opened", ""))
    except PlanConflictError as error:
        theirs = Plan.read(visit.path)
        lines = changed_lines(theirs, text)
        return show_text(visit, status=409, conflict=lines, mine=text, problem=str(error))
    except PlanError as error:
        return show_text(visit, status=422, mine=text, problem=str(error))
    return _back(visit)


def undo_plan(visit: Visit) -> Response:
    """Take back the last changes."""
    _refuse_locked(visit)
    back = visit.form.get("back", "1")
    undo(visit.path, visit.form.get("opened", ""), int(back) if back.isdigit() else 0)
    return _back(visit)


def fork_plan(visit: Visit) -> Response:
    """Copy the plan under another name; releases that were drawn get new names."""
    name = visit.form.get("name", "")
    if not NAME.fullmatch(name):
        raise PlanError(
            "a plan's name is letters, digits, '-' and '_'.", remedy="Give another name."
        )
    text = visit.text
    taken = {entry.name for entry in visit.ledger.entries()} if visit.ledger is not None else set()
    for release in drawn_of(visit.plan, visit.ledger):
        new = next(f"{release}-{at}" for at in range(2, 1000) if f"{release}-{at}" not in taken)
        text = plan_edits.set_key(text, "release", release, "name", new)
    out = visit.path.with_name(f"{name}.toml")
    try:
        write_new(out, text.encode())
    except OSError:
        raise PlanError(f"'{out.name}' exists already.", remedy="Give another name.") from None
    return visit.go("plan", visit.desk.workspace.key(out), "tables")


# ---- the values of a column, on request ----------------------------------------------------------


MOST_VALUES = 60  # that are shown


def look_at_values(visit: Visit) -> Response:
    """How often each value of a column occurs. CONFIDENTIAL: for the owner of the desk, who asked
    for it; nothing of it is kept, logged or put into an address.
    """
    column = visit.form.get("column", "")
    values = _values(visit, column)
    visit.query = QueryParams({"column": column})
    return show_categories(visit, values=values)


def _values(visit: Visit, column: str) -> dict[str, Any]:
    """CONFIDENTIAL: values of a column with the number of rows that have each, most first."""
    text = visit.text
    planned = visit.parsed(without_placeholders(text)).source
    entry = _table(_table(plan_edits.read(text).get("derive")).get(column))
    raw = str(entry.get("recode", entry.get("tidy", column)))
    recoded = {str(old): str(new) for old, new in _table(entry.get("to")).items()}
    spelled = {"recode", "tidy"} & entry.keys()  # values are shown as the file has them
    others = tuple(
        derivation
        for derivation in planned.derivations
        if not (spelled and derivation.name == column)
    )
    if "://" in str(planned.address):
        raise NotHereError(
            "values are looked up in files only.", remedy="Use `congenial data` in a terminal."
        )
    source = open_source(replace(planned, derivations=others), [raw])
    try:
        text_of = f"CAST({source.dialect.identifier(raw)} AS VARCHAR)"
        grouped = f"SELECT {text_of} AS value, COUNT(*) AS n FROM {source.name} GROUP BY 1"
        rows = source.run(f"{grouped} ORDER BY n DESC, value LIMIT {MOST_VALUES}").to_pylist()
        counts = source.run(
            f"SELECT COUNT(*) AS many, SUM(n) AS people FROM ({grouped}) AS g"
        ).to_pylist()[0]
        number = f"TRY_CAST({text_of} AS DOUBLE)"
        numbers = source.run(
            f"SELECT MIN({number}) AS low, MAX({number}) AS high, COUNT({number}) AS n "
            f"FROM {source.name}"
        ).to_pylist()[0]
    finally:
        source.close()
    levels = _levels_of(visit, column)
    rows_shown: list[dict[str, Any]] = []
    for row in rows:
        value = "" if row["value"] is None else row["value"]
        stands = recoded.get(value, value)
        rows_shown.append(
            {
                "value": value,
                "rows": int(row["n"]),
                "is": stands if value and stands in levels else "",
                "missing": not stands,
            }
        )
    numeric = numbers["n"] and numbers["n"] >= 0.9 * sum(
        r["rows"] for r in rows_shown if r["value"]
    )
    return {
        "column": column,
        "rows": rows_shown,
        "levels": list(levels)[:200],
        "many": int(counts["many"]),
        "unexpected": sum(row_shown["rows"] for row_shown in rows_shown if not row_shown["is"]),
        "range": (numbers["low"], numbers["high"]) if numeric else None,
        "all": ", ".join(
            row_shown["value"]
            for row_shown in rows_shown
            if row_shown["value"] and not row_shown["missing"]
        ),
    }


def _levels_of(visit: Visit, column: str) -> tuple[str, ...]:
    entry = _table(plan_edits.read(visit.text).get("schema")).get(column)
    schema = _schema(visit)
    if entry == {"levels": [plan_edits.PLACEHOLDER]} or schema is None:
        return ()
    return schema.axis(column).levels if column in schema.names else ()
