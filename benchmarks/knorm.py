"""K-norm noise given both margins: rates against the targets and the paper's cube rejection.

Run `python benchmarks/knorm.py`; it takes about half a minute. Rates are per second of processor
time on one core, bits from the operating system, epsilon = 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.papers.semi_dp.real_knorm import Cones, KNormReal, table_cones
from congenial.sampling import Randomness, SystemRandomness
from congenial.sampling.canonical import uniform_doubles
from congenial.sampling.knorm_noise import Gauge, KNormNoise
from congenial.sampling.two_way_noise import TwoWayNoise

EPS = Fraction(1)
INTEGERS = {  # shape: draws, target per second under A_2
    (3, 3): (50_000, 5e3),
    (4, 4): (10_000, None),
    (6, 6): (400, 30),
    (8, 8): (40, None),
    (10, 10): (8, 2),
}
REAL_DRAWS, PROPOSALS = 100_000, {(3, 3): 200_000, (4, 4): 30_000}
REALS = {((3, 3), 2): None, ((3, 3), 3): None, ((4, 4), 2): 1e5, ((4, 4), 3): None}


def rate(draw: Callable[[int], Any], n: int) -> float:
    """Draws per second of processor time, after a first draw that builds tables."""
    draw(1)
    start = time.process_time()
    draw(n)
    return n / (time.process_time() - start)


def cube_rejection(cones: Cones, randomness: Randomness, proposals: int) -> tuple[float, float]:
    """The paper's Algorithm 3 with facets known in advance: accepted per second, and their share.

    Proposals are uniform on the cube |w_ij| <= 1 of the free cells.
    """
    assert cones.turns is not None
    r, c = cones.turns
    numerators, denominator = cones.facets
    start = time.process_time()
    inner = 2 * uniform_doubles(randomness, proposals * (r - 1) * (c - 1)) - 1
    inner = inner.reshape(proposals, r - 1, c - 1)
    w = np.concatenate([inner, -inner.sum(axis=1, keepdims=True)], axis=1)
    w = np.concatenate([w, -w.sum(axis=2, keepdims=True)], axis=2).reshape(proposals, -1)
    inside = (w @ numerators.T / denominator).max(axis=1) <= 1
    d = cones.dimension
    radius = -np.log(uniform_doubles(randomness, int(inside.sum()) * (d + 1)))
    _ = w[inside] * radius.reshape(-1, d + 1).sum(axis=1)[:, None]
    seconds = time.process_time() - start
    return float(inside.sum() / seconds), float(inside.mean())


def integer_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rows = []
    for shape, (n, target) in INTEGERS.items():
        for records in (2, 3):
            noise = KNormNoise(shape, EPS, records=records)
            ours = rate(lambda k, noise=noise: noise.draw_many(randomness, k), n)
            assert noise.gauge is not None
            longest = noise.gauge.longest
            plain = TwoWayNoise(shape, EPS / longest)
            proposals = rate(lambda k, plain=plain: plain.draw_many(randomness, k), n)
            some = plain.draw_many(randomness, min(n, 200))
            excess = Gauge(shape, records).value(some) - np.abs(some).sum(axis=(1, 2)) / longest
            rows.append(
                {
                    "part": "integer, exact",
                    "what": f"{shape[0]} x {shape[1]}, A_{records}",
                    "per_second": ours,
                    "target": target if records == 2 else None,
                    "kept": float(np.exp(-excess).mean()),
                    "ratio": proposals / ours,
                }
            )
    return rows


def real_rows(randomness: Randomness) -> list[dict[str, Any]]:
    rows = []
    for (shape, records), target in REALS.items():
        noise = KNormReal.table(shape, EPS, records)
        ours = rate(lambda k, noise=noise: noise.draw_many(randomness, k), REAL_DRAWS)
        cones = table_cones(shape, records)
        cube, share = cube_rejection(cones, randomness, PROPOSALS[shape])
        rows.append(
            {
                "part": "real, by cones",
                "what": f"{shape[0]} x {shape[1]}, A_{records} ({len(cones.corners):,} cones)",
                "per_second": ours,
                "target": target,
                "kept": share,
                "ratio": cube / ours,
            }
        )
    return rows


SMALLEST = {"INTEGERS": {(3, 3): (20, None)}, "REALS": {((3, 3), 2): None}}
SMALLEST |= {"REAL_DRAWS": 100, "PROPOSALS": {(3, 3): 1000}}


def run() -> list[dict[str, Any]]:
    """Measure everything. ratio: baseline rate / ours; the baseline of integer noise is the double
    geometric noise it is thinned from, that of real noise the paper's cube rejection. kept: the
    share of proposals kept, by thinning or by that rejection.
    """
    randomness = SystemRandomness()
    return [*integer_rows(randomness), *real_rows(randomness)]


def main() -> None:
    for line in run():
        target = "" if line["target"] is None else f"   target {line['target']:>9,.0f}"
        numbers = f"{line['per_second']:>12,.1f} /s   baseline is {line['ratio']:,.5f} x this"
        print(f"{line['part']:<18}{line['what']:<32}{numbers}   kept {line['kept']:.2g}{target}")


if __name__ == "__main__":
    main()
