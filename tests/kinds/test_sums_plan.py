"""Sums of a number by table: from a plan to a verified bundle, by the commands."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import congenial
from congenial import (
    Guarantee,
    Ledger,
    Plan,
    ReplaceOne,
    Schema,
    SeededRandomness,
    SemiAdjacent,
    Table,
)
from congenial.data.magnitude import Magnitude
from congenial.data.table import SumsTable
from congenial.errors import GuaranteeError, InferenceError, StructureError
from congenial.figures import Figures, margin, publish, total
from congenial.kinds import tables_verification
from congenial.kinds.registry import of_section
from congenial.mechanisms import MeasuredTables, calibrate_tables
from congenial.mechanisms.released import EXACT_LAW
from congenial.privacy import joint_loss
from tests.commands import refused, run, verified, write_plan
from tests.kinds.several_tables_plan import failed, forged
from tests.publication.reading import cells_of

ALPHA = 1e-6
WARDS = ("surgery", "medicine", "maternity")
PLAN = """
[data]
source = "stays.csv"
[schema]
ward = { levels = ["surgery", "medicine", "maternity"] }
sex = { levels = ["f", "m"] }
[publish]
"Admissions" = { total = true, by = ["ward"] }
[[release]]
name = "cost"
tables = [["ward", "sex"], ["ward"], []]
sum = "cost"
between = [0, 5000]
step = 10
rho = 0.5
[budget]
rho = 4
"""


def hospital(folder: Path, *changes: tuple[str, str], people: int = 600) -> Path:
    """A plan with made-up stays beside it, some of them dearer than the bound."""
    rng = np.random.default_rng(8)
    rows = zip(rng.integers(0, 3, people), rng.integers(0, 2, people), rng.pareto(1.2, people),
               strict=True)  # fmt: skip
    lines = [f"{WARDS[w]},{'fm'[s]},{300 * (1 + v):.2f}" for w, s, v in rows]
    (folder / "stays.csv").write_text("\n".join(["ward,sex,cost", *lines]) + "\n")
    return write_plan(folder, PLAN, *changes)


def truth(folder: Path, low: float, high: float) -> np.ndarray:
    """Sums by ward of the cut numbers, without rounding."""
    rows = [line.split(",") for line in (folder / "stays.csv").read_text().split("\n")[1:-1]]
    sums = dict.fromkeys(WARDS, 0.0)
    for ward, _, cost, *_ in rows:
        sums[ward] += min(max(float(cost), low), high)
    return np.array(list(sums.values()))


def test_a_derived_number_is_known_by_how_it_is_derived(tmp_path):
    """A ledger takes it for the column of the same name nowhere, and keeps what it was."""
    derived = """
[derive]
other = { tidy = "fee", trim = true }
cost = { recode = "other", to = { "7" = "-7" } }
"""
    seen = set()
    for text in ("", derived, derived.replace("-7", "-8"), derived.replace("fee", "fees")):
        plan = Plan.parse(PLAN.replace("[schema]", f"{text}[schema]"), tmp_path)
        section = plan.release[0]
        built = of_section(section).build(plan, section, Figures(plan.schema))
        number = built.description.magnitude
        assert bool(number.origin) == bool(text)
        assert Magnitude.from_dict(number.to_dict()) == number
        seen.add(number.origin)
    assert len(seen) == 4


def test_from_a_plan_to_a_verified_bundle(tmp_path):
    path = hospital(tmp_path)
    shown = run("check", path)
    assert "sums of cost" in shown
    assert "of the largest number" in shown
    bundle = verified(path, "cost")
    release = congenial.read(bundle)
    frames = [release.to_pandas(*names) for names in release.tables[:2]]
    assert list(frames[1].columns) == [
        "ward", "sum", "estimate", "sd", "low_90", "high_90", "sum_as_drawn"]  # fmt: skip
    for frame in frames:
        assert (frame["sum"] >= 0).all()
        assert not (frame["sum"] % 10).any()
        assert ((frame["low_90"] <= frame["sum"]) & (frame["sum"] <= frame["high_90"])).all()
    by_ward = frames[0].groupby("ward", sort=False)["sum"].sum()
    assert by_ward.tolist() == frames[1]["sum"].tolist()
    assert frames[1]["sum"].sum() == release.margin()
    off = frames[1]["estimate"] - truth(tmp_path, 0, 5000)
    assert (abs(off) < 6 * frames[1]["sd"]).all()
    promise = release.guarantee.explain()
    assert "each person's cost is cut to 0 to 5000 and rounded to a multiple of 10" in promise
    assert "counts as the bound" in promise
    assert release.count("ward = 'surgery'") == frames[1]["sum"][0]
    interval = release.interval("ward = 'surgery'", 0.9)
    assert (interval.low, interval.high) == (frames[1]["low_90"][0], frames[1]["high_90"][0])


@pytest.mark.parametrize(
    "changes",
    [
        [('tables = [["ward", "sex"], ["ward"], []]', 'table = ["ward"]')],
        [("between = [0, 5000]", "between = [-50.5, 100.25]"), ("step = 10", "step = 0.25")],
        [("rho = 0.5", "epsilon = 1"), ("\nrho = 4", "\nepsilon = 4")],
        [("rho = 0.5", 'rho = 0.5\nnonnegative = "no"')],
        [('"Admissions" = { total = true, by = ["ward"] }', "")],
    ],
)
def test_other_forms_of_the_release(tmp_path, changes):
    path = hospital(tmp_path, *changes)
    verified(path, "cost")
    assert run("check", path, "--full")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A released bundle, and its frame by ward."""
    folder = tmp_path_factory.mktemp("hospital")
    path = hospital(folder)
    return verified(path, "cost")


