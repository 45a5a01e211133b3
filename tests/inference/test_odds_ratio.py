"""The private test of the odds ratio: size, optimality, p-values, intervals, the decision alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import Congenial, Schema, SemiAdjacent, Table, margin, publish, release_table, total
from congenial.errors import FigureError, GuaranteeError, StructureError
from congenial.inference.odds_ratio import OddsRatioTest, lemma_34_excess, odds_ratio_test
from congenial.mechanisms import CongenialCounts, CongenialGaussian, KernelGaussian
from congenial.papers.semi_dp.examples import best_power
from congenial.privacy import Guarantee, Pure
from congenial.sampling import DiscreteGaussian, DoubleGeometric, SeededRandomness
from congenial.sampling.canonical import CanonicalNormal, Constructed, Tulap

SEED = 51_007
ALPHA = 1e-6
ROWS, COLUMNS = (7, 5), (6, 6)
NOISES = [Tulap(1), Tulap(0.5, 0.01), CanonicalNormal(1), Constructed(Pure(2))]
each = pytest.mark.parametrize("noise", NOISES, ids=lambda n: n.tradeoff.words)


def test_the_law_of_x11():
    """Fisher's noncentral hypergeometric, exactly."""
    test = OddsRatioTest(ROWS, COLUMNS, Tulap(1))
    exact = [Fraction(n, 903) for n in (1, 30, 200, 400, 240, 32)]
    assert test.support.tolist() == [1, 2, 3, 4, 5, 6]
    assert np.allclose(test.law(2.0), [float(p) for p in exact], atol=1e-14)
    for rows, columns, w in (((4, 9), (8, 5), 0.7), ((3, 20), (10, 13), 3.0)):
        one = OddsRatioTest(rows, columns, Tulap(1))
        theirs = stats.nchypergeom_fisher(sum(rows), rows[0], columns[0], w)
        assert np.allclose(one.law(w), theirs.pmf(one.support), rtol=1e-9)


def test_oracle_values():
    """Thresholds and powers computed with 30 digits."""
    known = [
        (Tulap(1), 0.05, 6.192447142223054, 0.084188498703264088, 0.028965708837465996),
        (Tulap(1), 0.1, 5.4233706474205101, 0.16648916641596055, 0.058204528296576258),
        (Tulap(0.5, 0.01), 0.05, 7.8152630408762783, 0.070106051383659725, 0.034303652494335575),
        (CanonicalNormal(1), 0.05, 5.7049304303312333, 0.10602792030811401, None),
    ]
    for noise, alpha, m, power, wrong in known:
        test = OddsRatioTest(ROWS, COLUMNS, noise)
        assert test.threshold(alpha) == pytest.approx(m, abs=1e-9)
        assert test.power(alpha, 2.0) == pytest.approx(power, abs=1e-12)
        if wrong is not None:
            assert test.power(alpha, 0.5) == pytest.approx(wrong, abs=1e-12)


def test_planted_the_printed_direction():
    """With w = odds2 / odds1 and large x11 the test has less power than its size."""
    test = OddsRatioTest(ROWS, COLUMNS, Tulap(1))
    printed = test.power(0.05, 1 / 2.0)  # the alternative w = 2 as the paper writes it
    assert printed < 0.03 < 0.05 < test.power(0.05, 2.0)


@each
def test_size_privacy_and_unbiasedness(noise):
    test = OddsRatioTest((9, 4), (5, 8), noise)
    for alpha in (0.01, 0.05, 0.3):
        phi = test.rejection(alpha)
        assert test.law(1.0) @ phi == pytest.approx(alpha, abs=1e-12)
        assert lemma_34_excess(phi, noise.tradeoff) < 1e-12
        curve = test.power(alpha, [0.2, 0.5, 1.0, 2.0, 5.0, 20.0])
        assert np.all(np.diff(curve) > 0)
    assert lemma_34_excess([0.0, 0.5], Pure(1)) > 0  # a test that is not private


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 0.0), (0.5, 0.05), (0.2, 0.1)])
@pytest.mark.parametrize("w", [1.5, 4.0])
def test_power_is_the_optimum_of_the_linear_programme(eps, delta, w):
    for rows, columns in ((ROWS, COLUMNS), ((12, 4), (5, 11))):
        test = OddsRatioTest(rows, columns, Tulap(eps, delta))
        best = best_power(test, eps, delta, 0.05, w)
        assert test.power(0.05, w) == pytest.approx(best, abs=1e-9)
    clumsy = OddsRatioTest(ROWS, COLUMNS, CanonicalNormal(1))
    assert clumsy.power(0.05, w) > 0  # another promise: not compared


