"""Proportional fitting says that sums can be had only where linear programming does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.optimize import linprog

from congenial.figures.lattice import feasible, fitted_lines

SEED = 20261118


def _solvable(matrix: sp.csr_matrix, sums: np.ndarray) -> bool:
    found = linprog(np.zeros(matrix.shape[1]), A_eq=matrix, b_eq=sums, method="highs")
    return bool(found.status == 0)


def fitted(matrix: sp.csr_matrix, sums: np.ndarray) -> bool:
    return bool(fitted_lines(matrix, sums[np.newaxis])[0])


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


AREA = sp.csr_matrix([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0]])  # people, women, voters


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The sizes of the programmes that a solver is given."""
    seen: list[tuple[int, int]] = []
    real = scipy.optimize.milp

    def milp(c: Any, constraints: Any) -> Any:
        seen.append(constraints.A.shape)
        return real(c, constraints=constraints)

    monkeypatch.setattr(scipy.optimize, "milp", milp)
    return seen


def test_a_solver_sees_only_the_areas_that_are_not_fitted(solved: list[tuple[int, int]]) -> None:
    """Areas of two kinds, many with one person or nobody; some figures that no area has."""
    rng = np.random.default_rng(SEED)
    matrix = sp.block_diag([*[AREA] * 700, *[AREA[:2, :3]] * 50], format="csr")
    people = rng.poisson(rng.choice([0.0, 0.3, 9.0], matrix.shape[1]))
    sums = (matrix @ people).astype(float)
    assert feasible(matrix, sums, sums)
    assert solved == []
    sums[3 * 17 + 1] = sums[3 * 17] + 1  # more women than people
    assert not feasible(matrix, sums, sums)
    assert solved == [(3, 4)]
    low = sums.copy()
    low[3 * 17 + 1] = 0  # at most so many women: a bound is for the solver
    assert feasible(matrix, low, sums)
    assert solved == [(3, 4)] * 2


def test_a_figure_about_nobody_is_zero(solved: list[tuple[int, int]]) -> None:
    matrix = sp.csr_matrix([[1, 1, 0], [0, 0, 0]])
    for sums, able in ([2.0, 0.0], True), ([2.0, 1.0], False):
        assert feasible(matrix, np.array(sums), np.array(sums)) == able
    assert not feasible(sp.csr_matrix((1, 0)), np.ones(1), np.ones(1))
    assert solved == []
