"""A file of levels with their labels or parents: CSV, one row a level; a nation has millions.

An error names rows and never quotes what the file holds: it may not be a list of levels at all.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from congenial.errors import SchemaError


def read_columns(
    name: str, key: str, value: str, path: Path
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
            f"attribute {name!r}: {key} {value!r} cannot be read ({error.strerror}).",
            remedy="Check the name; it is relative to the plan's folder.",
        ) from None
    except (UnicodeDecodeError, csv.Error):
        raise SchemaError(
            f"attribute {name!r}: {key} {value!r} is not a CSV file in UTF-8."
        ) from None
    if not columns:
        raise SchemaError(
            f"attribute {name!r}: {key} {value!r} has no categories.",
            remedy="Write a header row, then one row per category.",
        )
    if key == "labels_file" and len(columns) < 2:
        raise SchemaError(
            f"attribute {name!r}: labels_file {value!r} has one column.",
            remedy="Write categories in the first column and their labels in the second, or use "
            "levels_file.",
        )
    refuse_fields(name, value, "level", columns[0], once=True)
    labelled = key == "labels_file"
    if labelled:
        refuse_fields(name, value, "label", columns[1], once=True)
    for place, parents in enumerate(columns[1 + labelled :], 2 + labelled):
        refuse_fields(name, value, f"text in column {place}", parents, once=False)
    return header, columns


def refuse_fields(name: str, file: str, what: str, fields: Sequence[str], once: bool) -> None:
    """SchemaError for a field of a column that cannot be a name, or is there twice."""
    bad = "" in fields or any(map(str.isspace, fields)) or not "".join(fields).isprintable()
    if not bad and (not once or len(set(fields)) == len(fields)):
        return
    rows: dict[str, int] = {}
    for number, field in enumerate(fields, start=2):
        if not field.strip() or not field.isprintable():
            raise SchemaError(
                f"attribute {name!r}: row {number} of {file!r} has no {what}, or has control "
                "characters there.",
                remedy=f"Give every row a {what}.",
            )
        first = rows.setdefault(field, number)
        if once and first != number:
            raise SchemaError(
                f"attribute {name!r}: rows {first} and {number} of {file!r} have the same {what}.",
                remedy=f"Give each row its own {what}.",
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
                remedy="Give every row one field per column.",
            )
        yield [level, *map(known.setdefault, parents, parents)]
