from __future__ import annotations

import copy
import json
import pickle
import pprint

import numpy as np
import pytest

from congenial.data.schema import Schema, Unit
from congenial.data.table import Table
from congenial.errors import DataError, SchemaError

SCHEMA = Schema.from_dict(
    {
        "county": {
            "levels": ["A", "B", "C", "D"],
            "within": {"state": ["x", "y", "x", "y"], "land": ["l", "l", "l", "l"]},
        },
        "sex": {"levels": ["f", "m"]},
        "hh": {"integers": [1, 3], "within": {"big": ["no", "no", "yes"]}},
    }
)
SEED = 20_240_601


def random_table() -> Table:
    print("seed", SEED)
    counts = np.random.default_rng(SEED).integers(0, 50, (4, 2, 3))
    return Table(SCHEMA, SCHEMA.names, counts)


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("sex",),
        ("hh", "county"),
        ("state",),
        ("big", "sex", "state"),
        ("hh", "sex", "county"),
        ("land", "hh"),
    ],
)
def test_marginal_against_brute_force(names: tuple[str, ...]) -> None:
    table = random_table()
    axes = SCHEMA.axes(names)
    expected = np.zeros([axis.size for axis in axes], dtype=np.int64)
    for index in np.ndindex(*table.shape):
        at = dict(zip(table.names, index, strict=True))
        expected[tuple(axis.of_base[at[axis.base]] for axis in axes)] += table.counts[index]
    margin = table.marginal(names)
    assert margin.names == names
    assert np.array_equal(margin.counts, expected)
    assert margin.total == table.total


def test_marginal_of_a_coarser_table() -> None:
    table = random_table().marginal(["state", "hh"])
    assert table.marginal(["land"]).counts.tolist() == [table.total]
    with pytest.raises(SchemaError, match="cannot be summed"):
        table.marginal(["county"])
    with pytest.raises(SchemaError, match="has no 'sex'"):
        table.marginal(["sex"])


def test_total_only() -> None:
    table = Table(SCHEMA, [], 7)
    assert table.counts.shape == ()
    assert table.total == 7
    assert repr(table) == "Table(total)"
    assert table.marginal([]).total == 7


def test_counts_are_read_only_copies() -> None:
    source = np.array([3, 4])
    table = Table(SCHEMA, ["sex"], source)
    source[0] = 99
    assert table.counts.tolist() == [3, 4]
    with pytest.raises(ValueError, match="read-only"):
        table.counts[0] = 1
    with pytest.raises(AttributeError):
        table._counts = source
    with pytest.raises(AttributeError):
        del table._axes


@pytest.mark.parametrize(
    ("counts", "match"),
    [
        ([918273, 2, 3], "shape"),
        ([[918273, 2]], "shape"),
        ([918273.5, 2.0], "whole numbers"),
        ([918273, float("nan")], "whole numbers"),
        ([True, False], "whole numbers"),
        (["918273", "2"], "whole numbers"),
        ([918273, None], "whole numbers"),
        ([[918273], [1, 2]], "whole numbers"),
        ([-918273, 2], "negative"),
        ([2**63 - 918273, 918273], "sum to more"),
        (np.array([2**63 + 918273, 0], dtype=np.uint64), "sum to more"),
        ([2**70 + 918273, 0], "sum to more"),
        (np.array([2**64 - 1, 918273], dtype=np.uint64), "sum to more"),
    ],
)
def test_bad_counts_are_refused_without_showing_them(counts: object, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        Table(SCHEMA, ["sex"], counts)  # type: ignore[arg-type]
    assert "918273" not in str(caught.value)
    assert caught.value.__context__ is None


def test_largest_sum_is_allowed() -> None:
    assert Table(SCHEMA, ["sex"], [2**63 - 2, 1]).total == 2**63 - 1
    assert Table(SCHEMA, ["sex"], np.array([1, 2], dtype=np.uint8)).total == 3


def test_two_axes_of_one_attribute() -> None:
    with pytest.raises(SchemaError, match="in one table"):
        Table(SCHEMA, ["county", "state"], np.zeros((4, 2), dtype=int))


def test_nothing_shows_the_counts() -> None:
    table = Table(SCHEMA, ["sex"], [918273, 645546])
    shown = [repr(table), str(table), f"{table}", f"{table:>40}", f"{table!s}", f"{table!r}"]
    shown += [table._repr_html_(), pprint.pformat(table), repr([table]), f"{np.asarray(table)}"]
    for text in shown:
        assert "918273" not in text
        assert "Table(sex: 2)" in text
    with pytest.raises(TypeError):
        json.dumps(table)
    with pytest.raises(TypeError):
        vars(table)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(DataError, match="confidential"):
            attempt(table)


def test_unit() -> None:
    assert Unit().rows == Unit(None, 1).rows == 1
    assert not Unit().checked
    for bad in ({"max_rows": 0}, {"max_rows": True}, {"max_rows": 1.5}, {"column": ""}):
        with pytest.raises(DataError):
            Unit(**bad)  # type: ignore[arg-type]


def test_the_margin_over_its_own_axes_is_the_table() -> None:
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "hh": {"integers": [1, 3]}})
    table = Table(schema, ["sex", "hh"], [[1, 2, 3], [4, 5, 6]])
    assert table.marginal(["sex", "hh"]) is table
    assert table.marginal(("hh", "sex")).counts.tolist() == [[1, 4], [2, 5], [3, 6]]
