"""Estimates given public information, from a plan; their two promises by whole laws."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import replace
from fractions import Fraction
from itertools import product

import jsonschema
import numpy as np
import pytest
from scipy import stats

from congenial import Schema, read
from congenial.errors import DataError, GuaranteeError
from congenial.kinds.convex_estimate import KIND
from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
from congenial.mechanisms.wasserstein.gradient_estimate import GradientGivenPublic
from congenial.mechanisms.wasserstein.mean_given_public import MeanGivenPublic
from congenial.pairs.scenarios import IndependentRecords, PublicMean, given_means
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.tradeoff import Pure
from congenial.publication.json_schema import plan_schema
from congenial.sampling.randomness import SeededRandomness
from tests.commands import refused, run, write_plan

ALPHA = 1e-6
N = 300
NORMAL = (
    f'{{ believe = "normal records", people = {N}, variance = 300, means = {{ "last year" = '
    f"{{ people = {N}, error = 0.5 }} }} }}"
)
INDEPENDENT = f'{{ believe = "independent records", people = {N} }}'
GROUPS = (
    f'{{ believe = "normal records", people = {N}, variance = 300, means = {{ "north" = '
    '{ people = 100, error = 1 }, "south" = { people = 200, error = 0.5 } } }'
)
PLAN = f"""
[data]
source = "people.csv"
unit = "id"
[schema]
sex = {{ levels = ["f", "m"] }}
age = {{ integers = [0, 110] }}
[[release]]
name = "age"
estimate = {{ mean = "age", between = [0, 110] }}
scenarios = {NORMAL}
epsilon = 1
[budget]
epsilon = 8
"""
SCHEMA = Schema.from_dict({"age": {"integers": [0, 3]}})
SPEC = EstimateSpec.read({"mean": "age", "between": [0, 3]})
SUM = EstimateSpec.read({"sum": "age", "between": [0, 3]})
MEDIAN = EstimateSpec.read({"quantile": "age", "at": 0.5, "between": [0, 3]})
TOGETHER = {
    "total": '{ sum = "age", between = [0, 110] }',
    "median": '{ quantile = "age", at = 0.5, between = [0, 110] }',
    "by-age": '{ regression = "logistic", response = "sex = \'f\'", features = { age = [0, 110] }, '
    "coefficients = [-2, 2] }",
}


@pytest.fixture
def folder(tmp_path):
    age = np.clip(np.random.default_rng(1).normal(45, 18, N), 0, 110).astype(int)
    with (tmp_path / "people.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", "sex", "age"])
        out.writerows((i, "fm"[i % 2], one) for i, one in enumerate(age))
    return tmp_path


def by_schur(n, s2, means, members):
    """Coefficient of a person's number in the mean given the public means, from the full law."""
    z = np.zeros((len(means), n))
    for row, one, group in zip(z, means, members, strict=True):
        row[group] = 1 / one.people
    noise = np.diag([float(one.variance) for one in means])
    whole = s2 * np.vstack([np.eye(n), z]) @ np.vstack([np.eye(n), z]).T
    whole[n:, n:] += noise
    given = whole[:n, :n] - whole[:n, n:] @ np.linalg.solve(whole[n:, n:], whole[n:, :n])
    return given.mean(axis=0) / np.diag(given)


@pytest.mark.parametrize(
    ("means", "members"),
    [
        ([("all", 7, 2)], [range(7)]),
        ([("a", 3, 2), ("b", 2, "1/2")], [range(3), range(3, 5)]),
        ([("a", 3, 2), ("b", 4, "1/2"), ("all", 7, 1)], [range(3), range(3, 7), range(7)]),
        ([("all", 7, 2), ("again", 7, 3)], [range(7), range(7)]),
    ],
)
def test_what_is_believed_of_each_person_is_the_conditional_law(means, members):
    named = [PublicMean(*one) for one in means]
    wanted = by_schur(7, 4.0, named, [list(group) for group in members])
    found = [float(one.coefficient) for one in given_means(7, 4, 3, named)]
    assert max(found) == pytest.approx(wanted.max(), rel=1e-12)
    assert sorted(set(np.round(found, 12))) == sorted(set(np.round(wanted, 12)))


