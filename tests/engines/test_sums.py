"""Sums of a number are the same on every engine, to the step."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError
from tests.engines.conftest import ENGINES

SCHEMA = Schema.from_dict({"ward": {"levels": ["a", "b", "c"]}, "size": {"levels": ["s", "l"]}})
NUMBERS = ["-7", "3.25", "12.5", "12.4999", "99", "0.05", "-2.5", "7.5"]
COLUMNS = {
    "double": pa.array([float(x) for x in NUMBERS]),
    "decimal": pa.array([Decimal(x) for x in NUMBERS], pa.decimal128(20, 4)),
    "text": pa.array(NUMBERS),
    "whole": pa.array([int(float(x)) for x in NUMBERS], pa.int64()),
    "missing": pa.array([None, *map(float, NUMBERS[1:])], pa.float64()),
}
STATED = (
    Magnitude.of("cost", [0, 50], 5, 10),
    Magnitude.of("cost", ["-2.5", 10], "0.5", 0),
    Magnitude.of("cost", ["0.3", "9.9"], "0.1", "0.3"),
    Magnitude.of("cost", [0, 20], 1, 0, ("size", "l")),
    Magnitude.of("cost", ["-2.5", 10], "0.5", 0, cap=12),
    Magnitude.of("cost", [2, 50], 2, 10).centred,
)


def people(cost):
    wards, sizes = (np.resize(one, len(NUMBERS)) for one in (["a", "b", "a"], ["s", "l"]))
    units = np.resize([1, 2, 3], len(NUMBERS))
    return pa.table({"ward": wards, "size": sizes, "cost": cost, "id": pa.array(units)})


def sums(table, number):
    with Microdata.open(table, SCHEMA, Unit("id", max_rows=3), numbers=["cost"]) as data:
        return data.tabulate_sums(["ward"], number).counts.tolist()


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_every_type_of_column(engine):
    for name, cost in COLUMNS.items():
        stored = engine(people(cost))
        for number in STATED:
            assert sums(stored, number) == sums(people(cost), number), (name, number)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize(("cell", "words"), [("much", "not a number"), ("Infinity", "infinite")])
def test_what_cannot_be_summed(engine, cell, words):
    with pytest.raises(DataError, match=words):
        sums(engine(people(pa.array([*NUMBERS[1:], cell]))), STATED[0])
