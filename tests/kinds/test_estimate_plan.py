"""Means, quantiles and regressions from a plan to a verified bundle; losses by enumeration."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from congenial import Schema, SeededRandomness, SemiAdjacent, Table, read
from congenial.errors import BundleError, GuaranteeError, SchemaError
from congenial.figures import Figures, count, margin, publish, total
from congenial.kinds.convex_estimate import KIND
from congenial.mechanisms import EstimateSpec, GradientEstimate
from congenial.mechanisms.wasserstein.gradient import H
from congenial.mechanisms.wasserstein.mean_given_public import MeanOfEverybody
from tests.commands import refused, run, write_plan

ALPHA = 1e-6
PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
sex = { levels = ["f", "m"] }
age = { integers = [0, 110] }
hours = { integers = [0, 99] }
[[release]]
name = "age"
estimate = { mean = "age", between = [0, 110] }
epsilon = 1
[budget]
epsilon = 4
"""
MEAN = '{ mean = "age", between = [0, 110] }'
SUM = '{ sum = "age", between = [0, 110] }'
MEDIAN = '{ quantile = "age", at = 0.5, between = [0, 110] }'
LINEAR = (
    '{ regression = "linear", response = "hours", between = [0, 99], '
    "features = { age = [0, 110] }, coefficients = [-2, 2] }"
)
LOGISTIC = (
    '{ regression = "logistic", response = "sex = \'f\'", features = { age = [0, 110], '
    "hours = [0, 99] }, coefficients = [-3, 3] }"
)
SCHEMA = Schema.from_dict(
    {"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 3]}, "hours": {"integers": [0, 2]}}
)


@pytest.fixture
def folder(tmp_path: Path):
    random = np.random.default_rng(1)
    age = np.clip(random.normal(45, 18, 800), 0, 110).astype(int)
    hours = np.clip(60 - age / 2 + random.normal(0, 6, 800), 0, 99).astype(int)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "sex", "age", "hours"])
        out.writerows(zip(range(800), random.choice(["f", "m"], 800), age, hours, strict=True))
    return tmp_path


