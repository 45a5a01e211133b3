"""Whole tables: the nearest one in least squares, and TopDown's controlled rounding.

Both are linear programmes on the merged cells (atoms). Where the rows of the figures split into
two families of nested sets (nested totals, both margins of a table, the paper's total + female +
voting age) the matrix is totally unimodular and every vertex is whole; other figures are solved as
integer programmes, and `unimodular` says which. Every result is checked in integers.

**Nearest.** The cost of an atom's total is convex and piecewise linear: 2c + 1 for each unit at
level c (see `levels`). Levels around the real optimum become columns of the programme; if no total
ends at the edge of its columns the optimum is global, by convexity, else they are widened.

**Controlled rounding** (TopDown's second stage): among the whole tables of S* with floor(x) <= m <=
ceil(x), the one with the least ||m - x||_1.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.errors import MandateError, StructureError
from congenial.figures import lattice
from congenial.figures.lattice import Ints
from congenial.mechanisms.projection.conforming_tables import FAR, ConformingTables
from congenial.mechanisms.projection.least_squares import least_squares
from congenial.mechanisms.projection.water_levels import Floats, WaterLevels
from congenial.sampling.randomness import Randomness, SystemRandomness

_SNAP = 1e-5  # a real cell this near to a whole number is that number
_MOST_COLUMNS = 20_000_000  # of one programme, about
_MOST_PAIRS = 20_000_000  # pairs of overlapping rows looked at


def nearest(
    values: npt.ArrayLike,
    matrix: Any,
    figures: npt.ArrayLike,
    lower: npt.ArrayLike | None = 0,
    upper: npt.ArrayLike | None = None,
    randomness: Randomness | None = None,
) -> Ints:
    """The whole table nearest to `values` (whole numbers) with `matrix @ m = figures`.

    argmin of ||m - values||_2^2 over whole m with lower <= m <= upper (None: no bound). Exact, and
    ties are broken at random so that no cell is favoured. MandateError if there is none.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> margins = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
    >>> nearest([4, -2, 1, 3], margins, [3, 3, 4], randomness=SeededRandomness(1)).tolist()
    [3, 0, 1, 2]
    """
    return nearest_in(
        values, ConformingTables.of(matrix, figures, lower=lower, upper=upper), randomness
    )


def nearest_in(
    values: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """`nearest` for a set that has been made already; use it when many draws are projected.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> same_sum = ConformingTables.of([[1, 1, 1]], [4])
    >>> nearest_in([5, -1, 0], same_sum, SeededRandomness(1)).tolist()
    [4, 0, 0]
    """
    randomness = SystemRandomness() if randomness is None else randomness
    y = _whole(values, conforming.cells)
    levels = WaterLevels(conforming.atoms, y, conforming.lower, conforming.upper)
    totals = conforming.totals
    if totals is None:
        totals = _nearest_totals(y, conforming, levels, randomness)
    m = np.clip(y, conforming.lower, conforming.upper)
    m[levels.order] = levels.fill(totals, randomness)
    return checked(m, conforming)


def rounded(
    x: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """Controlled rounding: the conforming whole table nearest to x in l1, each cell up or down.

    x conforms in real numbers. Where no such table exists (figures that are not unimodular) cells
    may move one further at a time. Ties are broken at random.
    """
    randomness = SystemRandomness() if randomness is None else randomness
    real = np.asarray(x, dtype=float).reshape(-1)
    near = np.rint(real)
    snapped = np.where(np.abs(real - near) <= _SNAP, near, real)
    floor, roof = np.floor(snapped).astype(np.int64), np.ceil(snapped).astype(np.int64)
    tu = unimodular(conforming.merged)
    for room in (0, 1, 2, 4, 8):
        low = np.maximum(floor - room, conforming.lower)
        high = np.minimum(roof + room, conforming.upper)
        step = _round_once(snapped, low, high, conforming, tu, randomness)
        if step is not None:
            return checked(step, conforming)
    raise _impossible()


def topdown(
    values: npt.ArrayLike, conforming: ConformingTables, randomness: Randomness | None = None
) -> Ints:
    """TopDown's two stages: nonnegative least squares, then controlled rounding.

    Not the nearest whole table in general: `nearest_in` is. Kept to compare with what the 2020
    Census did.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> same_sum = ConformingTables.of([[1, 1, 1]], [4])
    >>> int(topdown([5, -1, 1], same_sum, SeededRandomness(1)).sum())
    4
    """
    return rounded(least_squares(values, conforming), conforming, randomness)


def checked(m: Ints, conforming: ConformingTables) -> Ints:
    """m itself, if it conforms in exact arithmetic."""
    if not conforming.holds(m):
        raise _impossible()
    return m


def unimodular(matrix: sp.csr_matrix) -> bool:
    """Whether the rows are 0/1 and split into two families of nested sets (sufficient for TU).

    Two rows that overlap without nesting must be in different families: the graph of such pairs
    has to be bipartite (Edmonds 1970).
    """
    if np.any(matrix.data != 1):
        return False
    if lattice.laminar(matrix) is not None:
        return True
    sides = lattice.partitions(matrix)
    if sides is not None:
        return bool(sides.shape[1] == 2)
    column = np.diff(matrix.tocsc().indptr).astype(float)
    if float(column @ column) > _MOST_PAIRS:
        return False
    size = np.diff(matrix.indptr)
    overlap = sp.triu(matrix @ matrix.T, k=1).tocoo()
    cross = overlap.data < np.minimum(size[overlap.row], size[overlap.col])
    return _bipartite(overlap.row[cross], overlap.col[cross], matrix.shape[0])


def _bipartite(left: Ints, right: Ints, nodes: int) -> bool:
    neighbours: list[list[int]] = [[] for _ in range(nodes)]
    for i, j in zip(left.tolist(), right.tolist(), strict=True):
        neighbours[i].append(j)
        neighbours[j].append(i)
    colour = [-1] * nodes
    for start in range(nodes):
        if colour[start] >= 0:
            continue
        colour[start], queue = 0, deque([start])
        while queue:
            i = queue.popleft()
            for j in neighbours[i]:
                if colour[j] < 0:
                    colour[j] = 1 - colour[i]
                    queue.append(j)
                elif colour[j] == colour[i]:
                    return False
    return True


def _nearest_totals(
    y: Ints, conforming: ConformingTables, levels: WaterLevels, randomness: Randomness
) -> Ints:
    """Atom totals of the nearest whole table, by a programme over levels near the real optimum."""
    real = least_squares(y, conforming)[levels.order]
    sums = np.bincount(levels.label, real, levels.groups)
    centre = levels.below(np.clip(sums, levels.least, levels.most))
    tu = unimodular(conforming.merged)
    width, known = 1, False
    while width * levels.groups <= _MOST_COLUMNS:
        found, inside = _programme(conforming, levels, centre, width, tu, randomness)
        if found is not None and inside:
            return found
        if found is None and not known:
            _refuse_if_none(conforming, levels)
            known = True
        width *= 4
    raise StructureError(
        f"the nearest whole table under these {conforming.rows.shape[0]} figures cannot be "
        "computed.",
        remedy="Use nonnegative = 'no', or fewer figures.",
    )


def _refuse_if_none(conforming: ConformingTables, levels: WaterLevels) -> None:
    """MandateError if no whole atom totals satisfy the figures."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        np.zeros(levels.groups),
        integrality=np.ones(levels.groups),
        bounds=Bounds(_open(levels.least), _open(levels.most)),
        constraints=LinearConstraint(
            conforming.merged.astype(float), _open(conforming.low), _open(conforming.high)
        ),
    )
    if found.x is None:
        raise _impossible()


