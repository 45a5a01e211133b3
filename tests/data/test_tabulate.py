from __future__ import annotations

import copy
import datetime
import gc
import gzip
import math
import pickle
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from congenial.data import tabulate as tabulate_module
from congenial.data.engines.duckdb_source import DuckDBSource
from congenial.data.schema import Schema, Unit
from congenial.data.sql import tabulation
from congenial.data.tabulate import Microdata, tabulate
from congenial.errors import DataError, SchemaError

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["01", "02", 'O\'N, "x"'], "within": {"state": ["PA", "PA", "NJ"]}},
        "sex": {"levels": ["1", "2"], "missing": "unknown", "other": "else"},
        "age": {"edges": [0, 5, 18], "top": "18+", "missing": "unknown"},
        "rate": {
            "edges": [-1, 0.7, 2],
            "bottom": "low",
            "other": "high",
            "missing": "low",
            "within": {"sign": ["-", "+", "+"]},
        },
        "size": {"integers": [-1, 3], "within": {"pair": ["a", "a", "b", "b", "a"]}},
    }
)
SEED = 7_310
N = 400


def records() -> dict[str, list[Any]]:
    rng = np.random.default_rng(SEED)
    print("seed", SEED)
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), N)]  # noqa: E731
    return {
        "extra": pick(["S3CR3T-9137", "x"]),
        "person": list(range(N)),
        "county": pick(["01", "02", 'O\'N, "x"']),
        "sex": pick(["1", "2", "3", None]),
        "age": pick([0, 4, 5, 17, 18, 99, None]),
        "rate": pick([-7.5, -1.0, 0.69, 0.7, 0.0, 1.9999, 2.0, 50.0, None]),
        "size": pick([-1, 0, 1, 2, 3]),
    }


def code(name: str, value: Any) -> int:
    """The level a person would give a value, written without the package."""
    if name == "county":
        return ["01", "02", 'O\'N, "x"'].index(value)
    if name == "sex":
        return {None: 2, "1": 0, "2": 1}.get(value, 3)
    if name == "age":
        return 3 if value is None else 0 if value < 5 else 1 if value < 18 else 2
    if name == "rate":
        if value is None or value < -1:
            return 0
        return 1 if value < 0.7 else 2 if value < 2 else 3
    return value + 1


def brute(data: dict[str, list[Any]], names: tuple[str, ...]) -> np.ndarray:
    axes = SCHEMA.axes(names)
    counts = np.zeros([axis.size for axis in axes], dtype=np.int64)
    for row in range(len(data["county"])):
        counts[tuple(a.of_base[code(a.base, data[a.base][row])] for a in axes)] += 1
    return counts


DATA = records()
ARROW = pa.table(DATA)
FRAME = pd.DataFrame(
    {k: pd.Series(v, dtype="Int64" if k == "age" else None) for k, v in DATA.items()}
)
POLARS = pl.DataFrame(DATA)


def write_csv(path: Path, table: pa.Table) -> Path:
    pa.csv.write_csv(table, path)
    return path


def semicolons(folder: Path) -> Path:
    options = pa.csv.WriteOptions(delimiter=";")
    pa.csv.write_csv(ARROW, folder / "people.csv", options)
    return folder / "people.csv"


