"""The inverse by conjugate gradients, for tables and figures that do not separate.

**Solutions.** Tables are never written as matrices: a step sums the cells onto every measured table
and spreads the sums again. The steps stay in the kernel of the figures. With r the residual and the
finest cells measured with precision p, every linear combination of the cells is off by at most
|r| / sqrt(p) of its own standard deviation, because |q' M^+ r| <= sqrt(q' M^+ q) sqrt(r' M^+ r).

**Variances** would take one iteration per cell. Where only the finest cells are many, one matrix
gives all of them (`LowRankVariances`). With the finest cells measured at precision p,
M = p I + U D U' for the indicators U of the cells of the coarser measured tables and D their
precisions. A figure is a row that is measured without error. So with W = [U, A'] (independent rows
of A) and G = W'W + p diag(1/D, 0), the matrix inversion lemma (Woodbury 1950) says

    p M^+ = I - W G^-1 W',

and a cell of a table that adds up n finest cells, with overlaps w = W'T', has variance
(n - w' G^-1 w) / p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats
from congenial.data.workload import Margin
from congenial.errors import StructureError
from congenial.tables.inverse import Terms, not_determined
from congenial.tables.measurements import FigureRows, Measurements
from congenial.tables.row_space import RowSpace

LARGEST = 100_000_000  # cells
ACCURACY = 1e-7  # of each standard deviation where the finest cells are measured, else relative
STEPS = 20_000
SMALLEST = 1e-290  # that is divided by
LARGEST_RANK = 3_000  # coarser cells and figures whose matrix is inverted: seconds
PRODUCTS = 500_000_000  # finest cells times coarser ones: a few seconds
BATCH = 5_000_000  # numbers held at a time
TOLD = 1e-10  # share of n / p below which a variance is rounding: figures tell the cell
DEPENDENT = 1e-10  # of the largest diagonal entry of A A', for rows that follow from others


@dataclass(frozen=True, eq=False)
class GradientInverse:
    """M^+ by conjugate gradients on implicit operators."""

    measurements: Measurements
    reason: str
    accuracy: float = ACCURACY
    method = "conjugate gradients"

    def __post_init__(self) -> None:
        if self.measurements.size > LARGEST:
            raise StructureError(
                f"the tables have {self.measurements.size} cells in common, more than {LARGEST}, "
                f"and do not separate: {self.reason}.",
                remedy="Name coarser tables, or figures that follow the attributes of the tables.",
            )

    @cached_property
    def _kernel(self) -> RowSpace:
        return RowSpace(figure_matrix(self.measurements.figure_rows, self.measurements.shape))

    def project(self, vectors: Floats) -> Floats:
        """The part of vectors (batch, *shape) in the kernel of the figures."""
        flat = vectors.reshape(len(vectors), -1).T
        return self._kernel.orthogonal(flat).T.reshape(vectors.shape)

    def forward(self, vectors: Floats) -> Floats:
        """M x = sum_b p_b T_b' T_b x."""
        total = np.zeros_like(vectors)
        for b in self.measurements.measured:
            margin = self.measurements.margins[b]
            total += self.measurements.precisions[b] * margin.spread(margin.totals(vectors))
        return total

    @cached_property
    def finest_precision(self) -> float:
        """Precision with which the finest cells themselves are measured; 0 if they are not."""
        pairs = zip(self.measurements.margins, self.measurements.precisions, strict=True)
        whole = prod(self.measurements.shape)
        return sum(precision for margin, precision in pairs if margin.size == whole)

    def apply(self, terms: Terms) -> GradientSolution:
        """M^+ times the sum of T_b' w_b, with the residual of the normal equations."""
        right = np.zeros((len(terms[0][1]), *self.measurements.shape))
        for margin, values in terms:
            right += margin.spread(values)
        x, residual = self._solve(self.project(right))
        return GradientSolution(self, x, residual)

    def _solve(self, right: Floats) -> tuple[Floats, float]:
        """Conjugate gradients on all vectors of the batch side by side."""
        x, r = np.zeros_like(right), right.copy()
        direction, norm = r.copy(), _squares(r)
        goal = self._goal(norm)
        for _ in range(STEPS):
            if np.all(norm <= goal):
                break
            moved = self.project(self.forward(direction))
            bend = _products(direction, moved)
            going = (norm > goal) & (bend > SMALLEST)
            if not np.any(going):  # what is left is rounding
                break
            step = np.divide(norm, bend, out=np.zeros_like(norm), where=going)
            x += step * direction
            r = self.project(r - step * moved)
            before, norm = norm, _squares(r)
            direction = r + norm / np.maximum(before, SMALLEST) * direction
        r = right - self.project(self.forward(x))
        return x, float(np.sqrt(_squares(r).max()))

    def _goal(self, norm: Floats) -> Floats:
        """Squared residual at which to stop."""
        relative = (1e-13**2) * norm
        if self.finest_precision:
            return np.maximum(relative, self.accuracy**2 * self.finest_precision)
        return np.maximum(relative, self.accuracy**2 * 1e-4 * norm)

    def determines(self, margin: Margin) -> bool:
        """Whether a table is a sum of measured tables, or of one and exact figures.

        Decided by a probe: a fixed random vector over the table must be reproduced by M M^+.
        """
        measured = (self.measurements.margins[b] for b in self.measurements.measured)
        if any(other.refines(margin) for other in measured):
            return True
        probe = np.random.default_rng(0).standard_normal((1, *margin.shape))
        right = self.project(margin.spread(probe))
        x, _ = self._solve(right)
        left = _squares(right - self.project(self.forward(x)))
        return bool(np.all(left <= 1e-10 * _squares(right)))

    def error_in_deviations(self, residual: float) -> float | None:
        """A bound, in standard deviations of any linear combination; None without finest cells."""
        finest = self.finest_precision
        return residual / sqrt(finest) if finest else None

    @cached_property
    def _low_rank(self) -> LowRankVariances | None:
        return LowRankVariances.of(self)

    def variances(self, margin: Margin) -> Floats | None:
        """The variance of every cell, where one matrix gives all of them; otherwise None."""
        return None if self._low_rank is None else self._low_rank.variances(margin)