@each
def test_p_value_agrees_with_the_test_and_is_uniform_under_the_null(noise):
    test = OddsRatioTest(ROWS, COLUMNS, noise)
    m = test.threshold(0.05)
    assert test.p_value(m) == pytest.approx(0.05, abs=1e-10)
    assert test.p_value(m + 0.3) < 0.05 < test.p_value(m - 0.3)
    rng = np.random.default_rng(SEED)
    x = rng.choice(test.support, 500, p=test.law(1.0))
    u = x + noise.draw(SeededRandomness(SEED), 500)
    p = np.array([test.p_value(float(v)) for v in u])
    assert stats.kstest(p, "uniform").pvalue > ALPHA
    low = np.array([test.p_value(float(v), alternative="less") for v in u[:50]])
    assert np.allclose(low + p[:50], 1, atol=1e-12)
    both = np.array([test.p_value(float(v), alternative="two-sided") for v in u])
    assert stats.binom.sf(np.count_nonzero(both <= 0.05) - 1, len(both), 0.05) > ALPHA


def test_intervals_cover():
    test, w = OddsRatioTest((14, 11), (12, 13), Tulap(2)), 3.0
    rng = np.random.default_rng(SEED)
    x = rng.choice(test.support, 150, p=test.law(w))
    u = x + Tulap(2).draw(SeededRandomness(SEED), 150)
    inside = sum(low <= w <= high for low, high in (test.interval(float(v), 0.9) for v in u))
    assert stats.binom.cdf(inside, 150, 0.9) > ALPHA
    assert stats.binom.cdf(150 * 0.7, 150, 0.9) < ALPHA  # so a fifth too narrow would be seen
    low, high = test.interval(7.2, 0.9)
    assert test.p_value(7.2, low) == pytest.approx(0.05, abs=1e-9)
    assert test.p_value(7.2, high, "less") == pytest.approx(0.05, abs=1e-9)
    assert test.interval(400.0, 0.9) == (math.inf, math.inf)
    assert test.interval(-400.0, 0.9) == (0.0, 0.0)


def test_the_decision_alone():
    test = OddsRatioTest(ROWS, COLUMNS, Tulap(1))
    source, n = SeededRandomness(SEED), 600
    found = [test.decide(6, 0.05, randomness=source) for _ in range(n)]
    rejected = sum(one.reject for one in found)
    assert stats.binomtest(rejected, n, float(test.rejection(0.05)[-1])).pvalue > ALPHA
    assert stats.binomtest(rejected, n, 0.05).pvalue < ALPHA
    assert found[0].tradeoff == Pure(1)
    assert not found[0].publishable
    assert test.decide(3, 0.05).publishable
    with pytest.raises(FigureError) as error:
        test.decide(77, 0.05)
    assert "77" not in str(error.value)
    with pytest.raises(GuaranteeError, match="canonical"):
        OddsRatioTest(ROWS, COLUMNS, DoubleGeometric(Fraction(1))).decide(3, 0.05)


# --- from a release -------------------------------------------------------------------------------


SCHEMA = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b"]}})
TABLE = Table(SCHEMA, SCHEMA.names, np.array([[14, 6], [7, 13]]))


def adjacency(*statements):
    return SemiAdjacent(publish(TABLE, *(statements or (margin("g"), margin("x")))))


