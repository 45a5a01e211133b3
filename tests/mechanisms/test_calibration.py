"""A mechanism calibrated to a target promises that target: not less, and hardly more."""

from __future__ import annotations

import pytest

from congenial.audit.summary import QUICK, TARGETS, Case, table_cases
from congenial.audit.universes import UNIVERSES
from congenial.privacy import tradeoff
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated

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
