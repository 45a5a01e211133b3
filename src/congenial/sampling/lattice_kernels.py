"""Compiled loops on lattices: Klein's proposals (`lattice_gaussian`, which has the derivation;
doubles decide what is certain, open decisions are handed back) and heat-bath sweeps
(`lattice_chain`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.loops import loop

DONE, MORE, OPEN, ACCEPT, WIDE = range(5)  # why the loop stopped


@loop
def _centre(z: Any, i: int, arrays: Any) -> Any:
    """(c_i, a bound on its error) in doubles."""
    start, other, weight, divisor, rounding = arrays[0], arrays[1], arrays[2], arrays[3], arrays[4]
    total, size = 0.0, 0.0
    for k in range(start[i], start[i + 1]):
        term = weight[k] * float(z[other[k]])
        total += term
        size += abs(term)
    return total, divisor[i], rounding[i] * size


@loop
def _one_minus_ratio(s2: float, c: float) -> float:
    """1 - rho(Z - c)/rho(Z), relative error below 1e-13 where s2 >= 1/4, absolute otherwise."""
    # Poisson summation: rho(Z - c) ~ 1 + sum_k w_k cos(2 pi k c), w_k = 2 exp(-2 pi^2 s2 k^2), and
    # 1 - cos(2 pi k c) = 2 sin(pi k c)^2, so nothing is subtracted. The sixth is below 1e-76.
    top, bottom = 0.0, 1.0
    if s2 >= 0.25:
        for k in range(1, 6):
            w = 2 * math.exp(-2 * math.pi**2 * s2 * k * k)
            top += 2 * w * math.sin(math.pi * k * c) ** 2
            bottom += w
        return top / bottom
    reach = 2 + int(math.sqrt(90 * s2))
    for x in range(-reach, reach + 2):
        top += math.exp(-((x - c) ** 2) / (2 * s2))
        if x > 0:
            bottom += 2 * math.exp(-(x**2) / (2 * s2))
    return 1 - top / bottom


@loop
def log_acceptance(z: Any, arrays: Any) -> Any:
    """log A(u) in doubles and a bound on its error from that of the centres. -inf and a bound on A
    where a ratio (hence A) is near 0 and not known well.
    """
    total, open_ = 0.0, 0.0
    for i in range(z.size):
        m, d, err = _centre(z, i, arrays)
        c = m / d
        s2 = 0.5 / arrays[5][i]
        less = _one_minus_ratio(s2, c - math.floor(c))
        # the ratio's slope: at most 4 pi (q + 2 q^4 + ..), q = exp(-2 pi^2 s^2); at most 2/s
        slope = 13 * math.exp(-2 * math.pi**2 * s2) if s2 >= 0.25 else 2 / math.sqrt(s2)
        if less > 1 - 1e-6:
            return -np.inf, 2e-6 + err * slope
        total += math.log1p(-less)
        open_ += err * slope / (1 - less)
    return total, open_


@loop
def _decide(low: float, high: float, p: float, slack: float) -> int:
    """1 if U < p is certain, 0 if U > p is, -1 if open; U lies in [low, high]."""
    if p < 1e-290:  # too small for a relative error, far below the least positive U
        return 0 if low > 0 else -1
    if high <= p * (1 - slack):
        return 1
    if low >= p * (1 + slack) and slack < 1:
        return 0
    return -1


@loop
def klein(
    z: Any, task: int, pos: int, blocks: Any, words: Any, at: int, arrays: Any, inverse0: float,
    sure: Any, slack: float, largest: int,
) -> Any:  # fmt: skip
    """Draw z[task:] from coordinate pos - 1 down; return (status, task, pos, proposals used).

    pos = 0: the draw waits for its acceptance. Status OPEN and ACCEPT ask for exact arithmetic
    on the proposal (left in z) or the draw that used entry at - 1, MORE for more blocks and words.
    """
    # Coordinate i has law ~ exp(-(x - c)^2 inverse_i) around c = m/d. Proposals lie in blocks of
    # 2^shift places on either side; block k comes with weight exp(-k^2 inverse0) from outside, a
    # place in it and the side from the word, so exp(k^2 inverse0 - (x - c)^2 inverse_i) is left to
    # accept with; the other bits of the word decide that, where doubles can.
    inverse, shifts, free = arrays[5], arrays[6], z.shape[1]
    while task < z.shape[0]:
        here = z[task]
        while pos > 0:
            if at >= words.size:
                return MORE, task, pos, at
            i = pos - 1
            m, d, err = _centre(here, i, arrays)
            up = np.int64(math.ceil(m / d))
            shift = shifts[i]
            word, k = words[at], blocks[at]
            at += 1
            mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
            o = (k << shift) + np.int64((word >> np.uint64(1)) & mask)
            x = up + o if word & np.uint64(1) == 0 else up - 1 - o
            if abs(x) > largest:
                return WIDE, task, pos, at
            here[i] = x
            t = (d * float(x) - m) / d
            e1 = t * t * inverse[i]
            p = math.exp(float(k) * float(k) * inverse0 - e1)
            unit = 2.0 ** (shift - 63)
            rest = float(word >> np.uint64(1 + shift))
            close = slack * (2 + e1) + 2 * (2 * abs(t) + err) * err * inverse[i]
            decided = _decide(rest * unit, (rest + 1) * unit, p, close)
            if decided < 0:
                return OPEN, task, pos, at
            pos -= decided
        if at >= words.size:
            return MORE, task, pos, at
        word = words[at]
        at += 1
        accepted = 1
        if word >= sure:
            log_p, err = log_acceptance(here, arrays)
            p = math.exp(log_p)
            low, high = float(word) * 2.0**-64, (float(word) + 1) * 2.0**-64
            if log_p == -np.inf:
                accepted = 0 if low > err else -1
            else:
                accepted = _decide(low, high, p, 2 * (slack * free + err))
            if accepted < 0:
                return ACCEPT, task, pos, at
        task += accepted
        pos = free
    return DONE, task, pos, at


@loop
def run_chain(u: Ints, moves: Ints, rate: float, l1: bool, uniform: Floats) -> None:
    """Sweeps over all moves: the step along a move is redrawn given everything else."""
    # Steps whose weight is below e^-40 of the largest are left out, which is one of the reasons why
    # a chain has no certificate.
    count, cells = moves.shape
    for d in range(u.shape[0]):
        for at in range(uniform.shape[1]):
            move = moves[at % count]
            size = 0.0
            peak = 0
            for i in range(cells):
                size += abs(move[i]) if l1 else move[i] * move[i]
                if move[i] != 0:
                    peak = max(peak, abs(u[d, i]))
            reach = peak + int(40.0 / (rate * size) if l1 else np.sqrt(40.0 / (rate * size))) + 2
            top, best = -np.inf, 0
            logs = np.empty(2 * reach + 1)
            for t in range(-reach, reach + 1):
                weight = 0.0
                for i in range(cells):
                    if move[i] != 0:
                        value = u[d, i] + t * move[i]
                        weight += abs(value) if l1 else float(value) * value
                logs[t + reach] = -rate * weight
                top = max(top, -rate * weight)
            total = 0.0
            for k in range(2 * reach + 1):
                logs[k] = np.exp(logs[k] - top)
                total += logs[k]
            left = uniform[d, at] * total
            for k in range(2 * reach + 1):
                left -= logs[k]
                best = k - reach
                if left <= 0:
                    break
            for i in range(cells):
                u[d, i] += best * move[i]
