"""What an estimate needs of a release: unbiased cells, and the public law of their errors.

Any kind of release that estimates a table can be asked: it fulfils `CellEstimates`, or it has a
method `cell_estimates()` that returns something which does. Here are the cells of a single table
(its values as drawn, and the law of its noise) and of tables of two releases beside each other;
`combined_estimates` has several tables of one population. Weights of linear combinations are
sparse matrices with one row for each combination and one column for each cell, in C order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from congenial.data.advance import one_by_one
from congenial.data.arrays import Floats
from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema
from congenial.errors import InferenceError
from congenial.figures.figures import Figures
from congenial.figures.limits import FAR, SumRanges, sum_ranges
from congenial.figures.support import FROZEN, LOOSE, support
from congenial.mechanisms.congenial import Conditioned, IntegerNoise
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.kernel_gaussian import KernelGaussian, KernelProjection
from congenial.mechanisms.mechanism import ErrorLaw, Mechanism
from congenial.mechanisms.plain import PlainContinuous
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.simulated_errors import BLOCK, DRAWS, SEED

Weights = Any  # scipy.sparse.csr_array


@dataclass(frozen=True)
class ScaledLaw:
    """The law of `scale` times a sum's error, from the mechanism's own table of laws.

    With E the error of the sum: P(|scale E| <= reach(level)) >= level, and the deviation is
    |scale| sd(E). The law is public and the same whatever the data are; `basis` says whether it is
    exact or a bound. A scale of 0 has reach 0.

    >>> from congenial.sampling.sums import Pmf
    >>> law = ScaledLaw(Pmf(-1, np.array([0.25, 0.5, 0.25]), 0.0), -2.0)
    >>> round(law.deviation, 3), law.reach(0.5), law.reach(0.9)
    (1.414, 0.0, 2.0)
    """

    law: ErrorLaw
    scale: float

    @property
    def basis(self) -> str:
        """What the law rests on."""
        return str(getattr(self.law, "basis", "exact law of the noise"))

    @property
    def deviation(self) -> float:
        """Standard deviation of the error."""
        return float(abs(self.scale) * self.law.variance**0.5)

    def reach(self, level: float) -> float:
        """h with P(|error| <= h) >= level."""
        return abs(self.scale) * self.law.interval(level)


@runtime_checkable
class CellEstimates(Protocol):
    """Unbiased estimates of a table's cells whose errors follow a public law.

    cells = x + E, where x are the true counts and E has mean 0 and a law that depends on public
    numbers alone. Every interval and test of `estimate` rests on these members and on nothing else:
    a kind of release of one's own that has them, or a method `cell_estimates()` that returns
    something which has, can be asked like those that come with Congenial. Combinations that the
    published figures tell are `known` and have errors of 0.

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> from congenial import release_table
    >>> from congenial.inference import cell_estimates
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = release_table(mechanism, Table(schema, ["sex"], [90, 110]), SeededRandomness(1))
    >>> isinstance(cell_estimates(release), CellEstimates), isinstance(release, CellEstimates)
    (True, False)
    """

    @property
    def name(self) -> str:
        """What messages call it."""

    @property
    def schema(self) -> Schema:
        """What the cells mean."""

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the finest cells."""

    @property
    def published(self) -> Figures:
        """The figures published exactly."""

    @property
    def cells(self) -> Floats:
        """The estimates, one after the other."""

    def errors(self, weights: Weights, stream: int = 0) -> Floats:
        """Joint draws of the errors (estimate minus truth) of linear combinations, (DRAWS, rows).

        The same for the same stream; draws of different streams are independent.
        """

    def covariance(self, weights: Weights) -> Floats:
        """Covariance matrix of the errors of linear combinations, exact or a bound."""

    def known(self, weights: Weights) -> NDArray[np.bool_]:
        """Which combinations follow from the figures published exactly."""

    def laws(self, weights: Weights) -> list[ScaledLaw | None]:
        """The law of the error of each combination, where it is tabulated."""


