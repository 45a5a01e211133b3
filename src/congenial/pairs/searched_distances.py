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

from congenial.data.arrays import Ints
from congenial.figures.integers import Missing, hermite, kernel, missing
from congenial.figures.people import Merged

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
        gaps = []
        for z, u in self._from_each():
            norms = np.abs(u).sum(axis=1)
            options = [int(norms[norms > 0].min()) // 2] if np.any(norms) else []
            options += [1] if np.any(self.several & (z > 0)) else []
            options += [2] if np.count_nonzero(z) > 1 else []  # two people change places
            gaps.append(min(options, default=0))
        return gaps

    @cached_property
    def generating(self) -> int:
        """Least a such that differences of norm at most 2a generate all differences of tables."""
        return max(int(self.inside), -(-self._generating_norm // 2))

    @cached_property
    def _generating_norm(self) -> int:
        sums = self.tables.sum(axis=1)
        same = [self.tables[sums == people] for people in np.unique(sums)]
        whole = [some - some[0] for some in same]
        differences = [
            np.unique(some[k:] - some[:-k], axis=0) for some in same for k in range(1, len(some))
        ]
        return _generating_norm(whole, differences, self.tables.shape[1])

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
        differences = [self.tables - z for z in self.tables]
        unique = np.concatenate(differences)
        ones = unique[np.abs(unique).sum(axis=1) == 1]
        single = ones.any(axis=0)  # atoms that one row may enter alone
        least = 2 if np.any(self.several & self.possible & ~single) else 1
        return max(least, _generating_norm(differences[:1], differences, size))


def _generating_norm(whole: list[Ints], differences: list[Ints], size: int) -> int:
    """Least norm such that differences up to it generate the lattice of `whole`."""
    none = np.zeros((0, size), dtype=np.int64)
    aim, grown = hermite(np.concatenate([none, *whole])), none
    unique = np.unique(np.concatenate([none, *differences]), axis=0)
    norms = np.abs(unique).sum(axis=1)
    for norm in np.unique(norms):
        grown = hermite(np.concatenate([grown, unique[norms == norm]]))
        if np.array_equal(grown, aim):
            return int(norm)
    assert not len(aim), "all differences generate what they generate"
    return 0


# ---- integer programme --------------------------------------------------------------------------
#
# Distances between conforming databases by integer programming (HiGHS), where tables are too many
# to list and the Graver basis is too large.
#
# The robust distance is a maximum over tables of a minimum over tables. It is found by turns: one
# programme looks for a table and a person that no known move helps within `a` records, another
# finds the cheapest move that does. When the first finds nothing, `a` is the answer. Moves are
# checked in whole numbers; that nothing is left to find rests on the solver.


MOST_TURNS = 200
MOST_ATOMS = 64
NODES = 20_000  # branch and bound, per programme


class GaveUp(Exception):
    """A programme reached its limit."""


@dataclass
class _Programme:
    """Whole variables, linear rows, one objective."""

    high: list[Ints] = field(default_factory=list)
    rows: list[tuple[Any, Any]] = field(default_factory=list)
    limits: list[tuple[float, float]] = field(default_factory=list)
    size: int = 0

    def variables(self, high: Ints) -> Ints:
        """New variables in 0..high."""
        self.high.append(np.asarray(high, dtype=np.int64))
        self.size += len(high)
        return np.arange(self.size - len(high), self.size)

    def require(
        self, *terms: tuple[Any, Any], least: float = -np.inf, most: float = np.inf
    ) -> None:
        """least <= sum of weights * variables <= most, terms being (variables, weights)."""
        columns = np.concatenate([np.atleast_1d(c) for c, _ in terms])
        weights = np.concatenate([np.atleast_1d(w) for _, w in terms])
        self.rows.append((columns, weights))
        self.limits.append((least, most))

    def conform(self, z: Ints, of: Merged) -> None:
        """The variables are a conforming table."""
        assert of.values is not None
        for matrix, least, most in (
            (of.equal, of.values, of.values),
            (of.least, of.bounds, np.full(len(of.bounds), np.inf)),
        ):
            for i in range(matrix.shape[0]):
                part = slice(matrix.indptr[i], matrix.indptr[i + 1])
                row = (z[matrix.indices[part]], matrix.data[part])
                self.require(row, least=least[i], most=most[i])

    def solve(self, objective: tuple[Any, Any]) -> Ints | None:
        """The variables of a minimum, None if there is none."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        at = np.repeat(np.arange(len(self.rows)), [len(c) for c, _ in self.rows])
        columns = np.concatenate([c for c, _ in self.rows])
        weights = np.concatenate([w for _, w in self.rows]).astype(float)
        matrix = sp.csr_matrix((weights, (at, columns)), shape=(len(self.rows), self.size))
        cost = np.zeros(self.size)
        cost[objective[0]] = objective[1]
        limits = np.array(self.limits)
        solution = milp(
            cost,
            constraints=LinearConstraint(matrix, limits[:, 0], limits[:, 1]),
            integrality=np.ones(self.size),
            bounds=Bounds(0, np.concatenate(self.high)),
            options={"node_limit": NODES, "mip_rel_gap": 0},
        )
        if solution.status == 2:
            return None
        if solution.status != 0:
            raise GaveUp
        return np.asarray(np.rint(solution.x), dtype=np.int64)


def able(of: Merged) -> bool:
    """Whether the programmes can be written: figures published, few atoms, all of them bounded."""
    return of.values is not None and of.atoms <= MOST_ATOMS and of.most is not None


def worst_distance(of: Merged, *, tables_only: bool = False) -> int:
    """The robust a(t), at least 2; with `tables_only` the existential one, at least 1.

    Raises GaveUp after `MOST_TURNS` moves.
    """
    a, moves = (1 if tables_only else 2), list[Ints]()
    impossible: set[int] = set()
    for _ in range(MOST_TURNS):
        hard = _unhelped(of, moves, a, impossible, tables_only)
        if hard is None:
            return a
        table, source, target = hard
        move = _cheapest(of, table, source, target, tables_only)
        if move is None:
            impossible.add(target)
            continue
        norm = int(np.abs(move).sum()) // 2
        a = max(a, norm if tables_only or move[source] < 0 else norm + 1)
        moves.append(move)
    raise GaveUp


def _unhelped(
    of: Merged, moves: list[Ints], a: int, impossible: set[int], tables_only: bool
) -> tuple[Ints, int, int] | None:
    """A table, somebody's atom and an empty atom that no known move fills within `a` records."""
    assert of.most is not None
    programme = _Programme()
    z = programme.variables(of.most)
    ones = np.ones(of.atoms, dtype=np.int64)
    source, target = programme.variables(ones), programme.variables(ones)
    programme.conform(z, of)
    for choice in (source, target):
        programme.require((choice, ones), least=1, most=1)
    for j in range(of.atoms):
        programme.require((z[j], ones[0]), (source[j], -ones[0]), least=0)
        if j in impossible:
            programme.require((target[j], ones[0]), most=0)
        else:
            programme.require((z[j], ones[0]), (target[j], of.most[j]), most=int(of.most[j]))
    for move in moves:
        norm = int(np.abs(move).sum()) // 2
        if norm > a:
            continue
        fails = _fails(programme, of, z, move)
        filled = np.flatnonzero(move > 0)
        terms = [(fails, np.ones(len(fails), dtype=np.int64)), (target[filled], -ones[filled])]
        if tables_only or norm < a:
            programme.require(*terms, least=0)
        else:  # one record more unless the person is among those who move
            left = np.flatnonzero(move < 0)
            programme.require(*terms, (source[left], -ones[left]), least=-1)
    solution = programme.solve((z[:0], ones[:0]))
    if solution is None:
        return None
    return solution[z], int(solution[source].argmax()), int(solution[target].argmax())


def _fails(programme: _Programme, of: Merged, z: Ints, move: Ints) -> Ints:
    """Switches of which one must be on where a move does not apply to the table z."""
    assert of.most is not None
    taken = np.flatnonzero(move < 0)
    effect = of.least @ move
    bound = np.flatnonzero(effect < 0)
    switches = programme.variables(np.ones(len(taken) + len(bound), dtype=np.int64))
    unit = np.int64(1)
    for switch, j in zip(switches[: len(taken)], taken, strict=True):
        limit = int(-move[j]) - 1  # too few people in j
        programme.require((z[j], unit), (switch, of.most[j] - limit), most=int(of.most[j]))
    dense = of.least.toarray()
    for switch, i in zip(switches[len(taken) :], bound, strict=True):
        most = int(np.maximum(dense[i], 0) @ of.most)
        limit = int(of.bounds[i] - effect[i]) - 1  # the bound would break
        programme.require((z, dense[i]), (switch, np.int64(most - limit)), most=most)
    return switches


def _cheapest(of: Merged, table: Ints, source: int, target: int, tables_only: bool) -> Ints | None:
    """The move to the nearest table with somebody in `target`, a person of `source` going there."""
    assert of.most is not None
    programme = _Programme()
    z = programme.variables(of.most)
    gap = programme.variables(np.full(of.atoms, int(table.sum()) + 1))
    wanted = table.copy()
    if not tables_only:
        wanted[target] += 1
        wanted[source] -= 1
    unit = np.int64(1)
    programme.conform(z, of)
    programme.require((z, np.ones(of.atoms, dtype=np.int64)), least=table.sum(), most=table.sum())
    programme.require((z[target], unit), least=1)
    for j in range(of.atoms):
        programme.require((z[j], unit), (gap[j], -unit), most=int(wanted[j]))
        programme.require((z[j], unit), (gap[j], unit), least=int(wanted[j]))
    solution = programme.solve((gap, np.ones(of.atoms, dtype=np.int64)))
    if solution is None:
        return None
    move = solution[z] - table
    if np.any(of.equal @ move):
        raise GaveUp  # the solver's tolerance was too wide
    return move


def generating_distance(of: Merged) -> int:
    """Least a such that differences of conforming tables of norm at most 2a generate all of them.

    The shortest difference outside what is generated so far is added until none is left.
    """
    whole = kernel(of.with_sum.toarray())
    generated, a = np.zeros((0, len(whole.basis)), dtype=np.int64), 0
    while True:
        forms = missing(generated, whole.coordinates)
        moves = [move for form in forms if (move := _outside(of, form)) is not None]
        if not moves:
            return a
        shortest = min(moves, key=lambda move: int(np.abs(move).sum()))
        grown = hermite(np.vstack([generated, whole.coordinates @ shortest]))
        if np.array_equal(grown, generated):
            raise GaveUp  # the solver's tolerance was too wide
        generated = grown
        a = max(a, int(np.abs(shortest).sum()) // 2)


def _outside(of: Merged, form: Missing) -> Ints | None:
    """The shortest difference of two conforming tables on which a linear form is not a multiple of
    its modulus (modulus 0: is not zero).
    """
    assert of.most is not None
    programme = _Programme()
    left, right = programme.variables(of.most), programme.variables(of.most)
    gap = programme.variables(of.most)
    for table in (left, right):
        programme.conform(table, of)
    ones = np.ones(of.atoms, dtype=np.int64)
    programme.require((left, ones), (right, -ones), least=0, most=0)
    for j in range(of.atoms):
        for sign in (1, -1):
            terms = (left[j], np.int64(sign)), (right[j], np.int64(-sign)), (gap[j], -ones[0])
            programme.require(*terms, most=0)
    value = (left, form.weights), (right, -form.weights)
    if form.modulus == 0:
        programme.require(*value, least=1)
    else:
        largest = int(np.abs(form.weights) @ of.most) // form.modulus + 1
        times, rest = programme.variables(np.array([largest, form.modulus - 1])).reshape(2, 1)
        minus = np.array([-1])
        programme.require((rest, -minus), least=1)
        programme.require(*value, (times, form.modulus * minus), (rest, minus), least=0, most=0)
    solution = programme.solve((gap, ones))
    return None if solution is None else solution[left] - solution[right]
