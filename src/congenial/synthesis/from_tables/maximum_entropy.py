"""The distribution of maximum entropy that fits noisy tables and keeps exact figures.

Among all p, the one nearest to a product of one-way tables that agrees with the figures and is
drawn towards the measured tables y_q with standard deviation s_q. Its dual is

    min over t of  n log Z(theta) - sum_q <t_q, y_q> + (lambda / 2) sum_q s_q^2 ||t_q||^2,
    theta = log base + sum_q M_q' t_q,                 s_q = 0 for figures,

smooth and convex, with gradient n M_q p_t - y_q + lambda s_q^2 t_q: one pass over a junction tree.
After L-BFGS, proportional fitting brings the figures to `TOLERANCE`. What is 0 by a figure without
negative weights is 0 in every cell it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from congenial.errors import StructureError
from congenial.synthesis.from_tables.junction_tree import Axes, JunctionTree, Reals

LAMBDA = 0.003  # fixed beforehand; looking at the data to choose it would have to be paid for
TOLERANCE = 1e-9  # of n, for figures
FITTING_STEPS = 2_000  # of proportional fitting
STEPS = 400  # of L-BFGS


@dataclass(frozen=True, eq=False)
class FitTarget:
    """What a table over `axes` should be: `matrix @ cells = values`, known up to `deviation`.

    Without a matrix the values are the cells themselves. `deviation` 0: an exact figure.
    """

    axes: Axes
    values: Reals
    deviation: float = 0.0
    matrix: sp.csr_matrix | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether it is a figure rather than a measurement."""
        return self.deviation == 0

    def seen(self, cells: Reals) -> Reals:
        """What a table shows of this."""
        flat = cells.reshape(-1)
        return flat if self.matrix is None else self.matrix @ flat

    def back(self, weights: Reals) -> Reals:
        """Weights of the values as weights of cells."""
        return weights if self.matrix is None else self.matrix.T @ weights

    @property
    def empty(self) -> Any:
        """Cells that an exact 0 without negative weights leaves empty."""
        if not self.exact:
            return None
        if self.matrix is None:
            return self.values == 0
        plain = np.asarray(self.matrix.min(axis=1).todense()).reshape(-1) >= 0
        zeros = self.matrix[np.flatnonzero(plain & (self.values == 0))]
        return np.asarray(abs(zeros).sum(axis=0)).reshape(-1) > 0

    @property
    def partition(self) -> bool:
        """Whether no cell is counted twice and none with a weight but 1."""
        if self.matrix is None:
            return True
        return bool(np.all(self.matrix.data == 1) and self.matrix.getnnz(axis=0).max(initial=0) < 2)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted distribution of `people` records: probabilities by clique."""

    tree: JunctionTree
    people: float
    potentials: tuple[Reals, ...] = field(repr=False)
    targets: tuple[FitTarget, ...] = field(repr=False)
    weights: Reals = field(repr=False)

    @cached_property
    def beliefs(self) -> tuple[Reals, ...]:
        """Probabilities of every clique's cells."""
        return tuple(self.tree.beliefs(self.potentials)[1])

    def probabilities(self, axes: Sequence[str]) -> Reals:
        """The marginal of attributes that one clique holds."""
        home = self.tree.home(axes)
        return self.tree.summed(self.beliefs[home], home, axes)

    @property
    def residual(self) -> float:
        """How far figures are missed, as a share of all people."""
        exact = [target for target in self.targets if target.exact]
        missed = [
            np.abs(self.people * target.seen(self.probabilities(target.axes)) - target.values).max(
                initial=0
            )
            for target in exact
        ]
        return float(max(missed, default=0.0) / self.people)


def fit(
    sizes: Mapping[str, int],
    targets: Sequence[FitTarget],
    people: float,
    *,
    first: Sequence[str] = (),
    start: Fitted | None = None,
    steps: int = STEPS,
) -> Fitted:
    """The distribution of maximum entropy for these targets; figures are kept.

    `first`: attributes that the first clique must hold together. `start`: a fit to the first of
    these targets, from which to go on; `steps`: the most steps that L-BFGS takes. A StructureError
    says where figures contradict each other or a clique is too large.

    >>> sex = FitTarget(("sex",), np.array([30.0, 70.0]))
    >>> both = FitTarget(("sex", "ill"), np.array([20.0, 9.0, 45.0, 28.0]), deviation=2.0)
    >>> found = fit({"sex": 2, "ill": 2}, [sex, both], people=100)
    >>> (100 * found.probabilities(("sex",))).round(6)
    array([30., 70.])
    """
    tree = JunctionTree.of(sizes, [target.axes for target in targets], first)
    problem = _Dual(tree, tuple(targets), people)
    before = np.zeros(0) if start is None else start.weights
    solution = minimize(
        problem.value_and_gradient,
        np.append(before, np.zeros(problem.size - len(before))),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "maxcor": 20, "gtol": 1e-7 * people, "ftol": 1e-13},
    )
    potentials = problem.potentials(solution.x)
    exact = [target for target in targets if target.exact and target.partition]
    tables = _proportional(tree, potentials, exact, people)
    fitted = Fitted(tree, people, tuple(tables), tuple(targets), solution.x)
    if fitted.residual > 1e-4:
        raise StructureError(
            "no distribution fits all figures together: the nearest one misses them by "
            f"{fitted.residual:.1e} of all records.",
            remedy="Compute the figures from one dataset, and name all their attributes.",
        )
    return fitted


