"""Counts, intervals, estimates and exports of a nation by parts, one part at a time."""

from __future__ import annotations

import csv
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial.data.table import select
from congenial.errors import BundleError, InferenceError, PredicateError, UnansweredError
from congenial.inference.estimates.combined_estimates import cell_estimates
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.tables_release import TablesRelease, by_table, joint_estimator
from tests.commands import run, verified
from tests.kinds.nation_plan import SECTION, written
from tests.mechanisms.nations import CELLS

COARSE = """
[[release]]
name = "nation"
tables = [["state", "sex", "age"], ["sex", "age"]]
rho = 0.5
"""
LEVEL = 0.8


def released(folder: Path, section: str) -> Path:
    plan = written(folder, section)
    return verified(plan, "nation")


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
    assert (found.estimate, found.low, found.high) == (
        row["estimate"],
        row["low_90"],
        row["high_90"],
    )
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
        assert row["low_90"] <= one["low"] <= one["high"] <= row["high_90"]  # printed at 90 %
        assert one["exact"] == (row["sd"] == 0)


def test_what_has_no_law_is_refused_with_what_can_be_asked(nation: PartedRelease) -> None:
    with pytest.raises(UnansweredError, match=r"with part=... for any sum"):
        nation.interval("block = 'b1' and sex = 'f' and age = 1")
    with pytest.raises(UnansweredError, match=r"with part=... for any sum"):
        nation.count("block = 'b1' and sex = 'f'")  # a sum below the parts
    with pytest.raises(PredicateError, match="'s1'"):
        nation.interval("state = 's1' and sex = 'f'", part="s0")
    with pytest.raises(InferenceError, match=r"no state 'zz'\. Known: 's0', 's1', 's2'\.$"):
        nation.interval("block = 'b1'", part="zz")
    with pytest.raises(InferenceError, match="is cut into parts"):
        nation.intervals(["county", "sex"], LEVEL)
    with pytest.raises(InferenceError, match="not cut into parts"):
        nation.intervals(["sex", "age"], LEVEL, part="s0")
    with pytest.raises(PredicateError, match="in this table"):
        congenial.estimate(nation, "count(block = 'b1')")


def test_sums_in_a_part_have_intervals_from_its_files_alone(bundle: Path, tmp_path: Path) -> None:
    """Estimates are sums of those printed; the nation's own tables make them a little better than
    the standard deviation says, and never worse.
    """
    one = alone(bundle, tmp_path / "alone", 1)
    rows = one.to_arrow("block", "sex", "age", part="s1").to_pylist()
    block, asked = rows[0]["block"], "sex = 'f' and age >= 2"
    for condition, inside in (
        (asked, [row for row in rows if row["sex"] == "f" and int(row["age"]) >= 2]),
        (f"block = '{block}' and {asked}", [r for r in rows[2:5] if r["block"] == block]),
    ):
        found = one.interval(condition, 0.9, part="s1")
        assert np.isclose(found.estimate, sum(row["estimate"] for row in inside))
        assert found.low < found.estimate < found.high
        assert one.count(condition, part="s1") == found.estimate
        assert "bound" in found.basis
        full = of_all_tables(one, f"state = 's1' and {condition}")
        assert full <= one.of_part("s1").deviation(condition) <= 1.2 * full
    everybody = one.interval("age >= 0", 0.9, part="s1")
    assert everybody.exact
    assert everybody.estimate == round(sum(row["estimate"] for row in rows))


def of_all_tables(release: PartedRelease, condition: str) -> float:
    """The standard deviation of a sum's estimate from all tables of the nation, in memory."""
    nation = joint_estimator(replace(release.description, parts=""))
    return nation.deviation_of_sum(CELLS, select(condition, release.schema, CELLS))


def test_a_part_is_a_release_of_its_own(nation: PartedRelease) -> None:
    part = nation.of_part("s2")
    assert part.tables == tuple(names for names in nation.tables if names != ("sex", "age"))
    for names in part.tables:
        printed = nation.to_arrow(*names, part=None if "state" in names else "s2").to_pylist()
        mine = [row for row in printed if row["state"] == "s2"] if "state" in names else printed
        assert part.to_arrow(*names).to_pylist() == mine
    sums = part.estimates_of("county", "age")
    assert np.isclose(sums.sum(), sum(nation.to_arrow(*CELLS, part="s2")["estimate"].to_pylist()))
    assert part.guarantee.tradeoff == nation.guarantee.tradeoff
    assert (
        part.schema.attribute("block").levels == nation.parts.schema_of(2).attribute("block").levels
    )
    shares = congenial.estimate(part, "share(sex = 'f') by county").estimates
    assert [one.group["county"] for one in shares] == [*part.schema.axis("county").levels]
    assert all(0 <= one.low <= one.high <= 1 for one in shares)


def test_estimates_of_a_part_have_the_errors_of_its_own_tables(nation: PartedRelease) -> None:
    """Those printed rest on tables of the nation too, and have other errors than are simulated."""
    part = nation.of_part("s1")
    own = part.estimator.answer(by_table(part.description, part.drawn)).fitted.table(CELLS)
    np.testing.assert_allclose(cell_estimates(part).cells, own.reshape(-1))
    printed = part.estimates_of(*CELLS)
    assert not np.allclose(printed, own)
    told = congenial.estimate(part, "count(sex = 'f' and age >= 2)").estimates[0]
    assert np.isclose(told.value, own[:, 0, 2:].sum())
    assert np.isclose(told.sd, part.deviation("sex = 'f' and age >= 2"), rtol=0.1)  # simulated


def test_a_part_is_asked_by_command(bundle: Path, tmp_path: Path) -> None:
    told = run("estimate", bundle, "--part", "s1", "--of", "count(sex = 'f') by county", "--json")
    assert told["part"] == "s1"
    assert {row["county"] for row in told["estimates"]} == {"c3", "c4", "c5"}
    run("estimate", bundle, "--part", "zz", "--of", "count()", code=2)
    coarse = released(tmp_path, COARSE)
    run("estimate", coarse, "--part", "s1", "--of", "count()", code=2)


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
