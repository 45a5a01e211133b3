"""All that several noisy tables say together: estimates, their uncertainty, and whole counts.

`JointEstimator` is known before anything is drawn: which tables are measured, how precisely and
given which figures. `answer` takes the tables as drawn and gives every table's estimates and whole
counts. Public values in, public values out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.workload import Workload
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.tables.covariance import Covariance, Deviations
from congenial.tables.general_fit import as_near_tables
from congenial.tables.intervals import half_width
from congenial.tables.linear_estimates import Estimates, estimate, finest, in_order
from congenial.tables.measurements import Measurements
from congenial.tables.node_order import NodeOrder
from congenial.tables.noise_variance import Family, noise_variance
from congenial.tables.simulated_errors import Noise, SimulatedErrors
from congenial.tables.sparse_tables import sparse_tables
from congenial.tables.whole_counts import FitMethod, WholeCounts, fit_whole_counts, rehearse

LARGEST_WHOLE = 10**8  # cells of the common refinement of all tables that whole counts are made for
NOISELESS = 1e-6  # a standard deviation below it is rounding: figures tell the cell
NOT_YET = "the exact figures are not published yet"
BASES = {
    "exact": "standard deviation exact, shape taken to be normal",
    "bound": "standard deviation a proved bound, shape taken to be normal",
    "approximation": "an approximation: standard deviation and normal shape",
    "simulated": "simulated standard deviation, shape taken to be normal",
}
SIMULATED = "half-widths are upper confidence bounds from draws of the public noise law"
KINDS = 200  # of cells whose errors are simulated


class FittedTables(Protocol):
    """Estimates of every table: `table(names)`, and how they were worked out."""

    @property
    def method(self) -> str:
        """How."""

    def table(self, names: Sequence[str]) -> Any:
        """Estimates of the table over some axes, shaped by them in the order they are named."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Estimates of every table, and whole counts of those that can have them, else None."""

    fitted: FittedTables = field(repr=False)
    estimates: tuple[Floats, ...] = field(repr=False)
    counts: tuple[Ints | None, ...] = field(repr=False)


