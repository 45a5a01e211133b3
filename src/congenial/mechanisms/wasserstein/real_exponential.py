"""The Wasserstein exponential mechanism for real statistics, on a public grid.

p(y | x) ~ exp(-epsilon ||y - T(x)|| / sigma) on the multiples of a public unit. T(x) is rounded to
the grid first, which may move two values apart by one unit in every coordinate, so Delta_z grows
by that much and nothing is lost to floating point: the promise is about the law that is drawn. No
sign and no prior, so the normaliser is constant and c = 1 (partially-private-data, Theorem 9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.argument_rules import COUNT, check_fields
from congenial.errors import DataError, GuaranteeError
from congenial.mechanisms.wasserstein.base_measure import naive
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.mechanisms.wasserstein.secret_promise import usable
from congenial.pairs.scenarios.statistic_laws import rational
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import above
from congenial.sampling.inversion import Floats, Ints
from congenial.sampling.randomness import Randomness
from congenial.transport.delta_z import DistanceBound

LARGEST = 2**52  # grid points whose number is exact as a double


@dataclass(frozen=True, eq=False)
class WassersteinReals:
    """Vectors of `dimension` real numbers; `bound` is Delta_z in the norm of the loss, l1 or l2.

    `unit` is public: a tenth of the noise is fine enough, and a finer one costs nothing.
    """

    pairs: SecretPairs
    bound: DistanceBound
    epsilon: Fraction
    unit: Fraction
    dimension: int = 1

    def __post_init__(self) -> None:
        told = {"pairs": SecretPairs, "bound": DistanceBound}
        check_fields(self, GuaranteeError, **told, dimension=COUNT)
        for field in ("epsilon", "unit"):
            object.__setattr__(self, field, rational(getattr(self, field)))
        if self.unit <= 0 or self.dimension < 1:
            raise GuaranteeError(
                f"a grid of unit {self.unit} in {self.dimension} dimensions.",
                remedy="Give a positive unit and at least one dimension.",
            )
        if self.bound.measure not in ("l1", "l2"):
            raise GuaranteeError(
                f"Delta_z in {self.bound.measure} does not bound a loss on the reals.",
                remedy="Compute delta_z at level 'query' in l1 or l2.",
            )
        _ = self.on_grid  # refuses a bound that cannot be used

    @cached_property
    def on_grid(self) -> WassersteinExponential:
        """The mechanism on whole numbers of units."""
        loss = "l2" if self.bound.measure == "l2" else "l1"
        many = self.dimension if loss == "l1" else math.isqrt(self.dimension - 1) + 1
        reach = usable(self.bound) / self.unit + many
        whole = replace(self.bound, value=above(reach))
        base = naive(self.dimension)
        return WassersteinExponential(self.pairs, whole, base, self.epsilon, loss)  # type: ignore[arg-type]

    @property
    def guarantee(self) -> Guarantee:
        """epsilon given the public figures; rounding to the grid is inside it."""
        told = (
            f"values are multiples of {self.unit}, and Delta_z = {self.bound.value:g} in "
            f"{self.bound.measure} before rounding"
        )
        inner = self.on_grid.guarantee
        return replace(inner, assumptions=(*inner.assumptions, told))

    def rounded(self, statistic: npt.ArrayLike) -> Ints:
        """The nearest grid point, in units."""
        values = np.atleast_1d(np.asarray(statistic, dtype=float))
        far = np.abs(values) > float(LARGEST * self.unit)
        if values.shape != (self.dimension,) or np.any(far | ~np.isfinite(values)):
            raise DataError(
                f"the statistic is not a vector of {self.dimension} numbers near the grid.",
                remedy="Give finite numbers, one per coordinate, or a larger unit.",
            )
        return np.array([round(Fraction(v) / self.unit) for v in values.tolist()], dtype=np.int64)

    def draw(self, statistic: npt.ArrayLike, randomness: Randomness, draws: int) -> Floats:
        """Draws of y, shape (draws, dimension): independent and exact, but for the l2 loss."""
        units = self.on_grid.draw(self.rounded(statistic), randomness, draws)
        return np.asarray(units * float(self.unit))

    def log_density(self, y: npt.ArrayLike, statistic: npt.ArrayLike) -> Any:
        """log p(y | x) of grid points (..., dimension)."""
        units = np.rint(np.asarray(y, dtype=float) / float(self.unit)).astype(np.int64)
        return self.on_grid.log_density(units, self.rounded(statistic))

    def release(
        self, statistic: npt.ArrayLike, randomness: Randomness | None = None, name: str = "release"
    ) -> ValuesRelease:
        """Draw once: the only call that spends privacy."""
        drawn = self.on_grid.release(self.rounded(statistic), randomness, name)
        law = {"rate": str(self.on_grid.rate), "loss": self.on_grid.loss, "unit": str(self.unit)}
        return replace(
            drawn,
            description=replace(drawn.description, law=law),
            guarantee=self.guarantee,
            values=tuple(v * float(self.unit) for v in drawn.values),
        )