def zipped(folder: Path) -> Path:
    plain = write_csv(folder / "people.csv", ARROW).read_bytes()
    (folder / "people.csv.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain))
    return folder / "people.csv.gz"


def parquet(folder: Path) -> Path:
    pq.write_table(ARROW, folder / "people[1].parquet")
    return folder / "people[1].parquet"


def csv_folder(folder: Path) -> Path:
    write_csv(folder / "a.csv", ARROW.slice(0, 100))
    turned = ARROW.slice(100).select(ARROW.column_names[::-1])
    write_csv(folder / "b.csv", turned)
    (folder / "_SUCCESS").touch()
    return folder


def parquet_folder(folder: Path) -> Path:
    pq.write_table(ARROW.slice(0, 100), folder / "a.parquet")
    pq.write_table(ARROW.slice(100).select(ARROW.column_names[::-1]), folder / "b.parquet")
    return folder


def relation(folder: Path) -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    return connection.from_arrow(ARROW).filter("true")


def connected(folder: Path) -> tuple[duckdb.DuckDBPyConnection, str]:
    connection = duckdb.connect(str(folder / "people.duckdb"))
    connection.from_arrow(ARROW).create("people")
    return connection, "main.people"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "csv": lambda f: write_csv(f / "people.csv", ARROW),
    "csv as text": lambda f: str(write_csv(f / "people.csv", ARROW)),
    "semicolons": semicolons,
    "gzip": zipped,
    "csv folder": csv_folder,
    "parquet": parquet,
    "parquet folder": parquet_folder,
    "arrow": lambda f: ARROW,
    "batch": lambda f: ARROW.combine_chunks().to_batches()[0],
    "reader": lambda f: ARROW.to_reader(50),
    "dataset": lambda f: ds.dataset(parquet_folder(f)),
    "pandas": lambda f: FRAME,
    "pandas categories": lambda f: FRAME.astype({"county": "category", "sex": "category"}),
    "pandas objects": lambda f: FRAME.astype({"county": object, "sex": object}),
    "polars": lambda f: POLARS,
    "polars categories": lambda f: POLARS.with_columns(pl.col("county").cast(pl.Categorical)),
    "polars lazy": lambda f: POLARS.lazy().filter(pl.col("person") >= 0),
    "relation": relation,
    "connection": connected,
}
MARGINS = [
    (),
    ("sex",),
    ("state", "age"),
    ("sign", "pair"),
    ("size", "county", "rate"),
    SCHEMA.names,
]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_against_counting(kind: str, tmp_path: Path) -> None:
    with Microdata.open(SOURCES[kind](tmp_path), SCHEMA, Unit("person")) as data:
        for names in MARGINS:
            table = data.tabulate(names)
            assert table.names == names
            assert np.array_equal(table.counts, brute(DATA, names)), names
        assert "S3CR3T" not in repr(data)
        assert repr(data) == "Microdata(county, sex, age, rate, size, person)"


def test_top_level_call() -> None:
    assert np.array_equal(tabulate(ARROW, SCHEMA).counts, brute(DATA, SCHEMA.names))
    data = Microdata.open(ARROW, SCHEMA)
    assert tabulate(data, SCHEMA, by=["sex"]).shape == (4,)
    other = Schema(SCHEMA.attributes[:2])
    with pytest.raises(DataError, match="another schema"):
        tabulate(data, other)
    with pytest.raises(SchemaError, match="no attribute"):
        data.tabulate(["nobody"])


def test_callers_connection_is_left_as_it_was(tmp_path: Path) -> None:
    connection, name = connected(tmp_path)
    before = connection.sql("SELECT view_name FROM duckdb_views()").fetchall()
    tabulate((connection, name), SCHEMA)
    assert connection.sql("SELECT view_name FROM duckdb_views()").fetchall() == before
    assert connection.sql("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "stored",
    [
        pa.int8(),
        pa.uint8(),
        pa.int64(),
        pa.uint64(),
        pa.float32(),
        pa.float64(),
        pa.decimal128(38, 20),
        pa.decimal128(5, 2),
        pa.decimal128(38, 0),
    ],
)
def test_every_numeric_type(stored: pa.DataType) -> None:
    schema = Schema.from_dict(
        {
            "x": {"edges": [-300, 0, "0.5", 7, 2**62], "top": "vast"},
            "n": {"integers": [-500, 9], "within": {"odd": ["eo"[v % 2] for v in range(-500, 10)]}},
        }
    )
    values = [Decimal(0), Decimal(3), Decimal(7), Decimal(9)]
    table = pa.table({name: pa.array(values, pa.decimal128(20, 2)).cast(stored) for name in "xn"})
    assert tabulate(table, schema, ["x"]).counts.tolist() == [0, 1, 1, 2, 0]
    counts = tabulate(table, schema, ["n"]).counts
    assert np.flatnonzero(counts).tolist() == [500, 503, 507, 509]
    assert tabulate(table, schema, ["odd"]).counts.tolist() == [1, 3]