@dataclass(frozen=True, eq=False)
class GradientSolution:
    """M^+ h as cells, with the norm of the residual of the normal equations."""

    inverse: GradientInverse
    cells: Floats
    residual: float

    def totals(self, margin: Margin) -> Floats:
        """Its sums over the cells of a table."""
        if not self.inverse.determines(margin):
            raise not_determined(self.inverse.measurements.names, margin)
        return np.asarray(margin.totals(self.cells))


@dataclass(frozen=True, eq=False)
class LowRankVariances:
    """The diagonal of T M^+ T' for any table T."""

    measurements: Measurements
    precision: float  # of the finest cells

    @classmethod
    def of(cls, inverse: GradientInverse) -> LowRankVariances | None:
        """None if the finest cells are not measured, or coarser cells and figures are too many."""
        work = inverse.measurements
        if not inverse.finest_precision:
            return None
        coarser = sum(work.margins[b].size for b in _coarser(work))
        coarser += sum(figure.by.size for figure in work.figure_rows)
        if coarser > LARGEST_RANK or coarser * work.size > PRODUCTS:
            return None
        return cls(work, inverse.finest_precision)

    @cached_property
    def _columns(self) -> Any:
        """W: cells by coarser cells and independent figures."""
        work = self.measurements
        tables = [indicators(work.margins[b]).T for b in _coarser(work)]
        figures = independent_rows(figure_matrix(work.figure_rows, work.shape))
        return sp.hstack([*tables, figures.T], format="csr")

    @cached_property
    def _inverse(self) -> Floats:
        """G^-1."""
        from scipy.linalg import cho_factor, cho_solve  # only where variances need it

        work, columns = self.measurements, self._columns
        gram = np.asarray((columns.T @ columns).toarray(), dtype=float)
        ratios = [np.full(work.margins[b].size, 1 / work.precisions[b]) for b in _coarser(work)]
        added = self.precision * np.concatenate([*ratios, np.zeros(0)])
        gram[np.arange(len(added)), np.arange(len(added))] += added
        return np.asarray(cho_solve(cho_factor(gram), np.eye(len(gram))))

    def variances(self, margin: Margin) -> Floats:
        """One per cell of a table."""
        if not self._columns.shape[1]:
            return np.asarray(indicators(margin).sum(axis=1)).reshape(margin.shape) / self.precision
        here = indicators(margin)
        cells = np.asarray(here.sum(axis=1)).reshape(-1)
        overlaps = (here @ self._columns).tocsr()
        variances = np.empty(margin.size)
        step = max(1, BATCH // len(self._inverse))
        for start in range(0, margin.size, step):
            rows = overlaps[start : start + step]
            quadratic = np.asarray(rows.multiply(rows @ self._inverse).sum(axis=1)).reshape(-1)
            variances[start : start + step] = cells[start : start + step] - quadratic
        variances[variances < TOLD * cells] = 0.0
        return variances.reshape(margin.shape) / self.precision


def _squares(vectors: Floats) -> Floats:
    return _products(vectors, vectors)


def _products(left: Floats, right: Floats) -> Floats:
    """Inner products per vector of a batch, shaped to multiply it."""
    flat = (side.reshape(len(side), -1) for side in (left, right))
    return np.asarray(np.einsum("bi,bi->b", *flat).reshape(-1, *(1,) * (left.ndim - 1)))


def indicators(margin: Margin) -> sp.csr_matrix:
    """T as a sparse matrix: cells of the table by finest cells."""
    places = margin.spread(np.arange(margin.size).reshape(margin.shape)).reshape(-1)
    ones, finest = np.ones(len(places)), np.arange(len(places))
    return sp.csr_matrix((ones, (places, finest)), shape=(margin.size, len(places)))


def figure_matrix(
    figures: tuple[FigureRows, ...], shape: tuple[int, ...], every: bool = False
) -> sp.csr_matrix:
    """All figures as one sparse matrix over the cells; rows without a cell only if `every`."""
    blocks = [_sparse_rows(figure, shape) for figure in figures]
    if not every:
        blocks = [block[np.flatnonzero(np.diff(block.indptr))] for block in blocks]
    if not blocks:
        return sp.csr_matrix((0, prod(shape)))
    return sp.vstack(blocks, format="csr")


def _sparse_rows(figure: FigureRows, shape: tuple[int, ...]) -> sp.csr_matrix:
    size = prod(shape)
    along = [shape[at] if at in figure.mentions else 1 for at in range(len(shape))]
    weight = np.broadcast_to(figure.weight.reshape(along), shape).reshape(-1)
    rows = figure.by.spread(np.arange(figure.by.size).reshape(figure.by.shape)).reshape(-1)
    inside = np.flatnonzero(weight)
    return sp.csr_matrix((weight[inside], (rows[inside], inside)), shape=(figure.by.size, size))


def independent_rows(matrix: Any) -> Any:
    """Rows that span those given, none a combination of the others.

    >>> independent_rows(sp.csr_matrix([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])).shape
    (2, 3)
    """
    if not matrix.shape[0]:
        return matrix
    from scipy.linalg.lapack import dpstrf  # only where variances need it

    gram = np.asarray((matrix @ matrix.T).toarray(), dtype=float)
    _, order, rank, _ = dpstrf(gram, tol=DEPENDENT * float(gram.diagonal().max()), lower=1)
    return matrix[np.sort(order[:rank] - 1)]


def _coarser(work: Measurements) -> list[int]:
    """Measured tables that are not the finest cells themselves."""
    return [b for b in work.measured if work.margins[b].size < work.size]
