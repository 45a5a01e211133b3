"""Linear and logistic regression of an outcome on the other axes of a table (see `outcomes`).

Models for real-valued releases: a mean, or a mean and a variance, of normal data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr

from congenial.data.arguments import TEXT, check_fields, optional
from congenial.data.arrays import Floats
from congenial.data.attribute import Axis
from congenial.errors import InferenceError
from congenial.inference.latent_tables import LatentTables
from congenial.inference.models.counts import CountRegression, linear_curvature
from congenial.inference.models.model import BoundModel, Covariates, design
from congenial.inference.models.outcomes import SMALLEST, Outcome
from congenial.inference.models.priors import GaussianPrior, HalfNormal
from congenial.inference.observation import Observation

EFFECTS = GaussianPrior(0.0, 5.0)


class OutcomeRegression(Outcome):
    """Shared by linear and logistic regression: a design over the parts of the table."""

    def __init__(self, observation: Observation, outcome: str, model: Any) -> None:
        names = [axis.name for axis in observation.axes]
        if outcome not in names:
            raise InferenceError(
                f"outcome '{outcome}' is not an axis of the table.",
                remedy=f"Axes: {', '.join(names) or 'none'}.",
            )
        self.at = names.index(outcome)
        self.axis = observation.axes[self.at]
        self.rest = tuple(s for i, s in enumerate(observation.shape) if i != self.at)
        others = [axis for axis in observation.axes if axis.name != outcome]
        grid = np.arange(int(np.prod(self.rest, dtype=np.int64))).reshape(self.rest)
        parts = np.broadcast_to(np.expand_dims(grid, self.at), observation.shape).reshape(-1)
        super().__init__(observation, np.ascontiguousarray(parts), model.people)
        self.names, self.matrix = design(model.covariates, others, self.rest)
        self.prior: GaussianPrior = model.prior

    def _onto_cells(self, p: Floats) -> Floats:
        """(n, parts, levels) in the order of the table's cells."""
        table = np.moveaxis(p.reshape(len(p), *self.rest, p.shape[-1]), -1, self.at + 1)
        return np.ascontiguousarray(table.reshape(len(p), -1))


class LogisticBound(OutcomeRegression):
    """logit P(success) = X b."""

    def __init__(self, observation: Observation, model: Logistic) -> None:
        super().__init__(observation, model.outcome, model)
        levels = self.axis.levels
        if len(levels) != 2 or model.success not in (None, *levels):
            raise InferenceError(
                f"'{model.outcome}' has the categories {', '.join(levels[:5])}; logistic "
                f"regression needs two, one of them success = {model.success!r}.",
                remedy="Use a coarser outcome with two categories.",
            )
        self.success = 1 if model.success is None else levels.index(model.success)
        self.size = len(self.names)
        self.dims = {"coefficient": (("covariate", self.names),)}

    @cached_property
    def reduced(self) -> CountRegression | None:
        """The same as successes out of known totals, where counts can be summed out; else None.

        In a part of two cells whose total is public, x_no = total - x_yes. If the released values
        add up to the total too, both noises are the same number, so the pair counts as one value
        with twice the log weight.
        """
        observation = self.observation
        conforming, noise = observation.conforming, observation.noise
        if self.totals is None or noise is None or noise.kind == "table" or conforming.ties:
            return None
        pairs = np.stack([np.flatnonzero(self.parts == part) for part in range(len(self.totals))])
        labels = conforming.labels[pairs]
        whole = np.all((labels >= 0) & (labels[:, :1] == labels))
        if not whole or np.any(observation.y[pairs].sum(axis=1) != self.totals):
            return None
        yes = pairs[:, self.success]
        single = replace(noise.at(yes), scale=2 * noise.scale[yes])
        successes = Observation(
            observation.y[yes],
            LatentTables.anything(len(yes)),
            single,
            axes=tuple(axis for axis in observation.axes if axis.name != self.axis.name),
        )
        trials = self.totals.astype(float)
        return CountRegression("binomial", successes, self.names, self.matrix, trials, self.prior)

    def probabilities(self, theta: Floats) -> Floats:
        """Probability of each outcome."""
        eta = np.clip(theta @ self.matrix.T, -700, 700)
        p = 1 / (1 + np.exp(-eta))
        pair = (1 - p, p) if self.success == 1 else (p, 1 - p)
        return self._onto_cells(np.maximum(np.stack(pair, axis=-1), SMALLEST))

    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        """n draws of the coefficients."""
        return self.prior.draw(rng, (n, self.size))

    def log_prior(self, theta: Floats) -> Floats:
        """log p(coefficients)."""
        return np.asarray(self.prior.log_density(theta).sum(axis=-1))

    def curvature(self, x: Any, theta: Floats) -> tuple[Floats, Floats]:
        """Of the coefficients: successes against their expected number."""
        pairs = np.moveaxis(np.asarray(x).reshape(-1, *self.observation.shape), self.at + 1, -1)
        counts = pairs.reshape(len(pairs), -1, 2)
        share = expit(theta @ self.matrix.T)
        people = counts.sum(axis=-1)
        residual = counts[..., self.success] - people * share
        return linear_curvature(
            self.matrix, residual, people * share * (1 - share), self.prior, theta
        )

    def report(self, theta: Floats) -> dict[str, Floats]:
        """The coefficients."""
        return {"coefficient": theta}

    def start(self, x: Any) -> Floats:  # noqa: ARG002 - the centre of the prior will do
        """No effect at all."""
        return np.zeros(self.size)


