"""Indices of a distribution (entropy, dissimilarity, Gini) and any other function of the table.

Noise makes a distribution look rougher than it is: an index of noisy counts is biased. A bootstrap
with the public noise takes the bias out. R = f(z + noise) - f(z) at the estimate z stands for
f(estimate) - f(truth); its mean is the bias, the quantile of |R - mean| how far the interval
reaches. That assumes the law of R to be the same at the estimate and at the truth. A check puts the
estimate in the truth's place: new estimates z + noise, an interval from each, made in the same way;
the reach is widened until f(z) is inside as often as the level says.

In groups that are small beside the noise none of this holds: the estimate says next to nothing
about the truth, nor about the bias. There the answer is what the exact figures leave. A group is
large enough if its size (people; for a dissimilarity the largest number that could have to move) is
at least USABLE times the sum of the standard deviations of its cells. `benchmarks/estimates.py`
measures coverage on either side of that line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats
from congenial.errors import InferenceError
from congenial.figures.limits import SumRanges
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    Weights,
    possible_sums,
)
from congenial.inference.estimates.cell_groups import CellGroups, ordered
from congenial.inference.estimates.expression_language import IndexOf
from congenial.inference.estimates.quantities import (
    NOBODY,
    NOT_DETERMINED,
    Ends,
    IntervalCover,
    Quantity,
)
from congenial.tables.simulated_errors import DRAWS

METHOD = "bootstrap with the public noise, bias-corrected, widened until its check held"
TOO_SMALL = f"{NOT_DETERMINED}: the group is too small beside the noise"
FIGURES = "what the exact figures leave"
USABLE = 5.0  # how often a group must be as large as the standard deviations of its cells together
USED = 1_000  # simulated tables
CHECKED = 200  # estimates of the check
INNER = 100  # simulated tables for each of them


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
    kinds, areas = counts.sum(axis=-1, keepdims=True), counts.sum(axis=-2, keepdims=True)
    everybody = kinds.sum(axis=-2, keepdims=True)
    shares = kinds / np.where(everybody > 0, everybody, np.nan)
    moved = np.abs(counts - shares * areas).sum(axis=(-2, -1)) / 2
    largest = most_moved(tables)
    return np.asarray(moved / np.where(largest > 0, largest, np.nan))


def most_moved(tables: Floats) -> Floats:
    """How many people would have to move if every area had one kind of people: N sum p (1 - p)."""
    kinds = np.maximum(tables, 0.0).sum(axis=-1)
    people = kinds.sum(axis=-1, keepdims=True)
    return np.asarray(np.sum(kinds * (1 - kinds / np.where(people > 0, people, 1.0)), axis=-1))


def gini(tables: Floats, amounts: Floats) -> Floats:
    """Gini's coefficient of amounts held by counts (..., groups, levels) of people."""
    shares = _shares(tables)
    below = np.cumsum(shares, axis=-1)
    products = shares * amounts
    mean = products.sum(axis=-1)
    # Twice the area above the Lorenz curve: sum of shares times amounts, weighted by rank.
    middle = below - shares / 2
    return np.asarray(
        (2 * np.sum(products * middle, axis=-1) - mean) / np.where(mean > 0, mean, np.nan)
    )


def _shares(tables: Floats) -> Any:
    counts = np.maximum(tables, 0.0)
    total = counts.sum(axis=-1, keepdims=True)
    return counts / np.where(total > 0, total, np.nan)


@dataclass(frozen=True, eq=False)
class CheckedFunction(Quantity):
    """A function of the sums `weights`: arrays (n, *shape) to numbers (n, groups)."""

    source: CellEstimates
    weights: Weights
    shape: tuple[int, ...]
    function: Callable[[Floats], Floats]
    size: Callable[[Floats], Floats]  # tables (groups, ...) to what must exceed the noise
    within: tuple[Any, Any] = (-np.inf, np.inf)  # where the truth must lie, by group

    @cached_property
    def _estimate(self) -> Floats:
        return np.asarray(self.weights @ self.source.cells).reshape(self.shape)

    @cached_property
    def _errors(self) -> Floats:
        errors = self.source.errors(self.weights)[: USED + CHECKED]
        return np.asarray(errors.reshape(len(errors), *self.shape))

    @cached_property
    def _seen(self) -> Floats:
        return np.asarray(self.function(self._estimate[None])[0])

    @cached_property
    def _away(self) -> Floats:
        """R for every simulated table, (USED, groups)."""
        changes = self.function(self._estimate + self._errors[:USED]) - self._seen
        return np.where(np.isfinite(changes), changes, 0.0)

    @cached_property
    def usable(self) -> Any:
        """Which groups are large enough."""
        noise = np.sqrt(np.mean(self._errors**2, axis=0)).reshape(self.shape[0], -1).sum(axis=1)
        return np.asarray(self.size(self._estimate)) >= USABLE * noise

    @cached_property
    def values(self) -> Floats:
        """f(z) less its simulated bias."""
        return np.clip(self._centre, *np.broadcast_arrays(*self.within, self._centre)[:2])

    @property
    def _centre(self) -> Floats:
        return np.asarray(self._seen - self._away.mean(axis=0))

    def sizes(self) -> Floats:
        """|R - bias|."""
        distances = np.abs(self._away - self._away.mean(axis=0))
        return np.asarray(np.resize(distances, (DRAWS, distances.shape[1])))

    @property
    def deviations(self) -> Floats:
        """Standard deviation of R."""
        return np.asarray(self._away.std(axis=0))

    def ends(self, cover: IntervalCover) -> Ends:
        """Around the corrected value, as far as the check asks for."""
        reach = cover.reach(self.sizes()) * self._widening(cover)
        least, most = (np.broadcast_to(end, len(reach)) for end in self.within)
        low = np.where(self.usable, np.clip(self._centre - reach, least, most), least)
        high = np.where(self.usable, np.clip(self._centre + reach, least, most), most)
        exact = least == most
        methods = [METHOD if usable else FIGURES for usable in self.usable & ~exact]
        notes = ["" if fine else TOO_SMALL for fine in self.usable | exact]
        for i in np.flatnonzero(np.isnan(most) | (self.usable & np.isnan(self._seen))):
            low[i] = high[i] = np.nan
            notes[i] = NOBODY
        return Ends(low, high, methods, notes)

    def _widening(self, cover: IntervalCover) -> Floats:
        """By what the reach must be multiplied for intervals of new estimates to cover f(z)."""
        sure = cover.level + np.sqrt(cover.level * (1 - cover.level) / CHECKED)
        rank = min(int(np.ceil(sure * CHECKED)), CHECKED) - 1
        needed = np.ones((CHECKED, len(self._seen)))
        inner = self._errors[:INNER]
        for i in range(CHECKED):
            drawn = self._estimate + self._errors[USED + i]
            value = self.function(drawn[None])[0]
            away = np.nan_to_num(self.function(drawn + inner) - value)
            bias = away.mean(axis=0)
            reach = np.quantile(np.abs(away - bias), cover.level, axis=0)
            off = np.abs(np.nan_to_num(value) - bias - np.nan_to_num(self._seen))
            needed[i] = np.divide(off, reach, out=np.ones_like(off), where=reach > 0)
        return np.asarray(np.maximum(np.sort(needed, axis=0)[rank], 1.0))


