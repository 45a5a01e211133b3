"""Connected parts of a graph, by contracting it (Liu and Tarjan, 2022: every node points to a
neighbour of least number, then to where that points, until nothing moves).

As quick as a search, and without `scipy.sparse.csgraph`, whose import takes longer than the parts
of most tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def connected(ends: tuple[Any, Any], nodes: int) -> NDArray[np.int64]:
    """The part of each of the nodes 0, 1, 2, ... of a graph whose edge i joins ends[0][i] and
    ends[1][i]; parts are numbered in the order of their first nodes.

    >>> connected(([0, 3], [2, 4]), 5).tolist()
    [0, 1, 0, 2, 2]
    """
    points_to = np.arange(nodes)
    one, other = (np.asarray(side, dtype=np.int64) for side in ends)
    while one.size:
        np.minimum.at(points_to, np.maximum(one, other), np.minimum(one, other))
        points_to = _followed(points_to)
        one, other = points_to[one], points_to[other]
        apart = one != other
        one, other = one[apart], other[apart]
    firsts = points_to == np.arange(nodes)
    return np.asarray((np.cumsum(firsts) - 1)[points_to])


def _followed(points_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each node comes to when it follows what it points to."""
    further = points_to[points_to]
    while not np.array_equal(further, points_to):
        points_to, further = further, further[further]
    return points_to
