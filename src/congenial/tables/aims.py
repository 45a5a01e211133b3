"""What a design makes small: functions of the tables' variances.

Each is increasing in the variances, and as a function of the precisions p convex with F(t p) =
F(p) / t, which is all that the certificate of a design needs. For power means of any order s > -1:
1 / V_b is concave in p, 1 / F is the power mean of order -s of the 1 / V_b, and a power mean of
order at most 1 is concave and increasing; so 1 / F is concave, and F convex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from congenial.data.arrays import Floats


class Objective(Protocol):
    """An error to be made small, as a function of the mean variance of each table."""

    def value(self, variances: Floats) -> float:
        """The error."""
        ...

    def weights(self, variances: Floats) -> Floats:
        """Its derivative by the variance of each table (a subgradient where it has a corner)."""
        ...


@dataclass(frozen=True, eq=False)
class PowerMean:
    """(sum_b shares_b (factors_b V_b)^order)^(1 / order); order 0 is the geometric mean.

    Order 1 is a weighted sum; a high order stands for the maximum. Tables of share 0 do not count.
    """

    shares: Floats
    factors: Floats
    order: float

    @classmethod
    def total(cls, weights: Floats) -> PowerMean:
        """sum_b weights_b V_b."""
        return cls((weights > 0).astype(float), weights, 1.0)

    @classmethod
    def geometric(cls, shares: Floats) -> PowerMean:
        """prod_b V_b^shares_b; the shares sum to one."""
        return cls(shares, np.ones(len(shares)), 0.0)

    def value(self, variances: Floats) -> float:
        """The mean."""
        at = self.shares > 0
        ratios = self.factors[at] * variances[at]
        if self.order == 0:
            return float(np.exp(self.shares[at] @ np.log(ratios)))
        top = float(ratios.max())  # scaled, so that high orders do not overflow
        return float(top * (self.shares[at] @ (ratios / top) ** self.order) ** (1 / self.order))

    def weights(self, variances: Floats) -> Floats:
        """share * factor * (factor * variance / mean)^(order - 1)."""
        at = self.shares > 0
        gradient = np.zeros(len(variances))
        ratios = self.factors[at] * variances[at] / self.value(variances)
        gradient[at] = self.shares[at] * self.factors[at] * ratios ** (self.order - 1)
        return gradient


@dataclass(frozen=True, eq=False)
class LargestRatio:
    """max_b factors_b V_b, over tables with a factor."""

    factors: Floats

    def value(self, variances: Floats) -> float:
        """The largest."""
        at = self.factors > 0
        return float(np.max(self.factors[at] * variances[at]))

    def weights(self, variances: Floats) -> Floats:
        """Factors of the tables that are largest."""
        ratios = np.zeros(len(variances))
        at = self.factors > 0
        ratios[at] = self.factors[at] * variances[at]
        top = ratios >= ratios.max() * (1 - 1e-9)
        return np.asarray(np.where(top, self.factors, 0) / np.sum(top))

    def smooth(self, order: float) -> PowerMean:
        """A power mean of high order in its place."""
        return PowerMean((self.factors > 0).astype(float), self.factors, order)
