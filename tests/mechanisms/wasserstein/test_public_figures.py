"""What a base measure or a scenario takes as public: published, named, or refused."""

from __future__ import annotations

import itertools
from fractions import Fraction as F

import numpy as np
import pytest

from congenial import Figures, Schema, SeededRandomness, Table, at_most, count, publish, total
from congenial.errors import GuaranteeError
from congenial.figures.support import support
from congenial.mechanisms.wasserstein.base_measure import congenial, naive, published_sums
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios import (
    BoundedCounts,
    DependentCounts,
    IndependentRecords,
    StatedLaws,
    k_anonymity,
)
from congenial.pairs.secrets import SecretPairs, may_add
from congenial.pairs.stated_laws import pmf
from congenial.transport.delta_z import delta_z
from tests.mechanisms.wasserstein import cases

SCHEMA = Schema.from_dict({"a": {"levels": ["0", "1"]}, "b": {"levels": ["0", "1"]}})
TABLE = ("a", "b")
TRUTH = (3, 4, 2, 3)
SUMS = [((0, 1), 7), ((2, 3), 5)]


def independent(published=None, secrets="replace-one") -> SecretPairs:
    return SecretPairs(SCHEMA, (IndependentRecords(secrets),), (), "database", published)


def stated(published=None) -> SecretPairs:
    return SecretPairs(SCHEMA, (StatedLaws("as told"),), (), "query", published)


# ---- sums of the base measure --------------------------------------------------------------------


@pytest.mark.parametrize(
    "base",
    [
        congenial(4, SUMS),
        congenial(4, [((0, 1, 2, 3), 12)]),
        congenial(4, SUMS[:1]),
        congenial(4, SUMS[:1], parts=[(2, 0)]),
    ],
)
def test_sums_of_a_table_must_be_published(base):
    """A release has the sums of its base measure exactly, so they must be out already."""
    pairs = stated()
    with pytest.raises(GuaranteeError, match="not those that published figures fix"):
        WassersteinExponential(pairs, assumed_delta(2, "l1"), base, F(1), "l1", F(2), TABLE)
    if base.parts:
        return
    out = publish(Table(SCHEMA, TABLE, np.array(TRUTH).reshape(2, 2)), total(by="a"))
    known = published_sums(support(out, TABLE))
    args = assumed_delta(2, "l1"), base, F(1), "l1", F(2), TABLE
    if set(base.totals) == set(known):
        assert WassersteinExponential(stated(out), *args).guarantee.tradeoff.eps == 1
    else:  # other sums than those that are out
        with pytest.raises(GuaranteeError, match="not those that published figures fix"):
            WassersteinExponential(stated(out), *args)


def test_sums_without_a_table_are_named_in_the_promise():
    made = WassersteinExponential(stated(), assumed_delta(2, "l1"), congenial(4, SUMS), F(1))
    told = made.guarantee.explain()
    assert "the sum of values 0, 1 is 7; the sum of values 2, 3 is 5" in told
    assert "none is below 0" in told
    release = made.release(TRUTH, SeededRandomness(1))
    assert "the sum of values 0, 1 is 7" in release.explain()
    assert made.guarantee.adjacency == made.pairs
    again = WassersteinExponential(made.pairs, made.bound, made.base, F(1))
    assert again.pairs == made.pairs  # not named twice
    other = WassersteinExponential(stated(), assumed_delta(2, "l1"), naive(4), F(1))
    assert other.pairs.facts == ()


def test_independent_records_are_not_independent_given_sums():
    with pytest.raises(GuaranteeError, match="not independent"):
        WassersteinExponential(independent(), delta_z(independent()), congenial(4, SUMS), F(1))
    for base in (congenial(3, [((0, 1), 3)]), congenial(3, [((0,), 1), ((1, 2), 2)])):
        with pytest.raises(GuaranteeError, match="not independent"):
            WassersteinExponential(independent(), delta_z(independent()), base, F(1), "l1", F(2))
    number = congenial(4, [((0, 1), 7)], parts=[(2, 0), (3, 1)])
    made = WassersteinExponential(independent(), delta_z(independent()), number, F(1), "l1", F(2))
    assert "the sum in the base measure counts every record once" in made.guarantee.assumptions
    present = independent(secrets="presence")  # somebody who comes sends somebody else away
    with pytest.raises(GuaranteeError, match="not independent"):
        WassersteinExponential(present, delta_z(present), number, F(1), "l1", F(2))
    assert made.pairs.given == (
        "the sum of values 0, 1 is 7",
        "values 2, 3 are parts of values 0, 1, in this order",
    )


def test_finite_scenarios_must_have_the_sums():
    """Three people whose total is 3: a base with another sum, or a belief without it."""
    query = cases.histogram(3)
    made = WassersteinExponential.calibrate(
        cases.finite(), F(1), congenial(3, [((0, 1, 2), 3)]), query=query
    )
    assert "the sum of values 0 to 2 is 3" in made.guarantee.explain()
    for base in (congenial(3, [((0, 1, 2), 4)]), congenial(3, [((0, 1), 2)]), naive(2)):
        with pytest.raises(GuaranteeError, match="does not have the sums"):
            WassersteinExponential.calibrate(cases.finite(), F(1), base, query=query)
    two = FiniteScenarios.of([(0, 0), (0, 1), (1, 0)], {"some": [1, 1, 0]})
    assert two.possible == ((0, 0), (0, 1))  # one without a chance need not have them
    pairs = SecretPairs(cases.SCHEMA, (two,))
    base = congenial(2, [((0,), 0)])
    assert WassersteinExponential.calibrate(pairs, F(1), base, query=lambda x: x).sigma == 1


