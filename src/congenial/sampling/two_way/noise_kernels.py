"""Compiled loops of `two_way`: judging proposals and drawing the last two columns."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.sampling.two_way.margin_kernels import judge, window


@numba.njit(cache=True, error_model="numpy")
def _end(k: int, size: int, b: float) -> float:
    """D of `two_way` at the k-th place of an interval of size + 1: ends 1 - b, inside (1 - b)^2."""
    if size == 0:
        return 1 - b * b
    return 1 - b if k in (0, size) else (1 - b) ** 2


@numba.njit(cache=True, error_model="numpy")
def _spread_ends(f: Any, size: int, b: float, work: Any) -> None:
    """f[k] becomes the sum over t of D(t) f[k - t]; D: (1 - b)^2, b (1 - b) more at ends."""
    if size == 0:
        f *= 1 - b * b
        return
    window(f, size + 1, 1.0, work)
    extra = b * (1 - b)
    for k in range(f.size - 1, -1, -1):
        ends = f[k] + (f[k - size] if k >= size else 0.0)
        f[k] = (1 - b) ** 2 * work[k] + extra * ends


@numba.njit(cache=True, error_model="numpy")
def log_two_columns(delta: Any, eps: float, profile: Any) -> float:
    """log f_2(delta)/f_2(0) without sign constraint; profile[n] = N_r(n)/N_r(0); see `two_way`."""
    b = math.exp(-2 * eps)
    norm, shift = 0, 0
    for v in delta:
        norm += abs(v)
        shift += min(v, 0)
    f, work = np.zeros(norm + 1), np.empty(norm + 1)
    f[0] = 1.0
    total = -eps * norm
    for v in delta:
        _spread_ends(f, abs(v), b, work)
        top = f.max()
        total += math.log(top) - math.log(1 - b * b)
        f /= top
    dot = 0.0
    for k in range(norm + 1):
        dot += f[k] * profile[abs(k + shift)]
    return total + math.log(dot)


@numba.njit(cache=True, error_model="numpy")
def screen(
    delta: Any, words: Any, eps: float, profile: Any, log_bounds: Any, slack: float, verdicts: Any
) -> None:
    """For each proposal: accepted (1), refused (0) or open (-1). log_bounds[d] bounds the factor
    of a row that is off by d, the last entry any larger one; their product bounds f_2/f_2(0).
    """
    for t in range(words.size):
        bound, ups = 0.0, 0
        for v in delta[t]:
            bound += log_bounds[min(abs(v), log_bounds.size - 1)]
            ups += max(v, 0)
        verdicts[t] = judge(words[t], bound, slack)
        if verdicts[t] != 0 and ups < profile.size:
            verdicts[t] = judge(words[t], log_two_columns(delta[t], eps, profile), slack)
        elif verdicts[t] != 0:
            verdicts[t] = -1


@numba.njit(cache=True, error_model="numpy")
def split_rows(delta: Any, words: Any, eps: float, profile: Any, slack: float, w: Any) -> bool:
    """w of the last two columns for one delta, a word per row; False if a row is open."""
    rows, b = delta.size, math.exp(-2 * eps)
    ups, downs = 0, 0
    for v in delta:
        ups += max(v, 0)
        downs += max(-v, 0)
    if max(ups, downs) >= profile.size:
        return False
    n = ups + downs + 1
    f, work = np.zeros((rows + 1, n)), np.empty(n)
    for t in range(n):
        f[rows, t] = profile[abs(t - downs)]
    for i in range(rows - 1, -1, -1):
        size = abs(delta[i])
        moved = f[i + 1].copy()
        _spread_ends(moved, size, b, work)
        f[i, : n - size] = moved[size:]  # sum over t of D(t) f[i + 1, . + t]; D is symmetric
        f[i] /= f[i].max()
    at = 0
    for i in range(rows):
        size = abs(delta[i])
        total = 0.0
        for k in range(size + 1):
            total += _end(k, size, b) * f[i + 1, at + k]
        word = float(words[i])
        low, high = word * 2.0**-64 * total, (word + 1) * 2.0**-64 * total
        margin = 4 * slack * total
        done, before, k = 0.0, 0.0, 0
        while True:
            before = done
            done += _end(k, size, b) * f[i + 1, at + k]
            if done + margin >= high or k == size:
                break
            k += 1
        if (k < size and done - margin < high) or (k > 0 and before + margin > low):
            return False
        w[i] = k + min(delta[i], 0)
        at += k
    return True


@numba.njit(cache=True, error_model="numpy")
def _composition(words: Any, at: int, total: int, bars: Any, out: Any, sign: int) -> int:
    """Add sign x (a uniform weak composition of total) to out; return the next word, or -1.

    Floyd's method for the bars; a uniform below n is the low bits of a word, drawn again if >= n.
    """
    places = total + out.size - 1
    for c in range(out.size - 1):
        j = places - out.size + 1 + c
        mask = np.uint64(1)
        while mask < np.uint64(j + 1):
            mask <<= np.uint64(1)
        mask -= np.uint64(1)
        pick = np.int64(j + 1)
        while pick > j:
            if at >= words.size:
                return -1
            pick = np.int64(words[at] & mask)
            at += 1
        for k in range(c):
            if bars[k] == pick:
                pick = j
                break
        at_bar = c  # keep the bars sorted
        while at_bar > 0 and bars[at_bar - 1] > pick:
            bars[at_bar] = bars[at_bar - 1]
            at_bar -= 1
        bars[at_bar] = pick
    last = -1
    for c in range(out.size - 1):
        out[c] += sign * (bars[c] - last - 1)
        last = bars[c]
    out[out.size - 1] += sign * (places - last - 1)
    return at


@numba.njit(cache=True, error_model="numpy")
def spread(q: Any, total: Any, task: int, words: Any, out: Any) -> Any:
    """Add to out[t] the difference of uniform compositions with sums q + |total| and q, negated
    for total < 0; return (first task not done, words used).
    """
    used = 0
    bars = np.empty(out.shape[1], np.int64)
    e = np.empty(out.shape[1], np.int64)
    while task < q.size:
        sign = 1 if total[task] >= 0 else -1
        e[:] = 0
        at = _composition(words, used, q[task] + abs(total[task]), bars, e, sign)
        if at >= 0:
            at = _composition(words, at, q[task], bars, e, -sign)
        if at < 0:
            return task, used
        used = at
        out[task] += e
        task += 1
    return task, used
