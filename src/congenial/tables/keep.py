"""Aims that hold the finest tables at a stated error: the default, and `even`.

Default: finest tables about as good as alone, no other table worse, the rest evenly. The precisions
make a mean of the tables' relative variances small (of an order near 0, almost a geometric mean:
every table counts by percentages of its own error). Its shares are found so that the finest tables
end at a stated multiple of their standard deviation alone, and that no coarser table is worse than
its sums in that single release: shares of tables that still are grow. Whatever the shares are, the
design is the best for them, with a certificate.

With pure epsilon, information grows with the square of a parameter: a few per cent of the promise
buy nothing for tables of few cells per block, which may then be as much worse as the finest, and
no share of a mean leads to such a design. So the finest tables are given what they need, and the
others the rest (`given_finest`).

Even: the geometric mean of variances decides how much wider than alone the finest tables become, at
most `EVEN` times. Given that, the others share what is left by a geometric mean in which a table
counts once for each pair of attributes that it crosses, at least once: tables of few attributes are
sums of others and gain from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.workload import Workload
from congenial.tables.aims import PowerMean
from congenial.tables.information import Floats, VarianceModel
from congenial.tables.optimise import Problem, solve

Flags = NDArray[np.bool_]
ROUNDS = 8  # in which shares of tables beyond their limit grow
WIDTH = 0.01  # of the bracket of the share of the finest tables, relative to what the others have
NEAR = 1e-3  # tolerance while shares are sought
BETTER = 0.985  # largest variance of a coarser table, relative to the single release
ORDER = 0.2  # of the mean of relative variances
EVEN = 1.78  # how much larger than alone `even` lets the standard deviation of the finest tables be
GROWTH = 8.0  # power of the excess by which the weight of a coarser table grows


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
    if not coarser.any():
        return PowerMean.geometric(finest / finest.sum())
    x = alone(problem, finest)
    single = np.where(problem.open, problem.variances(x), 1)
    limits = np.where(finest, factor**2, BETTER) * single
    mean = PowerMean(problem.open.astype(float), problem.open / single, ORDER)
    search = _Search(replace(problem, tolerance=NEAR), mean, finest, factor**2, problem.open)
    low, high = 0.0, 1.0
    for _ in range(ROUNDS):
        share, x = search.share_of_finest(x, low, high)
        excess = np.where(problem.open, problem.variances(x), 0) / limits
        if not search.grow(np.minimum(excess, 1.3)):
            break
        low, high = max(0.0, share - 0.05), min(1.0, share + 0.05)
    return search.shared(share)


def even_shares(workload: Workload, problem: Problem, finest: Flags) -> PowerMean:
    """The geometric mean whose best design has the finest tables as wide as `even` lets them be."""
    equally = PowerMean.geometric(problem.open / problem.open.sum())
    if not (problem.open & ~finest).any():
        return equally
    start = solve(replace(problem, objective=equally, tolerance=NEAR))
    single = np.where(problem.open, problem.variances(alone(problem, finest)), 1)
    ratios = PowerMean(finest / finest.sum(), problem.open / single, 0.0)
    limit = min(EVEN**2, ratios.value(problem.variances(start)))
    crossed = [max(1, comb(len(names), 2)) for names in workload.tables]
    weights = np.where(problem.open, crossed, 0)
    search = _Search(replace(problem, tolerance=NEAR), ratios, finest, limit, weights)
    share, _ = search.share_of_finest(start, 0.0, 1.0)
    return search.shared(share)


@dataclass(frozen=True, eq=False)
class _Given:
    """Variances given precisions that some tables have already."""

    model: VarianceModel
    given: Floats

    def variances(self, precisions: Floats) -> Floats:
        """Mean variance of the cells of each table."""
        return self.model.variances(self.given + precisions)

    def gains(self, precisions: Floats, weights: Floats) -> Floats:
        """-d/dp_c of sum_b weights_b V_b, for each table c."""
        return self.model.gains(self.given + precisions, weights)


def given_finest(problem: Problem, finest: Flags, factor: float) -> Floats:
    """Parameters with 1 / `factor` of those alone on the finest tables, the rest on the others."""
    here = finest[problem.open]
    given = np.where(here, alone(problem, finest) / factor, 0)
    coarser = problem.open & ~finest
    if not coarser.any():
        return given * factor
    left = 1 - problem.types @ given
    rest = Problem(
        _Given(problem.model, problem.precisions(given)),
        problem.types[:, ~here] / left[:, None],
        coarser,
        PowerMean.geometric(coarser / coarser.sum()),
        problem.squared,
    )
    found = given.copy()
    found[~here] = solve(rest)
    return found


class _Search:
    """Weights inside the finest and inside the other tables, and the share of the finest."""

    def __init__(
        self, problem: Problem, mean: PowerMean, finest: Flags, limit: float, weights: NDArray[Any]
    ) -> None:
        self.problem, self.mean, self.finest, self.limit = problem, mean, finest, limit
        self.weights = weights.astype(float)

    def shared(self, share: float) -> PowerMean:
        """The mean with this share of the finest tables."""
        inside = np.where(self.finest, self.weights, 0)
        others = self.weights - inside
        shares = share * inside / inside.sum() + (1 - share) * others / others.sum()
        return replace(self.mean, shares=shares)

    def share_of_finest(self, start: Floats, low: float, high: float) -> tuple[float, Floats]:
        """By bisection: the larger the share, the smaller the finest tables' variances."""
        finest = replace(self.mean, shares=self.finest / self.finest.sum(), order=0.0)
        x, found, best = start, high, start
        while high - low > WIDTH * (1 - low):
            middle = (low + high) / 2
            tried = replace(self.problem, objective=self.shared(middle))
            x = solve(tried, np.maximum(x, 1e-4 * x.max()))
            if finest.value(self.problem.variances(x)) > self.limit:
                low = middle
            else:
                high = found = middle
                best = x
        return min(found, 1 - WIDTH), best

    def grow(self, excess: Floats) -> bool:
        """Let weights of tables beyond their limit grow; whether any weight changed much.

        A finest table answers to its own weight alone, so all of them come to the same excess; a
        coarser table mostly rests on finer ones, and its weight has to grow faster.
        """
        faster = np.maximum(1, self.weights * excess**GROWTH)
        grown = np.where(self.finest, self.weights * excess, faster)
        grown = np.where(self.problem.open, grown, 0)
        changed = not np.allclose(grown, self.weights, rtol=0.02)
        self.weights = grown
        return changed
