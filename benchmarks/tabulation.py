"""Tabulation of Parquet and CSV files against DuckDB's plain GROUP BY: growth, memory, and Spark.

Run `python benchmarks/tabulation.py` (1e6 and 1e7 rows, about a minute), with `--large` for 1e8
rows too, with `--spark` for Spark local[2] on the same files. Rows are people: county (3,143 codes
as text), sex (text), age (whole numbers); 3,143 x 2 x 116 = 729,176 cells. Each count runs in a
process of its own, so that its peak of memory is its own; the first run of each warms the page
cache and is not timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

SEED = 20_200_401
COUNTIES = 3_143
AGES = 116
PER_FILE = 5_000_000
ROUNDS = 2
SIZES = (1_000_000, 10_000_000)
PARQUET, CSV = "parquet", "people.csv"
PLAIN = "plain GROUP BY"
METHODS = tuple(f"{what}, {how}" for what in (PARQUET, CSV) for how in (PLAIN, "tabulate"))


def schema() -> Any:
    from congenial.data.schema import Schema

    return Schema.from_dict(
        {
            "county": {"levels": [f"{i:05d}" for i in range(COUNTIES)]},
            "sex": {"levels": ["female", "male"]},
            "age": {"integers": [0, AGES - 1]},
        }
    )


def generate(folder: Path, rows: int) -> Path:
    """Parquet files of at most 5e6 rows, in random order, and the same rows in one CSV file."""
    (folder / PARQUET).mkdir()
    rng = np.random.default_rng(SEED)
    counties, sexes = pa.array([f"{i:05d}" for i in range(COUNTIES)]), pa.array(["female", "male"])
    for part, start in enumerate(range(0, rows, PER_FILE)):
        n = min(PER_FILE, rows - start)
        weights = rng.gamma(0.5, size=COUNTIES)
        county = rng.choice(COUNTIES, n, p=weights / weights.sum()).astype(np.int32)
        age = np.minimum(rng.gamma(4.0, 10.0, n), AGES - 1).astype(np.int16)
        table = pa.table(
            {
                "county": pa.DictionaryArray.from_arrays(county, counties).cast(pa.string()),
                "sex": pa.DictionaryArray.from_arrays(
                    rng.integers(0, 2, n, dtype=np.int32), sexes
                ).cast(pa.string()),
                "age": age,
            }
        )
        file = folder / PARQUET / f"part-{part:03d}.parquet"
        pq.write_table(table, file, row_group_size=1_000_000)
        with (folder / CSV).open("ab") as out:
            pacsv.write_csv(table, out, pacsv.WriteOptions(include_header=part == 0))
    return folder


def count(method: str, folder: Path) -> int:
    """Count once; the number of rows found."""
    from congenial.data.tabulate import tabulate

    what, how = method.split(", ")
    if how == PLAIN:
        import duckdb

        read = f"read_parquet('{folder / PARQUET}/*.parquet')"
        if what == CSV:
            read = f"read_csv('{folder / CSV}', header = true, all_varchar = true)"
        query = f"SELECT county, sex, age, COUNT(*) AS n FROM {read} GROUP BY ALL"
        found = duckdb.connect().execute(query).to_arrow_table()
        return int(found["n"].to_numpy().sum())
    if how == "spark local[2]":
        return tabulate(f"spark:{folder / PARQUET}", schema()).total
    return tabulate(folder / what, schema()).total


def child(method: str, folder: Path) -> None:
    """Count twice and time the second."""
    count(method, folder)
    start = time.perf_counter()
    rows = count(method, folder)
    seconds = time.perf_counter() - start
    print(json.dumps({"rows": rows, "seconds": seconds, "peak MB": peak_memory()}))


def peak_memory() -> float:
    """Largest resident size of this process in MB (getrusage would include the parent's)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def once(method: str, folder: Path) -> dict[str, float]:
    """Time one method in a process of its own."""
    command = [sys.executable, __file__, "--child", method, str(folder)]
    environment = {**os.environ, "MASTER": "local[2]"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measure(methods: tuple[str, ...], folder: Path, rows: int) -> list[dict[str, Any]]:
    """Methods take turns, so that another program's load does not fall on one; the best counts."""
    best: dict[str, dict[str, float]] = {}
    for _ in range(ROUNDS):
        for method in methods:
            found = once(method, folder)
            assert found["rows"] == rows
            if method not in best or found["seconds"] < best[method]["seconds"]:
                best[method] = found
    return [
        {
            "rows": rows,
            "method": method,
            "seconds": round(found["seconds"], 3),
            "million rows/s": round(rows / found["seconds"] / 1e6, 1),
            "peak MB": round(found["peak MB"]),
        }
        for method, found in best.items()
    ]


SMALLEST = {"SIZES": (1000,), "ROUNDS": 1, "METHODS": METHODS[:2]}


def run(large: bool = False, spark: bool = False) -> list[dict[str, Any]]:
    """One row per size and method, with the ratio to DuckDB's plain GROUP BY."""
    rows = []
    methods = (*METHODS, f"{PARQUET}, spark local[2]") if spark else METHODS
    for size in (*SIZES, *((100_000_000,) if large else ())):
        with tempfile.TemporaryDirectory() as folder:
            generate(Path(folder), size)
            part = measure(methods, Path(folder), size)
        plain = {one["method"]: one["seconds"] for one in part}
        for one in part:
            base = plain[f"{one['method'].split(', ')[0]}, {PLAIN}"]
            rows.append(one | {"seconds over plain": round(one["seconds"] / base, 2)})
    return rows


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(sys.argv[2], Path(sys.argv[3]))
    else:
        for line in run("--large" in sys.argv, "--spark" in sys.argv):
            print(line)