def asked(bundle, question):
    return run("estimate", bundle, "--of", question, "--level", "0.9", "--json")["estimates"]


def test_sums_and_means_can_be_asked(bundle):
    release = congenial.read(bundle)
    frame, means = release.to_pandas("ward"), release.means("ward", 0.9).to_pandas()
    for found, row in zip(asked(bundle, "sum(cost) by ward"), frame.itertuples(), strict=True):
        assert found["value"] == pytest.approx(row.estimate, rel=1e-6)
        assert found["sd"] == pytest.approx(row.sd, rel=0.02)
        assert found["high"] - found["value"] == pytest.approx(1.645 * row.sd, rel=0.1)
    for found, row in zip(asked(bundle, "mean(cost) by ward"), means.itertuples(), strict=True):
        assert found["value"] == pytest.approx(row.mean, rel=1e-6)
        assert found["low"] == pytest.approx(row.low, rel=0.02)
    assert means["people"].sum() == 600
    share = asked(bundle, "sum(cost | sex = 'f') / sum(cost)")[0]
    assert share["low"] <= share["value"] <= share["high"]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("count(sex = 'f')", "sums of cost"),
        ("share(sex = 'f')", "sums of cost"),
        ("sum(days)", "not sums of days"),
        ("mean(cost) by sex", "needs the number of people"),
    ],
)
def test_questions_that_sums_do_not_answer(bundle, question, words):
    assert words in refused(bundle, "estimate", 2, ("--of", question))


def test_tests_models_and_combinations_are_refused(bundle):
    release = congenial.read(bundle)
    said = refused(bundle, "estimate", 2, ("--test", "independent(ward, sex)"))
    assert "sums of cost" in said
    assert "models are for counts" in refused(bundle, "infer", 2, ("--model", "multinomial"))
    with pytest.raises(InferenceError, match="a function of the table"):
        congenial.estimate(release, lambda table: table.sum())
    counts = calibrate_tables(
        Guarantee.zero_concentrated("1/2", under=release.guarantee.adjacency), [["ward", "sex"]]
    )
    people = counts.made_up("people")
    both = congenial.estimate([release, people], "mean(cost) by sex")
    alone = congenial.estimate([release], "sum(cost) by sex")
    for mean, sums in zip(both, alone, strict=True):
        counted = people.margin("sex")[["f", "m"].index(mean.group["sex"])]
        assert mean.value == pytest.approx(sums.value / counted, rel=0.05)


def test_words_and_files_for_others_are_in_units_of_the_number(bundle, tmp_path):
    said = run("explain", bundle, "--for", "journalist")
    assert "Sums of cost by ward, sex" in said
    reach = congenial.read(bundle).to_pandas("ward", "sex")["sd"].median() * 1.645
    assert f"within {reach:,.0f}"[:10] in " ".join(said.split())
    assert "sum(cost) by ward" in run("explain", bundle, "--for", "analyst")
    run("export", bundle, "--to", "datapackage", "--out", tmp_path / "package")
    exported = next((tmp_path / "package").rglob("*ward*.csv"))
    assert "sum" in exported.read_text().split("\n")[0]
    report = (bundle / "report.html").read_text()
    assert "sums of cost" in report
    shown = cells_of(report, "ward", "sex")
    table = congenial.read(bundle).to_pandas("ward", "sex")
    assert [one["value"] for one in shown] == table["sum"].tolist()
    wards = cells_of(report, "ward")  # whose people are published
    assert all(one["m_low"] <= one["m_mean"] <= one["m_high"] for one in wards)


