"""What protected tables are released as: printed counts, estimates, and intervals.

A release is what was drawn, one table or several; everything else follows from it and from public
figures, and is worked out when it is asked for. The reader's number of a cell is its printed whole
count; of any other sum it is the estimate, because sums of printed counts that were not fitted
together keep a bias. Intervals rest on the tables as drawn: exact by the law of the noise where one
table was measured, normal where several are combined.

Tables may sum a number of each person instead of counting people. Then what is drawn, estimated and
fitted is in steps of the number; what methods return and files hold is in its own units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import nan
from typing import Any, ClassVar, Protocol

import numpy as np

from congenial._exports import public
from congenial._notebook import MOST_ROWS, Picture, intervals_picture
from congenial.data.arrays import Floats, Ints
from congenial.data.table import cell_index, select
from congenial.data.workload import Workload
from congenial.errors import (
    InferenceError,
    PredicateError,
    StructureError,
    some_of,
)
from congenial.figures.figures import Figures
from congenial.figures.limits import SumRanges, indexed_ranges, table_ranges
from congenial.figures.restricted_figures import summed_out
from congenial.figures.support import support
from congenial.mechanisms.cell_labels import label_columns
from congenial.mechanisms.drawn_table import DrawnTable, agreed_figures
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.one_table import OneTable
from congenial.mechanisms.released import (
    EXACT_LAW,
    LEVEL,
    Interval,
    Released,
    axis_names,
    check_level,
)
from congenial.mechanisms.tables_files import ENDS, TableFile, measure_ends, said, with_end
from congenial.privacy.description import Description
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.tables.intervals import ends_within
from congenial.tables.joint_estimator import (
    Answer,
    FittedTables,
    JointEstimator,
    ShiftedEstimator,
)
from congenial.tables.sparse_tables import WORDS

ERRORS = ("sd", *ENDS)  # columns that say how far an estimate may be off
INTERVAL = ("estimate", "low", "high", "exact")  # columns of intervals, and parts of `Interval`
MEANS = ("people", "mean", "low", "high")  # columns of means
TablesEstimator = OneTable | JointEstimator


@dataclass(frozen=True)
class TablesRelease(Released):
    """Tables that agree with each other and with every published figure; one, or several.

    `drawn`: the measured tables as drawn. `estimates` and `deviations`: one array per printed
    table; `counts`: whole counts of each, None where there are none. Of sums all four are in steps
    of the number (`description.magnitude`).

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> from congenial import release_table
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> table = Table(schema, ["sex"], [90, 110])
    >>> release = release_table(mechanism, table, SeededRandomness(1), "sex")
    >>> release
    TablesRelease('sex': sex; epsilon = 1)
    >>> found = release.interval("sex = 'f'", 0.90)
    >>> found.low <= found.estimate <= found.high, release.publishable
    (True, False)
    """

    kind: ClassVar[str] = "tables"
    name: str
    description: TablesDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool
    drawn: tuple[Any, ...] = field(repr=False)
    drawn_beside: tuple[tuple[Any, ...], ...] = field(default=(), repr=False, kw_only=True)

    @classmethod
    def of_one(
        cls,
        name: str,
        law: Description,
        guarantee: Guarantee,
        values: Any,
        randomness: str,
        publishable: bool,
    ) -> TablesRelease:
        """One table as drawn, without whole counts."""
        description = TablesDescription((law,), (law.table,), whole=False)
        return cls(name, description, guarantee, randomness, publishable, (values,))

    # ---- what it is about --------------------------------------------------------------------

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Axes of every printed table."""
        return self.description.tables

    @property
    def published(self) -> Figures:
        """The figures that the tables agree with; `everything` has all that were published."""
        return agreed_figures(self.description, super().published)

    @cached_property
    def measures(self) -> tuple[TablesRelease, ...]:
        """All that was measured of the tables under this promise, each as a release: itself first,
        then what is `beside` it.
        """
        common, releases = (self.guarantee, self.randomness, self.publishable), [self]
        for other, drawn in zip(self.description.beside, self.drawn_beside, strict=True):
            release = TablesRelease(f"{self.name}: {other.of}", other, *common, drawn)
            end = measure_ends(self.description)[len(releases)]
            vars(release)["file_end"] = end
            by_class = other.magnitude is not None and other.magnitude.within is not None
            if self.description.magnitude is None and not by_class:
                vars(release)["_counted"] = self
            releases.append(release)
        return tuple(releases)

    def measure(self, of: str) -> TablesRelease:
        """What the release says of one number, by its column, or of "people".

        >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table
        >>> from congenial.data.magnitude import Magnitude
        >>> from congenial.mechanisms import calibrate_tables
        >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
        >>> target = Guarantee.zero_concentrated("0.5", under=ReplaceOne(schema))
        >>> cost = Magnitude.of("cost", [0, 50])
        >>> made = calibrate_tables(target, [["sex"]], measures=[None, cost])
        >>> release = made.made_up()
        >>> [one.description.of for one in release.measures], release.measure("cost").tables
        (['people', 'cost'], (('sex',),))
        """
        for measure in self.measures:
            if measure.description.of == of:
                return measure
        raise InferenceError(
            f"release '{self.name}' has nothing about {of!r}.",
            remedy=f"It has {some_of(measure.description.of for measure in self.measures)}.",
        )

    def in_units(self, values: Any) -> Any:
        """Values in the units of the number that is summed; counts as they are."""
        number = self.description.magnitude
        return values if number is None else number.shown(values)

    @cached_property
    def estimator(self) -> TablesEstimator:
        """What the tables say together, before any draw."""
        mechanisms = [table.mechanism for table in self.measured_tables()]
        return estimator_of(self.description, mechanisms, self.counted)

    @property
    def by_table(self) -> list[Any]:
        """The drawn values in the order of the printed tables, None for one that is not measured;
        where the number is shifted, those of the counts after them.
        """
        own, counts = by_table(self.description, self.drawn), self.counted
        return own if counts is None or not self.offset else [*own, *counts.by_table]

    @property
    def offset(self) -> int:
        """How many steps of the number are summed by the counts (`Magnitude.shift`)."""
        return 0 if self.description.magnitude is None else self.description.magnitude.offset

    @cached_property
    def _answer(self) -> Answer:
        """Everything that follows from the tables as drawn."""
        return self.estimator.answer(self.by_table)

    @cached_property
    def fitted(self) -> FittedTables:
        """Estimates of everything, from the tables as drawn."""
        answer = vars(self).get("_answer")  # a release that was read has no need of the rest
        return self.estimator.fitted(self.by_table) if answer is None else answer.fitted

    @cached_property
    def estimates(self) -> tuple[Any, ...]:
        """The best unbiased estimates of every printed table."""
        return self._answer.estimates

    @cached_property
    def counts(self) -> tuple[Ints | None, ...]:
        """Whole counts of every printed table, fitted to the estimates; None: there are none."""
        return self._answer.counts

    @property
    def counts_words(self) -> str:
        """How printed counts were found in a table with much noise; empty where there is none."""
        return WORDS if self.estimator.sparse else ""

    @cached_property
    def deviations(self) -> tuple[Floats, ...]:
        """Standard deviations of the estimates of every printed table; UnansweredError where they
        depend on the data.
        """
        return tuple(self.estimator.deviations(names).values for names in self.tables)

    @property
    def largest_sds(self) -> list[float]:
        """The largest standard deviation in each printed table, in order."""
        return [float(self.in_units(np.max(sds, initial=0.0))) for sds in self.deviations]

    @property
    def has_errors(self) -> bool:
        """Whether errors have a law that does not depend on the data: counts that were drawn given
        their signs have none.
        """
        only = self.description.only_law
        return only is None or not only.nonnegative

    @property
    def only(self) -> DrawnTable:
        """The one measured table as drawn; InferenceError where there are several."""
        if len(self.drawn) > 1:
            raise InferenceError(
                f"release '{self.name}' has {len(self.drawn)} measured tables, but this needs "
                "exactly one.",
                remedy="Use congenial.estimate or congenial.infer, which use them together.",
            )
        return self._measured[0]

    @property
    def contents(self) -> tuple[tuple[str, str], ...]:
        """Files and what they hold."""
        return tuple(
            (
                f"{measure._file(at).name}{measure.file_end}.csv, .parquet",
                f"{said(names)}, one row per cell: {', '.join(measure._file(at).columns)}",
            )
            for measure in self.measures
            for at, names in enumerate(self.tables)
        )

    @property
    def usage(self) -> tuple[str, ...]:
        """How to begin, as lines of code."""
        names = ", ".join(repr(name) for name in self.tables[0]) if len(self.tables) > 1 else ""
        asked = 'interval("<condition>", 0.90)' if self.has_errors else 'count("<condition>")'
        return f"release.to_pandas({names})", f"release.{asked}"

    def __repr__(self) -> str:
        tables = "; ".join(map(said, self.tables))
        return f"{type(self).__name__}({self.name!r}: {tables}; {self.guarantee.tradeoff.words})"

    # ---- numbers -----------------------------------------------------------------------------

    def count(self, condition: str) -> float:
        """People who meet a condition, or the sum of their numbers: the printed count, where it
        was settled as one (single cells, and sums at the nodes of the fit), else the estimate.

        Sums of printed counts over cells that were not fitted together keep a bias; estimates do
        not. The total is printed if a table of the release or a figure shows it.
        """
        printed = self._printed_sum(*self._where(condition))
        value = self._estimated(condition)[0] if printed is None else printed
        return _number(self.in_units(value))

    def _printed_sum(self, names: tuple[str, ...], cells: Any) -> int | None:
        """The printed count of a sum over some cells of a printed table; None if it has none."""
        counts = self.counts[self.tables.index(names)]
        if counts is None or not self.estimator.prints_sum(names, cells):
            return None
        return int(np.sum(counts[cells]))

    def margin(self, *names: str) -> Any:
        """A table or sums of one: printed counts where its sums were settled as such (`prints`),
        otherwise its estimates.
        """
        axes = axis_names(names)
        if self.prints(*axes):
            return self.in_units(self._printed_table(axes))
        return self.estimates_of(*axes)

    def prints(self, *names: str) -> bool:
        """Whether the table over `names` is printed as whole counts."""
        axes = axis_names(names)
        if not self.estimator.prints(axes):
            return False
        at = self._place(axes)
        counts = self.counts if at is None else self.counts[at : at + 1]
        return all(values is not None for values in counts)  # a forged bundle may lack some

    def _printed_table(self, axes: tuple[str, ...]) -> Any:
        """The printed counts of a table that has them."""
        at = self._place(axes)
        if at is not None:
            return reordered(self.counts[at], self.tables[at], axes)
        only = self.description.only_law
        assert only is not None  # several tables print those of the release only
        counts = np.asarray(self.counts[self.tables.index(only.table)])
        index = np.broadcast_to(cell_index(self.schema, only.table, axes), counts.shape)
        shape = [axis.size for axis in self.schema.axes(axes)]
        sums = np.zeros(int(np.prod(shape, dtype=np.int64)), dtype=np.int64)
        np.add.at(sums, index.reshape(-1), counts.reshape(-1))
        return sums.reshape(shape)

    def estimates_of(self, *names: str) -> Floats:
        """The best linear unbiased estimates of a table, printed or a sum of printed ones."""
        return np.asarray(self.in_units(self._estimates_of(axis_names(names))))

    def _estimates_of(self, axes: tuple[str, ...]) -> Floats:
        at = self._place(axes)
        if at is None:
            return np.asarray(self.fitted.table(axes))
        return np.asarray(reordered(self.estimates[at], self.tables[at], axes))

    def own_estimates_of(self, *names: str) -> Floats:
        """Estimates of a table from the measured tables of this release, and from nothing else:
        their errors are those of `measured_tables`, and sums are in steps and shifted as there.
        """
        axes, counts = axis_names(names), self.counted
        own = self._estimates_of(axes)
        return own - self.offset * counts._estimates_of(axes) if self.offset and counts else own

    def estimate(self, what: Any, level: float = LEVEL, **options: Any) -> Any:
        """Estimates with intervals, an `EstimateTable`: `congenial.estimate(self, what, ...)`."""
        return public("estimate")(self, what, level, **options)

    def measured_tables(self) -> tuple[DrawnTable, ...]:
        """Each measured table as drawn, with its own law."""
        return self._measured

    @cached_property
    def _measured(self) -> tuple[DrawnTable, ...]:
        pairs = zip(self.description.measured, self.drawn, strict=True)
        named = len(self.drawn) > 1
        drawn = tuple(
            DrawnTable(
                f"{self.name}: {said(law.table)}" if named else self.name,
                law,
                self.guarantee,
                values,
            )
            for law, values in pairs
            if values is not None  # drawn elsewhere, of a part of a nation
        )
        estimator = vars(self).get("estimator")
        if isinstance(estimator, OneTable):  # its sampler may have taken long to build
            vars(drawn[0])["mechanism"] = estimator.mechanism
        return drawn

    def estimated_count(self, condition: str) -> float:
        """The estimated number of people who meet a condition: unbiased, not always whole."""
        return _number(self.in_units(self._sum(*self._where(condition))))

    def _sum(self, names: tuple[str, ...], cells: Any) -> float:
        value = np.sum(self.estimates[self.tables.index(names)][cells])
        return int(value) if np.issubdtype(value.dtype, np.integer) else float(value)

    def _estimated(self, condition: str) -> tuple[float, float]:
        """The estimate, whole where published figures tell it, and its standard deviation."""
        names, cells = self._where(condition)
        value, deviation = self._sum(names, cells), self.estimator.deviation_of_sum(names, cells)
        return (round(value) if deviation == 0 else value), deviation

    def deviation(self, condition: str) -> float:
        """The standard deviation of that estimate."""
        return float(self.in_units(self.estimator.deviation_of_sum(*self._where(condition))))

    def interval(self, condition: str, level: float = LEVEL) -> Interval:
        """Interval for the true number of people who meet a condition, around the estimate.

        Its basis says what it rests on: the exact law of the noise where one table was measured,
        so that it covers with at least `level`; errors of several combined draws are simulated
        under pure epsilon where tables are small, and otherwise taken to be normal. The ends are
        cut to what the published figures allow, and reach at least to the printed count where the
        sum has one. A figure that is published exactly has no width.
        """
        check_level(level)
        names, cells = self._where(condition)
        half = self.estimator.reach_of_sum(names, cells, level)
        value, deviation = self._estimated(condition)
        people = indexed_ranges(support(self._figures, names), np.where(cells, 0, -1), 1)
        printed = self._printed_sum(names, cells)
        low, high = ends_within([value], half, printed, self._ranges(people))
        basis = EXACT_LAW if deviation == 0 else self.estimator.basis_of_sum(names, cells)
        value, least, most = (_number(self.in_units(number)) for number in (value, low[0], high[0]))
        return Interval(value, least, most, level, deviation == 0, basis)

    def interval_ends(self, at: int, level: float) -> tuple[Ints, Ints]:
        """Ends of the intervals of every cell of a printed table, in its shape."""
        names = self.tables[at]
        ranges = self._ranges(table_ranges(self._figures, names))
        reach = self.estimator.reach(names, level)
        return ends_within(self.estimates[at], reach, self.counts[at], ranges)

    def _ranges(self, people: SumRanges) -> SumRanges:
        """What sums can be, given how many people they are of; counts are those people."""
        number = self.description.magnitude
        return people if number is None else people.times(number.lowest, number.highest)

    def cell_errors(self, at: int = 0) -> tuple[Any, Any, Any]:
        """Standard deviation and both ends of the interval of every cell of a printed table, as in
        its files.
        """
        return (self.deviations[at], *self.interval_ends(at, LEVEL))

    @cached_property
    def _figures(self) -> Figures:
        """The figures about people, as far as the tables can show them."""
        people = self.guarantee.adjacency.figures
        if isinstance(self.estimator, OneTable):
            return people
        return summed_out(people, self.estimator.workload.axes)

    def intervals(self, names: str | Sequence[str], level: float = LEVEL) -> Any:
        """Intervals for every cell of a table: an Arrow table of estimate, low, high, exact."""
        import pyarrow as pa

        check_level(level)
        axes = axis_names([names])
        estimates, exact = self._estimates_of(axes), self.estimator.deviations(axes).values == 0
        estimates = np.where(exact, np.rint(estimates).astype(estimates.dtype), estimates)
        printed = self._printed_table(axes) if self.prints(*axes) else None
        ranges = self._ranges(table_ranges(self._figures, axes))
        low, high = ends_within(estimates, self.estimator.reach(axes, level), printed, ranges)
        columns = label_columns(self.schema, axes, INTERVAL)
        results = (*map(self.in_units, (estimates, low, high)), exact)
        for name, values in zip(INTERVAL, results, strict=True):
            columns[name] = pa.array(values.reshape(-1))
        return pa.table(columns)

    def plot(self, *names: str, level: float = LEVEL) -> Picture:
        """Cells of a table with their intervals, the first 40, as a picture that notebooks show; of
        the first printed table if none is named.
        """
        axes = axis_names(names) or self.tables[0]
        intervals = self.intervals(axes, level)
        *labels, values, low, high, _ = (column.to_pylist() for column in intervals.columns)
        cells = [", ".join(cell) for cell in zip(*labels, strict=True)] or ["total"]
        rows = list(zip(cells, values, low, high, strict=True))
        return Picture.of_intervals(f"{said(axes)}, {level:.4g} intervals", rows)

    def people(self, *names: str) -> Ints | None:
        """How many people each cell of a table is of, where exact figures give it for all cells;
        None for sums over one class.
        """
        number = self.description.magnitude
        if number is not None and number.within is not None:
            return None
        ranges = table_ranges(self._figures, axis_names(names))
        return ranges.least if np.array_equal(ranges.least, ranges.most) else None

    def means(self, names: str | Sequence[str], level: float = LEVEL) -> Any:
        """Means of the number that is summed, for every cell of a table: an Arrow table of people,
        mean, low and high; empty cells have none.

        Where exact figures count the people of all cells, means and their intervals are those of
        the sums, divided by numbers that have no error. Otherwise they are divided by the counts
        that the release measures too, whose errors the intervals then cover (`estimate`).
        """
        import pyarrow as pa

        axes, number = axis_names([names]), self.description.magnitude
        people = None if number is None else self.people(*axes)
        if number is not None and people is None and self.counted is not None:
            return self._means_of_counted(self.counted, axes, level)
        if people is None:
            raise InferenceError(
                f"release '{self.name}' has no means over {said(axes)}: they are sums of a number "
                "divided by people whom exact figures, or counts of the same release, count.",
                remedy="Publish the number of people of each cell exactly, or add counts = true.",
            )
        intervals = self.intervals(axes, level)
        of = people.reshape(-1)
        columns = label_columns(self.schema, axes, MEANS)
        columns["people"] = pa.array(of)
        for name, values in zip(MEANS[1:], ("estimate", "low", "high"), strict=True):
            shares = intervals[values].to_numpy() / np.maximum(of, 1)
            columns[name] = pa.array(shares, mask=of == 0)
        return pa.table(columns)

    @cached_property
    def file_end(self) -> str:
        """What the names of its files end with, where it is a measure beside another."""
        return ""

    @property
    def counted(self) -> TablesRelease | None:
        """The release that this is a measure of, if it counts people too; None otherwise."""
        release: TablesRelease | None = vars(self).get("_counted")
        return release

    def _means_of_counted(self, release: TablesRelease, axes: tuple[str, ...], level: float) -> Any:
        import pyarrow as pa

        by = ", ".join(f'"{name}"' for name in axes)
        estimates = release.estimate(f'mean("{self.description.of}"){by and f" by {by}"}', level)
        columns = label_columns(self.schema, axes, MEANS)
        columns["people"] = pa.array(np.reshape(release.margin(*axes), -1))
        for name in MEANS[1:]:
            values = [
                getattr(estimate, "value" if name == "mean" else name) for estimate in estimates
            ]
            columns[name] = pa.array(values, from_pandas=True)
        return pa.table(columns)

    # ---- frames ------------------------------------------------------------------------------

    def to_arrow(self, *names: str) -> Any:
        """One row per cell of a printed table; the first table if none is named."""
        axes = axis_names(names) or self.tables[0]
        at = self._place(axes)
        if at is None:
            raise InferenceError(
                f"the table over {', '.join(axes)} is not in this release.",
                remedy=f"Printed: {some_of(map(said, self.tables), '; ')}. "
                "estimates_of gives others.",
            )
        return self._file(at).table(self._columns(at))

    def to_pandas(self, *names: str) -> Any:
        """The same as a pandas frame (extra `frames`)."""
        return self.to_arrow(*names).to_pandas()

    def to_polars(self, *names: str) -> Any:
        """The same as a Polars frame (extra `frames`)."""
        import polars as pl

        return pl.from_arrow(self.to_arrow(*names))

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self._picture()

    def _picture(self) -> str:
        """A dot for each value of a small table, or of its first axis."""
        for names in (self.tables[0], self.tables[0][:1]):
            labels = list(product(*(axis.levels for axis in self.schema.axes(names))))
            if 1 < len(labels) <= MOST_ROWS:
                values = np.reshape(self.margin(*names), -1).tolist()
                rows = [
                    (", ".join(label), value, nan, nan)
                    for label, value in zip(labels, values, strict=True)
                ]
                return intervals_picture("values as released, without their intervals", rows)
        return ""

    def _title(self) -> str:
        axes = map(self.schema.axes, self.tables)
        sized = (said([f"{axis.name} ({axis.size})" for axis in table]) for table in axes)
        return f"Release '{self.name}': {'; '.join(sized)}"

    # ---- files -------------------------------------------------------------------------------

    def payload(self) -> dict[str, bytes]:
        """The files of a bundle that hold the tables; made once."""
        return dict(self._payload)

    @cached_property
    def _payload(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for measure in self.measures:
            for at in range(len(self.tables)):
                written = measure._file(at).written(measure._columns(at))
                files |= {with_end(name, measure.file_end): data for name, data in written.items()}
        return files

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> TablesRelease:
        """Inverse of `payload`; refuses tables that are not the schema's."""
        description: TablesDescription = common["description"]
        schema = common["guarantee"].adjacency.schema
        files = [_of_measure(payload, end, description.beside) for end in measure_ends(description)]
        read = [
            [
                TableFile.found(schema, measure, at, inside).read(inside)
                for at in range(len(measure.tables))
            ]
            for measure, inside in zip(description.measures, files, strict=True)
        ]
        drawn = [
            tuple(_drawn(measure, entry.table, columns) for entry in measure.measured)
            for measure, columns in zip(description.measures, read, strict=True)
        ]
        release = cls(**common, drawn=drawn[0], drawn_beside=tuple(drawn[1:]))
        for entry, columns in zip(release.measures, read, strict=True):
            entry._as_read(columns)
        return release

    def _as_read(self, read: Sequence[Mapping[str, Any]]) -> None:
        """Take over what files state, as the cached properties would keep it."""
        counts = tuple(columns_read.get("count") for columns_read in read)
        vars(self).update(
            counts=counts, estimates=tuple(columns_read.get("estimate") for columns_read in read)
        )
        if self.has_errors:
            vars(self)["deviations"] = tuple(columns_read["sd"] for columns_read in read)
        else:
            vars(self)["estimates"] = counts

    def _file(self, at: int) -> TableFile:
        return TableFile.of(self.schema, self.description, at, self.counts[at] is not None)

    def _columns(self, at: int) -> dict[str, Any]:
        named: dict[str, Any] = {"count": self.counts[at]}
        if not self.has_errors:
            return named
        named["estimate"] = self.estimates[at]
        named |= dict(zip(ERRORS, self.cell_errors(at), strict=True))
        for law, values in zip(self.description.measured, self.drawn, strict=True):
            if law.table == self.tables[at]:
                named["count_as_drawn"] = values
        return named

    def _where(self, condition: str) -> tuple[tuple[str, ...], Any]:
        return showing(self.estimator.workload, condition)

    def _place(self, names: Sequence[str]) -> int | None:
        """The printed table over these axes, in any order."""
        wanted = set(names)
        return next((i for i, axes in enumerate(self.tables) if set(axes) == wanted), None)


def _of_measure(
    payload: Mapping[str, bytes], end: str, beside: Sequence[TablesDescription]
) -> Mapping[str, bytes]:
    """The files of one measure, named as if it were released alone."""
    if not beside:
        return payload
    stems = {name: name.rpartition(".") for name in payload}
    return {
        f"{stem.removesuffix(end)}.{kind}": payload[name]
        for name, (stem, _, kind) in stems.items()
        if stem.endswith(end) and (end or "." not in stem)
    }


def by_table(description: TablesDescription, drawn: Sequence[Any]) -> list[Any]:
    """The drawn values in the order of the printed tables; None for one that is not measured."""
    pairs = zip(description.measured, drawn, strict=True)
    values = {law.table: array for law, array in pairs}
    return [values.get(names) for names in description.tables]


def showing(workload: Workload, condition: str) -> tuple[tuple[str, ...], Any]:
    """The table that shows who meets a condition in fewest cells, and these cells of it."""
    tables, refusal = [], None
    for names in workload.tables:
        try:
            tables.append((names, select(condition, workload.schema, names)))
        except PredicateError as reason:
            refusal = reason
    if not tables and refusal is not None:
        raise refusal
    return min(tables, key=lambda seen: int(np.count_nonzero(seen[1])))


class _Estimated(Protocol):
    @property
    def estimator(self) -> TablesEstimator: ...


def estimator_of(
    description: TablesDescription,
    mechanisms: Sequence[Mechanism],
    counted: _Estimated | None = None,
) -> TablesEstimator:
    """What the tables of a description say together; with `counted`, the counts beside them, where
    these sum a part of the number.
    """
    number = description.magnitude
    if number is not None and number.shift:
        if counted is None:
            raise StructureError(
                f"sums of {number.column!r} are shifted, and no counts are beside them.",
                remedy="Ask the release that measures both.",
            )
        return ShiftedEstimator.of(joint_estimator(description), counted.estimator, number.offset)
    if description.only_law is not None:
        workload = Workload.of(description.support.schema, description.tables)
        return OneTable(mechanisms[0], workload, description.keep, description.whole)
    together = joint_estimator(description)
    if description.family != "double_geometric":
        return together
    laws = [getattr(mechanism, "conditioned", None) for mechanism in mechanisms]
    if any(law is not None and law.is_slow for law in laws):
        return together
    draws = {mechanism.description.table: mechanism.noise for mechanism in mechanisms}
    noise = tuple(draws[names] for names in description.tables if names in draws)
    return replace(together, noise=noise)


def joint_estimator(description: TablesDescription) -> JointEstimator:
    """The same by least squares."""
    workload = Workload.of(description.support.schema, description.tables)
    scales = {law.table: law.scale for law in description.measured}
    family = description.family
    if (
        family not in ("discrete_gaussian", "double_geometric")
        or description.measured[0].nonnegative
    ):
        raise StructureError("tables can be estimated together only from whole-number noise.")
    return JointEstimator(
        workload,
        family,
        tuple(scales.get(names) for names in description.tables),
        summed_out(description.support, workload.axes),
        description.keep,
        description.whole,
        description.magnitude is None,
    )


def _drawn(
    description: TablesDescription, names: tuple[str, ...], read: Sequence[Mapping[str, Any]]
) -> Any:
    """A measured table as drawn, from the columns of its file."""
    columns, only = read[description.tables.index(names)], description.only_law
    if only is None:
        return columns["count_as_drawn"]
    return columns["count" if only.nonnegative else "estimate"]


def _number(value: Any) -> float:
    """A single number as Python has it, whole where it is stored so."""
    return int(value) if np.issubdtype(np.asarray(value).dtype, np.integer) else float(value)


def reordered(values: Any, have: Sequence[str], want: Sequence[str]) -> Any:
    """A table over the same axes in another order."""
    return np.transpose(values, [have.index(name) for name in want])
