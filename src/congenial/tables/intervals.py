"""How wide an interval around an estimate is, by what it rests on, and its ends as printed.

Printed ends are cut to what published figures allow and widened to printed counts.

"approximation": as if errors were normal. "bound": for discrete Gaussian noise errors are
sub-Gaussian, P(|error| > h) <= 2 exp(-h^2 / (2 sd^2)), about 1.5 times as wide at 90 %; for double
geometric noise Chebyshev's inequality, 1.9 times as wide.
"""

from __future__ import annotations

from math import ceil, log, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from congenial.data.about import DEFAULT, ReliabilityLimits
from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.limits import FAR, SumRanges
from congenial.tables.noise_variance import Family

Rests = Literal["bound", "approximation"]
COUNTS = SumRanges(np.zeros((), np.int64), np.array(FAR))  # at least 0, and nothing else is known


def half_width(
    level: float, basis: Rests = "approximation", family: Family = "discrete_gaussian"
) -> float:
    """Half the width of an interval in standard deviations.

    >>> round(half_width(0.9), 3), round(half_width(0.9, "bound"), 3)
    (1.645, 2.448)
    >>> round(half_width(0.9, "bound", "double_geometric"), 3)
    3.162
    """
    if not 0 < level < 1:
        raise StructureError(f"level {level} is outside 0 .. 1.", remedy="Give one such as 0.9.")
    if basis == "bound" and family == "double_geometric":
        return 1 / sqrt(1 - level)
    if basis == "bound":
        return sqrt(2 * log(2 / (1 - level)))
    return NormalDist().inv_cdf(0.5 + level / 2)


def ends(
    estimates: Any, deviations: Any, level: float, counts: Any = None, ranges: SumRanges = COUNTS
) -> tuple[Ints, Ints]:
    """Ends of intervals for true counts, as if errors were normal: whole, and cut to `ranges`.

    Rounding outwards and cutting to what can be lose no coverage; an estimate that cannot be
    reaches as far inwards as the nearest value that can. Nor does widening them to `counts`, where
    there are printed ones.

    >>> [one.tolist() for one in ends(np.array([10.2, -3.0]), np.array([2.0, 2.0]), 0.9)]
    [[6, 0], [14, 4]]
    >>> [one.tolist() for one in ends(np.array([10.2]), np.array([2.0]), 0.9, np.array([5]))]
    [[5], [14]]
    >>> most = SumRanges(np.array([0]), np.array([11]))
    >>> [one.tolist() for one in ends(np.array([10.2]), np.array([2.0]), 0.9, ranges=most)]
    [[6], [11]]
    """
    return ends_within(estimates, half_width(level) * np.asarray(deviations), counts, ranges)


def ends_within(
    estimates: Any, reach: Any, counts: Any = None, ranges: SumRanges = COUNTS
) -> tuple[Ints, Ints]:
    """The same, where `reach` says how far from each estimate the truth may be."""
    low, high = ranges.ends(np.asarray(estimates), np.asarray(reach))
    low, high = np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
    return (low, high) if counts is None else (np.minimum(low, counts), np.maximum(high, counts))


def interval_names(level: float) -> tuple[str, str]:
    """What columns of ends are called in a file.

    >>> interval_names(0.9), interval_names(0.995)
    (('low_90', 'high_90'), ('low_99.5', 'high_99.5'))
    """
    return f"low_{100 * level:.4g}", f"high_{100 * level:.4g}"


def reliable_from(deviation: float, limits: ReliabilityLimits = DEFAULT) -> tuple[int, int]:
    """The least whole numbers that `reliability` calls "caution" and "good".

    >>> reliable_from(10), reliability(np.array([30, 31, 60, 61]), np.full(4, 10)).tolist()
    ((31, 61), ['poor', 'caution', 'caution', 'good'])
    """
    return ceil(deviation / limits.caution), ceil(deviation / limits.good)


def reliability(values: Any, deviations: Any, limits: ReliabilityLimits = DEFAULT) -> Any:
    """How far each number can be relied on: "exact", "good", "caution" or "poor".

    By its standard deviation relative to it. Without other `limits`: good up to 16.5 %, caution up
    to 33.3 %, poor above, as in Statistics Canada's rules for releasing estimates of surveys
    (acceptable, marginal, unacceptable coefficients of variation). A margin of error at 90 % is
    1.645 times as wide, so the limits are margins of 27 % and 55 % of the number. It is about the
    noise alone.

    >>> reliability(np.array([100, 100, 100, 0, 7]), np.array([10, 20, 50, 1, 0])).tolist()
    ['good', 'caution', 'poor', 'poor', 'exact']
    """
    values, deviations = np.abs(values), np.asarray(deviations)
    shares = (limits.good, limits.caution)
    within = [deviations == 0, *(deviations <= share * values for share in shares)]
    return np.select(within, ["exact", "good", "caution"], "poor")
