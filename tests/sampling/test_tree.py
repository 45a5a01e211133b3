"""Noise at every node of a hierarchy: the exact law by enumeration, chi-square, slow paths."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from congenial.errors import StructureError
from congenial.sampling import SeededRandomness
from congenial.sampling.inversion import ball
from congenial.sampling.tree import messages, split_constants, splitter
from congenial.sampling.tree.levels import HierarchicalNoise
from tests.sampling.conditioned import attempt, constant, counts_and_probs, log_sum, tables

SEED = 41173


def ragged() -> HierarchicalNoise:
    """A root (mandated) over two nodes of two leaves each and a leaf of its own."""
    parents = [-1, 0, 0, 0, 1, 1, 2, 2]
    rates = [Fraction(1, 2), Fraction(3, 4), Fraction(3, 2)]
    rate_of = [0, 0, 1, 2, 2, 2, 2, 2]
    return HierarchicalNoise(parents, rates, rate_of, [True] + [False] * 7)


def enumerated(noise: HierarchicalNoise, reach: int):
    """Conforming leaf noise with entries up to `reach` and its weight, from the definition."""
    n = noise.leaves.size - int(noise.mandated[0])
    u = tables([-reach] * n, [reach] * n)
    if noise.mandated[0]:
        u = np.column_stack([u, -u.sum(axis=1)])
    x = noise.sums(u)
    eps = np.array([float(noise.rates[k]) for k in noise.rate_of])
    return u, np.exp(-np.abs(x) @ eps)


def log_weight(noise, u):
    eps = [noise.rates[k] for k in noise.rate_of]
    return -ball(sum(e * abs(int(v)) for e, v in zip(eps, noise.sums(u), strict=True)))


def test_sums():
    noise = ragged()
    assert noise.sums([1, 2, 3, 4, 5]).tolist() == [15, 5, 9, 1, 2, 3, 4, 5]


def test_every_attempt_has_the_stated_law():
    """log q + log acceptance - log w is one constant, and every factor is at most 1."""
    noise = ragged()
    u = enumerated(noise, 2)[0][::7]
    far = np.array([[60, -60, 0, 0, 0], [5, -70, 200, -170, 35], [-400, 0, 0, 400, 0]])
    ratios = []
    for row in np.concatenate([u, far]):
        # leaves in the order of drawing
        leaves = row[noise._splitter.order]
        log_p, largest = attempt(noise._splitter, [0], leaves)
        with ctx.workprec(256):
            ratios.append(log_p - log_weight(noise, row))
        assert largest <= 0
    assert constant(ratios)


def test_log_normaliser_and_density():
    noise = ragged()
    u, w = enumerated(noise, 7)
    assert noise.log_Z == pytest.approx(log_sum(w), abs=1e-4)  # entries beyond 7 are left out
    assert noise.log_density(u[:50]) == pytest.approx(np.log(w[:50]) - noise.log_Z, abs=1e-12)
    assert noise.log_density([1, 0, 0, 0, 0]) == -math.inf


def test_draws_have_the_law(fits):
    noise = ragged()
    u, w = enumerated(noise, 5)
    draws = noise.draw_many(SeededRandomness(SEED), 60_000)
    assert fits(*counts_and_probs(draws, u, w))
    x = noise.sums(u)[:, 1]
    assert not fits(*counts_and_probs(draws, u, w * np.exp(0.15 * np.abs(x))))  # a rate 30 % off


@pytest.mark.parametrize("bits", [8, 11])
def test_narrow_windows_change_nothing(monkeypatch, fits, bits):
    """With windows that hold only 2^-bits, tails and Chernoff proposals do most of the work."""
    monkeypatch.setattr(messages, "_CUT", bits * math.log(2))
    noise = ragged()
    u, w = enumerated(noise, 5)
    draws = noise.draw_many(SeededRandomness(SEED + bits), 1500)
    assert fits(*counts_and_probs(draws, u, w))
    assert not fits(*counts_and_probs(draws, u, np.sqrt(w)))


def test_ignoring_the_factors_is_noticed(monkeypatch, fits):
    """A planted defect: proposals outside narrow windows kept without their exact factor."""
    monkeypatch.setattr(messages, "_CUT", 8 * math.log(2))
    monkeypatch.setattr(splitter, "_bernoulli", lambda log_p, randomness: True)
    noise = ragged()
    u, w = enumerated(noise, 5)
    assert not fits(*counts_and_probs(noise.draw_many(SeededRandomness(SEED), 1500), u, w))


def test_alias_tables_have_the_integer_weights():
    """Columns add up to n(y) of the split, exactly, and to the rest; every y of a row is common."""
    drawer = ragged()._splitter
    made, checked = drawer._all_aliases, 0
    for t, (first, rows, bits, at_row, at_entry) in enumerate(made.tables.tolist()):
        full, columns = 1 << split_constants.WHOLE - bits, 1 << bits
        for g in range(rows):
            base, codes, rest = made.of_row[at_row + g].tolist()
            here = at_entry + g * columns
            found = np.zeros(256, dtype=object)
            for e, exact in zip(made.entries[here:][:columns], made.exact[here:], strict=False):
                assert int(e) & 0xFFFF == int(exact) >> 46
                found[int(e) >> 16 & 255] += int(exact)
                found[int(e) >> 24] += full - int(exact)
            weights = [drawer.law.weight(t, first + g, base + k) for k in range(codes)]
            assert found[:codes].tolist() == weights
            assert min(weights) >= split_constants.RARE
            assert found[255] == rest == (1 << 62) - sum(weights)
            checked += codes
    assert checked > 100


def test_plain_python_has_the_law(fits):
    """What finishes a draw that leaves the windows, from the first split on."""
    noise = ragged()
    drawer, randomness, kept = noise._splitter, SeededRandomness(SEED), []
    for _ in range(1500):
        values = np.zeros(drawer._plan[3], np.int64)
        if drawer._finish(values, 0, None, randomness):
            kept.append(values[:5])
    u, w = enumerated(noise, 5)
    assert len(kept) > 1450
    assert fits(*counts_and_probs(np.array(kept), u, w))
    assert not fits(*counts_and_probs(np.array(kept), u, np.sqrt(w)))


def test_full_check_accepts_and_rejects():
    """The decision over all common factors, which takes one word in about 2^40."""
    noise = ragged()
    drawer = noise._splitter
    leaves = np.zeros(5, np.int64)
    with ctx.workprec(128):
        product = attempt(drawer, [0], leaves)[0]
        assert product < 0
    more, values = SeededRandomness(SEED), drawer.values(leaves)
    assert drawer._accept_all((1 << 64) - (1 << 40), values, more)
    assert not drawer._accept_all((1 << 64) - 1, values, more)


@pytest.mark.parametrize("leaves", [(0, 0, 0, 0, 0), (1, 0, 2, -3, 0), (2, -1, -4, 1, 2)])
def test_full_check_decides_at_the_product_of_the_common_factors(leaves):
    """To one word of 2^64, from the factors of `attempt`'s law at 256 bits."""
    drawer = ragged()._splitter
    values, law = drawer.values(np.array(leaves)), drawer.law
    with ctx.workprec(256):
        likely = [v for v in drawer.splits(values) if law.is_likely(*v)]
        product = sum((law.log_factor(t, x, y) for t, x, y in likely), arb(0))
        product += sum((law.log_leaf(t, u) for t, u in drawer.ends(values)), arb(0))
        at = int((product.exp() * arb(2) ** 64).floor().unique_fmpz())
    assert 0 < at < 1 << 64
    more = SeededRandomness(SEED)
    assert drawer._accept_all(at - 1, values, more)
    assert not drawer._accept_all(at + 1, values, more)


