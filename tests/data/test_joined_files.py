"""A file of rows and a file of units: joined by key, and what does not fit refused in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial.data.data_check import check_data
from congenial.data.schema import Schema, Unit
from congenial.data.source import PlannedSource, UnitFile
from congenial.data.tabulate import Microdata
from congenial.errors import DataError

SCHEMA = Schema.from_dict(
    {
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
HOME = Unit("home", max_rows=3)
PEOPLE = "home,age\n1,4\n1,40\n2,70\n3,30\n"
HOMES = "home,tenure\n1,own\n2,rent\n3,rent\n"


def source(
    folder: Path, homes: str = HOMES, people: str = PEOPLE, full: bool = True
) -> PlannedSource:
    (folder / "people.csv").write_text(people)
    (folder / "homes.csv").write_text(homes)
    return PlannedSource(folder / "people.csv", units=UnitFile(folder / "homes.csv", "home", full))


def test_rows_have_the_attributes_of_their_unit(tmp_path: Path) -> None:
    with Microdata.open(source(tmp_path), SCHEMA, HOME) as data:
        expected = [[1, 1, 0], [0, 1, 1]]
        np.testing.assert_array_equal(data.tabulate(["tenure", "age"]).counts, expected)
        np.testing.assert_array_equal(data.tabulate_units(["tenure"]).counts, [1, 2])
    assert not check_data(source(tmp_path), SCHEMA, HOME).problems


def test_keys_may_be_stored_in_different_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"home": [1, 1, 2], "age": [3, 70, 20]}), tmp_path / "people.parquet")
    pq.write_table(
        pa.table({"home": ["1", "2"], "tenure": ["own", "rent"]}), tmp_path / "h.parquet"
    )
    units = UnitFile(tmp_path / "h.parquet", "home", True)
    with Microdata.open(
        PlannedSource(tmp_path / "people.parquet", units=units), SCHEMA, HOME
    ) as data:
        np.testing.assert_array_equal(data.tabulate(["tenure"]).counts, [2, 1])


@pytest.mark.parametrize(
    ("homes", "people", "words"),
    [
        (HOMES + "9,own\n", PEOPLE, "has units without rows"),
        (HOMES + "2,own\n", PEOPLE, "lists a unit twice"),
        (HOMES + ",own\n", PEOPLE, "has rows without a key"),
        (HOMES, PEOPLE + "9,20\n", "does not list all units of the file of rows"),
        (
            "home,tenure,age\n1,own,3\n",
            PEOPLE,
            "'age' is both in the file of rows and in the file of units",
        ),
        ("house,tenure\n1,own\n", PEOPLE, "no column 'home'"),
        ("home\n1\n2\n3\n", PEOPLE, "no column 'tenure'"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path: Path, homes: str, people: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        Microdata.open(source(tmp_path, homes, people), SCHEMA, HOME)
    assert "9" not in str(caught.value)
    assert check_data(source(tmp_path, homes, people), SCHEMA, HOME).problems


def test_units_without_rows_are_nobody_where_units_are_not_counted(tmp_path: Path) -> None:
    planned = source(tmp_path, HOMES + "9,own\n", full=False)
    with Microdata.open(planned, SCHEMA, HOME) as data:
        np.testing.assert_array_equal(data.tabulate(["tenure"]).counts, [2, 2])


def test_rows_without_a_unit_are_refused(tmp_path: Path) -> None:
    with (
        Microdata.open(source(tmp_path, people=PEOPLE + ",20\n"), SCHEMA, HOME) as data,
        pytest.raises(DataError, match="unit column 'home' has missing values"),
    ):
        data.tabulate(["age"])


def test_a_database_joins_for_itself() -> None:
    units = UnitFile(Path("homes.csv"), "home")
    with pytest.raises(DataError, match="as a view"):
        Microdata.open(PlannedSource("postgresql://x@h/d?table=t", units=units), SCHEMA, HOME)