@pytest.mark.parametrize("scenarios", [NORMAL, GROUPS, INDEPENDENT])
def test_from_check_to_a_verified_bundle(folder, scenarios):
    path = write_plan(folder, PLAN, (NORMAL, scenarios))
    jsonschema.Draft202012Validator(plan_schema()).validate(tomllib.loads(path.read_text()))
    told = run("check", path, "--json")["releases"][0]
    assert told["guarantee"]["basis"] == "theorem"
    assert told["persons"] in " ".join(run("check", path, "--full").split())
    made = run("release", path, "--json")["releases"][0]
    checks = run("verify", folder / "bundles" / "age", "--digest", made["digest"], "--json")
    assert all(one["holds"] for one in checks["checks"])
    release = read(folder / "bundles" / "age")
    assert release.persons.tradeoff.words == told["per_person"]
    assert "Without any assumption about beliefs" in release.explain()
    assert abs(release.values[0] - 45) < 6
    claimed = replace(release.guarantee, tradeoff=Pure("0.5"))
    assert not KIND.follows(replace(release, guarantee=claimed))
    moved = replace(release, values=(release.values[0] + 1e-9,))
    assert not KIND.checks(moved)["the values lie on the public grid"]


def test_public_means_of_everybody_lessen_the_noise_and_the_ledger_counts_the_ordinary_loss(folder):
    given, ordinary = (
        run("check", write_plan(folder, PLAN, (NORMAL, one)), "--json")["releases"][0]
        for one in (NORMAL, INDEPENDENT)
    )
    tau2, s2 = 0.25, 300.0
    shrunk = (tau2 / N) / (s2 / N + tau2 - s2 / N**2)
    assert given["delta_z"]["value"] == pytest.approx(110 * shrunk, rel=1e-12)
    assert float(given["per_record"]) == pytest.approx(1 / (N * shrunk), rel=2e-3)
    assert ordinary["per_record"] == "1"
    assert ordinary["delta_z"] == {"value": 1, "measure": "records"}


def mechanism(scenarios, n, level="query", epsilon="1/2", spec=SPEC):
    return MeanGivenPublic(SecretPairs(SCHEMA, scenarios, (), level), spec, n, Fraction(epsilon))


def test_somebody_who_believes_normal_records_learns_no_more_than_epsilon():
    """Laws of the release given two answers, by numerical integration; half the rate is noticed."""
    n, s2 = 5, 4.0
    means = [PublicMean("all", n, 1)]
    made = mechanism(given_means(n, 4, 3, means), n)
    one = made.pairs.scenarios[0]
    sd = np.sqrt(by_schur_variance(n, s2, means))
    shift, unit = float(one.coefficient) * 3, float(made.unit)
    grid = np.arange(-8, 8, 0.004)  # of the true mean, centred
    y = np.array([-7.0, -2.0, 0.0, 1.0, 7.0])

    def log_law(rate, centre):
        weights = stats.norm.pdf(grid, centre, sd)
        return np.log(np.exp(-rate * np.abs(y[:, None] - grid) / unit) @ weights)

    rate = float(made.on_grid.rate)
    loss = np.abs(log_law(rate, 0.0) - log_law(rate, shift)).max()
    assert 0.48 < loss <= 0.5
    assert np.abs(log_law(1.2 * rate, 0.0) - log_law(1.2 * rate, shift)).max() > 0.5


def test_cut_numbers_of_normal_records_would_lose_more_and_are_refused():
    """Two records, one public mean: the law of the other, cut at the bounds or not."""
    schema = Schema.from_dict({"age": {"integers": [0, 30]}})
    believed = given_means(2, 25, 30, [PublicMean("all", 2, 1)])
    pairs = SecretPairs(schema, believed, (), "query")
    spec = EstimateSpec.read({"mean": "age", "between": [0, 30]})
    made = MeanGivenPublic(pairs, spec, 2, Fraction(1))
    rate, u = float(made.on_grid.rate / made.unit), np.linspace(-12, 12, 40_001)

    def released_above(answer, cut):
        """Logarithm of the probability of a result above the bounds, up to a constant."""
        variance = 1 / (1 / 25 + 1 / 4)  # of the other, given the answer and a public mean of 15
        other = variance * (15 / 25 + (30 - answer) / 4) + np.sqrt(variance) * u
        mean = (answer + (np.clip(other, 0, 30) if cut else other)) / 2
        return np.log(np.exp(rate * (mean - 15)) @ stats.norm.pdf(u))

    plain, cut = (abs(released_above(30, how) - released_above(0, how)) for how in (False, True))
    assert 0.99 < plain <= 1 < 1.06 < cut
    with pytest.raises(DataError, match="have no limits"):
        made.rounded(np.array([12.0, 31.0]))
    open_bins = {"age": {"edges": [0, 10, 20], "top": "20+"}}
    for other in ({"age": {"integers": [0, 31]}}, open_bins):
        wider = SecretPairs(Schema.from_dict(other), believed, (), "query")
        with pytest.raises(GuaranteeError, match="may have some outside"):
            MeanGivenPublic(wider, spec, 2, Fraction(1))


