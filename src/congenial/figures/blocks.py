"""Blocks: how figures that cross split into independent parts, and what each part allows.

Atoms are grouped into *blocks*, the connected components of the figures' matroid: inside a block
the atom totals are tied to each other, between blocks nothing is. An atom on its own has a known
total. A block is *one-way* when its atoms are all combinations of the levels of a few features and
exactly the features' margins are published, as in "total, female and voting age": four atoms, two
features.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.figures import lattice
from congenial.figures.integers import Ints, echelon, rational_kernel

MOST_ATOMS = 12  # of a block whose rows are tried in other words: all their sets are listed
LARGEST_WEIGHT = 9  # in such rows: minors are then below 2^54 (Hadamard), and sums of 12 exact


@dataclass(frozen=True)
class Block:
    """Some atoms whose totals are tied: `atoms` (columns of the matrix), and its features.

    `features` holds, for a one-way block, each atom's level on each feature (atoms x features);
    None for any other block.
    """

    atoms: Ints
    features: Ints | None

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each feature."""
        assert self.features is not None
        return tuple(int(column.max()) + 1 for column in self.features.T)


def blocks(matrix: sp.csr_matrix) -> list[Block]:
    """The blocks of two or more atoms; atoms in none of them have known totals."""
    sides = lattice.partitions(matrix)
    if sides is not None and sides.shape[1] == 2:
        return _two_way(sides, matrix.shape[0])
    if sides is not None and sides.shape[1] > 2 and lattice.is_grid(sides):
        grid = [np.unique(side, return_inverse=True)[1] for side in sides.T]
        varying = [level for level in grid if level.max() > 0]
        return [Block(np.arange(len(sides)), np.stack(varying, axis=1))]
    known: dict[int, Ints | None] = {}
    found, parts = [], _components(matrix)
    for atoms, rows in zip(parts, rows_of(matrix, parts), strict=True):
        if id(rows) not in known:
            known[id(rows)] = _one_way(rows)
        found.append(Block(atoms, known[id(rows)]))
    return found


def _two_way(edges: Ints, rows: int) -> list[Block]:
    """Two partitions of the atoms: (possibly several) two-way tables, never made dense."""
    of_row = lattice.bipartite_components(edges, rows)[1]
    of_atom = of_row[edges[:, 0]]
    order = np.argsort(of_atom, kind="stable")
    found = []
    for atoms in np.split(order, np.flatnonzero(np.diff(of_atom[order])) + 1):
        sides = [np.unique(side, return_inverse=True) for side in edges[atoms].T]
        if len(atoms) > 1:
            complete = len(atoms) == prod(len(levels) for levels, _ in sides)
            grid = np.stack([level for _, level in sides], axis=1)
            tied = min(len(levels) for levels, _ in sides) > 1
            if tied or not complete:
                found.append(Block(np.sort(atoms), grid[np.argsort(atoms)] if complete else None))
    return found


def rows_of(matrix: sp.csr_matrix, parts: list[Ints]) -> list[sp.csr_matrix]:
    """For each part of the atoms, the rows that touch it, restricted to it.

    Parts of which the same is said share one matrix: thousands of counties have a few patterns.
    """
    columns, known, found = matrix.tocsc(), dict[tuple[Any, ...], sp.csr_matrix](), []
    for atoms in parts:
        starts, stops = columns.indptr[atoms], columns.indptr[atoms + 1]
        entries = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
        rows, row = np.unique(columns.indices[entries], return_inverse=True)
        column = np.repeat(np.arange(len(atoms)), stops - starts)
        data, shape = columns.data[entries], (len(rows), len(atoms))
        key = (shape, row.tobytes(), column.tobytes(), data.tobytes())
        if key not in known:
            known[key] = sp.csr_matrix((data, (row, column)), shape=shape, dtype=np.int64)
        found.append(known[key])
    return found