def test_what_is_changed_in_a_bundle_is_noticed(tmp_path):
    """Digests included: wider bounds than the noise is for, and a sum that was not drawn."""
    path = hospital(tmp_path)
    release = congenial.read(verified(path, "cost"))
    wide = Magnitude.of("cost", [0, 50000], 10)
    laws = tuple(replace(one, magnitude=wide) for one in release.description.measured)
    changed = replace(release.description, measured=laws)
    found = failed(forged(release, description=changed), tmp_path / "wide")
    assert "the promise follows from the description" in found
    sums = (release.counts[0] + 1, *release.counts[1:])
    assert tables_verification.COUNTED in failed(forged(release, counts=sums), tmp_path / "more")
    assert not failed(forged(release), tmp_path / "same")


def test_counts_and_sums_are_one_supremum_in_the_ledger(tmp_path):
    """Both at once lose more than either, and no more than both added."""
    counts = '[[release]]\nname = "people"\ntable = ["ward", "sex"]\nrho = 0.5\n[budget]'
    path = hospital(tmp_path, ("[budget]", counts))
    run("publish", path)
    run("release", path)
    spent = Ledger.open(tmp_path / "ledger.sqlite").spent()
    assert Fraction(1, 2) < spent.rho <= 1


def test_a_sum_and_a_count_under_one_promise():
    """The joint loss is what enumeration in tests/pairs/test_sums.py says; here it is wired."""
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}, "sex": {"levels": ["f", "m"]}})
    pairs = SemiAdjacent(publish(Table(schema, schema.names, np.full((3, 2), 9)), total()))
    target = Guarantee.zero_concentrated("1/2", under=pairs)
    cost = Magnitude.of("cost", [0, 5000], 10)
    sums = calibrate_tables(target, [["ward", "sex"], ["ward"]], measures=[cost])
    people = calibrate_tables(target, [["ward", "sex"]])
    both = joint_loss([sums.description, people.description], pairs)
    assert joint_loss([sums.description], pairs).rho <= Fraction(1, 2)
    assert Fraction(9, 10) < both.rho <= 1
    again = type(sums.description).from_dict(schema, sums.description.to_dict())
    assert again == sums.description


def test_later_figures_about_counts_keep_a_finite_loss():
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}, "sex": {"levels": ["f", "m"]}})
    table = Table(schema, schema.names, np.full((3, 2), 9))
    before = SemiAdjacent(publish(table, total()))
    made = calibrate_tables(
        Guarantee.zero_concentrated("1/2", under=before),
        [["ward", "sex"]],
        measures=[Magnitude.of("cost", [0, 5000], 10)],
    )
    after = SemiAdjacent(publish(table, total(), margin("ward")))
    assert joint_loss([made.description], after).rho == 2  # a* = 2: four times
    everything = SemiAdjacent(publish(table, total(), margin("ward", "sex")))
    assert joint_loss([made.description], everything).rho == 1  # nobody leaves a cell


def test_figures_about_the_number_are_refused():
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}, "cost": {"edges": [0, 10, 99]}})
    pairs = SemiAdjacent(publish(Table(schema, schema.names, np.full((3, 2), 9)), total(by="cost")))
    with pytest.raises(GuaranteeError, match="whose sums are protected"):
        calibrate_tables(
            Guarantee.pure(1, under=pairs), [["ward"]], measures=[Magnitude.of("cost", [0, 99])]
        )


