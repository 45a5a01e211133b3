"""What a distribution-privacy release is calibrated to: (epsilon, delta), and by which constant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from congenial.errors import GuaranteeError
from congenial.privacy.conversions import (
    classical_gaussian_sigma_ratio,
    gaussian_delta,
    gaussian_mu,
)
from congenial.privacy.numbers import Number, above, below, parameter, smallest
from congenial.privacy.tradeoff import Approximate, Pure, Tradeoff

Constant = Literal["exact", "classical"]


@dataclass(frozen=True, init=False)
class Target:
    """(epsilon, delta) over pairs of distributions.

    constant: "exact" calibrates Gaussian noise to mu*(epsilon, delta) (Balle and Wang 2018);
    "classical" uses sqrt(2 ln(1.25/delta)) / epsilon, as the paper does, and is refused where that
    constant does not give delta.

    >>> round(Target(1, 0.001).kappa, 6), round(Target(1, 0.001, "classical").kappa, 6)
    (0.388401, 0.264797)
    """

    epsilon: Number
    delta: float
    constant: Constant

    def __init__(
        self, epsilon: Number | str | int, delta: float = 0.0, constant: Constant = "exact"
    ) -> None:
        object.__setattr__(self, "epsilon", parameter(epsilon, "epsilon"))
        object.__setattr__(self, "delta", float(parameter(delta, "delta")))
        object.__setattr__(self, "constant", constant)
        if self.epsilon <= 0 or self.delta >= 1:
            raise GuaranteeError(
                f"epsilon = {epsilon} with delta = {delta} is not a possible promise.",
                remedy="Give epsilon > 0 and 0 <= delta < 1.",
            )
        if constant not in ("exact", "classical"):
            raise GuaranteeError(
                f"the constant {constant!r} is not known.", remedy="Use 'exact' or 'classical'."
            )

    @property
    def tradeoff(self) -> Tradeoff:
        """The promise as a trade-off function."""
        return Approximate(self.epsilon, self.delta) if self.delta else Pure(self.epsilon)

    @cached_property
    def kappa(self) -> float:
        """Largest Mahalanobis distance that Gaussian laws may keep: mu*, or the classical one."""
        if self.delta == 0:
            raise GuaranteeError(
                "Gaussian noise promises nothing at delta = 0.",
                remedy="Give delta > 0, or use Laplace noise.",
            )
        if self.constant == "exact":
            return gaussian_mu(self.epsilon, self.delta)
        mu = classical_mu(float(self.epsilon), self.delta)
        if gaussian_delta(mu, self.epsilon) > self.delta:
            limit = classical_limit(self.delta)
            raise GuaranteeError(
                f"the classical constant sqrt(2 ln(1.25/delta)) does not give delta = "
                f"{self.delta:g} at epsilon = {float(self.epsilon):g}: it fails above "
                f"{limit:.4g}.",
                remedy="Use constant = 'exact', which holds for every epsilon.",
            )
        return mu


def classical_mu(epsilon: float, delta: float) -> float:
    """epsilon / sqrt(2 ln(1.25/delta)), valid or not; for reproduction."""
    return below(epsilon / classical_gaussian_sigma_ratio(delta))


def classical_limit(delta: float) -> float:
    """Largest epsilon at which the classical constant still gives delta (proved up to 1 only).

    >>> round(classical_limit(0.001), 6)
    7.463474
    """
    ratio = classical_gaussian_sigma_ratio(delta)
    return smallest(lambda eps: eps > 1 and gaussian_delta(above(eps / ratio), eps) > delta)
