"""Units of large Parquet files, checked and counted without SQL.

The rows of a unit mostly stand one after the other. Each run of rows with the same unit becomes one
entry (unit, class, rows) in the pass that codes its columns. Entries of one unit are then put
together: by its number where units are numbered nearly without gaps, else in order; if units ascend
there is nothing to do. Results and refusals equal those of `sql.units_per_class`.
Memory: 20 bytes for each run.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from congenial.data.engines import parquet_count
from congenial.data.engines.parquet_count import Ints, ParquetCount

MOST_ROWS = 2**28  # as many runs at worst: 5 GiB
_SPREAD = 4  # places for each run, up to which units are put by number and not sorted


@dataclass(frozen=True)
class UnitsFound:
    """CONFIDENTIAL: flat number of each class that occurs, and its units; most rows of one unit."""

    classes: Ints
    units: Ints
    largest: int


def units_found(count: ParquetCount | None, unit: str) -> UnitsFound | None:
    """The units of files that a count is planned of; None where SQL is faster, or is to refuse."""
    units = None if count is None else ParquetUnits(count, unit)
    return units.run() if units is not None and units.ready else None


@dataclass(frozen=True)
class ParquetUnits:
    """A count of units ready to run: the files, their unit column, and how to code the others."""

    count: ParquetCount
    unit: str

    @property
    def ready(self) -> bool:
        """Whether units are whole numbers, and the files of a size for which this is faster."""
        count, unit = self.count, self.unit
        sized = parquet_count.MIN_ROWS <= count.rows <= MOST_ROWS
        if not sized or unit in {axis.base for axis in count.axes}:
            return False
        return all(_whole(one.schema.to_arrow_schema(), unit) for one in count.metadata)

    def run(self) -> UnitsFound | None:
        """Count; None where a row has no unit or level, or rows of a unit disagree: SQL says which.

        Where units are too large is for the caller to refuse.
        """
        groups = [
            (file, group)
            for file, footer in enumerate(self.count.metadata)
            for group in range(footer.num_row_groups)
        ]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            parts = list(pool.map(lambda one: self._row_group(*one), groups))
        runs = [run for part in parts if part is not None for run in part]
        if None in parts or not runs:
            return None
        return _counted(*(np.concatenate([run[at] for run in runs]) for at in range(3)))

    def _row_group(self, file: int, group: int) -> list[tuple[Any, Any, Any]] | None:
        """Unit, class (-1 where rows disagree) and rows of each run; None as above."""
        from congenial.data.engines import counting_kernels as kernels

        refused, runs = np.zeros((len(self.count.axes), 4), dtype=np.int64), []
        for batch in self.count.batches(file, group, (self.unit,)):
            column = batch.column(self.unit)
            cells = np.zeros(batch.num_rows, dtype=np.int32)
            for at, coder in enumerate(self.count.coders[file]):
                coder.extend(cells, batch.column(coder.axis.base), refused[at])
            if column.null_count or refused.any():
                return None
            units = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
            runs.append(kernels.runs(units, cells))
        return runs


def _whole(stored: Any, unit: str) -> bool:
    at = stored.get_field_index(unit)
    kind = stored.field(at).type if at >= 0 else pa.null()
    return bool(pa.types.is_integer(kind)) and not pa.types.is_uint64(kind)


def _counted(units: Ints, classes: Ints, rows: Ints) -> UnitsFound | None:
    """Runs of the same unit put together; None where its classes differ."""
    if np.any(units[1:] <= units[:-1]):
        low, high = int(units.min()), int(units.max())
        numbered = high - low < _SPREAD * len(units)
        together = (_by_place if numbered else _in_order)(units - low, classes, rows)
    else:
        together = None if np.any(classes < 0) else (classes, rows)
    if together is None:
        return None
    found, number = np.unique(together[0], return_counts=True)
    return UnitsFound(found.astype(np.int64), number.astype(np.int64), int(together[1].max()))


def _by_place(units: Ints, classes: Ints, rows: Ints) -> tuple[Any, Any] | None:
    """Where units are numbered nearly without gaps, each has its place: nothing is sorted."""
    from congenial.data.engines import counting_kernels as kernels

    places = int(units.max()) + 1
    cell, size = np.full(places, -1, dtype=np.int32), np.zeros(places, dtype=np.int64)
    agree = kernels.by_place(units, classes, rows, cell, size)
    return (cell[size > 0], size) if agree else None


def _in_order(units: Ints, classes: Ints, rows: Ints) -> tuple[Any, Any] | None:
    order = np.argsort(units, kind="stable")
    units, classes = units[order], classes[order]
    start = np.flatnonzero(np.concatenate([[True], units[1:] != units[:-1]]))
    lowest = np.minimum.reduceat(classes, start)
    if np.any(lowest < 0) or np.any(lowest != np.maximum.reduceat(classes, start)):
        return None
    return lowest, np.add.reduceat(rows[order], start)
