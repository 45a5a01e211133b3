"""Conversions: printed numbers, enumeration, tightness, rounding, extreme and bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.errors import GuaranteeError
from congenial.privacy import conversions as c
from congenial.privacy.tradeoff import Gaussian, Pure

CENSUS_DELTA = 1e-10
few = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"),
    [
        (1, 1, 0.12693673750664395),
        (0.5, 2, 9.4391686349472338e-6),
        (math.sqrt(6) / 2, 1, 0.21112275684188572),
    ],
)
def test_gaussian_delta_is_balle_wang(mu: float, epsilon: float, delta: float) -> None:
    assert delta <= c.gaussian_delta(mu, epsilon) <= delta * (1 + 1e-12)


@pytest.mark.parametrize(
    ("rho", "classical", "tight", "gaussian"),
    [
        (2.56, 17.9152829190019, 17.1583087121047, 16.4793878497238),
        (2.63, 18.1938026132104, 17.4305844873451, 16.7419813525071),
        (0.07, 2.60914124466981, 2.38727517671797, 2.27956085312399),
    ],
)
def test_census_budgets(rho: float, classical: float, tight: float, gaussian: float) -> None:
    assert c.zcdp_epsilon_bun_steinke(rho, CENSUS_DELTA) == pytest.approx(classical, rel=1e-12)
    assert c.zcdp_epsilon(rho, CENSUS_DELTA) == pytest.approx(tight, rel=1e-12)
    mu = math.sqrt(2 * rho)
    assert c.gaussian_epsilon(mu, CENSUS_DELTA) == pytest.approx(gaussian, rel=1e-12)


def test_a_promise_of_nothing_lost_stays_one_without_delta() -> None:
    assert c.zcdp_epsilon(0, 0) == c.zcdp_epsilon_bun_steinke(0, 0) == 0
    assert c.zcdp_epsilon(1, 0) == c.zcdp_epsilon_bun_steinke(1, 0) == math.inf


def test_census_printed_digits() -> None:
    printed = [round(c.zcdp_epsilon_bun_steinke(rho, CENSUS_DELTA), 5) for rho in (2.56, 10.24)]
    assert printed == [17.91528, 40.95057]


def test_gaussian_delta_against_integration() -> None:
    # d delta / d mu = phi(epsilon/mu - mu/2): an integral of positive terms, independent of Phi.
    from scipy.integrate import quad

    for mu, eps in [(0.01, 0.02), (0.3, 1.0), (0.999, 0.0), (1.0, 3.0), (2.5, 4.0), (6.0, 1.0)]:
        exact, _ = quad(
            lambda m, e=eps: math.exp(-((e / m - m / 2) ** 2) / 2) / math.sqrt(2 * math.pi),
            1e-12,
            mu,
            epsabs=0,
            epsrel=1e-11,
            limit=200,
        )
        assert c.gaussian_delta(mu, eps) == pytest.approx(exact, rel=1e-9)


@few
@given(st.floats(1e-6, 50), st.floats(-60, -0.01))
def test_gaussian_inverses_are_conservative_and_close(mu: float, log_delta: float) -> None:
    delta = 10**log_delta
    eps = c.gaussian_epsilon(mu, delta)
    assert c.gaussian_delta(mu, eps) <= delta
    if eps > 0:
        assert c.gaussian_delta(mu, eps * (1 - 1e-7)) > delta * (1 - 1e-9)
        assert c.gaussian_mu(eps, delta) == pytest.approx(mu, rel=1e-6)
        assert c.gaussian_delta(c.gaussian_mu(eps, delta), eps) <= delta


@few
@given(st.floats(1e-6, 50), st.floats(-60, -0.01))
def test_zcdp_inverses_and_order_of_bounds(rho: float, log_delta: float) -> None:
    delta = 10**log_delta
    eps = c.zcdp_epsilon(rho, delta)
    assert eps <= c.zcdp_epsilon_bun_steinke(rho, delta)
    assert c.gaussian_epsilon(math.sqrt(2 * rho), delta) <= eps * (1 + 1e-9) + 1e-9
    if eps > 1e-6:
        assert c.zcdp_delta(rho, eps) == pytest.approx(delta, rel=1e-8)
        assert c.zcdp_epsilon(c.zcdp_rho(eps, delta), delta) <= eps
        assert c.zcdp_rho(eps, delta) == pytest.approx(rho, rel=1e-6)


def test_zcdp_delta_is_the_infimum_over_orders() -> None:
    alpha = 1 + np.geomspace(1e-3, 1e3, 200_001)
    for rho, eps in [(0.5, 1.0), (0.07, 2.0), (3.0, 20.0)]:
        log = (alpha - 1) * (alpha * rho - eps) - np.log(alpha - 1) + alpha * np.log1p(-1 / alpha)
        assert c.zcdp_delta(rho, eps) == pytest.approx(np.exp(log.min()), rel=1e-7)


def test_zcdp_delta_covers_the_discrete_gaussian() -> None:
    x = np.arange(-60, 61)
    for sigma in (1.0, 2.0):
        p = np.exp(-(x**2) / (2 * sigma**2))
        q = np.exp(-((x - 1) ** 2) / (2 * sigma**2))
        p, q = p / p.sum(), q / q.sum()
        for eps in (0.0, 0.5, 2.0):
            exact = np.maximum(p - math.exp(eps) * q, 0).sum()
            assert exact <= c.zcdp_delta(1 / (2 * sigma**2), eps)


def test_discrete_gaussian_is_not_gdp() -> None:
    x = np.arange(-40, 42)
    p, q = np.exp(-(x**2) / 2), np.exp(-((x - 1) ** 2) / 2)
    total_variation = np.abs(p / p.sum() - q / q.sum()).sum() / 2
    assert round(total_variation, 4) == 0.3989
    assert round(c.gaussian_delta(1, 0), 4) == 0.3829


def _renyi(p: list[float], q: list[float], alpha: float) -> float:
    return math.log(sum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))) / (
        alpha - 1
    )


@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0, 3.0, 8.0])
def test_pure_to_zcdp_is_valid_and_sharp_on_randomised_response(eps: float) -> None:
    high = 1 / (1 + math.exp(-eps))
    ratios = [
        _renyi([high, 1 - high], [1 - high, high], alpha) / alpha
        for alpha in [1 + 1e-5, 1.1, 1.5, 2, 3, 5, 10, 20]
    ]
    assert max(ratios) <= c.pure_to_zcdp(eps) * (1 + 1e-6)  # ln near alpha = 1 loses digits
    assert max(ratios) >= c.pure_to_zcdp(eps) * (1 - 1e-3)  # a smaller rho would be wrong
    assert c.pure_to_zcdp(eps) <= c.pure_to_zcdp_bun_steinke(eps)


def test_total_variation_under_rho_is_that_of_randomised_response() -> None:
    """Never below it, and attained; half of it (a planted defect) is refuted by it."""
    for eps in (1e-3, 0.1, 0.5, 1.0, 3.0, 8.0):
        v = c.zcdp_total_variation(eps * math.tanh(eps / 2))
        assert v == pytest.approx(math.tanh(eps / 2), rel=1e-12)
        assert c.zcdp_delta(eps * math.tanh(eps / 2), 0) == v
        assert c.zcdp_epsilon(eps * math.tanh(eps / 2), min(v, 1.0)) == 0
    assert c.zcdp_total_variation(0) == 0
    assert c.zcdp_total_variation(1e5) == 1


def test_total_variation_covers_pairs_of_laws() -> None:
    source = np.random.default_rng(20261120)
    for size in (2, 3, 8):
        for sharpness in (0.2, 1.0, 5.0):
            p, q = source.dirichlet(np.full(size, 1 / sharpness), (2, 4000)) + 1e-12
            both = np.stack([p * np.log(p / q), q * np.log(q / p)]).sum(axis=2).max(axis=0)
            apart = np.abs(p - q).sum(axis=1) / 2
            bound = np.array([c.zcdp_total_variation(float(rho)) for rho in both])
            assert np.all(apart <= bound * (1 + 1e-9))
            assert np.any(apart > 0.5 * bound)


def test_exact_rationals_survive() -> None:
    assert c.pure_to_zcdp_bun_steinke(Fraction(1, 3)) == Fraction(1, 18)
    assert c.gdp_to_zcdp(Fraction(1, 2)) == Fraction(1, 8)


def test_pure_to_gdp_touches_the_corner() -> None:
    for eps in (1e-3, 1.0, 5.0, 30.0, 300.0):
        mu = c.pure_to_gdp(eps)
        assert Gaussian(mu) <= Pure(eps)
        assert not Gaussian(mu * (1 - 1e-6)) <= Pure(eps)


def test_classical_gaussian_is_never_better_and_says_where_it_holds() -> None:
    for eps in (0.1, 0.5, 1.0):
        for delta in (1e-9, 1e-3):
            assert c.classical_gaussian_mu(eps, delta) <= c.gaussian_mu(eps, delta)
    with pytest.raises(GuaranteeError, match="epsilon <= 1"):
        c.classical_gaussian_mu(10, 1e-2)
    # Why it is refused: at epsilon = 10, delta = 1e-3 the actual delta is more than promised.
    assert c.gaussian_delta(10 / c.classical_gaussian_sigma_ratio(1e-3), 10) > 3e-3


def test_renyi_conversions() -> None:
    for alpha, value, delta in [(2.0, 0.5, 1e-6), (1.01, 0.1, 1e-3), (64.0, 3.0, 1e-12)]:
        classical = value - math.log(delta) / (alpha - 1)
        assert c.rdp_epsilon(alpha, value, delta) <= classical * (1 + 1e-12)
        assert c.zcdp_epsilon(value / alpha, delta) <= c.rdp_epsilon(alpha, value, delta) * (
            1 + 1e-12
        )


def test_extremes() -> None:
    assert c.gaussian_epsilon(1, 1e-300) == pytest.approx(37.4488479, rel=1e-8)
    assert 0 < c.gaussian_mu(1, 1e-300) < 0.03
    assert c.gaussian_delta(1e-8, 0) == pytest.approx(1e-8 / math.sqrt(2 * math.pi), rel=1e-12)
    assert c.gaussian_delta(1e-8, 1) == c.SMALLEST  # positive, below every float: rounded up
    assert c.gaussian_delta(1e4, 1) == 1.0
    assert c.zcdp_delta(1e-300, 1) == c.SMALLEST
    assert c.zcdp_delta(1e5, 1) == 1.0
    assert c.zcdp_epsilon(1e-12, 1e-10) < 1e-5
    assert c.gaussian_mu(1e6, 1e-6) == pytest.approx(math.sqrt(2e6), rel=0.01)
    assert c.gaussian_epsilon(0, 0) == 0.0
    assert c.gaussian_epsilon(1, 0) == math.inf
    assert c.zcdp_epsilon(1, 0) == math.inf


@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, "one", None, True, "1/0"])
def test_bad_parameters_are_refused_with_a_remedy(bad: object) -> None:
    for call in (c.pure_to_zcdp, c.gdp_to_zcdp, lambda x: c.zcdp_delta(x, 1), Pure):
        with pytest.raises(GuaranteeError) as error:
            call(bad)
        assert error.value.remedy


def test_bad_delta_and_order() -> None:
    for call in (c.gaussian_epsilon, c.zcdp_epsilon):
        with pytest.raises(GuaranteeError):
            call(1, 1.5)
    with pytest.raises(GuaranteeError, match="order"):
        c.rdp_epsilon(1, 1, 1e-6)
