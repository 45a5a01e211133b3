"""The K-norm gradient mechanism: its loss by enumeration, its law, and its bounds."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import chi2

from congenial.errors import DataError, GuaranteeError, StructureError
from congenial.mechanisms.wasserstein.convex_statistics import Box, Mean, Quantile, Regression
from congenial.mechanisms.wasserstein.gradient import WassersteinGradient
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios import IndependentRecords
from congenial.pairs.secrets import LEAKAGE, SecretPairs
from congenial.sampling.randomness import SeededRandomness
from tests.mechanisms.wasserstein import cases

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


class Chosen(SeededRandomness):
    """A first proposal at a place, with a second word of 0; then the words that are named."""

    def __init__(self, place, following):
        super().__init__(SEED)
        self.place, self.following, self.begun = place, list(following), False

    def words(self, n):
        words = super().words(n).copy()
        if not self.begun:
            self.begun, words[:2] = True, (self.place << 2, 0)
        return words

    def word(self):
        return self.following.pop(0) if self.following else super().word()


@pytest.mark.parametrize("n", [200, 400, 1491, 1600])
def test_small_probabilities_have_no_holes(n):
    """The far end of the grid, down to weights that are 0 in doubles, is drawn as it should."""
    mechanism = WassersteinGradient.calibrate(ORDINARY, F(1), Mean(UNIT), 65)
    data = np.zeros(n)
    logs = mechanism.log_density(data) - mechanism.log_density(data)[0]
    weights = np.exp(logs)
    scale = (2**62 - 4 * 65) / (math.fsum(weights) * (1 + 2.0**-40))
    last = int((np.floor(weights * scale).astype(np.uint64) + np.uint64(1)).sum()) - 1
    # accepted with probability 2^bits: after as many zero words, by the word that decides
    bits = (logs[-1] + math.log(scale)) / math.log(2)
    zeros, rest = divmod(-bits, 64)
    limit = 2 ** (64 - rest)
    for word, kept in ((int(limit * 0.999), True), (int(limit * 1.001) + 1, False)):
        words = [0] * (int(zeros) - 1) + [word]
        drawn = mechanism.draw(data, Chosen(last, words), 1)
        assert (drawn[0, 0] == 1.0) == kept


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
    five_errors = 5 / np.sqrt(4_000)
    assert spread == pytest.approx([2, 2], rel=five_errors)  # Laplace of scale 2 / epsilon


def test_logistic_responses_are_0_or_1():
    """-1 and 1 would move the gradient by more than is accounted for: a loss of 1.42."""
    line = Box((-10.0,), (20.0,))
    mechanism = WassersteinGradient.calibrate(
        ORDINARY, F(1), Regression(line, 1.0, kind="logistic"), 33
    )
    for response in (-1.0, 0.5, 2.0):
        for refuses in (mechanism.log_density, mechanism.check_data):  # the second before a draw
            with pytest.raises(DataError, match=r"neither 0 nor 1|outside the public bounds"):
                refuses(np.array([[1.0, 1.0], [0.5, response]]))
    mechanism.check_data(np.array([[1.0, 1.0], [0.5, 0.0]]))
    with pytest.raises(StructureError, match="rounding errors of 1,000,000 records"):
        mechanism.check_data(np.zeros((1_000_000, 2)))
    with pytest.raises(StructureError, match="response = 50"):
        Regression(line, 1.0, 50.0, "logistic")
    rest = np.random.default_rng(SEED).choice([-1.0, 0.5, 1.0], 60)
    rest = np.column_stack([rest, rest > 0])
    every = [[x, t] for x in (-1.0, 0.0, 1.0) for t in (0.0, 1.0)]
    logs = [mechanism.log_density(np.vstack([rest, [one]])) for one in every]
    assert max(np.abs(a - b).max() for a in logs for b in logs) <= 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_records_that_are_no_numbers_are_refused(bad):
    for statistic in (Mean(UNIT), Quantile(UNIT)):
        with pytest.raises(DataError, match="missing or infinite"):
            statistic.gradient(np.array([0.2, bad]), np.array([[0.5]]))
    for kind in ("linear", "logistic"):
        regression = Regression(UNIT, 1.0, kind=kind)
        for record in ([bad, 1.0], [0.5, bad]):
            with pytest.raises(DataError, match="missing or infinite"):
                regression.gradient(np.array([record]), np.array([[0.5]]))


def test_records_whose_rounding_is_not_allowed_for_are_refused():
    """A gradient of n terms is off by up to n^2 units, times the rate; H = 2^-20 is counted."""
    mechanism = WassersteinGradient.calibrate(ORDINARY, F(1), Quantile(UNIT), points=16)
    assert mechanism.draw(np.zeros((20_000, 1)), SeededRandomness(SEED), 1).shape == (1, 1)
    with pytest.raises(StructureError, match="rounding errors of 60,000 records"):
        mechanism.draw(np.zeros((60_000, 1)), SeededRandomness(SEED), 1)


@pytest.mark.parametrize(
    ("low", "high"),
    [((1.0,), (0.0,)), ((0.0,), (math.inf,)), ((0.0, 1.0), (1.0, 0.0)), ((), ())],
)
def test_a_range_that_is_empty_or_unbounded_is_refused(low, high):
    with pytest.raises(StructureError, match="empty or infinite"):
        Box(low, high)


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
    with pytest.raises(StructureError, match="bounds"):
        Box((0.0,), (math.inf,))
