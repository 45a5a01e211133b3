"""Printed counts of sparse tables: posterior means by empirical Bayes against least squares.

Run `python -m benchmarks tables_sparse [--data DIR]`. A made-up county of 10,600 people like Perry
(Alabama): 63 combinations of races, of which two hold 99 % of the people, by Hispanic origin and
age; one table alone or four together; noise of one standard deviation in every measured table. With
DIR also the counties of Pennsylvania 2020 (`census/pl94_2020_PA_vtd.csv.gz`: 67 x 8 races x 2 ages;
exact: people per county). `error` is the mean over releases of the root mean square error over a
table's cells, `least squares` the same for counts as near as possible to the estimates, from the
same draws. `bias` is that of cells with at least a tenth of all people. `inside`: printed counts
inside their 90 % interval.

Aims, where the posterior means are used: `ratio` at most 1.05 everywhere and at most .77 in the
tables of the county from a standard deviation of 60 on, `inside` at least .88.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from congenial import Schema, SemiAdjacent, Table, publish, total
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.sampling.randomness import SeededRandomness
from congenial.tables import sparse_tables
from congenial.tables.intervals import ends

RACES = (7300, 3173, 60, 20, 15, 11, 9) + (0,) * 56
HISPANIC = (0.012, 0.008, 0.2, 0.1, 0.3, 0.0, 0.0)
TABLES = ["race", "hispanic", "age"], ["race", "hispanic"], ["race", "age"], ["race"]
DEVIATIONS = (10, 21, 66, 150, 300)


def county() -> Table:
    """The made-up county."""
    schema = Schema.from_dict(
        {
            "race": {"levels": [f"r{i:02}" for i in range(len(RACES))]},
            "hispanic": {"levels": ["no", "yes"]},
            "age": {"edges": [0, 18], "top": "18+"},
        }
    )
    people = np.zeros((len(RACES), 2, 2), dtype=np.int64)
    for race, (n, share) in enumerate(zip(RACES, HISPANIC, strict=False)):
        hispanic = round(n * share)
        for at, m in enumerate((n - hispanic, hispanic)):
            people[race, at] = round(0.24 * m), m - round(0.24 * m)
    return Table(schema, schema.names, people)


def pennsylvania(folder: Path) -> Table:
    """People of the 67 counties."""
    races = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
    with gzip.open(folder / "census" / "pl94_2020_PA_vtd.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["GEOID20"][:5] for row in rows})
    people = np.zeros((len(names), len(races), 2), dtype=np.int64)
    for row in rows:
        for at, race in enumerate(races):
            adults = int(row[f"vap_{race}"])
            both = [int(row[f"pop_{race}"]) - adults, adults]
            people[names.index(row["GEOID20"][:5]), at] += both
    axes = {"county": {"levels": names}, "race": {"levels": list(races)}}
    schema = Schema.from_dict(axes | {"age": {"edges": [0, 18], "top": "18+"}})
    return Table(schema, schema.names, people)


def cases(data: str | None) -> Iterator[tuple[str, Table, Any, list[list[str]]]]:
    """Name, people, exact figures and tables."""
    people = county()
    known = publish(people, total())
    for names in TABLES[0], TABLES[1], TABLES[3]:
        yield "alone", people, known, [names]
    yield "together", people, known, list(TABLES)
    if data is not None:
        people = pennsylvania(Path(data))
        known = publish(people, total(by="county"))
        yield "Pennsylvania", people, known, [["county", "race", "age"]]
        tables = [["county", "race", "age"], ["county", "race"], ["race", "age"]]
        yield "Pennsylvania, together", people, known, tables


def rows_of(case: Any, family: Any, deviation: int, releases: int) -> Iterator[dict[str, Any]]:
    """One row per table."""
    name, people, known, tables = case
    gaussian = family == "discrete_gaussian"
    scale = Fraction(deviation**2) if gaussian else Fraction(2) / deviation
    scale = scale if gaussian else Fraction(round(2**0.5 / deviation * 10**6), 10**6)
    named = [tuple(names) for names in tables]
    scales = [scale] * len(named)
    made = MeasuredTables.of(SemiAdjacent(known), named, family, scales)
    truth = [people.marginal(names).counts for names in tables]
    big = [t >= 0.1 * people.counts.sum() for t in truth]
    errors, bias = np.zeros((2, len(tables))), np.zeros((2, len(tables)))
    inside = np.zeros((2, len(tables)))
    with mock.patch.object(sparse_tables, "LARGEST", 0):
        plain = MeasuredTables.of(SemiAdjacent(known), named, family, scales)
        assert not plain.estimator.sparse
    used = made.estimator.sparse
    for seed in range(releases):
        release = made.release(people, SeededRandomness(seed))
        both = plain.estimator.answer(release.drawn).counts, release.counts
        for k, counts in enumerate(both):
            for b, printed in enumerate(counts):
                assert printed is not None
                errors[k, b] += np.sqrt(np.mean((printed - truth[b]) ** 2)) / releases
                if big[b].any():
                    bias[k, b] += (printed - truth[b])[big[b]].mean() / releases
                low, high = ends(release.estimates[b], release.deviations[b], 0.9)
                inside[k, b] += np.mean((low <= printed) & (printed <= high)) / releases
    for b, names in enumerate(tables):
        yield {
            "people": name,
            "noise": family,
            "of": deviation,
            "table": " x ".join(names),
            "sd": float(np.mean(release.deviations[b])),
            "least squares": float(errors[0, b]),
            "error": float(errors[1, b]),
            "ratio": float(errors[1, b] / errors[0, b]),
            "bias before": float(bias[0, b]),
            "bias": float(bias[1, b]),
            "inside before": float(inside[0, b]),
            "inside": float(inside[1, b]),
            "used": bool(used) and sparse_tables.shrinks(release.deviations[b]),
        }


SMALLEST = {"releases": 1, "DEVIATIONS": (66,)}


def run(data: str | None = None, releases: int = 300) -> list[dict[str, Any]]:
    return [
        row
        for case in cases(data)
        for family in ("discrete_gaussian", "double_geometric")
        for deviation in DEVIATIONS
        for row in rows_of(case, family, deviation, releases)
    ]
