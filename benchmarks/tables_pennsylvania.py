"""Pennsylvania 2020, 9,178 voting districts x 8 races x 2 ages: many releases of six tables.

Run `python -m benchmarks tables_pennsylvania --data DIR`; DIR holds
`census/pl94_2020_PA_vtd.csv.gz`. Exact: people per county, adults per district. The default design
at rho = .5 and .05 and at epsilon = 1; `aim = "even"` at rho = .05 and at epsilon = 1; and, at
epsilon = 1, cells 1.065 times as wide as alone with all the rest spent on race. Drawn with exact
integer noise from pinned seeds. Beside the printed counts: TopDown's two stages on the same
measurements (each level fitted to its own measurements, then rounded), and one release of the
finest table under the same promise, made nonnegative cell by cell and from coarse to fine. Rows
"bias" give the mean error of printed cells by the size of the true count. A design that leaves a
table out has no TopDown beside it. "seconds" are the processor's: both designs, then draw,
estimates and fit of one release.

Race totals improve less under pure epsilon, and no split of it among these tables would change
that: `docs/adr/0007-several-tables-are-one-description.md`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables_counts import Case, pennsylvania, topdown
from congenial.data.workload import Workload
from congenial.figures.figures import Figures, publish
from congenial.figures.support import support
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.mechanisms.one_table import OneTable, nearest_counts
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.difference_types import difference_types
from congenial.sampling.choice import TablePart, choose
from congenial.sampling.discrete import cell_law
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.covariance import Covariance
from congenial.tables.design import Aim, Design, Even, Keep, design
from congenial.tables.information import Information
from congenial.tables.intervals import half_width
from congenial.tables.linear_estimates import estimate
from congenial.tables.node_order import NodeOrder
from congenial.tables.promise import law_and_promise
from congenial.tables.whole_counts import fit_to_targets, rehearse, targets_of


@dataclass(frozen=True)
class RestToLast:
    """The finest table that much wider than alone, and all the rest spent on the last table."""

    factor: Fraction


PROMISES: dict[str, tuple[dict[str, Fraction], Aim | RestToLast]] = {
    "rho = 1/2": ({"rho": Fraction(1, 2)}, Keep()),
    "rho = 1/20": ({"rho": Fraction(1, 20)}, Keep()),
    "rho = 1/20, even": ({"rho": Fraction(1, 20)}, Even()),
    "epsilon = 1": ({"epsilon": Fraction(1)}, Keep()),
    "epsilon = 1, even": ({"epsilon": Fraction(1)}, Even()),
    "epsilon = 1, rest to race": ({"epsilon": Fraction(1)}, RestToLast(Fraction(213, 200))),
}
METHODS = ("estimate", "printed", "topdown", "one table, cells", "one table, nodes")
SIZES = (0, 1, 10, 100, 1000, np.inf)  # of true counts


@dataclass
class Sums:
    """Squared errors by method and table, biases by method and size, and printed counts inside."""

    squares: Any
    bias: Any
    inside: Any
    seconds: float = 0.0


def noise(designed: Design, known: Figures, randomness: SeededRandomness) -> list[Any]:
    """Exact noise of every measured table; None where nothing is drawn."""
    found: list[Any] = []
    for names, scale in zip(designed.workload.tables, designed.scales, strict=True):
        labels = support(known, names).labels
        if scale is None:
            found.append(None)
            continue
        law = choose(TablePart(cell_law(designed.family, scale), labels.reshape(-1))).law
        found.append(law.draw_many(randomness, 1).reshape(labels.shape))
    return found


def designs(case: Case, known: Figures, promise: str) -> tuple[Design, Design]:
    """Of the six tables, and of the finest alone."""
    stated, aim = PROMISES[promise]
    law, value = law_and_promise(**stated)
    usual, found = Keep() if isinstance(aim, RestToLast) else aim, []
    for tables in (case.tables, case.tables[:1]):
        work = Workload.of(case.table.schema, tables)
        types = difference_types(SemiAdjacent(known), work)
        found.append(design(work, types, Information.of(work, known), value, usual, law))
    many, single = found
    if isinstance(aim, RestToLast):
        cells = single.parameters[0] / aim.factor
        none = (Fraction(0),) * (len(case.tables) - 2)
        many = replace(many, parameters=(cells, *none, single.parameters[0] - cells))
        assert many.feasible()
    return many, single


def releases_of(case: Case, promise: str, releases: int) -> tuple[Sums, Any, float]:
    """Many releases, the estimates' standard deviations, and the seconds of both designs."""
    known = publish(case.table, *case.figures)
    start = time.process_time()
    many, single = designs(case, known, promise)
    designed = time.process_time() - start
    tables = single.workload.tables
    alone = MeasuredTables.of(SemiAdjacent(known), tables, single.family, single.scales).estimator
    assert isinstance(alone, OneTable)
    assert alone.order is not None
    work = many.measurements(known)
    covariance = Covariance(work, many.family)
    deviations = [covariance.deviations(names).values for names in case.tables]
    truth = [case.table.marginal(names).counts for names in case.tables]
    shape = (len(METHODS), len(truth))
    sums = Sums(np.zeros(shape), np.zeros((len(METHODS), len(SIZES) - 1)), np.zeros(len(truth)))
    for seed in range(releases):
        estimates: list[Any] = []
        for method, tables in one_release(
            case, known, (many, single), alone, covariance, seed, sums
        ):
            at = METHODS.index(method)
            for b, (values, true) in enumerate(zip(tables, truth, strict=True)):
                sums.squares[at, b] += np.mean((values - true) ** 2) / releases
                if method == "estimate":
                    estimates.append(values)
                if method == "printed":
                    half = half_width(0.9) * deviations[b]
                    low, high = np.floor(estimates[b] - half), np.ceil(estimates[b] + half)
                    sums.inside[b] += np.mean((low <= values) & (values <= high)) / releases
            for size, (low, high) in enumerate(pairwise(SIZES)):
                here = (truth[0] >= low) & (truth[0] < high)
                sums.bias[at, size] += np.mean((tables[0] - truth[0])[here]) / releases
    return sums, deviations, designed


