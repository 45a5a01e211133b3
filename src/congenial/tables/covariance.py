"""Standard deviations of estimates, known before anything is drawn, and what each number is.

With noise of covariance (1/p_b) x projection the estimates have covariance M^+ (see `inverse`).
Exact integer noise given sums has that covariance exactly, or at most (`noise_variance`, whose
values are the 1/p_b to use); for a fixed linear estimate so does the result. *Exact*: double
geometric noise, if each measured table has its cells in known sums of one size, or in none.
Otherwise a *bound*, equal to four digits for a discrete Gaussian of sigma^2 >= 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.workload import Margin, Workload
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.tables.gradient_inverse import GradientInverse
from congenial.tables.inverse import Inverse
from congenial.tables.linear_estimates import choose_inverse, in_order
from congenial.tables.measurements import Measurements
from congenial.tables.noise_variance import Basis, Family, variance_basis

SOLVED = 4_000_000  # entries of all solutions, where variances are solved for cell by cell
BATCH_ENTRIES = 20_000_000  # numbers held at a time by such solves


@dataclass(frozen=True, eq=False)
class Deviations:
    """Standard deviations of a table's cells, and whether they are exact or bounds."""

    values: Floats
    basis: Basis


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of all estimates under one family of noise.

    The measurements' precisions are those of `noise_variance`, as `Design.measurements` gives them.
    """

    measurements: Measurements
    family: Family = "discrete_gaussian"

    @cached_property
    def inverse(self) -> Inverse:
        """M^+, by the method that serves the tables."""
        return choose_inverse(self.measurements)

    @cached_property
    def basis(self) -> Basis:
        """What the covariance M^+ is for integer noise of this family."""
        work = self.measurements
        tables = [work.workload.tables[b] for b in work.measured]
        bases = {variance_basis(self.family, support(work.figures, names)) for names in tables}
        return "bound" if "bound" in bases else "simulated" if "simulated" in bases else "exact"

    # ---- tables ------------------------------------------------------------------------------

    def deviations(self, names: Sequence[str]) -> Deviations:
        """Standard deviation of every cell of a table, shaped by its axes as named.

        Where tables separate, one number per kind of cell is computed and shown at its cells.
        """
        margin = self.measurements.margin(names)
        variances, basis = self.inverse.variances(margin), self.basis
        if variances is None:
            variances, basis = self._without_separation(names)
        return Deviations(in_order(np.sqrt(variances), names, self.measurements), basis)

    def _without_separation(self, names: Sequence[str]) -> tuple[Floats, Basis]:
        """Cell by cell if they are few, otherwise a bound from fewer measurements."""
        margin = self.measurements.margin(names)
        if margin.size * self.measurements.size <= SOLVED:
            return self._solved(margin), self.basis
        if not isinstance(self.inverse, GradientInverse):
            raise StructureError(
                f"the table over {', '.join(names)} has {margin.size} cells and is not one of the "
                "tables that were named.",
                remedy="Name it among the tables (precision 0), or ask for single cells.",
            )
        fewer = separable_part(self.measurements)
        variances = choose_inverse(fewer).variances(fewer.margin(names))
        assert variances is not None
        return variances.reshape(margin.shape), "bound"

    def _solved(self, margin: Margin) -> Floats:
        variances = np.empty(margin.size)
        step = max(1, BATCH_ENTRIES // max(self.measurements.size, 1))
        for start in range(0, margin.size, step):
            cells = np.arange(start, min(margin.size, start + step))
            unit = np.zeros((len(cells), margin.size))
            unit[np.arange(len(cells)), cells] = 1
            solved = self.inverse.apply([(margin, unit.reshape(-1, *margin.shape))]).totals(margin)
            variances[cells] = solved.reshape(len(cells), -1)[np.arange(len(cells)), cells]
        return np.maximum(variances, 0).reshape(margin.shape)

    # ---- linear combinations -----------------------------------------------------------------

    def of(self, names: Sequence[str], weights: Any) -> Floats:
        """Covariance matrix of linear combinations of a table's cells.

        `weights`: shaped (combinations, *axes as named).
        """
        margin = self.measurements.margin(names)
        rows = self.by_attribute(np.asarray(weights, dtype=float), names, margin)
        solved = self.inverse.apply([(margin, rows)]).totals(margin)
        covariance = rows.reshape(len(rows), -1) @ solved.reshape(len(rows), -1).T
        return np.asarray((covariance + covariance.T) / 2)

    def by_attribute(self, weights: Floats, names: Sequence[str], margin: Margin) -> Floats:
        """Rows of weights by the axes of a table as named, by attributes of the cells instead."""
        schema = self.measurements.workload.schema
        shape = tuple(schema.axis(name).size for name in names)
        if weights.ndim != 1 + len(shape) or weights.shape[1:] != shape:
            raise StructureError(
                f"weights of shape {weights.shape} for a table of shape {shape}.",
                remedy="Give one row of weights per linear combination, shaped like the table.",
            )
        places = [self.measurements.names.index(schema.axis(name).base) for name in names]
        order = sorted(range(len(places)), key=places.__getitem__)
        return weights.transpose([0, *(1 + i for i in order)]).reshape(-1, *margin.shape)


def separable_part(measurements: Measurements) -> Measurements:
    """Some of the measurements, such that the rest separates: what they say bounds variances.

    Leaving out information cannot lower a variance. Starts from the finest measured tables; leaves
    out the figures only if no table separates beside them.
    """
    for figures in (measurements.figures, Figures(measurements.workload.schema)):
        chosen = _greedy(measurements, figures)
        if chosen is not None:
            return chosen
    raise StructureError(
        "no measured table separates on its own.", remedy="Measure a table of the finest cells."
    )


def _greedy(measurements: Measurements, figures: Figures) -> Measurements | None:
    """Tables added from fine to coarse, as long as what is measured separates."""
    by_size = sorted(measurements.measured, key=lambda b: -measurements.margins[b].size)
    chosen: list[int] = []
    estimator = None
    for b in by_size:
        trial = [*chosen, b]
        attempt = _only(measurements, trial, figures)
        if not isinstance(choose_inverse(attempt), GradientInverse):
            chosen, estimator = trial, attempt
    return estimator


def _only(measurements: Measurements, kept: Sequence[int], figures: Figures) -> Measurements:
    tables = tuple(measurements.workload.tables[b] for b in kept)
    work = Workload(measurements.workload.schema, measurements.workload.axes, tables)
    return Measurements(work, tuple(measurements.precisions[b] for b in kept), figures)
