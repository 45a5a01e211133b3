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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, overload

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.figures import lattice
from congenial.figures.blocks import BlockKind, blocks, margins
from congenial.figures.cells import first_places
from congenial.figures.figures import Figures
from congenial.figures.lattice import connected

# ---- ties ---------------------------------------------------------------------------------------
#
# Ties: groups of cells whose sums are fixed only together, such as the margins of a table.


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
        row: Ints = np.asarray(weights, dtype=np.int64)
        if row.tobytes() not in self._fixed:
            self._fixed[row.tobytes()] = self._follows(row)
        return self._fixed[row.tobytes()]

    def _follows(self, row: Ints) -> bool:
        """Exact. Under the margins of a table w(x) is a sum of functions of one feature each, so
        w(x) = w(0) + sum over k of w(x_k on feature k, 0 elsewhere) - w(0); other equations tell
        the sums that no whole vector of their kernel changes.
        """
        if self.features is None:
            return not np.any(self._moves @ row)
        assert self.shape is not None
        table: Ints = np.zeros(self.shape, dtype=np.int64)
        table[tuple(self.features.T)] = row
        fitted: Ints = np.full(self.shape, table.flat[0])
        for axis, levels in enumerate(self.shape):
            line = np.moveaxis(table, axis, 0).reshape(levels, -1)[:, 0] - table.flat[0]
            fitted = fitted + line.reshape([-1 if k == axis else 1 for k in range(table.ndim)])
        return bool(np.all(fitted == table))

    @cached_property
    def _moves(self) -> sp.csr_matrix:
        return lattice.kernel_rows(sp.csr_matrix(self.equations))

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


@dataclass(frozen=True, eq=False)
class TieKind:
    """Ties of one pattern: the groups and the values of each (one tie a line)."""

    groups: Ints = field(repr=False)
    pattern: Pattern
    values: Ints | None = field(repr=False)

    def tie(self, number: int) -> Tie:
        """One of them, by its number."""
        values = None if self.values is None else self.values[number]
        return Tie(self.groups[number], self.pattern, values)