@dataclass(frozen=True)
class JointEstimator:
    """Tables, the scale of each one's noise (None: not measured), figures and kept partitions."""

    workload: Workload
    family: Family
    scales: tuple[Fraction | None, ...]
    figures: Figures
    keep: tuple[str, ...] = ()
    printed: bool = True  # whether whole counts are
    counted: bool = True  # whether tables count; otherwise they sum a number
    noise: tuple[Noise, ...] = ()  # of each measured table, where intervals are simulated

    @cached_property
    def measurements(self) -> Measurements:
        """The same with precisions."""
        pairs = zip(self.workload.tables, self.scales, strict=True)
        precisions = tuple(0.0 if s is None else 1 / self._variance(n, s) for n, s in pairs)
        return Measurements(self.workload, precisions, self.figures)

    def _variance(self, names: tuple[str, ...], scale: Fraction) -> float:
        return noise_variance(self.family, scale, support(self.figures, names)).value

    @cached_property
    def covariance(self) -> Covariance:
        """The covariance of all estimates."""
        return Covariance(self.measurements, self.family)

    @cached_property
    def _deviations(self) -> dict[tuple[str, ...], Deviations]:
        return {}

    def deviations(self, names: Sequence[str]) -> Deviations:
        """Standard deviation of every cell of a table; 0 where figures tell it."""
        key = tuple(names)
        if key not in self._deviations:
            deviations = self.covariance.deviations(key)
            values = np.where(deviations.values < NOISELESS, 0.0, deviations.values)
            self._deviations[key] = Deviations(values, deviations.basis)
        return self._deviations[key]

    def deviation_of_sum(self, names: Sequence[str], cells: Any) -> float:
        """Standard deviation of the sum over some cells (a boolean array) of a table."""
        marked = np.asarray(cells, dtype=float)
        if np.count_nonzero(marked) == 1:
            return float(self.deviations(names).values[marked > 0][0])
        variance = float(self.covariance.of(names, marked[None])[0, 0])
        return 0.0 if variance < NOISELESS**2 else float(np.sqrt(variance))

    def reach(self, names: Sequence[str], level: float) -> Floats:
        """Half the width of an interval for every cell of a table: from simulated errors, one cell
        for all that have its standard deviation, or else as if errors were normal.
        """
        deviations = self.deviations(names).values
        flat = deviations.reshape(-1)
        kinds, first, number = np.unique(
            np.round(flat / max(flat.max(initial=0.0), NOISELESS), 9),
            return_index=True,
            return_inverse=True,
        )
        if self._simulated is None or len(kinds) > KINDS:
            return np.asarray(half_width(level) * deviations)
        units = np.zeros((len(kinds), flat.size))
        units[np.arange(len(kinds)), first] = 1
        reach = self._reach(names, units.reshape(-1, *deviations.shape), level)[number.reshape(-1)]
        return np.where(flat > 0, reach, 0.0).reshape(deviations.shape)

    def reach_of_sum(self, names: Sequence[str], cells: Any, level: float) -> float:
        """The same for the sum over some cells of a table."""
        deviation = self.deviation_of_sum(names, cells)
        if self._simulated is None or deviation == 0:
            return half_width(level) * deviation
        return float(self._reach(names, np.asarray(cells, dtype=float)[None], level)[0])

    def _reach(self, names: Sequence[str], weights: Floats, level: float) -> Floats:
        assert self._simulated is not None
        margin = self.measurements.margin(names)
        rows = self.covariance.by_attribute(weights, names, margin)
        return self._simulated.reach(margin, rows, level)

    @cached_property
    def _simulated(self) -> SimulatedErrors | None:
        """Errors from draws; None where they are taken to be normal."""
        if not self.noise:
            return None
        errors = SimulatedErrors(self.measurements, self.covariance.inverse, self.noise)
        return errors if errors.serves else None

    def basis_of_sum(self, names: Sequence[str], cells: Any) -> str:  # noqa: ARG002
        """What the interval of a sum rests on."""
        return BASES[self.covariance.basis] if self._simulated is None else SIMULATED

    @property
    def size(self) -> int:
        """Cells that all tables have in common."""
        return self.measurements.size

    def prints(self, names: Sequence[str]) -> bool:
        """Whether a table is printed as whole counts."""
        printed = {frozenset(table) for table in self.workload.tables if table not in self.across}
        return self.has_counts and frozenset(names) in printed

    def prints_sum(self, names: Sequence[str], cells: Any) -> bool:
        """Whether the sum over some cells of a printed table is a printed count: a single cell."""
        return self.prints(names) and np.count_nonzero(cells) == 1

    @property
    def has_counts(self) -> bool:
        """Whether whole counts are printed."""
        return self.printed and not self.why_no_counts

    @property
    def follows_keep(self) -> bool:
        """Whether whole counts follow the partitions that `keep` names."""
        return not self.keep or self.has_counts

    @property
    def why_no_counts(self) -> str:
        """Why no whole counts can be fitted; empty where they can. From public figures alone.

        Raises FigureError where no whole counts have the figures at all.
        """
        method = self._method
        if isinstance(method, NodeOrder):  # sums that nest can always be attained
            return ""
        rehearsal = method if isinstance(method, str) else self.rehearsal
        return rehearsal if isinstance(rehearsal, str) else ""

    @cached_property
    def rehearsal(self) -> WholeCounts | str:
        """Whole counts of made-up people, spread as evenly as the figures allow, fitted to tables
        without noise; or why there are none.
        """
        if isinstance(self._method, str):
            return self._method
        try:
            evenly = estimate(self.measurements, self.made_up, self.covariance.inverse)
            return fit_whole_counts(evenly, self.keep, self._method)
        except StructureError as reason:
            return reason.what.rstrip(".")

    @cached_property
    def _method(self) -> FitMethod | str:
        """How whole counts are fitted: worked out once, before a draw; or why there are none."""
        if self.measurements.size > LARGEST_WHOLE:
            return (
                f"the cells that all tables have in common are {self.measurements.size:,}, and "
                f"whole counts are made for at most {LARGEST_WHOLE:,}"
            )
        if self.figures.equalities and self.figures.values is None:
            return NOT_YET
        try:
            return rehearse(self.measurements, self.keep)
        except StructureError as reason:
            return reason.what.rstrip(".")

    @property
    def made_up(self) -> list[Floats]:
        """Tables of nobody that have every figure and no noise; not whole."""
        work = self.measurements
        return [
            in_order(work.start_totals(work.margin(names)), names, work)
            for names in self.workload.tables
        ]

    @cached_property
    def across(self) -> tuple[tuple[str, ...], ...]:
        """Tables that cut across the order of the fit: sums of whole counts keep a bias there, so
        their estimates are printed, unless `keep` asks that whole counts follow them.
        """
        if self.why_no_counts or not isinstance(self._method, NodeOrder):
            return ()
        sums = (names for names, role in self._method.roles().items() if role == "sum")
        return tuple(names for names in sums if not set(names) & set(self.keep))

    def fitted(self, drawn: Sequence[Any]) -> Estimates:
        """Estimates of everything, by least squares."""
        return estimate(self.measurements, drawn, self.covariance.inverse)

    def answer(self, drawn: Sequence[Any]) -> Answer:
        """Estimates and whole counts; `drawn[b]` is table b as drawn, None if not measured."""
        fitted = self.fitted(drawn)
        tables = tuple(self._cleaned(fitted, names) for names in self.workload.tables)
        whole = self.whole(fitted)
        counts = tuple(
            None if whole is None or names in self.across else whole.table(names)
            for names in self.workload.tables
        )
        return Answer(fitted, tables, counts)

    def _cleaned(self, fitted: Estimates, names: tuple[str, ...]) -> Floats:
        """Estimates of a table, whole where figures tell a cell."""
        values = fitted.table(names)
        return np.where(self.deviations(names).values == 0, np.rint(values), values)

    def whole(self, fitted: Estimates) -> WholeCounts | None:
        """Whole counts near the estimates; None where none are printed."""
        if not self.has_counts:
            return None
        assert not isinstance(self._method, str)  # else there are no counts
        return fit_whole_counts(fitted, self.keep, self._method, self.sparse)

    @cached_property
    def sparse(self) -> dict[tuple[str, ...], Floats]:
        """Standard deviations of all tables where printed counts of some are posterior means."""
        if not (self.counted and self.has_counts and isinstance(self._method, NodeOrder)):
            return {}
        return sparse_tables(
            self.measurements, self.workload.tables, lambda names: self.deviations(names).values
        )

    def as_near(self, drawn: Sequence[Any], counts: Sequence[Ints | None]) -> bool:
        """Whether printed counts differ from a fit by ties of integer programmes only.

        That depends on the solver's version. False where no table shows all cells.
        """
        fitted = self.fitted(drawn)
        work = self.measurements
        finest_tables = [b for b, margin in enumerate(work.margins) if margin == finest(work)]
        cells = counts[finest_tables[0]] if finest_tables else None
        if cells is None or not self.has_counts or isinstance(self._method, NodeOrder):
            return False
        bases = [
            work.workload.schema.axis(name).base for name in work.workload.tables[finest_tables[0]]
        ]
        whole = WholeCounts(work, None, np.transpose(cells, [bases.index(n) for n in work.names]))
        pairs = zip(self.workload.tables, counts, strict=True)
        same = all(c is not None and np.array_equal(whole.table(names), c) for names, c in pairs)
        return same and as_near_tables(fitted, self.keep, whole.cells)


