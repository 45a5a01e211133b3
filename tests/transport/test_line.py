"""Distances on the line: against linear programmes, exact arithmetic and closed forms."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats as st
from hypothesis import given, settings
from hypothesis import strategies as some

from congenial.errors import GuaranteeError
from congenial.pairs.stated_laws import (
    StatedBinomial,
    StatedContinuous,
    StatedDiscrete,
    StatedLogDiscrete,
    StatedNormal,
    pmf,
    sample,
)
from congenial.transport import line
from congenial.transport.line import UNIT, whole_masses
from congenial.transport.sorted_kernels import _beyond, _up
from congenial.transport.wasserstein import distance
from tests.transport.lp import least_w, random_law

MU = pmf([1, 2, 3, 100], [0.6, 0.2, 0, 0.2])
NU = pmf([1, 2, 3, 100], [0.4, 0.3, 0.2, 0.1])
DELTAS = [Fraction(0), Fraction(1, 30), Fraction(1, 10), Fraction(3, 10)]


def trimmed(left, right, delta):
    """Planted: the coupling of equal quantiles, of which the longest share delta is dropped."""
    pieces = distance(left, right).certificate
    order = np.argsort(pieces.lengths())[::-1]
    dropped = Fraction(0)
    for k in order:
        dropped += Fraction(int(pieces.pieces[k]), pieces.total)
        if dropped > delta:
            return pieces.lengths()[k]
    return 0.0


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("delta", DELTAS)
def test_equals_linear_programme(seed, delta):
    rng = np.random.default_rng([1, seed])
    n, m = (int(k) for k in rng.integers(2, 9, 2))
    (x, p), (y, q) = random_law(rng, n, 30, 1, 12), random_law(rng, m, 30, 1, 12)
    found = distance(pmf(x, p), pmf(y, q), delta=delta)
    told = least_w(x, np.array(p) / 30, y, np.array(q) / 30, delta)
    assert found.value == told
    assert found.exact
    assert found.basis == "theorem"
    assert found.certificate.verify()
    assert found.certificate.unmatched <= delta


def test_worked_example():
    assert distance(MU, NU).value == 97
    assert distance(MU, NU, delta=0.1).value == 1
    assert distance(MU, NU, delta=0.3).value == 0
    assert distance(pmf({0: 0.5, 3: 0.5}), pmf({1: 0.6, 4: 0.4})).value == 2  # jumps of both laws


def test_trimming_equal_quantiles_is_wrong():
    """Planted: everything moves one step, although a share 1/100 left behind is enough."""
    left = pmf([*range(0, 10_000, 100)], [1] * 100)
    right = pmf([*range(100, 10_100, 100)], [1] * 100)
    assert trimmed(left, right, Fraction(1, 100)) == 100
    assert distance(left, right, delta="1/100").value == 0


def test_oracles(oracles):
    told = json.loads((oracles / "distribution-privacy.json").read_text())
    for case in told:
        if case["id"].startswith("gauss_shift_minW"):
            i = case["inputs"]
            found = distance(
                StatedNormal(0, i["s"]), StatedNormal(i["D"], i["s"]), delta=i["delta"]
            )
            assert found.value == pytest.approx(case["output"], abs=case["tol"])
            assert found.value >= case["output"] - 1e-15
            assert found.certificate.verify()


# --- rounding ------------------------------------------------------------------------------------

floats = some.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)


@settings(max_examples=300, deadline=None)
@given(floats, floats, floats)
def test_differences_are_compared_exactly(y, x, w):
    true = Fraction(y) - Fraction(x)
    assert _beyond(y, x, w) == (true > Fraction(w))
    up = _up(y, x)
    assert Fraction(up) >= true
    assert Fraction(math.nextafter(up, -math.inf)) < true


def test_value_is_never_below_the_true_distance():
    """The true distance, in rationals, of samples whose differences are not doubles."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        x, y = np.sort(rng.normal(size=17)), np.sort(rng.normal(size=17) * 1e-3 + 0.1)
        true = max(abs(Fraction(a) - Fraction(b)) for a, b in zip(x, y, strict=True))
        value = distance(sample(x), sample(y)).value
        assert Fraction(value) >= true > Fraction(math.nextafter(value, -math.inf))


def test_bisection_closes_on_a_distance_that_occurs():
    rng = np.random.default_rng(6)
    x, y = np.sort(rng.normal(size=40)), np.sort(rng.normal(size=53))
    found = distance(sample(x), sample(y), delta="1/9")
    assert np.min(np.abs(np.abs(x[:, None] - y[None, :]) - found.value)) < 1e-15
    assert found.basis == "estimate"


