"""One SQL text, three engines: equal counts, equal refusals, and no value in any message."""

from __future__ import annotations

import datetime
import math
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata, tabulate
from congenial.data.vector_statistics import codes, fetch
from congenial.errors import DataError
from tests.engines.conftest import ENGINES

SEED = 40_318
ODD = 'O\'N \\ "%s" :x {y} ü'
SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["01", "1", ODD], "within": {"state": ["PA", "PA", "NJ"]}},
        "sex": {"levels": ["1", "2"], "missing": "unknown", "other": "else"},
        "age": {"edges": [0, 5, 18], "top": "18+", "missing": "unknown"},
        "rate": {"edges": [-1, 0.7, 2], "bottom": "low", "other": "high", "missing": "low"},
        "size": {"integers": [-1, 3], "within": {"pair": ["a", "a", "b", "b", "a"]}},
        "paid": {"edges": [0, "4/3", "2.5"], "top": "more"},
        "Voter": {"levels": [True, False]},
    }
)
MARGINS = [(), ("state", "age"), ("pair", "Voter"), SCHEMA.names]


def records(n: int = 300) -> pa.Table:
    rng = np.random.default_rng(SEED)
    print("seed", SEED)
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), n)]  # noqa: E731
    cents = [Decimal(c).scaleb(-2) for c in (0, 133, 134, 249, 250, 99_999)]
    return pa.table(
        {
            "person": list(range(n)),
            "county": pick(["01", "1", ODD]),
            "sex": pick(["1", "2", "3", None]),
            "age": pa.array(pick([0, 4, 5, 17, 18, 99, None]), pa.int16()),
            "rate": pick([-7.5, -1.0, 0.69, 0.7, 1.9999, 2.0, math.inf, -math.inf, math.nan, None]),
            "size": pick([-1, 0, 1, 2, 3]),
            "paid": pa.array(pick(cents), pa.decimal128(9, 2)),
            "Voter": pick([True, False]),
        }
    )


TABLE = records()


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_counts_equal_duckdb(engine: Callable[[pa.Table], Any]) -> None:
    with Microdata.open(engine(TABLE), SCHEMA, Unit("person")) as data:
        for names in MARGINS:
            expected = tabulate(TABLE, SCHEMA, names).counts
            assert np.array_equal(data.tabulate(names).counts, expected), names
        assert data.columns == ("county", "sex", "age", "rate", "size", "paid", "Voter", "person")


def test_spark_paths_and_tables(spark: Any, tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 100), tmp_path / "a.parquet")
    pq.write_table(TABLE.slice(100), tmp_path / "b.parquet")
    expected = tabulate(TABLE, SCHEMA).counts
    assert np.array_equal(tabulate(f"spark:{tmp_path}", SCHEMA).counts, expected)
    spark.read.parquet(str(tmp_path)).createOrReplaceTempView("some_people")
    assert np.array_equal(tabulate("spark:some_people", SCHEMA).counts, expected)
    spark.catalog.dropTempView("some_people")


def test_spark_csv_as_duckdb_reads_it(spark: Any, tmp_path: Path) -> None:
    text = 'sex,age,x\n"1",7,a\n"",,"two\nlines"\n2,4.5,""\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    schema = Schema(tuple(SCHEMA.attribute(name) for name in ("sex", "age")))
    expected = tabulate(tmp_path / "a.csv", schema).counts
    assert np.array_equal(tabulate(f"spark:{tmp_path}/a.csv", schema).counts, expected)
    (tmp_path / "a.csv").write_text("sex;age\n1;S3CR3T\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'age' holds text that is not a number"):
        tabulate(f"spark:{tmp_path}/a.csv", schema)
    (tmp_path / "a.csv").write_text("sex,age\n1,2\nS3CR3T\n", encoding="utf-8")
    with pytest.raises(DataError, match="Spark could not finish") as caught:
        tabulate(f"spark:{tmp_path}/a.csv", schema)
    assert "S3CR3T" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_types_of_their_own(engine: Callable[[pa.Table], Any]) -> None:
    """A decimal column without declared scale, a float of 32 bits, dates as labels."""
    schema = Schema.from_dict(
        {
            "x": {"edges": [0, "1/3", 0.7], "top": "more"},
            "y": {"edges": [0, 0.7], "top": "more"},
            "day": {"levels": ["2020-04-01", "2020-04-02"]},
        }
    )
    table = pa.table(
        {
            "x": pa.array(
                [Decimal("0.3333"), Decimal("0.3334"), Decimal("0.7000")], pa.decimal128(20, 4)
            ),
            "y": pa.array([0.7, 0.6999, 0.7], pa.float32()),
            "day": [
                datetime.date(2020, 4, 1),
                datetime.date(2020, 4, 2),
                datetime.date(2020, 4, 2),
            ],
        }
    )
    with Microdata.open(engine(table), schema) as data:
        assert data.tabulate(["x"]).counts.tolist() == [1, 1, 1]
        assert data.tabulate(["y", "day"]).counts.tolist() == [[0, 1], [1, 1]]


