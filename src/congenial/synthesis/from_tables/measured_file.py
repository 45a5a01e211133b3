"""measured.csv: all measured tables cell by cell, and how far each value may be off.

One row for each cell of each table: `table` names its columns, every column of the records (and
every coarser name that was counted by) holds a label, or nothing where the table does not have it;
then the value as drawn, its standard deviation, and the ends of a 90 % interval for the true count.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from congenial.data.csv_text import original, rows_csv
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.tables_release import ERRORS, TablesRelease

MEASURED = "measured.csv"
AGAIN = 1e-6  # relative error of a standard deviation that is worked out again
TABLE, ESTIMATE = "table", "estimate"


def measured_csv(tables: Sequence[TablesRelease]) -> bytes:
    """The file."""
    rows: list[Sequence[Any]] = [_header(tables)]
    for one in tables:
        errors = [column.reshape(-1).tolist() for column in one.cell_errors()]
        rows += [(*told, *ends) for told, *ends in zip(_cells(tables, one), *errors, strict=True)]
    return rows_csv(rows).encode()


def follows(content: bytes, tables: Sequence[TablesRelease]) -> bool:
    """Whether a file says of these tables what follows from their values and laws."""
    read = csv.reader(io.StringIO(content.decode(errors="replace"), newline=""))
    rows = [[original(cell) for cell in row] for row in read]
    cells = sum(one.drawn[0].size for one in tables)
    if len(rows) != 1 + cells or rows[0] != _header(tables):
        return False
    at = 1
    for one in tables:
        own, at = rows[at : at + one.drawn[0].size], at + one.drawn[0].size
        if not _tells(own, tables, one):
            return False
    return rows_csv(rows).encode() == content


def _tells(rows: list[list[str]], tables: Sequence[TablesRelease], one: TablesRelease) -> bool:
    """Whether the rows of a table have its cells in order, and errors of its law."""
    ends = len(ERRORS)
    told = [[str(value) for value in cell] for cell in _cells(tables, one)]
    if [row[:-ends] for row in rows] != told:
        return False
    try:
        numbers = [(float(sd), int(low), int(high)) for *_, sd, low, high in rows]
    except ValueError:
        return False
    if [row[-ends:] for row in rows] != [list(map(str, row)) for row in numbers]:
        return False  # a digit more, or a number in another form
    sd, low, high = (column.reshape(-1) for column in one.cell_errors())
    printed = np.array(numbers).T
    off = AGAIN * (1 + high - low)
    ends = (np.abs(printed[1] - low) <= off) & (np.abs(printed[2] - high) <= off)
    return bool(np.all(ends & (np.abs(printed[0] - sd) <= AGAIN * sd)))


def _header(tables: Sequence[TablesRelease]) -> list[str]:
    numbers = (TABLE, ESTIMATE, *ERRORS)
    return [TABLE, *label_names(_axes(tables), numbers), ESTIMATE, *ERRORS]


def _axes(tables: Sequence[TablesRelease]) -> list[str]:
    """All columns of the tables, in the order in which they come."""
    return list(dict.fromkeys(name for one in tables for name in one.tables[0]))


def _cells(tables: Sequence[TablesRelease], one: TablesRelease) -> Iterator[list[Any]]:
    """What stands before the errors in each row of a table."""
    axes, name = _axes(tables), " x ".join(one.tables[0])
    levels = [axis.levels for axis in one.schema.axes(one.tables[0])]
    for labels, value in zip(product(*levels), one.drawn[0].reshape(-1).tolist(), strict=True):
        shown = dict(zip(one.tables[0], labels, strict=True))
        yield [name, *(shown.get(axis, "") for axis in axes), value]
