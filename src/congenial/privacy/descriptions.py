"""The kinds of descriptions of a release, and reading one of whichever kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from congenial.data.arguments import expect
from congenial.data.schema import Schema
from congenial.errors import BundleError
from congenial.privacy.description import Description
from congenial.privacy.record_description import RecordDescription
from congenial.privacy.tables_description import TablesDescription

AnyDescription = Description | RecordDescription | TablesDescription
_KINDS: dict[str, type[AnyDescription]] = {
    "records": RecordDescription,
    "tables": TablesDescription,
}


def read_description(schema: Schema, data: Mapping[str, Any]) -> AnyDescription:
    """The description that `to_dict` wrote, of whichever kind."""
    expect(schema, Schema, "the schema", "Give a Schema.", BundleError)
    expect(data, Mapping, "the description", "Give what to_dict wrote.", BundleError)
    return _KINDS.get(data.get("kind", ""), Description).from_dict(schema, data)
