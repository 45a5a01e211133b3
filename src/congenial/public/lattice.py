"""Exact algebra of mandates on merged cells: which sets nest, what the rank is, what the totals
are.

Cells with equal columns in the mandate matrix are one *atom*; all algebra runs on atoms, so its
size is that of the mandates, not of the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, milp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from congenial.errors import StructureError

Ints = npt.NDArray[np.int64]

LARGEST_EXACT = 4_000_000  # entries of a dense integer matrix handed to exact elimination


def laminar(matrix: sp.csr_matrix) -> tuple[Ints, Ints] | None:
    """For nested or disjoint sets: (each row's parent row, each column's innermost row); -1 for
    none.

    Rows are visited from large to small; a row nests if all its columns have the same innermost row
    so far. Returns None when two rows cross or a weight is not 1. Equal rows nest in each other.
    """
    if not _is_zero_one(matrix):
        return None
    sizes = np.diff(matrix.indptr)
    innermost = np.full(matrix.shape[1], -1, dtype=np.int64)
    parents = np.full(matrix.shape[0], -1, dtype=np.int64)
    for row in np.argsort(-sizes, kind="stable"):
        atoms = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        if not len(atoms):
            continue
        owners = innermost[atoms]
        if np.any(owners != owners[0]):
            return None
        parents[row] = owners[0]
        innermost[atoms] = row
    return parents, innermost


def rank(matrix: sp.csr_matrix) -> int:
    """Exact rank over the rationals.

    Combinatorial for nested sets and for two partitions, so that a million cells are no problem;
    fraction-free elimination otherwise, refused beyond `LARGEST_EXACT` entries.
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
    bipartite = _two_partition_rank(matrix)
    return _exact_rank(matrix) if bipartite is None else bipartite


def _is_zero_one(matrix: sp.csr_matrix) -> bool:
    return bool(np.all(matrix.data == 1))


def _two_partition_rank(matrix: sp.csr_matrix) -> int | None:
    """Rank of the incidence matrix of a bipartite graph: vertices minus connected components."""
    columns = matrix.tocsc()
    if not _is_zero_one(matrix) or not bool(np.all(np.diff(columns.indptr) == 2)):
        return None
    edges = columns.indices.reshape(-1, 2)
    vertices = matrix.shape[0]
    graph = sp.coo_matrix(
        (np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(vertices, vertices)
    )
    components = connected_components(graph, directed=False)[0]
    doubled = sp.coo_matrix(
        (
            np.ones(2 * len(edges), dtype=np.int8),
            (
                np.concatenate([edges[:, 0], edges[:, 0] + vertices]),
                np.concatenate([edges[:, 1] + vertices, edges[:, 1]]),
            ),
        ),
        shape=(2 * vertices, 2 * vertices),
    )
    # A component is bipartite when it splits in two in the double cover.
    if connected_components(doubled, directed=False)[0] != 2 * components:
        return None
    return int(vertices - components)


def _exact_rank(matrix: sp.csr_matrix) -> int:
    import flint

    rows, columns = matrix.shape
    if rows * columns > LARGEST_EXACT:
        raise StructureError(
            f"the mandates form {rows} equations on {columns} groups of cells with no structure we "
            f"know; exact algebra stops at {LARGEST_EXACT} entries.",
            remedy="Mandate nested totals or fewer statistics.",
        )
    dense = matrix.toarray().astype(object)
    return int(flint.fmpz_mat([[int(v) for v in row] for row in dense]).rank())


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
        gram = (matrix.T @ matrix).tocsc().astype(float)
        x = np.rint(spsolve(gram, matrix.T @ values.astype(float))).astype(np.int64)
    return x if np.array_equal(matrix @ x, values) else None


def feasible(matrix: sp.csr_matrix, low: Any, high: Any) -> bool:
    """Whether some real x >= 0 has low <= matrix @ x <= high, by linear programming."""
    if matrix.shape[1] == 0:
        return bool(np.all(low <= 0) and np.all(high >= 0))
    found = milp(
        np.zeros(matrix.shape[1]), constraints=LinearConstraint(matrix.astype(float), low, high)
    )
    return bool(found.status != 2)  # 2: proved infeasible
