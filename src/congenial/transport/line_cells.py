"""A law on the line as cells: intervals with integer masses, in increasing order.

A point is a cell of width zero. A continuous law is cut at exact levels of its distribution
function, so its masses are exact and only the ends of its cells are rounded, outwards. Masses known
as logarithms are rounded down (or up, to bound a distance from below): what is lost counts as not
matched.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.pairs.scenarios.statistic_laws import (
    LARGEST_INT64,
    Floats,
    StatedContinuous,
    StatedDiscrete,
    StatedLogDiscrete,
    StatedNormal,
)

Rounding = Literal["down", "up"]
OneDimensional = StatedDiscrete | StatedLogDiscrete | StatedNormal | StatedContinuous

UNIT = 1 << 60  # mass of a law whose masses are not whole numbers already
_EVEN = 1 << 16  # cells of equal mass in a continuous law
_PER_OCTAVE = 512  # and cells between one tail probability and its half
_LONG = 4_000  # more cells than this are not swept with integers of unlimited size


@dataclass(frozen=True, eq=False)
class LineCells:
    """Intervals [low, high] with masses out of `total`, a total that may exceed their sum."""

    low: Floats
    high: Floats
    masses: npt.NDArray[Any]
    total: int

    def scaled(self, total: int) -> LineCells:
        """The same cells with masses out of a multiple of the total."""
        factor = total // self.total
        if factor == 1:
            return self
        wide = total >= LARGEST_INT64
        masses = (self.masses.astype(object) if wide else self.masses) * factor
        return LineCells(self.low, self.high, masses, total)

    def swapped(self) -> LineCells:
        """Ends exchanged: two cells then count as near when some two of their points are."""
        return LineCells(self.high, self.low, self.masses, self.total)

    def grouped(self, size: int, rounding: Rounding) -> LineCells:
        """Neighbouring cells taken together: distances round up ("down": less is matched), or down.

        Works on swapped cells too, since each array of ends increases on its own.
        """
        first = np.arange(0, len(self.low), size)
        last = np.append(first[1:], len(self.low)) - 1
        low, high = (first, last) if rounding == "down" else (last, first)
        return LineCells(
            self.low[low], self.high[high], np.add.reduceat(self.masses, first), self.total
        )


def of_one_total(
    left: OneDimensional, right: OneDimensional, rounding: Rounding, *, shorten: bool
) -> tuple[LineCells, LineCells]:
    """Both laws as cells with masses out of the same total.

    `shorten`: masses that would be too long for many cells are rounded too, which delta pays for.
    """
    a, b = cells(left, rounding), cells(right, rounding)
    common = math.lcm(a.total, b.total)
    if shorten and common >= LARGEST_INT64 and len(a.low) + len(b.low) > _LONG:
        a, b = coarsened(a, rounding), coarsened(b, rounding)
        common = UNIT
    return a.scaled(common), b.scaled(common)


def cells(law: OneDimensional, rounding: Rounding) -> LineCells:
    """The cells of one law."""
    if law_dimension(law) != 1:
        raise StructureError("a law in several dimensions has no cells on the line.")
    if isinstance(law, StatedDiscrete):
        return LineCells(law.points, law.points, law.masses, law.total)
    if isinstance(law, StatedLogDiscrete):
        masses = whole_masses(law, rounding)
        keep = masses > 0
        points = law.points[keep]
        return LineCells(points, points, masses[keep], UNIT)
    return _quantile_cells(law if isinstance(law, StatedContinuous) else _normal(law))


def law_dimension(law: OneDimensional) -> int:
    """Coordinates of the statistic."""
    return law.dimension if isinstance(law, StatedDiscrete | StatedLogDiscrete) else 1


def whole_masses(law: StatedLogDiscrete, rounding: Rounding) -> npt.NDArray[np.int64]:
    """Masses out of UNIT, rounded so that each is a lower (or an upper) bound."""
    if rounding == "down":
        return np.floor(np.exp(law.logs) * ((1 - 2 * law.error) * UNIT)).astype(np.int64)
    return np.ceil(np.exp(law.logs) * ((1 + 2 * law.error) * UNIT)).astype(np.int64)


def coarsened(told: LineCells, rounding: Rounding) -> LineCells:
    """Masses out of UNIT, rounded, when exact ones would be too long."""
    big = told.masses.astype(object) * UNIT
    masses = big // told.total if rounding == "down" else -(-big // told.total)
    return LineCells(told.low, told.high, masses.astype(np.int64), UNIT)


def _normal(law: StatedNormal) -> StatedContinuous:
    from scipy.special import ndtri

    mean, sd = law.mean, law.sd
    return StatedContinuous(
        lambda u: mean + sd * ndtri(u), lambda u: mean - sd * ndtri(u), accuracy=2.0**-48
    )


@lru_cache(maxsize=1)
def _levels() -> npt.NDArray[np.int64]:
    """Tail masses up to one half, in units, increasing: even steps and even ratios together."""
    even = np.arange(1, _EVEN // 2 + 1, dtype=np.int64) * (UNIT // _EVEN)
    ratios = np.exp2(-np.arange(_PER_OCTAVE, 60 * _PER_OCTAVE + 1) / _PER_OCTAVE)
    return np.unique(np.concatenate([even, np.floor(ratios * UNIT).astype(np.int64)]))


def _quantile_cells(law: StatedContinuous) -> LineCells:
    tail = _levels()
    share = tail / UNIT
    lower = np.asarray(law.quantile(share), dtype=np.float64)
    upper = np.asarray(law.upper_quantile(share), dtype=np.float64)[::-1]
    cuts = np.concatenate([lower, upper[1:]])  # the median is in both
    if not np.all(np.isfinite(cuts)):
        raise StructureError(
            "a quantile function gives no finite value at some level between 0 and 1.",
            remedy="Give quantile functions that are finite inside (0, 1).",
        )
    spread = float(np.subtract(*np.quantile(cuts, [0.75, 0.25])))
    pad = law.accuracy * (np.abs(cuts) + spread)
    levels = np.concatenate([[0], tail, (UNIT - tail)[::-1][1:], [UNIT]])
    below = np.concatenate([[law.support[0]], cuts - pad])
    above = np.concatenate([cuts + pad, [law.support[1]]])
    # rounding must not spoil the order: take the lower end lower and the upper end higher
    low = np.minimum.accumulate(below[::-1])[::-1]
    high = np.maximum.accumulate(above)
    return LineCells(
        np.maximum(low, law.support[0]), np.minimum(high, law.support[1]), np.diff(levels), UNIT
    )
