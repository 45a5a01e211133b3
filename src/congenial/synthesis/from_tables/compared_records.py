"""CONFIDENTIAL, for the curator: records from tables beside other ways to make records.

At the same promise: records from tables, the certified pseudo-posterior (a multinomial for each
column), a noisy histogram of all columns together (of each column, where that has too many cells),
and no privacy at all: records drawn from the data with replacement. Where figures are published the
other private ways get the same loss per replaced record, and keep none of the figures.

The errors are measured against the confidential data: choosing by them is covered by no promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import isqrt, prod
from typing import Any

import numpy as np

from congenial.data.advance import one_by_one
from congenial.data.tabulate import Microdata
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import Randomness
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.from_tables.counted_records import CountedRecords
from congenial.synthesis.from_tables.junction_tree import Axes, Ints, Reals
from congenial.synthesis.from_tables.measuring_budget import GRID
from congenial.synthesis.from_tables.records_run import Confidential
from congenial.synthesis.from_tables.table_records import TableRecords
from congenial.synthesis.record_model import generator_of
from congenial.synthesis.records_from_models_release import level_numbers
from congenial.synthesis.risk_utility import summary
from congenial.synthesis.utility_report import total_variation

LARGEST_HISTOGRAM = 2_000_000  # cells of all columns together
MEASURES = {1: "columns", 2: "pairs"}  # by how many columns a table has
WAYS = ("records from tables", "certified pseudo-posterior", "noisy histogram", "no privacy")

Shares = Callable[[Axes], Reals]  # the table of some columns as shares


@dataclass(frozen=True, eq=False)
class ComparedRecords:
    """CONFIDENTIAL: what every way is measured against.

    `made`: the plan's mechanism. `confidential` is what it fetched; `data` are the records by the
    levels that are counted (`made.schema`), where columns to be cut have bins of equal width.
    """

    made: TableRecords
    confidential: tuple[Confidential, int]
    data: Microdata

    @cached_property
    def levels(self) -> Mapping[str, Ints]:
        """CONFIDENTIAL: the level of every record in each column."""
        return CountedRecords.read(self.data, self.made.names).levels

    def rows(
        self, times: Sequence[Fraction], replicates: int, source: Randomness
    ) -> Iterator[dict[str, Any]]:
        """One row for each way, promise (so many times the plan's) and measure."""
        for factor, way in product(times, WAYS):
            each = one_by_one(range(replicates), f"{way}, {float(factor):g} times the promise")
            errors = [self._errors(self._drawn(way, factor, source)) for _ in each]
            yield from _summaries(way, float(factor), errors)

    def released(self, copies: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """The same of records that were released."""
        each = [self._errors(_counted(self._levels_of(one), self.made)) for one in copies]
        yield from _summaries("as released", 1.0, each)

    def _errors(self, shares: Shares) -> dict[str, float]:
        """Mean total variation over columns, and over pairs of columns where there are any."""
        tables = {size: list(combinations(self.made.names, size)) for size in (1, 2)}
        return {
            MEASURES[size]: float(np.mean([_distance(self._truth, shares, one) for one in axes]))
            for size, axes in tables.items()
            if axes
        }

    @cached_property
    def _truth(self) -> Shares:
        return _remembered(_counted(self.levels, self.made))

    def _levels_of(self, copy: Any) -> Mapping[str, Ints]:
        return level_numbers(self.made.schema, copy)

    def _drawn(self, way: str, times: Fraction, source: Randomness) -> Shares:
        made, rng = self.made, generator_of(source)
        if way == "no privacy":
            people = len(next(iter(self.levels.values())))
            rows = rng.integers(0, people, people)
            return _counted({name: one[rows] for name, one in self.levels.items()}, made)
        if way == "noisy histogram":
            return self._histogram(float(made.budget.amount * times), rng)
        if way == "records from tables":
            more = replace(made.budget, amount=made.budget.amount * times)
            release = replace(made, budget=more, copies=1).release(self.confidential, source)
            return _counted(self._levels_of(release.copies[0]), made)
        posterior = self._certified(times)
        copy = posterior.release(posterior.fit(self.data), source).copies[0]
        return _counted(self._levels_of(copy), made)

    def _certified(self, times: Fraction) -> Synthesizer:
        """A multinomial for each column, at the same loss per replaced record."""
        amount = self.made.budget.amount * times
        if self.made.budget.law == "gaussian":  # pure epsilon implies rho = epsilon^2 / 2
            amount = Fraction(isqrt(int(2 * amount * GRID**2)), GRID)
        pairs = SemiAdjacent(Figures(self.made.schema))
        columns = [Column(name) for name in self.made.names if self.made.sizes[name] > 1]
        return Synthesizer.calibrate(Guarantee.pure(amount, under=pairs), columns)

    def _histogram(self, amount: float, rng: np.random.Generator) -> Shares:
        """All columns together with noise, cut at 0; column by column where cells are too many."""
        names = self.made.names
        if prod(self.made.shape(names)) <= LARGEST_HISTOGRAM:
            whole = self._noisy(names, amount, rng)
            return lambda axes: _summed(whole, names, axes)
        alone = {name: self._noisy((name,), amount / len(names), rng) for name in names}
        return lambda axes: np.asarray(
            np.multiply.outer(alone[axes[0]], alone[axes[1]]) if axes[1:] else alone[axes[0]]
        )

    def _noisy(self, axes: Axes, amount: float, rng: np.random.Generator) -> Reals:
        counts = self._truth(axes) * len(next(iter(self.levels.values())))
        if self.made.budget.law == "gaussian":
            noise = rng.normal(0.0, amount**-0.5, counts.shape)
        else:
            noise = rng.laplace(0.0, 2 / amount, counts.shape)
        cut = np.maximum(counts + noise, 0.0)
        return np.asarray(cut / cut.sum() if cut.sum() > 0 else np.full(cut.shape, 1 / cut.size))


def _counted(levels: Mapping[str, Ints], made: TableRecords) -> Shares:
    def shares(axes: Axes) -> Reals:
        counts = np.zeros(made.shape(axes))
        np.add.at(counts, tuple(levels[name] for name in axes), 1.0)
        return np.asarray(counts / counts.sum())

    return shares


def _remembered(shares: Shares) -> Shares:
    known: dict[Axes, Reals] = {}

    def again(axes: Axes) -> Reals:
        if axes not in known:
            known[axes] = shares(axes)
        return known[axes]

    return again


def _summed(table: Reals, names: Axes, axes: Axes) -> Reals:
    away = tuple(at for at, name in enumerate(names) if name not in axes)
    return np.asarray(table.sum(axis=away))


def _summaries(
    way: str, times: float, errors: Sequence[Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    for measure in errors[0]:
        found = summary([one[measure] for one in errors])
        yield {"mechanism": way, "times": times, "measure": measure, **found}


def _distance(one: Shares, other: Shares, axes: Axes) -> float:
    return total_variation(one(axes), other(axes))
