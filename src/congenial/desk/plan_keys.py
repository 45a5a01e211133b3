"""Which keys a section of a plan takes and what they hold, from the JSON Schema of plans.

The page shows the keys while somebody types; the form writes values by them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any

from starlette.responses import Response

from congenial.desk.visit import Visit, as_json
from congenial.errors import PlanError
from congenial.publication.json_schema import plan_schema


def show_keys(visit: Visit) -> Response:  # noqa: ARG001 - the same for everybody
    """The keys of every section, for the page's own script."""
    return as_json(plan_keys())


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
