"""Metropolis steps in the parameters, for all chains at once.

Steps in the coefficients of a regression that follow the curvature of its likelihood.

With the gradient g and the information H at the present b, b + H^-1 g is where a Newton step leads.
Proposals are normal, with covariance s^2 H^-1 around b + (1 - sqrt(1 - s^2)) H^-1 g: for a normal
target that is an autoregression which leaves it as it is, whatever 0 < s <= 1 is; s = 1 forgets b.
g and H depend on b, so the ratio of the proposals in both directions enters the acceptance, and the
chain is reversible for its target whatever the approximation is worth. Where counts are large
nearly everything is accepted; small s leads back from points where the approximation is poor.

Source: Gamerman 1997, Sampling from the posterior distribution in generalized linear mixed models,
for s = 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.inference.models.model import BoundModel

Target = Callable[[Floats], Floats]  # log density of each row, up to a constant

SMALL = 1e-8
FREEDOM = 4  # of the t law that fresh points come from
WIDER = 1.2  # its scale, in standard deviations of the target


class Walk:
    """theta (chains, size) moved by two kinds of steps in turn: local ones, and fresh points.

    Local steps are normal around the present point, of a scale that varies from step to step; fresh
    points come from a t law around the centre of the target. Centre, covariance and scale are
    learnt in the warm-up and fixed with its end, so that the chain that is kept has one kernel,
    reversible for the target. fixed_target: the target does not change from call to call.
    """

    def __init__(
        self, theta: Floats, centre: Floats, covariance: Floats, fixed_target: bool = False
    ) -> None:
        self.theta, self.centre, self.fixed_target = theta, centre, fixed_target
        self._now: Floats | None = None
        self.size = theta.shape[1]
        self.factor = np.linalg.cholesky(covariance)
        self.log_scale = np.log(2.38 / np.sqrt(self.size))
        self.accepted, self.proposed, self.learnt = 0.0, 0, 0
        self._history: list[Floats] = []

    def step(self, target: Target, rng: np.random.Generator, learn: bool, times: int) -> None:
        """Move every chain `times` times, in turn near and far."""
        now = target(self.theta) if self._now is None else self._now
        for turn in range(times):
            near = turn % 2 == 0
            new, log_ratio = self._near(rng) if near else self._far(rng)
            there = target(new)
            accept = np.log(rng.random(len(new))) < there - now + log_ratio
            self.theta = np.where(accept[:, None], new, self.theta)
            now = np.where(accept, there, now)
            share = float(accept.mean())
            if learn:
                self._learn(share, near)
            else:
                self.accepted, self.proposed = self.accepted + share, self.proposed + 1
        self._now = now if self.fixed_target else None

    def _near(self, rng: np.random.Generator) -> tuple[Floats, float]:
        """Symmetric steps; a random scale serves targets that are narrow here and wide there."""
        scale = np.exp(self.log_scale + rng.standard_normal((len(self.theta), 1)))
        move = rng.standard_normal(self.theta.shape) @ self.factor.T
        return np.asarray(self.theta + scale * move), 0.0

    def _far(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Fresh points, and log q(theta) - log q(new)."""
        mixing = np.sqrt(rng.chisquare(FREEDOM, (len(self.theta), 1)) / FREEDOM)
        normal = rng.standard_normal(self.theta.shape) @ self.factor.T
        new = self.centre + WIDER * normal / mixing
        return new, self._log_t(self.theta) - self._log_t(new)

    def _log_t(self, theta: Floats) -> Floats:
        z = np.linalg.solve(self.factor, (theta - self.centre).T) / WIDER
        return np.asarray(-0.5 * (FREEDOM + self.size) * np.log1p((z * z).sum(axis=0) / FREEDOM))

    def _learn(self, share: float, near: bool) -> None:
        if near:
            self.learnt += 1
            goal = 0.44 if self.size == 1 else 0.27
            self.log_scale += (share - goal) / self.learnt**0.6
        self._history.append(self.theta)
        if len(self._history) % 100 == 0:
            recent = np.concatenate(self._history[len(self._history) // 2 :])
            covariance = np.cov(recent.T).reshape(self.size, self.size)
            spread = np.diag(covariance)
            if np.all(np.isfinite(covariance)) and np.all(spread > 0):
                self.centre = recent.mean(axis=0)
                self.factor = np.linalg.cholesky(covariance + np.diag(SMALL * spread))

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted after the warm-up."""
        return self.accepted / max(self.proposed, 1)


def begin(
    target: Target, start: Floats, chains: int, rng: np.random.Generator, fixed: bool = False
) -> Walk:
    """A walk that starts around the mode, wider than the target, with its covariance there."""
    from scipy.optimize import minimize

    def down(theta: Floats) -> float:
        value = float(-target(theta[None])[0])
        return value if np.isfinite(value) else 1e30

    minimum = minimize(down, start, method="Nelder-Mead", options={"maxiter": 200 * len(start)})
    minimum = minimize(down, minimum.x, method="BFGS", options={"maxiter": 200})
    mode = minimum.x if minimum.fun < 1e29 else start
    covariance = _covariance(down, mode)
    spread = 2 * rng.standard_normal((chains, len(start))) @ np.linalg.cholesky(covariance).T
    points = mode + spread
    good = np.isfinite(target(points))
    return Walk(np.where(good[:, None], points, mode), mode, covariance, fixed)


def _covariance(down: Callable[[Floats], float], mode: Floats) -> Floats:
    """Inverse of a numerical second derivative, made positive definite."""
    size = len(mode)
    step = 1e-3 * np.maximum(np.abs(mode), 1e-1)
    for i in range(size):  # steps that change the target by about one half
        for _ in range(30):
            gain = max(down(mode + step[i] * np.eye(size)[i]) - down(mode), 0.0)
            if 0.05 < gain < 5:
                break
            step[i] *= 2.0 if gain <= 0.05 else 0.4
    eye = np.diag(step)
    hessian = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            around = [
                down(mode + a * eye[i] + b * eye[j])
                for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
            ]
            value = (around[0] - around[1] - around[2] + around[3]) / (4 * step[i] * step[j])
            hessian[i, j] = hessian[j, i] = value
    scaled = hessian * np.outer(step, step)
    values, vectors = np.linalg.eigh(np.where(np.isfinite(scaled), scaled, 0.0))
    safe = vectors @ np.diag(1 / np.maximum(values, 0.05)) @ vectors.T
    return np.asarray(safe * np.outer(step, step) + np.diag((SMALL * step) ** 2))


CLIMBS = 100  # Newton steps towards the mode
CLOSE = 1e-6  # the gain at which they end
TIMES = 2  # proposals for each sweep over the table: one with s = 1, one nearer


class NewtonSteps:
    """theta (chains, size): coefficients by Newton proposals, what is left by a walk of its own."""

    def __init__(
        self, bound: BoundModel, table: Any, chains: int, rng: np.random.Generator
    ) -> None:
        self.bound = bound
        mode = _mode(bound, table)
        _, information = _curvature(bound, table[None], mode[None])
        self.coefficients = information.shape[-1]
        factor = np.linalg.cholesky(information[0])
        self.theta = np.tile(mode, (chains, 1))
        away = 2 * rng.standard_normal((self.coefficients, chains))
        self.theta[:, : self.coefficients] += np.linalg.solve(factor.T, away).T
        self.accepted, self.proposed = 0.0, 0
        self.rest: Walk | None = None
        if self.coefficients < bound.size:
            left = self.theta[:, self.coefficients :]
            start = left + rng.standard_normal(left.shape)
            self.rest = Walk(start, left[0], np.eye(left.shape[1]))

    def step(self, x: Any, rng: np.random.Generator, learn: bool) -> None:
        """Move every chain given its table."""
        if self.rest is not None:
            self.rest.step(lambda rest: self._target(x, self._joined(rest)), rng, learn, 2)
            self.theta = self._joined(self.rest.theta)
        here = self._place(x, self.theta)
        for turn in range(TIMES):
            s = 1.0 if turn == 0 else float(rng.random())
            here, share = self._moved(here, x, rng, s)
            if not learn:
                self.accepted, self.proposed = self.accepted + share, self.proposed + 1
        self.theta = here.theta

    def _joined(self, rest: Floats) -> Floats:
        return np.concatenate([self.theta[:, : self.coefficients], rest], axis=1)

    def _target(self, x: Any, theta: Floats) -> Floats:
        return self.bound.log_prior(theta) + self.bound.score(x, theta)

    def _place(self, x: Any, theta: Floats) -> _Place:
        return _Place(theta, self._target(x, theta), *_curvature(self.bound, x, theta))

    def _moved(
        self, here: _Place, x: Any, rng: np.random.Generator, s: float
    ) -> tuple[_Place, float]:
        """Where every chain is after one proposal, and the share that was accepted."""
        ahead, new = _Normal(here, s), here.theta.copy()
        new[:, : self.coefficients] = ahead.draw(rng)
        there = self._place(x, new)
        ratio = there.target - here.target
        ratio += _Normal(there, s).log_density(here.theta) - ahead.log_density(new)
        accept = np.log(rng.random(len(new))) < np.where(np.isnan(ratio), -np.inf, ratio)
        return here.where(accept, there), float(accept.mean())

    @property
    def acceptance(self) -> float:
        """Share of Newton proposals accepted after the warm-up."""
        return self.accepted / max(self.proposed, 1)


@dataclass(frozen=True)
class _Place:
    """Where chains are: theta, log density up to a constant, its gradient and information."""

    theta: Floats
    target: Floats
    gradient: Floats
    information: Floats

    @cached_property
    def factor(self) -> Floats:
        """The information's lower triangular factor."""
        return np.asarray(np.linalg.cholesky(self.information))

    @cached_property
    def newton(self) -> Floats:
        """Newton's step from here."""
        return np.asarray(np.linalg.solve(self.information, self.gradient[..., None])[..., 0])

    def where(self, accept: Any, there: _Place) -> _Place:
        """There for chains that accept, and here for the others."""
        return _Place(
            np.where(accept[:, None], there.theta, self.theta),
            np.where(accept, there.target, self.target),
            np.where(accept[:, None], there.gradient, self.gradient),
            np.where(accept[:, None, None], there.information, self.information),
        )


class _Normal:
    """The normal law around part of a Newton step, for each chain."""

    def __init__(self, place: _Place, s: float) -> None:
        self.size = place.gradient.shape[1]
        self.factor = place.factor / s
        self.mean = place.theta[:, : self.size] + (1 - np.sqrt(1 - s * s)) * place.newton

    def draw(self, rng: np.random.Generator) -> Floats:
        z = rng.standard_normal(self.mean.shape)
        upright = np.swapaxes(self.factor, 1, 2)
        return np.asarray(self.mean + np.linalg.solve(upright, z[..., None])[..., 0])

    def log_density(self, theta: Floats) -> Floats:
        """Up to a constant."""
        away = theta[:, : self.size] - self.mean
        z = np.einsum("nij,ni->nj", self.factor, away)
        volume = np.log(np.diagonal(self.factor, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(volume - 0.5 * (z * z).sum(axis=1))


def _curvature(bound: BoundModel, x: Any, theta: Floats) -> tuple[Floats, Floats]:
    curvature = bound.curvature(x, theta)
    assert curvature is not None
    return curvature


def _mode(bound: BoundModel, table: Any) -> Floats:
    """Coefficients of highest density given one table: Newton steps, halved until they climb."""
    theta = bound.start(table)
    x = table[None]

    def height(at: Floats) -> float:
        return float((bound.log_prior(at[None]) + bound.score(x, at[None]))[0])

    now = height(theta)
    for _ in range(CLIMBS):
        gradient, information = _curvature(bound, x, theta[None])
        move = np.zeros(bound.size)
        move[: gradient.shape[1]] = np.linalg.solve(information[0], gradient[0])
        while np.abs(move).max() > CLOSE and not height(theta + move) > now:
            move /= 2
        gain = height(theta + move) - now
        if not gain > CLOSE:
            break
        theta, now = theta + move, now + gain
    return theta
