"""The one-sided test: exact size, monotone likelihood ratio, power against the projected value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, poisson

import congenial as cg
from congenial.inference import Family, InferenceError, one_sided, power
from congenial.inference.hypothesis_tests import joint
from congenial.pairs.adjacency import ReplaceOne
from congenial.sampling.sums import Pmf
from tests.inference.exact import mechanism, one_axis, release_of

SEED = 23
WHERE = "x = 'l0'"


def released(y: int):
    made, _ = mechanism(one_axis(3), [8, 7, 5], (cg.total(),))
    return release_of(made, [y, 20 - y, 0])


@pytest.mark.parametrize(
    ("family", "null"),
    [
        (Family("poisson", 4.0), 2.0),
        (Family("binomial", 20), 0.3),
        (Family("negative_binomial", 2.0, dispersion=3.0), 4.0),
    ],
)
def test_p_values_equal_sums_written_out(family, null):
    noise = released(10).only.mechanism.error_law(np.array([True, False, False]))
    x = np.arange(0, 400)
    mass = family.law(null).pmf(x)
    for y in (-3, 0, 9, 15):
        exact = sum(
            p * noise.probs[max(y - k - noise.lo, 0) :].sum()
            for k, p in zip(x, mass, strict=True)
            if y - k <= noise.hi
        )
        found = one_sided(released(y), WHERE, family, null)
        assert found.p_value == pytest.approx(exact, abs=1e-12)
        less = one_sided(released(y), WHERE, family, null, "less").p_value
        here = sum(
            p * noise.probs[y - k - noise.lo]
            for k, p in zip(x, mass, strict=True)
            if noise.lo <= y - k <= noise.hi
        )
        assert found.p_value + less == pytest.approx(1 + here, abs=1e-12)


@pytest.mark.parametrize("level", [0.01, 0.05, 0.2])
def test_size_is_at_most_the_level_and_nearly_attained(level):
    family, null = Family("binomial", 20), 0.3
    size = power(released(9), WHERE, family, null, level, null)
    assert size <= level + 1e-12
    assert size > level - joint(family.law(null), _noise()).probs.max()


def _noise() -> Pmf:
    return released(9).only.mechanism.error_law(np.array([True, False, False]))


def test_power_grows_with_the_parameter():
    found = [
        power(released(9), WHERE, Family("binomial", 20), 0.3, 0.05, at)
        for at in (0.31, 0.4, 0.5, 0.7)
    ]
    assert np.all(np.diff([0.05, *found][1:]) > 0)


def test_log_concave_noise_has_a_monotone_likelihood_ratio():
    one, two = (joint(binom(20, t), _noise()) for t in (0.3, 0.5))
    y = np.arange(max(one.lo, two.lo) + 5, min(one.hi, two.hi) - 5)
    ratio = np.log(two.probs[y - two.lo]) - np.log(one.probs[y - one.lo])
    assert np.all(np.diff(ratio) > -1e-9)


def test_negative_control_noise_with_two_peaks_has_none():
    peaks = np.zeros(41)
    peaks[[5, 35]] = 0.5
    rough = Pmf(-20, 0.98 * peaks + 0.02 / 41)
    one, two = (joint(poisson(t), rough) for t in (4.0, 8.0))
    y = np.arange(-15, 25)
    ratio = np.log(two.probs[y - two.lo]) - np.log(one.probs[y - one.lo])
    assert np.any(np.diff(ratio) < -1e-3)


def test_no_less_power_than_from_the_projected_value():
    """Y* = Y cut to 0 .. 20: its best test at the same size, with the last point randomised."""
    family, noise = Family("binomial", 20), _noise()
    for null, at in ((0.05, 0.15), (0.3, 0.5), (0.85, 0.95)):
        free = [joint(family.law(t), noise) for t in (null, at)]
        low, high = min(one.lo for one in free), max(one.hi for one in free)
        laws = []
        for one in free:
            padded = np.zeros(high - low + 1)
            padded[one.lo - low : one.hi - low + 1] = one.probs
            cut = np.zeros(21)
            np.add.at(cut, np.clip(np.arange(low, high + 1), 0, 20), padded)
            laws.append((padded, cut))
        for level in (0.01, 0.05, 0.2):
            drawn, projected = (best(laws[0][k], laws[1][k], level) for k in (0, 1))
            assert drawn >= projected - 1e-12


def best(null, alternative, level) -> float:
    """Power of the most powerful level test of one law against another (Neyman, Pearson)."""
    order = np.argsort(-(alternative + 1e-300) / (null + 1e-300), kind="stable")
    spent = np.cumsum(null[order])
    whole = spent <= level
    gained = float(alternative[order][whole].sum())
    rest = int(np.sum(whole))
    if rest < len(order):
        left = level - (spent[rest - 1] if rest else 0.0)
        gained += float(alternative[order][rest]) * left / max(float(null[order][rest]), 1e-300)
    return gained


def test_bad_requests():
    with pytest.raises(InferenceError, match="not a parameter"):
        one_sided(released(9), WHERE, Family("binomial", 20), 1.5)
    schema = one_axis(3)
    made = cg.calibrate("plain_laplace", cg.Guarantee.pure(1, under=ReplaceOne(schema)))
    with pytest.raises(InferenceError, match="integer noise"):
        one_sided(release_of(made, [1.0, 2.0, 3.0]), WHERE, Family("poisson"), 1.0)
