"""Estimates from several tables that were drawn together: one best estimate, and its errors."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

import congenial as cg
from congenial.errors import CongenialError, InferenceError
from congenial.inference import cell_estimates, estimate
from congenial.inference.estimates.combined_estimates import MANY, CombinedEstimates
from congenial.inference.estimates.table_tests import carry_out_test
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.tables_calibration import calibrate_tables
from tests.inference.test_estimates import AXES, COUNTS, FIGURES, RELEASE, SCHEMA, SEED, one
from tests.tables.settings import dense

ALPHA = 1e-6  # false-alarm rate of each level


def several(seed=1):
    table = cg.Table(SCHEMA, AXES, COUNTS)
    under = cg.SemiAdjacent(cg.publish(table, *FIGURES))
    tables = [("county", "sex", "age"), ("state", "age"), ("age",)]
    scales = [Fraction(9), Fraction(16), Fraction(25)]
    mechanism = MeasuredTables.of(under, tables, "discrete_gaussian", scales)
    return mechanism.release(table, cg.SeededRandomness(SEED + seed), name="several")


def test_several_tables_answer_as_one_best_estimate():
    release = several()
    cells = release.estimate("count() by county, sex, age")
    assert [e.value for e in cells] == pytest.approx(release.estimates[0].reshape(-1).tolist())
    found = one("count(age < 18)", release)
    assert found.value == pytest.approx(release.estimated_count("age < 18"))
    assert found.sd == pytest.approx(release.deviation("age < 18"), rel=0.05)
    assert found.low <= COUNTS[:, :, 0].sum() <= found.high
    assert one("count(sex = 'f')", release).method == "published exactly"
    assert one("share(sex = 'f' | age < 18)", release).method.startswith("inversion")
    both = one("count(age < 18)", [release, RELEASE])
    assert both.sd <= found.sd * 1.01
    with pytest.raises(InferenceError, match=r"^'several' and 'several' are the same release"):
        estimate([release, release], "count(age < 18)")


def test_errors_of_several_tables_have_the_stated_covariance():
    source = cell_estimates(several())
    weights = np.zeros((2, 24))
    weights[0, ::4] = 1  # the youngest
    weights[1, :8] = [1, 2, 3, 4, 0, 0, 0, 0]
    stated = several().estimator.covariance.of(AXES, weights.reshape(2, 3, 2, 4))
    simulated = source.covariance(sp.csr_array(weights))
    assert simulated == pytest.approx(stated, rel=0.08, abs=0.08 * stated.max())


@pytest.mark.parametrize("cells", [4, 24], ids=["of ages", "of all cells"])
def test_errors_of_many_combinations_are_those_of_few(cells):
    """Many are estimated from tables of noise, few by their weights on the tables: one answer."""
    drawn_weights = np.random.default_rng(SEED).integers(-2, 3, (MANY, cells))
    rows = np.tile(drawn_weights, 24 // cells).astype(float)
    source = cell_estimates(several())
    many = source.errors(sp.csr_array(rows), stream=1)
    few = source.errors(sp.csr_array(rows[:7]), stream=1)
    assert many[:, :7] == pytest.approx(few, abs=1e-9)
    assert np.abs(many[:, 7:14] - few).max() > 1  # other rows have other errors


def test_quantiles_of_all_groups_are_asked_for_at_once(monkeypatch):
    asked = []
    for name in ("errors", "known"):
        original = getattr(CombinedEstimates, name)

        def counted(self, weights, *given, _name=name, _original=original):
            asked.append((_name, weights.shape[0]))
            return _original(self, weights, *given)

        monkeypatch.setattr(CombinedEstimates, name, counted)
    assert len(estimate(several(), "median(age) by county")) == 3
    assert sorted(asked) == [("errors", 12), ("known", 3)]


# ---- tables of which none has the cells of all others --------------------------------------------

BY_COUNTY = (cg.total(by="county"),)
APART = [("county", "sex"), ("sex", "age"), ("state",)]


def apart(seed=1, figures=BY_COUNTY, tables=APART):
    table = cg.Table(SCHEMA, AXES, COUNTS)
    under = cg.SemiAdjacent(cg.publish(table, *figures)) if figures else cg.ReplaceOne(SCHEMA)
    scales = [Fraction(9 + i) for i in range(len(tables))]
    mechanism = MeasuredTables.of(under, tables, "discrete_gaussian", scales)
    return mechanism.release(table, cg.SeededRandomness(SEED + seed), name="apart")


QUESTIONS = {
    "count(age < 18)": COUNTS[:, :, 0].sum(),
    "share(sex = 'f' | age >= 65)": COUNTS[:, 0, 3].sum() / COUNTS[:, :, 3].sum(),
    "share(sex = 'f' | county = 'B')": COUNTS[1, 0].sum() / COUNTS[1].sum(),
    "count(sex = 'm' and county = 'A') - count(sex = 'f' and county = 'A')": (
        COUNTS[0, 1].sum() - COUNTS[0, 0].sum()
    ),
    "count(sex = 'f' and state = 'X')": COUNTS[:2, 0].sum(),
}


def test_a_question_is_answered_from_a_printed_table_that_shows_it():
    """Values and errors are those of the bundle's files."""
    release = apart()
    for names in APART:
        found = estimate(release, f"count() by {', '.join(names)}")
        shape = release.estimates_of(*names).shape
        assert [e.value for e in found] == pytest.approx(release.estimates_of(*names).reshape(-1))
        stated = release.estimator.deviations(names).values
        assert np.reshape([e.sd for e in found], shape) == pytest.approx(stated, rel=0.05)
    assert one("count() ", release).method == "published exactly"
    assert one("count(county = 'A')", release).method == "published exactly"


