"""Compiled loops of `messages`: where outcomes lie, walks through them, the order of splits.

`_aliases` draws with them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from congenial.sampling.tree.split_constants import WHOLE

_BYTE = WHOLE - 8


@numba.njit(cache=True, error_model="numpy")
def modes(left: Any, right: Any, lo: int, n: int) -> Any:
    """For x = lo .. lo + n - 1 (counted from the sum of both window starts): the index y into
    `left` near which left[y] right[x - y] is largest. Climbs, since it moves right with x.
    """
    out = np.empty(n, np.int32)
    y = 0
    for i in range(n):
        x = lo + i
        first, last = max(0, x - right.size + 1), min(left.size - 1, x)
        y = min(max(y, first), last)
        while y < last and left[y + 1] * right[x - y - 1] >= left[y] * right[x - y]:
            y += 1
        out[i] = y
    return out


@numba.njit(cache=True, error_model="numpy")
def exponential_sum(m: Any, lo: int, tails: Any, t: float) -> Any:
    """(sum, maximum) over all integers of m(x) e^(t x); tails = (c_lo, t_lo, c_hi, t_hi), with
    -t_lo < t < t_hi.
    """
    c_lo, t_lo, c_hi, t_hi = tails
    total, top = 0.0, 0.0
    for i in range(m.size):
        w = m[i] * np.exp(t * (lo + i))
        total += w
        top = max(top, w)
    if c_hi > 0:
        edge = c_hi * np.exp(t * (lo + m.size - 1))
        total += edge / np.expm1(t_hi - t)
        top = max(top, edge * np.exp(t - t_hi))
    if c_lo > 0:
        edge = c_lo * np.exp(t * lo)
        total += edge / np.expm1(t_lo + t)
        top = max(top, edge * np.exp(-t - t_lo))
    return total, top


@numba.njit(cache=True, error_model="numpy")
def scan(p: Any, q: Any, bounds: Any, start: int, index: Any, factor: float, r: Any) -> Any:
    """Walk outcomes away from `start` (start, -1, +1, -2, ...) until r falls in the weight of one.

    Outcome y in bounds = (first, last) weighs floor(p[y] q[i + j y] factor) + 1, index = (i, j).
    Returns (y, weight, sum of weights before it); y = -1 if r is beyond all.
    """
    return scan_beside(p, q, bounds, (start, start), index, factor, r)


@numba.njit(cache=True, error_model="numpy")
def scan_beside(p: Any, q: Any, bounds: Any, gap: Any, index: Any, factor: float, r: Any) -> Any:
    """`scan` through the outcomes outside gap[0] <= y < gap[1], nearest first."""
    first, last = bounds
    i, j = index
    down, up = gap[0] - 1, gap[1]
    before: Any = 0
    upwards = True
    while True:
        if (upwards and up <= last) or down < first:
            if up > last:
                return -1, 0, before
            y = up
            up += 1
        else:
            y = down
            down -= 1
        upwards = not upwards
        n = np.int64(p[y] * q[i + j * y] * factor) + 1
        if r < before + n:
            return y, n, before
        before += n


@numba.njit(cache=True, error_model="numpy")
def guide_row(p: Any, q: Any, bounds: Any, start: int, index: Any, factor: float, row: Any) -> None:
    """row[b] = y - start + 127 if every r with leading byte b gives y in `scan`, else 255."""
    first, last = bounds
    i, j = index
    row[:] = 255
    up, down = start, start - 1
    before: Any = 0
    upwards = True
    while up <= last or down >= first:
        if (upwards and up <= last) or down < first:
            y = up
            up += 1
        else:
            y = down
            down -= 1
        upwards = not upwards
        if abs(y - start) > 126:
            return
        after = before + np.int64(p[y] * q[i + j * y] * factor) + 1
        for b in range((before + (1 << _BYTE) - 1) >> _BYTE, min(after >> _BYTE, 256)):
            row[b] = y - start + 127
        before = after


@numba.njit(cache=True, error_model="numpy")
def build_program(roots: Any, nodes: Any, slots: Any, spare: int, depth: int) -> Any:
    """Splits in the order of drawing (a node, its left part, its right part), as rows (node, slot
    of its sum, slots of its parts), and the slots of the roots. A leaf's slot is given by `slots`,
    leaves from left to right; other slots are numbered from `spare` on. nodes: children first.
    """
    program = np.empty((slots.size, 4), np.int32)
    of_root = np.empty(roots.size, np.int64)
    waiting = np.empty((depth, 2), np.int64)  # node, place of its slot in the flat program
    length, leaf = 0, 0
    flat = program.reshape(-1)
    for r in range(roots.size):
        waiting[0, 0], waiting[0, 1] = roots[r], -1
        top = 1
        while top > 0:
            top -= 1
            t, where = waiting[top]
            if nodes[t, 0] < 0:
                slot = slots[leaf]
                leaf += 1
            else:
                slot = spare
                spare += 1
                program[length, 0], program[length, 1] = t, slot
                waiting[top, 0], waiting[top, 1] = nodes[t, 1], 4 * length + 3
                waiting[top + 1, 0], waiting[top + 1, 1] = nodes[t, 0], 4 * length + 2
                top += 2
                length += 1
            if where < 0:
                of_root[r] = slot
            else:
                flat[where] = slot
    return program[:length], of_root
