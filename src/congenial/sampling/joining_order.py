"""Integer equations on atom totals: independent components, and an order in which atoms join.

Exact linear algebra on small matrices. A component is a set of totals tied to one another (a
connected component of the matroid of the columns); different components are independent. Whether
noise on them can be drawn by elimination is told here too, without building its tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from flint import fmpz_mat

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.figures.integers import Row, echelon, row_reduced
from congenial.figures.lattice import connected
from congenial.sampling.discrete import CellLaw
from congenial.sampling.tree_messages import WIDEST, Leaf

Rows = list[list[Fraction]]
Equations = tuple[tuple[int, ...], ...]
_MOST_DIMENSIONS = 3
_MOST_STATES = 1 << 25  # entries of all messages of one component
_MOST_WORK = 1 << 34  # terms summed for one component
_FEW = 40  # atoms of a component up to which the best one is looked for at every step
_MOST_TRIED = 60  # atoms, beyond which an order is found at once or not at all
_MOST_FREEDOM = 30  # free totals of a component
REMEDY = (
    "Promise rho in place of epsilon, for which such noise is drawn; or publish crossing figures "
    "by the same areas (each by the finer ones too, or all by the coarser ones), or fewer of them."
)
# Windows end at 2^-80 of the largest weight. Draws outside them are left with half of those bits
# at least, so that their share is far below the 2^-2 that `elimination` refuses.
_SPARE_BITS = 40


class Window(Protocol):
    """Where the total of an atom is tabulated: from `lo` to `hi`."""

    @property
    def lo(self) -> int:
        """First point."""

    @property
    def hi(self) -> int:
        """Last point."""


@dataclass(frozen=True, eq=False)
class Step:
    """One atom joins: from the state c' after, c = grid c' / scale - turn x total is the state
    before; `fixed` c' / scale is the total where the state after determines it.
    """

    atom: int
    grid: Ints
    scale: int
    turn: Ints
    fixed: list[int] | None

    @property
    def fixed_array(self) -> Ints:
        """`fixed` as an array of three."""
        out = np.zeros(3, np.int64)
        if self.fixed is not None:
            out[: len(self.fixed)] = self.fixed
        return out


@dataclass(frozen=True, eq=False)
class Component:
    """Atoms whose totals are tied to one another by `rows` (integers, reduced, of full rank)."""

    atoms: list[int]
    rows: list[list[int]]
    solved: list[int]  # pivot columns: their totals follow from the free ones
    free: list[int]

    @property
    def freedom(self) -> int:
        """Number of free totals."""
        return len(self.free)

    def solve(self, values: dict[int, int]) -> list[int] | None:
        """All totals, given the free ones; None if one is not an integer."""
        out = [values.get(a, 0) for a in range(len(self.atoms))]
        for row, pivot in zip(self.rows, self.solved, strict=True):
            total, rest = divmod(-sum(row[a] * v for a, v in values.items()), row[pivot])
            if rest:
                return None
            out[pivot] = total
        return out

    @cached_property
    def order(self) -> list[int]:
        """Atoms in the order of joining; StructureError where too many totals are free."""
        if self.freedom > _MOST_FREEDOM:
            raise StructureError(
                f"crossing figures tie the totals of {len(self.atoms)} groups of people and leave "
                f"{self.freedom} of them free, more than {_MOST_FREEDOM}.",
                remedy=REMEDY,
            )
        return list(joining_order(tuple(map(tuple, self.rows)), len(self.atoms)))

    @cached_property
    def _kernel(self) -> list[list[Fraction]]:
        """A basis of the solutions, one list of totals each."""
        basis = []
        for f in self.free:
            vector = [Fraction(0)] * len(self.atoms)
            vector[f] = Fraction(1)
            for row, pivot in zip(self.rows, self.solved, strict=True):
                vector[pivot] = -Fraction(row[f], row[pivot])
            basis.append(vector)
        return basis

    @cached_property
    def _states(self) -> list[tuple[Rows, list[int]]]:
        """After each number of steps: a basis of the states (vectors with one entry per equation),
        reduced, and the equations that serve as coordinates.
        """
        spanned = [[Fraction(0)] * len(self.rows) for _ in self._kernel]
        out = [row_reduced(spanned, len(self.rows))]
        for atom in self.order:
            column = [(e, row[atom]) for e, row in enumerate(self.rows) if row[atom]]
            for state, solution in zip(spanned, self._kernel, strict=True):
                for e, coefficient in column if solution[atom] else ():
                    state[e] += coefficient * solution[atom]
            out.append(row_reduced(spanned, len(self.rows)))
        return out

    @property
    def coordinates(self) -> list[list[int]]:
        """After each number of steps: the equations whose partial sums are the state."""
        return [pivots for _, pivots in self._states]

    @cached_property
    def steps(self) -> list[Step]:
        """One step per atom, in order."""
        return [self._step(j) for j in range(len(self.atoms))]

    def _step(self, j: int) -> Step:
        atom, (_, before), (basis, after) = self.order[j], self._states[j], self._states[j + 1]
        column = [Fraction(row[atom]) for row in self.rows]
        functional = self._functional(self.order[:j], column)
        fixed = None
        if functional is not None:
            fixed = [
                sum((f * b for f, b in zip(functional, v, strict=True)), Fraction(0)) for v in basis
            ]
        lift = [[v[e] for v in basis] for e in before]
        entries = [x for row in lift for x in row] + (fixed or [])
        scale = math.lcm(*(x.denominator for x in entries)) if entries else 1
        grid, turn = np.zeros((3, 3), np.int64), np.zeros(3, np.int64)
        for k, row in enumerate(lift):
            turn[k] = int(column[before[k]])
            grid[k, : len(after)] = [int(x * scale) for x in row]
        whole = None if fixed is None else [int(x * scale) for x in fixed]
        return Step(atom, grid, scale, turn, whole)

    def _functional(self, joined: list[int], column: list[Fraction]) -> list[Fraction] | None:
        """h with h E_a = 0 for joined atoms and h column = 1; None if the column is in their span.

        It reads the total of the joining atom off the state.
        """
        m = len(self.rows)
        if m == 0:
            return None
        conditions = [[Fraction(row[a]) for row in self.rows] + [Fraction(0)] for a in joined]
        conditions.append([*column, Fraction(1)])
        reduced, pivots = row_reduced(conditions, m + 1)
        if m in pivots:
            return None
        h = [Fraction(0)] * m
        for row, pivot in zip(reduced, pivots, strict=True):
            h[pivot] = row[m]
        return h

    def box(self, j: int, atoms: Sequence[Window]) -> list[tuple[int, int]]:
        """Bounds of the state after j steps, given the windows of the atoms' totals."""
        out = []
        for e in self.coordinates[j]:
            joined = self._range(e, self.order[:j], atoms)
            rest = self._range(e, self.order[j:], atoms)
            out.append((max(joined[0], -rest[1]), min(joined[1], -rest[0])))
        return out

    def _range(self, e: int, members: list[int], atoms: Sequence[Window]) -> tuple[int, int]:
        least = most = 0
        for a in members:
            ends = sorted((self.rows[e][a] * atoms[a].lo, self.rows[e][a] * atoms[a].hi))
            least, most = least + ends[0], most + ends[1]
        return least, most

    def refuse_large(self, atoms: Sequence[Window]) -> None:
        """StructureError where messages over states would be too many or take too long."""
        boxes = [self.box(j, atoms) for j in range(len(self.steps) + 1)]
        sizes = [math.prod(hi - lo + 1 for lo, hi in box) for box in boxes]
        work = [
            size * (1 if step.fixed is not None else atoms[step.atom].hi - atoms[step.atom].lo + 1)
            for size, step in zip(sizes[1:], self.steps, strict=True)
        ]
        if sum(sizes) > _MOST_STATES or sum(work) > _MOST_WORK:
            raise StructureError(
                f"crossing figures tie the totals of {len(atoms)} groups of people too closely: "
                f"{sum(sizes):.1e} states.",
                remedy=REMEDY,
            )


