"""The exact law of errors under crossing figures, against the definition and against draws."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.errors import SimulatedLaw
from congenial.privacy.guarantee import Guarantee
from congenial.public.adjacency import SemiAdjacent
from congenial.public.invariants import publish
from congenial.public.statements import count, margin, total
from congenial.sampling import SeededRandomness
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.sums import Pmf
from congenial.sampling.tied_sums import direction, independent_sum, tied_sum_law
from tests.sampling.conftest import ALPHA, p_value

SEED = 7
CROSSING = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])


def enumerated(along, sizes, taken, eps: float, reach: int):
    """P(sum) from all noise with entries up to `reach`, T = t d."""
    mass: dict[int, float] = {}
    u = np.array(list(product(range(-reach, reach + 1), repeat=sum(sizes) - len(sizes))))
    for t in range(-reach, reach + 1):
        columns, at = [], 0
        for d, size in zip(along, sizes, strict=True):
            free = u[:, at : at + size - 1]
            columns.append(np.column_stack([free, d * t - free.sum(axis=1)]))
            at += size - 1
        weight = np.exp(-eps * np.abs(np.hstack(columns)).sum(axis=1))
        told = sum(c[:, :m].sum(axis=1) for c, m in zip(columns, taken, strict=True))
        for e in np.unique(told):
            mass[int(e)] = mass.get(int(e), 0.0) + float(weight[told == e].sum())
    whole = sum(mass.values())
    return {e: w / whole for e, w in mass.items()}


@pytest.mark.parametrize(
    ("along", "sizes", "taken"),
    [
        ((1, -1, -1, 1), (2, 1, 1, 2), (1, 0, 0, 0)),
        ((1, -1, -1, 1), (2, 1, 1, 2), (1, 1, 0, 1)),
        ((1, -1, -1, 1), (2, 1, 1, 2), (2, 0, 0, 1)),
        ((2, -1), (2, 2), (1, 1)),
    ],
)
def test_the_law_is_that_of_the_definition(along, sizes, taken):
    law = tied_sum_law(along, sizes, taken, DoubleGeometric(Fraction(2)))
    for e, p in enumerated(along, sizes, taken, 2.0, 9).items():
        if abs(e) <= 6:
            assert law.probs[e - law.lo] == pytest.approx(p, abs=1e-6)


def test_the_free_sum_of_equations():
    assert direction(CROSSING).tolist() == [1, -1, -1, 1]
    assert direction(np.array([[1, 1, 1], [1, 2, 4]])).tolist() == [2, -3, 1]
    assert direction(np.array([[1, 1, 1, 1]])) is None


def test_sums_of_independent_parts():
    coin = Pmf(0, np.array([0.5, 0.5]))
    three = independent_sum([coin, coin, Pmf(2, np.ones(1))])
    assert three.lo == 2
    assert three.probs == pytest.approx([0.25, 0.5, 0.25])
    assert independent_sum([]).variance == 0


def test_errors_under_crossing_figures_are_those_of_draws():
    """Total, female and voting age in two counties: cells, an age over both sexes, whole groups."""
    schema = Schema.from_dict(
        {
            "county": {"levels": ["A", "B"]},
            "sex": {"levels": ["f", "m"]},
            "age": {"edges": [0, 5, 18, 30, 65], "top": "65+"},
        }
    )
    table = Table(schema, schema.names, np.full((2, 2, 5), 6))
    told = (total(by="county"), count("sex = 'f'", by="county"), count("age >= 18", by="county"))
    under = SemiAdjacent(publish(table, *told))
    mechanism = calibrate("auto", Guarantee.pure(4, under), schema.names)
    noisier = calibrate("auto", Guarantee.pure(Fraction(16, 5), under), schema.names)
    noise = mechanism.noise(SeededRandomness(SEED), 10_000)
    for cells in ((0, 0, 0), (0, slice(None), 3), (slice(None), 1, slice(0, 2))):
        mask = np.zeros(mechanism.shape, dtype=bool)
        mask[cells] = True
        law = mechanism.error_law(mask)
        assert isinstance(law, Pmf)
        drawn = noise[:, mask].sum(axis=1)
        counts = np.array([np.count_nonzero(drawn == e) for e in range(law.lo, law.hi + 1)])
        assert p_value(counts, law.probs) > ALPHA
        wider = noisier.error_law(mask)  # 25 % more noise would be noticed
        assert p_value(counts, wider.probs[law.lo - wider.lo :][: len(counts)]) < ALPHA
    adults = np.zeros(mechanism.shape, dtype=bool)
    adults[0, :, 2:] = True
    assert mechanism.error_law(adults).variance == 0


def test_two_margins_are_still_simulated():
    schema = Schema.from_dict({"a": {"levels": list("123")}, "b": {"levels": list("4567")}})
    table = Table(schema, schema.names, np.full((3, 4), 5))
    target = Guarantee.pure(4, SemiAdjacent(publish(table, margin("a"), margin("b"))))
    mechanism = calibrate("auto", target, schema.names)
    mask = np.zeros((3, 4), dtype=bool)
    mask[0, 0] = True
    assert isinstance(mechanism.error_law(mask), SimulatedLaw)
