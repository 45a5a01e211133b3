"""Condition or project: the errors of several methods on one table, at the same promise.

Every method is calibrated to the same epsilon per person over the conforming universe. Noise costs
eps_cell Delta_1(S) there whether or not it is conditioned or projected; only conditioning on signs
costs more (its normaliser price), so it gets a smaller eps_cell.

The errors are computed from confidential counts: they are for the curator, and choosing a method by
looking at them is not covered by any promise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import Support, support
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers.post_processing.methods import METHODS, MethodSetting
from congenial.privacy.normaliser import Conditions, largest_eps_cell
from congenial.sampling.randomness import Randomness, SystemRandomness

SIZES = (0, 1, 10, 100, 1000)  # lower ends of the classes of cells
COLUMNS = (
    "method",
    "eps_cell",
    "cells",
    "count",
    "mean_error",
    "mean_absolute_error",
    "root_mean_square_error",
    "l1",
    "l2",
    "negative_share",
    "figures_kept",
)


@dataclass(frozen=True)
class Comparison:
    """CONFIDENTIAL: errors by method and size of cell, one row each; "all" is the whole table.

    l1 and l2 are mean distances of a release from the truth, over draws and all cells; they stand
    in the row "all". mean_error is the bias, over draws and cells of the class.
    """

    rows: tuple[dict[str, Any], ...]

    def __repr__(self) -> str:
        methods = dict.fromkeys(row["method"] for row in self.rows)
        return f"Comparison({len(methods)} methods)"

    def to_dict(self) -> dict[str, Any]:
        """Columns, rows and a chart of the absolute error by size of cell."""
        return {
            "columns": list(COLUMNS),
            "rows": [[row[c] for c in COLUMNS] for row in self.rows],
            "notes": [
                "Computed from confidential counts: for the curator only. Choosing a method by "
                "these numbers is not covered by the promise."
            ],
            "chart": {
                "kind": "bar",
                "x": "count",
                "y": "mean_absolute_error",
                "by": "method",
            },
        }

    def overall(self, method: str) -> dict[str, Any]:
        """The row of a method over all cells."""
        words = METHODS[method].words
        return next(r for r in self.rows if r["method"] == words and r["count"] == "all")


def compare(
    table: Table,
    figures: Figures,
    epsilon: Fraction | int | float,
    methods: Sequence[str] = ("plain", "project", "condition", "condition_project"),
    draws: int = 100,
    randomness: Randomness | None = None,
) -> Comparison:
    """Errors of each method on `table` at `epsilon` per person given the figures.

    figures are published (they have values). methods: any of METHODS. StructureError for figures
    without a proved adjacency, and for conditioning where no exact sampler is built.
    """
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise StructureError(
            f"no method is called '{unknown[0]}'.", remedy=f"Use any of {', '.join(METHODS)}."
        )
    randomness = SystemRandomness() if randomness is None else randomness
    table_support, budget = support(figures, table.names), Fraction(epsilon)
    delta = SemiAdjacent(figures).l1(table.names).value
    eps_cell = {
        name: largest_eps_cell(budget, Conditions.of(figures, table.names, int(delta)))
        if name == "condition_nonnegative"
        else budget / delta
        for name in methods
    }
    return errors(table.counts, table_support, eps_cell, draws, randomness)


def errors(
    truth: Ints,
    known: Support,
    eps_cell: Mapping[str, Fraction],
    draws: int,
    randomness: Randomness,
) -> Comparison:
    """`compare` with the noise per cell given for each method."""
    rows: list[dict[str, Any]] = []
    for name, eps in eps_cell.items():
        setting = MethodSetting(truth, known, eps)
        drawn = METHODS[name].draw(setting, randomness, draws)
        rows += error_rows(METHODS[name].words, setting, drawn)
    return Comparison(tuple(rows))


def error_rows(words: str, setting: MethodSetting, drawn: Any) -> list[dict[str, Any]]:
    """One row over all cells and one per class of size that occurs."""
    truth, eps_cell = setting.truth, setting.eps_cell
    error = np.asarray(drawn, dtype=float) - truth
    sums = setting.conforming.rows @ error.T  # of the truth these are exactly as published
    sums_kept = bool(np.abs(sums).max(initial=0.0) <= 1e-4)
    classes = np.searchsorted(np.array(SIZES), truth, side="right") - 1
    rows = []
    for number in (-1, *np.unique(classes).tolist()):
        cells = classes == number if number >= 0 else np.ones(truth.size, dtype=bool)
        part = error[:, cells]
        rows.append(
            {
                "method": words,
                "eps_cell": float(eps_cell),
                "cells": int(cells.sum()),
                "count": size_words(number),
                "mean_error": float(part.mean()),
                "mean_absolute_error": float(np.abs(part).mean()),
                "root_mean_square_error": float(math.sqrt((part**2).mean())),
                "l1": float(np.abs(part).sum(axis=1).mean()),
                "l2": float(np.sqrt((part**2).sum(axis=1)).mean()),
                "negative_share": float((drawn[:, cells] < 0).mean()),
                "figures_kept": sums_kept,
            }
        )
    return rows


def size_words(number: int) -> str:
    """A class of counts in words: "all", "0", "1-9", ..., "1000+"."""
    if number < 0:
        return "all"
    low = SIZES[number]
    if number + 1 == len(SIZES):
        return f"{low}+"
    high = SIZES[number + 1] - 1
    return str(low) if low == high else f"{low}-{high}"
