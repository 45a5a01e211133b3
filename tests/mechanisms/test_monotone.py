"""Theorem A.1's checker against closed forms, and the two-bin analysis against quadrature."""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad

from congenial.errors import GuaranteeError
from congenial.papers.congenial_dp.congenial_statements import printed_log_pmf
from congenial.papers.congenial_dp.congenial_tables import TwoBins, attained_curve, attained_epsilon
from congenial.sampling.discrete import DoubleGeometric

BETAS = (0.0, 0.2, 0.37, 0.4999, 0.5, 0.5 + 1e-9, 0.81, 1.0)


@pytest.mark.parametrize("beta", [None, *BETAS])
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_density_is_that_of_the_combination(epsilon, beta):
    """Against direct convolution of two Laplace variables; total mass, variance, symmetry."""
    bins = TwoBins(epsilon)

    def density(x):
        return float(np.exp(bins.log_density(x, beta)))

    far = 60 / epsilon
    assert 2 * quad(density, 0, far)[0] == pytest.approx(1, abs=1e-7)
    variance = 2 * quad(lambda x: x * x * density(x), 0, far)[0]
    assert variance == pytest.approx(bins.variance(beta), rel=1e-6)
    assert density(-1.3) == density(1.3)
    if beta is not None and 0.1 < beta < 0.9 and beta != 0.5 + 1e-9:

        def laplace(u):
            return epsilon / 4 * math.exp(-epsilon / 2 * abs(u))

        x = 1.7
        joint = quad(
            lambda u: laplace((x + (1 - beta) * u) / beta) * laplace(u) / beta,
            -far,
            far,
            points=[-x / (1 - beta), 0],
            limit=200,
        )[0]
        assert density(x) == pytest.approx(joint, rel=1e-8)


def test_half_is_the_printed_mixture():
    bins, x = TwoBins(0.7), np.linspace(-8, 8, 33)
    for beta in (0.5, 0.5 + 1e-12):
        assert np.allclose(np.exp(bins.log_density(x, beta)), bins.signed_gamma_mixture(x))


def test_checker_finds_what_the_closed_form_says():
    rows = attained_curve(0.9, points=15)
    for row in rows:
        assert row["checked"] == pytest.approx(row["attained"], rel=1e-8)
        assert row["variance_conditioned"] <= row["variance"] + 1e-12  # conditioning dominates
    assert attained_epsilon(partial(TwoBins(0.9).log_density), 1.0).epsilon() == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("log_density", "alpha"),
    [
        (lambda x: -0.3 * x, 0.3),
        (lambda x: -0.5 * np.sqrt(1 + x * x), 0.5),  # approached far out only
        (lambda x: -np.logaddexp(x, -x), 1.0),
        (lambda x: -2 * np.log1p(x), 2.0),  # Cauchy-like: steepest at zero
        (lambda x: -x * x, math.inf),  # Gaussian
        (lambda x: -x * np.log1p(x), math.inf),  # barely too steep
        (lambda x: np.where(x > 40, -np.inf, -x), math.inf),  # bounded noise
    ],
)
def test_known_densities(log_density, alpha):
    found = attained_epsilon(log_density)
    assert found.decreasing
    assert found.alpha == pytest.approx(alpha, rel=1e-5)


def test_theorem_does_not_apply_to_a_bump():
    found = attained_epsilon(lambda x: -np.abs(x - 1))
    assert not found.decreasing
    with pytest.raises(GuaranteeError, match="not monotone"):
        found.epsilon()


def test_whole_noise_and_the_printed_quantile():
    """Double geometric noise attains eps; with the hole at +1 of Appendix B nothing holds."""
    law = DoubleGeometric(1)
    assert attained_epsilon(law.log_pmf, whole=True).epsilon() == pytest.approx(1.0)
    assert not attained_epsilon(lambda x: printed_log_pmf(x, law.eps), whole=True).decreasing
    below = attained_epsilon(lambda x: printed_log_pmf(-x, law.eps), whole=True)
    assert below.epsilon() == pytest.approx(1.0)  # the negative side alone looks innocent


def test_bound_of_theorem_a1_on_random_pairs():
    """The statement itself: f(x - a)/f(x - b) <= e^{alpha |a - b|}, and nearly attained far out."""
    rng, bins = np.random.default_rng(3), TwoBins(1.1)
    for beta in (0.5, 0.7, 0.95):
        alpha = bins.attained(beta)
        x, a, b = rng.normal(0, 9, (3, 4000))
        ratio = bins.log_density(x - a, beta) - bins.log_density(x - b, beta)
        assert np.all(ratio <= alpha * np.abs(a - b) + 1e-12)
        gain = bins.log_density(4000.0, beta) - bins.log_density(4001.0, beta)
        assert gain == pytest.approx(alpha, rel=1e-3)


def test_bad_arguments():
    with pytest.raises(GuaranteeError, match="positive"):
        TwoBins(0)
    with pytest.raises(GuaranteeError, match="share"):
        TwoBins(1).variance(1.5)


def test_oracles(oracles):
    told = json.loads((oracles / "congenial-dp.json").read_text())
    for case in told["A1_density_eps0.7"]:
        density = math.exp(TwoBins(0.7).log_density(float(case["x"]), float(case["beta"])))
        assert density == pytest.approx(float(case["p"]), rel=1e-13)
    two = told["laplace_two_bin_eps1"]
    assert TwoBins().variance() == float(two["var_congenial"])
    for beta, variance in two["var_L1_beta"].items():
        assert TwoBins().variance(float(beta)) == pytest.approx(float(variance))
