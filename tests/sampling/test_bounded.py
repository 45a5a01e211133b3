"""Bounded cells given group totals: the law by enumeration, normaliser, chi-square, large cases."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from congenial.errors import FigureError, StructureError
from congenial.sampling import DiscreteGaussian, DoubleGeometric, SeededRandomness, tree_messages
from congenial.sampling.tree_of_sums import TreeOfSums
from tests.sampling.conditioned import attempt, constant, counts_and_probs, log_sum, tables, weights

SEED = 5150
LAPLACE, GAUSS = DoubleGeometric(Fraction(1, 2)), DiscreteGaussian(Fraction(3, 2))
# counts, low, high
CASES = [
    ([2, 0, 5, 1], 0, None),
    ([2, 1, 5], 0, [6, 1, 6]),
    ([0, 0, 0, 9], 0, None),
    ([0, 0, 0, 2], 0, 9),
    ([8, 9, 8, 3], 0, 9),
    ([3, 1, 4], 0, [3, 8, 4]),
]


def conforming(s, high=None):
    total = sum(s)
    most = np.broadcast_to(total if high is None else high, len(s))
    m = tables([0] * len(s), np.minimum(most, total))
    return m[m.sum(axis=1) == total]


@pytest.mark.parametrize("law", [LAPLACE, GAUSS])
@pytest.mark.parametrize(("s", "low", "high"), CASES)
def test_law_by_enumeration(s, low, high, law, fits):
    groups = TreeOfSums.of_groups([0] * len(s), s, law, low, high)
    m = conforming(s, high)
    w = weights(law, m - np.array(s))
    assert groups.log_Z == pytest.approx(log_sum(w), abs=1e-11)
    assert groups.log_density(m) == pytest.approx(np.log(w / w.sum()), abs=1e-11)
    draws = groups.draw_many(SeededRandomness(SEED), 20_000)
    assert fits(*counts_and_probs(draws, m, w))
    if len(m) > 20:  # negative control: a cell's centre off by one
        assert not fits(*counts_and_probs(draws, m, weights(law, m - np.array([s[0] + 1, *s[1:]]))))


@pytest.mark.parametrize("law", [LAPLACE, GAUSS])
@pytest.mark.parametrize(("s", "low", "high"), CASES)
def test_every_attempt_has_the_stated_law(s, low, high, law):
    """Proposal x acceptance is w(m) times one constant, in balls of 256 bits, for every table."""
    groups = TreeOfSums.of_groups([0] * len(s), s, law, low, high)
    splitter, ratios = groups.splitter, []
    for m in conforming(s, high)[::3]:
        u = m - np.array(s)
        log_p, largest = attempt(splitter, [0], u[splitter.order])
        assert largest <= 0
        with ctx.workprec(256):
            leaves = [tree_messages.Leaf(law).exponent(int(v)) for v in u]
            ratios.append(log_p - tree_messages.ball(sum(leaves, Fraction(0))))
    assert constant(ratios)


def test_normaliser_in_exact_rationals():
    """a = e^-eps enters Z as a polynomial with integer coefficients: the counts of each norm."""
    s = np.array([3, 0, 2])
    norms = Counter(np.abs(conforming(s) - s).sum(axis=1).tolist())
    with ctx.workprec(256):
        a = (-tree_messages.ball(Fraction(1, 2))).exp()
        exact = sum((times * a**norm for norm, times in norms.items()), tree_messages.arb(0))
        expected = float(exact.log())
    assert TreeOfSums.of_groups([0] * 3, s, LAPLACE).log_Z == pytest.approx(expected, abs=1e-12)


def test_price_of_a_sign_constraint():
    """Two bins, n = 50, eps_cell = .5: moving one person costs 1.2091 (errata), not 1."""

    def log_Z(first):
        return TreeOfSums.of_groups([0, 0], [first, 50 - first], LAPLACE).log_Z

    assert 1 + max(log_Z(k + 1) - log_Z(k) for k in range(50)) == pytest.approx(1.2091, abs=5e-5)


@pytest.mark.parametrize("law", [LAPLACE, GAUSS])
def test_narrow_windows_change_nothing(monkeypatch, fits, law):
    monkeypatch.setattr(tree_messages, "_CUT", 9 * math.log(2))
    s = [2, 0, 5, 1]
    groups = TreeOfSums.of_groups([0] * 4, s, law)
    m = conforming(s)
    draws = groups.draw_many(SeededRandomness(SEED), 2000)
    assert fits(*counts_and_probs(draws, m, weights(law, m - np.array(s))))
    assert not fits(*counts_and_probs(draws, m, np.sqrt(weights(law, m - np.array(s)))))


def test_groups_are_independent_and_fixed_cells_stay(fits):
    labels, s = [1, 0, -1, 0, 1, 0], [4, 1, 7, 0, 2, 3]
    groups = TreeOfSums.of_groups(labels, s, LAPLACE)
    draws = groups.draw_many(SeededRandomness(SEED), 20_000)
    assert (draws[:, 2] == 7).all()
    assert (draws[:, [0, 4]].sum(axis=1) == 6).all()
    assert (draws[:, [1, 3, 5]].sum(axis=1) == 4).all()
    assert draws.min() == 0
    first, second = draws[:, 0], draws[:, 1]
    joint = np.histogram2d(first, second, bins=[np.arange(8) - 0.5, np.arange(6) - 0.5])[0]
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0)) / joint.sum() ** 2
    assert fits(joint.reshape(-1), product.reshape(-1))


def test_large_totals_and_many_groups():
    rng = np.random.default_rng(SEED)
    counts = rng.multinomial(150_000, rng.dirichlet(np.full(46, 0.5)), size=12)
    groups = TreeOfSums.of_groups(np.repeat(np.arange(12), 46), counts.reshape(-1), LAPLACE)
    m = groups.draw_many(SeededRandomness(SEED), 30).reshape(30, 12, 46)
    assert m.min() >= 0
    assert (m.sum(axis=2) == 150_000).all()
    far = counts > 100  # cells that the bound does not reach: nearly unconditioned noise
    squares = (m - counts)[:, far] ** 2
    five_errors = 5 * np.sqrt(5 / squares.size)  # of a kurtosis of 6
    assert np.mean(squares) == pytest.approx(LAPLACE.variance, rel=five_errors)


def test_a_bound_that_binds_hard():
    """One full cell, many empty ones: without a tilt the sum would be far outside its window."""
    s = np.zeros(300, dtype=np.int64)
    s[0] = 20_000
    groups = TreeOfSums.of_groups(
        np.zeros(300, dtype=np.int64), s, DoubleGeometric(Fraction(1, 10))
    )
    assert groups.tilts[0] < 0
    m = groups.draw_many(SeededRandomness(SEED), 50)
    assert (m.sum(axis=1) == 20_000).all()
    # given M = m_0, the rest is uniform: sum over M of C(20000 - M + 298, 298) a^(2 (20000 - M))
    d = np.arange(20_001)
    a = math.exp(-0.1)
    logs = np.cumsum(np.log((d[1:] + 298) / d[1:] * a * a))
    p = np.exp(np.concatenate([[0.0], logs]) - logs.max())
    mean = (p @ d) / p.sum()
    sd = math.sqrt((p @ (d - mean) ** 2) / p.sum())
    assert abs((20_000 - m[:, 0]).mean() - mean) < 5 * sd / math.sqrt(50)


@pytest.mark.parametrize("s", [[0, 0, 0], [0, 1, 0], [6, 5, 6], [6, 6, 6]])
def test_extreme_totals(s):
    groups = TreeOfSums.of_groups([0, 0, 0], s, LAPLACE, 0, 6)
    m = groups.draw_many(SeededRandomness(SEED), 20)
    assert (m.sum(axis=1) == sum(s)).all()
    assert m.min() >= 0
    assert m.max() <= 6


def test_bad_input():
    with pytest.raises(FigureError, match="outside its bounds"):
        TreeOfSums.of_groups([0, 0], [1, 3], LAPLACE, 0, 2)
    with pytest.raises(StructureError, match="group 0"):
        TreeOfSums.of_groups([1, 1], [1, 3], LAPLACE)
    with pytest.raises(StructureError, match="one count per cell"):
        TreeOfSums.of_groups([0, 0], [1], LAPLACE)
    with pytest.raises(StructureError, match="one value per cell"):
        TreeOfSums.of_groups([0, 0], [1, 3], LAPLACE).log_density([1, 2, 3])
