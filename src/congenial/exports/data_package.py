"""Data Package (frictionlessdata.io): CSV files and a datapackage.json that describes them."""

from __future__ import annotations

from typing import Any

from congenial.data.advance import Tell, one_by_one, quiet
from congenial.data.text_files import neutral, rows_csv
from congenial.exports.exported_tables import (
    ExportedBundle,
    ExportedColumn,
    ExportedTable,
    plain_name,
    unique_names,
)
from congenial.publication.bundle import as_json
from congenial.publication.bundle_texts import PUBLISHED_COLUMNS, published_rows

PROFILE = "tabular-data-package"


class DataPackage:
    """A folder with datapackage.json, one CSV file for each table, and the exact figures."""

    name = "datapackage"
    words = "a Data Package: CSV files with a description that frictionless and others read"

    def files(self, bundle: ExportedBundle, progress: Tell = quiet) -> dict[str, bytes]:
        """The CSV files and their description."""
        files: dict[str, bytes] = {}
        resources = []
        names = unique_names([plain_name(table.name) for table in bundle.tables])
        for name, table in zip(names, bundle.tables, strict=True):
            rows = [tuple(column.name for column in table.columns), *table.rows]
            steps = one_by_one(rows, f"writing {name}.csv", progress)
            files[f"{name}.csv"] = rows_csv(steps).encode()
            resources.append(_resource(name, table))
        figures = list(published_rows(bundle.published))
        if figures:
            files["published.csv"] = rows_csv([PUBLISHED_COLUMNS, *figures]).encode()
            resources.append(_figures())
        files["datapackage.json"] = as_json(_package(bundle, resources))
        return files

    def left_open(self, bundle: ExportedBundle) -> list[str]:  # noqa: ARG002
        """A licence: no bundle says under which the data are published."""
        return ["licenses, in datapackage.json"]


def _package(bundle: ExportedBundle, resources: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "profile": PROFILE,
        "name": plain_name(bundle.name),
        "title": bundle.name,
        "description": bundle.promise,
        "created": str(bundle.index.get("created", "")),
        "version": bundle.digest,
        "sources": [{"title": f"bundle with digest {bundle.digest}"}],
        "resources": resources,
    }


def _resource(name: str, table: ExportedTable) -> dict[str, Any]:
    labels = [column.name for column in table.columns if column.meaning == "label"]
    return {
        "profile": "tabular-data-resource",
        "name": name,
        "path": f"{name}.csv",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "schema": {
            "fields": [_field(column) for column in table.columns],
            "primaryKey": [neutral(label) for label in labels],
        },
    }


def _field(column: ExportedColumn) -> dict[str, Any]:
    descriptor: dict[str, Any] = {"name": neutral(column.name), "description": column.description}
    if column.is_label:
        levels = [neutral(level) for level in column.levels]
        return descriptor | {"type": "string", "constraints": {"enum": levels}}
    if column.meaning == "flag":
        return descriptor | {"type": "string", "constraints": {"enum": [*column.levels]}}
    whole = all(isinstance(value, int) for value in column.values)
    return descriptor | {"type": "integer" if whole else "number"}


def _figures() -> dict[str, Any]:
    fields = [{"name": name, "type": "string"} for name in PUBLISHED_COLUMNS]
    fields[PUBLISHED_COLUMNS.index("value")]["type"] = "integer"
    return {
        "profile": "tabular-data-resource",
        "name": "published",
        "path": "published.csv",
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "description": "figures published exactly, and public bounds: not protected",
        "schema": {"fields": fields},
    }
