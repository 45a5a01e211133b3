"""A number with its footing: what the product prints about distances and sensitivities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Supremum:
    """A number with its footing: attained by some adjacent pair, or a proved upper bound.

    Sizes of groups that are not published are taken as large, which makes the number a bound. `by`
    says how it was found: "closed form", "enumeration", "Graver bound" or "integer programme".
    """

    value: Fraction
    exact: bool
    by: str = "closed form"

    @property
    def footing(self) -> str:
        """In words: "exact" or "upper bound"."""
        return "exact" if self.exact else "upper bound"

    @property
    def words(self) -> str:
        """Value, footing and how it was found."""
        return f"{self.value} ({self.footing}, by {self.by})"
