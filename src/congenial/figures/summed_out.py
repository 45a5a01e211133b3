"""Figures as tables see them that do not show all of their axes.

People by county, seen by tables of sex and age, is the number of people and nothing else: a sum of
figures that is the same in every county is a sum over all counties. So where no condition mentions
an attribute that the tables leave out, its axes can be summed out of every figure without losing
anything that the tables could show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from congenial.data.predicate import parse
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement


def summed_out(figures: Figures, names: Sequence[str]) -> Figures:
    """The figures over some attributes; as they are where a condition mentions another one.

    >>> from congenial import Schema, Table, publish, total
    >>> schema = Schema.from_dict({"area": {"levels": ["A", "B"]}, "ill": {"levels": ["0", "1"]}})
    >>> public = publish(Table(schema, schema.names, [[1, 2], [3, 4]]), total(by="area"))
    >>> found = summed_out(public, ["ill"])
    >>> found.statements[0].by, int(found.values[0])
    ((), 10)
    """
    inside = set(names)
    if set(figures.bases) <= inside or not _plain(figures, inside):
        return figures
    kept: dict[tuple[Any, ...], tuple[Statement, Any]] = {}
    values = figures.values or (None,) * len(figures.statements)
    for statement, value in zip(figures.statements, values, strict=True):
        bases = [figures.schema.axis(axis).base for axis in statement.by]
        out = tuple(at for at, base in enumerate(bases) if base not in inside)
        by = tuple(axis for axis, base in zip(statement.by, bases, strict=True) if base in inside)
        summed = None if value is None else np.asarray(np.sum(value, axis=out))
        kept.setdefault(
            (statement.terms, by, statement.relation), (replace(statement, by=by), summed)
        )
    statements = tuple(statement for statement, _ in kept.values())
    told = None if figures.values is None else tuple(value for _, value in kept.values())
    return Figures(figures.schema, statements, told)


def _plain(figures: Figures, inside: set[str]) -> bool:
    """Whether every condition is about attributes inside, and there are no bounds."""
    conditions = [
        condition for one in figures.statements for condition, _ in one.terms if condition
    ]
    bases = {base for one in conditions for base in parse(one, figures.schema).bases}
    return bases <= inside and not figures.bounds
