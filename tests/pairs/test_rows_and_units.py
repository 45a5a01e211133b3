"""Tables of rows and of units at once: the joint price against whole databases of units."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, calibrate, margin, total
from congenial.figures.statements import Statement, of_units
from congenial.pairs.several_rows import SeveralRows, saved_together
from congenial.privacy.composition import joint_loss
from tests.pairs.units import Units

UNITS = of_units(total())
X = {"levels": ["A", "B"]}
Y = {"levels": ["0", "1", "2"]}
TENURE = {"levels": ["own", "rent"], "of": "unit"}
ONE = Fraction(1)

# attributes of rows, figures, units, most rows
UNIVERSES: list[tuple[dict[str, Any], tuple[Statement, ...], int, int]] = [
    ({"x": X}, (total(), UNITS), 3, 2),
    ({"x": X}, (total(), UNITS), 3, 3),
    ({"x": Y}, (total(), UNITS), 3, 2),
    ({"x": X, "y": X}, (margin("x"), UNITS), 3, 2),
]


def _pairs(columns: dict[str, Any], figures: tuple[Statement, ...], most: int) -> SeveralRows:
    sized = {"size": {"integers": [1, most], "of": "unit size"}} | columns
    return SeveralRows.given(Figures.of(Schema.from_dict(sized), figures), most)


@lru_cache(maxsize=8)
def _norms(at: int) -> Any:
    """l1 and squared l2 norms of differences of tables of rows, then of sizes, of look-alikes."""
    columns, figures, number, most = UNIVERSES[at]
    pairs, plain = _pairs(columns, figures, most), Schema.from_dict(columns)
    truth = Units(plain, Figures.of(plain, figures), number, most, least=1)
    found = []
    for group in truth.groups():
        for k, near in truth.look_alikes(group, pairs.units, pairs.slots, pairs.records):
            moved = [
                table[group[near]] - table[group[k]]
                for table in (truth.tables, truth.counts_of_counts)
            ]
            norms = [(np.abs(u).sum(axis=1), np.square(u).sum(axis=1)) for u in moved]
            found.append(np.unique(np.array(norms).reshape(4, -1).T, axis=0))
    return np.unique(np.concatenate(found), axis=0)


def _bounds(pairs: SeveralRows, weight: Fraction, square: bool) -> tuple[Fraction, Fraction]:
    """Both suprema added, and the joint one."""
    rows = [(tuple(n for n in pairs.schema.names if n != "size"), ONE)]
    units = [(("size",), weight)]
    counted = pairs.tables_of_units
    if square:
        added = pairs.joint_l2_squared(rows).value + counted.joint_l2_squared(units).value
    else:
        added = pairs.joint_l1(rows).value + counted.joint_l1(units).value
    return added, added - saved_together(pairs, rows, units, square=square)


@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("at", [0, 1, 2, pytest.param(3, marks=pytest.mark.audit)])
def test_no_look_alikes_move_rows_and_sizes_further(at: int, square: bool) -> None:
    columns, figures, _, most = UNIVERSES[at]
    pairs, norms = _pairs(columns, figures, most), _norms(at)
    for weight in (Fraction(1, 3), ONE, Fraction(5)):
        added, joint = _bounds(pairs, weight, square)
        worst = (norms[:, int(square)] + float(weight) * norms[:, 2 + int(square)]).max()
        assert worst <= joint <= added


@pytest.mark.parametrize("square", [False, True])
def test_the_joint_price_is_below_the_sum_and_attained(square: bool) -> None:
    """Three units of at most 3 rows: l1 12 for 16, squared l2 50 for 68."""
    columns, figures, _, most = UNIVERSES[1]
    norms = _norms(1)
    worst = (norms[:, int(square)] + norms[:, 2 + int(square)]).max()
    added, joint = _bounds(_pairs(columns, figures, most), ONE, square)
    assert added == (68 if square else 16)
    assert joint == (50 if square else 12)
    assert worst == (50 if square else 12)


def test_planted_prices_are_exceeded_by_some_look_alikes() -> None:
    """Rows alone, sizes left out; and a slot for every size that changes, in place of half."""
    norms = _norms(1)
    columns, figures, _, most = UNIVERSES[1]
    pairs = _pairs(columns, figures, most)
    both = norms[:, 0] + norms[:, 2]
    assert both.max() > pairs.l1(["x"]).value  # the price of rows, without that of units
    slot_each = max(2 * (pairs.slots - s) + 2 * s for s in range(pairs.units + 1))
    assert both.max() > slot_each


def test_attributes_of_units_leave_the_sum() -> None:
    """Tenure may change in all units that differ, whatever their rows do: nothing is saved."""
    pairs = _pairs({"tenure": TENURE, "x": X}, (total(), UNITS), 3)
    for rows, units in ((["x"], ["tenure"]), (["x"], ["size", "tenure"]), (["tenure"], ["size"])):
        both = [(tuple(rows), ONE)], [(tuple(units), ONE)]
        assert saved_together(pairs, *both, square=True) == 0
    assert saved_together(pairs, [(("x",), ONE)], [(("size",), ONE)], square=True) > 0


@pytest.mark.parametrize("rho", [True, False])
def test_releases_are_priced_together(rho: bool) -> None:
    """People by x and households by size: a quarter of the promise is left over for more."""
    pairs = _pairs({"x": X}, (total(), UNITS), 4)
    promised = Guarantee.zero_concentrated if rho else Guarantee.pure
    people = calibrate("auto", promised(1, pairs), ["x"]).description
    sizes = calibrate("auto", promised(1, pairs.tables_of_units), ["size"]).description
    loss = joint_loss([people, sizes], pairs)
    spent = loss.rho if rho else loss.epsilon
    assert (
        max(
            joint_loss([one], pairs).rho + joint_loss([one], pairs).epsilon
            for one in (people, sizes)
        )
        <= spent
        < Fraction(9, 5)
    )
    assert not loss.exact
    assert joint_loss([sizes, people], pairs) == loss


def test_counts_given_their_signs_are_added() -> None:
    """The price of signs depends on each table's own distance: no joint one is known."""
    pairs = _pairs({"x": X}, (total(), UNITS), 3)
    people = calibrate("auto", Guarantee.pure(1, pairs), ["x"]).description
    sizes = calibrate("auto", Guarantee.pure(1, pairs.tables_of_units), ["size"]).description
    signed = replace(sizes, nonnegative=True)
    alone = joint_loss([people], pairs).epsilon + joint_loss([signed], pairs).epsilon
    assert joint_loss([people, signed], pairs).epsilon == alone
