"""From counts of one column to a protected law of its levels, in every context.

A context is a combination of the parents' levels. A kernel holds what is public about a column:
log P(level | theta) on the possible levels, the weights, the scores. Given the confidential counts
it states the exact law of each parameter; given drawn parameters it states the probabilities that
new records are drawn from.

Weighted records do not follow the law of the data; `correct` allows for that in the likelihood (see
`scores.score_table`). Without it the fit is the paper's, and misses what weighs little.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.errors import GuaranteeError
from congenial.synthesis.models.category_columns import MultinomialColumn, lattice_score
from congenial.synthesis.record_model import Bools, LevelModel
from congenial.synthesis.record_scores import (
    FULL,
    MOST_RECORDS,
    Scores,
    oscillation,
    scalar_weights,
    score_table,
    scores_of,
    weights_of,
)
from congenial.synthesis.weighted_posterior import Finite, WeightedComposition, refuse_large_law

Weighting = Literal["record", "scalar"]
LARGEST_TABLE = 50_000_000  # points of Theta times levels


@dataclass(frozen=True, eq=False)
class ColumnKernel(ABC):
    """A column's model on its levels, in each context; everything here is public.

    allowed: which levels are possible, (contexts, levels). predictors: the numbers of the parents,
    (contexts, parents), for a shared model. bound: M of this column.
    """

    model: LevelModel
    attribute: Attribute
    allowed: Bools
    bound: Fraction
    weighting: Weighting = "record"
    correct: bool = True
    predictors: Floats | None = None

    @property
    def unit(self) -> Fraction:
        """What one step of a score means."""
        return self.bound / FULL

    @property
    def contexts(self) -> int:
        """Number of contexts."""
        return len(self.allowed)

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """alpha of a record, (contexts, levels); 0 where a level is impossible or has no weight."""

    @property
    @abstractmethod
    def used(self) -> Floats:
        """Range of a record's score as a share of M, (contexts, levels); at most 1."""

    @abstractmethod
    def laws(self, counts: Ints) -> list[Any]:
        """The exact law of every parameter, given CONFIDENTIAL counts (contexts, levels)."""

    @abstractmethod
    def probabilities(self, thetas: list[Any]) -> Floats:
        """Probabilities of new records' levels, (contexts, levels), given drawn parameters."""


