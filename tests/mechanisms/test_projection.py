"""Projection to nonnegative counts against brute force over all integer tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.invariants import publish
from congenial.figures.statements import margin, total
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.projection.projection import project, project_group
from congenial.pairs.adjacency import ReplaceOne, SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SeededRandomness

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"integers": [1, 5]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[0, 0, 1, 0, 2], [0, 0, 0, 0, 0]]))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=5), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_nearest_whole_table_with_the_same_total(x, seed):
    x = np.array(x)
    y = project_group(x, SeededRandomness(seed))
    total_ = max(int(x.sum()), 0)
    assert y.min() >= 0
    assert y.sum() == total_
    if x.sum() >= 0:
        best = min(
            sum((a - b) ** 2 for a, b in zip(z, x, strict=True))
            for z in product(range(total_ + 1), repeat=len(x))
            if sum(z) == total_
        )
        assert int(((y - x) ** 2).sum()) == best


def test_ties_favour_no_cell():
    """alpha = 1e-6: each of three equal cells gives up the odd unit equally often."""
    x = np.array([2, 2, 2, -1])
    given_up = np.zeros(3)
    randomness = SeededRandomness(4)
    for _ in range(3000):
        given_up += project_group(x, randomness)[:3] == 1
    assert given_up.sum() == 3000
    assert np.all(np.abs(given_up - 1000) < 4.9 * np.sqrt(3000 * 2 / 9))


def test_groups_keep_their_totals_and_the_draw_is_kept():
    adjacency = SemiAdjacent(publish(TABLE, total(by="g")))
    mechanism = calibrate("auto", Guarantee.pure(1, adjacency), SCHEMA.names)
    release = mechanism.release(TABLE, SeededRandomness(2))
    projected = project(release, SeededRandomness(3))
    assert release.values.min() < 0 <= projected.values.min()
    assert projected.values.sum(axis=1).tolist() == [3, 0]
    assert np.array_equal(projected.raw, release.values)
    assert projected.description.post_processing == "project"
    assert projected.interval("x >= 3", 0.9) == release.interval("x >= 3", 0.9)


@pytest.mark.parametrize("fit", [None, "cells"])
def test_tables_with_margins_are_projected_one_by_one(fit):
    """A 2 x 3 table in each of three counties: the nearest with its margins, by brute force."""
    schema = Schema.from_dict(
        {"c": {"integers": [1, 3]}, "a": {"levels": ["n", "y"]}, "b": {"levels": ["1", "2", "3"]}}
    )
    counts = np.array([[[2, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]], [[1, 0, 2], [0, 3, 0]]])
    table = Table(schema, schema.names, counts)
    figures = publish(table, margin("c", "a"), margin("c", "b"))
    mechanism = calibrate("auto", Guarantee.pure("1/2", SemiAdjacent(figures)), schema.names)
    release = mechanism.release(table, SeededRandomness(5))
    projected = project(release, SeededRandomness(6), fit).values
    assert (release.values.min(axis=(1, 2)) < 0).sum() >= 2
    for drawn, found, truth in zip(release.values, projected, counts, strict=True):
        assert found.min() >= 0
        assert (found.sum(axis=0) == truth.sum(axis=0)).all()
        assert (found.sum(axis=1) == truth.sum(axis=1)).all()
        assert np.square(found - drawn).sum() == min(
            np.square(np.stack([first, truth.sum(axis=0) - first]) - drawn).sum()
            for first in product(*(range(n + 1) for n in truth.sum(axis=0)))
            if sum(first) == truth[0].sum()
        )


def test_loose_cells_are_cut_at_zero():
    mechanism = calibrate("auto", Guarantee.pure(1, ReplaceOne(SCHEMA)), SCHEMA.names)
    release = mechanism.release(TABLE, SeededRandomness(2))
    assert np.array_equal(
        project(release, SeededRandomness(3), "cells").values, np.maximum(release.values, 0)
    )


def test_real_valued_releases_are_refused():
    mechanism = calibrate("auto", Guarantee.gaussian(1, ReplaceOne(SCHEMA)), SCHEMA.names)
    with pytest.raises(StructureError, match="real numbers"):
        project(mechanism.release(TABLE, SeededRandomness(1)))
