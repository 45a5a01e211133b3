"""Records from tables beside mbi (McKenna's private-pgm), on the same measurements.

Run `python -m benchmarks records_peers --data DIR` where `mbi` 2.0 is installed (it is no
dependency of ours); DIR holds `adult/adult.parquet`. The Adult data as in `records`, epsilon 1,
delta 1e-9, no figures: our mechanism chooses and measures the tables; both then fit all of them
once, from the start, and write records. The figures are the mean total variation over all 91 pairs
of columns, between records and data, and between many more records of the same fit and the data,
which is the fit's own; seconds are processor seconds of fit and records.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import distance, people
from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import SemiAdjacent
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.maximum_entropy import fit
from congenial.synthesis.from_tables.records_run import (
    CountedRecords,
    TableRecords,
    measured_target,
)
from congenial.synthesis.from_tables.whole_records import draw_records
from congenial.tables.promise import law_and_promise

Draw = Callable[[int], Any]  # so many records, by level of each column
SEED = 20261117
MANY = 20  # times as many records show what the fit itself is off by
STEPS = 1000  # of mirror descent, what mbi does unless told otherwise


def run(data: str | None = None) -> list[dict[str, Any]]:
    """One row for each program."""
    if data is None:
        return [{"records": "needs --data DIR"}]
    try:
        import mbi  # noqa: F401
    except ImportError:
        return [{"records": "needs mbi 2.0"}]
    table, schema = people(Path(data))
    _, rho = law_and_promise(epsilon=Fraction(1), delta=Fraction(1, 10**9))
    with Microdata.open(table, schema) as source:
        made = TableRecords.calibrate(SemiAdjacent(Figures(schema)), schema.names, rho)
        truths, n = made.fetch(source)
        real = {name: CountedRecords.read(source, (name,)).levels[name] for name in schema.names}
    measured = made.release((truths, n), SeededRandomness(SEED)).measured
    found = {"congenial": _ours, "mbi": _mbi}
    rows = []
    for name, program in found.items():
        start = time.process_time()
        draw = program(schema, measured, n)
        columns = draw(n)
        seconds = time.process_time() - start
        row = {"program": name, "mean total variation": distance(real, columns, schema)}
        rows.append(
            row | {"of the fit": distance(real, draw(MANY * n), schema), "seconds": seconds}
        )
    return rows


def _ours(schema: Schema, measured: Any, n: int) -> Draw:
    sizes = {one.name: one.size for one in schema.attributes}
    fitted = fit(sizes, [measured_target(schema, one) for one in measured], n)
    return lambda records: draw_records(fitted, records, np.random.default_rng(SEED))


def _mbi(schema: Schema, measured: Any, n: int) -> Draw:
    import mbi

    domain = mbi.Domain(schema.names, tuple(one.size for one in schema.attributes))
    told = [
        mbi.LinearMeasurement(one.values.reshape(-1).astype(float), one.axes, one.deviation)
        for one in measured
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, told, known_total=float(n), iters=STEPS)

    def draw(number: int) -> Any:
        records = model.synthetic_data(rows=number).to_dict()
        return {name: np.asarray(records[name]) for name in schema.names}

    return draw
