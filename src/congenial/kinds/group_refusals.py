"""Which releases are not drawn by group on Spark: from public inputs alone.

`check`, `publish` and `release` all ask here, through the building of the mechanism, so that what
cannot be drawn by group is refused while no figure is public; the job itself asks again.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from congenial.errors import StructureError
from congenial.figures.integers import Ints
from congenial.figures.limits import limits
from congenial.figures.support import support
from congenial.figures.support_slices import bounds_across, runs_across
from congenial.mechanisms.congenial import CongenialCounts, IntegerNoise
from congenial.mechanisms.hierarchy import CongenialHierarchy
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
    if mechanism.description.continuous:
        raise StructureError(
            f"'{mechanism.name}' releases real numbers and is not drawn by group.",
            remedy="Use an integer mechanism, or leave out by.",
        )
    if not isinstance(mechanism, IntegerNoise | CongenialCounts | CongenialHierarchy):
        raise StructureError(
            f"the noise of '{mechanism.name}' is one vector, not noise cell by cell, and is not "
            "drawn by group.",
            remedy="Use mechanism = 'auto', or leave out by.",
        )
    _refuse_across(mechanism, by, slices_of(mechanism, by))


def slices_of(mechanism: Mechanism, by: tuple[str, ...]) -> Ints:
    """For each cell of the table the number of its group."""
    index = cell_index(mechanism.adjacency.schema, mechanism.description.table, by)
    return np.broadcast_to(index, mechanism.shape).reshape(-1)


def levels_inside(
    mechanism: Mechanism, slice_of: Ints
) -> tuple[list[tuple[Ints, Fraction]], tuple[str, ...] | None]:
    """The sum of each level that every cell belongs to, with its rate, and the first level that has
    a sum over two groups; levels that the figures fix weigh nothing and are left out.
    """
    law = mechanism.description
    found: list[tuple[Ints, Fraction]] = []
    known = support(law.support, law.table)
    for names, rate in law.levels:
        index = slices_of(mechanism, names)
        if np.all(known.fixes(index, int(index.max(initial=0)) + 1)):
            continue
        first = np.zeros(int(index.max(initial=0)) + 1, dtype=np.int64)
        first[index] = slice_of
        if np.any(first[index] != slice_of):
            return found, names
        found.append((index, rate))
    return found, None


def _refuse_across(mechanism: Mechanism, by: tuple[str, ...], slice_of: Ints) -> None:
    """Whatever ties two groups together."""
    law, groups = mechanism.description, ", ".join(by)
    if runs_across(support(law.support, law.table), slice_of):
        raise StructureError(
            f"a published figure runs across the groups of {groups}, so they cannot be drawn "
            "apart.",
            remedy=f"Publish it by {groups} too, or leave out by.",
        )
    if law.nonnegative and bounds_across(limits(law.support, law.table), slice_of):
        raise StructureError(
            f"a published bound runs across the groups of {groups}, so that counts given it "
            "cannot be drawn apart.",
            remedy="Use nonnegative = 'project', which is free, or leave out by.",
        )
    across = levels_inside(mechanism, slice_of)[1]
    if across is not None:
        level = ", ".join(across) if across else "all people"
        raise StructureError(
            f"the level of {level} has sums over several groups of {groups}, so these cannot be "
            "drawn apart.",
            remedy="Choose by as coarse as the coarsest level, or leave out by.",
        )
