"""Records from tables: a plan with exact figures, from check to verified records."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial.errors import CongenialError, PlanError, StructureError
from congenial.exports.exported_tables import exported_bundle
from congenial.kinds.kind import PRODUCED
from congenial.kinds.records_from_tables import KIND
from congenial.publication import verification, workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.publication.verification import SYSTEM
from congenial.synthesis.from_tables.records_from_tables_release import (
    MEASURED,
    TableRecordsRelease,
)
from tests.commands import run
from tests.kinds.table_records_plan import PEOPLE
from tests.publication.forging import altered

ALPHA = 1e-6
SEED = 20261117
PLAN = (
    PEOPLE
    + """
[publish]
"By sex and region" = { total = true, by = ["sex", "region"] }
"Without income" = { count = "income < 1", by = ["region"] }

[[release]]
name = "people"
synthesise = ["sex", "region", "income", "job"]
rho = 2
rounds = 3

[budget]
rho = 2
"""
)


def written(folder: Path, text: str = PLAN) -> Plan:
    rng = np.random.default_rng(SEED)
    lines = ["id,sex,region,income,job"]
    for i in range(900):
        sex, region = rng.choice(["f", "m"]), rng.choice(["n", "s", "w"])
        income = 0 if rng.random() < 0.1 else int(rng.integers(1, 150_000))
        job = "abcd"[min(3, income // 40_000)]
        lines.append(f"{i},{sex},{region},{income},{job}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    (folder / "plan.toml").write_text(text.replace('by = "region"', 'by = ["region"]'))
    return Plan.load(folder / "plan.toml")


def released(folder: Path, text: str) -> TableRecordsRelease:
    """A plan published and released; its bundle holds what it says."""
    plan = written(folder, text)
    if "[publish]" in text:
        workflow.publish(plan)
    workflow.release(plan, "people")
    bundle = folder / "bundles" / "people"
    assert [one.what for one in verification.verify(bundle) if not one.holds] == []
    release = congenial.read(bundle)
    assert isinstance(release, TableRecordsRelease)
    return release


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    released(folder, PLAN)
    return folder / "bundles" / "people"


def test_from_a_plan_to_records_that_keep_every_figure(bundle: Path) -> None:
    release = congenial.read(bundle)
    frame = release.to_pandas()
    assert len(frame) == 900
    published = json.loads((bundle.parents[1] / "published" / "published.json").read_text())
    assert published
    ledger = open_ledger(Plan.load(bundle.parents[1] / "plan.toml"), create=False)
    assert ledger is not None
    assert float(ledger.spent().rho) <= 2
    assert float(ledger.spent().rho) == pytest.approx(2, rel=1e-4)
    assert len(release.measured) <= 4 + 3
    assert release.known("sex", "region") == "fixed by published figures"
    measured = [one.axes for one in release.measured if len(one.axes) == 2]
    assert all(release.known(*axes) == "measured" for axes in measured)
    report = (bundle / "report.html").read_text()
    assert report.count("implied by the fit") == 6 - 1 - len(measured)


def test_changed_records_and_measurements_are_noticed(bundle: Path) -> None:
    release = congenial.read(bundle)
    held = KIND.checks(release)
    assert all(held.values())
    fewer = replace(release, copies=(release.copies[0].slice(1),))
    assert not all(KIND.checks(fewer).values())
    twice = replace(release, measured=(*release.measured, release.measured[0]))
    assert not all(KIND.checks(twice).values())
    assert not all(KIND.checks(replace(release, measured=())).values())
    assert not all(KIND.checks(replace(release, moved=-7)).values())
    region = next(i for i, one in enumerate(release.measured) if one.axes != ("sex",))
    other = replace(release.measured[region], values=release.measured[region].values + 1)
    changed = (*release.measured[:region], other, *release.measured[region + 1 :])
    assert not all(KIND.checks(replace(release, measured=changed)).values())
    finer = replace(release.measured[0], scale=release.measured[0].scale / 2)
    assert not all(KIND.checks(replace(release, measured=(finer, *release.measured[1:]))).values())


def test_measured_tables_are_in_a_file_with_their_errors(bundle: Path) -> None:
    """The numbers that each table's own law gives."""
    release = congenial.read(bundle)
    rows = list(csv.DictReader(io.StringIO((bundle / "measured.csv").read_text())))
    assert len(rows) == sum(one.values.size for one in release.measured)
    for one in release.measured_tables():
        mine = [row for row in rows if row["table"] == " x ".join(one.tables[0])]
        assert [int(row["estimate"]) for row in mine] == one.drawn[0].reshape(-1).tolist()
        ends = [(int(row["low_90"]), int(row["high_90"])) for row in mine]
        told = one.intervals(one.tables[0], 0.9)
        assert ends == list(zip(told["low"].to_pylist(), told["high"].to_pylist(), strict=True))


