"""Households of a made-up county: what protecting whole households costs, and how long it takes.

Run `python -m benchmarks households`. Households by block and people by county are exact; people by
age and sex, and households by size, are released. Error is that of one draw beside the truth, and
beside the same release for data with one row per unit, which protects persons and no household.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from congenial import Schema, margin, release_table, total
from congenial.data.schema import Unit
from congenial.data.tabulate import Microdata
from congenial.figures.figures import Figures
from congenial.figures.statements import of_units
from congenial.mechanisms.calibrate import calibrate
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import joint_loss
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SeededRandomness

SEED = 20261117
BLOCKS, MOST = 40, 8
RHO = 0.5
HOUSEHOLDS, COUNTED, TOGETHER, ROWS = 20_000, 1_000_000, MOST, (1, 5, 10)
SIZES = (0.28, 0.34, 0.16, 0.13, 0.06, 0.02, 0.006, 0.004)  # of households, 1 to 8 people
QUARTERS = 0.03  # people in group quarters, as units of one row


def schema(most: int = MOST) -> Schema:
    """Block, tenure and size of a household; age and sex of a person."""
    blocks = [str(i) for i in range(BLOCKS)]
    return Schema.from_dict(
        {
            "block": {"levels": blocks, "of": "unit", "within": {"county": ["C"] * BLOCKS}},
            "tenure": {"levels": ["own", "rent", "group quarters"], "of": "unit"},
            "size": {"integers": [1, most], "of": "unit size"},
            "age": {"edges": [0, 5, 18, 30, 45, 65], "top": "65+"},
            "sex": {"levels": ["f", "m"]},
        }
    )


def county(households: int, seed: int = SEED) -> pa.Table:
    """People of made-up households: adults first, then children; group quarters have one row."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice(np.arange(1, MOST + 1), households, p=np.array(SIZES) / sum(SIZES))
    quarters = rng.random(households) < QUARTERS
    sizes[quarters] = 1
    tenure = np.where(quarters, 2, rng.random(households) < 0.36)
    owner = np.repeat(np.arange(households), sizes)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    age = np.where(place < 2, rng.integers(18, 90, len(owner)), rng.integers(0, 25, len(owner)))
    return pa.table(
        {
            "household": owner,
            "block": rng.integers(0, BLOCKS, households)[owner].astype(str),
            "tenure": np.array(["own", "rent", "group quarters"])[tenure[owner]],
            "age": age,
            "sex": np.array(["f", "m"])[rng.integers(0, 2, len(owner))],
        }
    )


def figures(of: Schema) -> Figures:
    """Households by block, and people of the county."""
    return Figures.of(of, (total(by="county"), of_units(total(by="block"))))


def study_rows(households: int = 20_000) -> list[dict[str, Any]]:
    """The two releases for whole households, and people by age and sex for single persons."""
    of = schema()
    with Microdata.open(county(households), of, Unit("household", MOST)) as data:
        rows = data.tabulate(["block", "age", "sex"])
        units = data.tabulate_units(["block", "size"])
    public = figures(of).evaluate(rows, units)
    pairs = SeveralRows.given(public, MOST)
    people, sizes = ["age", "sex"], ["size"]
    return [
        _released("people by age and sex, households protected", pairs, people, rows),
        _released("the same, one row per unit", SemiAdjacent(public.of_rows), people, rows),
        _released("households by size", pairs.tables_of_units, sizes, units),
    ]


def _released(what: str, pairs: Adjacency, names: list[str], table: Any) -> dict[str, Any]:
    start = time.perf_counter()
    made = calibrate("auto", Guarantee.zero_concentrated(RHO, pairs), names)
    drawn = release_table(made, table, SeededRandomness(SEED))
    truth = table.marginal(names).counts
    return {
        "what": what,
        "rows or units apart": pairs.rows_apart(names),
        "standard deviation": float(made.description.variance) ** 0.5,
        "root mean square error": float(np.sqrt(np.mean(np.square(drawn.drawn[0] - truth)))),
        "mean count": float(truth.mean()),
        "seconds": time.perf_counter() - start,
    }


def together_rows(most: int = MOST) -> list[dict[str, Any]]:
    """What the releases for whole households lose together, each promising RHO alone."""
    pairs = SeveralRows.given(figures(schema(most)), most)
    asked = [(pairs, ["age", "sex"]), (pairs.tables_of_units, ["size"])]
    laws = [
        calibrate("auto", Guarantee.zero_concentrated(RHO, one), names).description
        for one, names in asked
    ]
    return [
        {
            "what": "both releases together",
            "rho": float(joint_loss(laws, pairs).rho),
            "rho, one by one": sum(float(joint_loss([law], pairs).rho) for law in laws),
        }
    ]


def promise_rows() -> list[dict[str, Any]]:
    """Numbers and sensitivities of six attributes under one-way margins."""
    six = {f"a{i}": {"integers": [1, size]} for i, size in enumerate((2, 3, 4, 5, 6, 7))}
    of, found = Schema.from_dict(six), []
    public = Figures(of, tuple(margin(name) for name in of.names))
    for most in ROWS:
        start = time.process_time()
        pairs = SeveralRows(public, most)
        found.append(
            {
                "what": f"six margins, at most {most} rows",
                "units": pairs.units,
                "slots": pairs.slots,
                "Delta_1": int(pairs.l1(of.names).value),
                "cpu seconds": time.process_time() - start,
            }
        )
    return found


def tabulation_rows(households: int) -> list[dict[str, Any]]:
    """Units of a Parquet file counted and checked, beside a plain GROUP BY of the engine."""
    import duckdb

    people, of = county(households), schema()
    with TemporaryDirectory() as folder:
        file = Path(folder) / "people.parquet"
        pq.write_table(people, file)

        def ours() -> None:
            with Microdata.open(file, of, Unit("household", MOST)) as data:
                assert int(data.tabulate_units(["block", "tenure"]).total) == households

        def grouped() -> None:
            duckdb.sql(
                "SELECT block, tenure, COUNT(*) FROM (SELECT household, block, tenure FROM "
                f"'{file}' GROUP BY household, block, tenure) GROUP BY block, tenure"
            ).fetchall()

        ours()  # compiled loops are loaded once
        return [
            {
                "what": "units by block and tenure, checked",
                "people": people.num_rows,
                "units": households,
                "cpu seconds": _cpu(ours),
                "GROUP BY on both keys, cpu seconds": _cpu(grouped),
            }
        ]


def _cpu(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


SMALLEST = {"HOUSEHOLDS": 500, "COUNTED": 500, "TOGETHER": 2, "ROWS": (1,)}


def run() -> list[dict[str, Any]]:
    """All rows."""
    together = together_rows(TOGETHER)
    return [*study_rows(HOUSEHOLDS), *together, *promise_rows(), *tabulation_rows(COUNTED)]
