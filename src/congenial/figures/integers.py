"""Exact linear algebra over fractions and whole numbers: echelon forms, kernels, lattices.

Dense elimination and Hermite forms are python-flint's. Figures on many thousands of merged cells
are eliminated sparsely. Whole kernels and lattices are for small matrices (tens of columns). What
structure large figures have is `lattice`'s business.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.errors import StructureError

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


def hermite(rows: Ints) -> Ints:
    """Hermite normal form of the lattice that whole vectors generate, without zero rows.

    It is the same for any generators of a lattice, so two lattices are equal if their forms are.

    >>> hermite(np.array([[2, 4], [3, 5], [5, 9]])).tolist()
    [[1, 1], [0, 2]]
    """
    from flint import fmpz_mat

    if not rows.size:
        return np.zeros((0, rows.shape[1]), dtype=np.int64)
    form = fmpz_mat(rows.tolist()).hnf()
    try:
        whole = np.array([[int(v) for v in row] for row in form.tolist()], dtype=np.int64)
    except OverflowError:
        raise StructureError(
            "the exact figures lead to whole numbers beyond 64 bits.",
            remedy="Publish fewer weighted figures that cross, or smaller weights.",
        ) from None
    return whole[np.any(whole, axis=1)]


class IntegerKernel(NamedTuple):
    """Basis of { u whole : matrix u = 0 } (rows), and `coordinates @ u` for a u in it."""

    basis: Ints
    coordinates: Ints


def kernel(matrix: Ints) -> IntegerKernel:
    """All whole solutions of matrix u = 0, not only those of some rational basis.

    The Hermite form of [M' | I] is [U M' | U] with U unimodular: rows of U that make M' vanish are
    a basis of the solutions, and the same columns of the inverse of U give coordinates in it. The
    form is unique, so noise that is drawn along the basis is the same everywhere.

    >>> kernel(np.array([[4, 3, 1], [1, 1, 1]])).basis.tolist()
    [[2, -3, 1]]
    """
    from flint import fmpz_mat

    figures, size = matrix.shape
    if not size:
        none = np.zeros((0, 0), dtype=np.int64)
        return IntegerKernel(none, none)
    form = hermite(np.hstack([matrix.T.astype(np.int64), np.identity(size, dtype=np.int64)]))
    rank = int(np.count_nonzero(form[:, :figures].any(axis=1)))
    steps = form[:, figures:]
    inverse = fmpz_mat(steps.tolist()).inv().tolist()
    whole = np.array([[int(v.p) for v in row] for row in inverse], dtype=np.int64)
    return IntegerKernel(steps[rank:], whole[:, rank:].T)


class Missing(NamedTuple):
    """A linear form `weights @ u` that is a multiple of `modulus` on a lattice (0: is zero)."""

    weights: Ints
    modulus: int


def missing(generators: Ints, coordinates: Ints) -> list[Missing]:
    """Forms that tell which u lie outside the lattice of some generators; empty if none does.

    `generators` are in the coordinates of a kernel; the forms apply to u itself. A vector c is in a
    lattice of Hermite form H with pivot columns P if it is orthogonal to the kernel of H, and if
    c_P H_P^-1 is whole: column k of that inverse, times its common denominator, is a form with this
    denominator as its modulus.
    """
    from flint import fmpz_mat

    form = hermite(generators)
    pivots = (form != 0).argmax(axis=1)
    forms = [(row, 0) for row in kernel(form).basis]
    square = form[:, pivots]
    inverse = fmpz_mat(square.tolist()).inv().tolist() if len(pivots) else []
    for column in zip(*inverse, strict=True):
        modulus = lcm(*(int(v.q) for v in column))
        if modulus > 1:
            weights = np.zeros(len(coordinates), dtype=np.int64)
            weights[pivots] = [int(v * modulus) for v in column]
            forms.append((weights, modulus))
    return [Missing(weights @ coordinates, modulus) for weights, modulus in forms]
