"""Compiled loops of `counts_given_total`: weights of a cell by their ratios, and proposals given a
total.

A cell with shape a, centre m and rate r has w(c) = Gamma(c + a) / c! exp(-r |c - m|) (or the square
of c - m), times the mass below c where it has one. So

    w(c + 1) / w(c) = (c + a)/(c + 1) exp(-r (|c + 1 - m| - |c - m|)) (mass(c + 1) / mass(c)),

where the difference is 1 from the centre on and -1 before it, or 2 (c - m) + 1 for squares. Ratios
need no gamma functions, and tables are walked from the peak outwards until what is left is
negligible: for a >= 1 all factors fall in c, so that weights that begin to fall go on falling.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

REJECTED, ACCEPTED, UNSURE = 0, 1, 2
_LIKELY = np.uint64(1 << 32)  # `counts_given_total.LIKELY`: from here on the ratio is taken for 1


class Cell(NamedTuple):
    """A `CountCell` in doubles, tilted: weights w(c) e^(theta c)."""

    shape: float
    centre: int
    rate: float
    squared: bool
    below: int  # -1 for none
    sums: Any  # mass below each c where no closed form has it (squares), else empty
    theta: float


@numba.njit(cache=True)
def mass_below(c: int, cell: Cell) -> float:
    """sum_{d = 0}^{c} exp(-rate |d - below|); from `sums` where it is not empty; 1 without one."""
    below, rate = cell.below, cell.rate
    if below < 0:
        return 1.0
    if cell.sums.size:
        return float(cell.sums[c])
    # two geometric sums, up to `below` and from it on; 1 - e^-x by expm1, for rates near 0
    low = min(c, below)
    unit = -np.expm1(-rate)
    g = np.exp(-rate * (below - low)) * -np.expm1(-rate * (low + 1.0)) / unit
    if c > below:
        g += np.exp(-rate) * -np.expm1(-rate * (c - below)) / unit
    return float(g)


@numba.njit(cache=True)
def log_ratio_up(c: int, cell: Cell, least: float = 0.0) -> float:
    """log w(c + 1) e^theta / w(c), for a shape of at least `least`; e^it may be no double."""
    above = c - cell.centre
    fall = 2.0 * above + 1.0 if cell.squared else (1.0 if above >= 0 else -1.0)
    r = np.log((c + max(cell.shape, least)) / (c + 1.0)) + cell.theta - cell.rate * fall
    if cell.below >= 0:
        r += np.log(mass_below(c + 1, cell) / mass_below(c, cell))
    return float(r)


@numba.njit(cache=True)
def falls_from(c: int, cell: Cell) -> bool:
    """Whether the weights are sure to fall from c on upwards.

    Every factor of the ratio falls in c, but (c + a)/(c + 1) for a < 1, which is at most 1.
    """
    return c >= cell.centre and log_ratio_up(c, cell, 1.0) <= -1e-9


@numba.njit(cache=True)
def peak(most: int, cell: Cell) -> int:
    """A point of largest weight on 0 .. most, up to rounding."""
    if cell.shape >= 1.0:  # the ratios fall
        low, high = 0, most
        while low < high:
            c = (low + high) // 2
            if log_ratio_up(c, cell) > 0.0:
                low = c + 1
            else:
                high = c
        return low
    best, at, logs, c = 0.0, 0, 0.0, 0
    while c < most and not falls_from(c, cell):
        logs += log_ratio_up(c, cell)
        c += 1
        if logs > best:
            best, at = logs, c
    return at


@numba.njit(cache=True)
def walk(start: int, end: int, cell: Cell, cut: float) -> Any:
    """Weights relative to the start, from it towards `end`, as far as they are above `cut`.

    Stops only where the weights fall from there on.
    """
    shape, centre, rate, theta = cell.shape, cell.centre, cell.rate, cell.theta
    step = 1 if end >= start else -1
    g0 = mass_below(start, cell)
    up, down = np.exp(theta - rate), np.exp(theta + rate)
    out = np.empty(1024)
    out[0] = 1.0
    n, c, w, v = 1, start, 1.0, 1.0
    while c != end:
        low = c if step > 0 else c - 1
        r = (low + shape) / (low + 1.0)
        if cell.squared:
            r *= np.exp(theta - rate * (2.0 * (low - centre) + 1.0))
        else:
            r *= up if low >= centre else down
        v = v * r if step > 0 else v / r
        c += step
        before = w
        w = v if cell.below < 0 else v * (mass_below(c, cell) / g0)
        if n == out.size:
            longer = np.empty(2 * n)
            longer[:n] = out
            out = longer
        out[n] = w
        n += 1
        if w < cut:
            if step < 0 and shape >= 1.0 and w < before:
                break
            if step > 0 and falls_from(c, cell):
                break
    return out[:n]


@numba.njit(cache=True)
def moments(weights: Any, low: int) -> tuple[float, float]:
    """Mean and variance of a table."""
    mass, first, second = 0.0, 0.0, 0.0
    for k in range(weights.size):
        mass += weights[k]
        first += weights[k] * k
    mean = first / mass
    for k in range(weights.size):
        second += weights[k] * (k - mean) ** 2
    return low + mean, max(second / mass, 1e-12)


@numba.njit(cache=True)
def propose(
    words: Any,
    cumulative: Any,
    guide: Any,
    ratios: Any,
    offsets: Any,
    lows: Any,
    total: int,
    last: int,
    last_weights: Any,
    last_low: int,
    bits: int,
    band: float,
    out: Any,
    status: Any,
) -> None:
    """One proposal per row of words: every cell but `last` from its table, `last` what is left.

    The last word of a row decides. status: REJECTED, ACCEPTED, or UNSURE, when exact arithmetic
    must say (a value outside a table, or a word too near the probability).
    """  # fmt: skip
    # A cell's value is that whose integer weights, summed, pass the word: its first `bits` bits say
    # between which two entries (`guide`), bisection finds it. `ratios` make up for what a bin was
    # rounded to. Doubles say ACCEPTED or REJECTED only outside a band around the probability.
    cells = lows.size
    shift = np.uint64(62 - bits)
    size = last_weights.size
    for t in range(status.size):
        left, p, sure = total, 1.0, True
        for j in range(cells):
            if j == last:
                continue
            u = words[t, j] >> np.uint64(2)
            first = offsets[j]
            top = int(u >> shift)
            a, b = guide[j, top], guide[j, top + 1] + 1
            while b - a > 1:  # cumulative[first + a] <= u < cumulative[first + b]
                middle = (a + b) >> 1
                if cumulative[first + middle] <= u:
                    a = middle
                else:
                    b = middle
            if a == 0 or a == offsets[j + 1] - first - 2:
                sure = False  # the bins of the tails
                break
            k = a - 1
            out[t, j] = lows[j] + k
            left -= out[t, j]
            if left < 0:
                break
            n = cumulative[first + a + 1] - cumulative[first + a]
            if n < _LIKELY:
                p *= ratios[first + a]
        if not sure:
            status[t] = UNSURE
            continue
        if left < 0:
            status[t] = REJECTED
            continue
        out[t, last] = left
        u1 = float(words[t, last]) * 2.0**-64
        at = left - last_low
        if at < 0:
            p *= last_weights[0]
        elif at >= size:
            p *= last_weights[size - 1]
        else:
            p *= last_weights[at]
        inside = 0 <= at < size
        if inside and p * (1.0 - band) > u1 * (1.0 + 2.0**-50) + 2.0**-58:
            status[t] = ACCEPTED
        elif p * (1.0 + band) + 2.0**-58 < u1 * (1.0 - 2.0**-50):
            status[t] = REJECTED
        else:
            status[t] = UNSURE
