"""The release taken for the truth, and how often intervals cover."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference import (
    Binomial,
    Chain,
    Gamma,
    InferenceError,
    Logistic,
    Multinomial,
    Poisson,
    coverage,
    infer,
    naive,
)
from tests.inference.exact import ALPHA, mechanism, one_axis, release_of, z_test

SEED = 17
COUNTIES = 67
PRIOR = Gamma(1.0, 100.0)
POPULATION = np.round(np.random.default_rng(SEED).lognormal(10.5, 1.0, COUNTIES))


def counties(eps="0.1"):
    """A release of 67 counts, as in the case study; values are replaced in simulations."""
    schema = cg.Schema.from_dict({"county": {"levels": [f"c{i}" for i in range(COUNTIES)]}})
    made, table = mechanism(schema, np.zeros(COUNTIES, dtype=int), eps=eps)
    return cg.release_table(made, table, cg.SeededRandomness(SEED))


MODEL = Poisson(by="county", prior=PRIOR, exposure=POPULATION)


def test_intervals_cover_and_naive_ones_do_not():
    found = coverage(counties(), MODEL, releases=40, draws=600, seed=SEED, level=0.95)
    assert found.intervals == 40 * COUNTIES
    error = (0.95 * 0.05 / found.intervals) ** 0.5
    assert z_test(found.valid, error, 0.95) >= ALPHA
    assert z_test(found.naive, error, 0.95) < ALPHA
    assert found.naive < 0.9 < found.valid
    assert "simulated releases" in found.words


@pytest.mark.audit
def test_coverage_over_a_thousand_releases_of_67_counties():
    found = coverage(counties(), MODEL, releases=1000, draws=1000, seed=SEED)
    print(found.words)
    assert 0.93 <= found.valid <= 0.97


@pytest.mark.audit
def test_coverage_at_fixed_rates_with_the_default_prior():
    rates = np.random.default_rng(SEED).gamma(2.0, 0.003, COUNTIES)
    model = Poisson(by="county", exposure=POPULATION)
    found = coverage(counties(), model, releases=1000, draws=1000, seed=SEED, given=rates)
    print(found.words)
    assert 0.93 <= found.valid <= 0.97


@pytest.mark.audit
def test_coverage_given_a_public_total():
    schema = one_axis(6)
    made, table = mechanism(schema, [40, 10, 25, 3, 60, 12], (cg.total(),), eps="0.5")
    release = cg.release_table(made, table, cg.SeededRandomness(SEED))
    found = coverage(
        release, Multinomial(), releases=150, draws=1000, seed=SEED, chain=Chain(8, 100)
    )
    print(found.words)
    assert 0.93 <= found.valid <= 0.97


def test_parameters_may_come_from_a_posterior():
    release = counties()
    given = infer(release, MODEL, draws=500, seed=SEED)
    found = coverage(release, MODEL, releases=3, draws=300, seed=SEED, given=given)
    assert 0.8 < found.valid <= 1


def test_the_naive_posterior_is_that_of_the_released_counts():
    made, _ = mechanism(one_axis(3), [3, 1, 2])
    wrong = naive(release_of(made, [5, -2, 3]), Poisson(prior=Gamma(2, 1)), draws=20_000, seed=SEED)
    expected = (2 + np.array([5, 0, 3])) / 2
    assert z_test(wrong.mean("rate"), wrong.standard_error("rate"), expected) >= ALPHA
    assert "the noise is ignored" in wrong.notes[0]


@pytest.mark.parametrize(
    "model",
    [
        Multinomial(),
        Binomial(20),
        Poisson(covariates={"z": np.array([0.0, 1.0, 2.0])}),
    ],
)
def test_naive_intervals_are_narrower(model):
    made, _ = mechanism(one_axis(3), [30, 10, 20], (cg.total(),), eps="0.3")
    release = release_of(made, [17, 20, 23])
    if isinstance(model, Binomial):
        model = Binomial(60)
    few = Chain(chains=10, warmup=100)
    right = infer(release, model, draws=2000, seed=SEED, chain=few)
    wrong = naive(release, model, draws=2000, seed=SEED, chain=few)
    name = next(iter(right.draws))
    assert np.mean(wrong.sd(name)) < np.mean(right.sd(name))


def test_naive_logistic_with_unknown_totals():
    schema = cg.Schema.from_dict({"g": {"levels": ["a", "b"]}, "s": {"levels": ["no", "yes"]}})
    made, _ = mechanism(schema, [[30, 10], [20, 20]])
    release = release_of(made, [[30, 10], [20, 20]])
    wrong = naive(release, Logistic("s", covariates=("g",)), draws=2000, seed=SEED,
                  chain=Chain(10, 300))  # fmt: skip
    # 2000 draws of deviation .37 in a chain, and a mean that is .03 from the maximum
    assert wrong.mean("coefficient")[0] == pytest.approx(np.log(1 / 3), abs=0.08)


def test_coverage_needs_data_that_conform():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),))
    release = release_of(made, [3, 1, 2])
    with pytest.raises(InferenceError, match="agree with the published figures"):
        coverage(release, Poisson(prior=Gamma(1, 1)), releases=3, seed=SEED)
    given = np.array([3.0, 1.0, 2.0])  # Poisson counts given their sum are multinomial
    quick = Chain(4, 50, check=False)
    model = Poisson(prior=Gamma(1, 1))
    found = coverage(release, model, releases=3, draws=200, seed=SEED, given=given, chain=quick)
    assert found.intervals == 9
