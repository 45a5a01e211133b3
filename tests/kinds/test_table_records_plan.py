"""Records from tables: a plan with exact figures, from check to verified records."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import congenial
from congenial import Invariants, Schema, SemiAdjacent, Table, margin, structural_zeros, total
from congenial.errors import CongenialError, PlanError, StructureError
from congenial.exports.exported_tables import exported_bundle
from congenial.inference.estimates.asked_tests import carry_out_test
from congenial.publication import verification, workflow
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import open_ledger
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.predicted_error import predicted_errors
from congenial.synthesis.from_tables.records_from_tables_release import TableRecordsRelease
from congenial.synthesis.from_tables.records_run import RecordsRun
from congenial.synthesis.from_tables.table_choice import choose
from congenial.synthesis.from_tables.table_records import TableRecords
from tests.commands import run

ALPHA = 1e-6
SEED = 20261117
PLAN = """
[data]
source = "people.csv"
unit = "id"

[schema]
sex = { levels = ["f", "m"] }
region = { levels = ["n", "s", "w"] }
income = { edges = [0, 1, 20000, 60000, 200000] }
job = { levels = ["a", "b", "c", "d"] }

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

pytestmark = pytest.mark.usefixtures("without_pictures")


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
    assert release.known("sex", "region") == "settled by published figures"
    measured = [one.axes for one in release.measured if len(one.axes) == 2]
    assert all(release.known(*axes) == "measured" for axes in measured)
    report = (bundle / "report.html").read_text()
    assert report.count("implied by the fit") == 6 - 1 - len(measured)


def test_changed_records_and_measurements_are_noticed(bundle: Path) -> None:
    release = congenial.read(bundle)
    held = release.checks()
    assert all(held.values())
    fewer = replace(release, copies=(release.copies[0].slice(1),))
    assert not all(fewer.checks().values())
    twice = replace(release, measured=(*release.measured, release.measured[0]))
    assert not all(twice.checks().values())
    assert not all(replace(release, measured=()).checks().values())
    assert not all(replace(release, moved=-7).checks().values())
    region = next(i for i, one in enumerate(release.measured) if one.axes != ("sex",))
    other = replace(release.measured[region], values=release.measured[region].values + 1)
    changed = (*release.measured[:region], other, *release.measured[region + 1 :])
    assert not all(replace(release, measured=changed).checks().values())
    finer = replace(release.measured[0], scale=release.measured[0].scale / 2)
    assert not all(replace(release, measured=(finer, *release.measured[1:])).checks().values())


def test_measured_tables_are_in_a_file_with_their_errors(bundle: Path) -> None:
    """The numbers that each table's own law gives."""
    release = congenial.read(bundle)
    rows = list(csv.DictReader(io.StringIO((bundle / "measured.csv").read_text())))
    assert len(rows) == sum(one.values.size for one in release.measured)
    for one in release.measured_tables():
        mine = [row for row in rows if row["table"] == " x ".join(one.table)]
        assert [int(row["estimate"]) for row in mine] == one.values.reshape(-1).tolist()
        ends = [(int(row["low"]), int(row["high"])) for row in mine]
        told = one.intervals(one.table, 0.9)
        assert ends == list(zip(told["low"].to_pylist(), told["high"].to_pylist(), strict=True))


def test_changed_errors_of_measured_tables_are_noticed(bundle: Path) -> None:
    release = congenial.read(bundle)
    said = release.in_file.decode()
    assert all(release.checks().values())
    line = next(one for one in said.splitlines() if one.startswith("job,"))
    narrow = line.rsplit(",", 3)[0] + ",0.5,1,2"
    other, longer = line.replace(",a,", ",b,"), line.replace("job,", "job ,")
    for text in (*(said.replace(line, one) for one in (narrow, other, longer)), said + line + "\n"):
        assert text != said
        assert not all(replace(release, in_file=text.encode()).checks().values())


def test_a_bundle_of_older_software_lacks_the_file_of_errors(bundle: Path) -> None:
    older = replace(congenial.read(bundle), in_file=b"")
    assert "measured.csv" not in older.payload()
    assert all(older.checks().values())


def test_measured_tables_are_handed_over(bundle: Path) -> None:
    release = congenial.read(bundle)
    handed = exported_bundle(release, {}, "", 0.9).tables
    assert [one.name for one in handed] == [" by ".join(one.axes) for one in release.measured]
    names = [column.name for column in handed[0].columns]
    assert names[-4:] == ["estimate", "sd", "low", "high"]
    told = {column.name: column.values for column in handed[0].columns}
    assert told["low"] == release.measured_tables()[0].errors.low.tolist()


