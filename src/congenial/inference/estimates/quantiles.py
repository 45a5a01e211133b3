"""Medians and quantiles of an ordered attribute in bins, interpolated inside a bin.

With F(v) the number of people below v, linear inside every bin, the quantile v of order p solves
F(v) - p N = 0: a sum of cells whose error has a public law. The confidence set is { v : |F(v) -
p N| of the estimates <= quantile of |its error| }, which keeps its level with any law and any
bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from congenial.data.advance import one_by_one
from congenial.data.arrays import Floats
from congenial.data.attribute import Attribute
from congenial.inference.estimates.cell_estimates import CellEstimates, Weights
from congenial.inference.estimates.quantities import Ends, IntervalCover, Quantity

METHOD = "inversion of the simulated distribution of the cumulated count"
NOBODY = "nobody is there: the quantile of an empty group is not defined"
MAY_BE_EMPTY = "nobody may be there: the quantile of an empty group is not defined"
OPEN = "reaches into an open class"
BY_NOISE_ALONE = 0.001  # the chance with which nobody may look like somebody
STEPS = 8  # points looked at inside a bin
HALVINGS = 10
AT_ONCE = 600  # bins whose errors are simulated together: 48 MB


@dataclass(frozen=True, eq=False)
class OrderedQuantile(Quantity):
    """The quantile of order `probability` in each group; `bins[g]` has one row for each bin."""

    source: CellEstimates
    bins: list[Weights]
    attribute: Attribute
    probability: float

    @cached_property
    def _groups(self) -> list[_Cuts]:
        counts = [bins @ self.source.cells for bins in self.bins]
        return [_Cuts(count, self.probability) for count in counts]

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        """In which groups published figures tell how many people are there."""
        totals = [sp.csr_array(np.ones((1, bins.shape[0]))) @ bins for bins in self.bins]
        return self.source.known(sp.csr_array(sp.vstack(totals)))

    @cached_property
    def values(self) -> Floats:
        """The interpolated quantile; nan in a bin without an edge, and where nobody seems to be."""
        return np.array(
            [self._value(cuts.root) if cuts.people > 0 else np.nan for cuts in self._groups]
        )

    def _value(self, place: float, outwards: int = 0) -> float:
        """The number at a place counted in bins.

        Inside a bin without an edge: that of its ends which lies `outwards` (-1 or 1).
        """
        intervals = self.attribute.intervals
        if self.attribute.kind == "integers":  # the least level that reaches the share
            return float(intervals[max(int(np.ceil(place)) - 1, 0)][0] or 0)
        bin_ = min(int(place), len(intervals) - 1)
        lower, upper = (np.nan if end is None else float(end) for end in intervals[bin_])
        share = place - bin_
        if share in (0.0, 1.0) and np.isfinite(end := (lower, upper)[int(share)]):
            return end
        if np.isnan(lower) or np.isnan(upper):
            ends = {-1: (lower, -np.inf), 1: (upper, np.inf), 0: (np.nan, np.nan)}[outwards]
            return ends[1] if np.isnan(ends[0]) else ends[0]
        return lower + share * (upper - lower)

    def sizes(self) -> Floats:
        """|error| of the cumulated count at the estimate."""
        return np.column_stack([np.abs(cuts.errors_at(cuts.root)) for cuts in self._simulated()])

    def _simulated(self) -> Iterator[_SimulatedCuts]:
        """The groups with simulated errors, some at a time."""
        step = max(1, AT_ONCE // max(bins.shape[0] for bins in self.bins))
        starts = range(0, len(self.bins), step)
        for start in one_by_one(starts, "working out intervals of quantiles"):
            some = self.bins[start : start + step]
            errors = self.source.errors(sp.csr_array(sp.vstack(some)))
            ends = np.cumsum([bins.shape[0] for bins in some])[:-1]
            for at, own in enumerate(np.split(errors, ends, axis=1), start=start):
                in_bins = np.ascontiguousarray(own.T)
                yield _SimulatedCuts(self._groups[at], _at_edges(in_bins, self.probability))

    def ends(self, cover: IntervalCover) -> Ends:
        """The ends of each set."""
        each = zip(self._simulated(), self._known.tolist(), strict=True)
        intervals = [self._interval(cuts, cover, ranges) for cuts, ranges in each]
        low, high, notes = zip(*intervals, strict=True)
        return Ends(np.array(low), np.array(high), [METHOD] * len(intervals), list(notes))

    def _interval(
        self, cuts: _SimulatedCuts, cover: IntervalCover, known: bool
    ) -> tuple[float, float, str]:
        if known and cuts.group.people <= 0:
            return np.nan, np.nan, NOBODY
        first, last = cuts.ends(cover)
        low, high = self._value(first, -1), self._value(last, 1)
        if not known and cuts.may_be_empty():
            return low, high, MAY_BE_EMPTY
        return low, high, "" if np.isfinite(low) and np.isfinite(high) else OPEN


class _Cuts:
    """F(v) - p N of one group at the edges of its bins."""

    def __init__(self, in_bins: Floats, probability: float) -> None:
        self.estimates = _at_edges(in_bins, probability)
        self.people = float(np.sum(in_bins))

    @cached_property
    def root(self) -> float:
        """Where the estimates, made monotone, cross zero."""
        up = np.maximum.accumulate(self.estimates)
        down = np.minimum.accumulate(self.estimates[::-1])[::-1]
        middle = (up + down) / 2
        after = int(np.argmax(middle >= 0)) if (middle >= 0).any() else len(middle) - 1
        if after == 0:
            return 0.0
        rise = middle[after] - middle[after - 1]
        return after - (float(middle[after] / rise) if rise > 0 else 0.0)


@dataclass(frozen=True)
class _SimulatedCuts:
    """The same with joint draws of the errors at the edges, (edges, DRAWS)."""

    group: _Cuts
    errors: Floats

    @property
    def root(self) -> float:
        """Where the estimates cross zero."""
        return self.group.root

    @property
    def last(self) -> int:
        """The number of the last edge."""
        return len(self.group.estimates) - 1

    def may_be_empty(self) -> bool:
        """Whether the noise alone could make nobody look like so many."""
        of_people = self.errors[-1] - self.errors[0]
        return self.group.people <= float(np.quantile(of_people, 1 - BY_NOISE_ALONE))

    def errors_at(self, place: float) -> Floats:
        """Simulated errors at a place counted in bins."""
        at = min(int(place), self.last - 1)
        share = place - at
        return np.asarray(self.errors[at] * (1 - share) + self.errors[at + 1] * share)

    def _inside(self, place: float, cover: IntervalCover) -> bool:
        there = np.interp(place, np.arange(self.last + 1), self.group.estimates)
        return bool(cover.reaches(np.abs(self.errors_at(place)), abs(float(there))))

    def ends(self, cover: IntervalCover) -> tuple[float, float]:
        """First and last place of the set, counted in bins."""
        edges = [float(edge) for edge in range(self.last + 1) if self._inside(edge, cover)]
        start, stop = min([self.root, *edges]), max([self.root, *edges])
        return self._end(start, -1, cover), self._end(stop, 1, cover)

    def _end(self, near: float, sign: int, cover: IntervalCover) -> float:
        """From a place that belongs to the set outwards, to the next edge at most."""
        edge = np.floor(near) if sign < 0 else np.ceil(near)
        if edge == near:
            edge = near + sign
        if not 0 <= edge <= self.last:
            return near
        points = near + (edge - near) * np.arange(STEPS + 1) / STEPS
        last = max((i for i, point in enumerate(points) if self._inside(point, cover)), default=0)
        if last == STEPS:
            return float(edge)
        near, far = float(points[last]), float(points[last + 1])
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            near, far = (middle, far) if self._inside(middle, cover) else (near, middle)
        return far


def _at_edges(in_bins: Floats, probability: float) -> Floats:
    """F - p N at the edges of bins, from numbers in the bins; bins are the first axis."""
    below = np.concatenate([np.zeros_like(in_bins[:1]), np.cumsum(in_bins, axis=0)])
    return np.asarray(below - probability * below[-1])