REFUSED = {
    "a class without bounds": (
        ("between = [0, 5000]", "between_by = { sex = { f = [0, 500] } }"), "no bounds for 'm'"),
    "a class that is not there": (
        ("between = [0, 5000]", "between_by = { sex = { f = [0, 50], m = [0, 90], x = [0, 90] } }"),
        "no category 'x'"),
    "a table shows the classes": (
        ("between = [0, 5000]", "between_by = { sex = { f = [0, 500], m = [0, 90] } }"),
        "Leave 'sex' out"),
    "bounds twice": (
        ("step = 10", "step = 10\nbetween_by = { sex = { f = [0, 500], m = [0, 90] } }"),
        "in place of between"),
    "a class without 0": (
        ("between = [0, 5000]", "between_by = { sex = { f = [100, 500], m = [0, 90] } }"),
        "do not include 0"),
    "a text": (('sum = "cost"', "sum = 7"), "sum"),
    "no bounds": (("between = [0, 5000]", ""), "between"),
    "wrong order": (("between = [0, 5000]", "between = [5000, 0]"), "wrong order"),
    "off the grid": (("between = [0, 5000]", "between = [0, 5005]"), "not a multiple of step"),
    "no step": (("step = 10", "step = 0"), "positive"),
    "not finite": (("between = [0, 5000]", "between = [0, inf]"), "not a finite number"),
    "by parts": (("step = 10", 'step = 10\nparts = "ward"'), "parts does not go with sum"),
    "private bounds": (("step = 10", 'step = 10\nbounds = "private"'), "draw a quantile first"),
    "accuracy": (("rho = 0.5", "accuracy = [\"cell within 5 at 90%\"]"), "accuracy does not go"),
    "another law": (("rho = 0.5", "mu = 1"), "mu does not go with sum"),
    "negative": (
        ("between = [0, 5000]", 'between = [-10, 5000]\nnonnegative = "project"'), "below 0"),
    "missing beyond": (("step = 10", "step = 10\nmissing = 9000"), "not within between"),
    "a cap for one row each": (("step = 10", "step = 10\ncap = 6000"), "every person has one row"),
    "bounds alone": (('sum = "cost"', ""), "goes with sum"),
    "counts alone": (
        ('sum = "cost"\nbetween = [0, 5000]\nstep = 10', "counts = true"), "counts goes with sum"),
    "counts that are exact": (
        ('tables = [["ward", "sex"], ["ward"], []]', 'counts = true\ntables = [["ward"], []]'),
        "published figures fix them"),
    "several numbers, one step": (
        ('sum = "cost"\nbetween = [0, 5000]', "sum = { cost = { between = [0, 5000] } }"),
        "state it for each"),
    "no number": (('sum = "cost"\nbetween = [0, 5000]\nstep = 10', "sum = {}"), "names no column"),
    "a figure by classes of the number": (
        ('by = ["ward"] }', 'by = ["dear"] }\n[derive]\ndear = { number = "cost" }\n'
         '[schema.dear]\nedges = [0, 900]\ntop = "900+"'), "which is made from 'cost'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_plans_that_cannot_be_meant(tmp_path, name):
    change, words = REFUSED[name]
    assert words in refused(hospital(tmp_path, change))


@pytest.mark.parametrize(
    ("cell", "words"),
    [("much", "text that is not a number"), ("inf", "infinite"), ("", "missing = 0")],
)
def test_numbers_that_cannot_be_summed(tmp_path, cell, words):
    path = hospital(tmp_path)
    run("publish", path)
    stays = tmp_path / "stays.csv"
    stays.write_text(stays.read_text().replace("\nsurgery,", "\nsurgery,", 1))
    lines = stays.read_text().split("\n")
    lines[5] = ",".join([*lines[5].split(",")[:2], cell])
    stays.write_text("\n".join(lines))
    said = refused(path, "release", code=3)
    assert words in said
    assert "much" not in said
    assert not (tmp_path / "bundles" / "cost").exists()


def test_everybody_beyond_the_bounds(tmp_path):
    """All numbers are cut: the release is drawn, and nothing says so."""
    path = hospital(tmp_path, ("between = [0, 5000]", "between = [0, 100]"))
    release = congenial.read(verified(path, "cost"))
    found = release.interval("ward in ('surgery', 'medicine', 'maternity')", 0.9)
    assert abs(found.estimate - 600 * 100) < 6 * release.deviation("")


def coverage(factor: float, draws: int = 400) -> int:
    """How many of `draws` 90 % intervals of one sum cover it, with noise of `factor` times."""
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}})
    pairs = SemiAdjacent(publish(Table(schema, ["ward"], [90, 80, 70]), total(by="ward")))
    cost = Magnitude.of("cost", [-40, 5000], 10)
    made = calibrate_tables(Guarantee.pure(1, under=pairs), [["ward"]], measures=[cost])
    law, inside = made.mechanisms[0], 0
    reach = made.estimator.reach(("ward",), 0.9)[0]
    for value in law.noise(SeededRandomness(77), draws).reshape(draws, -1)[:, 0]:
        inside += abs(value) * factor <= reach
    return int(inside)


def test_intervals_of_sums_cover():
    """Binomial bounds at ALPHA = 1e-6 for coverage of .9; 20 % more noise is noticed half as
    surely, twice as much for sure.
    """
    from scipy.stats import binom

    assert binom.ppf(ALPHA, 400, 0.9) <= coverage(1.0)
    assert coverage(1.0) <= binom.ppf(1 - ALPHA, 400, 0.902)
    assert coverage(2.0) < binom.ppf(ALPHA, 400, 0.9)


