"""Posterior of a Poisson rate in each of 67 counties from a bundle: effective draws per second.

The chain over latent counts against independent draws with the rate integrated out; and, where the
counties' total is public, the chain over latent tables. Both rows of a ratio come from one run.
eps = 0.1 per person.

Run `python benchmarks/inference.py`; under a minute.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import congenial as cg
from congenial.inference import Chain, Gamma, Poisson, infer
from congenial.pairs.adjacency import ReplaceOne
from congenial.publication import bundle

COUNTIES = 67
SEED = 1
EPS = "0.1"
EXACT, AUGMENTATION = 100_000, 4000  # draws
RATE = 0.006  # events per person: about the monthly cases of a mild wave
PRIOR = Gamma(1.0, 100.0)  # one event per 100 people and wide


def world() -> tuple[cg.Table, Any]:
    rng = np.random.default_rng(SEED)
    population = np.round(rng.lognormal(11.2, 1.1, COUNTIES))
    schema = cg.Schema.from_dict({"county": {"levels": [f"county {i}" for i in range(COUNTIES)]}})
    counts = rng.poisson(population * rng.gamma(2.0, RATE / 2, COUNTIES))
    return cg.Table(schema, ["county"], counts), population


def read_back(release: Any, name: str) -> Any:
    """Through a bundle, as an analyst gets it."""
    with tempfile.TemporaryDirectory() as folder:
        bundle.write(release, Path(folder) / name, "", "<p></p>").publish()
        return cg.read(Path(folder) / name)


def measured(release: Any, population: Any, method: str, draws: int) -> dict[str, Any]:
    model = Poisson(by="county", prior=PRIOR, exposure=population)
    infer(release, model, method=method, draws=100, seed=SEED, chain=Chain(4, 20, check=False))
    start = time.perf_counter()
    found = infer(release, model, method=method, draws=draws, seed=SEED, chain=Chain(4, 200))
    seconds = time.perf_counter() - start
    worth = float(np.mean(found.effective("rate")))
    return {
        "seconds": seconds,
        "effective_per_second": worth / seconds,
        "mean": found.mean("rate"),
    }


def row(what: str, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": what,
        "effective_per_second": one["effective_per_second"],
        "ratio": one["effective_per_second"] / other["effective_per_second"],
        "seconds": one["seconds"],
    }


SMALLEST = {"COUNTIES": 3, "EXACT": 100, "AUGMENTATION": 400}


def run() -> list[dict[str, Any]]:
    """Effective draws of all 67 rates per second, and the ratio to the chain."""
    table, population = world()
    free = cg.calibrate("auto", cg.Guarantee.pure(EPS, under=ReplaceOne(table.schema)))
    release = read_back(cg.release_table(free, table, cg.SeededRandomness(SEED)), "free")
    fast = measured(release, population, "exact", EXACT)
    chain = measured(release, population, "augmentation", AUGMENTATION)
    figures = cg.SemiAdjacent(cg.publish(table, cg.total()))
    given = cg.calibrate("auto", cg.Guarantee.pure(EPS, under=figures))
    total = read_back(cg.release_table(given, table, cg.SeededRandomness(SEED)), "total")
    tied = measured(total, population, "augmentation", AUGMENTATION)
    close = np.max(np.abs(chain["mean"] / fast["mean"] - 1))
    rows = [
        row("chain over latent counts", chain, chain),
        row("independent draws, rate integrated out", fast, chain),
        row("chain given the public total", tied, chain),
    ]
    rows[1]["largest_difference_of_means"] = float(close)
    return rows


def main() -> None:
    for one in run():
        print(
            f"{one['what']:<42}{one['effective_per_second']:>14,.0f} /s"
            f"{one['ratio']:>12,.1f} x the chain"
        )


if __name__ == "__main__":
    main()
