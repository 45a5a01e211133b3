"""Crossing exact figures that agencies have, under rho: can it be done, at what price, how fast.

Run `python -m benchmarks crossing_structures`. Made-up people, one table of all cells at rho = 1/2.
`records`: in how many records compared datasets differ (a*), and `by` how that is proved. `sd`:
standard deviation of the noisiest cell, and of the same promise without these figures. `accepted`:
at least this share of proposals is kept, in the tie of groups where fewest are. `draw`: of a whole
table of noise. Times are processor seconds, everything compiled before.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from congenial.publication import workflow
from congenial.publication.check_document import of_check
from congenial.publication.plan import Plan
from congenial.publication.verification import verify
from congenial.sampling.randomness import SystemRandomness

RHO = 0.5
SEED = 40
SMALLEST = {"AREAS": 4, "FOUR": (2, 2, 2, 2)}
AREAS = 200
PEOPLE_PER_CELL = 12
DRAWS = 20
FOUR = (2, 9, 7, 3)


class Structure(NamedTuple):
    """A table, and what is published exactly of it."""

    name: str
    levels: dict[str, int]
    within: dict[str, tuple[str, int]]  # areas in larger areas: name and number
    figures: dict[str, str]  # what is counted, as the plan says it


def structures() -> Iterator[Structure]:
    """Those of agencies; areas by sex and age, or race, unless said otherwise."""
    people, regions = (
        {"area": AREAS, "sex": 2, "age": 23},
        {"area": ("region", max(2, AREAS // 20))},
    )
    area, tract = {"total": 'total = true, by = ["area"]'}, 'count = "age >= 18", by = ["region"]'
    age, region_age = 'margin = ["age"]', 'margin = ["region", "age"]'
    yield Structure("area totals, ages of the nation", people, {}, area | {"age": age})
    yield Structure("area totals, region x age", people, regions, area | {"age": region_age})
    small = {"area": AREAS, "sex": 2, "age": 4, "race": 6}
    each = {name: f'margin = ["area", "{name}"]' for name in ("sex", "age", "race")}
    yield Structure("area x sex, area x age, area x race", small, {}, each)
    four = {f"v{i}": size for i, size in enumerate(FOUR)}
    margins = {name: f'margin = ["{name}"]' for name in four}
    what = " x ".join(map(str, FOUR))
    yield Structure(f"one-way margins of {what}", four, {}, margins)
    yield Structure("block totals, tract voting age", people, regions, area | {"adults": tract})


def write(structure: Structure, folder: Path) -> Plan:
    """People, one by one, and a plan."""
    rng, names = np.random.default_rng(SEED), list(structure.levels)
    size = math.prod(structure.levels.values()) * PEOPLE_PER_CELL
    columns = []
    for name, levels in structure.levels.items():
        shares = rng.dirichlet(np.full(levels, 3.0))
        codes = rng.choice(levels, size, p=shares)
        codes[:levels] = np.arange(levels)
        columns.append([_label(name, code) for code in codes.tolist()])
    lines = [",".join(names), *map(",".join, zip(*columns, strict=True))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    schema = [_attribute(structure, name) for name in names]
    figures = [f'"{label}" = {{ {what} }}' for label, what in structure.figures.items()]
    table = ", ".join(f'"{name}"' for name in names)
    text = [
        "[data]",
        'source = "people.csv"',
        "[schema]",
        *schema,
        "[publish]",
        *figures,
        "[[release]]",
        'name = "all"',
        f"table = [{table}]",
        f"rho = {RHO}",
        "[budget]",
        'ledger = "ledger.sqlite"',
        "rho = 100",
    ]
    (folder / "plan.toml").write_text("\n".join(text) + "\n")
    return Plan.load(folder / "plan.toml")


def _label(name: str, code: int) -> str:
    return str(2 * code) if name == "age" else f"{name}{code}"


def _attribute(structure: Structure, name: str) -> str:
    levels = structure.levels[name]
    if name == "age":
        edges, top = [2 * k for k in range(levels)], 2 * (levels - 1)
        return f'age = {{ edges = {edges}, top = "{top}+" }}'
    labels = ", ".join(f'"{name}{k}"' for k in range(levels))
    text = f"{name} = {{ levels = [{labels}]"
    if name in structure.within:
        upper, number = structure.within[name]
        of = ", ".join(f'"{upper}{k * number // levels}"' for k in range(levels))
        text += f", within = {{ {upper} = [{of}] }}"
    return text + " }"


def seconds(do: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the processor seconds it took."""
    start = time.process_time()
    result = do()
    return result, time.process_time() - start


def row(structure: Structure, folder: Path) -> dict[str, Any]:
    """One structure, from check to verify. Seconds of `check` after `publish` are those of what
    it says about errors and costs.
    """
    plan = write(structure, folder)
    _, first = seconds(lambda: of_check(workflow.check(plan), None, ()))
    workflow.publish(plan)
    result = workflow.check(plan)
    again, then = seconds(lambda: of_check(result, None, ()))
    _, released = seconds(lambda: workflow.release(plan, "all"))
    _, verified = seconds(lambda: verify(folder / "bundles" / "all"))
    mechanism = result.releases[0].mechanism.mechanisms[0]
    star = mechanism.adjacency.a_star
    source = SystemRandomness()
    mechanism.conditioned.draw(source)

    _, drawn = seconds(lambda: mechanism.conditioned.draw_many(source, DRAWS))
    kept = [tie.law.sampler.log_acceptance for tie, _ in mechanism.conditioned.ties()]
    costs = again["releases"][0]["figure_costs"]
    return {
        "structure": structure.name,
        "cells": math.prod(structure.levels.values()),
        "records": int(star.value),
        "by": f"{star.by}{'' if star.exact else ', a bound'}",
        "sd": costs[-1]["deviation"],
        "sd without": costs[-1]["deviation_without"],
        "accepted": math.exp(min(kept)),
        "draw, s": drawn / DRAWS,
        "check, s": first,
        "check after publish, s": then,
        "release, s": released,
        "verify, s": verified,
    }


def run() -> list[dict[str, Any]]:
    """One row per structure, once everything that is compiled has been."""
    rows = []
    for structure in structures():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(row(structure, Path(folder)))
    return rows