def function_of_table(source: CellEstimates, function: Callable[[Any], Any]) -> CheckedFunction:
    """A Python function of the table, which takes counts (floats, perhaps negative) by axis."""
    shape = tuple(axis.size for axis in source.schema.axes(source.axes))

    def each(tables: Floats) -> Floats:
        return np.stack([_number(function(table)) for table in tables])

    identity = sp.eye_array(source.cells.size, format="csr")
    return CheckedFunction(source, identity, (1, *shape), lambda t: each(t[:, 0]), _people)


def _number(found: Any) -> Floats:
    try:
        numbers = np.atleast_1d(np.asarray(found, dtype=float))
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or numbers.ndim != 1:
        raise InferenceError(
            "the function does not return a number.",
            remedy="Return a number, or a one-dimensional array of numbers.",
        )
    return numbers


def index_quantity(node: IndexOf, groups: CellGroups) -> Quantity:
    """The index that an expression asks for."""
    return INDICES[node.index](node, groups)


def _rows(node: IndexOf, groups: CellGroups) -> tuple[Any, tuple[int, int]]:
    """Which cells count for each level of each group, and the shape of both."""
    level, count = groups.levels_of(node.name)
    chosen = groups.selected(node.condition)
    place = groups.of_cell * count + level
    return groups.rows(chosen, place, groups.count * count), (groups.count, count)


def _people(tables: Floats) -> Floats:
    """How many people are in each group."""
    return np.asarray(tables.reshape(len(tables), -1).sum(axis=1))


def _most_people(source: CellEstimates, weights: Weights, groups: int) -> Floats:
    """How many people the figures leave in each group at most."""
    sums = sp.kron(sp.eye_array(groups), np.ones((1, weights.shape[0] // groups)), format="csr")
    return np.asarray(possible_sums(source, sums @ weights).most, dtype=float)


def _entropy(node: IndexOf, groups: CellGroups) -> Quantity:
    weights, shape = _rows(node, groups)
    ranges: SumRanges = possible_sums(groups.source, weights)
    levels = np.count_nonzero((ranges.most > 0).reshape(shape), axis=1)
    most = np.minimum(levels, _most_people(groups.source, weights, shape[0]))
    largest = np.log(np.where(most > 0, most, np.nan))  # no more kinds than people or levels
    return CheckedFunction(groups.source, weights, shape, entropy, _people, (0.0, largest))


def _gini(node: IndexOf, groups: CellGroups) -> Quantity:
    weights, shape = _rows(node, groups)
    amounts = _amounts(node, groups)
    bins = len(amounts)
    most = _most_people(groups.source, weights, shape[0])
    largest = np.where(most > 0, 1 - 1 / np.maximum(most, 1.0), np.nan)  # one of them has it all
    if amounts.min() < 0:
        largest = np.full(len(most), np.inf)
    return CheckedFunction(
        groups.source, weights, shape, lambda tables: gini(tables[..., :bins], amounts), _people,
        (np.where(amounts.min() < 0, -np.inf, 0.0), largest),
    )  # fmt: skip


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
    most = _most_people(groups.source, weights, groups.count)
    within = (0.0, np.where(most > 1, 1.0, np.nan))  # one person alone is like nobody else
    return CheckedFunction(groups.source, weights, shape, dissimilarity, most_moved, within)


def _amounts(node: IndexOf, groups: CellGroups) -> Floats:
    """The middle of every bin; an open bin needs a number."""
    amounts = []
    attribute = ordered(node.name, groups)
    for lower, upper in attribute.intervals:
        if lower is None or upper is None:
            amounts.append(_in_open_bin(node, lower, upper))
        elif attribute.kind == "integers":
            amounts.append(float(lower))
        else:
            amounts.append((float(lower) + float(upper)) / 2)
    return np.array(amounts, dtype=float)


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
