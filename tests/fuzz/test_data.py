"""Data files under fire: CSV and Parquet that are damaged, odd or made to mislead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import tabulate
from congenial.errors import DataError
from tests.fuzz.conftest import accepted, cases
from tests.fuzz.hostile import mutated_bytes, mutated_text

SCHEMA = Schema.from_dict(
    {
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 65], "top": "65+", "missing": "unknown"},
        "size": {"integers": [1, 4], "other": "other"},
    }
)
PEOPLE = 12
CSV = "id,sex,age,size\n" + "".join(
    f"{i},{'fm'[i % 2]},{7 * i},{1 + i % 4}\n" for i in range(PEOPLE)
)
ODD = ('"', "'", ",", ";", "\t", "\n", "\r", "\r\n", "\0", "\ufeff", "1e9", "NaN", "-0", "f\n", "")
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.sampled_from(["f", "m", "F", "", " f", 0, 1, 2.0, 2.5, 17, 18, 64.5, -1, 2**63 - 1, True]),
    st.floats(),
    st.text(max_size=5),
    st.dates(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, max_value=10**6, min_value=0),
    st.binary(max_size=4),
)


def counts(content: bytes, name: str, unit: bool) -> None:
    """Counting ends in a table of as many people as there are rows, or in words."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / name
        file.write_bytes(content)
        with accepted():
            table = tabulate(file, SCHEMA, unit=Unit("id") if unit else None)
            found = table.counts
            assert found.min() >= 0
            assert found.sum() > 0
        assert [path.name for path in Path(place).iterdir()] == [name]


def test_a_parquet_file_that_lies_about_its_values() -> None:
    """Statistics say 1 to 4, a value is -1: the engine trusts them, and its codes are none of ours.

    Found by `make audit` on new examples.
    """
    columns = {
        "sex": ["f", "m"] * 6,
        "age": [70] * 12,
        "size": pa.array([1, 2, 3, 4] * 3, pa.int64()),
    }
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "people.parquet"
        pq.write_table(pa.table(columns), file, compression="none")
        content = file.read_bytes()
        three = (3).to_bytes(8, "little")
        assert content.count(three) == 1  # in the dictionary of `size`
        file.write_bytes(content.replace(three, b"\xff" * 8))
        with pytest.raises(DataError, match="'size' cannot be counted"):
            tabulate(file, SCHEMA)


CSV_CASES = given(
    st.one_of(
        mutated_text((CSV,)).map(lambda text: text.encode("utf-8", "surrogatepass")),
        mutated_bytes(CSV.encode()),
        st.lists(st.sampled_from((*ODD, "id", "sex", "age", "size", "f", "3")), max_size=40).map(
            lambda parts: "".join(parts).encode()
        ),
    ),
    st.sampled_from(["people.csv", "people.tsv", "people.csv.gz"]),
    st.booleans(),
)


@CSV_CASES
@cases(40)
def test_csv(content: bytes, name: str, unit: bool) -> None:
    counts(content, name, unit)


@pytest.mark.audit
@CSV_CASES
@cases(6_000)
def test_much_csv(content: bytes, name: str, unit: bool) -> None:
    counts(content, name, unit)


@st.composite
def parquet(draw: Any) -> bytes:
    """A table whose columns have any type, as a file that may then be damaged."""
    good: dict[str, list[Any]] = {
        "id": list(range(PEOPLE)),
        "sex": ["f", "m"] * (PEOPLE // 2),
        "age": [7 * i for i in range(PEOPLE)],
        "size": [1 + i % 4 for i in range(PEOPLE)],
    }
    for name in draw(st.lists(st.sampled_from(sorted(good)), max_size=2)):
        kind = draw(VALUES)
        same = [draw(VALUES) for _ in range(3)]
        column = [value if type(value) is type(kind) else kind for value in same * (PEOPLE // 3)]
        nested = ([[v] for v in column], [{"a": v} for v in column])
        good[name] = draw(st.sampled_from([column, column, *nested]))
    try:
        table = pa.table(good)
    except (pa.ArrowException, OverflowError, UnicodeError):
        table = pa.table({"sex": ["f"]})
    file = pa.BufferOutputStream()
    pq.write_table(table, file)
    content = file.getvalue().to_pybytes()
    return draw(mutated_bytes(content)) if draw(st.booleans()) else content


PARQUET_CASES = given(parquet(), st.booleans())


@PARQUET_CASES
@cases(40)
def test_parquet(content: bytes, unit: bool) -> None:
    counts(content, "people.parquet", unit)


@pytest.mark.audit
@PARQUET_CASES
@cases(6_000)
def test_much_parquet(content: bytes, unit: bool) -> None:
    counts(content, "people.parquet", unit)
