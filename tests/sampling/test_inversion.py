"""Every way to decide a draw is the same function of the words: the table of answers, the search in
double-precision bounds, ball arithmetic, and a reference that shares no code with them.
"""

from __future__ import annotations

import math
import threading
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from congenial import SeededRandomness
from congenial.sampling import DiscreteGaussian, DoubleGeometric, RecordedRandomness, inversion
from congenial.sampling.grouped_noise import SharedTotal
from congenial.sampling.inversion import ExactLaw
from tests.sampling.laws import LAWS, WIDE, Reference

SEED = 1618
BROAD = [DiscreteGaussian(Fraction(10**4)), SharedTotal(300, Fraction(1, 5))]
BROADEST = DiscreteGaussian(Fraction(2 * 10**7))  # its answers do not fit 16 bits


def hard_tape(reference: Reference, n: int) -> np.ndarray:
    """Words that make n draws hard: U starts with 0, 1, 2 or 3 x 64 bits of some F(x), both ends
    of the word included, then goes on at random.
    """
    middle = [f for f in reference.F if 1e-6 < f < 1 - 1e-6]
    with ctx.workprec(500):
        digits = [int((f * arb(2) ** 208).floor().unique_fmpz()) for f in middle]
    us = [0, (1 << 208) - 1, *(digits[j % len(digits)] for j in range(n - 2))]
    free = iter(SeededRandomness(SEED).words(8 * n).tolist())
    lanes = [u >> 192 for u in us]
    if n > 8:
        lanes[8::3] = [next(free) & 0xFFFF for _ in lanes[8::3]]
    tape = [
        sum(lane << (16 * i) for i, lane in enumerate(lanes[j : j + 4])) for j in range(0, n, 4)
    ]
    known = dict(enumerate(lanes))
    for level in range(4):
        bits = 16 + 64 * level
        known = {j: p for j, p in known.items() if reference.decide(p, bits) is None}
        for j, prefix in known.items():
            follow = level <= j % 4 - 1 and prefix == us[j] >> (208 - bits)
            word = (us[j] >> (128 - 64 * level)) & (2**64 - 1) if follow else next(free)
            tape.append(word)
            known[j] = (prefix << 64) | word
    return np.array([*tape, *(next(free) for _ in range(n))], dtype=np.uint64)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("enough", [0, 1 << 14], ids=["table", "search"])
