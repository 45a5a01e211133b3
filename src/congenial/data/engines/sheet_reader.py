"""Reads one sheet of a workbook in a process of its own, with little memory: run as a script.

A workbook of a kilobyte can ask for any amount of memory: one cell in the last row and column, a
forged size, packed text that is a million times longer, a long text that many cells share. No
check beforehand sees all of that in all five formats, so the operating system sets the limit. A
process that asks for more ends, and `excel_sheet`, which started it, says so.

Standard input holds {"file": ..., "sheet": name or null, "columns": names, or null for all}.
Standard output is one JSON value a line: {"sheets": number, "names": some of them}; {"header":
names}; {"rows": ...}, some at a time, without blank ones. Or {"problem": ...} where it stopped. A
cell is text, or null where it is empty.
Only the standard library and calamine are imported, so that it starts at once.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any

MEMORY = 4 << 30  # bytes of address space
SECONDS = 900  # of the processor
MOST_TEXT = 1 << 30  # characters that are handed over
ROWS = 5000  # on one line
MOST_NAMES = 20  # of sheets


class TooLarge(Exception):
    """The sheet holds more text than is handed over."""


def limit() -> None:
    """Set the limits, where the operating system has them."""
    try:
        import resource
    except ImportError:
        return
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, SECONDS)):
        hard = resource.getrlimit(what)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold records


class Lines:
    """Standard output, up to a limit."""

    def __init__(self) -> None:
        self.left = MOST_TEXT

    def write(self, value: object) -> None:
        """One value on a line; TooLarge beyond the limit."""
        line = json.dumps(value)
        self.left -= len(line)
        if self.left < 0:
            raise TooLarge
        sys.stdout.write(line + "\n")


def text(cell: Any) -> str | None:
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


def read(lines: Lines, file: str, sheet: str | None, columns: Sequence[str] | None) -> str | None:
    """Hand over a sheet; the problem where it cannot be read."""
    from python_calamine import CalamineWorkbook

    try:
        book = CalamineWorkbook.from_path(file)
        names = list(book.sheet_names)
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001 - calamine's panics are no Exceptions
        return "no workbook"
    lines.write({"sheets": len(names), "names": [name[:100] for name in names[:MOST_NAMES]]})
    if sheet is None and len(names) != 1:
        return "several sheets"
    if sheet is not None and sheet not in names:
        return "no such sheet"
    rows = book.get_sheet_by_name(names[0] if sheet is None else sheet).iter_rows()
    header: list[str] = []
    for first in rows:
        header = [text(cell) or "" for cell in first]
        if any(header):
            break
    while header and not header[-1]:  # formatted cells beyond the last column
        header.pop()
    lines.write({"header": header})
    if columns is None:
        at = list(range(len(header)))
    elif set(columns) <= set(header):
        at = [header.index(name) for name in columns]
    else:
        return None  # who asked finds which are absent
    filled = (row for row in rows if any(cell not in (None, "") for cell in row))
    wanted = ([text(row[place]) for place in at] for row in filled if at)
    while some := list(islice(wanted, ROWS)):
        lines.write({"rows": some})
    return None


def main() -> None:
    """Answer one request."""
    limit()
    lines = Lines()
    try:
        problem = read(lines, **json.load(sys.stdin))
    except (MemoryError, TooLarge):
        problem = "too large"
    except BaseException:  # noqa: BLE001 - as above; its words may quote a record
        problem = "unreadable"
    if problem is not None:
        sys.stdout.write(json.dumps({"problem": problem}) + "\n")


if __name__ == "__main__":
    main()
