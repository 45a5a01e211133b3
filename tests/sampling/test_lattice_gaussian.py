"""Discrete Gaussian noise given sums: the algebra in rationals, the law by enumeration, slow path
= fast path."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from scipy.stats import chi2

from congenial.errors import GuaranteeError, RandomnessError, StructureError
from congenial.sampling import RecordedRandomness, SeededRandomness
from congenial.sampling.lattice_gaussian import (
    LINE,
    GroupedGaussian,
    Klein,
    TwoWayGaussian,
    _log_ratio,
    chain,
    line_noise,
    log_normaliser,
    log_rho,
    table_noise,
)
from congenial.sampling.lattice_kernels import _one_minus_ratio, log_acceptance

SEED = 60601
ALPHA = 1e-6
SMALL = Fraction(49, 100)  # sigma = .7: the acceptance step matters


def box(shape, reach):
    """All coordinate arrays z of the lattice of a table with entries up to reach."""
    r, c = shape[0] - 1, shape[1] - 1
    grid = np.meshgrid(*[np.arange(-reach, reach + 1)] * (r * c), indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, r, c)


def enumerated(shape, sigma2, reach):
    """(noise tables, probabilities) by enumeration."""
    u = table_noise(box(shape, reach))
    w = np.exp(-(u.astype(float) ** 2).sum(axis=(1, 2)) / (2 * float(sigma2)))
    return u, w


def tally(draws, places, probs):
    """Counts on the likely places, and everything else as one more."""
    likely = probs > 1e-6
    seen = Counter(map(bytes, draws.astype(np.int64).reshape(len(draws), -1)))
    counts = [seen[bytes(u)] for u in places[likely].astype(np.int64)]
    rest = len(draws) - sum(counts)
    return [*counts, rest], [*probs[likely], max(0.0, 1 - probs[likely].sum())]


# --- the algebra ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 5), (3, 4), (4, 3)])
def test_gram_schmidt_in_rationals(shape):
    """||u||^2 = sum (z - c)^2 / (alpha beta), exactly."""
    sampler = Klein(chain(shape[0]), chain(shape[1]), Fraction(9))
    rng = np.random.default_rng(SEED)
    for _ in range(20):
        z = rng.integers(-5, 6, (shape[0] - 1, shape[1] - 1))
        u = table_noise(z)
        assert not u.sum(axis=0).any()
        assert not u.sum(axis=1).any()
        total = Fraction(0)
        for i, j in np.ndindex(*z.shape):
            m, d = sampler._centre(z, i, j)
            total += (int(z[i, j]) - Fraction(m, d)) ** 2 / (sampler._s2(i, j) / 9)
        assert total == int((u**2).sum())


def test_line_is_the_one_row_case():
    sampler = Klein(LINE, chain(5), Fraction(9))
    z = np.array([[3, -1, 2, 4]])
    u = line_noise(z[0])
    assert u.tolist() == [3, -4, 3, 2, -4]
    total = Fraction(0)
    for j in range(4):
        m, d = sampler._centre(z, 0, j)
        total += (int(z[0, j]) - Fraction(m, d)) ** 2 / (sampler._s2(0, j) / 9)
    assert total == int((u**2).sum())


def rho(s2, c):
    return sum(math.exp(-((x - c) ** 2) / (2 * s2)) for x in range(-60, 61))


@pytest.mark.parametrize("shape", [(2, 4), (3, 4)])
def test_proposal_times_acceptance_is_the_target(shape):
    """q(u) A(u) = exp(-||u||^2/(2 sigma2)) / prod rho(Z), point by point."""
    sampler = Klein(chain(shape[0]), chain(shape[1]), SMALL)
    s2 = sampler.variances
    whole = sum(math.log(rho(v, 0)) for v in s2.ravel())
    for z in box(shape, 1)[::37]:
        log_q = 0.0
        for i, j in np.ndindex(*z.shape):
            m, d = sampler._centre(z, i, j)
            c = m / d
            log_q += -((z[i, j] - c) ** 2) / (2 * s2[i, j]) - math.log(rho(s2[i, j], c))
        log_a = log_acceptance(z, sampler.rows, sampler.columns, 1 / (2 * s2))
        target = -float((table_noise(z) ** 2).sum()) / (2 * float(SMALL)) - whole
        assert log_q + log_a == pytest.approx(target, abs=1e-11)
        with ctx.workprec(128):
            assert float(sampler.log_accept(z)) == pytest.approx(log_a, abs=1e-12)


@pytest.mark.parametrize("s2", [Fraction(1, 50), Fraction(1, 5), Fraction(1, 3), Fraction(2)])
@pytest.mark.parametrize("c", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(5, 6)])
def test_ratio_of_theta_sums(s2, c):
    with ctx.workprec(200):
        exact = 1 - _log_ratio(s2, c).exp()
        assert abs(_one_minus_ratio(float(s2), float(c)) - float(exact)) < 1e-13
    assert float(exact) >= -1e-30  # rho(Z + c) <= rho(Z)


def test_log_rho():
    s2 = np.array([0.02, 0.2, 0.26, 3.0])
    assert log_rho(s2) == pytest.approx([math.log(rho(v, 0)) for v in s2], abs=1e-13)


# --- the law --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "sigma2"), [((3, 4), SMALL), ((2, 5), SMALL), ((4, 2), 2)])
def test_two_way_draws_have_the_law(shape, sigma2, fits):
    u, w = enumerated(shape, sigma2, 3 if min(shape) > 2 else 9)
    draws = TwoWayGaussian(shape, sigma2).draw_many(SeededRandomness(SEED), 60_000)
    assert fits(*tally(draws, u, w / w.sum()))


def test_negative_control_without_the_acceptance_step(fits):
    """Klein's draw as it is, sigma = .7: rejected."""
    u, w = enumerated((3, 4), SMALL, 3)
    noise = TwoWayGaussian((3, 4), SMALL)
    noise._sampler.__dict__["sure"] = 2**64 - 1  # every table is accepted
    draws = noise.draw_many(SeededRandomness(SEED), 60_000)
    assert not fits(*tally(draws, u, w / w.sum()))