def test_changed_errors_of_measured_tables_are_noticed(bundle: Path, tmp_path: Path) -> None:
    said = (bundle / MEASURED).read_text()
    line = next(one for one in said.splitlines() if one.startswith("job,"))
    *cell, sd, low, high = line.split(",")

    def forged(text: str) -> set[str]:
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        return altered(bundle, place, lambda _, copy: (copy / MEASURED).write_text(text))

    def changed(*errors: object) -> str:
        return said.replace(line, ",".join([*cell, *map(str, errors)]))

    rounded = changed(float(sd) * (1 + 1e-9), low, high)
    assert rounded != said
    assert forged(rounded) <= {SYSTEM}  # as another machine may write it
    lies = [
        *(changed(0.5, 1, 2), changed(float(sd) * (1 + 1e-5), low, high)),
        *(changed(sd, int(low) - 1, high), changed(f"{sd}0", low, high)),
        *(
            said.replace(line, line.replace(",a,", ",b,")),
            said.replace(line, f"{line},"),
            said + line,
        ),
        *(
            said.replace("job,", "job ,"),
            said.replace("\n", "\r\n"),
            said.replace(low, f"{low}.0", 1),
        ),
    ]
    for text in lies:
        assert text != said
        assert PRODUCED in forged(text)


def test_measured_tables_are_handed_over(bundle: Path) -> None:
    release = congenial.read(bundle)
    handed = exported_bundle(release, {}, "", 0.9).tables
    assert [one.name for one in handed] == [" by ".join(one.axes) for one in release.measured]
    names = [column.name for column in handed[0].columns]
    assert names[-5:] == ["estimate", "sd", "low_90", "high_90", "reliability"]
    told = {column.name: column.values for column in handed[0].columns}
    assert told["low_90"] == release.measured_tables()[0].cell_errors()[1].reshape(-1).tolist()


PURE = PLAN.replace("rho = 2\nrounds = 3", "epsilon = 8").replace("rho = 2", "epsilon = 8")


def test_a_pure_promise_from_plan_to_verified_records(tmp_path: Path) -> None:
    """Double geometric noise; the ledger counts epsilon, and no delta."""
    release = released(tmp_path, PURE)
    bundle, plan = tmp_path / "bundles" / "people", Plan.load(tmp_path / "plan.toml")
    assert {one.family for one in release.measured} == {"double_geometric"}
    assert release.guarantee.tradeoff.words.startswith("epsilon")
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert float(ledger.spent().epsilon) == pytest.approx(8, rel=1e-6)
    assert ledger.spent().epsilon <= 8
    assert not ledger.spent().rho
    measured = json.loads((bundle / "measurements.json").read_text())["measured"]
    assert all("rate" in one and "variance" not in one for one in measured)
    other = replace(release.measured[0], family="discrete_gaussian")
    assert not all(KIND.checks(replace(release, measured=(other, *release.measured[1:]))).values())


def test_copies_and_weights_from_a_plan(tmp_path: Path) -> None:
    text = PLAN.replace("rounds = 3", "rounds = 3\ncopies = 2\nweights = { income = 4 }")
    release = released(tmp_path, text)
    bundle, plan = tmp_path / "bundles" / "people", Plan.load(tmp_path / "plan.toml")
    assert (bundle / "records-2.csv").exists()
    assert not (bundle / "records.csv").exists()
    assert len(release.to_pandas(2)) == 900
    assert not release.to_arrow(1).equals(release.to_arrow(2))
    scales = {one.axes: one.scale for one in release.measured}
    assert scales["job",] == pytest.approx(4 * scales["income",], rel=1e-5)
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert ledger.spent().rho <= 2
    assert not all(KIND.checks(replace(release, copies=release.copies[:1])).values())


def test_pairs_by_coarser_names(tmp_path: Path) -> None:
    """Income alone level by level, in pairs by three classes; figures about levels stay exact."""
    text = PLAN.replace(
        "200000] }", '200000], within = { class = ["none", "low", "high", "high"] } }'
    ).replace("rounds = 3", 'rounds = 6\ncoarse = { income = "class" }')
    release = released(tmp_path, text)
    shapes = {one.axes: one.values.shape for one in release.measured}
    assert shapes["income",] == (4,)
    assert shapes["class", "job"] == (3, 4)
    assert release.known("income", "job") == "measured by class"
    frame = release.to_pandas()
    drawn = frame[frame["income"] >= 60_000]["job"].value_counts(normalize=True)
    assert drawn.get("a", 0) < 0.2  # incomes of "a" are below 40,000


