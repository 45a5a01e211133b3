"""Derived columns in every engine: the counts of Python on the same records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from congenial.data.data_check import check_data
from congenial.data.derive import (
    DatePart,
    Derivation,
    Joined,
    Recoded,
    Tidied,
    derived,
    needed,
    used,
)
from congenial.data.engines import open_source
from congenial.data.schema import Schema, Unit
from congenial.data.source import PlannedSource
from congenial.data.tabulate import Microdata
from tests.engines.conftest import ENGINES

BORN = [date(1990, 2, 28), date(1990, 3, 2), None, date(2004, 2, 29), date(2020, 3, 1)] * 3
TRACT = ["01", "02 ", "02", None, "01"] * 3
BLOCK = [1, 2, 1, 2, 2] * 3
TABLE = pa.table({"born": BORN, "tract": TRACT, "block": BLOCK})
AT = date(2020, 3, 1)
STEPS: tuple[Derivation, ...] = (
    DatePart("age", "born", "age", AT),
    Tidied("tract", "tract", trim=True),
    Joined("key", ("tract", "block"), "-"),
    Recoded("key", "key", {"01-1": "it's \\ odd", "02-1": ""}),
)
SCHEMA = Schema.from_dict(
    {
        "age": {"integers": [0, 40], "missing": "none"},
        "key": {"levels": ["it's \\ odd", "01-2", "02-2"], "missing": "none"},
    }
)


def age(born: date | None) -> str:
    if born is None:
        return "none"
    return str(AT.year - born.year - ((born.month, born.day) > (AT.month, AT.day)))


def key(tract: str | None, block: int) -> str:
    if tract is None:
        return "none"
    joined = f"{tract.strip()}-{block}"
    return {"01-1": "it's \\ odd", "02-1": "none"}.get(joined, joined)


EXPECTED = Counter(
    (age(born), key(tract, block)) for born, tract, block in zip(BORN, TRACT, BLOCK, strict=True)
)


def opened(source: Any) -> Microdata:
    """As `open_source` does for a plan, also for a frame, which no plan names."""
    if isinstance(source, str):
        return Microdata.open(PlannedSource(source, derivations=STEPS), SCHEMA)
    steps = used(SCHEMA.names, STEPS)
    plain = open_source(source, needed(SCHEMA.names, steps))
    name, types = derived(plain.name, plain.types, steps, plain.dialect)
    return Microdata(plain.under(name, types), SCHEMA, Unit())


@pytest.mark.parametrize("engine", ["duckdb", *ENGINES], indirect=True)
def test_derived_counts(engine: Callable[[pa.Table], Any]) -> None:
    with opened(engine(TABLE)) as data:
        table = data.tabulate()
    ages, keys = (SCHEMA.axis(name).levels for name in SCHEMA.names)
    for at, years in enumerate(ages):
        for place, label in enumerate(keys):
            assert table.counts[at, place] == EXPECTED[years, label]


@pytest.mark.parametrize("engine", ["duckdb", "spark"], indirect=True)
def test_impossible_dates_can_be_missing(engine: Callable[[pa.Table], Any]) -> None:
    """PostgreSQL holds dates as dates, and there are no others."""
    step = DatePart("age", "born", "age", AT, invalid_is_missing=True)
    schema = Schema.from_dict({"age": {"integers": [0, 40], "missing": "none"}})
    plain = open_source(engine(pa.table({"born": ["1990-02-30", "1990-03-02", None]})), ["born"])
    name, types = derived(plain.name, plain.types, [step], plain.dialect)
    with Microdata(plain.under(name, types), schema, Unit()) as data:
        counts = data.tabulate().counts.tolist()
    assert (counts[29], counts[41], sum(counts)) == (1, 2, 3)


def test_the_check_asks_a_server(postgres: Any) -> None:
    address = postgres.load("people", TABLE)
    narrow = Schema.from_dict({"age": {"integers": [0, 20]}, "sex": {"levels": ["f"]}})
    found = check_data(PlannedSource(address, derivations=STEPS), narrow, Unit(), examples=2)
    by_kind = {(one.column, one.kind): one.rows for one in found.problems}
    assert by_kind == {
        ("sex", "column absent"): None,
        ("age", "missing values"): 3,
        ("age", "not in the schema"): 6,
    }
    assert found.rows == len(BORN)
    assert replace(found, problems=()).fits
