"""Counts: Poisson with a Gamma prior and binomial with a Beta prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import bdtr, bdtrc, gammaln, pdtr, pdtrc, xlog1py, xlogy

from congenial.data.arguments import WHOLE, expect
from congenial.data.arrays import Floats
from congenial.data.attribute import Attribute
from congenial.errors import GuaranteeError
from congenial.synthesis.models.level_columns import whole_ends
from congenial.synthesis.record_model import Bools, ContextModel, Grid


def needs_theta(grid: Grid | None, name: str) -> Grid:
    """The grid, or GuaranteeError when a model that has none is to be certified."""
    if grid is None:
        raise GuaranteeError(
            f"the model declares no range for its {name}, so Theta is not compact.",
            remedy=f"Give {name} a Grid fixed without looking at the data.",
        )
    return grid


def _log_mass(upper: Floats, lower: Floats, ahead: Bools, near_end: Floats) -> Floats:
    """log P(first <= x <= last): a difference of distribution functions (`upper`) or, ahead of the
    mean, of tails (`lower`); where both underflow, log P(the end nearest the mean), a little less.
    """
    mass = np.maximum(np.where(ahead, lower, upper), 0.0)
    with np.errstate(divide="ignore"):
        return np.where(mass > 1e-250, np.log(mass), near_end)


@dataclass(frozen=True)
class PoissonColumn(ContextModel):
    """x ~ Poisson(mean), mean ~ Gamma(shape, rate). Weighted posterior: Gamma(shape + sum alpha x,
    rate + sum alpha).

    The default prior is Jeffreys'. `mean` is the grid of certified mode; local mode does without.

    >>> model = PoissonColumn(Grid(95, 105, 101))
    >>> model.oscillation(np.array([71.0, 100.0, 134.0])).round(4).tolist()
    [2.8941, 0.1293, 3.4112]
    """

    kind: ClassVar[str] = "poisson"
    mean: Grid | None = None
    shape: float = 0.5
    rate: float = 0.0

    def __post_init__(self) -> None:
        expect(
            self.mean, (Grid, type(None)), "mean", "Give a Grid, or leave it out.", GuaranteeError
        )
        if self.mean is not None and self.mean.low <= 0:
            raise GuaranteeError(
                "the Poisson mean may be 0, where every positive count is impossible.",
                remedy="Give the grid a positive low end.",
            )

    def log_prior(self, theta: Floats) -> Floats:
        """(shape - 1) log mean - rate * mean."""
        mean = theta[:, 0]
        return np.asarray((self.shape - 1) * np.log(mean) - self.rate * mean)

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """x log mean - mean - log x!"""
        x, mean = np.asarray(records, dtype=float)[None, :], theta[:, :1]
        return np.asarray(xlogy(x, mean) - mean - gammaln(x + 1))

    def oscillation(self, records: Any) -> Floats:
        """Over mean in [low, high]: the largest value is at x cut to it, the least at an end."""
        grid = needs_theta(self.mean, "mean")
        x = np.asarray(records, dtype=float)
        low, high = (x * np.log(end) - end for end in (grid.low, grid.high))
        peak = np.clip(x, grid.low, grid.high)
        return np.asarray(x * np.log(peak) - peak - np.minimum(low, high))

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Independent draws; needs some weight, or a proper prior."""
        shape = self.shape + float(weights @ np.asarray(records, dtype=float))
        rate = self.rate + float(weights.sum())
        if not (shape > 0 and rate > 0):
            raise GuaranteeError(
                "the weighted posterior is improper.", remedy="Give shape > 0 and rate > 0."
            )
        return generator.gamma(shape, 1 / rate, size=(draws, 1))

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """New counts."""
        return generator.poisson(float(theta[0]), size=len(records))

    def log_levels(self, theta: Floats, attribute: Attribute) -> Floats:
        """log P(first <= x <= last) for each level."""
        first, last = whole_ends(attribute)
        mean = theta[:, :1]
        ahead = first[None, :] > mean
        end = np.where(ahead, first, np.where(np.isinf(last), first, last))
        near_end = xlogy(np.maximum(end, 0), mean) - mean - gammaln(np.maximum(end, 0) + 1)
        upper = np.where(np.isinf(last), 1.0, pdtr(np.maximum(last, 0), mean)) - np.where(
            first > 0, pdtr(np.maximum(first - 1, 0), mean), 0.0
        )
        lower = np.where(first > 0, pdtrc(np.maximum(first - 1, 0), mean), 1.0) - np.where(
            np.isinf(last), 0.0, pdtrc(np.maximum(last, 0), mean)
        )
        result = np.where(first == last, near_end, _log_mass(upper, lower, ahead, near_end))
        return np.where(last >= np.maximum(first, 0), result, -np.inf)


