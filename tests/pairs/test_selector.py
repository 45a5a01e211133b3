"""The stored rule of the existential reading, and why it must be one rule."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Guarantee, SemiAdjacent, count, margin, structural_zeros, total
from congenial.errors import GuaranteeError, StructureError
from congenial.pairs.universe import RULE, Universe, selected
from tests.pairs.brute import table_of
from tests.pairs.universes import TWO
from tests.worlds import levels

CASES = {
    "totals": (levels(g=2, x=3), (total(by="g"),), (0, 1, 1, 4)),
    "margins": (TWO, (margin("x"), margin("y")), (0, 1, 1, 2)),
    "overlapping": (
        levels(w=4),
        (total(), count("w in ('0', '1')"), count("w in ('1', '2')")),
        (0, 1, 2, 2),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_selected_tables_are_conforming_and_near(name):
    schema, statements, database = CASES[name]
    public = Figures(schema, statements).evaluate(table_of(schema, database))
    adjacency = SemiAdjacent(public, "existential")
    tables = list(Universe(public).tables(len(database)))
    possible = np.any([t.counts > 0 for t in tables], axis=0)
    farthest = 0
    for table in tables:
        for answer in zip(*np.nonzero(possible), strict=True):
            other = selected(public, table, answer)
            assert public.holds_for(other)
            assert other.counts[answer] > 0
            farthest = max(farthest, int(np.abs(other.counts - table.counts).sum()) // 2)
            nearest = min(
                int(np.abs(t.counts - table.counts).sum()) for t in tables if t.counts[answer] > 0
            )
            assert np.abs(other.counts - table.counts).sum() == nearest
    assert farthest <= adjacency.records
    assert adjacency.records == (1 if name == "totals" else 2)


def test_the_rule_of_nested_totals_is_the_rule_of_lists():
    schema, statements, database = CASES["totals"]
    public = Figures(schema, statements).evaluate(table_of(schema, database))
    tables = list(Universe(public).tables(len(database)))
    for table in tables[::3]:
        for answer in np.ndindex(*table.counts.shape):
            first = min(
                (int(np.abs(t.counts - table.counts).sum()), t.counts.reshape(-1).tolist())
                for t in tables
                if t.counts[answer] > 0
            )[1]
            assert selected(public, table, answer).counts.reshape(-1).tolist() == first


def test_impossible_answers_are_refused():
    public = Figures(TWO, (total(), structural_zeros("x = '0' and y = '0'")))
    public = public.evaluate(table_of(TWO, (1, 2)))
    with pytest.raises(StructureError, match="nobody can have this answer"):
        selected(public, table_of(TWO, (1, 2)), (0, 0))


def test_two_rules_can_hide_a_joint_loss():
    """ERRATA: each release picks a stand-in that it does not see; no stand-in is unseen by both."""
    schema = levels(a=2, b=2)
    public = Figures(schema, (total(), structural_zeros("a = '1' and b = '1'")))
    table = table_of(schema, (1, 2))  # answers (a, b) = (0, 1) and (1, 0); nobody has (0, 0)
    public = public.evaluate(table)
    seen = []
    for other in Universe(public).tables(2):
        if other.counts[0, 0] > 0:
            u = table.counts - other.counts
            seen.append((np.abs(u.sum(axis=1)).sum(), np.abs(u.sum(axis=0)).sum()))
    assert min(by_a for by_a, _ in seen) == 0  # a release of a has a stand-in it cannot see,
    assert min(by_b for _, by_b in seen) == 0  # so has a release of b,
    assert min(by_a + by_b for by_a, by_b in seen) == 2  # and together they see every one


def test_promises_are_added_under_one_rule_only():
    public = Figures(levels(g=2, x=3), (total(by="g"),))
    robust, one = SemiAdjacent(public), SemiAdjacent(public, "existential")
    assert one.to_dict()["selector"] == RULE == one.selector
    assert "selector" not in robust.to_dict()
    promise = Guarantee.pure(Fraction(1), under=one)
    assert (
        promise.compose(Guarantee.pure(Fraction(2), under=one)).tradeoff.epsilon(0.0) <= 3.0000001
    )
    with pytest.raises(GuaranteeError, match="compare different datasets"):
        promise.compose(Guarantee.pure(Fraction(1), under=robust))
    assert not robust.covers(one)
    assert not one.covers(robust)
    assert SemiAdjacent.from_dict(public, one.to_dict()).same(one)
    assert "a stored rule picks" in one.words
