"""Which sums published figures fix, against all tables that agree with them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.optimize import linprog

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.lattice import feasible, fitted_lines
from congenial.figures.statements import Statement, count, margin, total
from congenial.figures.support import support

SCHEMA = Schema.from_dict({"a": {"levels": ["p", "q"]}, "b": {"levels": ["r", "s", "t"]}})
TABLE = np.array([[2, 1, 2], [1, 2, 1]])

CELLS = np.arange(6).reshape(2, 3)
BY_A = [[int(c in row) for c in range(6)] for row in CELLS.tolist()]
BY_B = [[int(c in column) for c in range(6)] for column in CELLS.T.tolist()]

# figures as the program takes them, and as rows of a matrix over the six cells
FIGURES: dict[str, tuple[tuple[Statement, ...], list[list[int]]]] = {
    "nothing": ((), []),
    "total": ((total(),), [[1] * 6]),
    "one margin": ((margin("a"),), BY_A),
    "counts in no margin": (
        (count("b = 'r'", by="a"),),
        [[1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]],
    ),
    "both margins": ((margin("a"), margin("b")), BY_A + BY_B),
    "margins and a cell": (
        (margin("a"), margin("b"), count("a = 'p' and b = 'r'")),
        [*BY_A, *BY_B, [1, 0, 0, 0, 0, 0]],
    ),
}


def conforming(rows: list[list[int]]) -> np.ndarray:
    """Every table with entries of at most 3 on which the rows sum to what they do on TABLE."""
    matrix = np.array([*rows, [0] * 6])
    every = np.array(list(product(range(4), repeat=6)))
    return every[np.all(every @ matrix.T == matrix @ TABLE.reshape(-1), axis=1)]


@pytest.mark.parametrize("name", FIGURES)
def test_fixed_sums_are_those_that_never_differ(name: str):
    figures, rows = FIGURES[name]
    tables = conforming(rows)
    known = support(publish(Table(SCHEMA, SCHEMA.names, TABLE), *figures), SCHEMA.names)
    for chosen in product((0, 1), repeat=6):
        taken = np.array(chosen, dtype=bool)
        values = tables[:, taken].sum(axis=1)
        found = known.fixes(np.where(taken, 0, -1), 1)[0]
        assert found == bool(np.all(values == values[0])), chosen


def test_several_sums_at_once():
    known = support(publish(Table(SCHEMA, SCHEMA.names, TABLE), margin("b")), SCHEMA.names)
    assert known.fixes(np.array([[0, 1, -1], [0, 2, -1]]), 4).tolist() == [True, False, False, True]


def test_the_structure_in_words():
    table = Table(SCHEMA, SCHEMA.names, TABLE)
    told = support(publish(table, margin("a")), SCHEMA.names).words
    assert told.startswith("2 groups of cells whose sum is known; ")
    crossing = support(publish(table, margin("a"), margin("b")), SCHEMA.names).words
    assert crossing.startswith("6 groups of which only sums over several are known; ")


# ---- proportional fitting says that sums can be had only where linear programming does -----------

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
