"""What each row that a unit may have costs: the same release for units with fewer and more rows.

The noise grows neither with the number of rows nor with a multiple of it by rule, since look-alikes
under exact figures change with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from congenial.data.arguments import takes
from congenial.mechanisms.mechanism import Mechanism
from congenial.pairs.several_rows import SeveralRows

MOST_LISTED = 5  # numbers of rows, the plan's own and one more among them


@dataclass(frozen=True)
class RowCost:
    """Units with at most `max_rows` rows: how far look-alikes are apart, and the noise it takes.

    `noise`: standard deviation at equal promise, as a multiple of the plan's own.
    """

    max_rows: int
    units: int
    slots: int
    noise: float


@takes(mechanism=Mechanism)
def row_costs(mechanism: Mechanism) -> list[RowCost]:
    """Fewer rows, as many as the plan allows, and one more; nothing where units have one row.

    Nor where the price of signs or another norm would change with it.
    """
    pairs, description = mechanism.adjacency, mechanism.description
    signed = description.nonnegative
    if not isinstance(pairs, SeveralRows) or signed or description.norm not in ("l1", "l2"):
        return []
    return [_cost(mechanism, pairs, rows) for rows in _listed(pairs.max_rows)]


def _listed(most: int) -> list[int]:
    """The plan's own number, one more, and some below it."""
    if most < MOST_LISTED:
        return list(range(1, most + 2))
    step = most / (MOST_LISTED - 1)
    return sorted({1, *(round(step * i) for i in range(1, MOST_LISTED)), most + 1})


def _cost(mechanism: Mechanism, pairs: SeveralRows, rows: int) -> RowCost:
    other, table = replace(pairs, max_rows=rows), mechanism.description.table
    if mechanism.description.norm == "l1":
        noise = float(other.l1(table).value / pairs.l1(table).value)
    else:
        noise = float(other.l2_squared(table).value / pairs.l2_squared(table).value) ** 0.5
    return RowCost(rows, other.units, other.slots, noise)
