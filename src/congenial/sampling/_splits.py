"""Compiled loops of `messages`: draw sums down a tree of messages.

As in `_kernels`, loops read words from an array and say how many they used.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

WHOLE = 62  # a row of integer weights fills at most 2^62
RARE = 1 << 41  # an outcome with a smaller weight is checked on its own
OUT_OF_WORDS, SLOW, DONE = 0, 1, 2
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
    """Walk outcomes away from `start` (start, +1, -1, +2, ...) until r falls in the weight of one.

    Outcome y in bounds = (first, last) weighs floor(p[y] q[i + j y] factor) + 1, index = (i, j).
    Returns (y, weight, sum of weights before it); y = -1 if r is beyond all.
    """
    first, last = bounds
    i, j = index
    up, down = start, start - 1
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
def build_guides(tree: Any, guide: Any, whole: float) -> None:
    """Fill the guide rows of every node, and the y that goes with code 0 of each row."""
    left, right, lo, size, at, m, s, mode = tree
    first_x, rows, g_at, base, table = guide
    for t in range(left.size):
        a, b = left[t], right[t]
        for g in range(rows[t]):
            i = first_x[t] + g - lo[t]
            x = first_x[t] + g - lo[a] - lo[b]
            base[g_at[t] + g] = mode[at[t] + i] + lo[a] - 127
            guide_row(
                m[at[a] : at[a] + size[a]],
                m[at[b] : at[b] + size[b]],
                (max(0, x - size[b] + 1), min(size[a] - 1, x)),
                mode[at[t] + i],
                (x, -1),
                whole / s[at[t] + i],
                table[(g_at[t] + g) * 256 : (g_at[t] + g + 1) * 256],
            )


@numba.njit(cache=True, error_model="numpy")
def build_program(roots: Any, left: Any, right: Any, slots: Any, spare: int, depth: int) -> Any:
    """Splits in the order of drawing (a node, its left part, its right part), as rows (node, slot
    of its sum, slots of its parts), and the slots of the roots. A leaf's slot is given by `slots`,
    leaves from left to right; other slots are numbered from `spare` on.
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
            if left[t] < 0:
                slot = slots[leaf]
                leaf += 1
            else:
                slot = spare
                spare += 1
                program[length, 0], program[length, 1] = t, slot
                waiting[top, 0], waiting[top, 1] = right[t], 4 * length + 3
                waiting[top + 1, 0], waiting[top + 1, 1] = left[t], 4 * length + 2
                top += 2
                length += 1
            if where < 0:
                of_root[r] = slot
            else:
                flat[where] = slot
    return program[:length], of_root


@numba.njit(cache=True, error_model="numpy")
def draw_down(
    out: Any, sums: Any, plan: Any, tree: Any, guide: Any, numbers: Any,
    words: Any, task: int, flags: Any,
) -> Any:  # fmt: skip
    """Fill out from draw `task` on: split each root's sum down to the leaves.

    Returns (status, first draw not completed, words used by completed draws, flags used). A flag
    (draw, node, x, y) is a rare outcome, or (node -1) a draw whose last bits ask for a full check.
    """
    program, of_root, base_of, slots = plan
    left, right, lo, size, start_of, m, s, mode = tree
    first_x, rows, g_at, g_base, table = guide
    whole, check = numbers
    cells = base_of.size
    value = np.zeros(slots, np.int64)
    used, kept = 0, 0
    while task < out.shape[0]:
        at, byte, have, fresh = used, np.uint64(0), 0, kept
        for root in range(of_root.size):
            value[of_root[root]] = sums[task if sums.shape[0] > 1 else 0, root]
        for step in range(program.shape[0]):
            t = program[step, 0]
            x = value[program[step, 1]]
            g = x - first_x[t]
            if 0 <= g < rows[t]:
                if have == 0:
                    if at >= words.size:
                        return OUT_OF_WORDS, task, used, kept
                    byte, have = words[at], 8
                    at += 1
                low = np.int64(byte & np.uint64(255))
                byte >>= np.uint64(8)
                have -= 1
                row = g_at[t] + g
                code = table[(row << 8) | low]
                if code != 255:
                    y = g_base[row] + np.int64(code)
                    value[program[step, 2]] = y
                    value[program[step, 3]] = x - y
                    continue
                if at >= words.size:
                    return OUT_OF_WORDS, task, used, kept
                r = (low << _BYTE) | np.int64(words[at] >> np.uint64(64 - _BYTE))
            else:
                if x < lo[t] or x >= lo[t] + size[t]:
                    return SLOW, task, used, kept
                if at >= words.size:
                    return OUT_OF_WORDS, task, used, kept
                r = np.int64(words[at] >> np.uint64(64 - WHOLE))
            at += 1
            a, b, i = left[t], right[t], start_of[t] + x - lo[t]
            j = x - lo[a] - lo[b]
            y, n, _ = scan(
                m[start_of[a] : start_of[a] + size[a]],
                m[start_of[b] : start_of[b] + size[b]],
                (max(0, j - size[b] + 1), min(size[a] - 1, j)),
                mode[i],
                (j, -1),
                whole / s[i],
                r,
            )
            if y < 0:
                return SLOW, task, used, kept
            y += lo[a]
            if n < RARE:
                if fresh >= flags.shape[0] - 1:
                    return OUT_OF_WORDS, task, used, kept
                flags[fresh, 0], flags[fresh, 1] = task, t
                flags[fresh, 2], flags[fresh, 3] = x, y
                fresh += 1
            value[program[step, 2]] = y
            value[program[step, 3]] = x - y
        if at + 2 > words.size:
            return OUT_OF_WORDS, task, used, kept
        if have < 2:
            byte, have = words[at], 8
            at += 1
        last = byte & np.uint64(0xFFFF)
        if last == np.uint64(0xFFFF):
            last = (last << np.uint64(48)) | (words[at] >> np.uint64(16))
            at += 1
            if last >= check:
                flags[fresh, 0], flags[fresh, 1] = task, -1
                flags[fresh, 2], flags[fresh, 3] = np.int64(last - check), 0
                fresh += 1
        for c in range(cells):
            out[task, c] = value[c] + base_of[c]
        used, kept = at, fresh
        task += 1
    return DONE, task, used, kept
