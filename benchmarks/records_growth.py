"""Records from tables as rows, columns and cliques grow: seconds and memory after measuring.

Run `python -m benchmarks records_growth`. Made-up people whose columns form a chain, each near the
one before it. Tables are measured as in a release, with rho = 1; the figures are processor seconds
of fit and records, once everything is measured, cells of the fit, and the most memory the process
ever had (rows are in ascending order of it). The last line is what a million people take.
"""

from __future__ import annotations

import resource
import time
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import SemiAdjacent
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.records_run import RecordsRun, TableRecords

SEED = 20261117
SIZES = (  # people, columns, levels of each, pairs measured
    (10_000, 5, 8, 8),
    (100_000, 5, 8, 8),
    (100_000, 10, 8, 15),
    (100_000, 10, 16, 12),
    (1_000_000, 10, 8, 15),
)


def people(n: int, columns: int, levels: int) -> dict[str, Any]:
    """Levels of every column; each is near that of the column before it."""
    rng = np.random.default_rng(SEED)
    found = [rng.integers(0, levels, n)]
    for _ in range(columns - 1):
        step = rng.integers(-1, 2, n)
        found.append(np.clip(found[-1] + step, 0, levels - 1))
    return {f"c{at}": one for at, one in enumerate(found)}


SMALLEST = {"SIZES": ((200, 3, 3, 2),)}


def run() -> list[dict[str, Any]]:
    """One row for each size."""
    return [_row(*size) for size in SIZES]


def _row(n: int, columns: int, levels: int, rounds: int) -> dict[str, Any]:
    told = people(n, columns, levels)
    schema = Schema.from_dict({name: {"integers": [0, levels - 1]} for name in told})
    pairs = SemiAdjacent(Figures(schema))
    made = TableRecords.calibrate(pairs, schema.names, Fraction(1), rounds)
    truths = {}
    for axes in made.scales:
        counts = np.zeros(made.shape(axes), dtype=np.int64)
        np.add.at(counts, tuple(told[name] for name in axes), 1)
        truths[axes] = counts
    drawn = RecordsRun(made, truths, n, SeededRandomness(SEED), lambda _: None)
    for name in made.names:
        drawn.measure((name,))
    near = [axes for axes in made.pairs if int(axes[1][1:]) - int(axes[0][1:]) <= 2]
    for axes in [one for one in near if one in drawn.candidates][:rounds]:
        if axes in drawn.candidates:
            drawn.measure(axes)
    start = time.process_time()
    fitted = drawn.fit()
    drawn.copies(fitted)
    return {
        "people": n,
        "columns": columns,
        "levels": levels,
        "pairs": sum(len(one.axes) == 2 for one in drawn.measured),
        "cells of the fit": fitted.tree.cells,
        "seconds": time.process_time() - start,
        "most memory so far, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
