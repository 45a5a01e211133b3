"""Categories: a multinomial law with a Dirichlet prior, and a spike on one level of another model.

For many levels Theta cannot be a product of grids. Here it is the lattice of the simplex: all
probabilities c / size with whole c that add up to `size`, each at least the floor. The posterior on
it is a product of one-level weights given the sum, which `drawing.Composition` samples exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from congenial.data.arguments import NUMBER, TEXT, WHOLE, check_fields, expect
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.errors import GuaranteeError
from congenial.synthesis.record_model import ContextModel, Grid, LevelModel


@dataclass(frozen=True)
class MultinomialColumn(ContextModel):
    """P(level) = p_level, p ~ Dirichlet(concentration) on { floor <= p <= ceiling }.

    floor: the least probability of a possible level; default a twentieth of its equal share. It
    sets the oscillation log(largest / floor), hence the weights; a level rarer than it is drawn too
    often. ceiling: the largest probability; default what the floors leave. A lower ceiling means
    more weight. steps: lattice points per floor. concentration: weight of the prior per level in
    records; default 1 record in all.

    Every level has the same oscillation, so a weight per record and one for all are the same here.
    """

    kind: ClassVar[str] = "multinomial"
    floor: float | None = None
    ceiling: float | None = None
    steps: int = 2
    concentration: float | None = None
    levels: int | None = None  # local mode only, where no schema says how many there are

    def __post_init__(self) -> None:
        for name in ("floor", "ceiling", "concentration"):
            types = (*NUMBER, type(None))
            expect(getattr(self, name), types, name, "Give a number.", GuaranteeError)
        expect(self.steps, WHOLE, "steps", "Give a whole number.", GuaranteeError)
        floor, ceiling = self.floor, self.ceiling
        if floor is not None and not 0 < floor < 1:
            raise GuaranteeError(
                f"floor = {floor}: at 0 the oscillation is infinite for every record.",
                remedy="Give a floor between 0 and 1 / number of levels.",
            )
        if ceiling is not None and not (floor or 0) < ceiling <= 1:
            raise GuaranteeError(
                f"ceiling = {ceiling} is not above the floor.", remedy="Raise it, at most to 1."
            )
        if self.steps < 1 or (self.concentration is not None and self.concentration <= 0):
            raise GuaranteeError(
                f"steps = {self.steps} and concentration = {self.concentration} must be positive.",
                remedy="Leave them out.",
            )

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Theta is not a product of grids."""
        raise GuaranteeError(
            "Theta of a multinomial is a lattice, not a product of grids.",
            remedy="Use the model by itself, not inside a Spike.",
        )

    def lattice(self, levels: int) -> tuple[int, int, int]:
        """(size, low, high): probabilities are c / size with low <= c <= high."""
        floor = 0.05 / levels if self.floor is None else self.floor
        if levels < 2 or floor * levels > 1 + 1e-12:
            raise GuaranteeError(
                f"{levels} levels cannot all have a probability of at least {floor}.",
                remedy="Lower the floor below 1 / number of levels.",
            )
        size = math.ceil(self.steps / floor - 1e-9)
        high = size - (levels - 1) * self.steps
        if self.ceiling is not None:
            high = min(high, math.floor(self.ceiling * size + 1e-9))
        return size, self.steps, high

    def per_level(self, levels: int) -> float:
        """The concentration with its default."""
        return 1 / levels if self.concentration is None else self.concentration

    def log_prior(self, theta: Floats) -> Floats:
        """(concentration - 1) sum log p."""
        return np.asarray((self.per_level(theta.shape[1]) - 1) * np.log(theta).sum(axis=1))

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """log p of each record's level (records are level numbers)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(theta)[:, np.asarray(records, dtype=np.int64)])

    def oscillation(self, records: Any) -> Floats:
        """log(high / low), the same for every level."""
        _, low, high = self.lattice(self._levels(records))
        return np.full(len(records), math.log(high / low))

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Independent draws of Dirichlet(concentration + weighted counts), without a floor."""
        levels = self._levels(records)
        counts = np.bincount(records, weights=weights, minlength=levels)
        return generator.dirichlet(self.per_level(levels) + counts, size=draws)

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """New level numbers."""
        return generator.choice(len(theta), size=len(records), p=theta)

    def log_levels(self, theta: Floats, attribute: Attribute) -> Floats:
        """log p."""
        return self.log_likelihood(theta, np.arange(attribute.size))

    def _levels(self, records: Any) -> int:
        if self.levels is None:
            raise GuaranteeError(
                "the number of levels is not known.", remedy="Give Multinomial(levels=...)."
            )
        if len(records) and int(np.max(records)) >= self.levels:
            raise GuaranteeError(
                f"a record is at none of the {self.levels} levels.", remedy="Code it 0, 1, 2, ..."
            )
        return self.levels


@dataclass(frozen=True)
class Spike(LevelModel):
    """Another model with a spike: P = share at one level, and (1 - share) of the model's law.

    For zeros in a continuous column, or a level without a number ("unknown"). Spikes can be nested.
    """

    kind: ClassVar[str] = "spike"
    model: LevelModel
    level: str
    share: Grid

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, model=LevelModel, level=TEXT, share=Grid)
        if not 0 < self.share.low <= self.share.high < 1:
            raise GuaranteeError(
                f"the share of level {self.level!r} runs from {self.share.low} to "
                f"{self.share.high}.",
                remedy="Give a grid inside (0, 1).",
            )

    @property
    def shared(self) -> bool:
        """As the model inside."""
        return self.model.shared

    @property
    def grids(self) -> tuple[Grid, ...]:
        """Those of the model inside, and the share."""
        return (*self.model.grids, self.share)

    def log_prior(self, theta: Floats) -> Floats:
        """That of the model inside; the share has a flat one."""
        return self.model.log_prior(theta[:, :-1])

    def log_probability(
        self, theta: Floats, attribute: Attribute, predictors: Floats | None = None
    ) -> Floats:
        """log((1 - share) p), with share added at the spike."""
        inner, where = np.unique(theta[:, :-1], axis=0, return_inverse=True)
        inside = self.model.log_probability(inner, attribute, predictors)[where.reshape(-1)]
        result = inside + np.log1p(-theta[:, -1:])
        at = attribute.code(self.level)
        result[:, at] = np.logaddexp(result[:, at], np.log(theta[:, -1]))
        return result


def lattice_score(low: int, high: int) -> tuple[Ints, Floats]:
    """The values low .. high of a level's lattice probability, and log(value / low)."""
    values = np.arange(low, high + 1, dtype=np.int64)
    return values, np.log(values / low)
