"""Exact linear algebra over fractions and whole numbers: echelon forms, kernels, lattices.

Dense elimination is python-flint's. Figures on many thousands of merged cells are eliminated
sparsely. Whole kernels and lattices are for small matrices (tens of columns) and are reduced in an
order that is fixed here, since noise is drawn along their bases. What structure large figures have
is `lattice`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.errors import StructureError

Ints = npt.NDArray[np.int64]
Matrix = list[list[int]]
Row = dict[int, Fraction]

LARGEST_ELIMINATION = 20_000_000  # entries touched by exact sparse elimination


def row_reduced(
    rows: Sequence[Sequence[Fraction]], columns: int
) -> tuple[list[list[Fraction]], list[int]]:
    """Reduced row echelon form of a dense matrix without zero rows, and its pivot columns.

    >>> rows = [[Fraction(v) for v in row] for row in ([0, 2, 4], [1, 1, 0], [1, 3, 4])]
    >>> reduced, pivots = row_reduced(rows, 3)
    >>> [list(map(int, row)) for row in reduced], pivots
    ([[1, 0, -2], [0, 1, 2]], [0, 1])
    """
    from flint import fmpq, fmpq_mat

    if not rows or not columns:
        return [], []
    entries = [fmpq(v.numerator, v.denominator) for row in rows for v in row]
    form, rank = fmpq_mat(len(rows), columns, entries).rref()
    reduced = [[Fraction(int(v.p), int(v.q)) for v in row] for row in form.tolist()[: int(rank)]]
    return reduced, [next(i for i, v in enumerate(row) if v) for row in reduced]


def echelon(matrix: sp.csr_matrix) -> dict[int, Row]:
    """Reduced row echelon form over the rationals, by sparse elimination: {pivot column: its row}.

    Exact. Refused when the work passes `LARGEST_ELIMINATION`, which figures of any known structure
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
                f"{matrix.shape[0]} exact figures over {matrix.shape[1]} groups of cells are too "
                "irregular for exact computation.",
                remedy="Publish nested totals or margins exactly, or fewer figures.",
            )
    return pivots


def rational_kernel(matrix: sp.csr_matrix) -> sp.csr_matrix:
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


def rational_solution(matrix: sp.csr_matrix, values: Ints) -> list[Fraction]:
    """Some rational solution, by exact elimination, if there is one; the caller verifies it."""
    width = matrix.shape[1]
    augmented = sp.hstack([matrix, sp.csr_matrix(values.reshape(-1, 1))], format="csr")
    x = [Fraction(0)] * width
    for pivot, row in echelon(augmented).items():
        if pivot < width:
            x[pivot] = row.get(width, Fraction(0))
    return x


class IntegerKernel(NamedTuple):
    """Basis of { u whole : matrix u = 0 } (rows), and `coordinates @ u` for a u in it."""

    basis: Ints
    coordinates: Ints


def kernel(matrix: Ints) -> IntegerKernel:
    """All whole solutions of matrix u = 0, not only those of some rational basis.

    Columns are reduced by unimodular steps until the matrix is in echelon form; the steps that
    ended in a zero column are the basis.

    >>> kernel(np.array([[4, 3, 1], [1, 1, 1]])).basis.tolist()
    [[2, -3, 1]]
    """
    size = matrix.shape[1]
    # One row per original column: what is left of it, how it was made, and the inverse's column.
    columns = [[int(v) for v in column] for column in matrix.T]
    made = [[int(i == j) for j in range(size)] for i in range(size)]
    inverse = [[int(i == j) for j in range(size)] for i in range(size)]
    done = 0
    for row in range(matrix.shape[0]):
        while True:
            left = [k for k in range(done, size) if columns[k][row]]
            if len(left) <= 1:
                break
            small = min(left, key=lambda k: abs(columns[k][row]))
            for k in left:
                if k != small:
                    times = columns[k][row] // columns[small][row]
                    columns[k] = _minus(columns[k], times, columns[small])
                    made[k] = _minus(made[k], times, made[small])
                    inverse[small] = _minus(inverse[small], -times, inverse[k])
        if left:
            for rows in (columns, made, inverse):
                rows[done], rows[left[0]] = rows[left[0]], rows[done]
            done += 1
    basis = np.array(made[done:], dtype=np.int64).reshape(-1, size)
    signs = np.where(basis[np.arange(len(basis)), (basis != 0).argmax(axis=1)] < 0, -1, 1)
    signs = signs.reshape(-1, 1)
    return IntegerKernel(
        basis * signs, np.array(inverse[done:], dtype=np.int64).reshape(-1, size) * signs
    )


