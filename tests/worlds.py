"""Small worlds that tests of several rooms share: schemas, tables listed whole, and Pearson's test
of draws against a law.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import chi2

from congenial import Schema

ALPHA = 1e-6  # false-alarm rate of each statistical test


def levels(**sizes: int) -> Schema:
    """Attributes with so many levels, called 0, 1, ..."""
    return Schema.from_dict(
        {name: {"levels": [str(i) for i in range(size)]} for name, size in sizes.items()}
    )


def schema_of(**sizes: int | list[int]) -> Schema:
    """Attributes with so many levels, called by the attribute: a0, a1, ...; a list has the block of
    each level under a coarser name, `<name>_wide`.
    """
    told: dict[str, Any] = {}
    for name, size in sizes.items():
        blocks = size if isinstance(size, list) else None
        number = len(size) if isinstance(size, list) else size
        told[name] = {"levels": [f"{name}{i}" for i in range(number)]}
        if blocks:
            told[name]["within"] = {f"{name}_wide": [f"w{block}" for block in blocks]}
    return Schema.from_dict(told)


# ---- tables listed whole -------------------------------------------------------------------------


def one_way_margins(*shape: int) -> Any:
    """The one-way margins of a table, one row each."""
    axes = zip(np.indices(shape).reshape(len(shape), -1), shape, strict=True)
    return np.array([axis == k for axis, size in axes for k in range(size)], dtype=np.int64)


def zero_margins(shape: tuple[int, int], reach: int) -> Any:
    """All two-way tables with zero margins whose free entries are within reach."""
    rows, columns = shape[0] - 1, shape[1] - 1
    free = np.array(list(product(range(-reach, reach + 1), repeat=rows * columns)))
    free = free.reshape(-1, rows, columns)
    free = np.concatenate([free, -free.sum(axis=1, keepdims=True)], axis=1)
    return np.concatenate([free, -free.sum(axis=2, keepdims=True)], axis=2)


# ---- draws against a law -------------------------------------------------------------------------


def tally(draws: Any, places: Any, probs: Any) -> tuple[list[int], list[float]]:
    """Counts on the likely places, and everything else as one more; their probabilities."""
    likely = probs > 1e-6
    seen = Counter(map(bytes, draws.astype(np.int64).reshape(len(draws), -1)))
    counts = [seen[bytes(u)] for u in places[likely].astype(np.int64)]
    rest = max(0.0, 1 - probs[likely].sum())
    return [*counts, len(draws) - sum(counts)], [*probs[likely], rest]


def often(draws: Any, density: Any) -> tuple[Any, Any]:
    """How often each result was drawn and is expected to be, results that are expected less than 8
    times as one; `density`: the probabilities of rows of results.
    """
    number = len(draws)
    rows, counts = np.unique(draws.reshape(number, -1), axis=0, return_counts=True)
    mass = density(rows)
    common = mass * number >= 8
    observed = np.append(counts[common], number - counts[common].sum())
    expected = np.append(mass[common], 1 - mass[common].sum()) * number
    return observed, np.maximum(expected, 1e-9)


def pearson(observed: Any, expected: Any) -> float:
    """The p-value of Pearson's test; 1 where there is one class alone."""
    if len(observed) < 2:
        return 1.0
    statistic = float(((np.asarray(observed) - expected) ** 2 / expected).sum())
    return float(chi2.sf(statistic, len(observed) - 1))
