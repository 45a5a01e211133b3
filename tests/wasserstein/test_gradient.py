"""The K-norm gradient mechanism: its loss by enumeration, its law, and its bounds."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import chi2

from congenial.errors import DataError, GuaranteeError, StructureError
from congenial.mechanisms.wasserstein.gradient import WassersteinGradient
from congenial.mechanisms.wasserstein.statistics import Box, Mean, Quantile, Regression
from congenial.public.scenarios import IndependentRecords
from congenial.public.scenarios_finite import FiniteScenarios
from congenial.public.secrets import LEAKAGE, SecretPairs
from congenial.sampling.randomness import SeededRandomness
from tests.wasserstein import cases

ALPHA = 1e-6
SEED = 31
UNIT = Box((0.0,), (1.0,))
SQUARE = Box((-1.0, -1.0), (1.0, 1.0))
VALUES = np.array([0.0, 0.3, 1.0])  # what answers 0, 1, 2 stand for
ROWS = np.array([[1.0, -1.0, 1.0], [0.5, 0.5, 0.0], [-1.0, 0.2, 1.0]])
ORDINARY = SecretPairs(cases.SCHEMA, (IndependentRecords("replace-one"),), level="database")


def people(*facts) -> SecretPairs:
    given = FiniteScenarios.independent({"a": [[2, 1, 1]] * 3, "b": [[1, 1, 8]] * 3})
    for words, holds in facts:
        given = given.given(words, holds)
    return SecretPairs(cases.SCHEMA, (given,), level="database")


STATISTICS = {
    "mean": (Mean(UNIT), VALUES, 41),
    "median": (Quantile(UNIT), VALUES, 41),
    "upper quartile": (Quantile(UNIT, 0.75), VALUES, 41),
    "linear": (Regression(SQUARE, 1.5, 1.0), ROWS, 9),
    "logistic": (
        Regression(
            SQUARE,
            1.5,
            kind="logistic",
            norm="l1",
        ),
        ROWS / 2,
        9,
    ),
}


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("name", STATISTICS)
def test_loss_never_exceeds_epsilon(name, public):
    statistic, records, points = STATISTICS[name]
    if name == "logistic":
        records = np.column_stack([records[:, :2], ROWS[:, 2]])
    facts = [("two answered alike", lambda x: len(set(x)) < 3)] if public else []
    pairs = people(*facts)
    mechanism = WassersteinGradient.calibrate(pairs, F(1), statistic, points)
    worst = 0.0
    for pair in pairs.conditionals():
        mixed = []
        for law in (pair.left, pair.right):
            p = np.exp(law.log_masses())
            laws = [np.exp(mechanism.log_density(records[row.astype(int)])) for row in law.points]
            mixed.append(np.log(p @ np.array(laws)))
        worst = max(worst, float(np.abs(mixed[0] - mixed[1]).max()))
    assert 0.01 < worst <= 1


def test_draws_follow_the_density():
    mechanism = WassersteinGradient.calibrate(ORDINARY, F(4), Quantile(UNIT), 33)
    data = np.array([0.1, 0.2, 0.4, 0.45, 0.9])
    drawn = mechanism.draw(data, SeededRandomness(SEED), 20_000)
    seen = np.bincount(np.round(drawn[:, 0] * 32).astype(int), minlength=33)
    p = np.exp(mechanism.log_density(data)) * 20_000
    assert chi2.sf(((seen - p) ** 2 / p).sum(), 32) > ALPHA
    off = np.exp(mechanism.log_density(data + 0.1)) * 20_000  # negative control
    assert chi2.sf(((seen - off) ** 2 / off).sum(), 32) < ALPHA


def test_mean_is_a_truncated_laplace():
    mechanism = WassersteinGradient.calibrate(ORDINARY, F(1), Mean(UNIT), 65)
    data = np.linspace(0, 1, 20)
    logs = mechanism.log_density(data)
    y = mechanism.grid[:, 0]
    expected = -20 * np.abs(y - 0.5) / 2
    assert logs - logs[32] == pytest.approx(expected - expected[32], abs=2e-5)  # less 2 H


def test_errors_fall_like_one_over_n():
    """n times the error has one law: the cost of privacy is below that of sampling."""
    spread = []
    for n in (200, 800):
        mechanism = WassersteinGradient.calibrate(ORDINARY, F(1), Mean(UNIT), 1 << 14)
        data = np.random.default_rng(SEED).random(n)
        drawn = mechanism.draw(data, SeededRandomness(SEED), 4_000)
        spread.append(n * np.abs(drawn[:, 0] - data.mean()).mean())
    assert spread[0] == pytest.approx(2, rel=0.1)  # Laplace of scale 2 / epsilon
    assert spread[1] == pytest.approx(2, rel=0.1)


def test_promise_and_refusals():
    mechanism = WassersteinGradient.calibrate(ORDINARY, F(1), Mean(UNIT))
    assert LEAKAGE in mechanism.guarantee.not_covered
    assert mechanism.guarantee.tradeoff.eps == 1
    release = mechanism.release(np.array([0.2, 0.4]), SeededRandomness(SEED))
    assert release.description.epsilon == 1  # Delta_z is one record
    again = type(release).from_payload(
        name="release", description=release.description, guarantee=release.guarantee,
        randomness=release.randomness, publishable=False, payload=release.payload(),
    )  # fmt: skip
    assert again == release
    with pytest.raises(GuaranteeError, match="changed records"):
        WassersteinGradient.calibrate(cases.dependent(), F(1), Mean(UNIT))
    with pytest.raises(StructureError, match="grid"):
        WassersteinGradient.calibrate(ORDINARY, F(1), Regression(SQUARE, 1.0), 1 << 12)
    with pytest.raises(DataError, match="bounds"):
        mechanism.log_density(np.array([2.0]))
    with pytest.raises(StructureError, match="box"):
        Box((0.0,), (math.inf,))
