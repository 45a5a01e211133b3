"""Distances between conforming databases when their tables can be listed: every reading, exactly.

Records are labelled, so a database is a table with people put in its cells, and a conforming set
does not depend on who is where. Give a person in atom G of table z an answer of atom H in table z':
the others go from z - e_G to z' - e_H, so the databases differ in [G != H] +
||z' - e_H - z + e_G||_1 / 2 records at least. Every distance of semi-dp (Definition 13, Remark 14)
is a maximum or minimum of that over the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.figures.integers import Lattice
from congenial.figures.lattice import Ints

LARGEST_WORK = 20_000_000  # comparisons of two tables, atom by atom


@dataclass(frozen=True, eq=False)
class ListedDistances:
    """Conforming tables (rows) on atoms; `several` says which atoms stand for several answers.

    >>> isolated = ListedDistances(np.array([[3, 0], [2, 1], [0, 3]]), np.zeros(2, dtype=bool))
    >>> isolated.literal, isolated.farthest, isolated.robust  # 111 has no neighbour at distance 1
    (1, 2, 2)
    """

    tables: Ints = field(repr=False)
    several: Any = field(repr=False)

    @property
    def manageable(self) -> bool:
        """Whether all pairs of tables can be compared."""
        tables, atoms = self.tables.shape
        return bool(tables**2 * max(1, atoms) <= LARGEST_WORK)

    @cached_property
    def possible(self) -> Any:
        """Atoms in which somebody can be."""
        return np.any(self.tables > 0, axis=0)

    @cached_property
    def inside(self) -> bool:
        """Whether somebody can change the answer without leaving an atom."""
        return bool(np.any(self.several & self.possible))

    def _from_each(self) -> Iterator[tuple[Any, Any]]:
        """Each table with its differences to all tables of the same number of people."""
        sums = self.tables.sum(axis=1)
        for z, people in zip(self.tables, sums, strict=True):
            yield z, self.tables[sums == people] - z

    # ---- replace-one -------------------------------------------------------------------------

    @cached_property
    def robust(self) -> int:
        """sup over X, i and y of the distance to the nearest Y with Y_i = y."""
        return max(
            int(self.inside), *(int(self._costs(z, u).max(initial=0)) for z, u in self._from_each())
        )

    @cached_property
    def literal(self) -> int:
        """Definition 13 as printed: for each x and y, the nearest of all pairs that have them."""
        atoms = self.tables.shape[1]
        least = np.full((atoms, atoms), -1)  # by (G, H); -1: no such pair
        for z, u in self._from_each():
            cost = self._costs(z, u)
            least = np.where((least < 0) | ((cost >= 0) & (cost < least)), cost, least)
        return max(int(self.inside), int(least.max(initial=0)))

    def _costs(self, z: Any, moves: Any) -> Any:
        """Records that differ when one person of G (row) gets an answer of H (column), -1 where
        nobody is in G, or nobody can be in H.
        """
        norms = np.abs(moves).sum(axis=1)
        leaves = np.where(moves < 0, -1, 1)  # what taking one person out of G adds to the norm
        costs = np.full((len(z), len(z)), -1, dtype=np.int64)
        sources = np.flatnonzero(z > 0)
        for target in np.flatnonzero((moves + z).max(axis=0, initial=0) > 0):
            there = np.flatnonzero(moves[:, target] + z[target] > 0)
            norm = norms[there] + np.where(moves[there, target] > 0, -1, 1)
            after = norm[:, None] + leaves[there][:, sources]
            costs[sources, target] = 1 + after.min(axis=0) // 2
        costs[np.arange(len(z)), np.arange(len(z))] = -1
        return costs

    @cached_property
    def existential(self) -> int:
        """sup over X, i and y of the distance from X's *table* to the nearest one that has y."""
        worst = int(self.inside)
        for z, u in self._from_each():
            norms, after = np.abs(u).sum(axis=1), u + z
            for target in np.flatnonzero(after.max(axis=0, initial=0) > 0):
                worst = max(worst, int(norms[after[:, target] > 0].min()) // 2)
        return worst

    @cached_property
    def nearest(self) -> int:
        """a_min of Remark 14: the two closest different databases; 0 if there is only one."""
        return min((d for d in self._gaps if d), default=0)

    @cached_property
    def farthest(self) -> int:
        """a_maxmin of Remark 14: the database whose nearest other one is farthest."""
        return max(self._gaps, default=0)

    @cached_property
    def _gaps(self) -> list[int]:
        """For each table: distance from any database that has it to the nearest other database."""
        found = []
        for z, u in self._from_each():
            norms = np.abs(u).sum(axis=1)
            options = [int(norms[norms > 0].min()) // 2] if np.any(norms) else []
            options += [1] if np.any(self.several & (z > 0)) else []
            options += [2] if np.count_nonzero(z) > 1 else []  # two people change places
            found.append(min(options, default=0))
        return found

    @cached_property
    def generating(self) -> int:
        """Least a such that differences of norm at most 2a generate all differences of tables."""
        return max(int(self.inside), -(-self._generating_norm // 2))

    @cached_property
    def _generating_norm(self) -> int:
        size = self.tables.shape[1]
        sums = self.tables.sum(axis=1)
        whole, differences = Lattice(size), []
        for people in np.unique(sums):
            same = self.tables[sums == people]
            whole.add(same - same[0])
            for k in range(1, len(same)):
                differences.append(np.unique(same[k:] - same[:-k], axis=0))
        if not differences:
            return 0
        unique = np.unique(np.concatenate(differences), axis=0)
        norms = np.abs(unique).sum(axis=1)
        grown = Lattice(size)
        for norm in np.unique(norms):
            grown.add(unique[norms == norm])
            if grown.measure == whole.measure:
                return int(norm)
        raise AssertionError("all differences generate what they generate")

    def components(self, a: int) -> int:
        """Parts into which conforming tables fall when those at most `a` records apart are joined.

        One part means that every conforming table can be reached through look-alikes.
        """
        from scipy.sparse.csgraph import connected_components

        joined = [
            sp.csr_matrix(np.abs(self.tables - z).sum(axis=1)[None, :] <= 2 * a)
            for z in self.tables
        ]
        if not joined:
            return 0
        return int(connected_components(sp.vstack(joined), directed=False)[0])

    # ---- symmetric difference ----------------------------------------------------------------

    @cached_property
    def participation(self) -> int:
        """sup over X, a person and a way to come in or to leave, of the rows in which the nearest
        conforming database with that change differs.
        """
        worst = 1
        for z in self.tables:
            u = self.tables - z
            norms = np.abs(u).sum(axis=1)
            for target in np.flatnonzero(self.possible):
                there = u[:, target] + z[target] > 0
                enters = norms + np.where(u[:, target] > 0, -1, 1)
                worst = max(worst, 1 + int(enters[there].min()))
                if z[target] > 0:
                    worst = max(worst, 1 + int((norms + np.where(u[:, target] < 0, -1, 1)).min()))
        return worst

    @cached_property
    def generating_rows(self) -> int:
        """Least a such that differences of norm at most a generate all differences of tables."""
        size = self.tables.shape[1]
        if not size:
            return 1
        whole = Lattice(size).add(self.tables - self.tables[0])
        unique = np.unique(
            np.concatenate([self.tables - z for z in self.tables]).reshape(-1, size), axis=0
        )
        norms = np.abs(unique).sum(axis=1)
        single = np.abs(unique[norms == 1]).any(axis=0)  # atoms that one row may enter alone
        least = 2 if np.any(self.several & self.possible & ~single) else 1
        grown = Lattice(size)
        for norm in np.unique(norms):
            grown.add(unique[norms == norm])
            if grown.measure == whole.measure:
                return max(least, int(norm))
        raise AssertionError("all differences generate what they generate")
