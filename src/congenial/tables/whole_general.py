"""Whole counts for small tables whose figures have no place in a chain: integer programmes.

Tables are settled one after the other from coarse to fine. Each is fitted in absolute
distance to its estimates over all whole nonnegative cells that agree with the figures, the public
bounds and the tables settled before; then it is kept as it is. Every table is a node of this fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.workload import Ints, Margin
from congenial.errors import MandateError, StructureError
from congenial.figures.statements import Statement
from congenial.tables.estimate import Estimates, finest
from congenial.tables.gradient_inverse import figure_matrix
from congenial.tables.measurements import FigureRows, Floats, Measurements

LARGEST = 2_000  # cells
SECONDS = 60.0  # per table


@dataclass(frozen=True, eq=False)
class Rows:
    """low <= matrix x <= high over the cells."""

    matrix: Any = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)

    def plus(self, matrix: Any, values: Floats) -> Rows:
        """These rows and some equalities."""
        return Rows(
            sp.vstack([self.matrix, matrix], format="csr"),
            np.concatenate([self.low, values]),
            np.concatenate([self.high, values]),
        )


def public_rows(measurements: Measurements) -> Rows:
    """Figures, structural zeros and public bounds over the cells; MandateError if nothing fits."""
    from scipy.optimize import LinearConstraint, milp

    if measurements.size > LARGEST:
        raise StructureError(
            f"whole counts of {measurements.size} cells need an integer programme of more than "
            f"{LARGEST} cells.",
            remedy="Print the estimates, or publish figures that follow the tables.",
        )
    rows = Rows(sp.csr_matrix((0, measurements.size)), np.zeros(0), np.zeros(0))
    zeros = measurements.figures[len(measurements.mandates.equalities) :]
    impossible = figure_matrix(zeros, measurements.shape)
    rows = rows.plus(impossible, np.zeros(impossible.shape[0]))
    for statement in (*measurements.mandates.equalities, *measurements.mandates.bounds):
        rows = _with_statement(rows, measurements, statement)
    found = milp(
        np.zeros(measurements.size),
        integrality=np.ones(measurements.size),
        constraints=LinearConstraint(rows.matrix, rows.low, rows.high),
        options={"time_limit": SECONDS},
    )
    if found.x is None:
        raise MandateError(
            "no whole counts agree with all published figures and bounds.",
            remedy="Compute the figures from one dataset, or correct the bounds.",
        )
    return rows


def _with_statement(rows: Rows, measurements: Measurements, statement: Statement) -> Rows:
    figure = measurements.rows_of(statement)
    matrix = figure_matrix((figure,), measurements.shape)
    if statement.relation == "=":
        return rows.plus(matrix, _values(measurements, statement, figure))
    limit = np.full(matrix.shape[0], float(statement.bound or 0))
    open_ = np.full(matrix.shape[0], np.inf)
    low, high = (limit, open_) if statement.relation == ">=" else (-open_, limit)
    return Rows(
        sp.vstack([rows.matrix, matrix], format="csr"),
        np.concatenate([rows.low, low]),
        np.concatenate([rows.high, high]),
    )


def _values(measurements: Measurements, statement: Statement, figure: FigureRows) -> Floats:
    """Published values of the rows that touch some cell."""
    at = measurements.mandates.equalities.index(statement)
    values = measurements.published(at).reshape(-1)
    touched = figure_matrix((figure,), measurements.shape, every=True)
    return np.asarray(values[np.diff(touched.indptr) > 0], dtype=float)


def fit_by_programme(estimates: Estimates, keep: Sequence[str] = ()) -> Ints:
    """Whole counts of the cells, table by table from coarse to fine; `keep` names further ones."""
    work = estimates.measurements
    rows = public_rows(work)
    named = [work.margin([axis]) for axis in keep]
    tables = sorted({*work.margins, *named, finest(work)}, key=lambda margin: margin.size)
    cells = np.zeros(work.shape, dtype=np.int64)
    for margin in tables:
        matrix = margin_matrix(margin)
        targets = estimates.totals(margin).reshape(-1)
        cells = _nearest(rows, matrix, targets, work)
        rows = rows.plus(matrix, (matrix @ cells.reshape(-1)).astype(float))
    return cells


def margin_matrix(margin: Margin) -> Any:
    """A table's linear map as a sparse matrix."""
    numbers = margin.spread(np.arange(margin.size).reshape(margin.shape)).reshape(-1)
    ones = np.ones(len(numbers))
    return sp.csr_matrix((ones, (numbers, np.arange(len(numbers)))), (margin.size, len(numbers)))


def _nearest(rows: Rows, matrix: Any, targets: Floats, work: Measurements) -> Ints:
    """Cells whose table is nearest to its targets in absolute distance."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    size, width = work.size, len(targets)
    eye = sp.identity(width, format="csr")
    blank = sp.csr_matrix((rows.matrix.shape[0], width))
    off = sp.vstack(
        [
            sp.hstack([rows.matrix, blank]),
            sp.hstack([matrix, -eye]),  # T x - off <= target
            sp.hstack([matrix, eye]),  # T x + off >= target
        ],
        format="csr",
    )
    low = np.concatenate([rows.low, np.full(width, -np.inf), targets])
    high = np.concatenate([rows.high, targets, np.full(width, np.inf)])
    found = milp(
        np.concatenate([np.zeros(size), np.ones(width)]),
        integrality=np.concatenate([np.ones(size), np.zeros(width)]),
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(off, low, high),
        options={"time_limit": SECONDS},
    )
    if found.x is None:
        raise StructureError(
            "the integer programme for whole counts did not end in time.",
            remedy="Print the estimates, or name fewer cells.",
        )
    return np.asarray(np.rint(found.x[:size]).astype(np.int64).reshape(work.shape))
