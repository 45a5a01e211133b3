"""Hostile neighbours: pairs of conforming databases that a release must not tell apart, from public
information alone.

A pair is a table x and a kernel move u: x and x + u agree with every published figure, and differ
in as many records as adjacent databases may. An integer programme looks for the u that goes
farthest in a random direction of the released table (a vertex of the hull of S: hexagons and other
large moves among them), then for an x at the edge of what conforms: a vertex, with as many empty
cells as the figures allow. Figures that are not published yet are made up: x then holds nobody but
those who move.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import NAMES, SEVERAL, takes
from congenial.data.arrays import Floats, Ints
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.statements import total
from congenial.pairs.pairs import Adjacency
from congenial.pairs.several_rows import SeveralRows
from congenial.pairs.universe import selected

LARGEST_DOMAIN = 50_000  # cells that figures and release mention
LARGEST_BLOCK = 150  # cells among which people move at once
LARGEST_SCHEMA = 1_000_000  # cells of whole tables, for pairs that a rule selects
_SECONDS = 20.0  # for one programme; the best that was found by then serves

Part = tuple[Any, Any, Any]  # rows of a programme, between two bounds


@dataclass(frozen=True, eq=False)
class HostilePair:
    """The true answers phi(x) and phi(x + u) of two conforming databases, made up.

    x and x + u agree with every published figure and are look-alikes of the adjacency: a mechanism
    must not tell `left` from `right` by more than its promise. No confidential data enter; both are
    made from public figures. `hostile_pairs` finds pairs that are as far apart as can be.
    """

    left: Table = field(repr=False)
    right: Table = field(repr=False)

    @cached_property
    def move(self) -> Ints:
        """phi(u)."""
        return np.asarray(self.right.counts - self.left.counts)

    @property
    def l1(self) -> int:
        """||phi(u)||_1."""
        return int(np.abs(self.move).sum())

    @property
    def l2_squared(self) -> int:
        """||phi(u)||_2^2."""
        return int(np.square(self.move).sum())

    @property
    def words(self) -> str:
        """What kind of pair it is."""
        moved = np.abs(self.move[self.move != 0])
        empty = int(np.count_nonzero((self.left.counts == 0) & (self.move > 0)))
        most = "1" if moved.max() == 1 else f"up to {moved.max()}"
        return f"{moved.size} cells change by {most}, {moved.sum()} in all; {empty} of them empty"


@takes(adjacency=Adjacency, names=NAMES, number=SEVERAL, generator=np.random.Generator)
def hostile_pairs(
    adjacency: Adjacency, names: tuple[str, ...], number: int, generator: np.random.Generator
) -> list[HostilePair]:
    """Up to `number` different pairs for the table over `names`: of the farthest moves (l1), by
    turns the most concentrated (l2) and the most spread.

    The search is random: that no pair is farther apart is certain only where `l1` reaches the
    sensitivity of the table. StructureError where no two conforming databases differ on the table:
    nothing is left to protect.

    >>> import numpy as np
    >>> from congenial import Schema, SemiAdjacent, Table, publish, total
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["no", "yes"]}})
    >>> published = publish(Table(schema, ["sex", "ill"], [[5, 2], [4, 1]]), total(by="sex"))
    >>> pairs = hostile_pairs(
    ...     SemiAdjacent(published), ("sex", "ill"), 2, np.random.default_rng(1)
    ... )
    >>> pairs[0].l1, pairs[0].move.sum(axis=1).tolist()
    (4, [0, 0])
    """
    search = _Search(adjacency, names)
    hostile: dict[bytes, HostilePair] = {}
    for attempt in range(max(12, 3 * number)):
        pair = search.pair(generator, attempt)
        if pair is not None and np.any(pair.move):
            key = pair.left.counts.tobytes() + pair.right.counts.tobytes()
            hostile.setdefault(key, pair)
    if not hostile:
        raise StructureError(
            "no two datasets that agree with the figures were found that the release could "
            "distinguish.",
            remedy="Nothing is left to protect in this table, or its figures contradict each "
            "other.",
        )
    dense = sorted(hostile.values(), key=lambda pair: (-pair.l1, -pair.l2_squared))
    spread = sorted(hostile.values(), key=lambda pair: (-pair.l1, pair.l2_squared))
    turns = (pair for both in zip(dense, spread, strict=True) for pair in both)
    return list(dict.fromkeys(turns))[:number]


class _Search:
    """The integer programme on classes: cells that neither figures nor release tell apart."""

    def __init__(self, adjacency: Adjacency, names: tuple[str, ...]) -> None:
        self.adjacency, self.names = adjacency, names
        figures, query = adjacency.figures, total(by=names)
        self.cells = Cells(figures.schema, (*figures.statements, query))
        if self.cells.size > LARGEST_DOMAIN:
            raise StructureError(
                f"figures and release use {self.cells.size:,} cells, more than {LARGEST_DOMAIN:,}.",
                remedy="Audit the same plan with fewer categories: the noise of the others is the "
                "same.",
            )
        classes = self.cells.classes((*figures.equalities, *figures.bounds, query))
        classes = np.where(self.cells.touched(figures.zeros), -1, classes)
        labels, first = np.unique(classes, return_index=True)
        self.first = first[labels >= 0]
        self.phi = self.cells.matrix([query], self.first)
        self.equal = self.cells.matrix(figures.equalities, self.first)
        self.values = None if figures.values is None else figures.flat_values
        least = [
            (1 if s.relation == ">=" else -1, self.cells.matrix([s], self.first), int(s.bound or 0))
            for s in figures.bounds
        ]
        empty = sp.csr_matrix((0, len(self.first)), dtype=np.int64)
        self.least = sp.vstack([empty, *(sign * m for sign, m, _ in least)], format="csr")
        self.bounds = np.concatenate(
            [np.zeros(0), *(np.full(m.shape[0], float(sign * b)) for sign, m, b in least)]
        )

    @property
    def size(self) -> int:
        """Number of classes."""
        return len(self.first)

    def pair(self, generator: np.random.Generator, attempt: int) -> HostilePair | None:
        """One pair; every other attempt moves at most one person into or out of a cell."""
        if getattr(self.adjacency, "reading", None) == "existential":
            return self._selected(generator)
        room = np.where(self._block(generator), 1.0 if attempt % 2 else np.inf, 0.0)
        moves = self._move(self._direction(generator, attempt), room)
        if moves is None:
            return None
        up, down = moves
        x = self._table(generator, down, up - down)
        return None if x is None else HostilePair(self._released(x), self._released(x + up - down))

    def _direction(self, generator: np.random.Generator, attempt: int) -> Floats:
        """Random signs, or one cell: many people may enter it at once. Weights break ties."""
        released = self.phi.shape[0]
        if attempt % 4 == 2:
            sign = np.zeros(released)
            sign[generator.integers(released)] = generator.choice([-1.0, 1.0])
        else:
            sign = generator.choice([-1.0, 1.0], size=released)
        return np.asarray(sign * generator.uniform(1, 1.001, released) @ self.phi)

    def _block(self, generator: np.random.Generator) -> Any:
        """The classes in which people move: all, or those of some levels of each attribute."""
        shape = list(self.cells.shape)
        while prod(shape) > LARGEST_BLOCK:
            shape[int(np.argmax(shape))] -= 1
        inside = np.zeros(self.cells.shape, dtype=bool)
        levels = [
            generator.choice(of, size=some, replace=False)
            for of, some in zip(self.cells.shape, shape, strict=True)
        ]
        inside[np.ix_(*levels)] = True
        return inside.reshape(-1)[self.first]

    def _move(self, direction: Floats, room: Floats) -> tuple[Ints, Ints] | None:
        """Who enters and who leaves, at most `room` in each class: the farthest kernel move
        between conforming tables.
        """
        n, rows = self.size, self.adjacency.metric == "symmetric difference"
        records = self.adjacency.records
        eye, none = sp.identity(n, format="csr"), sp.csr_matrix((self.equal.shape[0], n))
        everybody = np.ones((1, n))
        parts: list[Part] = [  # variables: x, up, down
            (sp.hstack([none, self.equal, -self.equal]), 0, 0),
            (sp.hstack([eye, 0 * eye, -eye]), 0, np.inf),
            (np.hstack([0 * everybody, everybody, everybody]), 0, records if rows else 2 * records),
            (sp.hstack([self.least, 0 * self.least, 0 * self.least]), self.bounds, np.inf),
            (sp.hstack([self.least, self.least, -self.least]), self.bounds, np.inf),
        ]
        if isinstance(self.adjacency, SeveralRows) and not self.adjacency.people_kept:
            parts.append((np.hstack([0 * everybody, everybody, 0 * everybody]), 0, records))
            parts.append((np.hstack([0 * everybody, 0 * everybody, everybody]), 0, records))
        elif not rows:
            parts.append((np.hstack([0 * everybody, everybody, -everybody]), 0, 0))
        if self.values is not None:
            parts.append((sp.hstack([self.equal, none, none]), self.values, self.values))
        # A little against moving people who see nothing of it.
        cost = np.concatenate([np.zeros(n), 1e-6 - direction, 1e-6 + direction])
        limit = np.concatenate([np.full(n, np.inf), room, room])
        whole = np.repeat([0, 1, 1], n)  # a whole x is looked for afterwards
        solution = _solve(cost, parts, limit, whole)
        return None if solution is None else (solution[n : 2 * n], solution[2 * n :])

    def _table(self, generator: np.random.Generator, down: Ints, move: Ints) -> Ints | None:
        """A conforming table at the edge in which those who leave can be found."""
        n = self.size
        parts: list[Part] = [
            (sp.identity(n, format="csr"), down.astype(float), np.inf),
            (self.least, np.maximum(self.bounds, self.bounds - self.least @ move), np.inf),
        ]
        if self.values is not None:
            parts.append((self.equal, self.values, self.values))
        return _solve(generator.uniform(0.5, 1.5, n), parts)

    def _released(self, x: Ints) -> Table:
        axes = self.adjacency.schema.axes(self.names)
        shape = tuple(len(axis.levels) for axis in axes)
        counts = np.asarray(np.rint(self.phi @ x), dtype=np.int64).reshape(shape)
        return Table(self.adjacency.schema, self.names, counts)

    def _selected(self, generator: np.random.Generator) -> HostilePair | None:
        """A conforming table, and the one the stored rule puts in its place for some answer."""
        schema, figures = self.adjacency.schema, self.adjacency.figures
        if schema.size(schema.names) > LARGEST_SCHEMA:
            raise StructureError(
                f"whole tables have more than {LARGEST_SCHEMA:,} cells.",
                remedy="Audit the same plan with fewer categories.",
            )
        start = np.zeros(self.size, dtype=np.int64)
        if self.values is None:  # nothing is published: a few people anywhere
            np.add.at(start, generator.integers(self.size, size=4), 1)
        x = self._table(generator, start, 0 * start)
        if x is None:
            return None
        table = self._whole(x)
        public = figures if figures.values is not None else figures.evaluate(table)
        answer = tuple(int(generator.integers(k)) for k in table.counts.shape)
        try:
            other = selected(public, table, answer)
        except StructureError:
            return None  # nobody can have that answer
        names = self.names
        return HostilePair(
            Table(schema, names, table.marginal(names).counts),
            Table(schema, names, other.marginal(names).counts),
        )

    def _whole(self, x: Ints) -> Table:
        """A table over the whole schema: attributes that nothing mentions at their first level."""
        schema = self.adjacency.schema
        moved = np.zeros(self.cells.size, dtype=np.int64)
        moved[self.first] = x
        counts = np.zeros([schema.attribute(name).size for name in schema.names], dtype=np.int64)
        at: list[Any] = [slice(None) if name in self.cells.bases else 0 for name in schema.names]
        counts[tuple(at)] = moved.reshape(self.cells.shape)
        return Table(schema, schema.names, counts)


def _solve(cost: Floats, parts: list[Part], limit: Any = np.inf, whole: Any = 1) -> Ints | None:
    """Numbers in 0 .. limit of least cost, where asked for whole ones, or None; rounded."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    constraints = [
        LinearConstraint(sp.csr_matrix(matrix), low, high)
        for matrix, low, high in parts
        if matrix.shape[0]
    ]
    solution = milp(
        cost,
        constraints=constraints,
        integrality=whole,
        bounds=Bounds(0, limit),
        options={"time_limit": _SECONDS},
    )
    return None if solution.x is None else np.asarray(np.rint(solution.x), dtype=np.int64)
