"""Whose content a ledger counts, and that changing it prices everything again, jointly."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from congenial import Budget, CongenialError, Figures, Ledger, Schema, margin, total
from congenial.errors import FigureError, LedgerError
from congenial.figures.statements import of_units
from congenial.ledger.counted_unit import CountedUnit
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import joint_loss
from tests.ledger.ledgers import SCHEMA, described, spend

ROWS = Figures(SCHEMA, (total(),), (np.asarray(21),))
TWO_BY_TWO = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["0", "1"]}})


def test_more_rows_price_everything_again_by_the_joint_supremum(place: str) -> None:
    """Two margins of two levels each: 4, 12, 16 for one, two and three rows; no factor."""
    ledger = Ledger.open(place, TWO_BY_TWO, adjacency="several rows", max_rows=1)
    values = (np.array([5, 6]), np.array([4, 7]))
    figures = Figures(TWO_BY_TWO, (margin("sex"), margin("ill")), values)
    ledger.publish(figures)
    law = described("sex", "ill", scale=Fraction(1), support=figures)
    spend(ledger, law)
    seen = [ledger.spent().epsilon]
    for rows in (2, 3):
        ledger.change_unit("several rows", rows, accept_weaker=True)
        assert ledger.spent() == joint_loss([law], SeveralRows.given(figures, rows))
        seen.append(ledger.spent().epsilon)
    assert seen == [4, 12, 16]
    (priced,) = ledger.prices().releases
    assert (priced.then.epsilon, priced.now.epsilon, priced.outdated) == (4, 16, True)
    assert [event.kind for event in ledger.events()][-2:] == ["unit", "unit"]
    again = Ledger.open(place, TWO_BY_TWO, adjacency="several rows", max_rows=3)
    assert again.unit == CountedUnit("several rows", 3)


def test_a_weaker_promise_must_be_accepted_and_is_told_before(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA, max_rows=2, budget=Budget(epsilon=3))
    spend(ledger, described())
    before = ledger.events()
    with pytest.raises(LedgerError, match=r"epsilon = 1 before, epsilon = 2\.5 after"):
        ledger.change_unit("add-remove", 5)
    assert ledger.events() == before
    assert ledger.change_unit("add-remove", 5, accept_weaker=True).after.epsilon == Fraction(5, 2)
    assert ledger.change_unit("add-remove", 5).after == ledger.spent()  # nothing to do
    assert len(ledger.events()) == len(before) + 1


def test_a_ledger_of_rows_that_come_and_go_goes_on_with_exact_figures(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA, max_rows=2)
    spend(ledger, described())
    with pytest.raises(LedgerError, match=r"congenial ledger unit .* 'several rows' --max-rows 2"):
        ledger.publish(ROWS)
    with pytest.raises(LedgerError, match=r"congenial ledger unit .* 'several rows' --max-rows 2"):
        Ledger.open(place, SCHEMA, adjacency="several rows", max_rows=2)
    ledger.change_unit("several rows", 2, accept_weaker=True)
    assert ledger.spent().epsilon == 2  # two rows replaced, not only added or removed
    ledger.publish(ROWS, accept_weaker=True)
    assert ledger.spent().epsilon == 4  # and others make up for their number


def test_records_that_were_replaced_need_the_number_of_rows(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA)
    spend(ledger, described())
    with pytest.raises(LedgerError, match=r"'r' replaces records.*Publish the number of rows"):
        ledger.change_unit("several rows", 3, accept_weaker=True)
    ledger.publish(ROWS)
    ledger.change_unit("several rows", 3, accept_weaker=True)
    assert ledger.spent() == joint_loss([described()], SeveralRows.given(ROWS, 3))
    assert ledger.spent().epsilon > 1


@pytest.mark.parametrize(
    ("first", "rows", "kind", "more"),
    [
        ("several rows", 3, "several rows", 2),
        ("several rows", 3, "add-remove", 3),
        ("add-remove", 3, "several rows", 2),
        (None, None, "add-remove", 2),
    ],
)
def test_a_unit_is_never_made_smaller(place: str, first, rows, kind, more) -> None:
    ledger = Ledger.open(place, SCHEMA, adjacency=first, max_rows=rows)
    with pytest.raises(LedgerError, match="does not promise as much"):
        ledger.change_unit(kind, more)


def test_a_promise_about_something_else_keeps_the_unit(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA)
    ledger.publish(ROWS)
    spend(ledger, described())
    (entry,) = ledger.entries()
    entry.guarantee["adjacency"]["metric"] = "secret pairs"
    with pytest.raises(LedgerError, match="no price for units with several rows is proved"):
        ledger.change_unit("several rows", 2, accept_weaker=True)


def test_the_database_refuses_events_that_no_ledger_writes(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    ledger = Ledger.open(place, SCHEMA, adjacency="several rows", max_rows=2)
    ledger.change_unit("several rows", 4)
    for payload in (
        {"kind": "several rows", "max_rows": 3},
        {"kind": "several rows", "max_rows": "9"},
        {"kind": "several rows"},
        {"kind": "replace-one", "max_rows": 9},
    ):
        with pytest.raises(LedgerError), ledger._store.writing() as log:
            log.append("unit", None, payload)
    assert ledger.unit.max_rows == 4


def test_a_forged_event_that_makes_a_unit_smaller_counts_as_unread(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    ledger = Ledger.open(place, SCHEMA, adjacency="several rows", max_rows=4)
    with closing(sqlite3.connect(place)) as raw:
        raw.execute("DROP TRIGGER events_are_well_formed")
        raw.commit()
    with ledger._store.writing() as log:
        log.append("unit", None, {"kind": "several rows", "max_rows": 1})
    assert ledger.unit.max_rows == 4
    with pytest.raises(LedgerError, match="cannot be read"):
        ledger.spent()


def test_only_an_owner_changes_the_unit(place: str, tmp_path: Path) -> None:
    del place
    where = tmp_path / "ledger.sqlite"
    Ledger.open(where, SCHEMA, max_rows=2, who="ann").grant("bob", "publisher")
    with pytest.raises(LedgerError, match="needs the role owner"):
        Ledger.open(where, who="bob").change_unit("several rows", 2)


def test_figures_that_no_such_units_have_are_refused(place: str) -> None:
    schema = Schema.from_dict(
        {"tenure": {"levels": ["own", "rent"], "of": "unit"}, "ill": {"levels": ["0", "1"]}}
    )
    ledger = Ledger.open(place, schema, adjacency="several rows", max_rows=2)
    planned = Figures.of(schema, (total(), of_units(total())))
    assert planned.of_units is not None

    def told(rows: int, units: int) -> Figures:
        about = replace(planned.of_units, values=(np.asarray(units),))
        return replace(planned, values=(np.asarray(rows),), of_units=about)

    for rows, units in ((3, 4), (9, 4)):
        with pytest.raises(FigureError, match="with 1 to 2 rows per unit"):
            ledger.publish(told(rows, units))
    ledger.publish(told(7, 4))


def test_figures_without_a_proof_for_units_are_named(place: str) -> None:
    """Counts that cross without being margins: what is proved for records is not for units."""
    ledger = Ledger.open(place, SCHEMA)
    with pytest.raises(CongenialError, match="between 1 and"):
        ledger.change_unit("several rows", 100_000)
