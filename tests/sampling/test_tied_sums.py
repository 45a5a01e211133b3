"""The exact law of errors under crossing figures, against the definition and against draws."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest

from congenial import Guarantee, Schema, SeededRandomness, SemiAdjacent, Table, calibrate
from congenial.figures import count, margin, publish, total
from congenial.mechanisms.error_laws import SimulatedLaw
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.sums import Pmf, direction, independent_sum, tied_sum_law
from tests.sampling.conftest import ALPHA, p_value

SEED = 7
CROSSING = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])


def enumerated(along, sizes, taken, log_weight, reach: int):
    """P(sum) from all noise with entries up to `reach`, T = t d."""
    mass: dict[int, float] = {}
    u = np.array(list(product(range(-reach, reach + 1), repeat=sum(sizes) - len(sizes))))
    for t in range(-reach, reach + 1):
        columns, at = [], 0
        for d, size in zip(along, sizes, strict=True):
            free = u[:, at : at + size - 1]
            columns.append(np.column_stack([free, d * t - free.sum(axis=1)]))
            at += size - 1
        weight = np.exp(log_weight(np.hstack(columns)).sum(axis=1))
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
@pytest.mark.parametrize(
    ("cell", "log_weight"),
    [
        (DoubleGeometric(Fraction(2)), lambda u: -2.0 * np.abs(u)),
        (DiscreteGaussian(Fraction(3, 2)), lambda u: -(u**2) / 3),
    ],
    ids=["geometric", "gaussian"],
)
def test_the_law_is_that_of_the_definition(along, sizes, taken, cell, log_weight):
    law = tied_sum_law(along, sizes, taken, cell)
    assert law.error >= 8 * 2.0**-52 * law.hi  # one rounding for each value, at least
    for e, p in enumerated(along, sizes, taken, log_weight, 9).items():
        if abs(e) <= 6:
            assert law.probs[e - law.lo] == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("sigma2", [1, 25, 400])
def test_laws_of_gaussian_ties_have_the_variance_of_the_normal_law(sigma2):
    """Far above the grid a discrete Gaussian is a normal one, projected on the kernel."""
    along, sizes, taken = (1, -1, -1, 1), (4, 19, 9, 14), (2, 3, 7, 2)
    law = tied_sum_law(along, sizes, taken, DiscreteGaussian(Fraction(sigma2)))
    d, k, m = map(np.array, (along, sizes, taken))
    free = 1 / (d**2 / k).sum()  # variance of the free sum t
    normal = (m * (k - m) / k).sum() + (m * d / k).sum() ** 2 * free
    assert law.error < 1e-9
    assert law.variance == pytest.approx(sigma2 * normal, rel=1e-6)


def test_no_draw_is_used_twice_in_a_sum_over_many_ties():
    """Planted once: the same draws in another order, whose sums have a common shift."""
    schema = Schema.from_dict(
        {"county": {"integers": [1, 90]}, "a": {"levels": list("12")}, "b": {"levels": list("345")}}
    )
    table = Table(schema, schema.names, np.full((90, 2, 3), 5))
    under = SemiAdjacent(publish(table, margin("county", "a"), margin("county", "b")))
    mechanism = calibrate("auto", Guarantee.pure(4, under), schema.names)
    mask = np.zeros(mechanism.shape, dtype=bool)
    mask[:, 0, 0] = True
    law = mechanism.error_law(mask)
    assert isinstance(law, SimulatedLaw)
    one = mask & (np.arange(90) == 0)[:, None, None]
    wanted = 90 * mechanism.error_law(one).variance
    five_errors = 5 * np.sqrt(2 / len(law.draws))
    assert law.variance == pytest.approx(wanted, rel=five_errors)
    (pool,) = mechanism._tied_errors._pools
    assert len(pool.drawn) >= 90 * len(law.draws)
    assert abs(law.draws.mean()) < 5 * (wanted / len(law.draws)) ** 0.5


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


@pytest.mark.parametrize(
    ("target", "smaller"),
    [
        (partial(Guarantee.pure, 4), partial(Guarantee.pure, Fraction(16, 5))),
        (
            partial(Guarantee.zero_concentrated, 2),
            partial(Guarantee.zero_concentrated, Fraction(32, 25)),
        ),
    ],
    ids=["epsilon", "rho"],
)
def test_errors_under_crossing_figures_are_those_of_draws(target, smaller):
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
    mechanism = calibrate("auto", target(under), schema.names)
    noisier = calibrate("auto", smaller(under), schema.names)
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
