"""Noise with and without figures is one class: the same numbers where there are no figures."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial.audit.universes import UNIVERSES
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.congenial import Congenial, CongenialGaussian, IntegerNoise
from congenial.mechanisms.families import DISCRETE_GAUSSIAN, DOUBLE_GEOMETRIC, NoiseFamily
from congenial.mechanisms.mechanism import REGISTRY
from congenial.mechanisms.plain import PlainDiscreteGaussian, PlainGeometric
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SeededRandomness

PEOPLE = next(one for one in UNIVERSES if one.label == "no mandates")
PURE, RHO = (
    Guarantee.pure(1, PEOPLE.adjacency),
    Guarantee.zero_concentrated(Fraction(1, 2), PEOPLE.adjacency),
)
PAIRS = pytest.mark.parametrize(
    ("plain", "congenial", "target"),
    [(PlainGeometric, Congenial, PURE), (PlainDiscreteGaussian, CongenialGaussian, RHO)],
)


def draws(mechanism, seed: int):
    source = SeededRandomness(seed)
    return mechanism.noise(source, 500), source.word()


@PAIRS
def test_without_figures_two_names_stand_for_one_law(plain, congenial, target):
    """Parameter, density, guarantee, error laws and draws; serialised names stay two."""
    one, two = (cls.calibrate(target, PEOPLE.release) for cls in (plain, congenial))
    assert one.description == replace(two.description, mechanism=one.name)
    assert replace(one.guarantee, citation="") == replace(two.guarantee, citation="")
    (first, after), (second, after_too) = draws(one, 7), draws(two, 7)
    assert np.array_equal(first, second)
    assert after == after_too
    y = PEOPLE.table.counts + first
    assert np.array_equal(one.log_density(y, PEOPLE.table), two.log_density(y, PEOPLE.table))
    index = np.arange(first[0].size).reshape(first[0].shape) % 2
    for law, other in zip(one.error_laws(index, 2), two.error_laws(index, 2), strict=True):
        assert (law.variance, law.interval(0.9)) == (other.variance, other.interval(0.9))
    assert one.sampler == two.sampler
    assert {type(rebuild(m.description, m.adjacency)) for m in (one, two)} == {plain, congenial}


@PAIRS
def test_another_parameter_is_noticed(plain, congenial, target):
    """The control: a quarter more of the parameter changes draws and densities."""
    one = plain.calibrate(target, PEOPLE.release)
    other = replace(one, description=replace(one.description, scale=one.description.scale * 5 / 4))
    (first, _), (second, _) = draws(one, 7), draws(other, 7)
    assert not np.array_equal(first, second)
    assert issubclass(congenial, IntegerNoise)


def test_every_mechanism_has_a_row():
    for mechanism in REGISTRY.values():
        row = mechanism.noise_family
        assert isinstance(row, NoiseFamily)
        assert (mechanism.family, mechanism.targets) == (row.name, row.targets)
    rows = [m.noise_family for m in REGISTRY.values() if issubclass(m, IntegerNoise)]
    assert set(rows) == {DOUBLE_GEOMETRIC, DISCRETE_GAUSSIAN}
