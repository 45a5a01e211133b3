"""Bad input about units that own several rows: refused in words before anything is public."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.publication.test_unit_figures_plan import PLAN

MARKER = "S3CR3T-HOME"
PEOPLE = """household,block,tenure,age
h1,1,own,18-64
h1,1,own,0-17
h2,2,rent,65+
h3,3,rent,18-64
h3,3,rent,18-64
"""
HOMES = "household,block,tenure\nh1,1,own\nh2,2,rent\nh3,3,rent\n"
ROWS = "household,age\nh1,18-64\nh1,0-17\nh2,65+\nh3,18-64\nh3,18-64\n"
TWO_FILES = ('source = "people.csv"', 'source = "rows.csv"\nunit_source = "homes.csv"')
MANY = ("[[release]]", '"Many" = { total = true, units = true, at_least = 900 }\n\n[[release]]')
FEW = ("[[release]]", '"Few" = { total = true, at_most = 800 }\n\n[[release]]')


def written(folder: Path, *changes: tuple[str, str], last: str = "", homes: str = "") -> Path:
    """A plan with some words changed, and its files with some lines more."""
    text = PLAN
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "people.csv").write_text(PEOPLE + last)
    (folder / "rows.csv").write_text(ROWS + last)
    (folder / "homes.csv").write_text(HOMES + homes)
    (folder / "plan.toml").write_text(text)
    return folder / "plan.toml"


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (f"{MARKER},1,own,0-17\n{MARKER},2,own,0-17\n", "column 'block' differs between rows"),
        (f"{MARKER},1,own,0-17\n{MARKER},1,rent,0-17\n", "column 'tenure' differs between rows"),
        (",1,own,0-17\n", "unit column 'household' has missing values"),
        (
            f"{MARKER},1,own,0-17\n" * 4,
            "unit column 'household' a value occurs in more than 3 rows",
        ),
    ],
    ids=["in two areas", "attribute differs", "without a unit", "too many rows"],
)
def test_rows_that_are_no_units(
    run: Callable[..., Any], tmp_path: Path, lines: str, told: str
) -> None:
    plan = written(tmp_path, last=lines)
    done = run("publish", plan)
    said = " ".join((done.out + done.err).split())
    assert done.code == 3, said
    assert told in said
    assert MARKER not in said
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("rows", "homes", "told"),
    [
        ("", f"{MARKER},1,own\n", "has units without rows"),
        (f"{MARKER},0-17\n", "", "does not list all units of the file of rows"),
        ("", "h1,1,own\n", "lists a unit twice"),
    ],
    ids=["units without rows", "rows without a unit", "a unit named twice"],
)
def test_files_that_do_not_belong_together(
    run: Callable[..., Any], tmp_path: Path, rows: str, homes: str, told: str
) -> None:
    plan = written(tmp_path, TWO_FILES, last=rows, homes=homes)
    done = run("publish", plan)
    said = " ".join((done.out + done.err).split())
    assert done.code == 3, said
    assert told in said
    assert MARKER not in said


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ([("max_rows = 3", "max_rows = 0")], "data.max_rows"),
        ([MANY, FEW], "with 1 to 3 rows per unit"),
        ([('"People by county" = { total = true, by = ["county"] }', "")], "number of rows"),
        ([('by = ["block"], units = true', "units = true")], "the number of units in each class"),
    ],
    ids=["k = 0", "no units have them", "rows not counted", "classes not counted"],
)
def test_plans_about_units_that_no_proof_or_no_data_meet(
    run: Callable[..., Any], tmp_path: Path, changes: list[tuple[str, str]], told: str
) -> None:
    for command in ("check", "publish"):
        done = run(command, written(tmp_path, *changes))
        said = " ".join((done.out + done.err).split())
        assert done.code not in (0, 1), said
        assert told in said
        assert not (tmp_path / "ledger.sqlite").exists()
