"""What the same noise promises single persons, and what to ask of it so that it does.

Replacing one of n records moves statistic k by at most r_k, so the vector moves by some v in the
box [-r, r]. Gaussian noise with regular covariance S then is G_mu with mu = sup sqrt(v' S^-1 v),
Laplace noise in all directions epsilon = sup sum_j |d_j' v| / b_j; both are convex in v, so a
corner of the box attains them. Statistics without bounds, or noise in fewer directions than
statistics, promise persons nothing.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.errors import StructureError
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.privacy.conversions import gaussian_mu
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff

MOST_CORNERS = 14  # statistics; 2^13 corners
_UP = 1 + 2.0**-36
_WORTHLESS = 1e3  # a mu or epsilon above this is no promise


def person_promise(noise: VectorNoise, change: Any) -> Tradeoff | None:
    """The promise about replacing one record; None where there is none."""
    reach = np.asarray(change, dtype=np.float64)
    if len(reach) != noise.dimension or not np.isfinite(reach).all():
        return None
    if noise.rank < noise.dimension:
        return None
    standard = noise.directions.T / noise.scales[:, None]
    if noise.family == "gaussian":
        mu = float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP
        return Gaussian(mu) if mu < _WORTHLESS else None
    epsilon = float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP
    return Pure(epsilon) if epsilon < _WORTHLESS else None


def person_requirements(change: Any, promise: Tradeoff) -> list[Floats]:
    """Constraints S >= v v' / mu^2 for the corners v: what Gaussian noise owes to persons."""
    mu = person_mu(promise)
    reach = np.asarray(change, dtype=np.float64)
    if not len(reach) or not np.isfinite(reach).all():
        raise StructureError(
            "one record can change the statistics without limit, so individual people cannot be "
            "protected.",
            remedy="Limit unbounded statistics with between, and state the number of records.",
        )
    return [np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]


def person_mu(promise: Tradeoff) -> float:
    """The mu that implies a promise about persons."""
    if isinstance(promise, Gaussian):
        return float(promise.mu)
    if isinstance(promise, Approximate):
        return gaussian_mu(promise.eps, float(promise.dlt))
    raise StructureError(
        f"Gaussian noise cannot promise {promise.words} to persons.",
        remedy="Ask for mu, or for epsilon with delta.",
    )


def _corners(reach: Floats) -> Floats:
    """Corners of the box up to sign; a box around them where there are too many."""
    m = len(reach)
    if m > MOST_CORNERS:
        raise StructureError(
            f"{m} statistics are too many for a promise about individual people.",
            remedy=f"Release at most {MOST_CORNERS} at once.",
        )
    signs = np.array([(1.0, *rest) for rest in itertools.product((1.0, -1.0), repeat=m - 1)])
    return signs * reach


def strengthened(noise: VectorNoise, change: Any, promise: Tradeoff) -> VectorNoise:
    """The noise scaled up until persons get `promise`; refused where scaling cannot do it."""
    promise_of_one = person_promise(noise, change)
    if promise_of_one is None:
        raise StructureError(
            "its noise does not protect individual people in every direction.",
            remedy="Use the optimum, which adds noise in every direction.",
        )
    if promise <= promise_of_one:
        return noise
    if isinstance(promise_of_one, Pure):
        # delta is of no use to Laplace noise: epsilon alone gives what was asked for, and more
        epsilon = promise.eps if isinstance(promise, Approximate) else promise.epsilon(0.0)
        allowed = float(epsilon)
        factor = float(promise_of_one.eps) / allowed if allowed > 0 else math.inf
    else:
        assert isinstance(promise_of_one, Gaussian)
        factor = float(promise_of_one.mu) / person_mu(promise)
    if not math.isfinite(factor) or factor <= 0:
        raise StructureError(
            f"its noise cannot promise {promise.words} to persons.",
            remedy="Ask for what its family can promise.",
        )
    return replace(noise, scales=noise.scales * factor * _UP)
