"""Tables of rows and tables of units together: how far both can move between the same look-alikes.

Where a table of units shows an attribute of units, look-alikes can change it in a units and c rows
besides: both kinds of tables move as far as each can alone, and what they lose adds up.

Tables of units by the number of their rows alone (households by size) are different: they move only
where sizes change, and that takes slots. Let a unit lose rem_i rows and gain add_i. The number of
rows being exact, sum add_i = sum rem_i = R, which is at least the number r of rows in which the
tables of rows differ. Its slots are max(add_i, rem_i) = (add_i + rem_i + |add_i - rem_i|) / 2, so

    b >= sum_i max(add_i, rem_i) = R + sum_i |add_i - rem_i| / 2 >= r + s / 2,

s being the units whose size differs. Hence r <= min(c, b - s / 2) and s <= a: the joint supremum is
at most the largest of F(r) + G(s) on that line, F and G being what each kind can move alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from congenial.pairs.moves import Weighted
from congenial.pairs.several_rows import SeveralRows


def saved_together(
    pairs: SeveralRows, rows: Sequence[Weighted], units: Sequence[Weighted], *, square: bool
) -> Fraction:
    """By how much the suprema of tables of rows and of units, added, exceed that of both at once.

    `rows` and `units`: axes and weight of each table. `square`: squared l2 norms, else l1 norms.
    0 where nothing less than the sum is proved.

    >>> from congenial import Schema, total
    >>> from congenial.figures.figures import Figures
    >>> from congenial.figures.statements import of_units
    >>> schema = Schema.from_dict(
    ...     {"size": {"integers": [1, 4], "of": "unit size"}, "ill": {"levels": ["0", "1"]}}
    ... )
    >>> pairs = SeveralRows.given(Figures.of(schema, (total(), of_units(total()))), 4)
    >>> one = Fraction(1)
    >>> pairs.l1(["ill"]).value, pairs.tables_of_units.l1(["size"]).value
    (Fraction(14, 1), Fraction(8, 1))
    >>> saved_together(pairs, [(("ill",), one)], [(("size",), one)], square=False)
    Fraction(4, 1)
    """
    if not (rows and units and _by_size_alone(pairs, rows, units)):
        return Fraction(0)
    most_rows, most_units = (
        _alone(pairs, rows, square),
        _alone(pairs.tables_of_units, units, square),
    )
    of_rows, of_units = (2 * sum((w for _, w in one), Fraction(0)) for one in (rows, units))
    together = max(
        min(most_rows, of_rows * _norm(max(0, pairs.slots - (changed + 1) // 2), square))
        + min(most_units, of_units * _norm(changed, square))
        for changed in range(pairs.units + 1)
    )
    return most_rows + most_units - together


def _norm(moved: int, square: bool) -> int:
    """Half the largest norm of a table in which so many rows or units differ."""
    return moved * moved if square else moved


def _alone(pairs: SeveralRows, tables: Sequence[Weighted], square: bool) -> Fraction:
    return (pairs.joint_l2_squared if square else pairs.joint_l1)(tables).value


def _by_size_alone(pairs: SeveralRows, rows: Iterable[Weighted], units: Iterable[Weighted]) -> bool:
    """Whether tables of units show sizes only, and tables of rows no attribute of units."""
    schema = pairs.schema
    shown = {schema.axis(name).base for names, _ in rows for name in names}
    counted = {schema.axis(name).base for names, _ in units for name in names}
    return not shown & {*schema.of_units} and counted <= {*schema.sizes}
