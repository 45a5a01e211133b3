"""Statistics that hide what a dataset is like, from a plan to a bundle, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from congenial import CongenialError, Ledger, Plan, SeededRandomness, read
from congenial.kinds.statistics import KIND, stream
from congenial.mechanisms.distribution import sampling_error
from congenial.mechanisms.distribution.distribution_mechanism import IGNORED
from congenial.publication import workflow
from tests.commands import refused, run, write_plan

SEED = 7
PLAN = """
[data]
source = "patients.csv"
unit = "patient"
[schema]
ward = { levels = ["oncology", "other"] }
age = { integers = [0, 109] }
readmitted = { levels = ["no", "yes"] }
[[release]]
name = "quarter"
statistics = { "mean age" = { mean = "age" }, "again" = { count = "readmitted = 'yes'" } }
protect = { share = "ward = 'oncology'", between = 0.25, and = 0.35 }
modelling = "modelling.csv"
records = 200
confidence = "off"
replications = 200
epsilon = 1
delta = 0.001
persons = "not protected"
[budget]
epsilon = 3
delta = 1e-6
"""
PERSONS = "persons = { epsilon = 2, delta = 1e-6 }"


def write_patients(path: Path, n: int, first: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sick = random.random(n) < 0.3
    age = np.clip(random.normal(np.where(sick, 64, 52), 16), 0, 109).astype(int)
    again = random.random(n) < np.where(sick, 0.4, 0.15)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["patient", "ward", "age", "readmitted"])
        wards, answers = np.where(sick, "oncology", "other"), np.where(again, "yes", "no")
        out.writerows(zip(range(first, first + n), wards, age, answers, strict=True))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short bootstrap of the fit, which is tested elsewhere."""
    monkeypatch.setattr(sampling_error, "DRAWS", 39)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hospital")
    write_patients(folder / "patients.csv", 200, 0, seed=1)
    write_patients(folder / "modelling.csv", 3000, 100_000, seed=2)
    write_patients(folder / "overlapping.csv", 3000, 150, seed=3)
    write_patients(folder / "everybody.csv", 1000, 0, seed=4)
    return folder


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    for file in data.iterdir():
        (tmp_path / file.name).symlink_to(file)
    return tmp_path


def plan(folder: Path, *changes: tuple[str, str]) -> Path:
    return write_plan(folder, PLAN, *changes)


def test_from_check_to_a_verified_bundle(folder: Path) -> None:
    path = plan(folder)
    told = run("check", path, "--json")["releases"][0]
    assert told["persons"] is None
    assert len(told["candidates"]) == 10
    best = min(one["expected_error"] for one in told["candidates"] if one["expected_error"])
    assert told["candidates"][0]["mechanism"] == told["mechanism"]
    assert told["candidates"][0]["expected_error"] == best
    shown = run("check", path, "--full")
    assert f"* {told['mechanism']}" in shown
    assert "promises nothing about them" in shown
    error = told["fit_error"]
    assert error["bound"] > (1 if error["parameter"] == "epsilon" else 0.001)
    assert "write confidence = 0.95" in told["fit_words"]
    assert f"Error of the fit: {error['parameter']} = " in shown

    made = run("release", path, "--json")["releases"][0]
    assert made["promise"].startswith(told["promise"])  # the same fit, the same noise
    assert "beside 1 release that promises nothing about persons" in made["promise"]
    bundle = folder / "bundles" / "quarter"
    checks = run("verify", bundle, "--digest", made["digest"], "--json")["checks"]
    assert any(
        one["what"] == "the promise to single persons follows from the noise" for one in checks
    )
    assert "pairs of distributions)" in " ".join(run("explain", bundle).split())
    assert "0.35" in run("explain", path)

    release = read(bundle)
    assert IGNORED in release.guarantee.assumptions
    assert release.statistics == ("mean age", "again")
    assert release.publishable
    found = release.interval("mean age", 0.9)
    assert found.low < release.value("mean age") < found.high
    report = (bundle / "report.html").read_text()
    for words in ("mean age", "optimum", "Individual people", told["fit_words"]):
        assert words in report
    assert "individual people" in (bundle / "README.txt").read_text()


OFF = 'confidence = "off"\n'


