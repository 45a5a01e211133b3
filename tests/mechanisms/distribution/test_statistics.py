"""Statistics of records: engine, memory and brute force agree; what is refused, and how."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Statistic, Statistics, Vector
from congenial.errors import DataError, SchemaError

SCHEMA = Schema.from_dict(
    {
        "id": {"integers": [0, 10_000]},
        "sex": {"levels": ["f", "m"]},
        "age": {"integers": [0, 110], "missing": "unknown"},
        "cost": {"edges": [0, 1000], "top": "1000+"},
    }
)
QUERY = Statistics(
    SCHEMA,
    (
        Statistic.mean("age"),
        Statistic.quantile("age", 0.25),
        Statistic.mean("cost", between=(0, 500)),
        Statistic.count("sex = 'f' and age >= 18"),
        Statistic.proportion("cost >= 1000"),
    ),
)
N = 101


def people(seed=7, **changes):
    random = np.random.default_rng(seed)
    columns = {
        "id": np.arange(N),
        "sex": random.choice(["f", "m"], N),
        "age": random.integers(0, 111, N),
        "cost": np.round(random.exponential(600, N), 2),
    }
    return pa.table(columns | changes)


def expected(table):
    told = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    return [
        told["age"].mean(),
        np.sort(told["age"])[math.ceil(len(told["age"]) / 4) - 1],
        np.clip(told["cost"], 0, 500).mean(),
        np.sum((told["sex"] == "f") & (told["age"] >= 18)),
        np.mean(told["cost"] >= 1000),
    ]


def test_the_engine_agrees_with_numpy(tmp_path):
    table = people()
    for source in (table, write_csv(table, tmp_path / "people.csv")):
        with Microdata.open(source, SCHEMA) as data:
            found = QUERY.compute(data)
            records = QUERY.records(data, ["sex = 'f'"])
        assert found.values == pytest.approx(expected(table), rel=1e-12)
        assert found.records == len(records) == N
        assert records.vectors(np.arange(N)[None])[0] == pytest.approx(expected(table), rel=1e-12)
        assert np.array_equal(records.flags["sex = 'f'"], table["sex"].to_numpy() == "f")


def write_csv(table, path):
    import pyarrow.csv

    pyarrow.csv.write_csv(table, path)
    return path


def test_subsets_are_computed_row_by_row():
    table = people()
    with Microdata.open(table, SCHEMA) as data:
        records = QUERY.records(data)
    random = np.random.default_rng(1)
    index = np.array([random.choice(N, 17, replace=False) for _ in range(5)])
    for row, found in zip(index, records.vectors(index), strict=True):
        assert found == pytest.approx(expected(table.take(pa.array(row))), rel=1e-12)


def test_a_custom_function_of_columns():
    def ratio(columns):
        return float(columns["cost"].sum() / columns["age"].sum())

    made = Statistics(SCHEMA, (Statistic.custom("cost per year", ["cost", "age"], ratio),))
    table = people()
    with Microdata.open(table, SCHEMA) as data:
        found = made.compute(data).values[0]
    assert found == pytest.approx(
        table["cost"].to_numpy().sum() / table["age"].to_numpy().sum(), rel=1e-12
    )
    assert np.isinf(made.change(10)).all()
    assert made.spacing(10).tolist() == [0.0]


def test_what_one_record_changes_and_the_grid():
    assert QUERY.change(100).tolist() == pytest.approx([1.1, 110, 5, 1, 0.01])
    assert QUERY.spacing(100).tolist() == pytest.approx([0.01, 1, 0.01, 1, 0.01])
    real = Schema.from_dict(
        {"height": {"edges": [0, "2.5"]}, "cost": {"edges": [0], "top": "more"}}
    )
    made = Statistics(real, (Statistic.mean("height"), Statistic.mean("cost")))
    assert made.change(10).tolist() == [0.25, np.inf]
    assert made.spacing(10).tolist() == [0.0, 0.1]


def test_no_neighbour_moves_a_statistic_further_than_stated():
    random, small = np.random.default_rng(3), 7
    bounded = Statistics(SCHEMA, QUERY.parts)
    reach = bounded.change(small)
    with Microdata.open(people(), SCHEMA) as data:
        records = bounded.records(data)
    rows = np.array([random.choice(N, small + 1, replace=False) for _ in range(2000)])
    before, after = records.vectors(rows[:, :small]), records.vectors(rows[:, 1:])
    moved = np.abs(before - after).max(axis=0)
    assert np.all(moved <= reach + 1e-12)
    assert np.all(moved >= 0.5 * reach)  # and the bounds are not idle


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"age": pa.array([None, *[3] * (N - 1)])}, "has no number"),
        ({"age": [200, *[3] * (N - 1)]}, "outside the schema's range|not in the schema"),
        ({"cost": [-4.0, *[3.0] * (N - 1)]}, "not in the schema"),
    ],
)
def test_data_that_do_not_fit_are_refused_without_a_value(changes, words):
    with Microdata.open(people(**changes), SCHEMA) as data:
        for action in (QUERY.compute, QUERY.records):
            with pytest.raises(DataError, match=words) as caught:
                action(data)
            assert "200" not in str(caught.value)


def test_values_are_cut_at_bounds_that_no_double_is():
    """0.1 as a double is above a tenth, and 0.3 below three tenths."""
    schema = Schema.from_dict({"cost": {"edges": [0], "top": "more"}})
    query = Statistics(schema, (Statistic.mean("cost", between=("0.1", "0.3"), name="cost"),))
    for values, mean in (([0.0, 0.2, 0.7], 0.2), ([0.0, 0.0, 0.0], 0.1)):
        with Microdata.open(pa.table({"cost": values}), schema) as data:
            assert query.compute(data).values == pytest.approx([mean])
            assert query.records(data).numbers.mean() == pytest.approx(mean)
    narrow = Statistics(schema, (Statistic.mean("cost", between=(0, "0.1")),))
    with Microdata.open(pa.table({"cost": [0.0, 0.2, 0.7]}), schema) as data:
        assert narrow.compute(data).values == pytest.approx([0.2 / 3])
        assert narrow.records(data).numbers.mean() == pytest.approx(0.2 / 3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Statistic.quantile("age", 0), "does not exist"),
        (lambda: Statistic.mean("age", between=(5, 5)), "not a range"),
        (lambda: Statistics(SCHEMA, (Statistic.mean("sex"),)), "categories of 'sex' are text"),
        (lambda: Statistics(SCHEMA, ()), "no statistic"),
        (lambda: Statistics(SCHEMA, (Statistic.mean("age"),) * 2), "more than once"),
        (lambda: Statistic.read("x", {"median": "age"}), "cannot be read"),
    ],
)
def test_bad_statistics(make, words):
    with pytest.raises(SchemaError, match=words):
        make()


def test_statistics_are_read_from_a_plan_and_back():
    for part in QUERY.parts:
        assert Statistic.read(part.name, part.to_dict()) == part


def test_confidential_values_are_neither_shown_nor_copied():
    vector = Vector(["mean age"], [41.5], 100)
    with Microdata.open(people(), SCHEMA) as data:
        records = QUERY.records(data)
    for secret in (vector, records):
        assert "41.5" not in repr(secret)
        for action in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(DataError, match="neither pickled nor copied"):
                action(secret)


def test_overlap_is_seen_by_origin_and_by_unit():
    table = people()
    unit = Unit("id")

    def read(part, with_unit=True):
        with Microdata.open(part, SCHEMA, unit if with_unit else None) as data:
            return QUERY.records(data)

    whole = read(table)
    one, two, rest = whole.split([30, 20], np.random.default_rng(2).permutation(N))
    assert [len(part) for part in (one, two, rest)] == [30, 20, N - 50]
    assert one.overlaps(two) is False
    assert whole.overlaps(two) is True
    assert read(table.slice(0, 40)).overlaps(read(table.slice(40))) is False
    assert read(table.slice(0, 41)).overlaps(read(table.slice(40))) is True
    assert read(table, False).overlaps(read(table, False)) is None
    with pytest.raises(DataError, match="too few records"):
        whole.split([N + 1], np.arange(N))


@pytest.mark.parametrize("kind", ["mean", "quantile", "cut"])
def test_a_column_of_whole_numbers_takes_no_others(kind):
    """An age of 41.5 was averaged though the schema has whole numbers only."""
    part = {
        "mean": Statistic.mean("age"),
        "quantile": Statistic.quantile("age", 0.5),
        "cut": Statistic.mean("age", between=(0, 60)),
    }[kind]
    query = Statistics(SCHEMA, (part,))
    ages = np.full(N, 30.0)
    with Microdata.open(people(age=ages), SCHEMA) as data:
        assert query.compute(data).values[0] == 30
    ages[3] = 41.5
    with Microdata.open(people(age=ages), SCHEMA) as data:
        for ask in (query.compute, query.records):
            with pytest.raises(DataError, match="not whole") as refused:
                ask(data)
            assert "41" not in str(refused.value)
    bins = Schema.from_dict({"age": {"edges": [0, 100]}})  # real numbers, as before
    with Microdata.open(people(age=ages), bins) as data:
        assert Statistics(bins, (part,)).compute(data).values[0] > 29


@pytest.mark.parametrize("whole", [True, False])
def test_a_mean_takes_the_numbers_that_the_bins_hold(whole):
    """Without whole = true, 89.5 is counted in the bin from 65 to 90, and may be averaged."""
    schema = Schema.from_dict({"age": {"edges": [0, 18, 65, 90], "whole": whole}})
    query = Statistics(schema, (Statistic.mean("age"), Statistic.quantile("age", 1)))
    assert query.change(10).tolist() == pytest.approx([8.9, 89] if whole else [9, 90])
    assert query.spacing(10).tolist() == [0.1, 1]  # the wider grid: its dither is no weaker
    inside, outside = [41.0, 89.0 if whole else 89.5], [41.0, 90.0]
    with Microdata.open(pa.table({"age": inside}), schema) as data:
        assert query.compute(data).values.tolist() == [np.mean(inside), inside[1]]
        assert query.records(data).vectors(np.array([[0, 1]]))[0, 0] == np.mean(inside)
    with Microdata.open(pa.table({"age": outside}), schema) as data:
        for read in (query.compute, query.records):
            with pytest.raises(DataError, match=r"range|not in the schema"):
                read(data)
