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
from congenial.mechanisms.cell_errors import ERRORS, CellErrors
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.single_table_release import Release

MEASURED = "measured.csv"
TABLE, ESTIMATE = "table", "estimate"


def measured_csv(tables: Sequence[Release]) -> bytes:
    """The file."""
    rows: list[Sequence[Any]] = [_header(tables)]
    for one in tables:
        errors = [column.tolist() for column in one.errors.columns.values()]
        rows += [(*told, *ends) for told, *ends in zip(_cells(tables, one), *errors, strict=True)]
    return rows_csv(rows).encode()


def follows(content: bytes, tables: Sequence[Release]) -> bool:
    """Whether a file says of these tables what follows from their values and laws."""
    read = csv.reader(io.StringIO(content.decode(errors="replace"), newline=""))
    rows = [[original(cell) for cell in row] for row in read]
    cells = sum(one.values.size for one in tables)
    if len(rows) != 1 + cells or rows[0] != _header(tables):
        return False
    at = 1
    for one in tables:
        own, at = rows[at : at + one.values.size], at + one.values.size
        if not _tells(own, tables, one):
            return False
    return rows_csv(rows).encode() == content


def _tells(rows: list[list[str]], tables: Sequence[Release], one: Release) -> bool:
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
    errors = CellErrors(*np.array(numbers).T)
    return errors.follow_from(one.mechanism, one.published, one.drawn, one.fitted)


def _header(tables: Sequence[Release]) -> list[str]:
    numbers = (TABLE, ESTIMATE, *ERRORS)
    return [TABLE, *label_names(_axes(tables), numbers), ESTIMATE, *ERRORS]


def _axes(tables: Sequence[Release]) -> list[str]:
    """All columns of the tables, in the order in which they come."""
    return list(dict.fromkeys(name for one in tables for name in one.table))


def _cells(tables: Sequence[Release], one: Release) -> Iterator[list[Any]]:
    """What stands before the errors in each row of a table."""
    axes, name = _axes(tables), " x ".join(one.table)
    levels = [axis.levels for axis in one.schema.axes(one.table)]
    for labels, value in zip(product(*levels), one.drawn.reshape(-1).tolist(), strict=True):
        shown = dict(zip(one.table, labels, strict=True))
        yield [name, *(shown.get(axis, "") for axis in axes), value]
