"""epsilon with delta of one draw of discrete Gaussian noise: never below the truth."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from congenial import Figures, Guarantee, Schema, SemiAdjacent, calibrate, margin
from congenial.privacy import GaussianDraw, Tradeoff, ZeroConcentrated, joint_loss
from congenial.privacy.accounting import tensor
from congenial.privacy.conversions import gaussian_delta, zcdp_delta, zcdp_rho
from congenial.privacy.gaussian_draw import TIGHT, lattice_delta, lattice_epsilon, lattice_rho

EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def one_line(mu: float, epsilon: float, offset: float) -> float:
    """delta of the discrete Gaussian on Z + offset of scale 1/mu against itself moved by one."""
    x = np.arange(-300, 301) + offset
    weights = np.exp(-((x * mu) ** 2) / 2)
    p, q = weights[1:], weights[:-1]
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / weights.sum())


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, math.sqrt(2), 2.5, 4.5])
def test_the_bound_is_the_largest_over_offsets(mu):
    for epsilon in EPSILONS:
        largest = max(one_line(mu, epsilon, c) for c in np.linspace(0, 1, 801))
        # one line need not keep rho, their mean does: the smaller of both bounds is stated
        smaller = min(largest, zcdp_delta(mu**2 / 2, epsilon))
        found = lattice_delta(mu**2 / 2, epsilon)
        assert smaller * (1 - 1e-12) <= found <= smaller * (1 + 2 * TIGHT) + 1e-300


def lattice(equations: list[list[int]], cells: int, far: int) -> np.ndarray:
    every = np.array(list(product(range(-far, far + 1), repeat=cells)))
    return every[~np.any(every @ np.array(equations or [[0] * cells]).T, axis=1)]


def true_delta(points: np.ndarray, v: np.ndarray, variances: np.ndarray, epsilon: float) -> float:
    """sum of (P(y) - e^eps P(y - v))_+ over the points of a lattice, far beyond the noise."""
    weights = np.exp(-(points**2 / (2 * variances)).sum(axis=1))
    moved = np.exp(-((points - v) ** 2 / (2 * variances)).sum(axis=1))
    return float(np.maximum(weights - math.exp(epsilon) * moved, 0).sum() / weights.sum())


LATTICES = {
    "free": ([], 2, 9, [(1, -1), (1, 0), (2, -1)]),
    "sum": ([[1, 1, 1]], 3, 9, [(1, -1, 0), (1, -2, 1), (2, -1, -1)]),
    "both margins of 2 x 3": (
        [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]],
        6,
        4,
        [(1, -1, 0, -1, 1, 0), (1, 1, -2, -1, -1, 2)],
    ),
    "weights": ([[1, 2, 3]], 3, 9, [(1, 1, -1), (2, -1, 0), (5, -1, -1)]),
}


@pytest.mark.parametrize("name", LATTICES)
@pytest.mark.parametrize("variance", [0.3, 1.0])
def test_enumerated_lattices_are_never_above_the_bound(name, variance):
    equations, cells, far, moves = LATTICES[name]
    points = lattice(equations, cells, far)
    variances = variance * (1 + 0.5 * (np.arange(cells) % 2))  # two tables with noise of their own
    for move in map(np.array, moves):
        rho = float((move**2 / variances).sum()) / 2
        for epsilon in EPSILONS:
            truth = true_delta(points, move, variances, epsilon)
            assert truth <= lattice_delta(rho, epsilon) + 1e-12
            # the bound at a larger mu covers it as well
            assert truth <= lattice_delta(1.3 * rho, epsilon) + 1e-12


def test_planted_the_curve_of_unconditioned_draws_is_below_the_truth_of_conditioned_ones():
    """sigma^2 = 1, v = (1, -1), given the sum: .564; .502 without it, .520 for N(0, 1)."""
    v, ones = np.array([1, -1]), np.ones(2)
    given_sum = true_delta(lattice([[1, 1]], 2, 9), v, ones, 0)
    unconditioned = true_delta(lattice([], 2, 9), v, ones, 0)
    continuous = gaussian_delta(math.sqrt(2), 0)
    assert [round(x, 3) for x in (given_sum, unconditioned, continuous)] == [0.564, 0.502, 0.52]
    assert unconditioned < continuous < given_sum <= lattice_delta(1, 0)


def test_calibration_keeps_what_was_asked_and_takes_less_noise():
    for epsilon, delta in product((Fraction(1, 2), 1, 4), (1e-9, 1e-6, 1e-3)):
        rho = lattice_rho(epsilon, delta)
        assert rho > zcdp_rho(epsilon, delta)
        assert lattice_delta(rho, epsilon) <= delta
        for less in (1.0, 1 - 1e-6, 0.9):  # rounded towards more noise, it states no more
            assert lattice_epsilon(rho * less, delta) <= epsilon


def test_nothing_is_claimed_at_delta_0_or_for_very_much_or_very_little_noise():
    assert lattice_epsilon(1, 0.0) == math.inf
    for rho in (1e-9, 200):
        assert lattice_delta(rho, 0.5) == zcdp_delta(rho, 0.5)
        assert lattice_epsilon(rho, 1e-6) == ZeroConcentrated(rho).epsilon(1e-6)


def test_only_one_draw_is_sharper_several_are_added_as_rho():
    schema = Schema.from_dict({"a": {"integers": [1, 3]}, "b": {"integers": [1, 2]}})
    pairs = SemiAdjacent(Figures(schema, (margin("a"),)))
    made = calibrate("auto", Guarantee.approximate(1, 1e-6, under=pairs), schema.names)
    one = joint_loss([made.description], pairs)
    assert isinstance(one.tradeoff, GaussianDraw)
    assert one.epsilon_at(1e-6) <= 1 < ZeroConcentrated(one.rho).epsilon(1e-6)
    assert "bound for one draw of discrete Gaussian noise" in made.guarantee.explain()
    two = joint_loss([made.description, made.description], pairs)
    assert two.tradeoff == ZeroConcentrated(2 * one.rho)
    assert tensor(made.guarantee.tradeoff, ZeroConcentrated(1)) == ZeroConcentrated(1 + one.rho)
    pure = calibrate("auto", Guarantee.pure(1, under=pairs), schema.names)
    beside = joint_loss([made.description, pure.description], pairs)
    assert not isinstance(beside.tradeoff, GaussianDraw)
    assert beside.epsilon_at(1e-6) == pytest.approx(1 + one.epsilon_at(1e-6))


def test_order_and_plain_data():
    sharp, plain = GaussianDraw("1/2"), ZeroConcentrated("1/2")
    assert plain <= sharp
    assert sharp <= GaussianDraw("1/3")
    assert not GaussianDraw("1/3") <= plain
    with pytest.raises(Exception, match="cannot be compared"):
        _ = sharp <= plain
    assert Tradeoff.from_dict(sharp.to_dict()) == sharp != plain
