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
    taken, columns = {*axes, *numbers}, []
    for axis in axes:
        name = axis
        while name in numbers or (name != axis and name in taken):
            name += " (label)"
        taken.add(name)
        columns.append(name)
    return tuple(columns)


def with_words(table: Any, schema: Schema, names: Sequence[str]) -> Any:
    """The table for readers: beside the codes of each axis that has labels, a column of these.

    Codes stand where they were. The new column is called like the attribute's label, or like the
    axis with "label" behind it.
    """
    import pyarrow as pa

    at = 0
    for name in names:
        codes = table.column(at)
        levels, labels = schema.axis(name).levels, schema.shown_levels(name)
        if labels != levels:
            coded = codes.combine_chunks().dictionary_encode()
            word = dict(zip(levels, labels, strict=True))
            words = pa.array([word[level] for level in coded.dictionary.to_pylist()], pa.string())
            column = pa.DictionaryArray.from_arrays(coded.indices, words).cast(pa.string())
            at += 1
            table = table.add_column(at, _unused(table, schema, name), column)
        at += 1
    return table


def beside_label(schema: Schema, name: str, level: str) -> str:
    """A level of an axis for people: beside its code its label, where it has one.

    >>> schema = Schema.from_dict({"sex": {"levels": ["1", "2"], "labels": {"1": "women"}}})
    >>> beside_label(schema, "sex", "1"), beside_label(schema, "sex", "2")
    ('1 (women)', '2')
    """
    label = schema.attribute(schema.axis(name).base).labels.get(level, level)
    return level if label == level else f"{level} ({label})"


def words_name(schema: Schema, name: str) -> str:
    """What a column of an axis's labels is called: like the attribute's own label, if it has one.

    >>> schema = Schema.from_dict({"sex": {"levels": ["1", "2"], "labels": {"1": "women"}}})
    >>> words_name(schema, "sex")
    'sex label'
    """
    label = schema.shown(name)
    column = label if label != name else f"{name} label"
    axes = {*schema.names, *(x for n in schema.names for x in schema.attribute(n).coarser)}
    while column in axes:
        column += " (label)"
    return column


def _unused(table: Any, schema: Schema, name: str) -> str:
    """A name for a column of labels that no column has."""
    label = words_name(schema, name)
    while label in table.column_names:
        label += " (label)"
    return label


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
