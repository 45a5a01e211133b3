"""TopDown's two stages: nonnegative least squares, then controlled rounding.

Kept to compare with what the 2020 Census did. Not the nearest whole table in general.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.figures.integers import Ints
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.tables.conforming_tables import FAR, ConformingTables
from congenial.tables.general_fit import NO_TABLE, checked, displacement, impossible, search
from congenial.tables.measurements import Floats
from congenial.tables.water_levels import WaterLevels

_SNAP = 1e-5  # a real cell this near to a whole number is that number
_SHAKE = 1e-6  # largest random cost by which ties are broken


def least_squares(values: npt.ArrayLike, conforming: ConformingTables) -> Floats:
    """The conforming real table nearest to `values`, to about 1e-5 per cell (congenial-dp's NNL2).

    Whole values in groups of known total are exact to rounding. A cell that only just reaches its
    bound is the least exact; others are good to 1e-9 or better.

    >>> least_squares([5, -2, 1], ConformingTables.of([[1, 1, 1]], [3])).round(6).tolist()
    [3.0, 0.0, 0.0]
    """
    y = np.asarray(values, dtype=float).reshape(-1)
    if y.size != conforming.cells:
        raise StructureError(
            f"{y.size} values for {conforming.cells} cells.", remedy="Give one per cell."
        )
    if conforming.totals is not None and np.array_equal(y, np.rint(y)):
        whole = y.astype(np.int64)
        levels = WaterLevels(conforming.atoms, whole, conforming.lower, conforming.upper)
        x: Floats = np.clip(y, conforming.lower, conforming.upper)
        x[levels.order] = levels.real(conforming.totals)
        return x
    status, moved = displacement(y, conforming)
    if status == NO_TABLE:
        raise impossible()
    if moved is None:
        raise StructureError(
            f"least squares under these {conforming.rows.shape[0]} figures failed numerically (the "
            f"solver says {status}).",
            remedy="Use fewer figures, or print the values as drawn.",
        )
    return y + moved


def topdown(
    values: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """Nonnegative least squares, then controlled rounding; `nearest_in` is nearer in general.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> same_sum = ConformingTables.of([[1, 1, 1]], [4])
    >>> int(topdown([5, -1, 1], same_sum, SeededRandomness(1)).sum())
    4
    """
    return rounded(least_squares(values, conforming), conforming, randomness)


def rounded(
    x: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """Controlled rounding: the conforming whole table nearest to x in l1, each cell up or down.

    x conforms in real numbers. Where no such table exists (figures that are not unimodular) cells
    may move one further at a time. Ties are broken at random.
    """
    randomness = SystemRandomness() if randomness is None else randomness
    real = np.asarray(x, dtype=float).reshape(-1)
    near = np.rint(real)
    snapped = np.where(np.abs(real - near) <= _SNAP, near, real)
    floor, roof = np.floor(snapped).astype(np.int64), np.ceil(snapped).astype(np.int64)
    for room in (0, 1, 2, 4, 8):
        low = np.maximum(floor - room, conforming.lower)
        high = np.minimum(roof + room, conforming.upper)
        step = _round_once(snapped, low, high, conforming, randomness)
        if step is not None:
            return checked(step, conforming)
    raise StructureError(
        "no whole table was found within 8 of every cell of the real one.",
        remedy="Use the nearest whole table instead.",
    )


def _round_once(
    x: Floats, low: Ints, high: Ints, conforming: ConformingTables, randomness: Randomness
) -> Ints | None:
    """argmin of ||m - x||_1 over conforming whole m with low <= m <= high, unit by unit."""
    room = high - low
    if np.any(room < 0):
        return None
    width = int(room.max(initial=0))
    unit, cell = np.nonzero(np.arange(width)[:, None] < room[None, :])
    start = (low[cell] + unit).astype(float)
    cost = np.abs(start + 1 - x[cell]) - np.abs(start - x[cell])
    cost += randomness.words(cost.size) * (_SHAKE * 2.0**-64)
    at = conforming.rows @ low
    open_ = np.where(conforming.low <= -FAR, -np.inf, conforming.low - at)
    ends = open_, np.where(conforming.high >= FAR, np.inf, conforming.high - at)
    rows = conforming.rows[:, cell].astype(float)
    for whole in (False, True):
        units = search(cost, rows, ends, (np.zeros(cell.size), np.ones(cell.size)), whole)[1]
        if units is not None and np.abs(units - np.rint(units)).max(initial=0.0) <= 1e-4:
            return low + np.bincount(cell, np.rint(units), low.size).astype(np.int64)
    return None
