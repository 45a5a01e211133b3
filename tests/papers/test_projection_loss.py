"""Lemma 14 measured: the posterior variance from (Y, Z) against that from the projection."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial.inference import Beta, Dirichlet, Gamma
from congenial.papers import poisson_rate, share_of_total, shares_of_total
from congenial.papers.projection_loss import nearest
from congenial.sampling import DiscreteGaussian, DoubleGeometric, SeededRandomness
from congenial.tables.conforming_tables import ConformingTables
from congenial.tables.general_fit import nearest_in
from tests.inference.exact import ALPHA, z_test

SEED = 37


@pytest.mark.parametrize("total", [5, 30])
def test_cutting_one_count_costs_under_gaussian_noise_and_not_under_double_geometric(total):
    gaussian = share_of_total(total, Beta(0.7, 1.3), DiscreteGaussian(Fraction(9)))
    geometric = share_of_total(total, Beta(0.7, 1.3), DoubleGeometric(Fraction(1, 4)))
    for found in (gaussian, geometric):
        assert found.from_projected <= found.prior
        assert 0 < found.chance_moved < 1
    assert gaussian.ratio > 1.001
    assert geometric.ratio == pytest.approx(1, abs=1e-9)  # so strictness is false


def test_a_poisson_count_near_zero():
    found = poisson_rate(Gamma(1.0, 0.5), DiscreteGaussian(Fraction(9)))
    assert 1.001 < found.ratio < 2
    assert found.prior == pytest.approx(4.0, rel=1e-6)


@pytest.mark.parametrize("noise", [DoubleGeometric(Fraction(1, 2)), DiscreteGaussian(Fraction(3))])
def test_projecting_several_cells_costs_under_both(noise):
    found = shares_of_total(4, 3, Dirichlet(1.0), noise)
    assert found.ratio > 1.001
    assert found.from_projected < found.prior


def test_the_nearest_tables_are_those_of_the_release():
    rng = np.random.default_rng(SEED)
    for _ in range(50):
        x = rng.integers(-5, 8, 4)
        if x.sum() <= 0:
            continue
        ends = nearest(x, int(x.sum()))
        known = ConformingTables.of(np.ones((1, 4)), [x.sum()])
        seen = {tuple(nearest_in(x, known, SeededRandomness(i)).tolist()) for i in range(40)}
        assert seen == set(ends)


def test_little_noise_costs_nothing():
    found = share_of_total(30, Beta(5, 5), DoubleGeometric(Fraction(4)))
    assert found.ratio == pytest.approx(1.0, abs=1e-3)


def test_against_simulation():
    """E Var(share | Y) = E (share - E(share | Y))^2, the last by drawing everything."""
    total, prior, noise = 6, Beta(1, 1), DoubleGeometric(Fraction(1, 2))
    rng, n = np.random.default_rng(SEED), 200_000
    share = rng.beta(1, 1, n)
    x = rng.binomial(total, share)
    y = x + noise.draw(SeededRandomness(SEED), n)
    found = share_of_total(total, prior, noise)
    for seen, expected in ((y, found.from_draw), (np.clip(y, 0, total), found.from_projected)):
        at = np.arange(total + 1)
        chance = np.exp(noise.log_pmf(seen[:, None] - at))
        if seen is not y:
            low, high = noise.cdf(-at), 1 - noise.cdf(total - 1 - at)
            chance = np.where((seen == 0)[:, None], low, chance)
            chance = np.where((seen == total)[:, None], high, chance)
        mean = chance @ ((1 + at) / (total + 2)) / chance.sum(axis=1)
        loss = (share - mean) ** 2
        assert z_test(loss.mean(), loss.std() / n**0.5, expected) >= ALPHA
        assert z_test(loss.mean(), loss.std() / n**0.5, 1.2 * expected) < ALPHA
