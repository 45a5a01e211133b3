"""The nearest nonnegative counts against brute force over all integer tables; made-up totals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, Table, calibrate, margin, publish, total
from congenial.figures.blocks import margins
from congenial.figures.support import Pattern
from congenial.mechanisms import MeasuredTables, release_table
from congenial.mechanisms.one_table import nearest_counts, totals_with_margins
from congenial.pairs import ReplaceOne, SemiAdjacent

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"integers": [1, 5]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[0, 0, 1, 0, 2], [0, 0, 0, 0, 0]]))


def test_groups_keep_their_totals_and_the_draw_is_kept():
    adjacency = SemiAdjacent(publish(TABLE, total(by="g")))
    mechanism = calibrate("auto", Guarantee.pure(1, adjacency), SCHEMA.names)
    release = release_table(mechanism, TABLE, SeededRandomness(2))
    (drawn,), (counts,) = release.drawn, release.counts
    by_cells = nearest_counts(mechanism, drawn, SeededRandomness(3))
    for found in (counts, by_cells):
        assert drawn.min() < 0 <= found.min()
        assert found.sum(axis=1).tolist() == [3, 0]
    assert np.array_equal(drawn, mechanism.draw(TABLE.counts, SeededRandomness(2), 1)[0])
    alone = MeasuredTables.of_one(mechanism, whole=False).release(TABLE, SeededRandomness(2))
    assert release.interval("x >= 3", 0.9) == alone.interval("x >= 3", 0.9)


@pytest.mark.parametrize("fit", ["nodes", "cells"])
def test_tables_with_margins_are_fitted_one_by_one(fit):
    """A 2 x 3 table in each of three counties: the nearest with its margins, by brute force."""
    schema = Schema.from_dict(
        {"c": {"integers": [1, 3]}, "a": {"levels": ["n", "y"]}, "b": {"levels": ["1", "2", "3"]}}
    )
    counts = np.array([[[2, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]], [[1, 0, 2], [0, 3, 0]]])
    table = Table(schema, schema.names, counts)
    figures = publish(table, margin("c", "a"), margin("c", "b"))
    mechanism = calibrate("auto", Guarantee.pure("1/2", SemiAdjacent(figures)), schema.names)
    release = release_table(mechanism, table, SeededRandomness(5))
    (drawn,), (fitted,) = release.drawn, release.counts
    assert release.estimator.order is not None
    if fit == "cells":
        fitted = nearest_counts(mechanism, drawn, SeededRandomness(6))
    assert (drawn.min(axis=(1, 2)) < 0).sum() >= 2
    for one, found, truth in zip(drawn, fitted, counts, strict=True):
        assert found.min() >= 0
        assert (found.sum(axis=0) == truth.sum(axis=0)).all()
        assert (found.sum(axis=1) == truth.sum(axis=1)).all()
        assert np.square(found - one).sum() == min(
            np.square(np.stack([first, truth.sum(axis=0) - first]) - one).sum()
            for first in product(*(range(n + 1) for n in truth.sum(axis=0)))
            if sum(first) == truth[0].sum()
        )


def test_loose_cells_are_cut_at_zero():
    mechanism = calibrate("auto", Guarantee.pure(1, ReplaceOne(SCHEMA)), SCHEMA.names)
    (drawn,) = release_table(mechanism, TABLE, SeededRandomness(2)).drawn
    found = nearest_counts(mechanism, drawn, SeededRandomness(3))
    assert np.array_equal(found, np.maximum(drawn, 0))


def test_real_values_have_no_whole_counts():
    mechanism = calibrate("auto", Guarantee.gaussian(1, ReplaceOne(SCHEMA)), SCHEMA.names)
    release = release_table(mechanism, TABLE, SeededRandomness(1))
    assert release.counts == (None,)
    assert "real numbers" in release.estimator.why_no_counts


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 3), (2, 3, 2)])
def test_made_up_totals_are_whole_nonnegative_and_of_these_margins(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(20261117)
    features = np.array(list(np.ndindex(shape)))
    pattern = Pattern(margins(features), features)
    counts = rng.poisson(rng.gamma(0.3, 20, size=(50, len(features))))
    values = counts @ pattern.equations.T
    made = totals_with_margins(pattern, values)
    assert made.min() >= 0
    assert np.array_equal(made @ pattern.equations.T, values)
    assert not np.array_equal(made, counts)  # made up, not found out