def test_integer_releases_become_the_optimal_test():
    """Double geometric noise given both margins plus a uniform is Tulap at the same epsilon."""
    mechanism = Congenial.calibrate(Guarantee.pure(1, adjacency()), ("g", "x"))
    release = release_table(mechanism, TABLE, SeededRandomness(SEED))
    plain, optimal = odds_ratio_test(release), odds_ratio_test(release, SeededRandomness(SEED))
    assert plain.test.rows == (20, 20)
    assert plain.test.columns == (21, 19)
    assert isinstance(plain.test.noise, DoubleGeometric)
    assert plain.test.noise.eps == 1
    assert isinstance(optimal.test.noise, Tulap)
    assert optimal.test.noise.epsilon == 1
    assert abs(optimal.statistic - plain.statistic) < 0.5
    assert plain.p_value() >= optimal.test.p_value(plain.statistic + 0.5) - 1e-12
    low, high = plain.interval(0.9)
    assert low < high


def test_p_values_from_integers_are_conservative():
    test = OddsRatioTest(ROWS, COLUMNS, DoubleGeometric(Fraction(1)))
    rng = np.random.default_rng(SEED)
    x = rng.choice(test.support, 4000, p=test.law(1.0))
    y = x + DoubleGeometric(Fraction(1)).draw(SeededRandomness(SEED), 4000)
    p = np.array([test.p_value(int(v)) for v in y])
    for alpha in (0.05, 0.2):
        assert stats.binom.sf(np.count_nonzero(p <= alpha) - 1, 4000, alpha) > ALPHA


def test_gaussian_releases():
    discrete = CongenialGaussian.calibrate(
        Guarantee.zero_concentrated("1/2", adjacency()), ("g", "x")
    )
    seen = odds_ratio_test(release_table(discrete, TABLE, SeededRandomness(SEED)))
    assert isinstance(seen.test.noise, DiscreteGaussian)
    noise = discrete.noise(SeededRandomness(SEED), 4000)[:, 0, 0].astype(float)
    five_errors = 5 * np.sqrt(2 / 4000)
    assert noise.var() == pytest.approx(seen.test.noise.variance, rel=five_errors)
    real = KernelGaussian.calibrate(Guarantee.gaussian(1, adjacency()), ("g", "x"))
    seen = odds_ratio_test(release_table(real, TABLE, SeededRandomness(SEED)))
    assert isinstance(seen.test.noise, CanonicalNormal)
    noise = real.noise(SeededRandomness(SEED), 4000)[:, 0, 0]
    assert stats.kstest(noise, seen.test.noise.cdf).pvalue > ALPHA
    assert 0 < seen.p_value() < 1


def test_releases_that_do_not_serve():
    one = Congenial.calibrate(Guarantee.pure(1, adjacency(total(by="g"))), ("g", "x"))
    with pytest.raises(StructureError, match="2 x 2"):
        odds_ratio_test(release_table(one, TABLE, SeededRandomness(SEED)))
    counts = CongenialCounts.calibrate(Guarantee.pure(1, adjacency()), ("g", "x"))
    with pytest.raises(StructureError, match="nonnegative"):
        odds_ratio_test(release_table(counts, TABLE, SeededRandomness(SEED)))


def test_bad_margins():
    with pytest.raises(StructureError, match="zero"):
        OddsRatioTest((5, 0), (2, 3), Tulap(1))
    with pytest.raises(FigureError, match="one 2 x 2"):
        OddsRatioTest((5, 1), (2, 3), Tulap(1))
    test = OddsRatioTest(ROWS, COLUMNS, Tulap(1))
    for bad in (0.0, math.inf, -1.0):
        with pytest.raises(GuaranteeError, match="odds ratio"):
            test.law(bad)
    with pytest.raises(GuaranteeError, match="alpha"):
        test.power(1.0, 2.0)
    with pytest.raises(GuaranteeError, match="level"):
        test.interval(3.0, 95)
    with pytest.raises(GuaranteeError, match="alternative"):
        test.p_value(3.0, alternative="both")  # type: ignore[arg-type]
