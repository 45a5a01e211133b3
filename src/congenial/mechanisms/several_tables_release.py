"""What several tables drawn together are released as: printed counts, estimates, and intervals.

The reader's number of a cell is its printed whole count; of any other sum it is the estimate,
because sums of printed counts over parts that were not fitted keep a bias. Intervals rest on the
tables as drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from congenial.data.table import select
from congenial.data.workload import Ints, Workload
from congenial.errors import InferenceError, PredicateError
from congenial.figures.invariants import Invariants
from congenial.figures.sum_ranges import indexed_ranges, table_ranges
from congenial.figures.summed_out import summed_out
from congenial.figures.support import support
from congenial.mechanisms.cell_labels import label_columns
from congenial.mechanisms.released import (
    FILE_LEVEL,
    LEVEL,
    Interval,
    Released,
    axis_names,
    check_level,
)
from congenial.mechanisms.single_table_release import INTERVAL, Release
from congenial.mechanisms.tables_files import TableFile, file_name, said
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.tables.intervals import ends
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.linear_estimates import Estimates, estimate
from congenial.tables.measurements import Floats

BASES = {
    "exact": "standard deviation exact, shape taken to be normal",
    "bound": "standard deviation a proved bound, shape taken to be normal",
    "approximation": "an approximation: standard deviation and normal shape",
}


@dataclass(frozen=True)
class TablesRelease(Released):
    """Several tables that agree with each other and with every published figure.

    `drawn`: the measured tables as drawn; `estimates` and `deviations`: one array per printed
    table; `counts`: whole counts of each, None where there can be none.
    """

    kind: ClassVar[str] = "tables"
    name: str
    description: TablesDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool
    drawn: tuple[Ints, ...] = field(repr=False)
    estimates: tuple[Floats, ...] = field(repr=False)
    deviations: tuple[Floats, ...] = field(repr=False)
    counts: tuple[Ints | None, ...] = field(repr=False)

    @classmethod
    def answered(
        cls,
        name: str,
        description: TablesDescription,
        guarantee: Guarantee,
        randomness: str,
        publishable: bool,
        drawn: tuple[Ints, ...],
        estimator: JointEstimator,
    ) -> TablesRelease:
        """A release with everything that follows from the tables as drawn."""
        found = estimator.answer(by_table(description, drawn))
        deviations = tuple(estimator.deviations(names).values for names in description.tables)
        common = (name, description, guarantee, randomness, publishable, drawn)
        made = cls(*common, found.estimates, deviations, found.counts)
        vars(made)["estimator"], vars(made)["fitted"] = estimator, found.fitted
        return made

    # ---- what it is about --------------------------------------------------------------------

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Axes of every printed table."""
        return self.description.tables

    @cached_property
    def estimator(self) -> JointEstimator:
        """What the tables say together, before any draw."""
        return estimator_of(self.description)

    @cached_property
    def fitted(self) -> Estimates:
        """Estimates of everything, from the tables as drawn."""
        values = by_table(self.description, self.drawn)
        return estimate(self.estimator.measurements, values, self.estimator.covariance.inverse)

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Files and what they hold."""
        return tuple(
            (
                f"{file_name(self.tables, at)}.csv, .parquet",
                f"{said(names)}, one row per cell: {', '.join(self._file(at).columns)}",
            )
            for at, names in enumerate(self.tables)
        )

    @property
    def usage(self) -> tuple[str, ...]:
        """How to begin, as lines of code."""
        names = ", ".join(repr(name) for name in self.tables[0])
        return f"release.to_pandas({names})", 'release.interval("<condition>", 0.90)'

    def __repr__(self) -> str:
        tables = "; ".join(map(said, self.tables))
        return f"{type(self).__name__}({self.name!r}: {tables}; {self.guarantee.tradeoff.words})"

    # ---- numbers -----------------------------------------------------------------------------

    def count(self, condition: str) -> float:
        """People who meet a condition: the printed count of a cell, else the estimate of the sum.

        Sums of printed counts over cells that were not fitted together keep a bias; estimates do
        not. The total is printed if a table of the release or a figure shows it.
        """
        printed = self._printed_cell(condition)
        return self._estimated(condition)[0] if printed is None else printed

    def _printed_cell(self, condition: str) -> int | None:
        """The printed count of a cell; None for other sums, and where none is printed."""
        names, cells = self._shown(condition)
        counts = self.counts[self.tables.index(names)]
        single = counts is not None and np.count_nonzero(cells) == 1
        return int(counts[cells][0]) if counts is not None and single else None

    def margin(self, *names: str) -> Any:
        """A table: printed counts if it is one of the release, otherwise its estimates."""
        axes = axis_names(names)
        at = self._place(axes)
        counts = None if at is None else self.counts[at]
        if at is None or counts is None:
            return self.estimates_of(*axes)
        return _reordered(counts, self.tables[at], axes)

    def estimates_of(self, *names: str) -> Floats:
        """The best linear unbiased estimates of a table, printed or a sum of printed ones."""
        axes = axis_names(names)
        at = self._place(axes)
        if at is None:
            return self.fitted.table(axes)
        return np.asarray(_reordered(self.estimates[at], self.tables[at], axes))

    def own_estimates_of(self, *names: str) -> Floats:
        """Estimates of a table from the measured tables of this release, and from nothing else:
        their errors are those of `measured_tables`.
        """
        return self.estimates_of(*names)

    def estimate(self, what: Any, level: float = 0.95, **options: Any) -> Any:
        """Estimates with intervals, an `EstimateTable`: `congenial.estimate(self, what, ...)`."""
        import congenial  # the front door: what is done with releases lives in later rooms

        return congenial.estimate(self, what, level, **options)

    def measured_tables(self) -> tuple[Release, ...]:
        """Each measured table as a release of its own, with its part of the description."""
        return tuple(
            Release(
                f"{self.name}: {said(one.table)}",
                one,
                self.guarantee,
                values,
                self.randomness,
                self.publishable,
            )
            for one, values in zip(self.description.measured, self.drawn, strict=True)
        )

    def estimated_count(self, condition: str) -> float:
        """The estimated number of people who meet a condition: unbiased, not always whole."""
        names, cells = self._shown(condition)
        return float(np.sum(self.estimates[self.tables.index(names)][cells]))

    def _estimated(self, condition: str) -> tuple[float, float]:
        """The estimate, whole where published figures tell it, and its standard deviation."""
        value, deviation = self.estimated_count(condition), self.deviation(condition)
        return (round(value) if deviation == 0 else value), deviation

    def deviation(self, condition: str) -> float:
        """The standard deviation of that estimate."""
        return self.estimator.deviation_of_sum(*self._shown(condition))

    def interval(self, condition: str, level: float = LEVEL) -> Interval:
        """Interval for the true number of people who meet a condition, around the estimate.

        Its basis says what it is: errors of several combined draws are taken to be normal. The ends
        are cut to what the published figures allow; that of a cell reaches at least to its printed
        count.
        """
        check_level(level)
        value, deviation = self._estimated(condition)
        names, cells = self._shown(condition)
        ranges = indexed_ranges(support(self._figures, names), np.where(cells, 0, -1), 1)
        low, high = ends([value], deviation, level, self._printed_cell(condition), ranges)
        basis = BASES[self.estimator.covariance.basis]
        return Interval(value, float(low[0]), float(high[0]), level, deviation == 0, basis)

    def interval_ends(self, at: int, level: float) -> tuple[Floats, Floats]:
        """Ends of the intervals of every cell of a printed table, in its shape."""
        ranges = table_ranges(self._figures, self.tables[at])
        return ends(self.estimates[at], self.deviations[at], level, self.counts[at], ranges)

    @cached_property
    def _figures(self) -> Invariants:
        """The published figures, as far as the tables can show them."""
        return summed_out(self.published, self.estimator.workload.axes)

    def intervals(self, names: str | Sequence[str], level: float) -> Any:
        """Intervals for every cell of a table: an Arrow table of estimate, low, high, exact."""
        import pyarrow as pa

        check_level(level)
        axes = axis_names([names])
        estimates, deviations = self.estimates_of(*axes), self.estimator.deviations(axes).values
        estimates = np.where(deviations == 0, np.rint(estimates), estimates)
        at = self._place(axes)
        counts = None if at is None else self.counts[at]
        printed = (
            None if at is None or counts is None else _reordered(counts, self.tables[at], axes)
        )
        ranges = table_ranges(self._figures, axes)
        low, high = ends(estimates, deviations, level, printed, ranges)
        columns = label_columns(self.schema, axes, INTERVAL)
        for name, values in (("estimate", estimates), ("low", low), ("high", high)):
            columns[name] = pa.array(values.reshape(-1))
        return pa.table(columns | {"exact": pa.array((deviations == 0).reshape(-1))})

    # ---- frames ------------------------------------------------------------------------------

    def to_arrow(self, *names: str) -> Any:
        """One row per cell of a printed table; the first table if none is named."""
        axes = axis_names(names) or self.tables[0]
        at = self._place(axes)
        if at is None:
            raise InferenceError(
                f"the table over {', '.join(axes)} is not one of this release.",
                remedy=f"Printed: {'; '.join(map(said, self.tables))}. estimates_of gives others.",
            )
        return self._file(at).table(self._columns(at))

    def to_pandas(self, *names: str) -> Any:
        """The same as a pandas frame (extra `frames`)."""
        return self.to_arrow(*names).to_pandas()

    def to_polars(self, *names: str) -> Any:
        """The same as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow(*names))

    def _title(self) -> str:
        return f"Release '{self.name}': {'; '.join(said(names) for names in self.tables)}"

    # ---- files -------------------------------------------------------------------------------

    def payload(self) -> dict[str, bytes]:
        """The files of a bundle that hold the tables."""
        files: dict[str, bytes] = {}
        for at in range(len(self.tables)):
            files |= self._file(at).written(self._columns(at))
        return files

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> TablesRelease:
        """Inverse of `payload`; refuses tables that are not the schema's."""
        told: TablesDescription = common["description"]
        schema = common["guarantee"].adjacency.schema
        measured = {one.table for one in told.measured}
        read = [
            TableFile.found(schema, told.tables, at, names in measured, payload).read(payload)
            for at, names in enumerate(told.tables)
        ]
        place = {names: at for at, names in enumerate(told.tables)}
        return cls(
            **common,
            drawn=tuple(read[place[one.table]]["count_as_drawn"] for one in told.measured),
            estimates=tuple(one["estimate"] for one in read),
            deviations=tuple(one["sd"] for one in read),
            counts=tuple(one.get("count") for one in read),
        )

    def _file(self, at: int) -> TableFile:
        measured = {one.table for one in self.description.measured}
        names = self.tables[at]
        whole = self.counts[at] is not None
        return TableFile(self.schema, self.tables, at, whole, names in measured)

    def _columns(self, at: int) -> dict[str, Any]:
        low, high = self.interval_ends(at, FILE_LEVEL)
        named: dict[str, Any] = {"count": self.counts[at]}
        named |= {"estimate": self.estimates[at], "sd": self.deviations[at]}
        named |= {"low": low.astype(np.int64), "high": high.astype(np.int64)}
        for one, values in zip(self.description.measured, self.drawn, strict=True):
            if one.table == self.tables[at]:
                named["count_as_drawn"] = values
        return named

    def _shown(self, condition: str) -> tuple[tuple[str, ...], Any]:
        return showing(self.estimator.workload, condition)

    def _place(self, names: Sequence[str]) -> int | None:
        """The printed table over these axes, in any order."""
        wanted = set(names)
        return next((i for i, one in enumerate(self.tables) if set(one) == wanted), None)


