"""How wide an interval around an estimate is, by what it rests on, and its ends as printed.

"approximation": as if errors were normal. "bound": for discrete Gaussian noise errors are
sub-Gaussian, P(|error| > h) <= 2 exp(-h^2 / (2 sd^2)), about 1.5 times as wide at 90 %; for double
geometric noise Chebyshev's inequality, 1.9 times as wide.
"""

from __future__ import annotations

from math import log, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from congenial.errors import StructureError
from congenial.tables.measurements import Floats
from congenial.tables.noise_variance import Family

Rests = Literal["bound", "approximation"]


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
    estimates: Any, deviations: Any, level: float, counts: Any = None
) -> tuple[Floats, Floats]:
    """Ends of intervals for true counts, as if errors were normal: whole, and not negative.

    Rounding outwards and cutting at 0 lose no coverage; an estimate below 0 reaches as far up as 0.
    Nor does widening them to `counts`, where there are printed ones.

    >>> [one.tolist() for one in ends(np.array([10.2, -3.0]), np.array([2.0, 2.0]), 0.9)]
    [[6.0, 0.0], [14.0, 4.0]]
    >>> [one.tolist() for one in ends(np.array([10.2]), np.array([2.0]), 0.9, np.array([5]))]
    [[5.0], [14.0]]
    """
    half = half_width(level) * np.asarray(deviations)
    low = np.maximum(np.floor(np.asarray(estimates) - half), 0)
    high = np.maximum(np.ceil(np.maximum(estimates, 0) + half), 0)
    return (low, high) if counts is None else (np.minimum(low, counts), np.maximum(high, counts))