def truth(folder: Path) -> dict[str, np.ndarray]:
    with (folder / "people.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in ("age", "hours")}


@pytest.mark.parametrize("estimate", [MEAN, SUM, MEDIAN, LINEAR, LOGISTIC])
def test_from_check_to_a_verified_bundle(folder, estimate):
    path = write_plan(folder, PLAN, (MEAN, estimate))
    told = run("check", path, "--json")["releases"][0]
    assert told["guarantee"]["basis"] == "theorem"
    assert told["per_person"] == "epsilon = 1"
    assert told["estimates"][0] in run("check", path, "--full")
    made = run("release", path, "--json")["releases"][0]
    assert made["promise"].startswith(told["promise"])
    bundle = folder / "bundles" / "age"
    checks = run("verify", bundle, "--digest", made["digest"], "--json")["checks"]
    assert all(one["holds"] for one in checks)
    assert any("on the public grid" in one["what"] for one in checks)
    release = read(bundle)
    assert len(release.values) == len(release.spec.names) == len(told["estimates"])
    assert "epsilon = 1" in (bundle / "report.html").read_text()
    spent = run("ledger", "show", path, "--json")
    assert json.dumps(spent).count('"age"') >= 1


def test_values_are_near_what_they_estimate(folder):
    """Mean and median of 800 people at epsilon = 1."""
    own = truth(folder)
    for estimate, want, near in (
        (MEAN, own["age"].mean(), 12 * 110 * 2 / 800),
        (MEDIAN, np.median(own["age"]), 3),
    ):
        path = write_plan(
            folder, PLAN, (MEAN, estimate), ('"age"\nest', f'"a{near * 10:.0f}"\nest')
        )
        run("release", path)
        (value,) = read(folder / "bundles" / f"a{near * 10:.0f}").values
        assert abs(value - want) < near


def test_a_tampered_value_and_a_better_promise_are_noticed(folder):
    path = write_plan(folder, PLAN)
    run("release", path)
    release = read(folder / "bundles" / "age")
    assert all(KIND.checks(release).values())
    from dataclasses import replace

    from congenial.privacy.tradeoff import Pure

    moved = replace(release, values=(release.values[0] + 1e-3,))
    assert not KIND.checks(moved)["the values lie on the public grid"]
    claimed = replace(release.guarantee, tradeoff=Pure("0.5"))
    assert not KIND.follows(replace(release, guarantee=claimed))
    with pytest.raises(BundleError, match="cannot be read"):
        type(release).from_payload(
            payload={"estimate.csv": b"what,value\nage,1\n"},
            name="age",
            description=release.description,
            guarantee=release.guarantee,
            randomness="",
            publishable=False,
        )


@pytest.mark.parametrize(
    ("estimate", "why"),
    [
        ('{ mean = "age" }', "cannot be read"),
        ('{ mean = "age", between = [110, 0] }', "not a range"),
        ('{ mean = "sex", between = [0, 1] }', "sex"),
        ('{ mean = "income", between = [0, 1] }', "income"),
        ('{ quantile = "age", at = 2, between = [0, 110] }', "q = 2"),
        ('{ regression = "cubic", response = "age" }', "cannot be read"),
        (LOGISTIC.replace("sex = 'f'", "sex = 'x'"), "sex"),
        (LINEAR.replace("features = { age = [0, 110] }", "features = {}"), "0 features"),
    ],
)
def test_estimates_that_make_no_sense_are_refused(folder, estimate, why):
    assert why in refused(write_plan(folder, PLAN, (MEAN, estimate)))


def test_several_rows_per_person_are_refused(folder):
    path = write_plan(folder, PLAN, ('unit = "id"', 'unit = "id"\nmax_rows = 3'))
    assert "one record per person" in refused(path).replace("\n", " ")


def test_delta_and_other_mechanisms_are_refused(folder):
    for line in ("delta = 1e-6", 'mechanism = "congenial"'):
        path = write_plan(folder, PLAN, ("epsilon = 1\n", f"epsilon = 1\n{line}\n"))
        refused(path)


# ---- the promise ---------------------------------------------------------------------------------

SPECS = {
    "mean": EstimateSpec("mean", "age", (0.0, 3.0)),
    "median": EstimateSpec("quantile", "age", (0.0, 3.0)),
    "linear": EstimateSpec(
        "linear", "age", (0.0, 3.0), features=(("hours", (0.0, 2.0)),), coefficients=(-2.0, 2.0)
    ),
    "logistic": EstimateSpec(
        "logistic", "sex = 'f'", None, features=(("hours", (0.0, 2.0)),), coefficients=(-2.0, 2.0)
    ),
}
RECORDS = list(product((0.0, 1.0), range(4), range(3)))  # sex is f, age, hours


def numbers(spec: EstimateSpec, database: list[tuple[float, int, int]]) -> np.ndarray:
    """Each record's numbers in the order of `query`."""
    table = np.array(database, dtype=float)
    if spec.what in ("mean", "quantile"):
        return table[:, [1]]
    return table[:, [2, 1 if spec.what == "linear" else 0]]


@pytest.mark.parametrize("name", SPECS)
def test_no_replaced_record_costs_more_than_epsilon(name):
    """Every neighbour of some databases of three records, on the whole grid."""
    spec = SPECS[name]
    made = GradientEstimate(SemiAdjacent(Figures(SCHEMA)), spec, Fraction(1))
    assert made.adjacency.records == 1
    worst = 0.0
    for others in (RECORDS[:2], [RECORDS[0], RECORDS[-1]], [RECORDS[7], RECORDS[16]]):
        logs = [
            made.per_record.log_density(spec.data(numbers(spec, [*others, one]))) for one in RECORDS
        ]
        worst = max(worst, *(float((a - b).max()) for a in logs for b in logs))
    assert worst <= 1 + 2 * float(H)
    assert worst > 0.3  # the noise is no more than a few times what it must be
    less = GradientEstimate(made.adjacency, spec, Fraction(4))
    logs = [
        less.per_record.log_density(spec.data(numbers(spec, [*RECORDS[:2], one])))
        for one in RECORDS
    ]
    assert max(float((a - b).max()) for a in logs for b in logs) > 1  # planted: a quarter


def test_published_figures_share_epsilon_among_the_records_that_must_move():
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 3]}})
    whole = Table(schema, ("sex", "age"), np.array([[1, 1, 0, 0], [0, 0, 0, 1]]))
    given = publish(whole, count("sex = 'f'"))
    made = GradientEstimate(SemiAdjacent(given), SPECS["mean"], Fraction(1))
    assert made.adjacency.records == 2
    assert made.description.epsilon == Fraction(1, 2)
    assert made.guarantee.tradeoff.words == "epsilon = 1"
    # databases with two women that differ in two records: the whole promise, by enumeration
    ages = range(4)
    logs = {
        pair: made.per_record.log_density(np.array([[pair[0]], [pair[1]], [1.0]], dtype=float))
        for pair in product(ages, repeat=2)
    }
    worst = max(float((a - b).max()) for a in logs.values() for b in logs.values())
    assert 0.5 < worst <= 1


