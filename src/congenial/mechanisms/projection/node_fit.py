"""Whole nonnegative counts of one drawn table, fitted from coarse to fine.

Made nonnegative cell by cell, a table of many small counts has sums that are far too large: every
negative cell is raised, and nothing says so to the sums. Here sums are settled before their parts:
the table summed over its longest axis first, then along that axis' coarser names, then the cells.
Sums at these nodes are as near to the draw as whole counts can be. The draw and the published
figures decide everything: this costs no privacy.

Where figures have no place in that order (public bounds, figures finer than the table or about
other attributes, sums that cross in other ways), there is no such fit: `node_order_of` is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from congenial.data.workload import Ints, Workload
from congenial.errors import StructureError
from congenial.figures.invariants import Invariants
from congenial.tables.measurements import Floats, Measurements
from congenial.tables.node_order import NodeOrder
from congenial.tables.whole_counts import (
    LevelTargets,
    as_near,
    fit_to_targets,
    level_precisions,
    rehearse_order,
)

MOST_WORK = 2_000_000_000  # nodes of a level x squared cells of a node, where their sums are known


@lru_cache(maxsize=16)
def node_order_of(figures: Invariants, names: tuple[str, ...]) -> NodeOrder | None:
    """The order in which a table's counts are fitted given exact figures; None if there is none."""
    if figures.bounds or (figures.equalities and figures.values is None):
        return None
    tables = (names, *_coarser_tables(figures, names))
    work = Workload.of(figures.schema, tables)
    measured = Measurements(work, (1.0, *(0.0,) * (len(tables) - 1)), figures)
    if measured.margins[0].size != measured.size:
        return None  # figures tell finer cells apart than the table does
    try:
        order = rehearse_order(measured)
    except StructureError:
        return None
    return order if _affordable(order) else None


def _coarser_tables(figures: Invariants, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The table with one axis replaced by a coarser name of it, or left out."""
    schema, found = figures.schema, []
    for at, name in enumerate(names):
        axis = schema.axis(name)
        coarser = [one for one in schema.attribute(axis.base).coarser if one != name]
        for one in coarser:
            pairs = {*zip(axis.of_base, schema.axis(one).of_base, strict=True)}
            if len(pairs) == axis.size:  # every level lies in one level of the coarser name
                found.append((*names[:at], one, *names[at + 1 :]))
    return found


def _affordable(order: NodeOrder) -> bool:
    """Whether every level can be fitted in a moment; levels without known sums always can."""
    levels = zip(order.chain, order.atoms, strict=True)
    return all(
        level.size * order.cells**2 <= MOST_WORK for level, atoms in levels if atoms.sums.size
    )


def fit_nodes(order: NodeOrder, names: Sequence[str], drawn: Ints) -> Ints:
    """Whole nonnegative counts near a drawn table, shaped like it."""
    found = fit_to_targets(order, _targets(order, names, drawn))
    return found.table(names).reshape(drawn.shape)


def is_node_fit(order: NodeOrder, names: Sequence[str], drawn: Ints, counts: Ints) -> bool:
    """Whether counts are what a fit makes of a drawn table, ties aside."""
    return as_near(order, _targets(order, names, drawn), _by_attribute(order, names, counts))


def is_node(order: NodeOrder, names: Sequence[str]) -> bool:
    """Whether the sums over some axes are nodes of the fit."""
    try:
        margin = order.measurements.margin(names)
    except StructureError:
        return False
    return order.role(margin) == "node"


def node_tables(order: NodeOrder, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Tables whose sums are nodes of the fit, from coarse to fine; the last is the table itself."""
    schema = order.measurements.workload.schema
    tree = order.measurements.names[order.tree]
    top = tuple(name for name in names if schema.axis(name).base != tree)
    tables = [top, *order.measurements.workload.tables]
    nodes = [one for one in dict.fromkeys(tables) if is_node(order, one)]
    return tuple(sorted(nodes, key=lambda one: schema.size(one)))


def is_node_cell(order: NodeOrder, names: Sequence[str], chosen: Any) -> bool:
    """Whether the marked cells of a table add up to one cell of a node."""
    marked = _by_attribute(order, names, np.asarray(chosen, dtype=np.int64))
    for level in range(len(order.chain)):
        margin = order.level_margin(level)
        inside, all_ = margin.totals(marked), margin.totals(np.ones_like(marked))
        if np.count_nonzero(inside) == 1 and np.array_equal(inside[inside > 0], all_[inside > 0]):
            return True
    return False


def _targets(order: NodeOrder, names: Sequence[str], drawn: Ints) -> list[LevelTargets]:
    cells = _by_attribute(order, names, drawn).astype(float)
    return [
        LevelTargets(_of_level(order, level, cells), p, q)
        for level, (p, q) in enumerate(level_precisions(order))
    ]


def _of_level(order: NodeOrder, level: int, cells: Floats) -> Floats:
    totals = order.level_margin(level).totals(cells)
    return np.ascontiguousarray(np.moveaxis(totals, order.tree, 0).reshape(-1, order.cells))


def _by_attribute(order: NodeOrder, names: Sequence[str], table: Ints) -> Ints:
    """A table shaped by its axes, with one axis per attribute of the cells instead."""
    schema = order.measurements.workload.schema
    places = [order.measurements.names.index(schema.axis(name).base) for name in names]
    turned = np.transpose(table, np.argsort(places))
    return np.asarray(turned.reshape(order.measurements.shape), dtype=np.int64)
