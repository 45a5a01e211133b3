"""Plain mechanisms: independent noise in every cell, for plans without figures.

Double geometric and Laplace noise (pure), discrete Gaussian (zCDP) and Gaussian (G_mu), calibrated
per person to the sensitivity of the declared adjacency. congenial-dp, Definitions 1.1 and 1.2, with
erratum: under replace-one neighbours a histogram moves by 2, not 1. Under figures they stay
private at the same price formula but do not reproduce the mandated figures; `Congenial` does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.table import Table
from congenial.mechanisms.congenial import IntegerNoise
from congenial.mechanisms.error_laws import LaplaceSum, NormalSum
from congenial.mechanisms.families import DISCRETE_GAUSSIAN, DOUBLE_GEOMETRIC, GAUSSIAN, LAPLACE
from congenial.mechanisms.mechanism import ErrorLaw, Mechanism, register
from congenial.sampling.randomness import Randomness, open_uniform


def by_size(index: Any, sums: int, law: Callable[[int], ErrorLaw]) -> list[ErrorLaw]:
    """One law per sum where only its number of cells matters; equal sizes share a law."""
    flat = np.asarray(index).reshape(-1)
    sizes = np.bincount(flat[flat >= 0], minlength=sums)
    laws = {int(size): law(int(size)) for size in np.unique(sizes)}
    return [laws[int(size)] for size in sizes]


@register
class PlainGeometric(IntegerNoise):
    """Double geometric noise, p(u) = (1-a)/(1+a) a^|u|, a = exp(-eps_cell); pure epsilon.

    Formal guarantee: epsilon = eps_cell * Delta_1(S), attained. Exact sampling, so nothing is lost
    to numerics. Source: congenial-dp, Definition 1.2.
    """

    name = "plain_geometric"
    noise_family = DOUBLE_GEOMETRIC
    conditions = False
    citation = "Ghosh, Roughgarden, Sundararajan 2009; congenial-dp, Definition 1.2"


@register
class PlainDiscreteGaussian(IntegerNoise):
    """Discrete Gaussian noise, p(u) ~ exp(-u^2 / (2 sigma^2)) on the integers; rho-zCDP.

    Formal guarantee: rho = Delta_2(S)^2 / (2 sigma^2). It is not G_mu: at sigma = 1 its total
    variation exceeds that of the Gaussian. An (epsilon, delta) target is met through the best known
    conversion.
    """

    name = "plain_discrete_gaussian"
    noise_family = DISCRETE_GAUSSIAN
    conditions = False
    citation = "Canonne, Kamath, Steinke 2020, Theorem 4"


class PlainContinuous(Mechanism):
    """Shared by the two laws on the reals; their numerics are idealised and the promise says so."""

    conditions = False
    sampler = "independent noise in every cell, on the reals; rounded to a grid"

    @cached_property
    def law(self) -> Any:
        """The frozen SciPy law of the noise in one cell."""
        from scipy import stats

        if self.family == "laplace":
            return stats.laplace(scale=1 / float(self.description.rate))
        return stats.norm(scale=float(self.description.variance) ** 0.5)

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        size = (draws, *self.shape)
        count = int(np.prod(size, dtype=np.int64))
        return self.law.ppf(open_uniform(randomness.words(count))).reshape(size)

    @property
    def grid(self) -> float:
        """Step that released values are rounded to (`Description.grid`)."""
        return self.description.grid

    def draw(self, truth: Any, randomness: Randomness, draws: int) -> Any:
        """Independent draws of y given phi(x) = truth, on the grid."""
        return np.round(super().draw(truth, randomness, draws) / self.grid) * self.grid

    def log_density(self, y: Any, table: Table) -> Any:
        """Sum over cells of the log density of y - phi(x)."""
        u = np.asarray(y) - self.query(table)
        return np.sum(self.law.logpdf(u), axis=self._cell_axes)


@register
class PlainLaplace(PlainContinuous):
    """Laplace noise of scale 1 / eps_cell on the reals; pure epsilon with idealised numerics.

    For counts prefer `plain_geometric`, which is exact. Source: congenial-dp, Definition 1.1.
    """

    name = "plain_laplace"
    noise_family = LAPLACE
    citation = "Dwork, McSherry, Nissim, Smith 2006; congenial-dp, Definition 1.1"

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of sums of independent Laplace variables."""
        rate = float(self.description.rate)
        return by_size(index, sums, lambda terms: LaplaceSum(terms, rate))


@register
class PlainGaussian(PlainContinuous):
    """Gaussian noise of variance sigma^2 on the reals; G_mu with mu = Delta_2(S) / sigma.

    Numerics are idealised. Source: semi-dp, Proposition 6 (with sigma^2 I, see docs/errata).
    """

    name = "plain_gaussian"
    noise_family = GAUSSIAN
    citation = "Dong, Roth, Su 2022; semi-dp, Proposition 6"

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Laws of sums of independent normal variables."""
        variance = float(self.description.variance)
        return by_size(index, sums, lambda terms: NormalSum(terms * variance))
