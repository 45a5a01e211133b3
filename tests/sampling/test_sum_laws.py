"""The law of the noise in sums, against enumeration, direct convolution and draws."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import StructureError
from congenial.sampling import (
    DiscreteGaussian,
    DoubleGeometric,
    GroupedNoise,
    Pmf,
    SeededRandomness,
    cell_variance,
    iid_sum_law,
    subset_sum_law,
    subset_variance,
    sums,
)

SEED = 31337


def direct_sum(m: int, eps: float, half: int = 400):
    """D_m by m - 1 direct convolutions of positive terms."""
    one = math.tanh(eps / 2) * np.exp(-eps * np.abs(np.arange(-half, half + 1)))
    p = one
    for _ in range(m - 1):
        p = np.convolve(p, one)
    return p[len(p) // 2 :]


def at(law: Pmf, x: int) -> float:
    return float(law.probs[x - law.lo]) if law.lo <= x <= law.hi else 0.0


@pytest.mark.parametrize(("m", "eps"), [(1, 0.5), (2, 1.5), (5, 0.3), (12, 0.7)])
def test_recurrence_matches_direct_convolution(m, eps):
    d = direct_sum(m, eps)[:60]
    logs = sums._log_double_geometric_sum(m, eps, 59)
    assert np.allclose(logs, np.log(d / d[0]), rtol=0, atol=1e-11)


@pytest.mark.parametrize("eps", [Fraction(2), Fraction(1, 10), Fraction(1, 100)])
def test_roundings_that_a_small_epsilon_amplifies_are_counted(eps):
    for law in (
        iid_sum_law(3, DoubleGeometric(eps)),
        subset_sum_law([(2, 5)], DoubleGeometric(eps)),
    ):
        assert law.error >= 4 * (1 + 1 / float(eps)) * 2.0**-52 * (1 + law.mean_abs)


@pytest.mark.parametrize(("m", "k"), [(1, 2), (1, 3), (2, 3), (2, 4)])
def test_one_group_by_enumeration(m, k):
    eps, reach = Fraction(5, 2), 5
    law = subset_sum_law([(m, k)], DoubleGeometric(eps))
    mass = dict.fromkeys(range(-reach * k, reach * k + 1), 0.0)
    for u in itertools.product(range(-reach, reach + 1), repeat=k):
        if sum(u) == 0:
            mass[sum(u[:m])] += math.exp(-float(eps) * sum(map(abs, u)))
    total = sum(mass.values())
    for x in range(-3, 4):
        assert at(law, x) == pytest.approx(mass[x] / total, abs=1e-8)


@pytest.mark.parametrize(
    ("k", "eps"),
    [(2, Fraction(1, 2)), (3, Fraction(2)), (9, Fraction(1, 10)), (46, Fraction(1, 4))],
)
def test_cell_variance_is_the_mean_over_q(k, eps):
    q = np.arange(20_000)
    lg = np.array([math.lgamma(v + k) - math.lgamma(v + 1) for v in q])
    w = 2 * (lg - float(eps) * q)
    w = np.exp(w - w.max())
    direct = (w * 2 * q * (q + k) * (k - 1) / (k**2 * (k + 1))).sum() / w.sum()
    assert cell_variance(k, eps) == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize(
    "parts",
    [[(1, 8)], [(7, 8)], [(5, 38)], [(1, 2), (3, 7)], [(2, 8), (20, 38)] * 60, [(1, 20_000)]],
)
def test_law_has_its_closed_form_variance_and_unit_mass(parts):
    law = subset_sum_law(parts, DoubleGeometric(Fraction(1, 4)))
    assert law.variance == pytest.approx(subset_variance(parts, Fraction(1, 4)), rel=1e-9)
    assert abs(law.probs.sum() - 1) < 1e-12
    assert law.mean == pytest.approx(0, abs=1e-9)
    assert law.error < 1e-9


def test_many_equal_groups_match_direct_convolution():
    one = sums._group_law(3, 11, DoubleGeometric(Fraction(1)))
    direct = np.ones(1)
    for _ in range(37):
        direct = np.convolve(direct, one.probs)
    law = subset_sum_law([(3, 11)] * 37, DoubleGeometric(Fraction(1)))
    middle = len(direct) // 2
    for x in range(-60, 61):
        assert at(law, x) == pytest.approx(direct[middle + x], abs=1e-13)


def test_fourier_path_matches_direct_path(monkeypatch):
    parts = [(3, 38)] * 50 + [(1, 8)] * 21
    monkeypatch.setattr(sums, "_DIRECT", 0)
    fourier = subset_sum_law(parts, DoubleGeometric(Fraction(1, 4)))
    monkeypatch.setattr(sums, "_DIRECT", 10**9)
    direct = subset_sum_law(parts, DoubleGeometric(Fraction(1, 4)))
    xs = range(-900, 901)
    gap = sum(abs(at(fourier, x) - at(direct, x)) for x in xs)
    assert gap <= fourier.error + direct.error


@pytest.mark.parametrize(
    "law",
    [
        DoubleGeometric(Fraction(1, 3)),
        DiscreteGaussian(Fraction(7, 2)),
        DiscreteGaussian(Fraction(1, 9)),
    ],
    ids=str,
)
@pytest.mark.parametrize("m", [0, 1, 6])
def test_iid_sums(law, m):
    total = iid_sum_law(m, law)
    assert total.variance == pytest.approx(m * law.variance, rel=1e-9, abs=1e-12)
    if m == 1:
        xs = np.arange(-9, 10)
        assert [at(total, x) for x in xs] == pytest.approx(np.exp(law.log_pmf(xs)), abs=1e-13)


def test_interval_is_smallest_and_covers():
    parts = [(2, 8), (5, 38)]
    law = subset_sum_law(parts, DoubleGeometric(Fraction(1, 4)))
    h = law.interval(0.9)
    assert law.within(h) >= 0.9 > law.within(h - 1)
    noise = GroupedNoise.of_sizes((8, 38), Fraction(1, 4)).draw_many(SeededRandomness(SEED), 20_000)
    x = noise[:, [0, 5, 9, 10, 20, 30, 45]].sum(axis=1)
    inside = np.mean(np.abs(x) <= h)
    # five standard errors: false alarm 6e-7 < ALPHA
    assert abs(inside - law.within(h)) < 5 * math.sqrt(0.09 / 20_000)
    # negative control: the law at 0.8 of the scale is noticed
    wrong = subset_sum_law(parts, DoubleGeometric(Fraction(1, 5)))
    assert abs(inside - wrong.within(h)) > 5 * math.sqrt(0.09 / 20_000)


def test_draws_follow_the_sum_law(fits):
    law = subset_sum_law([(3, 8), (4, 5)], DoubleGeometric(Fraction(1, 2)))
    noise = GroupedNoise.of_sizes((8, 5), Fraction(1, 2)).draw_many(SeededRandomness(SEED), 40_000)
    x = noise[:, [0, 1, 2, 8, 9, 10, 11]].sum(axis=1)
    counts = [int(np.sum(x == v)) for v in range(law.lo, law.hi + 1)]
    assert fits(counts, law.probs)


def test_pmf_summaries():
    law = Pmf(-1, np.array([0.25, 0.5, 0.25]))
    assert (law.mean, law.variance, law.mean_abs, law.within(0)) == (0, 0.5, 0.5, 0.5)
    assert law.interval(0.5) == 0
    assert law.within(-1) == 0
    for level in (0, 1, 1.5):
        with pytest.raises(StructureError, match="level"):
            law.interval(level)


def test_refusals():
    for m, k in ((3, 2), (-1, 4), (0, 0)):
        with pytest.raises(StructureError, match="subset"):
            subset_sum_law([(m, k)], DoubleGeometric(1))
    with pytest.raises(StructureError, match="1e6"):
        subset_sum_law([(1, 2)], DoubleGeometric(Fraction(1, 10**8)))
    with pytest.raises(StructureError, match="-1"):
        iid_sum_law(-1, DoubleGeometric(Fraction(1)))
    with pytest.raises(StructureError, match="k >= 1"):
        cell_variance(0, 1)
    assert subset_variance([(1, 2)], Fraction(1, 10**8)) == pytest.approx(0.5e16, rel=1e-6)
    assert cell_variance(1, 1) == 0