def _dimensions_with(rows: Equations, joined: list[int], left: list[int]) -> list[int]:
    """Dimension of the state once one more atom has joined, for each of those left.

    A joining atom raises the rank of the joined ones unless it lies in their span, and lowers that
    of the rest only if no combination of the others replaces it. Two reductions tell it of all.
    """
    if not rows:
        return [0] * len(left)
    outside, rank = _outside_span(rows, joined, left)
    needed, rest = _needed(rows, left)
    dimension = rank + rest - len(rows)
    return [dimension + out - need for out, need in zip(outside, needed, strict=True)]


def _outside_span(rows: Equations, joined: list[int], left: list[int]) -> tuple[list[bool], int]:
    """Which columns are not in the span of those joined, and the rank of these."""
    reduced = _reduced(rows, [*joined, *left])
    rank = sum(1 for row in reduced if any(row[: len(joined)]))
    below = reduced[rank:]
    return [any(row[len(joined) + at] for row in below) for at in range(len(left))], rank


def _needed(rows: Equations, left: list[int]) -> tuple[list[bool], int]:
    """Which columns no combination of the others replaces, and the rank of all of them."""
    needed, rank = [False] * len(left), 0
    for row in _reduced(rows, left):
        entries = [at for at, value in enumerate(row) if value]
        rank += bool(entries)
        if len(entries) == 1:
            needed[entries[0]] = True
    return needed, rank


