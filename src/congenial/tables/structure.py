"""How the normal equations of several tables come apart, decided from tables and figures alone.

One attribute carries a chain of nested partitions (the tree; a flat attribute is the chain of
everybody and levels). Another attribute is *flat* if every table shows it by levels or not at all
and the figures treat its levels alike; its mean and its contrasts then separate, in every table and
figure at once. What remains are the *core* attributes: small matrices at the nodes of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from math import prod

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.workload import Margin, Partition
from congenial.errors import StructureError
from congenial.tables.measurements import FigureRows, Measurements
from congenial.tables.row_space import orthonormal

LARGEST_CORE = 256  # cells of the core attributes: matrices of this size at the nodes
SMALL_CORE = 64  # cells of the core at which no other tree is looked for
LARGEST_FIGURE = 1024  # cells of the attributes, other than the tree's, that figures mention


@dataclass(frozen=True, eq=False)
class Separation:
    """The tree attribute, its chain from fine to coarse, flat and core attributes (by place)."""

    shape: tuple[int, ...]
    tree: int
    chain: tuple[Partition, ...]
    flat: tuple[int, ...]
    core: tuple[int, ...]
    mentioned: tuple[int, ...]
    spaces: tuple[Floats, ...]  # per partition of the chain: what figures fix of each node

    @property
    def core_shape(self) -> tuple[int, ...]:
        """Levels of the core attributes."""
        return tuple(self.shape[at] for at in self.core)

    @property
    def is_closed_form(self) -> bool:
        """Whether every attribute is flat, the tree's too."""
        return not self.core and all(p.is_levels or p.size == 1 for p in self.chain)

    @cached_property
    def _levels(self) -> dict[Partition, int]:
        return {partition: at for at, partition in enumerate(self.chain)}

    def level(self, margin: Margin) -> int:
        """Which partition of the chain a table shows."""
        return self._levels[margin.partitions[self.tree]]

    def supported(self, margin: Margin) -> Margin:
        """The coarsest table that separates and of which a table is a sum; often itself."""
        partitions = list(margin.partitions)
        if partitions[self.tree] not in self._levels:
            finer = [
                partition for partition in self.chain if partition.refines(partitions[self.tree])
            ]
            partitions[self.tree] = finer[-1]
        for at in self.flat:
            if 1 < partitions[at].size < self.shape[at]:
                partitions[at] = Partition.levels(self.shape[at])
        return Margin(tuple(partitions))

    def shown(self, margin: Margin) -> tuple[int, ...]:
        """The flat attributes that a table shows."""
        shape = margin.shape
        return tuple(at for at in self.flat if shape[at] > 1)

    def subsets(self, margin: Margin) -> Iterator[tuple[int, ...]]:
        """All sets of flat attributes that a table shows."""
        visible = self.shown(margin)
        for size in range(len(visible) + 1):
            yield from combinations(visible, size)

    def summed(self, margin: Margin, contrasts: Sequence[int]) -> int:
        """Cells of the table per cell of its sums over the flat attributes not in contrast."""
        return prod(self.shape[at] for at in self.shown(margin) if at not in contrasts)

    @lru_cache(maxsize=4096)  # noqa: B019 - lives as long as the structure does
    def fixed(self, contrasts: tuple[int, ...], level: int) -> Floats:
        """What figures fix of a node's core cells, in these contrasts: orthonormal rows."""
        cells = prod(self.core_shape)
        space = self.spaces[level]
        if not len(space) or any(at not in self.mentioned for at in contrasts):
            return np.zeros((0, cells))
        sizes = [self.shape[at] for at in self.mentioned]
        inside = space.reshape(len(space), *sizes)
        for place in reversed(range(len(sizes))):
            at = self.mentioned[place]
            if at in self.flat:
                inside = np.tensordot(
                    inside, _direction(sizes[place], at in contrasts), (1 + place, 0)
                )
        flat = inside.reshape(len(space), -1)
        values, vectors = np.linalg.eigh(flat.T @ flat)
        return self._on_core(vectors[:, values > 0.5].T)

    def _on_core(self, rows: Floats) -> Floats:
        """Rows over the core attributes that figures mention, over all core attributes."""
        shape = [self.shape[at] if at in self.mentioned else 1 for at in self.core]
        rows = rows.reshape(len(rows), *shape)
        full = np.broadcast_to(rows, (len(rows), *self.core_shape))
        return orthonormal(full.reshape(len(rows), prod(self.core_shape)))


def _direction(levels: int, contrast: bool) -> Floats:
    """A unit vector among the contrasts of an attribute's levels, or its mean."""
    direction = np.zeros(levels)
    if contrast:
        direction[:2] = 1, -1
    else:
        direction[:] = 1
    return direction / np.linalg.norm(direction)


def separate(measurements: Measurements) -> Separation | str:
    """A separation with a small core, or the reason why there is none."""
    separations: list[Separation] = []
    reasons = []
    for tree in sorted(range(len(measurements.shape)), key=lambda at: -measurements.shape[at]):
        separation = _separate_at(measurements, tree)
        if isinstance(separation, str):
            reasons.append(separation)
        elif prod(separation.core_shape) <= SMALL_CORE:
            return separation
        else:
            separations.append(separation)
    if not separations:
        return min(reasons, key=len)
    return min(separations, key=lambda one: prod(one.core_shape))


