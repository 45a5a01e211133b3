"""W_inf on the log scale: two discrete laws on the line whose masses are known as logarithms.

Levels of the distribution function are kept as log F below the median and as -log(1 - F) above, so
that both tails keep their digits; a comparison that rounding could turn is decided against us. (A
float quantile function loses the upper tail: it says 31 for two binomials of 200 trials, the truth
is 35; partially-private-data, Eq 35, see docs/errata.)
"""

from __future__ import annotations

import math

import numpy as np

from congenial.pairs.scenarios.statistic_laws import Floats, StatedDiscrete, StatedLogDiscrete
from congenial.transport.certificates import lengths

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
