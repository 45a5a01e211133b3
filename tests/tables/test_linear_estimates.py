"""Estimates of all tables against dense least squares with constraints."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from congenial import Figures, Schema, total
from congenial.errors import DataError, PlanError, StructureError
from congenial.tables import Covariance, Measurements, Workload, estimate, structure
from congenial.tables.gradient_inverse import GradientInverse
from congenial.tables.linear_estimates import choose_inverse
from congenial.tables.tree_inverse import TreeInverse
from tests.tables.settings import CELLS, SCHEMA, SETTINGS, TREE, dense, measurements


def drawn(work, table, oracle, seed=3):
    """Tables with normal noise projected on what the figures leave free of each table."""
    rng = np.random.default_rng(seed)
    values, flat = [], []
    for matrix, precision, names in zip(
        oracle.maps, work.precisions, work.workload.tables, strict=True
    ):
        noise = rng.standard_normal(len(matrix))
        moves = matrix @ oracle.kernel
        noise = moves @ np.linalg.pinv(moves, rcond=1e-10) @ noise
        y = matrix @ oracle.start + (noise / np.sqrt(precision) if precision else 0)
        flat.append(y)
        values.append(y.reshape([SCHEMA.axis(name).size for name in names]))
    return values, flat


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_estimates_are_constrained_least_squares(setting):
    work, table = measurements(setting)
    oracle = dense(work, table)
    values, flat = drawn(work, table, oracle)
    result = estimate(work, values)
    assert result.method == setting.method, result.inverse.reason
    best = oracle.estimate(work.precisions, flat)
    for names, matrix in zip(setting.tables, oracle.maps, strict=True):
        assert np.allclose(result.table(names).reshape(-1), matrix @ best, atol=2e-6)
    residual = result.residual_in_deviations
    assert residual is None or residual < 1e-6


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_tables_agree_with_each_other_and_with_the_figures(setting):
    work, table = measurements(setting)
    oracle = dense(work, table)
    result = estimate(work, drawn(work, table, oracle)[0])
    for fine in work.margins:
        for coarse in work.margins:
            if fine.refines(coarse):
                sums = result.totals(fine)
                for axis, (a, b) in enumerate(zip(fine.partitions, coarse.partitions, strict=True)):
                    blocks = dict(zip(a.blocks, b.blocks, strict=True))
                    parts = np.zeros((b.size, *np.moveaxis(sums, axis, 0).shape[1:]))
                    np.add.at(parts, [blocks[i] for i in range(a.size)], np.moveaxis(sums, axis, 0))
                    sums = np.moveaxis(parts, 0, axis)
                assert np.allclose(sums, result.totals(coarse), atol=1e-6)
    if [] in setting.tables and any(not s.by and s.terms == (("", 1),) for s in setting.figures):
        assert np.isclose(result.table([]), table.counts.sum(), atol=1e-7)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_gradients_give_what_the_passes_give(setting):
    work, table = measurements(setting)
    oracle = dense(work, table)
    values, _ = drawn(work, table, oracle)
    fast, slow = estimate(work, values), estimate(work, values, GradientInverse(work, "asked for"))
    for names in setting.tables:
        assert np.allclose(fast.table(names), slow.table(names), atol=5e-6)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_totals_of_one_table_need_only_its_own_contrasts(setting):
    work, _ = measurements(setting)
    inverse = choose_inverse(work)
    if not isinstance(inverse, TreeInverse):
        pytest.skip("no tree serves here")
    rng = np.random.default_rng(5)
    terms = [
        (work.margins[b], rng.standard_normal((2, *work.margins[b].shape))) for b in work.measured
    ]
    whole = inverse.apply(terms)
    for margin in work.margins:
        assert np.allclose(inverse.totals(terms, margin), whole.totals(margin), atol=1e-12)


def test_a_wrong_weight_is_noticed():
    work, table = measurements(SETTINGS[7])
    oracle = dense(work, table)
    values, flat = drawn(work, table, oracle)
    heavier = (work.precisions[0] * 1.3, *work.precisions[1:])
    wrong = estimate(Measurements(work.workload, heavier, work.figures), values)
    best = oracle.estimate(work.precisions, flat)
    assert not np.allclose(wrong.table(CELLS).reshape(-1), best, atol=1e-3)


def test_a_figure_left_out_is_noticed():
    work, table = measurements(SETTINGS[7])
    oracle = dense(work, table)
    values, flat = drawn(work, table, oracle)
    fewer = Figures(SCHEMA, work.figures.statements[:1], work.figures.values[:1])
    wrong = estimate(Measurements(work.workload, work.precisions, fewer), values)
    best = oracle.estimate(work.precisions, flat)
    assert not np.allclose(wrong.table(CELLS).reshape(-1), best, atol=1e-3)


def test_a_table_that_nothing_determines_is_refused():
    work = Measurements(
        Workload.of(SCHEMA, [["race"], ["district", "race"]]), (1.0, 0.0), Figures(SCHEMA)
    )
    result = estimate(work, [np.zeros(3), None])
    with pytest.raises(StructureError, match="do not determine the table over district, race"):
        result.table(["district", "race"])


def test_the_method_says_why(monkeypatch):
    monkeypatch.setattr(structure, "LARGEST_CORE", 5)
    work, table = measurements(SETTINGS[13])
    inverse = choose_inverse(work)
    assert inverse.method == "conjugate gradients"
    assert "do not nest" in inverse.reason
    values, _ = drawn(work, table, dense(work, table))
    assert 0 < estimate(work, values).residual_in_deviations <= 1e-6


@pytest.mark.parametrize(
    ("precisions", "message"),
    [((1.0,), "1 precisions for 6"), ((0.0,) * 6, "no table"), ((-1.0,) * 6, "precision -1")],
)
def test_precisions_are_checked(precisions, message):
    with pytest.raises(PlanError, match=message):
        Measurements(Workload.of(SCHEMA, TREE), precisions, Figures(SCHEMA))


def test_a_measurement_of_another_shape_is_refused():
    work = Measurements(Workload.of(SCHEMA, [["race"]]), (1.0,), Figures(SCHEMA))
    with pytest.raises(DataError, match=r"shape \(2,\), not \(3,\)"):
        estimate(work, [np.zeros(2)])


def test_figures_without_values_are_refused():
    known = Figures(SCHEMA, (total(),))
    work = Measurements(Workload.of(SCHEMA, [["race"]]), (1.0,), known)
    with pytest.raises(Exception, match="no values yet"):
        estimate(work, [np.zeros(3)])


@pytest.mark.parametrize("names", [["urban", "race"], ["adult"], ["race", "urban", "adult"]])
def test_a_table_that_the_workload_does_not_name(names):
    work, table = measurements(SETTINGS[7])
    oracle = dense(work, table)
    values, flat = drawn(work, table, oracle)
    best = oracle.estimate(work.precisions, flat)
    asked = dense(
        Measurements(Workload.of(SCHEMA, [names, CELLS]), (1.0, 1.0), work.figures), table
    )
    assert np.allclose(estimate(work, values).table(names).reshape(-1), asked.maps[0] @ best)
    variances = np.diag(asked.maps[0] @ oracle.inverse(work.precisions) @ asked.maps[0].T)
    found = Covariance(work).deviations(names).values.reshape(-1)
    assert np.allclose(found, np.sqrt(np.maximum(variances, 0)), atol=1e-6)


def test_a_table_finer_than_every_other_is_refused():
    work = Measurements(Workload.of(SCHEMA, [["county"]]), (1.0,), Figures(SCHEMA))
    with pytest.raises(StructureError, match="cuts the finest cells"):
        work.margin(["urban"])


def test_ten_attributes_of_ten_levels_are_never_written_out():
    """All one- and two-way tables of 1e10 cells: the variances known by hand, and agreement."""
    names = [f"x{i}" for i in range(10)]
    schema = Schema.from_dict({name: {"integers": [1, 10]} for name in names})
    tables = [[], *([one] for one in names), *(list(pair) for pair in combinations(names, 2))]
    work = Measurements(Workload.of(schema, tables), (0.5,) * len(tables), Figures(schema))
    rng = np.random.default_rng(0)
    result = estimate(work, [rng.normal(100, 1, (10,) * len(one)) for one in tables])
    assert result.method == "closed form"
    assert np.allclose(result.table(["x3", "x7"]).sum(axis=0), result.table(["x7"]))
    assert np.allclose(result.table(["x7"]).sum(), result.table([]))
    contrast = 0.9 / (0.5 * (1 + 9 / 10))
    everybody = 1 / (0.5 * (1 + 10 / 10 + 45 / 100)) / 10**2
    found = Covariance(work).deviations(["x7"]).values
    assert np.allclose(found**2, contrast + everybody)
