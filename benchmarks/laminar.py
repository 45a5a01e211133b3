"""Exact noise given sums: rate, comparison with rejection, growth with cells, plain noise rates.

Run `python benchmarks/laminar.py`; it takes well under a minute. Every rate is for one core,
and every method gets its bits from the same place unless the row says otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numba
import numpy as np

from congenial.sampling import (
    DiscreteGaussian,
    DoubleGeometric,
    ExactLaw,
    GroupedNoise,
    Randomness,
    SystemRandomness,
)

EPS = Fraction(1, 4)
DRAWS, PROPOSALS, PLAIN_DRAWS, OPENDP_DRAWS = 300_000, 2_000_000, 2_000_000, 10_000
CELLS = (46, 460, 4_600, 46_000, 460_000, 1_000_000)
SIZES = (8, 38)  # a 2 x 23 table given its total and the count of those aged 18 and over


def seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


@numba.njit(cache=True)
def keep_zero_sums(values, sizes, restart_all, out):
    """Fill rows of out from a stream of i.i.d. noise, kept if all groups sum to zero; count them.

    A proposal is given up at the first group that fails; then either the whole table is proposed
    again (plain rejection) or only that group (using that groups are independent).
    """
    at, row, group, filled = 0, 0, 0, 0
    while row < len(out):
        k = sizes[group]
        if at + k > len(values):
            return row
        total = 0
        for i in range(k):
            total += values[at + i]
            out[row, filled + i] = values[at + i]
        at += k
        if total == 0:
            filled += k
            group += 1
            if group == len(sizes):
                row, group, filled = row + 1, 0, 0
        elif restart_all:
            group, filled = 0, 0
    return row


def rejection_rate(restart_all: bool, proposals: int, randomness: Randomness) -> float:
    law, sizes = DoubleGeometric(EPS), np.array(SIZES)
    out = np.empty((proposals, sum(SIZES)), np.int64)
    keep_zero_sums(law.draw(randomness, 1000), sizes, restart_all, out)
    start = time.perf_counter()
    kept = 0
    for _ in range(10):
        kept += keep_zero_sums(law.draw(randomness, proposals), sizes, restart_all, out)
    return kept / (time.perf_counter() - start)


def conditional_rows(randomness: Randomness) -> list[dict[str, Any]]:
    noise = GroupedNoise.of_sizes(SIZES, EPS)
    noise.draw_many(randomness, 100)
    n = DRAWS
    ours = n / seconds(lambda: noise.draw_many(randomness, n))
    rows = [
        {"part": "2 x 23 given two sums", "what": "exact draw", "per_second": ours, "ratio": 1.0}
    ]
    for name, restart_all in (
        ("rejection, whole table", True),
        ("rejection, group by group", False),
    ):
        rate = rejection_rate(restart_all, PROPOSALS, randomness)
        rows.append(
            {
                "part": "2 x 23 given two sums",
                "what": name,
                "per_second": rate,
                "ratio": ours / rate,
            }
        )
    return rows


def growth_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rows = []
    for groups in (1, 1000):
        for cells in CELLS:
            if cells < 2 * groups:
                continue
            noise = GroupedNoise(np.arange(cells) % groups, EPS)
            noise.draw(randomness)  # tables are built once per group size
            best = min(seconds(lambda noise=noise: noise.draw(randomness)) for _ in range(5))
            rows.append(
                {
                    "part": "one draw",
                    "what": f"{cells:,} cells, {groups:,} group{'s' * (groups > 1)}",
                    "milliseconds": 1e3 * best,
                    "ns_per_cell": 1e9 * best / cells,
                }
            )
    return rows


def opendp_rate(kind: str, n: int) -> float | None:
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "double geometric":
        measure = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=4.0)
    else:
        measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=4.0)
    zeros = [0] * n
    return n / seconds(lambda: measure(zeros))


def float_inverse(law: ExactLaw, n: int) -> None:
    """A 53-bit uniform through the CDF, as one would write it in NumPy: not exact, a rate only."""
    cdf = law.cdf(np.arange(-300, 301))  # type: ignore[attr-defined]
    np.searchsorted(cdf, np.random.default_rng().random(n), side="right") - 300


def noise_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rows, n = [], PLAIN_DRAWS
    for kind, law in (
        ("double geometric", DoubleGeometric(EPS)),
        ("discrete Gaussian", DiscreteGaussian(Fraction(16))),
    ):
        law.draw(randomness, 10)
        ours = n / seconds(lambda law=law: law.draw(randomness, n))
        rates = {
            "exact draw": ours,
            "opendp (exact)": opendp_rate(kind, OPENDP_DRAWS),
            "numpy inverse cdf (53 bits, own generator)": n
            / seconds(lambda law=law: float_inverse(law, n)),
        }
        for what, rate in rates.items():
            if rate is not None:
                rows.append({"part": kind, "what": what, "per_second": rate, "ratio": ours / rate})
    return rows


SMALLEST = {"DRAWS": 200, "PROPOSALS": 20_000, "PLAIN_DRAWS": 2000, "OPENDP_DRAWS": 20}
SMALLEST |= {"CELLS": (46, 2000)}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    randomness = SystemRandomness()
    return [*conditional_rows(randomness), *growth_rows(randomness), *noise_rows(randomness)]


def main() -> None:
    for row in run():
        if "per_second" in row:
            numbers = f"{row['per_second']:>14,.0f} /s   exact draw is {row['ratio']:,.2f} x this"
        else:
            numbers = f"{row['milliseconds']:>12.3f} ms   {row['ns_per_cell']:,.0f} ns per cell"
        print(f"{row['part']:<24}{row['what']:<46}{numbers}")


if __name__ == "__main__":
    main()
