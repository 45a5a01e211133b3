"""Edits of a plan's text from the fields of a form, which leave comments and order alone.

An edit changes a line or two of the text. The result is read again and must say exactly what was
asked for; where it does not (the plan is written in a way these edits do not know), nothing is
changed and the person is sent to the text.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

from congenial.errors import PlanError

Values = dict[str, Any]
PARAMETERS = ("epsilon", "rho", "mu")
MOST_VALUES = 60  # of a column that a form shows
PLACEHOLDER = "..."  # of a draft
DRAFTED_FIGURES = ("# [publish]", '# "Population" =')  # lines of a draft that show how it is done
_KEPT_KEYS = ("whole", "label")
_COLUMN_KEYS = {"levels", "levels_file", "edges", "top", "missing", "other", *_KEPT_KEYS}
_HEADER = re.compile(r"^\s*\[\[?\s*([A-Za-z_]+)\s*\]\]?\s*(#.*)?$")
_NUMBER = re.compile(r"\d+(\.\d+)?")


def read(text: str) -> Values:
    """The values of a plan's text; empty where it is no TOML."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):  # decimal's: an exponent of many digits
        return {}


def _section_values(text: str, section: str) -> Values:
    found = read(text).get(section)
    return found if isinstance(found, dict) else {}


def set_value(text: str, section: str, key: str, value: str) -> str:
    """Set a key of [data] or [budget]; numbers are written as such in [budget].

    A column that is said to name the person is no column of a draft's schema and table any more.
    """
    if key == "unit":
        text = _without_note(text, "# unit =")
        if _section_values(text, "schema").get(value) == {"levels": [PLACEHOLDER]}:
            text = _without_column(remove_column(text, value), value)
    written = _number(value) if section == "budget" and key != "ledger" else _text(value)
    wanted = _changed(text, lambda plan: plan[section].__setitem__(key, _value(written)))
    lines = text.splitlines()
    start, end = _section(lines, section)
    return _checked(_set_line(lines, start, end, key, written), wanted)


def _without_column(text: str, column: str) -> str:
    """The tables of a draft without a column; one that shows nothing else stays as it is."""
    for one in read(text).get("release", []):
        rest = [name for name in one.get("table", []) if name != column]
        if rest and rest != one["table"]:
            text = set_table(text, one["name"], ", ".join(rest))
    return text


def set_parameter(text: str, release: str, value: str) -> str:
    """Set the budget of a release (its epsilon, rho or mu)."""
    plan = read(text)
    at = _place_of(plan, release)
    key = next((one for one in PARAMETERS if one in plan["release"][at]), "epsilon")
    written = _number(value)
    wanted = _changed(text, lambda new: new["release"][at].__setitem__(key, _value(written)))
    lines = text.splitlines()
    start, end = _section(lines, "release", at)
    return _checked(_set_line(lines, start, end, key, written), wanted)


def add_figure(text: str, label: str, by: str, because: str, condition: str = "") -> str:
    """Add a total, or a count of people who meet a condition, to what is published exactly."""
    entry: Values = {"count": condition} if condition else {"total": True}
    entry |= {"by": names_in(by)} if names_in(by) else {}
    entry |= {"because": because} if because else {}
    if not label.strip() or label in _section_values(text, "publish"):
        raise PlanError("a figure needs a label of its own.", remedy="Give another label.")
    for note in DRAFTED_FIGURES:
        text = _without_note(text, note)
    wanted = _changed(text, lambda plan: plan.setdefault("publish", {}).__setitem__(label, entry))
    line = f"{_text(label)} = {inline(entry)}"
    lines = text.splitlines()
    try:
        start, end = _section(lines, "publish")
        end = _last_line(lines, start, end)
        lines[end:end] = [line]
    except PlanError:
        before = _first_release(lines)
        lines[before:before] = ["[publish]", line, ""]
    return _checked(lines, wanted)


def remove_figure(text: str, label: str) -> str:
    """Take a figure out of what is published exactly."""
    wanted = _changed(text, lambda plan: plan["publish"].__delitem__(label))
    if not wanted["publish"]:
        wanted_without = {key: value for key, value in wanted.items() if key != "publish"}
    else:
        wanted_without = wanted
    lines = text.splitlines()
    start, end = _section(lines, "publish")
    del lines[_line_of(lines, start, end, label)]
    if "publish" not in wanted_without:
        del lines[start - 1]
    return _checked(lines, wanted_without)


