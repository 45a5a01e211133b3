"""From laws to a release: both promises in words, payload and back, what is refused."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from congenial import Figures, Guarantee, Schema, SeededRandomness, estimate
from congenial.data.vector_statistics import Statistic, Statistics, Vector
from congenial.errors import BundleError, DataError, InferenceError
from congenial.kinds.statistics import KIND, StatisticsReport
from congenial.kinds.statistics_verification import ENOUGH, rebuild
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
from congenial.mechanisms.distribution.persons import person_promise
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.mechanisms.distribution.target import Target
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs import DistributionPairs, GaussianLaw
from congenial.privacy import Approximate, Gaussian, Pure, read_description
from congenial.sampling.randomness import SystemRandomness
from tests.mechanisms.distribution.cases import ALPHA

SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 4]}})
QUERY = Statistics(SCHEMA, (Statistic.mean("age"), Statistic.count("sex = 'f'")))
LAWS = [
    GaussianLaw.of("few women", [2.0, 40], [[0.02, 0.1], [0.1, 24]]),
    GaussianLaw.of("many women", [2.1, 50], [[0.02, 0.1], [0.1, 24]]),
]
PAIRS = DistributionPairs.given(QUERY, LAWS, records=100)


def calibrated(**keywords) -> DistributionMechanism:
    return calibrate_distribution(PAIRS, 1, 0.001, **keywords).mechanism


def test_words_for_notebooks():
    gaussian = calibrated(mechanism="expected_gaussian")
    assert repr(gaussian) == "expected_gaussian(epsilon = 1, delta = 0.001)"
    pure = calibrate_distribution(PAIRS, 1, 0, mechanism="directional_laplace").mechanism
    assert repr(pure) == "directional_laplace(epsilon = 1)"


def test_a_question_about_a_table_is_refused_with_what_can_be_asked():
    release = calibrated().release(Vector(QUERY.names, [2.03, 44], 100), SeededRandomness(1))
    with pytest.raises(InferenceError, match=r"age.*statistics\.csv and in release\.interval"):
        estimate(release, "count(sex = 'f')")


def test_noise_is_enough_where_the_stated_laws_need_none():
    """Fitted laws may be within delta of each other, and noise was built for refits besides. Laws
    that need noise still refuse less of it.
    """
    noise = VectorNoise.laplace(np.eye(1), 3.7)
    query = Statistics(SCHEMA, (Statistic.mean("age"),))
    for means, deviation, enough in (((45.634, 45.635), 2.8, True), ((0.0, 8.0), 0.1, False)):
        laws = [GaussianLaw.of(f"{mean}", [mean], [[deviation]]) for mean in means]
        pairs = DistributionPairs.given(query, laws)
        source = "distribution-privacy, Theorem 3.2"
        target = Target(1, 0.001)
        made = DistributionMechanism("approximate_wasserstein", pairs, noise, target, source)
        release = made.release(Vector(query.names, [2.0], 100), SeededRandomness(1))
        assert KIND.checks(release)[ENOUGH] is enough


def test_a_mechanism_is_built_again_from_its_promise():
    """For `verify`: of either kind of promise, and of no other."""
    for made in (
        calibrated(mechanism="expected_gaussian"),
        calibrate_distribution(PAIRS, 1, 0, mechanism="directional_laplace").mechanism,
    ):
        again = list(rebuild(made.name, made.noise, made.guarantee))
        assert [(one.name, one.noise, one.target) for one in again] == [
            (made.name, made.noise, made.target)
        ]
        other = replace(made.guarantee, tradeoff=Gaussian(1))
        assert list(rebuild(made.name, made.noise, other)) == []


def test_a_release_and_its_words():
    made = calibrated(mechanism="expected_gaussian")
    release = made.release(Vector(QUERY.names, [2.03, 44], 100), SeededRandomness(1), "ward")
    assert release.guarantee.tradeoff == Approximate(1, 0.001)
    told = release.explain()
    for words in (
        "the whole dataset of 100 records",
        "for the whole dataset",
        "under one scenario",
        "the distributions of the statistics are as stated",
        "numerics are idealised",
        "the number of records is public",
        "do not add up",
        "About individual people",
        "Basis: theorem",
    ):
        assert words in told, words
    assert not release.publishable
    assert release.value("mean age") == release.values[0]
    assert made.release(Vector(QUERY.names, [2.03, 44], 100)).publishable
    assert "epsilon = 1" in repr(made)


def test_persons_get_nothing_from_noise_along_one_direction():
    made = calibrated(mechanism="directional_laplace")
    assert made.person_guarantee is None
    assert not made.description.persons
    assert any("promises nothing about them" in one for one in made.guarantee.not_covered)
    release = made.release(Vector(QUERY.names, [2.03, 44], 100), SeededRandomness(1))
    assert release.explain().endswith(
        "Individual people: this release promises nothing about them."
    )


def test_what_persons_are_promised_equals_brute_force():
    """Every replacement of one record among three, and the exact sup of the noise's loss."""
    small = DistributionPairs.given(QUERY, LAWS, records=3)
    people = list(itertools.product("fm", range(5)))
    moves = set()
    for rest in itertools.combinations_with_replacement(people, 2):
        for one, other in itertools.product(people, repeat=2):
            vectors = []
            for new in (one, other):
                ages = [age for _, age in (*rest, new)]
                vectors.append((sum(ages) / 3, sum(sex == "f" for sex, _ in (*rest, new))))
            moves.add(tuple(np.round(np.subtract(*vectors), 12)))
    v = np.array(sorted(moves))
    for noise in (
        VectorNoise.gaussian([[2.0, 0.7], [0.7, 3.0]]),
        VectorNoise.laplace(np.linalg.qr(np.array([[1.0, 2.0], [2.0, -0.5]]))[0], [1.5, 2.5]),
    ):
        found = person_promise(noise, small.change)
        if noise.family == "gaussian":
            exact = np.sqrt(np.einsum("ij,jk,ik->i", v, np.linalg.inv(noise.covariance), v)).max()
            assert isinstance(found, Gaussian)
            assert float(found.mu) == pytest.approx(exact, rel=1e-9)
        else:
            exact = (np.abs(v @ noise.directions) / noise.scales).sum(axis=1).max()
            assert isinstance(found, Pure)
            assert float(found.eps) == pytest.approx(exact, rel=1e-9)
    assert person_promise(VectorNoise.gaussian(np.eye(2)), [1.0, np.inf]) is None
    assert person_promise(VectorNoise.gaussian(np.diag([1.0, 0.0])), [1.0, 1.0]) is None


