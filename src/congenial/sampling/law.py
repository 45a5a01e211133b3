"""What every sampler of integers here is: a law with draws, a density, a normaliser, an error.

Sampler and density check each other (tests/contracts/test_laws.py, for every law there is), and the
error enters the guarantee: H bounds |log p~(x)/p(x)| over a whole draw. It has no default, so that
no law claims to be exact by saying nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from congenial.data.arrays import Ints
from congenial.errors import StructureError
from congenial.sampling.randomness import Randomness


class IntegerLaw(ABC):
    """A law of arrays of integers, all of one shape."""

    @property
    @abstractmethod
    def log_ratio_error(self) -> float:
        """H: the largest |log p~(x)/p(x)| of a whole draw; inf where nothing is proved."""

    @property
    @abstractmethod
    def log_Z(self) -> float | None:
        """log of the sum of all weights; None where it is not known."""

    @abstractmethod
    def log_density(self, x: Any) -> Any:
        """log p(x), -inf off the support; x may have leading dimensions of its own.

        Where `log_Z` is None: StructureError, or up to a constant that no data can change.
        """

    @abstractmethod
    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent draws, the first dimension of the result."""

    def draw(self, randomness: Randomness) -> Ints:
        """One draw."""
        drawn: Ints = self.draw_many(randomness, 1)[0]
        return drawn


class WeightedLaw(IntegerLaw):
    """A law given by its weights, whose normaliser may not be known."""

    @abstractmethod
    def log_weight(self, x: Any) -> Any:
        """The log density up to log Z, -inf off the support; always there."""

    def log_density(self, x: Any) -> Any:
        """log p(x) = log_weight(x) - log_Z; StructureError where log_Z is None."""
        if self.log_Z is None:
            raise StructureError(
                "the normaliser of this law is not computed for a table of this size.",
                remedy="Use log_weight: the log density up to a constant.",
            )
        return self.log_weight(x) - self.log_Z
