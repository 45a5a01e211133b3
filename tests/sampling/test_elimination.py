"""Crossing groups: the law by enumeration, chi-square, windows, the paper's 46 cells, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from congenial import SeededRandomness
from congenial.errors import StructureError
from congenial.sampling import DiscreteGaussian, DoubleGeometric, joining_order, tree_messages
from congenial.sampling.elimination import CrossingGroups
from tests.sampling.conditioned import counts_and_probs, log_sum, tables, weights

SEED = 70_707
MARGINS = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]
TWO_BY_THREE = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]]
# counts, atom of each cell, equations, low, how far to enumerate
CASES = {
    "2 x 2 of groups": ([2, 0, 3, 1, 1, 0], [0, 0, 1, 2, 3, 3], MARGINS, 0, 7),
    "no sign constraint": ([2, 0, 3, 1, 1], [0, 0, 1, 2, 3], MARGINS, None, 6),
    "2 x 3": ([1, 4, 2, 3, 2, 3], [0, 1, 2, 3, 4, 5], TWO_BY_THREE, 0, 6),
    "weighted, two free sums": ([3, 2, 4, 2], [0, 1, 2, 3], [[1, 1, 1, 1], [1, 2, 3, 5]], 0, 12),
    "rational steps": ([4, 6, 9, 5], [0, 1, 2, 3], [[2, 3, 0, 0], [0, 1, 1, 0]], None, 12),
    "a free atom": ([3, 1, 2], [0, 1, 2], [[1, 1, 0]], 0, 14),
    "an atom that is fixed": ([3, 1, 2, 2], [0, 0, 1, 1], [[1, 0], [1, 1]], 0, 6),
}
FEMALE = [8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7]
MALE = [3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8]


def conforming(s, labels, equations, low, reach):
    s, matrix = np.array(s), np.array(equations)[:, labels]
    m = tables(np.maximum(s - reach, 0) if low == 0 else s - reach, s + reach)
    return m[((m - s) @ matrix.T == 0).all(axis=1)]


@pytest.mark.parametrize("law", [DoubleGeometric(Fraction(1)), DiscreteGaussian(Fraction(2))])
@pytest.mark.parametrize("name", CASES)
def test_law_by_enumeration(name, law, fits):
    s, labels, equations, low, reach = CASES[name]
    crossing = CrossingGroups(labels, s, equations, law, low)
    m = conforming(s, labels, equations, low, reach)
    w = weights(law, m - np.array(s))
    left_out = 0.02 if isinstance(law, DoubleGeometric) else 1e-4
    assert log_sum(w) - 1e-10 <= crossing.log_Z + 1e-10 <= log_sum(w) + left_out
    assert crossing.log_density(m) == pytest.approx(np.log(w) - crossing.log_Z, abs=1e-10)
    assert crossing.log_density(np.array(s) + np.eye(len(s), dtype=int)[0]) == -math.inf or (
        name == "a free atom" and equations[0][0] == 0
    )
    draws = crossing.draw_many(SeededRandomness(SEED), 20_000)
    p = np.exp(crossing.log_density(m))
    often = p * len(draws) >= 8
    counts, _ = counts_and_probs(draws, m[often], p[often])
    probs = [*p[often], max(0.0, 1 - p[often].sum())]
    if len(counts) == len(probs):
        assert fits(counts, probs)


def test_negative_control(fits):
    """The same test rejects draws that ignore how often an atom can have a total."""
    s, labels, equations, low, reach = CASES["2 x 2 of groups"]
    law = DoubleGeometric(Fraction(1))
    crossing = CrossingGroups(labels, s, equations, law, low)
    m = conforming(s, labels, equations, low, reach)
    w = weights(law, m - np.array(s))
    draws = crossing.draw_many(SeededRandomness(SEED), 20_000)
    assert fits(*counts_and_probs(draws, m, w))
    shifts = (m - np.array(s))[:, 2]
    assert not fits(*counts_and_probs(draws, m, w * np.exp(0.4 * np.abs(shifts))))


@pytest.mark.parametrize("name", ["2 x 2 of groups", "no sign constraint", "2 x 3"])
def test_narrow_windows_change_nothing(monkeypatch, fits, name):
    """Windows of a few bits: the proposal for totals outside them does much of the work."""
    monkeypatch.setattr(tree_messages, "_CUT", 10 * math.log(2))
    s, labels, equations, low, reach = CASES[name]
    law = DoubleGeometric(Fraction(3, 2))
    crossing = CrossingGroups(labels, s, equations, law, low)
    m = conforming(s, labels, equations, low, min(reach, 6))
    w = weights(law, m - np.array(s))
    draws = crossing.draw_many(SeededRandomness(SEED), 1500)
    assert fits(*counts_and_probs(draws, m, w))
    assert not fits(*counts_and_probs(draws, m, np.sqrt(w)))


def test_log_factors_are_probabilities():
    """Every factor of a draw of totals is at most 1 and, inside, close to it."""
    s, labels, equations, low, _ = CASES["2 x 3"]
    crossing = CrossingGroups(labels, s, equations, DoubleGeometric(Fraction(1)), low)
    drawer = crossing._totals[0]
    sums = np.zeros((50, 6), np.int64)
    drawer.fill(sums, SeededRandomness(SEED))
    for row in sums:
        for j, flat, i in drawer._path(row):
            factor = drawer._log_factor(j, flat, i, row)
            assert float(factor.upper()) <= 0
            assert float(factor.lower()) > -1e-6
        assert (
            drawer._decide(False, np.array([*row, drawer._check]), SeededRandomness(1)) is not None
        )
        assert drawer._decide(False, np.array([*row, 2**63 - 1]), SeededRandomness(1)) is None


def test_the_papers_table():
    """2 x 23 given total, female and voting-age counts, s >= 0, eps_cell = 1/2.

    Known by independent exact computation: the probability that unconditioned noise conforms, and
    the mean of the L1 distance.
    """
    labels = [0] * 4 + [1] * 19 + [2] * 4 + [3] * 19
    law = DoubleGeometric(Fraction(1, 2))
    s = np.array(FEMALE + MALE)
    crossing = CrossingGroups(labels, s, [[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]], law)
    chance = math.exp(crossing.log_Z + 46 * math.log(math.tanh(0.25)))
    assert chance == pytest.approx(9.7271895272009833e-6, rel=1e-10)
    m = crossing.draw_many(SeededRandomness(SEED), 40_000)
    assert m.min() == 0
    assert (m.sum(axis=1) == 256).all()
    assert (m[:, :23].sum(axis=1) == 130).all()
    distance = np.abs(m - s).sum(axis=1)
    error = distance.std() / 200
    assert abs(distance.mean() - 73.53267085215026) < 5 * error
    assert abs(distance.mean() - 73.53267085215026 * 1.01) > 5 * error


def test_large_totals():
    """County size: windows follow the noise, not the counts."""
    rng = np.random.default_rng(SEED)
    s = rng.multinomial(100_000, rng.dirichlet(np.ones(46)))
    labels = [0] * 4 + [1] * 19 + [2] * 4 + [3] * 19
    crossing = CrossingGroups(labels, s, MARGINS, DoubleGeometric(Fraction(1, 4)))
    m = crossing.draw_many(SeededRandomness(SEED), 100)
    assert m.min() >= 0
    assert (m[:, :23].sum(axis=1) == s[:23].sum()).all()
    assert len({int(v) for v in m[:, :4].sum(axis=1)}) > 20


def test_many_components():
    """Counties are independent: each is a component of its own, and draws conform."""
    counties, rng = 30, np.random.default_rng(SEED)
    labels = np.arange(counties * 4).repeat(3)
    rows = []
    for c in range(counties):
        a = 4 * c
        rows += [{a: 1, a + 1: 1}, {a + 2: 1, a + 3: 1}, {a: 1, a + 2: 1}]
    s = rng.poisson(3, labels.size)
    crossing = CrossingGroups(labels, s, rows, DoubleGeometric(Fraction(1, 2)))
    assert [p.freedom for p in crossing.parts] == [1] * counties
    m = crossing.draw_many(SeededRandomness(SEED), 5)
    assert np.isfinite(crossing.log_density(m)).all()


def test_three_dimensional_states():
    """A 3 x 4 of single cells needs three sums at once; 5 x 5 is refused."""
    law = DoubleGeometric(Fraction(3))

    def both_margins(rows, columns):
        grid = np.arange(rows * columns).reshape(rows, columns)
        return [{int(a): 1 for a in line} for line in [*grid, *grid.T]]

    s = np.arange(12) % 3
    crossing = CrossingGroups(np.arange(12), s, both_margins(3, 4), law, 0, 2)
    assert max(len(c) for c in crossing.parts[0].coordinates) == 3
    m = crossing.draw_many(SeededRandomness(SEED), 20)
    assert np.isfinite(crossing.log_density(m)).all()
    with pytest.raises(StructureError, match="more than 3 sums"):
        CrossingGroups(np.arange(25), np.ones(25, int), both_margins(5, 5), law)


def test_too_many_states_are_refused(monkeypatch):
    monkeypatch.setattr(joining_order, "_MOST_STATES", 10)
    with pytest.raises(StructureError, match="states"):
        CrossingGroups([0, 1, 2, 3], [1, 2, 3, 4], MARGINS, DoubleGeometric(Fraction(1)))


def test_bad_input():
    law = DoubleGeometric(Fraction(1))
    with pytest.raises(StructureError, match="one integer"):
        CrossingGroups([0, 1], [1, 2], [[1, 1, 1]], law)
    with pytest.raises(StructureError, match="one integer"):
        CrossingGroups([0, 1], [1, 2], [[0.5, 1]], law)
    with pytest.raises(StructureError, match="does not exist"):
        CrossingGroups([0, 1], [1, 2], [{2: 1}], law)
    with pytest.raises(StructureError, match="group 0"):
        CrossingGroups([1, 1], [1, 2], [[1, 1]], law)


def test_dimensions_of_states_are_ranks_of_both_sides():
    """All atoms at once, against the rank of every set of columns by itself."""
    rng = np.random.default_rng(SEED)
    print("seed", SEED)
    for _ in range(30):
        atoms = int(rng.integers(3, 9))
        told = rng.integers(-1, 3, (int(rng.integers(1, 5)), atoms))
        told = told[np.any(told, axis=1)]
        for part in joining_order.components([_entries(row) for row in told], atoms):
            rows, own = tuple(map(tuple, part.rows)), range(len(part.atoms))
            joined = [a for a in own if rng.random() < 0.4]
            left = [a for a in own if a not in joined]
            found = joining_order._dimensions_with(rows, joined, left)
            assert found == [_state([*joined, a], rows, own) for a in left]


def _entries(row):
    return {a: int(value) for a, value in enumerate(row) if value}


def _state(joined, rows, atoms):
    matrix = np.array(rows, dtype=float).reshape(len(rows), len(atoms))
    rest = [a for a in atoms if a not in joined]
    sides = [np.linalg.matrix_rank(matrix[:, own]) for own in (joined, rest) if own and len(rows)]
    return int(sum(sides)) - len(rows)
