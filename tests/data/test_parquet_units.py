"""Units of Parquet files counted without SQL: the same counts and refusals as by SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial.data.engines import parquet_count
from congenial.data.engines.parquet_units import ParquetUnits, UnitsFound
from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError

SEED = 20261117
SCHEMA = Schema.from_dict(
    {
        "tenure": {"levels": ["own", "rent", "free"], "of": "unit"},
        "rooms": {"integers": [1, 4], "of": "unit"},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
UNIT = Unit("home", max_rows=5)
Columns = dict[str, Any]


def homes(number: int = 300) -> Columns:
    """Rows of made-up homes, numbered without gaps and in order."""
    rng = np.random.default_rng(SEED)
    owner = np.repeat(np.arange(number), rng.integers(1, 6, number))
    return {
        "home": owner,
        "tenure": np.array(["own", "rent", "free"])[rng.integers(0, 3, number)][owner],
        "rooms": rng.integers(1, 5, number)[owner],
        "age": rng.integers(0, 90, len(owner)),
    }


def shuffled(rows: Columns) -> Columns:
    order = np.random.default_rng(SEED).permutation(len(rows["home"]))
    return {name: values[order] for name, values in rows.items()}


def spread(rows: Columns) -> Columns:
    """Numbers of units far apart, below zero too, and in no order."""
    mixed = shuffled(rows)
    return mixed | {"home": (mixed["home"] * 7_919_000_003_333) % 2**61 - 2**60}


def written(rows: Columns, folder: Path) -> Path:
    """Two files of several row groups, which cut through units."""
    folder.mkdir()
    table = pa.table(rows)
    half = len(table) // 2
    for at, part in enumerate((table.slice(0, half), table.slice(half))):
        pq.write_table(part, folder / f"{at}.parquet", row_group_size=97)
    return folder


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was counted without SQL, of files of any size."""
    seen: list[Any] = []
    run = ParquetUnits.run

    def watched(self: ParquetUnits) -> UnitsFound | None:
        seen.append(run(self))
        found: UnitsFound | None = seen[-1]
        return found

    monkeypatch.setattr(parquet_count, "MIN_ROWS", 0)
    monkeypatch.setattr(ParquetUnits, "run", watched)
    return seen


@pytest.mark.parametrize("kind", [dict, shuffled, spread])
def test_units_are_counted_as_by_sql(kind: Any, tmp_path: Path, planned: list[Any]) -> None:
    rows = kind(homes())
    with Microdata.open(pa.table(rows), SCHEMA, UNIT) as data:
        truth = data.tabulate_units(["tenure", "rooms"]).counts
    assert not planned
    with Microdata.open(written(rows, tmp_path / "rows"), SCHEMA, UNIT) as data:
        assert np.array_equal(data.tabulate_units(["tenure", "rooms"]).counts, truth)
        assert int(data.tabulate_units().counts) == 300
    assert planned[0].largest == 5


def _without_unit(rows: Columns) -> Columns:
    return rows | {"home": pa.array([None, *rows["home"][1:].tolist()], pa.int64())}


def _apart(rows: Columns) -> Columns:
    rooms = rows["rooms"].copy()
    last = int(np.flatnonzero(rows["home"] == rows["home"][0])[-1])
    rooms[last] = 1 + rooms[last] % 4
    return rows | {"rooms": rooms}


def _outside(rows: Columns) -> Columns:
    return rows | {"tenure": np.where(rows["tenure"] == "free", "lease", rows["tenure"])}


def _large(rows: Columns) -> Columns:
    return {name: np.concatenate([values, values[:5]]) for name, values in rows.items()}


@pytest.mark.parametrize("kind", [dict, shuffled, spread])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without_unit, "unit column 'home' has missing values"),
        (_apart, "column 'rooms' differs between rows of one unit"),
        (_outside, "not in the schema"),
        (_large, "more than 5 rows"),
    ],
)
def test_what_sql_refuses_is_refused_in_the_same_words(
    kind: Any, spoil: Any, words: str, tmp_path: Path, planned: list[Any]
) -> None:
    rows = homes()
    first = int(np.bincount(rows["home"]).argmax())  # a home of five
    kept = rows["home"] >= first
    spoiled = spoil(kind({name: values[kept] for name, values in rows.items()}))
    data = Microdata.open(written(spoiled, tmp_path / "rows"), SCHEMA, UNIT)
    with data, pytest.raises(DataError, match=words):
        data.tabulate_units(["tenure"])
    assert len(planned) == 1
    assert planned[0] is None or planned[0].largest > 5


def test_units_that_are_cut_may_be_large(tmp_path: Path, planned: list[Any]) -> None:
    two = Unit("home", max_rows=2, truncate=True)
    with Microdata.open(written(homes(), tmp_path / "rows"), SCHEMA, two) as data:
        assert int(data.tabulate_units(["tenure"]).counts.sum()) == 300
    assert planned[0].largest == 5


def test_units_named_by_text_are_left_to_sql(tmp_path: Path, planned: list[Any]) -> None:
    rows = homes()
    rows["home"] = rows["home"].astype(str)
    with Microdata.open(written(rows, tmp_path / "rows"), SCHEMA, UNIT) as data:
        assert int(data.tabulate_units(["tenure"]).counts.sum()) == 300
    assert not planned
