"""Releases by group on Spark: each group's table gets its noise where its counts are.

The groups (counties, states: the levels of the axes `by`) split the released table into slices. If
no published figure ties two slices together, the noise of the whole table is a product over slices,
so drawing slice by slice, on any machine and in any order, is the same law as `mechanism.release`.
Nothing about the promise changes: **the slices together are one release of the whole table**, with
its description, its guarantee and one entry in the ledger. (They are not priced one by one: two
people of two groups may change at once, and one person may change groups.) Tables of units are cut
in the same way: the axes `by` are attributes that all rows of a unit share, so that each unit is in
one group, which the check of the unit sees to.

Protocol, so that a failed or repeated task neither publishes two draws of a group nor spends
unrecorded:
1. `check` runs before the ledger is touched: unit, refused values, published figures, and whether
   counts can be drawn. What reaches the driver are flags; where rows of a unit share attributes,
   also how many units have each combination, which the check of the unit counts.
2. The caller reserves the whole table in the ledger and marks it as drawn, before the job starts.
   Whatever happens then stays spent.
3. One job, one action. Each task counts its slices, checks their published totals, draws with its
   own machine's system randomness, and sends y = counts + u straight to the driver: the draw is in
   the last stage, nothing is shuffled or stored after it, so Spark's retries of earlier stages
   recompute counts (which come out the same) and never mix two draws.
4. Of a task that ran more than once the driver accepts one result, the first to arrive; the others
   are dropped unseen. The driver checks that every group came exactly once; if not, nothing is
   published and the reservation stays spent.

Why a repeated draw costs nothing: the promise is about what is published, and a draw that was lost
or dropped is seen by nobody outside the cluster. The one published has the stated law if the choice
between attempts does not look at the noise. A machine that dies is taken not to (the sampler reads
public parameters and fresh bits, never counts); a race between two copies of one task would favour
quick draws, so speculative execution is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial import errors
from congenial.data.engines.spark_source import SparkSource, quiet
from congenial.data.schema import Axis
from congenial.data.source import guarded
from congenial.data.sql import coded, tabulation, units_per_class
from congenial.data.tabulate import Microdata, no_records, refuse
from congenial.errors import DataError, MandateError, RandomnessError
from congenial.figures.invariants import Invariants
from congenial.figures.limits import FAR, limits
from congenial.figures.support import support
from congenial.figures.support_slices import SlicedLimits, SlicedSupport
from congenial.kinds.group_refusals import levels_inside, refuse_groups, slices_of
from congenial.kinds.slices import REFUSALS, SliceLaw, slice_checker, slice_worker, stream
from congenial.mechanisms.congenial_chain import CongenialChain
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.single_table_release import Release

_DRAWN = "group BIGINT, y ARRAY<BIGINT>"
_SUMS = "row BIGINT, n BIGINT"
_SPECULATION = "spark.speculation"
_FAILED = "the job on Spark failed; nothing was published."
_SPENT = (
    "What was reserved stays spent. Check that the workers have congenial, that the data "
    "did not change, and the Spark log; then release again."
)


@dataclass(frozen=True)
class ByGroup:
    """A release of the whole table of `mechanism`, drawn slice by slice over the axes `by`.

    With `data` on Spark, and a place in the ledger taken for the whole table:

    >>> groups = ByGroup(mechanism, data, ["county"])    # doctest: +SKIP
    >>> groups.check()                                   # doctest: +SKIP
    >>> reservation.mark_drawn()                         # doctest: +SKIP
    >>> release = groups.release("sex-by-age")           # doctest: +SKIP
    """

    mechanism: Mechanism
    data: Microdata
    by: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", tuple(self.by))
        refuse_groups(self.mechanism, self.by)
        if not isinstance(self.data.source, SparkSource):
            raise DataError(
                "releases are drawn by group on Spark only.",
                remedy="Give a source spark:..., or leave out by: the law is the same.",
            )

    # ---- structure: public ---------------------------------------------------------------------

    @property
    def _axes(self) -> tuple[Axis, ...]:
        return self.data.schema.axes(self.mechanism.description.table)

    @cached_property
    def _slice(self) -> Any:
        """For each cell of the table its slice."""
        return slices_of(self.mechanism, self.by)

    @cached_property
    def groups(self) -> int:
        """Number of groups."""
        return self.data.schema.size(self.by)

    @cached_property
    def law(self) -> SliceLaw:
        """What the workers draw from."""
        told, cut = self.mechanism.description, (self._slice, self._order)
        levels = levels_inside(self.mechanism, self._slice)[0] if told.levels else None
        return SliceLaw(
            told.family,
            told.scale,
            SlicedSupport.cut(support(told.support, told.table), *cut),
            None if levels is None else tuple((self._lines(one), rate) for one, rate in levels),
            SlicedLimits.cut(limits(told.support, told.table), *cut) if told.nonnegative else None,
            isinstance(self.mechanism, CongenialChain),
        )

    def _lines(self, cells: Any) -> Any:
        """Numbers of the table's cells, one line per slice."""
        return cells[self._order].reshape(self.groups, -1)

    @cached_property
    def _order(self) -> Any:
        """The table's cells, slice after slice."""
        return np.argsort(self._slice, kind="stable")

    def assemble(self, slices: Any) -> Any:
        """The released table from its slices, one row per group."""
        flat = np.empty(self._order.size, dtype=np.int64)
        flat[self._order] = np.asarray(slices).reshape(-1)
        return flat.reshape(self.mechanism.shape)

    # ---- the data: confidential ----------------------------------------------------------------

    @property
    def _source(self) -> SparkSource:
        source = self.data.source
        assert isinstance(source, SparkSource)
        return source

    def _coded(self, names: Sequence[str]) -> str:
        """Codes of the axes and the number n of rows, or of units, that have them."""
        axes = self.data.schema.axes(names)
        source = self.data.source_for(axes)
        told = (axes, self.data.schema, source.types, source.name, source.dialect)
        if not self.mechanism.adjacency.counts_units:
            return tabulation(*told)
        unit = str(self.data.unit.column)
        rows = coded(*told, (f"src.{source.dialect.identifier(unit)}",))
        units = units_per_class(unit, len(axes), rows, source.dialect)
        keys = "".join(f"c{at}, " for at in range(len(axes)))
        return f"SELECT {keys}n FROM ({units}) AS classes"

    def check(self) -> None:
        """Refuse what must not be released, before anything is spent.

        Raises RandomnessError where Spark speculates; DataError for the unit, for missing values
        and values outside the schema, and for empty data; MandateError where the data do not agree
        with the published figures; StructureError for counts that cannot be drawn given signs.
        """
        self._refuse_speculation()
        self.data.check_unit()
        self._check_values()
        figures = self.mechanism.adjacency.figures
        if figures.values is not None and figures.statements:
            self._check_figures()
        if self.law.limits is not None:
            self._check_slices()

    def _check_values(self) -> None:
        mandated = self.mechanism.adjacency.figures.bases
        released = {axis.base for axis in self._axes}
        names = [n for n in self.data.schema.names if n in mandated or n in released]
        flags = ", ".join(
            f"CASE WHEN c{i} < 0 THEN c{i} ELSE 0 END AS c{i}" for i in range(len(names))
        )
        found = self._source.run(f"SELECT DISTINCT {flags} FROM ({self._coded(names)}) AS cells")
        if not found.num_rows:
            raise no_records()
        for axis, column in zip(self.data.schema.axes(names), found.columns, strict=True):
            refuse(axis, column.to_numpy(), self.data.schema)

    def _check_figures(self) -> None:
        """Compare every figure, bound and structural zero; only flags reach the driver."""
        figures = self.mechanism.adjacency.figures
        least, most = _ends_of_figures(figures)
        part = _part_of_figures(figures)
        source = self._source

        def wrong(batches: Any) -> Any:
            import pyarrow as pa

            for batch in batches:
                row, n = (batch.column(i).to_numpy() for i in range(2))
                bad = row[(n < least[row]) | (n > most[row])]
                yield pa.RecordBatch.from_arrays([pa.array(bad)], names=["row"])

        def found() -> Any:
            nothing = source.session.range(len(least)).selectExpr("id AS row", "0L AS n")
            sums = source.session.sql(self._coded(figures.bases)).mapInArrow(part, _SUMS)
            together = sums.unionByName(nothing).groupBy("row").sum("n")
            return together.mapInArrow(wrong, "row BIGINT")

        if source.collect(found).num_rows:
            raise MandateError(
                "the data do not agree with the published figures.",
                remedy="Release from the data the figures were computed from.",
            )

    def _check_slices(self) -> None:
        """Refuse groups whose counts cannot be drawn given that none is negative."""
        work, columns = slice_checker(self.law), ", ".join(f"{name} STRING" for name in REFUSALS)
        found = self._source.collect(lambda: self._each_slice(work, columns))
        for refusal in found.to_pylist():
            kind = getattr(errors, refusal["refusal"])
            raise kind(refusal["what"], remedy=refusal["remedy"])

    def release(self, name: str = "release", seed: int | None = None) -> Release:
        """Draw every slice where its counts are and collect what is released: spends privacy.

        `seed` is for tests and studies: each group then has a stream of its own, so the result does
        not depend on partitions, machines or the number of attempts, and is not for publication.
        """
        self._refuse_speculation()
        work = slice_worker(self.law, seed)
        drawn = guarded(
            lambda: quiet(lambda: self._each_slice(work, _DRAWN).toArrow()), _FAILED, _SPENT
        )
        groups = drawn["group"].to_numpy()
        if not np.array_equal(np.sort(groups), np.arange(self.groups)):
            raise DataError(_FAILED, remedy=_SPENT)
        slices = np.array(drawn["y"].combine_chunks().flatten().to_numpy())
        values = self.assemble(slices.reshape(self.groups, -1)[np.argsort(groups)])
        source = stream(seed, 0)
        return Release(
            name=name,
            description=self.mechanism.description,
            guarantee=self.mechanism.guarantee,
            values=values,
            randomness=source.label if seed is None else f"seeded with {seed}: not for publication",
            publishable=source.publishable,
        )

    def _each_slice(self, work: Callable[[Any], Any], columns: str) -> Any:
        """What `work` makes of every group. Those without records take part: each brings an empty
        row.
        """
        spark = self._source.session
        axes = self._axes
        outer = [self.mechanism.description.table.index(name) for name in self.by]
        inner = [i for i in range(len(axes)) if i not in outer]
        cells = spark.sql(
            f"SELECT CAST({_radix(outer, axes)} AS BIGINT) AS g, "
            f"CAST({_radix(inner, axes)} AS BIGINT) AS cell, n "
            f"FROM ({self._coded(self.mechanism.description.table)}) AS cells"
        )
        empty = spark.range(self.groups).selectExpr("id AS g", "0L AS cell", "0L AS n")
        return cells.unionByName(empty).groupBy("g").applyInArrow(work, columns)

    def _refuse_speculation(self) -> None:
        setting = self._source.session.conf.get(_SPECULATION, "false")
        if str(setting).lower() == "true":
            raise RandomnessError(
                "speculative execution is on: a race between two draws of one group would favour "
                "quick ones.",
                remedy="Start the Spark session with spark.speculation = false.",
            )


