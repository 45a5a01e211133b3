"""Posteriors where figures cross: seconds and effective draws per second, and what `check` says.

One table of 3 states x 2 sexes x 23 ages (138 cells) and four tables of 24 areas measured at once
(1,104 cells), much as in `congenial demo`: population, women and voting age of every area are
exact. CPU seconds of one core for 4,000 draws, warm-up included; the first run of each compiles and
is left out. What `check` says is about models with one parameter for each released cell.

Run `python -m benchmarks posteriors`; some minutes.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np

import congenial as cg
from congenial.inference import (
    Binomial,
    Chain,
    Logistic,
    Multinomial,
    NegativeBinomial,
    Poisson,
    infer,
)
from congenial.inference.feasibility import sampler_of_cells, sampler_of_tables, usual_minutes
from congenial.mechanisms.measured_tables import MeasuredTables

SEED = 5
EDGES = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
AREAS = 24
SLOPES = ("sex", "age")
ONE: dict[str, Any] = {
    "multinomial": Multinomial(),
    "poisson": Poisson(),
    "binomial": Binomial(trials=10**5),
    "poisson regression": Poisson(covariates=SLOPES),
    "negative binomial regression": NegativeBinomial(covariates=SLOPES),
    "binomial regression": Binomial(trials=10**5, covariates=SLOPES),
    "logistic regression": Logistic("sex", covariates=("age",)),
    "poisson, by sex and age": Poisson(by=SLOPES),
}
SEVERAL: dict[str, Any] = {
    "multinomial": Multinomial(),
    "poisson": Poisson(),
    "poisson, by age": Poisson(by=("age",)),
    "poisson regression": Poisson(covariates=SLOPES),
}


def world(areas: int, people: int) -> tuple[cg.Table, Any]:
    """A made-up population and what must look alike given its figures."""
    rng = np.random.default_rng(SEED)
    schema = cg.Schema.from_dict(
        {
            "area": {"levels": [f"area {i}" for i in range(areas)]},
            "sex": {"levels": ["female", "male"]},
            "age": {"edges": EDGES, "top": "85+"},
        }
    )
    widths = np.diff([*EDGES, 95])
    size = rng.dirichlet(np.full(areas, 1.0))
    share = size[:, None, None] * np.full((1, 2, 1), 0.5) * (widths / widths.sum())
    counts = rng.multinomial(people, share.reshape(-1)).reshape(areas, 2, len(widths))
    table = cg.Table(schema, schema.names, counts)
    figures = (
        cg.total(by="area"),
        cg.count("sex = 'female'", by="area"),
        cg.count("age >= 18", by="area"),
    )
    return table, cg.SemiAdjacent(cg.publish(table, *figures))


def measured(release: Any, model: Any, draws: int) -> tuple[float, float]:
    infer(release, model, draws=100, seed=SEED, chain=Chain(4, 5, check=False))
    start = time.process_time()
    found = infer(release, model, draws=draws, seed=SEED, chain=Chain(4, draws // 4, check=False))
    return time.process_time() - start, found.least_effective


def rows(part: str, release: Any, models: dict[str, Any], said: float, draws: int) -> Any:
    for name, model in models.items():
        seconds, worth = measured(release, model, draws)
        yield {
            "part": part,
            "what": name,
            "seconds": seconds,
            "fewest_effective": worth,
            "effective_per_second": worth / seconds,
            "seconds_that_check_says": 60 * said,
        }


SMALLEST = {"draws": 100, "AREAS": 2, "ONE": {"poisson": Poisson()}}
SMALLEST |= {"SEVERAL": {"poisson": Poisson()}}


def run(draws: int = 4000) -> list[dict[str, Any]]:
    """One row per model."""
    table, under = world(3, 300_000)
    made = cg.calibrate("auto", cg.Guarantee.zero_concentrated("0.02", under=under))
    one = cg.release_table(made, table, cg.SeededRandomness(SEED))
    said = usual_minutes(138, sampler_of_cells(made))
    found = list(rows("138 cells", one, ONE, said, draws))
    table, under = world(AREAS, 300_000)
    tables = [table.names, ("area", "age"), ("sex", "age"), ("age",)]
    scales = [Fraction(100), Fraction(400), Fraction(1000), Fraction(2000)]
    several = MeasuredTables.of(under, tables, "discrete_gaussian", scales)
    release = several.release(table, cg.SeededRandomness(SEED))
    said = usual_minutes(1104, sampler_of_tables(release.description))
    return found + list(rows("1,104 cells, four tables", release, SEVERAL, said, draws))


def main() -> None:
    for one in run():
        print(
            f"{one['part']:<26}{one['what']:<32}{one['seconds']:>8.1f} s"
            f"{one['effective_per_second']:>10,.0f} effective /s"
            f"{one['seconds_that_check_says']:>8.0f} s in check",
            flush=True,
        )


if __name__ == "__main__":
    main()
