"""Properties in words, laws and pairs: what they mean, what is refused, how they are written."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import BundleError, PlanError, StructureError
from congenial.figures.figures import Figures
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.pairs.distributions import DistributionPairs, Origin
from congenial.pairs.properties import Property, Scenario, read_property, scenarios, share, together
from congenial.pairs.stated_laws import DiscreteLaw, GaussianLaw
from congenial.pairs.stored_pairs import read_pairs
from tests.mechanisms.distribution.cases import SCHEMA, example, gaussian_pairs, query

INCOME = "income = '>50K'"


def test_a_share_between_two_values():
    hidden = read_property({"share": INCOME, "between": 0.55, "and": 0.45})
    assert hidden == share(INCOME, between=(0.45, 0.55))
    ((low, high),) = hidden.pairs
    assert (low.sizes(100), high.sizes(100)) == ((45, 55), (55, 45))
    assert hidden.words == (
        "one in which the share of records with income = '>50K' is 0.45 and one in which it is 0.55"
    )


@pytest.mark.parametrize(
    ("between", "says"),
    [((0, "1/2"), "is 0 and one in which it is 0.5"), (("1/2", 1), "0.5 and one in which it is 1")],
)
def test_shares_of_nobody_half_and_everybody_in_words(between, says):
    assert share(INCOME, between=between).words.endswith(says)
    assert share(INCOME, values=[0, "1/2", 1], gap=1).words.endswith("at most 1 (among 0, 0.5, 1)")


def test_a_grid_of_values_pairs_those_within_the_gap():
    hidden = read_property({"share": INCOME, "values": [0.4, 0.45, 0.5, 0.6], "gap": 0.1})
    told = [(one.shares[0][1], other.shares[0][1]) for one, other in hidden.pairs]
    assert told == [
        (Fraction(2, 5), Fraction(9, 20)),
        (Fraction(2, 5), Fraction(1, 2)),
        (Fraction(9, 20), Fraction(1, 2)),
        (Fraction(1, 2), Fraction(3, 5)),
    ]
    assert len(hidden.scenarios) == 4


def test_several_properties_and_custom_scenarios():
    both = together(share(INCOME, between=(0.4, 0.5)), share("sex = 'f'", between=(0.2, 0.3)))
    assert both.conditions == (INCOME, "sex = 'f'")
    assert both == read_property(
        [
            {"share": INCOME, "between": 0.4, "and": 0.5},
            {"share": "sex = 'f'", "between": 0.2, "and": 0.3},
        ]
    )
    custom = scenarios(({"w = 'a'": 0.2, "w = 'b'": 0.3}, {"w = 'a'": 0.3, "w = 'b'": 0.3}))
    assert [one.sizes(10) for one in custom.scenarios] == [(2, 3, 5), (3, 3, 4)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: share(INCOME, between=(0.5, 0.5)), "gap for the share .* is 0"),
        (lambda: share(INCOME, values=[0.1, 0.5], gap=0), "is 0"),
        (lambda: share(INCOME, values=[0.1, 0.5], gap=0.1), "no two values"),
        (lambda: share(INCOME, between=(0.5, 1.5)), "impossible"),
        (lambda: share(INCOME), "to hide is missing"),
        (lambda: scenarios(({INCOME: 0.5}, {INCOME: 0.5})), "gap 0"),
        (lambda: Property((), "nothing"), "no two scenarios"),
        (lambda: Scenario(((INCOME, Fraction(1, 3)),)).sizes(100), "nearest shares are 33/100"),
        (lambda: Scenario((("a", Fraction(2, 3)), ("b", Fraction(1, 2)))), "more than 1"),
    ],
)
def test_impossible_properties(make, words):
    with pytest.raises(StructureError, match=words):
        make()


@pytest.mark.parametrize("spec", [{}, [], {"share": INCOME, "between": 0.4}])
def test_a_plan_that_does_not_say_what_to_hide(spec):
    with pytest.raises(PlanError):
        read_property(spec)


def test_pairs_survive_being_written_and_read():
    discrete = [
        DiscreteLaw.of("p", [1, 2], ["1/3", "2/3"]),
        DiscreteLaw.of("q", [1, 2], [0.5, 0.5]),
    ]
    for pairs in (
        example(),
        gaussian_pairs([[0.0], [1.0]], [[[1.0]], [[2.0]]], records=50, hidden="by test"),
        DistributionPairs.given(query(1), discrete, origin=Origin("empirical", 10, "assumed")),
    ):
        told = json.loads(json.dumps(pairs.to_dict()))
        again = read_pairs(Figures(SCHEMA), told)
        assert isinstance(again, DistributionPairs)
        assert again.same(pairs)
        assert again == pairs
    told["laws"][0]["masses"] = ["1/3"]
    with pytest.raises((BundleError, StructureError)):
        read_pairs(Figures(SCHEMA), told)
    with pytest.raises(BundleError):
        read_pairs(Figures(SCHEMA), {"metric": "pairs of distributions"})


def test_words_name_the_pairs():
    assert example().words == (
        "two ways in which the whole dataset may have come about, called 'law 0' and 'law 1'"
    )
    assert example().subject == "for the whole dataset"


@pytest.mark.parametrize(
    ("covariance", "words"),
    [
        ([[1, 0, 0], [0, 0, 0], [0, 0, 1]], "statistic 'mean b' is constant"),
        ([[1, 1, 0], [1, 1, 0], [0, 0, 1]], "mean a, mean b determine each other"),
        ([[1, 2, 0], [2, 1, 0], [0, 0, 1]], "negative eigenvalue"),
        ([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]], "not symmetric"),
        ([[1, 0], [0, 1]], "not have one row and column"),
    ],
)
def test_singular_and_impossible_covariances_are_named(covariance, words):
    with pytest.raises(StructureError, match=words):
        gaussian_pairs([[0, 0, 0], [1, 1, 1]], [covariance] * 2)


def test_equal_laws_are_a_gap_of_zero():
    with pytest.raises(StructureError, match="gap is 0"):
        gaussian_pairs([[1.0], [1.0]], [[[1.0]]] * 2)
    same = DiscreteLaw.of("p", [1, 2]), DiscreteLaw.of("q", [2, 1], [0.5, 0.5])
    with pytest.raises(StructureError, match="gap is 0"):
        DistributionPairs.given(query(1), same)


def test_laws_are_named_apart_and_known():
    law = GaussianLaw.of("p", [1.0], [[1.0]])
    with pytest.raises(StructureError, match="same label"):
        DistributionPairs.given(query(1), [law, law])
    with pytest.raises(StructureError, match="no law 'r'"):
        DistributionPairs.given(query(1), [law, GaussianLaw.of("q", [2], [[1]])], [("p", "r")])
    with pytest.raises(StructureError, match="about 2 statistics, not 1"):
        DistributionPairs.given(query(1), [GaussianLaw.of("q", [2, 1], np.eye(2)), law])
    with pytest.raises(StructureError, match="no pair of laws"):
        DistributionPairs.given(query(1), [law])


def test_translations_of_discrete_laws_are_recognised():
    def law(label, points, masses):
        return DiscreteLaw.of(label, points, masses)

    base = law("p", [[0, 0], [1, 3], [2, 1]], ["1/2", "1/4", "1/4"])
    moved = law("q", [[3.5, 2], [2.5, 4], [1.5, 1]], ["1/4", "1/4", "1/2"])
    other = law("r", [[3.5, 2], [2.5, 4], [1.5, 1]], ["1/4", "1/2", "1/4"])
    assert DistributionPairs.given(query(2), [base, moved]).translations
    assert not DistributionPairs.given(query(2), [base, other]).translations
    normal = GaussianLaw.of("n", [1.0, 2.0], np.eye(2))
    for laws in ([base, normal], [normal, base]):
        assert not DistributionPairs.given(query(2), laws).translations
    sample = law("s", np.repeat([1.0, 2.0], [1, 3]), None)
    assert sample.masses == (Fraction(1, 4), Fraction(3, 4))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([0, 1e9], [1, 1e9 + 1.4]),
        ([0.0, 1e9, 1e9 + 1e7], [0.1, 1e9 + 0.1, 1e9 + 1e7 + 1.9]),
        ([[0, 0], [1e9, 0]], [[1, 0], [1e9 + 1, 0.4]]),
        ([0.0, 1.0], [1.0, 2.0 + 2.0**-51]),
    ],
)
def test_nearly_translated_is_not_translated(one, other):
    """Points that are off by 1e-9 of the largest coordinate can tell the laws apart for sure."""
    laws = [DiscreteLaw.of("p", one), DiscreteLaw.of("q", other)]
    pairs = DistributionPairs.given(query(laws[0].dimension), laws)
    assert not pairs.translations
    with pytest.raises(StructureError, match="differ in more than their mean"):
        calibrate_distribution(pairs, 1, mechanism="directional_laplace")
    assert calibrate_distribution(pairs, 1).mechanism.name == "wasserstein"


def test_differences_of_means_far_from_zero_keep_their_digits():
    far = 2.0**50
    laws = [DiscreteLaw.of("p", [far, far + 3, far + 7]), DiscreteLaw.of("q", [far + 1] * 3)]
    pairs = DistributionPairs.given(query(1), laws)
    assert pairs.differences[0, 0] == float(Fraction(7, 3))
    moved = DiscreteLaw.of("r", [far + 0.25, far + 3.25, far + 7.25])
    again = DistributionPairs.given(query(1), [laws[0], moved])
    assert again.translations
    assert calibrate_distribution(again, 1).mechanism.noise.scales[0] >= 0.25


def test_one_statistic_takes_the_covariance_that_numpy_gives():
    """np.cov of one variable has no dimensions."""
    law = GaussianLaw.of("few", np.array([2.0]), np.cov(np.array([1.0, 2.0, 4.0])))
    assert law.covariance.shape == (1, 1)
    assert law.covariance[0, 0] == pytest.approx(7 / 3)
