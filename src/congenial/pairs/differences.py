"""S(A_a): all differences of look-alike tables, listed, as far as queries can tell them apart.

S(A_a) = { u whole : A u = 0, sum u = 0, ||u||_1 <= 2a } as far as the published figures allow (by
symmetric difference: ||u||_1 <= a and no condition on the sum). Cells that neither figures nor
queries tell apart are one *class*. A u of S is what some people leave and others enter: two
multisets of at most a classes with equal figures, so multisets are sorted by their figures and
paired.

Source: semi-dp, Definition 4 and Proposition 32, corrected (a hexagon also keeps both margins).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.people import Merged, people_under
from congenial.figures.statements import Statement
from congenial.pairs.searched_distances import ListedDistances

LARGEST_DOMAIN = 50_000  # cells that figures and queries mention
MOST_MULTISETS = 40_000
MOST_PAIRS = 1_500_000
MOST_ENTRIES = 10_000  # of listed tables, all pairs of which are subtracted


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences (rows) on classes of cells; `maps[i] @ u` is how query i changes.

    `exact`: exactly those that occur between conforming databases; otherwise sizes of groups were
    not known and more are listed.
    """

    rows: Ints = field(repr=False)
    maps: tuple[Ints, ...] = field(repr=False)
    exact: bool

    def seen(self, query: int) -> Ints:
        """How one query changes, for each difference."""
        return product(self.rows, self.maps[query].T)


def product(left: Ints, right: Ints) -> Ints:
    """left @ right for small whole numbers, exactly, at the speed of doubles."""
    return np.asarray(np.rint(left.astype(float) @ right.astype(float)), dtype=np.int64)


def list_differences(
    of: Merged, queries: Sequence[Statement], norm: int, *, sum_kept: bool
) -> Differences | None:
    """All u of norm at most `norm` between conforming tables, or None if they are too many."""
    figures = of.figures
    cells = _domain(figures, queries)
    if cells is None:
        return None
    atom = of.of_cell[cells.spread(figures.bases, np.arange(figures.cells.size))]
    classes = cells.classes(queries) * (of.atoms + 1) + atom + 1
    classes = np.where(atom >= 0, classes, -1)
    labels, first = np.unique(classes, return_index=True)
    first = first[labels >= 0]
    sum_kept = sum_kept or of.sum_kept
    most = norm // 2 if sum_kept else norm
    exact = True
    if comb(len(first) + most, most) > MOST_MULTISETS:
        rows = _of_tables(of, norm) if len(first) == of.atoms else None
        rows = None if rows is None else rows[:, atom[first]]
    else:
        matrix = of.with_sum if sum_kept else of.equal
        rows = _paired(matrix.toarray()[:, atom[first]], norm, most)
        if rows is not None:
            rows, exact = _allowed(of, rows, atom[first])
    if rows is None:
        return None
    maps = tuple(cells.matrix([query], first).toarray() for query in queries)
    return Differences(rows, maps, exact)


def _of_tables(of: Merged, norm: int) -> Ints | None:
    """Differences of the listed conforming tables, where no query looks inside atoms."""
    listed = None if of.tables is None else ListedDistances(of.tables, of.several)
    if listed is None or of.people is None or listed.tables.size > MOST_ENTRIES:
        return None
    differences = [listed.tables - table for table in listed.tables]
    near = [u[np.abs(u).sum(axis=1) <= norm] for u in differences]
    return np.unique(np.concatenate(near), axis=0)


def _domain(figures: Figures, queries: Sequence[Statement]) -> Cells | None:
    """The cells that figures and queries mention, if they are few."""
    try:
        cells = Cells(figures.schema, (*figures.statements, *queries))
    except StructureError:  # far too many
        return None
    return cells if cells.size <= LARGEST_DOMAIN else None


def _paired(figures: Ints, norm: int, most: int) -> Ints | None:
    """All u with `figures @ u = 0` and ||u||_1 <= norm, at most `most` people leaving or entering.

    The zero is included.
    """
    size = figures.shape[1]
    sets = np.concatenate([_multisets(size, k) for k in range(most + 1)])
    group = np.unique(sets.astype(np.int64) @ figures.T, axis=0, return_inverse=True)[1]
    group = group.reshape(-1)
    if int((np.bincount(group) ** 2).sum()) > MOST_PAIRS:
        return None
    differences = []
    order = np.argsort(group, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        counts = sets[same]
        people = counts.sum(axis=1)
        apart = (counts > 0).astype(np.int16) @ (counts > 0).astype(np.int16).T == 0
        apart &= people[:, None] + people[None, :] <= norm
        up, down = np.nonzero(apart)
        differences.append(counts[up] - counts[down])
    return np.concatenate(differences).astype(np.int64)


def _multisets(size: int, people: int) -> Any:
    """Counts of all ways to put people, who look alike, into classes."""
    chosen = np.array(list(combinations_with_replacement(range(size), people)), dtype=np.int64)
    counts = np.zeros((max(1, len(chosen)) if size or not people else 0, size), dtype=np.int8)
    if people and size:
        np.add.at(counts, (np.arange(len(chosen))[:, None], chosen), 1)
    return counts


def _allowed(of: Merged, rows: Ints, atom: Ints) -> tuple[Ints, bool]:
    """Differences that occur between two conforming tables, and whether that could be decided.

    `atom` is the atom of each class.
    """
    figures = of.figures
    undecided = bool(figures.bounds) or figures.structure == "general" or figures.values is None
    if undecided and (of.tables is None or of.people is None):
        return rows, False
    inside = np.zeros((len(atom), of.atoms), dtype=np.int64)
    inside[np.arange(len(atom)), atom] = 1
    left = product(np.maximum(-rows, 0), inside)  # people who must be in each atom to start with
    if of.tables is not None and of.people is not None:
        listed = ListedDistances(of.tables, of.several)
        if listed.manageable:
            moved = product(rows, inside)
            return rows[_between(listed.tables, left, moved, bool(len(of.bounds)))], True
    if undecided:
        return rows, False
    groups = people_under(figures)
    first = np.array([int(np.argmax(of.of_cell == j)) for j in range(of.atoms)], dtype=np.int64)
    names = figures.atoms[first] if of.atoms else first
    people = np.where(groups.crossed, np.inf, groups.people)
    fits = np.all(left <= people[names], axis=1)
    exact = groups.known
    for crossing in groups.crossings:
        assert crossing.block.features is not None
        for number, atoms in enumerate(crossing.block.atoms):
            where = np.flatnonzero(np.isin(names, atoms))
            level = crossing.block.features[np.searchsorted(atoms, names[where])]
            for k, totals in enumerate(crossing.totals or ()):
                leaving = np.zeros((len(rows), totals.shape[1]), dtype=np.int64)
                np.add.at(leaving.T, level[:, k], left[:, where].T)
                fits &= np.all(leaving <= totals[number], axis=1)
        exact = exact and crossing.totals is not None
    return rows[fits], exact


def _between(tables: Ints, left: Ints, move: Ints, bounded: bool) -> Any:
    """Which differences start in some listed table and end in one."""
    pairs, index = np.unique(np.hstack([left, move]), axis=0, return_inverse=True)
    atoms = tables.shape[1]
    listed = {table.tobytes() for table in tables}
    fits = np.zeros(len(pairs), dtype=bool)
    for k, pair in enumerate(pairs):
        start = tables[np.all(tables >= pair[:atoms], axis=1)]
        if bounded:
            fits[k] = any((table + pair[atoms:]).tobytes() in listed for table in start)
        else:
            fits[k] = len(start) > 0
    return fits[index.reshape(-1)]
