"""Projection on the kernel of a sparse matrix of figures, and a solution of its equations.

Both need (A A')^+ v. Figures may follow from each other, so A A' is factorised with a small ridge,
and the ridge is taken out again by refinement: components of v outside the range of A stay bounded
and do not reach A' (A A')^+ v.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats

RIDGE = 1e-7  # relative to the largest diagonal entry of A A'
ROUNDS = 4  # each multiplies the ridge's error by RIDGE / (least positive eigenvalue)


class RowSpace:
    """The span of the rows of a sparse matrix."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csr_matrix(matrix, dtype=float)

    @cached_property
    def _factors(self) -> Any:
        from scipy.sparse.linalg import splu  # its import takes longer than most of its uses

        gram = (self.matrix @ self.matrix.T).tocsc()
        ridge = RIDGE * max(float(gram.diagonal().max(initial=0.0)), 1.0)
        return splu((gram + ridge * sp.identity(gram.shape[0], format="csc")).tocsc())

    def solution(self, values: Any) -> Floats:
        """The shortest x with A x = values, where the equations have a solution.

        >>> RowSpace(np.array([[1, 1], [2, 2]])).solution(np.array([3.0, 6.0])).round(9).tolist()
        [1.5, 1.5]
        """
        solution = np.zeros((self.matrix.shape[1], *np.shape(values)[1:]))
        if self.matrix.shape[0] == 0:
            return solution
        for _ in range(ROUNDS):
            solution += self.matrix.T @ self._factors.solve(values - self.matrix @ solution)
        return solution

    def orthogonal(self, vectors: Any) -> Floats:
        """The part of vectors (columns) in the kernel of the matrix."""
        if self.matrix.shape[0] == 0:
            return np.asarray(vectors, dtype=float)
        return np.asarray(vectors - self.solution(self.matrix @ vectors))


def orthonormal(rows: Any) -> Floats:
    """Orthonormal rows that span the rows given.

    >>> orthonormal(np.array([[1.0, 1.0], [2.0, 2.0]])).shape
    (1, 2)
    """
    rows = np.asarray(rows, dtype=float)
    if 0 in rows.shape:
        return np.zeros((0, rows.shape[1]))
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[sizes > 1e-9 * max(float(sizes[0]), 1e-300)])


def complement(rows: Floats) -> Floats:
    """Columns: an orthonormal basis of what is orthogonal to orthonormal rows."""
    if not len(rows):
        return np.eye(rows.shape[1])
    return np.asarray(np.linalg.svd(rows, full_matrices=True)[2][len(rows) :].T)
