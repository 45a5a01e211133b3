"""Variances of tables whose partitions do not nest, as if they did: good enough to choose noise.

Regions and urban areas of the same counties cut across each other, and variances then have no
closed form. How precise a table is depends mostly on how many blocks it has. So each partition that
does not refine the coarser ones is replaced by one of as many blocks that does. Designs made with
it say so; standard deviations that are stated are worked out without it (`covariance`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from congenial.data.workload import Ints, Margin, Partition, Workload
from congenial.figures.invariants import Invariants
from congenial.pairs.figure_margins import figure_margins
from congenial.tables.information import Information


def stand_ins(partitions: Iterable[Partition]) -> dict[Partition, Partition]:
    """A chain in place of some partitions of one attribute, each with as many blocks as before.

    >>> urban, state = Partition.of([0, 1, 0, 1]), Partition.of([0, 0, 1, 1])
    >>> found = stand_ins([urban, state, Partition.levels(4)])
    >>> sorted({one.blocks for one in found.values()})
    [(0, 0, 0, 0), (0, 0, 1, 1), (0, 1, 2, 3)]
    """
    distinct = sorted(set(partitions), key=lambda one: (one.size, one.blocks))
    last = Partition.whole(len(distinct[0].blocks))
    found = {last: last}
    for one in distinct:
        if one in found:
            continue
        if not one.refines(last):
            one, wanted = _split(last, one.size), one
            found[wanted] = one
        found[one] = last = one
    return found


def _split(coarse: Partition, size: int) -> Partition:
    """A refinement with so many blocks, levels shared out evenly."""
    levels = np.bincount(coarse.array)
    parts = _shares(levels, size)
    blocks, start = np.zeros(len(coarse.blocks), dtype=np.int64), 0
    for block, number in enumerate(parts.tolist()):
        inside = np.flatnonzero(coarse.array == block)
        blocks[inside] = start + np.arange(len(inside)) * number // len(inside)
        start += number
    return Partition.of(blocks)


def _shares(levels: Ints, size: int) -> Ints:
    """Whole numbers of parts from 1 to `levels`, in proportion to them, that sum to `size`."""
    parts: Ints = np.clip(levels * size // levels.sum(), 1, levels)
    while parts.sum() != size:
        step = 1 if parts.sum() < size else -1
        able = (parts < levels) if step > 0 else (parts > 1)
        ratio = np.where(able, levels / parts, 0 if step > 0 else np.inf)
        parts[int(np.argmax(ratio) if step > 0 else np.argmin(ratio))] += step
    return parts


def nested_information(
    workload: Workload, figures: Invariants, *, people_kept: bool
) -> Information:
    """The variance model of tables and figures with stand-ins that nest; it is approximate."""
    names = [n for n in workload.schema.names if n in {*workload.axes, *figures.bases}]
    at = [names.index(name) for name in workload.axes]
    known = figure_margins(figures, names, people_kept=people_kept).margins
    margins = [Margin(tuple(one.partitions[k] for k in at)) for one in known]
    chains = [
        stand_ins(one.partitions[k] for one in (*margins, *workload.margins))
        for k in range(len(at))
    ]
    nested = Workload(workload.schema, workload.axes, workload.tables)
    vars(nested)["margins"] = tuple(_replaced(one, chains) for one in workload.margins)
    ordered = tuple(tuple(sorted(set(c.values()), key=lambda one: one.size)) for c in chains)
    unequal = [k for k, chain in enumerate(ordered) if any(map(_uneven, chain))]
    tree = max(unequal, key=lambda axis: workload.finest[axis], default=None)
    shown = tuple(_replaced(one, chains) for one in margins)
    return Information(nested, shown, ordered, tree, approximate=True)


def _replaced(margin: Margin, chains: list[dict[Partition, Partition]]) -> Margin:
    pairs = zip(margin.partitions, chains, strict=True)
    return Margin(tuple(chain[one] for one, chain in pairs))


def _uneven(partition: Partition) -> bool:
    return len(set(np.bincount(partition.array))) > 1
