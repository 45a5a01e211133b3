"""Noise given group sums: identities by enumeration, the law by chi-square, kernels bit for bit."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import GuaranteeError, RandomnessError, StructureError
from congenial.sampling import (
    GroupedNoise,
    RecordedRandomness,
    SeededRandomness,
    SystemRandomness,
    cell_variance,
    grouped_noise,
    word_kernels,
)
from congenial.sampling.grouped_noise import SharedTotal, log_normaliser

SEED = 90210


def compositions(q: int, k: int):
    return [c for c in itertools.product(range(q + 1), repeat=k) if sum(c) == q]


def zero_sum(k: int, largest: int):
    return [u for u in itertools.product(range(-largest, largest + 1), repeat=k) if sum(u) == 0]


# --- the identities behind the sampler, as power series in a with integer coefficients ------------


@pytest.mark.parametrize("k", [2, 3, 4])
def test_normaliser_series(k):
    """Vectors with sum 0 and norm 2 j are counted by (1-x)^(1-k) sum_i C(k-1,i)^2 x^i."""
    terms = 4
    counted = Counter(sum(map(abs, u)) for u in zero_sum(k, terms))
    for j in range(terms + 1):
        series = sum(
            math.comb(k - 1, i) ** 2 * math.comb(j - i + k - 2, k - 2)
            for i in range(min(j, k - 1) + 1)
        )
        assert counted[2 * j] == series
        assert counted[2 * j + 1] == 0


@pytest.mark.parametrize("k", [2, 3])
def test_pairs_of_compositions_give_the_law(k):
    """Pairs (g, g') of compositions of q with g - g' = u: C(q - ||u||/2 + k - 1, k - 1) of them.

    Summed with weight a^(2 q) that is a^||u|| / (1 - a^2)^k: the conditional law, u by u.
    """
    for q in range(5):
        parts = compositions(q, k)
        pairs = Counter(
            tuple(a - b for a, b in zip(g, h, strict=True)) for g in parts for h in parts
        )
        assert sum(pairs.values()) == math.comb(q + k - 1, k - 1) ** 2
        for u, times in pairs.items():
            assert times == math.comb(q - sum(map(abs, u)) // 2 + k - 1, k - 1)


@pytest.mark.parametrize(("k", "eps"), [(1, Fraction(1)), (2, Fraction(1, 2)), (7, Fraction(1, 4))])
def test_log_normaliser_is_the_finite_sum(k, eps):
    x = math.exp(-2 * eps)
    direct = sum(math.comb(k - 1, j) ** 2 * x**j for j in range(k)) / (1 - x) ** (k - 1)
    assert log_normaliser(k, eps) == pytest.approx(math.log(direct), rel=1e-13)


@pytest.mark.parametrize(
    ("k", "eps"), [(2, Fraction(3)), (5, Fraction(1, 4)), (40, Fraction(1, 100))]
)
def test_mode_of_the_shared_total(k, eps):
    law = SharedTotal(k, eps)

    def log_w(q: int) -> float:
        return math.lgamma(q + k) - math.lgamma(q + 1) - float(eps) * q

    assert log_w(law.mode) >= log_w(law.mode + 1)
    assert law.mode == 0 or log_w(law.mode) >= log_w(law.mode - 1)


# --- the law -----------------------------------------------------------------------------------


def test_small_eps_uses_listed_subsets_and_rejection(fits):
    """k = 2, eps too small for a bitmap or a table: u is a known double geometric."""
    eps = Fraction(1, 2000)
    noise = GroupedNoise([0, 0], eps)
    draws = noise.draw_many(SeededRandomness(SEED), 3000)
    assert not draws.sum(axis=1).any()
    from congenial.sampling import DoubleGeometric

    law = DoubleGeometric(2 * eps)  # exp(-eps (|u| + |-u|))
    edges = np.array([-2000, -1000, -300, 0, 300, 1000, 2000])
    inside = np.histogram(draws[:, 0], np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    assert fits(inside, np.diff(np.concatenate([[0], law.cdf(edges), [1]])))


# --- kernels -----------------------------------------------------------------------------------


def reference_picks(words, n, size):
    """Integers below n - size + 1, ..., n, several to a word; also the number of words read."""
    per_word = max(m for m in range(1, 61) if m == 1 or n**m <= 2**60) if size else 1
    picks, read = [], 0
    while len(picks) < size:
        bounds = range(n - size + len(picks) + 1, n + 1)[:per_word]
        product = math.prod(bounds)
        t, low = divmod(words[read] * product, 1 << 64)
        read += 1
        if low >= (1 << 64) % product:
            digits = []
            for bound in reversed(bounds):
                t, digit = divmod(t, bound)
                digits.append(digit)
            picks += reversed(digits)
    return picks, read


def reference_composition(words, q, k):
    """Floyd's method and stars and bars in Python integers; the parts and the words read."""
    n, bars = q + k - 1, k - 1 <= q
    picks, read = reference_picks(words, n, k - 1 if bars else q)
    chosen = set()
    for j, pick in enumerate(picks, start=n - len(picks)):
        chosen.add(j if pick in chosen else pick)
    marks = sorted(chosen if bars else set(range(n)) - chosen)
    return [b - a - 1 for a, b in itertools.pairwise([-1, *marks, n])], read


def compose(words, at, q, k):
    """The kernel's composition as parts, and the next unread word."""
    marks = np.zeros(64 * k + k, np.uint8)
    bars, picks = np.empty(k, np.int64), np.empty(k, np.uint64)
    at = word_kernels.draw_bars(words, at, q, k, bars, picks, marks)
    assert not marks.any()
    return np.diff(np.concatenate([[-1], bars[: k - 1], [q + k - 1]])) - 1, at


@pytest.mark.parametrize(
    ("q", "k"),
    [
        *((0, 2), (0, 3), (1, 2), (2, 7), (9, 4), (62, 3), (63, 3), (30, 35), (31, 35), (2, 65)),
        *((500, 3), (5000, 90), (3000, 1500), (9, 1500), (2**40, 5), (2**29, 3), (2**59, 2)),
    ],
)
def test_composition_kernel_bit_for_bit(q, k):
    words = SeededRandomness(SEED + q % 97).words(4000)
    parts, used = compose(words, 0, q, k)
    expected, read = reference_composition([int(w) for w in words], q, k)
    assert parts.tolist() == expected
    assert used == read
    assert parts.sum() == q


@pytest.mark.parametrize(("n", "size"), [(7, 3), (40, 33), (2000, 9), (2**31 + 11, 2)])
def test_a_word_in_the_surplus_is_thrown_away(n, size):
    """x = 0 leaves the low word 0, below 2^64 mod N: rejected, and rejected again."""
    words = np.array([0, 0, *SeededRandomness(SEED).words(60)], dtype=np.uint64)
    picks = np.empty(size, np.uint64)
    used = word_kernels._draw_picks(words, 0, n, size, picks)
    expected, read = reference_picks([int(w) for w in words], n, size)
    assert picks.tolist() == expected
    assert used == read
    assert read >= 3


@pytest.mark.parametrize("bounds", [(3, 5), (6, 7, 5), (9, 10), (255,)])
def test_several_integers_from_one_word_are_uniform(bounds):
    """All words of 8 bits in place of 64: every result comes from equally many accepted words."""
    product = math.prod(bounds)
    seen, careless = Counter(), Counter()
    for word in range(256):
        x, digits = word, []
        for bound in bounds:
            digit, x = divmod(x * bound, 256)
            digits.append(digit)
        careless[tuple(digits)] += 1
        if x >= 256 % product:
            seen[tuple(digits)] += 1
    assert len(seen) == product
    assert set(seen.values()) == {256 // product}
    assert len(set(careless.values())) == 2 or len(careless) < product  # without rejection: biased


@pytest.mark.parametrize("n", [2, 3, 63, 64, 1023, 1024, 1025, 2**20, 2**30, 2**30 + 1, 2**61])
def test_integers_per_word(n):
    m = word_kernels.per_word(n)
    assert m == 1 or n**m <= 2**60
    assert n ** (m + 1) > 2**60
    if n < word_kernels._PER_WORD.size:
        assert word_kernels._PER_WORD[n] == m


@pytest.mark.parametrize(("q", "k"), [(3, 4), (5, 3), (2, 5), (200, 2)])
def test_compositions_are_uniform(q, k, fits):
    n = 30_000
    out, at = np.zeros((n, k), np.int64), 0
    words = SeededRandomness(SEED).words(n * k + n)
    for i in range(n):
        out[i], at = compose(words, at, q, k)
    seen = Counter(map(tuple, out.tolist()))
    parts = compositions(q, k)
    counts = np.array([seen[c] for c in parts])
    assert counts.sum() == n
    assert fits(counts, np.full(len(parts), 1 / len(parts)))
    multinomial = np.array(
        [math.exp(math.lgamma(q + 1) - sum(math.lgamma(v + 1) for v in c)) for c in parts]
    )
    assert not fits(counts, multinomial / multinomial.sum())


def test_draw_many_is_a_stated_function_of_the_words():
    """Q by size, then the subsets draw by draw: rebuilt here in Python from the same tape."""
    noise = GroupedNoise([1, 0, 0, 1, 1, 0, 1, 0, 2, 2], Fraction(1, 5))
    n, tape = 9, SeededRandomness(SEED).words(6000)
    got = noise.draw_many(RecordedRandomness(tape), n)
    source = RecordedRandomness(tape)
    q = np.empty((n, 3), np.int64)
    q[:, 2] = SharedTotal(2, Fraction(1, 5)).draw(source, n)
    q[:, :2] = SharedTotal(4, Fraction(1, 5)).draw(source, 2 * n).reshape(n, 2)
    words, expected = [int(w) for w in source.words(source.remaining)], np.zeros_like(got)
    for draw, group in itertools.product(range(n), range(3)):
        for sign in (1, -1):
            cells = np.flatnonzero(noise.labels == group)
            part, used = reference_composition(words, int(q[draw, group]), len(cells))
            expected[draw, cells] += sign * np.array(part)
            words = words[used:]
    assert np.array_equal(got, expected)


def test_running_out_of_a_block_changes_nothing(monkeypatch):
    """A kernel that stops inside a group and resumes with more words gives the same draws."""
    from congenial.sampling import grouped_noise

    noise = GroupedNoise.of_sizes((8, 38), Fraction(1, 4))
    whole = noise.draw_many(SeededRandomness(SEED), 50)
    monkeypatch.setattr(grouped_noise, "_words_expected", lambda q, sizes: 1)
    assert np.array_equal(whole, noise.draw_many(SeededRandomness(SEED), 50))


def test_chunks_are_independent(monkeypatch):
    from congenial.sampling import grouped_noise

    monkeypatch.setattr(grouped_noise, "_CHUNK", 46 * 3)
    noise = GroupedNoise.of_sizes((8, 38), Fraction(1, 4))
    draws = noise.draw_many(SystemRandomness(), 10)
    assert len(np.unique(draws, axis=0)) == 10


# --- structure and faults ----------------------------------------------------------------------


@pytest.mark.parametrize("groups", [1, 1000, 30_000])
def test_many_cells(groups):
    labels = np.random.default_rng(SEED).permutation(np.arange(100_000) % groups)
    u = GroupedNoise(labels, Fraction(1, 4)).draw(SeededRandomness(SEED))
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, labels, u)
    assert not sums.any()
    sizes, times = np.unique(np.bincount(labels), return_counts=True)
    variances = [cell_variance(int(k), Fraction(1, 4)) for k in sizes]
    expected = float(np.dot(sizes * times, variances)) / len(u)
    # u^2 has at most sqrt(5) of its mean as standard deviation; five standard errors
    margin = 5 * math.sqrt(5 / len(u))
    assert abs(np.mean(u**2) / expected - 1) < margin
    assert abs(np.mean(u**2) / (0.8 * expected) - 1) > margin  # negative control


def test_nothing_free():
    noise = GroupedNoise([-1, 0, -1], Fraction(1, 4))
    assert not noise.draw_many(RecordedRandomness([]), 4).any()
    assert noise.log_Z == 0
    assert noise.log_density([0, 0, 0]) == 0
    assert not GroupedNoise([-1, -1], 1).draw(RecordedRandomness([])).any()


def test_exhausted_randomness_releases_nothing():
    noise = GroupedNoise.of_sizes((8, 38), Fraction(1, 4))
    for available in (0, 1, 2, 10):
        with pytest.raises(RandomnessError):
            noise.draw(RecordedRandomness(SeededRandomness(SEED).words(available)))


@pytest.mark.parametrize("labels", [[], [0, 2], [0.5, 1.0], [-2, 0]])
def test_bad_labels(labels):
    with pytest.raises(StructureError):
        GroupedNoise(labels, 1)


def test_noise_that_its_arithmetic_does_not_hold_is_refused(monkeypatch):
    noise = GroupedNoise.of_sizes((8, 38), Fraction(1, 100))
    with pytest.raises(GuaranteeError, match="may not fit 64 bits"):
        GroupedNoise([0, 0, 0], Fraction(1, 10**19)).draw(SeededRandomness(SEED))
    monkeypatch.setattr(grouped_noise, "_WIDEST", 100)
    with pytest.raises(StructureError, match="too wide for 64 bits"):
        noise.draw(SeededRandomness(SEED))


def test_bad_eps():
    with pytest.raises(GuaranteeError, match="eps_cell"):
        GroupedNoise([0, 0], 0)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_the_bitmap_has_room_for_every_group_that_is_marked_in_it(monkeypatch, more):
    """Groups of k cells with up to 64 k places are marked; the compiled loop checks no bounds."""
    k = 5
    noise = GroupedNoise(np.zeros(k, dtype=np.int64), Fraction(1, 2))
    total = grouped_noise._DENSE * k - k + 1 + more
    monkeypatch.setattr(noise, "_totals", lambda randomness, n: np.full((n, 1), total))
    fill = word_kernels.fill_groups

    def checked(*args):
        assert args[-1] == (total + k - 1 if more <= 0 else 1)
        return fill(*args)

    monkeypatch.setattr(word_kernels, "fill_groups", checked)
    drawn = noise.draw_many(SeededRandomness(SEED), 3)
    assert (np.abs(drawn).sum(axis=1) <= 2 * total).all()
    assert not drawn.sum(axis=1).any()
