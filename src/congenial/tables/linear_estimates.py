"""Best linear unbiased estimates of all tables from all measurements and all exact figures.

Tables agree with each other and with every figure, because all are sums of one set of (real) cells.
"Best" is meant for noise with the covariances that `measurements` states; exact integer noise has
these up to discreteness (see `covariance`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.workload import Margin, Partition
from congenial.errors import DataError, StructureError
from congenial.tables.gradient_inverse import GradientInverse, GradientSolution
from congenial.tables.inverse import Inverse, Solution
from congenial.tables.measurements import Measurements
from congenial.tables.structure import separate
from congenial.tables.tree_inverse import TreeInverse
from congenial.tables.tree_passes import Undetermined

SLIGHT = 1e-7  # precision of cells that nothing tells, relative to the least precise table


def choose_inverse(measurements: Measurements) -> Inverse:
    """The fastest method that serves; its `method` and `reason` say which and why."""
    separation = separate(measurements)
    if isinstance(separation, str):
        return GradientInverse(measurements, separation)
    try:
        return TreeInverse(measurements, separation)
    except Undetermined:
        reason = "no single measured table holds the finest cells that some tables share"
        return GradientInverse(measurements, reason)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Consistent estimates of every table, `table(names)`, and how they were computed.

    `residual_in_deviations` bounds how far any linear combination of the cells is from the exact
    least squares solution, in units of its own standard deviation: 0.0 for methods without
    iteration, None where iteration gives no bound.
    """

    measurements: Measurements
    inverse: Inverse
    solution: Solution = field(repr=False)

    @property
    def method(self) -> str:
        """How the estimates were computed."""
        return self.inverse.method

    @property
    def residual_in_deviations(self) -> float | None:
        """A bound on the error of the computation."""
        if isinstance(self.solution, GradientSolution):
            return self.solution.inverse.error_in_deviations(self.solution.residual)
        return 0.0

    def table(self, names: Sequence[str]) -> Floats:
        """Estimates of the table over some axes, shaped by them in the order they are named."""
        return in_order(self.totals(self.measurements.margin(names)), names, self.measurements)

    def totals(self, margin: Margin) -> Floats:
        """Estimates of a table, with one axis per attribute of the cells."""
        return np.asarray(self.measurements.start_totals(margin) + self.solution.totals(margin)[0])

    def tell(self, margin: Margin) -> bool:
        """Whether measurements and figures determine a table."""
        try:
            self.totals(margin)
        except StructureError:
            return False
        return True

    @property
    def cells(self) -> Floats:
        """Estimates of the finest cells."""
        return self.totals(finest(self.measurements))


def completed(estimates: Estimates, most: int) -> Estimates:
    """The same, also of cells that tables and figures leave open: those are spread evenly.

    As if the finest cells had been measured, each as large as the others beside it that the figures
    do not tell apart, with next to no precision. Up to `most` cells; more are returned as they are.
    """
    work, every = estimates.measurements, finest(estimates.measurements)
    if work.size > most or estimates.tell(every):
        return estimates
    slight = SLIGHT * min(work.precisions[b] for b in work.measured)
    margins = [*(work.margins[b] for b in work.measured), every]
    more = work.over(margins, [*(work.precisions[b] for b in work.measured), slight])
    inverse = choose_inverse(more)
    terms = [
        (margin, (work.precisions[b] * estimates.solution.totals(margin)[0])[None])
        for b, margin in zip(work.measured, margins, strict=False)
    ]
    return Estimates(more, inverse, inverse.apply(terms))


def finest(measurements: Measurements) -> Margin:
    """The table of all cells."""
    return Margin(tuple(Partition.levels(levels) for levels in measurements.shape))


def in_order(values: Floats, names: Sequence[str], measurements: Measurements) -> Floats:
    """A table with one axis per attribute, with the named axes only, in the order named."""
    bases = [measurements.workload.schema.axis(name).base for name in names]
    places = [measurements.names.index(base) for base in bases]
    rest = tuple(at for at in range(values.ndim) if at not in places)
    axes = [at for at in range(values.ndim) if at in places]
    return np.asarray(np.squeeze(values, rest).transpose([axes.index(at) for at in places]))


def estimate(
    measurements: Measurements, values: Sequence[Any], inverse: Inverse | None = None
) -> Estimates:
    """Estimates from measured tables.

    `values[b]` is table b of the workload as drawn, shaped by its axes as named; None where it was
    not measured. `inverse` may be passed on from `choose_inverse`.
    """
    inverse = inverse or choose_inverse(measurements)
    terms = []
    for b in measurements.measured:
        margin = measurements.margins[b]
        y = measured_values(measurements, b, values)
        terms.append(
            (margin, (measurements.precisions[b] * (y - measurements.start_totals(margin)))[None])
        )
    return Estimates(measurements, inverse, inverse.apply(terms))


def measured_values(measurements: Measurements, b: int, values: Sequence[Any]) -> Floats:
    """Table b as drawn, with one axis per attribute of the cells."""
    names, margin = measurements.workload.tables[b], measurements.margins[b]
    schema = measurements.workload.schema
    shape = tuple(schema.axis(name).size for name in names)
    drawn: Any = values[b] if b < len(values) else None
    if drawn is None or np.shape(drawn) != shape:
        raise DataError(
            f"table {list(names)} has measurements of shape {np.shape(drawn)}, not {shape}.",
            remedy="Give one array per table, shaped by its axes.",
        )
    places = [measurements.names.index(schema.axis(name).base) for name in names]
    order = sorted(range(len(places)), key=places.__getitem__)
    return np.asarray(drawn, dtype=float).transpose(order).reshape(margin.shape)
