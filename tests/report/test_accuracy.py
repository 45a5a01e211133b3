"""Stated errors against draws, and the epsilon that a wish needs against its definition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table, calibrate
from congenial.errors import PlanError
from congenial.figures import Figures, count, margin, publish, total
from congenial.report.accuracy import Want, _round_up, error_rows, less_noise, smallest

ALPHA = 1e-6
SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["a", "b", "c"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 40, 65], "top": "65+"},
    }
)
ADJACENCY = SemiAdjacent(Figures(SCHEMA, (total(by="county"), count("age >= 18", by="county"))))


def build(epsilon):
    return calibrate("auto", Guarantee.pure(epsilon, ADJACENCY), SCHEMA.names)


def test_rows_hold_for_every_dataset():
    """The noise does not depend on the data, so draws alone decide; false-alarm rate ALPHA."""
    mechanism, draws = build(1), 20_000
    noise = mechanism.noise(SeededRandomness(8), draws)
    rows = {row.what: row for row in error_rows(mechanism)}
    assert list(rows) == ["total", "county", "sex", "age", "county x sex x age"]
    assert rows["total"].within == rows["county"].within == 0
    for what, sums in (
        ("sex", noise.sum(axis=(1, 3))[:, 0]),
        ("county x sex x age", noise[:, 0, 0, 1]),
    ):
        inside = int(np.count_nonzero(np.abs(sums) <= rows[what].within))
        assert stats.binom.cdf(inside, draws, rows[what].level) > ALPHA
        assert float(sums.std()) == pytest.approx(rows[what].standard_deviation, rel=0.05)


@pytest.mark.parametrize(
    "text",
    [
        "margin('county','sex') within 20 at 95%",
        'count("age >= 65") within 30 at 90%',
        'margin("age") within 200 at 99.5 %',
    ],
)
def test_the_smallest_is_enough_and_less_is_not(text):
    want = Want.parse(text)
    epsilon = smallest(want, build)
    assert want.error(build(epsilon)) <= want.within
    assert want.error(build(epsilon * Fraction(95, 100))) > want.within
    assert len(str(epsilon.numerator).rstrip("0")) <= 3 or epsilon.denominator > 1


def test_a_published_figure_costs_nothing():
    assert smallest(Want.parse("total within 0 at 95%"), build) == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "margin within 5",
        "margin('sex') within x at 95%",
        "total within 5 at 100%",
        "x" * 10_000,
    ],
)
def test_wishes_that_cannot_be_read(text):
    with pytest.raises(PlanError):
        Want.parse(text)


def test_impossible_wishes_say_so():
    with pytest.raises(PlanError, match="more than 500, the most"):
        smallest(
            Want.parse("margin('age') within 0.0001 at 95%"),
            lambda epsilon: calibrate(
                "plain_laplace", Guarantee.pure(epsilon, ADJACENCY), SCHEMA.names
            ),
        )


def test_wishes_up_to_the_largest_parameter_have_an_answer():
    """Doubling from 1 goes from 256 to 512, beyond what a plan may promise; 400 is between."""

    def laplace(epsilon):
        return calibrate("plain_laplace", Guarantee.pure(epsilon, ADJACENCY), SCHEMA.names)

    parsed = Want.parse("margin('age') within 1 at 95%")
    want = replace(parsed, within=parsed.error(laplace(Fraction(400))))
    assert 399 <= smallest(want, laplace) <= 401


def test_less_noise_is_named_where_knorm_has_it() -> None:
    schema = Schema.from_dict({"a": {"levels": list("123")}, "b": {"levels": list("456")}})
    table = Table(schema, schema.names, np.full((3, 3), 5))
    margins = SemiAdjacent(publish(table, margin("a"), margin("b")))
    ours = calibrate("auto", Guarantee.pure(1, margins), schema.names)
    found = less_noise(ours)
    assert found is not None
    name, deviation = found
    assert name == "knorm"
    assert deviation < 0.85 * error_rows(ours)[-1].standard_deviation
    nested = SemiAdjacent(publish(table, total(by="a")))
    assert less_noise(calibrate("auto", Guarantee.pure(1, nested), schema.names)) is None


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        ("99.5", "99.5"),  # three digits already
        ("99.51", "99.6"),
        ("100", "100"),
        ("100.01", "101"),
        ("999.5", "1000"),
        ("1001", "1010"),
        ("0.012341", "0.0124"),
    ],
)
def test_an_epsilon_is_rounded_up_to_three_digits(value, rounded):
    assert _round_up(Fraction(value)) == Fraction(rounded)
