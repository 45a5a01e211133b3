"""Covariances against dense ones, and in simulation with exact integer noise."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import chi2, norm

from congenial import Figures, SeededRandomness, margin, publish, total
from congenial.data.workload import Workload
from congenial.errors import StructureError
from congenial.figures.support import support
from congenial.sampling.choice import TablePart, choose
from congenial.sampling.discrete import cell_law
from congenial.sampling.lattice_gaussian import CrossingGaussian
from congenial.tables import covariance as module
from congenial.tables import gradient_inverse, structure
from congenial.tables.covariance import Covariance
from congenial.tables.gradient_inverse import GradientInverse, LowRankVariances
from congenial.tables.intervals import half_width
from congenial.tables.linear_estimates import estimate, in_order
from congenial.tables.measurements import Measurements
from tests.tables.settings import CELLS, SCHEMA, SETTINGS, confidential, dense, measurements

ALPHA = 1e-6
SIGMAS = float(norm.isf(ALPHA / 2 / 30))  # at most 30 cells are judged at once


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_deviations_are_those_of_the_dense_inverse(setting):
    work, table = measurements(setting)
    oracle = dense(work, table)
    inverse = oracle.inverse(work.precisions)
    for names, matrix in zip(setting.tables, oracle.maps, strict=True):
        expected = np.sqrt(np.maximum(np.diag(matrix @ inverse @ matrix.T), 0))
        found = Covariance(work).deviations(names)
        assert np.allclose(found.values.reshape(-1), expected, atol=1e-5)
        assert found.basis == "bound"


@pytest.mark.parametrize("setting", SETTINGS[::3], ids=lambda one: one.name)
def test_covariances_of_linear_combinations(setting):
    work, table = measurements(setting)
    oracle = dense(work, table)
    names, matrix = setting.tables[0], oracle.maps[0]
    weights = np.random.default_rng(1).standard_normal((3, len(matrix)))
    rows = weights @ matrix
    expected = rows @ oracle.inverse(work.precisions) @ rows.T
    shape = [SCHEMA.axis(name).size for name in names]
    assert np.allclose(Covariance(work).of(names, weights.reshape(3, *shape)), expected, atol=1e-5)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_one_inverse_of_coarser_cells_and_figures_gives_every_variance(setting):
    work, table = measurements(setting)
    found = LowRankVariances.of(GradientInverse(work, "asked for"))
    if not any(work.margins[b].size == work.size for b in work.measured):
        assert found is None
        return
    oracle = dense(work, table)
    inverse = oracle.inverse(work.precisions)
    for names, matrix in zip(setting.tables, oracle.maps, strict=True):
        expected = np.diag(matrix @ inverse @ matrix.T)
        ours = in_order(found.variances(work.margin(names)), names, work).reshape(-1)
        assert np.allclose(ours, expected, rtol=1e-8, atol=1e-9)
        assert np.all(ours[expected < 1e-9] == 0)  # figures tell these cells


def test_one_inverse_is_used_where_tables_do_not_separate(monkeypatch):
    """No iteration: with one inverse for all cells, none is solved for."""
    monkeypatch.setattr(structure, "LARGEST_CORE", 5)
    monkeypatch.setattr(GradientInverse, "apply", None)
    work, table = measurements(SETTINGS[13])
    expected = np.sqrt(np.diag(dense(work, table).inverse(work.precisions)))
    found = Covariance(work).deviations(CELLS).values.reshape(-1)
    assert np.allclose(found, expected, rtol=1e-8)


def test_a_large_table_that_does_not_separate_gets_a_bound(monkeypatch):
    monkeypatch.setattr(structure, "LARGEST_CORE", 5)
    monkeypatch.setattr(module, "SOLVED", 100)
    monkeypatch.setattr(gradient_inverse, "LARGEST_RANK", 10)
    work, table = measurements(SETTINGS[13])
    oracle = dense(work, table)
    expected = np.sqrt(np.diag(oracle.inverse(work.precisions)))
    found = Covariance(work).deviations(CELLS)
    assert found.basis == "bound"
    assert np.all(found.values.reshape(-1) >= expected - 1e-9)
    assert np.all(found.values.reshape(-1) <= 2 * expected)


# ---- simulation ------------------------------------------------------------------------------

TABLES = [["district", "race"], ["county", "race"], ["race"]]


@lru_cache
def simulated(family, scale, releases):
    """Estimates of many releases with exact noise given total(by county), and the truth."""
    table = confidential(5).marginal(["district", "race"])
    known = publish(confidential(5), total(by="county"))
    variance = cell_law(family, scale).variance
    work = Measurements(Workload.of(SCHEMA, TABLES), (1 / variance,) * 3, known)
    randomness = SeededRandomness(11)
    noise = []
    for names in TABLES:
        labels = support(known, tuple(names)).labels
        part = TablePart(cell_law(family, scale), labels.reshape(-1))
        drawn = choose(part).law.draw_many(randomness, releases)
        noise.append(drawn.reshape(releases, *labels.shape))
    truth = [table.marginal(names).counts for names in TABLES]
    inverse = Covariance(work).inverse
    values = []
    for i in range(releases):
        result = estimate(work, [t + n[i] for t, n in zip(truth, noise, strict=True)], inverse)
        values.append([result.table(names) for names in TABLES])
    errors = [np.array([v[b] for v in values]) - truth[b] for b in range(3)]
    return work, errors


def within(errors, deviations, alpha=ALPHA):
    """Whether sums of squares are chi-squared (normal limit) at alpha, cell by cell."""
    n = len(errors)
    ratio = (errors**2).sum(axis=0) / deviations**2
    cells = ratio.size
    low, high = chi2.ppf(alpha / 2 / cells, n), chi2.ppf(1 - alpha / 2 / cells, n)
    return bool(np.all((low <= ratio) & (ratio <= high)))


def test_simulated_errors_have_the_stated_deviations():
    work, errors = simulated("discrete_gaussian", Fraction(9), 1500)
    for names, error in zip(TABLES, errors, strict=True):
        assert within(error, Covariance(work).deviations(names).values)


def test_a_wrong_weight_or_a_missing_figure_is_caught():
    work, errors = simulated("discrete_gaussian", Fraction(9), 1500)
    heavier = Measurements(work.workload, tuple(1.3 * p for p in work.precisions), work.figures)
    without = Measurements(work.workload, work.precisions, Figures(SCHEMA))
    for wrong in (heavier, without):
        stated = [Covariance(wrong).deviations(names).values for names in TABLES]
        assert not all(within(e, s) for e, s in zip(errors, stated, strict=True))


@pytest.mark.parametrize(
    ("family", "scale"),
    [("discrete_gaussian", Fraction(1, 2)), ("double_geometric", Fraction(1, 2))],
)
def test_bounds_hold_where_noise_is_coarse(family, scale):
    work, errors = simulated(family, scale, 600)
    assert Covariance(work, family).basis == "bound"
    for names, error in zip(TABLES, errors, strict=True):
        stated = Covariance(work, family).deviations(names).values
        spread = np.sqrt((error**2).mean(axis=0))
        slack = 1 + 6 / np.sqrt(600)  # a fourth moment up to nine times the squared variance
        assert np.all(spread <= slack * stated)


def test_intervals_cover():
    work, errors = simulated("discrete_gaussian", Fraction(9), 1500)
    for names, error in zip(TABLES, errors, strict=True):
        stated = Covariance(work).deviations(names).values
        inside = np.abs(error) <= half_width(0.9) * stated
        rate, slack = inside.mean(axis=0), SIGMAS * np.sqrt(0.09 / 1500)
        assert np.all(np.abs(rate - 0.9) <= slack + 0.005)  # .005: noise is whole
        assert np.all((np.abs(error) <= half_width(0.9, "bound") * stated).mean(axis=0) >= 0.97)
        narrow = (np.abs(error) <= 0.8 * half_width(0.9) * stated).mean(axis=0)
        assert np.any(np.abs(narrow - 0.9) > slack + 0.005)  # 20 % too narrow is caught


@pytest.mark.parametrize(("sigma2", "least"), [(Fraction(1, 2), 0.5), (Fraction(4), 0.97)])
def test_the_bound_holds_where_figures_cross(sigma2, least):
    known = publish(confidential(5), margin("district"), margin("race"))
    work = Measurements(Workload.of(SCHEMA, TABLES[:1]), (1 / float(sigma2),), known)
    stated = Covariance(work).deviations(TABLES[0]).values
    noise = CrossingGaussian.of_table((6, 3), sigma2).draw_many(SeededRandomness(8), 4000)
    noise = noise.reshape(-1, 6, 3)
    ratio = (noise.astype(float) ** 2).mean(axis=0) / stated**2
    slack = SIGMAS * np.sqrt(2 / 4000)
    assert np.all(ratio <= 1 + slack)
    assert np.all(ratio >= least - slack)
    assert np.any(ratio > 0.8 * (1 + slack) if least > 0.9 else ratio < 1)


def test_what_the_numbers_rest_on():
    free, _ = measurements(SETTINGS[4])
    crossing, _ = measurements(SETTINGS[1])
    assert Covariance(free, "double_geometric").basis == "exact"
    assert Covariance(crossing, "double_geometric").basis == "simulated"


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan")])
def test_a_level_outside_0_and_1_is_refused(level):
    with pytest.raises(StructureError, match="outside"):
        half_width(level)


def test_weights_of_another_shape_are_refused():
    work, _ = measurements(SETTINGS[0])
    with pytest.raises(StructureError, match="weights of shape"):
        Covariance(work).of(["race"], np.ones((1, 4)))
