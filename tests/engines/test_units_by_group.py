"""Tables of units on Spark: counted as elsewhere, and drawn by group where their rows are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.engines.spark_source import quiet
from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata
from congenial.errors import DataError, MandateError
from congenial.figures.invariants import Invariants
from congenial.figures.statements import of_units, total
from congenial.kinds.by_group import ByGroup
from congenial.kinds.slices import stream
from congenial.mechanisms.calibrate import calibrate
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.guarantee import Guarantee

SEED = 20261117
MOST = 3
SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C", "nobody here"], "of": "unit"},
        "tenure": {"levels": ["own", "rent"], "of": "unit"},
        "size": {"integers": [1, MOST], "of": "unit size"},
        "age": {"edges": [0, 18], "top": "18+"},
    }
)
UNIT = Unit("home", max_rows=MOST)


def people(homes: int = 40) -> pa.Table:
    rng = np.random.default_rng(SEED)
    owner = np.repeat(np.arange(homes), rng.integers(1, MOST + 1, homes))
    return pa.table(
        {
            "home": owner,
            "county": np.array(["A", "B", "C"])[rng.integers(0, 3, homes)][owner],
            "tenure": np.array(["own", "rent"])[rng.integers(0, 2, homes)][owner],
            "age": rng.integers(0, 90, len(owner)),
        }
    )


PEOPLE = people()
WITH = Microdata.open(PEOPLE, SCHEMA, UNIT)
HOMES = WITH.tabulate_units(SCHEMA.of_units)
FIGURES = Invariants.of(SCHEMA, (total(), of_units(total(by="county")))).evaluate(
    WITH.tabulate(["age"]), HOMES
)


def opened(spark: Any, table: pa.Table = PEOPLE) -> Microdata:
    frame = quiet(lambda: spark.createDataFrame(table)).repartition(3)
    return Microdata.open(frame, SCHEMA, UNIT)


def by_county(data: Microdata, names: list[str]) -> ByGroup:
    pairs = SeveralRows.given(FIGURES, MOST).tables_of_units
    made = calibrate("auto", Guarantee.zero_concentrated(Fraction(1, 2), pairs), names)
    return ByGroup(made, data, ("county",))


def test_units_are_counted_as_elsewhere(spark: Any) -> None:
    with opened(spark) as data:
        found = data.tabulate_units(SCHEMA.of_units).counts
    assert np.array_equal(found, HOMES.counts)


@pytest.mark.parametrize("names", [["county", "tenure"], ["county", "size"]])
def test_units_are_drawn_where_their_rows_are(spark: Any, names: list[str]) -> None:
    """The same draws as in one place, county by county; households by county stay exact."""
    groups = by_county(opened(spark), names)
    groups.check()
    release = groups.release("homes", seed=SEED)
    counts = groups._lines(HOMES.marginal(names).counts.reshape(-1))
    drawn = [groups.law.draw(g, row, stream(SEED, g)) for g, row in enumerate(counts)]
    assert np.array_equal(release.values, groups.assemble(drawn))
    assert not np.array_equal(release.values, HOMES.marginal(names).counts)
    published = HOMES.marginal(["county"]).counts
    assert np.asarray(release.values).sum(axis=1).tolist() == published.tolist()
    assert release.description.units


def _moved(whole: bool) -> pa.Table:
    """One home, or one of its rows only, in another county."""
    homes = PEOPLE["home"].to_numpy()
    home = int(np.flatnonzero(np.bincount(homes) > 1)[0])
    rows = np.flatnonzero(homes == home)
    county = PEOPLE["county"].to_pylist()
    for at in rows if whole else rows[:1]:
        county[at] = "nobody here"
    return PEOPLE.set_column(1, "county", [county])


@pytest.mark.parametrize(
    ("whole", "error", "words"),
    [
        (False, DataError, "column 'county' differs between rows of one unit"),
        (True, MandateError, "do not agree with the published figures"),
    ],
)
def test_units_in_two_groups_and_other_units_are_refused(
    spark: Any, whole: bool, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        by_county(opened(spark, _moved(whole)), ["county", "tenure"]).check()