def test_grouped_cells_bracket_the_distance(monkeypatch):
    rng = np.random.default_rng(7)
    left, right = sample(rng.normal(size=900)), sample(rng.normal(size=1100) + 0.2)
    plain = distance(left, right, delta=0.05)
    monkeypatch.setattr(line, "_GROUP", 8)  # now the first bracket comes from groups of eight
    assert distance(left, right, delta=0.05).value == plain.value


def test_masses_of_any_size():
    """A mass of 10^-40 counts for W_inf, and is what delta = 10^-40 leaves behind."""
    tiny = Fraction(1, 10**40)
    thirds = [Fraction(1, 3)] * 3
    plain = pmf([0, 4, 9], thirds)
    extra = pmf([0, 4, 9, 1000], [thirds[0] - tiny, *thirds[1:], tiny])
    assert extra.masses.dtype == object
    found = distance(plain, extra)
    assert found.value == 991  # the top of one third goes up, everything below by one place
    assert found.certificate.verify()
    assert distance(plain, extra, delta=tiny).value == 0
    assert distance(plain, extra, delta=tiny / 2).value == 991


def test_long_masses_of_many_cells_are_shortened(monkeypatch):
    """Rounded where delta pays for it, bracketed; never for W_inf."""
    laws = StatedBinomial(150, Fraction(1, 7)), StatedBinomial(160, Fraction(2, 11), shift=1)
    told = [distance(*laws, delta=delta) for delta in (0, "1/1000")]
    monkeypatch.setattr(line, "_LONG", 10)
    whole, near = (distance(*laws, delta=delta) for delta in (0, "1/1000"))
    assert whole.value == told[0].value
    assert near.at_least <= told[1].value <= near.value <= told[1].value + 1
    assert near.certificate.verify()


def test_masses_are_rounded_against_us():
    law = pmf([0, 1, 5], np.array([1, 1, 1]) / 3)
    down, up = (whole_masses(law, rounding) for rounding in ("down", "up"))
    for mass in (*down, *up):
        assert abs(Fraction(int(mass), UNIT) - Fraction(1, 3)) < Fraction(1, 10**10)
    assert all(Fraction(int(mass), UNIT) < Fraction(1, 3) for mass in down)
    assert all(Fraction(int(mass), UNIT) > Fraction(1, 3) for mass in up)


def test_written_decimals_are_exact_and_computed_ones_are_not():
    assert isinstance(pmf([0, 1], [0.1, 0.9]), StatedDiscrete)
    assert isinstance(
        pmf([0, 1], [1 / 3, 1 - 1 / 3]), StatedLogDiscrete
    )  # although the decimals add up
    assert isinstance(pmf([0, 1], [Fraction(1, 3), Fraction(2, 3)]), StatedDiscrete)


def test_computed_masses_count_their_rounding():
    """A pmf of computed floats: the value is an upper bound, the true one is bracketed."""
    thirds = pmf([0, 1, 5], np.array([1, 1, 1]) / 3)
    assert isinstance(thirds, StatedLogDiscrete)
    exact = pmf([0, 1, 7], ["1/3", "1/3", "1/3"])
    found = distance(thirds, exact)
    assert found.at_least <= 2 <= found.value
    assert found.basis == "numerical bound"
    assert found.certificate.verify()
    near = distance(thirds, exact, delta=1e-6)
    assert near.value == near.at_least == 2
    assert near.certificate.verify()


# --- continuous laws -----------------------------------------------------------------------------


def test_translations_are_exact():
    found = distance(StatedNormal(0, 2), StatedNormal(0.1, 2))
    assert (found.value, found.exact) == (0.1, True)
    assert found.certificate.verify()
    gamma = [StatedContinuous.of(st.gamma(2, loc=place, scale=3)) for place in (1.0, 1.5)]
    assert distance(*gamma).value == 0.5


@pytest.mark.parametrize("delta", [0.0001, 0.01, 0.2])
def test_cells_bracket_the_closed_form(delta):
    told = max(0.0, 1.5 - 2 * 1.2 * st.norm.ppf((1 + delta) / 2))
    laws = [StatedContinuous.of(st.norm(place, 1.2)) for place in (0.0, 1.5)]
    found = distance(*laws, delta=delta)
    assert found.at_least <= told <= found.value
    assert found.value - found.at_least < 2e-3
    assert found.certificate.verify()


def test_bounded_continuous_laws():
    left, right = StatedContinuous.of(st.uniform(0, 1)), StatedContinuous.of(st.uniform(0.5, 2))
    found = distance(left, right)  # quantiles u and 1/2 + 2u
    assert found.at_least <= 1.5 <= found.value < 1.501
    assert found.certificate.verify()