# ---- published figures beside scenarios ----------------------------------------------------------

BY_A = Figures(SCHEMA, (total(by="a"),))
PEOPLE = Figures(SCHEMA, (total(),))


def test_the_loss_of_independent_records_given_a_margin():
    """Why it is refused: somebody else must change too, and the loss is nearly twice as large."""
    with pytest.raises(GuaranteeError, match="given 'Population by a' records are not independent"):
        independent(BY_A)
    skew = {"one": [[1, 1, 1, 1], [1, 1000, 1, 1000]]}
    fact = FiniteScenarios.independent(skew).given(
        "one has a = 1", lambda x: x[0] // 2 != x[1] // 2
    )
    given = SecretPairs(SCHEMA, (fact,), (), "database")
    assert delta_z(given).value == 2
    as_if_free = WassersteinExponential(
        independent(), delta_z(independent()), naive(4), F(1), "l1", F(2), TABLE
    )
    points = np.stack(np.meshgrid(*[np.arange(-5, 7)] * 4), axis=-1).reshape(-1, 4)
    loss = cases.exact_loss(given, as_if_free.log_density, points, push=cases.histogram(4))
    assert loss > 1.99


@pytest.mark.parametrize(
    ("scenarios", "published"),
    [
        (IndependentRecords("replace-one"), BY_A),
        (IndependentRecords("replace-one"), Figures(SCHEMA, (total(), count("a = '0'")))),
        (IndependentRecords("replace-one"), Figures(SCHEMA, (at_most(count("a = '0'"), 9),))),
        (IndependentRecords("presence"), PEOPLE),
        (BoundedCounts(5, k_anonymity(1)), BY_A),
        (DependentCounts(5, "1/4", "3/4"), BY_A),
    ],
)
def test_closed_forms_are_refused_beside_other_figures(scenarios, published):
    with pytest.raises(GuaranteeError, match="are not independent"):
        SecretPairs(SCHEMA, (scenarios,), (), "query", published)


def test_the_number_of_records_may_be_public():
    assert delta_z(independent(PEOPLE)).value == 1
    assert SecretPairs(SCHEMA, (BoundedCounts(5, k_anonymity(1)),), (), "query", PEOPLE).facts
    assert stated(BY_A).figures == BY_A  # stated laws are laws given what is public


def test_blocks_are_dependent_given_somebody_elses_secret():
    """Of four people the first moves the others: given the fourth, the middle two still depend."""
    pairs = SecretPairs(SCHEMA, (DependentCounts(4, "1/4", "3/4"),))
    assert may_add(pairs, pairs, ([1], [2])).rule == "refuse"
    rows = list(itertools.product((0, 1), repeat=4))
    masses = [3 ** sum(x == row[0] for x in row[1:]) for row in rows]
    assert FiniteScenarios.of(rows, {"moved": masses}).independence([[1], [2]]) == "none"


# ---- what one record changes ---------------------------------------------------------------------


def test_a_record_that_is_absent_changes_a_table_by_one():
    told = IndependentRecords("presence", F(1))
    pairs = SecretPairs(SCHEMA, (told,))
    made = WassersteinExponential(pairs, delta_z(pairs), naive(4), F(1), "l1", F(2), TABLE)
    assert made.sigma == 1
    low = SecretPairs(SCHEMA, (IndependentRecords("presence", F(1, 2)),))
    with pytest.raises(GuaranteeError, match="table of counts by 1 under"):
        WassersteinExponential(low, delta_z(low), naive(4), F(1), "l1", F(2), TABLE)


def test_the_squared_loss_waits_for_the_sums():
    pairs = stated()
    for base in (congenial(2, [((0, 1), None)]), congenial(2, [((0,), 3), ((1,), None)])):
        with pytest.raises(GuaranteeError, match="not published yet"):
            WassersteinExponential(pairs, assumed_delta(2, "l1"), base, F(1), "squared l2", F(2))
    known = congenial(2, [((0, 1), 50)])
    made = WassersteinExponential(pairs, assumed_delta(2, "l1"), known, F(1), "squared l2", F(2))
    assert made.rate == F(1, 400)


def test_whole_numbers_beyond_doubles_are_refused():
    two = FiniteScenarios.of([(0,), (1,)], {"any": [1, 1]})
    pairs = SecretPairs(SCHEMA, (two,))
    with pytest.raises(GuaranteeError, match=r"above 2\^53"):
        delta_z(pairs, lambda x: 2**53 + 1 if x[0] else 2**53 - 1)
    with pytest.raises(GuaranteeError, match=r"above 2\^53"):
        pmf([0.5, 2**53 + 1], [1, 1])
    assert delta_z(pairs, lambda x: 2**53 + 2 if x[0] else 2**53).value == 2
