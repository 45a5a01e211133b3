"""The default aim: finest tables about as good as alone, no other table worse, the rest evenly.

The precisions make a mean of the tables' relative variances small (of an order near 0, almost a
geometric mean: every table counts by percentages of its own error). Its shares are found so that
the finest tables end at a stated multiple of their standard deviation alone, and that no coarser
table is worse than its sums in that single release: shares of tables that still are grow. Whatever
the shares are, the design is the best for them, with a certificate.

With pure epsilon, information grows with the square of a parameter, so a few per cent of the
promise buy little for tables of few cells per block: coarser tables may then be as much worse as
the finest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from congenial.tables.aims import PowerMean
from congenial.tables.information import Floats
from congenial.tables.optimise import Problem, solve
from congenial.tables.workload import Workload

Flags = NDArray[np.bool_]
ROUNDS = 8  # in which shares of coarser tables grow
BISECTIONS = 12  # of the share of the finest tables, in each round
NEAR = 1e-3  # tolerance while shares are sought
BETTER = 0.985  # largest variance of a coarser table, relative to the single release
ORDER = 0.2  # of the mean of relative variances
GROWTH = 8.0  # power of the excess by which a share grows


def finest_tables(workload: Workload, problem: Problem) -> Flags:
    """Open tables that no other table refines."""
    margins = workload.margins
    coarser = [
        any(other.refines(one) and not one.refines(other) for other in margins) for one in margins
    ]
    return np.asarray(problem.open & ~np.array(coarser))


def alone(problem: Problem, finest: Flags) -> Floats:
    """All of the promise on the one finest table, or shared by the finest ones, evenly."""
    most = problem.types.max(axis=0)
    here = finest[problem.open]
    x = np.where(here, 1 / most, 1e-9 * (1 / most).min())
    if here.sum() > 1:
        shared = PowerMean.geometric(finest / finest.sum())
        x = solve(replace(problem, objective=shared), x)
    return np.asarray(x / (problem.types @ x).max())


def kept_shares(problem: Problem, finest: Flags, factor: float) -> PowerMean:
    """The mean whose best design has the finest tables at `factor` times alone."""
    coarser = problem.open & ~finest
    mean = PowerMean.geometric(finest / finest.sum())
    if not coarser.any():
        return mean
    x = alone(problem, finest)
    single = problem.variances(x)
    relative = np.where(problem.open, 1 / np.where(problem.open, single, 1), 0)
    mean = PowerMean(mean.shares, relative, ORDER)
    loose = replace(problem, tolerance=NEAR)
    weights = coarser.astype(float)
    for _ in range(1 if problem.squared else ROUNDS):
        found, x = _finest_at(loose, mean, weights, factor**2, x)
        excess = problem.variances(x)[coarser] / (BETTER * single[coarser])
        grown = np.maximum(1, weights[coarser] * np.minimum(excess, 1.3) ** GROWTH)
        if np.allclose(grown, weights[coarser], rtol=0.02):
            break
        weights[coarser] = grown
    return found


def _finest_at(
    problem: Problem, mean: PowerMean, weights: Floats, limit: float, start: Floats
) -> tuple[PowerMean, Floats]:
    """The share of the finest tables, by bisection: the larger, the smaller their variances."""
    low, high, x = 0.0, 1.0, start
    found, best = mean, start
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        shares = middle * mean.shares + (1 - middle) * weights / weights.sum()
        tried = replace(mean, shares=shares)
        x = solve(replace(problem, objective=tried), np.maximum(x, 1e-4 * x.max()))
        if mean.value(problem.variances(x)) > limit:
            low = middle
        else:
            high, found, best = middle, tried, x
    return found, best
