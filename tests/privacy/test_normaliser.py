"""The price of conditioning on counts >= 0, against enumeration of all conforming tables."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from scipy.special import gammaln

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.privacy.normaliser import largest_eps_cell, normaliser_price
from congenial.public.invariants import Invariants, publish
from congenial.public.statements import linear, margin, total
from congenial.public.support import support

EPS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2))


def schema(*shape: int) -> Schema:
    names = "abc"[: len(shape)]
    return Schema.from_dict(
        {n: {"levels": [f"{n}{i}" for i in range(k)]} for n, k in zip(names, shape, strict=True)}
    )


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
    "one total": (schema(4), (total(),), [[1, 1, 1, 1]], 4, 5),
    "weighted": (
        schema(4),
        (total(), linear({"a = 'a0'": 1, "a = 'a1'": 2, "a = 'a2'": 4})),
        [[1, 1, 1, 1], [1, 2, 4, 0]],
        4,
        6,
    ),
    "2 x 3 margins": (
        schema(2, 3),
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
    known = support(Invariants(made, statements), made.names)
    checked = 0
    for values in {tuple(np.asarray(matrix) @ m) for m in product(range(2), repeat=cells)}:
        tables = conforming(matrix, np.array(values), cells, most)
        for distance, worst in worst_by_distance(tables, eps).items():
            assert worst <= float(normaliser_price(eps, known, distance).value) + 1e-9
            checked += 1
    assert checked > 3


@pytest.mark.parametrize("eps", EPS, ids=str)
def test_one_move_inside_a_group_is_sharp(eps):
    """All people in one cell, many empty ones: .3318, .4899, .6231, .6839 are approached."""
    known = support(Invariants(schema(4), (total(),)), ("a",))
    price = float(normaliser_price(eps, known, 2).value)
    assert price == pytest.approx(log(2 - exp(-2 * float(eps))), abs=1e-11)
    # s = (n, 0, ..., 0) against s' = (n - 1, 1, 0, ..., 0) with k more empty cells, by generating
    # functions: those k cells hold j people with weight C(j + k - 1, k - 1) a^j.
    n, a = 1500, exp(-float(eps))
    k = int(30 / a**2)
    j = np.arange(n + 1.0)
    others = np.exp(gammaln(j + k) - gammaln(k) - gammaln(j + 1) - float(eps) * j)

    def z(first: int, second: int) -> float:
        joint = np.convolve(others, a ** np.abs(j - second))[: n + 1]
        return float(joint @ a ** np.abs(n - j - first))

    found = log(z(n - 1, 1) / z(n, 0))
    assert 0.97 * price < found <= price + 1e-9


def test_cells_in_no_sum_cost_only_where_they_gain():
    known = support(Invariants(schema(3)), ("a",))
    for eps in EPS:
        a = exp(-float(eps))
        z = [sum(a ** abs(m - s) for m in range(400)) for s in range(6)]
        worst = max(log(z[s + 1] / z[s]) for s in range(5))
        price = float(normaliser_price(eps, known, 2).value)
        assert price == pytest.approx(worst, abs=1e-9)
        assert float(normaliser_price(eps, known, 2, replaced=False).value) == pytest.approx(
            2 * price
        )


def test_the_price_is_never_above_the_factor_two_and_the_scale_meets_the_target():
    made = schema(3, 3)
    counts = Table(made, made.names, np.ones((3, 3), dtype=np.int64))
    known = support(publish(counts, margin("a"), margin("b")), made.names)
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(8)):
        scale = largest_eps_cell(epsilon, known, 6)
        price = normaliser_price(scale, known, 6)
        assert scale * 6 + price.value <= epsilon
        assert float(scale * 6 + price.value) > 0.999 * float(epsilon)
        assert price.value <= 6 * scale
