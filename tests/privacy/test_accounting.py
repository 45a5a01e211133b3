"""Composition of unlike promises: enumeration, closed forms, and the grid of dp-accounting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad

from congenial.errors import GuaranteeError
from congenial.privacy import accounting
from congenial.privacy.accounting import INTERVAL, compose
from congenial.privacy.conversions import zcdp_epsilon
from congenial.privacy.tradeoff import (
    Approximate,
    Gaussian,
    Nothing,
    Pure,
    Tradeoff,
    ZeroConcentrated,
    tradeoff_between,
)

UNLIKE = [Pure(0.3), Approximate(0.5, 1e-3), tradeoff_between([0.2, 0.3, 0.5], [0.3, 0.3, 0.4])]


def brute(parts: list[Tradeoff], epsilon: float) -> float:
    """Hockey-stick divergence of the product pair by listing every outcome, both orders."""
    pairs = [[(float(p), float(q)) for p, q in part.pieces] for part in parts]  # type: ignore[attr-defined]
    both = [0.0, 0.0]
    for outcome in itertools.product(*pairs):
        p, q = math.prod(x[0] for x in outcome), math.prod(x[1] for x in outcome)
        both[0] += max(0.0, p - math.exp(epsilon) * q)
        both[1] += max(0.0, q - math.exp(epsilon) * p)
    return max(both)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7, 1.1])
def test_discrete_parts_match_enumeration(epsilon: float) -> None:
    exact = brute(UNLIKE, epsilon)
    assert exact <= compose(UNLIKE).delta(epsilon) <= exact * (1 + 1e-9) + 1e-15


LARGE = tradeoff_between([0.9, 0.1], [0.1, 0.9])  # a largest loss of ln 9, above all its others


def test_a_part_with_a_large_largest_loss() -> None:
    """Every route covers the largest loss of each part: ln 9 + 0.1, nearly all of it at 1e-6."""
    whole = compose([LARGE, Pure(0.1)])
    exact = [brute([LARGE, Pure(0.1)], eps) for eps in (0.4, 1.5, 2.2, 2.29)]
    found = [whole.delta(eps) for eps in (0.4, 1.5, 2.2, 2.29)]
    assert all(e <= f <= e * (1 + 1e-9) for e, f in zip(exact, found, strict=True))
    assert whole.epsilon(1e-6) == pytest.approx(math.log(9) + 0.1, abs=1e-5)
    assert whole.epsilon(0) == pytest.approx(math.log(9) + 0.1, rel=1e-9)


@pytest.mark.parametrize(
    "parts",
    [
        [LARGE, Pure(0.1)],
        [Pure(0.1), LARGE, Approximate(0.2, 1e-4)],
        [tradeoff_between([0.6, 0.4], [0.4, 0.6]), LARGE],
    ],
)
def test_each_route_alone_is_a_bound(parts: list[Tradeoff]) -> None:
    """The smallest of the routes counts, so none of them may be below enumeration."""
    whole = compose(parts)
    for epsilon in (0.0, 0.4, 1.0, 2.0, 2.5):
        exact = brute(parts, epsilon)
        for route in (whole._product_delta, whole._concentrated_delta, whole._basic_delta):
            assert route(epsilon) >= exact * (1 - 1e-12), route
        assert whole._grid_delta(epsilon) >= exact * (1 - 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_gaussian_beside_pure_matches_integration(epsilon: float) -> None:
    mu, eps = 0.8, 1.0
    high = 1 / (1 + math.exp(-eps))

    def gap(x: float) -> float:
        p, q = math.exp(-((x - mu) ** 2) / 2), math.exp(-(x**2) / 2)
        terms = (
            high * p - math.exp(epsilon) * (1 - high) * q,
            (1 - high) * p - math.exp(epsilon) * high * q,
        )
        return sum(max(0.0, t) for t in terms) / math.sqrt(2 * math.pi)

    kinks = [(epsilon - sign * eps) / mu + mu / 2 for sign in (1, -1)]
    exact, _ = quad(gap, -12, 12, points=kinks, epsabs=1e-13, limit=400)
    found = compose([Gaussian(mu), Pure(eps)]).delta(epsilon)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-8) + 1e-12


@pytest.mark.parametrize(
    "parts", [UNLIKE, [*UNLIKE, Gaussian(0.7)], [Pure(0.1 + k / 50) for k in range(9)]]
)
def test_the_grid_is_above_and_near_the_exact_product(parts: list[Tradeoff]) -> None:
    whole = compose(parts)
    for epsilon in (0.1, 0.6, 1.2):
        exact = whole._product_delta(epsilon)
        grid = whole._grid_delta(epsilon)
        assert (
            exact <= grid <= whole._product_delta(max(0, epsilon - len(parts) * INTERVAL)) + 1e-10
        )


def test_too_many_pieces_go_to_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Pure(0.11 + k / 37) for k in range(8)]
    exact = compose(parts)
    monkeypatch.setattr(accounting, "_MAX_PIECES", 10)
    rounded = compose(parts)
    assert rounded._pieces is None
    assert exact.epsilon(1e-3) <= rounded.epsilon(1e-3) <= exact.epsilon(1e-3) + 9 * INTERVAL
    total = sum(0.11 + k / 37 for k in range(8))
    assert rounded.epsilon(0) == pytest.approx(total, rel=1e-12)  # beyond the grid: basic sum
    assert rounded.epsilon(1e-30) <= total * (1 + 1e-12)


@pytest.mark.parametrize("k", [1, 5, 40])
def test_equal_pure_parts_are_binomial(k: int) -> None:
    eps = 0.2
    high = 1 / (1 + math.exp(-eps))
    for epsilon in (0.0, 0.5, 1.5):
        exact = sum(
            math.comb(k, j)
            * max(
                0.0,
                high**j * (1 - high) ** (k - j)
                - math.exp(epsilon) * high ** (k - j) * (1 - high) ** j,
            )
            for j in range(k + 1)
        )
        assert (
            exact * (1 - 1e-12)
            <= compose([Pure(eps)] * k).delta(epsilon)
            <= exact * (1 + 1e-8) + 1e-14
        )


def test_merged_families_stay_exact() -> None:
    assert compose([Gaussian(3), Gaussian(4)]).epsilon(1e-6) == pytest.approx(
        Gaussian(5).epsilon(1e-6)
    )
    both = compose([ZeroConcentrated(0.1), ZeroConcentrated(0.2)])
    assert both.epsilon(1e-6) <= zcdp_epsilon(0.3, 1e-6) * (1 + 1e-9)


def test_concentrated_parts_beat_the_plain_split() -> None:
    rho, eps, delta = 0.5, 1.0, 1e-6
    found = compose([ZeroConcentrated(rho), Pure(eps)]).epsilon(delta)
    assert found < zcdp_epsilon(rho, delta) + eps
    # A Gaussian with the same rho is one mechanism this must cover.
    assert found > compose([Gaussian(1), Pure(eps)]).epsilon(delta)
    slack = compose([ZeroConcentrated(rho), Approximate(eps, 1e-7)])
    assert found < slack.epsilon(delta) < zcdp_epsilon(rho, delta - 1e-7) + eps
    assert slack.epsilon(1e-8) == math.inf  # below the delta already spent


def test_concentrated_parts_cover_discrete_gaussians() -> None:
    x = np.arange(-30, 32)
    p, q = np.exp(-(x**2) / 2.0), np.exp(-((x - 1) ** 2) / 2.0)
    true = tradeoff_between((p / p.sum()).tolist(), (q / q.sum()).tolist())
    promise = compose([ZeroConcentrated(0.5), Approximate(0.4, 1e-4)])
    actual = compose([true, Approximate(0.4, 1e-4)])
    for epsilon in (0.0, 1.0, 3.0):
        assert actual.delta(epsilon) <= promise.delta(epsilon)


def test_tiny_delta_of_a_part_is_not_lost() -> None:
    parts = [Approximate(1, 1e-25), Pure(1)]
    assert compose(parts).delta(5) >= 1e-25
    assert compose(parts).epsilon(1e-26) == math.inf


def test_tradeoff_is_a_lower_bound_and_near() -> None:
    whole = compose([Gaussian(1), Pure(1)])
    f = whole.tradeoff()
    for delta in (1e-9, 1e-4, 0.1):
        assert whole.epsilon(delta) <= f.epsilon(delta) * (1 + 1e-9)
        assert f.epsilon(delta) <= whole.epsilon(delta) + 0.02


def test_edges() -> None:
    assert compose([]).epsilon(0) == 0
    assert compose([Pure(0), Pure(1)]).epsilon(0) == 1
    assert compose([Nothing(), Pure(1)]).epsilon(0.5) == math.inf
    assert compose([Nothing(), Pure(1)]).delta(3) == 1
    assert compose([Gaussian(1), Pure(1)]).epsilon(0) == math.inf
    assert compose([Gaussian(1), Pure(1)]).basis == "numerical bound"
    with pytest.raises(GuaranteeError, match="not a trade-off"):
        compose([1.0])  # type: ignore[list-item]
