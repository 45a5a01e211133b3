"""Edits of a plan from the fields of a form. Comments, order and layout of its text stay.

tomlkit keeps the text as a tree, and an edit changes one node of it. Which keys there are and what
they may hold is the plan model's to say (`typed`, `plan.refuse_section`). The
new text is read again: it must say what the tree says, or nothing is changed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache, wraps
from typing import Any, ParamSpec

import tomlkit
from tomlkit import TOMLDocument
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, InlineTable, Item, Table, Whitespace

from congenial.data.data_problems import quoted
from congenial.errors import PlanError
from congenial.kinds.plan_sections import KINDS
from congenial.publication.json_schema import plan_schema
from congenial.publication.plan import Plan, refuse_section

Values = dict[str, Any]
Asked = ParamSpec("Asked")

MOST_VALUES = 60  # of a column that a form shows
PLACEHOLDER = "..."  # of a draft
DRAFTED_FIGURES = ("# [publish]", '# "Population" =')  # lines of a draft that show how it is done
SECTIONS = [field.alias or name for name, field in Plan.model_fields.items()]  # in their order
COLUMN_KEYS = {"levels", "levels_file", "edges", "top", "missing", "other"}  # that the form sets
BESIDE = {"whole", "label"}  # keys of a column that stay right whatever its values are
DATES: dict[str, str | None] = {  # the last day of 2020 as a file writes it, and the key `format`
    "2020-12-31": None,
    "31.12.2020": "%d.%m.%Y",
    "31/12/2020": "%d/%m/%Y",
    "12/31/2020": "%m/%d/%Y",
    "20201231": "%Y%m%d",
}


def read(text: str) -> Values:
    """The values of a plan's text; empty where it is not valid TOML."""
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError, ArithmeticError):  # decimal's: an exponent of many digits
        return {}


def _edit(change: Callable[Asked, str]) -> Callable[Asked, str]:
    """An edit that is refused where tomlkit cannot do it in a plan that is written like this."""

    @wraps(change)
    def edit(*asked: Asked.args, **more: Asked.kwargs) -> str:
        try:
            return change(*asked, **more)
        except (TOMLKitError, RecursionError):
            raise _not_here() from None

    return edit


@_edit
def set_key(text: str, section: str, entry: str, key: str, value: str) -> str:
    """Set a key of a section, or of the release called `entry`; an empty value takes it out.

    The column that names the person leaves the schema and the tables of a draft.
    """
    names_person = (section, key) == ("data", "unit")
    document = _tree(_without_note(text, "# unit =") if names_person else text)
    if not value.strip():
        target = _release(document, entry) if section == "release" else _section(document, section)
        target.pop(key, None)
        return _text(document)
    item = _item(typed(section, key, value))
    if section == "release":
        _set(_release(document, entry), key, item)
    else:
        document = _put(document, section, key, item)
    if names_person:
        _replace_drafted(document, value)
    return _text(document)


@_edit
def remove(text: str, section: str, entry: str) -> str:
    """Take a column, a figure or a release out."""
    document = _tree(text)
    if section == "release":
        _remove_release(document, entry)
        return _text(document)
    entries = _section(document, section)
    if entry not in entries:
        raise PlanError(f"[{section}] has no '{entry}'.", remedy="Open the page again.")
    if not isinstance(entries[entry], InlineTable):  # it may hold comments about what follows
        raise _not_here()
    del entries[entry]
    return _text(document)


@_edit
def add_figure(text: str, label: str, by: str, because: str, condition: str = "") -> str:
    """Add a total, or a count of people who meet a condition, to what is published exactly."""
    for note in DRAFTED_FIGURES:
        text = _without_note(text, note)
    figure = {"count": condition} if condition else {"total": "true"}
    return _text(_with_entry(text, "publish", label, figure | {"by": by, "because": because}))


