"""Laws and queries that several tests share."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from congenial.data.schema import Schema
from congenial.data.vector_statistics import Statistic, Statistics
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.stated_laws import DiscreteLaw, GaussianLaw

ALPHA = 1e-6  # false-alarm rate of a statistical test

SCHEMA = Schema.from_dict({name: {"edges": [0, 1000]} for name in "abcdefgh"})
EXAMPLE_COVARIANCE = [[22, -6], [-6, 13]]


def query(size: int) -> Statistics:
    return Statistics(SCHEMA, tuple(Statistic.mean(name) for name in "abcdefgh"[:size]))


def gaussian_pairs(means, covariances, pairs=None, **rest) -> DistributionPairs:
    laws = [
        GaussianLaw.of(f"law {i}", mean, covariance)
        for i, (mean, covariance) in enumerate(zip(means, covariances, strict=True))
    ]
    named = None if pairs is None else [(f"law {i}", f"law {j}") for i, j in pairs]
    return DistributionPairs.given(query(len(laws[0].mean)), laws, named, **rest)


def example() -> DistributionPairs:
    """Section 4.3."""
    return gaussian_pairs([[100, 101], [99, 102]], [EXAMPLE_COVARIANCE] * 2)


def random_pairs(random: np.random.Generator, size: int, laws: int) -> DistributionPairs:
    """Laws with one covariance, and means within a few deviations; all pairs."""
    root = random.normal(size=(size, size))
    covariance = root @ root.T + 0.1 * np.eye(size)
    spread = np.exp(random.uniform(-1, 1))
    means = random.normal(size=(laws, size)) * spread
    return gaussian_pairs(means, [covariance] * laws)


def discrete_pairs(*laws: tuple[object, object]) -> DistributionPairs:
    made = [DiscreteLaw.of(f"law {i}", points, masses) for i, (points, masses) in enumerate(laws)]
    return DistributionPairs.given(query(made[0].dimension), made)


def semidefinite(matrix: list[list[Fraction]]) -> bool:
    """Whether a symmetric rational matrix has no negative eigenvalue: exact elimination."""
    rows = [list(row) for row in matrix]
    for k in range(len(rows)):
        pivot = rows[k][k]
        if pivot < 0 or (pivot == 0 and any(rows[i][k] for i in range(k + 1, len(rows)))):
            return False
        if pivot == 0:
            continue
        for i in range(k + 1, len(rows)):
            factor = rows[i][k] / pivot
            for j in range(k, len(rows)):
                rows[i][j] -= factor * rows[k][j]
    return True


def exactly(matrix) -> list[list[Fraction]]:
    return [[Fraction(float(value)) for value in row] for row in np.asarray(matrix)]