class CountsEstimator(Protocol):
    """What measured counts of the same tables say: estimates and their errors."""

    def fitted(self, drawn: Sequence[Any]) -> FittedTables:
        """Estimates of everything."""

    def deviations(self, names: Sequence[str]) -> Deviations:
        """Standard deviation of every cell of a table."""

    def deviation_of_sum(self, names: Sequence[str], cells: Any) -> float:
        """Standard deviation of the sum over some cells."""


@dataclass(frozen=True)
class ShiftedEstimator(JointEstimator):
    """The same for sums S of which S - c n is measured, beside counts n of the same tables.

    The estimate of S is that of S - c n plus c times that of n. Both are consistent and their noise
    is independent, so errors add up as sd(S - c n)^2 + c^2 sd(n)^2. Drawn tables are those of S - c
    n and then those of n.
    """

    people: CountsEstimator | None = None
    shift: int = 0

    @classmethod
    def of(cls, sums: JointEstimator, people: CountsEstimator, shift: int) -> ShiftedEstimator:
        """From what tables of S - c n say, and counts; `shift` is c in steps."""
        own = {each_field.name: getattr(sums, each_field.name) for each_field in fields(sums)}
        return cls(**own, people=people, shift=shift)

    @property
    def _people(self) -> CountsEstimator:
        assert self.people is not None
        return self.people

    def deviations(self, names: Sequence[str]) -> Deviations:
        """Standard deviation of every cell of a table; 0 where figures tell it."""
        own, people = super().deviations(names), self._people.deviations(names)
        values = np.hypot(own.values, self.shift * people.values)
        return Deviations(values, people.basis if own.basis == "exact" else own.basis)

    def deviation_of_sum(self, names: Sequence[str], cells: Any) -> float:
        """Standard deviation of the sum over some cells (a boolean array) of a table."""
        people = self._people.deviation_of_sum(names, cells)
        return float(np.hypot(super().deviation_of_sum(names, cells), self.shift * people))

    def basis_of_sum(self, names: Sequence[str], cells: Any) -> str:
        """What the interval of a sum rests on."""
        own, people = self.covariance.basis, self._people.deviations(names).basis
        return super().basis_of_sum(names, cells) if own != "exact" else BASES[people]

    def fitted(self, drawn: Sequence[Any]) -> Estimates:
        """Estimates of everything: least squares leave consistent tables as they are, so c times
        the estimated counts may be added to what was drawn.
        """
        tables = self.workload.tables
        people = self._people.fitted(drawn[len(tables) :])
        sums = [
            None if values is None else values + self.shift * people.table(names)
            for names, values in zip(tables, drawn, strict=False)
        ]
        return super().fitted(sums)
