"""Compiled loops over two sorted sequences of cells.

A cell is an interval [low, high] with an integer mass (a point when both ends are equal); ends do
not decrease along the sequence. Two cells are within w of each other when every two of their points
are. Called with low and high exchanged, the same loops answer for *some* two points instead.

Differences of doubles are compared exactly: where y - x rounds to w itself, the rounding error
decides. The loops run on 64-bit masses, and uncompiled (`.py_func`) on integers of any size.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, error_model="numpy")
def _lost(y: Any, x: Any, d: Any) -> Any:
    """y - x - d exactly, for d the rounded difference."""
    x_seen = y - d
    return (y - (d + x_seen)) + (x_seen - x)


@numba.njit(cache=True, error_model="numpy")
def _up(y: Any, x: Any) -> Any:
    """The least double that is not below y - x."""
    d = y - x
    if d - d == 0.0 and _lost(y, x, d) > 0.0:
        return np.nextafter(d, np.inf)
    return d


@numba.njit(cache=True, error_model="numpy")
def _beyond(y: Any, x: Any, w: Any) -> Any:
    """Whether y - x > w, exactly."""
    d = y - x
    if d != w:
        return d > w
    return d - d == 0.0 and _lost(y, x, d) > 0.0


@numba.njit(cache=True, error_model="numpy")
def comonotone(a: Any, b: Any, p: Any, c: Any, d: Any, q: Any) -> Any:
    """Largest distance in the coupling that matches equal quantiles: W_inf, rounded up.

    Cells [a, b] with masses p against [c, d] with masses q of equal total.
    """
    i, j, left, right, worst = 0, 0, p[0], q[0], 0.0
    while True:
        if _beyond(d[j], a[i], worst):
            worst = _up(d[j], a[i])
        if _beyond(b[i], c[j], worst):
            worst = _up(b[i], c[j])
        if left < right:
            right -= left
            i += 1
            left = p[i]
        elif right < left:
            left -= right
            j += 1
            right = q[j]
        else:
            i += 1
            j += 1
            if i == len(p) or j == len(q):
                return worst
            left, right = p[i], q[j]


@numba.njit(cache=True, error_model="numpy")
def greedy(
    a: Any, b: Any, p: Any, c: Any, d: Any, q: Any, w: Any, spare: Any, pairs: Any, pieces: Any
) -> Any:
    """Match as much mass as possible within w; stop once a side has lost more than its `spare`.

    Returns the matched mass, the largest distance used, the least distance above w that was in the
    way, and the number of pieces; piece k is `pieces[k]` of mass between cells `pairs[k]`, written
    as far as there is room. Any w' below the third number makes the same decisions, so a failure
    at w is a failure at w'.
    """
    i, j, left, right, used, gap = 0, 0, p[0], q[0], 0.0, np.inf
    spare_left, spare_right, matched, count = spare[0], spare[1], left - left, 0
    while spare_left >= 0 and spare_right >= 0:
        if _beyond(d[j], a[i], w):  # cell i ends too far below every cell that is left
            gap = min(gap, _up(d[j], a[i]))
            spare_left -= left
            left -= left
        elif _beyond(b[i], c[j], w):
            gap = min(gap, _up(b[i], c[j]))
            spare_right -= right
            right -= right
        else:
            if _beyond(d[j], a[i], used):
                used = _up(d[j], a[i])
            if _beyond(b[i], c[j], used):
                used = _up(b[i], c[j])
            moved = min(left, right)
            if count < len(pieces):
                pairs[count, 0], pairs[count, 1], pieces[count] = i, j, moved
            count += 1
            matched += moved
            left -= moved
            right -= moved
        if left == 0:
            i += 1
            if i == len(p):
                break
            left = p[i]
        if right == 0:
            j += 1
            if j == len(q):
                break
            right = q[j]
    return matched, used, gap, count
