"""For analysts: one estimate and interval from m synthetic files.

q_l and u_l are the estimate and its variance computed from file l as if it were real data. Their
mean q is the estimate; with b the variance of the q_l and u the mean of the u_l:

    partially synthetic   T = u + b / m              df (m - 1) (1 + u / (b / m))^2    Reiter (2003)
    fully synthetic       T = (1 + 1/m) b - u        df (m - 1) (1 - u / ((1 + 1/m) b))^2
                                                     Raghunathan, Reiter and Rubin (2003)

The rule for full synthesis can come out negative; then T = ratio * u is used, ratio being synthetic
records over people, with m - 1 degrees of freedom (Reiter 2002).

Neither rule knows about weights. Down-weighting widens the law theta is drawn from, which b shows,
and moves it, which nothing in the files shows: intervals do not cover that. For files of n records
drawn from the model the first rule is the right one even if every column is synthetic: the q_l
scatter around an estimate whose own variance is u.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import expect, numbers
from congenial.data.arrays import Floats
from congenial.errors import BundleError, InferenceError
from congenial.mechanisms.released import LEVEL

Rule = Literal["partial", "full"]


@dataclass(frozen=True, eq=False)
class Combined:
    """Estimate, variance and degrees of freedom of one or several quantities.

    `interval(level)` is estimate +- t(df) sqrt(variance). copies: how many were combined. rule:
    how the variance within copies and between them became one (`combine`).
    """

    estimate: Floats
    variance: Floats
    df: Floats
    copies: int
    rule: Rule

    def interval(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Lower and upper ends of t intervals."""
        from scipy.stats import t

        if not 0 < level < 1:
            raise InferenceError(
                f"level {level} is not between 0 and 1.", remedy="Use 0.9 or 0.95."
            )
        half = t.ppf(0.5 + level / 2, self.df) * np.sqrt(self.variance)
        return self.estimate - half, self.estimate + half


def combine(
    estimates: Sequence[Any] | Floats,
    variances: Sequence[Any] | Floats,
    rule: Rule = "partial",
    ratio: float = 1.0,
) -> Combined:
    """Combine m estimates and their variances (first dimension: files).

    >>> found = combine([10.0, 12.0, 11.0], [1.0, 1.2, 0.8])
    >>> float(found.estimate), round(float(found.variance), 4), round(float(found.df), 1)
    (11.0, 1.3333, 32.0)
    """
    q, u = (
        np.atleast_1d(numbers(numbers_of_copies, "a list", BundleError))
        for numbers_of_copies in (estimates, variances)
    )
    m = len(q)
    expect(rule, str, "rule", 'Use "partial" or "full".', InferenceError)
    if q.shape != u.shape or m < 2:
        raise BundleError(
            f"{m} estimates and {len(u)} variances cannot be combined.",
            remedy="Give one of each per file, from two files or more.",
        )
    if rule not in ("partial", "full"):
        raise InferenceError(f"rule {rule!r} is not known.", remedy='Use "partial" or "full".')
    mean, between, within = q.mean(axis=0), q.var(axis=0, ddof=1), u.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        if rule == "partial":
            variance = within + between / m
            df = np.where(between > 0, (m - 1) * (1 + within * m / between) ** 2, np.inf)
        else:
            spread = (1 + 1 / m) * between
            sound = spread > within
            variance = np.where(sound, spread - within, ratio * within)
            df = np.where(sound, (m - 1) * (1 - within / spread) ** 2, m - 1)
    return Combined(mean, np.asarray(variance), np.asarray(df), m, rule)
