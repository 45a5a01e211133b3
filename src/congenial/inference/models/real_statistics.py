"""Models for real-valued releases: a mean, or a mean and a variance, of normal data."""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.data.arguments import POSITIVE, SEVERAL, takes
from congenial.errors import InferenceError
from congenial.inference.cell_noise import Floats
from congenial.inference.models.model import Model
from congenial.inference.models.priors import GaussianPrior, HalfNormal


@takes(InferenceError, people=SEVERAL, sd=POSITIVE, prior=GaussianPrior)
def normal_mean(people: int, sd: float, prior: GaussianPrior) -> Model:
    """The mean of normal data with known standard deviation; the release is a noisy sample mean.

    x = sample mean ~ N(mean, sd^2 / people). With Gaussian noise the posterior is normal in closed
    form, which tests use.
    """
    if people < 1 or not sd > 0:
        raise InferenceError(f"{people} people with sd {sd} have no sample mean.")
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


@takes(InferenceError, people=SEVERAL, prior=GaussianPrior, sd_prior=HalfNormal)
def normal_mean_variance(people: int, prior: GaussianPrior, sd_prior: HalfNormal) -> Model:
    """Mean and standard deviation of normal data; the release is (sample mean, sample variance).

    Given the parameters the two are independent: N(mean, sd^2 / people), and sd^2 / (people - 1)
    times chi-square with people - 1 degrees of freedom.
    """
    if people < 2:
        raise InferenceError(f"{people} people have no sample variance.", remedy="Use 2 or more.")
    freedom = people - 1

    def draw_data(rng: np.random.Generator, theta: Floats) -> Any:
        mean = rng.normal(theta[:, 0], theta[:, 1] / np.sqrt(people))
        variance = theta[:, 1] ** 2 * rng.chisquare(freedom, len(theta)) / freedom
        return np.column_stack([mean, variance])

    def log_density(x: Any, theta: Floats) -> Floats:
        mean, sd = theta[:, 0], theta[:, 1]
        scaled = freedom * x[:, 1] / sd**2
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (
                -0.5 * people * ((x[:, 0] - mean) / sd) ** 2
                - np.log(sd)
                + (freedom / 2 - 1) * np.log(scaled)
                - scaled / 2
                - 2 * np.log(sd)
            )
        return np.where((sd > 0) & (x[:, 1] > 0), found, -np.inf)

    def log_prior(theta: Floats) -> Floats:
        return prior.log_density(theta[:, 0]) + sd_prior.log_density(theta[:, 1])

    return Model(
        ("mean", "sd"),
        draw_prior=lambda rng, n: np.column_stack([prior.draw(rng, n), sd_prior.draw(rng, n)]),
        draw_data=draw_data,
        log_density=log_density,
        log_prior=log_prior,
    )
