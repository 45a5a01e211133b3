"""Counts, intervals, estimates and exports of a nation by parts, one part at a time."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial.errors import BundleError, InferenceError, PredicateError, UnansweredError
from congenial.mechanisms.several_tables_release import TablesRelease
from congenial.mechanisms.tables_by_parts_release import PartedRelease
from tests.commands import run
from tests.kinds.nation_plan import SECTION, written

pytestmark = pytest.mark.usefixtures("without_pictures")

COARSE = """
[[release]]
name = "nation"
tables = [["state", "sex", "age"], ["sex", "age"]]
rho = 0.5
"""
LEVEL = 0.8


def released(folder: Path, section: str) -> Path:
    plan = written(folder, section)
    run("publish", plan)
    run("release", plan)
    return folder / "bundles" / "nation"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return released(tmp_path_factory.mktemp("nation"), SECTION)


@pytest.fixture
def nation(bundle: Path) -> PartedRelease:
    return congenial.read(bundle, PartedRelease)


def alone(bundle: Path, to: Path, part: int) -> PartedRelease:
    """The same bundle without the files of the other parts."""
    shutil.copytree(bundle, to)
    for file in to.glob("*/part-*.parquet"):
        if file.name != f"part-{part:05d}.parquet":
            file.unlink()
    return congenial.read(to, PartedRelease)


def test_a_cell_of_a_part_is_read_from_its_files_alone(bundle: Path, tmp_path: Path) -> None:
    whole = congenial.read(bundle, PartedRelease)
    row = whole.to_arrow("block", "sex", "age", part="s1").to_pylist()[7]
    one = alone(bundle, tmp_path / "alone", 1)
    asked = f"block = '{row['block']}' and sex = '{row['sex']}' and age = {row['age']}"
    assert one.count(asked, part="s1") == row["count"]
    found = one.interval(asked, 0.9, part="s1")
    assert (found.estimate, found.low, found.high) == (row["estimate"], row["low"], row["high"])
    wider = one.interval(asked, 0.99, part="s1")
    assert wider.low <= found.low <= row["count"] <= found.high <= wider.high
    with pytest.raises(BundleError, match="file of 's2' cannot be read"):
        one.intervals(["county", "sex"], LEVEL, part="s2")


@pytest.mark.parametrize(
    ("names", "part"), [(("county", "sex"), "s2"), (("state", "sex", "age"), None)]
)
def test_intervals_of_a_table_at_any_level(
    nation: PartedRelease, names: tuple[str, ...], part: str | None
) -> None:
    found = nation.intervals(names, LEVEL, part).to_pylist()
    printed = nation.to_arrow(*names, part=part).to_pylist()
    for one, row in zip(found, printed, strict=True):
        assert one["estimate"] == row["estimate"]
        assert [one[name] for name in names] == [row[name] for name in names]
        assert row["low"] <= one["low"] <= one["high"] <= row["high"]  # printed at 90 %
        assert one["exact"] == (row["sd"] == 0)


def test_what_has_no_law_is_refused_with_what_can_be_asked(nation: PartedRelease) -> None:
    with pytest.raises(UnansweredError, match=r"with part=... of one below"):
        nation.interval("block = 'b1' and sex = 'f' and age = 1")
    with pytest.raises(UnansweredError, match="one cell"):
        nation.interval("block = 'b1' and sex = 'f'", part="s0")  # a sum below the parts
    with pytest.raises(InferenceError, match="no state 'zz'"):
        nation.interval("block = 'b1'", part="zz")
    with pytest.raises(InferenceError, match="is cut into parts"):
        nation.intervals(["county", "sex"], LEVEL)
    with pytest.raises(InferenceError, match="not cut into parts"):
        nation.intervals(["sex", "age"], LEVEL, part="s0")
    with pytest.raises(PredicateError, match="resolution the table shows"):
        congenial.estimate(nation, "count(block = 'b1')")


def test_sums_above_the_parts_have_estimates(nation: PartedRelease) -> None:
    """From the tables drawn there alone; the nation's population is exact."""
    told = congenial.estimate(nation, ["count(sex = 'f')", "count()"])
    women, everybody = told.estimates
    assert women.low < women.value < women.high
    assert everybody.value == everybody.low == everybody.high
    assert np.isclose(everybody.value, nation.published.values[0].sum(), rtol=1e-12)


def test_tables_coarser_than_figures_have_estimates(tmp_path: Path) -> None:
    """Populations are exact by block and no table shows blocks: this crashed."""
    release = congenial.read(released(tmp_path, COARSE), TablesRelease)
    asked = "state = 's0' and sex = 'f'"
    (found,) = release.estimate(f"count({asked})").estimates
    told = release.interval(asked)
    assert np.isclose(found.value, told.estimate)
    assert np.isclose(found.sd, release.deviation(asked), rtol=0.1)  # simulated


# ---- export ------------------------------------------------------------------------------------


def test_a_part_is_exported_without_the_others(bundle: Path, tmp_path: Path) -> None:
    alone(bundle, tmp_path / "alone", 1)
    run(
        "export", tmp_path / "alone", "--to", "datapackage", "--part", "s1", "--out", tmp_path / "x"
    )
    with (tmp_path / "x" / "block-by-sex-by-age.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["state"] for row in rows} == {"s1"}
    printed = congenial.read(bundle, PartedRelease).to_arrow("block", "sex", "age", part="s1")
    assert [int(row["count"]) for row in rows] == printed["count"].to_pylist()


def test_without_a_part_the_tables_above_are_exported(bundle: Path, tmp_path: Path) -> None:
    run("export", bundle, "--to", "datapackage", "--out", tmp_path / "x")
    found = {file.name for file in (tmp_path / "x").glob("*-age.csv")}
    assert found == {"state-by-sex-by-age.csv", "sex-by-age.csv"}


def test_exports_that_cannot_be_are_refused(bundle: Path, tmp_path: Path) -> None:
    run("export", bundle, "--to", "xlsx", "--part", "zz", "--out", tmp_path / "x", code=2)
    coarse = released(tmp_path, COARSE)
    run("export", coarse, "--to", "xlsx", "--part", "s1", "--out", tmp_path / "x", code=6)
    assert not (tmp_path / "x").exists()
