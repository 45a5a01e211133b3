"""Bulk noise: the exact sampler's rate beside NumPy's inexact inverse CDF and OpenDP's vector call.

Run `python benchmarks/noise.py`; it takes well under a minute. One core, one process, the same run
for all; the exact sampler takes its bits from `SystemRandomness`, NumPy from its own generator
(not a cryptographic one), OpenDP from its own source. `ratio` is our rate over that of the row.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.sampling import (
    DiscreteGaussian,
    DoubleGeometric,
    GroupedNoise,
    Randomness,
    SystemRandomness,
    inversion,
)

DRAWS = 10_000_000
OPENDP_DRAWS = 20_000
BEYOND_DRAWS, GROUPS = 1_000_000, 1000
PLAIN = {
    "double geometric, eps 1/4": DoubleGeometric(Fraction(1, 4)),
    "discrete Gaussian, sigma 4": DiscreteGaussian(Fraction(16)),
}
WIDER = {
    "double geometric, eps 1/100": DoubleGeometric(Fraction(1, 100)),
    "discrete Gaussian, sigma 100": DiscreteGaussian(Fraction(10**4)),
    "discrete Gaussian, sigma 1000": DiscreteGaussian(Fraction(10**6)),
}
BEYOND = {"discrete Gaussian, sigma 1e6": DiscreteGaussian(Fraction(10**12))}


def seconds(action: Callable[[], Any], times: int = 3) -> float:
    """The best of a few runs."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def float_inverse(law: Any, n: int) -> None:
    """A 53-bit uniform through the CDF, as one would write it in NumPy: not exact, a rate only."""
    reach = int(40 * np.sqrt(law.variance)) + 1
    cdf = law.cdf(np.arange(-reach, reach + 1))
    np.searchsorted(cdf, np.random.default_rng().random(n), side="right") - reach


def opendp_rate(law: Any, n: int) -> float | None:
    """Draws per second of OpenDP's vector measurement with the same law; None if not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if isinstance(law, DoubleGeometric):
        measure = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(1 / law.eps))
    else:
        scale = float(law.sigma2) ** 0.5
        measure = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    zeros = [0] * n
    return n / seconds(lambda: measure(zeros), 1)


def rate_rows(randomness: Randomness) -> list[dict[str, Any]]:
    """Our rate at 1e7 draws beside the peers'."""
    rows = []
    for name, law in {**PLAIN, **WIDER}.items():
        law.draw(randomness, 1 << 16)  # tables are built once per law
        ours = DRAWS / seconds(lambda law=law: law.draw(randomness, DRAWS))
        rates: dict[str, float | None] = {
            "exact draw": ours,
            "numpy inverse cdf (53 bits, inexact)": DRAWS
            / seconds(lambda law=law: float_inverse(law, DRAWS), 2),
        }
        if name in PLAIN:
            rates["opendp vector call (exact)"] = opendp_rate(law, OPENDP_DRAWS)
        rows += [
            {"part": name, "what": what, "per_second": rate, "ratio": ours / rate}
            for what, rate in rates.items()
            if rate is not None
        ]
    for name, law in BEYOND.items():  # in blocks, since a table would be too wide
        law.draw(randomness, BEYOND_DRAWS)
        rate = BEYOND_DRAWS / seconds(lambda law=law: law.draw(randomness, BEYOND_DRAWS))
        deviation, numpy = float(law.sigma2) ** 0.5, np.random.default_rng()
        normal = BEYOND_DRAWS / seconds(
            lambda: np.rint(numpy.normal(0, deviation, BEYOND_DRAWS)).astype(np.int64)  # noqa: B023
        )
        rows += [
            {"part": name, "what": what, "per_second": each, "ratio": rate / each}
            for what, each in (("exact draw", rate), ("numpy normal, rounded (inexact)", normal))
        ]
    return rows


def source_rows(randomness: Randomness) -> list[dict[str, Any]]:
    """Bits: the stream against asking the operating system for every byte."""
    import os

    size = 1 << 17  # bytes, as one chunk of draws takes them
    ours = size / seconds(lambda: randomness.words(size // 8), 50)
    system = size / seconds(lambda: os.urandom(size), 50)
    return [
        {"part": "random bytes", "what": what, "per_second": rate, "ratio": ours / rate}
        for what, rate in (("SystemRandomness", ours), ("os.urandom", system))
    ]


def set_up_rows(randomness: Randomness) -> list[dict[str, Any]]:
    """Tables for 1,000 distinct group sizes, against ball arithmetic for a few of them."""
    eps = Fraction(1, 4)
    sizes = np.arange(2, 2 + GROUPS)
    noise = GroupedNoise.of_sizes(sizes, eps)
    GroupedNoise.of_sizes((3, 2000), eps).draw(randomness)
    start = time.perf_counter()
    noise.draw(randomness)
    ours = sizes.size / (time.perf_counter() - start)
    from congenial.sampling.grouped_noise import SharedTotal

    few = [SharedTotal(int(k), Fraction(1, 4)) for k in sizes[::100]]
    balls = len(few) / seconds(lambda: [inversion.boundaries(law, 1) for law in few], 1)
    part = f"set-up, group sizes 2 .. {1 + GROUPS}"
    return [
        {"part": part, "what": "sizes, first draw included", "per_second": ours, "ratio": 1.0},
        {"part": part, "what": "ball arithmetic", "per_second": balls, "ratio": ours / balls},
    ]


SMALLEST = {"DRAWS": 1000, "OPENDP_DRAWS": 20, "BEYOND_DRAWS": 100, "GROUPS": 3}
SMALLEST |= {"PLAIN": PLAIN, "WIDER": {}}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    randomness = SystemRandomness()
    return [*rate_rows(randomness), *source_rows(randomness), *set_up_rows(randomness)]


def main() -> None:
    for row in run():
        numbers = f"{row['per_second']:>16,.0f} /s   ours is {row['ratio']:,.2f} x this"
        print(f"{row['part']:<32}{row['what']:<40}{numbers}")


if __name__ == "__main__":
    main()
