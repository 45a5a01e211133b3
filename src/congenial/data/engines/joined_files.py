"""Two files that belong together: rows, and the units that own them, joined by the unit's key.

The file of units has one row for each unit: its key, and what all rows of a unit share. A column is
in one file only. What does not fit is refused without saying which unit it is: a key that is
missing or named twice among the units, rows whose unit is not there, and, where units are counted
that have a row, units without rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from congenial.data.engines.duckdb_source import DuckDBSource, open_files
from congenial.data.file_format import FileFormat, UnitFile
from congenial.data.sql import DUCKDB
from congenial.errors import DataError

_UNITS = "congenial_units"


def open_joined(
    rows: Path, units: UnitFile, columns: Sequence[str], file_format: FileFormat
) -> DuckDBSource:
    """The rows of one file, each with the columns of its unit from the other."""
    key = units.key
    open_files(units.address, [key], file_format)  # refuses a file without the key
    about = [one for one in columns if one != key and _has(units.address, one, file_format)]
    for name in about:
        if _has(rows, name, file_format):
            raise DataError(
                f"column {name!r} is both in the file of rows and in the file of units.",
                remedy="Keep it in one of them; in the file of units if all rows of a unit agree.",
            )
    own = [one for one in columns if one not in about]
    opened = open_files(rows, own, file_format)
    kept = open_files(units.address, [key, *about], file_format)
    assert opened.connection is not None
    opened.connection.register(_UNITS, kept.run(f"SELECT * FROM {kept.name} AS src"))
    _refuse_unmatched(opened, kept, units)
    return _joined(opened, kept, key, about)


def _has(path: Path, column: str, file_format: FileFormat) -> bool:
    """Whether a file has a column; what is wrong otherwise is found when all are opened."""
    try:
        open_files(path, [column], file_format)
    except DataError:
        return False
    return True


def _keys(opened: DuckDBSource, kept: DuckDBSource, key: str) -> tuple[str, str]:
    """The key in both files, as text: files may store it in different types."""
    name = DUCKDB.identifier(key)
    left = DUCKDB.text_form(f"r.{name}", opened.types[key])
    return left, DUCKDB.text_form(f"u.{name}", kept.types[key])


def _refuse_unmatched(opened: DuckDBSource, kept: DuckDBSource, units: UnitFile) -> None:
    left, right = _keys(opened, kept, units.key)
    found = opened.run(
        f"WITH listed AS (SELECT {right} AS k, COUNT(*) AS n FROM {_UNITS} AS u GROUP BY 1), "
        f"used AS (SELECT DISTINCT {left} AS k FROM {opened.name} AS r) "
        "SELECT COALESCE(MAX(CASE WHEN listed.k IS NULL THEN 0 ELSE listed.n END), 0) AS twice, "
        "COUNT(*) FILTER (WHERE used.k IS NOT NULL AND listed.k IS NULL) AS unknown, "
        "COUNT(*) FILTER (WHERE listed.k IS NOT NULL AND used.k IS NULL) AS empty, "
        f"(SELECT COUNT(*) FROM {_UNITS} AS u WHERE {right} IS NULL) AS missing "
        "FROM listed FULL JOIN used ON listed.k = used.k"
    ).to_pylist()[0]
    reasons = (
        (found["missing"] > 0, "has rows without a key", "Give every unit its key."),
        (found["twice"] > 1, "lists a unit twice", "Keep one row for each unit."),
        (
            found["unknown"] > 0,
            "does not list all units of the file of rows",
            "Add the missing units, or remove their rows.",
        ),
        (
            units.never_empty and found["empty"] > 0,
            "has units without rows, and units = true counts units that have a row",
            "Remove them from the file of units, or add their rows.",
        ),
    )
    for wrong, what, remedy in reasons:
        if wrong:
            raise DataError(f"the file of units {what} (key {units.key!r}).", remedy=remedy)


def _joined(
    opened: DuckDBSource, kept: DuckDBSource, key: str, about: Sequence[str]
) -> DuckDBSource:
    left, right = _keys(opened, kept, key)
    listed = [f"r.{DUCKDB.identifier(name)}" for name in opened.types]
    listed += [f"u.{DUCKDB.identifier(name)}" for name in about]
    query = (
        f"(SELECT {', '.join(listed)} FROM {opened.name} AS r "
        f"LEFT JOIN {_UNITS} AS u ON {right} = {left})"
    )
    types = opened.types | {name: kept.types[name] for name in about}
    return replace(opened, name=query, types=types)