@_edit
def add_release(text: str, name: str, table: str, parameter: str, value: str) -> str:
    """Add a release of one table."""
    document = _tree(text)
    fields = {"name": name, "table": table, parameter: value}
    values = {key: typed("release", key, written) for key, written in fields.items()}
    refuse_section("release", [values])
    release = tomlkit.table()
    for key, item in values.items():
        release.append(key, _item(item))
    releases = document.get("release")
    if releases is None:
        releases = tomlkit.aot()
        releases.append(release)
        return _text(_with_section(document, "release", releases, release))
    if not isinstance(releases, AoT):
        raise _not_here()
    _extend(release, _tail(_innermost(releases[-1])))
    release.trivia.indent = "\n"
    releases.append(release)
    return _text(document)


PROMISES = ("epsilon", "rho", "mu", "delta")


@_edit
def set_promise(
    text: str, section: str, entry: str, parameter: str, value: str, delta: str = ""
) -> str:
    """State the promise of a release, or the budget, by one parameter in place of another."""
    if parameter not in PROMISES:
        raise PlanError(f"no promise is stated by '{parameter}'.", remedy="Choose one of the list.")
    document = _tree(text)
    wanted = {parameter: value} | ({"delta": delta} if delta and parameter == "epsilon" else {})
    values = {key: typed(section, key, written) for key, written in wanted.items()}
    if section == "budget" and section not in document:
        document = _put(document, section, parameter, _item(values[parameter]))
    target = _release(document, entry) if section == "release" else _section(document, section)
    for key in (*PROMISES, *(("accuracy", "find") if section == "release" else ())):
        if key in target and key not in values:
            del target[key]
    for key, item in values.items():
        _set(target, key, _item(item))
    return _text(document)


def tables_of(release: Mapping[str, Any]) -> list[list[str]]:
    """The tables of a release, each the names of its columns; none where they are not listed."""
    listed = release.get("tables")
    listed = [release.get("table")] if listed is None else listed
    if not isinstance(listed, list) or not all(isinstance(names, list) for names in listed):
        return []
    return [[str(name) for name in names] for names in listed]


@_edit
def toggle_axis(text: str, entry: str, at: str, name: str) -> str:
    """Tick a column of one table of a release, or take the tick away."""
    document = _tree(text)
    release = _release(document, entry)
    tables = tables_of(release)
    if not at.isdigit() or int(at) >= len(tables):
        raise _not_here()
    table = tables[int(at)]
    if name in table:
        table.remove(name)
    else:
        table.append(name)
    _list_tables(release, tables)
    return _text(document)


@_edit
def set_tables(text: str, entry: str, tables: Sequence[Sequence[str]]) -> str:
    """List the tables of a release."""
    document = _tree(text)
    _list_tables(_release(document, entry), tables)
    return _text(document)


@_edit
def add_table(text: str, entry: str) -> str:
    """One more table of a release: the total, until columns are ticked."""
    tables = tables_of(_release(_tree(text), entry))
    if [] in tables:
        raise PlanError(
            "there is a table without a column already, which is the total.",
            remedy="Tick its columns first.",
        )
    changed: str = set_tables(text, entry, [*tables, []])
    return changed


@_edit
def remove_table(text: str, entry: str, at: str) -> str:
    """Take a table out of a release."""
    tables = tables_of(_release(_tree(text), entry))
    if not at.isdigit() or int(at) >= len(tables) or len(tables) == 1:
        raise PlanError("a release needs a table.", remedy="Remove the release instead.")
    changed: str = set_tables(text, entry, tables[: int(at)] + tables[int(at) + 1 :])
    return changed


def _list_tables(release: MutableMapping[str, Any], tables: Sequence[Sequence[str]]) -> None:
    if len({frozenset(names) for names in tables}) < len(tables):
        raise PlanError("two tables have the same columns.", remedy="Tick others.")
    single = "tables" not in release and len(tables) == 1 and tables[0]
    if single:
        _set(release, "table", _item(list(tables[0])))
        return
    listed = _item([list(names) for names in tables])
    if len(tables) > 2:
        listed.multiline(multiline=True)
    release.pop("table", None)
    _set(release, "tables", listed)


@_edit
def toggle_by(text: str, label: str, name: str) -> str:
    """Break an exact figure down by a column, or no longer."""
    document = _tree(text)
    figure = _table(_section(document, "publish").get(label))
    key = "margin" if "margin" in figure else "by"
    names = [str(value) for value in figure.get(key, [])]
    names = [other for other in names if other != name] if name in names else [*names, name]
    if names or key == "margin":
        figure[key] = _item(names)
    else:
        figure.pop(key, None)
    return _text(document)


