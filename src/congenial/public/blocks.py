"""Blocks: how mandates that cross split into independent parts, and what each part allows.

Atoms are grouped into *blocks*, the connected components of the mandates' matroid: inside a block
the atom totals are tied to each other, between blocks nothing is. An atom on its own has a known
total. A block is *one-way* when its atoms are all combinations of the levels of a few features and
exactly the features' margins are published, as in "total, female and voting age": four atoms, two
features.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import scipy.sparse as sp

from congenial.public import lattice
from congenial.public.lattice import Ints


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
    columns = matrix.tocsc()
    sides = lattice.partitions(matrix)
    if sides is not None and sides.shape[1] == 2:
        return _two_way(sides, matrix.shape[0])
    if sides is not None and sides.shape[1] > 2 and lattice.is_grid(sides):
        grid = [np.unique(side, return_inverse=True)[1] for side in sides.T]
        varying = [level for level in grid if level.max() > 0]
        return [Block(np.arange(len(sides)), np.stack(varying, axis=1))]
    known: dict[bytes, Ints | None] = {}  # thousands of counties have the same few patterns
    found = []
    for atoms in _components(matrix):
        dense = dense_rows(columns, atoms)
        key = bytes(str(dense.shape), "ascii") + dense.tobytes()
        if key not in known:
            known[key] = _one_way(dense)
        found.append(Block(atoms, known[key]))
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


def dense_rows(columns: sp.csc_matrix, atoms: Ints) -> Ints:
    """The rows that touch some atoms, restricted to them."""
    starts, stops = columns.indptr[atoms], columns.indptr[atoms + 1]
    entries = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)])
    rows, row = np.unique(columns.indices[entries], return_inverse=True)
    dense = np.zeros((len(rows), len(atoms)), dtype=np.int64)
    dense[row, np.repeat(np.arange(len(atoms)), stops - starts)] = columns.data[entries]
    return dense


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
    for pivot, row in lattice.echelon(matrix).items():
        for column in row:
            if column != pivot:
                circuits.setdefault(column, [column]).append(pivot)
    return list(circuits.values())


def _one_way(rows: Ints) -> Ints | None:
    """Levels of each atom on features whose margins are exactly what the rows say, if any.

    Rows are sets of atoms; rows that nest or are disjoint belong to one feature, whose levels are
    the parts they cut. The block is one-way when its atoms are all combinations of levels and the
    rank is that of the margins.
    """
    if not np.all((rows == 0) | (rows == 1)):
        return None
    atoms = rows.shape[1]
    sets = np.unique(rows[~rows.all(axis=1)].astype(bool), axis=0)  # the total says nothing more
    features: list[list[np.ndarray]] = []
    for row in sets[np.argsort(-sets.sum(axis=1), kind="stable")]:
        for feature in features:
            if all(_laminar(row, other) for other in feature):
                feature.append(row)
                break
        else:
            features.append([row])
    if len(features) < 2:
        return None
    grid = np.stack(
        [np.unique(np.stack(one), axis=1, return_inverse=True)[1].reshape(-1) for one in features],
        axis=1,
    )
    sizes = [int(column.max()) + 1 for column in grid.T]
    complete = len(np.unique(grid, axis=0)) == atoms == prod(sizes)
    rank = np.linalg.matrix_rank(np.vstack([sets, np.ones(atoms)])) if complete else 0
    return grid if rank == sum(sizes) - len(sizes) + 1 else None


def _laminar(one: np.ndarray, other: np.ndarray) -> bool:
    both = one & other
    return not both.any() or np.array_equal(both, one) or np.array_equal(both, other)