def test_sums_of_negative_numbers_have_signs():
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}})
    table = SumsTable(schema, ["ward"], [-500, 3, 0])
    assert table.marginal([]).counts == -497


SEVERAL = (
    ('sum = "cost"\nbetween = [0, 5000]\nstep = 10', "counts = true\n"
     "sum = { cost = { between = [0, 5000], step = 10 }, days = { between = [-5, 30] } }"),
    ('"Admissions" = { total = true, by = ["ward"] }', '"Admissions" = { total = true }'),
    ("rho = 0.5", "epsilon = 2"),
    ("\nrho = 4", "\nepsilon = 4"),
)  # fmt: skip


def with_days(path: Path) -> Path:
    """The same stays, with their days."""
    stays, days = path.parent / "stays.csv", np.random.default_rng(9).integers(1, 41, 600)
    head, *rows = stays.read_text().splitlines()
    rows = [f"{row},{day}" for row, day in zip(rows, days, strict=True)]
    stays.write_text("\n".join([f"{head},days", *rows]) + "\n")
    return path


@pytest.mark.parametrize("changes", [SEVERAL, SEVERAL[:2]])
def test_counts_and_several_sums_under_one_promise(tmp_path, changes):
    """From the plan to a verified bundle; means over measured counts, ratios of two sums."""
    path = with_days(hospital(tmp_path, *changes))
    assert "counts and sums of cost and days" in run("check", path)
    bundle = verified(path, "cost")
    release = congenial.read(bundle)
    assert [one.description.of for one in release.measures] == ["people", "cost", "days"]
    assert list(release.to_pandas("ward"))[:2] == ["ward", "count"]
    cost = release.measure("cost").to_pandas("ward")
    assert (abs(cost["estimate"] - truth(tmp_path, 0, 5000)) < 6 * cost["sd"]).all()
    means = release.measure("cost").means("ward", 0.9).to_pydict()
    for at, found in enumerate(asked(bundle, "mean(cost) by ward")):
        assert found["value"] == pytest.approx(means["mean"][at], rel=1e-3)
        assert found["low"] < cost["estimate"][at] / means["people"][at] < found["high"]
    said = " ".join(run("explain", bundle, "--for", "journalist").split())
    assert "Counts and sums of cost and days by ward, sex; by ward; in all." in said
    for one in release.measures[1:]:
        half = one.in_units(np.median(one.estimator.reach(("ward", "sex"), 0.9)))
        assert f"sum of {one.description.of} is within {half:,.0f} of the true sum" in said
    assert "each person's days is cut to -5 to 30" in said
    ratio = asked(bundle, "sum(cost) / sum(days) by sex")
    assert all(one["low"] < one["value"] < one["high"] for one in ratio)
    assert asked(bundle, "share(sex = 'f')")[0]["low"] > 0.3
    spent = Ledger.open(tmp_path / "ledger.sqlite").spent()
    assert max(spent.rho / Fraction(1, 2), spent.epsilon / 2) == pytest.approx(1, rel=1e-6)
    report = (bundle / "report.html").read_text()
    assert "counts, sums of cost and sums of days" in report
    run("export", bundle, "--to", "datapackage", "--out", tmp_path / "package")
    assert len([*(tmp_path / "package").glob("ward-*.csv")]) == 3 + 3  # with sex, and without
    with pytest.raises(InferenceError, match="nothing about 'age'"):
        release.measure("age")


def test_a_measure_with_less_noise_than_promised_is_noticed(tmp_path):
    """The noise of what is measured beside the counts is in the promise, and so is its cut."""
    path = with_days(hospital(tmp_path, *SEVERAL))
    release = congenial.read(verified(path, "cost"))
    cost, days = release.description.beside
    quiet = replace(cost, measured=tuple(replace(o, scale=o.scale * 2) for o in cost.measured))
    wide = Magnitude.of("days", [-50, 30])
    loose = replace(days, measured=tuple(replace(o, magnitude=wide) for o in days.measured))
    for name, beside in (("quiet", (quiet, days)), ("loose", (cost, loose))):
        description = replace(release.description, beside=beside)
        found = failed(forged(release, description=description), tmp_path / name)
        assert "the promise follows from the description" in found
    assert not failed(forged(release), tmp_path / "same")


