"""Which columns a question is about, and which table of a release answers it.

Where none of several tables has the cells of all others, a printed table that shows the question
answers it: its estimates come from all measured tables together.

Records from tables have no one table of all their columns: each measured table has a law of its
own. An estimate comes from one that shows all columns of the question, combined with the measured
tables that are sums of it: a pair of columns with each of them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.data.table import cell_index, select
from congenial.errors import CongenialError, InferenceError
from congenial.inference.estimates.cell_estimates import CellEstimates
from congenial.inference.estimates.expression_language import (
    ArithmeticOf,
    BetweenOf,
    Expression,
    Question,
    parse_question,
)
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
    for node in _leaves(question.expression):
        conditions += [getattr(node, one, "") for one in ("condition", "part", "whole")]
        names += [one for one in (getattr(node, "name", ""), getattr(node, "over", "")) if one]
    return names, conditions


def named_columns(names: Sequence[str], conditions: Sequence[str], schema: Schema) -> set[str]:
    """The attributes that names of axes and conditions are about."""
    told = [parse(one, schema).bases for one in conditions if one]
    return {schema.axis(name).base for name in names} | {base for bases in told for base in bases}


def _leaves(node: Expression) -> Iterator[Expression]:
    if isinstance(node, ArithmeticOf):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    elif isinstance(node, BetweenOf):
        yield from _leaves(node.inner)
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
    found = [one for one in views if _shows(one, names, conditions)]
    if not found:
        raise InferenceError(
            f"'{text}': no table of '{source.name}' shows {', '.join(sorted(columns))} together "
            "in this detail.",
            remedy=f"Ask about columns of one table: {'; '.join(said(v.axes) for v in views)}.",
        )
    return min(found, key=lambda one: one.schema.size(one.axes))


def _shows(table: CellEstimates, names: Sequence[str], conditions: Sequence[str]) -> bool:
    """Whether cells of a table are neither too coarse for the axes nor for the conditions."""
    try:
        cell_index(table.schema, table.axes, tuple(dict.fromkeys(names)))
        for one in conditions:
            select(one, table.schema, table.axes)
    except CongenialError:
        return False
    return True


def has_parts(releases: Sequence[Any]) -> bool:
    """Whether some release has several measured tables of which one must be asked."""
    return any(callable(getattr(one, "tables_about", None)) for one in releases)


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
    each = [_tables(one, question) for one in releases]
    if len(releases) == 1:
        alone = [[one] for one in each[0]]
        return [*_with_sums(releases[0], each[0]), *alone]
    return [[told[min(at, len(told) - 1)] for told in each] for at in range(max(map(len, each)))]


def _tables(release: Any, question: Question) -> list[Any]:
    if not callable(getattr(release, "tables_about", None)):
        return [release]
    return tables_showing(release, asked_columns(question, release.schema), question.text)


def _with_sums(release: Any, tables: Sequence[Any]) -> list[list[Any]]:
    """Each table with the measured tables that are sums of it, where there are some."""
    return [[one, *sums] for one in tables if (sums := release.sums_of(one))]


def tables_showing(release: Any, columns: set[str], text: str) -> list[Any]:
    """The measured tables of a release of records that show these columns; refused without one."""
    found = release.tables_about(columns)
    if not found:
        raise InferenceError(
            f"'{text}': no table of '{release.name}' was measured that shows "
            f"{', '.join(sorted(columns))} together, so there is no interval.",
            remedy=release.instead(),
        )
    return list(found)


def first_answer(choices: Sequence[list[Any]], answer: Any) -> Any:
    """The first answer that can be given; the last refusal where there is none."""
    for at, releases in enumerate(choices):
        try:
            return answer(releases)
        except CongenialError:
            if at == len(choices) - 1:
                raise
    raise AssertionError("no release is given")