MARK, NUMBER = "S3CR3T-9137", 913_791_379
SMALL = Schema.from_dict(
    {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 99]}, "size": {"integers": [1, 3]}}
)
GOOD: dict[str, Any] = {"sex": ["f", "m"], "age": [3.0, 20.0], "size": [1, 2], "id": ["a", "b"]}
REFUSED: dict[str, dict[str, Any]] = {
    "level outside": {"sex": ["f", MARK]},
    "integer outside": {"size": [1, NUMBER]},
    "integer between": {"size": [1.0, 1.5]},
    "missing": {"sex": ["f", None]},
    "nan": {"age": [3.0, math.nan]},
    "text numbers": {"age": [MARK, "3"]},
    "unit twice": {"id": [MARK, MARK]},
    "unit missing": {"id": [MARK, None]},
    "other case": {"sex": None, "Sex": ["f", MARK]},
}


def refusal(source: Any) -> DataError:
    with pytest.raises(DataError) as caught:
        tabulate(source, SMALL, unit=Unit("id"))
    return caught.value


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_the_same_words(case: str, engine: Callable[[pa.Table], Any]) -> None:
    columns = {name: column for name, column in (GOOD | REFUSED[case]).items() if column}
    table = pa.table(columns)
    error = refusal(engine(table))
    assert str(error) == str(refusal(table))
    assert MARK not in str(error)
    assert str(NUMBER) not in str(error)
    assert error.__context__ is None


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_empty(engine: Callable[[pa.Table], Any]) -> None:
    with pytest.raises(DataError, match="no records"):
        tabulate(engine(pa.table(GOOD).slice(0, 0)), SMALL, unit=Unit("id"))


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_many_levels(engine: Callable[[pa.Table], Any]) -> None:
    levels = [f"level {i}" for i in range(20_000)]
    schema = Schema.from_dict({"c": {"levels": levels}})
    table = pa.table({"c": ["level 7", "level 19999", "level 7"]})
    counts = tabulate(engine(table), schema).counts
    assert counts[7] == 2
    assert counts[19_999] == 1


WRITTEN = Schema.from_dict(
    {
        "age": {
            "edges": [0, 5, 18, 90],
            "top": "90+",
            "missing": "unknown",
            "within": {"group": ["child", "child", "adult", "adult"]},
        },
        "beds": {"integers": [1, 3], "missing": "none"},
    }
)
TEXTS = {"0-4": ["0", " 4", "0-4", "4.5"], "5-17": ["5-17", "1e1"], "18-89": ["89.9"]}
TEXTS |= {"90+": ["90+", "90", "1000", "inf"], "unknown": ["unknown", "NaN", None]}


@pytest.mark.parametrize("engine", ["duckdb", *ENGINES], indirect=True)
def test_labels_of_bins_are_values_in_text(engine: Callable[[pa.Table], Any]) -> None:
    """A column with "90+" in it is text in every database; its numbers are numbers all the same."""
    ages = [text for texts in TEXTS.values() for text in texts]
    beds = (["1", "2", "2", "3.0", "none", None] * len(ages))[: len(ages)]
    with Microdata.open(engine(pa.table({"age": ages, "beds": beds})), WRITTEN) as data:
        assert data.tabulate(["age"]).counts.tolist() == [len(one) for one in TEXTS.values()]
        assert data.tabulate(["group"]).counts.tolist() == [6, 5, 3]
        assert data.tabulate(["beds"]).counts.tolist() == [3, 5, 2, 4]
        found, _ = fetch(data, ["age", "beds"])  # and record by record
    for name, counts in (("age", [4, 2, 1, 4, 3]), ("beds", [3, 5, 2, 4])):
        assert np.bincount(codes(WRITTEN.attribute(name), found[name])).tolist() == counts


@pytest.mark.parametrize("engine", ["duckdb", *ENGINES], indirect=True)
@pytest.mark.parametrize("odd", ["89+", "90 +", "ancient", "1_0", "12d", "--1", "1 2", "5–17"])
def test_other_text_is_no_number(engine: Callable[[pa.Table], Any], odd: str) -> None:
    records = engine(pa.table({"age": ["1", odd], "beds": ["1", "2"]}))
    with pytest.raises(DataError, match="column 'age' holds text that is not a number") as caught:
        tabulate(records, WRITTEN, ["age"])
    assert odd not in str(caught.value)
