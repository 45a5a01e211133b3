"""Units that own several rows: counted once each, and refused where their rows disagree."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError, SchemaError

SCHEMA = Schema.from_dict(
    {
        "tenure": {"levels": ["own", "rent", "free"], "of": "unit"},
        "rooms": {"integers": [1, 4], "of": "unit", "within": {"small": ["y", "y", "n", "n"]}},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
UNIT = Unit("household", max_rows=4)


def households(number: int = 120, seed: int = 20261117) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Rows of made-up households, and the true number of households by tenure and rooms."""
    rng, truth = np.random.default_rng(seed), np.zeros((3, 4), dtype=np.int64)
    rows: dict[str, list[Any]] = {"household": [], "tenure": [], "rooms": [], "age": []}
    for one in range(number):
        tenure, rooms = int(rng.integers(3)), int(rng.integers(4))
        truth[tenure, rooms] += 1
        for _ in range(int(rng.integers(1, 5))):
            rows["household"].append(f"h{one}")
            rows["tenure"].append(["own", "rent", "free"][tenure])
            rows["rooms"].append(rooms + 1)
            rows["age"].append(int(rng.integers(0, 90)))
    return rows, truth


@pytest.mark.parametrize("stored", ["arrow", "parquet", "csv"])
def test_each_unit_counts_once(stored: str, tmp_path: Path) -> None:
    rows, truth = households()
    source: Any = pa.table(rows)
    if stored == "parquet":
        pq.write_table(source, tmp_path / "rows.parquet")
        source = tmp_path / "rows.parquet"
    elif stored == "csv":
        lines = [",".join(rows), *(",".join(map(str, one)) for one in zip(*rows.values()))]  # noqa: B905
        source = tmp_path / "rows.csv"
        source.write_text("\n".join(lines) + "\n")
    with Microdata.open(source, SCHEMA, UNIT) as data:
        assert np.array_equal(data.tabulate_units(["tenure", "rooms"]).counts, truth)
        assert np.array_equal(data.tabulate_units(["small"]).counts.sum(), truth.sum())
        assert int(data.tabulate_units().counts) == 120
        assert int(data.tabulate(()).counts) == len(rows["age"])


@pytest.mark.parametrize("column", ["tenure", "rooms"])
def test_rows_of_one_unit_that_disagree_are_refused_in_words(column: str) -> None:
    rows, _ = households()
    at = next(i for i in range(1, 400) if rows["household"][i] == rows["household"][i - 1])
    rows[column][at] = {"tenure": {"own": "rent"}, "rooms": {1: 2}}[column].get(
        rows[column][at], "own" if column == "tenure" else 1
    )
    with Microdata.open(pa.table(rows), SCHEMA, UNIT) as data:
        for count in (data.tabulate, data.tabulate_units):
            with pytest.raises(DataError, match=f"column '{column}' differs between rows") as told:
                count(["rooms"] if column == "rooms" else ["tenure"])
            assert rows["household"][at] not in str(told.value)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("household", None, "unit column 'household' has missing values"),
        ("household", "h0", "more than 4 rows"),
        ("tenure", "lease", "not in the schema"),
        ("rooms", None, "missing values"),
    ],
)
def test_units_that_cannot_be_counted(column: str, value: Any, words: str, tmp_path: Path) -> None:
    rows, _ = households()
    many = [i for i, home in enumerate(rows["household"]) if home not in ("h0", "h1")][:5]
    for at in many:
        rows[column][at] = value
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet", row_group_size=97)
    data = Microdata.open(tmp_path / "rows.parquet", SCHEMA, UNIT)
    with data, pytest.raises(DataError, match=words):
        data.tabulate_units(["tenure", "rooms"])


def test_units_are_not_counted_by_what_their_rows_may_differ_in() -> None:
    rows, _ = households()
    for unit, names, words in (
        (UNIT, ["age"], "units cannot be counted by 'age'"),
        (None, [], "no column identifies"),
    ):
        data = Microdata.open(pa.table(rows), SCHEMA, unit)
        with data, pytest.raises(DataError, match=words):
            data.tabulate_units(names)


def test_a_unit_attribute_with_a_level_that_is_not_in_the_schema() -> None:
    rows, _ = households()
    rows["tenure"] = ["lease" if one == "own" else one for one in rows["tenure"]]
    with Microdata.open(pa.table(rows), SCHEMA, UNIT) as data:
        with pytest.raises(DataError, match="not in the schema") as told:
            data.tabulate_units(["tenure"])
        assert "lease" not in str(told.value)


def test_whose_an_attribute_is_is_part_of_the_schema() -> None:
    rows = SCHEMA.to_dict()
    assert SCHEMA.of_units == ("tenure", "rooms")
    assert Schema.from_dict(rows) == SCHEMA
    del rows["tenure"]["of"]
    assert Schema.from_dict(rows).digest != SCHEMA.digest
    with pytest.raises(SchemaError, match="not a value that `of` can have"):
        Schema.from_dict({"tenure": {"levels": ["own"], "of": "household"}})


@pytest.mark.parametrize("stored", ["arrow", "parquet"])
def test_the_number_of_rows_of_a_unit_needs_no_column(stored: str, tmp_path: Path) -> None:
    rows, _ = households()
    schema = Schema.from_dict(
        SCHEMA.to_dict() | {"size": {"integers": [1, 4], "of": "unit size"}},
    )
    sizes = np.bincount(list(Counter(rows["household"]).values()), minlength=5)[1:]
    source: Any = pa.table(rows)
    if stored == "parquet":
        pq.write_table(source, tmp_path / "rows.parquet")
        source = tmp_path / "rows.parquet"
    with Microdata.open(source, schema, UNIT) as data:
        assert data.tabulate_units(["size"]).counts.tolist() == sizes.tolist()
        assert data.tabulate_units(["tenure", "size"]).counts.sum() == sizes.sum()
        assert data.tabulate(["size"]).counts.tolist() == (sizes * np.arange(1, 5)).tolist()
    with pytest.raises(DataError, match="no column identifies the unit"):
        Microdata.open(pa.table(rows), schema)


def test_a_size_is_a_number() -> None:
    with pytest.raises(SchemaError, match="a number, and has labels"):
        Schema.from_dict({"size": {"levels": ["1", "2"], "of": "unit size"}})


def test_sizes_are_counted_only_where_they_are_shown() -> None:
    """A window over all rows is not free: other tables do without."""
    rows, _ = households()
    schema = Schema.from_dict(SCHEMA.to_dict() | {"size": {"integers": [1, 4], "of": "unit size"}})
    with Microdata.open(pa.table(rows), schema, UNIT) as data:
        assert "OVER" not in data.source_for(schema.axes(["tenure"])).name
        assert "OVER" in data.source_for(schema.axes(["size"])).name
