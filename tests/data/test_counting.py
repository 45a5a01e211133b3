"""Counting Parquet files without SQL: equal to SQL, bounded, resumable, and private on disk."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial.data.engines import parquet_count
from congenial.data.engines.parquet_count import Progress
from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata, tabulate
from congenial.errors import DataError

SEED = 88_120
N = 3_000
SCHEMA = Schema.from_dict(
    {
        "county": {
            "levels": ["01", "1", "x", "never"],
            "within": {"state": ["PA", "PA", "NJ", "NJ"]},
        },
        "code": {"levels": ["1", "01", "-7", "40"], "missing": "none", "other": "else"},
        "flag": {"levels": ["true", "false"], "missing": "none"},
        "age": {"edges": [0, 5, "7.5", 18], "top": "18+", "missing": "none", "other": "else"},
        "rate": {"edges": [-1, 0.7, 2], "bottom": "low", "other": "high", "missing": "low"},
        "paid": {"edges": [0, 10, 20], "whole": True, "missing": "none", "other": "else"},
        "wide": {"edges": [0, 10, 5_000_000], "top": "vast", "bottom": "less"},
        "size": {
            "integers": [-1, 3],
            "other": "else",
            "within": {"pair": ["a", "a", "b", "b", "a"]},
        },
    }
)
EVERY = [
    ("county", "code"),
    ("state", "flag", "age"),
    ("rate", "wide"),
    ("size",),
    ("pair", "age"),
    ("paid",),
]


def records(rng: np.random.Generator, n: int = N) -> pa.Table:
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), n)]  # noqa: E731
    extreme = [-(2**63), 2**63 - 1, 0, 9, 10, 4_999_999, 5_000_000]
    return pa.table(
        {
            "county": pick(["01", "1", "x"]),
            "code": pa.array(pick([1, -7, 40, 41, 99, None]), pa.int16()),
            "flag": pick([True, False, None]),
            "age": pa.array(pick([-3, 0, 4, 5, 7, 8, 17, 18, 99, None]), pa.int8()),
            "rate": pa.array(
                pick([-7.5, -1.0, 0.69, 0.7, 2.0, np.inf, -np.inf, np.nan, None]), pa.float32()
            ),
            "paid": pick([0.0, 9.5, 10.0, 19.0, 20.0, np.inf, np.nan, None]),
            "wide": pa.array(pick(extreme), pa.int64()),
            "size": pick([-1.0, 0.0, 0.5, 3.0, np.inf, 8.0]),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    inside = tmp_path / "people"
    inside.mkdir()
    for part in range(3):
        pq.write_table(records(rng), inside / f"{part}.parquet", row_group_size=1_000)
    return inside


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count without SQL however small the files are, in batches smaller than a row group."""
    monkeypatch.setattr(parquet_count, "MIN_ROWS", 0)
    monkeypatch.setattr(parquet_count, "BATCH", 300)


def no_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Microdata, "_count_by_sql", lambda *_: pytest.fail("SQL was used"))


def test_equal_to_sql(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [tabulate(folder, SCHEMA, names).counts for names in EVERY]
    monkeypatch.setattr(parquet_count, "MIN_ROWS", 0)
    monkeypatch.setattr(parquet_count, "BATCH", 300)
    no_sql(monkeypatch)
    for names, counts in zip(EVERY, expected, strict=True):
        assert np.array_equal(tabulate(folder, SCHEMA, names).counts, counts), names


@pytest.mark.usefixtures("always")
def test_labels_are_kept_once_and_searched_once_a_row_group(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels of a million areas, for every file and batch, took gigabytes and a minute."""
    searched: list[int] = []
    real = parquet_count.Coder._codes_of

    def codes(coder: parquet_count.Coder, dictionary: Any) -> Any:
        searched.append(id(coder))
        return real(coder, dictionary)

    monkeypatch.setattr(parquet_count.Coder, "_codes_of", codes)
    tabulate(folder, SCHEMA, ["county"])
    files = [pq.ParquetFile(file) for file in folder.iterdir()]
    groups = sum(file.num_row_groups for file in files)
    batches = sum(-(-file.metadata.num_rows // 300) for file in files)
    assert len(searched) <= groups < batches
    assert len(set(searched)) == 1


def test_small_files_go_through_sql(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the test above: the two ways are told apart."""
    no_sql(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="SQL was used"):
        tabulate(folder, SCHEMA, ["county"])


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("county", ["01", "S3CR3T"]),
        ("county", ["01", None]),
        ("flag", ["yes", "no"]),
        ("wide", [1, None]),
        ("wide", [1.0, float("nan")]),
    ],
)
def test_refused_in_the_same_words(
    column: str, values: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({column: values * 400}), tmp_path / "a.parquet")
    schema = Schema((SCHEMA.attribute(column),))
    with pytest.raises(DataError) as fast:
        tabulate(tmp_path, schema)
    monkeypatch.setattr(parquet_count, "MIN_ROWS", 2**62)
    with pytest.raises(DataError) as slow:
        tabulate(tmp_path, schema)
    assert str(fast.value) == str(slow.value)
    assert "S3CR3T" not in "".join(traceback.format_exception(fast.value))


@pytest.mark.usefixtures("always")
def test_what_only_sql_counts(tmp_path: Path) -> None:
    """Decimals, unsigned 64 bits, a column some files lack, types that differ between files."""
    schema = Schema.from_dict({"x": {"edges": [0, 2, 5], "missing": "none"}})
    files = [
        pa.array([1, 3], pa.decimal128(9, 2)),
        pa.array([1, 3], pa.uint64()),
        pa.array([1.0, 3.0], pa.float64()),
    ]
    for values in files:
        pq.write_table(pa.table({"x": values}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"x": pa.array([4], pa.int8())}), tmp_path / "b.parquet")
        assert tabulate(tmp_path, schema).counts.tolist() == [1, 2, 0]
    pq.write_table(pa.table({"y": [1]}), tmp_path / "b.parquet")
    assert tabulate(tmp_path, schema).counts.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("always")
def test_dictionaries_from_pandas_and_plain_pages(tmp_path: Path) -> None:
    schema = Schema.from_dict({"c": {"levels": ["a", "b"], "missing": "none", "other": "else"}})
    values = pa.array(["a", "b", None, "q", "a"] * 500)
    expected = [1_000, 500, 500, 500]
    pq.write_table(pa.table({"c": values.dictionary_encode()}), tmp_path / "a.parquet")
    assert tabulate(tmp_path, schema).counts.tolist() == expected
    pq.write_table(pa.table({"c": values}), tmp_path / "a.parquet", use_dictionary=False)
    assert tabulate(tmp_path, schema).counts.tolist() == expected
    large = pa.table({"c": values.cast(pa.large_string())})
    pq.write_table(large, tmp_path / "a.parquet")
    assert tabulate(tmp_path, schema).counts.tolist() == expected


@pytest.mark.usefixtures("always")
def test_progress(folder: Path) -> None:
    seen: list[Progress] = []
    with Microdata.open(folder, SCHEMA) as data:
        data.tabulate(["county"], progress=seen.append)
    assert [one.rows for one in seen] == list(range(1_000, 3 * N + 1, 1_000))
    assert seen[-1].total == 3 * N
    assert seen[-1].rows_per_second > 0
    assert Progress(0, 1, 0.0).rows_per_second == 0
