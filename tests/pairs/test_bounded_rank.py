"""The rank of S where S is not listed, against the rank of the listed elements."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.figures.invariants import Invariants
from congenial.figures.statements import count, linear, margin, total
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.sensitivity import _bounded, sensitivity

SCHEMA = Schema.from_dict({"a": {"levels": list("pq")}, "b": {"levels": list("xyz")}})
BOTH = Invariants(SCHEMA, (margin("a"), margin("b")))
CASES = {
    "cells, no figure": (Invariants(SCHEMA), (total(by=("a", "b")),), 5),
    "cells, the total": (Invariants(SCHEMA, (total(),)), (total(by=("a", "b")),), 5),
    "cells, one margin": (Invariants(SCHEMA, (margin("b"),)), (total(by=("a", "b")),), 3),
    "cells, both margins": (BOTH, (total(by=("a", "b")),), 2),
    "a margin that is published": (BOTH, (margin("b"),), 0),
    "a margin beside another": (Invariants(SCHEMA, (margin("a"),)), (margin("b"),), 2),
    "counts that overlap": (
        Invariants(SCHEMA),
        (count("a = 'p'"), count("b = 'x'"), linear({"a = 'p'": 1, "b = 'x'": 1})),
        2,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rank_without_a_list_is_that_of_the_list(name):
    figures, query, rank = CASES[name]
    pairs = SemiAdjacent(figures)
    listed = sensitivity(pairs, query)
    assert listed.elements is not None
    assert np.linalg.matrix_rank(listed.elements) == listed.rank.value == rank
    bounded = _bounded(pairs, query, listed.dimension).rank
    assert (int(bounded.value), bounded.exact) == (rank, False)


def test_people_who_come_and_go_have_one_direction_more():
    cells = (total(by=("a", "b")),)
    assert _bounded(AddRemove(SCHEMA), cells, 6).rank.value == 6
    assert _bounded(SemiAdjacent(Invariants(SCHEMA)), cells, 6).rank.value == 5