def test_free_root_and_free_leaf(fits):
    """A root with a rate and no mandate; a leaf that is a root: plain double geometric."""
    noise = HierarchicalNoise([-1, 0, 0, -1], [Fraction(1), Fraction(2)], [0, 1, 1, 0], [False] * 4)
    u, w = enumerated(noise, 9)
    assert noise.log_Z == pytest.approx(log_sum(w), abs=1e-3)
    draws = noise.draw_many(SeededRandomness(SEED), 40_000)
    assert fits(*counts_and_probs(draws, u, w))
    assert not fits(*counts_and_probs(draws[:, ::-1], u, w))


def test_inner_mandates_cut_the_tree():
    noise = HierarchicalNoise.of_levels(
        [[2], [3, 1], [2, 1, 4, 3]],
        [0, Fraction(1, 3), Fraction(1, 2), Fraction(1)],
        [True, True, False, False],
    )
    x = noise.sums(noise.draw_many(SeededRandomness(SEED), 200))
    assert not x[:, noise.mandated].any()
    assert x[:, 3:5].any(axis=0).all()  # the free nodes of the first mandated one do vary
    assert not x[:, 6].any()  # the only child of a mandated node does not


def test_many_leaves_share_messages():
    noise = HierarchicalNoise.of_levels(
        [[7], [11] * 7, [33] * 77], [0, Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)],
        [True, True, False, False],
    )  # fmt: skip
    assert len(noise._forest.nodes) < 40
    u = noise.draw(SeededRandomness(SEED))
    assert not noise.sums(u)[noise.mandated].any()
    # leaf noise has a variance a little below the unconditioned 2 a / (1 - a)^2 = 7.84
    assert 6.5 < u.var() < 9


@pytest.mark.parametrize(
    ("parents", "rate_of", "mandated"),
    [
        ([], [], []),
        ([-1, 0], [0], [True, False]),
        ([1, 0], [0, 0], [False, False]),
        ([-1, 5], [0, 0], [True, False]),
        ([-1, 0, 0], [0, 1, 0], [True, False, False]),
        ([-1, 0, 0], [1, 0, 0], [False, False, False]),
    ],
)
def test_bad_hierarchies(parents, rate_of, mandated):
    with pytest.raises(StructureError):
        HierarchicalNoise(parents, [Fraction(1), 0], rate_of, mandated)


def test_levels_must_fit():
    with pytest.raises(StructureError, match="level 1"):
        HierarchicalNoise.of_levels([[2], [3]], [0, 1, 1], [True, False, False])


def test_exactness_is_stated():
    noise = ragged()
    assert noise.log_ratio_error == 0
    assert noise.mass_lost == 0
    assert arb(noise._splitter.slack) < arb(2) ** -17
