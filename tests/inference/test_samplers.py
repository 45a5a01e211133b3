"""Every sampler against posteriors by enumeration, on releases of small tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

import congenial as cg
from congenial.inference import (
    Binomial,
    Chain,
    Dirichlet,
    Gamma,
    InferenceError,
    Multinomial,
    Poisson,
    infer,
    observe,
)
from tests.inference.exact import agrees, l1, mechanism, one_axis, release_of, tables, weighted_mean

SEED = 3
MANY = Chain(chains=40, warmup=100)
EXPOSURE = np.array([1.0, 2.0, 0.5])
PRIOR = Gamma(1.5, 0.5)
DRAWN = np.array([5, -1, 2])
WAYS = ["exact", "augmentation"]


def negative_binomial(x, prior=PRIOR, exposure=EXPOSURE) -> float:
    """Probability of counts with the rates integrated out, up to a constant."""
    q = exposure / (exposure + prior.rate)
    return float(np.exp((x * np.log(q) + gammaln(x + prior.shape) - gammaln(x + 1)).sum()))


def rates(x, prior=PRIOR, exposure=EXPOSURE):
    return (prior.shape + x) / (prior.rate + exposure)


def eps_cell(made) -> float:
    return float(made.description.scale)


def exact_rates(eps, total, prior=PRIOR, drawn=DRAWN, law=l1):
    """E rate given the draw and a public total, or given the draw alone (total None)."""
    if total is None:
        found = []
        for j, y in enumerate(drawn):
            x = np.arange(400)
            q = EXPOSURE[j] / (EXPOSURE[j] + prior.rate)
            w = np.exp(
                x * np.log(q) + gammaln(x + prior.shape) - gammaln(x + 1) - eps * np.abs(y - x)
            )
            found.append(float(w @ ((prior.shape + x) / (prior.rate + EXPOSURE[j])) / w.sum()))
        return np.array(found)
    every = list(tables(total, 3))
    return weighted_mean(
        [negative_binomial(x, prior) * law(drawn, x, eps) for x in every],
        [rates(x, prior) for x in every],
    )


@pytest.fixture(scope="module")
def given_total():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),))
    return made


@pytest.fixture(scope="module")
def plain():
    made, _ = mechanism(one_axis(3), [3, 1, 2], (cg.total(),), name="plain_geometric")
    return made


@pytest.mark.parametrize("method", ["exact", "augmentation"])
def test_rates_given_a_public_total(given_total, method):
    release = release_of(given_total, DRAWN)
    posterior = infer(
        release, Poisson(prior=PRIOR, exposure=EXPOSURE), method=method, draws=6000, seed=SEED,
        chain=MANY,
    )  # fmt: skip
    assert agrees(posterior, "rate", exact_rates(eps_cell(given_total), 6))


def test_negative_control_the_total_ignored_is_noticed(given_total):
    release = release_of(given_total, DRAWN)
    posterior = infer(release, Poisson(prior=PRIOR, exposure=EXPOSURE), seed=SEED, chain=MANY)
    assert not agrees(posterior, "rate", exact_rates(eps_cell(given_total), None))


@pytest.mark.parametrize("public", [True, False])
def test_with_and_without_the_public_figures(plain, public):
    release = release_of(plain, DRAWN)
    posterior = infer(
        release, Poisson(prior=PRIOR, exposure=EXPOSURE), draws=2000, seed=SEED,
        public=public, chain=MANY,
    )  # fmt: skip
    assert posterior.method == "exact"
    assert agrees(posterior, "rate", exact_rates(eps_cell(plain), 6 if public else None))


@pytest.mark.parametrize("method", WAYS)
def test_a_prior_with_a_spike_at_zero_uses_one_more_gibbs_step(given_total, method):
    prior = Gamma(0.5, 0.0)
    posterior = infer(
        release_of(given_total, DRAWN), Poisson(prior=prior, exposure=EXPOSURE), method=method,
        draws=8000, seed=SEED, chain=MANY,
    )  # fmt: skip
    assert agrees(posterior, "rate", exact_rates(eps_cell(given_total), 6, prior))


@pytest.mark.parametrize("method", WAYS)
def test_discrete_gaussian_noise(method):
    table = cg.Table(one_axis(3), ["x"], np.array([3, 1, 2]))
    under = cg.SemiAdjacent(cg.publish(table, cg.total()))
    made = cg.calibrate("auto", cg.Guarantee.zero_concentrated("0.5", under=under))
    law = lambda y, x, s2: float(np.exp(-((y - x) ** 2).sum() / (2 * s2)))  # noqa: E731
    posterior = infer(
        release_of(made, DRAWN), Poisson(prior=PRIOR, exposure=EXPOSURE), method=method,
        draws=8000, seed=SEED, chain=MANY,
    )  # fmt: skip
    assert agrees(posterior, "rate", exact_rates(eps_cell(made), 6, law=law))


@pytest.mark.parametrize("method", WAYS)
def test_shares_given_capacities_and_a_total(given_total, method):
    trials = np.array([4, 3, 5])
    model = Binomial(trials, prior=None)
    posterior = infer(
        release_of(given_total, DRAWN), model, method=method, draws=12_000, seed=SEED, chain=MANY,
        counts=True,
    )  # fmt: skip
    every = [x for x in tables(6, 3) if np.all(x <= trials)]
    a = 0.5
    weight = [
        l1(DRAWN, x, eps_cell(given_total))
        * np.exp(
            (gammaln(x + a) - gammaln(x + 1) + gammaln(trials - x + a) - gammaln(trials - x + 1))
            .sum()
        )
        for x in every
    ]  # fmt: skip
    assert agrees(posterior, "count", weighted_mean(weight, every))
    shares = [(a + x) / (2 * a + trials) for x in every]
    assert agrees(posterior, "share", weighted_mean(weight, shares))


# ---- crossing margins ------------------------------------------------------------------------


def two_margins():
    schema = cg.Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
    counts = np.array([[2, 0, 1], [1, 2, 0]])
    made, _ = mechanism(schema, counts, (cg.margin("g"), cg.margin("x")), eps=2)
    drawn = np.array([[3, -1, 1], [0, 3, 0]])
    every = [
        x.reshape(2, 3)
        for x in tables(6, 6)
        if np.array_equal(x.reshape(2, 3).sum(0), counts.sum(0))
        and np.array_equal(x.reshape(2, 3).sum(1), counts.sum(1))
    ]
    return made, drawn, every


def dirichlet_multinomial(x, weight) -> float:
    return float(np.exp((gammaln(x + weight) - gammaln(x + 1)).sum()))


def test_shares_given_two_crossing_margins():
    made, drawn, every = two_margins()
    assert len(every) > 3
    posterior = infer(
        release_of(made, drawn), Multinomial(prior=Dirichlet(0.7)), draws=8000,
        seed=SEED, chain=MANY,
    )  # fmt: skip
    weight = [dirichlet_multinomial(x, 0.7) * l1(drawn, x, eps_cell(made)) for x in every]
    assert agrees(posterior, "share", weighted_mean(weight, [(0.7 + x) / 10.2 for x in every]))
    assert "exchanges" in posterior.notes[0]


@pytest.mark.parametrize("name", ["knorm", "kernel_gaussian"])
def test_laws_that_are_not_independent_cell_by_cell(name):
    """Through the mechanism's own density, on the tables that its figures leave."""
    _, drawn, every = two_margins()
    schema = cg.Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
    table = cg.Table(schema, ["g", "x"], every[0])
    under = cg.SemiAdjacent(cg.publish(table, cg.margin("g"), cg.margin("x")))
    target = cg.Guarantee.pure(2, under=under)
    if name == "kernel_gaussian":
        target = cg.Guarantee.gaussian(1, under=under)
    made = cg.calibrate(name, target)
    if name == "kernel_gaussian":
        drawn = cg.release_table(made, table, cg.SeededRandomness(SEED)).drawn[0]
    law = [float(made.log_density(drawn, cg.Table(schema, ["g", "x"], x))) for x in every]
    weight = [
        np.exp(one - max(law)) * dirichlet_multinomial(x, 0.7)
        for x, one in zip(every, law, strict=True)
    ]
    posterior = infer(
        release_of(made, drawn),
        Multinomial(prior=Dirichlet(0.7)),
        draws=4000,
        seed=SEED,
        chain=Chain(chains=40, warmup=40),
    )
    assert agrees(posterior, "share", weighted_mean(weight, [(0.7 + x) / 10.2 for x in every]))


