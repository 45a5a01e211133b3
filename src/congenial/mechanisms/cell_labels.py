"""The labels of a table's cells as columns, one row per cell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from congenial.data.schema import Schema


def label_columns(schema: Schema, names: Sequence[str]) -> dict[str, Any]:
    """One Arrow column of labels per axis; none for the grand total."""
    import pyarrow as pa

    axes = schema.axes(names)
    if not axes:
        return {}
    grid = np.indices(tuple(axis.size for axis in axes)).reshape(len(axes), -1)
    return {
        axis.name: pa.DictionaryArray.from_arrays(
            pa.array(grid[i], type=pa.int32()), pa.array(axis.levels)
        ).cast(pa.string())
        for i, axis in enumerate(axes)
    }