@_edit
def set_sum(text: str, entry: str, column: str, low: str, high: str, step: str) -> str:
    """Sum a number of each person, cut to public bounds, in place of counting people; or count
    people again, where no column is named.
    """
    document = _tree(text)
    release = _release(document, entry)
    if not column:
        for key in ("sum", "between", "between_by", "step", "missing", "cap", "counts"):
            release.pop(key, None)
        return _text(document)
    if not (low.strip() and high.strip()):
        raise PlanError(
            "a sum needs the lowest and the highest number that a person can have.",
            remedy="Choose both from what is public, such as a tariff or a legal maximum.",
        )
    values: Values = {"sum": column, "between": [_bound(low), _bound(high)]}
    if step.strip():
        values["step"] = typed("release", "step", step)
    tables = tables_of(release)
    release.pop("between_by", None)
    for key, value in values.items():
        _set(release, key, _item(value))
    if "table" in release and tables:
        _list_tables(release, tables)
    return _text(document)


def _bound(written: str) -> int | Decimal:
    sign, digits = ("-", written.strip()[1:]) if written.strip()[:1] == "-" else ("", written)
    value: int | Decimal = _value({"type": "number"}, digits.strip())
    return -value if sign else value


BY_LOOKING = "chosen by looking at the data"


@_edit
def recode(text: str, column: str, value: str, to: str) -> str:
    """Count a value of the data as a category (or, with an empty one, as missing); the line says
    that it was chosen by looking at the data.
    """
    document = _tree(text)
    entry = _section(document, "derive").get(column)
    if entry is None:
        entry = _inline({"recode": column})
        recoded: Values = {}
    else:
        recoded = dict(_table(entry).get("to", {}))
        if not isinstance(entry, InlineTable) or "recode" not in entry or "to_file" in entry:
            raise _not_here()
    recoded[value] = to
    pairs = ", ".join(f"{quoted(old)} = {quoted(str(new))}" for old, new in recoded.items())
    item = tomlkit.value(f"{{ recode = {quoted(str(entry['recode']))}, to = {{ {pairs} }} }}")
    item.comment(BY_LOOKING)
    return _text(_put(document, "derive", column, item))


@_edit
def set_column_by_looking(
    text: str, column: str, kind: str, values: str, missing: str = "", other: str = ""
) -> str:
    """`set_column`, with a comment that the values were chosen by looking at the data."""
    document = _tree(set_column(text, column, kind, values, missing, other))
    entry = _section(document, "schema")[column]
    (entry if isinstance(entry, InlineTable) else entry[kind]).comment(BY_LOOKING)
    return _text(document)


@_edit
def derive_column(
    text: str, column: str, way: str, sources: str, at: str, dates: str, between: str
) -> str:
    """Compute a column from others, and ask for its values as a draft does.

    The columns it is computed from leave the schema and the tables of a draft.
    """
    names = names_in(sources)
    if way not in KINDS:
        raise PlanError(f"a column cannot be computed by '{way}'.", remedy="Open the page again.")
    if not isinstance(typed("derive", way, sources), list) and len(names) != 1:
        raise PlanError(f"the {way} is computed from one column.", remedy="Name one column.")
    options = {"at": at, "format": DATES.get(dates) or "", "between": between}
    goes_with = {key: value for key, value in options.items() if key in KINDS[way]}
    document = _with_entry(text, "derive", column, {way: sources} | goes_with)
    for name in names:
        if name != column:
            _replace_drafted(document, name, column)
    if column not in _section(document, "schema"):
        document = _put(document, "schema", column, _inline({"levels": [PLACEHOLDER]}))
    return _text(document)


