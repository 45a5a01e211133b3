"""Whole-number linear algebra on small matrices: kernels, lattices and what is missing from them.

Pure Python integers, exact, for the merged matrices of mandates (tens of columns). The rank and the
totals of large mandates are `lattice`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from congenial.figures.lattice import Ints

Matrix = list[list[int]]


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
