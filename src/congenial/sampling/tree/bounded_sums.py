"""Bounds on sums that a tree of sums can take: sets nested inside groups of known total."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from congenial.figures.lattice import Ints
from congenial.figures.limits import FAR, Limits
from congenial.figures.support import Support


@dataclass(frozen=True, eq=False)
class BoundedSum:
    """The sum over some cells of one group lies between least and most (FAR: no bound)."""

    cells: Ints = field(repr=False)
    least: int
    most: int


def nested_sums(limits: Limits, support: Support) -> tuple[list[BoundedSum], Ints]:
    """Bounds on sums that are nested inside groups of known total, small ones first, and the rows
    of `limits` that they stand for.
    """
    labels = support.labels.reshape(-1)
    found: list[tuple[int, Ints, int, int]] = []
    for row in range(limits.sums):
        at = limits.rows.indices[limits.rows.indptr[row] : limits.rows.indptr[row + 1]]
        weights = limits.rows.data[limits.rows.indptr[row] : limits.rows.indptr[row + 1]]
        group = int(labels[at[0]])
        if np.any(weights != weights[0]) or np.any(labels[at] != group):
            continue
        if group < 0 or support.tied[group]:
            continue
        ends = [(int(limits.least[row]), -FAR), (int(limits.most[row]), FAR)]
        w = int(weights[0])
        (low, _), (high, _) = ends if w > 0 else reversed(ends)
        least = -FAR if abs(low) >= FAR else -(-low // w)
        most = FAR if abs(high) >= FAR else high // w
        found.append((row, np.sort(at).astype(np.int64), least, most))
    found.sort(key=lambda one: len(one[1]))
    top, sums, rows = np.full(labels.size, -1), list[BoundedSum](), []
    for row, cells, least, most in found:
        below, times = np.unique(top[cells], return_counts=True)
        if all(t < 0 or len(sums[t].cells) == n for t, n in zip(below, times, strict=True)):
            top[cells] = len(sums)
            sums.append(BoundedSum(cells, least, most))
            rows.append(row)
    return sums, np.array(rows, dtype=np.int64)