@dataclass(frozen=True, eq=False)
class GridKernel(ColumnKernel):
    """A model on a finite grid of Theta: one parameter per context, or one for all if shared."""

    _tables: dict[bytes, tuple[Floats, Scores]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        size = len(self.theta) * self.attribute.size
        if size > LARGEST_TABLE:
            raise GuaranteeError(
                f"column {self.attribute.name!r}: {len(self.theta)} points of Theta and "
                f"{self.attribute.size} levels are too many.",
                remedy="Use coarser grids, or fewer categories.",
            )
        _ = self.weights  # raises when no record could have a weight

    @cached_property
    def theta(self) -> Floats:
        """The points of Theta."""
        return self.model.points()

    @cached_property
    def log_prior(self) -> Floats:
        """Their log prior."""
        return self.model.log_prior(self.theta)

    def log_table(self, context: int) -> Floats:
        """log P(level | theta, context) on the possible levels, (points, levels)."""
        predictors = None if self.predictors is None else self.predictors[context]
        allowed = self.allowed[context]
        table = np.where(
            allowed, self.model.log_probability(self.theta, self.attribute, predictors), -np.inf
        )
        with np.errstate(invalid="ignore"):
            return np.asarray(table - logsumexp(table, axis=1, keepdims=True))

    @cached_property
    def _largest(self) -> float:
        """The largest oscillation of a possible record, which one weight for all is made from."""
        largest = 0.0
        for context in self._distinct:
            osc = oscillation(self.log_table(context))[self.allowed[context]]
            largest = max(largest, float(osc.max(initial=0.0)))
        return largest

    @cached_property
    def _distinct(self) -> Ints:
        """One context for each different table."""
        if self.model.shared:
            return np.arange(self.contexts)
        return np.unique(self.allowed, axis=0, return_index=True)[1]

    def _table(self, context: int) -> tuple[Floats, Scores]:
        key = self.allowed[context].tobytes()  # what an unshared table depends on
        if not self.model.shared and key in self._tables:
            return self._tables[key]
        table = self.log_table(context)
        if self.weighting == "scalar":
            scored = self._scalar(table, self.allowed[context])
        else:
            scored = score_table(table, self.bound, self.allowed[context], self.correct)
        if not self.model.shared:
            self._tables[key] = table, scored
        return table, scored

    def _scalar(self, table: Floats, allowed: Bools) -> Scores:
        weight = scalar_weights(np.array([self._largest]), self.bound)[0]
        weights = np.where(allowed, weight, 0.0)
        return Scores(scores_of(table, weights, self.bound), weights, self.bound)

    @cached_property
    def weights(self) -> Floats:
        """alpha of a record, (contexts, levels)."""
        return np.stack([self._table(context)[1].weights for context in range(self.contexts)])

    @cached_property
    def used(self) -> Floats:
        """Range of a record's score as a share of M, (contexts, levels)."""
        scored = (self._table(context)[1] for context in range(self.contexts))
        return np.stack(
            [(score.values.max(axis=0) - score.values.min(axis=0)) / FULL for score in scored]
        )

    def laws(self, counts: Ints) -> list[Finite]:
        """One law per context, or one in all."""
        _check_records(counts)
        if not self.model.shared:
            return [
                Finite(self._table(at)[1].totals(row), self.log_prior, self.unit)
                for at, row in enumerate(counts)
            ]
        total = np.zeros(len(self.theta), dtype=np.int64)
        for at in np.flatnonzero(counts.any(axis=1)):
            total += self._table(int(at))[1].totals(counts[at])
        return [Finite(total, self.log_prior, self.unit)]

    def probabilities(self, thetas: list[int]) -> Floats:
        """p(level | theta) in each context."""
        rows = []
        for context in range(self.contexts):
            at = thetas[0 if self.model.shared else context]
            rows.append(np.exp(self._row(context, at)))
        return np.stack(rows)

    def _row(self, context: int, at: int) -> Floats:
        if not self.model.shared:
            return np.asarray(self._table(context)[0][at])
        predictors = None if self.predictors is None else self.predictors[context]
        row = self.model.log_probability(self.theta[at : at + 1], self.attribute, predictors)[0]
        row = np.where(self.allowed[context], row, -np.inf)
        return np.asarray(row - logsumexp(row))


@dataclass(frozen=True, eq=False)
class SimplexKernel(ColumnKernel):
    """A multinomial on the lattice of the simplex, one for each context."""

    def __post_init__(self) -> None:
        self._shapes  # noqa: B018 - refuses a model that does not fit

    @cached_property
    def _shapes(self) -> dict[int, tuple[int, int, Ints, Floats, float]]:
        """size, low, scores, log prior and weight for each number of possible levels."""
        return {levels: self._shape(levels) for levels in np.unique(self._sizes).tolist()}

    @property
    def _sizes(self) -> list[int]:
        """How many levels are possible in each context."""
        return [int(size) for size in self.allowed.sum(axis=1)]

    def _shape(self, levels: int) -> tuple[int, int, Ints, Floats, float]:
        assert isinstance(self.model, MultinomialColumn)
        if levels == 1:  # nothing to learn
            return 1, 1, np.zeros(1, dtype=np.int64), np.zeros(1), 1.0
        size, low, high = self.model.lattice(levels)
        refuse_large_law(levels, high - low + 1)
        values, log_ratio = lattice_score(low, high)
        weight = float(weights_of(log_ratio[-1:], self.bound)[0])
        score = np.clip(np.rint(log_ratio * (weight * FULL / float(self.bound))), 0, FULL)
        prior = (self.model.per_level(levels) - 1) * np.log(values)
        return size, low, score.astype(np.int64), prior, weight

    @cached_property
    def weights(self) -> Floats:
        """The same for every possible level of a context."""
        totals = [self._shapes[levels][-1] for levels in self._sizes]
        return np.where(self.allowed, np.array(totals)[:, None], 0.0)

    @cached_property
    def used(self) -> Floats:
        """The same for every possible level of a context."""
        ranges = [self._shapes[levels][2].max() / FULL for levels in self._sizes]
        return np.where(self.allowed, np.array(ranges)[:, None], 0.0)

    def laws(self, counts: Ints) -> list[WeightedComposition]:
        """One law per context."""
        _check_records(counts)
        laws = []
        for row, allowed, levels in zip(counts, self.allowed, self._sizes, strict=True):
            size, low, score, prior, _ = self._shapes[levels]
            laws.append(WeightedComposition(row[allowed], score, prior, self.unit, low, size))
        return laws

    def probabilities(self, thetas: list[Ints]) -> Floats:
        """c / size on the possible levels."""
        p = np.zeros(self.allowed.shape)
        for at, (theta, allowed) in enumerate(zip(thetas, self.allowed, strict=True)):
            p[at, allowed] = theta / theta.sum()
        return p


@dataclass(frozen=True, eq=False)
class SettledKernel(ColumnKernel):
    """A column whose levels follow from published totals: no parameter, and no part of M.

    Its counts are not looked at, so nothing is lost. Which level a record gets is left to the
    totals: in each group of levels that has one, a single level is possible (`columns.settled`).
    """

    @property
    def weights(self) -> Floats:
        """1 for every possible level: a record says nothing here, so nothing is held back."""
        return self.allowed.astype(float)

    @property
    def used(self) -> Floats:
        """None of M."""
        return np.zeros(self.allowed.shape)

    def laws(self, counts: Ints) -> list[Any]:  # noqa: ARG002 - that is the point
        """There is no parameter."""
        return []

    def probabilities(self, thetas: list[Any]) -> Floats:  # noqa: ARG002 - there are none
        """Equal on the possible levels."""
        return np.asarray(self.allowed / self.allowed.sum(axis=1, keepdims=True))


def _check_records(counts: Ints) -> None:
    """Refuse what sums of scores in 64 bits cannot hold, over all contexts together."""
    if float(counts.sum(dtype=np.float64)) > MOST_RECORDS:
        raise GuaranteeError(
            f"scores of more than {MOST_RECORDS} records do not fit 64 bits.",
            remedy="Synthesise parts of the population one by one.",
        )


def kernel_of(model: LevelModel, **public: Any) -> ColumnKernel:
    """The kernel that fits the model."""
    kind = SimplexKernel if isinstance(model, MultinomialColumn) else GridKernel
    return kind(model, **public)