@dataclass(frozen=True, eq=False)
class IndependentTables(ABC):
    """Several tables whose errors are independent: every table has its own stream of draws."""

    tables: tuple[CellEstimates, ...]

    @property
    def magnitude(self) -> Magnitude | None:
        """The number that the cells sum; the same for all tables."""
        return summed_number(self.tables[0])

    @property
    def people(self) -> Figures:
        """The figures about people."""
        published: Figures = self.tables[0].people  # type: ignore[attr-defined]
        return published

    @abstractmethod
    def of_tables(self, weights: Weights) -> Iterable[tuple[CellEstimates, Weights]]:
        """For each table, the weights with which its cells enter linear combinations."""

    def errors(self, weights: Weights, stream: int = 0) -> Floats:
        """Sums of the tables' errors."""
        errors = np.zeros((DRAWS, weights.shape[0]))
        for i, (table, part) in enumerate(self.of_tables(weights)):
            errors += table.errors(part, self.stream_of(i, stream))
        return errors

    def stream_of(self, i: int, stream: int) -> int:
        """The stream of draws of table i, no other table's."""
        return stream * len(self.tables) + i

    def covariance(self, weights: Weights) -> Floats:
        """Covariances of independent errors add up."""
        covariance = np.zeros(1)
        for table, part in self.of_tables(weights):
            covariance = covariance + table.covariance(part)
        return covariance

    def known(self, weights: Weights) -> NDArray[np.bool_]:
        """Combinations into which no table's noise enters."""
        each = [table.known(part) for table, part in self.of_tables(weights)]
        return np.asarray(np.all(each, axis=0))


def summed_number(source: CellEstimates) -> Magnitude | None:
    """The number whose sums the cells are, in steps of it; None where they count people."""
    number: Magnitude | None = getattr(source, "magnitude", None)
    return number


def refuse_sums(source: CellEstimates, what: str) -> None:
    """InferenceError where the cells are sums of a number, and `what` is about counts of people."""
    number = summed_number(source)
    if number is not None:
        raise InferenceError(
            f"{what} is about counts of people, and '{source.name}' has sums of {number.column}.",
            remedy=f"Ask for sum({number.column}) or mean({number.column}).",
        )


def possible_sums(source: CellEstimates, weights: Weights) -> SumRanges:
    """How small and how large combinations of counts with weights of at least 0 can be.

    From the figures of the table; cells of several tables beside each other are at least 0. Sums of
    a number are of as many people, each with a number between its bounds.
    """
    number = summed_number(source)
    if isinstance(source, SideBySide):
        least = np.zeros(weights.shape[0])
        for table, part in source.of_tables(weights):
            of_table = summed_number(table)
            if of_table is not None and of_table.lowest < of_table.offset:
                least[np.diff(part.indptr) > 0] = -np.inf
        return SumRanges(least, np.full(weights.shape[0], np.inf))
    figures = source.published if number is None else source.people  # type: ignore[attr-defined]
    ranges = sum_ranges(support(figures, source.axes), weights != 0)
    if number is not None:
        ranges = ranges.times(number.lowest - number.offset, number.highest - number.offset)
    largest = weights.max(axis=1).toarray().reshape(-1)
    smallest = np.full(weights.shape[0], np.inf)
    np.minimum.at(smallest, weights.tocoo().row, weights.data)
    least = np.where(ranges.least > 0, smallest, largest) * ranges.least
    most = np.where(ranges.most >= 0, largest, smallest) * ranges.most
    return SumRanges(
        np.where(ranges.least <= -FAR, -np.inf, least), np.where(ranges.most >= FAR, np.inf, most)
    )


REMEMBERED = 20_000_000  # numbers of simulated noise that are kept
PASS = 250_000  # numbers of it that are multiplied at a time: they stay in the cache
NOTHING = 1e-9  # a weight this small, after projection on what is free, is none
FILLED = 1 / 8  # share of weights other than zero from which they are multiplied as a full matrix


