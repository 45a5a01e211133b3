"""The line: W_inf by matching equal quantiles, (W, delta) by a greedy sweep and bisection.

Both run over cells sorted by value. The sweep holds the first cell of each law that is not used up:
if the two are within W, as much as possible is matched; otherwise the lower one can be matched by
nothing that is left and is given up. An exchange argument shows that no coupling matches more
(distribution-privacy, see docs/errata: trimming the coupling of equal quantiles does not do it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Floats
from congenial.errors import StructureError
from congenial.pairs.stated_laws import (
    LARGEST_INT64,
    StatedContinuous,
    StatedDiscrete,
    StatedLogDiscrete,
    StatedNormal,
)
from congenial.transport.certificates import (
    Certificate,
    Coupling,
    Distance,
    Norm,
    ShiftedNormal,
    Side,
    empirical,
    lengths,
)

# ---- line cells ---------------------------------------------------------------------------------
#
# A law on the line as cells: intervals with integer masses, in increasing order.
#
# A point is a cell of width zero. A continuous law is cut at exact levels of its distribution
# function, so its masses are exact and only the ends of its cells are rounded, outwards. Masses
# known as logarithms are rounded down (or up, to bound a distance from below): what is lost
# counts as not matched.


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


# ---- tails --------------------------------------------------------------------------------------
#
# W_inf on the log scale: two discrete laws on the line whose masses are known as logarithms.
#
# Levels of the distribution function are kept as log F below the median and as -log(1 - F) above,
# so that both tails keep their digits; a comparison that rounding could turn is decided against
# us. (A float quantile function loses the upper tail: it says 31 for two binomials of 200 trials,
# the truth is 35; partially-private-data, Eq 35, see docs/errata.)


_LOG2 = math.log(2)
Levels = tuple[Floats, Floats, float]  # points, levels, error of a level


def levels(law: StatedDiscrete | StatedLogDiscrete) -> Levels:
    """Points, and the level of the distribution function at each: increasing, 0 at one half."""
    logs = law.log_masses()
    error = law.error if isinstance(law, StatedLogDiscrete) else 2.0**-50
    lower = np.logaddexp.accumulate(logs)
    above = np.logaddexp.accumulate(logs[::-1])[::-1]
    upper = np.append(above[1:], -np.inf)
    # adding n terms in turn loses at most a unit of the current logarithm each time
    depth = 1 + float(np.max(np.abs(np.concatenate([lower, above]))))
    error = 2 * error + abs(float(lower[-1])) + len(logs) * depth * 2.0**-52
    level = np.where(lower <= -_LOG2, lower + _LOG2, -(upper + _LOG2))
    return law.points, np.maximum.accumulate(level), error


def w_infinity(left: Levels, right: Levels) -> tuple[float, float]:
    """Upper and lower bound of sup over u of |F^-1(u) - G^-1(u)|, over the jumps of both laws.

    Points x_k and y_l are met by one u exactly when F(x_k-) < G(y_l) and G(y_l-) < F(x_k).
    """
    error = left[2] + right[2]
    return _widest(left, right, error), _widest(left, right, -error)


def _widest(left: Levels, right: Levels, error: float) -> float:
    (x, f, _), (y, g, _) = left, right
    before = np.concatenate([[-np.inf], f[:-1]])
    first = np.searchsorted(g, before - error, side="right")
    last = np.minimum(np.searchsorted(g, f + error, side="left"), len(y) - 1)
    met = first <= last
    if not np.any(met):
        return 0.0
    gaps = [lengths(x[met], y[first[met]], "l1"), lengths(x[met], y[last[met]], "l1")]
    return float(np.max(gaps))


_GROUP = 64  # cells taken together for a first bracket


def on_the_line(a: OneDimensional, b: OneDimensional, delta: Fraction, norm: Norm) -> Distance:
    """The least W for two laws on the line, from cells of both."""
    if isinstance(a, StatedNormal) and isinstance(b, StatedNormal) and a.sd == b.sd:
        return _shifted_normal(a, b, delta, norm)
    left, right = of_one_total(a, b, "down", shorten=delta > 0)
    need = math.ceil((1 - delta) * left.total)
    value = at_least = least(left, right, need)
    if not _exact(a, left) or not _exact(b, right):
        some_left, some_right = of_one_total(a, b, "up", shorten=delta > 0)
        at_least = min(value, least(some_left.swapped(), some_right.swapped(), need))

    def prove() -> Certificate:
        return _coupling(left, right, need, value, delta, norm)

    return Distance(value, at_least, delta, norm, empirical(a, b), prove)


def _exact(law: OneDimensional, told: LineCells) -> bool:
    """Whether the cells are the law, with nothing rounded."""
    return isinstance(law, StatedDiscrete) and int(told.masses.sum()) == told.total


def least(left: LineCells, right: LineCells, need: int) -> float:
    """The least W that matches mass `need`, by the greedy sweep and bisection.

    A success shrinks the bracket to the largest distance used, a failure raises it to the least
    distance that was in the way, so the bracket closes on a distance that occurs.
    """
    from congenial.transport.sorted_kernels import comonotone

    sums = int(left.masses.sum()), int(right.masses.sum())
    if sums[0] == sums[1] == need:
        kernel = comonotone.py_func if _big(left, right) else comonotone
        return float(kernel(*_arrays(left), *_arrays(right)))
    if min(sums) < need:
        return math.inf
    low, high = _bracket(left, right, need)
    middle = low
    while low < high < math.inf:
        matched, used, gap, _ = _sweep(left, right, need, middle)
        if matched >= need:
            high = used
        else:
            low = min(gap, high)
        middle = low + (high - low) / 2
        if not low <= middle < high:
            middle = low
    return high


def _bracket(left: LineCells, right: LineCells, need: int) -> tuple[float, float]:
    """Bounds of the least W: from coarser cells, or from the ends of the laws."""
    if len(left.low) + len(right.low) > 4 * _GROUP**2:
        wide = [c.grouped(_GROUP, "down") for c in (left, right)]
        some = [c.grouped(_GROUP, "up") for c in (left, right)]
        return least(some[0], some[1], need), least(wide[0], wide[1], need)
    ends = np.concatenate([left.low, left.high, right.low, right.high])
    ends = ends[np.isfinite(ends)]
    high = float(np.nextafter(ends.max() - ends.min(), np.inf))
    return 0.0, high if _sweep(left, right, need, high)[0] >= need else math.inf


def _sweep(left: LineCells, right: LineCells, need: int, w: float, room: int = 0) -> Any:
    """One greedy sweep: matched mass, largest distance used, least distance in the way, pieces."""
    from congenial.transport.sorted_kernels import greedy

    big = _big(left, right)
    spare = np.array(
        [int(c.masses.sum()) - need for c in (left, right)], dtype=object if big else np.int64
    )
    pairs = np.empty((room, 2), dtype=np.int64)
    pieces = np.empty(room, dtype=spare.dtype)
    kernel = greedy.py_func if big else greedy
    matched, used, gap, count = kernel(*_arrays(left), *_arrays(right), w, spare, pairs, pieces)
    return (int(matched), float(used), float(gap), (pairs[:count], pieces[:count]))


def _big(left: LineCells, right: LineCells) -> bool:
    """Whether masses need integers of any size, and so the uncompiled loops."""
    return not bool(left.masses.dtype == right.masses.dtype == np.int64)


def _arrays(told: LineCells) -> tuple[Any, Any, Any]:
    return told.low, told.high, told.masses


def _coupling(
    left: LineCells, right: LineCells, need: int, w: float, delta: Fraction, norm: Norm
) -> Coupling:
    room = len(left.low) + len(right.low)
    pairs, pieces = _sweep(left, right, need, w, room)[3]
    sides = [Side(c.low, c.high, c.masses) for c in (left, right)]
    return Coupling(sides[0], sides[1], pairs, pieces, left.total, w, delta, norm)


def _shifted_normal(a: StatedNormal, b: StatedNormal, delta: Fraction, norm: Norm) -> Distance:
    """N(m, s^2) against N(m + D, s^2): max(0, D - 2 s Phi^-1((1 + delta)/2)), rounded up."""
    from scipy.special import ndtri

    gap = abs(subtracted(b.mean, a.mean))
    saved = 2 * a.sd * float(ndtri(float((1 + delta) / 2) * (1 - 2.0**-51)))
    value = max(0.0, (gap - saved * (1 - 2.0**-48)) * (1 + 2.0**-50))
    proof = ShiftedNormal(gap, a.sd, value, float(delta))
    return Distance(value, value, delta, norm, prove=lambda: proof)


def subtracted(y: float, x: float) -> float:
    """y - x, rounded away from zero."""
    d, true = y - x, Fraction(y) - Fraction(x)
    return d if abs(Fraction(d)) >= abs(true) else math.nextafter(d, math.copysign(math.inf, d))