def _part_of_figures(figures: Invariants) -> Callable[[Any], Any]:
    """What some records add to every published sum: codes and counts in, sums by number out."""
    cells, statements = figures.cells, figures.statements

    def part(batches: Any) -> Any:
        import pyarrow as pa

        for batch in batches:
            *codes, n = (column.to_numpy() for column in batch.columns)
            at = np.ravel_multi_index(tuple(codes), cells.shape) if codes else np.zeros_like(n)
            sums = cells.matrix(statements, at) @ n
            rows = np.flatnonzero(sums)
            yield pa.RecordBatch.from_arrays([pa.array(rows), pa.array(sums[rows])], ["row", "n"])

    return part


def _ends_of_figures(figures: Invariants) -> tuple[Any, Any]:
    """The least and the most that every sum of `_part_of_figures` may be."""
    assert figures.values is not None
    least, most = [], []
    for one, told in zip(figures.statements, figures.values, strict=True):
        size, bound = figures.schema.size(one.by), one.bound or 0
        exact = np.full(size, bound) if told is None else told.reshape(-1)
        least.append(np.full(size, -FAR) if one.relation == "<=" else exact)
        most.append(np.full(size, FAR) if one.relation == ">=" else exact)
    return np.concatenate(least), np.concatenate(most)


def _radix(axes: Sequence[int], sizes: Sequence[Axis]) -> str:
    """The cell number in mixed radix over some code columns, as SQL; -1 where a code is refused."""
    number = "0"
    for at in axes:
        number = f"({number}) * {sizes[at].size} + c{at}"
    refused = " OR ".join(["false", *(f"c{at} < 0" for at in axes)])
    return f"CASE WHEN {refused} THEN -1 ELSE {number} END"
