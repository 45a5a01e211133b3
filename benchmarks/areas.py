"""How commands grow with the number of areas: total, female and voting age of each, 46 cells.

Run `python -m benchmarks areas`. For 10^4 and 10^5 areas (10^6 with `AREAS = 1000000` in the
environment): processor seconds and the most memory of `check`, `publish` and `release` as processes
of their own, start included. People are made up: sizes as skewed as blocks are. With `--data DIR`
(`census/sf1_2010_P12_counties.csv.gz`) the 3,143 counties of 2010 follow, with whole counts.
"""

from __future__ import annotations

import csv
import gzip
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20200401
AGES = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
COMMANDS = {"check": ("check",), "publish": ("publish", "--yes"), "release": ("release",)}
SIZES = (10_000, 100_000)
PLAN = """
[data]
source = "people.parquet"
[schema]
area = {{ levels_file = "areas.csv" }}
sex = {{ levels = ["female", "male"] }}
age = {{ edges = {ages}, top = "85+" }}
[publish]
"Population" = {{ total = true, by = ["area"] }}
"Female" = {{ count = "sex = 'female'", by = ["area"] }}
"Voting age" = {{ count = "age >= 18", by = ["area"] }}
[[release]]
name = "sex-by-age"
table = ["area", "sex", "age"]
epsilon = 1.0
{more}
[budget]
ledger = "ledger.sqlite"
epsilon = 4.0
"""


def write(folder: Path, counts: Any, more: str = "") -> None:
    """A plan and its people, one row each, from counts by area, sex and age."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"a{i:07d}" for i in range(len(counts))]
    (folder / "areas.csv").write_text("\n".join(["area", *names]) + "\n")
    (folder / "plan.toml").write_text(PLAN.format(ages=list(AGES), more=more))
    writer = None
    for start in range(0, len(counts), 10_000):
        flat = counts[start : start + 10_000].reshape(-1)
        cell = np.repeat(np.arange(flat.size), flat)
        area, sex = start + cell // 46, cell // 23 % 2
        part = pa.table(
            {
                "area": pa.DictionaryArray.from_arrays(pa.array(area.astype(np.int32)), names),
                "sex": pa.DictionaryArray.from_arrays(
                    pa.array(sex.astype(np.int8)), ["female", "male"]
                ),
                "age": pa.array(np.array(AGES, dtype=np.int16)[cell % 23]),
            }
        )
        writer = writer or pq.ParquetWriter(folder / "people.parquet", part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def made_up(areas: int) -> Any:
    """Counts by area, sex and age: some 24 people an area, most areas small."""
    rng = np.random.default_rng(SEED)
    return rng.poisson(np.repeat(rng.gamma(0.6, 40 / 46, size=areas), 46)).reshape(areas, 2, 23)


def counties(folder: str) -> Any:
    """The counties of 2010."""
    place = Path(folder) / "census" / "sf1_2010_P12_counties.csv.gz"
    with gzip.open(place, "rt") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    return np.array([[row[28:51], row[4:27]] for row in rows], dtype=np.int64)


def measured(folder: Path, words: tuple[str, ...]) -> tuple[float, float]:
    """Processor seconds and megabytes of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command, *options = words
    subprocess.run(
        [sys.executable, "-m", "congenial.cli", command, "plan.toml", *options],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, after.ru_maxrss / 1000  # of the largest command so far


def rows_of(name: str, counts: Any, more: str = "") -> list[dict[str, Any]]:
    """The commands one after another on one population."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), counts, more)
        for command, words in COMMANDS.items():
            seconds, memory = measured(Path(place), words)
            row = {"areas": len(counts), "what": name, "command": command}
            found.append(row | {"cpu_s": seconds, "most_MB_so_far": memory})
    return found


SMALLEST = {"SIZES": (20,), "COMMANDS": {"check": ("check",)}}


def run(data: str | None = None) -> list[dict[str, Any]]:
    """One row per number of areas and command."""
    sizes = [*SIZES, *map(int, filter(None, [os.environ.get("AREAS")]))]
    found = [row for size in sizes for row in rows_of("made up", made_up(size))]
    if data is not None:
        found += rows_of("counties, whole counts", counties(data), 'nonnegative = "project"')
    return found