def test_the_ledger_s_description():
    made = calibrated(mechanism="expected_gaussian")
    description = made.description
    assert description.persons
    mu = float(made.person_guarantee.tradeoff.mu)
    assert float(description.rho) == pytest.approx(mu**2 / 2)
    assert description.epsilon == 0
    pure = calibrated(mechanism="expected_laplace").description
    assert pure.rho == 0
    assert pure.epsilon > 0
    again = read_description(SCHEMA, json.loads(json.dumps(description.to_dict())))
    assert again == description


@pytest.mark.parametrize("name", ["expected_gaussian", "directional_laplace"])
def test_payload_and_back(name):
    made = calibrated(mechanism=name)
    release = made.release(Vector(QUERY.names, [2.03, 44], 100), SeededRandomness(1), "ward")
    files = release.payload()
    told = json.loads(json.dumps(release.guarantee.to_dict()))
    again = StatisticsRelease.from_payload(
        name="ward",
        description=release.description,
        guarantee=Guarantee.from_dict(Figures(SCHEMA), told),
        randomness=release.randomness,
        publishable=release.publishable,
        payload=files,
    )
    assert again == release
    assert again.explain() == release.explain()
    rows = list(csv.DictReader(io.StringIO(files["statistics.csv"].decode())))
    assert list(rows[0]) == ["statistic", "value", "sd", "low_90", "high_90"]
    for row in rows:
        around = release.interval(row["statistic"], 0.9)
        assert around.low - 1e-5 * abs(around.low) <= float(row["low_90"]) <= around.low
        assert around.high <= float(row["high_90"]) <= around.high + 1e-5 * abs(around.high)
    broken = files | {"statistics.csv": b"statistic,value,sd,low_90,high_90\nmean age,x,1,0,2\n"}
    with pytest.raises(BundleError, match="cannot be read"):
        StatisticsRelease.from_payload(
            name="ward", description=release.description, guarantee=release.guarantee,
            randomness="", publishable=False, payload=broken,
        )  # fmt: skip