@dataclass(frozen=True, eq=False)
class SingleTableEstimates:
    """`CellEstimates` of a release of one table with additive noise."""

    release: DrawnTable

    def __post_init__(self) -> None:
        if not self.mechanism.additive:
            raise InferenceError(
                f"'{self.release.name}' was drawn by '{self.mechanism.name}', whose error depends "
                "on the confidential data, so it has no interval that always holds.",
                remedy="Use `congenial infer` with a model, or ask its publisher for a release "
                "with nonnegative = 'project'.",
            )

    @property
    def mechanism(self) -> Mechanism:
        """What drew the table."""
        return self.release.mechanism

    @property
    def name(self) -> str:
        """The release's name."""
        return self.release.name

    @property
    def schema(self) -> Schema:
        """What the cells mean."""
        return self.release.schema

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the table."""
        return self.release.table

    @property
    def published(self) -> Figures:
        """The figures published exactly."""
        return self.release.published

    @property
    def magnitude(self) -> Magnitude | None:
        """The number that the cells sum, in steps; None where they count people."""
        return self.release.description.magnitude

    @property
    def people(self) -> Figures:
        """The figures about people, whatever the cells are."""
        return self.release.adjacency.figures

    @cached_property
    def cells(self) -> Floats:
        """The values as drawn, unbiased."""
        return np.asarray(self.release.values, dtype=np.float64).reshape(-1)

    # ---- simulation --------------------------------------------------------------------------

    def errors(self, weights: Weights, stream: int = 0) -> Floats:
        """Joint draws of the errors of linear combinations, (DRAWS, rows)."""
        touched: Any = np.unique(weights.indices)
        if len(touched) == weights.shape[1]:
            touched = slice(None)  # all of them, without a copy
        inside = weights[:, touched]
        full = inside.toarray().T if inside.nnz > FILLED * math.prod(inside.shape) else None
        found = np.empty((DRAWS, weights.shape[0]))
        for start, block in self._blocks(stream):
            noise = block[:, touched].astype(float)
            errors = noise @ full if full is not None else (inside @ noise.T).T
            found[start : start + len(block)] = errors
        return found

    @property
    def is_remembered(self) -> bool:
        """Whether simulated noise is kept for further questions."""
        return DRAWS * self.cells.size <= REMEMBERED

    def noise(self, stream: int) -> Any:
        """Simulated tables of noise, flat: (DRAWS, cells); the same every time."""
        if stream not in self._kept:
            draws = np.empty((DRAWS, self.cells.size), dtype=np.int16)
            for start, block in self._drawn(stream):
                draws = draws.astype(np.promote_types(draws.dtype, _narrowest(block)), copy=False)
                draws[start : start + len(block)] = block
            self._kept[stream] = draws
        return self._kept[stream]

    @cached_property
    def _kept(self) -> dict[int, Any]:
        return {}

    def _blocks(self, stream: int) -> Iterator[tuple[int, Any]]:
        """The same tables, some at a time, and the number of the first."""
        if not self.is_remembered:
            yield from self._drawn(stream)
            return
        noise, step = self.noise(stream), max(1, PASS // max(self.cells.size, 1))
        for start in range(0, DRAWS, step):
            yield start, noise[start : start + step]

    def _drawn(self, stream: int) -> Iterator[tuple[int, Any]]:
        source = SeededRandomness(SEED + stream)
        step = max(1, min(DRAWS, BLOCK // max(self.cells.size, 1)))
        for start in one_by_one(range(0, DRAWS, step), "simulating errors"):
            drawn = self.mechanism.noise(source, min(step, DRAWS - start))
            yield start, drawn.reshape(len(drawn), -1)

    def covariance(self, weights: Weights) -> Floats:
        """From the simulated errors; their mean is zero by symmetry."""
        errors = self.errors(weights)
        return np.asarray(errors.T @ errors / DRAWS)

    # ---- what is known about it --------------------------------------------------------------

    def known(self, weights: Weights) -> NDArray[np.bool_]:
        """Combinations that the conditioned noise leaves at zero."""
        if not isinstance(self.mechanism, Conditioned):
            return np.asarray(np.diff(weights.indptr) == 0)
        if _disjoint_sums(weights):
            return np.asarray(self.mechanism.support.fixes(_index(weights), weights.shape[0]))
        certain = np.zeros(weights.shape[0], dtype=np.bool_)
        step = max(1, BLOCK // max(self.cells.size, 1))
        for start in range(0, len(certain), step):
            rows = self._projection.apply(weights[start : start + step].toarray().astype(float))
            certain[start : start + step] = np.abs(rows).max(axis=1, initial=0) < NOTHING
        return certain

    @cached_property
    def _projection(self) -> KernelProjection:
        assert isinstance(self.mechanism, Conditioned)
        return KernelProjection(self.mechanism.support)

    def laws(self, weights: Weights) -> list[ScaledLaw | None]:
        """Laws of sums: all weights of one size, and one sign in each independent part."""
        size = [self._one_size(*_row(weights, i)) for i in range(weights.shape[0])]
        served = [i for i, cells in enumerate(size) if cells]
        laws: list[ScaledLaw | None] = [None] * len(size)
        if not served:
            return laws
        batches = [served] if _disjoint(weights[served]) else [[i] for i in served]
        for batch in one_by_one(batches, "working out laws of sums"):
            for i, law in zip(batch, self._laws_of(weights[batch]), strict=True):
                laws[i] = ScaledLaw(law, size[i])
        return laws

    def _laws_of(self, rows: Weights) -> list[Any]:
        index = _index(rows).reshape(self.mechanism.shape)
        return list(self.mechanism.error_laws(index, rows.shape[0]))

    def _one_size(self, cells: Any, values: Any) -> float:
        """The size of all weights of a row whose law is that of a sum; 0.0 where it is not."""
        sizes = np.abs(values)
        if not len(sizes) or np.ptp(sizes) > NOTHING * sizes.max():
            return 0.0
        positive = values > 0
        if positive.all() or not positive.any():
            return float(sizes[0])
        parts = self._parts
        if parts is None or np.intersect1d(parts[cells[positive]], parts[cells[~positive]]).size:
            return 0.0
        return float(sizes[0])  # every part is symmetric about zero: signs of parts do not matter

    @cached_property
    def _parts(self) -> Any:
        """For each cell, the independent part of the noise it belongs to; None where unknown."""
        if isinstance(self.mechanism, PlainContinuous):
            return np.arange(self.cells.size)
        if not isinstance(self.mechanism, IntegerNoise | KernelGaussian):
            return None
        support = self.mechanism.support
        labels = support.labels.reshape(-1)
        of_group = np.arange(support.groups)
        for tie in support.ties:
            of_group[tie.groups] = tie.groups[0]
        parts = np.where(labels >= 0, np.append(of_group, 0)[np.maximum(labels, 0)], -1)
        alone = (labels == LOOSE) | (labels == FROZEN)
        parts[alone] = support.groups + np.flatnonzero(alone)
        return parts


def _narrowest(drawn: Any) -> Any:
    """The type that holds numbers in the least memory."""
    if np.issubdtype(drawn.dtype, np.integer) and drawn.size:
        for narrow in (np.int16, np.int32):
            if np.iinfo(narrow).min <= drawn.min() and drawn.max() <= np.iinfo(narrow).max:
                return narrow
    return np.float64


def _row(weights: Weights, i: int) -> tuple[Any, Any]:
    """Places and values of a row's weights."""
    inside = slice(weights.indptr[i], weights.indptr[i + 1])
    return weights.indices[inside], weights.data[inside]