# ---- a law whose normaliser depends on the table ------------------------------------------------


@pytest.fixture(scope="module")
def counts_given_total():
    made, _ = mechanism(one_axis(3), [2, 0, 1], (cg.total(),), name="congenial_counts", eps=2)
    return made


def exact_weights(made, drawn, total):
    every = list(tables(total, 3))
    law = [
        float(np.exp(made.log_density(np.asarray(drawn), cg.Table(one_axis(3), ["x"], x))))
        for x in every
    ]
    return every, np.array(law)


def shares_given(seen, chains):
    """The posterior of the shares, 200 draws from each chain."""
    return infer(
        seen, Multinomial(), draws=200 * chains, seed=SEED, chain=Chain(chains=chains, warmup=20)
    )


def by_density(made, drawn):
    """What a release says, through the density of its mechanism only."""
    every, law = exact_weights(made, drawn, 3)
    logs = {tuple(x): float(np.log(w)) for x, w in zip(every, law, strict=True)}

    def density(x):
        return np.array([logs[tuple(row)] for row in np.asarray(x)])

    seen = observe(release_of(made, drawn))
    return replace(seen, noise=None, normaliser=None, density=density)


def test_one_record_moves_are_right_and_accepted_often_enough(counts_given_total):
    made, drawn = counts_given_total, [0, 0, 3]
    posterior = shares_given(by_density(made, drawn), 60)
    every, law = exact_weights(made, drawn, 3)
    weight = [w * dirichlet_multinomial(x, 1.0) for x, w in zip(every, law, strict=True)]
    assert agrees(posterior, "share", weighted_mean(weight, [(1 + x) / 6 for x in every]))
    # l: the largest change of log p(y | x), normaliser included, over one-record moves
    moved = [
        abs(np.log(law[i]) - np.log(law[j]))
        for i, a in enumerate(every)
        for j, b in enumerate(every)
        if np.abs(a - b).sum() == 2
    ]
    assert max(moved) <= float(made.guarantee.tradeoff.eps)
    assert posterior.acceptance_floor == pytest.approx(np.exp(-2.0))
    assert posterior.acceptance >= np.exp(-max(moved)) >= posterior.acceptance_floor


