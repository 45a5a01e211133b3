"""Records from tables on the Consumer Expenditure Survey: income, age, earners and region.

Run `python -m benchmarks records_expenditure --data DIR`; DIR holds
`ce/ce_pumd_rpms_all_quarters.parquet`. Three quarters, some 6,800 consumer units each; the
number of units by region is published exactly (a* = 2). Income is counted alone in 34 bins and in
pairs in eight classes. The figures: total variation of income over the bins, the error of its
90th percentile, and the pMSE ratio of a logistic regression on all columns (1: the same law).
Beside them income alone, from records and as a noisy histogram with the same promise.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import fetch
from congenial.figures.figures import Figures
from congenial.figures.statements import total
from congenial.kinds.records_from_tables import KIND
from congenial.pairs.adjacency import SemiAdjacent
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables.column_rules import ColumnRules
from congenial.synthesis.from_tables.records_run import TableRecords
from congenial.synthesis.utility_report import utility_report

SEEDS = (20261117, 20261118)
QUARTERS = (2, 4, 7)  # not 1, 5 and 10, on which the default share of one-way tables was chosen
EPSILONS = (Fraction(1, 2), Fraction(2), Fraction(8))
BINS = [
    -200_000,
    0,
    1,
    *range(5_000, 100_000, 5_000),
    *range(100_000, 160_000, 10_000),
    *(180_000, 200_000, 250_000, 300_000, 400_000, 600_000, 2_000_000),
]
CLASSES = (0, 1, 15_000, 30_000, 50_000, 80_000, 130_000)  # where the second and later ones start
AGES = [0, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 100]


def schema() -> Schema:
    """Income in bins and classes, age in bins, earners, region."""
    classes = [str(np.searchsorted(CLASSES, low, side="right")) for low in BINS[:-1]]
    return Schema.from_dict(
        {
            "income": {"edges": BINS, "within": {"class": classes}},
            "age": {"edges": AGES},
            "earners": {"levels": ["0", "1", "2", "3+"]},
            "region": {"levels": ["1", "2", "3", "4"]},
        }
    )


def quarters(folder: Path) -> dict[int, Any]:
    """The records of each quarter as an Arrow table."""
    import pandas as pd
    import pyarrow as pa

    frame = pd.read_parquet(folder / "ce" / "ce_pumd_rpms_all_quarters.parquet")
    frame = frame.dropna(subset=["REGION", "FINCBTAX", "AGE", "NO_EARNR"])
    earners = frame["NO_EARNR"].astype(int)
    made = pd.DataFrame(
        {
            "income": frame["FINCBTAX"].astype(int).clip(BINS[0], BINS[-1] - 1),
            "age": frame["AGE"].astype(int),
            "earners": np.where(earners > 2, "3+", earners.astype(str)),
            "region": frame["REGION"].astype(int).astype(str),
            "block": frame["block"].astype(int),
        }
    )
    return {
        one: pa.Table.from_pandas(
            made[made["block"] == one].drop(columns="block"), preserve_index=False
        )
        for one in QUARTERS
    }


def run(data: str | None = None) -> list[dict[str, Any]]:
    """One row for each promise: means over quarters and seeds."""
    if data is None:
        return [{"records": "needs --data DIR"}]
    found = quarters(Path(data))
    return [
        {"epsilon": float(epsilon)}
        | _mean([_quarter(one, epsilon, seed) for one in found.values() for seed in SEEDS])
        for epsilon in EPSILONS
    ]


def _quarter(table: Any, epsilon: Fraction, seed: int) -> dict[str, float]:
    told = schema()
    with Microdata.open(table, told) as source:
        by_region = Figures(told, (total(by="region"),)).evaluate(source.tabulate(("region",)))
        made = TableRecords.calibrate(
            SemiAdjacent(by_region),
            told.names,
            epsilon=epsilon,
            weights={"income": Fraction(3)},
            rules=ColumnRules.of(coarse={"income": "class"}),
        )
        start = time.perf_counter()
        release = made.release(source, SeededRandomness(seed))
        seconds = time.perf_counter() - start
        real, _ = fetch(source, told.names)
        report = utility_report(real, release.to_arrow(), told)
        alone = TableRecords.calibrate(SemiAdjacent(Figures(told)), ("income",), epsilon=epsilon)
        truth = source.tabulate(("income",)).counts
        only = alone.release(source, SeededRandomness(seed))
    p90 = next(one for one in report.quantiles if one.column == "income" and one.at == 0.9)
    return {
        "income total variation": report.marginals["income"],
        "P90 error": abs(p90.synthetic / p90.original - 1),
        "pMSE ratio": report.pmse_ratio,
        "income alone": _variation(truth, _counts(told, only)),
        "noisy histogram": _variation(truth, np.maximum(only.measured[0].values, 0)),
        "figures hold": float(all(KIND.checks(release).values())),
        "seconds": seconds,
    }


def _counts(told: Schema, release: Any) -> Any:
    from congenial.synthesis.record_files import (
        level_numbers,
    )

    levels = level_numbers(told, release.to_arrow())["income"]
    return np.bincount(levels, minlength=told.attribute("income").size)


def _variation(one: Any, other: Any) -> float:
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def _mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
