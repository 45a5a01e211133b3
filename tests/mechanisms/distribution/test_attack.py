"""Property inference: the classifier, its intervals, and what a promise allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from congenial import SeededRandomness
from congenial.audit import allowed_accuracy, draw_shadows, property_inference
from congenial.audit.property_inference import (
    LogisticRegression,
    Shadows,
    accuracies,
    clopper_pearson,
    summary,
)
from congenial.errors import DataError
from congenial.mechanisms import calibrate_distribution, fit_pairs
from congenial.privacy.tradeoff import Approximate, Pure
from tests.mechanisms.distribution.cases import ALPHA, gaussian_pairs
from tests.mechanisms.distribution.test_fit import HIDE, QUERY, patients, read


def test_the_classifier_is_the_penalised_maximum():
    random = np.random.default_rng(3)
    x = random.normal(size=(120, 3)) * [1, 5, 0.2] + [0, 10, -1]
    y = (random.random(120) < 1 / (1 + np.exp(-(x[:, 0] + x[:, 1] - 10)))).astype(float)
    model = LogisticRegression.fit(x, y, ridge=2.0)
    z = (x - x.mean(axis=0)) / x.std(axis=0)

    def loss(w):
        score = z @ w[1:] + w[0]
        return np.logaddexp(0, score).sum() - y @ score + np.sum(w[1:] ** 2)

    best = optimize.minimize(loss, np.zeros(4), options={"gtol": 1e-10})
    assert model.weights == pytest.approx(best.x, abs=1e-5)
    assert model.accuracy(x, y) > 0.7
    constant = LogisticRegression.fit(np.ones((10, 2)), np.repeat([0.0, 1.0], 5))
    assert np.isfinite(constant.weights).all()


def test_clopper_pearson_is_exact():
    for hits, trials in ((0, 10), (3, 10), (10, 10), (150, 200)):
        low, high = clopper_pearson(hits, trials)
        if hits:
            assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(0.025, rel=1e-6)
        if hits < trials:
            assert stats.binom.cdf(hits, trials, high) == pytest.approx(0.025, rel=1e-6)
    one = summary(np.array([0.75]), 200)
    assert (one.low, one.high) == clopper_pearson(150, 200)


def gaussian_shadows(distance: float, seed: int, repetitions: int = 20) -> Shadows:
    random = np.random.default_rng(seed)
    means = np.repeat([[0.0, 0.0], [distance, 0.0]], 200, axis=0)
    draws = random.normal(size=(2, repetitions, 400, 2)) + means
    return Shadows(draws[0], draws[1])


def test_the_attack_reaches_the_best_guess_between_gaussians():
    shadows = gaussian_shadows(1.42, 7)
    found = accuracies(shadows)
    ideal = stats.norm.cdf(0.71)
    deviation = math.sqrt(ideal * (1 - ideal) / (400 * len(found)))
    assert found.mean() <= ideal - stats.norm.ppf(ALPHA) * deviation
    assert found.mean() >= ideal - 0.02
    told = summary(found, 400)
    assert told.low < told.value < told.high


def test_before_and_after_and_what_is_allowed():
    pairs = gaussian_pairs([[0, 0], [1.42, 0]], [np.eye(2)] * 2)
    shadows = gaussian_shadows(1.42, 8)
    for epsilon, most in ((0.2, 0.56), (5.0, 0.78)):
        made = calibrate_distribution(pairs, epsilon, 0.001).mechanism
        told = property_inference(made, shadows, SeededRandomness(1))
        assert told.before.value > 0.73
        assert told.after.value < most
        assert told.after.value <= told.allowed
        assert not told.violated
        assert "without protection" in told.words
    assert allowed_accuracy(Pure(0)) == 0.5
    assert allowed_accuracy(Pure(1)) == pytest.approx(math.e / (1 + math.e))
    assert allowed_accuracy(Approximate(1, 1)) == 1


def test_negative_control_a_promise_that_is_broken_is_noticed():
    pairs = gaussian_pairs([[0, 0], [0.1, 0]], [np.eye(2)] * 2)  # the laws are further apart
    made = calibrate_distribution(pairs, 0.2, 0.001).mechanism
    assert property_inference(made, gaussian_shadows(3, 9), SeededRandomness(1)).violated


def test_shadow_datasets_from_records():
    records = read(patients(900))
    auxiliary, testing, modelling = records.split(
        [300, 300], np.random.default_rng(1).permutation(900)
    )
    shadows = draw_shadows(
        HIDE.pairs[0], auxiliary, testing, records=30, datasets=60, repetitions=5,
        randomness=SeededRandomness(4),
    )  # fmt: skip
    assert shadows.train.shape == shadows.test.shape == (5, 60, 2)
    fit = fit_pairs(HIDE, QUERY, modelling, records=30, replications=300, apart_from=testing,
                    randomness=SeededRandomness(5))  # fmt: skip
    made = calibrate_distribution(fit.pairs, 0.3, 0.001).mechanism
    told = property_inference(made, shadows, SeededRandomness(6))
    assert told.before.value > told.after.value
    with pytest.raises(DataError, match="records in common"):
        draw_shadows(HIDE.pairs[0], auxiliary, records, records=30)
    with pytest.raises(DataError, match="too few records"):
        draw_shadows(HIDE.pairs[0], auxiliary, testing, records=300)
