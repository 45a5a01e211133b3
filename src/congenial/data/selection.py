"""Conditions and margins as sets of cells of a released table."""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.data.arguments import expect
from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.errors import BundleError, PredicateError


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
    shown = {axis.base: i for i, axis in enumerate(axes)}
    hidden = [base for base in predicate.bases if base not in shown]
    if hidden:
        raise PredicateError(
            f"'{condition}' needs {', '.join(hidden)}, which the table over "
            f"{', '.join(names)} does not show.",
            remedy="Use the table's own axes.",
        )
    mask = predicate.mask().astype(np.int64)
    for position, base in enumerate(predicate.bases):
        axis = axes[shown[base]]
        mask = _coarsen(mask, position, axis.of_base, len(axis.levels), condition, axis.name)
    order = np.argsort([shown[base] for base in predicate.bases])
    full = [1] * len(names)
    for base in predicate.bases:
        full[shown[base]] = shape[shown[base]]
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
            f"'{condition}' cuts a level of '{name}', the resolution the table shows.",
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
