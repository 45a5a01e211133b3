"""Units cut to their first rows: what is kept, that a unit's own rows alone decide it, and that two
units come no further apart by it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError

SEED = 20261117
SCHEMA = Schema.from_dict(
    {
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "size": {"integers": [1, 4], "of": "unit size"},
        "age": {"edges": [0, 18, 65], "top": "65+"},
        "sex": {"levels": ["m", "f"]},
    }
)
HOME = Unit("home", max_rows=2, truncate=True)


def people(*rows: tuple[str, str, int, str]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("home", "tenure", "age", "sex"), map(list, columns), strict=True)))


def first(rows: Sequence[int], most: int) -> Counter[int]:
    return Counter(sorted(rows)[:most])


def slots(x: Counter[int], y: Counter[int]) -> int:
    return max((x - y).total(), (y - x).total())


@pytest.mark.parametrize("most", [1, 2, 3])
def test_truncated_units_are_no_further_apart(most: int) -> None:
    """All pairs of units with up to 5 rows of 3 kinds; and an order that is not public fails."""
    units = [c for n in range(6) for c in itertools.combinations_with_replacement(range(3), n)]
    pairs = [(x, y, slots(Counter(x), Counter(y))) for x, y in itertools.product(units, repeat=2)]
    assert all(slots(first(x, most), first(y, most)) <= apart for x, y, apart in pairs)
    turned = [slots(by_number(x, most), by_number(y, most)) > apart for x, y, apart in pairs]
    assert any(turned) == (most > 1)


def test_whole_databases_differ_in_no_more_units_and_slots() -> None:
    """All pairs of databases of 3 units with up to 3 rows of 2 kinds, cut to 2 rows."""
    units = [c for n in range(4) for c in itertools.combinations_with_replacement(range(2), n)]
    whole = np.array([[slots(Counter(x), Counter(y)) for y in units] for x in units])
    kept = np.array([[slots(first(x, 2), first(y, 2)) for y in units] for x in units])
    databases = np.array(list(itertools.product(range(len(units)), repeat=3)))
    for one in databases:
        before, after = whole[one, databases], kept[one, databases]
        assert (after.sum(axis=1) <= before.sum(axis=1)).all()
        assert ((after > 0).sum(axis=1) <= (before > 0).sum(axis=1)).all()


def by_number(rows: Sequence[int], most: int) -> Counter[int]:
    """From either end, as their number is even or odd."""
    return Counter(sorted(rows, reverse=len(rows) % 2 == 0)[:most])


def test_the_rows_kept_are_the_first_of_each_unit_in_the_order_of_the_columns() -> None:
    rng = np.random.default_rng(SEED)
    rows = [
        (f"h{home}", "own", int(rng.integers(0, 99)), "mf"[int(rng.integers(2))])
        for home in range(40)
        for _ in range(int(rng.integers(1, 6)))
    ]
    order = {"m": 0, "f": 1}
    expected = np.zeros((3, 2), dtype=int)
    sizes = np.zeros(4, dtype=int)
    for home in {row[0] for row in rows}:
        cells = sorted(
            ((age >= 18) + (age >= 65), order[sex]) for h, _, age, sex in rows if h == home
        )[:2]
        sizes[len(cells) - 1] += 1
        for cell in cells:
            expected[cell] += 1
    for seed in range(3):  # whatever order the file has
        shuffled = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]
        with Microdata.open(people(*shuffled), SCHEMA, HOME) as data:
            np.testing.assert_array_equal(data.tabulate(["age", "sex"]).counts, expected)
            np.testing.assert_array_equal(data.tabulate_units(["size"]).counts, sizes)


def test_rows_beyond_those_kept_are_still_checked() -> None:
    rows = [("h1", "own", 3, "m"), ("h1", "own", 4, "m"), ("h1", "own", 5, "f")]
    with (
        Microdata.open(people(*rows, ("h1", "rent", 70, "f")), SCHEMA, HOME) as data,
        pytest.raises(DataError, match="'tenure' differs between rows of one unit"),
    ):
        data.tabulate(["age"])
    with (
        Microdata.open(people(*rows, ("h1", "own", 70, "x")), SCHEMA, HOME) as data,
        pytest.raises(DataError, match="sex"),
    ):
        data.tabulate(["sex"])


def test_a_column_named_as_the_query_names_its_own(tmp_path: Path) -> None:
    schema = Schema.from_dict({"b0": {"levels": ["x", "y"]}, "c0": {"levels": ["u", "v"]}})
    (tmp_path / "rows.csv").write_text("place,b0,c0\n1,y,u\n1,x,v\n1,x,u\n2,y,v\n")
    unit = Unit("place", max_rows=2, truncate=True)
    with Microdata.open(tmp_path / "rows.csv", schema, unit) as data:
        np.testing.assert_array_equal(data.tabulate().counts, [[1, 1], [0, 1]])


def test_truncation_needs_a_unit_and_its_rows() -> None:
    for wrong in ({"column": "home"}, {"max_rows": 2}):
        with pytest.raises(DataError, match="truncate needs a unit and max_rows"):
            Unit(**wrong, truncate=True)