@_edit
def set_column(
    text: str, column: str, kind: str, values: str, missing: str = "", other: str = ""
) -> str:
    """Say which values a column may have: categories, those of a file, or numbers from each edge
    on, the last edge beginning the open group at the top; and the category of those who have none
    (`missing`) or another one (`other`), where that is allowed.
    Other keys of the column stay.
    """
    names = names_in(values)
    if not column.strip() or not names:
        raise PlanError(
            "a column needs a name and its values.", remedy="Separate values by commas."
        )
    wanted: Values = {kind: typed("schema", kind, values)}
    if kind == "edges":
        wanted["top"] = f"{names[-1]}+"
    wanted |= {key: level for key, level in (("missing", missing), ("other", other)) if level}
    document = _tree(text)
    schema = _section(document, "schema")
    if column not in schema:
        return _text(_put(document, "schema", column, _inline(wanted)))
    entry = _table(schema[column])
    if not can_set(entry):
        raise _not_here()
    if isinstance(entry, InlineTable):
        asks = "FILL IN" in entry.trivia.comment
        schema[column] = _inline(wanted | {key: entry[key] for key in entry if key in BESIDE})
        if asks:
            schema[column].trivia.comment_ws = schema[column].trivia.comment = ""
        return _text(document)
    for key in COLUMN_KEYS & entry.keys() - wanted.keys():
        del entry[key]
    for key, value in wanted.items():
        _set(entry, key, _item(value))
    return _text(document)


def can_set(entry: Mapping[str, Any]) -> bool:
    """Whether `set_column` can change a column that is written like this."""
    listed = entry.get("levels", entry.get("edges", []))
    if not isinstance(listed, list) or any("," in str(value) for value in listed):
        return False
    return len(listed) <= MOST_VALUES and set(entry) <= COLUMN_KEYS | BESIDE


@_edit
def add_line(text: str, section: str, line: str) -> str:
    """Add a line of TOML to a section, which is made where it is not there."""
    document = _tree(text)
    added = list(_tree(line).items())
    if len(added) != 1 or added[0][0] in _section(document, section):
        raise _not_here()
    return _text(_put(document, section, *added[0]))


# ---- the tree ------------------------------------------------------------------------------------


def _tree(text: str) -> TOMLDocument:
    try:
        return tomlkit.parse(text)
    except ValueError:
        raise PlanError("the plan is not valid TOML.", remedy="Correct the text first.") from None


def _text(document: TOMLDocument) -> str:
    """The text, if it reads as the tree says."""
    text = tomlkit.dumps(document)
    try:
        same = tomllib.loads(text) == document.unwrap()
    except ValueError:
        same = False
    if not same:
        raise _not_here()
    return text


def _not_here() -> PlanError:
    return PlanError(
        "the form cannot change a plan that is written like this.", remedy="Change it in the text."
    )


def _item(value: Any) -> Any:
    """A value as it is written; numbers keep the digits that a person typed."""
    if isinstance(value, Decimal):
        return tomlkit.value(f"{value:f}")
    if isinstance(value, list):
        array = tomlkit.array()
        array.extend(_item(element) for element in value)
        return array
    return tomlkit.item(value)


def _inline(values: Mapping[str, Any]) -> Any:
    """An entry on one line, as { levels = ["f", "m"] }."""
    pairs = (f"{key} = {_item(value).as_string()}" for key, value in values.items())
    return tomlkit.value(f"{{ {', '.join(pairs)} }}")


def _table(value: Any) -> MutableMapping[str, Any]:
    """A table of the tree; refused where the plan has something else in its place."""
    if isinstance(value, MutableMapping):
        return value
    raise _not_here()


def _section(document: TOMLDocument, name: str) -> MutableMapping[str, Any]:
    """The entries of a section; none where the plan does not have it."""
    return _table(document.get(name, {}))


def _release(document: TOMLDocument, name: str) -> MutableMapping[str, Any]:
    for release in _releases(document):
        if release.get("name") == name:
            return release
    raise PlanError(f"the plan has no release '{name}'.", remedy="Open the page again.")


def _releases(document: TOMLDocument) -> list[MutableMapping[str, Any]]:
    listed = document.get("release", [])
    return [_table(release) for release in listed] if isinstance(listed, list) else []


