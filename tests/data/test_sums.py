"""Sums of a column: cut to bounds and rounded to steps, whatever stores the numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import floor

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError

SCHEMA = Schema.from_dict({"ward": {"levels": ["a", "b", "c"]}, "sex": {"levels": ["f", "m"]}})
WARDS = ["a", "a", "b", "b", "b", "b"]
SEXES = ["f", "f", "m", "f", "m", "m"]
NUMBERS = ["-7", "3.25", "12.5", "12.4999", "99", "0.05"]
COLUMNS = {
    "double": pa.array([float(x) for x in NUMBERS]),
    "float": pa.array([float(x) for x in NUMBERS], pa.float32()),
    "decimal": pa.array([Decimal(x) for x in NUMBERS], pa.decimal128(12, 4)),
    "text": pa.array(NUMBERS),
    "whole": pa.array([floor(float(x)) for x in NUMBERS]),
}
STATED = [
    Magnitude.of("cost", [0, 50], 5),
    Magnitude.of("cost", ["-2.5", 10], "0.5"),
    Magnitude.of("cost", [1, 20], 1),
    Magnitude.of("cost", [-30, -3], 3),
    Magnitude.of("cost", ["0.3", "9.9"], "0.1"),
    Magnitude.of("cost", [2, 50], 2).centred,
]


def people(cost, **more):
    return pa.table({"ward": WARDS, "sex": SEXES, "cost": cost, **more})


def by_hand(values, number):
    """Steps of each number: cut, then halves upwards, in exact arithmetic."""
    cut = [min(max(x, Fraction(number.low)), Fraction(number.high)) for x in values]
    return [floor((x - number.shift) / number.step + Fraction(1, 2)) for x in cut]


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("number", STATED, ids=lambda one: f"{one.step}-{one.shift}")
def test_every_type_of_column(kind, number):
    cost = COLUMNS[kind]
    exact = [Fraction(str(x) if kind != "float" else float(str(np.float32(x)))) for x in
             cost.to_pylist()]  # fmt: skip
    steps = by_hand(exact, number)
    expected = np.zeros((3, 2), dtype=int)
    for ward, sex, one in zip(WARDS, SEXES, steps, strict=True):
        expected["abc".index(ward), "fm".index(sex)] += one
    with Microdata.open(people(cost), SCHEMA, numbers=["cost"]) as data:
        found = data.tabulate_sums(["ward", "sex"], number)
        total = data.tabulate_sums([], number)
    assert found.counts.tolist() == expected.tolist()
    assert total.counts == expected.sum()
    assert found.marginal(["sex"]).counts.tolist() == expected.sum(axis=0).tolist()
    assert repr(found) == "SumsTable(ward: 3, sex: 2)"


@pytest.mark.parametrize("stated", [([0, 50], 5, 60), ([-30, 50], 1, 50), ([0, 2**40], 1, 2**39)])
def test_the_rows_of_a_unit_are_scaled_down_to_a_cap(stated):
    between, step, cap = stated
    rng = np.random.default_rng(4)
    values = rng.integers(-60, 90, 200) * (1 if cap < 100 else 2**33)
    units, wards = rng.integers(0, 40, 200), rng.integers(0, 3, 200)
    number = Magnitude.of("cost", between, step, cap=cap)
    steps = np.array(by_hand([Fraction(int(x)) for x in values], number), dtype=object)
    sums = [0, 0, 0]
    for unit in range(40):
        rows = np.flatnonzero(units == unit)
        size, most = sum(abs(steps[rows])), cap // step
        for row in rows:
            kept = steps[row] if size <= most else abs(steps[row]) * most // size
            sums[wards[row]] += kept if size <= most or steps[row] > 0 else -kept
    table = pa.table({"ward": np.array(list("abc"))[wards], "sex": ["f"] * 200, "cost": values,
                      "id": units})  # fmt: skip
    with Microdata.open(table, SCHEMA, Unit("id", max_rows=20), numbers=["cost"]) as data:
        assert data.tabulate_sums(["ward"], number).counts.tolist() == sums
        assert data.tabulate_sums([], number).counts == sum(sums)
    with (
        Microdata.open(table, SCHEMA, numbers=["cost"]) as data,
        pytest.raises(DataError, match="no unit column"),
    ):
        data.tabulate_sums(["ward"], number)


def test_people_without_a_number():
    cost = pa.array([1.0, None, float("nan"), 2.0, 3.0, 4.0])
    with Microdata.open(people(cost), SCHEMA, numbers=["cost"]) as data:
        with pytest.raises(DataError, match="has no number for some people"):
            data.tabulate_sums(["ward"], Magnitude.of("cost", [0, 9]))
        found = data.tabulate_sums(["ward"], Magnitude.of("cost", [0, 9], missing=5))
    assert found.counts.tolist() == [6, 14, 0]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (pa.array(["1", "2", "much", "4", "5", "6"]), "text that is not a number"),
        (pa.array([1.0, 2.0, float("inf"), 4.0, 5.0, 6.0]), "an infinite number"),
        (pa.array(["1", "2", "-inf", "4", "5", "6"]), "an infinite number"),
        (pa.array([True] * 6), "truth values"),
    ],
)
def test_what_cannot_be_summed_is_refused_without_a_value(cost, words):
    with (
        pytest.raises(DataError) as refused,
        Microdata.open(people(cost), SCHEMA, numbers=["cost"]) as data,
    ):
        data.tabulate_sums(["ward"], Magnitude.of("cost", [0, 9]))
    assert words in str(refused.value)
    assert "much" not in str(refused.value)


def test_a_column_that_is_not_there():
    with pytest.raises(DataError, match="cost"):
        Microdata.open(pa.table({"ward": WARDS, "sex": SEXES}), SCHEMA, numbers=["cost"])
