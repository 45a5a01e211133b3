"""The gauge of hull(S): closed forms, certified bounds and rationals against HiGHS."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from congenial.errors import StructureError
from congenial.sampling import SeededRandomness, two_way_kernels
from congenial.sampling.knorm_noise import Gauge, exact_gauge, hexagons, swaps
from congenial.sampling.two_way_noise import TwoWayNoise
from tests.worlds import zero_margins

SEED = 51_001
HEXAGON = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]])


def tables(shape, n, eps="1/5"):
    return TwoWayNoise(shape, Fraction(eps)).draw_many(SeededRandomness(SEED), n)


# --- S --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 3), (2, 4), (3, 3), (3, 4)])
@pytest.mark.parametrize("records", [2, 3])
def test_generators_are_all_differences_of_so_many_records(shape, records):
    """S(A_a) = { u integer : zero margins, ||u||_1 <= 2 a }, by listing small tables."""
    u = zero_margins(shape, 1)
    norm = np.abs(u).sum(axis=(1, 2))
    wanted = {t.tobytes() for t in u[(norm > 0) & (norm <= 2 * records)]}
    gauge = Gauge(shape, records)
    assert {g.tobytes() for g in gauge.generators} == wanted
    assert gauge.number == len(wanted)


def test_numbers_of_the_errata():
    sizes = {(3, 3): (19, 31), (3, 4): (37, 85)}
    for shape, (two, three) in sizes.items():
        assert (Gauge(shape, 2).number + 1, Gauge(shape, 3).number + 1) == (two, three)
    assert len(hexagons(4, 5)) == 12 * 4 * 10
    assert len(swaps(4, 5)) == 2 * 6 * 10


def test_planted_the_printed_set_under_A_3():
    """In the hull of Proposition 32 a hexagon has norm 2, so noise made for it loses 2 epsilon."""
    printed, true = Gauge((3, 3), 2), Gauge((3, 3), 3)
    assert printed.exact(HEXAGON) == 2
    assert true.exact(HEXAGON) == 1
    worst = max(printed.exact(g) for g in true.generators)
    assert worst == 2  # the loss over true differences, in units of epsilon
    assert max(true.exact(g) for g in true.generators) == 1
    wide = Gauge((4, 5), 2)
    assert max(wide.exact(g) for g in hexagons(4, 5)[::7]) == 2


# --- value ----------------------------------------------------------------------------------------


def by_linear_programme(gauge, w):
    """The gauge by HiGHS over the listed generators: slow, and independent of ours."""
    columns = gauge.generators.reshape(gauge.number, -1).T.astype(float)
    found = linprog(np.ones(gauge.number), A_eq=columns, b_eq=np.ravel(w), method="highs")
    return found.fun if found.status == 0 else np.inf


@pytest.mark.parametrize("shape", [(2, 5), (3, 3), (3, 5), (4, 3), (4, 4), (4, 5), (6, 5)])
@pytest.mark.parametrize("records", [2, 3])
def test_value_and_exact_are_the_linear_programme(shape, records):
    gauge, some = Gauge(shape, records), tables(shape, 12)
    values = gauge.value(some)
    for w, value in zip(some[:6], values, strict=False):
        assert value == pytest.approx(by_linear_programme(gauge, w), abs=1e-8)
    for w, value in zip(some, values, strict=True):
        assert float(gauge.exact(w)) == pytest.approx(value, abs=1e-8)


def test_closed_forms():
    w = tables((3, 7), 50)
    rows = np.abs(w).sum(axis=2).max(axis=1) / 2
    assert np.array_equal(Gauge((3, 7), 3).value(w), rows)
    three = tables((3, 3), 50)
    assert np.array_equal(Gauge((3, 3), 3).value(three), np.abs(three).max(axis=(1, 2)))
    one = np.maximum(0, np.maximum(w[:, 0], -w[:, 1])).sum(axis=1)
    two = np.maximum(0, np.maximum(w[:, 1], -w[:, 0])).sum(axis=1)
    assert np.array_equal(Gauge((3, 7), 2).value(w), np.maximum(one, two))
    pair = tables((2, 6), 50)
    assert np.array_equal(Gauge((2, 6), 3).value(pair), np.abs(pair).sum(axis=(1, 2)) / 4)


def test_it_is_a_norm_and_does_not_see_the_order():
    gauge, (u, v) = Gauge((4, 5), 3), tables((4, 5), 2)
    rng = np.random.default_rng(SEED)
    value = gauge.value(u)
    assert gauge.value(-u) == pytest.approx(value, abs=1e-9)
    assert gauge.value(2.5 * u) == pytest.approx(2.5 * value, abs=1e-8)
    assert gauge.value(u + v) <= value + gauge.value(v) + 1e-8
    moved = u[rng.permutation(4)][:, rng.permutation(5)]
    assert gauge.value(moved) == pytest.approx(value, abs=1e-8)
    assert Gauge((5, 4), 3).value(u.T) == pytest.approx(value, abs=1e-8)
    assert gauge.value(u) >= np.abs(u).sum() / gauge.longest - 1e-9
    assert gauge.value(np.eye(4, 5)) == np.inf
    assert gauge.value(np.zeros((4, 5))) == pytest.approx(0, abs=1e-8)


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("with_hexagons", [False, True])
def test_brackets_hold_whenever_the_method_stops(with_hexagons):
    gauge = Gauge((5, 4), 3 if with_hexagons else 2)
    basis = np.empty((12, 12))
    for w in gauge.turned(tables((5, 4), 20)):
        exact = float(gauge.exact(w.T))
        real = w.astype(float)
        for enough, too_much in ((-1.0, np.inf), (exact * 1.05, np.inf), (-1.0, exact * 0.95)):
            low, high, _ = two_way_kernels.bracket(real, with_hexagons, enough, too_much, basis)
            assert low <= exact <= high
        low, high, _ = two_way_kernels.bracket(real, with_hexagons, -1.0, np.inf, basis)
        assert high - low < 1e-7


def test_rationals_from_a_useless_start():
    gauge = Gauge((4, 5), 3)
    for w in tables((4, 5), 4):
        assert exact_gauge(w, True, np.zeros((12, 12))) == gauge.exact(w)
        assert exact_gauge(w, True, np.eye(12)) == gauge.exact(w)


def test_fractions_occur():
    """Under A_3 the gauge of whole 4 x 5 tables may be a third: exact() must not round it."""
    gauge = Gauge((4, 5), 3)
    assert any(gauge.exact(w).denominator > 1 for w in tables((4, 5), 40, "1/9"))


# --- refusals -------------------------------------------------------------------------------------


def test_outside_the_span():
    assert by_linear_programme(Gauge((3, 3), 2), np.eye(3)) == np.inf


def test_refusals():
    with pytest.raises(StructureError, match="fix every cell"):
        Gauge((1, 5), 2)
    with pytest.raises(StructureError, match="4 records"):
        Gauge((3, 3), 4)
    with pytest.raises(StructureError, match="zero margins"):
        Gauge((3, 3), 3).exact(np.eye(3))
    with pytest.raises(StructureError, match="shape"):
        Gauge((3, 3), 3).value(np.zeros((3, 4)))
    with pytest.raises(StructureError, match="too many to list"):
        _ = Gauge((14, 14), 3).generators
    with pytest.raises(StructureError, match="not computed"):
        Gauge((40, 40), 3).value(np.zeros((40, 40)))
