"""A proof, from public numbers, of how near a design is to the best of its class.

The class: independent spherical Gaussian noise on the listed tables, at the price used (C x <= 1).
The error F is convex in x with F(t x) = F(x) / t. Let g = -F'(x), and h the maximum of g.q over
all q with C q <= 1. F lies above its tangent at every point x / s on the ray of x, so
F(q) >= 2 s F(x) - s^2 g.q >= 2 s F(x) - s^2 h, and s = F(x) / h gives F(q) >= F(x)^2 / h. Now h is
at most sum(l) for any l >= 0 with C'l >= g: hence no q has less than F(x) / sum(l) of the error of
x. For the largest of several ratios the same is said of a mean of the ratios, which is below it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from congenial.tables.aims import LargestRatio
from congenial.tables.information import Floats
from congenial.tables.optimise import Problem


@dataclass(frozen=True)
class DesignCertificate:
    """Multipliers that prove how near a design is to the best of its class.

    `share`: no design of the class has less than this share of the error. `types`: one multiplier
    per maximal difference type; `tables`: weights of the tables' variances, for the largest error.
    """

    share: float
    types: tuple[float, ...]
    tables: tuple[float, ...] | None = None

    def recomputed(self, problem: Problem, x: Floats) -> float:
        """The share that the multipliers prove for parameters with C x <= 1; 0 if they do not."""
        multipliers = np.array(self.types)
        variances = problem.variances(x)
        if self.tables is None:
            weights = problem.objective.weights(variances)
            bound = problem.objective.value(variances)
        else:
            weights = np.array(self.tables)
            bound = float(weights @ np.where(weights > 0, variances, 0))
        gain = problem.gains(x, weights)
        short = gain > multipliers @ problem.types * (1 + 1e-9)
        if np.any(multipliers < 0) or np.any(short) or not self._normalised(problem, weights):
            return 0.0
        return float(bound**2 / multipliers.sum() / problem.objective.value(variances))

    def _normalised(self, problem: Problem, weights: Floats) -> bool:
        """Weights of the largest error are a mean of ratios."""
        if self.tables is None:
            return True
        factors = np.asarray(problem.objective.factors)  # type: ignore[attr-defined]
        at = weights > 0
        return bool(np.all(factors[at] > 0) and (weights[at] / factors[at]).sum() <= 1 + 1e-9)


def certify(problem: Problem, x: Floats) -> DesignCertificate:
    """The certificate of parameters x of Gaussian noise, as tight as duality gives."""
    if isinstance(problem.objective, LargestRatio):
        tables = _mean_of_ratios(problem, x)
        gain = problem.gains(x, tables)
        kept: tuple[float, ...] | None = tuple(tables.tolist())
    else:
        gain = problem.gains(x, problem.objective.weights(problem.variances(x)))
        kept = None
    multipliers = _cheapest(problem.types, gain)
    draft = DesignCertificate(0.0, tuple(multipliers.tolist()), kept)
    return replace(draft, share=draft.recomputed(problem, x))


def _cheapest(types: Floats, gain: Floats) -> Floats:
    """The least sum of l >= 0 with types' l >= gain, feasible beyond rounding."""
    if len(types) == 1:
        return np.array([np.max(gain / types[0])])
    from scipy.optimize import linprog

    scale = gain.max()
    found = linprog(np.ones(len(types)), A_ub=-types.T, b_ub=-gain / scale, method="highs")
    multipliers = np.maximum(found.x, 0)
    return np.asarray(multipliers * np.max(gain / np.maximum(multipliers @ types, 1e-300)))


def _mean_of_ratios(problem: Problem, x: Floats) -> Floats:
    """Weights y with sum y_b / factor_b = 1 for which 2 y.V - h(y) is largest; a linear programme.

    h(y) = min sum(l) over l with C'l >= gain(y) is linear in (y, l).
    """
    from scipy.optimize import linprog

    factors = problem.objective.factors  # type: ignore[attr-defined]
    at = np.flatnonzero(factors > 0)
    ratios = (factors * problem.variances(x))[at]
    rows = np.array([problem.gains(x, unit) for unit in np.eye(len(factors))[at] * factors])
    scale = ratios.max()
    count, size = len(problem.types), len(at)
    found = linprog(
        np.concatenate([-2 * ratios / scale, np.ones(count)]),
        A_ub=np.hstack([rows.T / scale, -problem.types.T]),
        b_ub=np.zeros(rows.shape[1]),
        A_eq=np.concatenate([np.ones(size), np.zeros(count)])[None, :],
        b_eq=[1.0],
        method="highs",
    )
    weights = np.zeros(len(factors))
    weights[at] = np.maximum(found.x[:size], 0) / np.maximum(found.x[:size], 0).sum()
    return np.asarray(weights * factors)
