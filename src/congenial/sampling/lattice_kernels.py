"""Compiled loops on lattices: Klein's proposals (`lattice_gaussian`, which has the derivation;
doubles decide what is certain, open decisions are handed back) and heat-bath sweeps
(`lattice_chain`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.data.loops import loop
from congenial.sampling.inversion import Floats, Ints

DONE, MORE, OPEN, ACCEPT, WIDE = range(5)  # why the loop stopped


@loop
def _numerator(z: Any, i: int, j: int, rows: Any, columns: Any) -> Any:
    """m = D c_ij."""
    p, dp, q, dq = rows[i, 0], rows[i, 1], columns[j, 0], columns[j, 1]
    down, right = i + 1 < z.shape[0], j + 1 < z.shape[1]
    m = np.int64(0)
    if down:
        m += p * dq * z[i + 1, j]
    if right:
        m += dp * q * z[i, j + 1]
        if down:
            m -= p * q * z[i + 1, j + 1]
    return m


@loop
def _one_minus_ratio(s2: float, c: float) -> float:
    """1 - rho(Z - c)/rho(Z), relative error below 1e-13 where s2 >= 1/4, absolute otherwise."""
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
def log_acceptance(z: Any, rows: Any, columns: Any, inverse: Any) -> float:
    """log A(u) in doubles, or -inf where a ratio (hence A) is below 2e-6 and not known well."""
    total = 0.0
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            d = rows[i, 1] * columns[j, 1]
            m = _numerator(z, i, j, rows, columns)
            less = _one_minus_ratio(0.5 / inverse[i, j], (m % d) / d)
            if less > 1 - 1e-6:
                return -np.inf
            total += math.log1p(-less)
    return total


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
    z: Any, task: int, pos: int, blocks: Any, words: Any, at: int, rows: Any, columns: Any,
    inverse: Any, inverse0: float, shift: int, sure: Any, slack: float, largest: int,
) -> Any:  # fmt: skip
    """Draw z[task:] from coordinate pos - 1 down; return (status, task, pos, proposals used).

    pos = 0: the table waits for its acceptance. Status OPEN and ACCEPT ask for ball arithmetic
    on the proposal or the table that used entry at - 1, MORE for more blocks and words.
    """
    columns_n = z.shape[2]
    cells = z.shape[1] * columns_n
    place_mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    unit = 2.0 ** (shift - 63)
    while task < z.shape[0]:
        table = z[task]
        while pos > 0:
            if at >= words.size:
                return MORE, task, pos, at
            i, j = (pos - 1) // columns_n, (pos - 1) % columns_n
            d = rows[i, 1] * columns[j, 1]
            m = _numerator(table, i, j, rows, columns)
            up = -((-m) // d)
            word, k = words[at], blocks[at]
            at += 1
            o = (k << shift) + np.int64((word >> np.uint64(1)) & place_mask)
            x = up + o if word & np.uint64(1) == 0 else up - 1 - o
            if abs(x) > largest:
                return WIDE, task, pos, at
            t = float(d * x - m) / float(d)
            start = float(k << shift)
            e1 = t * t * inverse[i, j]
            p = math.exp(start * start * inverse0 - e1)
            rest = float(word >> np.uint64(1 + shift))
            decided = _decide(rest * unit, (rest + 1) * unit, p, slack * (2 + e1))
            if decided < 0:
                return OPEN, task, pos, at
            if decided == 1:
                table[i, j] = x
                pos -= 1
        if at >= words.size:
            return MORE, task, pos, at
        word = words[at]
        at += 1
        accepted = 1
        if word >= sure:
            p = math.exp(log_acceptance(table, rows, columns, inverse))
            low, high = float(word) * 2.0**-64, (float(word) + 1) * 2.0**-64
            if p == 0.0:
                accepted = 0 if low > 1e-5 else -1
            else:
                accepted = _decide(low, high, p, 2 * slack * cells)
            if accepted < 0:
                return ACCEPT, task, pos, at
        task += accepted
        pos = cells
    return DONE, task, pos, at


@loop
def run_chain(u: Ints, moves: Ints, rate: float, l1: bool, uniform: Floats) -> None:
    """Sweeps over all moves: the step along a move is redrawn given everything else."""
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