class LinearBound(OutcomeRegression):
    """outcome = X b + N(0, sd^2), seen only through the bins of the table. theta = (b, log sd)."""

    def __init__(self, observation: Observation, model: Linear, report_mean: bool) -> None:
        super().__init__(observation, model.outcome, model)
        self.low, self.high = edges(observation, self.axis)
        inner = np.concatenate([self.low[np.isfinite(self.low)], self.high[np.isfinite(self.high)]])
        width = float(np.ptp(inner)) or 1.0
        middle = float((inner.min() + inner.max()) / 2)
        self.prior = model.prior or GaussianPrior(0.0, 10 * width)
        self.level_prior = model.prior or GaussianPrior(middle, 10 * width)
        self.sd_prior = model.sd_prior or HalfNormal(width)
        self.guess = middle, width / 4
        self.report_mean = report_mean
        self.observation = replace(self.observation, notes=(*self.observation.notes, *self._cut()))
        self.size = len(self.names) + 1
        self.dims = {"mean": (), "sd": ()}
        if not report_mean:
            self.dims = {"coefficient": (("covariate", self.names),), "sd": ()}

    def _cut(self) -> tuple[str, ...]:
        """What the parameters are where the bins do not cover all numbers."""
        low, high = float(self.low[0]), float(self.high[-1])
        if np.isinf(low) and np.isinf(high):
            return ()
        ends = ((f"from {low:g} on", low), (f"below {high:g}", high))
        limits = " and ".join(words for words, end in ends if np.isfinite(end))
        what = "mean" if self.report_mean else "intercept"
        return (
            f"{what} and sd belong to a normal distribution before it is cut to the bins "
            f"({limits}); they are not the mean and the standard deviation of '{self.axis.name}'",
        )

    def probabilities(self, theta: Floats) -> Floats:
        """Probability of each bin, given that the outcome is in one of them."""
        mean = theta[:, :-1] @ self.matrix.T
        sd = np.exp(np.clip(theta[:, -1], -50, 50))[:, None, None]
        low = (self.low - mean[..., None]) / sd
        high = (self.high - mean[..., None]) / sd
        flip = low > 0  # the smaller tail, for accuracy: all bins may lie far out
        near = log_ndtr(np.where(flip, -low, high))
        far = log_ndtr(np.where(flip, -high, low))
        with np.errstate(divide="ignore"):
            logs = near + np.log(-np.expm1(np.minimum(far - near, 0.0)))
        p = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return self._onto_cells(np.maximum(p / p.sum(axis=-1, keepdims=True), SMALLEST))

    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        """n draws of (coefficients, log sd)."""
        b = self.prior.draw(rng, (n, self.size - 1))
        b[:, 0] = self.level_prior.draw(rng, n)
        return np.column_stack([b, np.log(self.sd_prior.draw(rng, n))])

    def log_prior(self, theta: Floats) -> Floats:
        """log p(coefficients) + log p(log sd)."""
        slopes = self.prior.log_density(theta[:, 1:-1]).sum(axis=-1)
        spread = self.sd_prior.log_density(np.exp(theta[:, -1])) + theta[:, -1]
        return np.asarray(self.level_prior.log_density(theta[:, 0]) + slopes + spread)

    def report(self, theta: Floats) -> dict[str, Floats]:
        """Coefficients (or the mean) and the standard deviation."""
        sd = np.exp(theta[:, -1])
        if self.report_mean:
            return {"mean": theta[:, 0], "sd": sd}
        return {"coefficient": theta[:, :-1], "sd": sd}

    def start(self, x: Any) -> Floats:  # noqa: ARG002 - the middle of the bins will do
        """The middle of the bins, a quarter of their width."""
        theta = np.zeros(self.size)
        theta[0], theta[-1] = self.guess[0], np.log(self.guess[1])
        return theta


