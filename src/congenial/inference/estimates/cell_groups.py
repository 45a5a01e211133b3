"""Which columns a question is about, which table of a release answers it, and the cells of groups.

Where none of several tables has the cells of all others, a printed table that shows the question
answers it: its estimates come from all measured tables together.

Records from tables have no one table of all their columns: each measured table has a law of its
own. An estimate comes from one that shows all columns of the question, combined with the measured
tables that are sums of it: a pair of columns with each of them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.attribute import Attribute
from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.data.table import cell_index, select
from congenial.errors import CongenialError, InferenceError
from congenial.inference.estimates.cell_estimates import CellEstimates, Weights
from congenial.inference.estimates.expression_language import (
    ArithmeticOf,
    BetweenOf,
    Expression,
    Question,
    parse_question,
)
from congenial.inference.estimates.quantities import CellSums
from congenial.mechanisms.cell_labels import words_name
from congenial.mechanisms.tables_files import said


def asked_columns(question: Question, schema: Schema) -> set[str]:
    """The attributes that conditions, quantiles, indices and groups of a question name.

    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 9]}})
    >>> sorted(asked_columns(parse_question("share(sex = 'f' | age >= 5)"), schema))
    ['age', 'sex']
    """
    return named_columns(*asked_names(question), schema)


def asked_names(question: Question) -> tuple[list[str], list[str]]:
    """The axes that a question names, and its conditions."""
    conditions, names = [], list(question.by)
    for node in leaves(question.expression):
        conditions += [getattr(node, field, "") for field in ("condition", "part", "whole")]
        names += [name for name in (getattr(node, "name", ""), getattr(node, "over", "")) if name]
    return names, conditions


def named_columns(names: Sequence[str], conditions: Sequence[str], schema: Schema) -> set[str]:
    """The attributes that names of axes and conditions are about."""
    bases_of_each = [parse(condition, schema).bases for condition in conditions if condition]
    return {schema.axis(name).base for name in names} | {
        base for bases in bases_of_each for base in bases
    }


def leaves(node: Expression) -> Iterator[Expression]:
    """The calls and numbers that an expression is made of."""
    if isinstance(node, ArithmeticOf):
        yield from leaves(node.left)
        yield from leaves(node.right)
    elif isinstance(node, BetweenOf):
        yield from leaves(node.inner)
    else:
        yield node


def table_showing(
    source: CellEstimates, names: Sequence[str], conditions: Sequence[str], text: str
) -> CellEstimates:
    """The cells that answer a question: a printed table's where no table has all cells."""
    views: Sequence[CellEstimates] = getattr(source, "views", ())
    if not views:
        return source
    columns = named_columns(names, conditions, source.schema)  # refuses unknown ones
    showing = [view for view in views if _shows(view, names, conditions)]
    if not showing:
        raise InferenceError(
            f"'{text}': no table of '{source.name}' shows {', '.join(sorted(columns))} together "
            "in this detail.",
            remedy=f"Ask about columns of one table: {'; '.join(said(v.axes) for v in views)}.",
        )
    return min(showing, key=lambda one: one.schema.size(one.axes))


def _shows(table: CellEstimates, names: Sequence[str], conditions: Sequence[str]) -> bool:
    """Whether cells of a table are neither too coarse for the axes nor for the conditions."""
    try:
        cell_index(table.schema, table.axes, tuple(dict.fromkeys(names)))
        for condition in conditions:
            select(condition, table.schema, table.axes)
    except CongenialError:
        return False
    return True


def has_parts(releases: Sequence[Any]) -> bool:
    """Whether some release has several measured tables of which one must be asked."""
    return any(callable(getattr(release, "tables_about", None)) for release in releases)


def answering(releases: Sequence[Any], what: Any) -> list[list[Any]]:
    """Releases in which measured tables stand for each release of records: the least noise first;
    further lists have other tables that show the columns, for questions that the first cuts. One
    release alone is answered from tables that combine.
    """
    if callable(what):
        raise InferenceError(
            "records from tables have no single table that a function could use.",
            remedy="Give it one of release.tables_about(['...', '...']).",
        )
    question = parse_question(what)
    each = [_tables(release, question) for release in releases]
    if len(releases) == 1:
        alone = [[table] for table in each[0]]
        return [*_with_sums(releases[0], each[0]), *alone]
    return [
        [tables[min(at, len(tables) - 1)] for tables in each] for at in range(max(map(len, each)))
    ]


def _tables(release: Any, question: Question) -> list[Any]:
    if not callable(getattr(release, "tables_about", None)):
        return [release]
    return tables_showing(release, asked_columns(question, release.schema), question.text)


def _with_sums(release: Any, tables: Sequence[Any]) -> list[list[Any]]:
    """Each table with the measured tables that are sums of it, where there are some."""
    return [[table, *sums] for table in tables if (sums := release.sums_of(table))]


def tables_showing(release: Any, columns: set[str], text: str) -> list[Any]:
    """The measured tables of a release of records that show these columns; refused without one."""
    about_columns = release.tables_about(columns)
    if not about_columns:
        raise InferenceError(
            f"'{text}': no table of '{release.name}' was measured that shows "
            f"{', '.join(sorted(columns))} together, so there is no interval.",
            remedy=release.instead(),
        )
    return list(about_columns)


def first_answer(choices: Sequence[list[Any]], answer: Any) -> Any:
    """The first answer that can be given; the last refusal where there is none."""
    for at, releases in enumerate(choices):
        try:
            return answer(releases)
        except CongenialError:
            if at == len(choices) - 1:
                raise
    raise AssertionError("no release is given")


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


def ordered(name: str, groups: CellGroups) -> Attribute:
    """The attribute behind a name, if its levels are numbers or bins of numbers."""
    axis = groups.table.schema.axis(name)
    attribute = groups.table.schema.attribute(axis.base)
    if axis.name != axis.base or not attribute.intervals:
        attributes = groups.table.schema.attributes
        numbered = [column.name for column in attributes if column.intervals][:8]
        raise InferenceError(
            f"the categories of {name!r} are text, not numbers.",
            remedy=f"Ask for {' or '.join(numbered)}." if numbered else "Ask for shares instead.",
        )
    return attribute


def _named_levels(schema: Schema, name: str) -> list[tuple[str, tuple[str, ...]]]:
    """The levels of an axis by the column they stand in; a second one for their labels, if any."""
    levels, shown_levels = schema.axis(name).levels, schema.shown_levels(name)
    words = [] if shown_levels == levels else [(words_name(schema, name), shown_levels)]
    return [(name, levels), *words]
