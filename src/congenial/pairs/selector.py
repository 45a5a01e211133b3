"""The stored rule of the existential reading: which database stands in for "you had answer y".

Of all conforming tables in which somebody has the answer it picks the nearest to the true one, and
of those the one that comes first when counts are read in the order of the schema. The person takes
that place and others keep theirs as far as they can. Two promises may be added only if they use the
same rule: with different ones, two losses of 0 can hide a joint loss.
"""

from __future__ import annotations

import numpy as np

from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.invariants import Invariants
from congenial.pairs.universe import Universe

RULE = "nearest table, first in the order of the schema"


def selected(mandates: Invariants, table: Table, answer: tuple[int, ...]) -> Table:
    """The table that stands in when somebody is given `answer` (a cell, as level numbers).

    `table` is over the whole schema and agrees with the mandates. Under nested mandates somebody of
    the answer's atom moves there; otherwise all conforming tables are listed. Refused where they
    are too many, or where no conforming table has the answer.
    """
    if table.counts[answer] > 0:
        return table
    if mandates.structure in ("none", "laminar") and not mandates.bounds:
        return _moved(mandates, table, answer)
    best: tuple[int, list[int]] | None = None
    for other in Universe(mandates).tables(int(table.counts.sum())):
        if other.counts[answer] > 0:
            distance = int(np.abs(other.counts - table.counts).sum())
            found = (distance, other.counts.reshape(-1).tolist())
            best = found if best is None else min(best, found)
    if best is None:
        raise _impossible()
    counts = np.array(best[1], dtype=np.int64).reshape(table.counts.shape)
    return Table(table.schema, table.names, counts)


def _moved(mandates: Invariants, table: Table, answer: tuple[int, ...]) -> Table:
    """Somebody of the same atom, in the first cell that has anybody, moves."""
    names = table.schema.names
    shape = [table.schema.attribute(n).size if n in mandates.bases else 1 for n in names]
    atoms = np.broadcast_to(mandates.atoms.reshape(shape), table.counts.shape)
    there = np.flatnonzero((atoms == atoms[answer]) & (table.counts > 0))
    if atoms[answer] < 0 or not len(there):
        raise _impossible()
    counts = table.counts.copy()
    counts.reshape(-1)[there[0]] -= 1
    counts[answer] += 1
    return Table(table.schema, names, counts)


def _impossible() -> StructureError:
    return StructureError(
        "the published figures leave nobody this answer.", remedy="Ask for a possible answer."
    )
