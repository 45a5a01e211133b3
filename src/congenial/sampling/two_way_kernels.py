"""Compiled loops for two-way tables: judging proposals of `two_way_noise` and drawing its last two
columns; the gauge of `knorm_noise`.

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
