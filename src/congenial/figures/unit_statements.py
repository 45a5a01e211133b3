"""Figures about units that own several rows (households, patients, firms), beside those about rows.

They are statements like any others, over the same schema, but they count units: they may name only
attributes that all rows of a unit share. `Figures` keeps them apart from figures about rows, so
that no number of households is ever taken for a number of people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.errors import FigureError
from congenial.figures.cells import Cells

if TYPE_CHECKING:
    from congenial.figures.figures import Figures


def refuse_misplaced(figures: Figures) -> None:
    """FigureError where a statement about units is among those about rows, or names a row's."""
    for statement in figures.statements:
        if statement.units:
            raise FigureError(
                f"figure '{statement.label}' counts units, but the other figures count rows.",
                remedy="Use Figures.of(schema, statements), or publish(...).",
            )
    if figures.of_units is None:
        return
    if figures.of_units.of_units is not None or figures.of_units.schema != figures.schema:
        raise FigureError(
            "the figures about units have another schema than those about rows.",
            remedy="Use one schema for both.",
        )
    for statement in figures.of_units.statements:
        bases = Cells(figures.schema, (statement,)).bases
        for name in (one for one in bases if one not in figures.schema.of_units):
            raise FigureError(
                f"figure '{statement.label}' counts units by '{name}', in which the rows of one "
                "unit may differ.",
                remedy=f'Say of = "unit" in the schema of {name!r} if they share it, or count '
                "rows (leave units out).",
            )
