"""Universe: the databases among which a promise holds, and their enumeration when they are few.

Enumeration is for checking claims, not for production: every number the product prints about
privacy is compared with it on small universes. So is the stored rule of the existential reading,
which says what database stands in for "you had answer y": of all conforming tables in which
somebody has the answer the nearest to the true one, and of those the one that comes first when
counts are read in the order of the schema. The person takes that place and others keep theirs as
far as they can. Two promises may be added only if they use the same rule: with different ones, two
losses of 0 can hide a joint loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.invariants import Invariants

RULE = "nearest table, first in the order of the schema"
LARGEST_ENUMERATION = 200_000  # tables, before the figures select among them


@dataclass(frozen=True)
class Universe:
    """All databases of n people over the schema, or those that conform to published figures."""

    mandates: Invariants

    @property
    def words(self) -> str:
        """In words, for a guarantee."""
        figures = "; ".join(s.label for s in self.mandates.equalities)
        zeros = "; ".join(s.label for s in self.mandates.zeros)
        words = "all datasets over the schema"
        if figures:
            words = f"all datasets that agree with the published figures ({figures})"
        bounds = "; ".join(f"{s.label} {s.limit}" for s in self.mandates.bounds)
        if bounds:
            words += f"{' and' if figures else ' that'} keep the public bounds ({bounds})"
        return f"{words}, without what is impossible by definition ({zeros})" if zeros else words

    def tables(self, n: int) -> Iterator[Table]:
        """Every table of n people over the whole schema that agrees with the published figures."""
        schema = self.mandates.schema
        cells = schema.size(schema.names)
        if comb(n + cells - 1, n) > LARGEST_ENUMERATION:
            raise StructureError(
                f"{n} people in {cells} cells form {comb(n + cells - 1, n)} tables, more than "
                f"{LARGEST_ENUMERATION}.",
                remedy="Enumerate a smaller universe.",
            )
        shape = tuple(len(schema.axis(name).levels) for name in schema.names)
        for people in combinations_with_replacement(range(cells), n):
            counts = np.bincount(np.asarray(people, dtype=np.int64), minlength=cells)
            table = Table(schema, schema.names, counts.reshape(shape).astype(np.int64))
            if self.mandates.values is None or self.mandates.holds_for(table):
                yield table


def selected(figures: Invariants, table: Table, answer: tuple[int, ...]) -> Table:
    """The table that stands in when somebody is given `answer` (a cell, as level numbers).

    `table` is over the whole schema and agrees with the figures. Under nested figures somebody of
    the answer's atom moves there; otherwise all conforming tables are listed. Refused where they
    are too many, or where no conforming table has the answer.
    """
    if table.counts[answer] > 0:
        return table
    if figures.structure in ("none", "laminar") and not figures.bounds:
        return _moved(figures, table, answer)
    best: tuple[int, list[int]] | None = None
    for other in Universe(figures).tables(int(table.counts.sum())):
        if other.counts[answer] > 0:
            distance = int(np.abs(other.counts - table.counts).sum())
            found = (distance, other.counts.reshape(-1).tolist())
            best = found if best is None else min(best, found)
    if best is None:
        raise _impossible()
    counts = np.array(best[1], dtype=np.int64).reshape(table.counts.shape)
    return Table(table.schema, table.names, counts)


def _moved(figures: Invariants, table: Table, answer: tuple[int, ...]) -> Table:
    """Somebody of the same atom, in the first cell that has anybody, moves."""
    names = table.schema.names
    shape = [table.schema.attribute(n).size if n in figures.bases else 1 for n in names]
    atoms = np.broadcast_to(figures.atoms.reshape(shape), table.counts.shape)
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
