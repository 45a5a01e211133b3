"""Projections onto figures: closed form, linear programme, integer programme; rates and ratios.

Run `python -m benchmarks baselines`; it takes about a minute. CPU seconds of one core. The general
route of a modelling layer (quadratic programme, then an integer programme) is the yardstick: what
nested totals and unimodular margins save against it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.papers.congenial_dp.example import TABLE1, A
from congenial.papers.post_processing import (
    ConformingTables,
    least_squares,
    methods,
    nearest_in,
    topdown,
)
from congenial.sampling import DoubleGeometric, SeededRandomness
from congenial.tables import general_fit

EPS = Fraction(1, 4)
MARGINS = (20, 30)
COUNTIES, GROUPS = 300, 3000


def seconds(action: Callable[[], Any]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def margins(rows: int, columns: int) -> Any:
    one = sp.kron(sp.identity(rows, dtype=np.int64), np.ones((1, columns), np.int64))
    other = sp.kron(np.ones((1, rows), np.int64), sp.identity(columns, dtype=np.int64))
    return sp.vstack([one, other], format="csr")


def cases() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    (r, c), identity = MARGINS, sp.identity
    counties = sp.kron(identity(COUNTIES, dtype=np.int64), sp.csr_matrix(A), format="csr")
    nested = sp.kron(identity(GROUPS, dtype=np.int64), np.ones((1, 46), np.int64), format="csr")
    return {
        "2 x 23, three crossing figures": (sp.csr_matrix(A), TABLE1),
        f"{r} x {c}, both margins": (margins(r, c), rng.poisson(5, r * c)),
        f"{COUNTIES} counties x 46, crossing": (counties, rng.poisson(20, COUNTIES * 46)),
        f"{GROUPS:,} groups x 46, totals": (nested, rng.poisson(20, GROUPS * 46)),
    }


def timed(part: str, what: str, action: Callable[[], Any], cells: int) -> dict[str, Any]:
    action()
    best = min(seconds(action) for _ in range(3 if cells < 10_000 else 1))
    return {
        "part": part,
        "what": what,
        "milliseconds": 1e3 * best,
        "microseconds_per_cell": 1e6 * best / cells,
    }


def as_integers(values: Any, conforming: ConformingTables, randomness: SeededRandomness) -> Any:
    """The general route: least squares by the solver, rounding as an integer programme."""
    y = np.asarray(values, dtype=float)
    moved = general_fit.displacement(y, conforming)[1]
    usual = methods.search
    methods.search = lambda *given: usual(*given[:-1], True)  # type: ignore[assignment]
    try:
        return methods.rounded(y + moved, conforming, randomness)
    finally:
        methods.search = usual


SMALLEST = {"MARGINS": (3, 4), "COUNTIES": 2, "GROUPS": 3}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    randomness, rows = SeededRandomness(1), []
    for part, (matrix, counts) in cases().items():
        conforming = ConformingTables.of(matrix, matrix @ counts)
        y = counts + DoubleGeometric(EPS).draw(randomness, counts.size)
        ways: dict[str, Callable[[], Any]] = {
            "least squares": lambda c=conforming, y=y: least_squares(y, c),
            "nearest whole table": lambda c=conforming, y=y: nearest_in(y, c, randomness),
            "TopDown's two stages": lambda c=conforming, y=y: topdown(y, c, randomness),
            "general route": lambda c=conforming, y=y: as_integers(y, c, randomness),
        }
        found = [timed(part, what, way, counts.size) for what, way in ways.items()]
        yardstick = found[-1]["milliseconds"]
        rows += [row | {"ratio": yardstick / row["milliseconds"]} for row in found]
    return rows


def main() -> None:
    for row in run():
        print(
            f"{row['part']:<34}{row['what']:<24}{row['milliseconds']:>12.2f} ms"
            f"{row['microseconds_per_cell']:>10.2f} us per cell {row['ratio']:>8.1f} x the general"
        )


if __name__ == "__main__":
    main()