@pytest.mark.parametrize("bits", [2, 12, 20, 64])
def test_same_draws_as_the_reference_bit_for_bit(law, bits, enough, monkeypatch):
    monkeypatch.setattr(inversion, "_ENOUGH", enough)
    reference, n = Reference(law), 90
    tape = hard_tape(reference, n)
    fast, slow = RecordedRandomness(tape), RecordedRandomness(tape)
    assert inversion._draw_inverse(law, fast, n, bits).tolist() == reference.draw(slow, n)
    assert fast.remaining == slow.remaining
    # the tape is hard: rounds 1, 2 and 3 were all needed
    assert len(tape) - fast.remaining > -(-n // 4) + n // 3


def test_the_tape_reaches_every_round(monkeypatch):
    levels, law = [], LAWS[0]
    real = inversion.boundaries
    monkeypatch.setattr(inversion, "boundaries", lambda *a: levels.append(a[1]) or real(*a))
    tape = hard_tape(Reference(law), 90)
    inversion._draw_inverse(law, RecordedRandomness(tape), 90)
    assert {1, 2, 3} <= set(levels)
    assert 0 not in levels  # sharp bounds settle round 0 without balls
    levels.clear()
    inversion._draw_inverse(law, RecordedRandomness(tape), 90, bits=6)
    assert {0, 1, 2, 3} <= set(levels)


def test_planted_defect_an_ambiguous_word_taken_as_decided(monkeypatch):
    """A table that answers for an undecided word, as a plain look-up would, is noticed."""
    law, reference = LAWS[0], Reference(LAWS[0])
    tape = hard_tape(reference, 90)
    careless = np.maximum(inversion._answers(law, 64), 0)
    monkeypatch.setattr(inversion, "_ENOUGH", 0)
    monkeypatch.setattr(inversion, "_answers", lambda law, bits: careless)
    got = inversion._draw_inverse(law, RecordedRandomness(tape), 90).tolist()
    assert got != reference.draw(RecordedRandomness(tape), 90)


@pytest.mark.parametrize("law", [*LAWS, *BROAD, BROADEST], ids=str)
def test_table_and_search_agree_on_every_word(law):
    bounds = inversion.word_bounds(law)
    words = np.arange(1 << 16, dtype=np.uint16).view(np.uint64)
    if np.little_endian is False:
        words = words.byteswap()
    words.flags.writeable = False
    size = (1 << 16) - 3  # not a multiple of four
    by_table, by_search = np.empty(size, np.int64), np.empty(size, np.int64)
    answers = inversion._answers(law, 64)
    open_table = inversion.look_up(words, answers, by_table)
    open_search = inversion.search_lanes(words, bounds.lower, bounds.upper, bounds.guide, by_search)
    assert np.array_equal(by_table, by_search)
    assert np.array_equal(open_table, open_search)
    assert np.array_equal(open_table, np.flatnonzero(by_table < 0))
    assert answers.dtype == (np.int32 if law is BROADEST else np.int16)
    assert not np.any(by_table == inversion.UNSURE) or law is BROADEST


def test_chunks_follow_each_other(monkeypatch):
    """Two draws of 8 are one draw of 16 made in chunks of 8."""
    law = LAWS[0]
    monkeypatch.setattr(inversion, "_CHUNK", 8)
    whole = law.draw(SeededRandomness(SEED), 20)
    source = SeededRandomness(SEED)
    pieces = [law.draw(source, n) for n in (8, 8, 4)]
    assert np.array_equal(whole, np.concatenate(pieces))


# --- the bounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_ball_bounds_hold_and_are_tight(law, level):
    table, reference = inversion.boundaries(law, level), Reference(law)
    with ctx.workprec(500):
        for i, (low, high) in enumerate(zip(table.lower, table.upper, strict=True)):
            f = reference.F[table.first + i + WIDE] * arb(2) ** inversion.bits_at(level)
            assert f >= low
            assert f <= high
            assert high - low <= 1


def gaps(law: ExactLaw) -> tuple[int, int, float]:
    """How many word bounds are wrong, how many there are, and the widest pair (as probability)."""
    fast, balls = inversion.word_bounds.__wrapped__(law), inversion.boundaries(law, 1)
    wrong, shift = 0, fast.first - balls.first
    lower, upper = fast.lower.tolist(), fast.upper.tolist()
    for i in range(len(lower)):
        at = i + shift  # F(first + i) is between balls.lower[at] and balls.upper[at], over 2^80
        wrong += lower[i] << 16 > balls.lower[at]
        wrong += upper[i + 1] < 2**64 - 1 and upper[i + 1] << 16 < balls.upper[at]
    before = balls.upper[shift - 1] if shift else balls.below
    wrong += upper[0] << 16 < before
    width = max(b - a for a, b in zip(lower, upper[1:], strict=True)) / 2**64
    return wrong, len(lower), width


@pytest.mark.parametrize("law", [*LAWS, *BROAD, DoubleGeometric(Fraction(1, 90))], ids=str)
def test_word_bounds_hold_and_are_sharp(law):
    wrong, count, width = gaps(law)
    assert wrong == 0
    assert width < count * 1e-14 + 1e-12


def test_planted_defect_bounds_without_rounding_errors(monkeypatch):
    """With the unit round-off taken as 0 the doubles are not bounds: the same check says so."""
    monkeypatch.setattr(inversion, "_U", 0.0)
    assert gaps(BROAD[0])[0] > 100


class Plain(SharedTotal):
    """The same law with the general `_ratios`, one ball at a time."""

    _ratios = ExactLaw._ratios


@pytest.mark.parametrize(
    "law",
    [
        *LAWS,
        *BROAD,
        Plain(7, Fraction(1, 3)),
        SharedTotal(10**6, Fraction(1, 3)),
        SharedTotal(10**9, Fraction(18)),
        DoubleGeometric(Fraction(600)),
        DiscreteGaussian(Fraction(1, 300)),
    ],
    ids=str,
)
def test_ratios_keep_their_contract(law):
    x = law.mode + np.array([-999, -90, -7, -1, 0, 1, 2, 17, 800], dtype=np.int64)
    x = x[x >= (law.lowest if law.lowest is not None else -(10**9))]
    with np.errstate(over="ignore", under="ignore"):
        doubles = law._ratios(x)
    with ctx.workprec(256):
        for v, double in zip(x.tolist(), doubles.tolist(), strict=True):
            true = law._ratio(v)
            if double < 1e-300 or math.isinf(double):  # beyond any weight that a table keeps
                assert true < 1e-290 or true > 1e290
                continue
            off = abs(arb(double) / true - 1)
            assert off <= (16 + 4 * abs(float(true.log()))) * 2.0**-53


def test_huge_ratios_leave_a_single_point():
    """exp(-1000) underflows in doubles; the law is drawn all the same, and tails are balls."""
    law = DoubleGeometric(Fraction(1000))
    bounds = inversion.word_bounds(law)
    assert bounds.first == 0
    assert bounds.lower.size == 1
    # 1488 zero bits: U is below F(-1), about 2^-1443, and above F(-2), about 2^-2885
    assert law.draw(RecordedRandomness([0] * 24 + [2**63 + 1]), 1).tolist() == [-1]


def test_threads_share_no_word():
    """Four threads draw from one stream: together they used each word once."""
    source, seen = SeededRandomness(SEED), []

    def work() -> None:
        for _ in range(50):
            seen.append(source.words(37))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    words = np.sort(np.concatenate(seen))
    assert np.array_equal(words, np.sort(SeededRandomness(SEED).words(4 * 50 * 37)))
