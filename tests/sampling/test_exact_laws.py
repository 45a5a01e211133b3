"""Fast path = slow path = plain ball arithmetic, and the laws are the stated ones."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpz

from congenial.errors import GuaranteeError, RandomnessError
from congenial.sampling import (
    DiscreteGaussian,
    DoubleGeometric,
    RecordedRandomness,
    SeededRandomness,
    bernoulli_exp,
    exact,
)
from congenial.sampling.laminar import SharedTotal

SEED = 4711
LAWS = [
    DoubleGeometric(Fraction(1, 4)),
    DoubleGeometric(Fraction(7, 3)),
    DiscreteGaussian(Fraction(9, 2)),
    DiscreteGaussian(Fraction(1, 5)),
    SharedTotal(5, Fraction(1, 2)),
    SharedTotal(2, Fraction(3)),
]
WIDE = 500  # every law above has less than 2^-150 of its mass beyond


def weight(law, x: int):
    """The weight written out independently of the package's recurrences."""
    if isinstance(law, DoubleGeometric):
        return (-exact.ball(law.eps) * abs(x)).exp()
    if isinstance(law, DiscreteGaussian):
        return (-(arb(x) ** 2) / (2 * exact.ball(law.sigma2))).exp()
    if x < 0:
        return arb(0)
    return (
        arb(fmpz.bin_uiui(x + law.k - 1, law.k - 1)) ** 2
        * (-2 * x * exact.ball(law.eps_cell)).exp()
    )


class Reference:
    """Inversion in pure Python: no table of bounds, no kernel, 400-bit balls."""

    def __init__(self, law):
        with ctx.workprec(500):
            ws = [weight(law, x) for x in range(-WIDE, WIDE + 1)]
            running, self.F = arb(0), []
            total = sum(ws, arb(0))
            for w in ws:
                running += w
                self.F.append(running / total)

    def decide(self, word: int, level: int) -> int | None:
        with ctx.workprec(500):
            low, high = (arb(v) * arb(2) ** (-64 * level) for v in (word, word + 1))
            for i, f in enumerate(self.F):
                if high <= f:
                    return i - WIDE if i == 0 or self.F[i - 1] <= low else None
        return None

    def draw(self, randomness, n: int) -> list[int]:
        words = [int(w) for w in randomness.words(n)]
        out = []
        for word in words:
            level = 1
            while (x := self.decide(word, level)) is None:
                word, level = (word << 64) | randomness.word(), level + 1
            out.append(x)
        return out


def hard_words(law) -> list[int]:
    """Words that one level cannot decide: those on a boundary, and both ends."""
    table = exact._boundaries(law, 1)
    middle = [v for v in table.lower if 2**60 < v < 2**64 - 2**60]
    return [0, 2**64 - 1, *middle[:6]]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("bits", [2, 5, 64])
def test_fast_and_reference_agree_bit_for_bit(law, bits):
    hard = hard_words(law)
    tape = hard + SeededRandomness(SEED).words(400).tolist()
    n = len(hard) + 150
    fast, slow = RecordedRandomness(tape), RecordedRandomness(tape)
    got = exact._draw_inverse(law, fast, n, bits).tolist()
    assert got == Reference(law).draw(slow, n)
    assert fast.remaining == slow.remaining
    # the ends of the word and the words on a boundary really took another word
    assert len(tape) - n - fast.remaining >= len(hard) - 1


def test_a_crippled_table_reaches_the_slow_path_often(monkeypatch):
    calls = []
    refine = exact._refine
    monkeypatch.setattr(exact, "_refine", lambda *a: calls.append(1) or refine(*a))
    exact._draw_inverse(LAWS[0], SeededRandomness(SEED), 200, bits=3)
    assert len(calls) > 100


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_table_bounds_hold_and_are_tight(law):
    table = exact._boundaries(law, 1)
    reference = Reference(law)
    with ctx.workprec(500):
        for i, (low, high) in enumerate(zip(table.lower, table.upper, strict=True)):
            f = reference.F[table.first + i + WIDE] * arb(2) ** 64
            assert f >= low
            assert f <= high
            assert high - low <= 1


def counts_and_probs(law, draws):
    xs = np.arange(draws.min(), draws.max() + 1)
    counts = np.bincount(draws - draws.min())
    with ctx.workprec(200):
        total = sum((weight(law, x) for x in range(-WIDE, WIDE + 1)), arb(0))
        return counts, np.array([float(weight(law, int(x)) / total) for x in xs])


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_draws_have_the_law(law, fits):
    assert fits(*counts_and_probs(law, law.draw(SeededRandomness(SEED), 200_000)))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_staircase_rejection_has_the_law(law, fits):
    assert fits(*counts_and_probs(law, exact._draw_staircase(law, SeededRandomness(SEED), 4000)))


def test_negative_control_wrong_scale(fits):
    draws = DoubleGeometric(Fraction(1, 4)).draw(SeededRandomness(SEED), 200_000)
    assert not fits(*counts_and_probs(DoubleGeometric(Fraction(1, 5)), draws))  # 0.8 of the scale
    draws = DiscreteGaussian(Fraction(9, 2)).draw(SeededRandomness(SEED), 200_000)
    assert not fits(*counts_and_probs(DiscreteGaussian(Fraction(9, 2) * Fraction(4, 5)), draws))


def test_negative_control_hole_at_plus_one(fits):
    """The quantile without its -1 never returns +1."""
    law = DoubleGeometric(Fraction(1, 4))
    draws = law.draw(SeededRandomness(SEED), 20_000)
    assert not fits(*counts_and_probs(law, draws + (draws >= 1)))


def test_negative_control_staircase_counts_zero_twice(fits):
    law = DiscreteGaussian(Fraction(9, 2))
    draws = exact._draw_staircase(law, SeededRandomness(SEED), 4000)
    doubled = np.append(draws, draws[draws == 0])
    assert not fits(*counts_and_probs(law, doubled))


@pytest.mark.parametrize(
    "law", [DoubleGeometric(Fraction(1, 10**6)), DiscreteGaussian(Fraction(10**12))], ids=str
)
def test_wide_laws_are_drawn_without_a_table(law, fits):
    assert not exact._fits_a_table(law)
    draws = law.draw(SeededRandomness(SEED), 3000)
    edges = np.array([-2e6, -1e6, -3e5, 0, 3e5, 1e6, 2e6])
    inside = np.histogram(draws, np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    assert fits(inside, np.diff(np.concatenate([[0], law.cdf(edges), [1]])))


def test_huge_and_tiny_parameters():
    assert not DoubleGeometric(Fraction(1000)).draw(SeededRandomness(SEED), 1000).any()
    assert not DiscreteGaussian(Fraction(1, 1000)).draw(SeededRandomness(SEED), 1000).any()
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


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_agrees_with_opendp(kind, fits):
    """An independent exact sampler. Its draws cannot be seeded: ALPHA is the false-alarm rate."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = (
        dp.vector_domain(dp.atom_domain(T=int)),
        (dp.l1_distance(T=int) if kind == "laplace" else dp.l2_distance(T=float)),
    )
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    draws = np.array(make(*space, scale=4.0)([0] * 5000))
    law = DoubleGeometric(Fraction(1, 4)) if kind == "laplace" else DiscreteGaussian(Fraction(16))
    assert fits(*counts_and_probs(law, draws))
