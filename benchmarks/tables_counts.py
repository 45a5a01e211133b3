"""Whole counts of several tables measured at once, on census tables: error of what is printed.

Run `python -m benchmarks tables_counts --data DIR`; DIR holds `census/pl94_2020_PA_vtd.csv.gz`
(9,178 voting districts x 8 races x 2 ages; exact: people per county, adults per district) and
`census/sf1_2010_P12_counties.csv.gz` (3,143 counties x 2 x 23; exact: total, female, voting age per
county). Noise is simulated: normal, projected on what the figures leave free, from pinned seeds.
Printed counts should have at most 1.05 times the error of the estimates where these have a standard
deviation of 1.5 or more, 1.2 below, and lie inside their 90 % intervals 95 times in 100. TopDown
stands for two stages: each level fitted to its own measurements only.
"""

from __future__ import annotations

import csv
import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.workload import Workload
from congenial.figures.figures import publish
from congenial.figures.statements import count, total
from congenial.tables.covariance import Covariance
from congenial.tables.intervals import half_width
from congenial.tables.linear_estimates import estimate
from congenial.tables.measurements import Measurements
from congenial.tables.whole_counts import (
    LevelTargets,
    fit_to_targets,
    own_precisions,
    rehearse,
    targets_of,
)

RACES = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")
SHARES = {
    "88/4/2/2/2/2 %": (0.88, 0.04, 0.02, 0.02, 0.02, 0.02),
    "about even": (0.33, 0.2, 0.13, 0.12, 0.11, 0.11),
}


@dataclass(frozen=True)
class Case:
    name: str
    table: Table
    tables: list[list[str]]
    figures: tuple[Any, ...]
    adjacency: int  # people who may differ: sum of precisions is rho / a^2
    project: Callable[[list[str], np.ndarray], np.ndarray]


def pennsylvania(folder: Path) -> Case:
    with gzip.open(folder / "census" / "pl94_2020_PA_vtd.csv.gz", "rt") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["GEOID20"])
    adults = np.array([[int(row[f"vap_{race}"]) for race in RACES] for row in rows])
    people = np.array([[int(row[f"pop_{race}"]) for race in RACES] for row in rows])
    schema = Schema.from_dict(
        {
            "district": {
                "levels": [row["GEOID20"] for row in rows],
                "within": {"county": [row["GEOID20"][:5] for row in rows]},
            },
            "race": {"levels": list(RACES)},
            "age": {"edges": [0, 18], "top": "18+"},
        }
    )
    table = Table(schema, schema.names, np.stack([people - adults, adults], axis=2))
    county = np.array([row["GEOID20"][:5] for row in rows])
    number = np.unique(county, return_inverse=True)[1]
    sizes = np.bincount(number).astype(float)

    def centred(z: np.ndarray) -> np.ndarray:
        """Less the mean over districts and races of each county."""
        means = np.zeros((len(sizes), *z.shape[2:]))
        np.add.at(means, number, z.mean(axis=1))
        return z - (means / sizes.reshape(-1, *(1,) * (z.ndim - 2)))[number][:, None]

    def project(names: list[str], z: np.ndarray) -> np.ndarray:
        if names == ["district", "race", "age"]:
            z[..., 1] -= z[..., 1].mean(axis=1, keepdims=True)
            z[..., 0] = centred(z[..., 0])
            return z
        if names == ["district", "race"]:
            return centred(z)
        return z - z.mean(axis=names.index("race"), keepdims=True)

    tables = [
        ["district", "race", "age"],
        ["district", "race"],
        ["county", "race", "age"],
        ["county", "race"],
        ["race", "age"],
        ["race"],
    ]
    figures = (total(by="county"), count("age >= 18", by="district"))
    return Case("Pennsylvania 2020", table, tables, figures, 2, project)


def counties(folder: Path) -> Case:
    with gzip.open(folder / "census" / "sf1_2010_P12_counties.csv.gz", "rt") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["fips"])
    ages = [key[2:] for key in rows[0] if key.startswith("m_") and key != "m_total"]
    counts = np.array([[[int(row[f"{s}_{a}"]) for a in ages] for s in "fm"] for row in rows])
    schema = Schema.from_dict(
        {
            "county": {
                "levels": [row["fips"] for row in rows],
                "within": {"state": [row["fips"][:2] for row in rows]},
            },
            "sex": {"levels": ["f", "m"]},
            "age": {"integers": [1, len(ages)]},
        }
    )
    blocks = (slice(0, 4), slice(4, None))

    def inside(z: np.ndarray) -> np.ndarray:
        for block in blocks:
            z[..., block] -= z[..., block].mean(axis=-1, keepdims=True)
        return z

    def project(names: list[str], z: np.ndarray) -> np.ndarray:
        if "sex" not in names:
            return inside(z)
        axis = names.index("sex")
        mean = z.mean(axis=axis, keepdims=True)
        contrast = z - mean
        return inside(mean) + contrast - contrast.mean(axis=-1, keepdims=True)

    tables = [
        ["county", "sex", "age"],
        ["county", "age"],
        ["state", "sex", "age"],
        ["state", "age"],
        ["sex", "age"],
        ["age"],
    ]
    figures = tuple(
        one
        for one in (
            total(by="county"),
            count("sex = 'f'", by="county"),
            count("age >= 5", by="county"),
        )
    )
    return Case(
        "counties 2010, P12", Table(schema, schema.names, counts), tables, figures, 3, project
    )


