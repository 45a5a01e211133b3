"""Exact noise given sign constraints, crossing groups and hierarchies: rates and ratios.

Run `python benchmarks/conditioned.py`; it takes under a minute. The 2 x 23 table of the paper
(total, female and voting-age counts mandated, s >= 0, eps_cell = 1/2) against the paper's chain
(Metropolised independence sampler, proposal eps = 0.6, compiled with the same tools) in effective
draws of the L1 distance, and against rejection; growth with cells and leaves. One core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numba
import numpy as np

from congenial.sampling import DoubleGeometric, GroupedNoise, Randomness, SystemRandomness
from congenial.sampling.bounded import BoundedGroups
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.tree import HierarchicalNoise

EPS, PROPOSAL = Fraction(1, 2), Fraction(3, 5)
FEMALE = [8, 6, 3, 6, 4, 4, 4, 8, 5, 7, 7, 6, 1, 5, 4, 4, 9, 6, 2, 8, 8, 8, 7]
MALE = [3, 4, 5, 8, 6, 4, 5, 5, 5, 6, 10, 7, 3, 2, 5, 11, 6, 4, 7, 4, 5, 3, 8]
TABLE = np.array(FEMALE + MALE)
ATOMS = np.array([0] * 4 + [1] * 19 + [2] * 4 + [3] * 19)  # sex x voting age


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@numba.njit(cache=True)
def conform(noise, s):
    """Solve cells 0, 22 and 45 for the three mandates (noise sums 0); True if all m >= 0."""
    female, all_, minors = 0, 0, 0
    noise[0], noise[22], noise[45] = 0, 0, 0
    for c in range(46):
        all_ += noise[c]
        if c < 23:
            female += noise[c]
        if c < 4 or 23 <= c < 27:
            minors += noise[c]
    noise[0] = -minors
    noise[22] = minors - female
    noise[45] = female - all_
    return np.all(s + noise >= 0)


@numba.njit(cache=True)
def chain(proposals, uniforms, s, eps, eps_proposal, state, distances):
    """The paper's Algorithm 1; state and distances are updated in place. Returns acceptances."""
    accepted = 0
    u = np.zeros(46, np.int64)
    norm = np.abs(state).sum()
    inner = norm - abs(state[0]) - abs(state[22]) - abs(state[45])
    for t in range(proposals.shape[0]):
        u[:] = proposals[t]
        if conform(u, s):
            norm_new = np.abs(u).sum()
            inner_new = norm_new - abs(u[0]) - abs(u[22]) - abs(u[45])
            log_ratio = -eps * (norm_new - norm) + eps_proposal * (inner_new - inner)
            if np.log(uniforms[t]) < log_ratio:
                state[:] = u
                norm, inner = norm_new, inner_new
                accepted += 1
        distances[t] = norm
    return accepted


def effective_share(x: np.ndarray, batches: int = 50) -> float:
    """Effective draws per step by batch means."""
    size = len(x) // batches
    means = x[: size * batches].reshape(batches, size).mean(axis=1)
    return float(x.var() / (size * means.var(ddof=1)))


