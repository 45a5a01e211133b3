"""Several tables at once: time and quality of difference types and designs.

Run `python -m benchmarks tables_design`. Rows: all one-, two- and three-way tables of 14 attributes
with the sizes of Adult (numbers in ten bins) beside the least error of any Gaussian mechanism
(ResidualPlanner's closed form); counties by sex and age, and districts by race, under exact figures
at equal rho, as standard deviations relative to one release of the finest table; growth.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from congenial import Schema, count, margin, total
from congenial.data.workload import Workload
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.difference_types import difference_types
from congenial.tables.design import Even, Keep, Weighted, design
from congenial.tables.information import Information

SEED = 20240901
ADULT = (10, 9, 10, 16, 10, 7, 15, 6, 5, 2, 10, 10, 10, 42)
HALF = Fraction(1, 2)  # rho: sums of precisions times sensitivities are at most 1
MARGINS = (("Adult", ADULT, 3), ("Adult", ADULT, 2), ("20 x 4 levels", (4,) * 20, 2))
CENSUS, DISTRICTS = ((3143, 51), (24, 4)), ((9178, 67),)  # units, groups
TYPES = ((2, 3), (2, 3000), (3, 3), (3, 60), (4, 3))  # margins, levels


def flat(sizes: tuple[int, ...]) -> Schema:
    return Schema.from_dict({f"v{i}": {"integers": [1, n]} for i, n in enumerate(sizes)})


def ways(sizes: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
    """All tables of at most so many attributes, the finest first."""
    return [t for k in range(most, 0, -1) for t in combinations(range(len(sizes)), k)]


def least_error(sizes: tuple[int, ...], tables: list[tuple[int, ...]], weights: Any) -> float:
    """Least weighted sum of mean variances over all Gaussian mechanisms, add/remove, rho = 1/2."""
    above: dict[tuple[int, ...], float] = {}
    for table, weight in zip(tables, weights, strict=True):
        share = weight / np.prod([sizes[i] for i in table], dtype=float) ** 2
        for k in range(len(table) + 1):
            for subset in combinations(table, k):
                above[subset] = above.get(subset, 0.0) + share
    roots = [np.prod([sizes[i] - 1 for i in a]) * np.sqrt(v) for a, v in above.items()]
    return float(np.sum(roots)) ** 2


def marginal_rows() -> list[dict[str, Any]]:
    rows = []
    for name, sizes, most in MARGINS:
        schema, tables = flat(sizes), ways(sizes, most)
        work = Workload.of(schema, [[f"v{i}" for i in t] for t in tables])
        start = time.perf_counter()
        types = difference_types(AddRemove(schema), work)
        model = Information.of(work, Figures(schema), people_kept=False)
        before = time.perf_counter() - start
        cells = tuple(float(one.size) for one in work.margins)
        for what, weights in (("mean variances", (1.0,) * len(cells)), ("all cells", cells)):
            start = time.perf_counter()
            found = design(work, types, model, HALF, Weighted(weights, absolute=True))
            error = float(np.dot(weights, found.variances))
            rows.append(
                {
                    "what": f"{name}, up to {most}-way, sum of {what}",
                    "tables": len(tables),
                    "times the least of any Gaussian": error / least_error(sizes, tables, weights),
                    "certified": found.certificate.share if found.certificate else 0.0,
                    "seconds": before + time.perf_counter() - start,
                }
            )
        start = time.perf_counter()
        found = design(work, types, model, HALF, Keep())
        rows.append(
            {
                "what": f"{name}, up to {most}-way, default aim",
                "tables": len(tables),
                "largest error": max(found.relative_errors),
                "smallest error": min(found.relative_errors),
                "certified": found.certificate.share if found.certificate else 0.0,
                "seconds": before + time.perf_counter() - start,
            }
        )
    return rows


def nested(units: int, groups: int) -> dict[str, Any]:
    """Levels of a geography with groups of uneven sizes."""
    drawn = np.random.default_rng(SEED).integers(0, groups, units)
    drawn[:groups] = np.arange(groups)
    return {
        "levels": [str(i) for i in range(units)],
        "within": {"group": [str(g) for g in np.sort(drawn)]},
    }


def census(units: int, groups: int) -> tuple[str, Figures, list[list[str]]]:
    """Counties by sex and 23 ages: total, female and voting age exact."""
    ages = {"integers": [0, 22]}
    sexes = {"levels": ["f", "m"]}
    schema = Schema.from_dict({"unit": nested(units, groups), "sex": sexes, "age": ages})
    figures = (total(by="unit"), count("sex = 'f'", by="unit"), count("age >= 4", by="unit"))
    tables = [["unit", "sex", "age"], ["unit", "age"], ["group", "sex", "age"], ["group", "age"]]
    name = f"{units} counties x 2 x 23"
    return name, Figures(schema, figures), [*tables, ["sex", "age"], ["age"]]


def districts(units: int, groups: int) -> tuple[str, Figures, list[list[str]]]:
    """Districts by race and voting age: county totals and voting age per district exact."""
    adult = {"levels": ["no", "yes"]}
    races = {"levels": list("abcdefgh")}
    schema = Schema.from_dict({"unit": nested(units, groups), "race": races, "adult": adult})
    figures = (total(by="group"), count("adult = 'yes'", by="unit"))
    tables = [["unit", "race", "adult"], ["unit", "race"], ["group", "race", "adult"]]
    name = f"{units} districts x 8 x 2"
    return name, Figures(schema, figures), [*tables, ["group", "race"], ["race"]]


def geography_rows() -> list[dict[str, Any]]:
    rows = []
    places = [*(census(*size) for size in CENSUS), *(districts(*size) for size in DISTRICTS)]
    for name, figures, tables in places:
        work = Workload.of(figures.schema, tables)
        start = time.perf_counter()
        types = difference_types(SemiAdjacent(figures), work)
        model = Information.of(work, figures)
        before = time.perf_counter() - start
        for aim in (Keep(), Even()):
            start = time.perf_counter()
            found = design(work, types, model, HALF, aim)
            rows.append(
                {
                    "what": f"{name}, {type(aim).__name__.lower()}",
                    "tables": len(tables),
                    "relative errors": ", ".join(f"{e:.3f}" for e in found.relative_errors),
                    "certified": found.certificate.share if found.certificate else 0.0,
                    "seconds": before + time.perf_counter() - start,
                }
            )
    return rows


def type_rows() -> list[dict[str, Any]]:
    """Growth of the enumeration with margins and levels."""
    rows = []
    for margins, levels in TYPES:
        schema = flat((levels,) * margins)
        figures = Figures(schema, tuple(margin(name) for name in schema.names))
        pairs = [list(pair) for pair in combinations(schema.names, 2)]
        adjacency = SemiAdjacent(figures)
        start = time.perf_counter()
        found = difference_types(adjacency, Workload.of(schema, [list(schema.names), *pairs]))
        rows.append(
            {
                "what": f"{margins} margins of {levels} levels, a* = {adjacency.records}",
                "tables": 1 + len(pairs),
                "types": f"{len(found.squares)} maximal, {found.footing}, by {found.method}",
                "seconds": time.perf_counter() - start,
            }
        )
    return rows


SMALLEST = {"MARGINS": (("3 levels", (2, 3, 2), 2),), "CENSUS": ((4, 2),)}
SMALLEST |= {"DISTRICTS": ((4, 2),), "TYPES": ((2, 3),)}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    return [*marginal_rows(), *geography_rows(), *type_rows()]


if __name__ == "__main__":
    for row in run():
        print(row)
