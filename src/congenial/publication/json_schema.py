"""The plan file as JSON Schema, for editors: which keys there are, their types and defaults.

It describes shapes only. Whether a plan makes sense is for `congenial check`.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema

from congenial._version import __version__
from congenial.kinds.registry import every_kind
from congenial.publication.plan import Plan

_LABELS = {"type": "array", "items": {"type": ["string", "number"]}}
_TEXT = {"type": "string"}
_ATTRIBUTE: dict[str, Any] = {
    "type": "object",
    "description": "One attribute of a record.",
    "properties": {
        "levels": _LABELS,
        "levels_file": _TEXT,
        "labels_file": _TEXT,
        "edges": {"type": "array", "items": {"type": "number"}},
        "integers": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        "top": _TEXT,
        "bottom": _TEXT,
        "whole": {"type": "boolean"},
        "within": {"type": "object", "additionalProperties": _LABELS},
        "missing": _TEXT,
        "other": _TEXT,
        "of": {"enum": ["unit", "unit size"]},
        "label": _TEXT,
        "labels": {"type": "object", "additionalProperties": {"type": ["string", "number"]}},
    },
    "additionalProperties": False,
}


class _Shapes(GenerateJsonSchema):
    """What is read into a class of ours is written as a table."""

    def is_instance_schema(self, schema: Any) -> JsonSchemaValue:  # noqa: ARG002
        return {"type": "object"}


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of a plan.

    >>> sorted(plan_schema()["properties"])
    ['about', 'budget', 'data', 'derive', 'publish', 'release', 'schema']
    """
    schema: dict[str, Any] = _for_toml(Plan.model_json_schema(schema_generator=_Shapes))
    del schema["properties"]["folder"]  # where relative paths start: not a key of the file
    schema["properties"]["schema"] = {"type": "object", "additionalProperties": _ATTRIBUTE}
    _, kinds = models_json_schema(
        [(kind.section, "validation") for kind in every_kind()], schema_generator=_Shapes
    )
    named = _for_toml(kinds)["$defs"]
    schema.setdefault("$defs", {}).update(named)
    sections = [{"$ref": f"#/$defs/{kind.section.__name__}"} for kind in every_kind()]
    schema["properties"]["release"]["items"] = {"anyOf": sections}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Plan of congenial {__version__}",
    }
    return head | schema


def _for_toml(value: Any) -> Any:
    """Without null, which TOML has not, and without titles that only repeat the key."""
    if isinstance(value, list):
        return [_for_toml(entry) for entry in value if entry != {"type": "null"}]
    if not isinstance(value, dict):
        return value
    members = {key: _for_toml(member) for key, member in value.items() if not _repeats(key, member)}
    choices = members.pop("anyOf", None)
    if choices is None:
        return members
    return members | (choices[0] if len(choices) == 1 else {"anyOf": choices})


def _repeats(key: str, value: Any) -> bool:
    return (key == "title" and isinstance(value, str)) or value is None
