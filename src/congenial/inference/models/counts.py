"""Models of counts: Poisson, negative binomial and binomial, one rate per cell or covariates.

Cells are independent given the parameters, and each count has a weight of the form in _kernels, so
its law given the release is a sum that can be done, and drawn from, exactly. One rate (or share)
per cell with its conjugate prior goes further: the parameter integrates out, and draws are
independent.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import expit, gammaln

from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.inference.models.model import (
    BoundModel,
    Covariates,
    Dims,
    cell_parameters,
    design,
    per_cell,
)
from congenial.inference.models.priors import Beta, Gamma, GaussianPrior
from congenial.inference.observation import Observation

Axes = str | Sequence[str] | None

SIZE_PRIOR = Gamma(1, 0.1)


def log_weights(x: Any, cells: Floats) -> Floats:
    """Log weight of counts (n, cells) under parameters (..., cells, 4), without noise."""
    x = np.asarray(x, dtype=float)
    c, a, n, b = np.moveaxis(cells, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.where(x > 0, x * np.log(c), 0.0) - gammaln(x + 1)
        w += np.where(a > 0, gammaln(x + np.where(a > 0, a, 1)), 0.0)
        rest = np.maximum(n - x, 0)
        bounded = -gammaln(rest + 1) + np.where(b > 0, gammaln(rest + np.where(b > 0, b, 1)), 0.0)
        w += np.where(n >= 0, bounded, 0.0)
        return np.where((x < 0) | ((n >= 0) & (x > n)), -np.inf, w)


class Counts(BoundModel):
    """Independent counts: everything follows from `given` and `log_constant`."""

    @abstractmethod
    def given(self, theta: Floats) -> Floats:
        """Weights of the cells given theta, (n, cells, 4)."""

    def log_likelihood(self, x: Any, theta: Floats) -> Floats:
        """log p(x | theta), constants in x left out."""
        return np.asarray(log_weights(x, self.given(theta)).sum(axis=-1) + self.log_constant(theta))


class Conjugate(Counts):
    """One parameter per cell whose prior has the right form: it can be integrated out."""

    def __init__(self, observation: Observation, name: str, numbers: Floats, prior: Any) -> None:
        self.observation, self.prior, self.numbers = observation, prior, numbers
        self.size = observation.cells
        self.name = name
        self.dims = {name: observation.dims}

    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        """n draws of theta."""
        return np.asarray(self.prior.draw(rng, (n, self.size)))

    def log_prior(self, theta: Floats) -> Floats:
        """log p(theta) for each row."""
        return np.asarray(self.prior.log_density(theta).sum(axis=-1))

    def report(self, theta: Floats) -> dict[str, Floats]:
        """The parameter of each cell."""
        return {self.name: theta.reshape(-1, *self.observation.shape)}


class Rates(Conjugate):
    """x ~ Poisson(rate * exposure), rate ~ Gamma: negative binomial counts without the rate."""

    def draw_data(self, rng: np.random.Generator, theta: Floats) -> Any:
        """Counts given the rates."""
        return rng.poisson(np.minimum(theta * self.numbers, 1e18))

    def given(self, theta: Floats) -> Floats:
        """Poisson weights."""
        return cell_parameters(theta * self.numbers, shape=theta.shape)

    def log_constant(self, theta: Floats) -> Floats:
        """-sum of the means."""
        return np.asarray(-(theta * self.numbers).sum(axis=-1))

    def collapsed(self) -> Floats:
        """q^x G(x + shape)/x!, q = exposure / (exposure + rate of the prior)."""
        q = self.numbers / (self.numbers + self.prior.rate)
        return cell_parameters(q, self.prior.shape, shape=q.shape)

    def draw_parameters(self, rng: np.random.Generator, x: Any) -> Floats:
        """rate ~ Gamma(shape + x, rate + exposure)."""
        theta = rng.standard_gamma(self.prior.shape + np.asarray(x, dtype=float))
        return np.asarray(np.divide(theta, self.prior.rate + self.numbers, out=theta))


class Shares(Conjugate):
    """x ~ Binomial(trials, share), share ~ Beta: beta-binomial counts without the share."""

    def draw_data(self, rng: np.random.Generator, theta: Floats) -> Any:
        """Counts given the shares."""
        return rng.binomial(self.numbers.astype(np.int64), theta)

    def given(self, theta: Floats) -> Floats:
        """Binomial weights."""
        return cell_parameters(theta / (1 - theta), 0.0, self.numbers, shape=theta.shape)

    def log_constant(self, theta: Floats) -> Floats:
        """sum of trials * log(1 - share)."""
        return np.asarray((self.numbers * np.log1p(-theta)).sum(axis=-1))

    def collapsed(self) -> Floats:
        """G(x + a)/x! G(n - x + b)/(n - x)!."""
        shape = self.numbers.shape
        return cell_parameters(1.0, self.prior.a, self.numbers, self.prior.b, shape)

    def draw_parameters(self, rng: np.random.Generator, x: Any) -> Floats:
        """share ~ Beta(a + x, b + n - x)."""
        x = np.asarray(x, dtype=float)
        return np.asarray(rng.beta(self.prior.a + x, self.prior.b + self.numbers - x))

    @property
    def most(self) -> Floats:
        """The trials."""
        return self.numbers


def linear_curvature(
    matrix: Floats, residual: Floats, weight: Floats, prior: GaussianPrior, theta: Floats
) -> tuple[Floats, Floats]:
    """X' residual and X' diag(weight) X, with what the prior of the coefficients adds."""
    size = matrix.shape[1]
    weight = np.clip(weight, 0.0, 1e100)
    gradient = residual @ matrix - (theta[:, :size] - prior.mean) / prior.sd**2
    information = (weight[:, None, :] * matrix.T) @ matrix
    return gradient, information + np.eye(size) / prior.sd**2


@dataclass
class CountRegression(Counts):
    """Coefficients with a normal prior; `kind` says which counts. theta = (coefficients, log size).

    poisson: mean = exposure * exp(X b). negative_binomial: the same mean, variance mean + mean^2 /
    size. binomial: share = 1 / (1 + exp(-X b)) of the trials.
    """

    kind: str
    observation: Observation
    names: tuple[str, ...]
    matrix: Floats
    numbers: Floats  # exposure or trials
    prior: GaussianPrior
    size_prior: Gamma | None = None
    dims: dict[str, Dims] = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.names) + (self.size_prior is not None)
        self.dims = {"coefficient": (("covariate", self.names),)}
        if self.size_prior is not None:
            self.dims["size"] = ()

    def _split(self, theta: Floats) -> tuple[Floats, Floats]:
        """Linear predictor (n, cells) and size (n, 1)."""
        p = len(self.names)
        size = np.exp(np.clip(theta[:, p:], -40, 40))
        return np.asarray(theta[:, :p] @ self.matrix.T), np.asarray(size)

    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        """n draws of theta."""
        columns = [self.prior.draw(rng, (n, len(self.names)))]
        if self.size_prior is not None:
            columns.append(np.log(self.size_prior.draw(rng, (n, 1))))
        return np.concatenate(columns, axis=1)

    def log_prior(self, theta: Floats) -> Floats:
        """log p(coefficients) + log p(log size)."""
        p = len(self.names)
        logs = self.prior.log_density(theta[:, :p]).sum(axis=-1)
        if self.size_prior is not None:
            logs = logs + self.size_prior.log_density(np.exp(theta[:, p])) + theta[:, p]
        return np.asarray(logs)

    def draw_data(self, rng: np.random.Generator, theta: Floats) -> Any:
        """Counts given theta."""
        eta, size = self._split(theta)
        if self.kind == "binomial":
            return rng.binomial(self.numbers.astype(np.int64), expit(eta))
        mean = self.numbers * np.exp(np.minimum(eta, 700))
        if self.kind == "negative_binomial":
            mean = rng.gamma(np.broadcast_to(size, mean.shape), mean / size)
        return rng.poisson(np.minimum(mean, 1e18))

    def given(self, theta: Floats) -> Floats:
        """Weights of the cells."""
        eta, size = self._split(theta)
        if self.kind == "binomial":
            return cell_parameters(np.exp(np.clip(eta, -700, 700)), 0.0, self.numbers, 0, eta.shape)
        mean = self.numbers * np.exp(np.clip(eta, -700, 700))
        if self.kind == "poisson":
            return cell_parameters(mean, shape=eta.shape)
        return cell_parameters(mean / (mean + size), size, shape=eta.shape)

    def log_constant(self, theta: Floats) -> Floats:
        """What the weights leave out."""
        eta, size = self._split(theta)
        if self.kind == "binomial":
            return np.asarray((-self.numbers * np.logaddexp(0, eta)).sum(axis=-1))
        mean = self.numbers * np.exp(np.clip(eta, -700, 700))
        if self.kind == "poisson":
            return np.asarray(-mean.sum(axis=-1))
        return np.asarray((-size * np.log1p(mean / size) - gammaln(size)).sum(axis=-1))

    def score(self, x: Any, theta: Floats) -> Floats:
        """In few steps: chains spend most of their time here."""
        eta, size = self._split(theta)
        if self.kind == "binomial":
            return np.asarray((x * eta - self.numbers * np.logaddexp(0, eta)).sum(axis=-1))
        mean = self.numbers * np.exp(np.clip(eta, -700, 700))
        if self.kind == "poisson":
            return np.asarray((x * eta - mean).sum(axis=-1))
        ways = gammaln(x + size) - gammaln(size) + x * (eta - np.log(size))
        return np.asarray((ways - (x + size) * np.log1p(mean / size)).sum(axis=-1))

    def curvature(self, x: Any, theta: Floats) -> tuple[Floats, Floats]:
        """Of the coefficients, by their linear predictor."""
        eta, size = self._split(theta)
        if self.kind == "binomial":
            share = expit(eta)
            residual, weight = x - self.numbers * share, self.numbers * share * (1 - share)
        else:
            weight = self.numbers * np.exp(np.clip(eta, -700, 700))
            residual = x - weight
            if self.kind == "negative_binomial":
                spread = 1 + weight / size
                residual, weight = residual / spread, weight * (1 + x / size) / spread**2
        return linear_curvature(self.matrix, residual, weight, self.prior, theta)

    def report(self, theta: Floats) -> dict[str, Floats]:
        """Coefficients, and the size."""
        p = len(self.names)
        reported = {"coefficient": theta[:, :p]}
        return reported if self.size_prior is None else reported | {"size": np.exp(theta[:, p])}

    def start(self, x: Any) -> Floats:
        """Least squares on the scale of the link."""
        x = np.asarray(x, dtype=float)
        link = np.log((x + 0.5) / np.maximum(self.numbers, 1e-12))
        if self.kind == "binomial":
            link = np.log((x + 0.5) / (self.numbers - x + 0.5))
        coefficients = np.linalg.lstsq(self.matrix, link, rcond=None)[0]
        return (
            np.append(coefficients, 0.0)
            if self.size_prior is not None
            else np.asarray(coefficients)
        )

    @property
    def most(self) -> Floats:
        """The trials of a binomial."""
        return self.numbers if self.kind == "binomial" else super().most


# --- what a user writes --------------------------------------------------------------------------


def _regression(
    kind: str, model: Any, observation: Observation, numbers: Floats
) -> CountRegression:
    names, matrix = design(model.covariates, observation.axes, observation.shape)
    size = model.size_prior if kind == "negative_binomial" else None
    prior = model.prior if isinstance(model.prior, GaussianPrior) else GaussianPrior()
    return CountRegression(kind, observation, names, matrix, numbers, prior, size)


def _check_prior(model: Any, conjugate: type) -> None:
    wanted = conjugate if model.covariates is None else GaussianPrior
    if not isinstance(model.prior, wanted) and model.prior is not None:
        raise InferenceError(
            f"{type(model).__name__} takes {wanted.__name__} as the prior "
            f"{'per cell' if model.covariates is None else 'of its coefficients'}, not "
            f"{model.prior}.",
            remedy="Give that, or change covariates (None: one parameter per cell).",
        )


def _positive(numbers: Floats, what: str) -> Floats:
    if not np.all(numbers > 0):
        raise InferenceError(f"{what} has a value that is not positive.", remedy="Give > 0.")
    return numbers


@dataclass(frozen=True)
class Poisson:
    """Counts with a rate per unit of exposure.

    covariates=None: a rate per cell, prior Gamma (default Gamma(0.5, 0), Jeffreys). Otherwise
    log(rate) = intercept + covariates, coefficients with a Gaussian prior.
    """

    by: Axes = None
    prior: Gamma | GaussianPrior | None = None
    exposure: Any = 1.0
    covariates: Covariates | None = None

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        _check_prior(self, Gamma)
        exposure = _positive(per_cell(self.exposure, observation, "exposure"), "exposure")
        if self.covariates is None:
            return Rates(observation, "rate", exposure, self.prior or Gamma(0.5, 0))
        return _regression("poisson", self, observation, exposure)


@dataclass(frozen=True)
class NegativeBinomial:
    """Counts with more spread than Poisson: variance = mean + mean^2 / size.

    log(mean / exposure) = intercept + covariates; `size_prior` is a Gamma.
    """

    by: Axes = None
    prior: GaussianPrior | None = None
    exposure: Any = 1.0
    covariates: Covariates = ()
    size_prior: Gamma = SIZE_PRIOR

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        _check_prior(self, GaussianPrior)
        exposure = _positive(per_cell(self.exposure, observation, "exposure"), "exposure")
        return _regression("negative_binomial", self, observation, exposure)


@dataclass(frozen=True)
class Binomial:
    """Counts out of a public number of trials, such as people in the county.

    covariates=None: a share per cell, prior Beta (default Beta(0.5, 0.5)). Otherwise logit(share) =
    intercept + covariates. `trials` may name a published figure.
    """

    trials: Any
    by: Axes = None
    prior: Beta | GaussianPrior | None = None
    covariates: Covariates | None = None

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        _check_prior(self, Beta)
        trials = per_cell(self.trials, observation, "trials")
        if np.any(trials != np.rint(trials)) or np.any(trials < 0):
            raise InferenceError("trials has a value that is not a whole number >= 0.")
        if self.covariates is None:
            return Shares(observation, "share", trials, self.prior or Beta(0.5, 0.5))
        return _regression("binomial", self, observation, trials)
