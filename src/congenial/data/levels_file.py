"""A file of levels with their parents: CSV, one row a level; a nation has millions of rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

from congenial.data.attribute import check_names
from congenial.errors import SchemaError


def read_columns(
    name: str, value: str, path: Path
) -> tuple[list[str], tuple[tuple[str, ...], ...]]:
    """The header of a CSV file, and its columns; SchemaError, which quotes no level, if it is none
    or cannot list levels.
    """
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
    _refuse_unusable(name, value, columns)
    return header, columns


def _refuse_unusable(name: str, value: str, columns: tuple[tuple[str, ...], ...]) -> None:
    """Levels that are no names, or that repeat: by their rows, since the file may be the data."""
    for column in columns:
        try:
            check_names(column, "level")
        except SchemaError:
            bad = (i for i, one in enumerate(column) if not one.strip() or not one.isprintable())
            raise SchemaError(
                f"attribute {name!r}: row {next(bad) + 2} of {value!r} has a level that is empty "
                "or has control characters.",
                remedy="Use non-empty text without control characters.",
            ) from None
    repeats = len(columns[0]) - len(set(columns[0]))
    if repeats:
        raise SchemaError(
            f"attribute {name!r}: {repeats} rows of {value!r} repeat a level.",
            remedy="Keep one row for each level.",
        )


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