def _with_entry(text: str, section: str, name: str, fields: Mapping[str, str]) -> TOMLDocument:
    """With one more entry of a section; fields that are empty are left out."""
    document = _tree(text)
    if not name.strip() or name in _section(document, section):
        raise PlanError(
            f"the name '{name}' is empty, or [{section}] has it already.",
            remedy="Give another name.",
        )
    entry = {key: typed(section, key, written) for key, written in fields.items() if written}
    refuse_section(section, {name: entry})
    return _put(document, section, name, _inline(entry))


def _put(document: TOMLDocument, section: str, key: str, item: Any) -> TOMLDocument:
    """With a key of a section, which is made where it is not there."""
    if section in document:
        _set(_table(document[section]), key, item)
        return document
    table = tomlkit.table()
    table.append(key, item)
    return _with_section(document, section, table, table)


def _set(table: MutableMapping[str, Any], key: str, item: Any) -> None:
    """Set a key in its place, or after the last key, before comments that follow it."""
    if key in table or not isinstance(table, Table):
        table[key] = item
        return
    tail = _tail(table)
    table.append(key, item)
    _extend(table, tail)


def _with_section(
    document: TOMLDocument, name: str, section: Table | AoT, table: Table
) -> TOMLDocument:
    """With a new section in its usual place; `table` is the section, or its only release.

    Comments right above the next section stay above that one.
    """
    if name not in SECTIONS:
        raise _not_here()
    later = SECTIONS[SECTIONS.index(name) + 1 :]
    rebuilt = tomlkit.document()
    rebuilt.parsing(True)  # as the parser does: layout stays
    for key, item in document.body:
        if key is not None and key.key in later and name not in rebuilt:
            before = _tables(rebuilt)
            above = _tail(_innermost(before[-1]), Comment) if before else []
            _extend(table, [tomlkit.nl(), *above])
            rebuilt.append(name, section)
        rebuilt.append(key, item)
    if name not in rebuilt:
        table.trivia.indent = "\n"
        rebuilt.append(name, section)
    return rebuilt


def _remove_release(document: TOMLDocument, name: str) -> None:
    """Take a release out; comments between it and what follows stay."""
    releases, table = document.get("release"), _release(document, name)
    tables = _tables(document)
    at = next((at for at, other in enumerate(tables) if other is table), 0)
    if not isinstance(releases, AoT) or at == 0:
        raise _not_here()
    tail = _tail(_innermost(tables[at]))
    while tail and isinstance(tail[0], Whitespace):
        del tail[0]
    _extend(_innermost(tables[at - 1]), tail)
    releases.remove(table)
    if not releases:
        del document["release"]


def _tables(document: TOMLDocument) -> list[Table]:
    """Sections and releases, in the order of the text."""
    items = (item for _, item in document.body)
    listed = (table for item in items for table in (item if isinstance(item, AoT) else [item]))
    return [table for table in listed if isinstance(table, Table)]


def _innermost(table: Table) -> Table:
    """The table that the text of a table ends with: itself, or its last table inside."""
    last = table.value.body[-1][1] if table.value.body else None
    if isinstance(last, AoT):
        last = last[-1]
    return _innermost(last) if isinstance(last, Table) else table


def _tail(table: Table, *kinds: type[Item]) -> list[Item]:
    """Take off what a table ends with after its last key: comments and blank lines."""
    body, tail = table.value.body, []
    while body and body[-1][0] is None and isinstance(body[-1][1], kinds or Item):
        tail.append(body.pop()[1])
    return tail[::-1]


def _extend(table: Table, tail: list[Item]) -> None:
    for part in tail:
        table.raw_append(None, part)


def _replace_drafted(document: TOMLDocument, column: str, by: str = "") -> None:
    """Take out a column of a draft that has no values yet; tables show `by` in its place."""
    schema = _section(document, "schema")
    if schema.get(column) != {"levels": [PLACEHOLDER]}:
        return
    del schema[column]
    for release in _releases(document):
        columns = release.get("table", [])
        if isinstance(columns, list) and column in columns:
            now = dict.fromkeys(by if name == column else str(name) for name in columns)
            now.pop("", None)
            if now:
                release["table"] = _item(list(now))


