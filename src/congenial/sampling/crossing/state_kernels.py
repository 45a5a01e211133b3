"""Compiled loops of `elimination`: messages over partial sums of atom totals, and draws back."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from congenial.sampling.tree.split_constants import DONE, OUT_OF_WORDS, RARE, WHOLE
from congenial.sampling.tree.split_kernels import scan

# One step per atom, in order. Integer tables, one row per step: state coordinates before (c) and
# after (c') the atom joins, c = (grid c')/scale - turn x total, the total itself given by
# (fixed c')/scale where `is_fixed`.


@numba.njit(cache=True, error_model="numpy")
def options(step: Any, state: Any) -> Any:
    """(first, last, base, slope): totals (as indices into the atom's window) that a state allows,
    and where the message before is read: base + slope x index. first > last: none.
    """
    dims, lo_before, size_before, grid, scale, turn, fixed, is_fixed, window_lo, window = step
    first, last = 0, window - 1
    if is_fixed:
        total = 0
        for k in range(dims[1]):
            total += fixed[k] * state[k]
        if total % scale != 0:
            return 0, -1, 0, 0
        first = last = total // scale - window_lo
        if first < 0 or first >= window:
            return 0, -1, 0, 0
    base, slope, stride = 0, 0, 1
    for k in range(dims[0]):
        at = 0
        for j in range(dims[1]):
            at += grid[k, j] * state[j]
        if at % scale != 0:
            return 0, -1, 0, 0
        at = at // scale - turn[k] * window_lo - lo_before[k]
        t = turn[k]
        if t == 0:
            if at < 0 or at >= size_before[k]:
                return 0, -1, 0, 0
        elif t > 0:  # 0 <= at - t i < size
            first = max(first, -((size_before[k] - 1 - at) // t))
            last = min(last, at // t)
        else:
            first = max(first, -(at // -t))
            last = min(last, (size_before[k] - 1 - at) // -t)
        base += at * stride
        slope -= t * stride
        stride *= size_before[k]
    return first, last, base, slope


@numba.njit(cache=True, error_model="numpy")
def eliminate(step: Any, lo: Any, size: Any, before: Any, weights: Any, s: Any, mode: Any) -> None:
    """s[c'] = sum over totals of weights x before; mode = where a term is largest."""
    dims = step[0]
    state = np.zeros(3, np.int64)
    for flat in range(s.size):
        rest = flat
        for k in range(dims[1]):
            state[k] = lo[k] + rest % size[k]
            rest //= size[k]
        first, last, base, slope = options(step, state)
        total, best, where = 0.0, -1.0, max(first, 0)
        for i in range(first, last + 1):
            term = weights[i] * before[base + slope * i]
            total += term
            if term > best:
                best, where = term, i
        s[flat] = total
        mode[flat] = where


@numba.njit(cache=True, error_model="numpy")
def draw_states(
    steps: Any, boxes: Any, tables: Any, numbers: Any, out: Any, columns: Any,
    words: Any, task: int, flags: Any,
) -> Any:  # fmt: skip
    """Fill out[draw, columns] with atom totals, last atom first; one more word per draw is kept in
    out[draw, last column] for the decisions that take all of a draw.

    `guide` decides most of the first choice by its leading byte (as in `guide_row`). Returns
    (status, first draw not done, words used by done draws, flags used); flag = (draw, step,
    state flat, index of the total).
    """
    ints, grids = steps  # ints: dims 2, scale, is_fixed, window_lo, window, start of its tables
    lo_of, size_of, turns, fixeds = boxes
    weights_of, s_of, m_of, mode_of, guide = tables
    whole = numbers
    n_steps = ints.shape[0]
    state, after = np.zeros(3, np.int64), np.zeros(3, np.int64)
    used, kept = 0, 0
    while task < out.shape[0]:
        at, fresh = used, kept
        state[:] = 0
        for j in range(n_steps - 1, -1, -1):
            scale = ints[j, 2]
            if ints[j, 3] == 1:  # the state determines the total
                total = np.int64(0)
                for k in range(ints[j, 1]):
                    total += fixeds[j, k] * state[k]
                total = total if scale == 1 else total // scale
            else:
                if at >= words.size:
                    return OUT_OF_WORDS, task, used, kept
                r = np.int64(words[at] >> np.uint64(64 - WHOLE))
                at += 1
                code = guide[r >> (WHOLE - 8)] if j == n_steps - 1 else 255
                if code != 255:
                    i = mode_of[ints[j, 8]] + np.int64(code) - 127
                else:
                    flat, stride = 0, 1
                    for k in range(ints[j, 1]):
                        flat += (state[k] - lo_of[j + 1, k]) * stride
                        stride *= size_of[j + 1, k]
                    step = (
                        ints[j, :2], lo_of[j], size_of[j], grids[j], scale, turns[j], fixeds[j],
                        False, ints[j, 4], ints[j, 5],
                    )  # fmt: skip
                    first, last, base, slope = options(step, state)
                    p = weights_of[ints[j, 6] : ints[j, 6] + ints[j, 5]]
                    q = m_of[ints[j, 7] : ints[j, 8]]
                    here = ints[j, 8] + flat
                    i, n, _ = scan(
                        p, q, (first, last), mode_of[here], (base, slope), whole / s_of[here], r
                    )
                    if i >= 0 and q[base + slope * i] == 0.0:
                        i = -1  # no totals lead here: the weight 1 is rounding only
                    if i < 0 or n < RARE:
                        if fresh >= flags.shape[0] - 1:
                            return OUT_OF_WORDS, task, used, kept
                        flags[fresh, 0], flags[fresh, 1] = task, j
                        flags[fresh, 2], flags[fresh, 3] = flat, i
                        fresh += 1
                        if i < 0:
                            break
                total = ints[j, 4] + i
            out[task, columns[j]] = total
            for k in range(ints[j, 0]):
                c = np.int64(0)
                for d in range(ints[j, 1]):
                    c += grids[j, k, d] * state[d]
                after[k] = (c if scale == 1 else c // scale) - turns[j, k] * total
            state[:] = after
        if at >= words.size:
            return OUT_OF_WORDS, task, used, kept
        out[task, columns[n_steps]] = np.int64(words[at] >> np.uint64(1))
        at += 1
        used, kept = at, fresh
        task += 1
    return DONE, task, used, kept
