"""Excel and OpenDocument workbooks, read cell by cell as text, as a CSV file would be.

A workbook stores whole numbers as floating ones: 1.0 becomes "1". Truth values become "true" and
"false", dates "2020-04-01", empty cells are missing. Needs the extra `excel`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from congenial.data.source import check_columns, guarded, refuse_header
from congenial.errors import DataError


def read_sheets(files: Sequence[Path], columns: Sequence[str], sheet: str | None) -> pa.Table:
    """The wanted columns of one sheet of each file, one below the other, all of them text."""
    return pa.concat_tables([_columns(file, columns, sheet) for file in files])


def sheet_names(file: Path) -> list[str]:
    """CONFIDENTIAL, perhaps: the names of a workbook's sheets."""
    return list(_workbook(file).sheet_names)


def sheet_header(file: Path, sheet: str | None) -> tuple[str, ...]:
    """The first row of the sheet that a plan reads."""
    rows = sheet_texts(file, sheet)
    return tuple(cell or "" for cell in rows[0]) if rows else ()


def sheet_texts(file: Path, sheet: str | None = None) -> list[list[str | None]]:
    """CONFIDENTIAL: every cell of a sheet as text, row by row."""
    return [[_text(cell) for cell in row] for row in _rows(file, sheet)]


def _columns(file: Path, columns: Sequence[str], sheet: str | None) -> pa.Table:
    rows = _rows(file, sheet)
    if not rows:
        raise DataError(f"{file.name!r} is empty.", remedy="Give a header row and records.")
    names = [_text(cell) or "" for cell in rows[0]]
    while names and not names[-1]:  # formatted cells beyond the last column
        names.pop()
    check_columns(columns, names)
    refuse_header(file.name, names)
    at = [names.index(column) for column in columns]
    kept = [row for row in rows[1:] if any(cell not in (None, "") for cell in row)]
    arrays = [pa.array([_text(row[place]) for row in kept], pa.string()) for place in at]
    return pa.table(arrays, names=list(columns))


def _rows(file: Path, sheet: str | None) -> list[list[Any]]:
    book = _workbook(file)
    names = list(book.sheet_names)
    if sheet is None and len(names) != 1:
        raise DataError(
            f"{file.name!r} has {len(names)} sheets.", remedy='Name one: sheet = "..." in [data].'
        )
    if sheet is not None and sheet not in names:
        raise DataError(
            f"{file.name!r} has no sheet {sheet!r}.", remedy="Check its name, case and blanks too."
        )
    name = names[0] if sheet is None else sheet
    return guarded(
        lambda: list(book.get_sheet_by_name(name).to_python(skip_empty_area=True)),
        f"{file.name!r} cannot be read to the end.",
        "Save it again, as .xlsx or as CSV.",
    )


def _workbook(file: Path) -> Any:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        CalamineWorkbook = None  # type: ignore[assignment, misc]
    if CalamineWorkbook is None:
        raise DataError(
            "reading Excel files needs the extra 'excel'.",
            remedy="Run pip install 'congenial[excel]'.",
        )
    return guarded(
        lambda: CalamineWorkbook.from_path(str(file)),
        f"{file.name!r} cannot be read as a workbook.",
        "Check that it is complete and not locked by a password.",
    )


def _text(cell: Any) -> str | None:
    """A cell as a CSV file would have it; None where it is empty."""
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    return cell.isoformat() if isinstance(cell, dt.date) else str(cell)
