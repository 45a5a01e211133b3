"""Records from tables, asked for what does not work: words with a remedy, and nothing is spent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import congenial
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.synthesis.from_tables import figure_targets, pair_axes, records_run
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from congenial.synthesis.from_tables.whole_records import draw_records
from tests.commands import refused, run, write_plan
from tests.kinds.table_records_plan import PEOPLE

SEED = 20261117
PLAN = (
    PEOPLE
    + """
[[release]]
name = "people"
synthesise = ["sex", "region", "income", "job"]
rho = 2

[budget]
rho = 2
"""
)
INCOME = "income = { edges = [0, 1, 20000, 60000, 200000] }"
CLASSES = INCOME[:-1] + ', within = { class = ["none", "some", "some", "much"] } }'


@pytest.fixture(scope="module")
def people() -> str:
    """Sixty people, as a CSV file has them."""
    rng = np.random.default_rng(SEED)
    lines = ["id,sex,region,income,job,land"]
    for i in range(60):
        income = int(rng.integers(0, 150_000))
        lines.append(f"{i},{'fm'[i % 2]},{'nsw'[i % 3]},{income},{'abcd'[income // 40_000]},x")
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path, people: str) -> Path:
    (tmp_path / "people.csv").write_text(people)
    return tmp_path


def examined(path: Path) -> Any:
    return run("check", path, "--json")["releases"][0]


def nothing_spent(path: Path) -> bool:
    """No bundle, and a ledger that counts nothing."""
    ledger = open_ledger(Plan.load(path), create=False)
    spent = 0 if ledger is None else ledger.spent().rho
    return not spent and not (path.parent / "bundles" / "people").exists()


def test_a_pair_that_no_fit_holds_gets_nothing_and_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_axes, "LARGEST_CLIQUE", 12)
    path = write_plan(folder, PLAN)
    told = examined(path)
    assert told["too_large"] == [{"pair": ["income", "job"], "cells": 16}]
    assert ["income", "job"] not in [one["table"] for one in told["tables"]]
    assert "Not measured" in run("check", path, "--full")
    # no triple fits: pairs form a tree over the four columns, and are chosen
    assert (told["pairs"], told["rounds"], told["chosen"]) == (5, 3, True)


def test_a_coarser_name_of_the_schema_makes_it_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remedy of the test above; the records still know single levels of income."""
    monkeypatch.setattr(pair_axes, "LARGEST_CLIQUE", 12)
    path = write_plan(
        folder, PLAN, (INCOME, CLASSES), ('"sex", "region", "income"', '"income"'), ("= 2", "= 400")
    )
    told = examined(path)
    assert told["coarsened"] == [{"pair": ["income", "job"], "by": ["class", "job"]}]
    assert told["too_large"] == []
    assert "income x job by class x job" in run("check", path, "--full")
    run("release", path)
    release = congenial.read(folder / "bundles" / "people")
    assert isinstance(release, TableRecordsRelease)
    assert release.known("income", "job") == "measured by class"
    frame = release.to_pandas()
    edges = [0, 1, 20_000, 60_000, 200_000]
    counts = np.histogram(frame["income"], edges)[0]
    lines = (folder / "people.csv").read_text().splitlines()[1:]
    truth = np.histogram(
        [int(line.split(",")[3]) for line in lines], [0, 1, 20_000, 60_000, 200_000]
    )[0]
    assert np.abs(counts - truth).sum() <= 12  # the noise of a count has a deviation below .1
    much = frame["income"] >= 60_000
    assert (frame[much]["job"] > "a").all()  # as in the data, whatever the noise


def test_a_column_without_variation_takes_no_part_of_the_promise(folder: Path) -> None:
    path = write_plan(
        folder, PLAN, ("[schema]", '[schema]\nland = { levels = ["x"] }'), ('"job"]', '"land"]')
    )
    told = examined(path)
    assert not any("land" in one["table"] for one in told["tables"])
    assert "land: one category only" in run("check", path, "--full")
    said = refused(write_plan(folder, path.read_text(), ('"sex", "region", "income", ', "")))
    assert "no table of these columns is left to measure" in said
    assert nothing_spent(path)


def test_more_levels_than_people_are_warned_of(folder: Path) -> None:
    path = write_plan(
        folder,
        PLAN,
        (INCOME, "income = { integers = [0, 199] }"),
        ("\n[[release]]", '\n[publish]\n"People" = { total = true }\n\n[[release]]'),
        ('"sex", "region", "income"', '"sex", "income"'),
    )
    assert "Some columns are mostly noise even alone" in run("check", path, "--full")
    derived = (folder / "people.csv").read_text().splitlines()
    rows = [line.split(",") for line in derived]
    short = [",".join([*r[:3], str(int(r[3]) % 200), *r[4:]]) for r in rows[1:]]
    (folder / "people.csv").write_text("\n".join([derived[0], *short]) + "\n")
    run("publish", path)
    assert "Warning: with 60 people some columns" in run("check", path, "--full")


def test_structural_zeros_that_contradict(folder: Path) -> None:
    """Each other: before any data are read. The data: when figures are published."""
    zeros = '\n[publish]\n"No f" = { structural_zeros = "sex = \'f\'" }\n'
    both = zeros + '"No m" = { structural_zeros = "sex = \'m\'" }\n'
    said = refused(write_plan(folder, PLAN, ("\n[[release]]", both + "\n[[release]]")))
    assert "leave no record possible: No f; No m" in said
    path = write_plan(folder, PLAN, ("\n[[release]]", zeros + "\n[[release]]"))
    assert "'No f'" in refused(path, "publish")
    assert nothing_spent(path)


def test_figures_that_no_solver_meets_in_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in the rehearsal, before anything is spent."""
    figures = (
        '\n[publish]\n"By sex" = { total = true, by = ["sex"] }\n'
        '"By region" = { total = true, by = ["region"] }\n\n[[release]]'
    )
    path = write_plan(folder, PLAN, ("\n[[release]]", figures))
    run("publish", path)
    monkeypatch.setattr(figure_targets, "milp", lambda *_, **__: SimpleNamespace(x=None, status=1))
    monkeypatch.setattr(  # records that miss a figure, so that they must be repaired
        records_run,
        "draw_records",
        lambda *one: (made := draw_records(*one)) | {"sex": 0 * made["sex"]},
    )
    assert "in 60 seconds" in refused(path, "release")
    assert nothing_spent(path)


def test_figures_of_too_many_cells_are_refused_at_once(folder: Path) -> None:
    text = PLAN.replace(INCOME, "x = { integers = [1, 2300] }\ny = { integers = [1, 2300] }")
    text = text.replace('job = { levels = ["a", "b", "c", "d"] }\n', "")
    both = '\n[publish]\n"Some" = { count = "x > 5 and y > 7" }\n\n[[release]]'
    path = write_plan(folder, text, ("\n[[release]]", both), ('"income", "job"]', '"x", "y"]'))
    assert "5,290,000 cells" in refused(path)


def test_numbers_without_bins(folder: Path) -> None:
    """Too many levels for a table; quantiles are the remedy, and work."""
    path = write_plan(folder, PLAN, (INCOME, "income = { integers = [0, 199999] }"))
    said = refused(path)
    assert "column 'income' has 200000 categories" in said
    assert "quantiles" in said
    mended = write_plan(
        folder,
        path.read_text(),
        ("rho = 2\n\n[b", "rho = 2\nquantiles = { income = [8, 4] }\n\n[b"),
    )
    assert examined(mended)["quantiles"]["income"]["bins"] == 8
