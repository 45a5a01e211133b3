"""The statistics of a dataset are the same on every engine, and as NumPy has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Statistic, Statistics

SCHEMA = Schema.from_dict(
    {
        "sex": {"levels": ["f", "m"]},
        "age": {"integers": [0, 110]},
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


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"], indirect=True)
def test_every_engine_agrees(engine):
    random = np.random.default_rng(7)
    n = 101
    sex, age = random.choice(["f", "m"], n), random.integers(0, 111, n)
    cost = np.round(random.exponential(600, n), 2)
    table = pa.table(
        {
            "sex": pa.array(sex, pa.string()),
            "age": pa.array(age, pa.int64()),
            "cost": pa.array(cost, pa.float64()),
        }
    )
    with Microdata.open(engine(table), SCHEMA) as data:
        found = QUERY.compute(data)
        records = QUERY.records(data, ["sex = 'f'"])
    expected = [
        age.mean(),
        np.sort(age)[25],
        np.clip(cost, 0, 500).mean(),
        np.sum((sex == "f") & (age >= 18)),
        np.mean(cost >= 1000),
    ]
    assert found.values == pytest.approx(expected, rel=1e-12)
    assert records.vectors(np.arange(n)[None])[0] == pytest.approx(expected, rel=1e-12)
    assert found.records == n
    assert int(records.flags["sex = 'f'"].sum()) == int(np.sum(sex == "f"))
