"""The mixture of regressions as a model: layout, densities, weights, synthesis, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from congenial.errors import DataError, GuaranteeError
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.local import LABEL, LocalEstimate, min_max, risks
from congenial.synthesis.mixture import (
    MixturePrior,
    MixtureRegression,
    Parameters,
    Run,
    indicators,
    synthesize,
)
from congenial.synthesis.mixture.gibbs_chains import diagnose, functionals, start_groups
from congenial.synthesis.record_model import RecordModel

ALPHA = 1e-6
LAX = Run(chains=2, warmup=150, thin=1, r_hat=99, effective=0)
N, K, R = 40, 3, 4


def some_draws(S=5, seed=1):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((S, R, R + 1))
    u = z / np.linalg.norm(z, axis=2, keepdims=True)
    return Parameters(
        np.log(rng.dirichlet(np.ones(K), S)),
        rng.standard_normal((S, K, R)),
        rng.gamma(2, 0.5, (S, K)),
        rng.gamma(2, 1, S),
        rng.gamma(2, 0.5, (S, R)),
        u @ np.swapaxes(u, 1, 2),
    )


def some_records(n=N, seed=2):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.standard_normal((n, 2)), rng.random(n) < 0.3])
    return np.column_stack([x, x[:, 0] + rng.standard_normal(n) * np.where(x[:, 2] > 0, 0.2, 1)])


@pytest.fixture(scope="module")
def fitted():
    """A small fit shared by several tests."""
    model = MixtureRegression(K, run=LAX)
    rows = some_records()
    return model, rows, model.posterior(rows, np.ones(N), 200, np.random.default_rng(3))


def test_it_is_a_model():
    assert isinstance(MixtureRegression(), RecordModel)


def test_rows_and_back():
    p = some_draws()
    back = Parameters.from_rows(p.rows(), K, R)
    for name in p.__dataclass_fields__:
        np.testing.assert_allclose(getattr(back, name), getattr(p, name))
    assert len(p) == 5
    with pytest.raises(GuaranteeError, match="not parameters of 3 components"):
        Parameters.from_rows(p.rows(), K, R + 1)


def test_log_likelihood_equals_the_formula_in_three_weights():
    p, rows = some_draws(), some_records(7)
    w = np.array([1.0, 0.5, 0.0, 0.3, 1.0, 0.9, 0.1])
    design = np.column_stack([np.ones(7), rows[:, :-1]])
    log_n = stats.norm.logpdf(
        rows[:, -1], np.einsum("nr,skr->skn", design, p.beta), p.sigma[:, :, None]
    )
    model = MixtureRegression(K)
    expected = logsumexp(p.log_pi[:, :, None] + w * log_n, axis=1)
    found = model.weighted_log_likelihood(p.rows(), rows, w)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(
        model.log_likelihood(p.rows(), rows), logsumexp(p.log_pi[:, :, None] + log_n, axis=1)
    )
    assert (found[:, 2] == 0).all()  # weight 0: no contribution
    other = w * model.log_likelihood(p.rows(), rows)  # another reading of "weighted"
    assert np.abs(found - other).max() > 0.1


def test_log_prior_equals_scipy_term_by_term():
    p, prior = some_draws(), MixturePrior(1.5, 0.7)
    found = MixtureRegression(K, prior=prior).log_prior(p.rows())
    half_t = lambda x: math.log(2) + stats.t.logpdf(x, 3)  # noqa: E731
    for s in range(len(p)):
        a, sigma = p.concentration[s], p.correlation[s] * np.outer(p.sd[s], p.sd[s])
        expected = stats.dirichlet.logpdf(np.exp(p.log_pi[s]), np.full(K, a / K))
        expected += stats.gamma.logpdf(a, 1.5, scale=1 / 0.7)
        expected += stats.multivariate_normal.logpdf(p.beta[s], np.zeros(R), sigma).sum()
        expected += half_t(p.sd[s]).sum() + half_t(p.sigma[s]).sum()
        expected -= 1.5 * math.log(0.7) - math.lgamma(1.5)  # constants of the Gamma are left out
        assert found[s] == pytest.approx(expected, abs=1e-8)
    floored = MixtureRegression(K, prior=MixturePrior(least_sd=float(p.sigma.min()) * 1.01))
    assert np.isneginf(floored.log_prior(p.rows())).any()


def test_synthetic_values_depend_on_the_record_through_theta_alone(fitted):
    model, rows, theta = fitted
    other = rows.copy()
    other[:, -1] = 1e6  # labels drawn from their full conditional would notice
    first = model.draw(theta[0], rows, np.random.default_rng(5))
    second = model.draw(theta[0], other, np.random.default_rng(5))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first[:, :-1], rows[:, :-1])


def test_synthetic_values_have_the_mixture_law():
    p = some_draws(1, seed=8)
    n = 4000
    rows = np.tile([[0.5, -1.0, 1.0, 0.0]], (n, 1))
    y = MixtureRegression(K).draw(p.rows()[0], rows, np.random.default_rng(9))[:, -1]
    centre = p.beta[0] @ np.array([1, 0.5, -1, 1])

    def law(v):
        return (np.exp(p.log_pi[0]) * stats.norm.cdf((v[:, None] - centre) / p.sigma[0])).sum(1)

    assert stats.kstest(y, law).pvalue > ALPHA
    assert stats.kstest(y + 0.3 * y.std(), law).pvalue < ALPHA


def test_estimate_is_labelled_and_uses_the_weighted_likelihood(fitted):
    model, rows, theta = fitted
    weights = min_max()(risks(model.log_likelihood(theta, rows)))
    found = model.estimate(theta, rows, weights)
    assert isinstance(found, LocalEstimate)
    assert found.label == LABEL
    size = np.abs(model.weighted_log_likelihood(theta, rows, weights))
    assert found.delta == size.max()
    assert (found.draws, found.records) == (200, N)
    assert found.downweighted == (weights < 1).sum()


def test_synthesize_locally(fitted):
    model, rows, _ = fitted
    found = synthesize(model, rows, min_max(), draws=60, copies=3, randomness=SeededRandomness(4))
    assert found.label == LABEL
    assert len(found.copies) == 3
    assert found.copies[0].shape == rows.shape
    assert not np.array_equal(found.copies[0], found.copies[1])
    again = synthesize(model, rows, min_max(), draws=60, copies=3, randomness=SeededRandomness(4))
    np.testing.assert_array_equal(found.theta, again.theta)  # threads do not share a stream
    with pytest.raises(GuaranteeError, match="copies need as many draws"):
        synthesize(model, rows, min_max(), draws=2, copies=3)


def test_records_of_weight_0_say_nothing(fitted):
    model, rows, _ = fitted
    wild = rows.copy()
    wild[:5, -1] = [1e200, -1e200, 3, 4, 5]
    weights = np.concatenate([np.zeros(5), np.ones(N - 5)])
    first = model.posterior(rows, weights, 20, np.random.default_rng(6))
    second = model.posterior(wild, weights, 20, np.random.default_rng(6))
    np.testing.assert_array_equal(first, second)


def test_a_value_the_scale_cannot_take_gets_weight_0():
    rows = some_records()
    rows[:, -1] = np.exp(rows[:, -1])
    rows[3, -1] = 0.0
    model = MixtureRegression(2, "log", run=LAX)
    theta = model.posterior(rows, np.ones(N), 20, np.random.default_rng(6))
    assert np.isfinite(theta).all()
    assert np.isneginf(model.log_likelihood(theta, rows)[:, 3]).all()
    assert np.isinf(risks(model.log_likelihood(theta, rows))[3])
    assert (model.draw(theta[0], rows, np.random.default_rng(1))[:, -1] > 0).all()


def test_functionals_do_not_depend_on_the_numbering_of_components():
    p = some_draws(4)
    order = [2, 0, 1]
    turned = Parameters(
        p.log_pi[:, order], p.beta[:, order], p.sigma[:, order], p.concentration, p.sd,
        p.correlation,
    )  # fmt: skip
    design = np.column_stack([np.ones(N), some_records()[:, :-1]])
    y = some_records()[:, -1]
    first, names = functionals(p, design, y)
    second, _ = functionals(turned, design, y)
    np.testing.assert_allclose(first, second)
    assert len(names) == first.shape[1] == len(set(names))


def test_chains_start_from_heaps_and_ranks():
    y = np.concatenate([np.zeros(30), np.arange(1.0, 91)])
    label = start_groups(y, 4)
    assert (label[:30] == label[0]).all()
    assert (label[30:] != label[0]).all()
    assert np.bincount(label).tolist() == [30, 30, 30, 30]
    assert start_groups(np.arange(5.0), 9).tolist() == [0, 1, 2, 3, 4]
    assert start_groups(np.arange(6.0), 1).tolist() == [0] * 6


def test_diagnostics_see_chains_that_disagree():
    rng = np.random.default_rng(7)
    good = rng.standard_normal((400, 2))
    bad = good.copy()
    bad[:200, 1] += 2
    fine, poor = (diagnose(one, ("a", "b"), 2) for one in (good, bad))
    assert fine.r_hat.max() < 1.02
    assert fine.worst["effective"] > 250
    assert poor.worst["functional"] == "b"
    assert poor.worst["r_hat"] > 1.3


def test_chains_that_did_not_converge_are_refused_with_diagnostics():
    rng = np.random.default_rng(8)
    rows = np.column_stack([rng.random(60) < 0.5, np.repeat([0.0, 50.0], 30) + rng.normal(size=60)])
    hasty = MixtureRegression(4, run=Run(chains=2, warmup=0, thin=1))
    with pytest.raises(GuaranteeError, match=r"did not converge: .* has R-hat .* effective draws"):
        hasty.posterior(rows, np.ones(60), 20, rng)


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (lambda: MixtureRegression(0), GuaranteeError, "components = 0 is not a whole number"),
        (lambda: MixtureRegression(3, "cube"), GuaranteeError, "not known"),
        (lambda: MixturePrior(shape=0), GuaranteeError, "no prior"),
        (lambda: MixturePrior(least_sd=-1), GuaranteeError, "no prior"),
        (lambda: Run(chains=0), GuaranteeError, "chains = 0 is not a whole number, 1 or more"),
        (lambda: Run(judged="some"), GuaranteeError, "not known"),
    ],
)
def test_impossible_settings_are_refused(act, error, words):
    with pytest.raises(error, match=words):
        act()


def changed(column, value):
    rows = some_records()
    rows[:, column] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "weights", "words"),
    [
        (changed(-1, 7.0), np.ones(N), "the sensitive column has no variation"),
        (changed(1, 7.0), np.ones(N), "predictor 1 has no variation"),
        (changed(0, np.nan), np.ones(N), "missing or infinite"),
        (some_records(), np.full(N, 1.5), "not one number in"),
        (some_records(), np.ones(N - 1), "not one number in"),
        (some_records(), np.zeros(N), "nothing to learn from"),
        (np.ones(5), np.ones(5), "not rows of predictors"),
    ],
)
def test_bad_records_are_refused(rows, weights, words):
    with pytest.raises(DataError, match=words):
        MixtureRegression(2, run=LAX).fit(rows, weights, 10, np.random.default_rng(1))


def test_repeated_records_need_a_least_sd():
    rows = some_records()
    twice = np.concatenate([rows, rows[:1]])
    model, rng = MixtureRegression(2, run=LAX), np.random.default_rng(1)
    with pytest.raises(GuaranteeError, match="posterior is improper"):
        model.fit(twice, np.ones(N + 1), 10, rng)
    heaped = rows.copy()
    heaped[: R + 1, -1] = 0.0  # more equal values than coefficients: fitted exactly by beta = 0
    with pytest.raises(GuaranteeError, match="posterior is improper"):
        model.fit(heaped, np.ones(N), 10, rng)
    light = np.ones(N + 1)
    light[-1] = 0.9
    model.fit(twice, light, 10, rng)  # sum of weights minus rank below 1
    floored = MixtureRegression(2, prior=MixturePrior(least_sd=0.05), run=LAX)
    found = floored.fit(twice, np.ones(N + 1), 10, rng)
    assert found.parameters.sigma.min() >= 0.05


def test_indicators_refuse_unknown_categories():
    assert indicators([["b", "a"], ["x", "y"]], [("a", "b"), ("x", "y", "z")]).tolist() == [
        [1, 0, 0],
        [0, 1, 0],
    ]
    with pytest.raises(DataError, match="column 1 has a category"):
        indicators([["a"], ["w"]], [("a", "b"), ("x", "y")])


@pytest.mark.audit  # importing and tracing takes longer than the rest of this file
def test_numpyro_has_the_same_density():
    """The benchmark's NUTS runs on our posterior: log densities differ by a constant."""
    pytest.importorskip("numpyro")
    import jax
    import numpyro
    from benchmarks import mixture as bench

    p, rows = some_draws(), some_records(9)
    p = Parameters(
        np.log(np.random.default_rng(1).dirichlet(np.ones(bench.K), 5)),
        np.random.default_rng(2).standard_normal((5, bench.K, R)),
        np.random.default_rng(3).gamma(4, 0.5, (5, bench.K)),
        p.concentration, p.sd, p.correlation,
    )  # fmt: skip
    design = np.column_stack([np.ones(9), rows[:, :-1]])
    program = bench.program(design, rows[:, -1])
    model = MixtureRegression(bench.K, prior=bench.PRIOR)
    ours = model.log_prior(p.rows()) + model.log_likelihood(p.rows(), rows).sum(axis=1)
    gaps = []
    for s in range(5):
        L = np.linalg.cholesky(p.correlation[s])
        scale = np.log(np.diag(L)) @ np.arange(R - 1, -1, -1) + bench.K * (
            np.log(np.diag(L)).sum() + np.log(p.sd[s]).sum()
        )  # Jacobians: of L to Omega, and of the non-centred coefficients
        at = {
            "a": p.concentration[s], "pi": np.exp(p.log_pi[s]), "sigma": p.sigma[s], "sd": p.sd[s],
            "L": L, "white": np.linalg.solve(L * p.sd[s][:, None], p.beta[s].T).T,
        }  # fmt: skip
        with jax.enable_x64(True):
            theirs = float(numpyro.infer.util.log_density(program, (), {}, at)[0])
        gaps.append(theirs - scale - ours[s])
    np.testing.assert_allclose(gaps, gaps[0], atol=2e-3)
