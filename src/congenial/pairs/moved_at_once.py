"""Whether a people of one group can make one replacement that moves several tables at once.

Then the difference type (2 a^2, ..., 2 a^2) of these tables occurs between conforming databases.
The test is sufficient, and linear in the cells that figures mention: in every group of cells that
the figures cannot tell apart, the first cell is compared with all others; attributes outside the
figures change at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from congenial.data.workload import Margin, Partition
from congenial.figures.cells import stretches
from congenial.figures.figures import Figures
from congenial.figures.people import Crossing, people_under


def occurs(figures: Figures, names: Sequence[str], tables: Sequence[Margin], a: int) -> bool:
    """Whether `a` people of one group are known to exist whose same replacement moves all tables.

    `tables` are over the attributes `names`, which contain all that the figures mention.
    """
    if figures.structure == "general":
        return False
    outside = [k for k, name in enumerate(names) if name not in figures.bases]
    inside = [k for k, name in enumerate(names) if name in figures.bases]
    together = all(_kept_apart([table.partitions[k] for table in tables]) for k in outside)
    rest = [table for table in tables if not (together and _shows(table, outside))]
    able = _holds(figures) >= a if figures.equalities else np.array([a == 1])
    if not np.any(able):
        return False
    return _changed_inside(figures, able, rest, inside)


def _shows(table: Margin, attributes: Sequence[int]) -> bool:
    return any(table.partitions[k].size > 1 for k in attributes)


def _kept_apart(partitions: Sequence[Partition]) -> bool:
    """Whether the first level and some other one are apart in all partitions of several blocks."""
    apart = [one.array != one.array[0] for one in partitions if one.size > 1]
    return not apart or bool(np.any(np.all(apart, axis=0)))


def _changed_inside(
    figures: Figures,
    able: NDArray[np.bool_],
    tables: Sequence[Margin],
    inside: Sequence[int],
) -> bool:
    """Whether every table tells some cell of an able group apart from the first of its group."""
    atoms = figures.atoms
    first = np.maximum(figures.first_cells, 0)
    for cells in stretches(len(atoms)):
        group = np.maximum(atoms[cells], 0)
        moved = (atoms[cells] >= 0) & able[group]
        for table in tables:
            if not np.any(moved):
                break
            here, there = (_keys(figures, table, inside, at) for at in (cells, first[group]))
            moved &= here != there
        if np.any(moved):
            return True
    return False


def _keys(
    figures: Figures, table: Margin, inside: Sequence[int], cells: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cell of the table that some cells of the figures' attributes belong to."""
    key = np.zeros(len(cells), dtype=np.int64)
    for k, level in zip(inside, figures.cells.places(cells), strict=True):
        partition = table.partitions[k]
        key = key * partition.size + partition.array[level]
    return key


def _holds(figures: Figures) -> NDArray[np.float64]:
    """People that each group is known to be able to hold; 0 where figures do not tell."""
    groups = people_under(figures)
    people = np.where(np.isfinite(groups.people), groups.people, 0.0)
    for one in groups.crossings:
        people[one.block.atoms] = _holds_crossing(one)
    return people


def _holds_crossing(one: Crossing) -> NDArray[np.float64]:
    """An atom of complete one-way margins can hold as many as the smallest of its levels."""
    block = one.block
    if one.totals is None or block.features is None:
        return np.zeros(block.atoms.shape)
    if block.atoms.shape[1] != np.prod(block.levels):
        return np.zeros(block.atoms.shape)
    levels = zip(one.totals, block.features.T, strict=True)
    return np.asarray(np.min([total[:, level] for total, level in levels], axis=0), dtype=float)
