"""Proportional fitting says that sums can be had only where linear programming does."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from congenial.figures.lattice import feasible, fitted

SEED = 20261118


def _solvable(matrix: sp.csr_matrix, sums: np.ndarray) -> bool:
    found = linprog(np.zeros(matrix.shape[1]), A_eq=matrix, b_eq=sums, method="highs")
    return bool(found.status == 0)


def test_what_is_fitted_can_be_had() -> None:
    """Random overlapping sums of 7 cells, of true tables and not."""
    rng, seen = np.random.default_rng(SEED), set()
    for _ in range(150):
        matrix = sp.csr_matrix(rng.integers(0, 2, (rng.integers(1, 5), 7)))
        moved = rng.integers(0, 2) * rng.integers(0, 9, matrix.shape[0])
        sums = matrix @ rng.integers(0, 4, 7) + moved
        able = _solvable(matrix, sums.astype(float))
        assert feasible(matrix, sums.astype(float), sums.astype(float)) == able
        assert able or not fitted(matrix, sums)
        seen.add((able, fitted(matrix, sums)))
    assert {(True, True), (False, False)} <= seen


def test_weights_bounds_and_negative_sums_are_left_to_the_solver() -> None:
    assert not fitted(sp.csr_matrix([[1, 2]]), np.array([3]))
    assert not fitted(sp.csr_matrix([[1, 1]]), np.array([-1]))
    low, high = np.array([1.0]), np.array([np.inf])
    assert feasible(sp.csr_matrix([[1, 1]]), low, high)
