"""What an estimate needs of a release: unbiased cells, and the public law of their errors.

Any kind of release that estimates a table can be asked: it fulfils `CellEstimates`, or it has a
method `cell_estimates()` that returns something which does. Weights of linear combinations are
sparse matrices with one row for each combination and one column for each cell, in C order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from congenial.data.schema import Schema
from congenial.errors import InferenceError
from congenial.figures.figures import Figures
from congenial.figures.limits import FAR, SumRanges, sum_ranges
from congenial.figures.support import support
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.mechanism import ErrorLaw
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.released import Released
from congenial.mechanisms.tables_release import TablesRelease
from congenial.tables.joint_estimator import JointEstimator

Floats = NDArray[np.float64]
Weights = Any  # scipy.sparse.csr_array

DRAWS = 10_000  # of the noise, for every interval by simulation
SEED = 20260101  # public: everybody gets the same intervals


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
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = mechanism.release(Table(schema, ["sex"], [90, 110]), SeededRandomness(1))
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

    @abstractmethod
    def of_tables(self, weights: Weights) -> Iterable[tuple[CellEstimates, Weights]]:
        """For each table, the weights with which its cells enter linear combinations."""

    def errors(self, weights: Weights, stream: int = 0) -> Floats:
        """Sums of the tables' errors."""
        first, found = stream * len(self.tables), np.zeros((DRAWS, weights.shape[0]))
        for i, (table, part) in enumerate(self.of_tables(weights)):
            found += table.errors(part, first + i)
        return found

    def covariance(self, weights: Weights) -> Floats:
        """Covariances of independent errors add up."""
        found = np.zeros(1)
        for table, part in self.of_tables(weights):
            found = found + table.covariance(part)
        return found

    def known(self, weights: Weights) -> NDArray[np.bool_]:
        """Combinations into which no table's noise enters."""
        each = [table.known(part) for table, part in self.of_tables(weights)]
        return np.asarray(np.all(each, axis=0))


def cell_estimates(release: Any) -> CellEstimates:
    """The cells that a release estimates, with the law of their errors.

    A table: its values as drawn, before anything made them nonnegative, because those are unbiased.
    Several tables drawn together: their best linear combination. Anything with a method
    `cell_estimates()`: what that returns. Noise that was simulated for a table is kept with it, so
    that questions asked one after the other agree. InferenceError where a release has no table
    whose errors have a public law (statistics, counts given public information).

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = mechanism.release(Table(schema, ["sex"], [90, 110]), SeededRandomness(1))
    >>> found = cell_estimates(release)
    >>> found.axes, bool((found.cells == release.drawn[0]).all())
    (('sex',), True)
    """
    if isinstance(release, DrawnTable | TablesRelease | PartedRelease):
        # Kept with the release, as a cached property would be: simulated noise is used again.
        if "_cell_estimates" not in vars(release):
            vars(release)["_cell_estimates"] = _of_tables(release)
        kept: CellEstimates = vars(release)["_cell_estimates"]
        return kept
    offered = getattr(release, "cell_estimates", None)
    found = offered() if callable(offered) else release
    if isinstance(found, CellEstimates):
        return found
    raise InferenceError(
        f"a release of kind '{getattr(release, 'kind', type(release).__name__)}' has no table "
        "with known errors.",
        remedy=release.instead()
        if isinstance(release, Released)
        else "Use a bundle with protected tables.",
    )


def possible_sums(source: CellEstimates, weights: Weights) -> SumRanges:
    """How small and how large combinations of counts with weights of at least 0 can be.

    From the figures of the table; cells of several tables beside each other are at least 0.
    """
    if weights.shape[1] != source.schema.size(source.axes):
        return SumRanges(np.zeros(weights.shape[0]), np.full(weights.shape[0], np.inf))
    known = sum_ranges(support(source.published, source.axes), weights != 0)
    largest = weights.max(axis=1).toarray().reshape(-1)
    smallest = np.full(weights.shape[0], np.inf)
    np.minimum.at(smallest, weights.tocoo().row, weights.data)
    most = np.where(known.most >= FAR, np.inf, largest * known.most)
    return SumRanges(np.where(known.least > 0, smallest, 0) * known.least, most)


def _of_tables(release: DrawnTable | TablesRelease | PartedRelease) -> CellEstimates:
    """The cells of one table, or of several that were drawn together (above the parts, if any)."""
    from congenial.inference.estimates.combined_estimates import CombinedEstimates
    from congenial.inference.estimates.single_table_estimates import SingleTableEstimates

    if isinstance(release, DrawnTable):
        return SingleTableEstimates(release)
    tables = tuple(SingleTableEstimates(one) for one in release.measured_tables())
    if not tables:
        raise InferenceError(
            f"release '{release.name}' has no table above its parts.",
            remedy="Ask for one cell with release.interval(condition, part=...).",
        )
    if len(tables) == 1:
        return tables[0]
    if isinstance(release, PartedRelease):
        return CombinedEstimates(tables, release=release)
    estimator = release.estimator
    assert isinstance(estimator, JointEstimator)  # of several tables
    precisions = dict(zip(release.tables, estimator.measurements.precisions, strict=True))
    return CombinedEstimates(tables, tuple(precisions[one.axes] for one in tables), release)
