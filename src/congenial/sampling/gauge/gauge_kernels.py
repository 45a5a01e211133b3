"""Compiled gauge of two-way tables: closed forms, and a simplex method with columns made on demand.

See `gauge` for the linear programme. Coordinates are the cells outside the last row and column,
which fix a table with zero margins. A dual point is a table Y (zero there); with
d(i, k) = max over j of Y_ij - Y_kj the swaps ask d(i, k) + d(k, i) <= 1 and the hexagons
d(i, k) + d(k, m) + d(m, i) <= 1, so the most violated generator is found in O(r^2 c + r^3).
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.sampling.two_way.margin_kernels import judge

ROUNDING = 2.0**-33  # granted to sums in doubles, per unit: (cells)^2 2^-53 up to 1000 cells
_OFF = 1e-8  # violations and pivots below this count as none; certificates do not rely on it
THREE_SWAPS, THREE_HEXAGONS, SWAPS, HEXAGONS = 0, 1, 2, 3


@numba.njit(cache=True, error_model="numpy")
def three_rows(w: Any, hexagons: bool) -> float:
    """Gauge of a 3 x c table with zero margins (closed forms of `gauge`); exact for integers."""
    if hexagons:
        largest = 0.0
        for i in range(3):
            norm = 0.0
            for j in range(w.shape[1]):
                norm += abs(w[i, j])
            largest = max(largest, norm)
        return largest / 2
    one, two = 0.0, 0.0
    for j in range(w.shape[1]):
        one += max(0.0, w[0, j], -w[1, j])
        two += max(0.0, w[1, j], -w[0, j])
    return max(one, two)


@numba.njit(cache=True, error_model="numpy")
def _separate(y: Any, hexagons: bool, d: Any, at: Any, rows: Any) -> Any:
    """<Y, g> of a generator g with (nearly) the largest, and the largest; `rows` gets g's two or
    three rows (-1: none), `at[i, k]` a column where d(i, k) is attained.
    """
    r, c = y.shape
    for i in range(r):
        for k in range(r):
            d[i, k] = y[i, 0] - y[k, 0]
            at[i, k] = 0
            for j in range(1, c):
                gap = y[i, j] - y[k, j]
                if gap > d[i, k]:
                    d[i, k] = gap
                    at[i, k] = j
    best = 0.0
    rows[0], rows[1], rows[2] = 0, 1, -1
    for i in range(r):
        for k in range(i + 1, r):
            if d[i, k] + d[k, i] > best:
                best = d[i, k] + d[k, i]
                rows[0], rows[1] = i, k
    top = best
    if hexagons:
        for i in range(r):
            for k in range(i + 1, r):
                for m in range(i + 1, r):
                    around = d[i, k] + d[k, m] + d[m, i]
                    if m != k and around > top:
                        top = around
                        # a column used twice makes it a swap, which rounding must not count again
                        if around > best + _OFF:
                            best = around
                            rows[0], rows[1], rows[2] = i, k, m
    return best, top


@numba.njit(cache=True, error_model="numpy")
def _generator(shape: Any, rows: Any, at: Any, g: Any) -> None:
    """The generator found by `_separate` in coordinates: for each step from row i to row k, +1 at
    (i, j) and -1 at (k, j), j = at[i, k].
    """
    g[:] = 0.0
    steps = 2 if rows[2] < 0 else 3
    for t in range(steps):
        i, k = rows[t], rows[(t + 1) % steps]
        j = at[i, k]
        if j < shape[1] - 1:
            if i < shape[0] - 1:
                g[i * (shape[1] - 1) + j] += 1.0
            if k < shape[0] - 1:
                g[k * (shape[1] - 1) + j] -= 1.0


@numba.njit(cache=True, error_model="numpy")
def _upper(b: Any, basis: Any, inverse: Any, norm: float) -> float:
    """A certified upper bound: x = B^-1 b cut at zero, and what it leaves by corner swaps."""
    n = b.size
    left, total = b.copy(), 0.0
    for k in range(n):
        x = 0.0
        for m in range(n):
            x += inverse[k, m] * b[m]
        if x > 0:
            total += x
            for m in range(n):
                left[m] -= basis[k, m] * x
    for m in range(n):
        total += abs(left[m])
    return total + ROUNDING * (norm + total)


@numba.njit(cache=True, error_model="numpy")
def bracket(w: Any, hexagons: bool, enough: float, too_much: float, basis: Any) -> Any:
    """(low, high) with low <= gauge(w) <= high, certain; and the steps taken.

    Stops when high <= enough, when low >= too_much, at the optimum, or after too many steps. basis
    gets the generators in use (rows, in coordinates).
    """
    r, c = w.shape
    n, wide = (r - 1) * (c - 1), c - 1
    inverse, b, x, y = np.zeros((n, n)), np.empty(n), np.empty(n), np.empty(n)
    basis[:] = 0.0
    norm = 1.0
    for i in range(r):
        for j in range(c):
            norm += abs(w[i, j])
    for k in range(n):
        b[k] = w[k // wide, k % wide]
        y[k] = 1.0 if b[k] >= 0 else -1.0
        inverse[k, k] = basis[k, k] = y[k]
        # off the corner a little, so that steps never stall; certificates use b itself
        x[k] = abs(b[k]) + 1e-6 * (1 + (k * 0.6180339887498949) % 1.0)
    dual, d = np.zeros((r, c)), np.empty((r, r))
    at, rows = np.zeros((r, r), np.int64), np.empty(3, np.int64)
    g, step = np.empty(n), np.empty(n)
    low, most = 0.0, 60 * n + 100
    for taken in range(most):
        if x.sum() <= enough:
            high = _upper(b, basis, inverse, norm)
            if high <= enough:
                return low, high, taken
        dot = 0.0
        for k in range(n):
            dual[k // wide, k % wide] = y[k]
            dot += y[k] * b[k]
        best, top = _separate(dual, hexagons, d, at, rows)
        low = max(low, dot / top - ROUNDING * norm)  # Y / top is feasible, entries at most 1
        if low >= too_much or best <= 1 + _OFF:
            break
        _generator((r, c), rows, at, g)
        if not _pivot(g, 1 - best, inverse, basis, x, y, step):
            break
    return low, _upper(b, basis, inverse, norm), taken


@numba.njit(cache=True, error_model="numpy")
def _pivot(g: Any, cost: float, inverse: Any, basis: Any, x: Any, y: Any, step: Any) -> bool:
    """Bring g into the basis; False if no row can leave."""
    n = g.size
    out, ratio = -1, math.inf
    for k in range(n):
        step[k] = 0.0
        for m in range(n):
            step[k] += inverse[k, m] * g[m]
        if step[k] > _OFF and x[k] / step[k] < ratio:
            out, ratio = k, x[k] / step[k]
    if out < 0:
        return False
    for m in range(n):
        inverse[out, m] /= step[out]
        basis[out, m] = g[m]
        y[m] += cost * inverse[out, m]
    for k in range(n):
        if k != out and step[k] != 0.0:
            x[k] = max(0.0, x[k] - step[k] * ratio)
            for m in range(n):
                inverse[k, m] -= step[k] * inverse[out, m]
    x[out] = ratio
    return True


@numba.njit(cache=True, error_model="numpy")
def values(tables: Any, kind: int, out: Any) -> None:
    """The gauge of each table in doubles, to ROUNDING times 1 + its norm."""
    hexagons = kind in (THREE_HEXAGONS, HEXAGONS)
    n = (tables.shape[1] - 1) * (tables.shape[2] - 1)
    basis = np.empty((n, n))
    for t in range(out.size):
        if kind in (THREE_SWAPS, THREE_HEXAGONS):
            out[t] = three_rows(tables[t], hexagons)
        else:
            low, high, _ = bracket(tables[t], hexagons, -1.0, math.inf, basis)
            out[t] = (low + high) / 2


@numba.njit(cache=True, error_model="numpy")
def thin(tables: Any, words: Any, eps: float, kind: int, slack: float, verdicts: Any) -> None:
    """For each proposal: kept (1), refused (0) or open (-1) with probability
    exp(-eps (gauge - bound)), bound = ||w||_1 / 4 or / 6.
    """
    hexagons = kind in (THREE_HEXAGONS, HEXAGONS)
    n = (tables.shape[1] - 1) * (tables.shape[2] - 1)
    basis = np.empty((n, n))
    for t in range(words.size):
        w = tables[t].astype(np.float64)
        norm = np.abs(w).sum()
        bound = norm / (6.0 if hexagons else 4.0)
        if kind in (THREE_SWAPS, THREE_HEXAGONS):
            low = high = three_rows(w, hexagons)
        elif float(words[t]) < 2:
            verdicts[t] = -1
            continue
        else:
            # U = e^-E: kept if gauge <= bound + E / eps
            e = 64 * math.log(2.0) - math.log(float(words[t]))
            room = 2 * slack * (1 / eps + 1 + norm)
            low, high, _ = bracket(
                w, hexagons, bound + e / eps - room, bound + e / eps + room, basis
            )
        blur = slack * (1 + eps * (1 + norm))
        kept = judge(words[t], -eps * (high - bound), blur)
        refused = judge(words[t], -eps * (low - bound), blur)
        verdicts[t] = 1 if kept == 1 else (0 if refused == 0 else -1)
