"""The weight of one count of `prior`: in doubles, in ball arithmetic, and as a table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.errors import FigureError, StructureError
from congenial.sampling.inversion import Floats, ball, positive_rational

_WIDEST = 1 << 22


@dataclass(frozen=True)
class CountCell:
    """The weight of one count: base measure, centre and rate of the loss, subordinate count.

    centre: the count x it is around. rate: of the loss |c - x|, or (c - x)^2 if `squared`. shape:
    Dirichlet parameter a, 1 for a uniform base. below: centre e of a count d <= c, None for none.
    """

    centre: int
    rate: Fraction
    shape: Fraction = Fraction(1)
    below: int | None = None
    squared: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive_rational("rate", self.rate))
        object.__setattr__(self, "shape", positive_rational("shape", self.shape))
        if self.centre < 0 or (self.below is not None and not 0 <= self.below <= self.centre):
            raise FigureError(
                "a count is negative, or larger than the count it is part of.",
                remedy="Correct the table: counts are 0 or more, and a part is at most its whole.",
            )

    def log_weight(self, c: npt.ArrayLike) -> Floats:
        """log w(c) - log Gamma(a) in doubles; -inf for c < 0."""
        from scipy.special import gammaln

        k = np.asarray(c, dtype=float)
        kept = np.maximum(k, 0)
        a, away = float(self.shape), np.abs(kept - self.centre)
        logs = gammaln(kept + a) - gammaln(kept + 1) - math.lgamma(a)
        logs = logs - float(self.rate) * (away**2 if self.squared else away)
        if self.below is not None:
            logs = logs + np.log(self.mass_below(kept))
        return np.where(k >= 0, logs, -np.inf)

    def mass_below(self, c: npt.ArrayLike) -> Floats:
        """sum_{d = 0}^{c} exp(-rate |d - e|), or with squares."""
        assert self.below is not None
        k, e, rate = np.asarray(c, dtype=np.int64), self.below, float(self.rate)
        if self.squared:
            most = int(k.max(initial=0))
            terms = np.cumsum(np.exp(-rate * (np.arange(most + 1.0) - e) ** 2))
            return np.asarray(terms[k])
        unit = -math.expm1(-rate)
        low = np.minimum(k, e)
        rising = np.exp(-rate * (e - low)) * -np.expm1(-rate * (low + 1.0)) / unit
        falling = math.exp(-rate) * -np.expm1(-rate * np.maximum(k - e, 0)) / unit
        return np.asarray(rising + falling)

    def log_ball(self, c: int) -> Any:
        """log w(c) as a ball at the working precision."""
        away = abs(c - self.centre)
        logs = (ball(self.shape) + c).lgamma() - arb(c + 1).lgamma()
        logs -= ball(self.rate * (away**2 if self.squared else away))
        return logs if self.below is None else logs + self._below_ball(c).log()

    def _below_ball(self, c: int) -> Any:
        assert self.below is not None
        e = self.below
        if self.squared:
            return sum(((-ball(self.rate * (d - e) ** 2)).exp() for d in range(c + 1)), arb(0))
        q = (-ball(self.rate)).exp()
        low = min(c, e)
        rising = q ** (e - low) * (1 - q ** (low + 1)) / (1 - q)
        return rising if c <= e else rising + q * (1 - q ** (c - e)) / (1 - q)


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Weights w(c) e^(theta c) / (the same at `anchor`) on low .. low + size - 1."""

    low: int
    anchor: int
    weights: Floats

    @property
    def high(self) -> int:
        """Last count of the table."""
        return self.low + self.weights.size - 1

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance."""
        from congenial.sampling.prior import prior_kernels

        mean, variance = prior_kernels.moments(self.weights, self.low)
        return mean, variance


def tabulate(cell: CountCell, theta: float, total: int, cut: float) -> WeightTable:
    """The table of a cell, as far as its weights are above `cut` of the one at its anchor."""
    from congenial.sampling.prior import prior_kernels

    sums = np.empty(0)
    if cell.squared and cell.below is not None:
        sums = np.atleast_1d(cell.mass_below(np.arange(total + 1)))
    below = -1 if cell.below is None else cell.below
    tilted = prior_kernels.Cell(
        float(cell.shape), cell.centre, float(cell.rate), cell.squared, below, sums, theta
    )
    anchor = int(prior_kernels.peak(total, tilted))
    up = prior_kernels.walk(anchor, total, tilted, cut)
    down = prior_kernels.walk(anchor, 0, tilted, cut)
    if up.size + down.size > _WIDEST:
        raise StructureError(
            "the noise of one cell is too wide for a table.", remedy="Use a larger epsilon."
        )
    return WeightTable(anchor - down.size + 1, anchor, np.concatenate([down[:0:-1], up]))