def test_the_error_of_the_fit_is_allowed_for_unless_switched_off(folder: Path) -> None:
    """By default the promise is kept in spite of it, at a stated cost, and the bundle verifies."""
    path = plan(folder, (OFF, ""))
    told = run("check", path, "--json")["releases"][0]
    error = told["fit_error"]
    assert error["bound"] <= (1 if error["parameter"] == "epsilon" else 0.001)
    assert "so the promise is kept" in told["fit_words"]
    assert 'times what it is with confidence = "off"' in told["fit_words"]
    made = run("release", path, "--json")["releases"][0]
    bundle = folder / "bundles" / "quarter"
    run("verify", bundle, "--digest", made["digest"])
    assert IGNORED not in read(bundle).guarantee.assumptions


def test_confidence_is_a_number_or_off(folder: Path) -> None:
    assert "confidence" in refused(plan(folder, (OFF, 'confidence = "none"\n')), "check", code=2)


def test_a_second_release_and_figures_beside_it_are_refused(folder: Path) -> None:
    path = plan(folder)
    workflow.release(Plan.load(path), "quarter", randomness=SeededRandomness(SEED))
    assert "does not add up" in refused(path, "release", code=4, extra=("--out", folder / "b"))
    table = '[[release]]\nname = "t"\ntable = ["ward"]\nepsilon = 1\n[budget]'
    start, end = PLAN.index("[[release]]"), PLAN.index("[budget]")
    other = folder / "other.toml"
    other.write_text(PLAN[:start] + table + PLAN[end + len("[budget]") :])
    assert "'quarter' from the same data" in refused(other, "release", code=4)
    other.write_text(PLAN[:start] + '[publish]\n"N" = { total = true }\n' + table + PLAN[end + 8 :])
    assert "'quarter' from the same data" in refused(other, "publish", code=4)
    assert [one.name for one in Ledger.open(folder / "ledger.sqlite").entries() if one.counted] == [
        "quarter"
    ]


def test_persons_are_promised_something_and_it_is_counted(folder: Path) -> None:
    path = plan(folder, ('persons = "not protected"', PERSONS))
    told = run("check", path, "--json")
    assert told["releases"][0]["mechanism"] == "optimum"
    result = workflow.release(Plan.load(path), "quarter", randomness=SeededRandomness(SEED))
    release = read(result.folder)
    assert release.person_guarantee == result.release.person_guarantee
    assert release.person_guarantee.tradeoff.epsilon(1e-6) <= 2
    assert "checked in 'patient'" in release.person_guarantee.explain()
    spent = Ledger.open(folder / "ledger.sqlite").spent_words()
    assert "beside" not in spent
    assert float(spent.split()[2]) > 1
    checks = run("verify", result.folder, "--json", code=1)["checks"]  # seeded
    failed = [one["what"] for one in checks if not one["holds"]]
    assert failed == ["drawn from the system's randomness"]
    assert any(
        one["what"] == "the noise is large enough for every pair of scenarios" for one in checks
    )


def test_a_smaller_noise_than_promised_is_noticed(folder: Path) -> None:
    """Negative control of `verify`."""
    from dataclasses import replace

    path = plan(folder, ('persons = "not protected"', PERSONS))
    loaded = Plan.load(path)
    drawn = workflow.release(loaded, "quarter", randomness=SeededRandomness(SEED)).release
    law = dict(drawn.description.law)
    law["scales"] = [0.01 * scale for scale in law["scales"]]
    weaker = replace(drawn, description=replace(drawn.description, law=law))
    assert all(KIND.checks(drawn).values())
    told = KIND.checks(weaker)
    assert not told["the noise is large enough for every pair of scenarios"]
    assert not told["the promise to single persons follows from the noise"]


def test_a_share_of_the_data_is_kept_apart(folder: Path) -> None:
    path = plan(
        folder,
        ('"patients.csv"', '"everybody.csv"'),
        ('modelling = "modelling.csv"', "modelling = 0.8"),
    )
    release = workflow.release(
        Plan.load(path), "quarter", randomness=SeededRandomness(SEED)
    ).release
    assert release.guarantee.adjacency.origin.apart == "checked"
    text = path.read_text().replace('persons = "not protected"', "")
    with pytest.raises(CongenialError, match="write persons = 'not protected'"):
        Plan.parse(text, folder)


