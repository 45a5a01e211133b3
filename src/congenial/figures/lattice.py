"""Exact algebra of mandates on merged cells: which sets nest, what the rank is, what the totals
are.

Cells with equal columns in the mandate matrix are one *atom*; all algebra runs on atoms, so its
size is that of the mandates, not of the table.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm, prod
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from congenial.errors import StructureError

Ints = npt.NDArray[np.int64]

Row = dict[int, Fraction]

LARGEST_ELIMINATION = 20_000_000  # entries touched by exact sparse elimination


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


def echelon(matrix: sp.csr_matrix) -> dict[int, Row]:
    """Reduced row echelon form over the rationals, by sparse elimination: {pivot column: its row}.

    Exact. Refused when the work passes `LARGEST_ELIMINATION`, which mandates of any known structure
    stay far below.
    """
    pivots: dict[int, Row] = {}
    users: dict[int, set[int]] = {}  # column -> pivots whose row has it
    work = 0
    for i in range(matrix.shape[0]):
        start, stop = matrix.indptr[i], matrix.indptr[i + 1]
        row: Row = {
            int(c): Fraction(int(v))
            for c, v in zip(matrix.indices[start:stop], matrix.data[start:stop], strict=True)
        }
        for column in [c for c in row if c in pivots]:
            work += len(pivots[column])
            _subtract(row, pivots[column], row[column])
        if not row:
            continue
        pivot = min(row)
        row = {c: v / row[pivot] for c, v in row.items()}
        for other in tuple(users.get(pivot, ())):
            work += len(row)
            changed = _subtract(pivots[other], row, pivots[other][pivot])
            for c in changed:
                (users.setdefault(c, set()).add if c in pivots[other] else users[c].discard)(other)
        pivots[pivot] = row
        for c in row:
            users.setdefault(c, set()).add(pivot)
        if work > LARGEST_ELIMINATION:
            raise StructureError(
                f"{matrix.shape[0]} mandated figures on {matrix.shape[1]} groups of cells have no "
                "structure that exact algebra can use.",
                remedy="Mandate nested totals, margins, or fewer statistics.",
            )
    return pivots


def kernel(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Integer vectors, one per row, that span { z : matrix @ z = 0 } over the rationals."""
    form = echelon(matrix)
    free = sorted(set(range(matrix.shape[1])) - set(form))
    rows: dict[int, Row] = {column: {column: Fraction(1)} for column in free}
    for pivot, reduced in form.items():
        for column, value in reduced.items():
            if column != pivot:  # a reduced row has no other pivot's column
                rows[column][pivot] = -value
    entries = []
    for i, row in enumerate(rows.values()):
        whole = lcm(*(value.denominator for value in row.values()))
        entries += [(i, column, int(value * whole)) for column, value in row.items()]
    at = np.array(entries, dtype=np.int64).reshape(-1, 3)
    return sp.csr_matrix((at[:, 2], (at[:, 0], at[:, 1])), shape=(len(rows), matrix.shape[1]))


def _subtract(row: Row, other: Row, factor: Fraction) -> list[int]:
    """row -= factor * other, in place; which columns appeared or vanished."""
    changed = []
    for c, v in other.items():
        value = row.get(c, Fraction(0)) - factor * v
        if bool(value) != (c in row):
            changed.append(c)
        if value:
            row[c] = value
        else:
            row.pop(c, None)
    return changed


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
        found = _exact_solution(matrix, values)
        if any(value.denominator != 1 for value in found):
            return None
        x = np.array([int(value) for value in found], dtype=np.int64)
    return x if np.array_equal(matrix @ x, values) else None


def _exact_solution(matrix: sp.csr_matrix, values: Ints) -> list[Fraction]:
    """Some rational solution, by exact elimination, if there is one; the caller verifies it."""
    width = matrix.shape[1]
    augmented = sp.hstack([matrix, sp.csr_matrix(values.reshape(-1, 1))], format="csr")
    x = [Fraction(0)] * width
    for pivot, row in echelon(augmented).items():
        if pivot < width:
            x[pivot] = row.get(width, Fraction(0))
    return x


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
    return np.array([float(value) for value in _exact_solution(matrix, values)])


def feasible(matrix: sp.csr_matrix, low: Any, high: Any) -> bool:
    """Whether some real x >= 0 has low <= matrix @ x <= high, by linear programming."""
    from scipy.optimize import LinearConstraint, milp

    if 0 in matrix.shape:
        return bool(np.all(low <= 0) and np.all(high >= 0))
    found = milp(
        np.zeros(matrix.shape[1]), constraints=LinearConstraint(matrix.astype(float), low, high)
    )
    return bool(found.status != 2)  # 2: proved infeasible