class Ties(Sequence[Tie]):
    """The ties of a table, kept kind by kind; a single one is made when it is asked for. Numbers
    run through one kind after another.
    """

    def __init__(self, kinds: Iterable[TieKind] = ()) -> None:
        self.kinds = tuple(kinds)
        self._ends = np.cumsum([0, *(len(kind.groups) for kind in self.kinds)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, number: int) -> Tie: ...

    @overload
    def __getitem__(self, number: slice) -> list[Tie]: ...

    def __getitem__(self, number: int | slice) -> Tie | list[Tie]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        at = range(len(self))[number]
        which = int(np.searchsorted(self._ends, at, side="right")) - 1
        return self.kinds[which].tie(at - int(self._ends[which]))

    def __iter__(self) -> Iterator[Tie]:
        return (kind.tie(i) for kind in self.kinds for i in range(len(kind.groups)))


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


def images(figures: Figures, names: tuple[str, ...]) -> Images:
    """Which part of the released table each cell of the figures' domain falls in."""
    schema = figures.schema
    key = np.zeros(figures.cells.size, dtype=np.int64)
    keys = other = 1
    for name in names:
        axis = schema.axis(name)
        if axis.base in figures.bases:
            key = key * len(axis.levels) + figures.cells.spread((axis.base,), axis.of_base)
            keys *= len(axis.levels)
        else:
            other *= len(axis.levels)
    return Images(key, keys, other)


def key_of(figures: Figures, names: tuple[str, ...], cells: Ints) -> Ints:
    """The `key` of `images` for some cells of the figures' domain."""
    at = dict(zip(figures.bases, figures.cells.places(cells), strict=True))
    key = np.zeros(len(cells), dtype=np.int64)
    for axis in (figures.schema.axis(name) for name in names):
        if axis.base in at:
            key = key * axis.size + axis.of_base[at[axis.base]]
    return key


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
    ties: Ties = field(default_factory=Ties, repr=False)

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
        tied = np.zeros(self.groups, dtype=bool)
        for kind in self.ties.kinds:
            tied[kind.groups] = True
        return tied

    @cached_property
    def loose(self) -> int:
        """Cells that belong to no known sum."""
        return int(np.count_nonzero(self.labels == LOOSE))

    @cached_property
    def degrees_of_freedom(self) -> int:
        """Independent directions in which conforming released tables differ."""
        alone = int(np.sum(np.maximum(self.sizes[~self.tied] - 1, 0)))
        together = sum(
            int(self.sizes[kind.groups].sum()) - len(kind.groups) * kind.pattern.rank
            for kind in self.ties.kinds
        )
        return alone + together + self.loose

    @property
    def structure(self) -> str:
        """What the figures make of the table, in words."""
        if not self.groups:
            return "no published sum"
        if not self.ties:
            return "separate groups of known total"
        shapes = {kind.pattern.shape for kind in self.ties.kinds}
        if any(shape is None for shape in shapes):
            return "groups tied by linear equations"
        if len(shapes) == 1:
            levels = " x ".join(map(str, shapes.pop() or ()))
            return f"{levels} groups with known margins"
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
                *([f"{_many(self.loose, 'cell')} in no known sum"] if self.loose else []),
                *([f"{_many(frozen, 'cell')} known to be zero"] if frozen else []),
                f"{_many(self.degrees_of_freedom, 'independent direction')} left to protect",
            ]
        )

    def sums(self, table: Any) -> Any:
        """Sum of each group."""
        flat, values = self.labels.reshape(-1), np.asarray(table).reshape(-1)
        sums = np.zeros(self.groups, dtype=values.dtype)
        np.add.at(sums, flat[flat >= 0], values[flat >= 0])
        return sums

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
        for kind in self.ties.kinds:
            self._fix_tied(kind, which, group, fixed)
        return fixed

    def _fix_tied(self, kind: TieKind, which: Ints, group: Ints, fixed: Any) -> None:
        """Sums (`which`) over whole groups stay fixed if the equations of each tie fix its part."""
        tie = np.full(self.groups + 1, -1, dtype=np.int64)
        place = np.zeros(self.groups + 1, dtype=np.int64)
        ties, width = kind.groups.shape
        tie[kind.groups] = np.arange(ties)[:, np.newaxis]
        place[kind.groups] = np.arange(width)
        met = np.flatnonzero((tie[group] >= 0) & fixed[which])
        pair, row = np.unique(which[met] * ties + tie[group[met]], return_inverse=True)
        taken = np.zeros((len(pair), width), dtype=bool)
        taken[row, place[group[met]]] = True
        patterns, of_pair = np.unique(taken, axis=0, return_inverse=True)
        follows = np.array([kind.pattern.fixes(weights) for weights in patterns], dtype=bool)
        fixed[(pair // ties)[~follows[of_pair.reshape(-1)]]] = False

    def agrees(self, table: Any) -> bool:
        """Whether a table has every published sum, and nothing where nothing can be."""
        if np.any(np.asarray(table).reshape(-1)[self.labels.reshape(-1) == FROZEN]):
            return False
        if self.totals is None:
            return True
        sums = self.sums(table)
        alone = np.array_equal(sums[~self.tied], self.totals[~self.tied])
        return alone and all(
            kind.values is not None
            and np.array_equal(sums[kind.groups] @ kind.pattern.equations.T, kind.values)
            for kind in self.ties.kinds
        )


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


@lru_cache(maxsize=16)
def support(figures: Figures, names: tuple[str, ...]) -> Support:
    """The groups that the figures make on the table over `names`.

    Bounds (at_least, at_most) make none: the noise is not conditioned on them; projection keeps
    them.
    """
    schema = figures.schema
    shape = tuple(len(schema.axis(name).levels) for name in names)
    empty = _empty_atoms(figures)
    labels, of_atom, count = _groups(figures, images(figures, names), empty)
    matrix = _on_groups(figures, of_atom, count, empty)
    labels, of_atom, matrix = _without_silent(labels, of_atom, matrix)
    count = matrix.shape[1]
    sums = _some_sums(figures, of_atom, count, empty)
    totals = None if sums is None else sums.copy()
    ties = []
    for kind in blocks(matrix):
        pattern, values = _pattern(kind), None
        if sums is not None and totals is not None:
            values = np.rint(sums[kind.atoms] @ pattern.equations.T).astype(np.int64)
            totals[kind.atoms] = -1
        ties.append(TieKind(kind.atoms, pattern, values))
    fixed = None if totals is None else np.rint(totals).astype(np.int64)
    return Support(names, _over_table(figures, names, shape, labels), fixed, Ties(ties))


def _pattern(kind: BlockKind) -> Pattern:
    """What is said of the blocks of a kind."""
    equations = kind.equations.toarray()
    if kind.features is not None and np.any((equations != 0) & (equations != 1)):
        equations = margins(kind.features)  # the figures say the same in other words
    return Pattern(equations, kind.features)


def _empty_atoms(figures: Figures) -> Any:
    """Atoms 1, 2, ... of which the published figures say that nobody is in them."""
    matrix = figures.matrix
    nobody = np.zeros(matrix.shape[1], dtype=bool)
    if figures.values is None:
        return nobody
    if figures.atom_totals is not None:
        return figures.atom_totals == 0
    positive = np.asarray(matrix.min(axis=1).todense()).reshape(-1) >= 0
    zero = positive & (figures.flat_values == 0)
    nobody[np.unique(matrix[np.flatnonzero(zero)].indices)] = True
    return nobody


def _groups(figures: Figures, seen: Images, empty: Any) -> tuple[Ints, Ints, int]:
    """Label of each key (group, FROZEN or LOOSE), group of each atom 1, 2, ... (-1: none), and the
    number of groups.
    """
    if seen.keys == len(seen.key):  # every cell has a key of its own, so every atom is a group
        return _groups_of_atoms(figures.atoms, empty)
    atoms = int(figures.atoms.max(initial=0)) + 1
    alive = np.concatenate([[True], ~empty])  # the loose atom may hold people
    cells = figures.atoms >= 0
    cells &= alive[np.maximum(figures.atoms, 0)]
    pair = _distinct(seen.key[cells] * atoms + figures.atoms[cells])
    key, atom = pair // atoms, pair % atoms
    component = connected((key, seen.keys + atom), seen.keys + atoms)
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


def _distinct(numbers: Ints) -> Ints:
    """Different numbers in ascending order; sorting is several times as fast as hashing them."""
    ordered = np.sort(numbers)
    first: Ints = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return first


def _groups_of_atoms(atoms: Ints, empty: Any) -> tuple[Ints, Ints, int]:
    """The same where each group is an atom, numbered by their first cells."""
    alive = np.concatenate([[True], ~empty])
    visible = np.where(alive[np.maximum(atoms, 0)], atoms, -1)
    first = first_places(np.where(visible > 0, visible - 1, -1))
    present = np.flatnonzero(first >= 0)
    number = np.full(len(empty) + 2, FROZEN, dtype=np.int64)  # atom -1, of nobody, comes last
    number[0] = LOOSE
    number[1 + present[np.argsort(first[present])]] = np.arange(len(present))
    return number[visible], np.where(number[1:-1] >= 0, number[1:-1], -1), len(present)


def _on_groups(figures: Figures, of_atom: Ints, count: int, empty: Any) -> sp.csr_matrix:
    """Equations that the figures imply for the sums of groups.

    Weights v of groups are known when v, spread over the atoms, is a combination of the figures:
    orthogonal to their kernel. Where no group merges atoms, the figures themselves are these.
    """
    alive = np.flatnonzero(~empty)
    matrix, group = figures.matrix[:, alive], of_atom[alive]
    grouped = np.flatnonzero(group >= 0)
    spread = sp.csr_matrix(
        (np.ones(len(grouped), dtype=np.int64), (grouped, group[grouped])),
        shape=(len(alive), count),
    )
    if len(grouped) == count == len(alive):
        equations = (matrix @ spread).tocsr()
        equations.eliminate_zeros()
        return equations
    if lattice.rank(matrix) == len(alive):  # every atom's sum is known
        return sp.identity(count, dtype=np.int64, format="csr")
    merged = (lattice.kernel_rows(matrix) @ spread).tocsr()
    merged.eliminate_zeros()
    return lattice.kernel_rows(merged)


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


def _some_sums(figures: Figures, of_atom: Ints, count: int, empty: Any) -> Any:
    """Group sums that agree with every published figure; those of untied groups are the true ones.

    None before figures are published, if there are groups. Empty atoms have nobody in the solution
    either.
    """
    if figures.values is None:
        return None if count else np.zeros(0)
    totals, alive = figures.atom_totals, np.flatnonzero(~empty)
    x = np.zeros(len(empty))
    if totals is not None:
        x[:] = totals
    elif len(alive) == len(empty):
        x[:] = figures.some_solution
    else:
        x[alive] = lattice.solution(figures.matrix[:, alive].tocsr(), figures.flat_values)
    grouped = of_atom >= 0
    return np.bincount(of_atom[grouped], weights=x[grouped], minlength=count)


def _over_table(
    figures: Figures, names: tuple[str, ...], shape: tuple[int, ...], labels: Ints
) -> Ints:
    """Spread labels of keys over the released table's cells."""
    inside = [figures.schema.axis(name).base in figures.bases for name in names]
    keyed = tuple(size if own else 1 for size, own in zip(shape, inside, strict=True))
    return np.ascontiguousarray(np.broadcast_to(labels.reshape(keyed), shape))
