"""Distribution privacy: errors against the paper's best mechanism, and times.

Run `python -m benchmarks distribution --data DIR`; rows that need Adult are left out without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Statistic, Statistics
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.mechanisms.distribution.fit import fit_pairs
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.properties import share
from congenial.pairs.stated_laws import GaussianLaw
from congenial.papers.catalogue import run as reproduce
from congenial.papers.distribution_privacy.adult import DELTA, FILE, PAPER, Adult
from congenial.papers.item import Study
from congenial.sampling.randomness import SeededRandomness

NAMES = "abcde"
INSTANCES, TIMES = 200, 3
PAIRS = (5, 8, 20)  # statistics, laws, pairs
PEOPLE = 25_000
SCHEMA = Schema.from_dict(
    {name: {"integers": [0, 100]} for name in NAMES} | {"group": {"levels": ["in", "out"]}}
)
QUERY = Statistics(SCHEMA, tuple(Statistic.mean(name) for name in NAMES))


def best_of(action: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        found.append(time.perf_counter() - start)
    return min(found)


def random_pairs(
    random: np.random.Generator, size: int, laws: int, most: int, equal: bool = True
) -> DistributionPairs:
    root = random.normal(size=(size, size))
    shared = root @ root.T + 0.1 * np.eye(size)
    made = []
    for i in range(laws):
        covariance = shared
        if not equal:
            other = 0.1 * random.normal(size=(size, size))
            covariance = shared + other @ other.T
        made.append(GaussianLaw.of(f"law {i}", random.normal(size=size) * 2, covariance))
    every = [(f"law {i}", f"law {j}") for i in range(laws) for j in range(i)][:most]
    query = Statistics(SCHEMA, QUERY.parts[:size])
    return DistributionPairs.given(query, made, every)


def picks(instances: int) -> dict[str, Any]:
    """How often the pick is worse than some mechanism that applies."""
    random, worse = np.random.default_rng(1), 0
    for case in range(instances):
        pairs = random_pairs(random, 1 + case % 5, 2 + case % 3, 10)
        choice = calibrate_distribution(pairs, float(random.choice([0.2, 1, 4])), DELTA)
        usable = [one.error for one in choice.candidates if one.error is not None]
        worse += choice.mechanism.noise.expected_norm() > min(usable)
    return {"what": f"pick worse than another, {instances} instances", "value": worse, "target": 0}


def times() -> list[dict[str, Any]]:
    pairs = random_pairs(np.random.default_rng(2), *PAIRS)
    calibrate_distribution(pairs, 1, DELTA)
    random = np.random.default_rng(3)
    table = pa.table(
        {name: random.integers(0, 101, PEOPLE) for name in NAMES}
        | {"group": random.choice(["in", "out"], PEOPLE)}
    )
    hide = share("group = 'in'", between=(0.45, 0.55))
    with Microdata.open(table, SCHEMA) as data:

        def fit() -> None:
            fit_pairs(hide, QUERY, data, records=100, randomness=SeededRandomness(1))

        fit()
        fitting = best_of(fit, TIMES)
    return [
        {
            "what": f"calibration, {PAIRS[0]} statistics, {PAIRS[2]} pairs (s)",
            "value": best_of(lambda: calibrate_distribution(pairs, 1, DELTA), TIMES),
            "target": 1.0,
        },
        {
            "what": f"fit, 2 x 1,000 subsets of 100 of {PEOPLE:,} (s)",
            "value": fitting,
            "target": 2.0,
        },
    ]


def on_adult(data: Path) -> list[dict[str, Any]]:
    study = Study(data=data, seed=0)
    pairs = Adult.read(study).fit("income", "0.1").pairs
    paper = PAPER["DauM (G)"](pairs, 1.0, DELTA).expected_norm()
    optimum = calibrate_distribution(pairs, 1, DELTA, mechanism="optimum")
    best = calibrate_distribution(pairs, 1, DELTA)
    rows = [
        {"what": "expected L2 error of DauM (income, gap 0.1, epsilon 1)", "value": paper},
        {
            "what": "optimum / DauM",
            "value": optimum.mechanism.noise.expected_norm() / paper,
            "target": 0.66,
        },
        {
            "what": f"best that applies ({best.mechanism.name}) / DauM",
            "value": best.mechanism.noise.expected_norm() / paper,
            "target": 0.35,
        },
    ]

    def tables() -> None:
        for item in ("table-2", "table-3"):
            reproduce("distribution-privacy", item, study)

    rows.append({"what": "Table 2 and Table 3 (s)", "value": best_of(tables, 1), "target": 120.0})
    return rows


SMALLEST = {"INSTANCES": 2, "TIMES": 1, "PAIRS": (2, 3, 3), "PEOPLE": 400}


def run(data: str | None = None) -> list[dict[str, Any]]:
    """Measure everything; one row per target."""
    rows = [picks(INSTANCES), *times()]
    if data is not None and (Path(data) / FILE).is_file():
        rows += on_adult(Path(data))
    return rows


def main() -> None:
    import sys

    for row in run(*sys.argv[1:2]):
        target = f"   target {row['target']:g}" if "target" in row else ""
        print(f"{row['what']:<60}{row['value']:>12.4f}{target}")


if __name__ == "__main__":
    main()
