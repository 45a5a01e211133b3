"""One table as a mechanism drew it: its values, and the public law of their noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from congenial.figures.figures import Figures
from congenial.mechanisms.released import OfPopulation
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.privacy.description import Description
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from congenial.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class DrawnTable(OfPopulation):
    """Values around the true counts, as drawn: what every estimate and every posterior rests on.

    A release of tables has one for each table that was measured (`TablesRelease.measured_tables`).
    """

    name: str
    description: Description
    guarantee: Guarantee
    values: Any = field(repr=False)

    @property
    def table(self) -> tuple[str, ...]:
        """Its axes."""
        return self.description.table

    @property
    def published(self) -> Figures:
        """The figures that the values agree with."""
        return agreed_figures(self.description, super().published)

    @cached_property
    def adjacency(self) -> Adjacency:
        """The databases that one person's own data can be changed between."""
        return of_persons(self.guarantee)

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism, built again from its description."""
        from congenial.mechanisms.calibrate import rebuild

        return rebuild(self.description, self.adjacency)


def agreed_figures(description: Description | TablesDescription, published: Figures) -> Figures:
    """The exact figures that released values agree with: no figure about people restricts sums."""
    return published if description.magnitude is None else description.support


def of_persons(guarantee: Guarantee) -> Adjacency:
    """The databases that one person's own data can be changed between.

    The promise may be about other pairs (secrets, distributions) of the same population.
    """
    pairs = guarantee.adjacency
    return pairs if isinstance(pairs, Adjacency) else SemiAdjacent(pairs.figures)
