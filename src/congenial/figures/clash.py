"""Which figures, bounds and structural zeros contradict one another.

Exact arithmetic settles most cases; the others are decided by linear programming over merged cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from congenial.figures import lattice
from congenial.figures.cells import first_places
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement


def smallest_clash(figures: Figures) -> tuple[str, ...]:
    """Labels of a smallest set of statements that no table of counts satisfies; empty if none.

    Published values count once they are known. Statements are left out one by one as long as the
    others still contradict one another, so that each one named is needed.

    >>> from congenial import Schema, at_least, at_most, count, total
    >>> schema = Schema.from_dict({"ill": {"levels": ["no", "yes"]}})
    >>> few, many = at_most(total(), 3), at_least(count("ill = 'yes'"), 4)
    >>> len(smallest_clash(Figures(schema, (few, many))))
    2
    """
    if figures.of_units is not None and figures.of_units.clash:
        return figures.of_units.clash
    able = [s for s in figures.statements if s.relation != "=" or figures.values is not None]
    if not able or _agrees(figures) or _feasible(figures, able):
        return ()
    for statement in list(able):  # deletion filter: keep only what is needed to clash
        rest = [s for s in able if s is not statement]
        if not _feasible(figures, rest):
            able = rest
    return tuple(s.label for s in able)


def _agrees(figures: Figures) -> bool:
    """Whether exact arithmetic alone settles that some table has the published figures."""
    totals = figures.atom_totals
    return not figures.bounds and totals is not None and bool(np.all(totals >= 0))


def _feasible(figures: Figures, statements: Sequence[Statement]) -> bool:
    """Whether some table of nonnegative numbers satisfies these statements."""
    cells = figures.cells
    counted = [s for s in statements if s.relation != "zero"]
    first = cells.told_apart(statements)
    impossible = cells.touched_at([s for s in statements if s.relation == "zero"], first)
    places = first_places(np.where(impossible, -1, cells.classes_at(counted, first)))
    kept = first[places[places >= 0]]
    limits = [limits_of(figures, statement) for statement in counted]
    low, high = [np.zeros(0)], [np.zeros(0)]
    low += [least for least, _ in limits]
    high += [most for _, most in limits]
    matrix = cells.matrix(counted, kept)
    return lattice.feasible(matrix, np.concatenate(low), np.concatenate(high))


def limits_of(figures: Figures, statement: Statement) -> tuple[Any, Any]:
    """The least and the largest number that a figure or bound allows, for each of its rows."""
    told = _values_or_bound(figures, statement)
    low = np.full(len(told), -np.inf) if statement.relation == "<=" else told
    return low, np.full(len(told), np.inf) if statement.relation == ">=" else told


def _values_or_bound(figures: Figures, statement: Statement) -> Any:
    if statement.relation == "=":
        assert figures.values is not None
        told = figures.values[figures.statements.index(statement)]
        assert told is not None
        return told.reshape(-1).astype(float)
    return np.full(figures.schema.size(statement.by), float(statement.bound or 0))