def test_a_plan_does_not_cut_numbers_of_normal_records_beyond_the_schema(folder):
    people = folder / "people.csv"
    people.write_text(people.read_text().rsplit("\n", 2)[0] + "\n299,m,111\n")
    assert "outside the schema's range" in refused(write_plan(folder, PLAN), "release", 3)
    path = write_plan(folder, PLAN, (NORMAL, INDEPENDENT))  # cut where records are independent
    assert run("release", path, "--json")["releases"][0]["name"] == "age"


def by_schur_variance(n, s2, means):
    """Variance of the mean given one person's number and the public mean of all."""
    z = np.vstack([np.eye(n), np.full(n, 1 / n)])
    whole = s2 * z @ z.T
    whole[n, n] += float(means[0].variance)
    known = [0, n]
    weights = np.full(n, 1 / n)
    own = np.append(weights, 0)
    across = whole[:, known].T @ own
    return own @ whole @ own - across @ np.linalg.solve(whole[np.ix_(known, known)], across)


def test_sums_quantiles_and_regressions_add_up_from_check_to_verified_bundles(folder):
    """Of the first 40 people."""
    rows = (folder / "people.csv").read_text().splitlines()[:41]
    (folder / "people.csv").write_text("\n".join(rows))
    age = np.array([float(row.split(",")[2]) for row in rows[1:]])
    believed = INDEPENDENT.replace(str(N), "40")
    sections = "".join(
        f'[[release]]\nname = "{name}"\nestimate = {told}\nscenarios = {believed}\nepsilon = 10\n'
        for name, told in TOGETHER.items()
    )
    plan = PLAN[: PLAN.index("[[release]]")] + sections + "[budget]\nepsilon = 30\n"
    path = write_plan(folder, plan)
    told = {one["name"]: one for one in run("check", path, "--json")["releases"]}
    assert {one["delta_z"]["value"] for one in told.values()} == {1}
    assert {one["per_person"] for one in told.values()} == {"epsilon = 10"}
    assert "16,384 public points per number" in run("check", path, "--full")
    run("release", path)
    made = {name: read(folder / "bundles" / name) for name in TOGETHER}
    for name, release in made.items():
        checks = run("verify", folder / "bundles" / name, "--json")["checks"]
        assert all(one["holds"] for one in checks)
        assert "Without any assumption about beliefs" in release.explain()
        claimed = replace(release.guarantee, tradeoff=Pure("9.5"))
        assert not KIND.follows(replace(release, guarantee=claimed))
    assert abs(made["total"].values[0] - age.sum()) < 20 * 110 / 10  # e^-20
    low, high = np.quantile(age, [0.1, 0.9])  # 16 people away on either side
    assert low < made["median"].values[0] < high
    assert [one.description.mechanism for one in made.values()] == [
        "wasserstein_exponential",
        "wasserstein_gradient",
        "wasserstein_gradient",
    ]


def test_a_sum_is_the_number_of_people_times_the_mean():
    for believed, level in (
        ((IndependentRecords("replace-one"),), "database"),
        (given_means(7, 4, 3, [PublicMean("all", 7, 1)]), "query"),
    ):
        mean, total = (mechanism(believed, 7, level, spec=spec) for spec in (SPEC, SUM))
        assert total.distance == pytest.approx(7 * mean.distance, rel=1e-12)
        assert total.unit / total.on_grid.rate == pytest.approx(
            float(7 * mean.unit / mean.on_grid.rate), rel=3e-3
        )
        last = 5.0 if level == "database" else 3.0  # cut at 3, where numbers are cut
        numbers = np.array([0.0, 1.0, 3.0, 3.0, 2.0, 1.0, last])
        assert int(total.rounded(numbers)[0]) * total.unit == 13


def test_somebody_who_believes_independent_records_learns_no_more_from_a_median():
    """All laws of one answer beside fixed others are pairs of databases; all of them are tried."""
    made = GradientGivenPublic(
        SecretPairs(SCHEMA, (IndependentRecords("replace-one"),), (), "database"),
        replace(MEDIAN, at=0.25),
        3,
        Fraction(1, 2),
    )
    logs = {
        rows: made.per_record.log_density(made.data(np.array(rows, dtype=float).reshape(-1, 1)))
        for rows in product(range(4), repeat=3)
    }
    loss = max(
        np.abs(logs[one] - logs[other]).max()
        for one, other in product(logs, logs)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    )
    assert 0.2 < loss <= 0.5 == made.description.epsilon == made.guarantee.tradeoff.eps


