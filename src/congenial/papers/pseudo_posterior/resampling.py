"""Distributions of a statistic by resampling, and their barycenter over synthetic databases."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from congenial.synthesis.record_model import Floats

RESAMPLES = 500


def means(values: Floats, generator: np.random.Generator) -> Floats:
    """Means of resamples (with replacement, of the same size), sorted."""
    resampled = [
        values[generator.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)
    ]
    return np.sort(resampled)


def quantiles(values: Floats, share: float, generator: np.random.Generator) -> Floats:
    """The `share` quantile (inverse of the distribution function) of resamples, sorted.

    The k-th smallest of n resampled positions is that of n uniforms, Beta(k, n - k + 1), so it is
    drawn without resampling the rest.
    """
    n = len(values)
    k = math.ceil(share * n)
    at = np.floor(n * generator.beta(k, n - k + 1, RESAMPLES)).astype(int)
    return np.sort(np.sort(values)[np.minimum(at, n - 1)])


def barycenter(distributions: Sequence[Floats]) -> Floats:
    """Wasserstein barycenter of distributions on a line: the average of their quantiles.

    >>> barycenter([np.array([0.0, 1.0]), np.array([4.0, 2.0])]).tolist()
    [1.0, 2.5]
    """
    return np.asarray(np.mean([np.sort(values) for values in distributions], axis=0))
