"""A heat-bath chain for nonnegative tables with given margins: NOT certified, a baseline only.

The same law as `TwoWayCounts`, p(m) ~ a^||m - s||_1 on m >= 0 with the margins of s, for any size.
An update picks two rows and two columns and redraws the step t of the swap (+t -t / -t +t) given
all else. Swaps connect all tables with the same margins, so the law is the limit; nothing is proved
about how close a finite run is, and a run that starts at s leaks s. A release drawn from it has no
promise: its basis is "uncertified chain".
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.inversion import Ints, positive_rational
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way.lattice_gaussian import checked_tables
from congenial.sampling.two_way.margin_counts import checked_counts, log_weight

_BATCH = 1 << 16  # updates at a time


class HeatBath:
    """`sweeps` x (r c) updates from a public start: an approximate draw, labelled as such.

    start: a table with the margins of s, by default the north-west corner table of the margins.
    The normaliser is not known (log_Z is None); doubles are used throughout (log_ratio_error is
    None: no bound).

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> s = np.array([[3, 0, 2], [1, 4, 0], [2, 2, 2]])
    >>> m = HeatBath(s, 1, sweeps=5).draw(SeededRandomness(1))
    >>> bool((m.sum(axis=0) == s.sum(axis=0)).all())
    True
    """

    certified = False
    basis = "uncertified chain"
    log_Z: float | None = None
    log_ratio_error: float | None = None

    def __init__(
        self,
        s: npt.ArrayLike,
        eps_cell: Fraction | int,
        *,
        sweeps: int,
        start: npt.ArrayLike | None = None,
    ) -> None:
        self.eps_cell = positive_rational("eps_cell", eps_cell)
        self._s = checked_counts(s)
        self.shape: tuple[int, int] = (self._s.shape[0], self._s.shape[1])
        if sweeps < 1:
            raise StructureError(f"{sweeps} sweeps move nothing.", remedy="Give sweeps >= 1.")
        self.sweeps = int(sweeps)
        if start is None:
            start = corner(self._s.sum(axis=1), self._s.sum(axis=0))
        self._start = checked_tables(start, self.shape).copy()
        if not np.isfinite(self.log_weight(self._start)):
            raise StructureError(
                "the start is not a nonnegative table with the margins of s.",
                remedy="Leave it out: a table is then made from the margins.",
            )

    def __repr__(self) -> str:
        r, c = self.shape
        return f"HeatBath({r} x {c}, eps_cell={self.eps_cell}, sweeps={self.sweeps}, uncertified)"

    def log_weight(self, m: npt.ArrayLike) -> Any:
        """-eps_cell ||m - s||_1, or -inf off the support."""
        return log_weight(self._s, self.eps_cell, m)

    def draw(self, randomness: Randomness) -> Ints:
        """The table after `sweeps` sweeps from the start."""
        one: Ints = self.draw_many(randomness, 1)[0]
        return one

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n tables of one run, `sweeps` sweeps apart: dependent. Two words per update."""
        out = np.empty((n, *self.shape), dtype=np.int64)
        m = self._start.copy()
        for i in range(n):
            if min(self.shape) > 1:
                self._run(m, randomness)
            out[i] = m
        return out

    def _run(self, m: Ints, randomness: Randomness) -> None:
        from congenial.sampling.two_way import margin_kernels as kernels

        updates = self.sweeps * m.size
        for begin in range(0, updates, _BATCH):
            words = randomness.words(2 * min(_BATCH, updates - begin))
            kernels.swap(m, self._s, float(self.eps_cell), words)


def corner(rows: Ints, columns: Ints) -> Ints:
    """The north-west corner table: a table with these margins, made of them alone.

    >>> corner(np.array([3, 2]), np.array([1, 4])).tolist()
    [[1, 2], [0, 2]]
    """
    below_row, below_column = np.cumsum(rows)[:, None], np.cumsum(columns)[None, :]
    low = np.maximum(below_row - rows[:, None], below_column - columns[None, :])
    table: Ints = np.maximum(0, np.minimum(below_row, below_column) - low)
    return table
