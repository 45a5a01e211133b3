"""Trade-off functions: orientation, enumeration of tests, algebra, order, words, bad input."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from congenial.errors import GuaranteeError
from congenial.privacy.accounting import tensor
from congenial.privacy.tradeoff import (
    Approximate,
    Gaussian,
    Nothing,
    PiecewiseLinear,
    Pure,
    Tradeoff,
    ZeroConcentrated,
    tradeoff_between,
)

few = settings(max_examples=30, deadline=None)
ALPHA = np.linspace(0, 1, 101)
FAMILIES = [
    Pure(0),
    Pure(Fraction(1, 3)),
    Pure(2.5),
    Approximate(0.8, 0.1),
    Approximate(0, Fraction(1, 10)),
    Gaussian(0.7),
    ZeroConcentrated(Fraction(1, 8)),
    tradeoff_between([0.2, 0.3, 0.5], [0.3, 0.3, 0.4]).symmetrise(),
    Nothing(),
]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    """Two rational distributions on 2 to 5 outcomes, zeros included."""
    size = draw(st.integers(2, 5))
    weights = st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any)
    p, q = draw(weights), draw(weights)
    return [Fraction(x, sum(p)) for x in p], [Fraction(x, sum(q)) for x in q]


def best_test(p: list[Fraction], q: list[Fraction], alpha: float) -> float:
    """inf { 1 - E_Q phi : E_P phi <= 1 - alpha } as a linear program over all tests."""
    found = linprog(
        [-float(x) for x in q],
        A_ub=[[float(x) for x in p]],
        b_ub=[1 - alpha],
        bounds=[(0, 1)] * len(p),
    )
    return 1 + found.fun


# --- orientation and values --------------------------------------------------------------------


def test_printed_values() -> None:
    assert Approximate(0.8, 0.1)([0.05, 0.5, 0.95]) == pytest.approx(
        [0.0, 0.17973158564688864, 0.78872295357537662]
    )
    assert Gaussian(0.7)(0.5) == pytest.approx(0.24196365222307301)
    assert Pure(0.8).piecewise().group(2)([0.5, 0.832]) == pytest.approx(
        [0.1009482589973277, 0.28132896411722159]
    )
    assert Pure(0.8).group(2)([0.5, 0.832]) == pytest.approx(
        [0.1009482589973277, 0.1679779029715533]
    )


def test_f_eps_delta_is_the_stated_maximum() -> None:
    eps, delta = 0.8, 0.1
    lines = [
        np.zeros_like(ALPHA),
        1 - delta - math.exp(eps) + math.exp(eps) * ALPHA,
        math.exp(-eps) * (ALPHA - delta),
    ]
    assert Approximate(eps, delta)(ALPHA) == pytest.approx(np.max(lines, axis=0), abs=1e-14)
    # The other orientation would start at 1 - delta: a planted swap fails here.
    assert Approximate(eps, delta)(1 - ALPHA) != pytest.approx(np.max(lines, axis=0), abs=1e-3)


@few
@given(pairs())
def test_from_pair_is_the_optimal_test(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    f = tradeoff_between(*pair)
    for alpha in (0.0, 0.13, 0.5, 0.77, 1.0):
        assert float(f(alpha)) == pytest.approx(best_test(*pair, alpha), abs=1e-9)


@few
@given(pairs())
def test_pair_gives_delta_of_both_orders(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    f = tradeoff_between(*pair)
    for eps in (0.0, 0.4, 2.0):
        exact = max(
            sum(max(0.0, float(a) - math.exp(eps) * float(b)) for a, b in zip(x, y, strict=True))
            for x, y in (pair, pair[::-1])
        )
        assert exact - 1e-15 <= f.delta(eps) <= exact + 1e-12


@few
@given(pairs())
def test_symmetrise_is_the_hull_of_both_orders(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    f, back = tradeoff_between(*pair), tradeoff_between(*pair[::-1])
    both = f.symmetrise()
    assert both.is_symmetric
    assert both == back.symmetrise()
    assert both <= f
    assert both <= back
    # Greatest: at every level some mixture of two corners of the two curves reaches it.
    corners = np.array([[float(a), float(v)] for a, v in f.points + back.points])
    for alpha in (0.1, 0.35, 0.6, 0.9):
        reach = linprog(
            corners[:, 1],
            A_eq=[np.ones(len(corners)), corners[:, 0]],
            b_eq=[1, alpha],
            bounds=[(0, 1)] * len(corners),
        )
        assert float(both(alpha)) == pytest.approx(reach.fun, abs=1e-9)
    for eps in (0.0, 1.0):
        assert both.delta(eps) == pytest.approx(f.delta(eps), abs=1e-12)


@pytest.mark.parametrize("f", FAMILIES)
def test_every_family_is_a_tradeoff_function(f: Tradeoff) -> None:
    values = f(ALPHA)
    assert np.all(values <= ALPHA)
    assert np.all(np.diff(values) >= -1e-15)
    assert np.all(np.diff(values, 2) >= -1e-12)
    # Symmetric: (alpha, f) on the graph puts (1 - f, 1 - alpha) on it, where f is positive.
    inner = values[(values > 0) & (values < 1)]
    levels = ALPHA[(values > 0) & (values < 1)]
    assert f(1 - inner) == pytest.approx(1 - levels, abs=2e-3)


@pytest.mark.parametrize("f", FAMILIES)
def test_epsilon_and_delta_agree_and_bound_f(f: Tradeoff) -> None:
    for delta in (0.0, 1e-9, 0.05, 0.3):
        eps = f.epsilon(delta)
        if math.isinf(eps):
            continue
        assert f.delta(eps) <= delta * (1 + 1e-12) + 1e-300
        if eps > 1e-9 and delta > 0:
            assert f.delta(eps * (1 - 1e-6)) > delta * (1 - 1e-9)
        assert np.all(f(ALPHA) >= Approximate(eps, delta)(ALPHA) - 2e-4)
    assert f.total_variation >= np.max(ALPHA - f(ALPHA)) - 1e-12


# --- algebra -----------------------------------------------------------------------------------


@few
@given(pairs(), pairs())
def test_tensor_is_the_product_pair(
    first: tuple[list[Fraction], list[Fraction]], second: tuple[list[Fraction], list[Fraction]]
) -> None:
    p = [a * b for a, b in itertools.product(first[0], second[0])]
    q = [a * b for a, b in itertools.product(first[1], second[1])]
    f, g = tradeoff_between(*first), tradeoff_between(*second)
    assert tensor(f, g) == tradeoff_between(p, q)  # exact rationals
    assert tensor(f, g) == tensor(g, f)
    assert tensor(f, g) <= f  # forgetting one release is post-processing


@pytest.mark.parametrize("k", [2, 7, 60])
def test_pure_composes_to_a_binomial(k: int) -> None:
    eps = 0.3
    high = 1 / (1 + math.exp(-eps))
    f: Tradeoff = Pure(eps)
    for _ in range(k - 1):
        f = tensor(f, Pure(eps))
    assert isinstance(f, PiecewiseLinear)
    assert len(f.pieces) == k + 1
    for epsilon in (0.0, eps, k * eps / 2, (k - 1) * eps):
        exact = sum(
            math.comb(k, j)
            * high**j
            * (1 - high) ** (k - j)
            * -math.expm1(epsilon - (2 * j - k) * eps)
            for j in range(k + 1)
            if (2 * j - k) * eps > epsilon + 1e-9
        )
        assert exact * (1 - 1e-9) <= f.delta(epsilon) <= exact * (1 + 1e-9) + 1e-12 * high**k * 100
    assert k * eps <= f.epsilon(0) <= k * eps * (1 + 1e-9)
    assert Pure(k * eps) <= f


def test_tensor_within_families() -> None:
    assert tensor(Gaussian(3), Gaussian(4)).mu == pytest.approx(5)  # type: ignore[attr-defined]
    assert tensor(Gaussian(3), Gaussian(4)).mu >= 5  # type: ignore[attr-defined]
    half = ZeroConcentrated(Fraction(1, 4))
    assert tensor(half, half) == ZeroConcentrated(Fraction(1, 2))
    assert tensor(half, Gaussian(1)) == ZeroConcentrated(Fraction(3, 4))
    mixed = tensor(half, Pure(1))
    assert isinstance(mixed, ZeroConcentrated)
    assert 0.25 + math.tanh(0.5) <= mixed.rho <= Fraction(3, 4)
    for f in FAMILIES:
        assert tensor(f, Pure(0)) == f
        assert tensor(f, Nothing()) == Nothing()


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (Gaussian(0.5), Pure(1)),
        (Gaussian(0.5), Approximate(1, 1e-6)),
        (ZeroConcentrated(0.1), Approximate(1, 1e-6)),
    ],
)
def test_unlike_tensor_is_a_lower_bound(f: Tradeoff, g: Tradeoff) -> None:
    both, back = tensor(f, g), tensor(g, f)
    assert both(ALPHA) == pytest.approx(back(ALPHA), abs=1e-9)
    assert np.all(both(ALPHA) <= np.minimum(f(ALPHA), g(ALPHA)) + 1e-9)
    assert both.epsilon(1e-5) <= f.epsilon(4e-6) + g.epsilon(4e-6)  # better than adding


@pytest.mark.parametrize("f", [f for f in FAMILIES if not isinstance(f, ZeroConcentrated)])
def test_groups(f: Tradeoff) -> None:
    assert f.group(1) == f or f.group(1)(ALPHA) == pytest.approx(f(ALPHA), abs=1e-15)
    twice, thrice = f.group(2), f.group(3)
    # A parametric family may round down to stay in itself, never up.
    assert np.all(twice(ALPHA) <= f(f(ALPHA)) + 1e-9)
    assert np.all(thrice(ALPHA) <= twice(ALPHA) + 1e-9)


@pytest.mark.parametrize(
    "f", [Approximate(0.8, 0.1), Gaussian(0.7), Pure(0.8).piecewise(), FAMILIES[7]]
)
def test_groups_are_functional_composition(f: Tradeoff) -> None:
    assert f.group(3)(ALPHA) == pytest.approx(f(f(f(ALPHA))), abs=1e-12)


def test_groups_keep_the_pure_loss_and_rationals() -> None:
    assert Pure(Fraction(1, 3)).group(3) == Pure(1)
    assert ZeroConcentrated(Fraction(1, 8)).group(2) == ZeroConcentrated(Fraction(1, 2))
    exact = Pure(0.8).piecewise().group(4)
    assert exact.epsilon(0) == pytest.approx(3.2, rel=1e-9)
    assert Pure(0.8).group(4) <= exact
    assert exact.is_symmetric
    rational = tradeoff_between([Fraction(2, 3), Fraction(1, 3)], [Fraction(1, 3), Fraction(2, 3)])
    assert rational.group(2).points[1][1] / rational.group(2).points[1][0] == Fraction(1, 4)


# --- order -------------------------------------------------------------------------------------


def test_order_within_and_between_families() -> None:
    assert Pure(2) <= Pure(1)
    assert not Pure(1) <= Pure(2)
    assert Approximate(1, 0.1) <= Pure(1)
    assert not Pure(1) <= Approximate(1, 0.1)
    assert Approximate(1, 0.2) <= Approximate(1.01, 0.1)
    assert not Approximate(1, 0.1001) <= Approximate(3, 0.1)
    assert Gaussian(2) <= Gaussian(1)
    assert ZeroConcentrated(2) <= ZeroConcentrated(1)
    assert ZeroConcentrated(0.5) <= Gaussian(1)
    assert not ZeroConcentrated(0.49) <= Gaussian(1)
    assert not Gaussian(1) <= ZeroConcentrated(0.5)
    assert not Pure(5) <= Gaussian(0.1)  # no Gaussian keeps a pure promise
    assert Approximate(1, 0.13) <= Gaussian(1)
    assert not Approximate(1, 0.126) <= Gaussian(1)
    for f in FAMILIES:
        assert f <= f
        assert Nothing() <= f <= Pure(0)
    with pytest.raises(GuaranteeError, match="cannot be compared"):
        Gaussian(1) <= ZeroConcentrated(0.1)  # noqa: B015


@few
@given(pairs(), pairs())
def test_order_is_pointwise(
    first: tuple[list[Fraction], list[Fraction]], second: tuple[list[Fraction], list[Fraction]]
) -> None:
    f, g = tradeoff_between(*first), tradeoff_between(*second)
    fine = np.linspace(0, 1, 2001)
    if f <= g:
        assert np.all(f(fine) <= g(fine) + 1e-12)
    else:
        levels = np.array([float(a) for a, _ in g.points])
        assert np.any(f(levels) > g(levels))


@few
@given(pairs(), st.floats(0.01, 5))
def test_audit_comparison(pair: tuple[list[Fraction], list[Fraction]], eps: float) -> None:
    f = tradeoff_between(*pair)
    ratios = [
        abs(math.log(a / b)) if a and b else math.inf for a, b in zip(*pair, strict=True) if a or b
    ]
    if abs(max(ratios) - eps) > 1e-6:
        assert (Pure(eps) <= f) == (max(ratios) <= eps)


def test_a_violation_of_tiny_probability_is_seen() -> None:
    tiny = 1e-20
    leak = tradeoff_between([tiny, 0.5, 0.5], [0.0, 0.5, 0.5])
    assert not Pure(1) <= leak
    assert not Pure(1) <= tradeoff_between([0.0, 0.5, 0.5], [tiny, 0.5, 0.5])
    assert Approximate(1, 2e-20) <= leak


# --- extremes, storage, words, bad input -------------------------------------------------------


def test_huge_and_tiny_parameters_stay_conservative() -> None:
    assert float(Pure(50)(0.5)) == pytest.approx(0.5 * math.exp(-50))
    assert float(Pure(1000)(0.5)) == 0.0
    assert Pure(1000).epsilon(0) == 1000
    assert tensor(Pure(60), Pure(60)).epsilon(0) == pytest.approx(120, rel=1e-9)
    assert tensor(Pure(1000), Pure(1)).epsilon(0.1) == math.inf
    assert tensor(Pure(1e-9), Pure(1e-9)).epsilon(0) >= 2e-9
    assert Approximate(1, 1e-300).delta(1) == 1e-300
    assert ZeroConcentrated(1e5).delta(1) == 1.0
    assert np.all(ZeroConcentrated(1e5)(ALPHA) <= 1e-9)
    assert ZeroConcentrated(0)(0.5) == pytest.approx(0.5)
    third = Fraction(1, 3)
    assert Fraction(Pure(third).epsilon(0)) >= third


def test_zero_concentrated_is_below_gaussian() -> None:
    assert np.all(ZeroConcentrated(0.5)(ALPHA) <= Gaussian(1)(ALPHA))
    assert float(ZeroConcentrated(0.5)(0.5)) > 0.09


@pytest.mark.parametrize("f", FAMILIES)
def test_json_round_trip(f: Tradeoff) -> None:
    again = Tradeoff.from_dict(json.loads(json.dumps(f.to_dict())))
    assert again == f
    assert again.delta(0.3) == f.delta(0.3)


def test_words() -> None:
    assert Pure(1).words == "epsilon = 1"
    assert Approximate(1, 1e-6).words == "(epsilon, delta) = (1, 1e-06)"
    assert Gaussian(0.5).words == "mu = 0.5 (Gaussian differential privacy)"
    assert ZeroConcentrated(Fraction(1, 8)).words == "rho = 0.125 (zero-concentrated)"
    assert Pure(Fraction(667627141, 10**9)).words == "epsilon = 0.667628"  # rounded up
    assert Nothing().words == "no promise"


@pytest.mark.parametrize("family", [Pure, Gaussian, ZeroConcentrated])
@pytest.mark.parametrize("bad", [-1, math.nan, math.inf, -math.inf])
def test_bad_parameters(family: type[Tradeoff], bad: float) -> None:
    with pytest.raises(GuaranteeError, match="not a privacy parameter") as error:
        family(bad)  # type: ignore[call-arg]
    assert error.value.remedy


@pytest.mark.parametrize(
    "points",
    [
        [(0, 0)],
        [(0, 0), (0.5, 0.1)],
        [(0, 0.1), (1, 1)],
        [(0, 0), (0.5, 0.6), (1, 1)],  # above alpha
        [(0, 0), (0.5, 0.4), (1, 0.5)],  # concave
        [(0, 0), (0.4, 0.2), (0.6, 0.1), (1, 1)],  # falls
        [(0, 0), (0.6, 0.1), (0.4, 0.1), (1, 1)],  # out of order
        [(0, 1), (1, 0)],  # the other orientation
    ],
)
def test_bad_corners(points: list[tuple[float, float]]) -> None:
    with pytest.raises(GuaranteeError) as error:
        PiecewiseLinear(tuple(points))
    assert error.value.remedy


@pytest.mark.parametrize("number", [Fraction, float])
def test_what_one_side_never_shows_is_a_mass_of_its_own(number: type[Fraction | float]) -> None:
    """f(1) = 3/4: a quarter of the other side's mass gives it away for certain."""
    one, most, zero = number(1), number(Fraction(3, 4)), number(0)
    f = PiecewiseLinear(((zero, zero), (one, most)))
    assert f.masses == ((one, most), (zero, 1 - most))
    assert f.delta(30) == pytest.approx(1 / 4)


def test_other_bad_input() -> None:
    for call in (
        lambda: Approximate(1, 1.5),
        lambda: Pure(1)(1.2),
        lambda: Pure(1).epsilon(2),
        lambda: Pure(1).delta(-1),
        lambda: Pure(1).group(0),
        lambda: tradeoff_between([0.5, 0.5], [1.0]),
        lambda: tradeoff_between([0.5, 0.4], [0.5, 0.5]),
        lambda: tradeoff_between([1.5, -0.5], [0.5, 0.5]),
        lambda: Tradeoff.from_dict({"kind": "unknown"}),
        lambda: PiecewiseLinear(((0, 0), (1, 1)), ((0.1, 0.9), (0.9, 0.1))),
    ):
        with pytest.raises(GuaranteeError) as error:
            call()
        assert error.value.remedy
