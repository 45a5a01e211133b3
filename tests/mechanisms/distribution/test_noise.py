"""The law of the noise: moments, lengths, intervals and density agree with what is drawn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.sampling.randomness import SeededRandomness
from tests.mechanisms.distribution.cases import ALPHA

SEED, DRAWS = 41, 100_000
TILTED = np.linalg.qr(np.array([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]]))[0]

NOISES = {
    "gaussian": VectorNoise.gaussian(np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0, 0, 0.25]])),
    "one direction": VectorNoise("gaussian", TILTED[:, :1], np.array([3.0]), np.zeros(3)),
    "laplace": VectorNoise.laplace(np.eye(3), [1.0, 2.0, 0.5]),
    "two directions": VectorNoise.laplace(TILTED, [1.0, 3.0]),
    "dithered": VectorNoise.laplace(TILTED[:, :1], 2.0).dithered([1.0, 0.0, 0.5]),
    "more": replace(VectorNoise.gaussian(np.diag([1.0, 0.0, 4.0])), extra=0.7),
}


@pytest.fixture(scope="module")
def drawn():
    print("seed", SEED)
    return {name: noise.draw(SeededRandomness(SEED), DRAWS) for name, noise in NOISES.items()}


@pytest.mark.parametrize("name", NOISES)
def test_moments_and_expected_length(name, drawn):
    noise, z = NOISES[name], drawn[name]
    reach = -stats.norm.ppf(ALPHA / 24) / math.sqrt(DRAWS)
    products = z[:, :, None] * z[:, None, :]
    spread = products.std(axis=0) + 1e-12
    assert np.all(np.abs(z.mean(axis=0)) <= reach * (z.std(axis=0) + 1e-12))
    off = np.abs(products.mean(axis=0) - noise.total_covariance)
    assert np.all(off <= reach * spread)
    # negative control: a covariance that is 3 % too small in one entry is noticed
    wrong = noise.total_covariance.copy()
    top = np.unravel_index(np.argmax(np.abs(wrong)), wrong.shape)
    wrong[top] *= 0.93
    assert np.any(np.abs(products.mean(axis=0) - wrong) > reach * spread)
    if not noise.dither.any():
        lengths = np.linalg.norm(z, axis=1)
        allowed = reach * lengths.std() + 2e-3 * lengths.mean() * bool(noise.extra)
        assert abs(lengths.mean() - noise.expected_norm()) <= allowed
    assert noise.mean_square() == pytest.approx(np.trace(noise.total_covariance))


def test_expected_length_in_closed_form():
    chi = math.sqrt(2) * math.gamma(3) / math.gamma(2.5)
    assert VectorNoise.gaussian(9 * np.eye(5)).expected_norm() == pytest.approx(3 * chi, rel=1e-9)
    assert NOISES["one direction"].expected_norm() == pytest.approx(3 * math.sqrt(2 / math.pi))
    assert VectorNoise.laplace(TILTED[:, :1], 2.0).expected_norm() == pytest.approx(2, rel=1e-9)
    assert VectorNoise.none(3).expected_norm() == 0

    def product(y, x):
        return math.hypot(x, 3 * y) * math.exp(-x - y)

    exact = integrate.dblquad(product, 0, 60, 0, 60)[0]
    assert NOISES["two directions"].expected_norm() == pytest.approx(exact, rel=1e-6)


def test_expected_length_with_weights(drawn):
    weights = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])
    for name in ("gaussian", "laplace", "two directions", "one direction"):
        z = drawn[name]
        lengths = np.sqrt(np.einsum("ij,jk,ik->i", z, weights, z))
        allowed = -stats.norm.ppf(ALPHA / 8) * lengths.std() / math.sqrt(DRAWS)
        found = NOISES[name].expected_norm(weights)
        assert abs(found - lengths.mean()) <= allowed + 2e-3 * found


@pytest.mark.parametrize("name", NOISES)
def test_intervals_cover(name, drawn):
    noise = NOISES[name]
    for component in range(3):
        for level in (0.5, 0.95):
            half = noise.interval(component, level)
            hits = int(np.sum(np.abs(drawn[name][:, component]) <= half + 1e-12))
            assert stats.binom.cdf(hits, DRAWS, level) > ALPHA / 36  # not below the level
            short = int(np.sum(np.abs(drawn[name][:, component]) <= 0.9 * half - 1e-12))
            if half > 0:  # negative control: a tenth shorter is noticed
                assert stats.binom.cdf(short, DRAWS, level) < ALPHA / 36 or noise.dither.any()


def test_density_integrates_to_one_and_matches_the_draws(drawn):
    noise = VectorNoise.laplace(TILTED, [1.0, 3.0])
    grid = np.linspace(-40, 40, 401)
    u, v = np.meshgrid(grid, grid)
    points = np.stack([u.ravel(), v.ravel()], axis=1) @ TILTED.T
    mass = np.exp(noise.log_density(points)).sum() * (grid[1] - grid[0]) ** 2
    assert mass == pytest.approx(1, abs=1e-2)
    assert noise.log_density([1.0, 1.0, 1.0])[0] == -np.inf  # off the plane
    # mean log density of the draws is minus the entropy: 2 + log 2b each
    entropy = 2 + math.log(2 * 1.0) + math.log(2 * 3.0)
    found = noise.log_density(drawn["two directions"])
    allowed = -stats.norm.ppf(ALPHA / 2) * found.std() / math.sqrt(DRAWS)
    assert abs(found.mean() + entropy) <= allowed
    gaussian = NOISES["gaussian"]
    reference = stats.multivariate_normal(cov=gaussian.covariance).logpdf(drawn["gaussian"][:50])
    assert gaussian.log_density(drawn["gaussian"][:50]) == pytest.approx(reference)


def test_noise_survives_being_written_and_read():
    for noise in (*NOISES.values(), VectorNoise.none(4)):
        again = VectorNoise.from_dict(noise.to_dict())
        assert again.family == noise.family
        assert np.array_equal(again.total_covariance, noise.total_covariance)
        assert again.directions.shape == noise.directions.shape


def test_least_deviation_is_in_units_of_the_grid():
    noise = VectorNoise.gaussian(np.diag([4.0, 1.0]))
    assert noise.least_deviation([1, 1]) == pytest.approx(1)
    assert noise.least_deviation([4, 0]) == pytest.approx(0.5)
    assert noise.least_deviation([0, 0]) == math.inf
    assert NOISES["one direction"].least_deviation([1, 1, 1]) == pytest.approx(0, abs=1e-6)