@pytest.mark.parametrize(
    ("old", "new", "says", "code"),
    [
        ("and = 0.35", "and = 0.25", "gap", 2),
        ("and = 0.35", "and = 1.35", "impossible", 2),
        ("and = 0.35", "and = 0.351", "200 records cannot have a share of 0.351", 2),
        ("ward = 'oncology'\"", "ward = 'surgery'\"", "surgery", 2),
        ("share = ", "shore = ", "protect has the keys", 2),
        ("share = \"ward = 'oncology'\"", "share = 3", "has type int", 2),
        ('mean = "age"', 'mean = "ward"', "needs numbers", 2),
        ('mean = "age"', 'average = "age"', "cannot be read from average", 2),
        ("records = 200", "records = 20000", "too few records", 3),
        ("replications = 200", "replications = 4", "too few to fit", 2),
        ('persons = "not protected"', "", "write persons = 'not protected'", 2),
        ('persons = "not protected"', "persons = { epsilon = 1 }", "or a promise: { epsilon", 2),
        ('"modelling.csv"', '"patients.csv"', "the same file", 3),
        ("epsilon = 1\n", "epsilon = 1\nweights = { age = 2 }\n", "must name statistics", 2),
        ("epsilon = 1\n", 'epsilon = 1\nmechanism = "laplas"\n', "no distribution-privacy", 2),
        ("epsilon = 1\n", "epsilon = 1\nrecord = 3\n", "Did you mean 'records'?", 2),
        ("[[release]]", '[publish]\n"N" = { total = true }\n[[release]]', "whole dataset", 2),
    ],
)
def test_what_cannot_be_is_refused(folder: Path, old: str, new: str, says: str, code: int) -> None:
    assert says in refused(plan(folder, (old, new)), code=code)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"modelling.csv"', '"overlapping.csv"', "records in common"),
        ("records = 200", "records = 100", "a different number"),
    ],
)
def test_data_that_do_not_fit_are_refused_before_anything_is_spent(
    folder: Path, old: str, new: str, says: str
) -> None:
    assert says in refused(plan(folder, (old, new)), "release", code=3)
    assert not (folder / "ledger.sqlite").exists()


@pytest.mark.usefixtures("with_charts")
def test_the_attack_before_and_after(folder: Path) -> None:
    path, few = plan(folder), ("--repetitions", 4, "--seed", SEED)
    told = run("audit", "--property", path, *few, "--out", folder / "out", "--json")
    (one,) = told["attacks"]
    assert one["after"]["value"] < one["before"]["value"]
    assert one["after"]["low"] <= one["allowed"] < 0.74
    assert {Path(name).name for name in told["files"]} >= {"quarter-attack.csv"}
    bars = json.loads((folder / "out" / "quarter-assumptions.json").read_text())
    assert "sampled density" in bars["columns"]
    for drawn in (folder / "out").glob("*.svg"):
        assert "CONFIDENTIAL" in drawn.read_text()
        assert drawn.stat().st_mode & 0o077 == 0
    assert len(list((folder / "out").glob("*.png"))) == 2
    assert "attack test covers only single tables" in refused(path, "audit")


def test_what_is_resampled_depends_on_section_and_purpose_alone(tmp_path: Path) -> None:
    section = Plan.load(write_plan(tmp_path, PLAN)).release[0]
    assert stream(section, "fit").words(2).tolist() == stream(section, "fit").words(2).tolist()
    assert stream(section, "fit").words(1)[0] != stream(section, "split").words(1)[0]


# ---- laws stated by an expert --------------------------------------------------------------------

FITTING = """protect = { share = "ward = 'oncology'", between = 0.25, and = 0.35 }
modelling = "modelling.csv"
"""
STATED = """laws = [
  { name = "a quarter oncology", mean = [55.0, 42], covariance = [[1.5, 0.4], [0.4, 30]] },
  { name = "a third oncology", mean = [56.2, 47], covariance = [[1.5, 0.4], [0.4, 30]] },
]
"""
STATE = (FITTING, STATED), ('confidence = "off"\nreplications = 200\n', "")


