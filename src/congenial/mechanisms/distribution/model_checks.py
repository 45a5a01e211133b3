"""Do the assumptions hold, and what does it cost if they do not.

Theorem 4.6: if the true laws are within (lambda, eta) of the assumed ones, the promise becomes
(eps + 2 lambda, (1 + e^{eps + lambda}) eta + e^lambda delta). Theorem 4.7: if they are within W in
l1 (W_inf), Laplace noise of scale W/lambda in every statistic gives (eps + 2 lambda, e^lambda
delta), and is not needed where the noise already contains that much. For Gaussian laws with
different covariances the exact delta is computed instead. distribution-privacy, section 4.4.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.errors import StructureError
from congenial.mechanisms.distribution.calibrated_noise import CalibratedNoise
from congenial.mechanisms.distribution.gaussians import pair_delta, worst_delta
from congenial.mechanisms.distribution.sampling_error import need_gaussian
from congenial.pairs.distributions import DistributionPairs
from congenial.privacy.numbers import small

LAMBDAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def relaxed(epsilon: float, delta: float, lam: float, eta: float = 0.0) -> tuple[float, float]:
    """(epsilon', delta') of Theorem 4.6 for laws that are within (lambda, eta) of the assumed ones.

    >>> relaxed(1.0, 0.001, 0.1, 0.0001)
    (1.2, 0.001505587520470291)
    """
    worse = (1 + math.exp(epsilon + lam)) * eta + math.exp(lam) * delta
    return epsilon + 2 * lam, min(1.0, worse)


def covariance_eta(pairs: DistributionPairs, lam: float) -> float:
    """eta(lambda) between each Gaussian law and the one with the mean covariance of its pair."""
    largest = 0.0
    for i, j in pairs.pairs:
        first, other = pairs.laws[i].covariance, pairs.laws[j].covariance
        shared, zero = (first + other) / 2, np.zeros(pairs.dimension)
        for own in (first, other):
            largest = max(largest, pair_delta(zero, own, zero, shared, lam))
            largest = max(largest, pair_delta(zero, shared, zero, own, lam))
    return largest


def delta_as_fitted(mechanism: CalibratedNoise) -> float:
    """Exact delta at the promised epsilon with each law's own covariance; Gaussian noise only."""
    need_gaussian(mechanism.pairs)
    if mechanism.noise.family == "laplace":
        raise StructureError(
            "the exact delta is known for Gaussian noise only.", remedy="Use cost_rows."
        )
    pairs, epsilon = mechanism.pairs, float(mechanism.target.epsilon)
    return worst_delta(pairs.laws, pairs.pairs, mechanism.noise.covariance, epsilon)


def cost_of_equal_covariances(mechanism: CalibratedNoise) -> str:
    """What the promise becomes with the covariances as fitted, in words."""
    if mechanism.noise.family != "laplace":
        return f"with the covariances as fitted, delta would be {small(delta_as_fitted(mechanism))}"
    epsilon, delta = float(mechanism.target.epsilon), mechanism.target.delta
    lam = 0.1
    weaker = relaxed(epsilon, delta, lam, covariance_eta(mechanism.pairs, lam))
    return (
        f"with the covariances as fitted the promise would be epsilon = {weaker[0]:g}, delta = "
        f"{small(weaker[1])} by Theorem 4.6"
    )


def cost_rows(mechanism: CalibratedNoise) -> list[dict[str, float]]:
    """Theorem 4.6 in numbers: for each lambda, eta of the covariances and the weaker promise."""
    need_gaussian(mechanism.pairs)
    epsilon, delta = float(mechanism.target.epsilon), mechanism.target.delta
    rows = []
    for lam in LAMBDAS:
        eta = covariance_eta(mechanism.pairs, lam)
        weaker = relaxed(epsilon, delta, lam, eta)
        rows.append({"lambda": lam, "eta": eta, "epsilon": weaker[0], "delta": weaker[1]})
    return rows
