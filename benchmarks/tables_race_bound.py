"""How good race totals of Pennsylvania can be under pure epsilon, whatever the split of epsilon.

Run `python -m benchmarks tables_race_bound --data DIR`, as `tables_pennsylvania`. Every table moves
by 4 between look-alikes, so the parameters of the six tables add up to epsilon / 4. For cells at
most so many times as wide as alone, the rest is at most the share at which cells would be that wide
if the whole rest were spent on every coarser table at once. The information on race totals is
concave in the precisions, so its tangent plane at any design bounds it; precisions are convex in
the parameters, so that bound is largest where one table has all the rest: the largest of five
numbers. Attained: the rest that cells alone leave, spent on race. Nothing is drawn.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables_counts import pennsylvania
from congenial.data.workload import Workload
from congenial.figures.figures import Figures, publish
from congenial.figures.support import support
from congenial.tables.information import Information
from congenial.tables.noise_variance import noise_variance

WIDTHS = (1.045, 1.05, 1.065)
WHOLE = 0.25  # epsilon = 1, and 4 between look-alikes
HALVINGS = 16
ONE_TABLE = 15_860  # printed error of race totals, one table made nonnegative cell by cell


class Splits:
    """Variances of the tables under shares of epsilon, and bounds of the best."""

    def __init__(self, workload: Workload, figures: Figures) -> None:
        self.model = Information.of(workload, figures)
        self.known = [support(figures, names) for names in workload.tables]

    def precision(self, table: int, share: float) -> float:
        """Of the noise of a table with this share of epsilon."""
        if not share:
            return 0.0
        scale = Fraction(share * WHOLE).limit_denominator(10**7)
        return 1 / noise_variance("double_geometric", scale, self.known[table]).value

    def precisions(self, shares: Any) -> Any:
        """Of all tables."""
        return np.array([self.precision(b, share) for b, share in enumerate(shares)])

    def largest_rest(self, width: float) -> float:
        """More than what any design can spend on coarser tables with cells of this width."""
        limit = width**2 * self.model.variances(self.precisions(self._to(0, 0.0)))[0]
        low, high = 0.0, 0.5
        for _ in range(HALVINGS):
            rest = (low + high) / 2
            everywhere = np.full(len(self.known), rest)
            everywhere[0] = 1 - rest
            fits = self.model.variances(self.precisions(everywhere))[0] <= limit
            low, high = (rest, high) if fits else (low, rest)
        return high

    def attained(self, width: float) -> float:
        """Standard deviation of the last table with all that cells leave."""
        shares = self._to(-1, 1 - 1 / width)
        return float(np.sqrt(self.model.variances(self.precisions(shares))[-1]))

    def bounds(self, width: float) -> list[float]:
        """For each coarser table, no smaller standard deviation of the last with all the rest."""
        rest = self.largest_rest(width)
        at, last = self.precisions(self._to(-1, rest)), np.zeros(len(self.known))
        last[-1] = 1
        slopes = self.model.gains(at, last) / self.model.variances(at)[-1] ** 2
        return [
            float((slopes[0] * at[0] + slopes[b] * self.precision(b, rest)) ** -0.5)
            for b in range(1, len(self.known))
        ]

    def _to(self, table: int, rest: float) -> Any:
        shares = np.zeros(len(self.known))
        shares[0] = 1 - rest
        shares[table] += rest
        return shares


def run(data: str | None = None) -> list[dict[str, Any]]:
    """One row for each width of cells."""
    if data is None:
        return [{"cells as wide as alone": "skipped: needs --data DIR with census tables"}]
    case = pennsylvania(Path(data))
    splits = Splits(Workload.of(case.table.schema, case.tables), publish(case.table, *case.figures))
    rows = []
    for width in WIDTHS:
        attained, bounds = splits.attained(width), splits.bounds(width)
        rows.append(
            {
                "cells as wide as alone": width,
                "race, sd": attained,
                "times better": ONE_TABLE / attained,
                "no split better than": ONE_TABLE / min(bounds),
                "by the table that has all": ", ".join(f"{ONE_TABLE / one:.0f}" for one in bounds),
            }
        )
    return rows
