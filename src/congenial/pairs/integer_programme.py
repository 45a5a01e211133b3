"""Distances between conforming databases by integer programming (HiGHS), where tables are too many
to list and the Graver basis is too large.

The robust distance is a maximum over tables of a minimum over tables. It is found by turns: one
programme looks for a table and a person that no known move helps within `a` records, another finds
the cheapest move that does. When the first finds nothing, `a` is the answer. Moves are checked in
whole numbers; that nothing is left to find rests on the solver.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.figures.integers import Lattice, Missing, kernel, missing
from congenial.figures.lattice import Ints
from congenial.figures.merged import Merged

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
        found = milp(
            cost,
            constraints=LinearConstraint(matrix, limits[:, 0], limits[:, 1]),
            integrality=np.ones(self.size),
            bounds=Bounds(0, np.concatenate(self.high)),
            options={"node_limit": NODES, "mip_rel_gap": 0},
        )
        if found.status == 2:
            return None
        if found.status != 0:
            raise GaveUp
        return np.asarray(np.rint(found.x), dtype=np.int64)


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
    found = programme.solve((z[:0], ones[:0]))
    if found is None:
        return None
    return found[z], int(found[source].argmax()), int(found[target].argmax())


def _fails(programme: _Programme, of: Merged, z: Ints, move: Ints) -> Ints:
    """Switches of which one must be on where a move does not apply to the table z."""
    assert of.most is not None
    taken = np.flatnonzero(move < 0)
    effect = of.least @ move
    bound = np.flatnonzero(effect < 0)
    switches = programme.variables(np.ones(len(taken) + len(bound), dtype=np.int64))
    one = np.int64(1)
    for switch, j in zip(switches[: len(taken)], taken, strict=True):
        limit = int(-move[j]) - 1  # too few people in j
        programme.require((z[j], one), (switch, of.most[j] - limit), most=int(of.most[j]))
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
    one = np.int64(1)
    programme.conform(z, of)
    programme.require((z, np.ones(of.atoms, dtype=np.int64)), least=table.sum(), most=table.sum())
    programme.require((z[target], one), least=1)
    for j in range(of.atoms):
        programme.require((z[j], one), (gap[j], -one), most=int(wanted[j]))
        programme.require((z[j], one), (gap[j], one), least=int(wanted[j]))
    found = programme.solve((gap, np.ones(of.atoms, dtype=np.int64)))
    if found is None:
        return None
    move = found[z] - table
    if np.any(of.equal @ move):
        raise GaveUp  # the solver's tolerance was too wide
    return move


def generating_distance(of: Merged) -> int:
    """Least a such that differences of conforming tables of norm at most 2a generate all of them.

    The shortest difference outside what is generated so far is added until none is left.
    """
    whole = kernel(of.with_sum.toarray())
    grown, found, a = Lattice(len(whole.basis)), list[list[int]](), 0
    while True:
        forms = missing(found, whole.coordinates)
        moves = [move for form in forms if (move := _outside(of, form)) is not None]
        if not moves:
            return a
        shortest = min(moves, key=lambda move: int(np.abs(move).sum()))
        coordinates = [int(v) for v in whole.coordinates @ shortest]
        if coordinates in grown:
            raise GaveUp  # the solver's tolerance was too wide
        grown.add([coordinates])
        found.append(coordinates)
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
    found = programme.solve((gap, ones))
    return None if found is None else found[left] - found[right]