def ratio_coverage(errors: float, *, centred: bool = False, draws: int = 60) -> list[int]:
    """How many 90 % intervals of means over measured counts, and of sums, cover; `errors`: of the
    counts, relative to what intervals take into account; `centred`: sums of the number minus 500.
    """
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}})
    people, sums = np.array([60, 80, 70]), np.array([6000, 16000, 70000])
    pairs = SemiAdjacent(publish(Table(schema, ["ward"], people), total()))
    target = Guarantee.zero_concentrated("1/50", under=pairs)
    cost = Magnitude.of("cost", [0, 1000])
    cost = cost.centred if centred else cost
    made = calibrate_tables(target, [["ward"]], measures=[None, cost])
    shifted = SumsTable(schema, ["ward"], sums - cost.offset * people)
    tables, inside = [Table(schema, ["ward"], people), shifted], np.zeros(2, dtype=int)
    for seed in range(draws):
        release = made.release_each(tables, SeededRandomness(seed))
        moved = np.rint((errors - 1) * (release.drawn[0] - people)).astype(np.int64)
        release = replace(release, drawn=(release.drawn[0] + moved,))
        found = congenial.estimate(release, "mean(cost) by ward", 0.9)[2]
        told = release.measure("cost").interval("ward = 'maternity'", 0.9)
        inside += [found.low <= 1000 <= found.high, told.low <= 70000 <= told.high]
    return inside.tolist()


def test_intervals_of_means_over_measured_counts_cover():
    """Binomial bound at ALPHA = 1e-6; counts with four times the noise are noticed, in shifted sums
    too, of which they are a part.
    """
    from scipy.stats import binom

    least = binom.ppf(ALPHA, 60, 0.9)
    assert least <= ratio_coverage(1.0)[0]
    assert ratio_coverage(4.0)[0] < least
    assert least <= min(ratio_coverage(1.0, centred=True))
    assert ratio_coverage(6.0, centred=True)[1] < least


def test_sums_beside_counts_are_measured_from_the_middle_of_their_bounds(tmp_path):
    """Printed sums, estimates and questions are about the number itself; errors are smaller."""
    path = hospital(tmp_path, *SEVERAL[1:2], ("step = 10", "step = 10\ncounts = true"))
    release = congenial.read(verified(path, "cost"))
    cost = release.measure("cost")
    assert cost.description.magnitude.shift == 2500
    assert (
        "the sum is 2500 for every person counted plus everybody's difference from 2500"
        in release.guarantee.explain()
    )
    frame = cost.to_pandas("ward")
    assert list(frame)[-1] == "shifted_sum_as_drawn"
    assert (frame["sum"] >= 0).all()
    assert (abs(frame["estimate"] - truth(tmp_path, 0, 5000)) < 6 * frame["sd"]).all()
    by_words = asked(tmp_path / "bundles" / "cost", "sum(cost) by ward")
    for at, found in enumerate(by_words):
        assert found["value"] == pytest.approx(frame["estimate"][at], rel=1e-6)
        assert found["sd"] == pytest.approx(frame["sd"][at], rel=0.1)
    assert cost.estimate("sum(cost)")[0].value == pytest.approx(cost.margin(), rel=0.2)
    plain = replace(release.description.beside[0].magnitude, shift=Fraction(0))
    apart = calibrate_tables(
        Guarantee.zero_concentrated("1/2", under=release.guarantee.adjacency),
        release.tables,
        measures=[None, plain],
    )
    for names in (("ward", "sex"), ("ward",)):
        least = apart.beside[0].estimator.deviations(names).values.max()
        assert cost.estimator.deviations(names).values.max() < 0.9 * least


def test_shifted_sums_without_their_counts_are_refused():
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}})
    cost = Magnitude.of("cost", [0, 1000]).centred
    target = Guarantee.pure("1/50", under=ReplaceOne(schema))
    with pytest.raises(GuaranteeError, match="beside counts"):
        calibrate_tables(target, [["ward"]], measures=[None, cost])
    alone = calibrate_tables(
        Guarantee.zero_concentrated(1, under=ReplaceOne(schema)), [["ward"]], measures=[cost]
    )
    with pytest.raises(StructureError, match="no counts are beside"):
        _ = alone.estimator


ROWS = (
    ('source = "stays.csv"', 'source = "stays.csv"\nunit = "patient"\nmax_rows = 3'),
    ('tables = [["ward", "sex"], ["ward"], []]', 'tables = [["ward"], []]'),
)


def with_patients(path: Path, most: int) -> Path:
    """The same stays, `most` of each patient."""
    stays = path.parent / "stays.csv"
    head, *rows = stays.read_text().splitlines()
    rows = [f"{row},p{at // most}" for at, row in enumerate(rows)]
    stays.write_text("\n".join([f"{head},patient", *rows]) + "\n")
    return path


