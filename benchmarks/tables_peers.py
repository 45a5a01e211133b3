"""Several tables at once beside other systems, on Adult: ResidualPlanner+ and mbi (private-pgm).

Run `python -m benchmarks tables_peers --data DIR`; DIR holds `adult/adult.parquet`. Nothing is
exact, add/remove, rho = 1/2. First the sum of variances of all cells of all one-, two- and
three-way tables of 14 attributes with the sizes of Adult, as designed, against what `resplan`
reports for its own optimum. Then root mean square errors by the number of attributes, on all such
tables of education, marital status, relationship, race and sex (48,842 people) and the table of all
five: our estimates and printed counts, mbi's fit to our measurements after so many steps, and
resplan's answers from measurements of its own; each design makes the sum of all variances small.
Peers that cannot be imported are skipped, with the reason: `mbi` is on PyPI, `resplan` a folder of
github.com/cmla-psu/ResidualPlannerPlus that must be on PYTHONPATH.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables_design import ADULT, flat, ways
from congenial import AddRemove, Guarantee, Schema, Table
from congenial.data.workload import Workload
from congenial.figures.figures import Figures
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.difference_types import difference_types
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.design import Weighted, design
from congenial.tables.information import Information

NAMES = ("education", "marital_status", "relationship", "race", "sex")
HALF = Fraction(1, 2)
WAYS = 3
STEPS = (2_000, 10_000, 50_000)  # of mbi's mirror descent; errors of sums fall up to the second


def sizes_of(workload: Workload) -> tuple[float, ...]:
    return tuple(float(one.size) for one in workload.margins)


def variance_row() -> dict[str, Any]:
    """Sums of variances as designed."""
    schema, tables = flat(ADULT), ways(ADULT, WAYS)
    start = time.perf_counter()
    work = Workload.of(schema, [[f"v{i}" for i in table] for table in tables])
    types = difference_types(AddRemove(schema), work)
    model = Information.of(work, Figures(schema), people_kept=False)
    found = design(work, types, model, HALF, Weighted(sizes_of(work), absolute=True))
    ours = float(np.dot(sizes_of(work), found.variances))
    row = {
        "what": f"{len(ADULT)} attributes, up to {WAYS}-way, sum of variances",
        "congenial": ours,
        "seconds": f"congenial {time.perf_counter() - start:.1f}",
    }
    return row | guarded("resplan", lambda: planned(tables, ours))


def planned(tables: Sequence[tuple[int, ...]], ours: float) -> dict[str, Any]:
    from resplan import ResPlanSum

    start = time.perf_counter()
    planner = ResPlanSum(list(ADULT), ["I"] * len(ADULT))
    for table in tables:
        planner.input_mech(table)
    theirs = float(planner.get_noise_level())
    seconds = f"{time.perf_counter() - start:.1f}"
    return {"resplan": theirs, "ratio to resplan": ours / theirs, "resplan seconds": seconds}


def guarded(name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a peer gives, or why it is left out."""
    try:
        return measure()
    except ImportError as reason:
        return {name: f"skipped: {reason}"}


# ---- errors --------------------------------------------------------------------------------------


def people(folder: Path) -> tuple[Table, Any]:
    """Counts of the five attributes, and the people as numbers of levels."""
    import pyarrow.parquet as pq

    frame = pq.read_table(folder / "adult" / "adult.parquet", columns=list(NAMES)).to_pandas()
    levels = {name: sorted(frame[name].unique()) for name in NAMES}
    schema = Schema.from_dict({name: {"levels": levels[name]} for name in NAMES})
    codes = frame.apply(lambda one: one.map({v: i for i, v in enumerate(levels[one.name])}))
    counts = np.zeros(tuple(len(levels[name]) for name in NAMES), dtype=np.int64)
    np.add.at(counts, tuple(codes[name].to_numpy() for name in NAMES), 1)
    return Table(schema, NAMES, counts), codes


