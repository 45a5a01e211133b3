"""Trees of weighted sums: double geometric noise on cells and on sums at several levels."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from congenial.errors import StructureError
from congenial.figures.limits import FAR
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.tree_of_sums import NO_BOUND, NestedSums, NoisyCells, TreeOfSums


def noise_at_levels(levels: list[Any], eps_cell: Fraction, cells: int) -> TreeOfSums:
    """p(u) ~ exp(-eps_cell ||u||_1 - sum over sets v of eps_v |x_v|), given x_v = 0 at fixed ones.

    A level is a partition of the cells (a number for each; below zero: in no set) with the rate of
    its sets, or None where their sums are fixed. Each must split the sets of those that have fewer.

    """
    holder = np.full(cells, -1)  # the smallest set that holds a cell, so far
    parent, rate, fixed = list[int](), list[Fraction](), list[bool]()
    for labels, eps in sorted(levels, key=lambda level: len(np.unique(level[0][level[0] >= 0]))):
        kept = labels >= 0
        sets, first, place = np.unique(labels[kept], return_index=True, return_inverse=True)
        above = holder[kept][first]
        if np.any(above[place] != holder[kept]):
            raise StructureError(
                "the levels and the published totals do not nest.",
                remedy="List levels from coarse to fine, each splitting the one before, and "
                "publish totals of their nodes.",
            )
        holder[kept] = len(parent) + place
        parent += above.tolist()
        rate += [eps or Fraction(0)] * sets.size
        fixed += [eps is None] * sets.size
    # a cell in no set: one of half the rate in a set of its own, which has the other half
    free = np.flatnonzero(holder < 0)
    holder[free] = len(parent) + np.arange(free.size)
    parent, fixed = parent + [-1] * free.size, fixed + [False] * free.size
    sums = _innermost_first(holder, parent, fixed, rate + [eps_cell / 2] * free.size)
    laws = [DoubleGeometric(eps_cell / share) for share in ((1, 2) if free.size else (1,))]
    kind, nothing = np.isin(np.arange(cells), free).astype(np.int64), np.zeros(cells, np.int64)
    return TreeOfSums(NoisyCells(nothing, laws, kind, nothing - NO_BOUND, nothing + NO_BOUND), sums)


def _innermost_first(holder: Any, parent: Any, fixed: Any, rate: list[Fraction]) -> NestedSums:
    """The sets, given with larger ones first, numbered by depth from the deepest up."""
    depth = np.zeros(len(parent), dtype=np.int64)
    for v, above in enumerate(parent):
        depth[v] = depth[above] + 1 if above >= 0 else 0
    order = np.argsort(-depth, kind="stable")
    number = np.append(np.argsort(order), -1)
    far = np.full(len(order), FAR)
    return NestedSums(
        number[holder],
        number[np.array(parent, dtype=np.int64)[order]],
        np.array(fixed, dtype=bool)[order],
        [rate[v] for v in order.tolist()],
        -far,
        far,
    )
