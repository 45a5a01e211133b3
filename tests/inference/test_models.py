"""Built-in models with covariates against integration on a grid, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, gammaln, ndtr
from scipy.stats import binom, nbinom, norm, poisson

import congenial as cg
from congenial.inference import (
    Beta,
    Binomial,
    Chain,
    Gamma,
    GaussianPrior,
    InferenceError,
    Linear,
    Logistic,
    Model,
    Multinomial,
    NegativeBinomial,
    Normal,
    Observation,
    Poisson,
    infer,
)
from congenial.inference.observation import observe
from tests.inference.exact import agrees, l1, mechanism, one_axis, release_of, tables, weighted_mean

SEED = 13
MANY = Chain(chains=20, warmup=150)
Z = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
EXPOSURE = np.array([5.0, 10.0, 8.0, 20.0, 10.0])
DRAWN = np.array([4, 14, 3, 30, 33])
PRIOR = GaussianPrior(0.0, 1.5)
COUNTS = np.arange(400)
NOISE = np.exp(-0.5 * np.abs(DRAWN[:, None] - COUNTS))  # eps per cell is 1/2 below


@pytest.fixture(scope="module")
def free():
    made, _ = mechanism(one_axis(5), [4, 14, 3, 30, 33])
    assert float(made.description.scale) == 0.5
    return release_of(made, DRAWN)


def grid(*axes):
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def log_marginal(points, pmf) -> np.ndarray:
    """log p(y | point) by summing counts out, cell by cell; pmf(counts, cell, columns)."""
    columns = [column[:, None] for column in points.T]
    return sum(np.log(pmf(COUNTS, j, columns) @ NOISE[j] + 1e-300) for j in range(len(DRAWN)))


def mean_on(points, logs, values):
    return weighted_mean(np.exp(logs - logs.max()), values(points))


def test_poisson_regression(free):
    points = grid(np.linspace(-1, 1, 41), np.linspace(-0.5, 1.5, 41))
    logs = log_marginal(
        points, lambda x, j, b: poisson.pmf(x, EXPOSURE[j] * np.exp(b[0] + b[1] * Z[j]))
    )
    logs += norm.logpdf(points, 0, 1.5).sum(axis=1)
    model = Poisson(prior=PRIOR, exposure=EXPOSURE, covariates={"z": Z})
    posterior = infer(free, model, draws=5000, seed=SEED, chain=MANY)
    assert agrees(posterior, "coefficient", mean_on(points, logs, lambda b: b))
    assert posterior.dims["coefficient"] == (("covariate", ("intercept", "z")),)


def test_negative_binomial_regression_with_sizes_below_and_above_one(free):
    points = grid(np.linspace(-2.5, 2.5, 41), np.linspace(-4, 4, 41))

    def pmf(x, j, point):
        size, mean = np.exp(point[1]), EXPOSURE[j] * np.exp(point[0])
        return nbinom.pmf(x, size, size / (size + mean))

    logs = log_marginal(points, pmf)
    logs += norm.logpdf(points[:, 0], 0, 1.5) + points[:, 1] - np.exp(points[:, 1])
    model = NegativeBinomial(prior=PRIOR, exposure=EXPOSURE, size_prior=Gamma(1, 1))
    posterior = infer(free, model, draws=5000, seed=SEED, chain=MANY)
    exact = mean_on(points, logs, lambda p: np.column_stack([p[:, 0], np.exp(p[:, 1])]))
    assert agrees(posterior, "coefficient", exact[0])
    assert agrees(posterior, "size", exact[1])


def test_binomial_regression(free):
    trials = np.array([10, 30, 20, 60, 40])
    points = grid(np.linspace(-2, 2, 41), np.linspace(-1.5, 2.5, 41))
    logs = log_marginal(points, lambda x, j, b: binom.pmf(x, trials[j], expit(b[0] + b[1] * Z[j])))
    logs += norm.logpdf(points, 0, 1.5).sum(axis=1)
    model = Binomial(trials, prior=PRIOR, covariates={"z": Z})
    posterior = infer(free, model, draws=5000, seed=SEED, chain=MANY)
    assert agrees(posterior, "coefficient", mean_on(points, logs, lambda b: b))


@pytest.mark.parametrize(
    "model",
    [
        Poisson(covariates={"z": Z}, exposure=EXPOSURE),
        NegativeBinomial(covariates={"z": Z}, exposure=EXPOSURE),
        Binomial(trials=200, covariates={"z": Z}),
    ],
)
def test_scores_differ_from_likelihoods_by_a_constant_of_the_counts(free, model):
    """Along parameters, tables held fixed; steps in the parameters rest on it."""
    bound = model.bind(observe(free))
    rng = np.random.default_rng(SEED)
    theta = rng.normal(0, 0.7, (6, bound.size))
    x = np.repeat(np.maximum(DRAWN, 0)[None], len(theta), axis=0)
    scores, likelihoods = bound.score(x, theta), bound.log_likelihood(x, theta)
    assert np.ptp(scores) > 1
    assert np.ptp(scores - likelihoods) < 1e-9 * np.abs(likelihoods).max()


def test_poisson_regression_given_a_public_total():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),))
    drawn, z = np.array([5, -1, 2]), np.array([0.0, 1.0, 2.0])
    points = grid(np.linspace(-4, 5, 55), np.linspace(-8, 4, 73))
    mean = np.exp(points[:, :1] + points[:, 1:] * z)
    likelihood = sum(
        poisson.pmf(x, mean).prod(axis=1) * l1(drawn, x, float(made.description.scale))
        for x in tables(6, 3)
    )
    logs = np.log(likelihood + 1e-300) + norm.logpdf(points, 0, 1.5).sum(axis=1)
    model = Poisson(prior=PRIOR, covariates={"z": z})
    posterior = infer(release_of(made, drawn), model, draws=5000, seed=SEED, chain=MANY)
    assert agrees(posterior, "coefficient", mean_on(points, logs, lambda b: b))


def two_by_two():
    return cg.Schema.from_dict({"group": {"levels": ["g", "h"]}, "sick": {"levels": ["no", "yes"]}})


def test_logistic_regression_when_nobody_says_how_many_people_there_are():
    made, _ = mechanism(two_by_two(), [[6, 2], [3, 5]], eps=2)
    drawn = np.array([[6, 1], [2, 6]])
    eps = float(made.description.scale)
    x = grid(np.arange(30), np.arange(30))  # (no, yes) of one group, any numbers alike
    points = grid(np.linspace(-5, 5, 41), np.linspace(-5.5, 6, 47))
    logs = norm.logpdf(points, 0, 1.5).sum(axis=1)
    for g in range(2):
        p = expit(points[:, 0] + g * points[:, 1])
        noise = np.exp(-eps * np.abs(drawn[g] - x).sum(axis=1))
        weights = noise * np.exp(gammaln(x.sum(axis=1) + 1) - gammaln(x + 1).sum(axis=1))
        table = np.exp(np.log1p(-p)[:, None] * x[:, 0] + np.log(p)[:, None] * x[:, 1])
        logs += np.log(table @ weights)
    model = Logistic("sick", covariates=("group",), success="yes", prior=PRIOR)
    posterior = infer(release_of(made, drawn), model, draws=5000, seed=SEED, chain=MANY)
    assert agrees(posterior, "coefficient", mean_on(points, logs, lambda b: b))
    assert posterior.dims["coefficient"][0][1] == ("intercept", "group = h")


def test_logistic_regression_given_the_totals_sums_the_counts_out():
    made, _ = mechanism(two_by_two(), [[6, 2], [3, 5]], (cg.total(by="group"),), eps=2)
    drawn = np.array([[7, 1], [2, 6]])
    eps = float(made.description.scale)
    points = grid(np.linspace(-5, 5, 81), np.linspace(-6, 6, 97))
    logs = norm.logpdf(points, 0, 1.5).sum(axis=1)
    for g in range(2):
        p = expit(points[:, 0] + g * points[:, 1])
        yes = np.arange(9)
        noise = np.exp(-eps * (np.abs(drawn[g, 1] - yes) + np.abs(drawn[g, 0] - (8 - yes))))
        logs += np.log(binom.pmf(yes, 8, p[:, None]) @ noise)
    model = Logistic("sick", covariates=("group",), prior=PRIOR)
    posterior = infer(release_of(made, drawn), model, draws=5000, seed=SEED, chain=MANY)
    assert "summed out" in posterior.notes[0]
    assert agrees(posterior, "coefficient", mean_on(points, logs, lambda b: b))


BINS = cg.Schema.from_dict({"age": {"edges": [0, 10, 20], "top": "20+"}})


def test_a_normal_law_seen_through_bins():
    made, _ = mechanism(BINS, [2, 3, 1], (cg.total(),), eps=2)
    drawn = np.array([1, 4, 1])
    points = grid(np.linspace(-15, 40, 111), np.linspace(-0.5, 5, 56))
    mean, sd = points[:, :1], np.exp(points[:, 1:])
    tail = ndtr((mean - np.array([0.0, 10.0, 20.0, np.inf])) / sd)
    p = -np.diff(tail, axis=1)
    p = np.maximum(p / tail[:, :1], 1e-300)  # no age is below 0
    likelihood = sum(
        np.exp((x * np.log(p) - gammaln(x + 1)).sum(axis=1))
        * l1(drawn, x, float(made.description.scale))
        for x in tables(6, 3)
    )
    spread = np.log(2) + norm.logpdf(sd[:, 0], 0, 20) + points[:, 1]
    logs = np.log(likelihood) + norm.logpdf(mean[:, 0], 10, 8) + spread
    model = Normal("age", prior=GaussianPrior(10, 8))
    posterior = infer(release_of(made, drawn), model, draws=5000, seed=SEED, chain=MANY)
    exact = mean_on(points, logs, lambda q: np.column_stack([q[:, 0], np.exp(q[:, 1])]))
    assert agrees(posterior, "mean", exact[0])
    assert agrees(posterior, "sd", exact[1])


def test_linear_regression_finds_the_slope_it_was_made_with():
    rng = np.random.default_rng(SEED)
    schema = cg.Schema.from_dict(
        {"group": {"levels": ["g", "h"]}, "age": {"edges": [0, 10, 20, 30, 40], "top": "40+"}}
    )
    group = rng.integers(2, size=4000)
    age = np.clip(rng.normal(18 + 7 * group, 8), 0, None)
    counts = np.zeros((2, 5), dtype=int)
    np.add.at(counts, (group, np.minimum(age // 10, 4).astype(int)), 1)
    made, table = mechanism(schema, counts, (cg.total(by="group"),))
    release = cg.release_table(made, table, cg.SeededRandomness(SEED))
    model = Linear("age", covariates=("group",))
    posterior = infer(release, model, draws=2000, seed=SEED, chain=Chain(chains=8, warmup=400))
    low, high = posterior.interval("coefficient", 0.999)
    assert low[1] < 7 < high[1]
    assert high[1] - low[1] < 3


# ---- reading exposures, trials and covariates ---------------------------------------------------


def test_published_figures_serve_as_trials():
    schema = two_by_two()
    made, _ = mechanism(schema, [[60, 20], [30, 50]], (cg.total(by="group"),))
    release = release_of(made, [[61, 19], [28, 52]])
    trials = "Population by group"
    posterior = infer(release, Binomial(trials, prior=Beta(1, 1)), draws=2000, seed=SEED)
    assert posterior.mean("share").shape == (2, 2)
    assert posterior.mean("share")[0].sum() == pytest.approx(1, abs=0.02)
    with pytest.raises(InferenceError, match="no published figure is called 'Nobody'"):
        infer(release, Binomial("Nobody"), seed=SEED)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Poisson(prior=GaussianPrior(0, 1)), "takes Gamma as the prior per cell"),
        (Poisson(prior=Gamma(1, 1), covariates=("x",)), "takes GaussianPrior as the prior"),
        (Poisson(exposure=0.0), "not positive"),
        (Poisson(exposure=[1.0, 2.0]), "shape"),
        (Poisson(covariates=("nobody",)), "not an axis"),
        (Poisson(covariates={"z": [1, 1, 1, 1, 1]}), "linearly dependent"),
        (Binomial(1.5), "whole number"),
        (Multinomial(), "not public"),
        (Normal("x"), "without a number"),
        (Logistic("x"), "needs two"),
        (Logistic("nobody"), "not an axis"),
    ],
)
def test_bad_models_are_refused_with_a_reason(free, model, told):
    with pytest.raises(InferenceError, match=told):
        infer(free, model, seed=SEED)


@pytest.mark.parametrize(
    ("prior", "told"),
    [
        (lambda: Gamma(0, 1), "Gamma"),
        (lambda: Beta(1, 0), "Beta"),
        (lambda: GaussianPrior(0, 0), "Gaussian"),
    ],
)
def test_bad_priors_are_refused(prior, told):
    with pytest.raises(InferenceError, match=told):
        prior()


def test_a_model_whose_functions_do_not_fit_each_other_is_refused():
    observed = Observation.of_values([1, 2], "double_geometric", 1)
    model = Model(
        ("a",),
        draw_prior=lambda rng, n: rng.random((n, 1)),
        draw_data=lambda rng, theta: rng.poisson(theta),
        log_density=lambda x, theta: x[:, 0] * 0.0,
    )
    with pytest.raises(InferenceError, match="has 2 cells"):
        infer(observed, model, seed=SEED)
