"""Classes of units under exact figures: what an attribute of a unit, or a figure about units, adds.

All rows of a unit share its class (block, tenure). Let (a, b, c) be proved for rows alone: with
classes fixed, any unit can be given any rows by changing a units, b slots and c rows of the table.

    figures about rows do not see classes      a + alpha_u - 1,   b,       c
    they see groups of classes                 a + 1,             b + k,   c + k

alpha_u is the number of units that must change so that one can have any class, given the figures
about units. In the first line the classes and the rows change independently of each other. In the
second, every figure about rows is told for each group (population by state, where units are counted
by block): the unit exchanges its whole content with one of the class it is to have, which no figure
sees, and its rows are then set within its new group, where the first proof applies. That needs the
number of units of each class to be exact, or, if nothing about units is published, units without
rows, of which one takes what the unit leaves behind. Everything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement, total
from congenial.pairs.adjacency import SemiAdjacent

NO_PROOF = "no proof covers"


@dataclass(frozen=True)
class Classes:
    """What is added to a proof for rows alone.

    `rows`: the figures about rows as one group of units sees them. `groups`: the axes of units by
    which every figure about rows is told.
    """

    rows: Figures
    more_units: int = 0
    exchanged: bool = False
    groups: tuple[str, ...] = ()


def classes_of(published: Figures, never_empty: bool) -> Classes:
    """Units and rows beyond those of a proof that knows rows only.

    >>> from congenial import Schema
    >>> from congenial.figures.statements import of_units
    >>> schema = Schema.from_dict(
    ...     {"block": {"levels": ["1", "2"], "of": "unit"}, "ill": {"levels": ["0", "1"]}}
    ... )
    >>> figures = Figures.of(schema, (total(), of_units(total(by="block"))))
    >>> classes_of(figures, never_empty=True).more_units
    1
    """
    rows = replace(published.of_rows, values=None)
    _refuse_sizes(published)
    if not _seen(rows, rows.statements):
        return Classes(rows, _reach(published.of_units) - 1)
    groups, within = _by_groups(rows)
    _refuse_open_groups(published.of_units, groups, never_empty)
    return Classes(within, 1, True, groups)


def _refuse_sizes(published: Figures) -> None:
    for statement in published.told:
        seen = _seen(published, [statement])
        for name in (one for one in seen if one in published.schema.sizes):
            raise StructureError(
                f"figure '{statement.label}' uses '{name}', the number of rows of a unit: "
                f"{NO_PROOF} this case.",
                remedy="Publish it without that attribute; a protected table may show it.",
            )


def _reach(units: Figures | None) -> int:
    """alpha_u: units that change so that one can have any class."""
    return 1 if units is None else max(1, int(SemiAdjacent(units).a_star.value))


def _seen(figures: Figures, statements: Iterable[Statement]) -> tuple[str, ...]:
    """Attributes of units that some statements mention."""
    bases = Cells(figures.schema, tuple(statements)).bases
    return tuple(name for name in bases if name in figures.schema.of_units)


def _axes_of_units(figures: Figures, statement: Statement) -> tuple[str, ...]:
    schema = figures.schema
    return tuple(name for name in statement.by if schema.axis(name).base in schema.of_units)


def _by_groups(rows: Figures) -> tuple[tuple[str, ...], Figures]:
    """The axes of units by which every figure is told, and the figures within one group."""
    for statement in rows.statements:
        if _seen(rows, [replace(statement, by=())]):
            raise _open(statement, "has a condition on an attribute of units")
    sets = {frozenset(_axes_of_units(rows, one)) for one in rows.statements}
    finest = max(sets, key=lambda axes: (rows.schema.size(sorted(axes)), sorted(axes)))
    groups = tuple(sorted(finest))
    told = [one for one in rows.statements if finest == {*_axes_of_units(rows, one)}]
    for statement in rows.statements:
        if statement not in told and not _holds_within(rows, told, statement):
            raise _open(statement, f"is not published for each {' and '.join(groups)}")
    zeros = [one for one in rows.zeros if one not in told]
    within = [replace(one, by=tuple(n for n in one.by if n not in finest)) for one in told]
    return groups, Figures(rows.schema, (*within, *zeros))


def _holds_within(rows: Figures, told: list[Statement], statement: Statement) -> bool:
    """Whether a statement says nothing that ties one group to another."""
    if statement.relation == "zero":
        return True  # impossible in every group alike
    both = Figures(rows.schema, (*told, statement))
    return statement.relation == "=" and statement.label in both.redundant


def _refuse_open_groups(units: Figures | None, groups: tuple[str, ...], full: bool) -> None:
    """StructureError unless the number of units of each class is exact, or nothing is told."""
    by = " and ".join(groups)
    if units is None:
        if full:
            raise StructureError(
                f"rows are counted for each {by}, an attribute of units that always have a row, "
                f"but units are not: {NO_PROOF} this case.",
                remedy=f"Publish the number of units by {by} too (total, units = true).",
            )
        return
    counted = total(by=groups).named("units of each group")
    both = Figures(units.schema, (*units.statements, counted))
    settled = not units.bounds and units.structure in ("none", "laminar")
    if not settled or counted.label not in both.redundant:
        raise StructureError(
            f"rows are counted for each {by}, but the figures about units do not give the number "
            f"of units in each class: {NO_PROOF} this case.",
            remedy=f"Publish the number of units by {by} (total, units = true) and no margins of "
            "units that cross it, or count rows without it.",
        )


def _open(statement: Statement, why: str) -> StructureError:
    return StructureError(
        f"figure '{statement.label}' counts rows and {why}: {NO_PROOF} this case.",
        remedy="Count rows for each value of the attribute (by), in every figure about rows; or "
        "count units (units = true).",
    )
