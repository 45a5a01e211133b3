"""Sums of skewed numbers by table: error, coverage and time, beside OpenDP's Gaussian sums.

100,000 made-up firms whose payroll has a Pareto tail of 1.2, in 6 industries by 8 regions, cut at
100 times the smallest; with `--data DIR` also the income of consumer units by region and size of
the household (ce/ce_pumd_rpms_all_quarters.parquet), cut to 0 to 200,000. rho = 1/2. Errors are
root mean squares against the sums of *cut* numbers; what cutting takes away is a column of its own.
Coverage: of 90 % intervals of sums, and of means where counts are exact.

Both are charged for the same pairs: a replaced records, where a is 1 without figures and 2 where
the counts of the table are exact. OpenDP's sensitivity is its own (`map` of its sum for 2a records
added or removed): it does not know that exact counts leave nobody to enter or leave a cell. Beside
measured counts, its sums have half of rho.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from congenial import Guarantee, ReplaceOne, Schema, SemiAdjacent, Table, margin, publish
from congenial.data.magnitude import Magnitude
from congenial.data.table import SumsTable
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.sampling.randomness import SeededRandomness

FIRMS, SHAPE, RELEASES = 100_000, (6, 8), 100
RHO, LEVEL = Fraction(1, 2), 0.9
SMALLEST = {"FIRMS": 2_000, "RELEASES": 2}
QUARTERS = "ce/ce_pumd_rpms_all_quarters.parquet"


@dataclass(frozen=True)
class Register:
    """Numbers by cell, and how they are cut."""

    name: str
    schema: Schema
    number: Magnitude
    cells: Any
    values: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.schema.attribute(name).size for name in self.schema.names)

    @property
    def people(self) -> Any:
        return np.bincount(self.cells, minlength=int(np.prod(self.shape))).reshape(self.shape)

    @property
    def sums(self) -> Any:
        """In steps, of cut and rounded numbers."""
        low, high, step = (float(x) for x in (self.number.low, self.number.high, self.number.step))
        steps = np.floor(np.clip(self.values, low, high) / step + 0.5).astype(np.int64)
        found = np.zeros(int(np.prod(self.shape)), dtype=np.int64)
        np.add.at(found, self.cells, steps)
        return found.reshape(self.shape)


def firms() -> Register:
    """Payroll of at least 1,000, Pareto 1.2."""
    random = np.random.default_rng(3)
    cells = random.choice(SHAPE[0] * SHAPE[1], FIRMS, p=random.dirichlet(np.ones(48)))
    levels = {"industry": SHAPE[0], "region": SHAPE[1]}
    schema = {name: {"levels": [f"{name}{k}" for k in range(n)]} for name, n in levels.items()}
    number = Magnitude.of("payroll", [0, 100_000], 10)
    payroll = 1_000 * (1 + random.pareto(1.2, FIRMS))
    return Register("firms", Schema.from_dict(schema), number, cells, payroll)


def consumer_units(data: str) -> Register:
    """Family income before tax, of those with a known region."""
    import pyarrow.parquet as pq

    table = pq.read_table(Path(data) / QUARTERS, columns=["REGION", "FAM_SIZE", "FINCBTAX"])
    region, size, income = (column.to_pylist() for column in table.columns)
    rows = [row for row in zip(region, size, income, strict=True) if row[0] in {*"1234"}]
    schema = {"region": {"levels": [*"1234"]}, "size": {"levels": ["1", "2", "3", "4", "5+"]}}
    cells = np.array([5 * (int(where) - 1) + min(many, 5) - 1 for where, many, _ in rows])
    number = Magnitude.of("income", [0, 200_000], 100)
    numbers = np.array([float(one) for *_, one in rows])
    return Register("consumer units", Schema.from_dict(schema), number, cells, numbers)


def opendp_deviation(records: int, steps: int, rho: Fraction) -> float | None:
    """The standard deviation of its noise in one sum, in steps; None where it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0, steps)))
    summed = dp.t.make_sum(bounded, dp.symmetric_distance())
    scale = dp.binary_search_param(
        lambda one: summed >> dp.m.then_gaussian(scale=one), d_in=2 * records, d_out=float(rho)
    )
    return float(scale)


def processor_time(draw: Any) -> float:
    """Seconds of a call, the median of so many."""
    times = []
    for seed in range(RELEASES):
        start = time.process_time()
        draw(SeededRandomness(seed))
        times.append(time.process_time() - start)
    return float(np.median(times))


def row(of: Register, what: str, adjacency: Any, *, counted: bool = False) -> dict[str, Any]:
    schema, people, sums = of.schema, of.people, of.sums
    number = of.number.centred if counted else of.number
    target = Guarantee.zero_concentrated(RHO, under=adjacency)
    made = calibrate_tables(target, [schema.names], measures=[*([None] * counted), number])
    counts = Table(schema, schema.names, people)
    measured = SumsTable(schema, schema.names, sums - number.offset * people)
    tables = [*([counts] * counted), measured]
    squares, inside, means = {"printed": 0.0, "estimated": 0.0}, 0.0, 0.0
    for seed in range(RELEASES):
        release = made.release_each(tables, SeededRandomness(seed)).measures[-1]
        off = {"printed": release.counts[0] - sums, "estimated": release.estimates[0] - sums}
        squares = {key: squares[key] + float(np.mean(off[key] ** 2.0)) for key in off}
        low, high = release.interval_ends(0, LEVEL)
        inside += float(np.mean((low <= sums) & (sums <= high))) / RELEASES
        if release.people(*schema.names) is not None:
            of_cell = release.means(schema.names, LEVEL).to_pandas()
            true = number.shown(sums).reshape(-1) / np.maximum(people.reshape(-1), 1)
            there = (of_cell["low"] <= true) & (true <= of_cell["high"])
            means += float(there[people.reshape(-1) > 0].mean()) / RELEASES
    designed = float(made.measures[-1].estimator.deviations(schema.names).values.max())
    errors = {key: (value / RELEASES) ** 0.5 for key, value in squares.items()}
    step, peer = float(number.step), opendp_deviation(
        adjacency.records, number.highest, RHO / (2 if counted else 1)
    )  # fmt: skip
    plain = calibrate_tables(
        Guarantee.zero_concentrated(RHO, under=ReplaceOne(schema)), [schema.names]
    )
    counting = processor_time(lambda source: plain.release(counts, source).counts)
    summing = processor_time(
        lambda source: [one.counts for one in made.release_each(tables, source).measures]
    )
    return {
        "data": of.name,
        "what": what,
        "records": adjacency.records,
        "sd as designed": designed * step,
        "error of printed sums": errors["printed"] * step,
        "printed / designed": errors["printed"] / designed,
        "opendp sd": None if peer is None else peer * step,
        "printed / opendp": None if peer is None else errors["printed"] / peer,
        "sums covered": inside,
        "means covered": means or None,
        "time / counts": summing / counting / (2 if counted else 1),
        "cut away": 1 - float(sums.sum() * step / np.maximum(of.values, 0).sum()),
    }


def registers(data: str | None) -> Iterator[Register]:
    yield firms()
    if data is not None:
        yield consumer_units(data)


def run(data: str | None = None) -> list[dict[str, Any]]:
    """Without figures, with the counts of the table exact, and with counts measured."""
    rows = []
    for one in registers(data):
        counts = publish(Table(one.schema, one.schema.names, one.people), margin(*one.schema.names))
        rows += [
            row(one, "no exact figures", ReplaceOne(one.schema)),
            row(one, "counts exact", SemiAdjacent(counts)),
            row(one, "counts measured", ReplaceOne(one.schema), counted=True),
        ]
    return rows
