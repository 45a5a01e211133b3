"""The best noise parameters x of a convex error under C x <= 1.

Gaussian noise: x are precisions and the problem is convex. One type of differences: multiplicative
steps, x_b <- x_b (gain_b / c_b)^step, which keep x positive and stop at the optimum. Several types,
or the largest of several errors: sequential quadratic programming in log x. Double geometric noise
has information x^2 / 2, which is not convex: the same steps from several starts. How good the
result is does not rest on the solver (`certificate`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.arrays import Floats
from congenial.tables.aims import LargestRatio, Objective, PowerMean
from congenial.tables.information import VarianceModel

STEPS = 20_000
TOLERANCE = 1e-5
SMALLEST = 1e-13  # of the largest parameter, while searching
MOST_JOINTLY = 100  # tables for which the largest error is solved for as such
POWER = 24.0  # stands for the maximum over more tables


@dataclass(frozen=True, eq=False)
class Problem:
    """Tables that can move (`open`), maximal types on them, and the error to make small.

    `squared`: information is x^2 / 2 (double geometric noise) instead of x.
    """

    model: VarianceModel
    types: Floats  # rows are types, columns open tables
    open: NDArray[np.bool_]  # which of all tables are open
    objective: Objective
    squared: bool = False
    tolerance: float = TOLERANCE

    def precisions(self, x: Floats) -> Floats:
        """Information on each table, 0 for tables that the figures tell."""
        precisions = np.zeros(len(self.open))
        precisions[self.open] = x * x / 2 if self.squared else x
        return precisions

    def variances(self, x: Floats) -> Floats:
        """Mean variance of the cells of each table."""
        return self.model.variances(self.precisions(x))

    def value(self, x: Floats) -> float:
        """The error."""
        return self.objective.value(self.variances(x))

    def gains(self, x: Floats, weights: Floats) -> Floats:
        """-d/dx of sum_b weights_b V_b."""
        gains = self.model.gains(self.precisions(x), weights)[self.open]
        return gains * x if self.squared else gains


def solve(problem: Problem, start: Floats | None = None) -> Floats:
    """Parameters with C x <= 1 and small error; the smallest for Gaussian noise."""
    if start is None:
        start = 1 / problem.types.max(axis=0)
    if problem.squared:
        solutions = [_local(problem, point) for point in (start, *_starts(problem))]
        return min(solutions, key=problem.value)
    return _local(problem, start)


def _local(problem: Problem, start: Floats) -> Floats:
    if isinstance(problem.objective, LargestRatio):
        near = _local(replace(problem, objective=problem.objective.smooth(POWER)), start)
        if len(start) > MOST_JOINTLY:
            return near
        return _largest(problem, problem.objective.factors, near)
    if len(problem.types) == 1:
        return _multiplicative(problem, start)
    return _sequential(problem, start)


def _starts(problem: Problem) -> Iterator[Floats]:
    """Most of the promise on each table in turn, and a few at random (always the same)."""
    most = problem.types.max(axis=0)
    size = len(most)
    for k in range(min(size, 8)):
        x = np.full(size, 0.1 / size)
        x[k] = 1
        yield x / most
    rng = np.random.default_rng(17)
    for _ in range(4):
        yield rng.dirichlet(np.ones(size)) / most


def _scaled(problem: Problem, x: Floats) -> Floats:
    x = np.maximum(x, SMALLEST * x.max())
    return np.asarray(x / (problem.types @ x).max())


def _multiplicative(problem: Problem, start: Floats) -> Floats:
    """Steps x <- x (gain / cost)^step under one constraint; shorter ones if the error rises."""
    cost, x = problem.types[0], _scaled(problem, start)
    step, last = (0.4 if problem.squared else 0.9), np.inf
    if isinstance(problem.objective, PowerMean):
        step /= max(1.0, problem.objective.order)
    for _ in range(STEPS):
        variances = problem.variances(x)
        value = problem.objective.value(variances)
        gain = problem.gains(x, problem.objective.weights(variances))
        ratio = gain / (gain @ x * cost)
        if np.max(ratio) - 1 < problem.tolerance:
            break
        if value > last * (1 + 1e-12):
            step = max(step / 2, 0.01)
        last = value
        x = _scaled(problem, x * np.maximum(ratio, 1e-6) ** step)
    return x


def _sequential(problem: Problem, start: Floats) -> Floats:
    """Sequential quadratic programming in z = log x under several constraints."""
    from scipy.optimize import minimize

    def error(z: Floats) -> tuple[float, Floats]:
        x = np.exp(z)
        variances = problem.variances(x)
        value = problem.objective.value(variances)
        gain = problem.gains(x, problem.objective.weights(variances))
        return float(np.log(value)), -gain * x / value

    limits = {
        "type": "ineq",
        "fun": lambda z: 1 - problem.types @ np.exp(z),
        "jac": lambda z: -problem.types * np.exp(z),
    }
    x = _scaled(problem, start)
    result = minimize(
        error,
        np.log(x),
        jac=True,
        method="SLSQP",
        constraints=[limits],
        bounds=[(-40, 5)] * len(x),
        options={"maxiter": 400, "ftol": 1e-12},
    )
    return _scaled(problem, np.exp(result.x))


def _largest(problem: Problem, factors: Floats, start: Floats) -> Floats:
    """The least t with log(factor_b V_b) <= t for every table, as one programme in (z, t)."""
    from scipy.optimize import minimize

    at = np.flatnonzero(factors > 0)

    x = _scaled(problem, start)
    first = np.append(np.log(x), np.log(problem.value(x)))
    last = np.append(np.zeros(len(x)), 1.0)
    result = minimize(
        lambda z: (float(z[-1]), last),
        first,
        jac=True,
        method="SLSQP",
        constraints=[_below(problem, factors, at), _within(problem)],
        bounds=[(-40, 5)] * len(x) + [(None, None)],
        options={"maxiter": 200, "ftol": 1e-12},
    )
    better = _scaled(problem, np.exp(result.x[:-1]))
    return min(better, x, key=problem.value)


def _below(problem: Problem, factors: Floats, at: NDArray[np.int64]) -> dict[str, Any]:
    """t - log(factor_b V_b(e^z)) >= 0, with its derivatives by (z, t)."""

    def room(z: Floats) -> Floats:
        variances = problem.variances(np.exp(z[:-1]))[at]
        return np.asarray(z[-1] - np.log(factors[at] * variances))

    def slopes(z: Floats) -> Floats:
        x = np.exp(z[:-1])
        variances = problem.variances(x)[at]
        rows = [problem.gains(x, unit) * x for unit in np.eye(len(problem.open))[at]]
        return np.column_stack([np.array(rows) / variances[:, None], np.ones(len(at))])

    return {"type": "ineq", "fun": room, "jac": slopes}


def _within(problem: Problem) -> dict[str, Any]:
    """1 - C e^z >= 0, with its derivatives by (z, t)."""
    none = np.zeros((len(problem.types), 1))
    return {
        "type": "ineq",
        "fun": lambda z: 1 - problem.types @ np.exp(z[:-1]),
        "jac": lambda z: np.hstack([-problem.types * np.exp(z[:-1]), none]),
    }


# ---- A proof, from public numbers, of how near a design is to the best of its class ----
# The class: independent spherical Gaussian noise on the listed tables, at the price used (C x <=
# 1). The error F is convex in x with F(t x) = F(x) / t. Let g = -F'(x), and h the maximum of g.q
# over all q with C q <= 1. F lies above its tangent at every point x / s on the ray of x, so F(q)
# >= 2 s F(x) - s^2 g.q >= 2 s F(x) - s^2 h, and s = F(x) / h gives F(q) >= F(x)^2 / h. Now h is
# at most sum(l) for any l >= 0 with C'l >= g: hence no q has less than F(x) / sum(l) of the error
# of x. For the largest of several ratios the same is said of a mean of the ratios, which is below
# it.


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
        weights: tuple[float, ...] | None = tuple(tables.tolist())
    else:
        gain = problem.gains(x, problem.objective.weights(problem.variances(x)))
        weights = None
    multipliers = _cheapest(problem.types, gain)
    draft = DesignCertificate(0.0, tuple(multipliers.tolist()), weights)
    return replace(draft, share=draft.recomputed(problem, x))


def _cheapest(types: Floats, gain: Floats) -> Floats:
    """The least sum of l >= 0 with types' l >= gain, feasible beyond rounding."""
    if len(types) == 1:
        return np.array([np.max(gain / types[0])])
    from scipy.optimize import linprog

    scale = gain.max()
    result = linprog(np.ones(len(types)), A_ub=-types.T, b_ub=-gain / scale, method="highs")
    multipliers = np.maximum(result.x, 0)
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
    result = linprog(
        np.concatenate([-2 * ratios / scale, np.ones(count)]),
        A_ub=np.hstack([rows.T / scale, -problem.types.T]),
        b_ub=np.zeros(rows.shape[1]),
        A_eq=np.concatenate([np.ones(size), np.zeros(count)])[None, :],
        b_eq=[1.0],
        method="highs",
    )
    weights = np.zeros(len(factors))
    weights[at] = np.maximum(result.x[:size], 0) / np.maximum(result.x[:size], 0).sum()
    return np.asarray(weights * factors)
