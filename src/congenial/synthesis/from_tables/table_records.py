"""Records from measured tables: choose tables, measure them, fit, and write whole records.

All one-way tables are measured first. Then, round by round, a pair of columns that the fit so far
gets most wrong is chosen (`table_choice`) and measured with exact integer noise given the figures
it shows. A distribution of maximum entropy is fitted to all measurements, keeping every figure, and
whole records are made of it that keep them too. Fit and records use nothing but what was measured.

Per replaced record a table with discrete Gaussian noise of variance sigma^2 costs rho = 1 /
sigma^2 (two cells move by one), a choice epsilon^2 / 8. Look-alikes that differ in a records cost
a^2 times as much, because tables and scores then move by 2 a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import isqrt, pi, sqrt
from typing import Any, ClassVar

import numpy as np

from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.errors import GuaranteeError, StructureError
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.mechanism import Mechanism
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.composition import joint_loss
from congenial.privacy.description import Description
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import Randomness, SeededRandomness, SystemRandomness
from congenial.synthesis.from_tables.figure_targets import KeptFigures
from congenial.synthesis.from_tables.junction_tree import Axes, Ints, JunctionTree
from congenial.synthesis.from_tables.maximum_entropy import STEPS, FitTarget, Fitted, fit
from congenial.synthesis.from_tables.record_repair import repair
from congenial.synthesis.from_tables.records_from_tables_release import (
    MeasuredTable,
    TableRecordsRelease,
)
from congenial.synthesis.from_tables.table_choice import choose
from congenial.synthesis.from_tables.whole_records import draw_records
from congenial.synthesis.record_model import generator_of
from congenial.synthesis.records_from_models_release import records_table

FIRST = Fraction(15, 100)  # share of the promise for one-way tables
CHOICE = Fraction(1, 10)  # share of a round for its choice
ROUNDS_PER_COLUMN = 2
GRID = 10**12
LARGEST_CLIQUE = 200_000  # cells: what a fit in seconds can hold
MOST_LEVELS = 5_000  # of one column
BETWEEN = 60  # steps of the fit between two rounds
NOISE = sqrt(2 / pi)  # E|z| of a normal
CITATION = (
    "McKenna et al. 2022 (adaptive choice of tables), Canonne, Kamath, Steinke 2020 (noise), "
    "Cesar and Rogers 2021 (choice)"
)
FIXED = "the columns, the number of rounds and all shares of the promise were fixed beforehand"

Tell = Callable[[str], Any]
Truths = Mapping[Axes, Ints]


@dataclass(frozen=True)
class TableRecords:
    """Synthetic records from tables measured under zero-concentrated privacy.

    `names`: columns, in the order of the schema. `rho`: per replaced record, all measurements and
    choices together. `rounds`: pairs of columns that are measured; where that is all of them,
    nothing is chosen.

    Assumptions: n is public (records are replaced). Guarantee: a^2 rho over look-alikes a records
    apart. Edge cases: a table that the figures settle is not measured; a pair that no exact sampler
    draws is no candidate.
    """

    adjacency: Adjacency
    names: Axes
    rho: Fraction
    rounds: int

    name: ClassVar[str] = "records_from_tables"

    def __post_init__(self) -> None:
        if self.adjacency.metric != "replace-one":
            raise GuaranteeError(
                "records from tables are as many as there are people, so their number must be "
                f"public; the promise is about {self.adjacency.metric}.",
                remedy="Use one row per person (unit without max_rows).",
            )
        if self.rho <= 0 or not 0 <= self.rounds <= len(self.pairs):
            raise GuaranteeError(
                f"rho = {self.rho} must be positive, and rounds = {self.rounds} at most the number "
                "of pairs of columns.",
                remedy="Give rho > 0, and fewer rounds or none.",
            )
        if not self.names or len(set(self.names)) != len(self.names):
            raise GuaranteeError(
                "records need columns, each named once.", remedy="Name the columns to synthesise."
            )
        for name in self.names:
            size = self.schema.attribute(name).size
            if size > MOST_LEVELS:
                raise StructureError(
                    f"column {name!r} has {size} levels, more than {MOST_LEVELS}.",
                    remedy="Give it bins in the schema.",
                )
        _ = self.kept

    @classmethod
    def calibrate(
        cls, adjacency: Adjacency, names: Sequence[str], rho: Fraction, rounds: int | None = None
    ) -> TableRecords:
        """The mechanism whose promise over `adjacency` is rho; by default two rounds a column."""
        for name in names:
            adjacency.schema.attribute(name)  # raises when it is unknown
        ordered = tuple(name for name in adjacency.schema.names if name in set(names))
        pairs = len(ordered) * (len(ordered) - 1) // 2
        wanted = ROUNDS_PER_COLUMN * len(ordered) if rounds is None else rounds
        a = adjacency.records
        return cls(adjacency, ordered, Fraction(int(rho / a**2 * GRID), GRID), min(pairs, wanted))

    # ---- what is public ----------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """What a record is."""
        return self.adjacency.schema

    @property
    def sizes(self) -> dict[str, int]:
        """Levels of every column."""
        return {name: self.schema.attribute(name).size for name in self.names}

    @property
    def chooses(self) -> bool:
        """Whether pairs are chosen; otherwise all of them are measured."""
        return 0 < self.rounds < len(self.pairs)

    @cached_property
    def pairs(self) -> tuple[Axes, ...]:
        """All pairs of columns."""
        return tuple(combinations(self.names, 2))

    @cached_property
    def kept(self) -> KeptFigures:
        """The figures that records keep."""
        return KeptFigures(self.adjacency.figures, self.names)

    @property
    def first_variance(self) -> Fraction:
        """sigma^2 of every one-way table."""
        share = FIRST if self.rounds else Fraction(1)
        return _on_grid(len(self.names) / (self.rho * share))

    @property
    def variance(self) -> Fraction:
        """sigma^2 of every pair that is measured."""
        left = self.rho - self._first_cost - self.rounds * self.epsilon**2 / 8
        return _on_grid(self.rounds / left)

    @property
    def not_kept(self) -> list[str]:
        """Figures about columns that the records do not have."""
        kept = {statement.label for statement in self.kept.statements}
        told = [*self.adjacency.figures.equalities, *self.adjacency.figures.zeros]
        return [statement.label for statement in told if statement.label not in kept]

    @property
    def people_for_pairs(self) -> int:
        """People for whom the noise of a pair of median size is a tenth of all (in l1)."""
        cells = sorted(self.sizes[one] * self.sizes[other] for one, other in self.pairs)
        return round(10 * NOISE * sqrt(self.variance) * cells[len(cells) // 2] / 2)

    def variance_of(self, axes: Axes) -> Fraction:
        """sigma^2 of one table."""
        return self.first_variance if len(axes) == 1 else self.variance

    @property
    def epsilon(self) -> Fraction:
        """What one choice costs one record; 0 where nothing is chosen."""
        if not self.chooses:
            return Fraction(0)
        rho = (self.rho - self._first_cost) * CHOICE / self.rounds
        return Fraction(isqrt(int(8 * rho * GRID**2)), GRID)

    @property
    def _first_cost(self) -> Fraction:
        return len(self.names) / self.first_variance

    @property
    def spent(self) -> Fraction:
        """rho per replaced record of everything that is measured and chosen."""
        if not self.rounds:
            return self._first_cost
        pairs = self.rounds / self.variance
        return self._first_cost + pairs + self.rounds * self.epsilon**2 / 8

    @property
    def description(self) -> RecordDescription:
        """The procedure as plain data, and what replacing one record does to it."""
        figures = self.adjacency.figures
        return RecordDescription(
            mechanism=self.name,
            schema=self.schema,
            law=self.to_dict(),
            rho=self.spent,
            given=figures if figures.equalities or figures.zeros else None,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        loss = joint_loss([self.description], self.adjacency)
        return Guarantee(self.adjacency, loss.tradeoff, "theorem", (FIXED,), citation=CITATION)

    def to_dict(self) -> dict[str, Any]:
        """The law as plain data."""
        return {
            "family": "discrete Gaussian tables, chosen by the exponential mechanism",
            "columns": list(self.names),
            "rho": str(self.rho),
            "rounds": self.rounds,
            "one_way_variance": str(self.first_variance),
            "pair_variance": str(self.variance) if self.rounds else None,
            "choice_epsilon": str(self.epsilon),
            "numerics": {"H": "0", "tau": "0"},
        }

    @classmethod
    def from_dict(cls, adjacency: Adjacency, data: Mapping[str, Any]) -> TableRecords:
        """Inverse of `to_dict`, given the adjacency."""
        return cls(adjacency, tuple(data["columns"]), fraction(data["rho"]), int(data["rounds"]))

    def law(self, axes: Axes) -> Mechanism | None:
        """What draws one table; None where the figures settle it or no exact sampler is known."""
        figures = self.adjacency.figures
        if self.adjacency.l1(axes).value == 0:
            return None
        kept = bool(figures.equalities or figures.zeros)
        name = "congenial_gaussian" if kept else "plain_discrete_gaussian"
        told = Description(name, axes, "discrete_gaussian", self.variance_of(axes), figures)
        try:
            found = rebuild(told, self.adjacency)
        except StructureError:
            if len(axes) == 1:
                raise
            return None
        H, tau = found.sampler_error
        return None if H or tau else found

    # ---- confidential in, synthetic out ------------------------------------------------------

    def fetch(self, data: Table | Microdata) -> tuple[Truths, int]:
        """CONFIDENTIAL: all one- and two-way tables, and n; the figures are checked."""
        figures = self.adjacency.figures
        if figures.statements:
            figures.refuse_other_data(_margin(data, figures.bases))
        wanted = [*((name,) for name in self.names), *(self.pairs if self.rounds else ())]
        truths = {axes: _margin(data, axes).counts for axes in wanted}
        return truths, int(truths[self.names[0],].sum())

    def release(
        self,
        data: Table | Microdata | tuple[Truths, int],
        randomness: Randomness | None = None,
        name: str = "records",
        tell: Tell = lambda _: None,
    ) -> TableRecordsRelease:
        """Choose, measure, fit and write records: the only call that spends privacy."""
        source = SystemRandomness() if randomness is None else randomness
        truths, n = data if isinstance(data, tuple) else self.fetch(data)
        return _Run(self, truths, n, source, tell).release(name)

    def rehearse(self, n: int) -> None:
        """Go through fit, records and repair with tables of nobody; what cannot be had is refused.

        One-way tables that count everybody evenly stand in for those measured; figures and rules
        are as published, so that contradictions and figures without whole records show here.
        """
        run = _Run(self, {}, n, SeededRandomness(0), lambda _: None)
        for name, size in self.sizes.items():
            run.measured.append(MeasuredTable((name,), self.first_variance, _even(n, [size])))
        run.records(run.fit())

    def made_up(self, n: int, name: str = "rehearsal") -> TableRecordsRelease:
        """A release of the same form: levels in turn, and tables that count everybody evenly."""
        source = SeededRandomness(0)
        columns = {one: np.arange(n) % size for one, size in self.sizes.items()}
        table = records_table(self.schema, self.names, columns, generator_of(source))
        axes = [*((one,) for one in self.names), *self.pairs[: self.rounds]]
        measured = tuple(
            MeasuredTable(one, self.variance_of(one), _even(n, [self.sizes[a] for a in one]))
            for one in axes
        )
        return TableRecordsRelease(
            name=name,
            description=self.description,
            guarantee=self.guarantee,
            randomness=source.label,
            publishable=False,
            records=table,
            measured=measured,
        )


@dataclass
class _Run:
    """One draw: what was measured so far."""

    of: TableRecords
    truths: Truths
    people: int
    source: Randomness
    tell: Tell

    def __post_init__(self) -> None:
        self.measured: list[MeasuredTable] = []
        self.generator = generator_of(self.source)

    def release(self, name: str) -> TableRecordsRelease:
        """Everything, in order."""
        for column in self.of.names:
            self.measure((column,))
        fitted = self.fit()
        for at in range(self.of.rounds):
            self.tell(f"measuring pair {at + 1} of {self.of.rounds}")
            chosen = self.next_pair(fitted)
            if chosen is not None and self.measure(chosen) and self.of.chooses:
                fitted = self.fit(fitted, steps=BETWEEN)
        self.tell("fitting and writing records")
        columns, moved = self.records(self.fit())
        table = records_table(self.of.schema, self.of.names, columns, self.generator)
        return TableRecordsRelease(
            name=name,
            description=self.of.description,
            guarantee=self.of.guarantee,
            randomness=self.source.label,
            publishable=self.source.publishable,
            records=table,
            measured=tuple(self.measured),
            moved=moved,
        )

    def measure(self, axes: Axes) -> bool:
        """Draw one table; False where the figures settle it."""
        law = self.of.law(axes)
        if law is None:
            return False
        drawn = law.draw(self.truths[axes], self.source, 1)[0]
        self.measured.append(MeasuredTable(axes, law.description.scale, np.asarray(drawn)))
        return True

    def fit(self, start: Fitted | None = None, steps: int = STEPS) -> Fitted:
        """The distribution of maximum entropy for what is measured and published."""
        kept = self.of.kept
        targets = [
            FitTarget(one.axes, one.values.reshape(-1).astype(np.float64), sqrt(one.variance))
            for one in self.measured
        ]
        first = () if kept.strata is None else kept.strata.axes
        wanted = [*kept.targets, *targets]
        return fit(self.of.sizes, wanted, self.people, first=first, start=start, steps=steps)

    def records(self, fitted: Fitted) -> tuple[dict[str, Ints], int]:
        """Whole records that keep every figure, and how many had to be changed for that."""
        kept = self.of.kept
        columns = draw_records(fitted, self.people, self.generator, kept.strata)
        cells = kept.cells(fitted)
        return (columns, 0) if cells is None else repair(columns, cells, self.generator)

    def next_pair(self, fitted: Fitted) -> Axes | None:
        """A pair that records from the fit get wrong, by more than the noise would be."""
        left = self.candidates
        if not self.of.chooses:
            return left[0] if left else None
        if not left:
            return None
        columns = draw_records(fitted, self.people, self.generator, self.of.kept.strata)
        deviation = sqrt(self.of.variance)
        scores = [0]  # to measure nothing
        for axes in left:
            shape = self.truths[axes].shape
            shown = np.zeros(shape, dtype=np.int64)
            np.add.at(shown, tuple(columns[name] for name in axes), 1)
            noise = round(NOISE * deviation * shown.size)
            scores.append(int(np.abs(self.truths[axes] - shown).sum()) - noise)
        at = choose(scores, self.of.epsilon, 2, self.source)  # one record moves two cells by one
        return left[at - 1] if at else None

    @property
    def candidates(self) -> list[Axes]:
        """Pairs not yet measured that can be drawn and still fit into the tree."""
        done = [one.axes for one in self.measured]
        fixed = [*done, *(one.axes for one in self.of.kept.targets)]
        if self.of.kept.strata is not None:
            fixed.append(self.of.kept.strata.axes)
        return [
            axes
            for axes in self.of.pairs
            if axes not in done and _fits(self.of.sizes, [*fixed, axes]) and self._drawable(axes)
        ]

    def _drawable(self, axes: Axes) -> bool:
        known = self.__dict__.setdefault("known_laws", {})
        if axes not in known:
            known[axes] = self.of.law(axes) is not None
        return bool(known[axes])


def _fits(sizes: Mapping[str, int], tables: Sequence[Axes]) -> bool:
    try:
        JunctionTree.of(sizes, tables, largest=LARGEST_CLIQUE)
    except StructureError:
        return False
    return True


def _on_grid(variance: Fraction) -> Fraction:
    """A variance at least this large, with few digits."""
    return Fraction(-int(-variance * 10**6 // 1), 10**6)


def _even(n: int, shape: Sequence[int]) -> Ints:
    cells = int(np.prod(shape))
    counts = np.full(cells, n // cells, dtype=np.int64)
    counts[: n % cells] += 1
    return counts.reshape(tuple(shape))


def _margin(data: Table | Microdata, names: Sequence[str]) -> Table:
    return data.marginal(names) if isinstance(data, Table) else data.tabulate(names)
