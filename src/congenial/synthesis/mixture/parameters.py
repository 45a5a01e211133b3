"""Parameters of the mixture as rows of numbers, and their prior (the paper's Appendix B).

    pi ~ Dirichlet(a/K, ..., a/K), a ~ Gamma(shape, rate)                               (45), (46)
    beta_k ~ N(0, diag(sd) Omega diag(sd)), Omega uniform, sd_j ~ half-t(3)             (47)
    sigma_k ~ half-t(3), at least `least_sd`                                            (48)

The paper leaves the Gamma's parameters open; here they are 1 and 1 unless told otherwise.
`least_sd` is ours: at 0, as printed, the posterior is improper once records repeat
(see `MixturePrior`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from congenial.data.arguments import REAL, check_fields
from congenial.data.arrays import Floats
from congenial.errors import GuaranteeError

_LOG_HALF_T = math.log(2) + gammaln(2.0) - gammaln(1.5) - 0.5 * math.log(3 * math.pi)


@dataclass(frozen=True)
class MixturePrior:
    """Gamma(shape, rate) of the concentration, and the least standard deviation of a component.

    The half-t(3) density of sigma is positive at 0. A component whose records an exact fit passes
    through has likelihood ~ sigma^-(sum of weights) there, and integrating its coefficients gives
    back sigma^rank: the posterior is improper once sum of weights - rank >= 1, for example when two
    records of weight 1 agree in all columns. Incomes are rounded and often 0, so give a `least_sd`
    of about the rounding on the model's scale.
    """

    shape: float = 1.0
    rate: float = 1.0
    least_sd: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, shape=REAL, rate=REAL, least_sd=REAL)
        if not (self.shape > 0 and self.rate > 0 and 0 <= self.least_sd < math.inf):
            raise GuaranteeError(
                f"shape = {self.shape}, rate = {self.rate} and least_sd = {self.least_sd} make no "
                "prior.",
                remedy="Give shape and rate above 0 and least_sd at least 0.",
            )


@dataclass(frozen=True, eq=False)
class Parameters:
    """Draws of all parameters, with S draws, K components and R coefficients.

    log_pi (S, K), beta (S, K, R), sigma (S, K), concentration (S,), sd (S, R): scales of the
    coefficients, correlation (S, R, R). As rows of theta they stand in this order, of the
    correlation only what is below its diagonal.
    """

    log_pi: Floats
    beta: Floats
    sigma: Floats
    concentration: Floats
    sd: Floats
    correlation: Floats

    def __len__(self) -> int:
        return len(self.sigma)

    def rows(self) -> Floats:
        """theta, one row per draw."""
        below = np.tril_indices(self.sd.shape[1], -1)
        flat = (
            self.log_pi,
            self.beta.reshape(len(self), -1),
            self.sigma,
            self.concentration[:, None],
            self.sd,
            self.correlation[:, below[0], below[1]],
        )
        return np.concatenate(flat, axis=1)

    @classmethod
    def from_rows(cls, theta: Floats, components: int, coefficients: int) -> Parameters:
        """Inverse of `rows`."""
        K, R = components, coefficients
        below = np.tril_indices(R, -1)
        sizes = [K, K * R, K, 1, R, len(below[0])]
        if theta.ndim != 2 or theta.shape[1] != sum(sizes):
            raise GuaranteeError(
                f"rows of {theta.shape[-1]} numbers are not parameters of {K} components with {R} "
                f"coefficients, which are {sum(sizes)}.",
                remedy="Give draws of this model and as many predictors as it was fitted to.",
            )
        log_pi, beta, sigma, a, sd, low = np.split(theta, np.cumsum(sizes)[:-1], axis=1)
        correlation = np.tile(np.eye(R), (len(theta), 1, 1))
        correlation[:, below[0], below[1]] = low
        correlation[:, below[1], below[0]] = low
        return cls(log_pi, beta.reshape(-1, K, R), sigma, a[:, 0], sd, correlation)


def log_half_t(x: Floats) -> Floats:
    """log density of |t| with 3 degrees of freedom, -inf below 0."""
    with np.errstate(invalid="ignore"):
        return np.where(x >= 0, _LOG_HALF_T - 2 * np.log1p(x * x / 3), -np.inf)


def log_prior(p: Parameters, prior: MixturePrior) -> Floats:
    """log prior density of each draw in (pi, beta, sigma, a, sd, Omega), up to a constant."""
    K = p.sigma.shape[1]
    share = p.concentration / K
    total = gammaln(p.concentration) - K * gammaln(share)
    total = total + ((share[:, None] - 1) * p.log_pi).sum(axis=1)  # (45)
    total += (prior.shape - 1) * np.log(p.concentration) - prior.rate * p.concentration  # (46)
    total += _log_normal(p)  # (47)
    total += log_half_t(p.sd).sum(axis=1)
    inside = (p.sigma >= prior.least_sd).all(axis=1)
    return np.where(inside, total + log_half_t(p.sigma).sum(axis=1), -np.inf)  # (48)


def _log_normal(p: Parameters) -> Floats:
    """sum_k log N(beta_k | 0, diag(sd) Omega diag(sd))."""
    K, R = p.beta.shape[1:]
    lower = np.linalg.cholesky(p.correlation)
    scaled = np.swapaxes(p.beta / p.sd[:, None, :], 1, 2)
    white = np.linalg.solve(lower, scaled)
    log_det = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1) + np.log(p.sd).sum(axis=1)
    return np.asarray(
        -0.5 * (white**2).sum(axis=(1, 2)) - K * log_det - 0.5 * K * R * math.log(2 * math.pi)
    )
