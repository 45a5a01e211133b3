"""Distances in several dimensions: against linear programmes; rounding; masses of any size."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from congenial.errors import GuaranteeError, StructureError
from congenial.pairs.stated_laws import StatedNormal, pmf, sample
from congenial.transport import several
from congenial.transport.certificates import Side, lengths
from congenial.transport.several import Edges, largest
from congenial.transport.wasserstein import distance
from tests.transport.lp import apart, least_w, matched, random_law

NORMS = ["l1", "l2", "linf", "hamming"]
DELTAS = [Fraction(0), Fraction(1, 10), Fraction(1, 4)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(6))
def test_equals_linear_programme(norm, seed):
    rng = np.random.default_rng([2, seed])
    n, m, d = int(rng.integers(3, 10)), int(rng.integers(3, 10)), int(rng.integers(2, 4))
    (x, p), (y, q) = random_law(rng, n, 40, d, 6), random_law(rng, m, 40, d, 6)
    for delta in DELTAS:
        found = distance(pmf(x, p), pmf(y, q), delta=delta, norm=norm)
        told = least_w(x, np.array(p) / 40, y, np.array(q) / 40, delta, norm)
        assert found.value == pytest.approx(told, rel=1e-14)
        assert found.value >= told
        assert found.certificate.verify()


def test_one_dimension_agrees_with_the_line():
    rng = np.random.default_rng(21)
    (x, p), (y, q) = random_law(rng, 9, 40, 1, 30), random_law(rng, 8, 40, 1, 30)
    for delta in DELTAS:
        flat = distance(pmf(x, p), pmf(y, q), delta=delta).value
        rows = [pmf(np.hstack([z, np.zeros_like(z)]), w) for z, w in ((x, p), (y, q))]
        assert distance(*rows, delta=delta).value == flat


def test_oracles(oracles):
    told = json.loads((oracles / "distribution-privacy.json").read_text())
    for case in told:
        if case["id"].startswith("winf2d"):
            i = case["inputs"]
            laws = pmf(i["X"], i["p30"]), pmf(i["Y"], i["q30"])
            for delta, value in zip((0, "3/30", "6/30"), case["output"], strict=True):
                assert distance(*laws, delta=delta).value == value


def test_neighbours_are_enough(monkeypatch):
    """With one neighbour proposed at a time the search takes longer and finds the same."""
    rng = np.random.default_rng(22)
    laws = sample(rng.normal(size=(60, 2))), sample(rng.normal(size=(45, 2)) + 0.3)
    told = [distance(*laws, delta=delta, norm="l2").value for delta in DELTAS]
    monkeypatch.setattr(several, "_NEAREST", 1)
    assert [distance(*laws, delta=delta, norm="l2").value for delta in DELTAS] == told
    assert distance(*laws).basis == "estimate"


def flow(p, q, i, j):
    """The largest matching of masses p and q along pairs (i, j)."""
    kind = object if sum(p) + sum(q) >= 2**62 else np.int64
    sides = [Side(np.zeros(len(w)), np.zeros(len(w)), np.array(w, dtype=kind)) for w in (p, q)]
    return largest(*sides, Edges(np.array(i), np.array(j), np.ones(len(i))))


@pytest.mark.parametrize("bits", [20, 31, 33, 45, 60, 90, 200])
@pytest.mark.parametrize("size", [5, 70])
def test_masses_beyond_32_bits(bits, size):
    """Flows in rounds: exact for masses of any size; one 32-bit flow would be silently wrong."""
    rng = np.random.default_rng([23, bits, size])
    for _ in range(3):
        n, m = (int(k) for k in rng.integers(size, 2 * size, 2))
        allowed = rng.random((n, m)) < 2 / size
        p, q = (
            [sum(int(b) << k for k, b in enumerate(rng.integers(0, 2, bits))) + 1 for _ in range(k)]
            for k in (n, m)
        )
        i, j = np.nonzero(allowed)
        found = flow(p, q, i, j)
        assert all(found.sent >= 0)
        assert found.amount == sum(p) - int(found.rest_left.sum())
        here, there = found.cut()
        assert not np.any(allowed[here][:, ~there])
        # equal to the cut it defines, hence the largest
        cut = sum(w for w, inside in zip(p, here, strict=True) if not inside)
        cut += sum(w for w, inside in zip(q, there, strict=True) if inside)
        assert found.amount == cut


def test_flow_equals_linear_programme():
    rng = np.random.default_rng(24)
    for _ in range(5):
        (_, p), (_, q) = random_law(rng, 6, 40, 1, 3), random_law(rng, 7, 40, 1, 3)
        allowed = rng.random((6, 7)) < 0.3
        i, j = np.nonzero(allowed)
        told = matched(np.array(p) / 40, np.array(q) / 40, allowed)
        assert flow(p, q, i, j).amount == pytest.approx(40 * told, abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_lengths_are_never_too_short(norm):
    rng = np.random.default_rng(25)
    x, y = rng.normal(size=(200, 3)), rng.normal(size=(200, 3)) * 1e-3
    told = lengths(x, y, norm)
    for a, b, length in zip(x, y, told, strict=True):
        gaps = [abs(Fraction(u) - Fraction(v)) for u, v in zip(a, b, strict=True)]
        if norm == "l2":
            assert Fraction(length) ** 2 >= sum(g**2 for g in gaps)
        else:
            true = {"l1": sum(gaps), "linf": max(gaps), "hamming": sum(g > 0 for g in gaps)}[norm]
            assert Fraction(length) >= true
    line = lengths(x[:, 0], y[:, 0], "l1")
    for a, b, length in zip(x[:, 0], y[:, 0], line, strict=True):
        true = abs(Fraction(a) - Fraction(b))
        assert Fraction(length) >= true > Fraction(np.nextafter(length, 0))
    whole = rng.integers(0, 9, (50, 2)).astype(float), rng.integers(0, 9, (50, 2)).astype(float)
    np.testing.assert_array_equal(lengths(*whole, "l1"), np.abs(whole[0] - whole[1]).sum(axis=1))
    five = lengths(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), "l2")
    assert five[0] == 5
    np.testing.assert_allclose(np.diag(apart(x, y, norm)), told, rtol=1e-14)


def test_a_sum_of_squares_that_no_double_holds_is_not_taken_for_a_square():
    """36 gaps of 2^24 and one of 1: the square of 6 * 2^24, and 1 more."""
    gaps = np.array([[2.0**24] * 36 + [1.0]])
    length = lengths(np.zeros((1, 37)), gaps, "l2")[0]
    assert Fraction(length) ** 2 > (6 * 2**24) ** 2
    assert lengths(np.zeros((1, 36)), gaps[:, :36] / 2, "l2")[0] == 6 * 2**23


def test_rounded_masses_need_delta():
    rng = np.random.default_rng(26)
    laws = [pmf(rng.normal(size=(12, 2)), rng.dirichlet(np.ones(12))) for _ in range(2)]
    with pytest.raises(GuaranteeError, match="rounded"):
        distance(*laws)
    found = distance(*laws, delta=1e-6, norm="l2")
    assert found.basis == "numerical bound"
    assert found.at_least <= found.value
    assert found.certificate.verify()
    with pytest.raises(GuaranteeError, match="larger delta"):
        distance(*laws, delta=1e-14).require()


def test_only_discrete_laws():
    with pytest.raises(StructureError, match="discrete"):
        distance(StatedNormal(0, 1), StatedNormal(0, 2), norm="hamming")


def test_too_many_databases(monkeypatch):
    monkeypatch.setattr(several, "_MOST_PAIRS", 5)
    with pytest.raises(StructureError, match="level 'query'"):
        distance(
            pmf([[0, 1], [1, 0], [1, 1]], [1] * 3), pmf([[0, 0], [1, 1]], [1] * 2), norm="hamming"
        )
