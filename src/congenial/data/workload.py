"""The tables of a release as linear maps on its finest cells.

Every attribute carries partitions of its levels: one block (summed over), coarser names, the levels
themselves. A `Margin` names one partition per attribute; its counts are T x, where x are the finest
cells. A `Workload` is several margins of the same cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import COUNT, NAMES, Rule, check_arguments, listed
from congenial.data.arrays import Ints
from congenial.data.schema import Schema
from congenial.errors import SchemaError


@dataclass(frozen=True)
class Partition:
    """Blocks of an attribute's levels: `blocks[i]` is the block that level i belongs to.

    >>> Partition.of([0, 0, 1]).size, Partition.whole(3).size, Partition.levels(3).size
    (2, 1, 3)
    >>> Partition.of([0, 0, 1]).refines(Partition.whole(3))
    True
    """

    blocks: tuple[int, ...]

    def __post_init__(self) -> None:
        array = self.array
        if not array.size or array.min() < 0 or not np.bincount(array).all():
            raise SchemaError(
                "the blocks of a partition are not numbered 0, 1, ... without gaps.",
                remedy="Number them in order, one number for each level.",
            )

    @classmethod
    def of(cls, blocks: Sequence[int] | Ints) -> Partition:
        """The partition with these block numbers, one per level."""
        if not (isinstance(blocks, np.ndarray) and blocks.dtype == np.int64):
            values = {"blocks": blocks}
            check_arguments("Partition.of", values, {"blocks": listed(COUNT)}, SchemaError)
        return cls(tuple(np.asarray(blocks, dtype=np.int64).tolist()))

    @classmethod
    def whole(cls, levels: int) -> Partition:
        """One block: the attribute is summed over."""
        return cls((0,) * levels)

    @classmethod
    def levels(cls, levels: int) -> Partition:
        """One block per level."""
        return cls(tuple(range(levels)))

    @cached_property
    def size(self) -> int:
        """Number of blocks."""
        return int(self.array.max()) + 1

    @cached_property
    def array(self) -> Ints:
        """The block of every level."""
        return np.array(self.blocks, dtype=np.int64)

    @cached_property
    def is_levels(self) -> bool:
        """Whether every level is its own block, in order."""
        return bool(np.array_equal(self.array, np.arange(len(self.blocks))))

    def refines(self, other: Partition) -> bool:
        """Whether every block lies inside one block of `other`."""
        inside = np.empty(self.size, dtype=np.int64)
        inside[self.array] = other.array
        return bool(np.array_equal(inside[self.array], other.array))


@dataclass(frozen=True)
class Margin:
    """A table of sums of the finest cells: one partition per attribute.

    >>> margin = Margin((Partition.of([0, 0, 1]), Partition.whole(2)))
    >>> margin.shape, margin.totals(np.arange(6).reshape(3, 2)).tolist()
    ((2, 1), [[6], [9]])
    >>> margin.spread(np.array([[6], [9]])).tolist()
    [[6, 6], [6, 6], [9, 9]]
    """

    partitions: tuple[Partition, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of blocks per attribute; 1 for an attribute that is summed over."""
        return tuple(partition.size for partition in self.partitions)

    @property
    def size(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @cached_property
    def finest(self) -> tuple[int, ...]:
        """Number of levels per attribute."""
        return tuple(len(partition.blocks) for partition in self.partitions)

    def totals(self, cells: NDArray[Any]) -> NDArray[Any]:
        """T x: the sums of finest cells. Axes before the attributes are kept as they are."""
        lead = cells.ndim - len(self.partitions)
        for axis, partition in enumerate(self.partitions, start=lead):
            cells = _sum(cells, partition, axis)
        return cells

    def spread(self, totals: NDArray[Any]) -> NDArray[Any]:
        """T' y: every finest cell gets the value of the cell of this table it belongs to."""
        lead = totals.ndim - len(self.partitions)
        for axis, partition in enumerate(self.partitions, start=lead):
            if not partition.is_levels:
                totals = np.take(totals, partition.array, axis=axis)
        return totals

    def refines(self, other: Margin) -> bool:
        """Whether the counts of `other` are sums of this table's."""
        pairs = zip(self.partitions, other.partitions, strict=True)
        return all(fine.refines(coarse) for fine, coarse in pairs)


def _sum(cells: NDArray[Any], partition: Partition, axis: int) -> NDArray[Any]:
    """Sums over the blocks of one axis."""
    if partition.is_levels:
        return cells
    if partition.size == 1:
        return np.asarray(cells.sum(axis=axis, keepdims=True))
    order = np.argsort(partition.array, kind="stable")
    starts = np.searchsorted(partition.array[order], np.arange(partition.size))
    return np.asarray(np.add.reduceat(np.take(cells, order, axis=axis), starts, axis=axis))


@dataclass(frozen=True)
class Workload:
    """Several tables of the same finest cells, by name.

    `axes` are the attributes of the finest cells; `tables` the axes of each table, names of
    attributes or coarser names; () is the total.

    >>> schema = Schema.from_dict({
    ...     "county": {"levels": ["A", "B", "C"], "within": {"state": ["PA", "PA", "NJ"]}},
    ...     "age": {"edges": [0, 18, 65], "top": "65+"},
    ... })
    >>> work = Workload.of(schema, [["county", "age"], ["state"], []])
    >>> work.finest, [margin.shape for margin in work.margins]
    ((3, 3), [(3, 3), (2, 1), (1, 1)])
    """

    schema: Schema
    axes: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, schema: Schema, tables: Sequence[Sequence[str]]) -> Workload:
        """The workload over the attributes that some table mentions, in schema order."""
        values = {"schema": schema, "tables": tables}
        rules: dict[str, Rule | type] = {"schema": Schema, "tables": listed(NAMES)}
        check_arguments("Workload.of", values, rules, SchemaError)
        if not tables:
            raise SchemaError("no table is named.", remedy="Name at least one table.")
        named = tuple(tuple(axis.name for axis in schema.axes(names)) for names in tables)
        bases = {schema.axis(name).base for names in named for name in names}
        return cls(schema, tuple(name for name in schema.names if name in bases), named)

    @cached_property
    def finest(self) -> tuple[int, ...]:
        """Number of levels per attribute: the shape of the finest cells."""
        return tuple(self.schema.attribute(name).size for name in self.axes)

    @cached_property
    def margins(self) -> tuple[Margin, ...]:
        """The linear map of each table, in the order they were named."""
        return tuple(self.margin(names) for names in self.tables)

    def margin(self, names: Sequence[str]) -> Margin:
        """The linear map of one table over the finest cells."""
        at = {axis.base: Partition.of(axis.of_base) for axis in self.schema.axes(names)}
        return Margin(
            tuple(
                at.get(name, Partition.whole(levels))
                for name, levels in zip(self.axes, self.finest, strict=True)
            )
        )
