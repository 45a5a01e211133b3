"""Two examples whose posteriors are known, and the printed algorithms, which miss them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import binom

from congenial.data.arrays import Floats
from congenial.inference import (
    Chain,
    GaussianPrior,
    HalfNormal,
    Model,
    Observation,
    infer,
)
from tests.inference.exact import ALPHA, agrees, z_test

SEED = 20240611

# Example 1: share on a grid, x ~ Bin(4, share), y = 0 from p(y | x) ~ exp(-|y - x| / 2) on 0 .. 4.
GRID = np.arange(1, 10) / 10
COUNTS = np.arange(5)
LAW = np.exp(-0.5 * np.abs(COUNTS[:, None] - COUNTS[None, :]))
LAW /= LAW.sum(axis=0)  # [y, x]; the normaliser depends on x
SEEN = LAW[0]
PRIOR_OF_X = binom.pmf(COUNTS[:, None], 4, GRID)  # [x, share]


def mean_given(weights) -> float:
    """E share when x is kept with these weights."""
    kept = weights @ PRIOR_OF_X
    return float(kept @ GRID / kept.sum())


EXACT = mean_given(SEEN)

BINOMIAL = Model(
    ("share",),
    draw_prior=lambda rng, n: rng.choice(GRID, (n, 1)),
    draw_data=lambda rng, theta: rng.binomial(4, theta),
    log_density=lambda x, theta: np.where(
        x <= 4,
        gammaln(5)
        - gammaln(x + 1)
        - gammaln(np.maximum(4 - x, 0) + 1)
        + x * np.log(theta)
        + (4 - x) * np.log1p(-theta),
        -np.inf,
    )[:, 0],
)
MANY = Chain(chains=30, warmup=200)  # a step costs about the same for many chains
OBSERVED = Observation.of_density(
    [0],
    lambda x: np.log(SEEN[np.clip(x[:, 0], 0, 4).astype(int)]),
)


def test_the_known_values():
    assert mean_given(SEEN) == pytest.approx(0.3688, abs=5e-5)
    assert mean_given(SEEN / LAW.max(axis=0)) == pytest.approx(0.3775, abs=5e-5)
    assert mean_given(1 - SEEN / LAW.max(axis=0)) == pytest.approx(0.6029, abs=5e-5)


def test_a_model_of_ones_own_has_the_exact_posterior():
    posterior = infer(OBSERVED, BINOMIAL, draws=8000, seed=SEED, chain=MANY)
    assert agrees(posterior, "share", EXACT)


def printed_rejection(rng, n, reverse: bool):
    """The acceptance rule as printed: supremum over y for each x, inequality reversed or not."""
    theta = rng.choice(GRID, n)
    x = rng.binomial(4, theta)
    ratio = SEEN[x] / LAW.max(axis=0)[x]
    kept = rng.random(n) >= ratio if reverse else rng.random(n) <= ratio
    return theta[kept]


@pytest.mark.parametrize("reverse", [True, False])
def test_planted_the_printed_acceptance_rule_is_caught(reverse):
    draws = printed_rejection(np.random.default_rng(SEED), 400_000, reverse)
    assert z_test(draws.mean(), draws.std() / len(draws) ** 0.5, EXACT) < ALPHA


def test_planted_the_printed_weights_are_caught():
    # theta from the prior, weighted by pi(theta) / g(theta) all the same
    rng = np.random.default_rng(SEED)
    theta = rng.choice(GRID, (40_000, 1))
    x = rng.binomial(4, theta)
    w = SEEN[x[:, 0]] * (1 / 9) / GRID_LAW[np.rint(10 * theta[:, 0]).astype(int) - 1]
    mean = np.average(theta[:, 0], weights=w)
    error = np.sqrt(np.sum((w * (theta[:, 0] - mean)) ** 2)) / w.sum()
    assert z_test(mean, error, EXACT) < ALPHA


GRID_LAW = np.arange(9, 0, -1) / 45  # a proposal that favours small shares


# Example 2: a normal mean from a noisy sample mean, conjugate with Gaussian noise.


def normal_mean(people: int, sd: float, prior: GaussianPrior) -> Model:
    """The mean of normal data with known standard deviation, from a noisy sample mean."""
    spread = sd / np.sqrt(people)

    def log_density(x: Any, theta: Floats) -> Floats:
        return np.asarray(-0.5 * ((x[:, 0] - theta[:, 0]) / spread) ** 2)

    return Model(
        ("mean",),
        draw_prior=lambda rng, n: prior.draw(rng, (n, 1)),
        draw_data=lambda rng, theta: rng.normal(theta, spread),
        log_density=log_density,
        log_prior=lambda theta: prior.log_density(theta[:, 0]),
    )


def normal_mean_variance(people: int, prior: GaussianPrior, sd_prior: HalfNormal) -> Model:
    """Mean and standard deviation of normal data; the release is (sample mean, sample variance).

    Given the parameters the two are independent: N(mean, sd^2 / people), and sd^2 / (people - 1)
    times chi-square with people - 1 degrees of freedom.
    """
    freedom = people - 1

    def draw_data(rng: np.random.Generator, theta: Floats) -> Any:
        mean = rng.normal(theta[:, 0], theta[:, 1] / np.sqrt(people))
        variance = theta[:, 1] ** 2 * rng.chisquare(freedom, len(theta)) / freedom
        return np.column_stack([mean, variance])

    def log_density(x: Any, theta: Floats) -> Floats:
        mean, sd = theta[:, 0], theta[:, 1]
        scaled = freedom * x[:, 1] / sd**2
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = (
                -0.5 * people * ((x[:, 0] - mean) / sd) ** 2
                - np.log(sd)
                + (freedom / 2 - 1) * np.log(scaled)
                - scaled / 2
                - 2 * np.log(sd)
            )
        return np.where((sd > 0) & (x[:, 1] > 0), logs, -np.inf)

    def log_prior(theta: Floats) -> Floats:
        return prior.log_density(theta[:, 0]) + sd_prior.log_density(theta[:, 1])

    return Model(
        ("mean", "sd"),
        draw_prior=lambda rng, n: np.column_stack([prior.draw(rng, n), sd_prior.draw(rng, n)]),
        draw_data=draw_data,
        log_density=log_density,
        log_prior=log_prior,
    )


def test_a_normal_mean_has_its_closed_form():
    people, sd, noise, prior = 25, 2.0, 0.3, GaussianPrior(1.0, 1.5)
    seen = 2.2
    observed = Observation.of_values([seen], "gaussian", noise**2, whole=False)
    posterior = infer(
        observed,
        normal_mean(people, sd, prior),
        draws=8000,
        seed=SEED,
        chain=MANY,
    )
    precision = 1 / (sd**2 / people + noise**2)
    expected = (seen * precision + 1.0 / 1.5**2) / (precision + 1 / 1.5**2)
    assert agrees(posterior, "mean", expected)
    # 8000 independent draws would give it to 0.8 %
    assert posterior.sd("mean") == pytest.approx((precision + 1 / 1.5**2) ** -0.5, rel=0.04)


def test_a_wrong_noise_scale_would_be_noticed():
    observed = Observation.of_values([2.2], "gaussian", 0.6**2, whole=False)
    model = normal_mean(25, 2.0, GaussianPrior(1.0, 1.5))
    posterior = infer(observed, model, draws=8000, seed=SEED, chain=MANY)
    precision = 1 / (2.0**2 / 25 + 0.3**2)
    expected = (2.2 * precision + 1.0 / 1.5**2) / (precision + 1 / 1.5**2)
    assert not agrees(posterior, "mean", expected)


def test_mean_and_variance_from_laplace_noise_agree_with_weighted_draws_from_the_prior():
    observed = Observation.of_values([2.0, 4.5], "laplace", 2.0, whole=False)
    model = normal_mean_variance(20, GaussianPrior(0.0, 5.0), HalfNormal(3.0))
    chain = infer(observed, model, method="augmentation", draws=8000, seed=SEED, chain=MANY)
    bound, rng = model.bind(observed), np.random.default_rng(SEED)
    theta = bound.draw_prior(rng, 60_000)
    w = np.exp(observed.log_law(bound.draw_data(rng, theta)))
    w /= w.sum()
    for name, values in bound.report(theta).items():
        mean = w @ values
        error = np.hypot(chain.standard_error(name), np.sqrt(((w * (values - mean)) ** 2).sum()))
        assert z_test(chain.mean(name), error, mean) >= ALPHA
