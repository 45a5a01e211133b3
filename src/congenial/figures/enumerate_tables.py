"""All whole tables between given limits, where they are few."""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.figures.lattice import Ints

LARGEST_LIST = 20_000  # partly filled tables kept while whole ones are listed


def list_tables(rows: Any, low: Ints, high: Ints, most: Ints) -> Ints | None:
    """All whole 0 <= m <= most with low <= rows @ m <= high, one per row; None if too many.

    Partly filled tables grow cell by cell; those whose missing part cannot meet the limits are
    dropped at once.

    >>> list_tables(np.array([[1, 2]]), np.array([4]), np.array([4]), np.array([9, 9])).tolist()
    [[0, 2], [2, 1], [4, 0]]
    """
    cells = rows.shape[1]
    partial = np.zeros((1, 0), dtype=np.int64)
    sums = np.zeros((1, len(rows)), dtype=np.int64)
    for j in range(cells):
        rest = rows[:, j + 1 :] * most[j + 1 :]
        least, largest = np.minimum(rest, 0).sum(axis=1), np.maximum(rest, 0).sum(axis=1)
        steps = np.arange(int(most[j]) + 1)
        if len(partial) * len(steps) * max(1, len(rows)) > 500 * LARGEST_LIST:
            return None
        grown = sums[:, None, :] + steps[None, :, None] * rows[:, j]
        open_ = np.all((grown + least <= high) & (grown + largest >= low), axis=2)
        at, count = np.nonzero(open_)
        if len(at) > LARGEST_LIST:
            return None
        partial = np.hstack([partial[at], steps[count][:, None]])
        sums = grown[at, count]
    return partial