def test_intervals_cover_the_truth():
    made, truth, draws = calibrated(mechanism="directional_laplace"), np.array([2.03, 44]), 4000
    values = made.draw(truth, SeededRandomness(8), draws)
    release = made.release(Vector(QUERY.names, truth, 100), SeededRandomness(1))
    for at, name in enumerate(QUERY.names):
        interval = release.interval(name, 0.9)
        half = (interval.high - interval.low) / 2
        hits = int(np.sum(np.abs(values[:, at] - truth[at]) <= half))
        assert stats.binom.cdf(hits, draws, 0.9) > ALPHA
        assert stats.binom.sf(hits - 1, draws, 0.9) > ALPHA or made.noise.dither[at] > 0
    with pytest.raises(BundleError, match="no statistic 'median'"):
        release.interval("median", 0.9)
    with pytest.raises(InferenceError, match="level 2"):
        release.interval("mean age", 2)


def test_values_are_rounded_to_a_public_grid():
    made = calibrated(mechanism="expected_gaussian")
    values = made.draw([2.03, 44], SystemRandomness(), 50) / made.grid
    assert np.array_equal(values, np.round(values))
    assert made.noise.scales.min() / 2048 <= made.grid <= made.noise.scales.min() / 1024
    assert math.log2(made.grid).is_integer()


def test_only_the_right_statistics_are_released():
    made = calibrated()
    with pytest.raises(DataError, match="differ from those for which the noise was calibrated"):
        made.release(Vector(["mean age", "other"], [2.03, 44], 100))
    with pytest.raises(DataError, match="a different number") as caught:
        made.release(Vector(QUERY.names, [2.03, 44], 99))
    assert "99" not in str(caught.value)


def test_statistics_on_a_grid_are_dithered_where_noise_could_be_stripped():
    along = calibrated(mechanism="directional_laplace")
    assert along.noise.dither.tolist() == [0.01, 1.0]
    assert any("spread over one step of its grid" in one for one in along.assumptions)
    plain = calibrated(mechanism="directional_laplace", dither=False)
    assert not plain.noise.dither.any()
    everywhere = calibrated(mechanism="expected_gaussian")
    assert not everywhere.noise.dither.any()  # the noise is wider than the grid everywhere


def test_noise_along_one_direction_is_stripped_without_the_dither():
    """Whole counts plus noise along v: one grid point explains the release, until dithered."""
    random = np.random.default_rng(6)
    truth = random.integers(0, 101, size=(300, 2)).astype(float)
    v = np.array([1.0, (math.sqrt(5) - 1) / 2])  # no ratio of whole numbers
    noise = VectorNoise.laplace((v / np.linalg.norm(v))[:, None], 20.0)

    def strip(y):
        line = noise.directions[:, 0]
        steps = (y[:, :1] - np.arange(101)) / line[0]
        other = y[:, 1:] - steps * line[1]
        off = np.abs(other - np.round(other)) + 10 * ((other < -0.5) | (other > 100.5))
        at = np.argmin(off, axis=1)
        return np.stack([at, np.round(other[np.arange(len(y)), at])], axis=1)

    bare = truth + noise.draw(SeededRandomness(2), 300)
    wrapped = truth + noise.dithered([1.0, 1.0]).draw(SeededRandomness(2), 300)
    assert np.mean((strip(bare) == truth).all(axis=1)) > 0.95
    assert np.mean((strip(wrapped) == truth).all(axis=1)) < 0.15


def test_the_report_says_whether_the_plan_named_the_mechanism():
    made = calibrated(mechanism="expected_gaussian")
    release = made.release(Vector(QUERY.names, [2.03, 44], 100), SeededRandomness(1), "ward")
    for names, words in (
        (("optimum",), ("The mechanism that the plan names", "as the plan says")),
        (("optimum", "wasserstein"), ("Every mechanism that applies", "least expected error")),
    ):
        tried = tuple((name, "1", "1", "2", "") for name in names)
        told = StatisticsReport(tried, "", None, "").render(release, "the promise")
        assert all(one in told for one in words)
    assert "as the plan says" not in told