def test_intervals_from_tables_that_share_no_finest_one_keep_their_level():
    print("seed", SEED)
    inside = np.array(
        [
            [e.low <= truth <= e.high for e, truth in zip(found, QUESTIONS.values(), strict=True)]
            for found in (estimate(apart(seed), [*QUESTIONS], 0.9) for seed in range(2, 42))
        ]
    )
    assert stats.binom.cdf(inside.sum(), inside.size, 0.9) >= ALPHA
    assert inside.mean() < 0.97  # a question is not answered by anything at all
    naive = np.array(
        [
            abs(release.estimates[1][0, 0] - COUNTS[:, 0, 0].sum()) <= 1.645 * 1
            for release in map(apart, range(2, 42))
        ]
    )
    assert stats.binom.cdf(naive.sum(), naive.size, 0.9) < ALPHA  # a smaller error is noticed


def test_several_questions_of_several_tables_hold_together():
    found = estimate(apart(), [*QUESTIONS], jointly=True)
    alone = estimate(apart(), [*QUESTIONS])
    assert all(a.low >= b.low and a.high <= b.high for a, b in zip(alone, found, strict=True))


def test_what_no_table_shows_is_refused_with_what_can_be_asked():
    listed = "county x sex; sex x age; state"
    for what in ("count(sex = 'f' and age < 18) by county", "count() by county, sex, age"):
        with pytest.raises(
            InferenceError, match=f"no table of 'apart' shows age, county, sex together.*{listed}"
        ):
            estimate(apart(), what)
    coarse = apart(figures=(cg.total(),), tables=[("state", "sex"), ("sex", "age")])
    with pytest.raises(InferenceError, match=r"shows county, sex .*state x sex; sex x age"):
        estimate(coarse, "count(sex = 'f') by county")
    with pytest.raises(InferenceError, match=listed):
        estimate(apart(), lambda table: table.sum())
    with pytest.raises(CongenialError, match="unknown"):
        estimate(apart(), "count(unknown = 'x')")


def test_two_such_releases_are_compared_and_combined():
    earlier, later = apart(1), apart(2)
    found = one("change(share(sex = 'f' | age < 18))", [earlier, later])
    assert found.low <= 0 <= found.high
    both = one("count(age < 18)", [earlier, later])
    assert both.sd < 0.8 * one("count(age < 18)", earlier).sd
    finer = one("count(age < 18 and county = 'A' and sex = 'f')", [earlier, several()])
    assert finer.low <= COUNTS[0, 0, 0] <= finer.high
    with pytest.raises(InferenceError, match="are the same release"):
        estimate([earlier, earlier], "count(age < 18)")


def test_tests_are_carried_out_on_a_table_that_shows_their_columns():
    found = carry_out_test(apart(), "independent(sex, age)")
    assert 0 <= found.p_value <= 1
    with pytest.raises(InferenceError, match="no table of 'apart' shows age, county, sex together"):
        carry_out_test(apart(), "independent(sex, age | county = 'A')")


# ---- intervals under pure epsilon ----------------------------------------------------------------

DRAWS = 20_000


@lru_cache
def under_pure_epsilon():
    """Two tables at epsilon = 1/10, counts so large that no interval is cut, and one cell."""
    schema = cg.Schema.from_dict({"a": {"levels": list("pqr")}, "b": {"levels": ["x", "y"]}})
    table = cg.Table(schema, schema.names, [[4000, 5000], [6000, 7000], [3000, 2000]])
    under = cg.SemiAdjacent(cg.publish(table, cg.total()))
    made = calibrate_tables(cg.Guarantee.pure("1/10", under=under), [["a", "b"], ["a"]])
    release = made.release(table, cg.SeededRandomness(SEED), "pure")
    work = release.estimator.measurements
    oracle, source = dense(work, table), cg.SeededRandomness(SEED + 1)
    shares = oracle.inverse(work.precisions)[0]  # of every table's noise in the cell's error
    errors = np.zeros(DRAWS)
    for part, m, p in zip(made.mechanisms, oracle.maps, work.precisions, strict=True):
        errors += part.noise(source, DRAWS).reshape(DRAWS, -1) @ (p * m @ shares)
    return release, errors


@pytest.mark.parametrize("level", [0.9, 0.99, 0.999])
def test_intervals_under_pure_epsilon_keep_their_level(level):
    release, errors = under_pure_epsilon()
    found = release.interval("a = 'p' and b = 'x'", level)
    reach = (found.high - found.low) / 2 + 1  # ends are rounded, and cells reach to their counts
    inside = int(np.count_nonzero(np.abs(errors) <= reach))
    assert stats.binom.cdf(inside, DRAWS, level) > ALPHA
    assert errors.std() == pytest.approx(release.deviation("a = 'p' and b = 'x'"), rel=0.05)


@pytest.mark.parametrize("level", [0.9, 0.99])
def test_interval_and_estimate_agree_under_pure_epsilon(level):
    release, _ = under_pure_epsilon()
    found = release.interval("a = 'p' and b = 'x'", level)
    asked = one("count(a = 'p' and b = 'x')", release, level=level)
    assert (found.low, found.high) == pytest.approx((asked.low, asked.high), abs=1)
