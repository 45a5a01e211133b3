"""Excel and OpenDocument workbooks, read cell by cell as text, as a CSV file would be.

A workbook stores whole numbers as floating ones: 1.0 becomes "1". Truth values become "true" and
"false", dates "2020-04-01", empty cells are missing. Needs the extra `excel`.

`sheet_reader` does the reading in a process with a memory limit: a small file can ask for a lot.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from congenial.data.engines import sheet_reader
from congenial.data.source import check_columns, refuse_header
from congenial.errors import DataError

_LARGE = f"{sheet_reader.MEMORY >> 30} GB of memory"


def read_sheets(files: Sequence[Path], columns: Sequence[str], sheet: str | None) -> pa.Table:
    """The wanted columns of one sheet of each file, one below the other, all of them text."""
    return pa.concat_tables([_columns(file, columns, sheet) for file in files])


def sheet_names(file: Path) -> list[str]:
    """CONFIDENTIAL, perhaps: the names of a workbook's first sheets."""
    return [str(name) for name in next(_answer(file, None, ())).get("names", ())]


def sheet_header(file: Path, sheet: str | None) -> tuple[str, ...]:
    """The first row of the sheet that a plan reads."""
    return tuple(next(_parts(file, sheet, ())))


def sheet_texts(file: Path) -> list[list[str]]:
    """CONFIDENTIAL: every cell of the only sheet as text, row by row, the header first."""
    parts = _parts(file, None, None)
    return [next(parts), *([cell or "" for cell in row] for rows in parts for row in rows)]


def _columns(file: Path, columns: Sequence[str], sheet: str | None) -> pa.Table:
    parts = _parts(file, sheet, columns)
    names = next(parts)
    if not names:
        raise DataError(f"{file.name!r} is empty.", remedy="Give a header row and records.")
    check_columns(columns, names)
    refuse_header(file.name, names)
    schema = pa.schema([(column, pa.string()) for column in columns])
    batches = (
        [pa.array(column, pa.string()) for column in zip(*rows, strict=True)] for rows in parts
    )
    return pa.Table.from_batches(
        [pa.record_batch(arrays, schema=schema) for arrays in batches], schema
    )


def _parts(file: Path, sheet: str | None, columns: Sequence[str] | None) -> Iterator[list[Any]]:
    """The header of a sheet, then its rows, some at a time: the wanted columns of each, or all."""
    sheets = 0
    for line in _answer(file, sheet, columns):
        sheets = line.get("sheets", sheets)
        if "problem" in line:
            raise _error(line["problem"], file.name, sheet, sheets)
        yield from (line[key] for key in ("header", "rows") if key in line)


def _error(problem: str, file: str, sheet: str | None, sheets: int) -> DataError:
    words = {
        "no workbook": (
            f"{file!r} cannot be read as a workbook.",
            "Check that it is complete and has no password.",
        ),
        "several sheets": (f"{file!r} has {sheets} sheets.", 'Name one: sheet = "..." in [data].'),
        "no such sheet": (f"{file!r} has no sheet {sheet!r}.", "Check its name, case and spaces."),
        "unreadable": (
            f"{file!r} cannot be read to the end.",
            "Save it again, as .xlsx or as CSV.",
        ),
        "too large": (
            f"{file!r} takes more than {_LARGE} to read.",
            "Delete the rows and columns beyond the records, which may hold a stray cell or a "
            "format, or save the sheet as CSV.",
        ),
    }
    what, remedy = words[problem]
    return DataError(what, remedy=remedy)


def _answer(
    file: Path, sheet: str | None, columns: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    """What the reader says, line by line; where it was stopped, that it needs too much."""
    if importlib.util.find_spec("python_calamine") is None:
        raise DataError(
            "reading Excel files needs the extra 'excel'.",
            remedy="Run pip install 'congenial[excel]'.",
        )
    asked = json.dumps({"file": str(file), "sheet": sheet, "columns": columns})
    with subprocess.Popen(  # noqa: S603 - a file of ours
        [sys.executable, "-P", sheet_reader.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # it may quote a record
        encoding="ascii",
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        try:
            with suppress(BrokenPipeError), reader.stdin as question:
                question.write(asked)
            for line in reader.stdout:
                yield json.loads(line) if line.endswith("\n") else {}
            stopped = reader.wait() != 0
        finally:
            reader.kill()  # where nobody wants the rest
    if stopped:
        yield {"problem": "too large"}
