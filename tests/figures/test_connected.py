"""Connected parts of graphs, against spreading along edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from congenial.figures.lattice import connected

SEED = 20261117
rng = np.random.default_rng(SEED)
ORDER = rng.permutation(120)
GRAPHS = {
    "no node": (([], []), 0),
    "no edge": (([], []), 3),
    "loops": (([1, 1], [1, 1]), 3),
    "few edges": (tuple(rng.integers(0, 900, (2, 400))), 900),
    "many edges": (tuple(rng.integers(0, 300, (2, 3000))), 300),
    "path": ((np.arange(499), np.arange(1, 500)), 500),
    "path backwards": ((np.arange(99, 0, -1), np.arange(98, -1, -1)), 100),
    "path in any order": ((ORDER[:-1], ORDER[1:]), 120),
    "star with the last node in the middle": ((np.full(40, 40), np.arange(40)), 41),
    "two sides": ((np.arange(60), 60 + np.arange(60) // 7), 70),
}


def by_spreading(ends: tuple[Any, Any], nodes: int) -> list[int]:
    """The least node of each part, spread along edges until nothing moves; then numbered."""
    least = list(range(nodes))
    moved = True
    while moved:
        before = list(least)
        for one, other in zip(*ends, strict=True):
            least[one] = least[other] = min(least[one], least[other])
        moved = least != before
    order = sorted(set(least))
    return [order.index(one) for one in least]


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_parts_are_numbered_by_their_first_nodes(graph: tuple[Any, int]) -> None:
    assert connected(*graph).tolist() == by_spreading(*graph)
