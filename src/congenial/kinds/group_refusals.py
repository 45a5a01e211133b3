"""Which releases are not drawn by group on Spark: from public inputs alone.

`check`, `publish` and `release` all ask here, through the building of the mechanism, so that what
cannot be drawn by group is refused while no figure is public; the job itself asks again.
"""

from __future__ import annotations

import numpy as np

from congenial.errors import StructureError
from congenial.figures.support import support
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.single_table_release import cell_index


def refuse_groups(mechanism: Mechanism, by: tuple[str, ...]) -> None:
    """StructureError for a release that cannot be drawn group by group over the axes `by`."""
    names = mechanism.description.table
    if not by or not set(by) <= set(names):
        raise StructureError(
            f"by = {list(by)} does not name axes of the table over {', '.join(names)}.",
            remedy="Name one or more of them.",
        )
    schema = mechanism.adjacency.schema
    sizes = [name for name in names if schema.axis(name).base in schema.sizes]
    if sizes:
        raise StructureError(
            f"'{sizes[0]}' is the number of rows of a unit, which is not counted by group.",
            remedy="Leave out by: the table is then drawn in one place.",
        )
    if mechanism.description.continuous:
        raise StructureError(
            f"'{mechanism.name}' releases real numbers and is not drawn by group.",
            remedy="Use an integer mechanism, or leave out by.",
        )
    if not mechanism.additive:
        raise StructureError(
            "counts given that none is negative are not drawn by group.",
            remedy="Use nonnegative = 'project' or 'no', or leave out by.",
        )
    _refuse_figures(mechanism)
    _refuse_across(mechanism, by)


def _refuse_figures(mechanism: Mechanism) -> None:
    """Figures whose groups have no sums of their own, which workers could not check."""
    figures = mechanism.adjacency.figures
    if figures.bounds:
        raise StructureError(
            f"'{figures.bounds[0].label}' bounds a statistic; bounds are not checked by group.",
            remedy="Drop the bound, or leave out by: the table is then drawn in one place.",
        )
    known = support(mechanism.description.support, mechanism.description.table)
    if known.ties or figures.structure not in ("none", "laminar"):
        raise StructureError(
            "figures that cross are not drawn by group yet.",
            remedy="Publish figures that nest, or leave out by: the table is then drawn in one "
            "place.",
        )


def _refuse_across(mechanism: Mechanism, by: tuple[str, ...]) -> None:
    """A sum over cells of two groups ties them together."""
    law = mechanism.description
    labels = support(law.support, law.table).labels.reshape(-1)
    index = cell_index(mechanism.adjacency.schema, law.table, by)
    at = np.broadcast_to(index, mechanism.shape).reshape(-1)
    inside = labels >= 0
    first = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    first[labels[inside]] = at[inside]
    if np.any(first[labels[inside]] != at[inside]):
        raise StructureError(
            f"a published figure runs across the groups of {', '.join(by)}, so they cannot be "
            "drawn apart.",
            remedy=f"Publish it by {', '.join(by)} too, or leave out by.",
        )