def add_release(text: str, name: str, table: str, parameter: str, value: str) -> str:
    """Add a release of one table."""
    if parameter not in PARAMETERS or not names_in(table):
        raise PlanError("a release needs the columns of a table.", remedy="Name some, by commas.")
    written = _number(value)
    block = {"name": name, "table": names_in(table), parameter: _value(written)}
    wanted = _changed(text, lambda plan: plan.setdefault("release", []).append(block))
    columns = _inline_list(names_in(table))
    new = ["", "[[release]]", f"name = {_text(name)}", f"table = {columns}"]
    lines = text.splitlines()
    place = _budget_start(lines)
    lines[place:place] = [*new, f"{parameter} = {written}", ""]
    return _checked(lines, wanted)


def set_table(text: str, release: str, value: str) -> str:
    """Set the columns of the table of a release."""
    plan = read(text)
    at = _place_of(plan, release)
    names = names_in(value)
    if not names or "table" not in plan["release"][at]:
        raise PlanError("a table needs columns.", remedy="Name some, by commas.")
    wanted = _changed(text, lambda new: new["release"][at].__setitem__("table", names))
    lines = text.splitlines()
    start, end = _section(lines, "release", at)
    return _checked(_set_line(lines, start, end, "table", _inline_list(names)), wanted)


def can_set(entry: Values) -> bool:
    """Whether `set_column` can change a column that is written like this."""
    listed = entry.get("levels", entry.get("edges", []))
    if not isinstance(listed, list) or any("," in str(one) for one in listed):
        return False
    return len(listed) <= MOST_VALUES and not set(entry) - _COLUMN_KEYS


def set_column(
    text: str, column: str, kind: str, values: str, missing: str = "", other: str = ""
) -> str:
    """Say which values a column may have: categories, those of a file, or numbers from each edge
    on, the last edge beginning the open group at the top; and the level of those who have none
    (`missing`) or another one (`other`), where that is allowed.
    What else the plan says of the column stays.
    """
    before = _section_values(text, "schema").get(column, {})
    if not column.strip() or not isinstance(before, dict) or not can_set(before):
        raise _not_here()
    entry = _values_of(kind, names_in(values))
    entry |= {"missing": missing} if missing else {}
    entry |= {"other": other} if other else {}
    entry |= {key: before[key] for key in _KEPT_KEYS if key in before}
    wanted = _changed(text, lambda plan: plan.setdefault("schema", {}).__setitem__(column, entry))
    line = f"{key_of(column)} = {inline(entry)}"
    lines = text.splitlines()
    start, end = _section(lines, "schema")
    place = _line_of(lines, start, end, column) if before else None
    if place is None:
        place = _last_line(lines, start, end)
        lines[place:place] = [line]
    else:
        lines[place] = line + _comment(lines[place])
    return _checked(lines, wanted)


def _values_of(kind: str, names: list[str]) -> Values:
    if not names:
        raise PlanError("a column needs its values.", remedy="Name them, by commas.")
    if kind == "levels_file":
        return {"levels_file": ", ".join(names)}
    if kind == "levels":
        return {"levels": names}
    numbers = [_value(_number(one)) for one in names]
    return {"edges": numbers, "top": f"{names[-1]}+"}


def remove_column(text: str, column: str) -> str:
    """Take a column out of the schema."""
    wanted = _changed(text, lambda plan: plan["schema"].__delitem__(column))
    lines = text.splitlines()
    start, end = _section(lines, "schema")
    del lines[_line_of(lines, start, end, column)]
    return _checked(lines, wanted)


def add_line(text: str, section: str, line: str) -> str:
    """Add a line to a section, which is made where it is not there."""
    (key, value), *more = read(line).items() or [("", "")]
    if not key or more or key in _section_values(text, section):
        raise _not_here()
    wanted = _changed(text, lambda plan: plan.setdefault(section, {}).__setitem__(key, value))
    lines = text.splitlines()
    try:
        start, end = _section(lines, section)
        end = _last_line(lines, start, end)
        lines[end:end] = [line]
    except PlanError:
        before = next((i for i, one in enumerate(lines) if one.startswith("[schema]")), len(lines))
        lines[before:before] = [f"[{section}]", line, ""]
    return _checked(lines, wanted)


def _line_of(lines: list[str], start: int, end: int, key: str) -> int:
    """The line that sets a key, which may be quoted."""
    names = (_text(key), key, f"'{key}'")
    found = [i for i in range(start, end) if lines[i].partition("=")[0].strip() in names]
    if len(found) != 1:
        raise _not_here()
    return found[0]


def _comment(line: str) -> str:
    """The comment at the end of a line, unless it asked for what is now there."""
    found = re.search(r"\}(\s*#[^\"}]*)$", line)
    return found[1] if found and "FILL IN" not in found[1] else ""


