from __future__ import annotations

from fractions import Fraction

import pytest

from congenial.errors import GuaranteeError
from congenial.ledger.budget import Budget
from congenial.privacy.composition import Loss

# ---- budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"delta": "1e-6"},
        {"epsilon": 1, "rho": 1},
        {"rho": 1, "delta": "1e-6"},
        {"epsilon": -1},
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "much"},
        {"epsilon": True},
        {"epsilon": 1, "delta": 1},
    ],
)
def test_bad_budgets_are_refused_with_a_remedy(given) -> None:
    with pytest.raises(GuaranteeError) as caught:
        Budget(**given)
    assert caught.value.remedy


def test_budget_reads_a_float_as_its_decimal_and_round_trips() -> None:
    budget = Budget(epsilon=0.1, delta=1e-6)
    assert budget.epsilon == Fraction(1, 10)
    assert budget.delta == Fraction(1, 10**6)
    assert Budget.from_dict(budget.to_dict()) == budget
    assert Budget(rho="1/8").words == "rho = 0.125"


def test_pure_budget_is_exact_at_its_boundary() -> None:
    budget = Budget(epsilon="0.3")
    assert budget.allows(Loss(epsilon=Fraction(3, 10)))
    assert not budget.allows(Loss(epsilon=Fraction(3, 10) + Fraction(1, 10**30)))


def test_gaussian_loss_needs_a_delta_or_a_rho() -> None:
    loss = Loss(rho=Fraction(1, 8), discrete=True)
    with pytest.raises(GuaranteeError, match="needs a delta"):
        Budget(epsilon=100).spent(loss)
    assert not Budget(epsilon=100).allows(loss)
    assert Budget(rho="1/8").allows(loss)
    assert not Budget(rho="0.1249").allows(loss)
    amount = Budget(epsilon=100, delta="1e-6").spent(loss)
    assert amount >= loss.epsilon_at(1e-6)
    assert Budget(epsilon=amount, delta="1e-6").allows(loss)
    assert not Budget(epsilon=amount - Fraction(1, 1000), delta="1e-6").allows(loss)


def test_rho_budget_adds_pure_losses() -> None:
    mixed = Loss(epsilon=Fraction(1), rho=Fraction(1, 8))
    assert Budget(rho=1).spent(mixed) == Fraction(5, 8)


def test_what_is_left_rounds_down_and_spent_rounds_up() -> None:
    budget, loss = Budget(epsilon=1), Loss(epsilon=Fraction(1, 3))
    assert budget.say(loss) == "epsilon = 0.333334"
    assert budget.left(loss) == "epsilon = 0.666666"
    assert budget.left(Loss(epsilon=Fraction(2))) == "nothing"