def test_edges_are_compared_in_the_columns_type() -> None:
    schema = Schema.from_dict({"x": {"edges": [0, 0.7, "4/3", 9]}})
    for stored in (pa.float32(), pa.float64()):
        data = pa.table({"x": pa.array([0.7, 1.3333, 1.3334], stored)})
        assert tabulate(data, schema).counts.tolist() == [0, 2, 1]
    exact = [Decimal("0.69"), Decimal("0.70"), Decimal("1.33"), Decimal("1.34")]
    data = pa.table({"x": pa.array(exact, pa.decimal128(9, 2))})
    assert tabulate(data, schema).counts.tolist() == [1, 2, 1]


def test_infinite_and_not_a_number() -> None:
    schema = Schema.from_dict(
        {"x": {"edges": [0, 1], "top": "up", "bottom": "down", "missing": "none"}}
    )
    data = pa.table({"x": [math.inf, -math.inf, math.nan, None, 0.5]})
    assert tabulate(data, schema).counts.tolist() == [1, 1, 1, 2]
    sizes = Schema.from_dict({"x": {"integers": [0, 2], "missing": "none", "other": "other"}})
    assert tabulate(data, sizes).counts.tolist() == [0, 0, 0, 2, 3]


WHOLE = {"age": {"edges": [0, 18, 65], "top": "65+", "whole": True}}


@pytest.mark.parametrize("stored", ["double", "float", "decimal", "csv"])
def test_bins_of_whole_numbers_take_no_others(tmp_path: Path, stored: str) -> None:
    """41.5 was counted in "18-64"; with whole = true it is refused, or counted as other."""

    def source(*ages: object) -> Any:
        if stored == "csv":
            (tmp_path / "a.csv").write_text("\n".join(["age", *map(str, ages)]) + "\n")
            return tmp_path / "a.csv"
        kinds = {"double": pa.float64(), "float": pa.float32(), "decimal": pa.decimal128(6, 2)}
        return pa.table({"age": pa.array([Decimal(str(one)) for one in ages]).cast(kinds[stored])})

    schema = Schema.from_dict(WHOLE)
    assert tabulate(source(3, 41, 65, 70), schema).counts.tolist() == [1, 1, 2]
    with pytest.raises(DataError, match="not whole, or lie beyond its edges") as refused:
        tabulate(source(3, 41, "41.5"), schema)
    assert "41" not in str(refused.value)
    counted = Schema.from_dict({"age": WHOLE["age"] | {"other": "odd"}})
    assert tabulate(source(3, 41, "41.5", "64.25"), counted).counts.tolist() == [1, 1, 0, 2]
    real = Schema.from_dict({"age": {"edges": [0, 18, 65], "top": "65+"}})
    assert tabulate(source(3, 41, "41.5"), real).counts.tolist() == [1, 2, 0]  # as before


def test_integers_and_truth_values_as_labels() -> None:
    schema = Schema.from_dict({"a": {"levels": [1, 2]}, "b": {"levels": [True, False]}})
    data = pa.table({"a": [1, 2, 2], "b": [True, False, False]})
    assert tabulate(data, schema).counts.tolist() == [[1, 0], [0, 2]]
    dated = Schema.from_dict({"a": {"levels": ["2020-04-01"]}})
    assert tabulate(pa.table({"a": [datetime.date(2020, 4, 1)]}), dated).counts.tolist() == [1]


