"""Canonical noise: the definition itself, known values, OpenDP's Tulap, and planted mistakes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import SeededRandomness
from congenial.errors import GuaranteeError
from congenial.privacy import Approximate, Gaussian, Pure, ZeroConcentrated, tradeoff_between
from congenial.privacy.tradeoff import Nothing
from congenial.sampling.canonical import CanonicalNormal, Constructed, Tulap, canonical_noise
from tests.sampling.conftest import ALPHA

SEED = 51_004
LOPSIDED = tradeoff_between(
    [Fraction(1, 6), Fraction(1, 6), Fraction(2, 3)],
    [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)],
)
NOISES = [
    Tulap(1),
    Tulap(0.5, 0.05),
    Tulap(0.01, 0.05),
    Tulap(1e-20, 0.05),
    CanonicalNormal(1.3),
    Constructed(Gaussian(1)),
    Constructed(Approximate(0, 0.1)),
    Constructed(ZeroConcentrated(0.5)),
    Constructed(LOPSIDED),
]
each = pytest.mark.parametrize(
    "noise", NOISES, ids=lambda n: f"{type(n).__name__}-{n.tradeoff.words}"
)
LEVELS = np.linspace(0.001, 0.999, 400)


@each
def test_definition_35(noise):
    """f(alpha) = F(F^-1(alpha) - 1); smaller shifts cost less; symmetric about zero."""
    f, x = noise.tradeoff, noise.quantile(LEVELS)
    assert np.abs(noise.cdf(x - 1) - f(LEVELS)).max() < 1e-12
    for shift in (0.2, 0.5, 0.9):
        assert np.all(noise.cdf(x - shift) >= f(LEVELS) - 1e-12)
    at = np.linspace(-7, 7, 141)
    assert np.abs(noise.cdf(at) + noise.cdf(-at) - 1).max() < 1e-12
    assert np.all(np.diff(noise.cdf(at)) >= -1e-15)


@pytest.mark.parametrize("delta", [0, 1e-6, 0.3])
@pytest.mark.parametrize("epsilon", [1e-100, 1e-20, 1e-9, 1.0, 500.0])
def test_tulap_at_any_epsilon_that_can_be_meant(epsilon, delta):
    """Below 1e-16 there was none: 1 - e^-epsilon was 0."""
    noise, levels = Tulap(epsilon, delta), np.array([0.01, 0.3, 0.4999, 0.5, 0.9])
    x = noise.quantile(levels)
    assert np.abs(noise.cdf(x) - levels).max() < 1e-12
    if delta and epsilon < 1e-8:  # nearly uniform
        assert np.abs(x - (levels - 0.5) / delta).max() < 1e-3 / delta


@each
def test_no_test_beats_the_promise(noise):
    """T(F, F(. - 1)) by Neyman and Pearson on a fine grid: never below f, up to the grid."""
    grid = np.linspace(-12, 13, 5001)
    p, q = np.diff(noise.cdf(grid)), np.diff(noise.cdf(grid - 1))
    order = np.argsort(-p / np.maximum(q, 1e-300))
    alpha, missed = 1 - np.cumsum(p[order]), 1 - np.cumsum(q[order])
    # reject where p/q is small: at type I error 1 - alpha the type II error is ...
    errors = np.interp(LEVELS, (1 - alpha), (1 - missed))
    assert np.all(errors >= noise.tradeoff(LEVELS) - 1e-2)


@each
def test_quantile_is_the_inverse_and_draws_have_the_law(noise):
    p = np.array([1e-9, 1e-3, 0.1, 0.3, 0.5, 0.77, 0.999])
    assert np.allclose(noise.cdf(noise.quantile(p)), p, rtol=1e-9, atol=1e-15)
    draws = noise.draw(SeededRandomness(SEED), 20_000)
    assert stats.kstest(draws, noise.cdf).pvalue > ALPHA
    assert stats.kstest(draws * 1.2, noise.cdf).pvalue < ALPHA
    assert "idealised" in noise.numerics


def test_known_values():
    """30-digit oracles."""
    known = [
        (Tulap(1), -2.3, 0.048905414708421833),
        (Tulap(1), 1.7, 0.91357013147180914),
        (Tulap(0.5, 0.05), -2.3, 0.10402236983654865),
        (Tulap(0.5, 0.05), 1.7, 0.8335839387535139),
        (Constructed(Gaussian(1)), 0.25, 0.59573123063700655),
        (Constructed(Gaussian(1)), -1.25, 0.10706052594756705),
    ]
    for noise, x, value in known:
        assert float(noise.cdf(x)) == pytest.approx(value, abs=1e-15)
    assert Constructed(Pure(1)).c == pytest.approx(0.26894142136999512, abs=1e-15)
    assert Constructed(Gaussian(1)).c == pytest.approx(0.3085375387259869, abs=1e-15)


def test_lemma_36_gives_tulap_and_not_the_normal():
    x = np.linspace(-6, 6, 121)
    assert np.abs(Constructed(Pure(1)).cdf(x) - Tulap(1).cdf(x)).max() < 1e-14
    tulap = Tulap(0.5, 0.05)
    assert np.abs(Constructed(Approximate(0.5, 0.05)).cdf(x) - tulap.cdf(x)).max() < 1e-14
    assert np.abs(Constructed(Gaussian(1)).cdf(x) - CanonicalNormal(1).cdf(x)).max() > 2e-3


def test_planted_lemma_36_without_symmetry():
    """The printed construction on a lopsided f: some test beats f, so the promise is broken."""
    f = LOPSIDED
    levels = np.linspace(0, 0.5, 200_001)
    c = float(levels[np.argmax(f(1 - levels) <= levels)])

    def cdf(x):
        if x < -0.5:
            return float(f(cdf(x + 1)))
        if x > 0.5:
            return 1 - float(f(1 - cdf(x - 1)))
        return c * (0.5 - x) + (1 - c) * (x + 0.5)

    points = np.linspace(-3, 3, 241)
    gap = [cdf(x - 1) - float(f(cdf(x))) for x in points]  # T(F, F(. - 1)) - f
    assert min(gap) < -0.01
    fair = Constructed(f)
    assert np.all(fair.cdf(points - 1) - fair.tradeoff(fair.cdf(points)) > -1e-12)


def test_tulap_is_double_geometric_plus_uniform():
    """What makes integer releases usable for optimal tests: the law of round(N)."""
    from congenial.sampling.discrete import DoubleGeometric

    tulap, whole = Tulap(Fraction(3, 4)), DoubleGeometric(Fraction(3, 4))
    k = np.arange(-6, 7)
    cells = tulap.cdf(k + 0.5) - tulap.cdf(k - 0.5)
    assert np.allclose(cells, np.exp(whole.log_pmf(k)), atol=1e-14)


def test_opendp_draws_the_same_tulap():
    """OpenDP (its delta = 0 case crashes in version 0.16, so delta > 0)."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    theirs = dp.m.make_canonical_noise(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), 1.0, (0.5, 0.05)
    )
    draws = np.array([theirs(0.0) for _ in range(1500)])
    assert stats.kstest(draws, Tulap(0.5, 0.05).cdf).pvalue > ALPHA
    assert stats.kstest(draws, Tulap(1.0, 0.05).cdf).pvalue < ALPHA


def test_choice_and_refusals():
    assert isinstance(canonical_noise(Pure("1/2")), Tulap)
    assert isinstance(canonical_noise(Approximate(1, 0.01)), Tulap)
    assert isinstance(canonical_noise(Gaussian(2)), CanonicalNormal)
    assert isinstance(canonical_noise(Approximate(0, 0.1)), Constructed)
    assert isinstance(canonical_noise(ZeroConcentrated(1)), Constructed)
    for f in (Pure(0), Nothing(), Gaussian(0)):
        with pytest.raises(GuaranteeError, match="canonical"):
            canonical_noise(f)
    with pytest.raises(GuaranteeError, match="Tulap"):
        Tulap(0)
    with pytest.raises(GuaranteeError, match="quantile"):
        Tulap(1).quantile([0.5, 1.0])