@pytest.mark.parametrize("spec", [SPEC, SUM], ids=["mean", "sum"])
@pytest.mark.parametrize("level", ["database", "query"])
def test_no_pair_of_databases_loses_more_than_is_counted(level, spec):
    """All databases of three records, whatever is believed; 20 % less noise is noticed."""
    believed = (IndependentRecords("replace-one"),) if level == "database" else given_means(3, 4, 3)
    made = mechanism(believed, 3, level, spec=spec)
    at = {
        rows: int(made.rounded(np.array(rows, dtype=float))[0])
        for rows in product(range(4), repeat=3)
    }
    worst = max(
        abs(at[one] - at[other])
        for one, other in product(at, at)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    )
    loss = worst * made.on_grid.rate
    assert loss <= made.description.epsilon <= Fraction(1, 2)
    assert made.description.epsilon > Fraction(4999, 10000)
    assert loss * Fraction(6, 5) > made.description.epsilon


def test_draws_are_double_geometric_around_the_mean_in_units():
    made = mechanism((IndependentRecords("replace-one"),), 3, "database")
    numbers = np.array([0.0, 1.0, 3.0])
    drawn = made.on_grid.draw(made.rounded(numbers), SeededRandomness(3), 20_000)[:, 0]
    units = drawn - made.rounded(numbers)[0]
    ((alone,),) = made.on_grid.draw(made.rounded(numbers), SeededRandomness(3), 1)
    assert made.release(numbers, SeededRandomness(3)).values == (float(int(alone) * made.unit),)
    scale = 1 / float(made.on_grid.rate)
    assert stats.kstest(units, stats.laplace(scale=scale).cdf).pvalue > ALPHA
    assert stats.kstest(units, stats.laplace(scale=1.3 * scale).cdf).pvalue < ALPHA


@pytest.mark.parametrize(
    ("scenarios", "why"),
    [
        ('{ believe = "normal records", people = 300 }', "with an estimate must be"),
        ('{ believe = "independent records" }', "with an estimate must be"),
        ('{ believe = "independent records", people = 301 }', "a different number"),
        (NORMAL.replace("people = 300, error", "people = 301, error"), "separate groups"),
        (NORMAL.replace("error = 0.5", "error = 0"), "must be positive"),
    ],
)
def test_what_cannot_be_believed_is_refused_in_words(folder, scenarios, why):
    code = 3 if "different" in why else 2
    assert why in refused(write_plan(folder, PLAN, (NORMAL, scenarios)), "release", code)


def test_other_estimates_and_other_releases_beside_it_are_refused(folder):
    median = ('{ mean = "age",', '{ quantile = "age", at = 0.5,')
    assert "only a mean or a sum can be bounded" in refused(write_plan(folder, PLAN, median))
    second = '[[release]]\nname = "t"\ntable = ["sex"]\nepsilon = 1\n[budget]'
    told = refused(write_plan(folder, PLAN, ("[budget]", second)))
    assert "cannot be combined with other releases" in told
    beside = write_plan(folder, PLAN, ("[budget]", second), (NORMAL, INDEPENDENT))
    assert [one["name"] for one in run("check", beside, "--json")["releases"]] == ["age", "t"]


def test_beliefs_about_other_records_are_refused():
    for scenarios, level in (
        (given_means(4, 4, 3), "query"),
        (given_means(3, 4, 2), "query"),
        ((IndependentRecords("replace-one", 1),), "query"),
        ((IndependentRecords("presence"),), "database"),
    ):
        with pytest.raises(GuaranteeError, match="not about the mean of these records"):
            mechanism(scenarios, 3, level)
    with pytest.raises(DataError, match="a different number"):
        mechanism(given_means(3, 4, 3), 3).release(np.zeros(4))


def test_gradients_are_about_replaced_records():
    independent = (IndependentRecords("replace-one"),)
    for pairs, spec, why in (
        (SecretPairs(SCHEMA, given_means(3, 4, 3)), MEDIAN, "about something else"),
        (SecretPairs(SCHEMA, (IndependentRecords("presence"),), (), "database"), MEDIAN, "else"),
        (SecretPairs(SCHEMA, independent, (), "database"), SUM, "for a quantile or regression"),
    ):
        with pytest.raises(GuaranteeError, match=why):
            GradientGivenPublic(pairs, spec, 3, Fraction(1))
    made = GradientGivenPublic(SecretPairs(SCHEMA, independent, (), "database"), MEDIAN, 3, 1)
    with pytest.raises(DataError, match="a different number"):
        made.release(np.zeros((4, 1)))
