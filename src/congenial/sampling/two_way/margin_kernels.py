"""Compiled loops for a product of geometric-tailed weights given its sum, and for the last two
columns of a table.

A row's weight is 1 on lo .. hi and falls by the factor `ratio` per step outside, on 0 .. cap.
Messages are sums of positive terms in linear time: no subtraction, so each entry has a relative
error of at most (4 n + 64) 2^-53 per level (entries below 1e-200 are never trusted). A decision is
made only where these errors cannot matter.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

FINISHED, WORDS, CELL, TABLE = range(4)  # why a loop stopped
TRUSTED = 1e-200


@numba.njit(cache=True, error_model="numpy")
def window(f: Any, length: int, ratio: float, out: Any) -> None:
    """out[k] = sum over t < length of ratio^t f[k - t], by prefixes and suffixes of blocks."""
    n = f.size
    suffix = np.zeros(n)  # of the block before
    for start in range(0, n, length):
        stop = min(n, start + length)
        run, power = 0.0, 1.0
        for k in range(start, stop):
            run = f[k] + ratio * run
            power *= ratio
            back = k - length + 1
            out[k] = run
            if 0 <= back < start:
                out[k] += power * suffix[back]
        run, power = 0.0, 1.0
        for k in range(stop - 1, start - 1, -1):
            run += power * f[k]
            power *= ratio
            suffix[k] = run


@numba.njit(cache=True, error_model="numpy")
def add_row(f: Any, lo: int, hi: int, cap: int, ratio: float, out: Any) -> Any:
    """out[k] = sum over x of h(x) f[k - x], scaled to maximum 1; returns the scale.

    lo <= hi <= cap. If everything underflows out is 0 and the scale 1.
    """
    n = f.size
    work = np.empty(n)
    out[:] = 0.0
    if lo < n:
        window(f, hi - lo + 1, 1.0, work)
        out[lo:] += work[: n - lo]
    if cap > hi and hi + 1 < n:
        window(f, cap - hi, ratio, work)
        out[hi + 1 :] += ratio * work[: n - hi - 1]
    if lo > 0:
        window(f[::-1].copy(), lo, ratio, work)
        for k in range(lo - 1, n):
            out[k] += ratio * work[n - 1 - (k - lo + 1)]
        run, power = 0.0, 1.0
        for k in range(min(n, lo - 1)):  # x = lo - t runs out of arguments before t = lo
            run += power * f[k]
            power *= ratio
            out[k] += ratio ** (lo - k) * run
    top = out.max()
    if top == 0:
        return 1.0
    out /= top
    return top


@numba.njit(cache=True, error_model="numpy")
def messages(lo: Any, hi: Any, cap: Any, ratio: float, f: Any, scale: Any) -> None:
    """f[i, k] scale-free weight of rows i, i+1, ... with sum k; scale[i] links f[i] to f[i + 1]."""
    rows = lo.size
    f[rows, :] = 0.0
    f[rows, 0] = 1.0
    for i in range(rows - 1, -1, -1):
        scale[i] = add_row(f[i + 1], lo[i], hi[i], cap[i], ratio, f[i])


@numba.njit(cache=True, error_model="numpy")
def middle(i: int, k: int, modes: Any, tail: Any, most: int) -> Any:
    """Where the search for x_i starts: its mode and an even share of what the rows are off by."""
    return min(max(modes[i] + (k - tail[i]) // (modes.size - i), 0), most)


@numba.njit(cache=True, error_model="numpy")
def draw_rows(
    x: Any, i: int, k: int, words: Any, at: int, f: Any, scale: Any, h: Any, cap: Any, modes: Any,
    tail: Any, slack: float,
) -> Any:  # fmt: skip
    """Draw x[i:] with sum k; return (status, i, k, words used). One word for each row but the
    last; CELL: the word at - 1 leaves x_i open. h[i, y] is the weight of x_i = y.
    """
    rows = modes.size
    while i < rows - 1:
        if at >= words.size:
            return WORDS, i, k, at
        total = f[i, k] * scale[i]
        word = float(words[at])
        at += 1
        if f[i, k] < TRUSTED:
            return CELL, i, k, at
        low, high = word * 2.0**-64 * total, (word + 1) * 2.0**-64 * total
        margin = 4 * slack * total
        most = min(cap[i], k)
        centre = middle(i, k, modes, tail, most)
        chosen = -1
        done, before = 0.0, 0.0
        up, down = centre, centre - 1  # order: centre, +1, -1, +2, -2, ... inside 0 .. most
        while up <= most or down >= 0:
            if up <= most:
                before = done
                done += h[i, up] * f[i + 1, k - up]
                if done + margin >= high:
                    chosen = up
                    break
            if up > centre or up > most:
                if down >= 0:
                    before = done
                    done += h[i, down] * f[i + 1, k - down]
                    if done + margin >= high:
                        chosen = down
                        break
                down -= 1
            up += 1
        if chosen < 0 or done - margin < high or before + margin > low:
            return CELL, i, k, at
        x[i] = chosen
        k -= chosen
        i += 1
    x[rows - 1] = k
    return FINISHED, rows, 0, at


@numba.njit(cache=True, error_model="numpy")
def pair_rows(rest: Any, s1: Any, s2: Any, lo: Any, hi: Any) -> int:
    """lo, hi of the rows of the last two columns given the row sums left for them; returns
    ||rest - s1 - s2||_1.
    """
    norm = 0
    for i in range(rest.size):
        d = rest[i] - s1[i] - s2[i]
        norm += abs(d)
        lo[i] = max(0, s1[i] + min(d, 0))
        hi[i] = min(rest[i], s1[i] + max(d, 0))
    return norm


@numba.njit(cache=True, error_model="numpy")
def log_pair(rest: Any, s1: Any, s2: Any, eps: float, n: int) -> float:
    """log of the weight of all ways to fill two columns with sums n and sum(rest) - n."""
    lo, hi = np.empty_like(rest), np.empty_like(rest)
    norm = pair_rows(rest, s1, s2, lo, hi)
    ratio = math.exp(-2 * eps)
    f, g = np.zeros(n + 1), np.empty(n + 1)
    f[0] = 1.0
    total = -eps * norm
    for i in range(rest.size):
        total += math.log(add_row(f, lo[i], hi[i], rest[i], ratio, g))
        f, g = g, f
    return total + math.log(f[n]) if f[n] >= TRUSTED else -np.inf


@numba.njit(cache=True, error_model="numpy")
def _log_pair_bound(rest: Any, s1: Any, s2: Any, eps: float, wide: float) -> float:
    """At least `log_pair`: the same sum without its constraint on the column sums."""
    total = 0.0
    for i in range(rest.size):
        d = abs(rest[i] - s1[i] - s2[i])
        total += math.log(min(rest[i] + 1.0, d + wide)) - eps * d
    return total


@numba.njit(cache=True, error_model="numpy")
def judge(word: Any, log_p: float, slack: float) -> int:
    """1 if U < p is certain, 0 if U > p is, -1 if open; U starts with the word."""
    u = float(word)
    if u < 2:
        return -1
    low, high = math.log(u) - 64 * math.log(2.0), math.log(u + 1) - 64 * math.log(2.0)
    if low - slack >= log_p:
        return 0
    return 1 if high + slack <= log_p else -1


@numba.njit(cache=True, error_model="numpy")
def divide(
    m: Any, state: Any, words: Any, at: int, left: Any, s: Any, sums: Any, row: Any, row_law: Any,
    laws: Any, log_a: Any, eps: float, slack: float, judge_slack: float,
) -> Any:  # fmt: skip
    """Propose the first row and all columns but two until accepted; (status, words used).

    m[j] is column j. state = (column, row, rest of the sum, proposals); column -1 is the first row.
    CELL and TABLE: the word at - 1 leaves a cell, or the acceptance, open. left[i] is what the
    proposed columns leave of row i >= 1. row_law and laws hold (f, scale, h, cap, modes, tail) of
    the first row and of each column.
    """
    columns = m.shape[0] - 2
    wide = 1 + 2 * math.exp(-2 * eps) / (1 - math.exp(-2 * eps))
    s1, s2 = s[columns, 1:], s[columns + 1, 1:]
    f, scale, h, cap, modes, tail = laws
    rf, rscale, rh, rcap, rmodes, rtail = row_law
    while True:
        if state[0] < 0:
            status, i, k, at = draw_rows(
                row, state[1], state[2], words, at, rf, rscale, rh, rcap, rmodes, rtail, slack
            )
            state[1], state[2] = i, k
            if status != FINISHED:
                return status, at
            state[0], state[1], state[2] = 0, 1, sums[0] - row[0]
        fits = True
        while fits and state[0] < columns:
            j = state[0]
            status, i, k, at = draw_rows(
                m[j], state[1], state[2], words, at, f[j], scale[j], h[j], cap[j], modes[j],
                tail[j], slack,
            )  # fmt: skip
            state[1], state[2] = i, k
            if status != FINISHED:
                return status, at
            for i in range(1, left.size):
                left[i] -= m[j, i]
                fits = fits and left[i] >= 0
            state[0], state[1], state[2] = j + 1, 1, sums[j + 1] - row[j + 1]
        if fits:
            if at >= words.size:
                return WORDS, at
            word = words[at]
            at += 1
            one, two = sums[columns] - row[columns], sums[columns + 1] - row[columns + 1]
            base = (log_a[0, one] + log_a[1, two]) / 2
            verdict = -1
            if base > -np.inf:
                bound = _log_pair_bound(left[1:], s1, s2, eps, wide)
                verdict = judge(word, bound - base, judge_slack)
                if verdict != 0:
                    log_g = log_pair(left[1:], s1, s2, eps, one)
                    verdict = -1 if log_g == -np.inf else judge(word, log_g - base, judge_slack)
            if verdict == -1:
                return TABLE, at
            if verdict == 1:
                return FINISHED, at
        restart(m, state, left)


@numba.njit(cache=True, error_model="numpy")
def restart(m: Any, state: Any, left: Any) -> None:
    """Take back the columns proposed so far and count the proposal."""
    for j in range(state[0]):
        for i in range(1, left.size):
            left[i] += m[j, i]
    state[0], state[1], state[2] = -1, 0, left[0]
    state[3] += 1


@numba.njit(cache=True, error_model="numpy")
def add_column(f: Any, p1: Any, p2: Any, p3: Any, left: int, third: int, out: Any) -> None:
    """out[t1, t2] = sum over the ways to fill a column of n = len(p1) - 1 of its weight times f of
    what remains; t3 = left - t1 - t2 must lie in 0 .. third.
    """
    n = p1.size - 1
    out[:] = 0.0
    for t1 in range(out.shape[0]):
        for t2 in range(out.shape[1]):
            t3 = left - t1 - t2
            if t3 < 0 or t3 > third:
                continue
            total = 0.0
            for x1 in range(min(n, t1) + 1):
                inner = 0.0
                for x2 in range(max(0, n - x1 - t3), min(n - x1, t2) + 1):
                    inner += p2[x2] * p3[n - x1 - x2] * f[t1 - x1, t2 - x2]
                total += p1[x1] * inner
            out[t1, t2] = total
