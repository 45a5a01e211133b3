"""Variances of every cell of every table where only the finest cells are many.

With the finest cells measured at precision p, M = p I + U D U' for the indicators U of the cells of
the coarser measured tables and D their precisions. A figure is a row that is measured without
error. So with W = [U, A'] (independent rows of A) and G = W'W + p diag(1/D, 0),

    p M^+ = I - W G^-1 W',

and a cell of a table that adds up n finest cells, with overlaps w = W'T', has variance
(n - w' G^-1 w) / p. One matrix of the size of coarser cells and figures is inverted, instead of
one iteration per cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpstrf

from congenial.data.workload import Margin
from congenial.tables.gradient_inverse import GradientInverse, figure_matrix
from congenial.tables.measurements import Floats, Measurements

LARGEST = 3_000  # coarser cells and figures: seconds
PRODUCTS = 500_000_000  # finest cells times coarser ones: a few seconds
BATCH = 5_000_000  # numbers held at a time
TOLD = 1e-10  # share of n / p below which a variance is rounding: figures tell the cell
DEPENDENT = 1e-10  # of the largest diagonal entry of A A', for rows that follow from others


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
        if coarser > LARGEST or coarser * work.size > PRODUCTS:
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
        found = np.empty(margin.size)
        step = max(1, BATCH // len(self._inverse))
        for start in range(0, margin.size, step):
            rows = overlaps[start : start + step]
            told = np.asarray(rows.multiply(rows @ self._inverse).sum(axis=1)).reshape(-1)
            found[start : start + step] = cells[start : start + step] - told
        found[found < TOLD * cells] = 0.0
        return found.reshape(margin.shape) / self.precision


def indicators(margin: Margin) -> Any:
    """T as a sparse matrix: cells of the table by finest cells."""
    places = margin.spread(np.arange(margin.size).reshape(margin.shape)).reshape(-1)
    ones, finest = np.ones(len(places)), np.arange(len(places))
    return sp.csr_matrix((ones, (places, finest)), shape=(margin.size, len(places)))


def independent_rows(matrix: Any) -> Any:
    """Rows that span those given, none a combination of the others.

    >>> independent_rows(sp.csr_matrix([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 1.0]])).shape
    (2, 3)
    """
    if not matrix.shape[0]:
        return matrix
    gram = np.asarray((matrix @ matrix.T).toarray(), dtype=float)
    _, order, rank, _ = dpstrf(gram, tol=DEPENDENT * float(gram.diagonal().max()), lower=1)
    return matrix[np.sort(order[:rank] - 1)]


def _coarser(work: Measurements) -> list[int]:
    """Measured tables that are not the finest cells themselves."""
    return [b for b in work.measured if work.margins[b].size < work.size]
