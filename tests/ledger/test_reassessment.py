"""Promises under published figures: distance, side information, reassessment."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import AddRemove, Guarantee, ReplaceOne, Schema, SemiAdjacent, Table, calibrate
from congenial.audit.exact_audit import adjacent_pairs, exact_audit
from congenial.errors import GuaranteeError
from congenial.figures import Figures, count, margin, publish, total
from congenial.ledger.reassessment import EarlierRelease, by_distance, reassess, suppose
from congenial.privacy import Gaussian, Pure, RecordDescription, ZeroConcentrated, joint_loss
from congenial.privacy.tradeoff import Nothing

SCHEMA = Schema.from_dict({"g": {"levels": ["a", "b"]}, "x": {"levels": ["0", "1"]}})
TABLE = Table(SCHEMA, SCHEMA.names, [[2, 1], [1, 1]])
CENSUS = Schema.from_dict(
    {"state": {"integers": [1, 51]}, "sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 99]}}
)
ALPHAS = np.linspace(0, 1, 41)


# ---- Propositions 11 and 15 --------------------------------------------------------------------


def test_by_distance_is_attained_and_never_exceeded():
    """Proposition 11 by enumeration: epsilon times the records that differ, for every pair."""
    mechanism = calibrate("auto", Guarantee.pure(Fraction(1, 2), ReplaceOne(SCHEMA)), SCHEMA.names)
    public = publish(TABLE, margin("g"), margin("x"))
    worst = {}
    for left, right in adjacent_pairs(SemiAdjacent(public, within=5), 5):
        distance = int(np.abs(left.counts - right.counts).sum()) // 2
        found = exact_audit(mechanism, [(left, right)], radius=3).worst
        assert found <= by_distance(Pure(Fraction(1, 2)), distance).epsilon(0.0) + 1e-9
        worst[distance] = max(worst.get(distance, 0), found)
    assert worst[2] == pytest.approx(1.0)
    assert by_distance(Gaussian(1), 0) == Pure(0)


def test_mechanisms_designed_without_figures():
    """Proposition 15: f composed a* times; the true loss of this one is smaller."""
    public = publish(TABLE, margin("g"), margin("x"))
    promise = Guarantee.pure(Fraction(1, 2), ReplaceOne(SCHEMA))
    (after,) = reassess({"t": promise.tradeoff}, public)
    assert after.advertised == Pure(Fraction(1, 2))
    assert (after.robust.records.value, after.robust.tradeoff) == (3, Pure(Fraction(3, 2)))
    assert after.existential.tradeoff == Pure(1)  # the mechanism sees counts only: a swap is 2
    mechanism = calibrate("auto", promise, SCHEMA.names)
    true = joint_loss([mechanism.description], SemiAdjacent(public))
    assert true.epsilon == 1  # a swap moves 4, a quarter each; not 3 records with 2 each


def test_a_joint_supremum_is_tighter_than_either():
    """One difference cannot be the worst for two different tables at once."""
    schema = Schema.from_dict({k: {"levels": ["0", "1"]} for k in ("g", "x", "y")})
    table = Table(schema, schema.names, np.array([[[2, 0], [0, 1]], [[1, 0], [0, 2]]]))
    public = publish(table, margin("g"), count("g = '0'", by="x"), count("g = '1'", by="y"))
    promise = Guarantee.pure(1, ReplaceOne(schema))
    laws = [calibrate("auto", promise, names).description for names in (("g", "x"), ("g", "y"))]
    adjacency = SemiAdjacent(public)
    alone = sum((joint_loss([d], adjacency).epsilon for d in laws), Fraction(0))
    jointly = joint_loss(laws, adjacency).epsilon
    (*_, both) = reassess({"x": Pure(1), "y": Pure(1)}, public)
    by_promise = both.robust.tradeoff.epsilon(0.0)
    assert jointly < alone <= by_promise + 1e-9


# ---- side information --------------------------------------------------------------------------


def test_side_information_is_one_more_mandate():
    public = publish(TABLE, margin("g"))
    assert SemiAdjacent(public).records == 2
    supposed = suppose(public, count("x = '1'"))
    assert SemiAdjacent(supposed).records == 3
    assert supposed.values is None
    told = suppose(public, count("x = '1'"), values=[2])
    assert SemiAdjacent(told).records <= 3
    assert told.values is not None


# ---- old releases ------------------------------------------------------------------------------


def test_the_census_in_both_readings():
    """Section 6: 2.56 advertised, 10.24 robust, 2.56 existential.

    10.24 is tight for A_2 for a mechanism that spends nothing on state totals; see
    tests/papers/test_semi_dp.py for the production allocation, which does.
    """
    states = Figures(CENSUS, (total(by="state"),))
    old = {"persons": ZeroConcentrated("2.56")}
    (found,) = reassess(old, states)
    assert found.advertised == ZeroConcentrated("2.56")
    assert (found.robust.records.value, found.robust.tradeoff.rho) == (2, Fraction("10.24"))
    assert (found.existential.records.value, found.existential.tradeoff.rho) == (
        1,
        Fraction("2.56"),
    )
    rows = list(found.rows(1e-10))
    assert [row["reading"] for row in rows] == ["advertised", "robust", "existential"]
    assert rows[1]["epsilon"] > 2 * rows[0]["epsilon"]


def test_known_laws_are_priced_and_others_composed():
    promise = Guarantee.pure(Fraction(1), ReplaceOne(SCHEMA))
    law = EarlierRelease.of(calibrate("auto", promise, SCHEMA.names))
    description = RecordDescription("records", SCHEMA, {}, epsilon=Fraction(1, 2))
    synthetic = EarlierRelease(description, Pure(Fraction(1, 2)))
    figures = Figures(SCHEMA, (margin("g"), margin("x")))
    found = {
        one.name: one
        for one in reassess({"t": law, "s": synthetic, "p": Pure(Fraction(1, 4))}, figures)
    }
    assert list(found) == ["t", "s", "p", "all together"]
    assert found["t"].advertised == Pure(1)
    assert found["t"].robust.tradeoff == Pure(2)  # a swap moves 4 cells, half each
    assert found["s"].robust.tradeoff == Pure(Fraction(3, 2))
    assert found["s"].existential.tradeoff == Pure(Fraction(3, 2))  # it sees more than counts
    assert found["all together"].advertised is None
    assert found["p"].robust.tradeoff == Pure(Fraction(3, 4))
    assert found["p"].existential.tradeoff == Pure(Fraction(1, 2))
    joint = found["all together"].robust.tradeoff.epsilon(0.0)
    assert joint == pytest.approx(2 + 1.5 + 0.75)
    assert not found["t"].robust.exact  # figures are not published yet: bounds for every value


def test_a_release_given_figures_is_advertised_among_datasets_that_have_them():
    public = publish(TABLE, margin("g"))
    mechanism = calibrate("auto", Guarantee.pure(1, SemiAdjacent(public)), SCHEMA.names)
    (found,) = reassess(
        {"t": EarlierRelease.of(mechanism)}, publish(TABLE, margin("g"), margin("x"))
    )
    assert found.advertised == Pure(1)
    assert found.robust.records.value == 3
    assert found.robust.tradeoff.eps == mechanism.description.scale * 4
    with pytest.raises(GuaranteeError, match="no release"):
        reassess({}, public)


def test_what_was_advertised_is_read_and_not_worked_out_again():
    public = publish(TABLE, margin("g"))
    promise = Guarantee.pure(1, SemiAdjacent(public, "existential"))
    (found,) = reassess({"t": EarlierRelease.of(calibrate("auto", promise, SCHEMA.names))}, public)
    assert found.advertised == Pure(1)
    assert found.existential.tradeoff == Pure(1)
    assert found.robust.tradeoff == Pure(2)


def test_a_release_that_promises_persons_nothing_leaves_no_promise():
    silent = EarlierRelease(RecordDescription("statistics", SCHEMA, {}, persons=False), Pure(1))
    for one in reassess({"s": silent, "p": Pure(1)}, publish(TABLE, margin("g"))):
        if one.name != "p":
            assert one.robust.tradeoff == one.existential.tradeoff == Nothing()


def test_other_records_and_other_units_are_refused():
    rows = calibrate("auto", Guarantee.pure(1, AddRemove(SCHEMA, 3)), SCHEMA.names)
    with pytest.raises(GuaranteeError, match="max_rows"):
        reassess({"t": EarlierRelease.of(rows)}, publish(TABLE, margin("g")))
    with pytest.raises(GuaranteeError, match="another schema"):
        reassess({"t": EarlierRelease.of(rows)}, Figures(CENSUS, (total(by="state"),)))
