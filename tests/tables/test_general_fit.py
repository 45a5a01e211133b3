"""The general fitter when a solver fails, its ties and parts; moves against plain loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from congenial.errors import FigureError, StructureError
from congenial.papers.post_processing import methods
from congenial.sampling.randomness import SeededRandomness
from congenial.tables import general_fit
from congenial.tables.conforming_tables import ConformingTables
from congenial.tables.general_fit import NearestTable, nearest_in
from congenial.tables.transport_kernels import CellIndex, move_people

ODD_CYCLE = np.array([[1, 1, 0, 1], [0, 1, 1, 1], [1, 0, 1, 1]])  # vertices with halves
CROSSING = np.array([[1] * 6, [1, 1, 1, 0, 0, 0], [0, 1, 1, 0, 1, 1]])


def failed(*_):
    return "NumericalError", None


def test_a_numerical_failure_is_not_called_a_contradiction(monkeypatch) -> None:
    known = ConformingTables.of(CROSSING, [9, 4, 6])
    monkeypatch.setattr(methods, "displacement", failed)
    with pytest.raises(StructureError, match=r"failed numerically .*NumericalError") as caught:
        methods.least_squares([3, -1, 2, 0, 4, 1], known)
    assert not isinstance(caught.value, FigureError)


def test_the_nearest_table_is_found_without_the_real_optimum(monkeypatch) -> None:
    """It only says where to look: a window in the wrong place is widened."""
    known = ConformingTables.of(CROSSING, [90, 40, 60])
    y = np.array([-200, 300, 5, -40, 8, 250])
    best = nearest_in(y, known, SeededRandomness(1))
    monkeypatch.setattr(general_fit, "displacement", failed)
    other = nearest_in(y, known, SeededRandomness(2))
    assert known.holds(other)
    assert np.sum((other - y) ** 2) == np.sum((best - y) ** 2)


def test_a_search_that_ends_without_an_answer_is_not_called_a_contradiction(monkeypatch) -> None:
    known = ConformingTables.of(CROSSING, [9, 4, 6])
    monkeypatch.setattr(general_fit, "search", lambda *_: (1, None))
    with pytest.raises(StructureError, match="out of reach"):
        nearest_in([3, -1, 2, 0, 4, 1], known)


def test_a_contradiction_is_called_one() -> None:
    known = ConformingTables.of(ODD_CYCLE, [1, 1, 1], lower=[0, 0, 0, 0], upper=[9, 9, 9, 0])
    with pytest.raises(FigureError):  # real ones satisfy it: halves
        nearest_in([3, -1, 2, 0], known)


def test_parts_are_solved_by_themselves_and_what_conforms_stays() -> None:
    """Three copies of figures whose vertices have halves; the second conforms as it is."""
    y = np.array([[5, -2, 1, 0], [1, 1, 1, 2], [-3, 4, 0, 2]])
    sums = np.array([[4, 3, 4], [4, 4, 4], [3, 5, 4]])
    one = ConformingTables.of(ODD_CYCLE, sums[0]).repeated(3)
    known = ConformingTables(one.rows, sums.reshape(-1), sums.reshape(-1), one.lower, one.upper)
    found = nearest_in(y.reshape(-1), known, SeededRandomness(1)).reshape(3, 4)
    tables = np.array(list(product(range(6), repeat=4)))
    for drawn, values, m in zip(y, sums, found, strict=True):
        allowed = tables[(tables @ ODD_CYCLE.T == values).all(axis=1)]
        assert np.sum((m - drawn) ** 2) == np.sum((allowed - drawn) ** 2, axis=1).min()
    assert found[1].tolist() == y[1].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_sums_of_several_cells_are_as_near_as_any(seed) -> None:
    """T x over all whole tables of a small universe, with targets that are not whole."""
    rng = np.random.default_rng(seed)
    table = np.array([[1, 1, 0, 0], [0, 1, 1, 1]]).astype(float)
    known = ConformingTables.of(ODD_CYCLE, [7, 6, 5])
    targets = rng.normal(3, 4, 2)
    tables = np.array(list(product(range(8), repeat=4)))
    allowed = tables[(tables @ ODD_CYCLE.T == [7, 6, 5]).all(axis=1)]
    found = NearestTable(known, table, targets).nearest(allowed[0])
    assert known.holds(found)
    least = np.sum((allowed @ table.T - targets) ** 2, axis=1).min()
    assert np.sum((table @ found - targets) ** 2) == pytest.approx(least)


def test_ties_are_broken_alike_by_targets_that_differ_in_their_last_bits() -> None:
    known = ConformingTables.of(np.ones((1, 12)), [4])
    targets, start = np.full(12, 1 / 3), np.array([4] + [0] * 11)
    found = NearestTable(known, np.eye(12), targets).nearest(start)
    assert found.max() == 1
    for seed in range(3):
        off = np.random.default_rng(seed).uniform(-1e-13, 1e-13, 12)
        again = NearestTable(known, np.eye(12), targets + off).nearest(start)
        assert np.array_equal(found, again)


def plain_moves(z, pull, numbers, alike, free, moves):
    """`move_people` without an index: every move looks at everything."""
    for _ in range(moves):
        best = (0.0, -1, -1)
        for i in free:
            best = min(best, (2 * pull[i] + len(numbers), int(i), -1))
            if z[i] > 0:
                best = min(best, (-2 * pull[i] + len(numbers), -1, int(i)))
        pairs = [
            (pull[i] - pull[j], int(i), int(j))
            for i, j in product(range(len(z)), repeat=2)
            if alike[i] == alike[j] and z[j] > 0
        ]
        least, up, down = min(pairs, key=lambda pair: (pair[0], alike[pair[1]], *pair[1:]))
        if up != down:
            apart = sum(number[up] != number[down] for number in numbers)
            best = min(best, (2 * least + 2 * int(apart), up, down))
        if best[0] >= 0:
            return
        for cell, step in ((best[1], 1), (best[2], -1)):
            if cell >= 0:
                z[cell] += step
                for number in numbers:
                    pull[number == number[cell]] += step


@pytest.mark.parametrize("seed", range(4))
def test_moves_with_an_index_are_those_without(seed) -> None:
    rng = np.random.default_rng(seed)
    cells, tables = 24, 3
    numbers = np.stack([rng.integers(0, size, cells) for size in (cells, 5, 3)])
    alike = np.sort(rng.integers(0, 4, cells))
    free = np.flatnonzero((alike == 2) & (seed % 2 == 0))
    z = rng.poisson(1.0, cells)
    targets = rng.integers(0, 2**22, cells) * 2.0**-20
    pull = sum(np.bincount(number, z - targets)[number] for number in numbers)
    members = np.argsort(numbers, axis=1, kind="stable")
    sizes = [np.bincount(number, minlength=numbers.max() + 1) for number in numbers]
    starts = np.concatenate([np.zeros((tables, 1), np.int64), np.cumsum(sizes, 1)], axis=1)
    first = np.append(np.flatnonzero(np.diff(alike, prepend=-1)), cells)
    ours, theirs = z.copy(), z.copy()
    index = CellIndex(numbers, members, starts, first, free)
    move_people(ours, pull.copy(), index, 200)
    plain_moves(theirs, pull.copy(), numbers, alike, free, 200)
    assert np.array_equal(ours, theirs)
    assert not np.array_equal(ours, z)
