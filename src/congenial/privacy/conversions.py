"""Conversions between privacy parameters: the tightest known formula, the classical one by name.

Families: pure epsilon; (epsilon, delta); mu of Gaussian differential privacy (GDP); rho of
zero-concentrated differential privacy (zCDP); Renyi orders. Every number rounds towards more
privacy loss: a returned epsilon, delta or rho is an upper bound of the exact value, a *calibrated*
mu or rho (what may be spent under a target) is a lower bound. Work is done in logarithms, so a
delta of 1e-300 or an epsilon of 1e6 is no special case.

Sources: Balle and Wang (2018), Theorem 8; Dong, Roth and Su (2022); Bun and Steinke (2016);
Canonne, Kamath and Steinke (2020), Proposition 12; Mironov (2017), Proposition 3. A discrete
Gaussian is zCDP with rho = Delta_2^2 / (2 sigma^2) but is *not* mu-GDP.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from congenial.errors import GuaranteeError
from congenial.privacy.numbers import (
    SMALLEST,
    ULP,
    FloatArray,
    Number,
    above,
    below,
    largest,
    multiply_up,
    parameter,
    probability,
    smallest,
)

# --- (epsilon, delta) ----------------------------------------------------------------------------


def approximate_delta(eps: Number, dlt: Number, epsilon: Number) -> float:
    """delta at `epsilon` of an (eps, dlt) promise: exact, rounded upwards."""
    if epsilon >= eps:
        return above(dlt)
    gap = above(Fraction(eps) - Fraction(epsilon))
    split = -math.expm1(-gap) / (1 + math.exp(-above(eps)))
    slack = above(dlt)
    return min(1.0, (slack + (1 - slack) * split) * (1 + 8 * ULP))


# --- Gaussian differential privacy -------------------------------------------------------------


def gaussian_delta(mu: Number, epsilon: Number) -> float:
    """Least delta such that a mu-GDP promise is (epsilon, delta), rounded up.

    delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle and Wang 2018, Thm 8;
    Dong et al. 2022, Cor 2.13). Exact for the promise G_mu. mu = 0 gives 0.

    >>> round(gaussian_delta(1, 1), 12)
    0.126936737507
    """
    scale, eps = above(parameter(mu, "mu")), below(parameter(epsilon, "epsilon"))
    return float(gaussian_delta_at(scale, np.array([eps]))[0])


def gaussian_delta_at(mu: float, epsilon: FloatArray) -> FloatArray:
    """`gaussian_delta` for an array of epsilon of either sign (infinities allowed), rounded up.

    Negative epsilon by symmetry of G_mu: delta(-e) = 1 - e^{-e} (1 - delta(e)).
    """
    if mu == 0:
        return np.maximum(0.0, -np.expm1(np.minimum(epsilon, 0.0)))
    size = np.abs(epsilon)
    positive = _gaussian_delta_positive(mu, size)
    mirrored = -np.expm1(-size) + np.exp(-size) * positive * (1 + 4 * ULP)
    return np.minimum(1.0, np.where(epsilon >= 0, positive, mirrored * (1 + 4 * ULP)))


def _gaussian_delta_positive(mu: float, epsilon: FloatArray) -> FloatArray:
    from scipy.special import erfcx, log_ndtr, ndtr

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        shift = epsilon / mu
        upper, lower = mu / 2 - shift, -mu / 2 - shift  # the two arguments of Phi
        plain = ndtr(upper) - np.exp(np.minimum(0.0, epsilon + log_ndtr(lower)))
        # Phi(x) = erfcx(-x / sqrt 2) exp(-x^2 / 2) / 2 and e^epsilon turns the second exponent into
        # the first: the tails cancel before they underflow.
        x1, x2 = -upper / math.sqrt(2), -lower / math.sqrt(2)
        near = np.minimum(np.maximum(x1, -5.0), 1e100)
        far = np.minimum(np.maximum(x2, -5.0), 1e100)
        gap = _erfcx_gap(near, mu / math.sqrt(2)) if mu < 1 else erfcx(near) - erfcx(far)
        scaled = np.exp(-np.square(near)) * gap / 2
        # Rounding of the exponent upper^2/2, whose argument is a difference of two numbers.
        relative = 16 * ULP * (4 + np.minimum(np.abs(upper), 40) * (mu / 2 + shift))
        relative = np.where(np.isfinite(relative), relative, 0.0)
        value = np.where(x1 > -5.0, scaled * (1 + relative), plain + 16 * ULP)
    return np.where(np.isinf(epsilon), 0.0, np.clip(value, SMALLEST, 1.0))


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(24)
    return (nodes + 1) / 2, weights / 2


def _erfcx_gap(start: FloatArray, length: float) -> FloatArray:
    """erfcx(start) - erfcx(start + length) as an integral of positive terms (no cancellation)."""
    from scipy.special import erfcx

    nodes, weights = _legendre()
    t = start[..., None] + length * nodes
    slope = 2 / math.sqrt(math.pi) - 2 * t * erfcx(t)
    # Beyond t = 50 the exponential factor has underflowed: the lost digits do not matter.
    return np.asarray(length * np.maximum(slope, 0.0) @ weights)


def gaussian_epsilon(mu: Number, delta: float) -> float:
    """Least epsilon such that a mu-GDP promise is (epsilon, delta), rounded up; inf at delta = 0.

    The inverse of `gaussian_delta` by bracketing; the returned epsilon was checked.
    """
    scale, target = above(parameter(mu, "mu")), probability(delta)
    if scale == 0 or target == 1:
        return 0.0
    if target == 0:
        return math.inf
    return smallest(lambda eps: gaussian_delta(scale, eps) <= target, start=scale)


def gaussian_mu(epsilon: Number, delta: float) -> float:
    """Calibrate: the greatest mu with G_mu inside (epsilon, delta), rounded down (mu* of DESIGN).

    A Gaussian mechanism with sigma = Delta_2 / mu then satisfies (epsilon, delta) exactly. 0 at
    delta = 0, inf at delta = 1.

    >>> abs(gaussian_mu(1, 0.126936737507) - 1) < 1e-9
    True
    """
    eps, target = below(parameter(epsilon, "epsilon")), probability(delta)
    if target in {0.0, 1.0}:
        return 0.0 if target == 0 else math.inf
    return largest(lambda mu: gaussian_delta(mu, eps) <= target)


def classical_gaussian_sigma_ratio(delta: float) -> float:
    """sigma * epsilon / Delta_2 = sqrt(2 ln(1.25/delta)) of the classical calibration.

    Proved for epsilon <= 1 only (Dwork and Roth 2014, Thm A.1), where it is never better than
    `gaussian_mu`; `classical_gaussian_mu` holds that condition. For reproduction.
    """
    target = probability(delta)
    if target == 0:
        return math.inf
    return math.sqrt(2 * math.log(1.25 / target)) * (1 + 4 * ULP)


def classical_gaussian_mu(epsilon: Number, delta: float) -> float:
    """mu of the classical calibration, epsilon / sqrt(2 ln(1.25/delta)); epsilon <= 1 enforced."""
    eps = parameter(epsilon, "epsilon")
    if eps > 1:
        raise GuaranteeError(
            f"the classical Gaussian calibration is proved for epsilon <= 1, not {epsilon}.",
            remedy="Use gaussian_mu, which is exact for every epsilon.",
        )
    return below(eps) / classical_gaussian_sigma_ratio(delta) * (1 - 4 * ULP)


def gdp_to_zcdp(mu: Number) -> Number:
    """rho = mu^2 / 2: G_mu has Renyi divergence alpha mu^2 / 2 at every order (exact)."""
    value = parameter(mu, "mu")
    square = multiply_up(value, value)
    return square / 2


# --- zero-concentrated and Renyi ---------------------------------------------------------------


def zcdp_total_variation(rho: Number) -> float:
    """Greatest total variation v under rho-zCDP, rounded up: 2 v artanh(v) = rho.

    A test that an event happened has probabilities p and q = p - v. At order 1 both divergences are
    at most rho, and processing increases none, so 2 rho >= (p - q) (logit p - logit q) = v times
    the integral of 1 / (x (1 - x)) from q to p, which is least around 1/2: 4 v artanh(v).
    Randomised response attains it at every rho: v = tanh(epsilon / 2), rho = epsilon v.

    >>> round(zcdp_total_variation(0.5), 4), round((1 + zcdp_total_variation(0.5)) / 2, 2)
    (0.4791, 0.74)
    """
    r = above(parameter(rho, "rho"))
    # artanh may be off by a few units in the last place: the product is taken a little too small.
    return min(
        1.0,
        smallest(lambda v: v >= 1 or 2 * v * math.atanh(v) * (1 - 8 * ULP) >= r),
    )


def zcdp_delta(rho: Number, epsilon: Number) -> float:
    """Least delta known for rho-zCDP at epsilon, rounded up: that of Canonne, Kamath and Steinke
    (2020), and at most the total variation, which delta exceeds at no epsilon.

    delta = inf over alpha > 1 of exp((alpha-1)(alpha rho - epsilon)) (1 - 1/alpha)^alpha /
    (alpha-1). The logarithm is convex in alpha with derivative (2 alpha - 1) rho - epsilon + ln(1 -
    1/alpha); every alpha gives a valid bound, so a rounded root is still conservative. At most 1.
    """
    r, eps = above(parameter(rho, "rho")), below(parameter(epsilon, "epsilon"))
    if r == 0:
        return 0.0
    # t = alpha - 1; the derivative rises in t. The root never exceeds (eps/rho + 1/t)/2.
    t = smallest(lambda t: t > 0 and (2 * t + 1) * r - eps + math.log(t / (1 + t)) >= 0)
    t = min(t, 1e150)  # any order is valid; this one keeps the squares finite
    terms = (t * (1 + t) * r, -t * eps, -math.log1p(t), -t * math.log1p(1 / t))
    log_delta = math.fsum(terms) + 8 * ULP * sum(map(abs, terms))
    converted = max(SMALLEST, math.exp(min(0.0, log_delta)) * (1 + 4 * ULP))
    return min(converted, zcdp_total_variation(rho))


def zcdp_epsilon(rho: Number, delta: float) -> float:
    """Least epsilon known for rho-zCDP at delta, rounded up (Canonne, Kamath, Steinke 2020).

    epsilon = inf over alpha > 1 of rho alpha + ln(1 - 1/alpha) - ln(alpha delta) / (alpha - 1). The
    minimising order solves rho (alpha-1)^2 + ln(alpha) = ln(1/delta). inf at delta = 0.

    >>> round(zcdp_epsilon(2.56, 1e-10), 5)
    17.15831
    """
    r, target = above(parameter(rho, "rho")), probability(delta)
    if r == 0 or target >= zcdp_total_variation(rho):
        return 0.0
    if target == 0:
        return math.inf
    goal = -math.log(target)
    t = smallest(lambda t: r * t * t + math.log1p(t) >= goal)
    return rdp_epsilon(1 + t, (1 + t) * r * (1 + 4 * ULP), target) if t > 0 else 0.0


def zcdp_epsilon_bun_steinke(rho: Number, delta: float) -> float:
    """The classical conversion, epsilon = rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016,
    1.3).

    >>> [round(zcdp_epsilon_bun_steinke(rho, 1e-10), 5) for rho in (2.56, 10.24)]
    [17.91528, 40.95057]
    """
    r, target = above(parameter(rho, "rho")), probability(delta)
    if r == 0:
        return 0.0
    if target == 0:
        return math.inf
    return (r + 2 * math.sqrt(r * -math.log(target))) * (1 + 8 * ULP)


def zcdp_rho(epsilon: Number, delta: float) -> float:
    """Calibrate: the greatest rho with `zcdp_epsilon(rho, delta)` <= epsilon, rounded down."""
    eps, target = below(parameter(epsilon, "epsilon")), probability(delta)
    if target in {0.0, 1.0} or eps == 0:
        return math.inf if target == 1 else 0.0
    return largest(lambda rho: zcdp_epsilon(rho, target) <= eps)


def rdp_epsilon(alpha: float, divergence: Number, delta: float) -> float:
    """epsilon at delta from one Renyi order: divergence + ln(1 - 1/alpha) - ln(alpha
    delta)/(alpha-1).

    Canonne, Kamath and Steinke (2020), Prop 12; never above Mironov's. Rounded up, at least 0.
    """
    order, value, target = (
        _order(alpha),
        above(parameter(divergence, "divergence")),
        probability(delta),
    )
    if target == 0:
        return math.inf
    extra = -(math.log(target) + math.log(order)) / (order - 1)
    terms = (value, math.log1p(-1 / order), extra)
    return max(0.0, math.fsum(terms) + 8 * ULP * sum(map(abs, terms)))


def _order(alpha: float) -> float:
    order = float(parameter(alpha, "alpha"))
    if order <= 1:
        raise GuaranteeError(f"Renyi order alpha = {alpha}.", remedy="Give alpha > 1.")
    return order


# --- from pure ---------------------------------------------------------------------------------


def pure_to_zcdp(epsilon: Number) -> Number:
    """rho = epsilon tanh(epsilon/2): least rho implied by epsilon-DP, rounded up.

    Proof. Randomised response dominates every epsilon-DP pair. Its divergence of order alpha is
    (L(alpha - 1/2) - L(1/2)) / (alpha - 1) with L(x) = ln cosh(x epsilon). As tanh(y)/y falls, L is
    concave in x^2, so the numerator is at most ((alpha - 1/2)^2 - 1/4) epsilon tanh(epsilon/2) =
    alpha (alpha - 1) epsilon tanh(epsilon/2). Equality as alpha -> 1 (Kullback-Leibler): sharp.

    >>> pure_to_zcdp(1) < pure_to_zcdp_bun_steinke(1)
    True
    """
    value = parameter(epsilon, "epsilon")
    eps = above(value)
    return min(eps * math.tanh(eps / 2) * (1 + 8 * ULP), pure_to_zcdp_bun_steinke(value))


def pure_to_zcdp_bun_steinke(epsilon: Number) -> Number:
    """The classical rho = epsilon^2 / 2 (Bun and Steinke 2016, Prop 1.4); rationals stay exact."""
    value = parameter(epsilon, "epsilon")
    return multiply_up(value, value) / 2


def pure_to_gdp(epsilon: Number) -> float:
    """Least mu with G_mu below f_{epsilon,0}: mu = -2 Phi^{-1}(1 / (1 + e^epsilon)), rounded up.

    G_mu is convex, so it lies below the two lines of f_{epsilon,0} when it does at their corner
    (Dong et al. 2022). The way back loses much: G_mu is no pure promise.
    """
    from scipy.special import ndtri_exp

    eps = above(parameter(epsilon, "epsilon"))
    if eps == 0:
        return 0.0
    return max(0.0, -2 * float(ndtri_exp(-eps - math.log1p(math.exp(-eps))))) * (1 + 1e-13) + 1e-15