@dataclass(frozen=True, eq=False)
class _Dual:
    """The dual, its gradient, and where each target lives in the tree."""

    tree: JunctionTree
    targets: tuple[FitTarget, ...]
    people: float

    @cached_property
    def homes(self) -> list[int]:
        """The clique of each target."""
        return [self.tree.home(target.axes) for target in self.targets]

    @cached_property
    def bounds(self) -> Any:
        """Where each target's weights start and end."""
        return np.cumsum([0, *(len(target.values) for target in self.targets)])

    @property
    def size(self) -> int:
        """Number of weights."""
        return int(self.bounds[-1])

    @cached_property
    def base(self) -> list[Reals]:
        """The log of a product of one-way tables, as far as measured, and structural zeros."""
        tables = [np.zeros(self.tree.shape(clique)) for clique in self.tree.cliques]
        for name in self.tree.sizes:
            columns = [t for t in self.targets if t.axes == (name,) and t.matrix is None]
            if columns:
                best = min(columns, key=lambda t: t.deviation)
                shares = np.maximum(best.values, 0.5) / np.maximum(best.values, 0.5).sum()
                home = self.tree.home((name,))
                tables[home] = tables[home] + self.tree.spread(np.log(shares), (name,), home)
        for target, home in zip(self.targets, self.homes, strict=True):
            empty = target.empty
            if empty is not None and np.any(empty):
                never = np.where(empty, -np.inf, 0.0).reshape(self.tree.shape(target.axes))
                tables[home] = tables[home] + self.tree.spread(never, target.axes, home)
        return tables

    def potentials(self, weights: Reals) -> list[Reals]:
        """Log potentials of the cliques at some weights."""
        tables = list(self.base)
        for k, (target, home) in enumerate(zip(self.targets, self.homes, strict=True)):
            part = target.back(weights[self.bounds[k] : self.bounds[k + 1]])
            table = part.reshape(self.tree.shape(target.axes))
            tables[home] = tables[home] + self.tree.spread(table, target.axes, home)
        return tables

    def value_and_gradient(self, weights: Reals) -> tuple[float, Reals]:
        """The dual and its gradient."""
        log_z, beliefs = self.tree.beliefs(self.potentials(weights))
        value, gradient = self.people * log_z, np.empty_like(weights)
        for k, (target, home) in enumerate(zip(self.targets, self.homes, strict=True)):
            where = slice(self.bounds[k], self.bounds[k + 1])
            t, ridge = weights[where], LAMBDA * target.deviation**2
            fitted = target.seen(self.tree.summed(beliefs[home], home, target.axes))
            value += float(ridge / 2 * t @ t - t @ target.values)
            gradient[where] = self.people * fitted - target.values + ridge * t
        return value, gradient


def _proportional(
    tree: JunctionTree, potentials: list[Reals], exact: Sequence[FitTarget], people: float
) -> list[Reals]:
    """Proportional fitting: each figure's cells are scaled to it, in turn, until all agree."""
    tables = list(potentials)
    for _ in range(FITTING_STEPS):
        worst = 0.0
        for target in exact:
            home = tree.home(target.axes)
            beliefs = tree.beliefs(tables)[1][home]
            fitted = people * target.seen(tree.summed(beliefs, home, target.axes))
            worst = max(worst, float(np.abs(fitted - target.values).max(initial=0)))
            table = _steps(target, fitted, people).reshape(tree.shape(target.axes))
            tables[home] = tables[home] + tree.spread(table, target.axes, home)
        if worst <= TOLERANCE * people:
            break
    return tables


def _steps(one: FitTarget, shown: Reals, people: float) -> Reals:
    """The log of what each cell is scaled by; cells that are not counted share what is left."""
    steps = one.back(_log_ratio(one.values, shown))
    uncounted = one.back(np.ones_like(shown)) == 0
    rest = _log_ratio(np.array(people - one.values.sum()), np.array(people - shown.sum()))
    return steps + np.where(uncounted, rest, 0.0)


def _log_ratio(wanted: Any, shown: Any) -> Reals:
    """log(wanted / shown), 0 where one of them is 0 and scaling has no meaning."""
    both = (wanted > 0) & (shown > 0)
    return np.log(np.where(both, wanted, 1.0)) - np.log(np.where(both, shown, 1.0))
