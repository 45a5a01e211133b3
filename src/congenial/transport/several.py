"""Several dimensions: laws of vectors, or of whole databases under the Hamming distance."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from congenial.data.arrays import Floats, Ints
from congenial.errors import GuaranteeError, StructureError
from congenial.pairs.stated_laws import (
    LARGEST_INT64,
    StatedDiscrete,
    StatedLogDiscrete,
)
from congenial.transport.certificates import (
    Certificate,
    Coupling,
    Distance,
    Norm,
    Side,
    empirical,
    lengths,
)
from congenial.transport.line import UNIT, LineCells, OneDimensional, least, whole_masses

# ---- flow ---------------------------------------------------------------------------------------
#
# The largest matching of mass along given pairs of points: a flow in integers.
#
# The flow is found by scipy's Dinic. It holds 32 bits, so larger masses are sent in rounds,
# coarse units first, each round in the graph of what the last one left over; the result is exact
# for masses of any size.


_BITS = 30  # capacities below 2^30 are safe in scipy's flow; it does not notice larger ones


@dataclass(frozen=True, eq=False)
class Edges:
    """Pairs of points, no pair twice, and their distances, rounded up."""

    i: Ints
    j: Ints
    length: Floats

    def within(self, w: float) -> Edges:
        """The pairs at most w apart."""
        keep = self.length <= w
        return Edges(self.i[keep], self.j[keep], self.length[keep])

    def merged(self, other: Edges) -> Edges:
        """All pairs of both."""
        i, j = np.concatenate([self.i, other.i]), np.concatenate([self.j, other.j])
        length = np.concatenate([self.length, other.length])
        key = i * (int(j.max(initial=0)) + 1) + j
        keep = np.unique(key, return_index=True)[1]
        return Edges(i[keep], j[keep], length[keep])


@dataclass(frozen=True, eq=False)
class Matching:
    """Mass `sent[k]` moved along edge k; what is left over on both sides."""

    edges: Edges
    sent: npt.NDArray[Any]
    rest_left: npt.NDArray[Any]
    rest_right: npt.NDArray[Any]

    @property
    def amount(self) -> int:
        """The mass that is matched."""
        return int(self.sent.sum()) if len(self.sent) else 0

    @property
    def longest(self) -> float:
        """The longest pair in use."""
        return float(self.edges.length[self.sent > 0].max(initial=0.0))

    def cut(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Points on either side that left-over mass on the left can still reach.

        If no further pair leads from the first set out of the second one, the matching is the
        largest possible.
        """
        n, m = len(self.rest_left), len(self.rest_right)
        back, open_ = np.flatnonzero(self.sent > 0), np.flatnonzero(self.rest_left > 0)
        rows = [self.edges.i, n + self.edges.j[back], np.full(len(open_), n + m)]
        columns = [n + self.edges.j, self.edges.i[back], open_]
        graph = _graph(rows, columns, np.ones(sum(map(len, rows)), dtype=np.int32), n + m + 1)
        reached = np.zeros(n + m + 1, dtype=bool)
        reached[breadth_first_order(graph, n + m, return_predecessors=False)] = True
        return reached[:n], reached[n : n + m]


def largest(left: Side, right: Side, edges: Edges) -> Matching:
    """The largest matching along the edges, exact in integers of any size."""
    rest_left, rest_right = left.masses.copy(), right.masses.copy()
    sent = np.zeros(len(edges.i), dtype=rest_left.dtype)
    bound = min(int(rest_left.sum()), int(rest_right.sum()))
    while len(edges.i):
        shift = max(0, bound.bit_length() - _BITS)
        moved = _round(edges, rest_left, rest_right, sent, shift)
        sent += moved
        np.subtract.at(rest_left, edges.i, moved)
        np.subtract.at(rest_right, edges.j, moved)
        if shift == 0:
            break
        # what a further round can add crosses a cut of arcs that have less than a unit left each
        bound = (len(rest_left) + len(rest_right) + int(np.count_nonzero(sent))) << shift
    return Matching(edges, sent, rest_left, rest_right)


def _round(
    edges: Edges, rest_left: Any, rest_right: Any, sent: Any, shift: int
) -> npt.NDArray[Any]:
    """Largest flow in the residual graph, in units of 2^shift; what to add to `sent`."""
    n, m = len(rest_left), len(rest_right)
    back = np.flatnonzero(sent > 0)
    rows = [edges.i, n + edges.j[back], np.full(n, n + m), n + np.arange(m)]
    columns = [n + edges.j, edges.i[back], np.arange(n), np.full(m, n + m + 1)]
    most = (1 << _BITS) - 1  # with as much flow against it, what is left still fits 32 bits
    capacity = [
        np.full(len(edges.i), most),
        _units(sent[back], shift, most),
        _units(rest_left, shift, most),
        _units(rest_right, shift, most),
    ]
    graph = _graph(rows, columns, np.concatenate(capacity).astype(np.int32), n + m + 2)
    flow = maximum_flow(graph, n + m, n + m + 1, method="dinic").flow
    net = np.asarray(flow[edges.i, n + edges.j]).reshape(-1)  # antisymmetric: forth minus back
    return net.astype(sent.dtype) * (1 << shift)