def release_of(table: Table, tables: Sequence[tuple[str, ...]], seed: int) -> TablesRelease:
    work = Workload.of(table.schema, tables)
    target = Guarantee.zero_concentrated(HALF, under=AddRemove(table.schema))
    made = calibrate_tables(target, tables, Weighted(sizes_of(work), absolute=True))
    return made.release(table, SeededRandomness(seed))


def fitted_by_mbi(release: TablesRelease, table: Table, steps: int) -> list[Any]:
    """mbi's estimates of every table from our measurements, in doubles."""
    import jax
    import mbi

    jax.config.update("jax_enable_x64", True)
    domain = mbi.Domain(NAMES, table.counts.shape)
    measured = [
        mbi.LinearMeasurement(drawn.reshape(-1).astype(float), one.table, float(one.scale) ** 0.5)
        for one, drawn in zip(release.description.measured, release.drawn, strict=True)
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=steps)
    return [np.asarray(model.project(names).datavector()) for names in release.tables]


def answered_by_resplan(codes: Any, shape: Sequence[int], tables: Any, seed: int) -> list[Any]:
    """resplan's answers to every table from measurements of its own."""
    from resplan import ResPlanSum

    np.random.seed(seed)  # the generator that it draws from
    planner = ResPlanSum(list(shape), ["I"] * len(shape))
    planner.input_data(codes, list(NAMES))
    chosen = [tuple(NAMES.index(name) for name in names) for names in tables]
    for one in chosen:
        planner.input_mech(one)
    planner.get_noise_level()
    planner.measurement()
    planner.reconstruction()
    return [np.asarray(planner.marg_dict[one].get_noisy_answer_vector()) for one in chosen]


def error_rows(folder: Path, releases: int) -> list[dict[str, Any]]:
    table, codes = people(folder)
    tables = [NAMES, *(tuple(NAMES[i] for i in one) for one in ways(table.counts.shape, 3))]
    truth = [table.marginal(names).counts.reshape(-1) for names in tables]
    squares: dict[str, Any] = {}
    skipped: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for seed in range(releases):
        ours = timed(seconds, "congenial", lambda s=seed: release_of(table, tables, s))
        answers: dict[str, Callable[[], list[Any]]] = {
            "estimate": lambda r=ours: list(r.estimates),
            "printed": lambda r=ours: list(r.counts),
            **{
                f"mbi {steps:,}": lambda r=ours, s=steps: fitted_by_mbi(r, table, s)
                for steps in STEPS
            },
            "resplan": lambda s=seed: answered_by_resplan(codes, table.counts.shape, tables, s),
        }
        for name, answer in answers.items():
            try:
                got = timed(seconds, name, answer)
            except ImportError as reason:
                skipped[name] = f"skipped: {reason}"
                continue
            off = [np.mean((v.reshape(-1) - t) ** 2) for v, t in zip(got, truth, strict=True)]
            squares[name] = squares.get(name, 0) + np.array(off) / releases
    told = ", ".join(f"{k} {v / releases:.1f}" for k, v in seconds.items())
    ways_of = np.array([len(names) for names in tables])
    return [
        {"what": f"Adult, 5 attributes, {k}-way, rmse", "seconds": told}
        | skipped
        | {name: float(np.sqrt(np.mean(all_[ways_of == k]))) for name, all_ in squares.items()}
        for k in (1, 2, 3, 5)
    ]


def timed(seconds: dict[str, float], name: str, work: Callable[[], Any]) -> Any:
    start = time.perf_counter()
    found = work()
    seconds[name] = seconds.get(name, 0.0) + time.perf_counter() - start
    return found


SMALLEST = {"ADULT": (2, 3, 2), "WAYS": 2}


def run(data: str | None = None, releases: int = 3) -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    rows = [variance_row()]
    if data is None:
        return [*rows, {"what": "errors skipped: needs --data DIR with adult/adult.parquet"}]
    return rows + error_rows(Path(data), releases)
