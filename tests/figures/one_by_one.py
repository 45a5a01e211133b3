"""The structure of figures worked out without sharing anything: plain elimination over fractions,
one matrix at a time, and blocks from fundamental circuits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np


def reduced(matrix):
    """Reduced row echelon form of a dense whole matrix, and its pivot columns."""
    rows = [[Fraction(int(v)) for v in row] for row in matrix]
    pivots, at = [], 0
    for column in range(matrix.shape[1]):
        found = next((i for i in range(at, len(rows)) if rows[i][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        rows[at] = [v / rows[at][column] for v in rows[at]]
        for i in range(len(rows)):
            if i != at and rows[i][column]:
                factor = rows[i][column]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[at], strict=True)]
        pivots.append(column)
        at += 1
    return rows[:at], pivots


def tied(matrix):
    """Sets of columns tied by circuits, as sorted tuples: {columns of one block}."""
    rows, pivots = reduced(matrix)
    joined = {i: {i} for i in range(matrix.shape[1])}
    for column in range(matrix.shape[1]):
        if column in pivots:
            continue
        circuit = [p for row, p in zip(rows, pivots, strict=True) if row[column]]
        together = set.union(joined[column], *(joined[p] for p in circuit))
        for one in together:
            joined[one] = together
    return {tuple(sorted(one)) for one in joined.values() if len(one) > 1}


def areas(rng, number):
    """A matrix of several kinds of areas, rows and columns shuffled: some equal, some nearly so.

    Nearly: the same with one weight changed, one row left out, or one column doubled.
    """
    made = []
    for _ in range(int(rng.integers(1, 4))):
        base = rng.integers(-1, 3, size=(int(rng.integers(1, 4)), int(rng.integers(1, 5))))
        made += [base] * int(rng.integers(1, number))
        other = base.copy()
        other[-1, -1] += 1
        made += [other, base[1:], np.hstack([base, base[:, :1]])]
    made = [made[i] for i in rng.permutation(len(made)) if made[i].size]
    rows, columns = sum(len(one) for one in made), sum(one.shape[1] for one in made)
    matrix, at = np.zeros((rows, columns), dtype=np.int64), (0, 0)
    for one in made:
        matrix[at[0] : at[0] + len(one), at[1] : at[1] + one.shape[1]] = one
        at = (at[0] + len(one), at[1] + one.shape[1])
    return matrix[rng.permutation(rows)][:, rng.permutation(columns)]


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
                row, vector = vector, [a - times * b for a, b in zip(row, vector, strict=True)]
            self.rows[column] = row

    def __contains__(self, vector: Sequence[int]) -> bool:
        left = [int(v) for v in vector]
        for column in range(self.size):
            if left[column]:
                row = self.rows.get(column)
                if row is None or left[column] % row[column]:
                    return False
                times = left[column] // row[column]
                left = [a - times * b for a, b in zip(left, row, strict=True)]
        return True
