"""measured.csv: all measured tables cell by cell, and how far each value may be off.

One row for each cell of each table: `table` names its columns, every column of the records (and
every coarser name that was counted by) holds a label, or nothing where the table does not have it;
then the value as drawn, its standard deviation, and the ends of a 90 % interval for the true count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from congenial.data.csv_text import rows_csv
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.tables_release import ERRORS, TablesRelease

MEASURED = "measured.csv"
OFF = dict.fromkeys(ERRORS, 1e-6)  # standard deviations by which other machines may round
TABLE, ESTIMATE = "table", "estimate"


def measured_csv(tables: Sequence[TablesRelease]) -> bytes:
    """The file."""
    rows: list[Sequence[Any]] = [_header(tables)]
    for one in tables:
        errors = [column.reshape(-1).tolist() for column in one.cell_errors()]
        rows += [(*told, *ends) for told, *ends in zip(_cells(tables, one), *errors, strict=True)]
    return rows_csv(rows).encode()


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