def _minus(row: list[int], times: int, other: list[int]) -> list[int]:
    return [a - times * b for a, b in zip(row, other, strict=True)]


@dataclass
class Lattice:
    """A lattice grown by generators, kept in echelon form."""

    size: int
    rows: dict[int, list[int]] = field(default_factory=dict)  # pivot column -> row

    def add(self, vectors: Iterable[Sequence[int]]) -> Lattice:
        """Add generators, in place."""
        for vector in vectors:
            self._insert([int(v) for v in vector])
        return self

    def _insert(self, vector: list[int]) -> None:
        for column in range(self.size):
            if not vector[column]:
                continue
            row = self.rows.get(column)
            if row is None:
                self.rows[column] = vector
                return
            while vector[column]:  # Euclid on the two rows
                times = row[column] // vector[column]
                row, vector = vector, _minus(row, times, vector)
            self.rows[column] = row

    def __contains__(self, vector: Sequence[int]) -> bool:
        left = [int(v) for v in vector]
        for column in range(self.size):
            if left[column]:
                row = self.rows.get(column)
                if row is None or left[column] % row[column]:
                    return False
                left = _minus(left, left[column] // row[column], row)
        return True

    @property
    def rank(self) -> int:
        """Dimension."""
        return len(self.rows)

    @property
    def measure(self) -> tuple[int, int]:
        """Dimension and density: of two lattices of which one contains the other, both are equal
        exactly if the lattices are.
        """
        return self.rank, abs(prod(row[column] for column, row in self.rows.items()))


class Missing(NamedTuple):
    """A linear form `weights @ u` that is a multiple of `modulus` on a lattice (0: is zero)."""

    weights: Ints
    modulus: int


def missing(generators: Matrix, coordinates: Ints) -> list[Missing]:
    """Forms that tell which u lie outside the lattice of some generators; empty if none does.

    `generators` are in the coordinates of a kernel of dimension d; the forms apply to u itself.
    From the diagonal (Smith) form of the generators.
    """
    dimension = len(coordinates)
    rows = [list(row) for row in generators]
    # Columns are changed by unimodular steps; column k of the steps is the k-th linear form.
    forms = [[int(i == j) for j in range(dimension)] for i in range(dimension)]
    divisors: list[int] = []
    for at in range(dimension):
        pivot = _clear(rows, forms, at)
        divisors.append(abs(pivot))
    return [
        Missing(np.array(forms[k], dtype=np.int64) @ coordinates, divisor)
        for k, divisor in enumerate(divisors)
        if divisor != 1
    ]


def _clear(rows: Matrix, forms: Matrix, at: int) -> int:
    """Bring the smallest entry to (at, at), clear its row and column; return it, 0 if all are."""
    while True:
        left = [
            (abs(rows[i][j]), i, j)
            for i in range(at, len(rows))
            for j in range(at, len(forms))
            if rows[i][j]
        ]
        if not left:
            return 0
        _, i, j = min(left)
        rows[at], rows[i] = rows[i], rows[at]
        for row in rows:
            row[at], row[j] = row[j], row[at]
        forms[at], forms[j] = forms[j], forms[at]
        pivot = rows[at][at]
        for i in range(at + 1, len(rows)):
            rows[i] = _minus(rows[i], rows[i][at] // pivot, rows[at])
        for j in range(at + 1, len(forms)):
            times = rows[at][j] // pivot
            for row in rows:
                row[j] -= times * row[at]
            forms[j] = _minus(forms[j], times, forms[at])
        if not any(rows[i][at] for i in range(at + 1, len(rows))) and not any(
            rows[at][j] for j in range(at + 1, len(forms))
        ):
            return pivot