def by_table(description: TablesDescription, drawn: Sequence[Any]) -> list[Any]:
    """The drawn values in the order of the printed tables; None for one that is not measured."""
    pairs = zip(description.measured, drawn, strict=True)
    values = {one.table: array for one, array in pairs}
    return [values.get(names) for names in description.tables]


def showing(workload: Workload, condition: str) -> tuple[tuple[str, ...], Any]:
    """The table that shows who meets a condition in fewest cells, and these cells of it."""
    found, refusal = [], None
    for names in workload.tables:
        try:
            found.append((names, select(condition, workload.schema, names)))
        except PredicateError as reason:
            refusal = reason
    if not found and refusal is not None:
        raise refusal
    return min(found, key=lambda seen: int(np.count_nonzero(seen[1])))


def estimator_of(description: TablesDescription) -> JointEstimator:
    """What the tables of a description say together."""
    scales = {one.table: one.scale for one in description.measured}
    workload = Workload.of(description.support.schema, description.tables)
    family = description.family
    assert family in ("discrete_gaussian", "double_geometric")
    return JointEstimator(
        workload,
        family,
        tuple(scales.get(names) for names in description.tables),
        summed_out(description.support, workload.axes),
        description.keep,
    )


def _reordered(values: Any, have: Sequence[str], want: Sequence[str]) -> Any:
    return np.transpose(values, [have.index(name) for name in want])