def one_release(
    case: Case,
    known: Figures,
    designs_: tuple[Design, Design],
    alone: OneTable,
    covariance: Covariance,
    seed: int,
    sums: Sums,
) -> Iterator[tuple[str, list[Any]]]:
    """What each method makes of one draw: all tables."""
    many, single = designs_
    randomness, work = SeededRandomness(seed), covariance.measurements
    truth = [case.table.marginal(names).counts for names in case.tables]
    order = rehearse(work)
    assert isinstance(order, NodeOrder)
    start = time.process_time()
    drawn = noise(many, known, randomness)
    values = [None if n is None else t + n for t, n in zip(truth, drawn, strict=True)]
    result = estimate(work, values, covariance.inverse)
    whole = fit_to_targets(order, targets_of(result, order))
    sums.seconds += time.process_time() - start
    yield "estimate", [result.table(names) for names in case.tables]
    yield "printed", [whole.table(names) for names in case.tables]
    if all(value is not None for value in values):
        rival = fit_to_targets(order, topdown(order, [v for v in values if v is not None], work))
        yield "topdown", [rival.table(names) for names in case.tables]
    cells = truth[0] + noise(single, known, randomness)[0]
    for method, counts in (
        ("one table, cells", nearest_counts(alone.mechanism, cells, randomness)),
        ("one table, nodes", alone.counts(cells)),
    ):
        yield method, [_onto(case, counts, table) for table in case.tables]


def _onto(case: Case, counts: Any, names: list[str]) -> Any:
    from congenial.data.table import Table

    return Table(case.table.schema, case.table.names, counts).marginal(names).counts


def rows_of(case: Case, promise: str, releases: int) -> list[dict[str, Any]]:
    sums, deviations, designed = releases_of(case, promise, releases)
    errors = np.sqrt(sums.squares)
    rows = []
    for b, names in enumerate(case.tables):
        deviation = float(np.sqrt(np.mean(deviations[b] ** 2)))
        ratio = float(errors[1, b] / errors[0, b])
        rows.append(
            {
                "promise": promise,
                "row": " x ".join(names),
                "sd": deviation,
                **{m: float(errors[k, b]) for k, m in enumerate(METHODS) if errors[k].any()},
                "ratio": ratio,
                "rule": "kept" if ratio <= (1.05 if deviation >= 1.5 else 1.2) else "broken",
                "inside": float(sums.inside[b]),
                "seconds": f"{designed:.2f} + {sums.seconds / releases:.2f}",
            }
        )
    for size, (low, high) in enumerate(pairwise(SIZES)):
        found = [(k, method) for k, method in enumerate(METHODS) if errors[k].any()]
        biases = {method: float(sums.bias[k, size]) for k, method in found}
        rows.append({"promise": promise, "row": f"bias, {low:g} <= count < {high:g}", **biases})
    return rows


def run(data: str | None = None, releases: int = 200) -> list[dict[str, Any]]:
    if data is None:
        return [{"row": "skipped: needs --data DIR with census tables"}]
    case = pennsylvania(Path(data))
    return [row for promise in PROMISES for row in rows_of(case, promise, releases)]
