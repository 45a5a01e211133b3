"""Compiled loops over latent tables: exact redraws along lines (see `conforming` and `_kernels`).

A line lets up to two cells go up and up to two go down by the same number t. `law` is the tuple
(y, cells, kind, s, rows, which, part, totals, above, rates, gaps): released values, weights of the
cells, noise; where the totals of the parts of a table are free (totals not empty), the factor
total! of each; where sums have noise of their own (see `levels`), the nodes above each cell, their
eps, and the noise there now. Lines with two ends a side and such sums do not occur together.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.inference.samplers.count_kernels import FAR, TABLE, _log_weight, _step


@numba.njit(cache=True, error_model="numpy")
def _up(t: Any, x: Any, line: Any, law: Any) -> Any:
    """Weight of the table moved t + 1 along the line over that moved t."""
    y, cells, kind, s, rows, which, part, totals, above, rates, gaps = law
    r = 1.0
    for k in range(4):
        j = line[k]
        if j < 0:
            continue
        if k < 2:
            r *= _step(x[j] + t, y[j], cells[j], kind, s[j], rows[which[j]])
        else:
            r /= _step(x[j] - t - 1, y[j], cells[j], kind, s[j], rows[which[j]])
    if totals.size:
        plus, minus = part[line[0]], part[line[2]] if line[2] >= 0 else -1
        if plus != minus:
            r *= totals[plus] + t + 1
            if minus >= 0:
                r /= totals[minus] - t
    for k in range(above.shape[1]):
        plus, minus = above[line[0], k], above[line[2], k] if line[2] >= 0 else -1
        if plus != minus:
            r *= math.exp(rates[plus] if gaps[plus] - t >= 1 else -rates[plus])
            if minus >= 0:
                r *= math.exp(rates[minus] if gaps[minus] + t < 0 else -rates[minus])
    return r


@numba.njit(cache=True, error_model="numpy")
def _log_line(t: Any, x: Any, line: Any, law: Any) -> Any:
    """Log weight of the table moved t along the line, cells of the line only."""
    y, cells, kind, s, rows, which, part, totals, above, rates, gaps = law
    w = 0.0
    for k in range(4):
        j = line[k]
        if j >= 0:
            at = x[j] + t if k < 2 else x[j] - t
            w += _log_weight(at, y[j], cells[j], kind, s[j], rows[which[j]])
    if totals.size:
        plus, minus = part[line[0]], part[line[2]] if line[2] >= 0 else -1
        if plus != minus:
            w += math.lgamma(totals[plus] + t + 1.0)
            if minus >= 0:
                w += math.lgamma(totals[minus] - t + 1.0)
    for k in range(above.shape[1]):
        plus, minus = above[line[0], k], above[line[2], k] if line[2] >= 0 else -1
        if plus != minus:
            w -= rates[plus] * abs(gaps[plus] - t)
            if minus >= 0:
                w -= rates[minus] * abs(gaps[minus] + t)
    return w


@numba.njit(cache=True, error_model="numpy")
def _reach(x: Any, line: Any, law: Any) -> Any:
    """The moves along a line that keep every count in its range."""
    y, cells, kind, _, rows, _, _, _, _, _, _ = law
    low, high = -FAR, FAR
    for k in range(4):
        j = line[k]
        if j < 0:
            continue
        bottom, top = np.int64(0), FAR if cells[j, 2] < 0 else np.int64(cells[j, 2])
        if kind == TABLE:
            bottom = max(bottom, np.int64(y[j]) - rows.shape[1] // 2)
            top = min(top, np.int64(y[j]) + rows.shape[1] // 2)
        if k < 2:
            low, high = max(low, bottom - x[j]), min(high, top - x[j])
        else:
            low, high = max(low, x[j] - top), min(high, x[j] - bottom)
    return low, high


@numba.njit(cache=True, error_model="numpy")
def _peak(low: Any, high: Any, x: Any, line: Any, law: Any) -> Any:
    """Smallest move whose step up is at most 1: bracket from the present table, then halve."""
    here = np.int64(0)
    stride, top, bottom = np.int64(1), here, here - 1
    if high == 0 or _up(here, x, line, law) <= 1:
        while bottom >= low and _up(bottom, x, line, law) <= 1:
            top, stride = bottom, 2 * stride
            bottom = top - stride
        bottom = max(bottom, low - 1)
    else:
        bottom, top = here, here + 1
        while top < high and _up(top, x, line, law) > 1:
            bottom, stride = top, 2 * stride
            top = bottom + stride
        top = min(top, high)
    while top - bottom > 1:
        middle = bottom + (top - bottom) // 2
        if _up(middle, x, line, law) <= 1:
            top = middle
        else:
            bottom = middle
    return top


@numba.njit(cache=True, error_model="numpy")
def _fall(peak: Any, end: Any, height: Any, x: Any, line: Any, law: Any) -> Any:
    """A move on the way from the peak to `end` where the weight has fallen by a factor e or some
    more; `end` if it never does.
    """
    sign = np.int64(1) if end > peak else np.int64(-1)
    near, far, reach = np.int64(0), np.int64(1), abs(end - peak)
    while far < reach and height - _log_line(peak + sign * far, x, line, law) < 1:
        near, far = far, 2 * far
    far = min(far, reach)
    while far - near > 1 + far // 4:
        middle = (near + far) // 2
        if height - _log_line(peak + sign * middle, x, line, law) < 1:
            near = middle
        else:
            far = middle
    return peak + sign * far


@numba.njit(cache=True, error_model="numpy")
def _draw(rng: Any, x: Any, line: Any, law: Any) -> Any:
    """An exact draw from the law of the table on a line, given everything else (log-concave).

    Rejection from an envelope that is flat between a left and a right point and geometric beyond:
    steps fall along the line, so beyond the right point every step is at most the one that leads
    to it, and the same to the left. About three proposals of four are accepted, however wide the
    law is.
    """
    low, high = _reach(x, line, law)
    if low >= high:
        return 0
    peak = _peak(low, high, x, line, law)
    height = _log_line(peak, x, line, law)
    left, right = low - 1, high + 1  # flat to the end where the weight does not fall enough
    below = above = down = up = 0.0
    if peak < high:
        at = _fall(peak, high, height, x, line, law)
        drop = height - _log_line(at, x, line, law)
        if drop >= 1:
            right, up = at, _up(at - 1, x, line, law)
            above = math.exp(-drop) / (1 - up)
    if peak > low:
        at = _fall(peak, low, height, x, line, law)
        drop = height - _log_line(at, x, line, law)
        if drop >= 1:
            left, down = at, 1 / _up(at, x, line, law)
            below = math.exp(-drop) / (1 - down)
    inside = right - left - 1.0
    while True:
        u = rng.random() * (inside + above + below)
        if u < inside:
            t, envelope = left + 1 + np.int64(u), 0.0
        elif u < inside + above:
            steps = np.int64(math.log(1 - rng.random()) / math.log(up))
            t, envelope = right + steps, math.log(above * (1 - up)) + steps * math.log(up)
        else:
            steps = np.int64(math.log(1 - rng.random()) / math.log(down))
            t, envelope = left - steps, math.log(below * (1 - down)) + steps * math.log(down)
        if low <= t <= high:
            gain = _log_line(t, x, line, law) - height - envelope
            if math.log(1 - rng.random()) <= gain:
                return t


@numba.njit(cache=True, error_model="numpy")
def sweep(x: Any, lines: Any, rng: Any, y: Any, cells: Any, kind: Any, s: Any, rows: Any,
          which: Any, part: Any, totals: Any, above: Any, rates: Any,
          gaps: Any) -> None:  # fmt: skip
    """Redraw every chain's table along each line in turn, in place.

    x: (chains, cells); lines: (lines, 4) cells that go up (two), cells that go down (two), -1 for
    none; cells: (chains, cells, 4); totals: (chains, parts), or no columns when nothing is tied;
    gaps: (chains, nodes).
    """
    for chain in range(x.shape[0]):
        law = (y, cells[chain], kind, s, rows, which, part, totals[chain], above, rates,
               gaps[chain])  # fmt: skip
        for i in range(lines.shape[0]):
            line = lines[i]
            t = _draw(rng, x[chain], line, law)
            for k in range(4):
                if line[k] >= 0:
                    move = t if k < 2 else -t
                    x[chain, line[k]] += move
                    if totals.shape[1]:
                        totals[chain, part[line[k]]] += move
                    for level in range(above.shape[1]):
                        gaps[chain, above[line[k], level]] -= move
