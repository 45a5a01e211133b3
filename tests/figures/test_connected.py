"""Connected parts of graphs, against scipy's search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from congenial.figures.connected import connected

SEED = 20261117
rng = np.random.default_rng(SEED)
ORDER = rng.permutation(500)
GRAPHS = {
    "no node": (([], []), 0),
    "no edge": (([], []), 3),
    "loops": (([1, 1], [1, 1]), 3),
    "few edges": (tuple(rng.integers(0, 900, (2, 400))), 900),
    "many edges": (tuple(rng.integers(0, 300, (2, 3000))), 300),
    "path": ((np.arange(499), np.arange(1, 500)), 500),
    "path backwards": ((np.arange(499, 0, -1), np.arange(498, -1, -1)), 500),
    "path in any order": ((ORDER[:-1], ORDER[1:]), 500),
    "star with the last node in the middle": ((np.full(40, 40), np.arange(40)), 41),
    "two sides": ((np.arange(60), 60 + np.arange(60) // 7), 70),
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_parts_are_those_of_a_search(graph: tuple[Any, int]) -> None:
    ends, nodes = graph
    found = connected(ends, nodes)
    ones = np.ones(len(ends[0]))
    expected = connected_components(sp.coo_matrix((ones, ends), shape=(nodes, nodes)), False)[1]
    assert found.tolist() == expected.tolist()
