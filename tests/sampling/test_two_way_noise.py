"""Double geometric noise given both margins, no sign constraint: identities, law, slow path."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from congenial.errors import GuaranteeError, RandomnessError, StructureError
from congenial.sampling import RecordedRandomness, SeededRandomness, two_way_kernels
from congenial.sampling.exact_decisions import below, pick, pick_fast
from congenial.sampling.grouped_noise import SharedTotal
from congenial.sampling.two_way_noise import TwoWayNoise, profile_ball, turned
from tests.worlds import tally, zero_margins

SEED = 424242
EPS = Fraction(3, 2)


def enumerated(shape, eps, reach):
    u = zero_margins(shape, reach)
    w = np.exp(-float(eps) * np.abs(u).sum(axis=(1, 2)))
    return u, w / w.sum()


# --- the identities -------------------------------------------------------------------------------


@pytest.mark.parametrize("r", [1, 2, 3, 6])
def test_profile_is_the_positive_series(r):
    b = math.exp(-2 * 0.4)

    def series(n):
        return sum(
            math.comb(j + r - 1, r - 1) * math.comb(j + n + r - 1, r - 1) * b ** (2 * j + n)
            for j in range(150)
        )

    for n in (0, 1, 5, 20):
        assert float(profile_ball(r, n, Fraction(2, 5), 128)) == pytest.approx(
            series(n) / series(0), rel=1e-12
        )


def two_columns(delta, eps, reach):
    """f_2(delta) by summing over v."""
    total = 0.0
    for head in itertools.product(range(-reach, reach + 1), repeat=len(delta) - 1):
        v = (*head, -sum(head))
        norm = sum(map(abs, v)) + sum(abs(d - x) for d, x in zip(delta, v, strict=True))
        total += math.exp(-eps * norm)
    return total


@pytest.mark.parametrize("delta", [[0, 0, 0], [1, -1, 0], [4, -3, -1], [2, 2, -4], [1, 0, -1]])
def test_two_columns_by_enumeration(delta):
    noise = TwoWayNoise((3, 40), Fraction(4, 5))
    assert noise._rows == 3
    direct = math.log(two_columns(delta, 0.8, 25) / two_columns([0, 0, 0], 0.8, 25))
    with ctx.workprec(128):
        assert float(noise._log_acceptance(delta)) == pytest.approx(direct, abs=1e-10)
    profile, bounds = noise._tables
    value = two_way_kernels.log_two_columns(np.array(delta), 0.8, profile)
    assert value == pytest.approx(direct, abs=1e-10)
    assert value <= sum(bounds[abs(d)] for d in delta) + 1e-12
    assert value <= 1e-12  # largest at 0


def test_split_has_its_law(fits):
    noise, delta = TwoWayNoise((3, 40), EPS), [2, -3, 1]
    source = SeededRandomness(SEED)
    draws = noise._split(np.tile(delta, (20_000, 1)), source)
    seen = Counter(map(tuple, draws.tolist()))
    probs = {}
    for x, y in itertools.product(range(-9, 10), repeat=2):
        v = (x, y, -x - y)
        norm = sum(map(abs, v)) + sum(abs(d - a) for d, a in zip(delta, v, strict=True))
        probs[v] = math.exp(-float(EPS) * norm)
    total = sum(probs.values())
    places = sorted(probs)
    law = [probs[v] / total for v in places]
    assert fits([seen[v] for v in places], law)
    flipped = [probs[tuple(-x for x in v)] / total for v in places]
    assert not fits([seen[v] for v in places], flipped)  # the sign of delta matters


@pytest.mark.parametrize("total", [2, -3, 0])
def test_rest_has_its_law(total, fits):
    n, source = 20_000, SeededRandomness(SEED)
    e = np.zeros((n, 3), np.int64)
    q = SharedTotal(3, Fraction(1), abs(total)).draw(source, n)
    totals = np.full(n, total)
    done, _ = two_way_kernels.spread(q, totals, 0, source.words(20 * n), e)
    assert done == n
    seen = Counter(map(tuple, e.tolist()))
    places = [(x, y, total - x - y) for x, y in itertools.product(range(-9, 10), repeat=2)]
    weights = np.array([math.exp(-sum(map(abs, v))) for v in places])
    assert fits([seen[v] for v in places], weights / weights.sum())


def test_surplus_mode():
    for k, n, eps in ((3, 0, Fraction(1, 9)), (5, 7, Fraction(1, 20)), (2, 1, Fraction(4))):
        law = SharedTotal(k, eps, n)
        logs = [
            math.lgamma(q + k) - math.lgamma(q + 1) + math.lgamma(q + n + k)
            - math.lgamma(q + n + 1) - 2 * float(eps) * q
            for q in range(500)
        ]  # fmt: skip
        assert logs[law.mode] == pytest.approx(max(logs), abs=1e-9)


# --- the law --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (5, 3)])
def test_draws_have_the_law(shape, fits):
    eps = EPS if shape == (3, 4) else Fraction(2)
    u, p = enumerated(shape, eps, 3 if shape == (3, 4) else 2)
    draws = TwoWayNoise(shape, eps).draw_many(SeededRandomness(SEED), 6000)
    assert not draws.sum(axis=1).any()
    assert not draws.sum(axis=2).any()
    assert fits(*tally(draws, u, p))
    _, wrong = enumerated(shape, eps * Fraction(4, 5), 3 if shape == (3, 4) else 2)
    assert not fits(*tally(draws, u, wrong))


def test_negative_control_every_proposal_accepted(fits, monkeypatch):
    u, p = enumerated((3, 4), EPS, 3)

    def accept_all(delta, words, eps, profile, bounds, slack, verdicts):
        verdicts[:] = 1

    monkeypatch.setattr(two_way_kernels, "screen", accept_all)
    draws = TwoWayNoise((3, 4), EPS).draw_many(SeededRandomness(SEED), 6000)
    assert not fits(*tally(draws, u, p))


def test_ball_arithmetic_gives_the_same_draws(monkeypatch):
    opened = []
    log_p, messages = TwoWayNoise._log_acceptance, TwoWayNoise._messages
    monkeypatch.setattr(TwoWayNoise, "_log_acceptance", lambda *a: opened.append(0) or log_p(*a))
    monkeypatch.setattr(TwoWayNoise, "_messages", lambda *a: opened.append(1) or messages(*a))
    fast, slow = TwoWayNoise((3, 4), EPS), TwoWayNoise((3, 4), EPS)
    slow.judge_slack = 0.3
    a, b = (noise.draw_many(SeededRandomness(SEED), 60) for noise in (fast, slow))
    assert np.array_equal(a, b)
    assert opened.count(0) > 10
    assert opened.count(1) > 20


def test_wide_noise_beyond_the_table():
    """delta larger than every table of doubles is judged and split in ball arithmetic."""
    noise = TwoWayNoise((3, 40), Fraction(4))
    far = len(noise._tables[0]) + 5
    delta = [far, -far, 0]
    verdict = np.zeros(1, np.int8)
    profile, bounds = noise._tables
    two_way_kernels.screen(
        np.array([delta]), np.array([0], np.uint64), 4.0, profile, bounds, 1e-9, verdict
    )
    assert verdict[0] == -1  # the word 0 alone does not refuse it
    assert noise._split(np.array([delta]), SeededRandomness(SEED)).sum() == 0


def test_larger_table_has_zero_margins_and_the_right_spread():
    """6 x 7 against the Gaussian limit of small eps: cell variance 2/eps^2 (1-1/r)(1-1/c) at least
    within a factor; the exact law is tested above.
    """
    u = TwoWayNoise((6, 7), Fraction(1, 20)).draw_many(SeededRandomness(SEED), 40)
    assert u.shape == (40, 6, 7)
    assert not u.sum(axis=1).any()
    assert not u.sum(axis=2).any()
    assert 0.5 < u.var() / (2 * 400 * (5 / 6) * (6 / 7)) < 1.5


# --- lazy decisions -------------------------------------------------------------------------------


def test_below_takes_words_only_when_open():
    def third():
        return (arb(1) / 3).log()

    assert below(0, 1, third, RecordedRandomness([0]))  # U in [0, 1/2], then tiny
    assert not below(0, 1, third, RecordedRandomness([2**64 - 1]))
    assert not below(1, 1, third, RecordedRandomness([]))


def test_pick_is_inversion():
    weights = [arb(1), arb(2), arb(1)]
    for word, answer in ((0, 0), (1, 1), (2, 1), (3, 2)):
        assert pick(word, 2, lambda: weights, RecordedRandomness([])) == answer
    assert pick(0, 1, lambda: weights, RecordedRandomness([2**63 + 5])) == 1


def test_pick_fast_is_pick():
    rng = np.random.default_rng(SEED)
    weights = rng.random(6)
    for slack in (1e-12, 0.05):
        a, b = SeededRandomness(SEED), SeededRandomness(SEED)
        for _ in range(60):
            slow = pick(b.word(), 64, lambda: [arb(w) for w in weights], b)
            assert pick_fast(weights, slack, lambda: [arb(w) for w in weights], a) == slow


def test_compositions_are_uniform_and_resume(fits):
    n, source = 6000, SeededRandomness(SEED)
    out, zero = np.zeros((n, 3), np.int64), np.zeros(n, np.int64)
    task = 0
    while task < n:  # short blocks of words: tasks are taken up again where they stopped
        task, _ = two_way_kernels.spread(zero, zero + 4, task, source.words(50), out)
    seen = Counter(map(tuple, out.tolist()))
    places = [c for c in itertools.product(range(5), repeat=3) if sum(c) == 4]
    assert fits([seen[c] for c in places], np.full(15, 1 / 15))
    assert not fits([seen[c] for c in places], np.arange(1, 16) / 120)


# --- edges ----------------------------------------------------------------------------------------


def test_edges_and_refusals():
    assert not TwoWayNoise((1, 4), 1).draw(RecordedRandomness([])).any()
    assert TwoWayNoise((1, 4), 1).log_Z == 0
    assert turned((3, 4))
    assert not turned((3, 40))
    assert turned((2, 9))
    noise = TwoWayNoise((3, 4), 1)
    assert noise.log_Z is None
    assert noise.log_ratio_error == 0
    with pytest.raises(StructureError, match="log_weight"):
        noise.log_density(np.zeros((3, 4)))
    assert noise.log_weight(np.eye(3, 4)) == -math.inf
    assert TwoWayNoise((3, 3), 2).log_weight([[1, -1, 0], [0, 1, -1], [-1, 0, 1]]) == -12
    with pytest.raises(StructureError, match="30 x 30"):
        TwoWayNoise((30, 30), 1)
    with pytest.raises(GuaranteeError, match="eps_cell"):
        TwoWayNoise((3, 3), 0)
    with pytest.raises(RandomnessError):
        noise.draw(RecordedRandomness([1, 2, 3]))
