"""The laws are the stated ones, against chi-square, rejection and an independent sampler."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import chi2_contingency

from congenial.errors import GuaranteeError, RandomnessError
from congenial.sampling import (
    DiscreteGaussian,
    DoubleGeometric,
    RecordedRandomness,
    SeededRandomness,
    bernoulli_exp,
    discrete,
    exact_decisions,
    inversion,
    uniform_below,
)
from congenial.sampling.grouped_noise import SharedTotal
from tests.sampling.conftest import ALPHA
from tests.sampling.laws import LAWS, WIDE, weight

SEED = 4711


def counts_and_probs(law, draws):
    xs = np.arange(draws.min(), draws.max() + 1)
    counts = np.bincount(draws - draws.min())
    with ctx.workprec(200):
        total = sum((weight(law, x) for x in range(-WIDE, WIDE + 1)), arb(0))
        return counts, np.array([float(weight(law, int(x)) / total) for x in xs])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_staircase_rejection_has_the_law(law, fits):
    assert fits(
        *counts_and_probs(law, inversion._draw_staircase(law, SeededRandomness(SEED), 4000))
    )


WIDE_LAWS = [
    DoubleGeometric(Fraction(1, 10**6)),
    DiscreteGaussian(Fraction(10**12)),
    SharedTotal(3, Fraction(1, 10**5)),
    DiscreteGaussian(Fraction(10**26)),
]


@pytest.mark.parametrize("law", [*LAWS, *WIDE_LAWS], ids=str)
def test_staircase_in_doubles_and_in_balls_agree_bit_for_bit(law, monkeypatch):
    """With the allowed error of doubles raised, balls decide: the same draws."""
    n, tape = 60, SeededRandomness(SEED).words(2000)
    fast, slow = RecordedRandomness(tape), RecordedRandomness(tape)
    usual = inversion._draw_staircase(law, fast, n)
    calls, real = [], exact_decisions.below
    monkeypatch.setattr(exact_decisions, "below", lambda *a: calls.append(1) or real(*a))
    monkeypatch.setattr(inversion, "_LOG_ERROR", 1e6)
    assert np.array_equal(usual, inversion._draw_staircase(law, slow, n))
    assert fast.remaining == slow.remaining
    assert len(calls) >= n


def test_planted_defect_careless_acceptance(monkeypatch):
    """Doubles that decide by log weights off by 1e-3 take some word for another."""
    law, tape = WIDE_LAWS[0], SeededRandomness(SEED).words(60_000)
    right = inversion._draw_staircase(law, RecordedRandomness(tape), 10_000)
    real = DoubleGeometric._log_weights
    monkeypatch.setattr(DoubleGeometric, "_log_weights", lambda self, x: real(self, x) - 1e-3)
    assert not np.array_equal(
        right, inversion._draw_staircase(law, RecordedRandomness(tape), 10_000)
    )


@pytest.mark.parametrize("law", [*LAWS, *WIDE_LAWS], ids=str)
def test_log_weights_keep_their_contract(law):
    steps = inversion._stair(law) * np.array([-9, -3, -1, 0, 1, 2, 5, 40], dtype=np.int64)
    x = law.mode + steps
    x = x[x >= (law.lowest if law.lowest is not None else -(2**62))]
    with ctx.workprec(256):
        for v, double in zip(x.tolist(), law._log_weights(x).tolist(), strict=True):
            true = law._log_weight(v)
            assert abs(arb(double) - true) <= 2.0**-49 * (1 + abs(true))


@pytest.mark.parametrize("n", [2, 3, 6 * 10**9, 2**46, 2**62 + 2**61 + 1])
def test_uniform_words_are_those_of_uniform_below(n, fits):
    """Same integers as the plain definition where no word is in the surplus, and no bias by it."""
    source, plain = SeededRandomness(SEED), SeededRandomness(SEED)
    got = inversion._uniform_words(n, source, 4000)
    if n < 2**50:
        assert got.tolist() == [uniform_below(n, plain) for _ in range(4000)]
    assert fits(np.histogram(got, np.linspace(0, n, 3))[0], [(n + 1) // 2 / n, n // 2 / n])
    assert got.min() >= 0
    assert got.max() < n


def test_negative_control_hole_at_plus_one(fits):
    """The quantile without its -1 never returns +1."""
    law = DoubleGeometric(Fraction(1, 4))
    draws = law.draw(SeededRandomness(SEED), 20_000)
    assert fits(*counts_and_probs(law, draws))
    assert not fits(*counts_and_probs(law, draws + (draws >= 1)))


def test_negative_control_staircase_counts_zero_twice(fits):
    law = DiscreteGaussian(Fraction(9, 2))
    draws = inversion._draw_staircase(law, SeededRandomness(SEED), 4000)
    doubled = np.append(draws, draws[draws == 0])
    assert not fits(*counts_and_probs(law, doubled))


@pytest.mark.parametrize(
    "law", [DoubleGeometric(Fraction(1, 10**6)), DiscreteGaussian(Fraction(10**12))], ids=str
)
def test_wide_laws_are_drawn_without_a_table(law, fits):
    assert not inversion._fits_a_table(law)
    draws = law.draw(SeededRandomness(SEED), 3000)
    edges = np.array([-2e6, -1e6, -3e5, 0, 3e5, 1e6, 2e6])
    inside = np.histogram(draws, np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    assert fits(inside, np.diff(np.concatenate([[0], law.cdf(edges), [1]])))


def test_gaussian_noise_in_blocks_has_the_law(fits, monkeypatch):
    """A few blocks of 8 numbers: the acceptance matters, and draws without it are noticed."""
    law = DiscreteGaussian(Fraction(41, 2))
    monkeypatch.setattr(discrete, "BLOCKS", 1)
    draws = law._draw_in_blocks(SeededRandomness(SEED), 20_000)
    assert fits(*counts_and_probs(law, draws))
    wide = DiscreteGaussian(law.sigma2 * Fraction(36, 25))
    assert not fits(*counts_and_probs(law, wide._draw_in_blocks(SeededRandomness(SEED), 20_000)))
    real = discrete.place_in_blocks

    def every(*a):
        real(*a)
        a[-1][:] = 1

    monkeypatch.setattr(discrete, "place_in_blocks", every)
    assert not fits(*counts_and_probs(law, law._draw_in_blocks(SeededRandomness(SEED), 20_000)))


@pytest.mark.parametrize("sigma2", [Fraction(41, 2), Fraction(10**9), Fraction(10**26)])
def test_gaussian_noise_in_blocks_by_doubles_and_by_balls_is_the_same(sigma2, monkeypatch):
    law, opened = DiscreteGaussian(sigma2), []
    fast = law._draw_in_blocks(SeededRandomness(SEED), 2000)
    real = DiscreteGaussian._is_kept
    monkeypatch.setattr(DiscreteGaussian, "_is_kept", lambda *a: opened.append(1) or real(*a))
    monkeypatch.setattr(discrete, "SLACK", 0.5)
    assert np.array_equal(fast, law._draw_in_blocks(SeededRandomness(SEED), 2000))
    assert len(opened) > 500


def test_huge_and_tiny_parameters():
    assert not DoubleGeometric(Fraction(1000)).draw(SeededRandomness(SEED), 1000).any()
    assert not DiscreteGaussian(Fraction(1, 1000)).draw(SeededRandomness(SEED), 1000).any()
    with pytest.raises(GuaranteeError, match="64 bits"):
        DiscreteGaussian(Fraction(10**30)).draw(SeededRandomness(SEED), 1)
    with pytest.raises(GuaranteeError, match="64 bits"):
        DoubleGeometric(Fraction(1, 10**30)).draw(SeededRandomness(SEED), 1)


@pytest.mark.parametrize(
    "law",
    [
        DoubleGeometric(Fraction(1, 3)),
        DiscreteGaussian(Fraction(5, 2)),
        DiscreteGaussian(Fraction(1, 3)),
        DiscreteGaussian(Fraction(20_000)),
    ],
    ids=str,
)
def test_densities_and_moments(law):
    xs = np.arange(-6000, 6001)
    p = np.exp(law.log_pmf(xs))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert law.variance == pytest.approx((xs**2 * p).sum(), rel=1e-10)
    assert np.allclose(law.cdf(xs), np.cumsum(p), atol=1e-12)


def test_bernoulli_exp(fits):
    source = SeededRandomness(SEED)
    hits = sum(bernoulli_exp(Fraction(1, 3), source) for _ in range(20_000))
    p = math.exp(-1 / 3)
    assert fits([hits, 20_000 - hits], [p, 1 - p])
    assert not fits([hits, 20_000 - hits], [0.8 * p, 1 - 0.8 * p])


def test_bernoulli_exp_edges():
    assert bernoulli_exp(0, RecordedRandomness([2**64 - 1]))
    assert not bernoulli_exp(10**40, RecordedRandomness([0, 1]))
    with ctx.workprec(200):
        edge = int(((-arb(1)).exp() * arb(2) ** 64).floor().unique_fmpz())
        fraction = (-arb(1)).exp() * arb(2) ** 64 - edge
        second = int((fraction * arb(2) ** 64).floor().unique_fmpz())
    assert bernoulli_exp(1, RecordedRandomness([edge, second - 1]))
    assert not bernoulli_exp(1, RecordedRandomness([edge, second + 1]))
    with pytest.raises(GuaranteeError, match="gamma"):
        bernoulli_exp(Fraction(-1, 2), RecordedRandomness([1]))


@pytest.mark.parametrize("value", [0, -1, 0.5, True, float("nan")])
def test_parameters_are_positive_rationals(value):
    with pytest.raises(GuaranteeError, match="positive rational"):
        DoubleGeometric(value)
    with pytest.raises(GuaranteeError, match="positive rational"):
        DiscreteGaussian(value)


def test_exhausted_randomness_is_an_error_not_a_draw():
    with pytest.raises(RandomnessError):
        LAWS[0].draw(RecordedRandomness([1, 2]), 3)
    with pytest.raises(RandomnessError):  # the only word is undecided
        LAWS[0].draw(RecordedRandomness([0]), 1)


def opendp_draws(kind: str, n: int):
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = (
        dp.vector_domain(dp.atom_domain(T=int)),
        (dp.l1_distance(T=int) if kind == "laplace" else dp.l2_distance(T=float)),
    )
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    return np.array(make(*space, scale=4.0)([0] * n))


def same_law(a, b) -> bool:
    """Two-sample chi-square test at ALPHA; values seen fewer than 40 times in all are pooled."""
    values, where = np.unique(np.concatenate([a, b]), return_inverse=True)
    table = np.stack([np.bincount(w, minlength=values.size) for w in np.split(where, [a.size])])
    common = table.sum(axis=0) >= 40
    table = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    p = chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue
    print(f"p = {p:.3g} (alpha = {ALPHA})")
    return p >= ALPHA


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_two_samples_with_opendp(kind):
    """An independent exact sampler. Its draws cannot be seeded: ALPHA is the false-alarm rate."""
    oracle = opendp_draws(kind, 6000)
    law, narrow = (
        (DoubleGeometric(Fraction(1, 4)), DoubleGeometric(Fraction(5, 16)))
        if kind == "laplace"
        else (DiscreteGaussian(Fraction(16)), DiscreteGaussian(Fraction(16) * Fraction(16, 25)))
    )
    assert same_law(oracle, law.draw(SeededRandomness(SEED), 60_000))
    assert not same_law(oracle, narrow.draw(SeededRandomness(SEED), 60_000))  # 0.8 of the scale