def _without_note(text: str, start: str) -> str:
    """Without a draft's own line that asks for a key."""
    return "".join(
        line
        for line in text.splitlines(keepends=True)
        if not (line.startswith(start) and ("FILL IN" in line or start in DRAFTED_FIGURES))
    )


def remove_release(text: str, name: str) -> str:
    """Take a release out."""
    at = _place_of(read(text), name)

    def without(plan: Values) -> None:
        del plan["release"][at]
        if not plan["release"]:
            del plan["release"]

    wanted = _changed(text, without)
    lines = text.splitlines()
    start, end = _section(lines, "release", at)
    del lines[start - 1 : _last_line(lines, start, end)]
    return _checked(lines, wanted)


def _changed(text: str, change: Callable[[Values], Any]) -> Values:
    """The values as they should be afterwards."""
    plan = copy.deepcopy(read(text))
    try:
        change(plan)
    except (KeyError, TypeError, AttributeError):
        raise _not_here() from None
    return plan


def _checked(lines: list[str], wanted: Values) -> str:
    """The new text, if it says exactly what was wanted."""
    text = "\n".join(lines) + "\n"
    if read(text) != wanted:
        raise _not_here()
    return text


def _not_here() -> PlanError:
    return PlanError(
        "the form cannot change this plan as it is written.", remedy="Change it in the text."
    )


def _section(lines: list[str], name: str, at: int = 0) -> tuple[int, int]:
    """The lines after the header of a section, up to the next one."""
    headers = [(i, match[1]) for i, line in enumerate(lines) if (match := _HEADER.match(line))]
    mine = [i for i, found in headers if found == name]
    if at >= len(mine):
        raise _not_here()
    start = mine[at] + 1
    later = [i for i, line in enumerate(lines) if i >= start and line.lstrip().startswith("[")]
    inside = _open_brackets(lines, start)
    return start, next((i for i in later if i not in inside), len(lines))


def _open_brackets(lines: list[str], start: int) -> set[int]:
    """Lines that begin inside a list which an earlier line opened."""
    depth, inside = 0, set()
    for i in range(start, len(lines)):
        if depth > 0:
            inside.add(i)
        elif _HEADER.match(lines[i]):
            continue
        bare = re.sub(r"\"[^\"]*\"|'[^']*'|#.*", "", lines[i])
        depth += bare.count("[") - bare.count("]")
    return inside


def _set_line(lines: list[str], start: int, end: int, key: str, written: str) -> list[str]:
    for i in range(start, end):
        found = re.match(rf"^(\s*{key}\s*=\s*)([^#]*?)(\s*#.*)?$", lines[i])
        if found:
            new = f"{found[1]}{written}{found[3] or ''}"
            return [*lines[:i], new, *lines[i + 1 :]]
    place = _last_line(lines, start, end)
    return [*lines[:place], f"{key} = {written}", *lines[place:]]


def _last_line(lines: list[str], start: int, end: int) -> int:
    """The place behind a section's last line that says something."""
    while end > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _first_release(lines: list[str]) -> int:
    found = (i for i, line in enumerate(lines) if line.strip().startswith("[[release]]"))
    return next(found, _budget_start(lines))


def _budget_start(lines: list[str]) -> int:
    found = (i for i, line in enumerate(lines) if line.strip().startswith("[budget]"))
    return next(found, len(lines))


def _place_of(plan: Values, release: str) -> int:
    names = [one.get("name") for one in plan.get("release", []) if isinstance(one, dict)]
    if release not in names:
        raise PlanError(f"the plan has no release '{release}'.", remedy="Open the page again.")
    return names.index(release)


def names_in(text: str) -> list[str]:
    """Names that a person wrote one after the other, by commas."""
    return [one.strip() for one in text.split(",") if one.strip()]


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: str) -> str:
    if not _NUMBER.fullmatch(value.strip()):
        raise PlanError(f"'{value}' is not a number.", remedy="Write it as 1 or 0.5.")
    return value.strip()


def _value(written: str) -> Any:
    return tomllib.loads(f"x = {written}", parse_float=Decimal)["x"]


def inline(entry: Values) -> str:
    """An entry of a section on one line."""

    def said(value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, date):
            return value.isoformat()
        return _inline_list(value) if isinstance(value, list) else _text(value)

    return "{ " + ", ".join(f"{key} = {said(value)}" for key, value in entry.items()) + " }"


def _inline_list(values: list[Any]) -> str:
    return "[" + ", ".join(_text(one) if isinstance(one, str) else str(one) for one in values) + "]"


def key_of(name: str) -> str:
    """A name as a key of TOML."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)
