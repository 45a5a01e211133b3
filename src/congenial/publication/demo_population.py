"""The demo population: about 300,000 invented people in 24 counties of 3 states.

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

    found = pa.array(codes.astype(np.int32))
    return pa.DictionaryArray.from_arrays(found, pa.array(levels)).cast(pa.string())


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
