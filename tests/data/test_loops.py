"""Loops give the same bits plain and compiled, and are compiled once it pays."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from congenial.data import loops
from congenial.data.loops import Loop, loop
from congenial.sampling import DiscreteGaussian, DoubleGeometric, SeededRandomness
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.lattice_gaussian import CrossingGaussian
from congenial.tables.transport_fit import whole_fit
from tests.sampling.levels import noise_at_levels
from tests.tables.test_transport_fit import children

SEED = 9113


@loop
def _shares(numbers):
    total = 0.0
    for number in numbers:
        total += _share(number)
    return total


@loop
def _share(number):
    return math.exp(number) / 3.0


def test_a_loop_is_compiled_once_loops_of_its_module_took_long(monkeypatch):
    numbers = np.linspace(-3.0, 3.0, 101)
    monkeypatch.setattr(Loop, "seconds", {})
    plain = _shares(numbers)
    assert Loop.seconds[__name__] > 0
    assert not _shares._pays
    monkeypatch.setattr(Loop, "seconds", {__name__: loops.PLAIN + 1})
    assert _shares(numbers) == plain
    assert _shares._pays


def test_a_loop_over_many_numbers_is_compiled_at_once(monkeypatch):
    monkeypatch.setattr(Loop, "seconds", {})
    numbers = loop(_share.plain)
    assert numbers(0.0) == 1 / 3
    assert not numbers._pays
    many = loop(_shares.plain)
    assert many(np.zeros(loops.LARGE + 1)) == pytest.approx((loops.LARGE + 1) / 3)
    assert many._pays


def _levels():
    levels = [(np.arange(60) // 20, None), (np.arange(60) // 5, Fraction(1, 3))]
    return noise_at_levels(levels, Fraction(1, 2), 60)


def _crossing():
    labels = np.arange(48).reshape(4, 12) % 4
    equations = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    sums = np.zeros(48, dtype=np.int64)
    return CrossingGroups(
        labels.reshape(-1), sums, equations, DoubleGeometric(Fraction(1, 2)), None
    )


DRAWN = {
    "a tree of sums": lambda source: _levels().draw_many(source, 40),
    "crossing groups": lambda source: _crossing().draw_many(source, 40),
    "Klein": lambda source: CrossingGaussian.of_table((4, 6), Fraction(5, 2)).draw_many(source, 60),
    "inversion": lambda source: DiscreteGaussian(Fraction(1000)).draw(source, 5000),
    "wide noise": lambda source: DiscreteGaussian(Fraction(10**9)).draw(source, 500),
    "whole counts": lambda source: [whole_fit(children(seed)) for seed in range(8)],
}


@pytest.mark.parametrize("name", DRAWN)
def test_plain_and_compiled_loops_give_the_same_bits(name, monkeypatch):
    ran = []

    def plain(self, *arguments):
        ran.append(self)
        with np.errstate(all="ignore"):
            return self.plain(*arguments)

    monkeypatch.setattr(Loop, "__call__", plain)
    expected = DRAWN[name](SeededRandomness(SEED))
    assert ran
    monkeypatch.setattr(Loop, "__call__", lambda self, *arguments: self.compiled(*arguments))
    assert np.array_equal(DRAWN[name](SeededRandomness(SEED)), expected)
