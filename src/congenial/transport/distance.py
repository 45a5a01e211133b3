"""A distance between two laws, with its footing and its proof."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from congenial.errors import GuaranteeError
from congenial.pairs.scenarios.statistic_laws import Law, StatedDiscrete
from congenial.privacy.guarantee import Basis
from congenial.transport.certificates import Certificate, Norm


@dataclass(frozen=True, eq=False)
class Distance:
    """The least W found, with its proof. `at_least`: no smaller W than this can do.

    `value` is infinite when no finite W couples the laws, or none that could be shown.
    """

    value: float
    at_least: float
    delta: Fraction
    norm: Norm
    empirical: bool = False
    prove: Callable[[], Certificate] | None = field(default=None, repr=False)

    @property
    def exact(self) -> bool:
        """Whether both bounds agree."""
        return self.value == self.at_least

    @property
    def basis(self) -> Basis:
        """A sample gives an estimate; a bracket gives a bound; otherwise it is proved."""
        if self.empirical:
            return "estimate"
        return "theorem" if self.exact else "numerical bound"

    @cached_property
    def certificate(self) -> Certificate:
        """The proof that the laws are (value, delta)-close."""
        self.require()
        assert self.prove is not None
        return self.prove()

    def require(self) -> float:
        """The value; GuaranteeError, with a remedy, when it is infinite."""
        if math.isfinite(self.value):
            return self.value
        if self.delta:
            raise GuaranteeError(
                f"no finite W makes the two distributions (W, {float(self.delta):g})-close.",
                remedy="Ask with a larger delta.",
            )
        raise GuaranteeError(
            "W_inf between the two distributions is infinite, or cannot be bounded from their "
            "quantiles.",
            remedy="Ask for (W, delta)-closeness with a small delta > 0.",
        )


def empirical(*laws: Law) -> bool:
    """Whether one of the laws is a sample.

    A distance between samples is an estimate, and a promise that rests on it says so.
    """
    return any(isinstance(law, StatedDiscrete) and law.empirical for law in laws)
