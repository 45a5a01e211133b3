"""The least distance within which enough mass can be matched, in several dimensions.

For one threshold the question is a flow along all pairs of points within it. They are many, and few
are needed: start with nearest neighbours; when the flow falls short, left-over mass can reach some
points and not others, and only a pair that leads from the former to the latter can help. Add
the nearest such pairs and try again. When there is none the flow is the largest, and the nearest
pair across is the next threshold worth trying, so the bracket closes on a distance that occurs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from itertools import product

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.pairs.scenarios.statistic_laws import Floats
from congenial.transport.certificates import Norm, Side, lengths
from congenial.transport.flow import Edges, Ints, Matching, largest

_NEAREST = 8  # pairs proposed for each point at a time
_MOST_PAIRS = 60_000_000  # pairs looked at when there is no tree to ask
_P = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


def least_distance(
    left: Side, right: Side, need: int, norm: Norm, start: float
) -> tuple[float, Matching]:
    """The least w within which mass `need` can be matched, and the matching.

    `start` is a lower bound of w, from one-dimensional projections for example.
    """
    search = _Search(left, right, need, norm)
    low = start
    found, gap = search.within(low)
    while found.amount < need:
        if math.isinf(gap):
            return gap, found
        low = gap
        found, gap = search.within(1.2 * gap)
    high = found.longest
    best = found
    while low < high:
        w = low + (high - low) / 2
        found, gap = search.within(w if low <= w < high else low)
        if found.amount >= need:
            best, high = found, found.longest
        else:
            low = min(gap, high)
    return best.longest, best


class _Search:
    """Matchings within a threshold; pairs found once are remembered."""

    def __init__(self, left: Side, right: Side, need: int, norm: Norm) -> None:
        self.left, self.right, self.need, self.norm = left, right, need, norm
        kind = _Brute if norm == "hamming" else _Tree
        x, y = left.low, right.low
        self.pairs = kind(y, norm).nearest(x, _NEAREST)
        back = kind(x, norm).nearest(y, _NEAREST)
        self.pairs = self.pairs.merged(Edges(back.j, back.i, back.length))
        self.kind = kind

    def within(self, w: float) -> tuple[Matching, float]:
        """The largest matching within w (or one that is enough), and the next distance to try."""
        while True:
            found = largest(self.left, self.right, self.pairs.within(w))
            if found.amount >= self.need:
                return found, w
            across = self._across(found)
            short = across.within(w)
            if not len(short.i):
                return found, float(across.length.min(initial=math.inf))
            known = len(self.pairs.i)
            self.pairs = self.pairs.merged(across)
            assert len(self.pairs.i) > known, "a largest flow leaves no known pair across its cut"

    def _across(self, found: Matching) -> Edges:
        """Nearest pairs from points that left-over mass can reach to points it cannot."""
        here, there = found.cut()
        i, j = np.flatnonzero(here), np.flatnonzero(~there)
        near = self.kind(self.right.low[j], self.norm).nearest(self.left.low[i], _NEAREST)
        return Edges(i[near.i], j[near.j], near.length)


class _Neighbours(ABC):
    """Nearest points among `y`."""

    def __init__(self, y: Floats, norm: Norm) -> None:
        self.y, self.norm = y, norm

    def nearest(self, x: Floats, k: int) -> Edges:
        """For each row of x its k nearest rows of y."""
        k = min(k, len(self.y))
        if not k or not len(x):
            none = np.zeros(0, dtype=np.int64)
            return Edges(none, none, np.zeros(0))
        j = self._indices(x, k).reshape(-1)
        i = np.repeat(np.arange(len(x)), k)
        return Edges(i, j, lengths(x[i], self.y[j], self.norm))

    @abstractmethod
    def _indices(self, x: Floats, k: int) -> Ints: ...


class _Tree(_Neighbours):
    """By a k-d tree."""

    def __init__(self, y: Floats, norm: Norm) -> None:
        from scipy.spatial import cKDTree

        super().__init__(y, norm)
        self.tree = cKDTree(y) if len(y) else None

    def _indices(self, x: Floats, k: int) -> Ints:
        assert self.tree is not None
        return np.asarray(self.tree.query(x, k=k, p=_P[self.norm])[1], dtype=np.int64)


class _Brute(_Neighbours):
    """By looking at all pairs, for the Hamming distance."""

    def _indices(self, x: Floats, k: int) -> Ints:
        if len(x) * len(self.y) > _MOST_PAIRS:
            raise StructureError(
                f"{len(x) * len(self.y):,} pairs of databases would have to be compared.",
                remedy="Describe the scenarios by a statistic (level 'query').",
            )
        apart = np.zeros((len(x), len(self.y)), dtype=np.int32)
        for one, other in zip(x.T, self.y.T, strict=True):
            apart += one[:, None] != other
        chosen: npt.NDArray[np.int64] = np.argpartition(apart, k - 1, axis=1)[:, :k]
        return chosen


def projections(x: Floats, norm: Norm) -> list[Floats]:
    """Coordinates, and for l1 all signed sums of up to four: none moves more than the point does.

    One-dimensional distances between projections bound the distance from below.
    """
    if norm == "hamming":
        return []
    found = [np.ascontiguousarray(column) for column in x.T]
    if norm == "l1" and 1 < x.shape[1] <= 4:
        for signs in product((1.0, -1.0), repeat=x.shape[1] - 1):
            found.append(x @ np.array([1.0, *signs]))
    return found
