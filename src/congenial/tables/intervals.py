"""Intervals around estimates, each with the name of what it rests on.

"exact": the law of the one measured sum that decides; "approximation": as if normal; "bound": for
discrete Gaussian noise errors are sub-Gaussian, P(|error| > h) <= 2 exp(-h^2 / (2 sd^2)), about 1.5
times as wide at 90 %; for double geometric noise Chebyshev's inequality, 1.9 times as wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from congenial.errors import StructureError
from congenial.sampling.sums import Pmf
from congenial.tables.measurements import Floats
from congenial.tables.noise_variance import Family

Rests = Literal["exact", "bound", "approximation"]


@dataclass(frozen=True, eq=False)
class TableInterval:
    """Low and high ends, and what they rest on: exact, bound, approximation."""

    low: Floats
    high: Floats
    basis: Rests

    def contains(self, values: Any) -> Any:
        """Which whole values lie inside, the ends rounded outwards to whole numbers."""
        return (np.floor(self.low) <= values) & (values <= np.ceil(self.high))


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


def normal(estimates: Any, deviations: Any, level: float) -> TableInterval:
    """Intervals as if errors were normal; called an approximation."""
    half = half_width(level) * np.asarray(deviations)
    return TableInterval(estimates - half, estimates + half, "approximation")


def bounded(
    estimates: Any, deviations: Any, level: float, family: Family = "discrete_gaussian"
) -> TableInterval:
    """Intervals that hold for integer noise of a family on any lattice, at least at this level."""
    half = half_width(level, "bound", family) * np.asarray(deviations)
    return TableInterval(estimates - half, estimates + half, "bound")


def of_law(estimates: Any, law: Pmf, level: float) -> TableInterval:
    """Intervals from the exact law of the error."""
    half = law.interval(level)
    return TableInterval(np.asarray(estimates) - half, np.asarray(estimates) + half, "exact")
