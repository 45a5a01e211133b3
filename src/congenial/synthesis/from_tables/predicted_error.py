"""How far measured tables will be off, before any data are read.

A table of k cells with noise z is off by sum |z| / 2 records: so many would have to move for it to
be right. Its mean follows from the law of the noise alone. Figures that are kept and the fit, which
combines all tables, leave less; pairs that are not measured have an error of their own, which
depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from statistics import median
from typing import Any

from congenial.synthesis.from_tables.junction_tree import Axes
from congenial.synthesis.from_tables.measuring_budget import MeasuringBudget
from congenial.synthesis.from_tables.table_records import TableRecords

WEAK = 10  # a table is weak where noise misplaces more than one in so many people


@dataclass(frozen=True)
class PredictedError:
    """One table: its cells, the standard deviation of a count, records misplaced by the noise."""

    axes: Axes
    cells: int
    deviation: float
    misplaced: float

    @property
    def needed(self) -> int:
        """People for whom the noise misplaces a tenth."""
        return round(WEAK * self.misplaced)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": list(self.axes),
            "cells": self.cells,
            "deviation": self.deviation,
            "misplaced": self.misplaced,
        }


def predicted_errors(made: TableRecords) -> list[PredictedError]:
    """Every table that may be measured, columns first; those that figures settle are not."""
    return [
        _predicted(made.budget, axes, prod(made.shape(axes)), scale)
        for axes, scale in made.scales.items()
    ]


def _predicted(budget: MeasuringBudget, axes: Axes, cells: int, scale: Fraction) -> PredictedError:
    misplaced = budget.absolute(scale) * cells / 2
    return PredictedError(axes, cells, budget.deviation(scale), misplaced)


def needed_people(errors: list[PredictedError]) -> int | None:
    """People for whom the noise of a pair of median size misplaces a tenth; None without pairs."""
    pairs = [one.needed for one in errors if len(one.axes) == 2]
    return round(median(pairs)) if pairs else None
