"""Connected parts of a graph: sums that share cells, cells that share sums."""

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
    import scipy.sparse as sp  # where there is something to join, not at every start
    from scipy.sparse.csgraph import connected_components

    edges = sp.coo_matrix((np.ones(len(ends[0]), dtype=np.int8), ends), shape=(nodes, nodes))
    return np.asarray(connected_components(edges, directed=False)[1], dtype=np.int64)