def chain_rate(randomness: Randomness, steps: int = 3_000_000) -> tuple[float, float, float]:
    """(steps per second, acceptance rate, effective draws of the L1 distance per step)."""
    law, rng = DoubleGeometric(PROPOSAL), np.random.default_rng()
    state, distances = np.zeros(46, np.int64), np.empty(steps)
    part, spent, accepted = 100_000, 0.0, 0
    chain(np.zeros((1, 46), np.int64), np.ones(1), TABLE, 0.5, 0.6, state.copy(), np.empty(1))
    for start in range(0, steps, part):
        begin = time.perf_counter()
        proposals = law.draw(randomness, part * 46).reshape(part, 46)
        accepted += chain(
            proposals, rng.random(part), TABLE, 0.5, 0.6, state, distances[start : start + part]
        )
        spent += time.perf_counter() - begin
    return steps / spent, accepted / steps, effective_share(distances[steps // 10 :])


@numba.njit(cache=True)
def conforming_rows(noise, s):
    kept = 0
    for row in noise:
        minors, female, all_ = 0, 0, 0
        for c in range(46):
            all_ += row[c]
            if c < 23:
                female += row[c]
            if c < 4 or 23 <= c < 27:
                minors += row[c]
        if all_ == 0 and female == 0 and minors == 0 and np.all(s + row >= 0):
            kept += 1
    return kept


def rejection_rate(randomness: Randomness, tables: int = 200_000) -> float:
    """Proposals from the unconditioned mechanism per second x their known chance to conform."""
    law = DoubleGeometric(EPS)
    conforming_rows(np.zeros((1, 46), np.int64), TABLE)
    spent = seconds(
        lambda: conforming_rows(law.draw(randomness, tables * 46).reshape(tables, 46), TABLE)
    )
    return tables / spent * 9.7271895272009833e-6


def paper_rows(randomness: Randomness) -> list[dict[str, Any]]:
    exact = CrossingGroups(
        ATOMS, TABLE, [[1] * 4, [1, 1, 0, 0], [0, 1, 0, 1]], DoubleGeometric(EPS)
    )
    exact.draw_many(randomness, 50_000)
    n = 400_000
    ours = max(n / seconds(lambda: exact.draw_many(randomness, n)) for _ in range(3))
    steps, accepted, share = chain_rate(randomness)
    part = "2 x 23, three sums, s >= 0"
    return [
        {"part": part, "what": "exact draw", "per_second": ours, "ratio": 1.0},
        {
            "part": part,
            "what": f"paper's chain, effective ({accepted:.2%} accepted)",
            "per_second": steps * share,
            "ratio": ours / (steps * share),
        },
        {
            "part": part,
            "what": "rejection",
            "per_second": (rate := rejection_rate(randomness)),
            "ratio": ours / rate,
        },
    ]


def timed(
    part: str, what: str, cells: int, build: Callable[[], Any], randomness: Randomness
) -> Any:
    start = time.perf_counter()
    sampler = build()
    set_up = time.perf_counter() - start
    sampler.draw(randomness)
    best = min(seconds(lambda: sampler.draw(randomness)) for _ in range(5))
    return {
        "part": part,
        "what": what,
        "set_up_seconds": set_up,
        "milliseconds": 1e3 * best,
        "ns_per_cell": 1e9 * best / cells,
    }


def tree_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rates, mandated = [0, Fraction(1, 4), Fraction(1, 4), EPS], [True, True, False, False]
    rng, rows = np.random.default_rng(1), []
    for states in (1, 10, 50):
        sizes = rng.integers(150, 517, 60 * states)

        def build(states: int = states, sizes: Any = sizes) -> HierarchicalNoise:
            return HierarchicalNoise.of_levels([[states], [60] * states, sizes], rates, mandated)

        cells = int(sizes.sum())
        rows.append(timed("noise at every node", f"{cells:,} leaves", cells, build, randomness))
    labels = np.repeat(np.arange(3000), 333)
    rows.append(
        timed(
            "leaf noise, fixed totals",
            f"{labels.size:,} leaves",
            labels.size,
            lambda: GroupedNoise(labels, EPS),
            randomness,
        )
    )
    return rows


def bounded_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(2), []
    for groups, total in ((10, 100_000), (100, 100_000), (1000, 100_000), (1000, 500)):
        counts = rng.multinomial(total, rng.dirichlet(np.ones(46)), size=groups).reshape(-1)

        def build(groups: int = groups, counts: Any = counts) -> BoundedGroups:
            return BoundedGroups(np.arange(groups).repeat(46), counts, DoubleGeometric(EPS))

        what = f"{groups:,} groups of 46, totals {total:,}"
        rows.append(timed("s >= 0 given totals", what, groups * 46, build, randomness))
    return rows


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    randomness = SystemRandomness()
    return [*paper_rows(randomness), *tree_rows(randomness), *bounded_rows(randomness)]


def main() -> None:
    for row in run():
        if "per_second" in row:
            numbers = f"{row['per_second']:>14,.1f} /s   exact draw is {row['ratio']:,.1f} x this"
        else:
            numbers = (
                f"{row['set_up_seconds']:>8.2f} s set-up {row['milliseconds']:>10.2f} ms a draw"
                f"   {row['ns_per_cell']:,.0f} ns per cell"
            )
        print(f"{row['part']:<28}{row['what']:<46}{numbers}")


if __name__ == "__main__":
    main()
