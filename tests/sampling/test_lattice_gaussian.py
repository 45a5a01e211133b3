"""Discrete Gaussian noise given sums: the algebra in rationals, the law by enumeration, slow path
= fast path."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from scipy.stats import chi2

from congenial.errors import GuaranteeError, RandomnessError, StructureError
from congenial.sampling import RecordedRandomness, SeededRandomness
from congenial.sampling.lattice_gaussian import (
    CrossingGaussian,
    GroupedGaussian,
    Klein,
    _log_ratio,
    cells_in_groups,
    log_normaliser,
    log_rho,
    tied_sums,
    two_margins,
    zero_sums,
)
from congenial.sampling.lattice_kernels import _one_minus_ratio, log_acceptance
from tests.worlds import one_way_margins, tally, zero_margins

SEED = 60601
ALPHA = 1e-6
SMALL = Fraction(49, 100)  # sigma = .7: the acceptance step matters
MARGINS = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])  # of 2 x 2 groups
PLACES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
CUBE = one_way_margins(2, 2, 2)

# cells in each group, the equations, and the place of each group under both margins
STRUCTURES = {
    "margins of groups, columns twice as large": ([2, 1, 2, 1], MARGINS, PLACES),
    "margins of groups of other sizes": ([1, 2, 2, 1], MARGINS, PLACES),
    "a weighted sum": ([1, 2, 2], np.array([[2, -1, 1]]), None),
    "one-way margins of 2 x 2 x 2": ([1] * 8, CUBE, None),
}
structures = pytest.mark.parametrize("name", STRUCTURES)


def of_structure(name, sigma2):
    sizes, equations, places = STRUCTURES[name]
    return CrossingGaussian(np.repeat(np.arange(len(sizes)), sizes), equations, sigma2, places)


def line_noise(z):
    """u = sum z_j (e_j - e_{j+1}) along the last axis."""
    return np.diff(np.pad(z, [(0, 0)] * (z.ndim - 1) + [(1, 1)]), axis=-1)


def box(shape, reach):
    """All coordinate arrays z of the lattice of a table with entries up to reach."""
    r, c = shape[0] - 1, shape[1] - 1
    grid = np.meshgrid(*[np.arange(-reach, reach + 1)] * (r * c), indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, r, c)


def enumerated(shape, sigma2, reach):
    """(noise tables, probabilities) by enumeration."""
    u = zero_margins(shape, reach)
    w = np.exp(-(u.astype(float) ** 2).sum(axis=(1, 2)) / (2 * float(sigma2)))
    return u, w


def conforming(name, reach):
    """All noise of a structure within reach, by trying everything."""
    sizes, equations, _ = STRUCTURES[name]
    of_cell = equations.T[np.repeat(np.arange(len(sizes)), sizes)]
    half = len(of_cell) // 2
    left, right = (
        np.array(list(itertools.product(range(-reach, reach + 1), repeat=n)))
        for n in (half, len(of_cell) - half)
    )
    sums: dict[bytes, list[int]] = {}
    for i, total in enumerate(left @ of_cell[:half]):
        sums.setdefault(total.tobytes(), []).append(i)
    met = [(i, j) for j, t in enumerate(-right @ of_cell[half:]) for i in sums.get(t.tobytes(), ())]
    i, j = np.array(met).T
    return np.concatenate([left[i], right[j]], axis=1)


# --- the algebra ----------------------------------------------------------------------------------


def lattices():
    yield "3 x 4 cells", CrossingGaussian.of_table((3, 4), 9).sampler.lattice
    yield "4 x 3 cells", CrossingGaussian.of_table((4, 3), 9).sampler.lattice
    yield "a line", cells_in_groups(np.array([5]), zero_sums(1))
    for name in STRUCTURES:
        yield name, of_structure(name, 9).sampler.lattice


LATTICES = dict(lattices())
every_lattice = pytest.mark.parametrize("name", LATTICES)


@every_lattice
def test_gram_schmidt_in_rationals(name):
    """||u||^2 = sum (z - c)^2 / share, exactly; doubles are these, rounded."""
    lattice = LATTICES[name]
    sampler, rng = Klein(lattice, Fraction(9)), np.random.default_rng(SEED)
    for _ in range(20):
        z = rng.integers(-5, 6, lattice.free)
        u = lattice.noise(z[None])[0]
        pairs = [sampler.centre(z, i) for i in range(lattice.free)]
        exactly = [(int(x) - c) ** 2 / (s2 / 9) for x, (c, s2) in zip(z, pairs, strict=True)]
        assert sum(exactly) == int((u**2).sum())
        rounded = lattice.centre @ z / lattice.divisor
        near = [float(c) for c, _ in pairs]
        assert rounded == pytest.approx(near, abs=1e-13)
    assert 9 * lattice.share == pytest.approx([float(s2) for _, s2 in pairs], rel=1e-15)
    whole = lattice.rounding == 0
    assert not np.any(lattice.centre[np.flatnonzero(whole)].data % 1)


@structures
def test_the_basis_spans_all_that_conforms(name):
    sizes, equations, _ = STRUCTURES[name]
    lattice = LATTICES[name]
    of_cell = equations.T[np.repeat(np.arange(len(sizes)), sizes)]
    assert not np.any(lattice.basis @ of_cell)
    u = conforming(name, 1)
    inverse = np.linalg.pinv(lattice.basis.toarray().astype(float))
    z = np.rint(u @ inverse).astype(np.int64)
    assert np.array_equal(lattice.noise(z), u)


def test_margins_of_groups_need_sizes_that_are_products():
    assert two_margins(PLACES, np.array([1, 2, 2, 1])) is None
    product = two_margins(PLACES, np.array([6, 2, 3, 1]))
    assert product is not None
    assert product.basis.toarray().tolist() in ([[1, -1, -1, 1]], [[-1, 1, 1, -1]])
    other = tied_sums(MARGINS, np.array([6, 2, 3, 1]))
    assert product.share == pytest.approx(other.share)


def rho(s2, c):
    return sum(math.exp(-((x - c) ** 2) / (2 * s2)) for x in range(-60, 61))


@every_lattice
def test_proposal_times_acceptance_is_the_target(name):
    """q(u) A(u) = exp(-||u||^2/(2 sigma2)) / prod rho(Z), point by point."""
    sampler = Klein(LATTICES[name], SMALL)
    s2 = sampler.variances
    whole = sum(math.log(rho(v, 0)) for v in s2)
    for z in np.random.default_rng(SEED).integers(-2, 3, (20, len(s2))):
        log_q = 0.0
        for i, v in enumerate(s2):
            c = float(sampler.centre(z, i)[0])
            log_q += -((z[i] - c) ** 2) / (2 * v) - math.log(rho(v, c))
        log_a, _ = log_acceptance(z, sampler._arrays)
        norm = float((sampler.lattice.noise(z[None]) ** 2).sum())
        assert log_q + log_a == pytest.approx(-norm / (2 * float(SMALL)) - whole, abs=1e-11)
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
    draws = CrossingGaussian.of_table(shape, sigma2).draw_many(SeededRandomness(SEED), 60_000)
    assert fits(*tally(draws, u, w / w.sum()))


@structures
@pytest.mark.parametrize("sigma2", [SMALL, Fraction(1)])
def test_draws_of_a_structure_have_the_law(name, sigma2, fits):
    """And, as negative controls, neither do draws that are all accepted nor 20 % wider ones."""
    u = conforming(name, 4 if sigma2 < 1 else 5)
    w = np.exp(-(u**2).sum(axis=1) / (2 * float(sigma2)))
    law = of_structure(name, sigma2)
    draws = 300_000 if sigma2 < 1 else 40_000
    assert fits(*tally(law.draw_many(SeededRandomness(SEED), draws), u, w / w.sum()))
    wide = of_structure(name, sigma2 * Fraction(36, 25))
    assert not fits(*tally(wide.draw_many(SeededRandomness(SEED), 40_000), u, w / w.sum()))
    if sigma2 == SMALL:
        law.sampler.__dict__["sure"] = 2**64 - 1  # every proposal is taken
        assert not fits(*tally(law.draw_many(SeededRandomness(SEED), 300_000), u, w / w.sum()))


@pytest.mark.parametrize(("shape", "sigma2"), [((7, 11), 400), ((40, 30), Fraction(10**9))])
def test_large_sigma_is_a_chi_square(shape, sigma2):
    """||u||^2 / sigma2 is chi-square with (r-1)(c-1) degrees, up to exp(-pi^2 sigma2)."""
    n, free = 200, (shape[0] - 1) * (shape[1] - 1)
    law = CrossingGaussian.of_table(shape, sigma2)
    u = law.draw_many(SeededRandomness(SEED), n).astype(float)
    total = (u**2).sum() / float(sigma2)
    low, high = chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], n * free)
    assert low < total < high
    assert not low < 0.9 * total < high  # negative control: a tenth less variance is noticed


LABELS = np.array([0, 1, 0, -1, 1, 1, 2])


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
@pytest.mark.parametrize("name", ["3 x 4 cells", "a weighted sum"])
def test_ball_arithmetic_gives_the_same_draws(name, sigma2, monkeypatch):
    opened = []
    place, accept = Klein._is_kept, Klein.log_accept
    monkeypatch.setattr(Klein, "_is_kept", lambda *a: opened.append("cell") or place(*a))
    monkeypatch.setattr(Klein, "log_accept", lambda *a: opened.append("table") or accept(*a))
    fast = Klein(LATTICES[name], sigma2)
    slow = Klein(LATTICES[name], sigma2, slack=0.05)
    a, b = (k.draw(SeededRandomness(SEED), 80) for k in (fast, slow))
    assert np.array_equal(a, b)
    assert opened.count("cell") > 50
    assert opened.count("table") > 5 or sigma2 > 1


def test_sure_words_are_really_sure():
    """The acceptance is never below the bound that lets a word accept unseen."""
    sampler = Klein(LATTICES["3 x 4 cells"], Fraction(2))
    assert 0 < sampler.sure < 2**64
    worst = min(math.exp(log_acceptance(z.reshape(-1), sampler._arrays)[0]) for z in box((3, 4), 1))
    assert worst >= sampler.sure / 2**64


def test_a_ratio_near_zero_refuses_only_words_above_its_bound():
    """sigma = .1: where a ratio is not known well the bound covers what the centre may be off."""
    sampler = Klein(LATTICES["a line"], Fraction(1, 100))
    arrays = list(sampler._arrays)
    z = np.array([0, 1, 0, 0])  # the first centre is 1/2, whose ratio is about 2 exp(-25)
    assert log_acceptance(z, tuple(arrays)) == (-math.inf, 2e-6)
    arrays[4] = np.full(4, 1e-4)  # centres in error by so much of their size
    log_p, bound = log_acceptance(z, tuple(arrays))
    assert log_p == -math.inf
    assert bound > 1e-4


# --- normaliser and edges -------------------------------------------------------------------------


def test_noise_that_64_bits_do_not_hold_is_refused():
    with pytest.raises(StructureError, match="too wide for 64 bits"):
        Klein(LATTICES["3 x 4 cells"], Fraction(10**30))
    assert Klein(LATTICES["3 x 4 cells"], Fraction(10**24)).largest > 10**13
    with pytest.raises(StructureError, match="too wide for 64 bits"):
        Klein(LATTICES["a weighted sum"], Fraction(10**24))
    assert Klein(LATTICES["a weighted sum"], Fraction(10**16)).largest > 10**10


def test_figures_that_lead_beyond_64_bits_are_refused():
    figures = np.random.default_rng(16).integers(0, 99, (15, 16))
    with pytest.raises(StructureError, match="beyond 64 bits"):
        CrossingGaussian(np.arange(16), figures, Fraction(4))


def test_what_would_not_finish_is_refused_in_seconds():
    start = time.process_time()
    with pytest.raises(StructureError, match="a draw would take too long"):
        CrossingGaussian.of_table((300, 300), Fraction(64, 100))
    sizes = np.arange(1, 201) % 61 + 1  # their least common multiple has 80 bits
    with pytest.raises(StructureError, match="too many different sizes"):
        tied_sums(one_way_margins(4, 5, 10), sizes)
    with pytest.raises(StructureError, match="more than 512"):
        tied_sums(one_way_margins(8, 8, 9), np.ones(576, dtype=np.int64))
    assert time.process_time() - start < 5
    usual = CrossingGaussian.of_table((300, 300), 1).sampler
    assert usual.numbers_proposed < 2e5


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
    noise = CrossingGaussian.of_table(shape, sigma2)
    _, w = enumerated(shape, sigma2, 11)
    direct = math.log(w.sum())
    low, high = noise.log_Z_bounds
    assert low - 1e-6 <= direct <= high + 1e-6
    if sigma2 == SMALL:
        assert noise.log_Z is None
        with pytest.raises(StructureError, match="log_weight"):
            noise.log_density(np.zeros(shape).reshape(-1))
    else:
        assert noise.log_Z == pytest.approx(direct, abs=1e-5)
        zero = noise.log_density(np.zeros((5, shape[0] * shape[1])))
        assert zero == pytest.approx(np.full(5, -noise.log_Z))


def test_edges_and_refusals():
    alone = CrossingGaussian([0, 1, 2], np.identity(3), 4)
    assert not alone.draw(RecordedRandomness([])).any()
    assert alone.log_Z == 0
    assert not GroupedGaussian([-1, 0, -1], 4).draw(RecordedRandomness([])).any()
    with pytest.raises(StructureError, match="too long"):
        CrossingGaussian.of_table((60, 50), Fraction(1, 4))
    with pytest.raises(StructureError, match="64 bits"):
        CrossingGaussian.of_table((300, 300), Fraction(10**24))
    with pytest.raises(StructureError, match="two-way"):
        CrossingGaussian.of_table((0, 3), 4)
    with pytest.raises(StructureError, match="one value per cell"):
        CrossingGaussian.of_table((2, 3), 4).log_weight(np.zeros((3, 2)))
    with pytest.raises(StructureError, match="600 groups of cells, more than 512"):
        CrossingGaussian(np.arange(600), np.ones((1, 600)), 4)
    with pytest.raises(StructureError, match="no cell"):
        GroupedGaussian([0, 2], 1)
    with pytest.raises(GuaranteeError, match="sigma2"):
        GroupedGaussian([0, 0], 0)
    with pytest.raises(RandomnessError):
        CrossingGaussian.of_table((3, 4), 4).draw(RecordedRandomness([1, 2, 3]))