def topdown(order: Any, values: list[np.ndarray], work: Measurements) -> list[LevelTargets]:
    """Each level's own measurements: the cells, moved so that groups' sums are combined too."""
    found = []
    for level in range(len(order.chain)):
        cell, group = own_precisions(order, level)
        partition = order.chain[level]
        at = {
            "cells" if margin.size // margin.shape[order.tree] == order.cells else "sums": b
            for b, margin in enumerate(work.margins)
            if margin.partitions[order.tree] == partition
        }
        cells = values[at["cells"]].reshape(partition.size, -1)
        sums = values[at["sums"]].reshape(partition.size, -1)
        numbers, size = order.groups, order.cells / (order.groups.max() + 1)
        own = np.zeros(sums.shape)
        np.add.at(own.T, numbers, cells.T)
        shift = group * (sums - own) / (cell + size * group)
        nodes = partition.size
        found.append(
            LevelTargets(cells + shift[:, numbers], np.full(nodes, cell), np.full(nodes, group))
        )
    return found


def errors(
    case: Case, rho: float, shares: tuple[float, ...], releases: int
) -> list[dict[str, Any]]:
    known = publish(case.table, *case.figures)
    precisions = tuple(rho / case.adjacency**2 * np.array(shares) / sum(shares))
    work = Measurements(Workload.of(case.table.schema, case.tables), precisions, known)
    start = time.perf_counter()
    covariance = Covariance(work)
    deviations = [covariance.deviations(names).values for names in case.tables]
    order = rehearse(work)
    ready = time.perf_counter() - start
    truth = [case.table.marginal(names).counts for names in case.tables]
    squares = np.zeros((3, len(truth)))
    inside, seconds = np.zeros(len(truth)), np.zeros(3)
    for release in range(releases):
        rng = np.random.default_rng(release)
        clock = [time.perf_counter()]
        values = [
            t + case.project(names, rng.standard_normal(t.shape) / np.sqrt(p))
            for names, t, p in zip(case.tables, truth, precisions, strict=True)
        ]
        clock.append(time.perf_counter())
        result = estimate(work, values, covariance.inverse)
        estimates = [result.table(names) for names in case.tables]
        clock.append(time.perf_counter())
        whole = fit_to_targets(order, targets_of(result, order))
        printed = [whole.table(names) for names in case.tables]
        clock.append(time.perf_counter())
        seconds += np.diff(clock)
        rival = fit_to_targets(order, topdown(order, values, work))
        for b, names in enumerate(case.tables):
            other = rival.table(names)
            squares[:, b] += [
                np.mean((v - truth[b]) ** 2) for v in (estimates[b], printed[b], other)
            ]
            half = half_width(0.9) * deviations[b]
            low, high = np.floor(estimates[b] - half), np.ceil(estimates[b] + half)
            inside[b] += np.mean((low <= printed[b]) & (printed[b] <= high))
    rmse = np.sqrt(squares / releases)
    return [
        {
            "data": case.name,
            "rho": rho,
            "table": " x ".join(names),
            "sd": float(np.sqrt(np.mean(deviations[b] ** 2))),
            "estimate": float(rmse[0, b]),
            "printed": float(rmse[1, b]),
            "ratio": float(rmse[1, b] / rmse[0, b]),
            "rule": _rule(float(np.sqrt(np.mean(deviations[b] ** 2))), rmse[1, b] / rmse[0, b]),
            "inside": float(inside[b] / releases),
            "topdown": float(rmse[2, b]),
            "seconds": f"{ready:.2f} + {seconds.sum() / releases:.2f}",
        }
        for b, names in enumerate(case.tables)
    ]


def _rule(deviation: float, ratio: float) -> str:
    return "kept" if ratio <= (1.05 if deviation >= 1.5 else 1.2) else "broken"


def run(data: str | None = None, releases: int = 5) -> list[dict[str, Any]]:
    if data is None:
        return [{"data": "skipped: needs --data DIR with census tables"}]
    rows = []
    for case in (pennsylvania(Path(data)), counties(Path(data))):
        for rho in (0.5, 0.05):
            for name, shares in SHARES.items():
                rows += [{"shares": name, **row} for row in errors(case, rho, shares, releases)]
    return rows
