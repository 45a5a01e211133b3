"""The line: W_inf by matching equal quantiles, (W, delta) by a greedy sweep and bisection.

Both run over cells sorted by value. The sweep holds the first cell of each law that is not used up:
if the two are within W, as much as possible is matched; otherwise the lower one can be matched by
nothing that is left and is given up. An exchange argument shows that no coupling matches more
(distribution-privacy, see docs/errata: trimming the coupling of equal quantiles does not do it).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.pairs.scenarios.statistic_laws import StatedDiscrete, StatedNormal
from congenial.transport.certificates import Certificate, Coupling, Norm, ShiftedNormal, Side
from congenial.transport.distance import Distance, empirical
from congenial.transport.line_cells import LineCells, OneDimensional, of_one_total

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
    matched, used, gap, made = kernel(*_arrays(left), *_arrays(right), w, spare, pairs, pieces)
    return (int(matched), float(used), float(gap), (pairs[:made], pieces[:made]))


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
