"""Universe: the databases among which a promise holds, and their enumeration when they are few.

Enumeration is for checking claims, not for production: every number the product prints about
privacy is compared with it on small universes.
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

LARGEST_ENUMERATION = 200_000  # tables, before the mandates select among them


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