def test_sample_against_a_continuous_law():
    rng = np.random.default_rng(9)
    draws = sample(rng.normal(size=500))
    found = distance(draws, StatedNormal(0, 1), delta=0.1)
    assert 0 < found.at_least <= found.value < 0.5
    assert found.basis == "estimate"
    assert found.certificate.verify()


def test_infinite_is_said_with_the_remedy():
    found = distance(StatedNormal(0, 1), StatedNormal(0, 2))
    assert math.isinf(found.value)
    with pytest.raises(GuaranteeError, match=r"infinite.*\(W, delta\)-closeness"):
        found.require()
    with pytest.raises(GuaranteeError):
        found.certificate.verify()
    assert distance(StatedNormal(0, 1), StatedNormal(0, 2), delta=0.01).require() < 3
    half = distance(
        StatedNormal(0, 1), pmf([0], [1]), delta=1e-17
    )  # more than delta is beyond the cells
    assert math.isinf(half.value) or half.value > 8


# --- certificates and bad input ------------------------------------------------------------------


def test_a_damaged_certificate_is_noticed():
    from dataclasses import replace

    good = distance(MU, NU, delta=0.1).certificate
    assert good.verify()
    assert not replace(good, within=0.5).verify()
    assert not replace(good, delta=Fraction(1, 100)).verify()
    more = good.pieces.copy()
    more[0] += 1
    assert not replace(good, pieces=more).verify()
    elsewhere = good.pairs.copy()
    elsewhere[0, 1] = 2
    assert not replace(good, pairs=elsewhere).verify()


@pytest.mark.parametrize(
    ("points", "masses", "said"),
    [
        ([0, 1], [0.5, 0.4], "add up to 0.9"),
        ([0, 1], ["1/2", "1/3"], "add up to"),
        ([0, 1], [-0.5, 1.5], "negative"),
        ([0, 1], [1.0], "points of shape"),
        ([], [], "no points"),
        ([0, math.nan], [0.5, 0.5], "not a finite number"),
        ([0, 1], ["x", 1], "not a number"),
        ([0, 1], [0, 0], "none above 0"),
        (["a", 1], [0.5, 0.5], "not numbers"),
    ],
)
def test_bad_pmfs_are_refused(points, masses, said):
    with pytest.raises(GuaranteeError, match=said):
        pmf(points, masses)


def test_bad_requests_are_refused():
    with pytest.raises(GuaranteeError, match="norm"):
        distance(MU, NU, norm="l3")
    with pytest.raises(GuaranteeError, match="delta = 2"):
        distance(MU, NU, delta=2)
    with pytest.raises(GuaranteeError, match="promises nothing"):
        distance(MU, NU, delta=1)
    with pytest.raises(GuaranteeError, match="1 and 2 dimensions"):
        distance(MU, pmf([[0, 0], [1, 1]], [1, 1]))
    with pytest.raises(GuaranteeError, match="cannot be certified"):
        distance(pmf([0, 1], np.array([1, 2]) / 3), StatedNormal(0, 1))
    with pytest.raises(GuaranteeError, match="frozen continuous"):
        StatedContinuous.of(st.poisson(3))


def cells(low, masses):
    at = np.array(low, dtype=float)
    return line.LineCells(at, at, np.array(masses), 12)


def test_ties_of_masses_and_of_distances():
    """All of the smaller law has to be matched, exactly; equal quantiles jump together."""
    few, many = cells([0, 5], [2, 2]), cells([1, 9], [3, 3])
    assert line.least(few, many, 4) == 4  # 0 to 1 twice, 5 to 1, 5 to 9
    assert line.least(many, few, 4) == 4
    assert line.least(few, many, 5) == math.inf
    assert line.least(cells([0, 3, 8], [4, 4, 4]), cells([0, 4, 8], [4, 4, 4]), 12) == 1
    for seed in range(6):  # few different masses, so that cumulative sums tie again and again
        random = np.random.default_rng(seed)
        x, y = (random.choice(12, size, replace=False) for size in (4, 6))
        p, q = (random.choice([1, 2, 3], size) for size in (4, 6))
        shares = [[Fraction(int(m), int(each.sum())) for m in each] for each in (p, q)]
        for delta in (Fraction(0), Fraction(1, 6), Fraction(1, 3)):
            found = distance(pmf(x, shares[0]), pmf(y, shares[1]), delta=delta).value
            told = least_w(x[:, None], p / p.sum(), y[:, None], q / q.sum(), delta)
            assert found == pytest.approx(told, abs=1e-9)
