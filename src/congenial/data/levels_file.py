"""A file of levels with their parents: CSV, one row a level; a nation has millions of rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from congenial.errors import SchemaError


def read_columns(
    name: str, value: str, path: Path
) -> tuple[list[str], tuple[tuple[str, ...], ...]]:
    """The header of a CSV file, and its columns; SchemaError if it is none."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = (row for row in csv.reader(file, strict=True) if row)
            header = next(rows, [])
            columns = tuple(zip(*_whole_rows(name, value, header, rows), strict=True))
    except OSError as error:
        raise SchemaError(
            f"attribute {name!r}: levels_file {value!r} cannot be read ({error.strerror}).",
            remedy="Check the name; it is relative to the plan's folder.",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise SchemaError(
            f"attribute {name!r}: levels_file {value!r} is not a CSV file in UTF-8."
        ) from None
    if not columns:
        raise SchemaError(
            f"attribute {name!r}: levels_file {value!r} has no levels.",
            remedy="Give a header row and one row per level.",
        )
    return header, columns


def _whole_rows(
    name: str, value: str, header: list[str], rows: Iterable[list[str]]
) -> Iterator[list[str]]:
    """The rows below the header, equal names of parents as one object; SchemaError for one of
    another length.
    """
    known: dict[str, str] = {}
    for number, (level, *parents) in enumerate(rows, start=2):
        if len(parents) + 1 != len(header):
            raise SchemaError(
                f"attribute {name!r}: row {number} of {value!r} has {len(parents) + 1} fields, "
                f"the header has {len(header)}.",
                remedy="Give every level one parent per column.",
            )
        yield [level, *map(known.setdefault, parents, parents)]
