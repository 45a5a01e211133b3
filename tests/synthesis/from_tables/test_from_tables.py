"""Junction trees, maximum entropy, whole records and repair, against lists of all cells."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.synthesis.from_tables.figure_targets import FigureCells, repair
from congenial.synthesis.from_tables.junction_tree import JunctionTree
from congenial.synthesis.from_tables.maximum_entropy import LAMBDA, FitTarget, fit
from congenial.synthesis.from_tables.records_from_tables_release import MeasuredTable
from congenial.synthesis.from_tables.records_run import class_link, measured_target
from congenial.synthesis.from_tables.whole_records import Strata, draw_records

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3}
SHAPES = (
    [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")],
    [("a", "b"), ("b", "c"), ("a", "c"), ("d",)],
    [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")],
    [("a",), ("b",)],
    [("a", "b", "c"), ("c", "d", "e")],
)


def _whole(tree: JunctionTree, potentials: list[np.ndarray]) -> np.ndarray:
    """All cells of the product, one by one."""
    names = list(SIZES)
    table = np.zeros(tuple(SIZES.values()))
    for cell in product(*(range(size) for size in SIZES.values())):
        at = dict(zip(names, cell, strict=True))
        table[cell] = sum(
            one[tuple(at[name] for name in clique)]
            for clique, one in zip(tree.cliques, potentials, strict=True)
        )
    return table


@pytest.mark.parametrize("tables", SHAPES)
def test_beliefs_are_sums_over_all_cells(tables: list[tuple[str, ...]]) -> None:
    rng = np.random.default_rng(20261116)
    tree = JunctionTree.of(SIZES, tables)
    potentials = [rng.normal(size=tree.shape(clique)) for clique in tree.cliques]
    potentials[0].reshape(-1)[1] = -np.inf
    weights = np.exp(_whole(tree, potentials))
    log_z, beliefs = tree.beliefs(potentials)
    assert log_z == pytest.approx(np.log(weights.sum()), abs=1e-10)
    for clique, found in zip(tree.cliques, beliefs, strict=True):
        away = tuple(i for i, name in enumerate(SIZES) if name not in clique)
        np.testing.assert_allclose(found, weights.sum(axis=away) / weights.sum(), atol=1e-12)


@pytest.mark.parametrize("tables", SHAPES)
def test_every_table_has_a_clique_and_attributes_stay_connected(
    tables: list[tuple[str, ...]],
) -> None:
    tree = JunctionTree.of(SIZES, tables)
    for table in tables:
        assert set(table) <= set(tree.cliques[tree.home(table)])
    for name in SIZES:  # a clique with it and a parent without it: at most one
        tops = [
            i
            for i, clique in enumerate(tree.cliques)
            if name in clique and name not in tree.separators[i]
        ]
        assert len(tops) == 1


def test_a_clique_that_does_not_fit_is_named() -> None:
    with pytest.raises(StructureError, match="a, b"):
        JunctionTree.of(SIZES, SHAPES[1], largest=10)


def _targets(rng: np.random.Generator) -> tuple[list[FitTarget], np.ndarray]:
    """Figures and noisy tables of one made-up population of 500."""
    truth = rng.multinomial(500, rng.dirichlet(np.full(24, 0.7))).reshape(2, 3, 4)
    ab, bc = truth.sum(axis=2), truth.sum(axis=0)
    women = sp.csr_matrix(np.kron([1, 0], np.ones(3, dtype=np.int64)))
    found = [
        FitTarget(("a", "b"), np.array([float(ab[0].sum())]), 0.0, women),
        FitTarget(("b",), ab.sum(axis=0).astype(float)),
        FitTarget(("a", "b"), ab.reshape(-1) + rng.normal(0, 3, 6), 3.0),
        FitTarget(("b", "c"), bc.reshape(-1) + rng.normal(0, 2, 12), 2.0),
    ]
    return found, truth


def test_fit_equals_the_dual_solved_over_all_cells() -> None:
    """A general solver on the list of all 24 cells finds the same distribution."""
    targets, truth = _targets(np.random.default_rng(7))
    found = fit({"a": 2, "b": 3, "c": 4}, targets, people=500)
    maps = []
    for one in targets:
        rows = []
        for cell in product(range(2), range(3), range(4)):
            at = dict(zip("abc", cell, strict=True))
            shape = tuple({"a": 2, "b": 3, "c": 4}[n] for n in one.axes)
            unit = np.zeros(shape)
            unit[tuple(at[n] for n in one.axes)] = 1
            rows.append(one.seen(unit))
        maps.append(np.array(rows).T)
    M, y = np.vstack(maps), np.concatenate([one.values for one in targets])
    s = np.concatenate([np.full(len(one.values), one.deviation) for one in targets])
    base = np.log(np.repeat(np.tile(targets[1].values / 500, 2), 4))

    def dual(t: np.ndarray) -> tuple[float, np.ndarray]:
        theta = base + M.T @ t
        p = np.exp(theta - theta.max())
        log_z = np.log(p.sum()) + theta.max()
        p /= p.sum()
        ridge = LAMBDA * s**2
        return 500 * log_z - t @ y + (ridge * t * t).sum() / 2, 500 * M @ p - y + ridge * t

    best = minimize(dual, np.zeros(len(y)), jac=True, method="BFGS", options={"gtol": 1e-7})
    theta = base + M.T @ best.x
    p = np.exp(theta - theta.max())
    p = (p / p.sum()).reshape(2, 3, 4)
    np.testing.assert_allclose(found.probabilities(("a", "b")), p.sum(axis=2), atol=2e-5)
    np.testing.assert_allclose(found.probabilities(("b", "c")), p.sum(axis=0), atol=2e-5)
    assert found.residual < 1e-8
    shown = 500 * found.probabilities(("a", "b"))
    assert shown[0].sum() == pytest.approx(truth[0].sum(), abs=1e-5)


def test_figures_that_contradict_each_other_are_refused() -> None:
    one = FitTarget(("a",), np.array([30.0, 70.0]))
    other = FitTarget(("a",), np.array([40.0, 60.0]))
    with pytest.raises(StructureError, match="no distribution fits"):
        fit({"a": 2, "b": 3}, [one, other], people=100)


def test_records_are_within_one_of_what_is_expected_and_strata_are_exact() -> None:
    """Systematic rounding: no cell of the first clique is off by one record or more."""
    targets, truth = _targets(np.random.default_rng(8))
    found = fit({"a": 2, "b": 3, "c": 4}, targets, people=500, first=("a", "b"))
    group = np.tile(np.arange(3), 2)
    strata = Strata(("a", "b"), group, truth.sum(axis=(0, 2)))
    records = draw_records(found, 500, np.random.default_rng(9), strata)
    np.testing.assert_array_equal(np.bincount(records["b"], minlength=3), truth.sum(axis=(0, 2)))
    counts = np.zeros((2, 3))
    np.add.at(counts, (records["a"], records["b"]), 1)
    assert np.abs(counts - 500 * found.probabilities(("a", "b"))).max() < 1
    down = np.zeros((3, 4))
    np.add.at(down, (records["b"], records["c"]), 1)
    assert np.abs(down - 500 * found.probabilities(("b", "c"))).max() < 4  # once for each parent
    assert np.all(down[found.probabilities(("b", "c")) == 0] == 0)


def test_repair_keeps_every_figure_and_changes_few() -> None:
    rng = np.random.default_rng(10)
    columns = {"a": rng.integers(0, 2, 400), "b": rng.integers(0, 3, 400), "c": np.arange(400) % 4}
    cells = np.bincount(columns["a"] * 3 + columns["b"], minlength=6)
    matrix = sp.csr_matrix([[1, 1, 1, 0, 0, 0], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]])
    values = matrix @ cells + np.array([5, -3, 2])
    figures = FigureCells(("a", "b"), (2, 3), matrix, values, np.full(6, 1 / 6))
    made, moved = repair(columns, figures, rng)
    now = np.bincount(made["a"] * 3 + made["b"], minlength=6)
    np.testing.assert_array_equal(matrix @ now, values)
    assert moved <= 5 + 3
    np.testing.assert_array_equal(made["c"], columns["c"])


def test_repair_that_cannot_be_had_is_refused() -> None:
    columns = {"a": np.zeros(5, dtype=np.int64)}
    figures = FigureCells(("a",), (2,), sp.csr_matrix([[2, 2]]), np.array([9]), np.ones(2))
    with pytest.raises(StructureError, match="whole numbers"):
        repair(columns, figures, np.random.default_rng(1))


def test_a_coarser_name_as_a_node_is_the_same_fit() -> None:
    """Pairs by classes: with the classes in the tree, or as sums over the cells of their column."""
    schema = Schema.from_dict(
        {
            "x": {"levels": ["p", "q"]},
            "y": {"integers": [1, 4], "within": {"half": ["low", "low", "high", "high"]}},
            "w": {"levels": ["s", "t", "u"]},
        }
    )
    tables = {
        ("y",): [40, 10, 30, 20],
        ("x", "half"): [[30, 15], [19, 36]],
        ("half", "w"): [[20, 20, 12], [8, 9, 31]],
    }
    measured = [
        MeasuredTable(axes, Fraction(4), np.array(one), "discrete_gaussian")
        for axes, one in tables.items()
    ]
    columns = {name: schema.attribute(name).size for name in schema.names}
    nodes = columns | {"half": 2}
    sums = fit(columns, [measured_target(schema, one) for one in measured], 100)
    told = [measured_target(schema, one, nodes) for one in measured]
    tree = fit(nodes, [class_link(schema, "half"), *told], 100)
    half = schema.axis("half").of_base
    assert tree.probabilities(("y",)) == pytest.approx(sums.probabilities(("y",)), abs=1e-5)
    for column in ("x", "w"):
        whole = sums.probabilities(("y", column))
        by_half = np.stack([whole[half == one].sum(axis=0) for one in range(2)])
        assert tree.probabilities(("half", column)) == pytest.approx(by_half, abs=1e-5)
    drawn = draw_records(tree, 1_000, np.random.default_rng(1))
    assert np.array_equal(drawn["half"], half[drawn["y"]])
