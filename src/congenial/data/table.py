"""A confidential table of counts that shows its shape and nothing else; conditions and
margins as sets of cells of any table, released or not.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from congenial.data.arguments import expect
from congenial.data.predicate import parse
from congenial.data.schema import Axis, Schema
from congenial.errors import BundleError, DataError, PredicateError, SchemaError

_LARGEST = 2**63 - 1


class Table:
    """Nonnegative 64-bit counts over labelled axes; none of them means the total alone.

    CONFIDENTIAL. `counts` and `total` are the only ways to a value. A table prints as its shape,
    refuses to be pickled, copied or attributed to, and offers no array conversion, so that a log
    line, a notebook or a worker process cannot publish it by accident.

    Raises DataError when the counts have the wrong shape, are not whole numbers, are negative, or
    when their sum exceeds 2^63 - 1.

    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "hh": {"integers": [1, 3]}})
    >>> Table(schema, ["sex", "hh"], [[1, 2, 3], [4, 5, 6]])
    Table(sex: 2, hh: 3)
    """

    __slots__ = ("_axes", "_counts", "_schema")
    signed = False  # whether there may be numbers below 0
    _schema: Schema
    _axes: tuple[Axis, ...]
    _counts: NDArray[np.int64]
    # A plain class, not a dataclass: field-wise printers would show the counts.
    __array_ufunc__ = None

    def __init__(self, schema: Schema, names: Sequence[str], counts: ArrayLike) -> None:
        expect(schema, Schema, "the schema", "Give a Schema.", DataError)
        axes = schema.axes(names)
        array = _whole_counts(counts, self.signed)
        shape = tuple(axis.size for axis in axes)
        if array.shape != shape:
            raise DataError(
                f"the counts have shape {array.shape}, the axes have {shape}.",
                remedy="Give one dimension per axis, in order.",
            )
        array.flags.writeable = False
        object.__setattr__(self, "_schema", schema)
        object.__setattr__(self, "_axes", axes)
        object.__setattr__(self, "_counts", array)

    @property
    def schema(self) -> Schema:
        """What the axes and levels mean."""
        return self._schema

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes, in order."""
        return self._axes

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes, in order."""
        return tuple(axis.name for axis in self._axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each axis."""
        return tuple(axis.size for axis in self._axes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """CONFIDENTIAL: the counts, read-only."""
        return self._counts

    @property
    def total(self) -> int:
        """CONFIDENTIAL: the sum of all counts."""
        return int(self._counts.sum())

    def marginal(self, names: Sequence[str]) -> Table:
        """Sum onto the axes `names`, in that order; coarser axes of the table's axes included.

        Raises SchemaError when an axis is not a coarsening of one in the table.
        """
        wanted = self._schema.axes(names)
        if wanted == self._axes:
            return self  # it never changes, and may be large
        position = {axis.base: at for at, axis in enumerate(self._axes)}
        absent = [axis.name for axis in wanted if axis.base not in position]
        if absent:
            raise SchemaError(
                f"the table over {', '.join(self.names) or 'no axes'} has no {absent[0]!r}.",
                remedy="Tabulate it too, or ask for another margin.",
            )
        positions = [position[axis.base] for axis in wanted]
        dropped = tuple(at for at in range(len(self._axes)) if at not in positions)
        counts = np.asarray(self._counts.sum(axis=dropped))
        left = [at for at in range(len(self._axes)) if at in positions]
        counts = counts.transpose([left.index(at) for at in positions])
        for dimension, (axis, at) in enumerate(zip(wanted, positions, strict=True)):
            if axis != self._axes[at]:
                counts = _merge(counts, dimension, axis, self._axes[at])
        return type(self)(self._schema, tuple(names), counts)

    def __repr__(self) -> str:
        shape = ", ".join(f"{axis.name}: {axis.size}" for axis in self._axes)
        return f"{type(self).__name__}({shape or 'total'})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self))}</code>"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Table does not change.")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Table does not change.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "a Table is confidential and is neither pickled nor copied.",
            remedy="Release it and share the release.",
        )


class SumsTable(Table):
    """CONFIDENTIAL: sums of a number over labelled axes, in steps of it; they may be negative."""

    __slots__ = ()
    signed = True


def _merge(counts: NDArray[np.int64], dimension: int, want: Axis, have: Axis) -> NDArray[np.int64]:
    moved = np.moveaxis(counts, dimension, 0)
    merged = np.zeros((want.size, *moved.shape[1:]), dtype=np.int64)
    np.add.at(merged, want.map_from(have), moved)
    return np.moveaxis(merged, 0, dimension)