def _open(bound: Ints) -> Floats:
    """Bounds as doubles, infinite where there is none."""
    real = bound.astype(float)
    return np.where(np.abs(bound) >= FAR // 2, np.copysign(np.inf, real), real)


def _programme(
    conforming: ConformingTables,
    levels: WaterLevels,
    centre: Ints,
    width: int,
    tu: bool,
    randomness: Randomness,
) -> tuple[Ints | None, bool]:
    """Least cost with atoms within `width` levels of their centres; whether no edge was reached."""
    atoms, steps = levels.groups, np.arange(-width, width + 1)
    base = levels.sums(centre - width)
    room = np.stack([levels.rising(centre + k) for k in steps])  # (levels, atoms)
    cost = np.broadcast_to(2.0 * (centre + steps[:, None]) + 1.0, room.shape)
    level, atom = np.nonzero(room)
    rows = conforming.merged[:, atom].astype(float)
    at = conforming.merged @ base
    units = solve(
        cost[level, atom],
        rows,
        (conforming.low - at, conforming.high - at),
        (np.zeros(level.size), room[level, atom].astype(float)),
        tu,
        randomness,
    )
    if units is None:
        return None, False
    totals = base + np.bincount(atom, units, atoms).astype(np.int64)
    top = base + room.sum(axis=0)
    inside = ((totals > base) | (base <= levels.least)) & ((totals < top) | (top >= levels.most))
    return totals, bool(np.all(inside))


def _round_once(
    x: Floats,
    low: Ints,
    high: Ints,
    conforming: ConformingTables,
    tu: bool,
    randomness: Randomness,
) -> Ints | None:
    """argmin of ||m - x||_1 over conforming whole m with low <= m <= high, unit by unit."""
    room = high - low
    if np.any(room < 0):
        return None
    width = int(room.max(initial=0))
    unit, cell = np.nonzero(np.arange(width)[:, None] < room[None, :])
    start = (low[cell] + unit).astype(float)
    cost = np.abs(start + 1 - x[cell]) - np.abs(start - x[cell])
    at = conforming.rows @ low
    units = solve(
        cost,
        conforming.rows[:, cell].astype(float),
        (conforming.low - at, conforming.high - at),
        (np.zeros(cell.size), np.ones(cell.size)),
        tu,
        randomness,
        scale=1e-6,
    )
    return None if units is None else low + np.bincount(cell, units, low.size).astype(np.int64)


def solve(
    cost: Floats,
    rows: sp.csr_matrix,
    figures: tuple[Ints, Ints],
    bounds: tuple[Floats, Floats],
    tu: bool,
    randomness: Randomness,
    scale: float = 1e-5,
) -> Ints | None:
    """Whole x of least cost with low <= rows x <= high; None if there is none.

    Ties are broken by adding to each cost a uniform random number up to `scale`. A solution that is
    not the best can be improved along a circuit of the rows; whole costs then fall by at least 1,
    more than the numbers along any circuit of fewer than 1/scale columns can make up for.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if cost.size == 0:
        fits = np.all(figures[0] <= 0) and np.all(figures[1] >= 0)
        return np.zeros(0, np.int64) if fits else None
    shake = randomness.words(cost.size) * (scale * 2.0**-64)
    for whole in (0, 1) if tu else (1,):
        found = milp(
            cost + shake,
            integrality=np.full(cost.size, whole),
            bounds=Bounds(*bounds),
            constraints=LinearConstraint(rows, _open(figures[0]), _open(figures[1])),
            options={"mip_rel_gap": 0.0} if whole else {},
        )
        if found.x is None:
            return None
        x: Ints = np.rint(found.x).astype(np.int64)
        if whole or np.abs(found.x - x).max(initial=0.0) <= 1e-4:
            return x
    return None


def _whole(values: npt.ArrayLike, cells: int) -> Ints:
    y = np.asarray(values).reshape(-1)
    if y.size != cells:
        raise StructureError(f"{y.size} values for {cells} cells.", remedy="Give one per cell.")
    if not np.issubdtype(y.dtype, np.integer):
        raise StructureError(
            "the values are not whole numbers.",
            remedy="Use `topdown` for real ones: least squares, then controlled rounding.",
        )
    return y.astype(np.int64)


def _impossible() -> MandateError:
    return MandateError(
        "no table of whole numbers within the bounds agrees with the figures.",
        remedy="Correct or leave out a figure.",
    )
