"""The labels of a table's cells as columns, one row per cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from congenial.data.schema import Schema


def label_names(axes: Sequence[str], numbers: Collection[str]) -> tuple[str, ...]:
    """The columns that hold the labels of axes, beside columns of numbers.

    They are called like the axes; one that a column of numbers is called like says that it holds
    labels, so that neither takes the place of the other.

    >>> label_names(("county", "count"), ("count", "count_as_drawn"))
    ('county', 'count (label)')
    """
    taken, found = {*axes, *numbers}, []
    for axis in axes:
        name = axis
        while name in numbers or (name != axis and name in taken):
            name += " (label)"
        taken.add(name)
        found.append(name)
    return tuple(found)


def label_columns(schema: Schema, names: Sequence[str], numbers: Collection[str]) -> dict[str, Any]:
    """One Arrow column of labels per axis; none for the grand total.

    numbers: the columns that will stand beside them.
    """
    import pyarrow as pa

    axes = schema.axes(names)
    if not axes:
        return {}
    columns = label_names([axis.name for axis in axes], numbers)
    grid = np.indices(tuple(axis.size for axis in axes)).reshape(len(axes), -1)
    return {
        columns[i]: pa.DictionaryArray.from_arrays(
            pa.array(grid[i], type=pa.int32()), pa.array(axis.levels)
        ).cast(pa.string())
        for i, axis in enumerate(axes)
    }
