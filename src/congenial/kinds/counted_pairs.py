"""The pairs that tables of a section are priced over: those of rows, or those of units."""

from __future__ import annotations

from typing import Protocol

from congenial.errors import PlanError
from congenial.figures.figures import Figures
from congenial.kinds.kind import Setting
from congenial.pairs.pairs import Adjacency


class CountingSection(Protocol):
    """A section that counts rows, or units that own several rows."""

    @property
    def name(self) -> str:
        """The name of the release."""

    @property
    def units(self) -> bool:
        """Whether units are counted."""


def pairs_of(plan: Setting, section: CountingSection, figures: Figures) -> Adjacency:
    """The pairs of tables of rows, or, for units that own several rows, of tables of units."""
    pairs = plan.adjacency(figures)
    if not section.units:
        return pairs
    from congenial.pairs.several_rows import SeveralRows

    if not isinstance(pairs, SeveralRows):
        raise PlanError(
            f"release '{section.name}': units = true is for units with several rows and exact "
            "figures.",
            remedy=(
                "Give data.unit, data.max_rows and a figure with units = true, or leave out units."
            ),
        )
    return pairs.tables_of_units
