"""Exact figures of a nation as one part sees them, and as what lies above the parts sees them.

A figure by areas at least as fine as the parts says something about each part alone. Seen by tables
above the parts it is its sum over each part, and nothing else: see `above_parts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from congenial.data.area_parts import AreaParts
from congenial.data.predicate import parse
from congenial.errors import SchemaError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement


def refuse_across(figures: Figures, parts: AreaParts) -> None:
    """StructureError for a figure that ties parts together: they could not be drawn apart."""
    base = parts.attribute.name
    if figures.of_units is not None:
        raise StructureError(
            "some exact figures count units, but a release by parts needs figures that count rows.",
            remedy="Leave out parts, or the figures about units.",
        )
    for statement in figures.statements:
        bases = {
            b for condition, _ in statement.terms if condition for b in _bases(condition, figures)
        }
        if base in bases:
            raise StructureError(
                f"'{statement.label}' counts only some categories of {base}, but all parts must "
                "have the same figures.",
                remedy=f"Publish it by {parts.parts}, or leave out parts.",
            )
        if statement.relation == "=" and not _within(statement, parts):
            raise StructureError(
                f"'{statement.label}' is published over several of {parts.parts!r}, so the parts "
                "cannot be drawn separately.",
                remedy=f"Publish it by {parts.parts} or by finer areas, or choose coarser parts.",
            )


def _bases(condition: str, figures: Figures) -> tuple[str, ...]:
    return tuple(parse(condition, figures.schema).bases)


def _within(one: Statement, parts: AreaParts) -> bool:
    name = parts.geographic(one.by)
    if name is None:
        return False
    try:
        parts.schema.axis(parts.parts).map_from(parts.schema.axis(name))
    except SchemaError:
        return False
    return True


def of_part(figures: Figures, parts: AreaParts, part: int) -> Figures:
    """The figures of one part."""
    areas = parts.areas(part)
    values = None
    if figures.values is not None:
        pairs = zip(figures.statements, figures.values, strict=True)
        values = tuple(
            None if v is None else _cut(statement, v, parts, areas) for statement, v in pairs
        )
    return Figures(parts.schema_of(part), figures.statements, values)


def above_parts(figures: Figures, parts: AreaParts) -> Figures:
    """The figures summed over each part.

    What a table T above the parts can show of them is T(ker A). A difference of tables of the parts
    with the summed figures zero is T u for a u with every figure zero, if some area of the part can
    hold whatever the part can (`refuse_emptier_areas`): put all of it in that area.
    """
    summed_figures: dict[tuple[Any, ...], tuple[Statement, Any]] = {}
    values = figures.values or (None,) * len(figures.statements)
    for statement, value in zip(figures.statements, values, strict=True):
        name = parts.geographic(statement.by)
        by = tuple(parts.parts if axis == name else axis for axis in statement.by)
        key = (statement.terms, by, statement.relation)
        if key not in summed_figures:
            summed = None if value is None else _summed(statement, value, parts)
            summed_figures[key] = (replace(statement, by=by), summed)
    sums = None if figures.values is None else tuple(value for _, value in summed_figures.values())
    return Figures(parts.upper, tuple(statement for statement, _ in summed_figures.values()), sums)


def _cut(one: Statement, value: Any, parts: AreaParts, areas: Any) -> Any:
    name = parts.geographic(one.by)
    assert name is not None
    areas_of_figure = parts.schema.axis(name).of_base[areas]
    first = np.sort(np.unique(areas_of_figure, return_index=True)[1])
    return np.take(value, areas_of_figure[first], axis=one.by.index(name))


def _summed(one: Statement, value: Any, parts: AreaParts) -> Any:
    name = parts.geographic(one.by)
    assert name is not None
    schema = parts.schema
    owner = schema.axis(parts.parts).map_from(schema.axis(name))
    at = one.by.index(name)
    moved = np.moveaxis(value, at, 0)
    sums = np.zeros((len(parts.labels), *moved.shape[1:]), dtype=np.int64)
    np.add.at(sums, owner, moved)
    return np.moveaxis(sums, 0, at)


def refuse_emptier_areas(figures: Figures, part: int, parts: AreaParts) -> None:
    """StructureError where figures that cross leave every area of a part emptier than the part.

    `figures` are those of the part. Areas whose atoms' sums are known need no such area: each atom
    that the part can hold can be held by some area.
    """
    if figures.values is None or figures.atom_totals is not None:
        return
    empty = []
    for statement, value in zip(figures.statements, figures.values, strict=True):
        name = parts.geographic(statement.by)
        if value is None or name is None or min(weight for _, weight in statement.terms) < 0:
            continue
        axis = figures.schema.axis(name)
        moved = np.moveaxis(value, statement.by.index(name), 0).reshape(axis.size, -1)
        mine = (moved == 0)[axis.of_base]
        empty.append(mine & (moved.sum(axis=0) > 0))
    if empty and np.all(np.hstack(empty).any(axis=1)):
        raise StructureError(
            f"with these crossing figures, no area of part {part + 1} of {len(parts.labels)} "
            "leaves every answer of the part possible for everybody.",
            remedy=f"Choose parts coarser than {parts.parts}, or leave out parts.",
        )


# ---- summed out ---------------------------------------------------------------------------------
#
# Figures as tables see them that do not show all of their axes.
#
# People by county, seen by tables of sex and age, is the number of people and nothing else: a sum
# of figures that is the same in every county is a sum over all counties. So where no condition
# mentions an attribute that the tables leave out, its axes can be summed out of every figure
# without losing anything that the tables could show.


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
    summed_figures: dict[tuple[Any, ...], tuple[Statement, Any]] = {}
    values = figures.values or (None,) * len(figures.statements)
    for statement, value in zip(figures.statements, values, strict=True):
        bases = [figures.schema.axis(axis).base for axis in statement.by]
        out = tuple(at for at, base in enumerate(bases) if base not in inside)
        by = tuple(axis for axis, base in zip(statement.by, bases, strict=True) if base in inside)
        summed = None if value is None else np.asarray(np.sum(value, axis=out))
        summed_figures.setdefault(
            (statement.terms, by, statement.relation), (replace(statement, by=by), summed)
        )
    statements = tuple(statement for statement, _ in summed_figures.values())
    sums = None if figures.values is None else tuple(value for _, value in summed_figures.values())
    return Figures(figures.schema, statements, sums)


def _plain(figures: Figures, inside: set[str]) -> bool:
    """Whether every condition is about attributes inside, and there are no bounds."""
    conditions = [
        condition for text in figures.statements for condition, _ in text.terms if condition
    ]
    bases = {base for text in conditions for base in parse(text, figures.schema).bases}
    return bases <= inside and not figures.bounds
