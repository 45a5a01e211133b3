"""Compiled loops of `counting.py`. Each extends the cell number of every row by one axis."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def by_table(
    cells: Any, size: int, values: Any, valid: Any, low: int, table: Any, missing: int, found: Any
) -> None:
    """Code by position: table[v - low + 1], its first and last entry for values beyond it.

    A negative code is noted in `found` and counted as 0, so that no index leaves the table.
    """
    last = table.size - 1
    high = low + last - 2
    for i in range(values.size):
        v = np.int64(values[i])
        if valid.size > 0 and not valid[i]:
            code = np.int64(missing)
        elif v < low:
            code = np.int64(table[0])
        elif v > high:
            code = np.int64(table[last])
        else:
            code = np.int64(table[v - low + 1])
        if code < 0:
            found[-code] = 1
            code = np.int64(0)
        cells[i] = cells[i] * size + code


@numba.njit(cache=True, nogil=True)
def by_steps(
    cells: Any,
    size: int,
    values: Any,
    valid: Any,
    edges: Any,
    codes: Any,
    missing: int,
    broken: int,
    found: Any,
) -> None:
    """Code by binary search: codes[number of edges <= v].

    NaN is missing; unless `broken` is -9, a value that is not whole gets the code `broken`.
    """
    for i in range(values.size):
        v = values[i]
        if (valid.size > 0 and not valid[i]) or v != v:
            code = np.int64(missing)
        elif broken != -9 and v != np.floor(v):
            code = np.int64(broken)
        else:
            left, right = 0, edges.size
            while left < right:
                middle = (left + right) // 2
                if v < edges[middle]:
                    right = middle
                else:
                    left = middle + 1
            code = np.int64(codes[left])
        if code < 0:
            found[-code] = 1
            code = np.int64(0)
        cells[i] = cells[i] * size + code


@numba.njit(cache=True, nogil=True)
def tally(cells: Any, counts: Any) -> None:
    """Add one to the count of every row's cell."""
    for i in range(cells.size):
        counts[cells[i]] += 1


@numba.njit(cache=True, nogil=True)
def runs(units: Any, cells: Any) -> tuple[Any, Any, Any]:
    """Unit, cell and length of every run of rows of one unit; cell -1 where rows disagree."""
    number = 0
    for i in range(units.size):
        if i == 0 or units[i] != units[i - 1]:
            number += 1
    unit, cell = np.empty(number, np.int64), np.empty(number, np.int32)
    rows = np.zeros(number, np.int64)
    at = -1
    for i in range(units.size):
        if i == 0 or units[i] != units[i - 1]:
            at += 1
            unit[at], cell[at] = units[i], cells[i]
        elif cells[i] != cell[at]:
            cell[at] = -1
        rows[at] += 1
    return unit, cell, rows


@numba.njit(cache=True, nogil=True)
def by_place(units: Any, cells: Any, rows: Any, cell: Any, size: Any) -> bool:
    """Put runs together where units are places; whether all runs of each have the same cell.

    `cell` is -1 where no unit is; units that disagree within a run never agree.
    """
    for i in range(units.size):
        at = units[i]
        if cells[i] < 0 or (size[at] > 0 and cell[at] != cells[i]):
            return False
        cell[at] = cells[i]
        size[at] += rows[i]
    return True
