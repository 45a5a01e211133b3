"""Figures about rows and about units that no data have together: more households than people, or
more people than so many households can have.

Every unit that is counted has 1 to k rows. So, within the units of one class (what all rows of a
unit share), there are at least as many rows as units and at most k times as many. Cells and classes
that no figure tells apart are taken together, and a linear programme decides whether any numbers
are left. It can pass figures that whole numbers alone rule out, or that tell very many cells apart;
it never refuses what some data have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Ints
from congenial.errors import FigureError
from congenial.figures import lattice
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures, limits_of
from congenial.figures.statements import Statement

LARGEST = 200_000  # cells that the figures tell apart, up to which the programme is solved


def refuse_unmet(figures: Figures, max_rows: int) -> None:
    """FigureError where no units with 1 to `max_rows` rows have these figures and bounds.

    >>> from congenial import Schema, at_most, at_least, total
    >>> from congenial.figures.statements import of_units
    >>> schema = Schema.from_dict({"ill": {"levels": ["no", "yes"]}})
    >>> few = at_most(total(), 6)
    >>> refuse_unmet(Figures.of(schema, (few, of_units(at_least(total(), 2)))), max_rows=3)
    >>> many = of_units(at_least(total(), 7))
    >>> refuse_unmet(Figures.of(schema, (few, many)), max_rows=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    congenial.errors.FigureError: these figures about rows and about units contradict...
    """
    if figures.of_units is None or _met(figures.of_rows, figures.of_units, max_rows):
        return
    raise FigureError(
        f"these figures about rows and about units contradict each other: with 1 to {max_rows} "
        "rows per unit, some unit would have no row or too many.",
        remedy="Compute all of them from the same dataset, or correct a bound or max_rows.",
    )


def _met(rows: Figures, units: Figures, most: int) -> bool:
    """Whether some numbers of rows and of units agree with both; True if there are too many."""
    cells = Cells(rows.schema, (*rows.statements, *units.statements))
    first = cells.told_apart(cells.statements)
    if len(first) > LARGEST:
        return True
    (of_rows, *row_limits), (of_units, *unit_limits) = _counted(rows), _counted(units)
    own = first[~cells.touched(rows.zeros)[first]]
    classes, place = np.unique(_class_of(cells, own), return_index=True)
    inside = sp.csr_matrix(
        (np.ones(len(own)), (np.searchsorted(classes, _class_of(cells, own)), np.arange(len(own)))),
        shape=(len(classes), len(own)),
    )
    each = sp.identity(len(classes), format="csr")
    blocks = [
        [cells.matrix(of_rows, own), sp.csr_matrix((_height(rows, of_rows), len(classes)))],
        [sp.csr_matrix((_height(units, of_units), len(own))), cells.matrix(of_units, own[place])],
        [inside, -each],
        [-inside, most * each],
    ]
    none = np.zeros(2 * len(classes))
    low, high = (
        np.concatenate([*row_limits[at], *unit_limits[at], beside])
        for at, beside in enumerate((none, none + np.inf))
    )
    return lattice.feasible(sp.bmat(blocks, format="csr"), low, high)


def _counted(figures: Figures) -> tuple[tuple[Statement, ...], list[Any], list[Any]]:
    """The statements whose numbers are known, and between what they are."""
    numbered = [s for s in figures.statements if s.relation != "zero"]
    numbered = [s for s in numbered if s.relation != "=" or figures.values is not None]
    limits = [limits_of(figures, statement) for statement in numbered]
    return tuple(numbered), [low for low, _ in limits], [high for _, high in limits]


def _height(figures: Figures, statements: tuple[Statement, ...]) -> int:
    return sum(figures.schema.size(statement.by) for statement in statements)


def _class_of(cells: Cells, some: Ints) -> Ints:
    """A number for what the figures see of a unit in each of some cells."""
    of_units = [name in cells.schema.of_units for name in cells.bases]
    sizes = np.where(of_units, cells.shape, 1)
    number = np.zeros(len(some), dtype=np.int64)
    for size, levels in zip(sizes, cells.places(some), strict=True):
        number = number * size + np.minimum(levels, size - 1)
    return number
