"""A mechanism calibrated to a target promises that target: not less, and hardly more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from congenial import Guarantee, ReplaceOne, Schema, SemiAdjacent, Table, calibrate, margin, publish
from congenial.audit.universes import UNIVERSES
from congenial.mechanisms.calibrate import PREFERRED, REGISTRY
from congenial.mechanisms.congenial import IntegerNoise
from congenial.mechanisms.families import DISCRETE_GAUSSIAN, DOUBLE_GEOMETRIC, NoiseFamily
from congenial.privacy import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated, tradeoff
from tests.audit.every_mechanism import QUICK, TARGETS, Case, table_cases

LOST = 2e-3  # what rounding towards more noise may give away

CASES = [
    case
    for case in table_cases([one for one in UNIVERSES if one.label in QUICK])
    if case.mechanism is not None
]


def amounts(promised: Tradeoff, target: Tradeoff) -> tuple[float, float]:
    """What is promised and what was asked for, as one number each."""
    if isinstance(target, Approximate):
        return promised.epsilon(float(target.dlt)), float(target.eps)
    if isinstance(target, Gaussian):
        assert isinstance(promised, Gaussian)
        return float(promised.mu), float(target.mu)
    if isinstance(target, ZeroConcentrated):
        assert isinstance(promised, ZeroConcentrated)
        return float(promised.rho), float(target.rho)
    assert isinstance(target, Pure)
    assert isinstance(promised, Pure)
    return float(promised.eps), float(target.eps)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_promised_is_what_was_asked_for(case: Case) -> None:
    assert case.mechanism is not None
    target = TARGETS[getattr(tradeoff, case.target)](case.universe.adjacency).tradeoff
    promised, asked = amounts(case.mechanism.guarantee.tradeoff, target)
    assert promised <= asked * (1 + 1e-12)
    assert promised >= asked * (1 - LOST)


SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"levels": ["a", "b", "c"]}})
PUBLIC = publish(Table(SCHEMA, SCHEMA.names, np.array([[3, 1, 2], [0, 4, 2]])), margin("sex"))
PROMISES = (
    (Pure(1), "plain_geometric", "congenial"),
    (ZeroConcentrated(1), "plain_discrete_gaussian", "congenial_gaussian"),
    (Approximate(1, 1e-6), "plain_discrete_gaussian", "congenial_gaussian"),
    (Gaussian(1), "plain_gaussian", "kernel_gaussian"),
)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(("promise", "plain", "given"), PROMISES, ids=lambda one: str(one))
def test_auto_does_not_hang_on_the_order_of_registration(
    promise: Tradeoff, plain: str, given: str, backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = list(REGISTRY.items())[:: -1 if backwards else 1]
    monkeypatch.setattr("congenial.mechanisms.calibrate.REGISTRY", dict(order))
    for pairs, name in ((ReplaceOne(SCHEMA), plain), (SemiAdjacent(PUBLIC), given)):
        assert calibrate("auto", Guarantee(pairs, promise)).name == name


def test_auto_prefers_what_is_proved_and_has_one_law_of_error() -> None:
    chosen = [REGISTRY[name] for name in PREFERRED]
    assert all(one.basis == "theorem" and one.additive for one in chosen)


# ---- noise with and without figures is one class: the same numbers where there are no figures ----

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
