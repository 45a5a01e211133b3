"""Several tables at once, from a plan to a verified bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial.mechanisms.tables_release import TablesRelease
from tests.commands import run

SCHEMA = """
[data]
source = "people.csv"
unit = "id"
[schema.county]
levels = ["Adams", "Bucks", "Clark"]
within = { state = ["P", "P", "Q"] }
[schema.sex]
levels = ["f", "m"]
[schema.age]
levels = ["child", "young", "mid", "old"]
[publish.county]
total = true
by = ["county"]
"""
SECTION = """
[[release]]
name = "people"
tables = [["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]
rho = 0.5
"""
BUDGET = """
[budget]
rho = 4
"""
AGES = ("child", "young", "mid", "old")


def written(folder: Path, section: str = SECTION, budget: str = BUDGET) -> Path:
    """A plan with 900 made-up people beside it."""
    rows = np.random.default_rng(5).integers(0, [3, 2, 4], (900, 3))
    people = [
        f"{i},{('Adams', 'Bucks', 'Clark')[c]},{'fm'[s]},{AGES[a]}"
        for i, (c, s, a) in enumerate(rows.tolist())
    ]
    (folder / "people.csv").write_text("\n".join(["id,county,sex,age", *people]) + "\n")
    (folder / "plan.toml").write_text(SCHEMA + section + budget)
    return folder / "plan.toml"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = written(tmp_path_factory.mktemp("several"))
    run("publish", plan)
    run("release", plan)
    return plan.parent / "bundles" / "people"


def test_from_a_plan_to_a_verified_bundle(bundle: Path) -> None:
    told = run("verify", bundle, "--json")
    assert told["holds"]
    assert {
        "the design is as near the best as it says",
        "printed counts are the whole counts fitted to the estimates",
        "the promise follows from the description",
    } <= {one["what"] for one in told["checks"]}
    release = congenial.read(bundle)
    assert isinstance(release, TablesRelease)
    assert release.guarantee.tradeoff.words == "rho = 0.5 (zero-concentrated)"
    assert (
        (bundle / "table-2-state-age.csv")
        .read_text()
        .startswith('"state","age","count","estimate","sd","low","high","count_as_drawn"')
    )


def test_all_tables_tell_one_story(bundle: Path) -> None:
    """Printed counts are sums of each other and have the figures; so are estimates."""
    release = congenial.read(bundle)
    for told in (release.counts, release.estimates):
        cells, state, sex, age = told
        assert np.allclose(cells.sum(axis=2), sex)
        assert np.allclose(cells.sum(axis=(0, 1)), age)
        assert np.allclose(state.sum(axis=0), age)
        assert np.allclose(cells.sum(axis=(1, 2)), release.published.values[0])
    assert min(one.min() for one in release.counts) >= 0
    frame = release.to_pandas("age")
    assert list(frame["count"]) == [release.count(f"age = '{age}'") for age in AGES]
    assert np.array_equal(release.margin("sex", "county"), release.counts[2].T)


def test_sums_that_no_table_shows_are_estimates(bundle: Path) -> None:
    release = congenial.read(bundle)
    assert isinstance(release.count("age = 'old'"), int)
    young = "age = 'child' or age = 'young'"
    assert release.count(young) == pytest.approx(float(release.estimates[3][:2].sum()))
    found = release.interval(young, 0.9)
    assert found.low <= found.estimate <= found.high
    single = release.interval("age = 'old'", 0.9)
    assert (single.low, single.high) == tuple(release.to_pandas("age")[["low", "high"]].iloc[3])
    whole = release.interval("county = 'Adams'", 0.9)
    assert whole.exact
    assert whole.low == whole.high == release.published.values[0][0]
    sex = release.margin("sex")  # a sum of printed tables that is none itself
    assert sex == pytest.approx(release.estimates[2].sum(axis=0))