def _reduced(rows: Equations, columns: list[int]) -> list[list[Any]]:
    """Row echelon form of some columns, up to a common factor."""
    table: list[list[Any]] = (
        fmpz_mat([[row[a] for a in columns] for row in rows]).rref()[0].tolist()
    )
    return table


@lru_cache(maxsize=4096)  # counties repeat the same equations
def joining_order(rows: Equations, atoms: int) -> tuple[int, ...]:
    """An order that keeps states small; StructureError beyond three dimensions.

    Few atoms: each time the one that leaves the smallest state, ties broken by the smallest state
    one atom later. Many: column by column, if that will do.
    """
    if atoms > _FEW:
        tried = _short_equations_first(rows, atoms)
        if max(_dimensions(rows, tried)) <= _MOST_DIMENSIONS:
            return tried
        if atoms > _MOST_TRIED:
            raise _too_wide(atoms)
    return _best_at_every_step(rows, atoms)


def _best_at_every_step(rows: Equations, atoms: int) -> tuple[int, ...]:
    """Each time the atom that leaves the smallest state, one atom later if need be."""
    left, joined = list(range(atoms)), list[int]()
    while left:
        sizes = _dimensions_with(rows, joined, left)
        least = min(sizes)
        if least > _MOST_DIMENSIONS:
            raise _too_wide(atoms)
        ties = [a for a, size in zip(left, sizes, strict=True) if size == least]
        best = _best_later(rows, joined, left, ties) if atoms <= _FEW else ties[0]
        joined.append(best)
        left.remove(best)
    return tuple(joined)


def _best_later(rows: Equations, joined: list[int], left: list[int], ties: list[int]) -> int:
    """The first of some atoms that leaves the smallest state one atom later."""
    later = []
    for a in ties if len(ties) > 1 else ():
        rest = [b for b in left if b != a]
        later.append(min(_dimensions_with(rows, [*joined, a], rest), default=0))
    return ties[later.index(min(later))] if later else ties[0]


def _short_equations_first(rows: Equations, atoms: int) -> tuple[int, ...]:
    """Atoms one after another as equations name them, those of few atoms first: the columns of a
    table before its rows.
    """
    named = sorted(([a for a, v in enumerate(row) if v] for row in rows), key=len)
    return tuple(dict.fromkeys([a for row in named for a in row] + list(range(atoms))))


def _dimensions(rows: Equations, order: Sequence[int]) -> list[int]:
    """Dimensions of the states while atoms join in this order.

    The rank of the first columns is the number of pivots among them.
    """
    before = _ranks(rows, order)
    after = _ranks(rows, order[::-1])[::-1]
    return [own + other - len(rows) for own, other in zip(before, after, strict=True)]


def _ranks(rows: Equations, order: Sequence[int]) -> list[int]:
    """Rank of the first 0, 1, 2, ... columns."""
    dense = [[Fraction(row[a]) for a in order] for row in rows]
    pivots = set(row_reduced(dense, len(order))[1])
    return [0, *np.cumsum([a in pivots for a in range(len(order))]).tolist()]


