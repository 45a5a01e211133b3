"""What the figures leave of a table, slice by slice: for slices that no figure ties together.

The slices of a table are its groups of some axes (one per county, say), all with the same number of
cells. Where no known sum and no tie has cells in two of them, the lattice of the table is the
product of the lattices of its slices, so that each slice has a `Support` of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from congenial.figures.integers import Ints
from congenial.figures.limits import Limits
from congenial.figures.support import Support
from congenial.figures.ties import Pattern, TieKind, Ties


def runs_across(known: Support, slice_of: Ints) -> bool:
    """Whether a known sum or a tie has cells in two slices; `slice_of`: the slice of each cell."""
    first, last = _first_and_last(known, slice_of)
    if np.any(first != last):
        return True
    return any(np.any(first[kind.groups] != first[kind.groups[:, :1]]) for kind in known.ties.kinds)


def bounds_across(bounds: Limits, slice_of: Ints) -> bool:
    """Whether a bound on a sum has cells in two slices."""
    at, start = slice_of[bounds.rows.indices], bounds.rows.indptr
    return any(np.any(at[i:j] != at[i]) for i, j in pairwise(start))


def _first_and_last(known: Support, slice_of: Ints) -> tuple[Ints, Ints]:
    """The first and the last slice that each group has cells in."""
    labels = known.labels.reshape(-1)
    inside = labels >= 0
    first = np.full(known.groups, slice_of.max(initial=0), dtype=np.int64)
    last = np.zeros(known.groups, dtype=np.int64)
    np.minimum.at(first, labels[inside], slice_of[inside])
    np.maximum.at(last, labels[inside], slice_of[inside])
    return first, last


@dataclass(frozen=True, eq=False)
class SlicedTies:
    """Ties of one pattern, those of one slice after those of another; groups as numbered there."""

    pattern: Pattern
    groups: Ints = field(repr=False)
    values: Ints | None = field(repr=False)
    start: Ints = field(repr=False)

    def of(self, number: int) -> TieKind | None:
        """Those of one slice; None where it has none."""
        own = slice(*self.start[number : number + 2].tolist())
        if own.start == own.stop:
            return None
        values = None if self.values is None else self.values[own]
        return TieKind(self.groups[own], self.pattern, values)


@dataclass(frozen=True, eq=False)
class SlicedSupport:
    """The supports of all slices, as arrays: one is made when it is asked for.

    `labels` has one line a slice, groups numbered from 0 within each; `totals` are their sums,
    slice after slice, from `start` on.
    """

    names: tuple[str, ...]
    labels: Ints = field(repr=False)
    totals: Ints | None = field(repr=False)
    start: Ints = field(repr=False)
    ties: tuple[SlicedTies, ...] = ()

    @classmethod
    def cut(cls, known: Support, slice_of: Ints, order: Ints) -> SlicedSupport:
        """The slices of a support that none of its sums `runs_across`.

        `slice_of`: the slice of each cell; `order`: the cells, slice after slice.
        """
        slices = int(slice_of.max(initial=0)) + 1
        home = _first_and_last(known, slice_of)[0]
        by_slice = np.argsort(home, kind="stable")
        start = np.searchsorted(home[by_slice], np.arange(slices + 1))
        local = np.empty(known.groups, dtype=np.int64)
        local[by_slice] = np.arange(known.groups) - start[home[by_slice]]
        labels = known.labels.reshape(-1)[order]
        labels = np.where(labels >= 0, np.append(local, 0)[np.maximum(labels, -1)], labels)
        totals = None if known.totals is None else known.totals[by_slice]
        ties = tuple(_cut_ties(kind, home, local, slices) for kind in known.ties.kinds)
        return cls(known.names, labels.reshape(slices, -1), totals, start, ties)

    def of(self, number: int) -> Support:
        """The support of one slice, over its cells in order."""
        totals = self.totals
        if totals is not None:
            totals = totals[self.start[number] : self.start[number + 1]]
        ties = [kind for kind in (one.of(number) for one in self.ties) if kind is not None]
        return Support(self.names, self.labels[number], totals, Ties(ties))


def _cut_ties(kind: TieKind, home: Ints, local: Ints, slices: int) -> SlicedTies:
    at = home[kind.groups[:, 0]]
    order = np.argsort(at, kind="stable")
    values = None if kind.values is None else kind.values[order]
    start = np.searchsorted(at[order], np.arange(slices + 1))
    return SlicedTies(kind.pattern, local[kind.groups[order]], values, start)


@dataclass(frozen=True, eq=False)
class SlicedLimits:
    """The bounds of all slices: one line a slice, and bounds on sums slice after slice."""

    low: Ints = field(repr=False)
    high: Ints = field(repr=False)
    sums: Limits = field(repr=False)
    start: Ints = field(repr=False)

    @classmethod
    def cut(cls, bounds: Limits, slice_of: Ints, order: Ints) -> SlicedLimits:
        """The slices of bounds none of which runs across them; arguments as for supports."""
        slices = int(slice_of.max(initial=0)) + 1
        rows = bounds.rows[:, order]
        at = slice_of[bounds.rows.indices[bounds.rows.indptr[:-1]]]
        by_slice = np.argsort(at, kind="stable")
        low, high = bounds.low[order], bounds.high[order]
        ends = (bounds.least[by_slice], bounds.most[by_slice])
        return cls(
            low.reshape(slices, -1),
            high.reshape(slices, -1),
            Limits(low, high, rows[by_slice], *ends),
            np.searchsorted(at[by_slice], np.arange(slices + 1)),
        )

    def of(self, number: int) -> Limits:
        """The bounds of one slice."""
        own = slice(*self.start[number : number + 2].tolist())
        cells = self.low.shape[1]
        rows = self.sums.rows[own][:, number * cells : (number + 1) * cells]
        least, most = self.sums.least[own], self.sums.most[own]
        return Limits(self.low[number], self.high[number], rows.tocsr(), least, most)
