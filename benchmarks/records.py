"""Records from tables on real people: how far all pairs of columns are off.

Run `python -m benchmarks records --data DIR`; DIR holds `adult/adult.parquet`. 45,222 complete
records, 14 columns (without the sampling weight), numbers in at most ten bins. Epsilon 1, delta
1e-9: without figures, with sex x income published exactly (a* = 2), and without figures for
datasets two records apart, which is what figures alone cost. The figures are the mean total
variation over all 91 pairs and all 364 triples of columns, between the records and the data; with
the processor seconds of choosing, measuring, fitting and writing, and the most memory so far.
"""

from __future__ import annotations

import resource
import time
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.figures.figures import Figures
from congenial.figures.statements import total
from congenial.kinds.records_from_tables import KIND
from congenial.pairs.adjacency import SemiAdjacent
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.records_run import CountedRecords, TableRecords
from congenial.synthesis.record_files import (
    level_numbers,
)
from congenial.tables.promise import law_and_promise

SEED = 20261117
MONEY = [0, 1, 2000, 5000, 10000, 20000, 100000]


def people(folder: Path) -> tuple[Any, Schema]:
    """The records as an Arrow table, and their schema."""
    import pyarrow.parquet as pq

    frame = pq.read_table(folder / "adult" / "adult.parquet").to_pandas().dropna()
    frame = frame.drop(columns=["split", "fnlwgt"])
    schema: dict[str, Any] = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind not in "if" or values.nunique() <= 20:
            frame[name] = values.astype(str)
            schema[name] = {"levels": sorted(frame[name].unique())}
        elif name.startswith("capital"):
            schema[name] = {"edges": MONEY}
        else:
            inner = np.unique(np.quantile(values, np.linspace(0, 1, 11))[1:-1].astype(int))
            edges = [int(values.min()), *map(int, inner), int(values.max()) + 1]
            schema[name] = {"edges": sorted(set(edges))}
    import pyarrow as pa

    return pa.Table.from_pandas(frame, preserve_index=False), Schema.from_dict(schema)


def run(data: str | None = None) -> list[dict[str, Any]]:
    """One row for each setting."""
    if data is None:
        return [{"records": "needs --data DIR"}]
    table, schema = people(Path(data))
    _, rho = law_and_promise(rho=None, epsilon=Fraction(1), delta=Fraction(1, 10**9))
    rows = []
    with Microdata.open(table, schema) as source:
        exact = Figures(schema, (total(by=("sex", "income")),))
        exact = exact.evaluate(source.tabulate(("sex", "income")))
        real = {name: CountedRecords.read(source, (name,)).levels[name] for name in schema.names}
        settings = {
            "no figures": SemiAdjacent(Figures(schema)),
            "sex x income": SemiAdjacent(exact),
            "no figures, two records apart": SemiAdjacent(Figures(schema), within=2),
        }
        for name, alike in settings.items():
            made = TableRecords.calibrate(alike, schema.names, rho)
            truths, n = made.fetch(source)
            start = time.process_time()
            release = made.release((truths, n), SeededRandomness(SEED))
            seconds = time.process_time() - start
            levels = level_numbers(schema, release.to_arrow())
            rows.append(
                {
                    "exact": name,
                    "a*": made.adjacency.records,
                    "pairs measured": sum(len(one.axes) == 2 for one in release.measured),
                    "pairs off by": distance(real, levels, schema, 2),
                    "triples off by": distance(real, levels, schema, 3),
                    "records changed": release.moved,
                    "processor seconds": seconds,
                    "most memory so far, GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                    / 2**20,
                    "checks hold": all(KIND.checks(release).values()),
                }
            )
    return rows


def distance(real: Any, levels: Any, schema: Schema, together: int = 2) -> float:
    """The mean total variation over all sets of so many columns; both by level of each record."""
    found = []
    for axes in combinations(schema.names, together):
        shape = tuple(schema.attribute(name).size for name in axes)
        one, other = (_shares(told, axes, shape) for told in (real, levels))
        found.append(np.abs(one - other).sum() / 2)
    return float(np.mean(found))


def _shares(levels: Any, axes: tuple[str, ...], shape: tuple[int, ...]) -> Any:
    cells = np.ravel_multi_index([levels[name] for name in axes], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))) / len(cells)