def test_negative_control_wrong_scale(fits):
    u, w = enumerated((3, 4), SMALL * Fraction(9, 10), 3)
    draws = TwoWayGaussian((3, 4), SMALL).draw_many(SeededRandomness(SEED), 60_000)
    assert not fits(*tally(draws, u, w / w.sum()))


@pytest.mark.parametrize(("shape", "sigma2"), [((7, 11), 400), ((40, 30), Fraction(10**9))])
def test_large_sigma_is_a_chi_square(shape, sigma2):
    """||u||^2 / sigma2 is chi-square with (r-1)(c-1) degrees, up to exp(-pi^2 sigma2)."""
    n, free = 200, (shape[0] - 1) * (shape[1] - 1)
    u = TwoWayGaussian(shape, sigma2).draw_many(SeededRandomness(SEED), n).astype(float)
    total = (u**2).sum() / float(sigma2)
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], n * free)
    assert low < total < high
    assert not low < 0.9 * total < high  # negative control: a tenth less variance is noticed


LABELS = np.array([0, 1, 0, -1, 1, 1, 2])


def grouped_support(reach):
    pair = [(x, -x) for x in range(-reach, reach + 1)]
    triple = [(x, y, -x - y) for x, y in itertools.product(range(-reach, reach + 1), repeat=2)]
    return np.array(
        [(a[0], b[0], a[1], 0, b[1], b[2], 0) for a, b in itertools.product(pair, triple)]
    )


@pytest.mark.parametrize("sigma2", [Fraction(1, 3), Fraction(3)])
def test_grouped_density_and_draws(sigma2, fits):
    noise = GroupedGaussian(LABELS, sigma2)
    places = grouped_support(9)
    probs = np.exp(noise.log_density(places))
    assert probs.sum() == pytest.approx(1, abs=1e-6)
    draws = noise.draw_many(SeededRandomness(SEED), 60_000)
    assert fits(*tally(draws, places, probs))
    wrong = np.exp(GroupedGaussian(LABELS, sigma2 * Fraction(9, 10)).log_density(places))
    assert not fits(*tally(draws, places, wrong))


def test_many_groups():
    labels = np.random.default_rng(SEED).permutation(np.arange(30_000) % 101)
    u = GroupedGaussian(labels, 100).draw(SeededRandomness(SEED))
    sums = np.zeros(101, np.int64)
    np.add.at(sums, labels, u)
    assert not sums.any()
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], 30_000 - 101)
    assert low < (u.astype(float) ** 2).sum() / 100 < high


# --- slow path ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma2", [SMALL, Fraction(500)])
def test_ball_arithmetic_gives_the_same_draws(sigma2, monkeypatch):
    opened = []
    place, accept = Klein._place, Klein.log_accept
    monkeypatch.setattr(Klein, "_place", lambda *a: opened.append("cell") or place(*a))
    monkeypatch.setattr(Klein, "log_accept", lambda *a: opened.append("table") or accept(*a))
    fast = Klein(chain(3), chain(4), sigma2)
    slow = Klein(chain(3), chain(4), sigma2, slack=0.05)
    a, b = (k.draw(SeededRandomness(SEED), 80) for k in (fast, slow))
    assert np.array_equal(a, b)
    assert opened.count("cell") > 50
    assert opened.count("table") > 20 or sigma2 > 1