def test_stays_of_patients_are_summed_row_by_row(tmp_path):
    path = with_patients(hospital(tmp_path, *ROWS), 3)
    assert "of the largest number" in run("check", path)
    bundle = verified(path, "cost")
    release = congenial.read(bundle)
    assert "each row's cost is cut to 0 to 5000" in release.guarantee.explain()
    slots = release.guarantee.adjacency.slots
    assert joint_loss([release.description], release.guarantee.adjacency).rho <= Fraction(1, 2)
    assert release.description.measured[0].scale >= slots**2 * 500**2  # counts of rows are exact
    other = tmp_path / "other"
    other.mkdir()
    path = with_patients(hospital(other, *ROWS), 4)
    assert "more than 3 rows" in refused(path, "publish", code=3)


@pytest.mark.parametrize("figures", [True, False])
def test_what_a_patient_adds_in_all_has_a_cap(tmp_path, figures):
    """With the same bounds there is less noise, by units that differ in place of rows."""
    cap = ("step = 10", "step = 10\ncap = 6000")
    none = [] if figures else [('"Admissions" = { total = true, by = ["ward"] }', "")]
    path = with_patients(hospital(tmp_path, *ROWS, cap, *none), 3)
    assert "scaled down to 6000" in run("check", path, "--full")
    if figures:
        run("publish", path)
    run("release", path)
    bundle = tmp_path / "bundles" / "cost"
    assert "All checks passed" in run("verify", bundle)
    release = congenial.read(bundle)
    assert "the numbers of a unit are scaled down to 6000 in all" in release.guarantee.explain()
    pairs, (law, *_) = release.guarantee.adjacency, release.description.measured
    square = 2 * (pairs.units * 600) ** 2 if figures else 600**2
    assert joint_loss([replace(release.description, measured=(law,))], pairs).rho == pytest.approx(
        float(square / law.scale / 2)
    )


def test_bounds_by_class_are_far_better_for_small_classes(tmp_path):
    """A made-up register with a Pareto tail: sums of small firms beside one bound for all."""
    sizes, rng = {"small": 10**5, "large": 10**7}, np.random.default_rng(4)
    rows = [
        f"{WARDS[at % 3]},{size},{min(top, top / 40 * (1 + rng.pareto(1.2))):.0f}"
        for at, (size, top) in enumerate(list(sizes.items())[at % 7 == 0] for at in range(700))
    ]
    (tmp_path / "stays.csv").write_text("\n".join(["ward,size,cost", *rows]) + "\n")
    bounds = "between_by = { size = { small = [0, 1e5], large = [0, 1e7] } }"
    changes = (
        ("[schema]", '[schema]\nsize = { levels = ["small", "large"] }'),
        ('sex = { levels = ["f", "m"] }\n', ""),
        ('"Admissions" = { total = true, by = ["ward"] }', '"Firms" = { total = true }'),
        ('tables = [["ward", "sex"], ["ward"], []]', 'tables = [["ward"], []]'),
        ("step = 10", "step = 1000"),
    )
    path = write_plan(tmp_path, PLAN, *changes, ("between = [0, 5000]", bounds))
    assert "sums of cost by size" in run("check", path)
    bundle = verified(path, "cost")
    release = congenial.read(bundle)
    small = release.measure("cost (size = small)")
    one = calibrate_tables(
        Guarantee.zero_concentrated("1/2", under=release.guarantee.adjacency),
        [["ward"], []],
        measures=[Magnitude.of("cost", [0, 10**7], 1000)],
    )
    wide = one.made_up().deviation("ward = 'surgery'")
    assert wide > 5 * small.deviation("ward = 'surgery'")
    assert release.deviation("") < wide * 100
    true = dict.fromkeys(WARDS, 0.0)
    for row in rows:
        true[row.split(",")[0]] += float(row.split(",")[2])
    for found in asked(bundle, "sum(cost) by ward"):
        assert abs(found["value"] - true[found["ward"]]) < 6 * found["sd"]
    assert asked(bundle, "mean(cost)")[0]["value"] > 0
    of_small = asked(bundle, 'sum("cost (size = small)") by ward')
    assert of_small[0]["value"] == pytest.approx(small.to_pandas("ward")["estimate"][0], rel=1e-5)
    assert "no number of people of the class" in refused(
        bundle, "estimate", 2, ("--of", 'mean("cost (size = small)")'))  # fmt: skip


COUNTED_BESIDE = (
    'sum = "cost"\nbetween = [0, 5000]\nstep = 10',
    "counts = true\nsum = { cost = { between = [0, 5000], step = 10 } }",
)


