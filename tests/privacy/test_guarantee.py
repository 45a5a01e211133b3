"""The promise: every clause comes from a field; guarantees are added only when alike."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, Table, count, publish, total
from congenial.errors import GuaranteeError
from congenial.figures.statements import of_units
from congenial.pairs import AddRemove, ReplaceOne, SemiAdjacent, SensitiveValues, SeveralRows
from congenial.pairs.pairs import OTHERS
from congenial.privacy.guarantee import BASES
from congenial.privacy.numbers import number, odds
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure

SCHEMA = Schema.from_dict(
    {"county": {"levels": ["a", "b", "c"]}, "age": {"edges": [0, 18], "top": "18+"}}
)
TABLE = Table(SCHEMA, SCHEMA.names, np.arange(6).reshape(3, 2))
COUNTY = total(by="county").named("Population", "Constitution, article 1")
MANDATED = SemiAdjacent(publish(TABLE, COUNTY))


def test_each_clause_follows_its_field():
    base = Guarantee.pure(1, MANDATED)
    text = base.explain()
    assert "Published exactly: Population (Constitution, article 1); the number of people." in text
    assert "Neither these nor what follows from them is protected." in text
    assert (
        "For the rest: the protection compares datasets that agree with the exact figures and "
        "differ in at most 2 people's records." in text
    )
    assert "more than 2.72 times as likely" in text
    assert "(epsilon = 1 per person)" in text
    assert "Basis: theorem" in text
    assert "facts about groups" in text
    assert "Spent" not in text
    assert base.explain("epsilon = 1 of epsilon = 4").endswith("Spent: epsilon = 1 of epsilon = 4.")


def test_changing_a_field_changes_its_clause_alone():
    base = Guarantee.pure(1, MANDATED)
    assert "Assumed: one row each." in replace(base, assumptions=("one row each",)).explain()
    sentences = replace(base, assumptions=("The promise leans on beliefs.", "one row each"))
    assert "Assumed: The promise leans on beliefs; one row each." in sentences.explain()
    assert "; magnitudes." in replace(base, not_covered=("magnitudes",)).explain()
    for basis in BASES:
        assert f"Basis: {basis} (" in replace(base, basis=basis).explain()
    twice = replace(base, tradeoff=Pure(2)).explain()
    assert "7.39 times" in twice
    for ours, theirs in (("7.39", "2.72"), ("epsilon = 2", "epsilon = 1"), ("89", "74")):
        twice = twice.replace(ours, theirs)
    assert twice == base.explain()


CROSSED = publish(TABLE, total(by="county"), total(by="age"))
ONE_ROW = (ReplaceOne(SCHEMA), SemiAdjacent(publish(TABLE, total())))
UNITS = Figures.of(SCHEMA, (total(), of_units(total())))

# pairs -> whose guess is bounded, where the promise says so
GUESSERS = {
    "nothing published": (
        ONE_ROW[0],
        "knows every record except yours, or believes that yours is independent of them, and "
        "thinks two possible answers of yours equally likely",
    ),
    "a figure that leaves one record free": (ONE_ROW[1], "knows every record except yours, or "),
    "one other": (
        MANDATED,
        "knows every record except yours and at most one other (whom the exact figures can force "
        "to change with yours), and thinks two possible answers of yours equally likely",
    ),
    "two others": (
        SemiAdjacent(CROSSED),
        "knows every record except yours and at most 2 others (whom the exact figures can force "
        "to change with yours), and thinks two possible answers of yours equally likely",
    ),
    "existential": (
        SemiAdjacent(CROSSED, "existential"),
        "has ruled out all but two datasets that are compared with each other, and thinks these "
        "two equally likely",
    ),
    "rows that come and go": (
        SemiAdjacent(CROSSED, metric="symmetric difference"),
        "has ruled out all but two datasets that are compared with each other, and thinks these "
        "two equally likely",
    ),
    "presence": (
        AddRemove(SCHEMA, 3),
        "knows every other person's rows, or believes that yours are independent of them, and "
        "thinks it equally likely that you are in the data with certain rows and that you are not",
    ),
    "some columns": (
        SensitiveValues(publish(TABLE, COUNTY), ("county",)),
        "knows everybody's county, knows the other people's age or believes that yours is "
        "independent of theirs, and thinks two values of yours equally likely",
    ),
    "units": (
        SeveralRows(publish(TABLE, COUNTY), 3),
        "knows every row except at most 6 rows of at most 4 units, yours among them, and thinks "
        "two possible contents of your unit equally likely",
    ),
    "tables of units": (
        SeveralRows.given(UNITS, 3).tables_of_units,
        "knows every row except at most 5 rows of at most 3 units, yours among them, and thinks ",
    ),
    "one unit alone": (
        SeveralRows(Figures(SCHEMA), 3),
        "knows the rows of every unit except yours, or believes that yours are independent of "
        "them, and thinks two possible contents of your unit equally likely",
    ),
}


@pytest.mark.parametrize("name", GUESSERS)
def test_a_promise_says_whose_guess_it_bounds_and_never_shorter(name):
    pairs, who = GUESSERS[name]
    text = Guarantee.pure(1, pairs).explain()
    assert f"Suppose someone {who}" in text
    said = "This release alone lets them guess right at most 74 times in 100; without it, 50."
    assert said in text


@pytest.mark.parametrize("name", GUESSERS)
def test_what_others_tell_is_not_covered_where_figures_force_others_to_change(name):
    """And only there: where one record can change alone, independent beliefs stay independent."""
    alone = {"nothing published", "a figure that leaves one record free", "presence"}
    left_open = Guarantee.pure(1, GUESSERS[name][0]).left_open
    assert (OTHERS in left_open) is (name not in alone | {"some columns", "one unit alone"})


def test_a_guess_is_quoted_from_the_promise_itself_rounded_up():
    for tradeoff, times in (
        (Pure(0), "50"),
        (Pure("1/1000"), "50.03"),
        (Approximate(1, 1e-3), "74"),  # (1 + delta + (1 - delta) tanh(1/2)) / 2 = .73133
        (Gaussian(0.5), "60"),  # Phi(1/4) = .5987
        (Pure(8), "99.97"),
        (Pure(100), "100"),
    ):
        text = Guarantee(MANDATED, tradeoff).explain()
        assert f"guess right at most {times} times in 100" in text


def test_tables_of_units_and_of_rows_are_compared_over_the_same_pairs():
    rows = SeveralRows.given(UNITS, 3)
    assert rows.tables_of_units.words == rows.words


def test_without_mandates_and_with_several_rows():
    plain = Guarantee.pure("0.5", ReplaceOne(SCHEMA)).explain()
    assert "Published exactly: the number of people." in plain
    assert "two datasets of the same size that differ in one person's record" in plain
    rows = Guarantee.pure(1, AddRemove(SCHEMA, 3)).explain()
    assert "Published exactly: nothing." in rows
    assert "one lacks one person's 3 rows" in rows


def test_other_kinds_of_promise_in_words():
    zcdp = Guarantee.zero_concentrated("0.125", MANDATED).explain()
    assert "rho = 0.125" in zcdp
    assert "plus 1e-09" in zcdp
    gauss = Guarantee.gaussian(1, MANDATED).explain()
    assert "mu = 1" in gauss
    slack = Guarantee.approximate(1, 1e-6, MANDATED).explain()
    assert "at most 2.72 times its probability under the other, plus 1e-06" in slack
    assert "exactly as likely" in Guarantee(MANDATED, Pure(0)).explain()


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), 0.1, 1, 2.5, Fraction(7), 30])
def test_printed_numbers_never_promise_more(epsilon):
    assert float(odds(epsilon)) >= math.exp(float(epsilon)) * (1 - 1e-15)
    assert float(number(epsilon)) >= float(epsilon)
    assert float(odds(epsilon)) <= math.exp(float(epsilon)) * 1.01


def test_partial_order_of_semi_dp():
    strong, weak = Guarantee.pure(1, MANDATED), Guarantee.pure(2, MANDATED)
    assert weak <= strong
    assert not strong <= weak
    # All pairs at distance one contain fewer pairs at distance two than the mandated universe asks.
    unmandated = Guarantee.pure(1, ReplaceOne(SCHEMA))
    assert not strong <= unmandated
    assert not unmandated <= strong
    more = SemiAdjacent(publish(TABLE, COUNTY, count("age >= 18", by="county")))
    assert Guarantee.pure(1, more) <= strong
    assert not strong <= Guarantee.pure(1, more)


def test_composition_refuses_mixed_universes():
    one = Guarantee.pure(1, MANDATED)
    both = one.compose(replace(one, basis="estimate", assumptions=("a model",)))
    assert both.basis == "estimate"
    assert both.assumptions == ("a model",)
    assert both.tradeoff.epsilon(0.0) == pytest.approx(2)
    with pytest.raises(GuaranteeError, match="compare different datasets") as error:
        one.compose(Guarantee.pure(1, ReplaceOne(SCHEMA)))
    assert error.value.remedy
    with pytest.raises(GuaranteeError, match="compare different datasets"):
        one.compose(Guarantee.pure(1, AddRemove(SCHEMA, 1)))


def test_notebook_view_escapes_what_a_person_wrote():
    hostile = SemiAdjacent(publish(TABLE, total().named("<script>alert(1)</script>")))
    html = Guarantee.pure(1, hostile)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