def _disjoint(weights: Weights) -> bool:
    """Whether no cell is in two combinations."""
    return bool(np.bincount(weights.indices, minlength=1).max() <= 1)


def _disjoint_sums(weights: Weights) -> bool:
    """Whether the combinations are plain sums of which no two have a cell in common."""
    return bool(np.all(weights.data == 1)) and _disjoint(weights)


def _index(weights: Weights) -> Any:
    """For each cell the combination it is in, -1 for none."""
    index = np.full(weights.shape[1], -1, dtype=np.int64)
    index[weights.indices] = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    return index


@dataclass(frozen=True, eq=False)
class SideBySide(IndependentTables):
    """`CellEstimates` of several tables, the cells of one after those of the other."""

    @property
    def name(self) -> str:
        """All names."""
        return " and ".join(table.name for table in self.tables)

    @property
    def schema(self) -> Schema:
        """The first table's."""
        return self.tables[0].schema

    @property
    def axes(self) -> tuple[str, ...]:
        """The first table's."""
        return self.tables[0].axes

    @property
    def published(self) -> Figures:
        """The first table's."""
        return self.tables[0].published

    @cached_property
    def cells(self) -> Floats:
        """All cells."""
        return np.concatenate([table.cells for table in self.tables])

    def stream_of(self, i: int, stream: int) -> int:
        """Tables that are combinations of others use up to 1000 streams after their own."""
        return 1000 ** (i + stream * len(self.tables)) if i or stream else 0

    @cached_property
    def starts(self) -> list[int]:
        """Where each table's cells begin; at the end, how many cells there are."""
        return [0, *np.cumsum([table.cells.size for table in self.tables]).tolist()]

    def of_tables(self, weights: Weights) -> Sequence[tuple[CellEstimates, Weights]]:
        """For each table, the columns of its cells."""
        slices = [weights[:, start:stop] for start, stop in pairwise(self.starts)]
        return list(zip(self.tables, slices, strict=True))

    def laws(self, weights: Weights) -> list[ScaledLaw | None]:
        """Laws of sums of one table; differences between tables are simulated."""
        parts = self.of_tables(weights)
        used = np.stack([np.diff(part.indptr) > 0 for _, part in parts])
        laws: list[ScaledLaw | None] = [None] * weights.shape[0]
        for i in np.flatnonzero(used.sum(axis=0) == 1):
            table, part = parts[int(np.argmax(used[:, i]))]
            laws[i] = table.laws(part[[i]])[0]
        return laws
