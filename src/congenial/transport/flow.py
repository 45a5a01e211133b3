"""The largest matching of mass along given pairs of points: a flow in integers.

The flow is found by scipy's Dinic. It holds 32 bits, so larger masses are sent in rounds, coarse
units first, each round in the graph of what the last one left over; the result is exact for masses
of any size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from congenial.pairs.scenarios.statistic_laws import Floats
from congenial.transport.certificates import Side

Ints = npt.NDArray[np.int64]

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