def test_codes_in_csv_keep_their_zeros(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("c\n01\n1\n01\n#x\n", encoding="utf-8")
    schema = Schema.from_dict({"c": {"levels": ["01", "1", "#x"]}})
    assert tabulate(tmp_path / "a.csv", schema).counts.tolist() == [2, 1, 1]


def test_names_with_quotes_and_keywords() -> None:
    names = ['a"b', "select", "NULL", "src", "c0"]
    schema = Schema.from_dict({n: {"integers": [1, 2]} for n in names})
    data = pa.table({n: [1, 2, 2] for n in names})
    assert tabulate(data, schema).counts[1, 1, 1, 1, 1] == 2


def test_many_levels() -> None:
    levels = [f"level {i}" for i in range(100_000)]
    schema = Schema.from_dict({"c": {"levels": levels}})
    print("seed", SEED)
    chosen = np.random.default_rng(SEED).integers(0, 100_000, 200_000)
    table = tabulate(pa.table({"c": pa.array(levels).take(pa.array(chosen))}), schema)
    assert np.array_equal(table.counts, np.bincount(chosen, minlength=100_000))


def test_unit_of_protection() -> None:
    schema = Schema.from_dict({"s": {"levels": ["a", "b"]}})
    data = pa.table({"s": ["a", "b", "a"], "id": [1, 2, 1]})
    assert tabulate(data, schema).total == 3
    assert tabulate(data, schema, unit=Unit("id", 2)).total == 3
    with pytest.raises(DataError, match="unit column 'id' a value occurs in more than one row\\."):
        tabulate(data, schema, unit=Unit("id"))
    with pytest.raises(DataError, match=r"no column 'idd'\. Did you mean 'id'"):
        tabulate(data, schema, unit=Unit("idd"))
    missing = pa.table({"s": ["a", "b"], "id": [1, None]})
    with pytest.raises(DataError, match="unit column 'id' has missing values"):
        Microdata.open(missing, schema, Unit("id")).check_unit()
    same = pa.table({"s": ["a", "b"]})
    assert tabulate(same, schema, unit=Unit("s")).total == 2


def test_units_are_counted_in_little_memory(tmp_path: Path) -> None:
    """As many groups as people: beyond a gigabyte they go to disk; other connections are left."""
    schema = Schema.from_dict({"s": {"levels": ["a", "b"]}})
    people = pa.table({"s": ["a", "b"], "id": [1, 2]})
    pq.write_table(people, tmp_path / "people.parquet")
    asked = "SELECT current_setting('memory_limit')"
    own = duckdb.connect()
    before = own.execute(asked).fetchall()
    own.register("people", people)
    Microdata.open((own, "people"), schema, Unit("id")).check_unit()
    assert own.execute(asked).fetchall() == before
    with Microdata.open(tmp_path / "people.parquet", schema, Unit("id")) as data:
        connection = data.source.connection  # type: ignore[attr-defined]
        free = connection.execute(asked).fetchall()
        data.check_unit()
        assert connection.execute(asked).fetchall() != free
        assert data.tabulate(["s"]).total == 2


@pytest.mark.parametrize("most", [0, 10_000_000])
def test_tables_of_many_cells_are_counted_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    limited: list[DuckDBSource] = []
    monkeypatch.setattr(tabulate_module, "SPILT", most)
    monkeypatch.setattr(DuckDBSource, "spill", lambda source: limited.append(source))
    (tmp_path / "people.csv").write_text("sex\nf\nm\nf\n")
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    assert tabulate(tmp_path / "people.csv", schema).counts.tolist() == [2, 1]
    assert len(limited) == (most == 0)


@pytest.mark.parametrize("most", [1, 255, 256, 65_536])
def test_counts_of_any_size_take_few_bytes_a_cell(most: int) -> None:
    """A table has eight bytes a cell; until it is made, as many as the largest count needs."""
    schema = Schema.from_dict({"a": {"integers": [1, 400]}, "b": {"integers": [1, 500]}})
    people = pa.table({"a": [3] * most + [400], "b": [5] * most + [500]})
    with Microdata.open(people, schema) as data:
        data.tabulate(["a"])  # loads what is loaded once
        tracemalloc.start()
        table = data.tabulate()
        largest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (table.total, table.counts[2, 4], table.counts[399, 499]) == (most + 1, most, 1)
    assert largest < (9 + np.min_scalar_type(most).itemsize) * 200_000 + 200_000


def test_too_many_cells() -> None:
    schema = Schema.from_dict({c: {"integers": [1, 2000]} for c in "abcd"})
    with pytest.raises(DataError, match="fewer or coarser axes"):
        tabulate(pa.table({c: [1] for c in "abcd"}), schema)


def test_neither_pickled_nor_copied_and_closed() -> None:
    data = Microdata.open(ARROW, SCHEMA)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(DataError, match="confidential"):
            attempt(data)
    with data:
        pass
    with pytest.raises(DataError, match="closed"):
        data.tabulate()
    assert repr(data) == "Microdata(closed)"


def test_private_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = Microdata.open(ARROW, SCHEMA)
    assert len(list(tmp_path.iterdir())) == 1
    data.tabulate()
    data.close()
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_the_remedy_for_several_rows_can_be_followed() -> None:
    schema = Schema.from_dict({"s": {"levels": ["a", "b"]}})
    data = pa.table({"s": ["a", "b", "a"], "id": [1, 1, 1]})
    with pytest.raises(DataError, match="Several rows per person on purpose: give the maximum"):
        tabulate(data, schema, unit=Unit("id"))
    with pytest.raises(DataError, match="Keep at most 2 per unit, raise max_rows, or"):
        tabulate(data, schema, unit=Unit("id", 2))


def test_thousands_of_levels_with_any_text_are_found() -> None:
    """Long lists of levels travel as one text; quotes, blanks and separators stay what they are."""
    odd = ["O'Neil", 'say "x"', "a b", "a,b", "a;b", "chr(31)", "\u00e9\u00df", "0"]
    levels = [*odd, *(f"area {at}" for at in range(1500))]
    parents = [f"p{at % 7}" for at in range(len(levels))]
    schema = Schema.from_dict({"area": {"levels": levels, "within": {"parent": parents}}})
    rng = np.random.default_rng(SEED)
    picked = [*odd, *(levels[at] for at in rng.integers(0, len(levels), 500))]
    found = tabulate(pa.table({"area": picked}), schema)
    assert found.counts.tolist() == [picked.count(level) for level in levels]
    coarse = tabulate(pa.table({"area": picked}), schema, ["parent"])
    assert coarse.counts.sum() == len(picked)
    with pytest.raises(DataError, match="values that are not in the schema"):
        tabulate(pa.table({"area": ["area 1", "area 1500"]}), schema)


def test_parquet_files_whose_types_differ(tmp_path: Path) -> None:
    """Decimals, unsigned 64 bits, a column that some files lack, types that differ."""
    schema = Schema.from_dict({"x": {"edges": [0, 2, 5], "missing": "none"}})
    stored = [pa.decimal128(9, 2), pa.uint64(), pa.float64()]
    for kind in stored:
        pq.write_table(pa.table({"x": pa.array([1, 3], kind)}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"x": pa.array([4], pa.int8())}), tmp_path / "b.parquet")
        assert tabulate(tmp_path, schema).counts.tolist() == [1, 2, 0]
    pq.write_table(pa.table({"y": [1]}), tmp_path / "b.parquet")
    assert tabulate(tmp_path, schema).counts.tolist() == [1, 1, 1]


def test_dictionaries_and_plain_pages_of_parquet(tmp_path: Path) -> None:
    schema = Schema.from_dict({"c": {"levels": ["a", "b"], "missing": "none", "other": "else"}})
    values = pa.array(["a", "b", None, "q", "a"] * 500)
    ways = [
        (values.dictionary_encode(), {}),
        (values, {"use_dictionary": False}),
        (values.cast(pa.large_string()), {"row_group_size": 300}),
    ]
    for column, options in ways:
        pq.write_table(pa.table({"c": column}), tmp_path / "a.parquet", **options)
        assert tabulate(tmp_path, schema).counts.tolist() == [1_000, 500, 500, 500]


def test_text_is_read_as_a_number_once() -> None:
    """A code compares a number several times; reading it each time took half of a count."""
    axes = SCHEMA.axes(["age", "rate", "size"])
    empty = pa.table({name: pa.array([], pa.string()) for name in SCHEMA.names})
    with Microdata.open(empty, SCHEMA) as data:
        assert tabulation(data.source, axes, SCHEMA).count("TRY_CAST") == len(axes)
