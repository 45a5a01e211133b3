"""Records from tables, from a plan: private quantiles, tails, made-up columns, public columns."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import congenial
from congenial.cli.utility import positive_numbers
from congenial.data.attribute import Attribute
from congenial.errors import BundleError, CongenialError, FigureError, PlanError, StructureError
from congenial.kinds.records_from_tables import KIND
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.synthesis.from_tables.column_rules import StatedTail, tilts, values_in_bins
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from tests.commands import run
from tests.kinds.test_table_records_plan import PLAN, SEED, released, written

NUMBERS = (
    PLAN.replace("income = { edges = [0, 1, 20000, 60000, 200000] }", "INCOME")
    .replace("INCOME", 'income = { integers = [0, 89999], other = "more" }')
    .replace('"Without income" = { count = "income < 1", by = ["region"] }\n', "")
    .replace(
        "rounds = 3",
        "quantiles = { income = [16, 4] }\nspikes = { income = [0] }\nrounds = 3\n"
        'made_up = { person = "identifier", visit = [2024-01-01, "2024-12-31"] }',
    )
    .replace("rho = 2", "rho = 20")
)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> TableRecordsRelease:
    return released(tmp_path_factory.mktemp("numbers"), NUMBERS)


def test_private_quantiles_from_plan_to_verified_records(release: TableRecordsRelease) -> None:
    """90,000 levels become about 16 bins; what is measured is by bins, and records have numbers."""
    shapes = {one.axes: one.values.shape for one in release.measured}
    levels = release.counted_schema.attribute("income").levels
    assert 12 <= len(levels) <= 19
    assert levels[0] == "0"  # a stated spike
    assert levels[-1] == "more"  # numbers outside the schema have a level of their own
    assert shapes["income",] == (len(levels),)
    assert any("income in pairs" in axes for axes in shapes)
    frame = release.to_pandas()
    assert len(frame) == 900
    assert frame["income"].dropna().between(0, 89_999).all()
    assert frame["income"].nunique() > 100
    assert release.known("income", "job").startswith(("measured by income in pairs", "implied"))


def test_made_up_columns_say_so(release: TableRecordsRelease) -> None:
    frame = release.to_pandas()
    assert frame["person"].is_unique
    assert frame["person"].str.startswith("made-up-").all()
    assert {day.year for day in frame["visit"]} == {2024}
    payload = release.payload()
    rows = list(csv.DictReader(io.StringIO(payload["dictionary.csv"].decode())))
    told = {row["column"]: row["written_as"] for row in rows}
    assert "made up" in told["person"]
    assert "made up" in told["visit"]
    assert any("leans" in row["written_as"] for row in rows if row["column"] == "income")
    assert payload["records.csv"].decode().splitlines()[0].split(",")[-2:] == [
        '"person"',
        '"visit"',
    ]
    assert "person" not in release.names


def test_estimates_by_the_bins_that_were_drawn(release: TableRecordsRelease) -> None:
    start = dict(release.cuts)["income"][0][-1]
    one = release.interval(f"income >= {start}", 0.9)
    assert one.low <= one.estimate <= one.high
    assert len(congenial.estimate(release, "count() by job")) == 4


def test_cuts_that_could_not_have_been_drawn_are_refused(release: TableRecordsRelease) -> None:
    common = {
        key: getattr(release, key)
        for key in ("name", "description", "guarantee", "randomness", "publishable")
    }
    again = TableRecordsRelease.from_payload(payload=release.payload(), **common)
    assert again.cuts == release.cuts
    assert all(KIND.checks(again).values())
    payload = release.payload()
    first = str(dict(release.cuts)["income"][0][-1]).encode()
    payload["measurements.json"] = payload["measurements.json"].replace(
        b'"' + first + b'"', b'"1.5"', 1
    )
    with pytest.raises(BundleError):
        TableRecordsRelease.from_payload(payload=payload, **common)
    none = replace(release, measured=())
    assert not all(KIND.checks(none).values())


def test_check_says_what_is_drawn_first(tmp_path: Path) -> None:
    written(tmp_path, NUMBERS)
    shown = " ".join(run("check", tmp_path / "plan.toml", "--full").split())
    assert "income at private quantiles, 16 bins (4 in pairs)" in shown
    assert "person, visit (they say nothing about anybody)" in shown


def test_check_warns_of_open_ends_and_columns_without_variation(tmp_path: Path) -> None:
    """Where nothing would be wrong, and little would be right."""
    text = PLAN.replace("60000, 200000] }", '60000], top = "60000+" }').replace(
        'job = { levels = ["a", "b", "c", "d"] }', 'job = { levels = ["all"], other = "all" }'
    )
    written(tmp_path, text)
    shown = " ".join(run("check", tmp_path / "plan.toml", "--full").split())
    assert "Open classes of income are written as their limits" in shown
    assert "job: one category only" in shown
    stated = text.replace("rounds = 3", "rounds = 3\ntails = { income = { top = 90000 } }")
    written(tmp_path, stated)
    assert "Open classes" not in run("check", tmp_path / "plan.toml", "--full")


def test_a_figure_about_a_cut_column_is_refused(tmp_path: Path) -> None:
    text = NUMBERS.replace("[[release]]", '"Poor" = { count = "income < 100" }\n\n[[release]]', 1)
    with pytest.raises(StructureError, match="could not keep it"):
        workflow.check(written(tmp_path, text))


def test_densities_follow_their_neighbours() -> None:
    """Nearer to the law than uniform values, and counts by bin as they were; flat at a peak."""
    edges = tuple(range(0, 60_001, 10_000))
    income = Attribute("income", "bins", edges=edges, top="60000+")
    rng = np.random.default_rng(SEED)
    truth = np.sort(rng.exponential(12_000, 40_000))
    codes = np.minimum(truth // 10_000, 6).astype(int)
    found = values_in_bins(income, codes, rng, StatedTail("income", top=72_000))
    assert np.array_equal(np.minimum(found // 10_000, 6), codes)
    inside = codes < 6
    flat = 10_000 * (codes[inside] + rng.random(inside.sum()))

    def apart(drawn: np.ndarray) -> float:
        return float(np.abs(np.sort(drawn) - truth[: len(drawn)]).mean())

    assert apart(found[inside]) < 0.5 * apart(flat)
    beyond = found[codes == 6] - 60_000
    assert beyond.min() >= 0
    assert abs(beyond.mean() - 12_000) < 4.9 * 12_000 / len(beyond) ** 0.5
    low, high = np.array([0.0, 1, 2, 3]), np.array([1.0, 2, 3, 4])
    assert tilts(np.array([3, 9, 4, 4]), low, high, whole=False)[1] == 0
    assert np.abs(tilts(np.array([900, 1, 0, 4]), low, high, whole=False)).max() <= 1


def test_bottoms_and_tops_without_a_stated_mean_are_their_ends() -> None:
    debt = Attribute("debt", "bins", edges=(0, 10), top="10+", bottom="less", missing="unknown")
    codes, rng = np.array([0, 0, 2, 3, 1]), np.random.default_rng(SEED)
    plain = values_in_bins(debt, codes, rng)
    assert plain[:3].tolist() == [-1, -1, 10]
    assert np.isnan(plain[3])
    stated = values_in_bins(debt, np.zeros(5_000, dtype=int), rng, StatedTail("debt", bottom=-50))
    assert stated.max() <= -1
    assert abs(stated.mean() + 50) < 5


@pytest.mark.parametrize(
    ("tails", "says"),
    [
        ("{ job = { top = 9 } }", "open class"),
        ("{ income = { top = 9 } }", "does not lie beyond"),
        ("{ income = { bottom = 9 } }", "no open class at the bottom"),
        ("{ sexes = { top = 9 } }", "sexes"),
        ('{ income = { top = "9" } }', "number"),
    ],
)
def test_tails_that_make_no_sense_are_refused(tmp_path: Path, tails: str, says: str) -> None:
    text = PLAN.replace("200000] }", '200000], top = "rich" }').replace(
        "rounds = 3", f"rounds = 3\ntails = {tails}"
    )
    with pytest.raises(CongenialError, match=says):
        workflow.check(written(tmp_path, text))


PUBLIC = (
    PLAN.replace('"Without income" = { count = "income < 1", by = ["region"] }\n', "")
    .replace('["sex", "region", "income", "job"]', '["income", "job"]\npublic = ["sex", "region"]')
    .replace("[budget]\nrho = 2", "[budget]\nrho = 8")
)


def test_public_columns_are_kept_and_not_protected(tmp_path: Path) -> None:
    """The promise is about income and job, at one record; the ledger counts whole records."""
    written(tmp_path, PUBLIC)
    shown = " ".join(run("check", tmp_path / "plan.toml", "--full").split())
    assert "for all rows and columns of one person" in shown
    release = released(tmp_path, PUBLIC)
    promise: Any = release.guarantee
    assert float(promise.tradeoff.rho) == pytest.approx(2, rel=1e-5)
    assert promise.adjacency.records == 1
    assert "income, job" in release.guarantee.adjacency.subject
    ledger = open_ledger(Plan.load(tmp_path / "plan.toml"), create=False)
    assert ledger is not None
    assert float(ledger.spent().rho) == pytest.approx(4 * 2, rel=1e-5)  # a* = 2
    data = [line.split(",") for line in (tmp_path / "people.csv").read_text().splitlines()[1:]]
    frame = release.to_pandas()
    for sex in "fm":
        for region in "nsw":
            wanted = sum(row[1:3] == [sex, region] for row in data)
            assert ((frame["sex"] == sex) & (frame["region"] == region)).sum() == wanted
    both = Fraction(release.measured[-1].scale)
    whole = released_scale(tmp_path / "whole")
    assert both * 3 < whole  # a* = 2 costs four times the variance


def released_scale(folder: Path) -> Fraction:
    folder.mkdir()
    text = PUBLIC.replace('["income", "job"]\npublic = ["sex", "region"]', "COLUMNS").replace(
        "COLUMNS", '["sex", "region", "income", "job"]'
    )
    return released(folder, text).measured[-1].scale


def test_public_columns_need_their_table(tmp_path: Path) -> None:
    text = PUBLIC.replace('public = ["sex", "region"]', 'public = ["sex"]')
    with pytest.raises(FigureError, match="table is not published"):
        workflow.check(written(tmp_path, text))
    twice = PUBLIC.replace('public = ["sex", "region"]', 'public = ["sex", "job"]')
    with pytest.raises(PlanError, match="twice"):
        workflow.check(written(tmp_path, twice))


def test_a_rule_between_columns_holds_in_records(tmp_path: Path) -> None:
    """A child is not married: impossible by definition, from a plan."""
    text = PLAN.replace(
        '"Without income"',
        '"Children" = { structural_zeros = "region = \'n\' and job = \'d\'" }\n"Without income"',
    )
    written(tmp_path, text)
    lines = (tmp_path / "people.csv").read_text().splitlines()
    kept = [line for line in lines if not (",n," in line and line.endswith(",d"))]
    (tmp_path / "people.csv").write_text("\n".join(kept) + "\n")
    plan = Plan.load(tmp_path / "plan.toml")
    workflow.publish(plan)
    workflow.release(plan, "people")
    frame = congenial.read(tmp_path / "bundles" / "people").to_pandas()
    assert len(frame) == len(kept) - 1
    assert not ((frame["region"] == "n") & (frame["job"] == "d")).any()


def test_the_curator_sees_all_ways_at_the_same_promise(tmp_path: Path) -> None:
    """Four ways at two promises; more of it is better; private, and released records beside."""
    released(tmp_path, PLAN)
    plan = tmp_path / "plan.toml"
    told = run("curve", plan, "--times", "0.01,20", "--replicates", "2", "--json")
    errors = {
        (row["mechanism"], row["times"], row["measure"]): row["mean_error"] for row in told["rows"]
    }
    ways = ("records from tables", "certified pseudo-posterior", "noisy histogram", "no privacy")
    assert len(errors) == len(ways) * 2 * 2
    for way in ("records from tables", "noisy histogram"):
        assert errors[way, 20, "pairs"] < errors[way, 0.01, "pairs"]
    assert errors["records from tables", 20, "pairs"] < 0.05
    assert errors["certified pseudo-posterior", 20, "pairs"] > errors["no privacy", 20, "pairs"]
    assert (tmp_path / "curve" / "people").stat().st_mode & 0o777 == 0o700
    shown = " ".join(run("utility", plan).split())
    assert "as released" in shown
    assert "must not be published" in shown
    with pytest.raises(PlanError, match="positive numbers"):
        positive_numbers("--times", "0.5,none")


def test_one_column_has_no_pairs_to_compare(tmp_path: Path) -> None:
    text = PLAN.replace('["sex", "region", "income", "job"]', '["job"]').replace("rounds = 3\n", "")
    released(tmp_path, text)
    plan = tmp_path / "plan.toml"
    told = run("curve", plan, "--times", "20", "--replicates", "2", "--json")
    assert {row["measure"] for row in told["rows"]} == {"columns"}
    assert "pairs of columns" not in run("curve", plan, "--times", "20", "--replicates", "2")
