"""How far intervals must reach: one at a time, or all together.

Simulated errors give upper confidence bounds of quantiles, wrong with probability at most 1e-6: an
interval keeps its level whatever the simulation drew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.errors import InferenceError
from congenial.inference.estimates.cell_estimates import DRAWS, Floats
from congenial.mechanisms.error_laws import upper_rank


@dataclass(frozen=True)
class IntervalCover:
    """`level` for a law that is known, `rank` among the sizes of simulated errors."""

    level: float
    rank: int

    @classmethod
    def of_one(cls, level: float) -> IntervalCover:
        """Each interval holds by itself."""
        return cls(level, _rank(level))

    @classmethod
    def of_all(cls, level: float, sizes: Floats) -> IntervalCover:
        """All intervals hold together; `sizes` are joint draws of |error|, (DRAWS, estimates).

        Every estimate gets the same rank, the least for which all of them cover at the level.
        """
        ranks = np.column_stack([_ranks(one) for one in sizes.T if one.any()] or [[0] * DRAWS])
        largest = np.sort(ranks.max(axis=1))
        rank = max(int(largest[_rank(level) - 1]), 1)
        if rank >= DRAWS:
            raise InferenceError(
                f"{ranks.shape[1]} estimates cannot be covered jointly at {level} by {DRAWS:,} "
                "simulated tables.",
                remedy="Ask for fewer at once, for a lower level, or one by one.",
            )
        return cls(rank / DRAWS, rank)

    def split(self, parts: int) -> IntervalCover:
        """For each of several intervals that are to hold together (Bonferroni)."""
        rank = DRAWS - (DRAWS - self.rank) // parts
        if rank >= DRAWS:
            raise InferenceError(
                f"{DRAWS:,} simulated tables are too few for an expression of so many parts.",
                remedy="Ask for a lower level, or for the parts.",
            )
        return IntervalCover(1 - (1 - self.level) / parts, rank)

    def reach(self, sizes: Any) -> Floats:
        """For each column of |error| draws, how far an interval reaches."""
        return np.asarray(np.partition(sizes, self.rank - 1, axis=0)[self.rank - 1])

    def reaches(self, sizes: Any, distances: Any) -> Any:
        """For each column of |error| draws, whether an interval reaches so far.

        distances <= reach(sizes), by counting: far quicker than finding the quantile.

        >>> sizes = np.array([[1.0], [2.0], [2.0], [7.0]])
        >>> [bool(IntervalCover(0.5, 3).reaches(sizes, far)[0]) for far in (1.9, 2.0, 2.1)]
        [True, True, False]
        """
        return np.count_nonzero(sizes < distances, axis=0) < self.rank


def _rank(level: float) -> int:
    rank = upper_rank(level, DRAWS)
    if rank > DRAWS:
        raise InferenceError(
            f"a level of {level} needs more than {DRAWS:,} simulated tables.",
            remedy="Ask for at most 0.998.",
        )
    return rank


def _ranks(sizes: Floats) -> Any:
    """How many draws are at most as large as each."""
    return np.searchsorted(np.sort(sizes), sizes, side="right")
