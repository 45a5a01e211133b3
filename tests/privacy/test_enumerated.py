"""The exact loss of small universes: against high precision, and where it may not be used."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from congenial import Figures, Schema, Table, at_most, count, linear, margin, publish, total
from congenial.figures.limits import conforming_tables
from congenial.privacy.normaliser import MOST_TABLES, Conditions, enumerate_pairs, largest_eps_cell

FOUR = Schema.from_dict({"x": {"levels": list("abcd")}})
SQUARE = Schema.from_dict({"a": {"levels": list("12")}, "b": {"levels": list("345")}})
CASES = {
    "total": (FOUR, [2, 1, 1, 1], (total(),)),
    "weighted": (FOUR, [2, 1, 1, 1], (total(), linear({"x = 'b'": 1, "x = 'c'": 2, "x = 'd'": 4}))),
    "margins": (SQUARE, [[2, 1, 1], [1, 2, 1]], (margin("a"), margin("b"))),
    "a bound": (FOUR, [2, 1, 1, 1], (total(), at_most(count("x in ('a', 'b')"), 3))),
}


def published(name: str) -> tuple[Figures, tuple[str, ...]]:
    schema, counts, statements = CASES[name]
    return publish(Table(schema, schema.names, np.array(counts)), *statements), schema.names


def precisely(tables, eps: Fraction, distance: int):
    """Largest log ratio and largest log Z(s')/Z(s), in balls of 200 bits."""
    apart = np.abs(tables[:, None] - tables[None]).sum(axis=-1)
    with ctx.workprec(200):
        a = (-arb(eps.numerator) / eps.denominator).exp()
        log_Z = [sum((a ** int(d) for d in row), arb(0)).log() for row in apart]
        pairs = np.argwhere((apart > 0) & (apart <= distance))
        rates = [
            (arb(eps.numerator) / eps.denominator * int(apart[i, j]), log_Z[j] - log_Z[i])
            for i, j in pairs
        ]
        worst = max(float((x + y).mid()) for x, y in rates)
        return worst, max(float(y.mid()) for _, y in rates)


@pytest.mark.parametrize("eps", [Fraction(1, 1000), Fraction(1, 3), Fraction(5)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_high_precision_rounded_up(name, eps):
    figures, names = published(name)
    found = enumerate_pairs(figures, names, True)
    listed = conforming_tables(figures, names)
    for distance in (2, 4, 6):
        if not np.any(found.pairs[:, 2] <= distance):
            continue
        worst, ratio = precisely(listed, eps, distance)
        assert worst < float(found.worst(eps, distance)) < worst + 1e-9
        assert ratio < float(found.normaliser(eps, distance)) < ratio + 1e-9


@pytest.mark.parametrize("name", CASES)
def test_the_exact_loss_is_never_above_the_proved_one_and_buys_less_noise(name):
    figures, names = published(name)
    given = Conditions.of(figures, names, 4)
    proved = Conditions(given.support, given.limits, 4)
    for eps in (Fraction(1, 10), Fraction(1), Fraction(3)):
        assert given.loss(eps) <= proved.loss(eps)
        assert given.normaliser(eps) <= proved.normaliser(eps)
    scale = largest_eps_cell(Fraction(1), given)
    assert largest_eps_cell(Fraction(1), proved) < scale <= Fraction(1, 4)
    assert 1 - Fraction(1, 10**9) < given.loss(scale) < 1


def test_too_many_tables_or_unknown_figures_leave_the_proved_bound():
    many = Table(FOUR, FOUR.names, np.array([20, 5, 5, 5]))
    listed = conforming_tables(publish(many, total()), FOUR.names)
    assert listed is not None
    assert len(listed) > MOST_TABLES
    assert Conditions.of(publish(many, total()), FOUR.names, 2).enumerated is None
    assert Conditions.of(Figures(FOUR, (total(),)), FOUR.names, 2).enumerated is None


def test_a_coarser_table_is_bounded_and_not_called_exact():
    """Tables over b alone: look-alikes are fewer than the pairs compared."""
    counts = Table(SQUARE, SQUARE.names, np.array([[2, 1, 1], [1, 2, 1]]))
    figures = publish(counts, margin("a"), count("a = '1' and b = '3'"))
    assert enumerate_pairs(figures, ("b",), True).exact is False
    assert enumerate_pairs(figures, SQUARE.names, True).exact is True
    price = Conditions.of(figures, ("b",), 4).price(Fraction(1, 2))
    assert price.basis.startswith("a bound by enumeration")
