"""The two-stage baseline against a solver, and against all roundings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from congenial.errors import StructureError
from congenial.papers.partially_private_data.pennsylvania import nearest_real, rounded, two_stage

SEED = 5


def test_nearest_real_is_the_projection():
    rng = np.random.default_rng(SEED)
    for _ in range(6):
        y, total = rng.normal(2, 4, 6), int(rng.integers(0, 9))
        c, d = nearest_real(y[None, :3], y[None, 3:], total)
        found = np.concatenate([c[0], d[0]])
        rules = [
            {"type": "eq", "fun": lambda v, t=total: v[:3].sum() - t},
            {"type": "ineq", "fun": lambda v: v[:3] - v[3:]},
            {"type": "ineq", "fun": lambda v: v[3:]},
        ]
        best = minimize(
            lambda v, y=y: ((v - y) ** 2).sum(), np.full(6, total / 3), constraints=rules,
            method="SLSQP", options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        assert found[:3].sum() == pytest.approx(total, abs=1e-8)
        assert ((found - y) ** 2).sum() <= best.fun + 1e-6
        assert found == pytest.approx(best.x, abs=1e-4)


def test_rounding_is_optimal():
    rng = np.random.default_rng(SEED)
    for _ in range(40):
        total = int(rng.integers(1, 8))
        c, d = nearest_real(rng.normal(1, 3, (1, 4)), rng.normal(1, 2, (1, 4)), total)
        y, z = rounded(c, d, total)
        floors = np.floor(np.round(np.concatenate([c[0], d[0]]), 5))
        best = min(
            np.abs(floors + up - np.concatenate([c[0], d[0]])).sum()
            for up in np.array(list(itertools.product((0, 1), repeat=8)))
            if (floors + up)[:4].sum() == total and ((floors + up)[:4] >= (floors + up)[4:]).all()
        )
        cost = np.abs(np.concatenate([y[0], z[0]]) - np.concatenate([c[0], d[0]])).sum()
        assert cost == pytest.approx(best, abs=1e-4)


def test_values_just_below_an_integer_are_not_cut():
    y, z = rounded([[2.9999999999, 1.0000000001]], [[0.9999999999, 0.0]], 4)
    assert y.tolist() == [[3, 1]]
    assert z.tolist() == [[1, 0]]


def test_many_rows_at_once():
    rng = np.random.default_rng(SEED)
    x = rng.poisson(50, 67)
    y, z = two_stage(x + rng.normal(0, 300, (40, 67)), rng.normal(0, 300, (40, 67)), int(x.sum()))
    assert (y.sum(axis=1) == x.sum()).all()
    assert (z >= 0).all()
    assert (y >= z).all()
    with pytest.raises(StructureError):
        two_stage([[1.0]], [[0.0]], -1)
