"""Whole counts under figures and bounds of any structure: nearest tables, by Clarabel and HiGHS.

**One table** (`nearest_in`): whole m nearest to whole values y in least squares, with
low <= R m <= high and bounds of its cells.

1. Cells with equal columns of R are one atom. Given the total of an atom its cells are the values
   moved by one level c and cut at their bounds (`water_levels`), so the cost of a total is convex
   and piecewise linear: a unit at level c costs 2c + 1.
2. The real optimum, a quadratic programme (Clarabel), tells near which levels the totals are.
3. Among whole totals it is a linear programme over units: each level of a window has a column, with
   its cost and as many units as it has room for. Beyond either end one column has the cost of the
   first level outside, and more room than that level has: no more than the true cost. So if the
   solution leaves these two alone it is the nearest, otherwise the window is widened.
4. A vertex that is whole is the nearest whole table. It always is where the rows are two families
   of nested sets (Edmonds 1970): nested totals, both margins of a table. Parts of the rows whose
   vertex is not whole are solved as integer programmes, each by itself.

**Several tables** (`fit_tables`): T x in place of the totals of atoms, with whole cells x beside
them. Tables are settled one after the other from coarse to fine; each is the nearest to its
estimates over all whole cells that have the figures, the bounds and the tables settled before. So
every table is a node of this fit. Whether any whole cells have the figures is settled before a draw
(`PublicProgramme.of`), with cells that do. After a draw nothing can be missing: where a search is
given up, whole steps towards the nearest table are taken from cells that are known to fit.

Ties are broken by moving targets by less than any whole difference, by numbers that the draw seeds.
Searches end by nodes visited, not by seconds. So whoever fits again comes to the same counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.data.arrays import Floats, Ints
from congenial.data.workload import Margin
from congenial.errors import FigureError, StructureError
from congenial.figures.statements import Statement
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.tables.conforming_tables import FAR, ConformingTables
from congenial.tables.gradient_inverse import figure_matrix, indicators
from congenial.tables.linear_estimates import Estimates, finest
from congenial.tables.measurements import Measurements
from congenial.tables.transport_fit import TIES, without_ties
from congenial.tables.water_levels import WaterLevels

LARGEST = 5_000  # cells of several tables
COLUMNS = 20_000_000  # of one programme, about
NODES = 100  # of the search tree of one programme for several tables
STEPS = 50  # towards the nearest table, where the search for it is given up
REACHES = (np.inf, 64.0, 8.0, 1.0)  # how far a cell may move in one step
WIDTHS = (2, 8, 32)  # levels around the real optimum, for several tables
EXACT = 1e-4  # by which what a solver calls whole may miss a whole number
SHAKE = 5e-6  # by which a whole target is moved so that nothing is tied
INFEASIBLE, UNCLEAR = 2, 4  # what HiGHS says of a programme, in scipy's numbers
NO_TABLE = "PrimalInfeasible"  # what Clarabel says where no real table conforms


# ---- the real optimum ----------------------------------------------------------------------------


def displacement(
    start: Floats, conforming: ConformingTables, table: Any = None, off: Floats | None = None
) -> tuple[str, Floats | None]:
    """d with start + d conforming and the least |d|^2, or |off + table d|^2; None if not found.

    Before it the solver's word: NO_TABLE where it proves that no real table conforms. Displacements
    stay small where counts are large.
    """
    import clarabel  # only tables under crossing figures and bounds need it

    rows, size = conforming.rows.astype(float), start.size
    at = rows @ start
    equal = conforming.low == conforming.high
    below, above = conforming.low > -FAR, conforming.high < FAR
    identity = sp.identity(size, format="csr")
    floor, roof = conforming.lower > -FAR, conforming.upper < FAR
    # G d + s = h with s = 0 for equalities, s >= 0 for the rest
    G = [
        rows[equal],
        -rows[below & ~equal],
        rows[above & ~equal],
        -identity[floor],
        identity[roof],
    ]
    h = [
        (conforming.low - at)[equal],
        (at - conforming.low)[below & ~equal],
        (conforming.high - at)[above & ~equal],
        (start - conforming.lower)[floor],
        (conforming.upper - start)[roof],
    ]
    equalities, squares = int(equal.sum()), np.ones(size)
    if table is not None and off is not None:  # u = off + table d beside d
        width = len(off)
        G = [sp.hstack([block, sp.csr_matrix((block.shape[0], width))]) for block in G]
        G.insert(0, sp.hstack([-table, sp.identity(width)]))
        h.insert(0, off)
        equalities, squares = equalities + width, np.repeat([0.0, 1.0], [size, width])
    right = np.concatenate(h)
    cones: list[Any] = [
        clarabel.ZeroConeT(equalities),
        clarabel.NonnegativeConeT(right.size - equalities),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # a cell that only just reaches its bound is off by the root of the gap
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.max_threads = 1
    P, q = sp.diags(squares, format="csc"), np.zeros(squares.size)
    G = sp.vstack(G, format="csc")
    solved = clarabel.DefaultSolver(P, q, G, right, cones, settings).solve()
    done = str(solved.status) in ("Solved", "AlmostSolved")
    return str(solved.status), np.asarray(solved.x, dtype=float)[:size] if done else None


# ---- the linear programme over units -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Window:
    """Units of sums: base + sum of sign x units, each unit of a column at its own cost."""

    base: Ints
    owner: Ints  # of each column: the sum it belongs to
    sign: Floats
    cost: Floats
    room: Floats
    outer: Any  # columns beyond the ends of the window

    @classmethod
    def of(cls, levels: WaterLevels, shift: Floats, centre: Ints, width: int) -> _Window:
        """Levels within `width` of the centres; a sum at level c is c - shift from its target."""
        steps = np.arange(-width, width + 1)[:, np.newaxis]
        base = levels.sums(centre - width)
        room = np.stack([levels.rising(centre + int(k)) for (k,) in steps])
        top = base + room.sum(axis=0)
        down, up = base - levels.least, levels.most - top
        rooms = np.vstack([room, up, down]).astype(float)
        rooms[-2][levels.most >= FAR] = rooms[-1][levels.least <= -FAR] = np.inf
        at = np.vstack([centre + steps, centre + width + 1, centre - width - 1])
        sign = np.ones(len(at))
        sign[-1] = -1.0
        cost = sign[:, np.newaxis] * (2.0 * (at - shift) + 1.0)
        level, owner = np.nonzero(rooms)
        place = (level, owner)
        return cls(base, owner, sign[level], cost[place], rooms[place], level >= len(steps))

    @property
    def columns(self) -> sp.csr_matrix:
        """What a unit of each column adds to the sums."""
        place = (self.owner, np.arange(len(self.owner)))
        return sp.csr_matrix((self.sign, place), shape=(len(self.base), len(self.owner)))


def search(
    cost: Floats,
    rows: Any,
    ends: tuple[Any, Any],
    limits: tuple[Any, Any],
    whole: Any,
    nodes: int | None = None,
) -> tuple[int, Floats | None]:
    """The cheapest x between limits with rows x between ends, whole where said, by HiGHS: its
    status, and x, None where the search ended without any.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    if cost.size == 0:
        fits = np.all(ends[0] <= 0) and np.all(ends[1] >= 0)
        return (0, np.zeros(0)) if fits else (INFEASIBLE, None)
    options: dict[str, Any] = {} if nodes is None else {"node_limit": nodes}
    result = milp(
        cost,
        integrality=np.broadcast_to(whole, cost.size).astype(int),
        bounds=Bounds(*limits),
        constraints=LinearConstraint(rows, *ends),
        options=options | ({"mip_rel_gap": 0.0} if np.any(whole) else {}),
    )
    if result.x is None and result.status == UNCLEAR and np.any(cost):
        # "infeasible or unbounded": without costs nothing is unbounded
        status = search(np.zeros(cost.size), rows, ends, limits, False, nodes)[0]
        return (INFEASIBLE if status == INFEASIBLE else UNCLEAR), None
    return int(result.status), None if result.x is None else np.asarray(result.x)


