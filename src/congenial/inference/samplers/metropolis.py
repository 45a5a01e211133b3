"""Metropolis steps in the parameters, for all chains at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from congenial.inference.cell_noise import Floats

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

    found = minimize(down, start, method="Nelder-Mead", options={"maxiter": 200 * len(start)})
    found = minimize(down, found.x, method="BFGS", options={"maxiter": 200})
    mode = found.x if found.fun < 1e29 else start
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
