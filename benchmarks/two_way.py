"""Noise on two-way tables given both margins: rates, shares of proposals kept, against baselines.

Run `python benchmarks/two_way.py`; it takes about a minute. Rates are per second of processor time
on one core, bits from the operating system.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

from congenial.sampling import (
    DiscreteGaussian,
    DoubleGeometric,
    GroupedNoise,
    Randomness,
    SystemRandomness,
)
from congenial.sampling.lattice_gaussian import CrossingGaussian, GroupedGaussian
from congenial.sampling.two_way_noise import TwoWayNoise

EPS = Fraction(1, 4)
GAUSSIANS = (  # shape, sigma2, draws
    ((10, 12), Fraction(4), 2000),
    ((100, 100), Fraction(4), 200),
    ((300, 300), Fraction(4), 30),
    ((300, 300), Fraction(10**6), 30),
    ((10, 12), Fraction(49, 100), 2000),
)
GROUPED = 20_000  # draws
NOISES = (((2, 50), 3000), ((3, 3), 5000), ((3, 100), 200), ((6, 6), 500), ((10, 10), 20))


def rate(sampler: Any, randomness: Randomness, n: int) -> float:
    """Draws per second of processor time, after a first draw that builds tables."""
    sampler.draw(randomness)
    start = time.process_time()
    sampler.draw_many(randomness, n)
    return n / (time.process_time() - start)


def plain_rate(law: Any, cells: int, randomness: Randomness, n: int) -> float:
    """The same noise without any condition."""
    law.draw(randomness, cells)
    start = time.process_time()
    for _ in range(n):
        law.draw(randomness, cells)
    return n / (time.process_time() - start)


def row(part: str, what: str, per_second: float, **more: Any) -> dict[str, Any]:
    return {"part": part, "what": what, "per_second": per_second, **more}


def gaussian_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rows = []
    for shape, sigma2, n in GAUSSIANS:
        ours = rate(CrossingGaussian.of_table(shape, sigma2), randomness, n)
        plain = plain_rate(DiscreteGaussian(sigma2), shape[0] * shape[1], randomness, n)
        what = f"{shape[0]} x {shape[1]}, sigma2 = {sigma2}"
        rows.append(row("Gaussian, both margins", what, ours, ratio=plain / ours))
    ours = rate(GroupedGaussian.of_sizes((8, 38), 16), randomness, GROUPED)
    other = rate(GroupedNoise.of_sizes((8, 38), EPS), randomness, GROUPED)
    rows.append(row("Gaussian, two sums", "46 cells", ours, ratio=other / ours))
    return rows


def noise_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rows = []
    for shape, n in NOISES:
        sampler = TwoWayNoise(shape, EPS)
        ours = rate(sampler, randomness, n)
        plain = plain_rate(DoubleGeometric(EPS), shape[0] * shape[1], randomness, 100)
        what = f"{shape[0]} x {shape[1]}"
        rows.append(row("double geometric, no sign", what, ours, ratio=plain / ours))
    return rows


SMALLEST = {"GAUSSIANS": (((2, 3), Fraction(4), 5),), "GROUPED": 20, "NOISES": (((2, 3), 5),)}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table. ratio: baseline rate / ours, the baseline
    being unconditioned noise, or double geometric noise given the same sums.
    """
    randomness = SystemRandomness()
    return [*gaussian_rows(randomness), *noise_rows(randomness)]


def main() -> None:
    for line in run():
        numbers = f"{line['per_second']:>12,.1f} /s   baseline is {line['ratio']:,.2f} x this"
        print(f"{line['part']:<28}{line['what']:<46}{numbers}")


if __name__ == "__main__":
    main()