def _components(matrix: sp.csr_matrix) -> list[Ints]:
    """Connected components of the matroid of columns, through fundamental circuits.

    A column outside a basis is tied to the basis columns it depends on; the components of that
    graph do not depend on the basis.
    """
    parent = list(range(matrix.shape[1]))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for circuit in _circuits(matrix):
        first = root(circuit[0])
        for atom in circuit[1:]:
            parent[root(atom)] = first
    roots = np.array([root(i) for i in range(matrix.shape[1])], dtype=np.int64)
    order = np.argsort(roots, kind="stable")
    cuts = np.flatnonzero(np.diff(roots[order])) + 1
    return [np.sort(part) for part in np.split(order, cuts) if len(part) > 1]


def _circuits(matrix: sp.csr_matrix) -> list[list[int]]:
    """Fundamental circuits: each column outside the basis with the basis columns it depends on."""
    circuits: dict[int, list[int]] = {}
    for pivot, row in echelon(matrix).items():
        for column in row:
            if column != pivot:
                circuits.setdefault(column, [column]).append(pivot)
    return list(circuits.values())


def margins(features: Ints) -> Ints:
    """The margins of a one-way block as rows of 0 and 1 over its atoms, one for each level."""
    return np.concatenate([np.arange(f.max() + 1)[:, None] == f for f in features.T]).astype(int)


def _one_way(rows: sp.csr_matrix) -> Ints | None:
    """Levels of each atom on features whose margins are exactly what the rows say, if any.

    Rows that are sets of atoms are taken as they are; others may say the same in other words
    (sums and differences of margins), which is tried for small blocks.
    """
    sets = rows
    if np.any(rows.data != 1):
        if rows.shape[1] > MOST_ATOMS or np.abs(rows.data).max() > LARGEST_WEIGHT:
            return None
        sets = _least_sets(rows)
    if np.any(np.diff(sets.tocsc().indptr) == 0):  # then the total need not follow
        return None
    found = _features(sets)
    same = found is not None and lattice.rank(rows) == int(found.max(axis=0).sum()) + 1
    return found if same else None  # rows may say less or more than margins


def _least_sets(rows: sp.csr_matrix) -> sp.csr_matrix:
    """The smallest sets of atoms whose sums follow from the rows; of margins, their levels.

    A sum of functions of one feature each that is 0 or 1 everywhere depends on one feature only.
    """
    bits = np.arange(1, 2 ** rows.shape[1])[:, None] >> np.arange(rows.shape[1]) & 1
    moves = rational_kernel(rows).toarray()
    known = bits[~np.any(bits @ moves.T, axis=1)]
    inside = (known @ (1 - known.T)) == 0  # [i, j]: set i lies in set j
    return sp.csr_matrix(known[inside.sum(axis=0) == 1])


def _features(rows: sp.csr_matrix) -> Ints | None:
    """Features of which sets of atoms are levels, where the atoms are all combinations of them.

    Sets that nest or are disjoint belong to one feature, whose levels are the parts they cut. From
    large to small, a set does so with all before it if its atoms have the same smallest one.
    """
    atoms = rows.shape[1]
    sets = {row.tobytes(): row for row in np.split(rows.indices, rows.indptr[1:-1])}
    features: list[Ints] = []  # of each atom, the smallest set that it is in
    for number, row in enumerate(sorted(sets.values(), key=len, reverse=True)):
        if len(row) == atoms:  # the total says nothing more
            continue
        for smallest in features:
            if np.all(smallest[row] == smallest[row[0]]):
                smallest[row] = number
                break
        else:
            features.append(np.full(atoms, -1))
            features[-1][row] = number
    if len(features) < 2:
        return None
    levels = [np.unique(smallest, return_inverse=True)[1].reshape(-1) for smallest in features]
    grid = np.stack(levels, axis=1)
    sizes = (grid.max(axis=0) + 1).tolist()
    complete = atoms == prod(sizes) and len(np.unique(np.ravel_multi_index(levels, sizes))) == atoms
    return grid if complete else None
