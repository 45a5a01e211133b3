"""Several tables measured at once, and models of sums of finer cells, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

import congenial as cg
from congenial.inference import (
    Chain,
    Gamma,
    GaussianPrior,
    InferenceError,
    Logistic,
    Poisson,
    infer,
    observe,
)
from congenial.mechanisms.measured_tables import MeasuredTables
from tests.inference.exact import agrees, release_of, weighted_mean

SEED = 23
MANY = Chain(chains=40, warmup=100)
SCHEMA = cg.Schema.from_dict(
    {"sex": {"levels": ["f", "m"]}, "age": {"levels": ["young", "middle", "old"]}}
)
NAMES = ("sex", "age")
TRUE = np.array([[2, 1, 2], [1, 3, 1]])
FIGURES = (cg.count("sex = 'f'"), cg.count("age = 'old'"), cg.total())
PRIOR = Gamma(1.5, 0.5)


def conforming():
    """Every table with 5 women, 3 old people, 10 in all."""
    for x in product(range(6), repeat=6):
        table = np.array(x).reshape(2, 3)
        if table[0].sum() == 5 and table[:, 2].sum() == 3 and table.sum() == 10:
            yield table


def under():
    return cg.SemiAdjacent(cg.publish(cg.Table(SCHEMA, NAMES, TRUE), *FIGURES))


@pytest.fixture(scope="module", params=["discrete_gaussian", "double_geometric"])
def release(request):
    """Cells and both one-way tables with noise of their own."""
    scale = {"discrete_gaussian": Fraction(4), "double_geometric": Fraction("0.4")}
    tables = [NAMES, ("age",), ("sex",)]
    made = MeasuredTables.of(
        under(), tables, request.param, [scale[request.param], scale[request.param], None]
    )
    return made.release(cg.Table(SCHEMA, NAMES, TRUE), cg.SeededRandomness(SEED))


def log_law(release, x) -> float:
    """log p(drawn | x), up to a constant."""
    found = 0.0
    for one, drawn in zip(release.description.measured, release.drawn, strict=True):
        true = x if one.table == NAMES else x.sum(axis=0)
        away = np.abs(np.asarray(drawn) - true).astype(float)
        gaussian = release.description.family == "discrete_gaussian"
        scale = float(one.scale)
        found -= (away**2 / (2 * scale)).sum() if gaussian else scale * away.sum()
    return found


def log_rates(s):
    """Log probability of counts with exposure 1, rates integrated out."""
    q = 1 / (1 + PRIOR.rate)
    return float((s * np.log(q) + gammaln(s + PRIOR.shape) - gammaln(s + 1)).sum())


def test_the_cells_of_several_tables(release):
    every = list(conforming())
    weights = np.exp([log_law(release, x) + log_rates(x) for x in every])
    exact = weighted_mean(weights, [(PRIOR.shape + x) / (PRIOR.rate + 1) for x in every])
    posterior = infer(release, Poisson(prior=PRIOR), draws=8000, seed=SEED, chain=MANY)
    assert agrees(posterior, "rate", exact)
    assert not agrees(posterior, "rate", exact + 0.15)


def ways(x) -> float:
    """Log of one over the number of ways to split the counts by age over both sexes."""
    return -float(np.log(x.sum(axis=0) + 1).sum())


def test_a_coarser_model_of_several_tables(release):
    every = list(conforming())
    weights = np.exp([log_law(release, x) + log_rates(x.sum(axis=0)) + ways(x) for x in every])
    exact = weighted_mean(
        weights, [(PRIOR.shape + x.sum(axis=0)) / (PRIOR.rate + 1) for x in every]
    )
    model = Poisson(by="age", prior=PRIOR)
    posterior = infer(release, model, draws=8000, seed=SEED, chain=MANY, counts=True)
    assert posterior.draws["count"].shape[2:] == (3,)
    assert agrees(posterior, "rate", exact)
    assert any("equally likely" in note for note in posterior.notes)


def test_sums_that_mix_groups_of_one_released_table():
    made = cg.calibrate("auto", cg.Guarantee.zero_concentrated("0.2", under=under()))
    one = release_of(made, TRUE + np.array([[1, -2, 1], [-2, 2, 0]]))
    scale = float(made.description.scale)
    every = list(conforming())
    logs = [
        -((np.asarray(one.drawn[0]) - x) ** 2).sum() / (2 * scale)
        + log_rates(x.sum(axis=0))
        + ways(x)
        for x in every
    ]
    exact = weighted_mean(
        np.exp(logs), [(PRIOR.shape + x.sum(axis=0)) / (PRIOR.rate + 1) for x in every]
    )
    posterior = infer(one, Poisson(by="age", prior=PRIOR), draws=8000, seed=SEED, chain=MANY)
    assert agrees(posterior, "rate", exact)


def test_logistic_regression_where_margins_tie_the_covariates(release):
    grid = np.linspace(-8, 8, 4001)
    prior = GaussianPrior(0.0, 1.5)
    density = np.exp(prior.log_density(grid))
    weights, means = [], []
    for x in conforming():
        yes, no = x[1].sum(), x[0].sum()
        # a flat prior of the people in each age, outcomes given them: total! / (yes! no!)
        known = gammaln(x.sum(axis=0) + 1).sum() - gammaln(x + 1).sum() + log_law(release, x)
        post = density * np.exp(yes * grid - (yes + no) * np.log1p(np.exp(grid)))
        weights.append(np.exp(known) * post.sum())
        means.append((grid * post).sum() / post.sum())
    exact = weighted_mean(weights, means)
    model = Logistic("sex", prior=prior)
    posterior = infer(release, model, draws=8000, seed=SEED, chain=MANY)
    assert agrees(posterior, "coefficient", [exact])


def test_what_is_refused(release):
    with pytest.raises(InferenceError, match="contain them"):
        observe(release, public=False)
