"""Exact algebra of figures on merged cells: which sets nest, what the rank is, what the totals
are.

Cells with equal columns in the figure matrix are one *atom*; all algebra runs on atoms, so its
size is that of the figures, not of the table.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from congenial.figures.integers import Ints as Ints  # named from here by those who read figures
from congenial.figures.integers import echelon, rational_solution


def laminar(matrix: sp.csr_matrix) -> tuple[Ints, Ints] | None:
    """For nested or disjoint sets: (each row's parent row, each column's innermost row); -1 for
    none.

    Rows are visited from large to small; a row nests if all its columns have the same innermost row
    so far. Returns None when two rows cross or a weight is not 1. Equal rows nest in each other.
    """
    if not _is_zero_one(matrix):
        return None
    matrix = matrix.sorted_indices()
    sizes = np.diff(matrix.indptr)
    innermost = np.full(matrix.shape[1], -1, dtype=np.int64)
    parents = np.full(matrix.shape[0], -1, dtype=np.int64)
    for size in np.unique(sizes[sizes > 0])[::-1]:
        rows = np.flatnonzero(sizes == size)
        atoms = matrix.indices[matrix.indptr[rows][:, np.newaxis] + np.arange(size)]
        if not _nest(rows, atoms, parents, innermost):
            return None
    return parents, innermost


def _nest(rows: Ints, atoms: Ints, parents: Ints, innermost: Ints) -> bool:
    """Enter rows of one size, whose sorted columns are `atoms`, below those entered before; False
    if one crosses another. Two rows of one size are equal, disjoint, or cross.
    """
    owners = innermost[atoms]
    if np.any(owners != owners[:, :1]):
        return False
    order = np.argsort(atoms[:, 0], kind="stable")
    again = np.r_[False, np.diff(atoms[order, 0]) == 0]  # begins as the row before it does
    repeats = np.flatnonzero(again)
    if np.any(atoms[order[repeats]] != atoms[order[repeats - 1]]):
        return False
    distinct = atoms[order[~again]]
    if len(np.unique(distinct)) != distinct.size:
        return False
    parents[rows[order]] = owners[order, 0]
    parents[rows[order[repeats]]] = rows[order[repeats - 1]]
    last = np.r_[~again[1:], True]
    innermost[atoms[order[last]]] = rows[order[last], np.newaxis]
    return True


def rank(matrix: sp.csr_matrix) -> int:
    """Exact rank over the rationals.

    Combinatorial for nested sets and for two partitions, so that a million cells are no problem;
    exact sparse elimination otherwise.
    """
    matrix = matrix[np.diff(matrix.indptr) > 0]
    if matrix.shape[0] == 0:
        return 0
    nested = laminar(matrix)
    if nested is not None:
        # A nested family spans the indicators of "a set without its children", one per innermost
        # row.
        innermost = nested[1]
        return len(np.unique(innermost[innermost >= 0]))
    sides = partitions(matrix)
    if sides is not None and sides.shape[1] == 2:
        # Incidence matrix of a bipartite graph: vertices minus connected components.
        return int(matrix.shape[0] - bipartite_components(sides, matrix.shape[0])[0])
    if sides is not None and is_grid(sides):
        return int(matrix.shape[0] - sides.shape[1] + 1)
    return len(echelon(matrix))


def bipartite_components(sides: Ints, rows: int) -> tuple[int, Ints]:
    """Connected components of the graph whose vertices are the rows, its edges the columns."""
    graph = sp.coo_matrix(
        (np.ones(len(sides), dtype=np.int8), (sides[:, 0], sides[:, 1])), shape=(rows, rows)
    )
    number, of_row = connected_components(graph, directed=False)
    return int(number), of_row


def is_grid(sides: Ints) -> bool:
    """Whether the columns are all combinations of the rows of each side, once each."""
    levels = [len(np.unique(side)) for side in sides.T]
    return len(sides) == prod(levels) and len(np.unique(sides, axis=0)) == len(sides)


def _is_zero_one(matrix: sp.csr_matrix) -> bool:
    return bool(np.all(matrix.data == 1))


def partitions(matrix: sp.csr_matrix) -> Ints | None:
    """If the rows are p partitions of the columns, one after another: each column's row on each
    side.

    Every column is then in exactly one row of each partition. None otherwise.
    """
    columns = matrix.tocsc()
    sizes = np.diff(columns.indptr)
    if not _is_zero_one(matrix) or len(sizes) == 0 or np.any(sizes != sizes[0]) or sizes[0] == 0:
        return None
    sides = columns.indices.reshape(len(sizes), -1).astype(np.int64)
    apart = all(sides[:, k].max() < sides[:, k + 1].min() for k in range(sides.shape[1] - 1))
    return sides if apart else None


def atom_totals(matrix: sp.csr_matrix, values: Ints) -> Ints | None:
    """The unique atom totals x with `matrix @ x = values`, or None when there is no whole solution.

    Needs full column rank. The candidate is verified in integers, so a wrong one cannot pass.
    """
    nested = laminar(matrix)
    if nested is not None:
        parents, innermost = nested
        remaining = values.astype(np.int64).copy()  # a set's total minus what its children hold
        children = np.flatnonzero(parents >= 0)
        np.subtract.at(remaining, parents[children], values[children])
        x = remaining[innermost]
    else:
        found = rational_solution(matrix, values)
        if any(value.denominator != 1 for value in found):
            return None
        x = np.array([int(value) for value in found], dtype=np.int64)
    return x if np.array_equal(matrix @ x, values) else None


def solution(matrix: sp.csr_matrix, values: Ints) -> Any:
    """Some real x with `matrix @ x = values`; nothing is promised about its signs."""
    sides = partitions(matrix)
    if sides is not None and sides.shape[1] == 2:
        of_row = bipartite_components(sides, matrix.shape[0])[1]
        first = np.unique(sides[:, 0])
        totals = np.bincount(of_row[first], weights=values[first], minlength=int(of_row.max()) + 1)
        share = values[sides].astype(float).prod(axis=1)  # rows times columns over the total
        whole = np.maximum(totals[of_row[sides[:, 0]]], 1)
        if np.allclose(matrix @ (share / whole), values, atol=0.1, rtol=0):
            return share / whole
    elif sides is not None and is_grid(sides):  # margins of one table: as if independent
        people = max(float(values[np.unique(sides[:, 0])].sum()), 1.0)
        share = people * (values[sides] / people).prod(axis=1)
        if np.allclose(matrix @ share, values, atol=0.1, rtol=0):
            return share
    return np.array([float(value) for value in rational_solution(matrix, values)])


def feasible(matrix: sp.csr_matrix, low: Any, high: Any) -> bool:
    """Whether some real x >= 0 has low <= matrix @ x <= high, by linear programming."""
    from scipy.optimize import LinearConstraint, milp

    if 0 in matrix.shape:
        return bool(np.all(low <= 0) and np.all(high >= 0))
    found = milp(
        np.zeros(matrix.shape[1]), constraints=LinearConstraint(matrix.astype(float), low, high)
    )
    return bool(found.status != 2)  # 2: proved infeasible
