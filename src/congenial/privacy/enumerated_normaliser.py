"""The exact loss of counts given signs and bounds, where all conforming tables can be listed.

p_s(m) = a^||m - s||_1 / Z(s) on the listed tables. The largest log ratio between s and s' is at
m = s: eps_cell ||s - s'||_1 + log Z(s') / Z(s). Tables that see the same numbers of tables at each
distance have the same Z for every eps_cell, so pairs fall into few kinds, and any eps_cell is then
judged at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from congenial.figures.figures import Figures
from congenial.figures.lattice import Ints
from congenial.figures.limits import conforming_tables

MOST_TABLES = 3000  # all pairs of which are compared
_GRID = 2**36  # losses are rounded up by one or two units of 2^-36, see `_up`


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Kinds of pairs of listed tables: (kind of s, kind of s', distance), and each kind's Z.

    `around[k, d]`: tables at distance d from a table of kind k. `exact`: the pairs at most some
    distance apart are those of look-alikes, and not more.
    """

    tables: int
    exact: bool
    around: Ints = field(repr=False)
    pairs: Ints = field(repr=False)

    def worst(self, eps_cell: Fraction, distance: int) -> Fraction:
        """The largest log ratio between tables at most `distance` apart, rounded up."""
        return self._largest(eps_cell, distance, lambda apart: float(eps_cell) * apart)

    def normaliser(self, eps_cell: Fraction, distance: int) -> Fraction:
        """The largest log Z(s') / Z(s) between them, rounded up."""
        return self._largest(eps_cell, distance, np.zeros_like)

    def _largest(self, eps_cell: Fraction, distance: int, more: Callable[[Any], Any]) -> Fraction:
        near = self.pairs[self.pairs[:, 2] <= distance]
        if not len(near):
            return Fraction(0)
        log_Z = np.log(self.around @ np.exp(-float(eps_cell) * np.arange(self.around.shape[1])))
        return _up(float((more(near[:, 2]) + log_Z[near[:, 1]] - log_Z[near[:, 0]]).max()))


def _up(value: float) -> Fraction:
    """On a grid, upwards by one unit at least.

    Every Z is a sum of at most a few hundred positive terms, one of which is 1. An exponent below
    700 is off by at most 2^-43 and exp, sums and logarithms by less; terms that underflow do not
    count. So `value` is off by less than 2^-40 for losses up to 100.
    """
    return Fraction(ceil(value * _GRID) + 1, _GRID)


@lru_cache(maxsize=16)
def enumerate_pairs(figures: Figures, table: tuple[str, ...], replaced: bool) -> Enumerated | None:
    """All pairs of tables over `table` that `figures` allow; None if they are too many.

    `replaced`: look-alikes have the same number of people.
    """
    listed = conforming_tables(figures, table)
    if listed is None or not 1 < len(listed) <= MOST_TABLES:
        return None
    apart = _distances(listed)
    widest = int(apart.max()) + 1
    counts = np.stack([np.bincount(row, minlength=widest) for row in apart])
    around, kind = np.unique(counts, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    people = listed.sum(axis=1)
    found = set()
    for i, row in enumerate(apart):
        alike = (people == people[i]) if replaced else np.ones(len(listed), dtype=bool)
        alike[i] = False
        codes = np.unique(kind[alike] * widest + row[alike])
        found |= {(int(kind[i]), code) for code in codes.tolist()}
    pairs = np.array([(k, code // widest, code % widest) for k, code in sorted(found)])
    return Enumerated(len(listed), _seen(figures, table), around, pairs.reshape(-1, 3))


def _distances(listed: Ints) -> Ints:
    """l1 distances of all pairs."""
    apart = np.zeros((len(listed), len(listed)), dtype=np.int64)
    for cell in listed.T:
        apart += np.abs(cell[:, None] - cell[None, :])
    return apart


def _seen(figures: Figures, table: tuple[str, ...]) -> bool:
    """Whether the table shows, in full, everything the figures speak of.

    Then every listed table is that of some conforming database, and tables at distance 2 d are
    those of databases d records apart.
    """
    shown = {axis.base for axis in figures.schema.axes(table) if axis.name == axis.base}
    return set(figures.bases) <= shown
