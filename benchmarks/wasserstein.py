"""One month-by-month replicate of 67 counties x 23 months under the prior-congenial base.

Run `python -m benchmarks wasserstein --data DIR`; made-up counts of the same size without. Exact
draws against a Metropolis chain that moves units between two counties, compiled and given the same
tables of log weights, so that a step costs four look-ups. A chain's draws are counted by the
effective sample size of its slowest county (of several shorter chains, which errs in its favour);
deaths are integrated out in both. "pair swap" moves one unit; "tuned" moves up to as many as
give the best effective rate among several powers of two, a chain the paper does not describe.
Tables are made before the clock runs, on both sides; how long ours take is a row of its own, with
the messages that narrow laws are drawn by when many draws are asked for (epsilon = 1). "few
draws" is the rate before these are worth making. Times are of the processor, since both sides use
one core.
"""

from __future__ import annotations

import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numba
import numpy as np

from congenial.papers.item import Study
from congenial.papers.partially_private_data import pennsylvania as pa
from congenial.sampling.convergence import effective
from congenial.sampling.counts_given_total import CountCell, CountsGivenTotal
from congenial.sampling.randomness import SeededRandomness

SEED = 20_240_612
EPSILONS = (Fraction(1, 100), Fraction(1))
DRAWS = 10_000
FEW = 100
SECONDS = 0.2  # of chain per month and setting
MONTHS = (3_000, 600_000, 24)  # cases of the first and the last of so many months
STEPS = (1, 8, 64, 512, 4096)


@numba.njit(cache=True)
def swaps(
    state: Any, logs: Any, offsets: Any, lows: Any, sweeps: int, step: int, seed: int, out: Any
) -> None:
    """Metropolis: move 1 .. step units from one cell to another; one row per sweep of J moves."""
    np.random.seed(seed)
    cells = state.size
    for t in range(sweeps):
        for _ in range(cells):
            i = np.random.randint(cells)
            j = np.random.randint(cells - 1)
            j += j >= i
            size = 1 + (np.random.randint(step) if step > 1 else 0)
            a, b = state[i] - size - lows[i], state[j] + size - lows[j]
            if a < 0 or b >= offsets[j + 1] - offsets[j]:
                continue
            change = logs[offsets[i] + a] - logs[offsets[i] + a + size]
            change += logs[offsets[j] + b] - logs[offsets[j] + b - size]
            if change >= 0 or np.random.random() < np.exp(change):
                state[i] -= size
                state[j] += size
        out[t] = state


def months(data: str | None) -> list[tuple[Any, Any, Any]]:
    """(last month's cases, cases, deaths)."""
    if data is not None:
        found = pa.load(Study(data=Path(data)))
        return [(found.cases[t - 1], found.cases[t], found.deaths[t]) for t in range(1, 24)]
    rng = np.random.default_rng(SEED)
    share = rng.dirichlet(np.full(67, 0.5))
    cases = [rng.poisson(share * size) for size in np.geomspace(*MONTHS)]
    return [(a, b, rng.binomial(b, 0.02)) for a, b in pairwise(cases)]


def laws(data: str | None, epsilon: Fraction) -> list[CountsGivenTotal]:
    return [
        CountsGivenTotal(
            [
                CountCell(int(x), epsilon / 4, pa.ALPHA * (int(p) + pa.KAPPA), int(d))
                for p, x, d in zip(before, cases, deaths, strict=True)
            ],
            int(cases.sum()),
        )
        for before, cases, deaths in months(data)
    ]


def chain_cost(law: CountsGivenTotal, step: int, seed: int) -> float:
    """Seconds per effective draw of the slowest county, one month."""
    with np.errstate(divide="ignore"):
        logs = np.log(np.concatenate([t.weights for t in law.tables]))
    offsets = np.concatenate([[0], np.cumsum([t.weights.size for t in law.tables])])
    lows = np.array([t.low for t in law.tables])
    starts = law.draw_many(SeededRandomness(seed), 4)  # from the law itself: no burn-in to count
    trial = np.empty((20, starts.shape[1]), dtype=np.int64)
    begun = time.process_time()
    swaps(starts[0].copy(), logs, offsets, lows, 20, step, seed, trial)
    sweeps = max(int(SECONDS / 4 / ((time.process_time() - begun) / 20)), 100)
    out = np.empty((4, sweeps, starts.shape[1]), dtype=np.int64)
    begun = time.process_time()
    for k in range(4):
        swaps(starts[k].copy(), logs, offsets, lows, sweeps, step, seed + k, out[k])
    took = time.process_time() - begun
    moving = out.reshape(-1, out.shape[2]).std(axis=0) > 0
    thin = max(1, sweeps // 4_000)
    worth = effective(out[:, ::thin, moving].astype(float)).min()
    return took / float(worth)


def timed(every: list[CountsGivenTotal], draws: int) -> tuple[float, float]:
    """Seconds per replicate of all months, and seconds more that the first of two such runs took,
    which makes what so many draws are worth.
    """
    randomness, took = SeededRandomness(SEED), []
    for _ in range(2):
        begun = time.process_time()
        for law in every:
            law.draw_many(randomness, draws)
        took.append(time.process_time() - begun)
    return took[1] / draws, max(took[0] - took[1], 0.0)


SMALLEST = {"EPSILONS": (Fraction(1),), "DRAWS": 4, "FEW": 2, "SECONDS": 0.001}
SMALLEST |= {"STEPS": (1,), "MONTHS": (300, 600, 3)}


def run(data: str | None = None) -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    rows: list[dict[str, Any]] = []
    for epsilon in EPSILONS:
        begun = time.process_time()
        every = laws(data, epsilon)
        setup = time.process_time() - begun
        few, _ = timed(every, FEW)
        ours, more = timed(every, DRAWS)
        part = f"67 x 23, epsilon = {float(epsilon):g}"
        rows += [
            {"part": part, "what": "exact draw", "per_second": 1 / ours, "ratio": 1.0},
            {"part": part, "what": "few draws", "per_second": 1 / few, "ratio": few / ours},
            {"part": part, "what": "exact: tables, once", "seconds": setup},
            {"part": part, "what": "exact: for many draws, once", "seconds": more},
        ]
        costs = {
            step: [chain_cost(law, step, SEED % 10_000 + t) for t, law in enumerate(every[::4])]
            for step in STEPS
        }
        share = len(every) / len(every[::4])  # every fourth month stands for four
        unit = share * sum(costs[1])
        tuned = share * sum(min(costs[s][t] for s in STEPS) for t in range(len(every[::4])))
        for what, took in (("pair swap", unit), ("tuned pair swap", tuned)):
            rows.append({"part": part, "what": what, "per_second": 1 / took, "ratio": took / ours})
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
