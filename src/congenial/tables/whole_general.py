"""Whole counts for small tables whose figures have no place in a chain: integer programmes.

Tables are settled one after the other from coarse to fine. Each is fitted in absolute
distance to its estimates over all whole nonnegative cells that agree with the figures, the public
bounds and the tables settled before; then it is kept as it is. Every table is a node of this fit.

Whether any whole counts have the figures is settled before a draw (`PublicProgramme.of`), with
counts that do. After a draw nothing can be missing: where the search for the nearest table is given
up, whole steps towards it are taken from counts that are known to fit (`_stepped`). Searches end by
nodes visited, not by seconds, so that whoever fits again comes to the same counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.workload import Ints, Margin
from congenial.errors import MandateError, StructureError
from congenial.figures.statements import Statement
from congenial.tables.gradient_inverse import figure_matrix
from congenial.tables.linear_estimates import Estimates, finest
from congenial.tables.measurements import FigureRows, Floats, Measurements

LARGEST = 5_000  # cells
NODES = 100  # of the search tree of one programme
STEPS = 50  # towards the nearest table, where the search for it is given up
REACHES = (np.inf, 64.0, 8.0, 1.0)  # how far a cell may move in one step
EXACT = 1e-6  # by which sums of whole cells with weights may miss a number
INFEASIBLE = 2  # what the solver calls a programme without solution


@dataclass(frozen=True, eq=False)
class Rows:
    """low <= matrix x <= high over the cells."""

    matrix: Any = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)

    def plus(self, matrix: Any, low: Floats, high: Floats | None = None) -> Rows:
        """These rows and further ones; equalities if one limit is given."""
        return Rows(
            sp.vstack([self.matrix, matrix], format="csr"),
            np.concatenate([self.low, low]),
            np.concatenate([self.high, low if high is None else high]),
        )

    def hold(self, cells: Ints) -> bool:
        """Whether whole cells have all of them, and none is negative."""
        sums = self.matrix @ cells
        inside = (sums >= self.low - EXACT) & (sums <= self.high + EXACT)
        return bool(np.all(inside) and np.all(cells >= 0))


@dataclass(frozen=True, eq=False)
class PublicProgramme:
    """Figures, structural zeros and public bounds over the cells, and whole cells that have them.

    Known before a draw, from public values alone.
    """

    rows: Rows
    cells: Ints = field(repr=False)

    @classmethod
    def of(cls, measurements: Measurements) -> PublicProgramme:
        """MandateError if nothing fits; StructureError if that cannot be settled."""
        if measurements.size > LARGEST:
            raise StructureError(
                f"whole counts of {measurements.size} cells need an integer programme of more than "
                f"{LARGEST} cells.",
                remedy="Print the estimates, or publish figures that follow the tables.",
            )
        rows = public_rows(measurements)
        status, found = search(np.zeros(measurements.size), rows, whole=True)
        if status == INFEASIBLE:
            raise MandateError(
                "no whole counts agree with all published figures and bounds.",
                remedy="Compute the figures from one dataset, or correct the bounds.",
            )
        cells = None if found is None else _whole(found)
        if cells is None or not rows.hold(cells):
            raise StructureError(
                f"whether whole counts have all figures was not settled in {NODES} nodes of an "
                "integer programme.",
                remedy="Print the estimates, or publish figures that follow the tables.",
            )
        return cls(rows, cells)


def search(
    costs: Floats, rows: Rows, whole: Any, low: Any = 0, high: Any = np.inf
) -> tuple[int, Floats | None]:
    """The cheapest x between limits with some rows, whole where said: the solver's status, and x.

    None where the search ended without any.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        costs,
        integrality=np.broadcast_to(whole, len(costs)).astype(int),
        bounds=Bounds(low, high),
        constraints=LinearConstraint(rows.matrix, rows.low, rows.high),
        options={"node_limit": NODES},
    )
    return int(found.status), None if found.x is None else np.asarray(found.x)


def public_rows(measurements: Measurements) -> Rows:
    """Figures, structural zeros and public bounds over the cells."""
    rows = Rows(sp.csr_matrix((0, measurements.size)), np.zeros(0), np.zeros(0))
    zeros = measurements.figure_rows[len(measurements.figures.equalities) :]
    impossible = figure_matrix(zeros, measurements.shape)
    rows = rows.plus(impossible, np.zeros(impossible.shape[0]))
    for statement in (*measurements.figures.equalities, *measurements.figures.bounds):
        rows = _with_statement(rows, measurements, statement)
    return rows


def _with_statement(rows: Rows, measurements: Measurements, statement: Statement) -> Rows:
    figure = measurements.rows_of(statement)
    matrix = figure_matrix((figure,), measurements.shape)
    if statement.relation == "=":
        return rows.plus(matrix, _values(measurements, statement, figure))
    limit = np.full(matrix.shape[0], float(statement.bound or 0))
    open_ = np.full(matrix.shape[0], np.inf)
    low, high = (limit, open_) if statement.relation == ">=" else (-open_, limit)
    return rows.plus(matrix, low, high)