def test_stated_laws_from_a_plan_to_a_verified_bundle(folder):
    path = plan(folder, *STATE)
    told = run("check", path, "--json")["releases"][0]
    assert told["guarantee"]["basis"] in ("theorem", "numerical bound")
    assert "as stated" in " ".join(told["guarantee"]["assumptions"])
    assert told["diagnosis"].startswith("the distributions are stated")
    assert told["fit_error"] is None
    made = run("release", path, "--json")["releases"][0]
    bundle = folder / "bundles" / "quarter"
    checks = run("verify", bundle, "--digest", made["digest"], "--json")["checks"]
    assert all(check["holds"] for check in checks)
    release = read(bundle)
    assert [law.label for law in release.guarantee.adjacency.laws] == [
        "a quarter oncology",
        "a third oncology",
    ]


def test_the_noise_for_stated_laws_is_that_of_the_library(folder):
    from congenial.mechanisms.distribution.choose import calibrate_distribution

    found = check_of(plan(folder, *STATE))
    direct = calibrate_distribution(found.fit.pairs, 1, 0.001)
    assert found.mechanism.noise.covariance.tolist() == direct.mechanism.noise.covariance.tolist()
    near = check_of(plan(folder, *STATE, ("mean = [56.2, 47]", "mean = [55.1, 42.5]")))
    assert near.choice.candidates[0].error < found.choice.candidates[0].error


def check_of(path):
    from congenial.figures.figures import Figures

    one = Plan.load(path)
    return KIND.check(one, one.release[0], Figures(one.schema, ()))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ([(FITTING, "")], "give protect and modelling"),
        ([(FITTING, FITTING + STATED)], "leave out protect, modelling and confidence"),
        ([(FITTING, STATED)], "leave out protect, modelling and confidence"),
        ([*STATE, ("records = 200", 'records = 200\napart = [["one"]]')], "pairs of names"),
        ([*STATE, ("records = 200", 'records = 200\napart = [["one", "two"]]')], "no law 'one'"),
        ([*STATE, ("mean = [55.0, 42]", "mean = [55.0]")], "one row and column per statistic"),
        ([*STATE, ("mean = [56.2, 47]", "mean = [55.0, 42]")], "the same"),
        ([*STATE, ("mean = [55.0, 42]", "mean = [55.0, true]")], "must be a number"),
        (
            [*STATE, ("[[1.5, 0.4], [0.4, 30]] },\n  {", "[[1.5, 9], [9, 30]] },\n  {")],
            "covariance",
        ),
    ],
)
def test_stated_laws_that_make_no_sense_are_refused(folder, changes, why):
    assert re.search(why, refused(plan(folder, *changes)).replace("\n", " "))


def test_an_attack_needs_modelling_data(folder):
    path = plan(folder, *STATE)
    assert "no modelling data" in refused(path, "audit", extra=("--property",)).replace("\n", " ")


def test_check_says_what_wrong_laws_cost(folder):
    """Theorem 4.6 and 4.7 against their formulas."""
    import math

    told = run("check", plan(folder, *STATE), "--json")["releases"][0]
    row = next(one for one in told["model_error"] if one["lambda"] == 0.1)
    assert row["eta"] == 0  # stated covariances are equal
    assert row["epsilon"] == pytest.approx(1.2)
    assert row["delta"] == pytest.approx(math.exp(0.1) * 0.001)
    assert row["delta_with_noise"] == pytest.approx(math.exp(0.1) * 0.001)
    assert row["noise_per_distance"] == pytest.approx(10)
    fitted = run("check", plan(folder), "--json")["releases"][0]["model_error"]
    row = next(one for one in fitted if one["lambda"] == 0.1)
    want = (1 + math.exp(1.1)) * row["eta"] + math.exp(0.1) * 0.001
    assert row["eta"] > 0
    assert row["delta"] == pytest.approx(min(1, want))


def test_what_one_record_changes_matters_only_where_persons_are_promised_something(
    folder: Path,
) -> None:
    (silent,) = workflow.check(Plan.load(plan(folder))).releases
    assert silent.mechanism.pairs.change == ()
    path = plan(folder, ('persons = "not protected"', PERSONS))
    (told,) = workflow.check(Plan.load(path)).releases
    pairs = told.mechanism.pairs
    assert len(pairs.change) == len(pairs.statistics) > 0
    assert min(pairs.change) > 0
    assert pairs.records == told.section.records
