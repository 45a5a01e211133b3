"""What `check` expects of printed counts of small tables, of which few draws say little."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Guarantee, Schema, SemiAdjacent, Table, margin, publish
from congenial.kinds import tables_accuracy
from congenial.kinds.tables_accuracy import try_printed
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.tables_calibration import calibrate_tables

SIZES = ((2, 3), (3, 2), (2, 4), (4, 3), (5, 2))


def made(sizes: tuple[int, int], people: int, rho: str) -> MeasuredTables:
    """Two attributes and their margins; the first attribute's is exact."""
    schema = Schema.from_dict({"x": {"integers": [1, sizes[0]]}, "y": {"integers": [1, sizes[1]]}})
    table = Table(schema, schema.names, np.full(sizes, people))
    target = Guarantee.zero_concentrated(rho, under=SemiAdjacent(publish(table, margin("x"))))
    return calibrate_tables(target, [["x", "y"], ["y"]])


def errors(one: MeasuredTables) -> tuple[np.ndarray, np.ndarray]:
    """Of printed counts as `check` says, and of estimates."""
    found = try_printed(one)
    assert found is not None
    tables = one.description.tables
    squares = [np.mean(one.estimator.deviations(names).values ** 2) for names in tables]
    return np.array(found.errors), np.sqrt(squares)


@pytest.mark.parametrize("sizes", SIZES)
def test_large_counts_are_printed_as_well_as_estimated(
    sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is near 0: printed counts are rounded estimates."""
    monkeypatch.setattr(tables_accuracy, "DRAWS", 100)
    printed, estimated = errors(made(sizes, 1000, "0.05"))
    assert np.all(estimated > 1.5)
    assert np.all(printed <= 1.05 * estimated)
    assert np.all(printed >= 0.97 * estimated)


def test_counts_that_cannot_be_negative_are_printed_better_than_estimated() -> None:
    printed, estimated = errors(made((4, 3), 1, "0.05"))
    assert np.all(printed < 0.8 * estimated)


def test_more_draws_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    few, _ = errors(made((4, 3), 30, "0.05"))
    monkeypatch.setattr(tables_accuracy, "DRAWS", 100)
    many, _ = errors(made((4, 3), 30, "0.05"))
    assert few == pytest.approx(many, rel=0.15)
