"""From a question to quantities: conditions become sums of cells, for every group after 'by'."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.attribute import Attribute
from congenial.data.schema import Schema
from congenial.data.table import cell_index, select
from congenial.errors import CongenialError, InferenceError
from congenial.inference.estimates.cell_estimates import CellEstimates, Weights
from congenial.inference.estimates.expression_language import (
    ArithmeticOf,
    BetweenOf,
    Constant,
    CountOf,
    Expression,
    IndexOf,
    QuantileOf,
    Question,
    RateOf,
    ShareOf,
)
from congenial.inference.estimates.indices import index_quantity
from congenial.inference.estimates.ordered_quantiles import OrderedQuantile
from congenial.inference.estimates.outside_file import Outside
from congenial.inference.estimates.quantities import CellSums, Quantity, Ratio, combine
from congenial.mechanisms.cell_labels import words_name


@dataclass(frozen=True)
class CellGroups:
    """The cells of a table, sorted into the groups after 'by'.

    `offset`: where the table's cells begin among all cells of `source`.
    """

    source: CellEstimates
    table: CellEstimates
    by: tuple[str, ...]
    offset: int = 0

    @cached_property
    def labels(self) -> list[dict[str, str]]:
        """The levels of each group, and beside codes what readers call them."""
        schema = self.table.schema
        axes = schema.axes(self.by)
        named = [_named_levels(schema, axis.name) for axis in axes]
        shape = tuple(axis.size for axis in axes)
        return [
            {name: levels[i] for each, i in zip(named, index, strict=True) for name, levels in each}
            for index in np.ndindex(*shape)
        ]

    @property
    def count(self) -> int:
        """How many groups."""
        return len(self.labels)

    @cached_property
    def of_cell(self) -> Any:
        """The group of each cell."""
        return self._index(self.by)

    def _index(self, names: tuple[str, ...]) -> Any:
        """For each cell, its place in the table over other axes."""
        schema, axes = self.table.schema, self.table.axes
        of_names = schema.axes(names)  # refuses unknown ones
        try:
            index = cell_index(schema, axes, names)
        except CongenialError:
            asked = ", ".join(axis.name for axis in of_names)
            raise InferenceError(
                f"'{self.table.name}' does not show {asked}: its finest table is over "
                f"{', '.join(axes)}.",
                remedy="Ask by one of these or a coarser name, or ask a bundle that shows it.",
            ) from None
        shape = tuple(axis.size for axis in schema.axes(axes))
        return np.broadcast_to(index, shape).reshape(-1)

    def selected(self, condition: str) -> Any:
        """The cells whose people meet a condition."""
        return select(condition, self.table.schema, self.table.axes).reshape(-1)

    def rows(self, chosen: Any, row: Any, count: int) -> Weights:
        """Sums of the chosen cells, `row` naming the sum of each cell."""
        cells = np.flatnonzero(chosen)
        at = (np.ones(len(cells)), (row[cells], cells + self.offset))
        return sp.csr_array(at, shape=(count, self.source.cells.size))

    def sums(self, condition: str) -> CellSums:
        """How many people of each group meet a condition."""
        weights = self.rows(self.selected(condition), self.of_cell, self.count)
        return CellSums.of(self.source, weights)

    def constant(self, value: Any) -> CellSums:
        """A number for each group."""
        none = sp.csr_array((self.count, self.source.cells.size))
        return CellSums.of(self.source, none, value)

    def levels_of(self, name: str) -> tuple[Any, int]:
        """For each cell, its level on an axis, and how many there are."""
        return self._index((name,)), self.table.schema.axis(name).size


def resolve(question: Question, tables: Sequence[CellGroups], outside: Outside | None) -> Quantity:
    """What a question asks of one table, or of two beside each other."""
    try:
        return _resolve(question.expression, tables, outside)
    except CongenialError as error:
        if question.text in str(error):
            raise
        raise type(error)(f"'{question.text}': {error.what}", remedy=error.remedy) from None


def _resolve(node: Expression, tables: Sequence[CellGroups], outside: Outside | None) -> Quantity:
    groups = tables[0]
    if isinstance(node, BetweenOf):
        return _between(node, tables, outside)
    if isinstance(node, ArithmeticOf):
        left = _resolve(node.left, tables, outside)
        return combine(node.operator, left, _resolve(node.right, tables, outside))
    if isinstance(node, Constant):
        return groups.constant(node.value)
    if isinstance(node, CountOf):
        return groups.sums(node.condition)
    if isinstance(node, ShareOf):
        return _share(node, groups)
    if isinstance(node, RateOf):
        return _rate(node, groups, outside)
    if isinstance(node, QuantileOf):
        return _quantile(node, groups)
    assert isinstance(node, IndexOf)
    return index_quantity(node, groups)


def _share(node: ShareOf, groups: CellGroups) -> Ratio:
    whole = groups.selected(node.whole)
    part = groups.rows(whole & groups.selected(node.part), groups.of_cell, groups.count)
    return Ratio(CellSums.of(groups.source, part), groups.sums(node.whole), (0.0, 1.0))


def _rate(node: RateOf, groups: CellGroups, outside: Outside | None) -> Quantity:
    if outside is None:
        raise InferenceError(
            f"rate(...) needs the column '{node.column}' of an outside file, and no file is given.",
            remedy="Give it with --outside FILE (in Python: outside=...).",
        )
    people = outside.per_group(node.column, groups.table.schema, groups.by)
    return groups.sums(node.condition).times(node.per / people)


def _between(node: BetweenOf, tables: Sequence[CellGroups], outside: Outside | None) -> Quantity:
    if len(tables) != 2:
        raise InferenceError(
            f"change and growth compare two bundles, but {len(tables)} is given."
            if len(tables) == 1
            else f"change and growth compare two bundles, not {len(tables)}.",
            remedy="Give the earlier bundle first, then the later one.",
        )
    before = _resolve(node.inner, tables[:1], outside)
    after = _resolve(node.inner, tables[1:], outside)
    if not node.growth:
        return combine("-", after, before)
    return combine("-", combine("/", after, before), tables[0].constant(1.0))


def _quantile(node: QuantileOf, groups: CellGroups) -> OrderedQuantile:
    attribute = ordered(node.name, groups)
    level, count = groups.levels_of(node.name)
    chosen, bins = groups.selected(node.condition), len(attribute.intervals)
    rows = groups.rows(
        chosen & (level < bins), groups.of_cell * count + level, groups.count * count
    )
    each = [rows[g * count : g * count + bins] for g in range(groups.count)]
    return OrderedQuantile(groups.source, each, attribute, node.probability)


def ordered(name: str, groups: CellGroups) -> Attribute:
    """The attribute behind a name, if its levels are numbers or bins of numbers."""
    axis = groups.table.schema.axis(name)
    attribute = groups.table.schema.attribute(axis.base)
    if axis.name != axis.base or not attribute.intervals:
        numbered = [one.name for one in groups.table.schema.attributes if one.intervals][:8]
        raise InferenceError(
            f"the categories of {name!r} are text, not numbers.",
            remedy=f"Ask for {' or '.join(numbered)}." if numbered else "Ask for shares instead.",
        )
    return attribute


def _named_levels(schema: Schema, name: str) -> list[tuple[str, tuple[str, ...]]]:
    """The levels of an axis by the column they stand in; a second one for their labels, if any."""
    levels, shown = schema.axis(name).levels, schema.shown_levels(name)
    words = [] if shown == levels else [(words_name(schema, name), shown)]
    return [(name, levels), *words]
