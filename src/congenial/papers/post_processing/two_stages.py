"""TopDown's two stages: nonnegative least squares, then controlled rounding.

Kept to compare with what the 2020 Census did. Not the nearest whole table in general.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.errors import MandateError
from congenial.figures.integers import Ints
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.tables.conforming_tables import FAR, ConformingTables
from congenial.tables.general_fit import checked, least_squares, search
from congenial.tables.measurements import Floats

_SNAP = 1e-5  # a real cell this near to a whole number is that number
_SHAKE = 1e-6  # largest random cost by which ties are broken


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
    raise MandateError(
        "no whole table within the bounds satisfies the figures.",
        remedy="Correct or drop a figure.",
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
        if units is None:
            return None
        if np.abs(units - np.rint(units)).max(initial=0.0) <= 1e-4:
            break
    return low + np.bincount(cell, np.rint(units), low.size).astype(np.int64)
