"""Distances between laws: large samples on the line, points in the plane, and linear programmes.

Run `python benchmarks/transport.py`; it takes about a minute. Every time is for one core. The
baseline is the linear programme that a general library solves (all pairs, threshold bisected
over the distances that occur), on the largest sizes it can do; a second baseline for the plane is
one plain flow over all pairs within the threshold, without choosing pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from congenial.pairs.stated_laws import StatedDiscrete, pmf, sample
from congenial.transport.several import Edges, largest
from congenial.transport.wasserstein import distance

SEED = 20_240_607
LINE = 1_000_000
PLANE = 5_000
PROGRAMME = 60  # points in each law, for the linear programmes


def seconds(action: Callable[[], Any], repeat: int = 1) -> float:
    """The best of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def least_by_programme(x: Any, y: Any, delta: float) -> float:
    """The least W for two samples by linear programmes over all pairs, bisected."""
    n, m = len(x), len(y)
    apart = cdist(x, y, "cityblock")
    left = sp.kron(sp.eye(n), np.ones((1, m)))
    right = sp.kron(np.ones((1, n)), sp.eye(m))
    both = sp.vstack([left, right]).tocsr()
    sums = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    candidates = np.unique(apart)
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        near = -(apart <= candidates[middle]).reshape(-1).astype(float)
        found = linprog(near, A_eq=both, b_eq=sums, method="highs")
        if -found.fun >= 1 - delta - 1e-9:
            high = middle
        else:
            low = middle + 1
    return float(candidates[low])


def line_rows(rng: np.random.Generator) -> list[dict[str, Any]]:
    x = np.sort(rng.normal(size=LINE))
    y = np.sort(rng.normal(0.1, 1.1, size=LINE))
    shorter = np.sort(rng.normal(size=LINE - 1))
    rows, equal = [], f"{LINE:,} and {LINE:,} points"
    for name, other in ((equal, y), (f"{LINE:,} and {LINE - 1:,} points", shorter)):
        distance(sample(x), sample(other), delta=0.4)  # compile
        took = seconds(lambda other=other: distance(sample(x), sample(other)), 5)
        rows.append({"part": name, "what": "W_inf, sorted samples", "milliseconds": 1e3 * took})
        for delta in (0.001, 0.02, 0.1):
            took = seconds(lambda d=delta, o=other: distance(sample(x), sample(o), delta=d), 2)
            rows.append({"part": name, "what": f"(W, {delta})", "milliseconds": 1e3 * took})
    took = seconds(lambda: np.abs(x - y).max(), 5)
    rows.append(
        {
            "part": equal,
            "what": "plain numpy, equal sizes",
            "milliseconds": 1e3 * took,
        }
    )
    return rows


def plane_rows(rng: np.random.Generator) -> list[dict[str, Any]]:
    x, y = rng.normal(size=(PLANE, 2)), rng.normal(size=(PLANE, 2))
    weights = [rng.integers(1, 10**9, PLANE) for _ in range(2)]
    weighted = [pmf(z, w) for z, w in zip((x, y), weights, strict=True)]
    rows, name = [], f"{PLANE} and {PLANE} points, plane"
    for norm in ("l1", "l2", "linf"):
        for delta in (0, 0.01):
            took = seconds(lambda n=norm, d=delta: distance(sample(x), sample(y), norm=n, delta=d))
            rows.append(
                {"part": name, "what": f"{norm}, delta = {delta}", "milliseconds": 1e3 * took}
            )
    took = seconds(lambda: distance(*weighted, norm="l2"))
    rows.append({"part": name, "what": "l2, random masses, exact", "milliseconds": 1e3 * took})
    w = distance(sample(x), sample(y), norm="l2").value
    took = seconds(lambda: _all_pairs(sample(x), sample(y), w))
    rows.append(
        {"part": name, "what": "one flow over all pairs within W (l2)", "milliseconds": 1e3 * took}
    )
    return rows


def _all_pairs(left: StatedDiscrete, right: StatedDiscrete, w: float) -> int:
    apart = cdist(left.points, right.points)
    i, j = np.nonzero(apart <= w)
    return largest(left, right, Edges(i, j, apart[i, j])).amount  # type: ignore[arg-type]


def programme_rows(rng: np.random.Generator) -> list[dict[str, Any]]:
    rows = []
    for dimension, name in ((1, "line"), (2, "plane")):
        x = rng.normal(size=(PROGRAMME, dimension))
        y = rng.normal(size=(PROGRAMME + 1, dimension))
        part = f"{PROGRAMME} and {PROGRAMME + 1} points, {name}"
        for delta in (0.0, 0.05):
            value = distance(sample(x), sample(y), delta=delta).value
            ours = seconds(lambda d=delta, u=x, v=y: distance(sample(u), sample(v), delta=d), 5)
            slow = seconds(lambda d=delta, u=x, v=y: least_by_programme(u, v, d))
            assert abs(least_by_programme(x, y, delta) - value) < 1e-12
            what = f"l1, delta = {delta:g}"
            rows.append({"part": part, "what": what, "milliseconds": 1e3 * ours, "ratio": 1.0})
            row = {"part": part, "what": f"linear programme, {what}", "milliseconds": 1e3 * slow}
            rows.append(row | {"ratio": slow / ours})
    return rows


SMALLEST = {"LINE": 100, "PLANE": 20, "PROGRAMME": 6}


def run() -> list[dict[str, Any]]:
    """Measure everything; one row per line of the table."""
    rng = np.random.default_rng(SEED)
    return line_rows(rng) + plane_rows(rng) + programme_rows(rng)


if __name__ == "__main__":
    for row in run():
        ratio = f"{row['ratio']:9.1f}" if "ratio" in row else 9 * " "
        print(f"{row['part']:32} {row['what']:42} {row['milliseconds']:12.2f} ms {ratio}")
