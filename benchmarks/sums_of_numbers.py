"""Sums of a skewed number by table, beside OpenDP's sum with Gaussian noise.

100,000 made-up firms whose payroll has a Pareto tail of 1.2, in 6 industries by 8 regions, cut at
100 times the smallest. rho = 1/2. Errors are root mean squares against the sums of *cut* numbers;
what cutting takes away is a column of its own.

Both are charged for the same pairs: a replaced records, where a is 1 without figures and 2 where
the counts of the table are exact. OpenDP's sensitivity is its own (`map` of its sum for 2a records
added or removed): it does not know that exact counts leave nobody to enter or leave a cell.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np

from congenial import Guarantee, ReplaceOne, Schema, SemiAdjacent, Table, margin, publish
from congenial.data.magnitude import Magnitude
from congenial.data.table import SumsTable
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.sampling.randomness import SeededRandomness

FIRMS, SHAPE, RELEASES = 100_000, (6, 8), 20
BOUND, STEP = 100_000, 10
RHO = Fraction(1, 2)
SMALLEST = {"FIRMS": 2_000, "RELEASES": 2}


def firms() -> tuple[Any, Any]:
    """Industry and region of each firm, and its payroll: at least 1,000, Pareto 1.2."""
    random = np.random.default_rng(3)
    cells = random.choice(SHAPE[0] * SHAPE[1], FIRMS, p=random.dirichlet(np.ones(48)))
    return cells, 1_000 * (1 + random.pareto(1.2, FIRMS))


def opendp_deviation(records: int) -> float | None:
    """The standard deviation of its noise in one sum, in steps; None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0, BOUND // STEP)))
    summed = dp.t.make_sum(bounded, dp.symmetric_distance())
    scale = dp.binary_search_param(
        lambda one: summed >> dp.m.then_gaussian(scale=one), d_in=2 * records, d_out=float(RHO)
    )
    return float(scale)


def row(what: str, adjacency: Any, people: Any, sums: Any) -> dict[str, Any]:
    schema = adjacency.schema
    target = Guarantee.zero_concentrated(RHO, under=adjacency)
    number = Magnitude.of("payroll", [0, BOUND], STEP)
    made = calibrate_tables(target, [schema.names], measures=[number])
    truth = SumsTable(schema, schema.names, sums)
    counts, squares = Table(schema, schema.names, people), {"printed": 0.0, "estimated": 0.0}
    _ = made.release(truth, SeededRandomness(0), people=counts).counts  # loops are compiled
    start = time.perf_counter()
    for seed in range(RELEASES):
        release = made.release(truth, SeededRandomness(seed), people=counts)
        off = {"printed": release.counts[0] - sums, "estimated": release.estimates[0] - sums}
        squares = {key: squares[key] + float(np.mean(off[key] ** 2.0)) for key in off}
    seconds = (time.perf_counter() - start) / RELEASES
    plain = calibrate_tables(
        Guarantee.zero_concentrated(RHO, under=ReplaceOne(schema)), [schema.names]
    )
    start = time.perf_counter()
    for seed in range(RELEASES):
        _ = plain.release(counts, SeededRandomness(seed)).counts
    counted = (time.perf_counter() - start) / RELEASES
    designed = float(made.mechanisms[0].description.scale) ** 0.5
    errors = {key: (value / RELEASES) ** 0.5 for key, value in squares.items()}
    peer = opendp_deviation(adjacency.records)
    return {
        "what": what,
        "records": adjacency.records,
        "sd as designed": designed * STEP,
        "error of estimates": errors["estimated"] * STEP,
        "error of printed sums": errors["printed"] * STEP,
        "printed / designed": errors["printed"] / designed,
        "opendp sd": None if peer is None else peer * STEP,
        "printed / opendp": None if peer is None else errors["printed"] / peer,
        "time / counts": seconds / counted,
    }


def run() -> list[dict[str, Any]]:
    """Without figures, and with the counts of the table exact."""
    schema = Schema.from_dict(
        {
            "industry": {"levels": [f"i{k}" for k in range(SHAPE[0])]},
            "region": {"levels": [f"r{k}" for k in range(SHAPE[1])]},
        }
    )
    cells, payroll = firms()
    steps = np.floor(np.minimum(payroll, BOUND) / STEP + 0.5).astype(np.int64)
    people = np.bincount(cells, minlength=48).reshape(SHAPE)
    sums = np.zeros(48, dtype=np.int64)
    np.add.at(sums, cells, steps)
    sums = sums.reshape(SHAPE)
    exact = SemiAdjacent(publish(Table(schema, schema.names, people), margin("industry", "region")))
    rows = [
        row("no exact figures", ReplaceOne(schema), people, sums),
        row("counts exact", exact, people, sums),
    ]
    cut = 1 - float(sums.sum() * STEP / payroll.sum())
    return [one | {"cut away": f"{cut:.1%} of all payroll"} for one in rows]