SCHEMA = Schema.from_dict({"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 3]}})


def test_the_promise_counts_look_alikes() -> None:
    """Planted: sensitivity 2 in place of 2 a* would leave the noise as without figures."""
    free = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("x", "y"), Fraction(1))
    figures = Invariants(
        SCHEMA, (margin("x"), margin("y")), (np.array([9, 8]), np.array([5, 7, 5]))
    )
    tied = TableRecords.calibrate(SemiAdjacent(figures), ("x", "y"), Fraction(1))
    a = tied.adjacency.records
    assert a == 3
    assert float(tied.budget.amount) == pytest.approx(float(free.budget.amount) / a**2, rel=1e-6)
    assert set(tied.scales) == {("x", "y")}  # what figures settle gets no share
    assert 1 / tied.budget.pair_scale == pytest.approx(float(tied.budget.amount), rel=1e-5)
    for made in (free, tied):
        assert float(made.guarantee.tradeoff.rho) <= 1
        assert float(made.guarantee.tradeoff.rho) == pytest.approx(1, rel=1e-5)


def test_losses_of_everything_that_is_measured_stay_below_the_promise() -> None:
    """Whole databases of five people: squared distances of all tables, and scores of choices."""
    made = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("x", "y"), Fraction(1))
    rng = np.random.default_rng(SEED)
    worst = 0.0
    for _ in range(300):
        one = rng.integers(0, 6, 5)
        other = one.copy()
        other[0] = rng.integers(0, 6)
        tables = [np.bincount(people, minlength=6).reshape(2, 3) for people in (one, other)]
        loss = 0.0
        for axes, away in ((("x",), 1), (("y",), 0), (("x", "y"), ())):
            u = tables[0].sum(axis=away) - tables[1].sum(axis=away)
            loss += float((u**2).sum()) / (2 * float(made.scales[axes]))
        worst = max(worst, loss)
    assert worst <= float(made.budget.amount)
    assert worst == pytest.approx(
        float(made.budget.amount), rel=1e-5
    )  # attained where both cells move


def test_choices_follow_their_law() -> None:
    """Draws against exp(epsilon q / (2 moves)); half of epsilon must be rejected."""
    scores, draws = [0, 3, -2, 5], 4_000
    source = SeededRandomness(SEED)
    counts = np.bincount(
        [choose(scores, Fraction(1), 2, source) for _ in range(draws)], minlength=4
    )

    def p_value(epsilon: float) -> float:
        from scipy.stats import chisquare

        weights = np.exp(epsilon * np.array(scores) / 4)
        return float(chisquare(counts, draws * weights / weights.sum()).pvalue)

    assert p_value(1.0) > ALPHA
    assert p_value(0.5) < ALPHA


def test_one_column_and_no_rounds() -> None:
    table = Table(SCHEMA, ["x", "y"], [[5, 0, 2], [1, 3, 9]])
    made = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("y",), Fraction(1))
    release = made.release(table, SeededRandomness(SEED))
    assert release.names == ("y",)
    assert made.budget.rounds == 0
    assert release.to_arrow().num_rows == 20


def test_a_table_that_a_figure_settles_is_not_measured() -> None:
    table = Table(SCHEMA, ["x", "y"], [[5, 0, 2], [1, 3, 9]])
    figures = congenial.publish(table, total(by="x"))
    made = TableRecords.calibrate(SemiAdjacent(figures), ("x", "y"), Fraction(1))
    release = made.release(table, SeededRandomness(SEED))
    assert ("x",) not in [one.axes for one in release.measured]
    assert release.to_pandas()["x"].value_counts().to_dict() == {"q": 13, "p": 7}


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
    assert not all(replace(release, measured=(other, *release.measured[1:])).checks().values())


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
    assert not all(replace(release, copies=release.copies[:1]).checks().values())


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
    assert best.table == ("job",) or job.scale > best.description.scale
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


def test_tests_use_the_measured_table() -> None:
    """Independent columns are not rejected, dependent ones are; unmeasured ones are refused."""
    three = Schema.from_dict({**SCHEMA.to_dict(), "z": {"levels": ["u", "v"]}})
    counts = np.zeros((2, 3, 2), dtype=np.int64)
    counts[0, :, 0], counts[1, :, 1] = (300, 200, 100), (300, 200, 100)
    pairs = SemiAdjacent(Invariants(three))
    made = TableRecords.calibrate(pairs, three.names, Fraction(1))
    release = made.release(Table(three, three.names, counts), SeededRandomness(SEED))
    assert carry_out_test(release, "independent(x, y)").p_value > 1e-3
    assert carry_out_test(release, "independent(x, z)").p_value < 1e-3
    assert carry_out_test(release, "equal(y | x = 'p', x = 'q')").p_value > 1e-3
    only = replace(release, measured=tuple(m for m in release.measured if len(m.axes) == 1))
    with pytest.raises(CongenialError, match="together"):
        carry_out_test(only, "independent(x, z)")