def test_sure_words_are_really_sure():
    """The acceptance is never below the bound that lets a word accept unseen."""
    sampler = Klein(chain(3), chain(4), Fraction(2))
    assert 0 < sampler.sure < 2**64
    inverse = 1 / (2 * sampler.variances)
    worst = min(
        math.exp(log_acceptance(z, sampler.rows, sampler.columns, inverse)) for z in box((3, 4), 1)
    )
    assert worst >= sampler.sure / 2**64


# --- normaliser and edges -------------------------------------------------------------------------


def test_noise_that_64_bits_do_not_hold_is_refused():
    with pytest.raises(StructureError, match="too wide for 64 bits"):
        Klein(chain(3), chain(4), Fraction(10**34))
    assert Klein(chain(3), chain(4), Fraction(10**28)).largest > 10**15


@pytest.mark.parametrize("sigma2", [Fraction(1, 20), Fraction(1, 2), Fraction(5), Fraction(9)])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_log_normaliser_by_enumeration(k, sigma2):
    reach = 20
    z = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * (k - 1), indexing="ij"), -1)
    u = line_noise(z.reshape(-1, k - 1))
    direct = np.exp(-(u.astype(float) ** 2).sum(axis=1) / (2 * float(sigma2))).sum()
    assert log_normaliser(k, sigma2) == pytest.approx(math.log(direct), abs=1e-6)


def test_log_normaliser_is_smooth_across_its_formulas():
    assert log_normaliser(1, Fraction(3)) == 0
    for at in (Fraction(8), Fraction(1, 10)):
        below, above = (log_normaliser(200, at + d) for d in (-Fraction(1, 10**9), 0))
        assert below == pytest.approx(above, abs=1e-5)


@pytest.mark.parametrize(("shape", "sigma2"), [((3, 3), 4), ((3, 3), SMALL), ((2, 4), SMALL)])
def test_two_way_normaliser(shape, sigma2):
    noise = TwoWayGaussian(shape, sigma2)
    _, w = enumerated(shape, sigma2, 11)
    direct = math.log(w.sum())
    low, high = noise.log_Z_bounds
    assert low - 1e-6 <= direct <= high + 1e-6
    if sigma2 == SMALL and min(shape) > 2:
        assert noise.log_Z is None
        with pytest.raises(StructureError, match="log_weight"):
            noise.log_density(np.zeros(shape))
    else:
        assert noise.log_Z == pytest.approx(direct, abs=1e-5)
        zero = noise.log_density(np.zeros((5, *shape)))
        assert zero == pytest.approx(np.full(5, -noise.log_Z))


def test_off_the_lattice():
    noise = TwoWayGaussian((2, 3), 4)
    assert noise.log_density([[1, 0, 0], [0, 0, 0]]) == -math.inf
    assert noise.log_weight([[1, -1, 0], [-1, 1, 0]]) == -0.5
    assert GroupedGaussian(LABELS, 1).log_density([0, 0, 0, 1, 0, 0, 0]) == -math.inf


def test_edges_and_refusals():
    assert not TwoWayGaussian((1, 6), 4).draw(RecordedRandomness([])).any()
    assert TwoWayGaussian((1, 6), 4).log_Z == 0
    assert not GroupedGaussian([-1, 0, -1], 4).draw(RecordedRandomness([])).any()
    with pytest.raises(StructureError, match="10,000"):
        TwoWayGaussian((60, 50), Fraction(1, 4))
    with pytest.raises(StructureError, match="64 bits"):
        TwoWayGaussian((300, 300), Fraction(10**24))
    with pytest.raises(StructureError, match="two-way"):
        TwoWayGaussian((0, 3), 4)
    with pytest.raises(StructureError, match="is needed"):
        TwoWayGaussian((2, 3), 4).log_weight(np.zeros((3, 2)))
    with pytest.raises(StructureError, match="no cell"):
        GroupedGaussian([0, 2], 1)
    with pytest.raises(GuaranteeError, match="sigma2"):
        GroupedGaussian([0, 0], 0)
    with pytest.raises(RandomnessError):
        TwoWayGaussian((3, 4), 4).draw(RecordedRandomness([1, 2, 3]))
