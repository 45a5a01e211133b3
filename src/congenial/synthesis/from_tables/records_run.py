"""Records drawn from measured tables: what is measured, chosen, fitted and written, in order."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.tabulate import Microdata, refuse
from congenial.data.vector_statistics import codes, fetch
from congenial.sampling.randomness import Randomness, SeededRandomness, SystemRandomness
from congenial.synthesis.from_tables.figure_targets import repair
from congenial.synthesis.from_tables.junction_tree import Axes
from congenial.synthesis.from_tables.maximum_entropy import STEPS, FitTarget, Fitted, fit
from congenial.synthesis.from_tables.measuring_budget import FAMILY
from congenial.synthesis.from_tables.private_quantiles import bin_of_level, choose
from congenial.synthesis.from_tables.records_from_tables_release import (
    MeasuredTable,
    TableRecordsRelease,
)
from congenial.synthesis.from_tables.table_records import RecordsProcedure
from congenial.synthesis.from_tables.whole_records import draw_records
from congenial.synthesis.record_model import generator_of

# ---- CONFIDENTIAL records by their levels, for columns whose bins are only drawn later ----


@dataclass(frozen=True, eq=False)
class CountedRecords:
    """CONFIDENTIAL: the level of every record in each column, and how many people a row is."""

    levels: Mapping[str, Ints] = field(repr=False)
    times: Ints = field(repr=False)

    @classmethod
    def read(cls, data: Table | Microdata, names: Sequence[str]) -> CountedRecords:
        """All records, as far as these columns go."""
        if isinstance(data, Table):
            counts = data.marginal(names).counts
            places = np.nonzero(counts)
            return cls(dict(zip(names, places, strict=True)), counts[places])
        data.check_unit()
        columns, _ = fetch(data, names)
        levels = {}
        for name in names:
            levels[name] = codes(data.schema.attribute(name), columns[name])
            refuse(data.schema.axis(name), levels[name], data.schema)
        return cls(levels, np.ones(columns.num_rows, dtype=np.int64))

    def counts(self, name: str, size: int) -> Ints:
        """People by level of one column."""
        return np.bincount(self.levels[name], self.times, size).astype(np.int64)

    def tables(self, procedure: RecordsProcedure) -> dict[Axes, Ints]:
        """Every table that may be measured, by the bins that were drawn."""
        fine, schema, cuts = procedure.adjacency.schema, procedure.schema, dict(procedure.cuts)
        levels = dict(self.levels)
        for bins in procedure.rules.quantiles:
            binned = bin_of_level(bins, fine.attribute(bins.name), cuts[bins.name])
            levels[bins.name] = binned[levels[bins.name]]
        counts_by_axes = {}
        for axes in procedure.scales:
            shown_axes = [schema.axis(name) for name in axes]
            counts = np.zeros(procedure.shape(axes), dtype=np.int64)
            np.add.at(
                counts, tuple(axis.of_base[levels[axis.base]] for axis in shown_axes), self.times
            )
            counts_by_axes[axes] = counts
        return counts_by_axes


BETWEEN = 60  # steps of the fit between two rounds
LEAST = 1e-6  # deviation of a measurement: none is an exact figure

Tell = Callable[[str], Any]
Truths = Mapping[Axes, Ints]
Confidential = Truths | CountedRecords  # the latter where columns are still to be cut


@dataclass
class RecordsRun:
    """One draw: what was measured so far."""

    of: RecordsProcedure
    confidential: Confidential
    people: int
    source: Randomness
    tell: Tell

    def __post_init__(self) -> None:
        confidential = self.confidential
        self.truths: Truths = {} if isinstance(confidential, CountedRecords) else confidential
        self.measured: list[MeasuredTable] = []
        self.generator = generator_of(self.source)

    def release(self, name: str) -> TableRecordsRelease:
        """Everything, in order."""
        self.cut()
        for column in self.of.names:
            self.measure((column,))
        fitted = self.fit()
        for at in range(self.of.budget.rounds):
            self.tell(f"measuring pair {at + 1} of {self.of.budget.rounds}")
            chosen = self.next_pair(fitted)
            if chosen is not None and self.measure(chosen) and self.of.budget.chooses:
                fitted = self.fit(fitted, steps=BETWEEN)
        self.tell("fitting and writing records")
        copies, moved = self.copies(self.fit())
        return TableRecordsRelease(
            name=name,
            description=self.of.description,
            guarantee=self.of.guarantee,
            randomness=self.source.label,
            publishable=self.source.publishable,
            copies=copies,
            measured=tuple(self.measured),
            moved=moved,
            cuts=self.of.cuts,
        )

    def cut(self) -> None:
        """Cut columns at private quantiles, where they ask for it, and count by their bins."""
        confidential, fine = self.confidential, self.of.adjacency.schema
        if not isinstance(confidential, CountedRecords):
            return
        cuts = []
        for bins in self.of.rules.quantiles:
            self.tell(f"cutting {bins.name} into bins")
            at, epsilon = fine.attribute(bins.name), self.of.budget.quantile_epsilon
            drawn = bins.draw(confidential.counts(bins.name, at.size), at, epsilon, self.source)
            cuts.append((bins.name, drawn))
        self.of = replace(self.of, cuts=tuple(cuts))
        self.truths = confidential.tables(self.of)

    def copies(self, fitted: Fitted) -> tuple[tuple[Any, ...], int]:
        """Arrow tables of records, and how many records of all of them were changed."""
        tables, changed = [], 0
        for _ in range(self.of.copies):
            columns, moved = self.records(fitted)
            tables.append(self.of.written(columns, self.generator))
            changed += moved
        return tuple(tables), changed

    def measure(self, axes: Axes) -> bool:
        """Draw one table; False where the figures settle it."""
        law = self.of.law(axes)
        if law is None:
            return False
        drawn, family = law.draw(self.truths[axes], self.source, 1)[0], law.description.family
        self.measured.append(MeasuredTable(axes, law.description.scale, np.asarray(drawn), family))
        return True

    def fit(self, start: Fitted | None = None, steps: int = STEPS) -> Fitted:
        """The distribution of maximum entropy for what is measured and published."""
        figures, nodes = self.of.kept, self.of.pair_axes.nodes
        targets = [measured_target(self.of.schema, table, nodes) for table in self.measured]
        links = [class_link(self.of.schema, name) for name in nodes if name not in self.of.names]
        first = () if figures.strata is None else figures.strata.axes
        wanted = [*figures.targets, *links, *targets]
        return fit(nodes, wanted, self.people, first=first, start=start, steps=steps)

    def records(self, fitted: Fitted) -> tuple[dict[str, Ints], int]:
        """Whole records that keep every figure, and how many had to be changed for that."""
        figures = self.of.kept
        number = self.of.records or self.people
        drawn = draw_records(fitted, number, self.generator, figures.strata)
        columns = {name: drawn[name] for name in self.of.names}
        cells = figures.cells(fitted)
        return (columns, 0) if cells is None else repair(columns, cells, self.generator)

    def next_pair(self, fitted: Fitted) -> Axes | None:
        """A pair that records from the fit get wrong, by more than the noise would be."""
        left = self.candidates
        if not self.of.budget.chooses:
            return left[0] if left else None
        if not left:
            return None
        columns = draw_records(fitted, self.people, self.generator, self.of.kept.strata)
        noise = self.of.budget.absolute(self.of.budget.pair_scale)
        scores = [Fraction(0)]  # to measure nothing
        for axes in left:
            evenly = np.zeros(self.truths[axes].shape, dtype=np.int64)
            np.add.at(evenly, tuple(self._levels(columns, name) for name in axes), 1)
            missed = int(np.abs(self.truths[axes] - evenly).sum()) - round(noise * evenly.size)
            scores.append(self.of.weight_of(axes) * missed)
        # One record moves two cells by one, and no weight is above 1.
        at = choose(scores, self.of.budget.choice_epsilon, 2, self.source)
        return left[at - 1] if at else None

    @property
    def candidates(self) -> list[Axes]:
        """Pairs not yet measured that can be drawn and still fit into the tree."""
        done = [table.axes for table in self.measured]
        pairs = (axes for axes in self.of.scales if len(axes) == 2 and axes not in done)
        possible = (axes for axes in pairs if self.of.pair_axes.fits([*done, axes]))
        return [axes for axes in possible if self._drawable(axes)]

    def _levels(self, columns: Mapping[str, Ints], name: str) -> Ints:
        """Records by an axis, a column or a coarser name of one."""
        axis = self.of.schema.axis(name)
        levels: Ints = axis.of_base[columns[axis.base]]
        return levels

    def _drawable(self, axes: Axes) -> bool:
        laws = self.__dict__.setdefault("known_laws", {})
        if axes not in laws:
            laws[axes] = self.of.law(axes) is not None
        return bool(laws[axes])


def measured_target(
    schema: Schema, one: MeasuredTable, nodes: Container[str] | None = None
) -> FitTarget:
    """A measured table for the fit, whose tree has these nodes (None: the columns).

    Over a coarser name that is none of them it says something about sums of cells.
    """
    axes = schema.axes(one.axes)
    values, deviation = one.values.reshape(-1).astype(float), max(LEAST, one.deviation)
    own = [axis.name == axis.base or axis.name in (nodes or ()) for axis in axes]
    homes = tuple(
        axis.name if is_own else axis.base for axis, is_own in zip(axes, own, strict=True)
    )
    if all(own):
        return FitTarget(homes, values, deviation)
    matrix = sp.csr_matrix(np.ones((1, 1)))
    for axis, is_own in zip(axes, own, strict=True):
        level = np.arange(len(axis.levels)) if is_own else axis.of_base
        groups = sp.csr_matrix((np.ones(len(level)), (level, np.arange(len(level)))))
        matrix = sp.kron(matrix, groups, format="csr")
    return FitTarget(homes, values, deviation, matrix)


def class_link(schema: Schema, name: str) -> FitTarget:
    """That a coarser name is the one of its column: nobody is in any other cell of the two."""
    axis = schema.axis(name)
    other = axis.of_base[:, None] != np.arange(len(axis.levels))
    nobody = sp.csr_matrix(other.reshape(1, -1).astype(float))
    return FitTarget((axis.base, name), np.zeros(1), 0.0, nobody)


# ---- the mechanism: confidential in, synthetic out -----------------------------------------------


class TableRecords(RecordsProcedure):
    """Synthetic records from tables measured under one promise: the procedure, and what runs it."""

    def fetch(self, data: Table | Microdata) -> tuple[Confidential, int]:
        """CONFIDENTIAL: all one- and two-way tables, and n; the figures are checked.

        Where columns are still to be cut, records by their levels in place of tables.
        """
        figures = self.adjacency.figures.of_rows
        if figures.statements:
            figures.refuse_other_data(_margin(data, figures.bases))
        if self.rules.quantiles:
            people = int(_margin(data, (self.names[0],)).counts.sum())  # refuses what is empty
            return CountedRecords.read(data, self.names), people
        wanted = [(self.names[0],), *self.scales]
        truths = {axes: _margin(data, axes).counts for axes in wanted}
        return truths, int(truths[self.names[0],].sum())

    def release(
        self,
        data: Table | Microdata | tuple[Confidential, int],
        randomness: Randomness | None = None,
        name: str = "records",
        tell: Tell = lambda _: None,
    ) -> TableRecordsRelease:
        """Choose, measure, fit and write records: the only call that spends privacy."""
        source = SystemRandomness() if randomness is None else randomness
        truths, n = data if isinstance(data, tuple) else self.fetch(data)
        return RecordsRun(self, truths, n, source, tell).release(name)

    def rehearse(self, n: int) -> None:
        """Go through fit, records and repair with tables of nobody; what cannot be had is refused.

        One-way tables that count everybody evenly stand in for those measured; figures and rules
        are as published, so that contradictions and figures without whole records show here.
        """
        run = RecordsRun(self, {}, n, SeededRandomness(0), lambda _: None)
        run.measured += [self._evenly(axes, n) for axes in self.scales if len(axes) == 1]
        run.records(run.fit())

    def made_up(self, n: int, name: str = "rehearsal") -> TableRecordsRelease:
        """A release of the same form: levels in turn, and tables that count everybody evenly."""
        source = SeededRandomness(0)
        columns = {name: np.arange(self.records or n) % size for name, size in self.sizes.items()}
        table = self.written(columns, generator_of(source))
        pairs = [axes for axes in self.scales if len(axes) == 2][: self.budget.rounds]
        axes = [*(axes for axes in self.scales if len(axes) == 1), *pairs]
        return TableRecordsRelease(
            name=name,
            description=self.description,
            guarantee=self.guarantee,
            randomness=source.label,
            publishable=False,
            copies=(table,) * self.copies,
            measured=tuple(self._evenly(table, n) for table in axes),
            cuts=tuple(self.rules.evenly(self.adjacency.schema).items()),
        )

    def _evenly(self, axes: Axes, n: int) -> MeasuredTable:
        """A table that counts everybody evenly, as if it had been measured."""
        shape = self.shape(axes)
        cells = prod(shape)
        counts = np.full(cells, n // cells, dtype=np.int64)
        counts[: n % cells] += 1
        family = FAMILY[self.budget.law]
        return MeasuredTable(axes, self.scales[axes], counts.reshape(shape), family)


def _margin(data: Table | Microdata, names: Sequence[str]) -> Table:
    return data.marginal(names) if isinstance(data, Table) else data.tabulate(names)
