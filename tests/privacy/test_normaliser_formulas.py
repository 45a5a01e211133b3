"""Prices that enumeration only bounds, against the formulas that were proved."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
import scipy.sparse as sp

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.figures.limits import no_limits
from congenial.figures.statements import margin
from congenial.figures.support import support
from congenial.privacy.normaliser import Conditions, normaliser_price

EPS = (Fraction(1, 4), Fraction(1), Fraction(2))
SCHEMA = Schema.from_dict({"a": {"levels": list("pqr")}, "b": {"levels": list("wxyz")}})
CROSSING = support(Figures(SCHEMA, (margin("a"), margin("b"))), ("a", "b"))


def given(distance: int) -> Conditions:
    return Conditions(CROSSING, no_limits(CROSSING.labels.size), distance)


def pi(eps: float, norm: int) -> float:
    return log(1 + exp((norm - 2) * eps) - exp(-2 * eps))


def partitions(n: int, largest: int) -> list[list[int]]:
    """Every way to write n as a sum of whole numbers up to `largest`."""
    if n == 0:
        return [[]]
    return [
        [first, *rest]
        for first in range(min(n, largest), 0, -1)
        for rest in partitions(n - first, first)
    ]


@pytest.mark.parametrize("eps", EPS, ids=str)
@pytest.mark.parametrize("distance", [4, 6, 8])
def test_crossing_figures_cost_the_dearest_way_to_split_the_distance(
    eps: Fraction, distance: int
) -> None:
    """Two margins: steps have even norms; never more than the factor 2."""
    ways = partitions(distance // 2, distance // 2)
    dearest = max(sum(pi(float(eps), 2 * part) for part in way) for way in ways)
    price = normaliser_price(eps, given(distance))
    assert float(price.value) == pytest.approx(min(dearest, distance * float(eps)), abs=1e-9)


@pytest.mark.parametrize("eps", EPS, ids=str)
def test_bounds_on_sums_cost_the_factor_two(eps: Fraction) -> None:
    """log Z changes by at most eps_cell per unit of l1 distance, whatever the support."""
    cells = CROSSING.labels.size
    rows = sp.csr_matrix(np.ones((1, cells), dtype=np.int64))
    one = replace(no_limits(cells), rows=rows, least=np.array([0]), most=np.array([9]))
    for distance in (2, 4, 6):
        price = normaliser_price(eps, replace(given(distance), limits=one))
        assert price.value == distance * eps
