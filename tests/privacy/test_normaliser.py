"""The price of conditioning on counts >= 0, against enumeration of all conforming tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import gammaln

from congenial import Figures, Table, linear, margin, publish, total
from congenial.figures.limits import FAR, Limits, no_limits
from congenial.figures.support import support
from congenial.privacy.normaliser import Conditions, largest_eps_cell, normaliser_price
from tests.worlds import schema_of

EPS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2))


def given(known, distance: int, replaced: bool = True) -> Conditions:
    """Signs and nothing else, without the enumeration that small universes allow."""
    return Conditions(known, no_limits(known.labels.size), distance, replaced)


def conforming(matrix, values, cells: int, most: int):
    """All m >= 0 with matrix m = values, cells at most `most`."""
    tables = np.array(list(product(range(most + 1), repeat=cells)))
    return tables[np.all(tables @ np.asarray(matrix).T == values, axis=1)]


def log_Z(tables, eps: Fraction):
    distance = np.abs(tables[:, None, :] - tables[None, :, :]).sum(axis=2)
    return np.log(np.exp(-float(eps) * distance).sum(axis=1)), distance


def worst_by_distance(tables, eps: Fraction) -> dict[int, float]:
    """Largest log Z(s') - log Z(s) over pairs at each l1 distance."""
    logs, distance = log_Z(tables, eps)
    difference = logs[:, None] - logs[None, :]
    return {int(d): float(difference[distance == d].max()) for d in np.unique(distance) if d}


CASES = {
    "one total": (schema_of(a=4), (total(),), [[1, 1, 1, 1]], 4, 5),
    "weighted": (
        schema_of(a=4),
        (total(), linear({"a = 'a0'": 1, "a = 'a1'": 2, "a = 'a2'": 4})),
        [[1, 1, 1, 1], [1, 2, 4, 0]],
        4,
        6,
    ),
    "2 x 3 margins": (
        schema_of(a=2, b=3),
        (margin("a"), margin("b")),
        [
            [1, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 1, 1],
            [1, 0, 0, 1, 0, 0],
            [0, 1, 0, 0, 1, 0],
            [0, 0, 1, 0, 0, 1],
        ],
        6,
        3,
    ),
}


@pytest.mark.parametrize("eps", EPS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_no_pair_of_conforming_tables_costs_more(name, eps):
    made, statements, matrix, cells, most = CASES[name]
    known = support(Figures(made, statements), made.names)
    checked = 0
    for values in {tuple(np.asarray(matrix) @ m) for m in product(range(2), repeat=cells)}:
        tables = conforming(matrix, np.array(values), cells, most)
        for distance, worst in worst_by_distance(tables, eps).items():
            assert worst <= float(normaliser_price(eps, given(known, distance)).value) + 1e-9
            checked += 1
    assert checked > 3


@pytest.mark.parametrize("eps", EPS, ids=str)
def test_one_move_inside_a_group_is_sharp(eps):
    """All people in one cell, many empty ones: .3318, .4899, .6231, .6839 are approached."""
    n, a = 1500, exp(-float(eps))
    k = int(30 / a**2)
    known = support(Figures(schema_of(a=k + 2), (total(),)), ("a",))
    price = float(normaliser_price(eps, given(known, 2)).value)
    assert price == pytest.approx(log(2 - exp(-2 * float(eps))), abs=1e-11)
    # s = (n, 0, ..., 0) against s' = (n - 1, 1, 0, ..., 0) with k more empty cells, by generating
    # functions: those k cells hold j people with weight C(j + k - 1, k - 1) a^j.
    j = np.arange(n + 1.0)
    others = np.exp(gammaln(j + k) - gammaln(k) - gammaln(j + 1) - float(eps) * j)

    def z(first: int, second: int) -> float:
        joint = np.convolve(others, a ** np.abs(j - second))[: n + 1]
        return float(joint @ a ** np.abs(n - j - first))

    found = log(z(n - 1, 1) / z(n, 0))
    assert 0.97 * price < found <= price + 1e-9


def test_cells_in_no_sum_cost_only_where_they_gain():
    known = support(Figures(schema_of(a=3)), ("a",))
    for eps in EPS:
        a = exp(-float(eps))
        z = [sum(a ** abs(m - s) for m in range(400)) for s in range(6)]
        worst = max(log(z[s + 1] / z[s]) for s in range(5))
        price = float(normaliser_price(eps, given(known, 2)).value)
        assert price == pytest.approx(worst, abs=1e-9)
        assert float(normaliser_price(eps, given(known, 2, replaced=False)).value) == pytest.approx(
            2 * price
        )


def test_the_price_is_never_above_the_factor_two_and_the_scale_meets_the_target():
    made = schema_of(a=3, b=3)
    counts = Table(made, made.names, np.ones((3, 3), dtype=np.int64))
    known = support(publish(counts, margin("a"), margin("b")), made.names)
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(8)):
        scale = largest_eps_cell(epsilon, given(known, 6))
        price = normaliser_price(scale, given(known, 6))
        assert scale * 6 + price.value <= epsilon
        assert float(scale * 6 + price.value) > 0.999 * float(epsilon)
        assert price.value <= 6 * scale


# ---- bounds of single cells, and of sums --------------------------------------------------------


def boxed(cells: int, low, high) -> Limits:
    return replace(no_limits(cells), low=np.array(low), high=np.array(high))


BOXES = [([0, 0, 0, 0], [2, 3, 1, 5]), ([1, 0, 0, 1], [4, 1, 2, 3]), ([0, 0, 0, 0], [1, 1, 1, 1])]


@pytest.mark.parametrize("eps", EPS, ids=str)
@pytest.mark.parametrize("name", ["one total", "weighted"])
def test_two_sided_boxes_cost_no_more_than_signs(name, eps):
    """The reflection m -> u - m: pi_N holds whichever end of a cell's range stops a line."""
    made, statements, matrix, cells, _ = CASES[name]
    known = support(Figures(made, statements), made.names)
    checked = 0
    for low, high in BOXES:
        ranges = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
        tables = np.array(list(product(*ranges)))
        figures = tables @ np.asarray(matrix).T
        for n in range(2, 7):
            for values in np.unique(figures[figures[:, 0] == n], axis=0):
                inside = tables[np.all(figures == values, axis=1)]
                for distance, worst in worst_by_distance(inside, eps).items():
                    price = Conditions(known, boxed(cells, low, high), distance)
                    assert worst <= float(normaliser_price(eps, price).value) + 1e-9
                    checked += 1
    assert checked > 20


def test_boxes_beside_crossing_margins_cost_no_more_than_signs():
    made, statements, matrix, cells, _ = CASES["2 x 3 margins"]
    known = support(Figures(made, statements), made.names)
    tables = conforming(matrix, np.array([4, 4, 3, 3, 2]), cells, 4)
    for high in ([2, 4, 4, 4, 4, 4], [4, 2, 4, 2, 4, 4], [2, 2, 1, 3, 2, 2]):
        inside = tables[np.all(tables <= high, axis=1)]
        assert 1 < len(inside) < len(tables)
        for eps in EPS:
            for distance, worst in worst_by_distance(inside, eps).items():
                price = Conditions(known, boxed(cells, [0] * 6, high), distance)
                assert worst <= float(normaliser_price(eps, price).value) + 1e-9


def test_cells_in_no_sum_with_upper_bounds_cost_where_they_lose_too():
    known = support(Figures(schema_of(a=3)), ("a",))
    limited = boxed(3, [0, 0, 0], [4, 4, 4])
    for eps in EPS:
        tables = np.arange(5)[:, None]
        worst = worst_by_distance(tables, eps)[1]
        price = normaliser_price(eps, Conditions(known, limited, 2)).value
        assert 2 * worst <= float(price) + 1e-9  # one person leaves a cell and enters another
        assert float(price) > float(normaliser_price(eps, given(known, 2)).value)


def test_a_bound_on_a_sum_needs_more_than_the_price_of_signs():
    """Why the factor 2 is charged: the price of signs alone is too little here."""
    eps = Fraction(1, 2)
    known = support(Figures(schema_of(a=6), (total(),)), ("a",))
    tables = np.array([m for m in product(range(8), repeat=6) if sum(m) == 7 and m[0] + m[1] >= 2])
    worst = worst_by_distance(tables, eps)[2]
    assert worst > 1.1 * float(normaliser_price(eps, given(known, 2)).value)
    row = sp.csr_matrix(np.array([[1, 1, 0, 0, 0, 0]]))
    bounded = replace(no_limits(6), rows=row, least=np.array([2]), most=np.array([FAR]))
    price = normaliser_price(eps, Conditions(known, bounded, 2))
    assert worst <= float(price.value)
    assert price.basis.startswith("the paper's factor 2")
