"""Published bounds: kept by printed counts, and by nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table, calibrate
from congenial.errors import StructureError
from congenial.figures import at_least, at_most, count, margin, publish, total
from congenial.mechanisms import CongenialCounts, release_table

SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[4, 2, 9], [0, 3, 1]]))


def printed(*statements, draws=40):
    figures = publish(TABLE, *statements)
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), SCHEMA.names)
    for seed in range(draws):
        yield release_table(mechanism, TABLE, SeededRandomness(seed)).counts[0]


def test_bounds_hold_for_printed_counts_and_would_not_hold_without():
    broken = 0
    for values in printed(total(), at_least(count("g = 'q'"), 3), at_most(count("x = 'c'"), 11)):
        assert values.sum() == 19
        assert values.min() >= 0
        assert values[1].sum() >= 3
        assert values[:, 2].sum() <= 11
    for values in printed(total()):
        broken += values[1].sum() < 3 or values[:, 2].sum() > 11
    assert broken > 0  # otherwise the bounds had nothing to do


def test_bounds_beside_crossing_figures():
    for values in printed(margin("g"), margin("x"), at_most(count("g = 'p' and x = 'c'"), 9)):
        assert values.sum(axis=1).tolist() == [15, 4]
        assert values.sum(axis=0).tolist() == [4, 5, 10]
        assert values[0, 2] <= 9
        assert values.min() >= 0


def test_a_bound_the_table_does_not_show_is_left_alone():
    figures = publish(TABLE, total(), at_least(count("x = 'a'"), 1))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(figures)), ("g",))
    assert release_table(mechanism, TABLE, SeededRandomness(1)).counts[0].sum() == 19


@pytest.mark.parametrize("rows", [3, 4])
def test_counts_given_both_margins_are_drawn_for_three_rows_and_refused_for_four(rows):
    levels = {"a": list("1234")[:rows], "b": list("12345"), "c": ["x"]}
    schema = Schema.from_dict({name: {"levels": values} for name, values in levels.items()})
    counts = np.random.default_rng(5).integers(0, 4, (rows, 5, 1))
    table = Table(schema, schema.names, counts)
    promise = Guarantee.pure(3, SemiAdjacent(publish(table, margin("a"), margin("b"))))
    if rows == 4:
        with pytest.raises(StructureError, match=r"4 x 5 table.*at most three") as refused:
            CongenialCounts.calibrate(promise, ("a", "b"))
        assert "project" in refused.value.remedy
        return
    drawn = CongenialCounts.calibrate(promise, ("a", "b")).draw(
        counts[..., 0], SeededRandomness(2), 200
    )
    assert drawn.min() >= 0
    assert np.all(drawn.sum(axis=1) == counts.sum(axis=(0, 2)))
    assert np.all(drawn.sum(axis=2) == counts.sum(axis=(1, 2)))
    assert len(np.unique(drawn.reshape(200, -1), axis=0)) > 100
