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
from congenial.figures.invariants import Invariants
from congenial.pairs.occupancy import Crossing, occupancy


def occurs(figures: Invariants, names: Sequence[str], tables: Sequence[Margin], a: int) -> bool:
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
    atoms = figures.atoms
    group = np.where(able[np.maximum(atoms, 0)] & (atoms >= 0), atoms, -1)
    if not rest:
        return bool(np.any(group >= 0))
    return bool(np.any(_changed_inside(figures, group, [_keys(t, inside) for t in rest])))


def _shows(table: Margin, attributes: Sequence[int]) -> bool:
    return any(table.partitions[k].size > 1 for k in attributes)


def _kept_apart(partitions: Sequence[Partition]) -> bool:
    """Whether the first level and some other one are apart in all partitions of several blocks."""
    apart = [one.array != one.array[0] for one in partitions if one.size > 1]
    return not apart or bool(np.any(np.all(apart, axis=0)))


def _keys(table: Margin, inside: Sequence[int]) -> NDArray[np.int64]:
    """Cell of the table that each cell of the figures' attributes belongs to."""
    key = np.zeros((), dtype=np.int64)
    for k in inside:
        partition = table.partitions[k]
        key = np.add.outer(key * partition.size, partition.array)
    return key.reshape(-1)


def _changed_inside(
    figures: Invariants, group: NDArray[np.int64], keys: Sequence[NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Cells of able groups that every table tells apart from the first cell of their group."""
    atoms = figures.atoms
    first = np.full(int(atoms.max(initial=0)) + 1, -1, dtype=np.int64)
    last_first = np.flatnonzero(atoms >= 0)[::-1]
    first[atoms[last_first]] = last_first
    moved = group >= 0
    for key in keys:
        moved &= key != key[first[np.maximum(group, 0)]]
    return moved


def _holds(figures: Invariants) -> NDArray[np.float64]:
    """People that each group is known to be able to hold; 0 where figures do not tell."""
    groups = occupancy(figures)
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