def _too_wide(atoms: int) -> StructureError:
    return StructureError(
        f"crossing figures tie the totals of {atoms} groups of people: a state of "
        f"more than {_MOST_DIMENSIONS} sums would be needed.",
        remedy=REMEDY,
    )


def components(equations: list[dict[int, int]], atoms: int) -> list[Component]:
    """Split the atoms into independent components; an atom whose total is determined is one by
    itself without freedom.
    """
    out: list[Component] = []
    for members, rows in _connected(equations, atoms):
        place = {a: i for i, a in enumerate(members)}
        placed = [{place[a]: Fraction(c) for a, c in row.items()} for row in rows]
        out += _split(members, _form(placed, len(members)))
    return out


def _form(rows: list[Row], columns: int) -> dict[int, Row]:
    """Reduced row echelon form as {pivot column: its row}; that of few columns is found densely."""
    if columns > _MOST_TRIED:
        form = echelon(_matrix(rows, columns))
        return {pivot: form[pivot] for pivot in sorted(form)}
    dense = [[row.get(a, Fraction(0)) for a in range(columns)] for row in rows]
    reduced, pivots = row_reduced(dense, columns)
    return {
        pivot: {a: v for a, v in enumerate(row) if v}
        for pivot, row in zip(pivots, reduced, strict=True)
    }


def _matrix(rows: list[Row], columns: int) -> sp.csr_matrix:
    entries = [(i, a, int(v)) for i, row in enumerate(rows) for a, v in row.items()]
    at = np.array(entries, dtype=np.int64).reshape(-1, 3)
    return sp.csr_matrix((at[:, 2], (at[:, 0], at[:, 1])), shape=(len(rows), columns))


def _connected(
    equations: list[dict[int, int]], atoms: int
) -> list[tuple[list[int], list[dict[int, int]]]]:
    """Atoms joined by common equations, with those equations."""
    named = [(row, a) for row, equation in enumerate(equations) for a in equation]
    rows, columns = np.array(named, dtype=np.int64).reshape(-1, 2).T
    part = connected((columns, atoms + rows), atoms + len(equations)).tolist()
    members: dict[int, tuple[list[int], list[dict[int, int]]]] = {}
    for a in range(atoms):
        members.setdefault(part[a], ([], []))[0].append(a)
    for row, equation in enumerate(equations):
        if equation:
            members[part[atoms + row]][1].append(equation)
    return list(members.values())


def _split(members: list[int], form: dict[int, Row]) -> list[Component]:
    """Components of a reduced matrix: columns joined by the nonzero entries of its rows."""
    out = []
    for block, _ in _connected([dict.fromkeys(row, 1) for row in form.values()], len(members)):
        place = {a: i for i, a in enumerate(block)}
        inside = [pivot for pivot in form if pivot in place]
        whole = []
        for pivot in inside:
            scale = math.lcm(*(v.denominator for v in form[pivot].values()))
            row = [0] * len(block)
            for a, v in form[pivot].items():
                row[place[a]] = int(v * scale)
            whole.append(row)
        out.append(
            Component(
                [members[a] for a in block],
                whole,
                [place[pivot] for pivot in inside],
                [place[a] for a in block if a not in form],
            )
        )
    return out


class WidestWindow(NamedTuple):
    """A window no smaller than that of an atom's total."""

    lo: int
    hi: int


def surely_drawn(parts: list[Component], sizes: Ints, law: CellLaw) -> bool:
    """True if `CrossingGroups` can be built for groups of these sizes of unbounded cells around 0;
    False if only building it tells.

    The window of a sum is at most the sum of the windows of its cells, which bounds how many states
    there are and how much work they take.
    """
    cell = Leaf(law).edge(+1)
    reach = [WidestWindow(-cell * size, cell * size) for size in map(int, sizes)]
    if 2 * max(interval.hi for interval in reach) > WIDEST:
        return False
    return all(_fits(part, [reach[a] for a in part.atoms]) for part in parts)


def _fits(part: Component, reach: list[WidestWindow]) -> bool:
    if not part.freedom:
        return True
    widest = max(interval.hi - interval.lo + 1 for interval in reach)
    if part.freedom * math.log2(widest) + math.log2(1 + part.freedom) > _SPARE_BITS:
        return False
    try:
        part.refuse_large(reach)
    except StructureError:
        return False
    return True
