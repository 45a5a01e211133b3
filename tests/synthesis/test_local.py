"""The paper's local mode: its formulas, its label, and how it breaks its own figure."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from congenial.data.schema import Schema
from congenial.errors import DataError, GuaranteeError
from congenial.pairs.adjacency import ReplaceOne
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.certified import certified_law
from congenial.synthesis.local import (
    LABEL,
    LocalEstimate,
    estimate,
    isolation,
    min_max,
    probabilistic,
    risks,
    scalar,
    smooth,
    synthesize_locally,
    threshold,
    truncated,
    weight_spread,
)
from congenial.synthesis.models import LinearRegression, NormalColumn, PoissonColumn
from congenial.synthesis.record_model import Grid

RISK = np.array([1.0, 2.0, 5.0, np.inf])


def test_weightings():
    assert min_max()(RISK).tolist() == [1.0, 0.75, 0.0, 0.0]
    assert min_max(0.5, -0.1)(RISK) == pytest.approx([0.4, 0.275, 0.0, 0.0])
    assert min_max(1.0, 0.2)(RISK) == pytest.approx([1.0, 0.95, 0.2, 0.0])
    assert truncated(min_max(), 1.2)(RISK).tolist() == [1.0, 0.0, 0.0, 0.0]
    assert threshold(5.0)(RISK).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert smooth(RISK) == pytest.approx([1 / 2, 1 / 3, 1 / 6, 0.0])
    assert scalar(4.0)(RISK[:3]) == pytest.approx([0.4] * 3)
    assert scalar(4.0)(RISK).tolist() == [0.0] * 4
    with pytest.raises(DataError, match="same risk"):
        min_max()(np.array([2.0, 2.0]))


def test_risks_take_the_worst_draw():
    table = np.array([[-1.0, 0.5, np.nan], [-3.0, -0.2, -1.0]])
    assert risks(table).tolist() == [3.0, 0.5, np.inf]


def test_isolation_counts_records_outside_a_radius():
    values = np.array([10.0, 11.0, 10.5, 100.0])
    assert isolation(values, 0.2) == pytest.approx([0.75, 0.75, 0.75, 0.25])
    apart = isolation(values, 0.2, groups=["a", "b", "a", "b"])
    assert apart == pytest.approx([1.0, 0.5, 1.0, 0.5])
    assert isolation(values, 0.2, c=0.5, g=0.1) == pytest.approx([0.475, 0.475, 0.475, 0.225])


def test_weights_against_the_oracle(oracles):
    told = json.loads((oracles / "pseudo-posterior.json").read_text())
    cases = {one["id"]: one for one in told}
    case = cases["weights_small_M332"]
    y, theta = np.array(case["inputs"]["y"]), np.array(case["inputs"]["draws"])[:, None]
    table = PoissonColumn().log_likelihood(theta, y)
    weights = truncated(min_max(), case["inputs"]["M"])(risks(table))
    assert weights == pytest.approx(case["output"]["alpha_M"], abs=case["tol"])
    gamma = [0.5 + weights @ y, weights.sum()]
    assert gamma == pytest.approx(case["output"]["gamma_M"], abs=1e-9)
    assert estimate(table, weights).delta == pytest.approx(case["output"]["Delta_M"])
    exceeded = LocalEstimate(1.0, 1000, 9, False, 0).exceeded()
    assert exceeded == pytest.approx(cases["exceed_S1000"]["output"])
    costs = LocalEstimate(10.1, 1000, 6208, False, 0).guarantee(ReplaceOne(SCHEMA), copies=20)
    assert float(costs.tradeoff.eps) == pytest.approx(cases["m_cost_20"]["output"])


SCHEMA = Schema.from_dict({"x": {"integers": [0, 500]}})


def test_figures_of_the_paper_are_computed_and_labelled():
    found = LocalEstimate(3.5, 1000, 400, False, 30)
    assert (found.epsilon, found.safety_factor) == (7.0, 1.10)
    assert LocalEstimate(3.5, 1000, 4000, False, 30).safe_epsilon == pytest.approx(7.35)
    assert LocalEstimate(3.5, 1000, 400, True, 30).epsilon == 14.0
    assert found.downweighted_share == pytest.approx(0.075)
    assert found.downweighted_rate == pytest.approx(1.5)
    assert found.inflated_delta(0.01) == pytest.approx(3.5 * 9)
    assert weight_spread(np.array([0.5, 1.0, 0.0]), np.array([0.4, 1.0, 0.0])) == pytest.approx(
        0.25
    )
    assert weight_spread(np.array([0.5]), np.array([0.0])) == np.inf
    share = probabilistic(np.array([1.0, 2.0, 3.0, 4.0]), epsilon=7.0)
    assert (share.delta, share.label) == (0.25, LABEL)
    assert 0.25 < share.upper() < 1
    assert probabilistic(np.ones(50), 3.0).upper() == pytest.approx(1 - 0.05 ** (1 / 50))
    promise = found.guarantee(ReplaceOne(SCHEMA))
    assert promise.basis == "estimate"
    assert LABEL in promise.explain()
    assert "an estimate, not a guarantee" in promise.explain()
    with pytest.raises(GuaranteeError, match="infinite"):
        LocalEstimate(np.inf, 10, 10, False, 0).guarantee(ReplaceOne(SCHEMA))


def test_densities_above_one_need_twice_as_much():
    """N(0, .1^2): |log p| alone misses half of what a replaced record can do (appendix A.3)."""
    theta, y = np.array([[0.0, 0.1]]), np.array([0.0, 0.2352])
    table = NormalColumn().log_likelihood(theta, y)
    found = estimate(table, np.ones(2))
    assert found.above_one
    assert found.epsilon == pytest.approx(4 * np.abs(table).max())
    assert np.ptp(table) > found.delta


def test_a_run_gives_weights_estimate_and_copies():
    y = np.random.default_rng(0).poisson(100, 300)
    run = synthesize_locally(
        PoissonColumn(),
        y,
        truncated(min_max(), 3.5),
        draws=400,
        copies=3,
        randomness=SeededRandomness(1),
    )
    assert run.label == LABEL
    assert len(run.copies) == 3
    assert all(len(copy) == 300 for copy in run.copies)
    assert 3.0 < run.estimate.delta < 4.5
    assert run.weights.min() >= 0
    rows = np.column_stack([y, y + 3.0])
    fixed = synthesize_locally(
        LinearRegression(ridge=0.1),
        rows,
        np.full(300, 0.5),
        draws=50,
        randomness=SeededRandomness(1),
    )
    assert np.array_equal(fixed.copies[0][:, 0], y)
    with pytest.raises(GuaranteeError, match="as many draws"):
        synthesize_locally(PoissonColumn(), y, min_max(), draws=2, copies=3)


def test_the_local_mode_breaks_its_own_figure():
    """One record replaced moves all min-max weights: the conjugate posteriors of the two databases
    differ by more than 2 Delta of either at every draw; the certified laws of the same data do not.
    """
    print("seed 1")
    generator, model = np.random.default_rng(1), PoissonColumn()
    before = generator.poisson(100, 2000).astype(float)
    before[:200] = before.max()  # a second mode that has weight 0 as long as nobody is further out
    after = before.copy()
    after[-1] = 400.0
    laws, deltas, draws = [], [], []
    for records in (before, after):
        unweighted = model.posterior(records, np.ones(2000), 1000, generator)
        weights = min_max()(risks(model.log_likelihood(unweighted, records)))
        theta = model.posterior(records, weights, 1000, generator)
        deltas.append(estimate(model.log_likelihood(theta, records), weights).delta)
        laws.append(stats.gamma(0.5 + weights @ records, scale=1 / weights.sum()))
        draws.append(theta[:, 0])
    for theta in draws:
        ratio = np.abs(laws[0].logpdf(theta) - laws[1].logpdf(theta))
        assert (ratio > 2 * max(deltas)).mean() > 0.99
    certified = PoissonColumn(Grid(50, 200, 151))
    p, q = (certified_law(certified, x, 1).log_probabilities for x in (before, after))
    assert np.abs(p - q).max() <= 2 + 1e-9
