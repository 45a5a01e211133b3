"""What the figures fix on a released table: groups of cells whose sums are known or tied to each
other, and free cells.

A table may leave out attributes the figures mention (counts per county are published, sex by age is
released). A weighted sum over released cells is known exactly when its weights, seen as weights of
atoms, are a combination of the figures. Weights of atoms that show a common released cell must be
equal, so released cells and atoms are joined into connected components: the *groups*. Where the
figures fix every group's sum, groups are independent of each other; sums that are only fixed
together (the margins of a table) are a `Tie`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from congenial.figures import lattice
from congenial.figures.blocks import Block, blocks, margins, rows_of
from congenial.figures.integers import Ints, rational_kernel
from congenial.figures.invariants import Invariants

FROZEN = -1  # the cell is known to be zero
LOOSE = -2  # no sum that contains the cell is published


@dataclass(frozen=True)
class Images:
    """How base cells map onto a released table, through the attributes both can see.

    `key` numbers, for each cell of the figures' domain, the combination of released levels it
    shows; `other` is how many released cells share one key.
    """

    key: Ints
    keys: int
    other: int


def images(invariants: Invariants, names: tuple[str, ...]) -> Images:
    """Which part of the released table each cell of the figures' domain falls in."""
    schema = invariants.schema
    key = np.zeros(invariants.cells.size, dtype=np.int64)
    keys = other = 1
    for name in names:
        axis = schema.axis(name)
        if axis.base in invariants.bases:
            key = key * len(axis.levels) + invariants.cells.spread((axis.base,), axis.of_base)
            keys *= len(axis.levels)
        else:
            other *= len(axis.levels)
    return Images(key, keys, other)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Equations between the sums of some groups. Ties of which the same is said share one.

    `features`, for the margins of a table of groups: each group's level on each feature.
    """

    equations: Ints
    features: Ints | None = field(repr=False)
    _fixed: dict[bytes, bool] = field(default_factory=dict, repr=False)

    @cached_property
    def rank(self) -> int:
        """Number of independent equations."""
        return lattice.rank(sp.csr_matrix(self.equations))

    def fixes(self, weights: Any) -> bool:
        """Whether a sum over whole groups (0 or 1 for each, or weights) follows from them."""
        row = np.asarray(weights, dtype=np.int64)[None, :]
        if row.tobytes() not in self._fixed:
            self._fixed[row.tobytes()] = self._follows(row)
        return self._fixed[row.tobytes()]

    def _follows(self, row: Ints) -> bool:
        near = np.linalg.lstsq(self.equations.T.astype(float), row[0].astype(float), rcond=None)[0]
        if np.abs(near @ self.equations - row).max() > 1e-3 * max(1, np.abs(row).max()):
            return False  # cheap, and far above what rounding does
        return lattice.rank(sp.csr_matrix(np.vstack([self.equations, row]))) == self.rank

    @property
    def balanced(self) -> bool:
        """Whether the equations fix the total of all groups."""
        return self.fixes(np.ones(self.equations.shape[1]))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Levels of each feature, for the margins of a table of groups."""
        if self.features is None:
            return None
        return tuple(int(level.max()) + 1 for level in self.features.T)


