"""Printed counts against estimates on made-up tables, from sparse to dense.

Run `python -m benchmarks tables_study`. 60 districts in 6 counties x 6 groups x 2 ages; mean counts
per cell from .05 to 300, even, uneven (gamma, shape .3) or with one large group; exact: people per
county and adults per district, people per county, or nothing; several promises and aims. Rule: for
every table the root mean square error of printed counts is at most 1.05 times that of the estimates
where these have a standard deviation of 1.5 or more, 1.2 below, and at least 95 % of printed counts
lie inside their 90 % intervals.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from congenial import Guarantee, Schema, SemiAdjacent, Table, count, publish, total
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.mechanisms.tables_release import TablesRelease
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.design import Aim, Even, Keep
from congenial.tables.intervals import ends

DISTRICTS, GROUPS = 60, 6
MEANS = (0.05, 0.5, 3.0, 30.0, 300.0)
SHAPES = ("even", "uneven", "one large group")
FIGURES = {
    "counties and adults": (total(by="county"), count("age >= 18", by="district")),
    "counties": (total(by="county"),),
    "the total": (total(),),
}
PROMISES = {"rho = 2": ("rho", "2"), "rho = 0.1": ("rho", "0.1"), "epsilon = 1": ("epsilon", "1")}
AIMS: dict[str, Aim] = {"keep": Keep(), "even": Even()}
TABLES = (
    ("district", "group", "age"),
    ("district", "group"),
    ("county", "group", "age"),
    ("county", "group"),
    ("group",),
)
LIMIT, LIMIT_BELOW, DEVIATION, INSIDE = 1.05, 1.2, 1.5, 0.95


@dataclass(frozen=True)
class Setting:
    mean: float
    shape: str
    figures: str
    promise: str
    aim: str


def settings() -> Iterator[Setting]:
    """All of them; designs are shared by those that differ in the people only."""
    for figures, promise, aim in product(FIGURES, PROMISES, AIMS):
        for mean, shape in product(MEANS, SHAPES):
            yield Setting(mean, shape, figures, promise, aim)


def schema() -> Schema:
    names = [f"d{i:02}" for i in range(DISTRICTS)]
    within = {"county": [f"c{i // 10}" for i in range(DISTRICTS)]}
    return Schema.from_dict(
        {
            "district": {"levels": names, "within": within},
            "group": {"levels": [f"g{i}" for i in range(GROUPS)]},
            "age": {"edges": [0, 18], "top": "18+"},
        }
    )


def people(mean: float, shape: str, seed: int = 1) -> Table:
    """Made-up counts."""
    rng = np.random.default_rng(seed)
    means = np.full((DISTRICTS, GROUPS, 2), mean)
    if shape == "uneven":
        means *= rng.gamma(0.3, 1 / 0.3, means.shape)
    if shape == "one large group":
        means[:, 0] *= 20
    return Table(schema(), schema().names, rng.poisson(means))


@cache
def mechanism(setting: Setting) -> tuple[MeasuredTables, Table]:
    table = people(setting.mean, setting.shape)
    adjacency = SemiAdjacent(publish(table, *FIGURES[setting.figures]))
    kind, value = PROMISES[setting.promise]
    made = Guarantee.zero_concentrated if kind == "rho" else Guarantee.pure
    target = made(value, under=adjacency)
    return calibrate_tables(target, TABLES, AIMS[setting.aim]), table


def rows_of(setting: Setting, releases: int) -> list[dict[str, Any]]:
    """Per table: errors of estimates and of printed counts, and whether the rule is kept."""
    made, table = mechanism(setting)
    squares, inside = np.zeros((2, len(TABLES))), np.zeros(len(TABLES))
    for seed in range(releases):
        release = made.release(table, SeededRandomness(seed))
        for b, names in enumerate(TABLES):
            squares[:, b] += errors(release, b, table.marginal(names).counts) / releases
            inside[b] += within(release, b) / releases
    rows = []
    for b, names in enumerate(TABLES):
        deviation = float(np.sqrt(np.mean(made.estimator.deviations(names).values ** 2)))
        ratio = float(np.sqrt(squares[1, b] / squares[0, b])) if squares[0, b] else 1.0
        kept = ratio <= (LIMIT if deviation >= DEVIATION else LIMIT_BELOW) and inside[b] >= INSIDE
        told = {"table": " x ".join(names), "sd": deviation, "ratio": ratio}
        told |= {"inside": float(inside[b]), "rule": "kept" if kept else "broken"}
        rows.append(vars(setting) | told)
    return rows


def errors(release: TablesRelease, b: int, truth: Any) -> Any:
    """Mean squared errors of the estimates and of the printed counts of a table."""
    printed = release.counts[b]
    assert printed is not None
    return np.array([np.mean((v - truth) ** 2) for v in (release.estimates[b], printed)])


def within(release: TablesRelease, b: int) -> float:
    """Share of printed counts inside their 90 % intervals."""
    low, high = ends(release.estimates[b], release.deviations[b], 0.9)
    printed = release.counts[b]
    return float(np.mean((low <= printed) & (printed <= high)))


SMALLEST = {"releases": 1, "MEANS": (3.0,), "SHAPES": ("even",), "AIMS": {"keep": Keep()}}
SMALLEST |= {"DISTRICTS": 20, "FIGURES": {"the total": (total(),)}}
SMALLEST |= {"PROMISES": {"rho = 2": ("rho", "2")}}


def run(releases: int = 20) -> list[dict[str, Any]]:
    """One row per promise, aim, figures and table: the worst of all tables of people."""
    worst: dict[tuple[str, ...], dict[str, Any]] = {}
    for setting in settings():
        for row in rows_of(setting, releases):
            key = (row["promise"], row["aim"], row["figures"], row["table"])
            told = worst.setdefault(key, {"people": 0, "broken": 0, "least inside": 1.0} | row)
            told["people"] += 1
            told["broken"] += row["rule"] == "broken"
            told["least inside"] = min(told["least inside"], row["inside"])
            if row["ratio"] >= told["ratio"]:
                told |= row
        mechanism.cache_clear()
    shown = ("promise", "aim", "figures", "table", "people", "broken", "least inside")
    last = ("ratio", "sd", "mean", "shape")
    return [{key: row[key] for key in (*shown, *last)} for row in worst.values()]
