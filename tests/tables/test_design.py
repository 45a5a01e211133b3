"""Designs against a general solver, their certificates against the true optimum."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from congenial import AddRemove, Figures, ReplaceOne, Schema, SemiAdjacent, margin
from congenial.data.workload import Workload
from congenial.errors import PlanError, StructureError
from congenial.pairs.difference_types import DifferenceTypes, difference_types
from congenial.tables.aims import LargestRatio, PowerMean
from congenial.tables.design import (
    Even,
    Keep,
    Largest,
    Weighted,
    design,
    design_for_accuracy,
    loss_of,
)
from congenial.tables.information import Information
from congenial.tables.optimise import DesignCertificate, Problem, certify, solve
from tests.pairs.test_difference_types import COUNTY_FIGURES, COUNTY_TABLES, counties
from tests.worlds import schema_of

HALF = Fraction(1, 2)


def world(schema, tables, statements=()):
    """Workload, types and variances of tables under figures."""
    work, figures = Workload.of(schema, tables), Figures(schema, statements)
    return work, difference_types(SemiAdjacent(figures), work), Information.of(work, figures)


def flat():
    schema = schema_of(x=2, y=3, z=4)
    tables = [["x", "y", "z"], ["x", "y"], ["y", "z"], ["x"], ["z"]]
    return world(schema, tables, (margin("x"),))


def several_types():
    """A table that the figures nearly tell, beside others: more than one maximal type."""
    schema = schema_of(g=[0, 0, 1, 1, 1, 2], x=2, y=3)
    tables = [["g", "x", "y"], ["g_wide", "x", "y"], ["x", "y"], ["g", "x"]]
    return world(schema, tables, (margin("g"), margin("x")))


def problem_of(types, model, objective):
    squares = np.array(types.squares, dtype=float)
    open_ = squares.any(axis=0)
    return Problem(model, squares[:, open_], open_, objective(len(open_), open_))


OBJECTIVES = {
    "sum": lambda n, open_: PowerMean.total(np.where(open_, np.linspace(1, 2, n), 0)),
    "even": lambda n, open_: PowerMean.geometric(open_ / open_.sum()),
    "between": lambda n, open_: PowerMean(open_ / open_.sum(), np.linspace(1, 3, n), 0.2),
    "largest": lambda n, open_: LargestRatio(np.where(open_, np.linspace(1, 2, n), 0)),
}


def optimum(problem):
    """The least error by a general method on the parameters themselves, from several starts."""
    best = np.inf
    rng, size = np.random.default_rng(3), problem.types.shape[1]
    for _ in range(6):
        start = rng.dirichlet(np.ones(size)) / problem.types.max(axis=0)
        start /= (problem.types @ start).max()
        limits = {"type": "ineq", "fun": lambda x: 1 - problem.types @ x}
        found = minimize(
            lambda x: np.log(problem.value(np.maximum(x, 1e-12))),
            start,
            method="SLSQP",
            bounds=[(1e-9, None)] * size,
            constraints=[limits],
            options={"maxiter": 500, "ftol": 1e-13},
        )
        x = np.maximum(found.x, 1e-12)
        best = min(best, problem.value(x / max(1, (problem.types @ x).max())))
    return best


@pytest.mark.parametrize("where", [flat, several_types])
@pytest.mark.parametrize("aim", OBJECTIVES)
def test_the_best_and_its_certificate_equal_a_general_solver(where, aim):
    _, types, model = where()
    problem = problem_of(types, model, OBJECTIVES[aim])
    x = solve(problem)
    best = optimum(problem)
    value = problem.value(x)
    assert np.all(problem.types @ x <= 1 + 1e-12)
    assert value == pytest.approx(best, rel=2e-4)
    share = certify(problem, x).share
    assert 0.999 < share <= 1 + 1e-9
    assert value * share <= best * (1 + 1e-6)


def test_several_types_are_several():
    assert len(several_types()[1].squares) > 1


@pytest.mark.parametrize("where", [flat, several_types])
@pytest.mark.parametrize("aim", OBJECTIVES)
def test_the_certificate_of_a_poor_design_is_true(where, aim):
    """Far from the best the proof still holds: never above the share that the best has."""
    _, types, model = where()
    problem = problem_of(types, model, OBJECTIVES[aim])
    best, rng = optimum(problem), np.random.default_rng(4)
    for _ in range(5):
        x = rng.dirichlet(np.ones(problem.types.shape[1]))
        x /= (problem.types @ x).max()
        share = certify(problem, x).share
        assert share * problem.value(x) <= best * (1 + 1e-6)
        assert share < 0.999


def test_multipliers_that_prove_nothing_are_noticed():
    _, types, model = flat()
    problem = problem_of(types, model, OBJECTIVES["sum"])
    x = solve(problem)
    honest = certify(problem, x)
    smaller = replace(honest, types=tuple(0.99 * value for value in honest.types))
    assert honest.recomputed(problem, x) == pytest.approx(honest.share)
    assert smaller.recomputed(problem, x) == 0
    largest = problem_of(types, model, OBJECTIVES["largest"])
    proof = certify(largest, solve(largest))
    swollen = replace(proof, tables=tuple(1.1 * value for value in proof.tables))
    assert swollen.recomputed(largest, solve(largest)) == 0


# ---- aims ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("aim", [Keep(), Even(), Weighted((1, 2, 0.5, 1, 3)), Largest()])
@pytest.mark.parametrize("law", ["gaussian", "geometric"])
def test_parameters_keep_the_promise_in_rational_arithmetic(aim, law):
    work, types, model = flat()
    promise = Fraction(1, 3)
    found = design(work, types, model, promise, aim, law)
    assert found.feasible()
    assert loss_of(types, law, found.parameters) > promise * (1 - Fraction(1, 2**20))
    assert found.parameters[3] == 0  # the figures tell it
    if law == "gaussian":
        assert found.certified_share(model) == pytest.approx(found.certificate.share)
        assert found.certificate.share > 0.999
    else:
        assert found.certificate is None
        assert "no certificate" in found.words
    spent = replace(found, promise=promise * (1 - Fraction(1, 2**20)))
    assert not spent.feasible()
    assert spent.certified_share(model) == 0


def test_the_default_keeps_the_finest_table_and_makes_every_other_better():
    schema, figures = counties(), Figures(counties(), COUNTY_FIGURES)
    work = Workload.of(schema, COUNTY_TABLES)
    types = difference_types(SemiAdjacent(figures), work)
    found = design(work, types, Information.of(work, figures), HALF)
    errors = dict(zip(map(tuple, COUNTY_TABLES), found.relative_errors, strict=True))
    assert errors["county", "sex", "age"] == pytest.approx(1.045, abs=2e-3)
    assert max(found.relative_errors[1:]) < 1
    assert max(errors["state", "sex", "age"], errors["state", "age"]) < 0.5
    assert errors["age",] < 0.3  # of 300 counties
    assert found.certificate.share > 0.999


def test_the_default_with_pure_epsilon():
    """The finest table keeps its share; what is left goes where it buys something."""
    schema, figures = counties(), Figures(counties(), COUNTY_FIGURES)
    work = Workload.of(schema, COUNTY_TABLES)
    types = difference_types(SemiAdjacent(figures), work)
    found = design(work, types, Information.of(work, figures), HALF, law="geometric")
    assert max(found.relative_errors) <= 1.0451
    assert min(found.relative_errors) < 0.95
    assert float(found.parameters[0]) * 6 == pytest.approx(0.5 / 1.045, rel=1e-6)


def test_several_finest_tables_are_all_kept():
    schema = schema_of(v0=2, v1=3, v2=4, v3=5)
    tables = [*combinations(schema.names, 2), *((name,) for name in schema.names)]
    work = Workload.of(schema, tables)
    types = difference_types(AddRemove(schema), work)
    model = Information.of(work, Figures(schema), people_kept=False)
    errors = design(work, types, model, HALF).relative_errors
    assert errors[:6] == pytest.approx([1.045] * 6, abs=0.02)
    assert max(errors[6:]) < 1


COUNTIES = (  # of each of 51 states, 3,143 in all
    "67 29 15 75 58 64 8 3 1 67 159 5 44 102 92 99 105 120 64 16 24 14 83 87 82 115 56 93 17 10 21 "
    "33 62 100 53 88 77 36 67 5 46 66 95 254 29 14 134 39 55 72 23"
)


def nation():
    """The counties of 2010 by sex and 23 ages; total, female and voting age of each are exact."""
    states = [str(s) for s, number in enumerate(COUNTIES.split()) for _ in range(int(number))]
    levels = [str(i) for i in range(len(states))]
    schema = Schema.from_dict(
        {
            "county": {"levels": levels, "within": {"state": states}},
            "sex": {"levels": ["f", "m"]},
            "age": {"integers": [0, 22]},
        }
    )
    return world(schema, COUNTY_TABLES, COUNTY_FIGURES)


def test_even_makes_states_five_and_the_nation_thirty_times_as_good():
    """Cells at most 1.8 times as wide; counting every table once, a state table would miss it."""
    work, types, model = nation()
    found = design(work, types, model, HALF, Even())
    cells, _, *states, _, age = found.relative_errors
    assert cells == pytest.approx(1.78, abs=0.02)
    assert max(states) < 1 / 5
    assert age < 1 / 30
    assert found.certificate.share > 0.999
    once = problem_of(types, model, OBJECTIVES["even"])
    assert max(np.sqrt(once.variances(solve(once)) / found.single)[2:4]) > 1 / 5


def test_even_leaves_the_finest_table_as_good_as_the_geometric_mean_does():
    """Where that is not much wider than alone: tables that count more cannot take from it."""
    schema, figures = counties(), Figures(counties(), COUNTY_FIGURES)
    work = Workload.of(schema, [COUNTY_TABLES[b] for b in (0, 2, 5)])
    types = difference_types(SemiAdjacent(figures), work)
    model = Information.of(work, figures)
    once = problem_of(types, model, OBJECTIVES["even"])
    found = design(work, types, model, HALF, Even())
    least = np.sqrt(once.variances(solve(once)) / found.single)
    assert 1 < least[0] < 1.76
    assert found.relative_errors[0] == pytest.approx(least[0], rel=0.02)
    assert found.relative_errors[1] < least[1]  # three pairs of attributes against none


def test_weights_count_variances_relative_to_the_single_release():
    """Against a general solver; weights relative to something else would be noticed."""
    work, types, model = flat()
    weights = (1.0, 2.0, 0.5, 1.0, 3.0)
    found = design(work, types, model, HALF, Weighted(weights))
    open_ = np.array(types.squares).any(axis=0)
    first = np.full(5, 1e-13) + np.eye(5)[0] / types.squares[0][0]
    single = model.variances(np.where(open_, first, 0))

    def error(parameters):
        return sum(
            w * v / s
            for w, v, s, o in zip(weights, model.variances(parameters), single, open_, strict=True)
            if o
        )

    factors = np.where(open_, np.array(weights) / np.where(open_, single, 1), 0)
    problem = problem_of(types, model, lambda n, o: PowerMean.total(factors))
    unit = np.array([float(value) for value in found.parameters])
    assert error(unit) == pytest.approx(optimum(problem), rel=1e-3)  # rho = 1/2: C p <= 1
    planted = design(work, types, model, HALF, Weighted(weights, absolute=True))
    unit = np.array([float(value) for value in planted.parameters])
    assert error(unit) > optimum(problem) * 1.01
    scaled = design(work, types, model, HALF, Weighted(tuple(7 * w for w in weights)))
    assert scaled.variances == pytest.approx(found.variances, rel=1e-3)


@pytest.mark.parametrize("law", ["gaussian", "geometric"])
def test_the_least_promise_that_meets_accuracies(law):
    work, types, model = flat()
    limits = {0: 9.0, 4: 2.0}
    found = design_for_accuracy(work, types, model, limits, law)
    assert all(found.variances[table] <= limit for table, limit in limits.items())
    assert max(found.variances[table] / limit for table, limit in limits.items()) > 0.9999
    assert found.feasible()
    if law == "gaussian":
        assert found.certificate.share > 0.999


def test_a_large_promise_of_a_single_table_is_all_its_own():
    schema = schema_of(x=2, y=3)
    work, types, model = world(schema, [["x", "y"]])
    found = design(work, types, model, HALF)
    assert found.relative_errors == pytest.approx((1.0,))
    assert float(found.parameters[0]) == pytest.approx(0.5)  # sum c p = 2 rho, c = 2


# ---- ResidualPlanner -----------------------------------------------------------------------------


def residual_planner(sizes, tables, weights):
    """Least weighted sum of mean variances over all Gaussian mechanisms, add/remove, C p <= 1.

    Information I_A on each residual subspace costs I_A d_A / N and leaves the variance d_A / I_A:
    by Cauchy and Schwarz the least sum of v_A / I_A is (sum_A sqrt(v_A d_A / N))^2.
    """
    subsets = {a for t in tables for k in range(len(t) + 1) for a in combinations(t, k)}
    total = 0.0
    for a in subsets:
        dimension = np.prod([sizes[i] - 1 for i in a])
        above = [t for t in tables if set(a) <= set(t)]
        # m_b / size_b = N / size_b^2, and N cancels against the cost
        v = sum(weights[tables.index(t)] / np.prod([sizes[i] for i in t]) ** 2 for t in above)
        total += dimension * np.sqrt(v)
    return total**2


def test_without_figures_no_design_beats_the_best_gaussian_mechanism():
    sizes = (2, 3, 4, 5, 7)
    schema = schema_of(**{f"v{i}": size for i, size in enumerate(sizes)})
    tables = [t for k in (3, 2, 1) for t in combinations(range(5), k)]
    work = Workload.of(schema, [[f"v{i}" for i in t] for t in tables])
    types = difference_types(AddRemove(schema), work)
    model = Information.of(work, Figures(schema), people_kept=False)
    cells = [float(np.prod([sizes[i] for i in t])) for t in tables]
    for weights in ([1.0] * len(tables), cells):
        found = design(work, types, model, HALF, Weighted(tuple(weights), absolute=True))
        error = float(np.dot(weights, found.variances))
        best = residual_planner(sizes, tables, weights)
        assert 1 <= error / best < 1.15
        assert found.certificate.share > 0.999


def test_one_table_is_as_good_as_the_best_gaussian_mechanism():
    schema = schema_of(x=3, y=4)
    work = Workload.of(schema, [["x", "y"]])
    model = Information.of(work, Figures(schema), people_kept=False)
    found = design(work, difference_types(AddRemove(schema), work), model, HALF)
    assert found.variances[0] == pytest.approx(residual_planner((3, 4), [(0, 1)], [1.0]))


# ---- what cannot be ------------------------------------------------------------------------------


def test_tables_that_the_figures_tell_leave_nothing_to_measure():
    schema = schema_of(x=2, y=3)
    work, types, model = world(schema, [["x"], []], (margin("x"),))
    with pytest.raises(StructureError, match="nothing is left to measure"):
        design(work, types, model, HALF)
    with pytest.raises(PlanError, match="tell every table"):
        design_for_accuracy(work, types, model, {0: 1.0})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ((0, 1, 1, 1, 1), "weight of table 1 is 0, and must be positive. Leave out a table"),
        ((1, 1, 1, 0, 1), "weight of table 4 is 0"),  # told by figures: as plans have it
        ((1, 1), "2 weights for 5 tables"),
        ((1, -1, 1, 1, 1), "weight of table 2 is -1"),
        ((1, float("nan"), 1, 1, 1), "weight of table 2 is nan"),
    ],
)
def test_weights_that_mean_nothing_are_refused(weights, message):
    work, types, model = flat()
    with pytest.raises(PlanError, match=message):
        design(work, types, model, HALF, Weighted(weights))


def test_promises_and_accuracies_of_zero_are_refused():
    work, types, model = flat()
    with pytest.raises(PlanError, match=r"promise = .* is not a positive fraction"):
        design(work, types, model, Fraction(0))
    with pytest.raises(PlanError, match="variance of 0"):
        design_for_accuracy(work, types, model, {0: 0.0})


def test_a_bound_can_be_designed_for():
    """Types may be a bound: then the promise is one, and the certificate says at which price."""
    schema = schema_of(x=2, y=3)
    work = Workload.of(schema, [["x", "y"], ["y"]])
    types = DifferenceTypes(work.tables, 2, ((8, 8),), ((4, 4),), False, "bound", "planned", 1)
    model = Information.of(work, Figures(schema))
    found = design(work, types, model, HALF)
    exact = design(work, difference_types(ReplaceOne(schema), work), model, HALF)
    assert found.feasible()
    assert sum(found.parameters) < sum(exact.parameters)
    assert isinstance(found.certificate, DesignCertificate)
    assert "at the price used" in found.words