def _open(bound: Any) -> Floats:
    """Bounds as doubles, infinite where there is none."""
    real = np.asarray(bound, dtype=float)
    return np.where(np.abs(real) >= FAR // 2, np.copysign(np.inf, real), real)


# ---- one table -----------------------------------------------------------------------------------


def nearest_in(
    values: npt.ArrayLike,
    conforming: ConformingTables,
    randomness: Randomness | None = None,
    *,
    every: bool = False,
) -> Ints:
    """The whole table of a set nearest to `values` (whole numbers), in least squares.

    Exact, and ties are broken at random so that no cell is favoured. FigureError if the set is
    empty. Parts of the table that conform already stay as they are; `every`, for rehearsals, solves
    for them too.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> same_sum = ConformingTables.of([[1, 1, 1]], [4])
    >>> nearest_in([5, -1, 0], same_sum, SeededRandomness(1)).tolist()
    [4, 0, 0]
    """
    randomness = SystemRandomness() if randomness is None else randomness
    y = _whole(values, conforming.cells)
    m = np.clip(y, conforming.lower, conforming.upper)
    rows = conforming.rows_held(m)
    if np.all(rows) and np.array_equal(m, y) and not every:
        return m
    if not (np.all(conforming.is_sum) or every):  # bounds on sums often hold by themselves
        m = nearest_in(y, conforming.sums_only, randomness)
        if conforming.holds(m):
            return m
        m = np.clip(y, conforming.lower, conforming.upper)
    if every or conforming.totals is not None:
        return checked(_nearest_part(y, conforming, randomness), conforming)
    cell_part, row_part = conforming.parts
    broken = np.union1d(cell_part[m != y], row_part[~rows])
    inside = np.isin(cell_part, broken) & conforming.counted
    if np.array_equal(inside, conforming.counted):
        m = _nearest_part(y, conforming, randomness)
    elif np.any(inside):
        m[inside] = _nearest_part(y[inside], conforming.part(inside), randomness)
    return checked(m, conforming)


def _nearest_part(
    y: Ints, conforming: ConformingTables, randomness: Randomness, whole: bool = False
) -> Ints:
    """The nearest cells, whether they conform already or not; by integer programmes if `whole`."""
    levels = WaterLevels(conforming.atoms, y, conforming.lower, conforming.upper)
    totals, sure = conforming.totals, np.ones(levels.groups, dtype=bool)
    if totals is None:
        totals, sure = _nearest_totals(y, conforming, levels, randomness, whole)
    m = np.clip(y, conforming.lower, conforming.upper)
    m[levels.order] = levels.fill(totals, randomness)
    parts = conforming.parts[0]
    for part in np.unique(parts[levels.order[~sure[levels.label]]]):
        inside = parts == part
        m[inside] = _nearest_part(y[inside], conforming.part(inside), randomness, True)
    return m


def _nearest_totals(
    y: Ints, conforming: ConformingTables, levels: WaterLevels, randomness: Randomness, whole: bool
) -> tuple[Ints, Any]:
    """Totals of atoms of the nearest whole table, and of which atoms that is settled.

    A table that is not the nearest can be improved along a circuit of the rows. Costs of whole
    targets then fall by at least 1, more than shifts along any circuit of fewer than 1 / (2 SHAKE)
    columns can make up for.
    """
    moved = displacement(y.astype(float), conforming)[1]
    real = (y if moved is None else y + moved)[levels.order]
    sums = np.bincount(levels.label, real, levels.groups)
    centre = levels.below(np.clip(sums, levels.least, levels.most))
    shift = np.asarray(randomness.words(levels.groups) * (SHAKE * 2.0**-64), dtype=float)
    width = 1
    while width * levels.groups <= COLUMNS:
        window = _Window.of(levels, shift, centre, width)
        at = conforming.merged @ window.base
        ends = _open(conforming.low) - at, _open(conforming.high) - at
        limits = np.zeros(window.room.size), window.room
        rows = (conforming.merged @ window.columns).astype(float)
        status, units = search(window.cost, rows, ends, limits, whole)
        if units is None:
            raise impossible() if status == INFEASIBLE else _unsettled(conforming)
        if not np.any(units[window.outer] > EXACT):
            totals = np.clip(window.base + window.columns @ units, levels.least, levels.most)
            off = np.abs(units - np.rint(units)) > EXACT
            sure = np.bincount(window.owner[off], minlength=levels.groups) == 0
            return np.rint(totals).astype(np.int64), sure
        width *= 4
    raise _unsettled(conforming)


def _unsettled(conforming: ConformingTables) -> StructureError:
    return StructureError(
        f"the nearest whole table under these {conforming.rows.shape[0]} figures is out of reach.",
        remedy="Use nonnegative = 'no', or fewer figures.",
    )


def checked(m: Ints, conforming: ConformingTables) -> Ints:
    """m itself, if it conforms in exact arithmetic."""
    if not conforming.holds(m):
        raise StructureError(
            "the solver's table misses a figure by rounding.",
            remedy="Use fewer figures, or print the values as drawn.",
        )
    return m


def _whole(values: npt.ArrayLike, cells: int) -> Ints:
    y = np.asarray(values).reshape(-1)
    if y.size != cells:
        raise StructureError(f"{y.size} values for {cells} cells.", remedy="Give one per cell.")
    if not np.issubdtype(y.dtype, np.integer):
        raise StructureError(
            "the values are not whole numbers.",
            remedy="Use `least_squares` for real ones, then round them.",
        )
    return y.astype(np.int64)


def impossible() -> FigureError:
    """The error for figures that contradict each other."""
    return FigureError(
        "no whole table within the bounds satisfies the figures.",
        remedy="Correct or drop a figure.",
    )


# ---- several tables: before a draw ---------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PublicProgramme:
    """Figures, structural zeros and public bounds over the cells, and whole cells that have them.

    Known before a draw, from public values alone.
    """

    conforming: ConformingTables
    cells: Ints = field(repr=False)

    @classmethod
    def of(cls, measurements: Measurements) -> PublicProgramme:
        """FigureError if nothing fits; StructureError if that cannot be settled."""
        if measurements.size > LARGEST:
            raise StructureError(
                f"whole counts of {measurements.size} cells need an integer programme of more than "
                f"{LARGEST} cells.",
                remedy="Print the estimates, or publish figures that follow the tables.",
            )
        conforming = public_tables(measurements)
        ends, limits = _ends(conforming), (conforming.lower, _open(conforming.upper))
        nothing = np.zeros(conforming.cells)
        status, solution = search(nothing, conforming.rows, ends, limits, True, NODES)
        if status == INFEASIBLE:
            raise FigureError(
                "no whole counts agree with all published figures and bounds.",
                remedy="Compute the figures from one dataset, or correct the bounds.",
            )
        cells = None if solution is None else np.rint(solution).astype(np.int64)
        if cells is None or not conforming.holds(cells):
            raise StructureError(
                f"whether whole counts have all figures was not settled in {NODES} nodes of an "
                "integer programme.",
                remedy="Print the estimates, or publish figures that follow the tables.",
            )
        return cls(conforming, cells)


def public_tables(measurements: Measurements) -> ConformingTables:
    """Whole cells with every figure, structural zero and public bound."""
    zeros = measurements.figure_rows[len(measurements.figures.equalities) :]
    empty = figure_matrix(zeros, measurements.shape).getnnz(axis=0) > 0
    nothing = sp.csr_matrix((0, measurements.size))
    conforming = ConformingTables.of(nothing, [], upper=np.where(empty, 0, FAR))
    for statement in (*measurements.figures.equalities, *measurements.figures.bounds):
        conforming = _with_statement(conforming, measurements, statement)
    return conforming


def _with_statement(
    conforming: ConformingTables, measurements: Measurements, statement: Statement
) -> ConformingTables:
    figure = measurements.rows_of(statement)
    matrix = figure_matrix((figure,), measurements.shape, every=True)
    touched = np.diff(matrix.indptr) > 0
    if statement.relation == "=":
        at = measurements.figures.equalities.index(statement)
        return conforming.plus(matrix[touched], measurements.published(at).reshape(-1)[touched])
    limit = np.full(int(touched.sum()), statement.bound or 0, dtype=np.int64)
    far = np.full_like(limit, FAR)
    low, high = (limit, far) if statement.relation == ">=" else (-far, limit)
    return conforming.plus(matrix[touched], low, high)


def _ends(conforming: ConformingTables) -> tuple[Floats, Floats]:
    return _open(conforming.low), _open(conforming.high)


# ---- several tables: after a draw ----------------------------------------------------------------


def fit_tables(
    estimates: Estimates, keep: Sequence[str] = (), public: PublicProgramme | None = None
) -> Ints:
    """Whole cells near all estimates: every table and kept partition, from coarse to fine.

    `public` is what was worked out before the draw; with it there are always counts.
    """
    work = estimates.measurements
    public = PublicProgramme.of(work) if public is None else public
    conforming, cells = public.conforming, public.cells
    for matrix, targets in _tables(estimates, keep):
        cells = NearestTable(conforming, matrix, targets).nearest(cells)
        conforming = conforming.plus(matrix, (matrix @ cells).astype(np.int64))
    return cells.reshape(work.shape)


def as_near_tables(estimates: Estimates, keep: Sequence[str], counts: Ints) -> bool:
    """Whether whole counts are as near to every table as a fit given the coarser tables' counts.

    Counts that differ from a fit by ties only are.
    """
    conforming, cells = public_tables(estimates.measurements), counts.reshape(-1)
    if not conforming.holds(cells):
        return False
    for matrix, targets in _tables(estimates, keep):
        table = NearestTable(conforming, matrix, targets)
        least = table.distance(table.nearest(cells))
        if table.distance(cells) > least + 4 * TIES * len(targets):
            return False
        conforming = conforming.plus(matrix, (matrix @ cells).astype(np.int64))
    return True


def _tables(estimates: Estimates, keep: Sequence[str]) -> Iterator[tuple[Any, Floats]]:
    """Maps and estimates of every table from coarse to fine."""
    work = estimates.measurements
    named = [work.margin([axis]) for axis in keep]
    for margin in sorted({*work.margins, *named, finest(work)}, key=_by_size):
        yield indicators(margin), estimates.totals(margin).reshape(-1)


def _by_size(margin: Margin) -> tuple[Any, ...]:
    """Coarse tables first; those of one size always in the same order."""
    return margin.size, tuple(partition.blocks for partition in margin.partitions)


@dataclass(frozen=True, eq=False)
class NearestTable:
    """Whole cells of a set whose table T x is nearest to its targets in least squares."""

    conforming: ConformingTables
    matrix: Any = field(repr=False)
    targets: Floats = field(repr=False)

    def distance(self, cells: Ints) -> float:
        """What is made small."""
        return float(np.sum((self.matrix @ cells - self.targets) ** 2))

    def nearest(self, cells: Ints) -> Ints:
        """The nearest cells, or nearer ones than `cells`, which are in the set."""
        centre = self._centre(cells)
        farthest = self.distance(cells) + 4 * TIES * len(self.targets)
        for whole in (False, True):
            for width in WIDTHS:
                nearer, inside = self.find(cells, np.inf, centre, width, whole=whole)
                if nearer is None:
                    break
                if inside and self.distance(nearer) <= farthest:  # not where it was given up
                    return nearer
                centre = self._levels[0].below(self.matrix @ nearer)
        return self._stepped(cells, centre)

    def _stepped(self, cells: Ints, centre: Ints) -> Ints:
        """Whole steps towards the nearest table, each a linear programme; `cells` if none."""
        for reach in REACHES:
            for _ in range(STEPS):
                nearer, _ = self.find(cells, reach, centre, WIDTHS[0], whole=False)
                if nearer is None or self.distance(nearer) >= self.distance(cells) - TIES:
                    break
                cells = nearer
        return cells

    @cached_property
    def _levels(self) -> tuple[WaterLevels, Floats]:
        """Sums as cells of their own, each moved from the whole number below its target; and how
        far above that number the target is.
        """
        on_grid = without_ties(self.targets, self.targets)
        below = np.floor(on_grid).astype(np.int64)
        low, open_ = self.matrix @ self.conforming.lower, self.conforming.upper >= FAR
        high = self.matrix @ np.where(open_, 0, self.conforming.upper)
        high = np.where(self.matrix @ open_ > 0, FAR, high).astype(np.int64)
        levels = WaterLevels(np.arange(len(below)), below, low.astype(np.int64), high)
        return levels, on_grid - below

    def _centre(self, cells: Ints) -> Ints:
        """The levels of the real optimum; those of the targets where it is not found."""
        levels = self._levels[0]
        off = self.matrix @ cells - self.targets
        moved = displacement(cells.astype(float), self.conforming, self.matrix, off)[1]
        sums = self.targets if moved is None else self.matrix @ (cells + moved)
        return levels.below(np.clip(np.rint(sums), levels.least, levels.most))

    def find(
        self, around: Ints, reach: float, centre: Ints, width: int, *, whole: bool
    ) -> tuple[Ints | None, bool]:
        """Whole cells within some reach of others, and whether they are proved to be the nearest;
        None where none are found.

        Without `whole` the search is over real ones, which is quick: None unless they are whole.
        """
        conforming, (levels, shift) = self.conforming, self._levels
        window = _Window.of(levels, shift, centre, width)
        size, columns = conforming.cells, window.columns
        blank = sp.csr_matrix((conforming.rows.shape[0], columns.shape[1]))
        rows = sp.vstack([sp.hstack([conforming.rows, blank]), sp.hstack([self.matrix, -columns])])
        ends = tuple(np.concatenate([end, window.base]) for end in _ends(conforming))
        least = np.maximum(around - reach, conforming.lower)
        low = np.concatenate([least, np.zeros(len(window.cost))])
        high = np.concatenate([np.minimum(around + reach, _open(conforming.upper)), window.room])
        kind = np.arange(len(low)) < (size if whole else 0)
        cost = np.concatenate([np.zeros(size), window.cost])
        solution = search(cost, rows.tocsr(), (ends[0], ends[1]), (low, high), kind, NODES)[1]
        if solution is None:
            return None, False
        cells = np.rint(solution[:size]).astype(np.int64)
        near = np.abs(solution[:size] - cells).max(initial=0.0) <= EXACT
        inside = not np.any(solution[size:][window.outer] > EXACT)
        return (cells if near and conforming.holds(cells) else None), inside