def test_estimates_come_from_the_measured_tables(bundle: Path) -> None:
    """From tables that show the columns, combined; no such table, and it is refused."""
    release = congenial.read(bundle)
    by_job = congenial.estimate(release, "count() by job", 0.9)
    job = next(one for one in release.measured if one.axes == ("job",))
    assert len(by_job) == 4
    best = release.tables_about(["job"])[0]
    assert best.tables == (("job",),) or job.scale > best.only.description.scale
    single = congenial.estimate(best, "count() by job", 0.9)
    widths = [[one.high - one.low for one in each] for each in (by_job, single)]
    assert sum(widths[0]) <= sum(widths[1])
    exact = release.estimate("count(sex = 'f') by region")
    assert all(one.low == one.value == one.high for one in exact)
    found = release.interval("job = 'a'", 0.9)
    assert found.low <= found.estimate <= found.high
    missing = [
        pair
        for pair in (("income", "job"), ("sex", "job"), ("region", "job"))
        if release.known(*pair) != "measured"
    ]
    for one, other in missing:
        with pytest.raises(CongenialError, match="together"):
            congenial.estimate(release, f"count() by {one}, {other}")
    with pytest.raises(CongenialError, match="one question"):
        congenial.estimate(release, ["count() by job", "count() by income"], jointly=True)
    with pytest.raises(CongenialError, match="tables_about"):
        congenial.estimate(release, lambda table: table.sum())
    told = run("estimate", bundle, "--of", "count(income >= 60000)", "--json")
    assert len(told["estimates"]) == 1


def test_another_number_of_records(tmp_path: Path) -> None:
    """Without figures about them there may be more or fewer records than people."""
    start, end = PLAN.index("[publish]"), PLAN.index("[[release]]")
    text = (PLAN[:start] + PLAN[end:]).replace("rounds = 3", "rounds = 3\nrecords = 50")
    assert released(tmp_path, text).to_arrow().num_rows == 50


def test_check_predicts_errors_and_warns(tmp_path: Path) -> None:
    """Before the data are read: noise of every table; once people are counted, a warning."""
    plan = written(tmp_path, PLAN.replace("rho = 2\nrounds = 3", "rho = 0.001"))
    told = run("check", tmp_path / "plan.toml", "--json")["releases"][0]
    assert told["people"] is None
    assert ["sex"] not in [one["table"] for one in told["tables"]]  # a figure settles it
    assert len(told["tables"]) == 2 + 5
    workflow.publish(plan)
    told = run("check", tmp_path / "plan.toml", "--json")["releases"][0]
    assert told["people"] == 900
    assert told["needed_people"] > 900
    shown = run("check", tmp_path / "plan.toml", "--full")
    assert "Warning: with 900 people" in shown
    assert "misplaced" in shown


def test_fewer_tables_are_better_without_delta(tmp_path: Path) -> None:
    one = 'synthesise = ["sex"]\nepsilon = 1\ndelta = 1e-9'
    start, end = PLAN.index("[publish]"), PLAN.index("[[release]]")
    text = (
        (PLAN[:start] + PLAN[end:])
        .replace('synthesise = ["sex", "region", "income", "job"]\nrho = 2\nrounds = 3', one)
        .replace("rho = 2", "epsilon = 1\ndelta = 1e-9")
    )
    written(tmp_path, text)
    assert run("check", tmp_path / "plan.toml", "--json")["releases"][0]["pure_is_better"]


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ("rho = 2\nrounds", "rho = 2\nepsilon = 1\nrounds", PlanError, "must have rho"),
        ("rho = 2\nrounds", "rho = 2\nweights = { sexes = 2 }\nrounds", PlanError, "sexes"),
        ("rho = 2\nrounds", "rho = 2\nrecords = 50\nrounds", StructureError, "counts all people"),
        ('"sex", "region", "income"', '"sex", "income"', StructureError, "region"),
        ('"job"]', '"job", "job"]', PlanError, "twice"),
        ("rounds = 3", 'rounds = 3\ncoarse = { income = "sex" }', StructureError, "coarser name"),
        ('"job"]', '"jobs"]', CongenialError, "jobs"),
    ],
)
def test_what_cannot_be_is_refused_before_any_data(
    tmp_path: Path, old: str, new: str, error: type[CongenialError], says: str
) -> None:
    with pytest.raises(error, match=says):
        workflow.check(written(tmp_path, PLAN.replace(old, new)))
