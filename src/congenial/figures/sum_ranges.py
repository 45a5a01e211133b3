"""How small and how large a sum of counts can be, given the published figures.

Counts are not negative, so a sum is at most the smallest published sum that contains it, and at
least the published sums that it contains. Every true table keeps to these ranges: an interval for a
true count that is cut to them covers it as often as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.figures.figures import Figures
from congenial.figures.integers import Ints
from congenial.figures.limits import FAR, most_by_cell, most_by_group
from congenial.figures.support import LOOSE, Support, support
from congenial.figures.ties import TieKind


@dataclass(frozen=True)
class SumRanges:
    """least <= truth <= most for each sum; FAR where no published sum contains it.

    >>> ranges = SumRanges(np.array([0, 0, 2]), np.array([5, FAR, 9]))
    >>> [one.tolist() for one in ranges.ends(np.array([30, -4, 8]), np.array([3, 3, 3]))]
    [[2, 0, 5], [5, 3, 9]]
    """

    least: Ints = field(repr=False)
    most: Ints = field(repr=False)

    def ends(self, values: Any, half: Any) -> tuple[Any, Any]:
        """Ends of intervals of `half` to either side, cut to what can be.

        A value that cannot be reaches as far inwards as the nearest one that can: the interval is
        never empty, and holds every possible truth that the uncut one held.
        """
        low = np.maximum(np.minimum(values, self.most) - half, self.least)
        high = np.minimum(np.maximum(values, self.least) + half, self.most)
        return low, high


def cell_ranges(known: Support) -> SumRanges:
    """The ranges of single cells, flat: one that is a published sum by itself is known."""
    labels, most = known.labels.reshape(-1), most_by_cell(known)
    if known.totals is None or not known.groups:
        return SumRanges(np.zeros(labels.size, dtype=np.int64), most)
    alone = (known.sizes == 1) & ~known.tied
    least = np.append(np.where(alone, known.totals, 0), 0)
    return SumRanges(least[np.where(labels >= 0, labels, -1)], most)


def table_ranges(figures: Figures, names: tuple[str, ...]) -> SumRanges:
    """The ranges of every cell of a table, in its shape."""
    flat = cell_ranges(support(figures, names))
    shape = tuple(axis.size for axis in figures.schema.axes(names))
    return SumRanges(flat.least.reshape(shape), flat.most.reshape(shape))


def indexed_ranges(known: Support, index: Any, sums: int) -> SumRanges:
    """The ranges of disjoint sums: `index` names the sum of each cell, -1 for none."""
    flat = index.reshape(-1)
    inside = np.flatnonzero(flat >= 0)
    cells = (np.ones(len(inside), np.int64), (flat[inside], inside))
    return sum_ranges(known, sp.csr_array(cells, (sums, flat.size)))


def sum_ranges(known: Support, sums: Any) -> SumRanges:
    """The ranges of sums of cells: a sparse matrix, a row for each sum and a column for each cell.

    >>> from congenial import Schema, Table, margin, publish
    >>> from congenial.figures.support import support
    >>> schema = Schema.from_dict({"county": {"levels": ["a", "b"]}, "sex": {"levels": ["f", "m"]}})
    >>> figures = publish(Table(schema, ["county", "sex"], [[3, 1], [5, 2]]), margin("county"))
    >>> known = support(figures, ("county", "sex"))
    >>> found = sum_ranges(known, sp.csr_array([[1, 0, 0, 0], [1, 0, 1, 1]]))
    >>> found.least.tolist(), found.most.tolist()
    ([0, 7], [4, 11])
    """
    labels = known.labels.reshape(-1)
    if known.totals is None or not known.groups:
        return SumRanges(*_nothing_known(sums, labels))
    met = _groups_met(known, sums)
    row, group = np.repeat(np.arange(met.shape[0]), np.diff(met.indptr)), met.indices
    alone = ~known.tied[group]
    whole = alone & (met.data == known.sizes[group])
    least = np.bincount(row[whole], known.totals[group[whole]], met.shape[0])
    most = np.bincount(row[alone], known.totals[group[alone]], met.shape[0])
    each = most_by_group(known)
    for kind in known.ties.kinds:
        most = most + _most_of_tied(kind, each, row, group, met.shape[0])
    most = np.where(_any(sums, labels == LOOSE), FAR, np.minimum(most, FAR))
    return SumRanges(least.astype(np.int64), most.astype(np.int64))


def _nothing_known(sums: Any, labels: Ints) -> tuple[Ints, Ints]:
    """Without published sums: cells known to be empty, and all others."""
    inside = _any(sums, labels == LOOSE) | _any(sums, labels >= 0)
    return np.zeros(sums.shape[0], dtype=np.int64), np.where(inside, FAR, 0)


def _any(sums: Any, cells: Any) -> Any:
    """Which sums have one of the cells."""
    return np.asarray(sums @ cells.astype(np.int64)).reshape(-1) > 0


def _groups_met(known: Support, sums: Any) -> Any:
    """How many cells of each group are in each sum."""
    labels = known.labels.reshape(-1)
    inside = np.flatnonzero(labels >= 0)
    shape = (labels.size, known.groups)
    of_group = sp.csr_array((np.ones(len(inside), np.int64), (inside, labels[inside])), shape)
    return sp.csr_array(sp.csr_array(sums, dtype=np.int64) @ of_group)


def _most_of_tied(kind: TieKind, each: Ints, row: Ints, group: Ints, rows: int) -> Any:
    """For each sum, the most that its part in ties of one kind can be; `each`: of every group.

    Part by part: the smallest published sum that contains the whole part, or what its groups can
    be one by one, whichever is less.
    """
    tie, place = np.full(len(each), -1), np.zeros(len(each), dtype=np.int64)
    ties, width = kind.groups.shape
    tie[kind.groups] = np.arange(ties)[:, np.newaxis]
    place[kind.groups] = np.arange(width)
    inside = tie[group] >= 0
    row, group = row[inside], group[inside]
    part, of_part = np.unique(row * ties + tie[group], return_inverse=True)
    together = _smallest(kind, part % ties, of_part, place[group])
    apart = np.bincount(of_part, each[group], len(part))
    return np.bincount(part // ties, np.minimum(apart, together), rows)


def _smallest(kind: TieKind, tie: Ints, part: Ints, place: Ints) -> Ints:
    """For each part of a tie, the smallest published sum that contains all of its groups."""
    assert kind.values is not None
    usable = np.flatnonzero(np.all(kind.pattern.equations >= 0, axis=1))
    contains = sp.csr_array((kind.pattern.equations[usable] > 0).T.astype(np.int64))
    shape = (len(tie), contains.shape[0])
    taken = sp.csr_array((np.ones(len(part), np.int64), (part, place)), shape)
    shared = sp.coo_array(taken @ contains)
    all_in = shared.data == np.asarray(taken.sum(axis=1)).reshape(-1)[shared.row]
    found = np.full(len(tie), FAR)
    row, equation = shared.row[all_in], usable[shared.col[all_in]]
    np.minimum.at(found, row, kind.values[tie[row], equation])
    return found