def measured_releases(number: int) -> Iterator[TableRecordsRelease]:
    """One table of 200 people, measured anew each time."""
    table = Table(SCHEMA, ["x", "y"], [[50, 0, 20], [10, 30, 90]])
    made = TableRecords.calibrate(SemiAdjacent(Invariants(SCHEMA)), ("x", "y"), Fraction(1, 10))
    for seed in range(number):
        drawn = RecordsRun(made, *made.fetch(table), SeededRandomness(seed), lambda _: None)
        for axes in made.scales:
            drawn.measure(axes)
        yield replace(made.made_up(200), measured=tuple(drawn.measured))


def test_intervals_from_combined_tables_are_narrower_and_cover() -> None:
    """A pair and its columns: 80 % intervals of 200 releases; a third as wide ones must not do."""
    covered = narrow = 0
    for release in measured_releases(200):
        (one,) = congenial.estimate(release, "count(y = 2)", 0.8)
        asked = release.interval("y = 2", 0.8)
        assert (asked.estimate, asked.low, asked.high) == (one.value, one.low, one.high)
        (alone,) = congenial.estimate(release.tables_about(["y"])[0], "count(y = 2)", 0.8)
        covered += one.low <= 30 <= one.high
        narrow += abs(one.value - 30) <= (one.high - one.value) / 3
        assert one.sd < 0.95 * alone.sd
    assert binomtest(covered, 200, 0.8, alternative="less").pvalue > ALPHA
    assert binomtest(narrow, 200, 0.8, alternative="less").pvalue < ALPHA


def test_another_number_of_records(tmp_path: Path) -> None:
    """Without figures about them there may be more or fewer records than people."""
    start, end = PLAN.index("[publish]"), PLAN.index("[[release]]")
    text = (PLAN[:start] + PLAN[end:]).replace("rounds = 3", "rounds = 3\nrecords = 50")
    assert released(tmp_path, text).to_arrow().num_rows == 50


def test_heavier_columns_are_chosen_more_often() -> None:
    """A score counts less where no heavy column is in the pair."""
    three = Schema.from_dict({**SCHEMA.to_dict(), "z": {"levels": ["u", "v"]}})
    made = TableRecords.calibrate(
        SemiAdjacent(Invariants(three)), three.names, Fraction(1), 1, weights={"z": Fraction(3)}
    )
    assert made.weight_of(("x", "y")) == Fraction(1, 3)
    assert made.weight_of(("x", "z")) == 1
    assert TableRecords.from_dict(made.adjacency, made.to_dict()) == made


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
    shown = run("check", tmp_path / "plan.toml")
    assert "Warning: with 900 people" in shown
    assert "misplaced" in shown


def test_predicted_errors_are_those_of_the_noise() -> None:
    """Mean of sum |z| / 2 in tables drawn 400 times, for both laws."""
    nobody = Table(SCHEMA, ["x", "y"], np.zeros((2, 3), dtype=np.int64))
    pairs = SemiAdjacent(Invariants(SCHEMA))
    for made in (
        TableRecords.calibrate(pairs, ("x", "y"), Fraction(1, 2)),
        TableRecords.calibrate(pairs, ("x", "y"), epsilon=Fraction(1)),
    ):
        for one in predicted_errors(made):
            law = made.law(one.axes)
            assert law is not None
            truth = nobody.marginal(one.axes).counts
            drawn = law.draw(truth, SeededRandomness(SEED), 400).reshape(400, -1)
            sums = np.abs(drawn).sum(axis=1) / 2
            spread = sums.std() / 20  # of the mean of 400
            assert abs(sums.mean() - one.misplaced) < 4.9 * spread  # two-sided, ALPHA
            assert abs(sums.mean() - 1.5 * one.misplaced) > 4.9 * spread


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


def test_rules_that_tie_records_to_other_columns_are_refused() -> None:
    """Figures on a column that the records lack would bind them unseen."""
    schema = Schema.from_dict(
        {"region": {"levels": ["A", "B"]}, "sex": {"levels": ["f", "m", "x"]}}
    )
    rule = structural_zeros("region = 'A' and sex = 'm'")
    figures = Invariants(schema, (total(by="region"), rule), (np.array([3, 7]), None))
    with pytest.raises(StructureError, match="Synthesise region too"):
        TableRecords.calibrate(SemiAdjacent(figures), ("sex",), Fraction(1))


def test_figures_of_other_columns_stay_in_the_description() -> None:
    """Noise was drawn given them, so a price without them would be wrong."""
    figures = Invariants(SCHEMA, (total(by="x"),), (np.array([4, 5]),))
    made = TableRecords.calibrate(SemiAdjacent(figures), ("y",), Fraction(1))
    assert made.description.given == figures


def test_check_says_what_would_be_drawn(tmp_path: Path) -> None:
    """For people, and the same as a document."""
    written(tmp_path)
    told, shown = (
        run("check", tmp_path / "plan.toml", "--json"),
        run("check", tmp_path / "plan.toml"),
    )
    assert told["releases"][0]["name"] == "people"
    assert "900" not in shown  # nothing of the data
    assert "Release 'people': records from tables" in shown
