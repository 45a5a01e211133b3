"""Promises under published figures: distance, composition, subspace privacy, reassessment."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from congenial.audit.exact_audit import adjacent_pairs, exact_audit
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import GuaranteeError, StructureError
from congenial.figures.invariants import Invariants, publish
from congenial.figures.statements import count, margin, total
from congenial.ledger.reassessment import (
    Old,
    by_distance,
    reassess,
    subspace,
    suppose,
    together,
)
from congenial.mechanisms.calibrate import calibrate
from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.privacy.composition import joint_loss
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Gaussian, Nothing, Pure, ZeroConcentrated

SCHEMA = Schema.from_dict({"g": {"levels": ["a", "b"]}, "x": {"levels": ["0", "1"]}})
TABLE = Table(SCHEMA, SCHEMA.names, [[2, 1], [1, 1]])
CENSUS = Schema.from_dict(
    {"state": {"integers": [1, 51]}, "sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 99]}}
)
ALPHAS = np.linspace(0, 1, 41)


# ---- Propositions 11, 15 and 21 ----------------------------------------------------------------


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


@pytest.mark.parametrize(
    "promises",
    [
        (Pure(Fraction(1, 3)), Pure(Fraction(1, 2))),
        (Gaussian(Fraction(1, 2)), Gaussian(1)),
        (ZeroConcentrated("0.1"), ZeroConcentrated("0.2")),
    ],
)
@pytest.mark.parametrize("records", [2, 3])
def test_semi_first_is_never_worse_than_composition_first(promises, records):
    """Proposition 21."""
    both = together(promises, records)
    assert np.all(both.composition_first(ALPHAS) <= both.semi_first(ALPHAS) + 1e-9)
    for delta in (1e-6, 0.01):
        assert both.semi_first.epsilon(delta) <= both.composition_first.epsilon(delta) * (1 + 1e-9)


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
    by_promise = together([Pure(1), Pure(1)], adjacency.records).semi_first.epsilon(0.0)
    assert jointly < alone <= by_promise + 1e-9


# ---- subspace privacy and side information -----------------------------------------------------


def test_subspace_privacy_is_computed_and_called_what_it_is():
    """3 x 3 with both margins: 2 / sqrt 3 against sqrt 6."""
    schema = Schema.from_dict({"r": {"integers": [1, 3]}, "c": {"integers": [1, 3]}})
    adjacency = SemiAdjacent(Invariants(schema, (margin("r"), margin("c"))))
    found = subspace(adjacency, ("r", "c"))
    assert found.projected == pytest.approx(2 / sqrt(3), rel=1e-6)
    assert found.projected >= 2 / sqrt(3)
    assert found.semi.value == 6
    assert "protects nobody" in found.words
    assert "2.4495" in found.words
    centre = np.eye(3) - 1 / 3
    project = np.kron(centre, centre)
    brute = max(
        np.linalg.norm(project @ (np.eye(9)[i] - np.eye(9)[j]))
        for i, j in product(range(9), repeat=2)
    )
    assert found.projected == pytest.approx(brute, rel=1e-6)
    with pytest.raises(StructureError, match="too large for the projection"):
        subspace(SemiAdjacent(Invariants(CENSUS, (total(by="state"),))), CENSUS.names)


def test_subspace_privacy_without_figures_is_ordinary():
    found = subspace(ReplaceOne(SCHEMA), SCHEMA.names)
    assert found.projected == pytest.approx(sqrt(2))
    assert found.semi.value == 2


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
    states = Invariants(CENSUS, (total(by="state"),))
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
    law = Old.of(calibrate("auto", promise, SCHEMA.names))
    description = RecordDescription("records", SCHEMA, {}, epsilon=Fraction(1, 2))
    synthetic = Old(description, Pure(Fraction(1, 2)))
    figures = Invariants(SCHEMA, (margin("g"), margin("x")))
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
    (found,) = reassess({"t": Old.of(mechanism)}, publish(TABLE, margin("g"), margin("x")))
    assert found.advertised == Pure(1)
    assert found.robust.records.value == 3
    assert found.robust.tradeoff.eps == mechanism.description.scale * 4
    with pytest.raises(GuaranteeError, match="no release"):
        reassess({}, public)


def test_what_was_advertised_is_read_and_not_worked_out_again():
    public = publish(TABLE, margin("g"))
    promise = Guarantee.pure(1, SemiAdjacent(public, "existential"))
    (found,) = reassess({"t": Old.of(calibrate("auto", promise, SCHEMA.names))}, public)
    assert found.advertised == Pure(1)
    assert found.existential.tradeoff == Pure(1)
    assert found.robust.tradeoff == Pure(2)


def test_a_release_that_promises_persons_nothing_leaves_no_promise():
    silent = Old(RecordDescription("statistics", SCHEMA, {}, persons=False), Pure(1))
    for one in reassess({"s": silent, "p": Pure(1)}, publish(TABLE, margin("g"))):
        if one.name != "p":
            assert one.robust.tradeoff == one.existential.tradeoff == Nothing()


def test_other_records_and_other_units_are_refused():
    rows = calibrate("auto", Guarantee.pure(1, AddRemove(SCHEMA, 3)), SCHEMA.names)
    with pytest.raises(GuaranteeError, match="max_rows"):
        reassess({"t": Old.of(rows)}, publish(TABLE, margin("g")))
    with pytest.raises(GuaranteeError, match="another schema"):
        reassess({"t": Old.of(rows)}, Invariants(CENSUS, (total(by="state"),)))