def test_draws_follow_the_density():
    spec = EstimateSpec("quantile", "age", (0.0, 3.0))
    made = GradientEstimate(SemiAdjacent(Figures(SCHEMA)), spec, Fraction(2))
    data = np.array([[0.0], [1.0], [1.0], [2.0], [3.0]])
    drawn = made.per_record.draw(spec.data(data), SeededRandomness(3), 4000)[:, 0]
    law, grid = np.exp(made.per_record.log_density(spec.data(data))), made.per_record.grid[:, 0]
    edges = np.array([-0.5, 0.5, 0.9, 1.1, 1.6, 2.2, 3.5])
    want = 4000 * np.histogram(grid, edges, weights=law)[0]
    seen = np.histogram(drawn, edges)[0]
    assert stats.chisquare(seen, want).pvalue > ALPHA
    moved = np.histogram(np.clip(drawn + 0.3, -0.4, 3.4), edges)[0]
    assert stats.chisquare(moved, want).pvalue < ALPHA


def test_specs_read_back():
    for spec in SPECS.values():
        assert EstimateSpec.read(spec.to_dict()) == spec
        assert json.loads(json.dumps(spec.to_dict())) == spec.to_dict()
    with pytest.raises(SchemaError, match="3 features"):
        EstimateSpec.read(
            {
                "regression": "logistic",
                "response": "a = 'b'",
                "features": {"x": [0, 1], "y": [0, 1], "z": [0, 1]},
                "coefficients": [-1, 1],
            }
        )


def test_regressions_have_an_intercept_and_rescaled_numbers():
    spec = SPECS["linear"]
    data = spec.data(np.array([[0.0, 0.0], [2.0, 3.0], [1.0, 1.5]]))
    assert data.tolist() == [[1, -1, -1], [1, 1, 1], [1, 0, 0]]
    assert "hours (0 to 2)" in spec.units


def test_where_nothing_is_left_to_protect_it_is_refused():
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 3]}})
    whole = Table(schema, ("sex", "age"), np.array([[2, 0, 0, 0], [0, 0, 0, 0]]))
    given = publish(whole, margin("sex"), margin("age"))
    with pytest.raises(GuaranteeError, match="nothing is left to protect"):
        GradientEstimate(SemiAdjacent(given), SPECS["mean"], Fraction(1))


# ---- a mean or a sum where the number of people is exact -----------------------------------------


def log_probability(made: MeanOfEverybody, ages: Sequence[int], units: np.ndarray) -> np.ndarray:
    """log p of results, in units of the grid, written out: double geometric about the statistic."""
    center = int(made.per_record.rounded(np.array(ages, dtype=float)[:, None])[0])
    rate = float(made.per_record.on_grid.rate)
    return np.log(np.tanh(rate / 2)) - rate * np.abs(units - center)


@pytest.mark.parametrize("what", ["mean", "sum"])
def test_noise_on_the_sum_keeps_epsilon_over_all_conforming_databases(what):
    """Two women and a man, the number of women exact: two records may have to move together."""
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 3]}})
    whole = Table(schema, ("sex", "age"), np.array([[1, 1, 0, 0], [0, 0, 0, 1]]))
    spec = EstimateSpec(what, "age", (0.0, 3.0))

    def worst(made: MeanOfEverybody, moved: int) -> float:
        units = np.arange(-40_000, 40_001, 7)
        databases = list(product(range(4), repeat=3))
        logs = {ages: log_probability(made, ages, units) for ages in databases}
        return max(
            float(np.abs(logs[one] - logs[two]).max())
            for one, two in product(databases, repeat=2)
            if sum(a != b for a, b in zip(one, two, strict=True)) <= moved
        )

    for figures, a in (((count("sex = 'f'"), total()), 2), ((total(),), 1)):
        made = MeanOfEverybody(SemiAdjacent(publish(whole, *figures)), spec, Fraction(1))
        assert made.adjacency.records == a
        assert made.people == 3
        assert a * made.description.epsilon <= 1
        assert 0.99 < worst(made, a) <= 1
    assert worst(made, 2) > 1.9  # planted: calibrated as if one record moved where two must


def test_noise_on_the_sum_is_half_of_that_by_gradients():
    pairs = SemiAdjacent(Figures(SCHEMA, (total(),), (np.array(2000),)))
    noisy = MeanOfEverybody(pairs, SPECS["mean"], Fraction(1))
    size = float(noisy.unit / noisy.per_record.on_grid.rate)
    by_gradients = 3 / (GradientEstimate(pairs, SPECS["mean"], Fraction(1)).per_record.rate * 2000)
    assert size == pytest.approx(3 / 2000, rel=0.002)
    assert 1.99 < by_gradients / size < 2.01
    unknown = MeanOfEverybody(SemiAdjacent(Figures(SCHEMA, (total(),))), SPECS["mean"], Fraction(1))
    assert unknown.people is None
    assert "for 1,000 records" in unknown.accuracy
    with pytest.raises(GuaranteeError, match="not published yet"):
        unknown.release(np.zeros((1000, 1)), SeededRandomness(1))
    with pytest.raises(GuaranteeError, match="needs the number of people"):
        MeanOfEverybody(SemiAdjacent(Figures(SCHEMA)), SPECS["mean"], Fraction(1))
