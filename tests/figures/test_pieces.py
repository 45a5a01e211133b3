"""Graver bases, set covers, whole-number algebra and lists of tables, each against brute force."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.figures.figures import Figures
from congenial.figures.integers import hermite, kernel, missing
from congenial.figures.people import merged
from congenial.figures.statements import at_most, count, linear, margin, total
from congenial.pairs.a_star import graver, hardest_cover
from congenial.pairs.universe import Universe
from tests.figures.one_by_one import Lattice
from tests.pairs.brute import table_of
from tests.pairs.universes import TWO
from tests.worlds import levels


def margins(shape, sets):
    """Rows of the margins of a table."""
    rows = []
    for axes in sets:
        for index in np.ndindex(*[shape[k] for k in axes]):
            row = np.zeros(shape, dtype=np.int64)
            row[
                tuple(index[axes.index(k)] if k in axes else slice(None) for k in range(len(shape)))
            ] = 1
            rows.append(row.reshape(-1))
    return np.array(rows)


# ---- Graver ------------------------------------------------------------------------------------


def brute_graver(matrix, most):
    """Whole kernel vectors with entries up to `most` that are no sum of two that agree in sign."""
    box = np.array(list(product(range(-most, most + 1), repeat=matrix.shape[1])))
    box = box[~np.any(box @ matrix.T, axis=1) & np.any(box, axis=1)]
    kept = []
    for u in box:
        smaller = np.all((box * u >= 0) & (np.abs(box) <= np.abs(u)), axis=1)
        if smaller.sum() == 1:  # only itself
            kept.append(u)
    return {max(tuple(u), tuple(-u)) for u in kept}


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[4, 3, 1], [1, 1, 1]]),
        np.array([[1, 2, 1]]),
        np.array([[1, 1, 1, 1], [0, 1, 2, 3]]),
        np.array([[1, 1, 0, 0, -1], [1, 1, 1, 1, 0]]),  # with a slack
        margins((2, 3), [(0,), (1,)]),
    ],
)
def test_graver_basis_equals_brute_force(matrix):
    found = {max(tuple(g), tuple(-g)) for g in graver(matrix).tolist() for g in [np.array(g)]}
    assert found == brute_graver(matrix, 3)


def test_known_graver_bases():
    """Sizes known from the literature: 3 x 3: 15; 4 x 4: 204; no three-way interaction 2 x 2 x 2: 1
    and 2 x 3 x 3: 15.
    """
    pairs = [(0, 1), (0, 2), (1, 2)]
    for matrix, size, norm in (
        (margins((3, 3), [(0,), (1,)]), 15, 6),
        (margins((4, 4), [(0,), (1,)]), 204, 8),
        (margins((2, 2, 2), pairs), 1, 8),
        (margins((2, 3, 3), pairs), 15, 12),
    ):
        basis = graver(matrix)
        assert (len(basis), np.abs(basis).sum(axis=1).max()) == (size, norm)
        assert not np.any(basis @ matrix.T)
    assert graver(margins((4, 4), [(0,), (1,)]), 100) is None


# ---- set cover ---------------------------------------------------------------------------------


def brute_cover(held, others):
    """The worst minimum cover over all ways to choose who holds each level."""
    worst = 0
    choices = [list(combinations(range(others), h)) for h in held]
    for arrangement in product(*choices):
        needed = next(
            size
            for size in range(1, len(held) + 1)
            if any(
                all(set(some) & set(who) for who in arrangement)
                for some in combinations(range(others), size)
            )
        )
        worst = max(worst, needed)
    return worst


@pytest.mark.parametrize("others", [1, 2, 3, 4, 5])
def test_hardest_cover_equals_brute_force(others):
    for features in (1, 2, 3):
        for held in product(range(1, min(others, 3) + 1), repeat=features):
            if list(held) == sorted(held):
                found = hardest_cover(held, others)
                assert found.exact
                assert found.people == brute_cover(held, others)


def test_hardest_cover_of_many_features():
    assert hardest_cover([3] * 6, 18) == (6, True)  # side by side
    assert hardest_cover([10] * 6, 20) == (3, True)  # ten triples, no two of which show all six
    bounded = hardest_cover([10] * 9, 20)
    assert bounded.people >= 3
    assert hardest_cover([], 5).people == 1
    assert hardest_cover([1, 10**8], 10**9).people == 2


# ---- whole numbers -----------------------------------------------------------------------------

MATRICES = st.integers(1, 3).flatmap(
    lambda r: st.integers(r, 5).flatmap(
        lambda c: st.lists(
            st.lists(st.integers(-3, 3), min_size=c, max_size=c), min_size=r, max_size=r
        )
    )
)


@settings(max_examples=60, deadline=None)
@given(MATRICES)
def test_kernel_is_the_whole_lattice(rows):
    matrix = np.array(rows)
    found = kernel(matrix)
    assert not np.any(matrix @ found.basis.T)
    assert np.array_equal(found.coordinates @ found.basis.T, np.eye(len(found.basis)))
    box = np.array(list(product(range(-2, 3), repeat=matrix.shape[1])))
    inside = box[~np.any(box @ matrix.T, axis=1)]
    assert np.array_equal((inside @ found.coordinates.T) @ found.basis, inside)


@settings(max_examples=60, deadline=None)
@given(MATRICES)
def test_lattice_membership_and_missing_forms_agree(rows):
    size = len(rows[0])
    grown = Lattice(size).add(rows)
    forms = missing(np.array(rows), np.eye(size, dtype=np.int64))
    for vector in product(range(-2, 3), repeat=min(size, 3)):
        u = np.array([*vector, *[1] * (size - len(vector))])
        values = [(int(f.weights @ u), f.modulus) for f in forms]
        outside = any(v % m if m else v for v, m in values)
        assert (u.tolist() in grown) == (not outside)
    form = hermite(np.array(rows))
    assert np.array_equal(hermite(np.array(rows[::-1])), form)
    assert all(row in grown for row in form.tolist())
    assert all(row in Lattice(size).add(form.tolist()) for row in rows)


# ---- lists of tables ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statements",
    [
        (margin("x"), margin("y")),
        (total(), linear({"x = '0'": 2, "y = '0'": -1})),
        (margin("x"), at_most(count("y = '0'"), 2)),
    ],
)
def test_listed_tables_are_the_conforming_ones(statements):
    schema = levels(x=2, y=3)
    public = Figures(schema, statements).evaluate(table_of(schema, (0, 1, 4, 5)))
    of = merged(public)
    inside = np.zeros((6, of.atoms), dtype=np.int64)
    kept = of.of_cell >= 0
    inside[np.flatnonzero(kept), of.of_cell[kept]] = 1
    universe = {tuple(t.counts.reshape(-1) @ inside) for t in Universe(public).tables(4)}
    assert {tuple(row) for row in of.tables.tolist()} == universe
    assert of.people == 4


def test_figures_that_leave_people_uncounted_list_nothing():
    public = Figures(TWO, (count("x = '0'"),)).evaluate(table_of(TWO, (0, 3)))
    assert merged(public).tables is None
    assert merged(public).people is None
    assert merged(Figures(TWO, (total(),))).tables is None  # not published yet


def test_order_of_people_does_not_matter():
    """A conforming set is closed under exchanging people, which `Conforming` relies on."""
    databases = {(0, 1, 3), (0, 2, 2)}
    closed = {p for d in databases for p in permutations(d)}
    assert len(closed) == 9
