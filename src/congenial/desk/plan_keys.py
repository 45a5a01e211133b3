"""Which keys a section of a plan takes, from its JSON Schema: the page shows them as one types."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from starlette.responses import Response

from congenial.desk.visit import Visit, as_json
from congenial.publication.json_schema import plan_schema


def show_keys(visit: Visit) -> Response:  # noqa: ARG001 - the same for everybody
    """The keys of every section, for the page's own script."""
    return as_json(plan_keys())


@cache
def plan_keys() -> dict[str, Any]:
    """For each section the keys it takes with their types, and whether its own keys are free.

    Entries of [schema], [publish] and [derive] are named by people; what they take is told.

    >>> plan_keys()["data"]["keys"]["max_rows"], plan_keys()["schema"]["free"]
    ('whole number', True)
    """
    document = plan_schema()
    found = {}
    for name, section in document["properties"].items():
        entries = section.get("additionalProperties")
        free = isinstance(entries, dict)
        shapes = list(_shapes(document, entries if free else section.get("items", section)))
        keys: dict[str, str] = {}
        for shape in shapes:
            keys |= {key: _type(document, one) for key, one in shape.get("properties", {}).items()}
        found[name] = {"free": free, "keys": keys}
    return found


def _shapes(document: Any, shape: Any) -> Iterator[Any]:
    """A shape, followed where it refers to another or leaves a choice."""
    if "$ref" in shape:
        yield from _shapes(document, document["$defs"][shape["$ref"].rpartition("/")[2]])
    elif "oneOf" in shape or "anyOf" in shape:
        for one in shape.get("oneOf", shape.get("anyOf")):
            yield from _shapes(document, one)
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


def _type(document: Any, shape: Any) -> str:
    """The type of a value, in a word or two."""
    told = [one.get("type", "") for one in _shapes(document, shape)]
    names = [name for one in told for name in (one if isinstance(one, list) else [one])]
    return " or ".join(dict.fromkeys(_WORDS[name] for name in names if name in _WORDS)) or "value"
