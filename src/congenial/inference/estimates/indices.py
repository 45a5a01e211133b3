"""Indices of a distribution: entropy, dissimilarity, Gini.

Noise makes a distribution look rougher than it is, so an index of noisy counts is biased and its
spread says nothing about that. Entropy and dissimilarity are calibrated against tables between even
and as drawn (`scaled_family`), Gini by a checked bootstrap (`checked_bootstrap`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from congenial.errors import InferenceError
from congenial.inference.estimates.cell_estimates import Floats
from congenial.inference.estimates.checked_bootstrap import CheckedFunction
from congenial.inference.estimates.expression_language import IndexOf
from congenial.inference.estimates.quantities import Quantity
from congenial.inference.estimates.scaled_family import ScaledIndex

if TYPE_CHECKING:
    from congenial.inference.estimates.resolve import CellGroups


def entropy(tables: Floats) -> Floats:
    """Shannon's entropy in nats of counts (..., groups, levels); nan for nobody."""
    shares = _shares(tables)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.asarray(-np.sum(shares * logs, axis=-1))


def dissimilarity(tables: Floats) -> Floats:
    """Dissimilarity of counts (..., groups, kinds of people, areas); nan where one kind is all.

    The share of people who would have to move for all areas to be alike, over its largest possible
    value: with two kinds of people, half the sum of |a_i / A - b_i / B|.
    """
    counts = np.maximum(tables, 0.0)
    everybody = counts.sum(axis=(-2, -1), keepdims=True)
    kinds = counts.sum(axis=-1, keepdims=True) / np.where(everybody > 0, everybody, np.nan)
    areas = counts.sum(axis=-2, keepdims=True)
    moved = np.abs(counts - kinds * areas).sum(axis=(-2, -1))
    largest = 2 * everybody[..., 0, 0] * np.sum(kinds * (1 - kinds), axis=(-2, -1))
    return np.asarray(moved / np.where(largest > 0, largest, np.nan))


def gini(tables: Floats, amounts: Floats) -> Floats:
    """Gini's coefficient of amounts held by counts (..., groups, levels) of people."""
    shares = _shares(tables)
    below = np.cumsum(shares, axis=-1)
    held = shares * amounts
    mean = held.sum(axis=-1)
    # Twice the area above the Lorenz curve: sum of shares times amounts, weighted by rank.
    middle = below - shares / 2
    return np.asarray(
        (2 * np.sum(held * middle, axis=-1) - mean) / np.where(mean > 0, mean, np.nan)
    )


def _shares(tables: Floats) -> Any:
    counts = np.maximum(tables, 0.0)
    total = counts.sum(axis=-1, keepdims=True)
    return counts / np.where(total > 0, total, np.nan)


def index_quantity(node: IndexOf, groups: CellGroups) -> Quantity:
    """The index that an expression asks for."""
    return INDICES[node.index](node, groups)


def _rows(node: IndexOf, groups: CellGroups) -> tuple[Any, tuple[int, int]]:
    """Which cells count for each level of each group, and the shape of both."""
    level, count = groups.levels_of(node.name)
    chosen = groups.selected(node.condition)
    place = groups.of_cell * count + level
    return groups.rows(chosen, place, groups.count * count), (groups.count, count)


def _entropy(node: IndexOf, groups: CellGroups) -> Quantity:
    weights, shape = _rows(node, groups)
    return ScaledIndex(groups.source, weights, shape, entropy, _even)


def _gini(node: IndexOf, groups: CellGroups) -> Quantity:
    weights, shape = _rows(node, groups)
    amounts = _amounts(node, groups)
    bins = len(amounts)
    within = (0.0, 1.0) if amounts.min() >= 0 else (-np.inf, np.inf)
    return CheckedFunction(
        groups.source, weights, shape, lambda tables: gini(tables[..., :bins], amounts), within
    )


def _dissimilarity(node: IndexOf, groups: CellGroups) -> Quantity:
    chosen = groups.selected(node.condition)
    level, count = groups.levels_of(node.name)
    area, areas = groups.levels_of(node.over)
    schema = groups.table.schema
    if schema.axis(node.name).base == schema.axis(node.over).base:
        raise InferenceError(
            f"dissimilarity of {node.name!r} by {node.over!r}: both are the same attribute.",
            remedy="Name the kinds of people first, then the areas.",
        )
    row = (groups.of_cell * count + level) * areas + area
    weights = groups.rows(chosen, row, groups.count * count * areas)
    shape = (groups.count, count, areas)
    return ScaledIndex(groups.source, weights, shape, dissimilarity, _independent)


def _even(tables: Floats, possible: Any) -> Floats:
    """Everybody spread evenly over the levels that can occur."""
    total = tables.sum(axis=-1, keepdims=True)
    levels = possible.sum(axis=-1, keepdims=True)
    return np.asarray(np.where(possible, total / np.maximum(levels, 1), 0.0))


def _independent(tables: Floats, possible: Any) -> Floats:
    """The same shares in every area."""
    total = tables.sum(axis=(-2, -1), keepdims=True)
    rows, columns = tables.sum(axis=-1, keepdims=True), tables.sum(axis=-2, keepdims=True)
    found = rows * columns / np.where(total > 0, total, 1.0)
    return np.asarray(np.where(possible, found, 0.0))


def _amounts(node: IndexOf, groups: CellGroups) -> Floats:
    """The middle of every bin; an open bin needs a number."""
    from congenial.inference.estimates.resolve import ordered

    found = []
    attribute = ordered(node.name, groups)
    for lower, upper in attribute.intervals:
        if lower is None or upper is None:
            found.append(_in_open_bin(node, lower, upper))
        elif attribute.kind == "integers":
            found.append(float(lower))
        else:
            found.append((float(lower) + float(upper)) / 2)
    return np.array(found, dtype=float)


def _in_open_bin(node: IndexOf, lower: Any, upper: Any) -> float:
    """The amount that the expression gives to people in a bin without an edge."""
    if node.top is None:
        raise InferenceError(
            f"gini({node.name}): an open class has no limit, so its people have no amount.",
            remedy=f"Give an amount for it: gini({node.name}, 90).",
        )
    outside = node.top < lower if upper is None else node.top > upper
    if outside:
        reach = f"from {lower} on" if upper is None else f"below {upper}"
        raise InferenceError(
            f"gini({node.name}, {node.top:g}): {node.top:g} stands for people {reach}, and is not "
            "there.",
            remedy="Give an amount that they can have. With open classes on both sides, ask for a "
            "quantile or the entropy.",
        )
    return node.top


INDICES: dict[str, Callable[[IndexOf, CellGroups], Quantity]] = {
    "dissimilarity": _dissimilarity,
    "entropy": _entropy,
    "gini": _gini,
}