def _graph(rows: list[Any], columns: list[Any], values: Any, size: int) -> Any:
    where = np.concatenate(rows).astype(np.int32), np.concatenate(columns).astype(np.int32)
    return sp.csr_array((values, where), shape=(size, size))


def _units(amount: Any, shift: int, most: int) -> Ints:
    return np.minimum(amount // (1 << shift), most).astype(np.int64)  # type: ignore[no-any-return]


# ---- threshold ----------------------------------------------------------------------------------
#
# The least distance within which enough mass can be matched, in several dimensions.
#
# For one threshold the question is a flow along all pairs of points within it. They are many, and
# few are needed: start with nearest neighbours; when the flow falls short, left-over mass can
# reach some points and not others, and only a pair that leads from the former to the latter can
# help. Add the nearest such pairs and try again. When there is none the flow is the largest, and
# the nearest pair across is the next threshold worth trying, so the bracket closes on a distance
# that occurs.


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
    matching, gap = search.within(low)
    while matching.amount < need:
        if math.isinf(gap):
            return gap, matching
        low = gap
        matching, gap = search.within(1.2 * gap)
    high = matching.longest
    best = matching
    while low < high:
        w = low + (high - low) / 2
        matching, gap = search.within(w if low <= w < high else low)
        if matching.amount >= need:
            best, high = matching, matching.longest
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
            matching = largest(self.left, self.right, self.pairs.within(w))
            if matching.amount >= self.need:
                return matching, w
            across = self._across(matching)
            short = across.within(w)
            if not len(short.i):
                return matching, float(across.length.min(initial=math.inf))
            before = len(self.pairs.i)
            self.pairs = self.pairs.merged(across)
            assert len(self.pairs.i) > before, "a largest flow leaves no known pair across its cut"

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
        for column, other in zip(x.T, self.y.T, strict=True):
            apart += column[:, None] != other
        chosen: npt.NDArray[np.int64] = np.argpartition(apart, k - 1, axis=1)[:, :k]
        return chosen


def projections(x: Floats, norm: Norm) -> list[Floats]:
    """Coordinates, and for l1 all signed sums of up to four: none moves more than the point does.

    One-dimensional distances between projections bound the distance from below.
    """
    if norm == "hamming":
        return []
    projected = [np.ascontiguousarray(column) for column in x.T]
    if norm == "l1" and 1 < x.shape[1] <= 4:
        for signs in product((1.0, -1.0), repeat=x.shape[1] - 1):
            projected.append(x @ np.array([1.0, *signs]))
    return projected


def in_several_dimensions(
    a: OneDimensional, b: OneDimensional, delta: Fraction, norm: Norm
) -> Distance:
    """The least W for two discrete laws of vectors, by a threshold on distances and a flow."""
    if not (
        isinstance(a, StatedDiscrete | StatedLogDiscrete)
        and isinstance(b, StatedDiscrete | StatedLogDiscrete)
    ):
        raise StructureError(
            "distances in several dimensions work only for discrete distributions.",
            remedy="Give a pmf or a sample.",
        )
    if not delta and not (isinstance(a, StatedDiscrete) and isinstance(b, StatedDiscrete)):
        raise GuaranteeError(
            "a pmf was rounded (its masses do not add up to one exactly), so W_inf cannot be "
            "certified in several dimensions.",
            remedy="Give the masses as fractions or integers, or ask for (W, delta)-closeness.",
        )
    left, right, total = _sides(a, b)
    need = math.ceil((1 - delta) * total)
    start = _lower_bound(left, right, total, need, norm)
    value, matching = least_distance(left, right, need, norm, start)

    def prove() -> Certificate:
        used = matching.sent > 0
        pairs = np.stack([matching.edges.i[used], matching.edges.j[used]], axis=1)
        return Coupling(left, right, pairs, matching.sent[used], total, value, delta, norm)

    exact = isinstance(a, StatedDiscrete) and isinstance(b, StatedDiscrete)
    return Distance(value, value if exact else start, delta, norm, empirical(a, b), prove)


def _sides(
    a: StatedDiscrete | StatedLogDiscrete, b: StatedDiscrete | StatedLogDiscrete
) -> tuple[Side, Side, int]:
    """Both laws with masses out of one total; rounded masses are rounded down."""
    totals = [law.total if isinstance(law, StatedDiscrete) else UNIT for law in (a, b)]
    common = math.lcm(*totals)
    sides = []
    for law, total in zip((a, b), totals, strict=True):
        masses = law.masses if isinstance(law, StatedDiscrete) else whole_masses(law, "down")
        kind = np.int64 if common < LARGEST_INT64 else object
        points = law.points if law.points.ndim == 2 else law.points[:, None]
        sides.append(Side(points, points, masses.astype(kind) * (common // total)))
    return sides[0], sides[1], common


def _lower_bound(left: Side, right: Side, total: int, need: int, norm: Norm) -> float:
    """No coupling of vectors moves less than it moves their projections."""
    bound = 0.0
    lines = zip(projections(left.low, norm), projections(right.low, norm), strict=True)
    for x, y in lines:
        sides = []
        for line, side in ((x, left), (y, right)):
            order = np.argsort(line, kind="stable")
            sides.append(LineCells(line[order], line[order], side.masses[order], total))
        bound = max(bound, least(sides[0], sides[1], need))
    return bound * (1 - 1e-12)  # sums of coordinates were rounded