@dataclass(frozen=True)
class Tie:
    """Groups whose sums T are fixed only together: `equations @ T = values`."""

    groups: Ints
    pattern: Pattern
    values: Ints | None = field(repr=False)

    @property
    def equations(self) -> Ints:
        """One row for each equation, one column for each group."""
        return self.pattern.equations

    @property
    def features(self) -> Ints | None:
        """Each group's level on each feature, for the margins of a table of groups."""
        return self.pattern.features

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Levels of each feature, for the margins of a table of groups."""
        return self.pattern.shape


@dataclass(frozen=True)
class Support:
    """Partition of a released table's cells into groups, frozen and loose cells.

    `labels` has the table's shape: a group number, FROZEN, or LOOSE. The noise of a conditioned
    mechanism sums to zero in each group (`ties`: satisfies the equations), and is zero on frozen
    cells; the set of conforming tables is a translate of that lattice, which is why conditioning on
    it has no normaliser price. `totals` are the groups' published sums, -1 where they are tied.
    """

    names: tuple[str, ...]
    labels: Ints = field(repr=False)
    totals: Ints | None = field(repr=False)
    ties: tuple[Tie, ...] = ()

    @property
    def groups(self) -> int:
        """Number of groups, of known or tied sums."""
        return int(self.labels.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> Ints:
        """Cells in each group."""
        flat = self.labels.reshape(-1)
        return np.bincount(flat[flat >= 0], minlength=self.groups).astype(np.int64)

    @cached_property
    def tied(self) -> Any:
        """Which groups belong to a tie."""
        found = np.zeros(self.groups, dtype=bool)
        for tie in self.ties:
            found[tie.groups] = True
        return found

    @cached_property
    def loose(self) -> int:
        """Cells that belong to no known sum."""
        return int(np.count_nonzero(self.labels == LOOSE))

    @cached_property
    def degrees_of_freedom(self) -> int:
        """Independent directions in which conforming released tables differ."""
        alone = int(np.sum(np.maximum(self.sizes[~self.tied] - 1, 0)))
        together = sum(int(self.sizes[tie.groups].sum()) - tie.pattern.rank for tie in self.ties)
        return alone + together + self.loose

    @property
    def structure(self) -> str:
        """What the figures make of the table, in words."""
        if not self.groups:
            return "no published sum"
        if not self.ties:
            return "independent groups of known total"
        shapes = {tie.shape for tie in self.ties}
        if any(shape is None for shape in shapes):
            return "groups tied by linear equations"
        if len(shapes) == 1:
            levels = " x ".join(map(str, shapes.pop() or ()))
            return f"{levels} groups of which the margins are known"
        return "groups of which the margins are known"

    @property
    def words(self) -> str:
        """What the published figures leave of the table, counted."""
        tied = int(np.count_nonzero(self.tied))
        alone = int(np.count_nonzero((self.sizes == 1) & ~self.tied))
        frozen = int(np.count_nonzero(self.labels == FROZEN))
        parts = [f"{_many(self.groups - tied, 'group')} of cells whose sum is known"]
        if tied == self.groups and tied:
            parts = []
        if alone:
            parts.append(f"of which {alone:,} with one cell only, known exactly")
        if tied:
            parts.append(f"{_many(tied, 'group')} of which only sums over several are known")
        return "; ".join(
            [
                *parts,
                f"{_many(self.loose, 'cell')} in no known sum",
                f"{_many(frozen, 'cell')} known to be zero",
                f"{_many(self.degrees_of_freedom, 'independent direction')} left to protect",
            ]
        )

    def sums(self, table: Any) -> Any:
        """Sum of each group."""
        flat, values = self.labels.reshape(-1), np.asarray(table).reshape(-1)
        found = np.zeros(self.groups, dtype=values.dtype)
        np.add.at(found, flat[flat >= 0], values[flat >= 0])
        return found

    def fixes(self, index: Any, sums: int) -> Any:
        """Which sums of cells follow from the published figures: a boolean for each.

        `index` names the sum each cell belongs to, -1 for none. Sums of whole groups of known
        total, and of tied groups where the equations fix them.
        """
        cell, label = np.asarray(index).reshape(-1), self.labels.reshape(-1)
        inside, width = (cell >= 0) & (label != FROZEN), self.groups + 3
        keys, met = np.unique(cell[inside] * width + label[inside] + 2, return_counts=True)
        which, group = keys // width, keys % width - 2
        whole = (group >= 0) & (met == np.append(self.sizes, 0)[np.maximum(group, -1)])
        fixed = np.ones(sums, dtype=bool)
        fixed[which[~whole]] = False
        for tie in self.ties:
            of_tie = np.isin(group, tie.groups) & fixed[which]
            for one in np.unique(which[of_tie]):
                taken = np.isin(tie.groups, group[of_tie & (which == one)])
                fixed[one] = tie.pattern.fixes(taken)
        return fixed

    def agrees(self, table: Any) -> bool:
        """Whether a table has every published sum, and nothing where nothing can be."""
        if np.any(np.asarray(table).reshape(-1)[self.labels.reshape(-1) == FROZEN]):
            return False
        if self.totals is None:
            return True
        sums = self.sums(table)
        alone = np.array_equal(sums[~self.tied], self.totals[~self.tied])
        return alone and all(
            tie.values is not None and np.array_equal(tie.equations @ sums[tie.groups], tie.values)
            for tie in self.ties
        )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


@lru_cache(maxsize=16)
def support(invariants: Invariants, names: tuple[str, ...]) -> Support:
    """The groups that the figures make on the table over `names`.

    Bounds (at_least, at_most) make none: the noise is not conditioned on them; projection keeps
    them.
    """
    schema = invariants.schema
    shape = tuple(len(schema.axis(name).levels) for name in names)
    empty = _empty_atoms(invariants)
    labels, of_atom, count = _groups(invariants, images(invariants, names), empty)
    matrix = _on_groups(invariants, of_atom, count, empty)
    labels, of_atom, matrix = _without_silent(labels, of_atom, matrix)
    count = matrix.shape[1]
    found = blocks(matrix) if lattice.rank(matrix) < count else []
    sums = _some_sums(invariants, of_atom, count, empty)
    totals = None if sums is None else sums.copy()
    ties = []
    for block, pattern in zip(found, _patterns(matrix, found), strict=True):
        values = None if sums is None else np.rint(pattern.equations @ sums[block.atoms])
        ties.append(Tie(block.atoms, pattern, None if values is None else values.astype(np.int64)))
        if totals is not None:
            totals[block.atoms] = -1
    fixed = None if totals is None else np.rint(totals).astype(np.int64)
    return Support(names, _over_table(invariants, names, shape, labels), fixed, tuple(ties))


def _patterns(matrix: sp.csr_matrix, found: list[Block]) -> list[Pattern]:
    """What is said of each block."""
    known: dict[tuple[int, bytes], Pattern] = {}
    patterns = []
    rows = rows_of(matrix, [block.atoms for block in found])
    for block, told in zip(found, rows, strict=True):
        key = (id(told), b"" if block.features is None else block.features.tobytes())
        if key not in known:
            equations = told.toarray()
            if block.features is not None and np.any((equations != 0) & (equations != 1)):
                equations = margins(block.features)  # the figures say the same in other words
            known[key] = Pattern(equations, block.features)
        patterns.append(known[key])
    return patterns


def _empty_atoms(invariants: Invariants) -> Any:
    """Atoms 1, 2, ... of which the published figures say that nobody is in them."""
    matrix = invariants.matrix
    nobody = np.zeros(matrix.shape[1], dtype=bool)
    if invariants.values is None:
        return nobody
    if invariants.atom_totals is not None:
        return invariants.atom_totals == 0
    positive = np.asarray(matrix.min(axis=1).todense()).reshape(-1) >= 0
    zero = positive & (invariants.flat_values == 0)
    nobody[np.unique(matrix[np.flatnonzero(zero)].indices)] = True
    return nobody


def _groups(invariants: Invariants, seen: Images, empty: Any) -> tuple[Ints, Ints, int]:
    """Label of each key (group, FROZEN or LOOSE), group of each atom 1, 2, ... (-1: none), and the
    number of groups.
    """
    atoms = int(invariants.atoms.max(initial=0)) + 1
    alive = np.concatenate([[True], ~empty])  # the loose atom may hold people
    cells = invariants.atoms >= 0
    cells &= alive[np.maximum(invariants.atoms, 0)]
    pair = np.unique(seen.key[cells] * atoms + invariants.atoms[cells])
    key, atom = pair // atoms, pair % atoms
    graph = sp.coo_matrix(
        (np.ones(len(pair), dtype=np.int8), (key, seen.keys + atom)),
        shape=(seen.keys + atoms, seen.keys + atoms),
    )
    component = connected_components(graph, directed=False)[1].astype(np.int64)
    labels = np.full(seen.keys, FROZEN, dtype=np.int64)
    labels[key] = component[key]
    loose = component[seen.keys] if np.any(atom == 0) else -1
    fixed = (labels >= 0) & (labels != loose)
    present, numbered = np.unique(labels[fixed], return_inverse=True)
    labels[(labels == loose) & (labels >= 0)] = LOOSE
    labels[fixed] = numbered
    number = np.full(int(component.max(initial=0)) + 1, -1, dtype=np.int64)
    number[present] = np.arange(len(present))
    of_atom = np.where(empty, -1, number[component[seen.keys + 1 :]])
    return labels, of_atom, len(present)


def _on_groups(invariants: Invariants, of_atom: Ints, count: int, empty: Any) -> sp.csr_matrix:
    """Equations that the figures imply for the sums of groups.

    Weights v of groups are known when v, spread over the atoms, is a combination of the figures:
    orthogonal to their kernel. Where no group merges atoms, the figures themselves are these.
    """
    alive = np.flatnonzero(~empty)
    matrix, group = invariants.matrix[:, alive], of_atom[alive]
    kept = np.flatnonzero(group >= 0)
    spread = sp.csr_matrix(
        (np.ones(len(kept), dtype=np.int64), (kept, group[kept])), shape=(len(alive), count)
    )
    if len(kept) == count == len(alive):
        told = (matrix @ spread).tocsr()
        told.eliminate_zeros()
        return told
    if lattice.rank(matrix) == len(alive):  # every atom's sum is known
        return sp.identity(count, dtype=np.int64, format="csr")
    merged = (rational_kernel(matrix) @ spread).tocsr()
    merged.eliminate_zeros()
    return rational_kernel(merged)


def _without_silent(
    labels: Ints, of_atom: Ints, matrix: sp.csr_matrix
) -> tuple[Ints, Ints, sp.csr_matrix]:
    """The same without groups of which no equation says anything: their cells are loose.

    The figures may speak of such cells (two counts that overlap in a county do not fix how many
    people are in it), but nothing they say can be told from the released table.
    """
    silent = np.diff(matrix.tocsc().indptr) == 0
    number = np.cumsum(~silent) - 1
    relabelled = np.concatenate([np.where(silent, LOOSE, number), [LOOSE, FROZEN]])
    regrouped = np.append(np.where(silent, -1, number), -1)
    return relabelled[labels], regrouped[of_atom], matrix[:, np.flatnonzero(~silent)].tocsr()


def _some_sums(invariants: Invariants, of_atom: Ints, count: int, empty: Any) -> Any:
    """Group sums that agree with every published figure; those of untied groups are the true ones.

    None before figures are published, if there are groups. Empty atoms have nobody in the solution
    either.
    """
    if invariants.values is None:
        return None if count else np.zeros(0)
    known, alive = invariants.atom_totals, np.flatnonzero(~empty)
    x = np.zeros(len(empty))
    if known is not None:
        x[:] = known
    elif len(alive) == len(empty):
        x[:] = invariants.some_solution
    else:
        x[alive] = lattice.solution(invariants.matrix[:, alive].tocsr(), invariants.flat_values)
    kept = of_atom >= 0
    return np.bincount(of_atom[kept], weights=x[kept], minlength=count)


def _over_table(
    invariants: Invariants, names: tuple[str, ...], shape: tuple[int, ...], labels: Ints
) -> Ints:
    """Spread labels of keys over the released table's cells."""
    inside = [invariants.schema.axis(name).base in invariants.bases for name in names]
    keyed = tuple(size if own else 1 for size, own in zip(shape, inside, strict=True))
    return np.ascontiguousarray(np.broadcast_to(labels.reshape(keyed), shape))
