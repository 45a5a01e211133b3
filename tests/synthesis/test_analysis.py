"""Combining rules for analysts; utility, risk and curve for the curator."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from congenial import ReplaceOne, Schema, SeededRandomness, Table
from congenial.data.advance import telling
from congenial.data.tabulate import Microdata
from congenial.errors import BundleError, DataError, GuaranteeError, InferenceError
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.combine import combine
from congenial.synthesis.local import LABEL
from congenial.synthesis.models import MultinomialColumn, NormalColumn, PoissonColumn
from congenial.synthesis.record_model import Grid
from congenial.synthesis.risk_utility import (
    Measure,
    level_quantile,
    record_risk,
    risk_utility_curve,
    summary,
)
from congenial.synthesis.utility_report import NOTE, CoefficientRow, utility_report

# ---- combining rules -----------------------------------------------------------------------------


def test_rules_by_hand():
    q, u = np.array([1.0, 2.0, 6.0]), np.array([0.5, 0.7, 0.6])
    between, within = 7.0, 0.6
    partial = combine(q, u)
    assert partial.variance == pytest.approx(within + between / 3)
    assert partial.df == pytest.approx(2 * (1 + within / (between / 3)) ** 2)
    full = combine(q, u, "full")
    assert full.variance == pytest.approx(4 / 3 * between - within)
    assert full.df == pytest.approx(2 * (1 - within / (4 / 3 * between)) ** 2)
    low, high = full.interval(0.9)
    half = stats.t.ppf(0.95, full.df) * np.sqrt(full.variance)
    assert (low, high) == pytest.approx((3 - half, 3 + half))


def test_a_negative_variance_is_replaced():
    found = combine([1.0, 1.1], [4.0, 4.0], "full", ratio=0.5)
    assert (found.variance, found.df) == (2.0, 1)
    same = combine([1.0, 1.0], [4.0, 4.0])
    assert (same.variance, same.df) == (4.0, np.inf)
    assert same.interval(0.95)[1] == pytest.approx(1 + 1.96 * 2, abs=1e-3)


ALPHA = 1e-6  # false-alarm rate of each test of a law here


def coverage(rule: str, population: bool) -> int:
    """How often in 3,000 runs a 90 % interval of a mean covers it; m = 10 files of 50 records."""
    rng = np.random.default_rng(3)
    runs, m, n = 3000, 10, 50
    data = rng.normal(size=(runs, n))
    centre, spread = data.mean(axis=1), data.std(axis=1, ddof=1)
    sd = spread[None] * np.sqrt((n - 1) / rng.chisquare(n - 1, size=(m, runs)))
    mean = centre + sd / np.sqrt(n) * rng.normal(size=(m, runs))
    size = 2000 if population else n  # full synthesis draws from a synthetic population
    estimates = mean + sd / np.sqrt(size) * rng.normal(size=(m, runs))
    variances = sd**2 * rng.chisquare(size - 1, size=(m, runs)) / (size - 1) / size
    found = combine(estimates, variances, rule)
    low, high = found.interval(0.9)
    return int(((low <= 0) & (high >= 0)).sum())


def test_intervals_cover():
    """Files of n records from the posterior: the first rule; large files: the second.

    Coverage below .88 or above .925 would be noticed with probability above .9999.
    """
    print("seed 3")
    low, high = stats.binom(3000, 0.9).ppf([ALPHA / 2, 1 - ALPHA / 2])
    assert low <= coverage("partial", population=False) <= high
    assert low <= coverage("full", population=True) <= high
    # negative control: the first rule on large files ignores that they share one estimate
    assert coverage("partial", population=True) < low


@pytest.mark.parametrize(
    ("q", "u", "rule", "error", "words"),
    [
        ([1.0], [1.0], "partial", BundleError, "two files or more"),
        ([1.0, 2.0], [1.0], "partial", BundleError, "cannot be combined"),
        ([1.0, 2.0], [1.0, 1.0], "rubin", InferenceError, "not known"),
    ],
)
def test_combining_refuses(q, u, rule, error, words):
    with pytest.raises(error, match=words):
        combine(q, u, rule)


# ---- utility -------------------------------------------------------------------------------------

SCHEMA = Schema.from_dict(
    {
        "sex": {"levels": ["f", "m"]},
        "age": {"integers": [0, 99]},
        "income": {"edges": [-100, 0, 10, 50, 1000], "top": "more"},
    }
)


def people(n: int, seed: int, slope: float = 1.0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, n)
    income = np.round(slope * age + rng.normal(0, 20, n) - 10, 2)
    return pa.table({"sex": rng.choice(["f", "m"], n), "age": age, "income": income})


def test_equal_laws_look_equal_and_others_do_not():
    """pMSE ratio: three parameters besides the constant, so under equality chi-square_3 / 3."""
    real = people(2000, 1)
    same = utility_report(real, people(2000, 2), SCHEMA, ("income", ["age"]))
    assert 3 * same.pmse_ratio < stats.chi2.ppf(1 - ALPHA, 3)
    assert max(same.marginals.values()) < 0.2
    row = next(q for q in same.quantiles if q.column == "income" and q.at == 0.5)
    assert row.low <= row.original <= row.high
    assert same.coefficients[1].overlap > 0
    one, other = same.correlations["age", "income"]
    five_errors = 5 * (1 - one**2) * np.sqrt(2 / 2000)
    assert one == pytest.approx(other, abs=five_errors)
    other = utility_report(real, people(2000, 2, slope=0.2), SCHEMA, ("income", ["age"]))
    assert other.pmse_ratio > 10
    assert other.coefficients[1].overlap < 0
    assert other.marginals["income"] > 0.2


def test_replicated_uniques():
    real = pa.table({"sex": ["f", "m", "m"], "age": [30, 40, 40], "income": [5.0, 6.0, 7.0]})
    fake = pa.table({"sex": ["f", "m"], "age": [30, 41], "income": [1.0, 6.0]})
    found = utility_report(real, fake, SCHEMA)
    assert (found.uniques, found.replicated) == (1, 1)


def test_the_report_warns_and_stays():
    with Microdata.open(people(50, 1), SCHEMA) as opened:
        report = utility_report(opened, people(50, 2), SCHEMA)
    assert str(report).startswith(NOTE)
    assert "NOT covered by the promise" in report.note
    for leave in (copy.copy, copy.deepcopy):
        with pytest.raises(DataError, match="confidential"):
            leave(report)
    wrong = people(5, 1).set_column(0, "sex", pa.array(["x"] * 5))
    with pytest.raises(DataError, match="outside the schema"):
        utility_report(wrong, people(50, 2), SCHEMA)
    with pytest.raises(DataError, match="no numbers"):
        utility_report(people(50, 1), people(50, 2), SCHEMA, ("income", ["sex"]))


def test_columns_without_variation_are_left_out():
    flat = people(50, 1).set_column(1, "age", pa.array([30] * 50))
    found = utility_report(flat, flat, SCHEMA, ("income", ["age"]))
    assert [row.name for row in found.coefficients] == ["constant"]
    assert np.isnan(found.correlations["age", "income"][0])
    assert found.pmse == pytest.approx(0, abs=1e-12)


def test_overlap_of_intervals():
    assert CoefficientRow("x", 1.0, 0.1, 1.0, 0.1).overlap == pytest.approx(1)
    assert CoefficientRow("x", 1.0, 0.1, 9.0, 0.1).overlap < 0


# ---- risk and curve ------------------------------------------------------------------------------

X = Schema.from_dict({"x": {"edges": [0, 1, 4, 9, 16, 25, 36, 400]}})
COUNTS = np.array([50, 200, 400, 250, 80, 20, 0])
ROOT = NormalColumn(Grid(1, 6, 26), Grid(0.5, 4, 15), "root")


def synthesizer(model=ROOT) -> Synthesizer:
    return Synthesizer(ReplaceOne(X), (Column("x", model),), Fraction(1, 2))


def table() -> Table:
    return Table(X, ["x"], COUNTS)


def test_risk_by_record():
    (found,) = record_risk(synthesizer(), table())
    assert found.level.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.records.tolist() == COUNTS[:6].tolist()
    assert (found.used <= 1).all()
    assert found.weight[5] < found.weight[2]
    assert "records" not in repr(found).split("RecordRisk")[1].split("level")[0]
    with pytest.raises(DataError, match="confidential"):
        copy.copy(found)


def test_quantiles_of_levels():
    attribute = X.attribute("x")
    assert level_quantile(attribute, np.array([0, 0, 10, 0, 0, 0, 0]), 0.5) == pytest.approx(6.5)
    assert level_quantile(attribute, COUNTS, 1.0) == 36
    uniform = np.array([1, 3, 5, 7, 9, 11, 364])
    assert level_quantile(attribute, uniform, 0.25) == pytest.approx(100)


def test_curve_of_three_mechanisms(tmp_path):
    kept, steps = tmp_path / "curve.jsonl", []
    ask = {
        "bounds": ["1/4", 4],
        "local": [(1.0, 0.0), (0.5, 0.0)],
        "replicates": 10,
        "results": kept,
    }
    measure = Measure("x", 0.9)
    with telling(steps.append):
        rows = risk_utility_curve(
            synthesizer(), table(), measure, randomness=SeededRandomness(4), **ask
        )
    assert [step.share for step in steps] == [point / 6 for point in range(6)]
    by = {(row["mechanism"], *row["setting"].values()): row for row in rows}
    assert by["certified", "1/4"]["epsilon"] == by["scalar", "1/4"]["epsilon"] == 0.5
    assert by["certified", "4"]["rms_error"] < by["scalar", "1/4"]["rms_error"]
    assert by["certified", "4"]["basis"] == "theorem"
    assert by["local", 1.0, 0.0]["basis"] == LABEL
    assert by["local", 0.5, 0.0]["epsilon"] < by["local", 1.0, 0.0]["epsilon"]
    lines = kept.read_text().splitlines()
    assert "NOT covered" in json.loads(lines[0])["note"]
    # interrupted while writing the last point: the others are not computed again
    kept.write_text("\n".join([*lines[:-1], lines[-1][:20]]))
    again = risk_utility_curve(
        synthesizer(), table(), measure, randomness=SeededRandomness(9), **ask
    )
    assert again[:-1] == rows[:-1]
    assert again[-1]["setting"] == rows[-1]["setting"]
    assert len(kept.read_text().splitlines()) == len(lines)
    with pytest.raises(DataError, match="of another plan, measure"):
        risk_utility_curve(synthesizer(), table(), Measure("x"), **ask)
    narrower = NormalColumn(Grid(1, 6, 26), Grid(0.5, 3, 15), "root")
    with pytest.raises(DataError, match="of another plan, measure"):
        risk_utility_curve(synthesizer(narrower), table(), measure, **ask)
    one_more = Table(X, ["x"], COUNTS + np.eye(7, dtype=int)[3])
    with pytest.raises(DataError, match="measured against other data"):
        risk_utility_curve(synthesizer(), one_more, measure, **ask)
    first = json.loads(lines[0])
    assert len(bytes.fromhex(first["key"])) == 32  # the fingerprint is under a key of its own
    kept.write_text(json.dumps(first | {"key": None}) + "\n")
    with pytest.raises(DataError, match="measured against other data"):
        risk_utility_curve(synthesizer(), table(), measure, **ask)


def test_standard_errors_of_a_curve():
    """Against the spread of many runs of as many replicates."""
    rng = np.random.default_rng(3)
    runs = [summary(np.abs(rng.normal(size=40))) for _ in range(400)]
    for value, error in (("mean_error", "mean_se"), ("rms_error", "rms_se")):
        spread = np.std([one[value] for one in runs])
        five_errors = 5 / np.sqrt(2 * len(runs))
        assert np.mean([one[error] for one in runs]) == pytest.approx(spread, rel=five_errors)
    assert summary([2.0])["rms_se"] is None
    assert summary([0.0, 0.0])["rms_se"] == 0


def test_curve_of_a_multinomial():
    rows = risk_utility_curve(
        synthesizer(MultinomialColumn()),
        table(),
        Measure("x"),
        bounds=[4],
        local=[(1.0, 0.0)],
        replicates=5,
        randomness=SeededRandomness(4),
    )
    assert rows[0]["mean_error"] < 0.1  # one weight per record and one for all are the same here
    with pytest.raises(GuaranteeError, match="no points"):
        risk_utility_curve(synthesizer(), table(), Measure("x"))


def test_curve_with_columns_given_others():
    schema = Schema.from_dict({"g": {"levels": ["a", "b"]}, "k": {"integers": [0, 5]}})
    columns = (Column("g"), Column("k", PoissonColumn(Grid(0.5, 4, 8)), given=("g",)))
    one = Synthesizer(ReplaceOne(schema), columns, Fraction(1))
    data = Table(schema, ["g", "k"], np.array([[30, 40, 20, 5, 1, 0], [2, 9, 20, 30, 9, 5]]))
    rows = risk_utility_curve(
        one,
        data,
        Measure("k", 0.5),
        bounds=[2],
        local=[(1, 0)],
        replicates=5,
        randomness=SeededRandomness(4),
    )
    assert [row["mechanism"] for row in rows] == ["certified", "scalar", "local"]