def separate_along(
    measurements: Measurements, tree: int, flat: Sequence[int] | None = None
) -> Separation:
    """The separation along one attribute; StructureError where there is none.

    `flat`: attributes to be treated as flat, where a larger domain decides which are.
    """
    separation = _separate_at(measurements, tree, flat)
    if isinstance(separation, str):
        raise StructureError(
            f"the tables do not come apart along {measurements.names[tree]}: {separation}.",
            remedy="Name tables by areas that nest and by whole attributes.",
        )
    return separation


def _separate_at(
    measurements: Measurements, tree: int, given: Sequence[int] | None = None
) -> Separation | str:
    name = measurements.names[tree]
    figures, margins = measurements.figure_rows, measurements.margins
    if any(tree in figure.mentions for figure in figures):
        return f"a figure counts some levels of {name} only"
    used = [margin.partitions[tree] for margin in (*margins, *(f.by for f in figures))]
    chain = _chain(used, measurements.shape[tree])
    if chain is None:
        return f"partitions of {name} do not nest"
    rest = [at for at in range(len(measurements.shape)) if at != tree]
    mentioned = tuple(at for at in rest if any(_sees(figure, at) for figure in figures))
    if prod(measurements.shape[at] for at in mentioned) > LARGEST_FIGURE:
        return f"figures cross more than {LARGEST_FIGURE} cells beside {name}"
    spaces = _spaces(measurements, tree, chain, mentioned)
    sizes = tuple(measurements.shape[at] for at in mentioned)
    flat = tuple(
        at
        for at in rest
        if (given is None or at in given)
        and all(margin.partitions[at].size in (1, measurements.shape[at]) for margin in margins)
        and (at not in mentioned or all(_alike(s, sizes, mentioned.index(at)) for s in spaces))
    )
    core = tuple(at for at in rest if at not in flat)
    if prod(measurements.shape[at] for at in core) > LARGEST_CORE:
        others = ", ".join(measurements.names[at] for at in core)
        return f"{others} do not separate beside {name}: more than {LARGEST_CORE} cells"
    return Separation(measurements.shape, tree, chain, flat, core, mentioned, spaces)


def _chain(partitions: Sequence[Partition], levels: int) -> tuple[Partition, ...] | None:
    """Distinct partitions from fine to coarse, starting with the levels; None if some cross."""
    distinct = {Partition.levels(levels), *partitions}
    chain = sorted(distinct, key=lambda one: -one.size)
    pairs = pairwise(chain)
    return tuple(chain) if all(fine.refines(coarse) for fine, coarse in pairs) else None


def _sees(figure: FigureRows, at: int) -> bool:
    return at in figure.mentions or figure.by.shape[at] > 1


def _spaces(
    measurements: Measurements,
    tree: int,
    chain: Sequence[Partition],
    mentioned: tuple[int, ...],
) -> tuple[Floats, ...]:
    """Per partition of the chain: orthonormal rows that span what figures fix of each node."""
    cells = prod(measurements.shape[at] for at in mentioned)
    rows = np.zeros((0, cells))
    spaces = []
    for partition in chain:
        here = [f for f in measurements.figure_rows if f.by.partitions[tree] == partition]
        stacked = [figure_rows(f, mentioned, measurements.shape) for f in here]
        rows = orthonormal(np.vstack([rows, *stacked]))
        spaces.append(rows)
    return tuple(spaces)


def figure_rows(figure: FigureRows, places: Sequence[int], shape: Sequence[int]) -> Floats:
    """A figure's rows over the cells of some attributes (which include all that it sees there)."""
    sizes = [shape[at] for at in places]
    weight = figure.weight.reshape([shape[at] if at in figure.mentions else 1 for at in places])
    weight = np.broadcast_to(weight, sizes).reshape(-1)
    row = np.zeros(sizes, dtype=np.int64)
    for place, at in enumerate(places):
        blocks = figure.by.partitions[at].array
        along = [-1 if i == place else 1 for i in range(len(places))]
        row = row * figure.by.shape[at] + blocks.reshape(along)
    count = prod(figure.by.shape[at] for at in places)
    rows = np.zeros((count, len(weight)))
    rows[row.reshape(-1), np.arange(len(weight))] = weight
    return rows


def _alike(space: Floats, sizes: Sequence[int], place: int) -> bool:
    """Whether a space does not change when levels of one attribute change places."""
    if not len(space) or sizes[place] == 1:
        return True
    array = space.reshape(len(space), *sizes)
    swap = np.arange(sizes[place])
    swap[:2] = 1, 0
    for order in (swap, np.roll(np.arange(sizes[place]), 1)):  # they generate all orders
        moved = np.take(array, order, axis=1 + place).reshape(len(space), -1)
        if np.abs(moved - (moved @ space.T) @ space).max() > 1e-8:
            return False
    return True
