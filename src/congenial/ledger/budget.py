"""Budget: how much all releases on one population may cost together, and in which unit.

Three units: pure epsilon, epsilon at a given delta, or rho of zero-concentrated differential
privacy. A loss is converted to the budget's unit, rounded up, or refused with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.privacy.composition import Loss
from congenial.privacy.numbers import below, number

Amount = Fraction | Decimal | int | float | str


@dataclass(frozen=True, init=False)
class Budget:
    """What may be spent in all: `epsilon`, or `epsilon` with `delta`, or `rho`.

    A float is read as the decimal it prints as: 0.1 is one tenth.

    Raises GuaranteeError for any other combination, and for amounts that are not positive and
    finite (delta also has to be below 1).

    >>> Budget(epsilon=4).words
    'epsilon = 4'
    >>> Budget(epsilon=1, delta=1e-6).words
    'epsilon = 1 at delta = 1e-06'
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None

    def __init__(
        self,
        epsilon: Amount | None = None,
        delta: Amount | None = None,
        rho: Amount | None = None,
    ) -> None:
        if (epsilon is None) == (rho is None) or (delta is not None and epsilon is None):
            raise GuaranteeError(
                "a budget is epsilon, epsilon with delta, or rho.", remedy="Give one of the three."
            )
        for name, value in (("epsilon", epsilon), ("delta", delta), ("rho", rho)):
            object.__setattr__(self, name, None if value is None else _positive(name, value))
        if self.delta is not None and self.delta >= 1:
            raise GuaranteeError(
                f"budget: delta = {delta} promises nothing.", remedy="Use a delta far below 1."
            )

    @property
    def cap(self) -> Fraction:
        """The largest loss allowed, in the budget's unit."""
        cap = self.epsilon if self.rho is None else self.rho
        assert cap is not None
        return cap

    @property
    def words(self) -> str:
        """The budget as a person writes it."""
        return self._say(self.cap)

    def spent(self, loss: Loss) -> Fraction:
        """`loss` in the budget's unit, rounded up.

        Raises GuaranteeError, with what the budget needs, when the loss has no finite amount in it:
        a Gaussian law has no pure epsilon.
        """
        if self.rho is not None:
            return loss.rho + loss.epsilon**2 / 2  # eps implies rho = eps^2 / 2; rhos add
        if not loss.rho:
            return loss.epsilon  # pure at every delta, and exact
        if self.delta is None:
            raise GuaranteeError(
                "Gaussian noise has no pure epsilon: the budget needs a delta.",
                remedy="Give the budget as epsilon with delta, or use a pure mechanism.",
            )
        value = loss.epsilon_at(below(self.delta))
        if not isfinite(value):
            raise GuaranteeError(
                f"these releases promise nothing at delta = {float(self.delta):g}.",
                remedy="Use a larger delta, or samplers that lose less mass.",
            )
        return Fraction(value)

    def allows(self, loss: Loss) -> bool:
        """Whether `loss` is within the budget for certain."""
        try:
            return self.spent(loss) <= self.cap
        except GuaranteeError:
            return False

    def say(self, loss: Loss) -> str:
        """`loss` in words, in the budget's unit; the reason when it has no amount there."""
        return self.amount(loss) + beside(loss)

    def amount(self, loss: Loss) -> str:
        """The same without the releases that have no amount."""
        try:
            return self._say(self.spent(loss))
        except GuaranteeError as error:
            return f"{amount(loss)} ({error.what.rstrip('.')})"

    def left(self, loss: Loss) -> str:
        """What `loss` leaves of the budget, in words; nothing when it is exceeded."""
        try:
            rest = max(self.cap - self.spent(loss), Fraction(0))
        except GuaranteeError:
            return "nothing"
        # `number` rounds up; what is left must round down.
        return self._say(-rest).replace("-", "", 1) if rest else "nothing"

    def _say(self, amount: Fraction) -> str:
        if self.rho is not None:
            return f"rho = {number(amount)}"
        at = "" if self.delta is None else f" at delta = {float(self.delta):g}"
        return f"epsilon = {number(amount)}{at}"

    def to_dict(self) -> dict[str, str | None]:
        """Plain data; rationals as text."""
        return {
            name: None if value is None else str(value)
            for name, value in (("epsilon", self.epsilon), ("delta", self.delta), ("rho", self.rho))
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Budget:
        """Inverse of `to_dict`."""
        return cls(data["epsilon"], data["delta"], data["rho"])


def in_words(loss: Loss) -> str:
    """A loss in words, with the releases that have no amount named beside it."""
    return amount(loss) + beside(loss)


def amount(loss: Loss) -> str:
    """A loss as a trade-off function in words; part by part where no closed form joins them."""
    if not loss.rho:
        return f"epsilon = {number(loss.epsilon)}"
    parts = {"epsilon": loss.epsilon, "rho": loss.rho}
    return " and ".join(f"{name} = {number(part)}" for name, part in parts.items() if part)


def beside(loss: Loss) -> str:
    """What no amount can say: releases without any promise to persons."""
    if not loss.silent:
        return ""
    if loss.silent == 1:
        return ", beside 1 release that promises nothing about persons"
    return f", beside {loss.silent} releases that promise nothing about persons"


def _positive(name: str, value: Amount) -> Fraction:
    try:
        if isinstance(value, bool):
            raise TypeError
        amount = fraction(str(value) if isinstance(value, float) else value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        amount = Fraction(0)
    if amount <= 0:
        raise GuaranteeError(
            f"budget: {name} = {value!r} is not a positive finite number.",
            remedy=f"Give {name} > 0, for example {name} = 1.",
        )
    return amount
