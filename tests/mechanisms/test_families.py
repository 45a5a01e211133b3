"""Noise with and without figures is one class: the same numbers where there are no figures."""

from __future__ import annotations

from fractions import Fraction

from congenial.audit.universes import UNIVERSES
from congenial.mechanisms.congenial import IntegerNoise
from congenial.mechanisms.families import DISCRETE_GAUSSIAN, DOUBLE_GEOMETRIC, NoiseFamily
from congenial.mechanisms.mechanism import REGISTRY
from congenial.privacy.guarantee import Guarantee

PEOPLE = next(one for one in UNIVERSES if one.label == "no mandates")
PURE, RHO = (
    Guarantee.pure(1, PEOPLE.adjacency),
    Guarantee.zero_concentrated(Fraction(1, 2), PEOPLE.adjacency),
)


def test_every_mechanism_has_a_row():
    for mechanism in REGISTRY.values():
        row = mechanism.noise_family
        assert isinstance(row, NoiseFamily)
        assert (mechanism.family, mechanism.targets) == (row.name, row.targets)
    rows = [m.noise_family for m in REGISTRY.values() if issubclass(m, IntegerNoise)]
    assert set(rows) == {DOUBLE_GEOMETRIC, DISCRETE_GAUSSIAN}
