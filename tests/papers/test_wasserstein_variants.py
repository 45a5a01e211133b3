"""Any loss on a finite range, real statistics on a public grid, the promise of two releases."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness
from congenial.errors import DataError, GuaranteeError, StructureError
from congenial.mechanisms import ValuesRelease, WassersteinExponential
from congenial.mechanisms.wasserstein.base_measure import naive
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta
from congenial.papers import FiniteRange, WassersteinReals, joint_promise
from congenial.sampling.randomness import RecordedRandomness
from congenial.transport.delta_z import delta_z
from tests.mechanisms.wasserstein import cases

ALPHA = 1e-6
SEED = 41
UNIT = F(1, 4)
EPS = F(1)
SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}})


# ---- real numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_loss_with_rounding_is_within_epsilon(norm):
    """Values Delta_z apart, wherever they fall between grid points."""
    made = WassersteinReals(cases.finite(), assumed_delta("3/10", norm), F(1), UNIT, 2)
    grid = np.stack(np.meshgrid(np.arange(-80, 81), np.arange(-80, 81)), -1).reshape(-1, 2) / 4
    worst = 0.0
    for x in ((0.0, 0.0), (0.12, 0.13), (0.124, -0.126)):
        for move in ((0.3, 0.0), (0.15, 0.15), (-0.2, 0.1), (0.0, -0.3)):
            one, other = (made.log_density(grid, v) for v in (x, np.add(x, move)))
            worst = max(worst, float(np.abs(one - other).max()))
    assert 0.2 < worst <= 1 + 1e-9
    # planted: without the unit that rounding adds, two values fall too far apart
    careless = 1 / (0.3 / float(UNIT))
    assert worst * careless / float(made.on_grid.rate) > 1


def test_the_noise_is_not_more_than_rounding_needs():
    """Values just over one unit apart can fall on grid points two apart: almost all of epsilon."""
    made = WassersteinReals(cases.stated(), assumed_delta("102/100", "l1"), F(1), F(1))
    grid = np.arange(-60, 61)[:, None]
    one, other = (made.log_density(grid, [v]) for v in (0.49, 1.51))
    assert 0.98 < float(np.abs(one - other).max()) <= 1 + 1e-9


def test_draws_follow_the_density():
    made = WassersteinReals(cases.stated(), delta_z(cases.stated()), F(2), F(1, 2))
    drawn = made.draw([0.7], SeededRandomness(SEED), 20_000)[:, 0]
    points = np.arange(-6, 8) / 2
    p = np.exp(made.log_density(points[:, None], [0.7]))
    seen = np.array([(drawn == point).sum() for point in points])
    counts, expected = np.append(seen, 20_000 - seen.sum()), np.append(p, 1 - p.sum()) * 20_000
    assert chisquare(counts, expected).pvalue > ALPHA
    assert chisquare(counts, np.roll(expected, 1)).pvalue < ALPHA  # negative control


def test_release_and_refusals():
    made = WassersteinReals(cases.stated(), delta_z(cases.stated()), F(1), UNIT)
    release = made.release([2.4], SeededRandomness(SEED))
    assert (release.values[0] / float(UNIT)).is_integer()
    again = ValuesRelease.from_payload(
        name=release.name, description=release.description, guarantee=release.guarantee,
        randomness=release.randomness, publishable=False, payload=release.payload(),
    )  # fmt: skip
    assert again == release
    assert "before rounding" in release.guarantee.explain()
    with pytest.raises(DataError, match="not a vector of 1"):
        made.draw([1.0, 2.0], SeededRandomness(SEED), 1)
    with pytest.raises(DataError, match="finite"):
        made.draw([np.nan], SeededRandomness(SEED), 1)
    with pytest.raises(GuaranteeError, match="unit 0"):
        WassersteinReals(cases.stated(), delta_z(cases.stated()), F(1), F(0))
    with pytest.raises(StructureError, match="a number of cells up to"):
        WassersteinReals(cases.stated(), delta_z(cases.stated()), F(1), UNIT, 2**40)
    with pytest.raises(GuaranteeError, match="in records"):
        WassersteinReals(cases.finite("database"), delta_z(cases.finite("database")), F(1), UNIT)


# ---- any loss on a finite range -----------------------------------------------------------------


def test_user_losses_by_enumeration():
    points = list(range(6))
    power = FiniteRange.of(points, points, lambda y, x: abs(y - x) ** 3, lambda a, b: abs(a - b), 1)
    assert power.sigma == 61  # 5^3 - 4^3
    assert power.worst_loss(power.theorem_rate(1)) <= 1
    assert power.theorem_rate(1) == 1 / (2 * power.sigma)  # the bound is loose: state it exactly
    better = power.largest_rate(1)
    assert better > power.theorem_rate(1)
    assert 0.999 < power.worst_loss(better) <= 1
    drawn = power.draw(2, better * 40, SeededRandomness(SEED), 4_000)
    p = np.exp(power.log_density(better * 40)[2])
    seen = np.bincount(drawn, minlength=6)
    kept = p * 4_000 > 5
    statistic = ((seen - 4_000 * p)[kept] ** 2 / (4_000 * p[kept])).sum()
    assert chi2.sf(statistic, kept.sum()) > ALPHA


@pytest.mark.parametrize(("second", "point"), [(0, 0), (2**64 - 1, 1)])
def test_a_word_that_a_probability_falls_into_is_refined(second, point):
    """The first of two points has mass 1/3, whose first 64 bits are the first word."""
    law = FiniteRange(((F(0), F(0)),), (), (F(1), F(2)))
    words = RecordedRandomness([2**64 // 3, second])
    assert law.draw(0, F(1), words, 1).tolist() == [point]


# ---- two releases -------------------------------------------------------------------------------


def test_the_promise_of_two_releases():
    query = cases.histogram(3)
    by_query = WassersteinExponential.calibrate(cases.finite(), EPS, naive(3), query=query)
    with pytest.raises(GuaranteeError, match="cannot be combined"):
        joint_promise(by_query.guarantee, by_query.guarantee)
    by_database = WassersteinExponential.calibrate(
        cases.finite("database"), EPS, naive(3), ordinary=2
    )
    one = by_database.guarantee
    assert joint_promise(one, one).tradeoff.eps == 2
    assert joint_promise(one, one, ([0], [1])).tradeoff.eps == 1
    with pytest.raises(GuaranteeError, match="Give SecretPairs"):
        joint_promise(one, Guarantee.pure(1, ReplaceOne(SCHEMA)))
    with pytest.raises(GuaranteeError, match="pure promises"):
        joint_promise(one, Guarantee.zero_concentrated(1, one.adjacency))