def edges(observation: Observation, axis: Axis) -> tuple[Floats, Floats]:
    """Lower and upper ends of an axis's levels; whole numbers v stand for v - 1/2 .. v + 1/2."""
    assert observation.published is not None
    attribute = observation.published.schema.attribute(axis.base)
    if attribute.kind == "categorical" or axis.size != len(attribute.intervals):
        raise InferenceError(
            f"'{axis.name}' has categories without a number.",
            remedy="Use an attribute with edges or integers, not a coarser name of it.",
        )
    shift = 0.5 if attribute.kind == "integers" else 0.0
    ends = [
        (
            -np.inf if low is None else float(low) - shift,
            np.inf if high is None else float(high) - shift,
        )
        for low, high in attribute.intervals
    ]
    return np.array([e[0] for e in ends]), np.array([e[1] for e in ends])


# --- what a user writes --------------------------------------------------------------------------


@dataclass(frozen=True)
class Logistic:
    """Logistic regression of a two-level outcome on the other axes of the table.

    `success` names the level that is modelled (default: the second). `people`: how many have each
    combination of covariates, where that is known but not published.
    """

    outcome: str
    covariates: Covariates = ()
    success: str | None = None
    by: str | Sequence[str] | None = None
    prior: GaussianPrior = EFFECTS
    people: Any = None

    def __post_init__(self) -> None:
        named = {"outcome": TEXT, "success": optional(TEXT)}
        check_fields(self, InferenceError, **named, prior=GaussianPrior)

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        return LogisticBound(observation, self)


def _check_normal(model: Linear | Normal) -> None:
    priors = {"prior": optional(GaussianPrior), "sd_prior": optional(HalfNormal)}
    check_fields(model, InferenceError, outcome=TEXT, **priors)


@dataclass(frozen=True)
class Linear:
    """Linear regression of a binned or whole-numbered outcome on the other axes of the table.

    The likelihood is that of the bins (interval-censored), not of their midpoints. Default priors
    are as wide as the schema's edges: ten times for coefficients, once for the standard deviation.
    """

    outcome: str
    covariates: Covariates = ()
    by: str | Sequence[str] | None = None
    prior: GaussianPrior | None = None
    sd_prior: HalfNormal | None = None
    people: Any = None

    def __post_init__(self) -> None:
        _check_normal(self)

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        return LinearBound(observation, self, report_mean=False)


@dataclass(frozen=True)
class Normal:
    """Mean and standard deviation of a binned or whole-numbered attribute.

    People are independent and normal; the likelihood of a bin is the normal mass between its edges,
    given that a value is in one of them. Where the bins do not reach to infinity, mean and sd are
    those of the law before it is cut, and the result says so. Priors and `people` as for `Linear`.
    """

    outcome: str
    prior: GaussianPrior | None = None
    sd_prior: HalfNormal | None = None
    people: Any = None

    def __post_init__(self) -> None:
        _check_normal(self)

    @property
    def by(self) -> tuple[str]:
        """The outcome alone."""
        return (self.outcome,)

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        plain = Linear(self.outcome, (), None, self.prior, self.sd_prior, self.people)
        return LinearBound(observation, plain, report_mean=True)