@pytest.mark.parametrize(
    "changes",
    [
        [],
        [('tables = [["ward", "sex"], ["ward"], []]', 'table = ["ward", "sex"]')],
        [COUNTED_BESIDE],
        [("rho = 0.5", "epsilon = 1"), ("\nrho = 4", "\nepsilon = 4")],
    ],
)
def test_a_ward_of_nobody_has_the_sum_0(tmp_path, changes):
    """In files, report and estimates; its noise is not drawn, so it is in no other sum either."""
    path = hospital(tmp_path, *changes)
    stays = tmp_path / "stays.csv"
    rows = [row for row in stays.read_text().splitlines() if not row.startswith("maternity")]
    stays.write_text("\n".join(rows) + "\n")
    for command in ("check", "publish", "check", "release", "check"):
        run(command, path)
    bundle = tmp_path / "bundles" / "cost"
    assert "All checks passed" in run("verify", bundle)
    release = congenial.read(bundle)
    sums = release.measure("cost")
    empty = sums.to_pandas().query("ward == 'maternity'")
    assert not empty.drop(columns=["ward", "sex"]).to_numpy().any()
    found = sums.interval("ward = 'maternity'", 0.9)
    assert (found.low, found.estimate, found.high, found.exact) == (0, 0, 0, True)
    assert found.basis == EXACT_LAW
    surgery, medicine, nobody = asked(bundle, "sum(cost) by ward")
    assert (nobody["value"], nobody["sd"], nobody["low"], nobody["high"]) == (0, 0, 0, 0)
    assert nobody["method"] == "published exactly"
    for one in (surgery, medicine):
        deviation = sums.deviation(f"ward = '{one['ward']}'")
        assert one["sd"] == pytest.approx(deviation, rel=0.02)
    *means, none = asked(bundle, "mean(cost) by ward")
    assert [one["ward"] for one in means] == ["surgery", "medicine"]
    assert all(one["low"] < one["value"] < one["high"] for one in means)
    assert (none["ward"], none["value"]) == ("maternity", None)
    assert "nobody is there" in none["note"]
    if COUNTED_BESIDE not in changes:  # one table over these columns
        cells = cells_of((bundle / "report.html").read_text(), "ward", "sex")
        assert [(one["value"], one["exact"]) for one in cells[-2:]] == [(0, True), (0, True)]


def test_sums_over_all_wards_have_no_noise_from_an_empty_one(tmp_path):
    """The draw is 0 there always, and a bundle with another number is not one that we drew."""
    schema = Schema.from_dict({"ward": {"levels": list(WARDS)}})
    public = publish(Table(schema, ["ward"], [90, 80, 0]), total(by="ward"))
    target = Guarantee.zero_concentrated("1/2", under=SemiAdjacent(public))
    cost = Magnitude.of("cost", [0, 50])
    made = calibrate_tables(target, [["ward"]], measures=[cost])
    noise = made.mechanisms[0].noise(SeededRandomness(5), 200)
    assert not noise[:, 2].any()
    assert noise[:, :2].any(axis=0).all()
    sums = SumsTable(schema, ["ward"], [900, 800, 0])
    release = made.release_each([sums], SeededRandomness(5), "cost")
    of_one = release.deviation("ward = 'surgery'")
    assert release.deviation("") ** 2 == pytest.approx(2 * of_one**2)
    assert release.count("") == release.drawn[0][:2].sum()
    more = SemiAdjacent(publish(Table(schema, ["ward"], [90, 80, 0]), total(), total(by="ward")))
    assert joint_loss([release.description], more).rho <= Fraction(1, 2)
    with pytest.raises(GuaranteeError, match="not published"):  # somebody may be in maternity
        joint_loss(
            [release.description],
            SemiAdjacent(publish(Table(schema, ["ward"], [90, 80, 0]), total())),
        )
    wrong = (release.drawn[0] + [0, 0, 7],)
    assert tables_verification.DRAWN in failed(replace(release, drawn=wrong), tmp_path / "there")
    plain = MeasuredTables.of(SemiAdjacent(Figures(schema)), [("ward",)], "discrete_gaussian",
                              [made.description.measured[0].scale], magnitude=cost)  # fmt: skip
    claimed = replace(plain.description, design=release.description.design)
    other = replace(release, description=claimed, drawn=wrong)
    assert tables_verification.DRAWN in failed(other, tmp_path / "claimed")
    assert tables_verification.DRAWN not in failed(release, tmp_path / "as drawn")
