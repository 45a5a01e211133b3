"""A made-up nation of any size: blocks in groups, tracts, counties and states, written by parts.

Blocks are as sparse as real ones: many hold nobody, most a few dozen. Drawn with NumPy's generator
from a fixed seed, state by state; it makes the *people* and has no part in protecting them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.publication.demo_population import EDGES, new_folder

LEVELS = ("block", "group", "tract", "county", "state")
CHILDREN = {"group": 9, "tract": 3, "county": 15}  # blocks, groups, tracts in one, about
STATE = 20_000  # blocks of a state, about
EMPTY = 0.35  # share of blocks without people
PEOPLE = 30  # in a block that has some, about

PLAN = f"""# A made-up nation: block populations stay exact, everything else is protected.

[data]
source = "people"                # one Parquet file per state
unit = "person_id"

[schema]
block = {{ levels_file = "blocks.csv" }}   # its further columns are group, tract, county and state
sex = {{ levels = ["female", "male"] }}
age = {{ edges = {list(EDGES)}, top = "{EDGES[-1]}+" }}

[publish]                        # exact, unprotected
"Population" = {{ total = true, by = ["block"], because = "redistricting statute" }}

[[release]]
name = "nation"
tables = [
  ["block", "sex", "age"], ["tract", "sex", "age"], ["county", "sex", "age"],
  ["county", "age"], ["state", "sex", "age"], ["sex", "age"],
]
parts = "state"                  # drawn, estimated and written state by state
rho = 0.5                        # per person, for all tables together

[budget]
ledger = "ledger.sqlite"
rho = 1
"""


def write_nation(folder: Path, areas: int, seed: int, on_spark: bool = False) -> Path:
    """Write people/, blocks.csv and plan.toml to a new folder; returns the plan's path."""
    with new_folder(folder):
        (folder / "people").mkdir()
        with (folder / "blocks.csv").open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(LEVELS)
            first = 0
            for state, labels in enumerate(_states(areas, seed)):
                out.writerows(labels)
                first += _write_people(folder, state, [row[0] for row in labels], first, seed)
        plan = folder / "plan.toml"
        source = '"spark:./people"' if on_spark else '"people"'
        plan.write_text(PLAN.replace('"people"', source, 1), encoding="utf-8")
    return plan


def _states(areas: int, seed: int) -> Iterator[list[tuple[str, ...]]]:
    """The blocks of each state with their parents, finest first; states are of unequal size."""
    rng = np.random.default_rng([seed, 0])
    many = max(2, min(56, areas // STATE))
    shares = rng.gamma(2.0, size=many)
    ends = np.rint(np.cumsum(shares) / shares.sum() * (areas - many)).astype(int)
    sizes = np.diff(ends, prepend=0) + 1
    for state, size in enumerate(sizes.tolist()):
        yield _labels(f"{state + 1:02d}", size, np.random.default_rng([seed, 1, state]))


def _labels(state: str, blocks: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    group = _nested(blocks, CHILDREN["group"], rng)
    tract = _nested(int(group[-1]) + 1, CHILDREN["tract"], rng)[group]
    county = _nested(int(tract[-1]) + 1, CHILDREN["county"], rng)[tract]
    return [
        (
            f"{state}{c:03d}{t:06d}{g:07d}{b:07d}",
            f"{state}{c:03d}{t:06d}{g:07d}",
            f"{state}{c:03d}{t:06d}",
            f"{state}{c:03d}",
            state,
        )
        for b, (g, t, c) in enumerate(
            zip(group.tolist(), tract.tolist(), county.tolist(), strict=True)
        )
    ]


def _nested(children: int, mean: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The parent of each child, in order: parents of unequal size, some with one child only."""
    begins = rng.random(children) < 1 / mean
    begins[0] = False
    return np.cumsum(begins).astype(np.int64)


def _write_people(folder: Path, state: int, blocks: list[str], first: int, seed: int) -> int:
    """Write the people of a state; returns how many they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng([seed, 2, state])
    sizes = rng.poisson(rng.gamma(0.8, PEOPLE / 0.8, len(blocks)))
    sizes[rng.random(len(blocks)) < EMPTY] = 0
    place = np.repeat(np.arange(len(blocks), dtype=np.int32), sizes)
    many = len(place)
    older = np.repeat(rng.normal(0, 6, len(blocks)), sizes)  # neighbours are of an age
    age = np.clip(np.rint(rng.gamma(2.6, 15, many) + older), 0, 100).astype(np.int16)
    columns: dict[str, Any] = {
        "person_id": np.arange(first, first + many),
        "block": pa.DictionaryArray.from_arrays(pa.array(place), pa.array(blocks)),
        "sex": pa.DictionaryArray.from_arrays(
            pa.array(rng.integers(0, 2, many, dtype=np.int32)), pa.array(["female", "male"])
        ),
        "age": age,
    }
    pq.write_table(pa.table(columns), folder / "people" / f"state-{state + 1:02d}.parquet")
    return many
