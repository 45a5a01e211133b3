"""Priors of the built-in models. Proper unless they say otherwise; only proper ones can be drawn.

Chosen without the confidential data, as every input of an inference from a release is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from scipy.special import betaln, gammaln

from congenial.data.arguments import NUMBER, expect
from congenial.data.arrays import Floats
from congenial.errors import InferenceError

LARGEST = 1e300


def _refuse(prior: object, rule: str) -> NoReturn:
    raise InferenceError(f"{prior} is not a prior.", remedy=rule)


def _check(prior: object, *names: str) -> None:
    """Every parameter is one finite number."""
    for name in names:
        what, value = f"{name} of {type(prior).__name__}", getattr(prior, name)
        expect(value, NUMBER, what, "Give one number.", InferenceError)
        if not abs(value) <= LARGEST:
            _refuse(prior, "Give finite numbers up to 1e300.")


@dataclass(frozen=True)
class Gamma:
    """p(t) ~ t^(shape - 1) exp(-rate t), t > 0. rate = 0 is improper; Gamma(0.5, 0) is Jeffreys'
    prior of a Poisson rate.

    Mean shape / rate. Data make an improper prior proper; simulating from one is refused.

    >>> Gamma(2, 4).proper, Gamma(0.5, 0).proper
    (True, False)
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        _check(self, "shape", "rate")
        if not (self.shape > 0 and self.rate >= 0):
            _refuse(self, "Give shape > 0 and rate >= 0.")

    @property
    def proper(self) -> bool:
        """Whether it has mass one."""
        return self.rate > 0

    def draw(self, rng: np.random.Generator, size: Any) -> Floats:
        """Independent draws."""
        refuse_improper(self)
        return np.asarray(rng.gamma(self.shape, 1 / self.rate, size))

    def log_density(self, t: Any) -> Floats:
        """log p(t), without its constant where it is improper."""
        t = np.asarray(t, dtype=float)
        constant = self.shape * math.log(self.rate) - gammaln(self.shape) if self.rate else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = constant + (self.shape - 1) * np.log(t) - self.rate * t
        return np.where(t > 0, inside, -np.inf)


@dataclass(frozen=True)
class Beta:
    """p(t) ~ t^(a - 1) (1 - t)^(b - 1) on (0, 1); Beta(0.5, 0.5) is Jeffreys' prior of a share.

    Mean a / (a + b); a + b weighs like that many people. Beta(1, 1) is uniform. Both must be
    positive.

    >>> round(float(np.exp(Beta(2, 2).log_density(0.5))), 6)
    1.5
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        _check(self, "a", "b")
        if not (self.a > 0 and self.b > 0):
            _refuse(self, "Give a > 0 and b > 0.")

    proper = True

    def draw(self, rng: np.random.Generator, size: Any) -> Floats:
        """Independent draws."""
        return np.asarray(rng.beta(self.a, self.b, size))

    def log_density(self, t: Any) -> Floats:
        """log p(t)."""
        t = np.asarray(t, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (self.a - 1) * np.log(t) + (self.b - 1) * np.log1p(-t) - betaln(self.a, self.b)
        return np.where((t > 0) & (t < 1), inside, -np.inf)


@dataclass(frozen=True)
class Dirichlet:
    """p(shares) ~ prod share^(weight - 1), the same weight for every cell.

    Weight 1 is uniform over all vectors of shares, 0.5 is Jeffreys' prior; a prior of n cells
    weighs like n times `weight` people.
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        _check(self, "weight")
        if not self.weight > 0:
            _refuse(self, "Give a positive weight.")

    proper = True


@dataclass(frozen=True)
class GaussianPrior:
    """A normal law with this mean and standard deviation, for coefficients.

    p(b) ~ exp(-(b - mean)^2 / (2 sd^2)). The default, N(0, 10^2), says little about coefficients
    of a logistic regression, and is only vague where the outcome is measured in small units.
    """

    mean: float = 0.0
    sd: float = 10.0

    def __post_init__(self) -> None:
        _check(self, "mean", "sd")
        if not self.sd > 0:
            _refuse(self, "Give a positive standard deviation.")

    proper = True

    def draw(self, rng: np.random.Generator, size: Any) -> Floats:
        """Independent draws."""
        return np.asarray(rng.normal(self.mean, self.sd, size))

    def log_density(self, t: Any) -> Floats:
        """log p(t)."""
        z = (np.asarray(t, dtype=float) - self.mean) / self.sd
        return np.asarray(-0.5 * z * z - math.log(self.sd * math.sqrt(2 * math.pi)))


@dataclass(frozen=True)
class HalfNormal:
    """|N(0, sd^2)|, for standard deviations.

    p(s) ~ exp(-s^2 / (2 sd^2)) for s > 0: about 95 % of it lies below 2 sd.
    """

    sd: float

    def __post_init__(self) -> None:
        _check(self, "sd")
        if not self.sd > 0:
            _refuse(self, "Give a positive standard deviation.")

    proper = True

    def draw(self, rng: np.random.Generator, size: Any) -> Floats:
        """Independent draws."""
        return np.asarray(np.abs(rng.normal(0.0, self.sd, size)))

    def log_density(self, t: Any) -> Floats:
        """log p(t)."""
        t = np.asarray(t, dtype=float)
        inside = math.log(math.sqrt(2 / math.pi) / self.sd) - 0.5 * (t / self.sd) ** 2
        return np.where(t >= 0, inside, -np.inf)


def refuse_improper(prior: Any) -> None:
    """Nothing can be drawn from a prior without finite mass."""
    if not prior.proper:
        raise InferenceError(
            f"{prior} is improper: nothing can be drawn from it.",
            remedy="Give a proper prior, or use method='auto'.",
        )