def _whole_counts(counts: ArrayLike, signed: bool = False) -> NDArray[np.int64]:
    """A fresh int64 copy of `counts`, or DataError without a word about their values."""
    array: NDArray[Any] | None
    try:
        array = np.asarray(counts)
    except (ValueError, OverflowError):  # ragged rows; numpy's message may quote them
        array = None
    if array is not None and array.dtype == object:
        whole = all(isinstance(c, (int, np.integer)) for c in array.flat)
        array = array if whole else None
    elif array is not None and not np.issubdtype(array.dtype, np.integer):
        array = None
    if array is None:
        raise DataError("the counts are not an array of whole numbers.", remedy="Give integers.")
    if not signed and array.size and bool((array < 0).any()):
        raise DataError("a count is negative.", remedy="Counts of records are 0 or more.")
    if _sum(np.abs(array) if signed else array) > _LARGEST:
        raise DataError(
            "the counts sum to more than 2^63 - 1, the largest 64-bit integer.",
            remedy="Tabulate a part of the data.",
        )
    return array.astype(np.int64)  # always a copy: the caller keeps no way to change it


def _sum(array: NDArray[Any]) -> int:
    """Exact sum of nonnegative integers that may overflow 64 bits."""
    if array.dtype == object:
        return sum(int(c) for c in array.flat)
    if int(array.max(initial=0)) * array.size <= _LARGEST:
        return int(array.sum())
    wide = array.astype(np.uint64)
    low, high = wide & np.uint64(0xFFFFFFFF), wide >> np.uint64(32)
    return (int(high.sum()) << 32) + int(low.sum())


def select(condition: str, schema: Schema, names: tuple[str, ...]) -> Any:
    """Boolean array over the table with axes `names`: the cells whose people meet the condition.

    An empty condition selects everything. Refused when the condition needs an attribute the table
    does not show, or cuts a cell of a coarser axis.
    """
    expect(condition, str, "the condition", 'Give text such as "age >= 65".', PredicateError)
    axes = schema.axes(names)
    shape = tuple(len(axis.levels) for axis in axes)
    if not condition.strip():
        return np.ones(shape, dtype=bool)
    predicate = parse(condition, schema)
    dimension = {axis.base: i for i, axis in enumerate(axes)}
    hidden = [base for base in predicate.bases if base not in dimension]
    if hidden:
        raise PredicateError(
            f"'{condition}' needs {', '.join(hidden)}, which the table over {', '.join(names)} "
            "does not have.",
            remedy="Use the table's own axes.",
        )
    mask = predicate.mask().astype(np.int64)
    for position, base in enumerate(predicate.bases):
        axis = axes[dimension[base]]
        mask = _coarsen(mask, position, axis.of_base, len(axis.levels), condition, axis.name)
    order = np.argsort([dimension[base] for base in predicate.bases])
    full = [1] * len(names)
    for base in predicate.bases:
        full[dimension[base]] = shape[dimension[base]]
    return np.ascontiguousarray(np.broadcast_to(mask.transpose(order).reshape(full), shape)) > 0


def _coarsen(mask: Any, position: int, of_base: Any, levels: int, condition: str, name: str) -> Any:
    """Fold one axis of a mask onto coarser levels, all of whose members must agree."""
    moved = np.moveaxis(mask, position, 0)
    low = np.ones((levels, *moved.shape[1:]), dtype=np.int64)
    high = np.zeros((levels, *moved.shape[1:]), dtype=np.int64)
    np.minimum.at(low, of_base, moved)
    np.maximum.at(high, of_base, moved)
    if np.any(low < high):
        raise PredicateError(
            f"'{condition}' cuts a category of '{name}' in this table.",
            remedy=f"State the condition in terms of '{name}'.",
        )
    return np.moveaxis(high, 0, position)


def cell_index(schema: Schema, table: tuple[str, ...], names: tuple[str, ...]) -> Any:
    """For each cell of the table, the cell of the margin over `names` that it belongs to."""
    axes = schema.axes(table)
    at = {axis.base: i for i, axis in enumerate(axes)}
    index = np.zeros((1,) * len(axes), dtype=np.int64)
    for target in schema.axes(names):
        if target.base not in at:
            raise BundleError(
                f"the table over {', '.join(table)} has no axis '{target.name}'.",
                remedy="Use its own axes or coarser ones.",
            )
        i = at[target.base]
        spread = [1] * len(axes)
        spread[i] = axes[i].size
        index = index * target.size + target.map_from(axes[i]).reshape(spread)
    return index
