"""Several tables at once, from a plan to a verified bundle."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import congenial
from congenial import Plan, Table, TablesRelease
from congenial.kinds.tables_section import automatic
from congenial.kinds.tables_verification import AIM, FITTED
from congenial.kinds.tables_verification import verify as checked
from congenial.mechanisms.measured_tables import MeasuredTables
from tests.commands import refused, run, verified
from tests.kinds.several_tables_plan import AGES, BUDGET, SECTION, failed, forged, written
from tests.tables.brute import all_types
from tests.tables.settings import dense

PRINTED = "the printed counts follow from the noisy tables"
TABLES = 'tables = [["county", "sex", "age"], ["state", "age"], ["county", "sex"], ["age"]]'
WRITTEN = "the data files have the expected form"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = written(tmp_path_factory.mktemp("several"))
    return verified(plan, "people")


def test_from_a_plan_to_a_verified_bundle(bundle: Path) -> None:
    told = run("verify", bundle, "--json")
    assert told["holds"]
    assert {
        "the split of the noise is as close to the best as stated",
        PRINTED,
        "the promise follows from the description",
    } <= {one["what"] for one in told["checks"]}
    release = congenial.read(bundle)
    assert isinstance(release, TablesRelease)
    assert release.guarantee.tradeoff.words == "rho = 0.5 (zero-concentrated)"
    assert (
        (bundle / "table-2-state-age.csv")
        .read_text()
        .startswith(
            '"state","age","count","estimate","sd","low_90","high_90","reliability","count_as_drawn"'
        )
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


class Written(dict[str, bytes]):
    """Files as `verify` compares them."""

    progress = staticmethod(lambda _: None)

    def same(self, name: str, now: bytes) -> bool:
        return self[name] == now


def test_no_printed_count_lies_outside_its_interval(bundle: Path) -> None:
    """Even where it is far from the estimate."""
    release = congenial.read(bundle)
    moved = tuple(one + 40 for one in release.counts)
    far = forged(release, counts=moved)
    for at, names in enumerate(release.tables):
        for one, counts in ((release, release.counts[at]), (far, moved[at])):
            frame = one.to_pandas(*names)
            assert np.all(
                (frame["low_90"] <= frame["count"]) & (frame["count"] <= frame["high_90"])
            )
            assert one.intervals(names, 0.9)["high"].to_pylist() == frame["high_90"].tolist()
            assert frame["count"].tolist() == counts.reshape(-1).tolist()
    for files, holds in ((far.payload(), True), (release.payload(), False)):
        found = {check.what: check.holds for check in checked(Written(files), far)}
        assert found[WRITTEN] is holds


def test_sums_that_no_table_shows_are_estimates(bundle: Path) -> None:
    release = congenial.read(bundle)
    assert isinstance(release.count("age = 'old'"), int)
    young = "age = 'child' or age = 'young'"
    assert release.count(young) == pytest.approx(float(release.estimates[3][:2].sum()))
    found = release.interval(young, 0.9)
    assert found.low <= found.estimate <= found.high
    single = release.interval("age = 'old'", 0.9)
    assert (single.low, single.high) == tuple(
        release.to_pandas("age")[["low_90", "high_90"]].iloc[3]
    )
    whole = release.interval("county = 'Adams'", 0.9)
    assert whole.exact
    assert whole.low == whole.high == release.published.values[0][0]
    sex = release.margin("sex")  # a sum of printed tables that is none itself
    assert sex == pytest.approx(release.estimates[2].sum(axis=0))


def test_one_table_has_a_short_form(tmp_path: Path) -> None:
    """`table = X` is `tables = [X]`."""
    told = []
    for key in ('table = ["county", "sex"]', 'tables = [["county", "sex"]]'):
        plan = written(tmp_path, SECTION.replace(TABLES, key))
        told.append(run("check", plan, "--json")["releases"])
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("key", "columns"),
    [
        ("rho = 0.5", ("count", "estimate", "sd", "low_90", "high_90", "reliability")),
        (
            'rho = 0.5\nnonnegative = "project"',
            ("count", "estimate", "sd", "low_90", "high_90", "reliability"),
        ),
        ('rho = 0.5\nnonnegative = "no"', ("estimate", "sd", "low_90", "high_90", "reliability")),
        ('epsilon = 1\nnonnegative = "condition"', ("count",)),
    ],
)
def test_what_is_printed_of_one_table(tmp_path: Path, key: str, columns: tuple[str, ...]) -> None:
    section = SECTION.replace(TABLES, 'table = ["county", "age"]').replace("rho = 0.5", key)
    plan = written(tmp_path, section, "[budget]\nepsilon = 9\ndelta = 1e-6\n")
    bundle = verified(plan, "people")
    head = (bundle / "table.csv").read_text().splitlines()[0]
    assert head == ",".join(f'"{name}"' for name in ("county", "age", *columns))


AREAS = {
    "county": {
        "levels": ["A", "B", "C", "D"],
        "within": {"state": ["P", "P", "Q", "Q"], "area": ["r", "u", "r", "u"]},
    },
    "age": {"levels": ["child", "adult", "old"]},
}


def test_sums_of_one_measured_table_are_printed_with_it() -> None:
    """As counts where these follow the sums, and as estimates where they cut across the fit."""
    schema = congenial.Schema.from_dict(AREAS)
    table = Table(schema, schema.names, np.arange(12).reshape(4, 3))
    under = congenial.SemiAdjacent(congenial.publish(table, congenial.total()))
    tables = [("county", "age"), ("age",), ("state",), ("area",)]
    scales = [Fraction(9), None, None, None]
    made = MeasuredTables.of(under, tables, "discrete_gaussian", scales)
    release = made.release(table, congenial.SeededRandomness(4))
    printed = [counts is not None for counts in release.counts]
    assert printed == [True, True, *printed[2:]]
    assert sorted(printed[2:]) == [False, True]
    for at, names in enumerate(tables):
        assert release.prints(*names) is made.estimator.prints(names) is printed[at]
        told = release.counts[at] if printed[at] else release.estimates[at]
        assert np.array_equal(release.margin(*names), told)
        ends = [release.intervals(names, 0.9)[end].to_pylist() for end in ("low", "high")]
        assert ends == [one.reshape(-1).tolist() for one in release.cell_errors(at)[1:]]
    assert release.count("age = 'old'") == release.counts[1][2]
    assert made.estimator.as_near([*release.drawn, None, None, None], release.counts)


# ---- what is changed is noticed --------------------------------------------------------------


def test_an_honest_copy_passes(bundle: Path, tmp_path: Path) -> None:
    """The control of the next test: the same writing, nothing changed."""
    assert failed(congenial.read(bundle), tmp_path / "copy") == set()


def moved(arrays: tuple, at: int, by: float) -> tuple:
    """One table with its first cell moved."""
    changed = arrays[at].copy()
    changed.flat[0] += by
    return (*arrays[:at], changed, *arrays[at + 1 :])


def with_changed(release: TablesRelease, what: str) -> TablesRelease:
    told = release.description
    if what == "estimate":
        return forged(release, estimates=moved(release.estimates, 1, 0.01))
    if what == "count":
        return forged(release, counts=moved(release.counts, 3, 1))
    if what == "sd":
        return forged(release, deviations=moved(release.deviations, 0, -0.5))
    if what == "drawn":
        return forged(release, drawn=moved(release.drawn, 0, 1))
    if what == "scale":
        first = replace(told.measured[0], scale=told.measured[0].scale / 2)
        return forged(release, description=replace(told, measured=(first, *told.measured[1:])))
    if what == "certificate":
        better = {**told.design["certificate"], "share": 1.0}
        design = {**told.design, "certificate": better}
        return forged(release, description=replace(told, design=design))
    said = {
        "aim": {"aim": "epsilon = 0.0001"},
        "accuracy": {"aim": "accuracy: margin('age') within 0.1 at 90%"},
        "a field more": {"note": "epsilon = 0.0001"},
        "types": {"types": {**told.design["types"], "maximal": [[2, 2, 2, 2]]}},
    }
    design = {**told.design, **said[what]}
    return forged(release, description=replace(told, design=design))


@pytest.mark.parametrize(
    ("what", "noticed"),
    [
        ("estimate", FITTED),
        ("count", PRINTED),
        ("sd", "the standard deviations follow from the noise"),
        ("drawn", "the noisy tables agree with the exact figures"),
        ("scale", "the promise follows from the description"),
        ("certificate", "the split of the noise is as close to the best as stated"),
        ("types", "the differences that the noise hides follow from the exact figures"),
        ("a field more", "the differences that the noise hides follow from the exact figures"),
        ("aim", AIM),
        ("accuracy", AIM),
    ],
)
def test_what_a_forger_changes_is_noticed(
    bundle: Path, tmp_path: Path, what: str, noticed: str
) -> None:
    assert noticed in failed(with_changed(congenial.read(bundle), what), tmp_path / "forged")


# ---- other promises, aims and tables ---------------------------------------------------------


def long(*told: str) -> Any:
    """A case that takes several seconds."""
    return pytest.param(*told, marks=pytest.mark.audit)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("epsilon = 1.5", "epsilon = 1.5"),
        long("epsilon = 1\ndelta = 1e-6", "rho = "),
        ('rho = 0.1\naim = "even"', "rho = 0.1 "),
        long('rho = 0.1\naim = "largest"', "rho = 0.1 "),
        ('rho = 0.1\nweights = { "county, sex, age" = 3, "age" = 0.5 }', "rho = 0.1 "),
        long('rho = 0.1\nkeep = ["state"]', "rho = 0.1 "),
    ],
)
def test_other_promises_and_aims(tmp_path: Path, key: str, words: str) -> None:
    budget = "[budget]\nepsilon = 9\n" if "epsilon" in key else BUDGET
    budget += "delta = 1e-6\n" if "delta" in key else ""
    plan = written(tmp_path, SECTION.replace("rho = 0.5", key), budget)
    told = run("check", plan, "--json")["releases"][0]
    assert told["per_person"].startswith(words)
    assert ("search" in told["design"]) == (words == "epsilon = 1.5")
    verified(plan, "people")


def test_accuracies_find_the_least_rho(tmp_path: Path) -> None:
    """Every cell of the named tables is within what is asked, and a tenth less is not enough."""
    asked = ["margin('age') within 10 at 95%", "margin('county','sex') within 8 at 90%"]
    text = SECTION.replace("rho = 0.5", f"accuracy = {json.dumps(asked)}")
    told = run("check", written(tmp_path, text), "--json")["releases"][0]
    rows = {tuple(row["table"]): row["standard_deviation"] for row in told["tables"]}
    excess = [rows["age",] * 1.95996 / 10, rows["county", "sex"] * 1.64485 / 8]
    assert max(excess) == pytest.approx(1, abs=0.002)
    assert max(excess) <= 1 + 1e-6


@pytest.mark.parametrize("find", ["rho", "epsilon"])
def test_tables_without_an_accuracy_are_not_drowned_in_noise(tmp_path: Path, find: str) -> None:
    """Held to ten times the closest accuracy; sums of a table that has one need nothing."""
    text = f"accuracy = [\"margin('age') within 10 at 95%\"]\nfind = '{find}'"
    plan = written(tmp_path, SECTION.replace("rho = 0.5", text), f"[budget]\n{find} = 30\n")
    told = run("check", plan, "--json")["releases"][0]
    rows = {tuple(row["table"]): row["standard_deviation"] for row in told["tables"]}
    assert rows["age",] * 1.95996 / 10 == pytest.approx(1, abs=0.005)
    assert max(rows.values()) <= 10 * 10 / 1.95996 * (1 + 1e-6)


@pytest.mark.parametrize("delta", ["", "delta = 1e-6\n"], ids=["pure", "with delta"])
def test_accuracies_find_the_least_epsilon(tmp_path: Path, delta: str) -> None:
    """Every cell of the named tables is within what is asked, and half a per cent less is not."""
    asked = ["margin('age') within 10 at 95%", "margin('county','sex') within 8 at 90%"]
    text = f'accuracy = {json.dumps(asked)}\nfind = "epsilon"\n{delta}'
    plan = written(tmp_path, SECTION.replace("rho = 0.5", text), f"[budget]\nepsilon = 30\n{delta}")
    told = run("check", plan, "--json")["releases"][0]
    rows = {tuple(row["table"]): row["standard_deviation"] for row in told["tables"]}
    excess = max(rows["age",] * 1.95996 / 10, rows["county", "sex"] * 1.64485 / 8)
    assert 0.996 < excess <= 1 + 1e-6
    assert told["per_person"].startswith("rho = " if delta else "epsilon = ")
    assert "epsilon = " in told["promise"]


def test_want_about_a_column_that_no_table_has_is_refused(tmp_path: Path) -> None:
    plan = written(tmp_path, SECTION.replace(TABLES, 'tables = [["age"]]'))
    said = refused(plan, extra=("--want", "margin('sex') within 4 at 95%"))
    assert "no release of the plan shows this table" in said
    said = refused(plan, extra=("--want", "margin('height') within 4 at 95%"))
    assert "has no attribute or coarser name 'height'" in said


def test_want_passes_over_a_table_by_coarser_names(tmp_path: Path) -> None:
    """Counties are no sums of states; the other release answers."""
    by_state, by_county = (
        SECTION.replace(TABLES, f'table = ["{area}", "age"]') for area in ("state", "county")
    )
    plan = written(tmp_path, by_state + by_county.replace("people", "other"))
    asked = ("--want", "margin('county', 'age') within 4 at 95%")
    told = run("check", plan, *asked, "--json")["releases"]
    assert [one["wanted"] is None for one in told] == [True, False]


def test_want_is_answered_in_the_parameter_of_the_plan(tmp_path: Path) -> None:
    plan = written(tmp_path)
    told = run("check", plan, "--want", "margin('age') within 4 at 95%", "--json")["releases"][0]
    row = next(row for row in told["tables"] if row["table"] == ["age"])
    needed = 0.5 * (row["standard_deviation"] * 1.95996 / 4) ** 2
    assert float(told["wanted"]["rho"]) == pytest.approx(needed, rel=0.01)
    assert "needs rho = " in run("check", plan, "--want", "count(\"age = 'old'\") within 9 at 90%")
    assert "published exactly" in run("check", plan, "--want", "margin('county') within 1 at 90%")


CROSSING = """
[data]
source = "people.csv"
[schema.county]
levels = ["A", "B", "C", "D"]
within = { state = ["P", "P", "Q", "Q"], area = ["r", "u", "r", "u"] }
[schema.age]
levels = ["child", "adult"]
[publish]
"Figure" = { FIGURE }
[[release]]
name = "people"
tables = TABLES
PROMISE
[budget]
epsilon = 9
delta = 1e-6
"""
ODD_FIGURES = {
    "a name that cuts across a published one": (
        'total = true, by = ["state"]',
        [["county", "age"], ["area"]],
    ),
    "a published name that cuts across a finer one": (
        'total = true, by = ["area"]',
        [["county", "age"], ["state"]],
    ),
    "a table that follows from a figure and another": (
        'count = "age = \'adult\'", by = ["county"]',
        [["age"], ["county"]],
    ),
    "the same by area": (
        'count = "age = \'adult\'", by = ["area"]',
        [["age"], ["area"], ["state"]],
    ),
}


@pytest.mark.parametrize("promise", ["rho = 0.5", "epsilon = 1"])
@pytest.mark.parametrize("case", ODD_FIGURES)
def test_figures_that_cut_across_tables(tmp_path: Path, case: str, promise: str) -> None:
    """From a plan to a verified bundle; price and estimates are those of brute force."""
    figure, tables = ODD_FIGURES[case]
    cells = [f"{county},{age}" for county in "ABCD" for age in ("child", "adult")]
    counts = np.array([9, 4, 0, 7, 5, 5, 11, 3])
    people = [cell for cell, many in zip(cells, counts, strict=True) for _ in range(many)]
    (tmp_path / "people.csv").write_text("\n".join(["county,age", *people]) + "\n")
    text = CROSSING.replace("FIGURE", figure).replace("PROMISE", promise)
    path = tmp_path / "plan.toml"
    path.write_text(text.replace("TABLES", json.dumps(tables)))
    for command in ("check", "publish", "release"):
        run(command, path)
    assert run("verify", tmp_path / "bundles" / "people", "--json")["holds"]
    release = congenial.read(tmp_path / "bundles" / "people")
    plan, parameters = (
        Plan.load(path),
        [Fraction(s) for s in release.description.design["parameters"]],
    )
    squares, absolutes = all_types(
        plan.schema, plan.statements, tables, release.guarantee.adjacency.records
    )
    if promise.startswith("rho"):
        stated, norms = 2 * release.guarantee.tradeoff.rho, squares
    else:
        stated, norms = release.guarantee.tradeoff.eps, absolutes
    worst = max(sum(n * p for n, p in zip(row, parameters, strict=True)) for row in norms)
    assert 0.99 * stated < worst <= stated
    truth = Table(plan.schema, plan.schema.names, counts.reshape(4, 2))
    work, oracle = release.estimator.measurements, dense(release.estimator.measurements, truth)
    drawn = iter(release.drawn)
    values = [
        next(drawn).reshape(-1) if p else np.zeros(len(m))
        for p, m in zip(work.precisions, oracle.maps, strict=True)
    ]
    best, spread = oracle.estimate(work.precisions, values), oracle.inverse(work.precisions)
    for m, told, sd in zip(oracle.maps, release.estimates, release.deviations, strict=True):
        assert np.allclose(told.reshape(-1), m @ best, atol=1e-5)
        assert np.allclose(sd.reshape(-1) ** 2, np.diag(m @ spread @ m.T), atol=1e-5)


def test_tables_can_be_chosen_from_the_schema(tmp_path: Path) -> None:
    section = SECTION.replace(TABLES, 'tables = "auto"\ntable = ["county", "sex", "age"]')
    plan = written(tmp_path, section)
    rows = run("check", plan, "--json")["releases"][0]["tables"]
    told = [tuple(row["table"]) for row in rows]
    assert told == list(automatic(Plan.load(plan).schema, ["county", "sex", "age"]))
    assert {("county", "sex", "age"), ("state", "sex"), ("age",), ("state",)} <= set(told)
    row = next(row for row in rows if row["table"] == ["county"])
    assert (row["measured"], row["standard_deviation"]) == (False, 0)
    assert " exact " in run("check", plan, "--full")


def test_infer_takes_all_tables_together(bundle: Path) -> None:
    model = ("--model", "poisson", "--set", "by=state,age", "--set", "draws=400", "--set", "seed=1")
    told = run("infer", bundle, *model, "--naive", "--json")
    rows = [row for row in told["summary"] if row["parameter"] == "rate"]
    estimates = congenial.read(bundle).estimates_of("state", "age").reshape(-1)
    means = np.array([row["mean"] for row in rows])
    assert np.all(np.abs(means - estimates) < 4 * np.sqrt(estimates))
    assert any("equally likely" in note for note in told["notes"])
    assert "one table" in told["coverage"]["why_not"]


def test_check_says_whether_and_how_long_infer_takes(tmp_path: Path) -> None:
    told = run("check", written(tmp_path), "--json")["releases"][0]["inference"]
    assert told["works"]
    assert not told["slow"]
    assert 0 < told["minutes"] < 1
