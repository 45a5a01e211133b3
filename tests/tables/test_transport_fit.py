"""Whole counts of one node: feasible, the least squares optimum, and the nearest whole numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from congenial.tables.transport_fit import Children, real_fit, whole_fit
from congenial.tables.transport_kernels import nearest_whole


def children(seed, units=4, blocks=(0, 0, 0, 1, 1, 1), groups=(0, 1, 2, 0, 1, 2)):
    """A node whose sums come from a whole table, with noisy targets, some of them negative."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(2.0, (units, len(blocks)))
    blocks = np.array(blocks)
    rows = np.stack([truth[:, blocks == b].sum(axis=1) for b in range(blocks.max() + 1)], axis=1)
    return Children(
        truth + rng.normal(0, 2, truth.shape),
        rng.uniform(0.5, 2, units),
        rng.uniform(0, 3, units),
        np.array(groups),
        blocks,
        rows,
        truth.sum(axis=0),
    )


def objective(one, x):
    """The sum of squares that the fit minimises."""
    off = x - one.targets
    sums = np.stack([off[:, one.groups == g].sum(axis=1) for g in np.unique(one.groups)], axis=1)
    return 0.5 * (one.p @ (off**2).sum(axis=1) + one.q @ (sums**2).sum(axis=1))


@pytest.mark.parametrize("seed", range(6))
def test_the_real_fit_is_the_constrained_optimum(seed):
    one = children(seed)
    x, worst = real_fit(one)
    assert worst < 1e-5
    assert np.all(x >= 0)
    units, cells = one.targets.shape
    equal = [np.kron(np.eye(units), (one.blocks == b).astype(float)) for b in (0, 1)]
    equal.append(np.kron(np.ones((1, units)), np.eye(cells)))
    matrix = np.vstack(equal)
    values = np.concatenate([one.rows[:, 0], one.rows[:, 1], one.columns])
    solved = minimize(
        lambda flat: objective(one, flat.reshape(units, cells)),
        x.reshape(-1) * 0 + 1,
        constraints={"type": "eq", "fun": lambda flat: matrix @ flat - values},
        bounds=[(0, None)] * x.size,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert objective(one, x) <= solved.fun + 1e-4


@given(st.integers(0, 10_000), st.integers(1, 7), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_whole_counts_have_every_sum(seed, units, open_block, root):
    one = children(seed, units)
    if open_block:
        one = Children(
            one.targets,
            one.p,
            one.q,
            one.groups,
            np.where(one.blocks, 0, -1),
            one.rows[:, 1:],
            one.columns,
        )
    if root:
        one = Children(one.targets, one.p, one.q, one.groups, one.blocks, one.rows)
    whole = whole_fit(one)
    assert np.all(whole >= 0)
    if one.columns is not None:
        assert np.array_equal(whole.sum(axis=0), one.columns)
    for block in range(one.rows.shape[1]):
        assert np.array_equal(whole[:, one.blocks == block].sum(axis=1), one.rows[:, block])
    assert np.array_equal(whole, whole_fit(one))


@pytest.mark.parametrize("seed", range(12))
def test_rounding_is_the_nearest_whole_table(seed):
    rng = np.random.default_rng(seed)
    truth = rng.poisson(1.2, (2, 3))
    x = np.maximum(truth + rng.normal(0, 0.8, truth.shape), 0)
    weight = rng.uniform(0.5, 2, 2)
    rows, columns = truth.sum(axis=1), truth.sum(axis=0)
    found, done = nearest_whole(x, np.ones((2, 3), bool), weight, rows, columns)
    assert done
    lines = [
        [one for one in product(range(total + 1), repeat=3) if sum(one) == total] for total in rows
    ]
    best = min(
        float(weight @ ((np.array(table) - x) ** 2).sum(axis=1))
        for table in product(*lines)
        if np.array_equal(np.sum(table, axis=0), columns)
    )
    assert float(weight @ ((found - x) ** 2).sum(axis=1)) == pytest.approx(best)


@pytest.mark.parametrize("columns", [[3, 4], [1, 1]])
def test_sums_that_no_table_has_are_told(columns):
    _, done = nearest_whole(
        np.ones((2, 2)), np.ones((2, 2), bool), np.ones(2), np.array([2, 2]), np.array(columns)
    )
    assert not done
