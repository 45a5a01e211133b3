"""Losses of releases of rows and of units, enumerated over whole databases of units."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, SemiAdjacent, Table, calibrate, total
from congenial.figures.statements import of_units
from congenial.pairs import Adjacency, SeveralRows
from tests.pairs.units import Units

SCHEMA = Schema.from_dict(
    {
        "kind": {"levels": ["a", "b"], "of": "unit"},
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "x": {"levels": ["A", "B"]},
    }
)
STATEMENTS = (total(), of_units(total(by="tenure")))
ROWS, UNITS = 2, 3  # most rows of a unit, and units
EPSILON = 1
ROUNDING = 1e-6


@lru_cache(maxsize=1)
def _universe() -> tuple[Units, Any, SeveralRows]:
    """All datasets of three units, the largest group that agrees in the figures, and its pairs."""
    figures = Figures.of(SCHEMA, STATEMENTS)
    truth = Units(SCHEMA, figures, UNITS, ROWS, least=1)
    group = max(truth.groups(), key=len)
    rows, units = _table(truth, int(group[0])), _of_units(truth, int(group[0]))
    return truth, group, SeveralRows.given(figures.evaluate(rows, units), ROWS)


def _table(truth: Units, at: int) -> Table:
    return Table(SCHEMA, SCHEMA.names, truth.tables[at].reshape(2, 2, 2))


def _of_units(truth: Units, at: int) -> Table:
    return Table(SCHEMA, ["kind", "tenure"], truth.tables_of_units[at].reshape(2, 2))


def _worst(pairs: Adjacency, mechanism: str, names: list[str], most: SeveralRows) -> float:
    """Largest log ratio of the chances of a table, over look-alikes and tables of the group."""
    truth, group, _ = _universe()
    made = calibrate(mechanism, Guarantee.pure(EPSILON, pairs), names)
    table = _of_units if pairs.counts_units else _table
    whole = [table(truth, int(at)) for at in group]
    shown = np.array([one.marginal(names).counts for one in whole])
    outcomes, which = np.unique(shown.reshape(len(shown), -1), axis=0, return_inverse=True)
    which = which.reshape(-1)
    first = [whole[int(np.flatnonzero(which == i)[0])] for i in range(len(outcomes))]
    every = outcomes.reshape(-1, *shown.shape[1:])
    density = np.array([made.log_density(every, one) for one in first])
    ratio = (density[:, None, :] - density[None, :, :]).max(axis=2)
    worst = 0.0
    for k, near in truth.look_alikes(group, most.units, most.slots, most.records):
        worst = max(worst, float(ratio[which[k], np.unique(which[near])].max()))
    return worst


@pytest.mark.parametrize("mechanism", ["congenial", "congenial_counts"])
@pytest.mark.parametrize("names", [["x"], ["tenure", "x"], ["kind", "x"]])
def test_tables_of_rows_lose_no_more_than_promised(mechanism: str, names: list[str]) -> None:
    _, _, pairs = _universe()
    worst = _worst(pairs, mechanism, names, pairs)
    assert 0 < worst <= EPSILON + ROUNDING


@pytest.mark.parametrize("mechanism", ["congenial", "congenial_counts"])
def test_tables_of_units_lose_no_more_than_promised(mechanism: str) -> None:
    _, _, pairs = _universe()
    worst = _worst(pairs.tables_of_units, mechanism, ["kind", "tenure"], pairs)
    assert 0 < worst <= EPSILON + ROUNDING


def _priced_as(pairs: SeveralRows, rows: int) -> SeveralRows:
    """The same pairs, as if tables could move by so many rows only."""

    class Planted(SeveralRows):
        def rows_apart(self, names: Any) -> int:
            return rows

    return Planted(pairs.published, pairs.max_rows, pairs.never_empty)


def test_planted_a_table_that_shows_a_unit_attribute_priced_as_one_that_does_not() -> None:
    """Noise for c rows, where all rows of a units can move: the promise is broken."""
    _, _, pairs = _universe()
    assert _worst(_priced_as(pairs, pairs.records), "congenial", ["kind", "x"], pairs) > EPSILON


def test_planted_the_noise_of_one_row_times_the_rows() -> None:
    """k times the rows that one row per unit would need is too little."""
    _, _, pairs = _universe()
    one_row = int(SemiAdjacent(pairs.published.of_rows).a_star.value)
    assert ROWS * one_row < pairs.records
    assert _worst(_priced_as(pairs, ROWS * one_row), "congenial", ["x"], pairs) > EPSILON


def _moved(tables: Any, group: Any) -> Any:
    """l1 distances of all pairs of a group."""
    shown = tables[group].reshape(len(group), -1)
    return np.abs(shown[:, None, :] - shown[None, :, :]).sum(axis=2)


def test_rows_and_units_together_can_lose_as_much_as_one_by_one() -> None:
    """Some pair moves both tables as far as any pair moves either: adding their losses is sharp."""
    truth, group, pairs = _universe()
    rows = _moved(truth.tables.reshape(-1, 2, 2, 2).sum(axis=(1, 2)), group)
    units = _moved(truth.tables_of_units, group)
    near = np.zeros_like(rows, dtype=bool)
    for k, found in truth.look_alikes(group, pairs.units, pairs.slots, pairs.records):
        near[k] = found
    both = (rows + units)[near].max()
    assert both == rows[near].max() + units[near].max()
    assert 0 < rows[near].max() <= pairs.l1(["x"]).value