@dataclass(frozen=True)
class BinomialColumn(ContextModel):
    """x ~ Binomial(trials, share), share ~ Beta(yes, no). Weighted posterior: Beta(yes + sum alpha
    x, no + sum alpha (trials - x)).

    trials = 1 is a yes-or-no column written as the whole numbers 0 and 1.
    """

    kind: ClassVar[str] = "binomial"
    trials: int = 1
    share: Grid | None = None
    yes: float = 0.5
    no: float = 0.5

    def __post_init__(self) -> None:
        expect(self.trials, WHOLE, "trials", "Give a whole number.", GuaranteeError)
        expect(
            self.share, (Grid, type(None)), "share", "Give a Grid, or leave it out.", GuaranteeError
        )
        if self.trials < 1:
            raise GuaranteeError(f"trials = {self.trials}.", remedy="Give 1 or more.")
        if self.share is not None and not 0 < self.share.low <= self.share.high < 1:
            raise GuaranteeError(
                f"the share runs from {self.share.low} to {self.share.high}; at 0 or 1 some "
                "counts are impossible.",
                remedy="Give a grid inside (0, 1), for example [0.01, 0.99, 197].",
            )

    def log_prior(self, theta: Floats) -> Floats:
        """(yes - 1) log share + (no - 1) log(1 - share)."""
        share = theta[:, 0]
        return np.asarray((self.yes - 1) * np.log(share) + (self.no - 1) * np.log1p(-share))

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """log C(trials, x) + x log share + (trials - x) log(1 - share); -inf out of range."""
        x, share = np.asarray(records, dtype=float)[None, :], theta[:, :1]
        inside = (x >= 0) & (x <= self.trials)
        x = np.where(inside, x, 0)
        ways = gammaln(self.trials + 1) - gammaln(x + 1) - gammaln(self.trials - x + 1)
        value = ways + xlogy(x, share) + xlog1py(self.trials - x, -share)
        return np.where(inside, value, -np.inf)

    def oscillation(self, records: Any) -> Floats:
        """Over share in [low, high]: the largest value is at x / trials cut to it."""
        grid = needs_theta(self.share, "share")
        x = np.asarray(records, dtype=float)
        peak = np.clip(x / self.trials, grid.low, grid.high)
        values = [xlogy(x, p) + xlog1py(self.trials - x, -p) for p in (peak, grid.low, grid.high)]
        return np.asarray(values[0] - np.minimum(values[1], values[2]))

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Independent draws."""
        x = np.asarray(records, dtype=float)
        yes = self.yes + float(weights @ x)
        no = self.no + float(weights @ (self.trials - x))
        return generator.beta(yes, no, size=(draws, 1))

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """New counts."""
        return generator.binomial(self.trials, float(theta[0]), size=len(records))

    def log_levels(self, theta: Floats, attribute: Attribute) -> Floats:
        """log P(first <= x <= last) for each level."""
        first, last = whole_ends(attribute)
        first, last = np.maximum(first, 0), np.minimum(last, self.trials)
        share = theta[:, :1]
        ahead = first[None, :] > self.trials * share
        end = np.clip(np.where(ahead, first, last), 0, self.trials)
        ways = gammaln(self.trials + 1) - gammaln(end + 1) - gammaln(self.trials - end + 1)
        near_end = ways + xlogy(end, share) + xlog1py(self.trials - end, -share)
        below, top = np.maximum(first - 1, 0), np.clip(last, 0, self.trials)
        upper = bdtr(top, self.trials, share) - np.where(
            first > 0, bdtr(below, self.trials, share), 0
        )
        lower = np.where(first > 0, bdtrc(below, self.trials, share), 1.0)
        lower = lower - np.where(last < self.trials, bdtrc(top, self.trials, share), 0.0)
        result = np.where(first == last, near_end, _log_mass(upper, lower, ahead, near_end))
        return np.where(last >= first, result, -np.inf)