def _values(measurements: Measurements, statement: Statement, figure: FigureRows) -> Floats:
    """Published values of the rows that touch some cell."""
    at = measurements.figures.equalities.index(statement)
    values = measurements.published(at).reshape(-1)
    touched = figure_matrix((figure,), measurements.shape, every=True)
    return np.asarray(values[np.diff(touched.indptr) > 0], dtype=float)


# ---- after a draw ------------------------------------------------------------------------------


def fit_by_programme(
    estimates: Estimates, keep: Sequence[str] = (), public: PublicProgramme | None = None
) -> Ints:
    """Whole counts of the cells, table by table from coarse to fine; `keep` names further ones.

    `public` is what was worked out before the draw; with it there are always counts.
    """
    work = estimates.measurements
    public = PublicProgramme.of(work) if public is None else public
    rows, cells = public.rows, public.cells
    for matrix, targets in _tables(estimates, keep):
        cells = _settled(Nearest(rows, matrix, targets), cells)
        rows = rows.plus(matrix, (matrix @ cells).astype(float))
    return cells.reshape(work.shape)


def as_near_by_programme(estimates: Estimates, keep: Sequence[str], counts: Ints) -> bool:
    """Whether whole counts are as near to every table as a fit given the coarser tables' counts.

    Counts that differ from a fit by ties only are.
    """
    rows, cells = public_rows(estimates.measurements), counts.reshape(-1)
    if not rows.hold(cells):
        return False
    for matrix, targets in _tables(estimates, keep):
        nearest = Nearest(rows, matrix, targets)
        if nearest.distance(cells) > nearest.distance(_settled(nearest, cells)) + EXACT:
            return False
        rows = rows.plus(matrix, (matrix @ cells).astype(float))
    return True


def _tables(estimates: Estimates, keep: Sequence[str]) -> Iterator[tuple[Any, Floats]]:
    """Maps and estimates of every table from coarse to fine."""
    work = estimates.measurements
    named = [work.margin([axis]) for axis in keep]
    for margin in sorted({*work.margins, *named, finest(work)}, key=_by_size):
        yield margin_matrix(margin), estimates.totals(margin).reshape(-1)


def _by_size(margin: Margin) -> tuple[Any, ...]:
    """Coarse tables first; those of one size always in the same order."""
    return margin.size, tuple(partition.blocks for partition in margin.partitions)


def margin_matrix(margin: Margin) -> Any:
    """A table's linear map as a sparse matrix."""
    numbers = margin.spread(np.arange(margin.size).reshape(margin.shape)).reshape(-1)
    ones = np.ones(len(numbers))
    return sp.csr_matrix((ones, (numbers, np.arange(len(numbers)))), (margin.size, len(numbers)))


@dataclass(frozen=True, eq=False)
class Nearest:
    """Whole cells with some rows whose table is nearest to its targets in absolute distance.

    |T x - t| is counted as the chords between whole numbers, which is the same for whole x: with
    T x = floor(t) + part + up - down, part in 0 .. 1. So limits of the programme are whole.
    """

    rows: Rows
    matrix: Any = field(repr=False)
    targets: Floats = field(repr=False)

    def distance(self, cells: Ints) -> float:
        """What is made small."""
        return float(np.abs(self.matrix @ cells - self.targets).sum())

    def search(self, around: Ints, reach: float, *, whole: bool) -> Ints | None:
        """Whole cells within some reach of others; None where none are found.

        Without `whole` the search is over real ones, which is quick: None unless they are whole.
        """
        size, width = len(around), len(self.targets)
        base = np.floor(self.targets)
        off = np.concatenate([1 - 2 * (self.targets - base), np.ones(2 * width)])
        eye = sp.identity(width, format="csr")
        blank = sp.csr_matrix((self.rows.matrix.shape[0], 3 * width))
        rows = Rows(sp.hstack([self.rows.matrix, blank]), self.rows.low, self.rows.high)
        rows = rows.plus(sp.hstack([self.matrix, -eye, -eye, eye]), base)
        kind = np.arange(size + 3 * width) < (size if whole else 0)
        low = np.concatenate([np.maximum(around - reach, 0), np.zeros(3 * width)])
        high = np.concatenate([around + reach, np.ones(width), np.full(2 * width, np.inf)])
        found = search(np.concatenate([np.zeros(size), off]), rows, kind, low, high)[1]
        return None if found is None else self._fitting(found[:size])

    def _fitting(self, found: Floats) -> Ints | None:
        """Cells that were found as whole numbers, if they are and have all rows."""
        cells = _whole(found)
        near = np.abs(found - cells).max(initial=0.0) <= EXACT
        return cells if near and self.rows.hold(cells) else None


def _whole(found: Floats) -> Ints:
    return np.asarray(np.rint(found), dtype=np.int64)


def _settled(nearest: Nearest, cells: Ints) -> Ints:
    """The nearest cells, or nearer ones than `cells`, which have all rows."""
    found = nearest.search(cells, np.inf, whole=True)
    return _stepped(nearest, cells) if found is None else found


def _stepped(nearest: Nearest, cells: Ints) -> Ints:
    """Whole steps towards the nearest table, each found as a linear programme; `cells` if none."""
    for reach in REACHES:
        for _ in range(STEPS):
            found = nearest.search(cells, reach, whole=False)
            if found is None or nearest.distance(found) > nearest.distance(cells) - EXACT:
                break
            cells = found
    return cells
