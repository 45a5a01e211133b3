"""Every benchmark runs once, in its smallest size: a name that is gone is noticed."""

from __future__ import annotations

import importlib

import pytest
from benchmarks.__main__ import measured, names, table

LARGE = ("mixture", "posteriors_former")  # NUTS is compiled; demos of two versions are drawn
NEEDED = ("needs --data DIR", "needs mbi")


@pytest.mark.parametrize("name", names())
def test_a_benchmark_can_be_loaded(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").run)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.audit) if n in LARGE else n for n in names()]
)
def test_a_benchmark_runs_in_its_smallest_size(name: str) -> None:
    try:
        rows = measured(name, smallest=True)
    except SystemExit as reason:  # `posteriors_former` without the history of 0.1.0
        pytest.skip(str(reason))
    assert rows
    lacking = [row for row in rows if any(one in str(row) for one in NEEDED)]
    if lacking == rows:
        pytest.skip(", ".join(str(value) for value in rows[0].values()))
    assert table(rows).count("\n") == len(rows) + 1
