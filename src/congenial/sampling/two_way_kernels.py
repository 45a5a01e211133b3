"""Compiled loops for two-way tables: judging proposals of `two_way_noise` and drawing its last two
columns; the gauge of `knorm_noise`.

**Two columns** (derived in `two_way_noise`). f_2(delta) is a sum over w of products of D and N_r,
all positive, so sums in doubles keep their relative error. D is (1 - b)^2 on a whole window and
b (1 - b) more at its two ends, since (1 - b)^2 + b (1 - b) = 1 - b; hence convolving with it is one
window sum and two shifts (`_spread_ends`), O(norm) for each row whatever the width. To draw w
(`split_rows`), f[i, s] is the weight of rows i, i + 1, .. where the rows before take s places; row
i then takes place k with probability D(k) f[i + 1, s + k] / f[i, s].

**Gauge.** `knorm_noise` has the linear programme, solved by a simplex method with columns
made on demand. Coordinates are the cells outside the last row and column,
which fix a table with zero margins. A dual point is a table Y (zero there); with
d(i, k) = max over j of Y_ij - Y_kj the swaps ask d(i, k) + d(k, i) <= 1 and the hexagons
d(i, k) + d(k, m) + d(m, i) <= 1, so the most violated generator is found in O(r^2 c + r^3).
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.sampling.word_kernels import draw_bars


@numba.njit(cache=True, error_model="numpy")
def window(f: Any, length: int, ratio: float, out: Any) -> None:
    """out[k] = sum over t < length of ratio^t f[k - t], by prefixes and suffixes of blocks."""
    # A window of `length` places meets two blocks at most. Of its own block it holds the prefix
    # run = sum_{s = start}^{k} ratio^(k - s) f[s], of the block before the suffix from `back` on,
    # suffix[back] = sum_{s = back}^{start - 1} ratio^(start - 1 - s) f[s], times
    # ratio^(k - start + 1). Nothing is subtracted, so no digits cancel.
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
def _end(k: int, size: int, b: float) -> float:
    """D of `two_way_noise` at the k-th of size + 1 places: ends 1 - b, inside (1 - b)^2."""
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
    # from the top down, so that f[k - size] is still the old value
    extra = b * (1 - b)
    for k in range(f.size - 1, -1, -1):
        ends = f[k] + (f[k - size] if k >= size else 0.0)
        f[k] = (1 - b) ** 2 * work[k] + extra * ends


@numba.njit(cache=True, error_model="numpy")
def log_two_columns(delta: Any, eps: float, profile: Any) -> float:
    """log f_2(delta)/f_2(0) of `two_way_noise`; profile[n] = N_r(n)/N_r(0)."""
    b = math.exp(-2 * eps)
    norm, shift = 0, 0
    for v in delta:
        norm += abs(v)
        shift += min(v, 0)
    f, work = np.zeros(norm + 1), np.empty(norm + 1)
    f[0] = 1.0
    # f_2(0) = (1 - b^2)^r N_r(0): each row is divided by 1 - b^2, the profile by N_r(0)
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
def spread(q: Any, total: Any, task: int, words: Any, out: Any) -> Any:
    """Add to out[t] the difference of uniform compositions with sums q + |total| and q, negated
    for total < 0; return (first task not done, words used). As in `fill_groups`, part by part that
    is the difference of the bars, differenced.
    """
    used: Any = 0
    k = out.shape[1]
    bars, bars_ = np.empty(k, np.int64), np.empty(k, np.int64)
    picks, marks = np.empty(k, np.uint64), np.zeros(64 * k + 1, np.uint8)
    while task < q.size:
        size = abs(total[task])
        at: Any = draw_bars(words, used, q[task] + size, k, bars, picks, marks)
        if at >= 0:
            at = draw_bars(words, at, q[task], k, bars_, picks, marks)
        if at < 0:
            return task, used
        used = at
        sign = 1 if total[task] >= 0 else -1
        last = 0
        for c in range(k - 1):
            lead = bars[c] - bars_[c]
            out[task, c] += sign * (lead - last)
            last = lead
        out[task, k - 1] += sign * (size - last)
        task += 1
    return task, used


ROUNDING = 2.0**-33  # granted to sums in doubles, per unit: (cells)^2 2^-53 up to 1000 cells
_OFF = 1e-8  # violations and pivots below this count as none; certificates do not rely on it
THREE_SWAPS, THREE_HEXAGONS, SWAPS, HEXAGONS = 0, 1, 2, 3


@numba.njit(cache=True, error_model="numpy")
def three_rows(w: Any, hexagons: bool) -> float:
    """Gauge of a 3 x c table with zero margins by the closed forms; exact for integers."""
    if hexagons:
        largest = 0.0
        for i in range(3):
            norm = 0.0
            for j in range(w.shape[1]):
                norm += abs(w[i, j])
            largest = max(largest, norm)
        return largest / 2
    first_sum, second_sum = 0.0, 0.0
    for j in range(w.shape[1]):
        first_sum += max(0.0, w[0, j], -w[1, j])
        second_sum += max(0.0, w[1, j], -w[0, j])
    return max(first_sum, second_sum)


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
    # min sum x with B x = b, x >= 0, columns of B among the generators; y are the prices of B. A
    # generator with <Y, g> > 1 improves it. For every Y, Y / top is feasible in the dual, so that
    # <Y, b> / top <= gauge; and x cut at zero with its rest by corner swaps is feasible too.
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
        accepted = judge(words[t], -eps * (high - bound), blur)
        refused = judge(words[t], -eps * (low - bound), blur)
        verdicts[t] = 1 if accepted == 1 else (0 if refused == 0 else -1)
