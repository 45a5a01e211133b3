"""Exact noise given sign constraints and crossing groups: rates and ratios.

Run `python -m benchmarks conditioned`; it takes under a minute. The 2 x 23 table of the paper
(total, female and voting-age counts mandated, s >= 0, eps_cell = 1/2) against the paper's chain
(Metropolised independence sampler, compiled with the same tools; as printed, and giving a proposal
up at its first negative cell) in effective draws of the l1 distance, and against rejection; growth
with cells and leaves. One core.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numba
import numpy as np

from congenial.papers.congenial_dp.congenial_statements import EQUATIONS
from congenial.papers.congenial_dp.example import ATOMS, PROPOSAL, TABLE1
from congenial.papers.congenial_dp.printed_chain import PrintedChain, acceptance, effective_share
from congenial.sampling import DoubleGeometric, GroupedNoise, Randomness, SystemRandomness
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.tree_of_sums import TreeOfSums

EPS = Fraction(1, 2)
TABLES, PRINTED_STEPS, STEPS = 200_000, 400_000, 1_000_000
DRAWS, TIMED = 600_000, 400_000
LEAVES = (3000, 333)
BOUNDED = ((10, 100_000), (100, 100_000), (1000, 100_000), (1000, 500))  # groups, totals


def seconds(action: Callable[[], Any]) -> float:
    """CPU seconds: a ratio should not depend on what else the machine does."""
    start = time.process_time()
    action()
    return time.process_time() - start


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


def rejection_rate(randomness: Randomness, tables: int) -> float:
    """Proposals from the unconditioned mechanism per second x their known chance to conform."""
    law = DoubleGeometric(EPS)
    conforming_rows(np.zeros((1, 46), np.int64), TABLE1)
    spent = seconds(
        lambda: conforming_rows(law.draw(randomness, tables * 46).reshape(tables, 46), TABLE1)
    )
    return tables / spent * 9.7271895272009833e-6


@numba.njit(cache=True)
def whole_proposals(noise, s, state, law, uniforms):
    """Algorithm 1 as printed: draw all 43 cells, solve, then look; returns acceptances."""
    eps, eps_q = law
    accepted, inner, outer = 0, 0, 0
    for t in range(noise.shape[0]):
        row = noise[t]
        female, all_, minors = 0, 0, 0
        row[0], row[22], row[45] = 0, 0, 0
        for c in range(46):
            all_ += row[c]
            if c < 23:
                female += row[c]
            if c < 4 or 23 <= c < 27:
                minors += row[c]
        row[0], row[22], row[45] = -minors, minors - female, female - all_
        if np.all(s + row >= 0):
            outside = abs(row[0]) + abs(row[22]) + abs(row[45])
            inside = np.abs(row).sum() - outside
            ratio = (eps_q - eps) * (inside - inner) - eps * (outside - outer)
            if np.log(uniforms[t]) < ratio:
                state[:] = row
                inner, outer = inside, outside
                accepted += 1
    return accepted


def printed_rate(randomness: Randomness, steps: int) -> float:
    """Steps per second of the chain as printed, which looks at a proposal when it is whole."""
    law, state = DoubleGeometric(PROPOSAL), np.zeros(46, np.int64)
    uniforms = np.random.default_rng().random(steps)
    whole_proposals(np.zeros((1, 46), np.int64), TABLE1, state, (0.5, 0.6), uniforms)

    def once() -> None:
        noise = law.draw(randomness, steps * 46).reshape(steps, 46)
        whole_proposals(noise, TABLE1, state, (0.5, 0.6), uniforms)

    return max(steps / seconds(once) for _ in range(3))


def chain_rate(chain: PrintedChain, randomness: Randomness, steps: int) -> float:
    """Steps per second of the chain that gives a proposal up at its first negative cell."""
    chain.run(randomness, 1000)
    return max(steps / seconds(lambda: chain.run(randomness, steps)) for _ in range(3))


def paper_rows(randomness: Randomness) -> list[dict[str, Any]]:
    """Effective draws are of the l1 distance, and exact: see `papers.congenial_dp.chain`."""
    exact = CrossingGroups(ATOMS, TABLE1, EQUATIONS, DoubleGeometric(EPS))
    draws = exact.draw_many(randomness, DRAWS)
    n = TIMED
    ours = max(n / seconds(lambda: exact.draw_many(randomness, n)) for _ in range(3))
    distance, rates = np.abs(draws - TABLE1).sum(axis=1), {"exact draw": ours}
    for eps in (PROPOSAL, Fraction(11, 20)):
        chain = PrintedChain(TABLE1, eps_proposal=eps)
        weights = chain.weights(draws, exact.log_Z)
        share = effective_share(weights, distance)
        told = f"proposal {float(eps)}: {acceptance(weights):.2%} accepted, {share:.2%} effective"
        if eps == PROPOSAL:
            rates[f"paper's chain, {told}"] = printed_rate(randomness, PRINTED_STEPS) * share
        rates[f"... given up early, {told}"] = chain_rate(chain, randomness, STEPS) * share
    rates["rejection"] = rejection_rate(randomness, TABLES)
    return [
        {
            "part": "2 x 23, three sums, s >= 0",
            "what": what,
            "per_second": rate,
            "ratio": ours / rate,
        }
        for what, rate in rates.items()
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
    labels = np.repeat(np.arange(LEAVES[0]), LEAVES[1])
    what = f"{labels.size:,} leaves"
    build = lambda: GroupedNoise(labels, EPS)  # noqa: E731
    return [timed("leaf noise, fixed totals", what, labels.size, build, randomness)]


def bounded_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(2), []
    for groups, total in BOUNDED:
        counts = rng.multinomial(total, rng.dirichlet(np.ones(46)), size=groups).reshape(-1)

        def build(groups: int = groups, counts: Any = counts) -> TreeOfSums:
            return TreeOfSums.of_groups(np.arange(groups).repeat(46), counts, DoubleGeometric(EPS))

        what = f"{groups:,} groups of 46, totals {total:,}"
        rows.append(timed("s >= 0 given totals", what, groups * 46, build, randomness))
    return rows


SMALLEST = {"TABLES": 50, "PRINTED_STEPS": 50, "STEPS": 50, "DRAWS": 400, "TIMED": 50}
SMALLEST |= {"LEAVES": (3, 4), "BOUNDED": ((2, 50),)}


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
        print(f"{row['part']:<28}{row['what']:<62}{numbers}")


if __name__ == "__main__":
    main()
