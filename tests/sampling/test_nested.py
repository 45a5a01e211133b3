"""Bounds on sums: a tree of sums cut at bounds, and drawing again; against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from congenial.figures.limits import FAR, Limits
from congenial.figures.support import LOOSE, Support
from congenial.sampling import SeededRandomness
from congenial.sampling.conditioned import ConditionedCounts, KeptBounds, parts_of
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.tree_of_sums import nested_sums

SEED = 61_207
CENTRE = np.array([2, 0, 3, 1, 0, 2])
LAW = DoubleGeometric(Fraction(1, 4))


def allowed(m) -> bool:
    return (
        sum(m) == 8
        and 1 <= m[0] + m[1] <= 3
        and m[3] + m[4] <= 1
        and 4 <= m[0] + m[1] + m[2] <= 6
        and m[2] <= 4
    )


TABLES = np.array([m for m in product(range(9), repeat=6) if allowed(m)])
WEIGHTS = np.exp(-0.25 * np.abs(TABLES - CENTRE).sum(axis=1))


def counted(draws):
    """How often each table was drawn, and its probability."""
    number = {tuple(m): i for i, m in enumerate(TABLES.tolist())}
    times = np.bincount([number[tuple(m)] for m in draws.tolist()], minlength=len(TABLES))
    return times, WEIGHTS / WEIGHTS.sum()


def one_group(rows, least, most) -> tuple[Limits, Support]:
    high = np.array([FAR, FAR, 4, FAR, FAR, FAR])
    matrix = sp.csr_matrix(np.array(rows, dtype=np.int64).reshape(-1, 6))
    limits = Limits(np.zeros(6, np.int64), high, matrix, np.array(least), np.array(most))
    return limits, Support(("a",), np.zeros(6, dtype=np.int64), np.array([8]))


ROWS = ([[1, 1, 0, 0, 0, 0], [0, 0, 0, -2, -2, 0], [1, 1, 1, 0, 0, 0]], [1, -3, 4], [3, FAR, 6])


def test_nested_rows_are_found_whatever_their_weight_and_others_are_left():
    sums, rows = nested_sums(*one_group(*ROWS))
    assert [(s.cells.tolist(), s.least, s.most) for s in sums] == [
        ([0, 1], 1, 3),
        ([3, 4], -FAR, 1),
        ([0, 1, 2], 4, 6),
    ]
    assert rows.tolist() == [0, 1, 2]
    crossing = [[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [1, 2, 0, 0, 0, 0]]
    assert nested_sums(*one_group(crossing, [0, 0, 0], [3, 3, 5]))[1].tolist() == [0]


@pytest.mark.parametrize("nested", [True, False])
def test_drawing_again_gives_the_same_law(fits, nested):
    limits, support = one_group(*ROWS)
    counts = ConditionedCounts(LAW, support, CENTRE, limits)
    if not nested:  # everything by rejection
        counts._nested = ([], np.zeros(0, dtype=np.int64))
    share = counts.acceptance(SeededRandomness(SEED), 2000)
    assert (share == 1) if nested else (0.1 < share < 0.7)
    draws = counts.draw_many(SeededRandomness(SEED), 20_000)
    assert np.all(limits.hold(draws))
    assert fits(*counted(draws))


def test_parts_are_kept_one_by_one():
    """Two groups and a free cell; a bound joins the second group with it."""
    labels = np.array([0, 0, 1, 1, LOOSE])
    support = Support(("a",), labels, np.array([3, 3]))
    assert parts_of(support).tolist() == [0, 0, 1, 1, 2]
    matrix = sp.csr_matrix(np.array([[1, 0, 0, 0, 0], [0, 0, 1, 0, 1]]))
    most, least = np.array([1, 2]), np.array([-FAR, -FAR])
    limits = Limits(np.zeros(5, np.int64), np.full(5, FAR), matrix, least, most)

    def propose(randomness, n):
        words = randomness.words(5 * n).reshape(n, 5) % 4
        return words.astype(np.int64)

    kept = KeptBounds(propose, parts_of(support), limits)
    assert kept.components == 2
    draws = kept.draw_many(SeededRandomness(SEED), 4000)
    assert draws[:, 0].max() == 1
    assert (draws[:, 2] + draws[:, 4]).max() == 2
    # what no bound touches keeps its law, and the components stay independent
    five_errors = 5 * np.sqrt(4000 / 4 * 3 / 4)
    assert np.bincount(draws[:, 1]) == pytest.approx(1000, abs=five_errors)
    joint = np.histogram2d(draws[:, 0], draws[:, 4], bins=(2, 3))[0]
    assert joint[0] == pytest.approx(joint[1], abs=5 * np.sqrt(2 * 4000 / 6))


def test_many_sums_with_little_room():
    """Twelve sums of 30 cells that may not grow. The tree draws where cells are well filled; where
    sums of all sizes press against their bounds it steps back, and nearly nothing is kept.
    """
    groups, cells = 12, 30
    rows = sp.csr_matrix(np.kron(np.identity(groups, dtype=np.int64), np.ones((1, cells))))
    rng = np.random.default_rng(1)
    uneven = rng.poisson(np.exp(rng.normal(1, 2, groups * cells)))
    for centre, share in ((np.full(groups * cells, 10), 1.0), (uneven, 0.0)):
        most, least = centre.reshape(groups, -1).sum(axis=1), np.full(groups, -FAR)
        zero = np.zeros(centre.size, dtype=np.int64)
        support = Support(("a",), zero, np.array([centre.sum()]))
        limits = Limits(zero, np.full(centre.size, FAR), rows.astype(np.int64), least, most)
        counts = ConditionedCounts(LAW, support, centre, limits)
        assert np.any(counts._groups.sums.bounded) == (share == 1)
        assert counts.acceptance(SeededRandomness(SEED), 50) == share
