"""Made-up people: about 300,000 in 24 counties of 3 states, or a nation of any size.

Drawn with NumPy's PCG64 generator from a fixed seed, so that everybody sees the same people. That
generator makes the *people*; it has no part in protecting them, which takes the operating system's
randomness.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.errors import BundleError

_NAMES = {
    "Arden": "Alder Birchwood Cedarfield Dunmore Elmhurst Fernley Glenrock Hazelton",
    "Brevia": "Isleworth Juniper Kestrel Larkspur Marlow Northam Oakdale Pinecrest",
    "Corvale": "Quarry Ravensburg Stonefield Thornbury Upland Verity Westmere Yarrow",
}
STATES = {state: names.split() for state, names in _NAMES.items()}
EDGES = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
OLDEST = 100
SMALLEST, LARGEST = 800, 60_000  # people in a county, about

PLAN = f"""# The demo plan: totals the law requires stay exact, everything else is protected.

[about]                          # words for readers
title = "People by sex and age (made up)"
agency = "Statistical Office of the Demo"
contact = "the office that ran `congenial demo`"
date = "2020-04-01"
quote = "sex-by-age"             # where both releases show the same number

[data]
source = "people.parquet"
unit = "person_id"               # one row each, checked

[schema]
county = {{ levels_file = "counties.csv" }}   # its second column says which state a county is in
sex = {{ levels = ["female", "male"] }}
age = {{ edges = {list(EDGES)}, top = "{EDGES[-1]}+" }}

[publish]                        # exact, unprotected
"Population" = {{ total = true, by = ["county"], because = "apportionment statute" }}
"Female" = {{ count = "sex = 'female'", by = ["county"], because = "equality statute" }}
"Voting age" = {{ count = "age >= 18", by = ["county"], because = "redistricting statute" }}

[[release]]                      # what readers will use, measured together: sums are right too
name = "sex-by-age"
tables = [
  ["county", "sex", "age"], ["county", "age"], ["state", "sex", "age"], ["state", "age"],
  ["sex", "age"], ["age"],
]
rho = 0.1                        # per person, for all six tables together

[[release]]                      # one table by itself
name = "state-summary"
table = ["state", "sex", "age"]
rho = 0.02
nonnegative = "project"

[budget]                         # one ledger is one population
ledger = "ledger.sqlite"
rho = 0.5
"""


def write_demo(folder: Path, seed: int) -> Path:
    """Write people.parquet, counties.csv and plan.toml to a new folder; returns the plan's path."""
    import pyarrow.parquet as pq

    with new_folder(folder):
        pq.write_table(population(seed), folder / "people.parquet")
        with (folder / "counties.csv").open("w", encoding="utf-8", newline="") as file:
            rows = [(county, state) for state, counties in STATES.items() for county in counties]
            csv.writer(file, lineterminator="\n").writerows([("county", "state"), *rows])
        plan = folder / "plan.toml"
        plan.write_text(PLAN, encoding="utf-8")
    return plan


@contextmanager
def new_folder(folder: Path) -> Iterator[None]:
    """Make a folder and write to it; BundleError where something is in it or it cannot be."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BundleError(f"'{folder}' already exists.", remedy="Choose another folder with --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as reason:
        raise BundleError(
            f"cannot write to '{folder}': {reason.strerror}.",
            remedy="Choose another folder with --out.",
        ) from None


def population(seed: int) -> Any:
    """The people as an Arrow table: person_id, county, sex, age in whole years."""
    import pyarrow as pa

    generator = np.random.default_rng(seed)
    counties = [county for group in STATES.values() for county in group]
    sizes = generator.permutation(_sizes(len(counties), generator))
    ages, male = [], []
    for size in sizes:
        older = generator.normal(0, 0.008)  # some counties are where people retire
        students = generator.gamma(1.5, 0.25)  # and some have a college
        age = generator.choice(OLDEST + 1, size=size, p=_age_law(older, students))
        ages.append(age)
        male.append(generator.random(size) < _share_of_men(age))
    order = generator.permutation(int(sizes.sum()))
    county = np.repeat(np.arange(len(counties)), sizes)[order]
    sex = np.concatenate(male)[order]
    return pa.table(
        {
            "person_id": np.arange(1, len(order) + 1, dtype=np.int64),
            "county": _labels(county, counties),
            "sex": _labels(sex, ["female", "male"]),
            "age": np.concatenate(ages)[order].astype(np.int16),
        }
    )


def _labels(codes: NDArray[Any], levels: list[str]) -> Any:
    import pyarrow as pa

    labels = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(labels, pa.array(levels)).cast(pa.string())


def _sizes(counties: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Many small counties, a few large ones."""
    place = np.linspace(0, 1, counties) ** 1.2
    about = SMALLEST * (LARGEST / SMALLEST) ** place
    return np.round(about * generator.uniform(0.95, 1.05, counties)).astype(np.int64)


def _age_law(older: float, students: float) -> NDArray[np.float64]:
    """A pyramid: fewer children lately, a boom behind sixty, deaths from seventy on."""
    age = np.arange(OLDEST + 1)
    births = 1 - 0.1 * np.exp(-age / 8) + 0.18 * np.exp(-(((age - 62) / 7) ** 2))
    alive = 1 / (1 + np.exp((age - 82) / 6.5))
    college = students * np.exp(-(((age - 20.5) / 1.8) ** 2))
    weight = (births + college) * alive * np.exp(older * (age - 40))
    law: NDArray[np.float64] = weight / weight.sum()
    return law


def _share_of_men(age: NDArray[np.int64]) -> NDArray[np.float64]:
    """105 boys for 100 girls at birth; women live longer."""
    share: NDArray[np.float64] = 0.512 - 0.2 / (1 + np.exp(-(age - 84) / 7))
    return share


# ---- a made-up nation of any size ----------------------------------------------------------------


LEVELS = ("block", "group", "tract", "county", "state")
CHILDREN = {"group": 9, "tract": 3, "county": 15}  # blocks, groups, tracts in one, about
STATE = 20_000  # blocks of a state, about
EMPTY = 0.35  # share of blocks without people
PEOPLE = 30  # in a block that has some, about

NATION_PLAN = f"""# A made-up nation: block populations stay exact, everything else is protected.

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
        plan.write_text(NATION_PLAN.replace('"people"', source, 1), encoding="utf-8")
    return plan


def _states(areas: int, seed: int) -> Iterator[list[tuple[str, ...]]]:
    """The blocks of each state with their parents, finest first; states are of unequal size."""
    rng = np.random.default_rng([seed, 0])
    many = max(2, min(56, areas // STATE))
    shares = rng.gamma(2.0, size=many)
    ends = np.rint(np.cumsum(shares) / shares.sum() * (areas - many)).astype(int)
    sizes = np.diff(ends, prepend=0) + 1
    for state, size in enumerate(sizes.tolist()):
        yield _blocks(f"{state + 1:02d}", size, np.random.default_rng([seed, 1, state]))


def _blocks(state: str, blocks: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
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
