"""Parquet files whose footers and pages lie: refused before anything is decoded."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import congenial as cg
from congenial.data.engines import checked_parquet
from congenial.data.engines.checked_parquet import Expected, numbers
from congenial.errors import BundleError
from congenial.publication import bundle
from tests.publication.forging import lie, written

ROWS = 2**22 + 1  # of the large files; as numbers of eight bytes 32 MiB
FEW = 24
SMALL = 2**21  # bytes that a refusal may take
COUNT = pa.schema([("count", pa.int64())])
POOLS: list[Any] = []  # a pool must outlive what was taken from it
LABEL = pa.schema([("label", pa.string())])


def file(table: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


@contextmanager
def memory() -> Iterator[Callable[[], int]]:
    """How many bytes Arrow took at most."""
    usual = pa.default_memory_pool()
    watched = pa.proxy_memory_pool(usual)
    POOLS.append(watched)
    pa.set_memory_pool(watched)
    try:
        yield watched.max_memory
    finally:
        pa.set_memory_pool(usual)


def refused(expected: Expected, content: bytes) -> str:
    """The reason, given without decoding what the file claims to hold."""
    with memory() as taken:
        with pytest.raises(BundleError) as error:
            expected.read(content)
        assert taken() < SMALL
    return str(error.value)


def test_memory_is_watched() -> None:
    with memory() as taken:
        pq.read_table(io.BytesIO(file(pa.table({"count": np.zeros(ROWS, dtype=np.int64)}))))
        assert taken() > 8 * ROWS


@pytest.mark.parametrize("rows", [0, 1, FEW, 150_000])
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zstd"}, {"data_page_version": "2.0"}, {"use_dictionary": False}],
)
def test_honest_files_are_read(rows: int, options: dict[str, Any]) -> None:
    many = np.arange(rows)
    table = pa.table(
        {
            "label": pa.array([f"no. {i % 977}" for i in many], pa.string()),
            "count": pa.array([None if i % 5 == 0 else i for i in many.tolist()], pa.int64()),
            "share": many * 0.37,
        }
    )
    assert Expected("t", table.schema, rows, 7).read(file(table, **options)).equals(table)


def test_groups_of_rows_are_read() -> None:
    table = pa.table({"count": np.arange(300_000)})
    content = file(table, row_group_size=100_000)
    assert Expected("t", COUNT, None, 0).read(content).equals(table)


@pytest.mark.parametrize("which", [slice(0, 1), slice(1, 2), slice(0, None), slice(0, None, 2)])
def test_rows_that_the_footer_does_not_admit(which: slice) -> None:
    table = pa.table({"count": np.zeros(ROWS, dtype=np.int64)})
    zeros = file(table, write_statistics=False, row_group_size=ROWS)
    assert len(zeros) < 200_000
    refused(Expected("t", COUNT, FEW, 0), lie(zeros, ROWS, FEW, which))
    refused(Expected("t", COUNT, None, 0), lie(zeros, ROWS, FEW, which))


def test_rows_that_the_footer_invents() -> None:
    """A column that claims two thousand million values."""
    few = file(pa.table({"count": np.arange(200_003)}), write_statistics=False)
    content = lie(few, 200_003, 2**20 - 1, slice(1, 2))
    assert "contradicts" in refused(Expected("t", COUNT, 200_003, 0), content)


def test_a_small_file_of_astonishingly_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_parquet, "FREE_VALUES", 2**10)
    monkeypatch.setattr(checked_parquet, "VALUES_PER_BYTE", 50)
    content = file(pa.table({"count": np.zeros(200_000, dtype=np.int64)}))
    assert "too small" in refused(Expected("t", COUNT, 200_000, 0), content)


def test_a_long_text_that_every_row_repeats() -> None:
    rows = 70_000
    text = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, np.int32)), pa.array(["x" * 4000])
    )
    content = file(pa.table({"label": text.cast(pa.string())}), compression="zstd")
    assert "longer text" in refused(Expected("t", LABEL, rows, 20), content)


def test_a_page_that_unpacks_to_much() -> None:
    table = pa.table({"label": ["x" * 2**24] + ["y"] * 23})
    content = file(table, compression="zstd", use_dictionary=False)
    assert "unpacks" in refused(Expected("t", LABEL, FEW, 20), content)


def test_pages_whose_values_grow_from_one_another() -> None:
    table = pa.table({"label": ["x" * i for i in range(3000)]})
    options: dict[str, Any] = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    content = file(table, **options)
    assert "kind" in refused(Expected("t", LABEL, 3000, 3000), content)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(range(FEW), pa.int32()),
        pa.array(range(FEW), pa.uint64()),
        pa.array(range(FEW), pa.float64()),
        pa.array([[i] for i in range(FEW)]),
    ],
)
def test_other_types(column: Any) -> None:
    content = file(pa.table({"count": column}))
    assert "types" in refused(Expected("t", COUNT, FEW, 0), content)


@pytest.mark.parametrize("words", [{"note": "epsilon is 0"}, {"pandas": "{}"}])
def test_words_in_the_footer(words: dict[str, str]) -> None:
    table = pa.table({"count": np.arange(FEW)})
    content = written(table.replace_schema_metadata(words))
    assert "unexpected text" in refused(Expected("t", COUNT, FEW, 0), content)
    field = pa.field("count", pa.int64(), metadata=words)
    content = written(pa.Table.from_arrays(table.columns, schema=pa.schema([field])))
    assert "unexpected text" in refused(Expected("t", COUNT, FEW, 0), content)


def test_other_columns() -> None:
    for names in (["count", "more"], ["Count"], []):
        content = file(pa.table({name: np.arange(FEW) for name in names}))
        refused(Expected("t", COUNT, FEW, 0), content)


def test_damage_anywhere_is_refused_or_harmless() -> None:
    table = pa.table({"count": np.arange(FEW)})
    content = file(table)
    for at in range(len(content)):
        changed = bytearray(content)
        changed[at] ^= 0xFF
        with memory() as taken:
            try:
                found = Expected("t", COUNT, FEW, 0).read(bytes(changed))
                assert found.num_rows == FEW
            except BundleError:
                pass
            assert taken() < SMALL, at


# ---- columns of numbers become arrays without loading pandas, which takes half a second ----------

READ = "import sys, congenial; congenial.read({!r}); print('pandas' in sys.modules, flush=True)"


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_numbers_are_those_of_pyarrow(kind: type) -> None:
    values = np.array([3, -1, 2**40, 0, 7], dtype=kind)
    whole = pa.chunked_array([pa.array(values)])
    for column in (whole, whole.slice(2, 2), pa.chunked_array([values[:2], values[2:]])):
        found = numbers(column)
        assert found.dtype == kind
        assert found.tolist() == column.to_pylist()
        found[0] = 1  # nobody else's memory
        assert values[0] == 3
    assert numbers(whole.slice(0, 0)).size == 0


def test_missing_numbers_are_not_what_lies_in_memory() -> None:
    found = numbers(pa.chunked_array([pa.array([1, None, 3])]))
    assert np.isnan(found[1])


def test_a_bundle_is_read_without_pandas(tmp_path: Path) -> None:
    schema = cg.Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    made = cg.calibrate("auto", cg.Guarantee.pure(1, under=cg.ReplaceOne(schema)))
    drawn = cg.release_table(
        made, cg.Table(schema, ["sex"], [90, 110]), cg.SeededRandomness(1), name="sex"
    )
    bundle.write(drawn, tmp_path / "sex", "the promise", "the report").publish()
    code = READ.format(str(tmp_path / "sex"))
    # What it prints, not how it ends: a thread of pyarrow sometimes aborts when Python exits.
    told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert told.stdout == "False\n", told.stderr