def test_signs_and_sums_have_a_normaliser_that_is_worked_out(counts_given_total):
    made, drawn = counts_given_total, [0, 0, 3]
    posterior = shares_given(release_of(made, drawn), 40)
    assert "normaliser" in posterior.notes[0]
    every, law = exact_weights(made, drawn, 3)
    weight = [w * dirichlet_multinomial(x, 1.0) for x, w in zip(every, law, strict=True)]
    assert agrees(posterior, "share", weighted_mean(weight, [(1 + x) / 6 for x in every]))
    assert observe(release_of(made, drawn)).log_law(np.array(every)) == pytest.approx(np.log(law))


def test_planted_a_normaliser_left_out_is_noticed(counts_given_total):
    made, drawn = counts_given_total, [0, 0, 3]
    posterior = shares_given(release_of(made, drawn), 80)
    every, _ = exact_weights(made, drawn, 3)
    wrong = [dirichlet_multinomial(x, 1.0) * l1(drawn, x, eps_cell(made)) for x in every]
    assert not agrees(posterior, "share", weighted_mean(wrong, [(1 + x) / 6 for x in every]))


def test_any_model_with_that_law(counts_given_total):
    made, drawn = counts_given_total, [1, 0, 2]
    model = Poisson(prior=PRIOR, exposure=EXPOSURE)
    every, law = exact_weights(made, drawn, 3)
    weight = [w * negative_binomial(x) for x, w in zip(every, law, strict=True)]
    exact = weighted_mean(weight, [rates(x) for x in every])
    found = infer(
        release_of(made, drawn),
        model,
        method="augmentation",
        draws=6000,
        seed=SEED,
        chain=Chain(chains=60, warmup=150),
    )
    assert agrees(found, "rate", exact)


# ---- what cannot be done -----------------------------------------------------------------------


def test_a_prior_without_mass_on_the_public_figure_is_refused(given_total):
    with pytest.raises(InferenceError, match="probability zero"):
        infer(release_of(given_total, DRAWN), Binomial(np.array([1, 1, 1])), seed=SEED)
    with pytest.raises(InferenceError, match="differ from the published ones"):
        infer(release_of(given_total, DRAWN), Multinomial(people=7), seed=SEED)
