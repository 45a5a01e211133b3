"""Blocks: how figures that cross split into independent parts, and what each part allows.

Atoms are grouped into *blocks*, the connected components of the figures' matroid: inside a block
the atom totals are tied to each other, between blocks nothing is. An atom on its own has a known
total. A block is *one-way* when its atoms are all combinations of the levels of a few features and
exactly the features' margins are published, as in "total, female and voting age": four atoms, two
features.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.figures import lattice
from congenial.figures.integers import echelon, rational_kernel
from congenial.figures.lattice import PartKind, kinds

MOST_ATOMS = 12  # of a block whose rows are tried in other words: all their sets are listed
Block = tuple[Ints, Ints | None]  # atoms, and their features
LARGEST_WEIGHT = 9  # in such rows: minors are then below 2^54 (Hadamard), and sums of 12 exact


@dataclass(frozen=True, eq=False)
class BlockKind:
    """Blocks of which the same is said: `atoms` (one block a line), their features and equations.

    `features` holds, for one-way blocks, each atom's level on each feature (atoms x features); None
    for any other block. `equations`: the rows of the matrix that touch a block, restricted to it.
    """

    atoms: Ints = field(repr=False)
    features: Ints | None
    equations: sp.csr_matrix = field(repr=False)

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels of each feature."""
        assert self.features is not None
        return tuple(int(column.max()) + 1 for column in self.features.T)


def blocks(matrix: sp.csr_matrix) -> list[BlockKind]:
    """The blocks of two or more atoms, kind by kind; atoms in none of them have known totals.

    A row of ones over all atoms would join all parts. It ties those blocks of the other rows whose
    own sum is not known to each other, and to atoms that no row touches: a circuit of one and a
    circuit of another, weighted so that the sums cancel, is a circuit. Other blocks stay as they
    are.
    """
    rows, joined = lattice.without_ones(matrix)
    parts = kinds(rows)
    kinds_by_part = [(part, block) for part in parts for block in _of_kind(part)]
    if not joined:
        return _alike(block for _, block in kinds_by_part)
    alone = [block for _, block in kinds_by_part if _balanced(block)]
    open_ = [(part, block.atoms) for part, block in kinds_by_part if not _balanced(block)]
    untouched = [part.columns for part in parts if not part.rows.shape[1]]
    atoms = [*(some for _, some in open_), *untouched]
    if not atoms:
        return _alike(alone)
    together = np.sort(np.concatenate([some.reshape(-1) for some in atoms]))
    whole = PartKind(_touching(matrix, together), np.zeros((1, 0), np.int64), together[np.newaxis])
    if sum(map(len, atoms)) == 1:
        return _alike([*alone, *_of_kind(whole)])
    apart = sum(part.parts for part, _ in open_) > 1 and bool(np.all(matrix.data == 1))
    # sets that are levels of two features meet, so they are all in one part
    features = None if apart else _one_way(whole.matrix)
    return _alike([*alone, BlockKind(whole.columns, features, whole.matrix)])


def _of_kind(part: PartKind) -> list[BlockKind]:
    """The blocks of parts of one kind."""
    if not part.matrix.shape[0] or lattice.rank(part.matrix) == part.matrix.shape[1]:
        return []
    return [
        BlockKind(part.columns[:, atoms], features, _touching(part.matrix, atoms))
        for atoms, features in _of_one(part.matrix)
    ]


def _of_one(matrix: sp.csr_matrix) -> list[Block]:
    """The blocks of one connected part: columns and features of each."""
    sides = lattice.partitions(matrix)
    if sides is not None and sides.shape[1] == 2:
        return _two_way(sides, matrix.shape[0])
    if sides is not None and sides.shape[1] > 2 and lattice.is_grid(sides):
        grid = [np.unique(side, return_inverse=True)[1] for side in sides.T]
        varying = [level for level in grid if level.max() > 0]
        return [(np.arange(len(sides)), np.stack(varying, axis=1))]
    return [(atoms, _one_way(_touching(matrix, atoms))) for atoms in _components(matrix)]


def _touching(matrix: sp.csr_matrix, atoms: Ints) -> sp.csr_matrix:
    """The rows that touch some atoms, restricted to them."""
    rows = matrix[:, atoms].tocsr()
    return rows[np.flatnonzero(np.diff(rows.indptr))].sorted_indices()


def _balanced(kind: BlockKind) -> bool:
    """Whether the sum of a block is known."""
    rows = kind.equations
    return lattice.rank(lattice.with_ones(rows)) == lattice.rank(rows)


def _alike(found: Iterable[BlockKind]) -> list[BlockKind]:
    """Kinds of which the same is said are one; in the order of their first atoms."""
    same_kinds: dict[tuple[Any, ...], list[BlockKind]] = {}
    for kind in found:
        rows, features = kind.equations, kind.features
        said = (rows.shape, *(part.tobytes() for part in (rows.indptr, rows.indices, rows.data)))
        same_kinds.setdefault((*said, None if features is None else features.tobytes()), []).append(
            kind
        )
    joined = []
    for same in same_kinds.values():
        atoms = np.concatenate([kind.atoms for kind in same])
        joined.append(replace(same[0], atoms=atoms[np.argsort(atoms[:, 0], kind="stable")]))
    return sorted(joined, key=lambda kind: int(kind.atoms[0, 0]))


def _two_way(edges: Ints, rows: int) -> list[Block]:
    """Two partitions of the atoms: (possibly several) two-way tables, never made dense."""
    of_row = lattice.bipartite_components(edges, rows)[1]
    of_atom = of_row[edges[:, 0]]
    order = np.argsort(of_atom, kind="stable")
    tables = []
    for atoms in np.split(order, np.flatnonzero(np.diff(of_atom[order])) + 1):
        sides = [np.unique(side, return_inverse=True) for side in edges[atoms].T]
        if len(atoms) > 1:
            complete = len(atoms) == prod(len(levels) for levels, _ in sides)
            grid = np.stack([level for _, level in sides], axis=1)
            tied = min(len(levels) for levels, _ in sides) > 1
            if tied or not complete:
                tables.append((np.sort(atoms), grid[np.argsort(atoms)] if complete else None))
    return tables


def _components(matrix: sp.csr_matrix) -> list[Ints]:
    """Connected components of the matroid of columns, through fundamental circuits.

    A column outside a basis is tied to the basis columns it depends on; the components of that
    graph do not depend on the basis.
    """
    tied = [(pivot, column) for pivot, row in echelon(matrix).items() for column in row]
    ends = np.array(tied, dtype=np.int64).reshape(-1, 2)
    part = lattice.connected((ends[:, 0], ends[:, 1]), matrix.shape[1])
    order = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[order])) + 1
    return [atoms for atoms in np.split(order, cuts) if len(atoms) > 1]


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
    features = _features(sets)
    same = features is not None and lattice.rank(rows) == int(features.max(axis=0).sum()) + 1
    return features if same else None  # rows may say less or more than margins


def _least_sets(rows: sp.csr_matrix) -> sp.csr_matrix:
    """The smallest sets of atoms whose sums follow from the rows; of margins, their levels.

    A sum of functions of one feature each that is 0 or 1 everywhere depends on one feature only.
    """
    bits = np.arange(1, 2 ** rows.shape[1])[:, None] >> np.arange(rows.shape[1]) & 1
    moves = rational_kernel(rows).toarray()
    fixed = bits[~np.any(bits @ moves.T, axis=1)]
    inside = (fixed @ (1 - fixed.T)) == 0  # [i, j]: set i lies in set j
    return sp.csr_matrix(fixed[inside.sum(axis=0) == 1])


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