def _without_note(text: str, start: str) -> str:
    """Without a draft's own line that asks for a key."""
    return "".join(
        line
        for line in text.splitlines(keepends=True)
        if not (line.startswith(start) and ("FILL IN" in line or start in DRAFTED_FIGURES))
    )


# ---- keys of a plan, from its JSON schema --------------------------------------------------------


@cache
def plan_keys() -> dict[str, Any]:
    """For each section the keys it takes with their types, and whether its own keys are free.

    Entries of [schema], [publish] and [derive] are named by people; the keys are those of an entry.

    >>> plan_keys()["data"]["keys"]["max_rows"], plan_keys()["schema"]["free"]
    ('whole number', True)
    """
    return {
        name: {"free": free, "keys": {key: _type(shapes) for key, shapes in keys.items()}}
        for name, (free, keys) in _sections().items()
    }


def typed(section: str, key: str, written: str) -> Any:
    """What a person wrote into a field, as the type that the plan model gives the key.

    >>> typed("release", "table", "sex, age"), typed("budget", "epsilon", "0.50")
    (['sex', 'age'], Decimal('0.50'))
    """
    _, keys = _sections().get(section, (False, {}))
    if key not in keys:
        raise PlanError(f"[{section}] has no key '{key}'.", remedy="Open the page again.")
    shape = keys[key][0]
    if shape.get("type") != "array":
        return _value(shape, written)
    names = names_in(written)
    if not names:
        raise PlanError(f"'{key}' needs at least one name.", remedy="Separate names by commas.")
    return [_value(shape.get("items", {}), name) for name in names]


def names_in(text: str) -> list[str]:
    """Names that a person wrote one after the other, separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _value(shape: Any, written: str) -> Any:
    """A single value of the type that a shape has; text where it may be text."""
    word = _type([shape])
    try:
        if word == "whole number":
            return int(written)
        if word == "number":
            return int(written) if written.strip().isdigit() else _decimal(written)
        if word == "true or false":
            return {"true": True, "false": False}[written.strip()]
        return date.fromisoformat(written.strip()) if word == "day" else written
    except (ValueError, KeyError):
        raise PlanError(f"'{written}' is not a {word}.", remedy=_EXAMPLES[word]) from None


def _decimal(written: str) -> Decimal:
    """A decimal number as people write it, without an exponent."""
    whole, _, rest = written.strip().partition(".")
    if not (whole.isdigit() and rest.isdigit()):
        raise ValueError
    return Decimal(written.strip())


@cache
def _sections() -> dict[str, tuple[bool, dict[str, list[Any]]]]:
    """For each section whether its own keys are free, and the shapes that each key may have."""
    document = plan_schema()
    sections = {}
    for name, section in document["properties"].items():
        entries = section.get("additionalProperties")
        free = isinstance(entries, dict)
        keys: dict[str, list[Any]] = {}
        for shape in _shapes(document, entries if free else section.get("items", section)):
            for key, value in shape.get("properties", {}).items():
                keys[key] = list(_shapes(document, value))
        sections[name] = free, keys
    return sections


def _shapes(document: Any, shape: Any) -> Iterator[Any]:
    """A shape, followed where it refers to another or leaves a choice."""
    if "$ref" in shape:
        yield from _shapes(document, document["$defs"][shape["$ref"].rpartition("/")[2]])
    elif "oneOf" in shape or "anyOf" in shape:
        for choice in shape.get("oneOf", shape.get("anyOf")):
            yield from _shapes(document, choice)
    else:
        yield shape


_WORDS = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "true or false",
    "array": "list",
    "object": "table",
}
_EXAMPLES = {
    "number": "Write it as 1 or 0.5.",
    "whole number": "Write it as 12.",
    "true or false": "Write true or false.",
    "day": "Write it as 2020-12-31.",
}


def _type(shapes: list[Any]) -> str:
    """The type of a value, in a word or two."""
    words = []
    for shape in shapes:
        types = shape.get("type", "")
        for name in types if isinstance(types, list) else [types]:
            words.append("day" if shape.get("format") == "date" else _WORDS.get(name, ""))
    return " or ".join(dict.fromkeys(filter(None, words))) or "value"
