"""Compiled loops over latent tables: exact redraws along lines (see `latent_tables`).

A line lets up to two cells go up and up to two go down by the same number t. `law` is the tuple

    y, cells, kind, s, rows, which   released values, weights of modelled counts, noise of cells
    part, totals                     where the totals of parts are free: the factor total! of each
    above, rates, gaps, squared      where sums have noise of their own (see `cell_noise`): the
                                     nodes above each cell, their rates, their noise now
    owner, widths, sums              the modelled count each cell belongs to, of how many cells it
                                     is the sum, and its value now
    room                             scratch of `_gather`: (8 + 4 levels, 3)

Everything that is quadratic in t is gathered into two numbers before a line is drawn, and what two
ends of a line have in common drops out there. Free totals are only used on lines with at most one
end a side: with two in one part the law would not be log-concave.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.inference.samplers.count_kernels import (
    FAR,
    L2,
    TABLE,
    _log_gamma,
    _log_model,
    _log_noise,
    _model_step,
    _noise_step,
)

NODES = 8  # first row of `room` with a node: before it what is quadratic, and four modelled counts


@numba.njit(cache=True, error_model="numpy")
def _net(line: Any, k: Any, of: Any) -> Any:
    """How often what the k-th end of a line belongs to goes up with t; 0 where it was met before.

    `of` tells what each cell belongs to.
    """
    mine, net = of[line[k]], np.int64(0)
    for i in range(4):
        if line[i] >= 0 and of[line[i]] == mine:
            if i < k:
                return np.int64(0)
            net += 1 if i < 2 else -1
    return net


@numba.njit(cache=True, error_model="numpy")
def _put(row: Any, first: Any, second: Any, third: Any) -> None:
    row[0] = first
    row[1] = second
    row[2] = third


@numba.njit(cache=True, error_model="numpy")
def _gather(x: Any, line: Any, law: Any) -> None:
    """Write into `room` what changes along a line.

    room[0]: factors of t and of -t^2, and the curvature near t = 0. room[1]: how many modelled
    counts and nodes follow. Modelled counts from row 2: number, net, value. Nodes: noise, net,
    rate.
    """
    y, cells, kind, s, _, _, _, _, above, rates, gaps, squared, owner, _, sums, room = law
    slope = square = bend = 0.0
    counts = nodes = 0
    for k in range(4):
        j = line[k]
        if j < 0:
            continue
        if kind == L2:
            slope += 2 * s[j] * (y[j] - x[j]) * (1 if k < 2 else -1)
            square += s[j]
        net = _net(line, k, owner)
        if net != 0:
            m = owner[j]
            _put(room[2 + counts], m, net, sums[m])
            counts += 1
            if cells[m, 1] != 1:
                bend += net * net / (sums[m] + 1.0)
        for level in range(above.shape[1]):
            net = _net(line, k, above[:, level])
            if net != 0:
                v = above[j, level]
                if squared:
                    slope += 2 * rates[v] * gaps[v] * net
                    square += rates[v] * net * net
                else:
                    _put(room[NODES + nodes], gaps[v], net, rates[v])
                    nodes += 1
    _put(room[0], slope, square, bend + 2 * square)
    _put(room[1], counts, nodes, 0)


@numba.njit(cache=True, error_model="numpy")
def _up(t: Any, x: Any, line: Any, law: Any) -> Any:
    """Weight of the table moved t + 1 along the line over that moved t."""
    y, cells, kind, s, rows, which, part, totals, _, _, _, _, _, widths, _, room = law
    r = 1.0
    for i in range(2, 2 + np.int64(room[1, 0])):
        m, net = np.int64(room[i, 0]), np.int64(room[i, 1])
        at = np.int64(room[i, 2]) + net * t
        for more in range(net):
            r *= _model_step(at + more, cells[m], widths[m])
        for less in range(-net):
            r /= _model_step(at - less - 1, cells[m], widths[m])
    if kind != L2:
        for k in range(4):
            j = line[k]
            if j >= 0 and k < 2:
                r *= _noise_step(x[j] + t, y[j], kind, s[j], rows[which[j]])
            elif j >= 0:
                r /= _noise_step(x[j] - t - 1, y[j], kind, s[j], rows[which[j]])
    if totals.size:
        plus, minus = part[line[0]], part[line[2]] if line[2] >= 0 else -1
        if plus != minus:
            r *= totals[plus] + t + 1
            if minus >= 0:
                r /= totals[minus] - t
    power = room[0, 0] - room[0, 1] * (2 * t + 1)
    for i in range(NODES, NODES + np.int64(room[1, 1])):
        gap, net, rate = room[i, 0], room[i, 1], room[i, 2]
        power += rate * (abs(gap - net * t) - abs(gap - net * (t + 1)))
    return r if power == 0 else r * math.exp(power)


@numba.njit(cache=True, error_model="numpy")
def _log_line(t: Any, x: Any, line: Any, law: Any) -> Any:
    """Log weight of the table moved t along the line, up to a constant."""
    y, cells, kind, s, rows, which, part, totals, _, _, _, _, _, widths, _, room = law
    w = (room[0, 0] - room[0, 1] * t) * t
    for i in range(2, 2 + np.int64(room[1, 0])):
        m = np.int64(room[i, 0])
        w += _log_model(room[i, 2] + room[i, 1] * t, cells[m], widths[m])
    if kind != L2:
        for k in range(4):
            j = line[k]
            if j >= 0:
                at = x[j] + t if k < 2 else x[j] - t
                w += _log_noise(at, y[j], kind, s[j], rows[which[j]])
    if totals.size:
        plus, minus = part[line[0]], part[line[2]] if line[2] >= 0 else -1
        if plus != minus:
            w += _log_gamma(totals[plus] + t + 1.0)
            if minus >= 0:
                w += _log_gamma(totals[minus] - t + 1.0)
    for i in range(NODES, NODES + np.int64(room[1, 1])):
        gap, net, rate = room[i, 0], room[i, 1], room[i, 2]
        w -= rate * abs(gap - net * t)
    return w


@numba.njit(cache=True, error_model="numpy")
def _reach(x: Any, line: Any, law: Any) -> Any:
    """The moves along a line that keep every count in its range."""
    y, cells, kind, _, rows, _, _, _, _, _, _, _, _, _, _, room = law
    low, high = -FAR, FAR
    for k in range(4):
        j = line[k]
        if j < 0:
            continue
        bottom, top = np.int64(0), FAR
        if kind == TABLE:
            bottom = max(bottom, np.int64(y[j]) - rows.shape[1] // 2)
            top = np.int64(y[j]) + rows.shape[1] // 2
        if k < 2:
            low, high = max(low, bottom - x[j]), min(high, top - x[j])
        else:
            low, high = max(low, x[j] - top), min(high, x[j] - bottom)
    for i in range(2, 2 + np.int64(room[1, 0])):
        most = cells[np.int64(room[i, 0]), 2]
        if most >= 0:
            left, net = np.int64(most - room[i, 2]), np.int64(room[i, 1])
            if net > 0:
                high = min(high, left // net)
            else:
                low = max(low, -(left // -net))
    return low, high


@numba.njit(cache=True, error_model="numpy")
def _peak(low: Any, high: Any, x: Any, line: Any, law: Any) -> Any:
    """Smallest move whose step up is at most 1: bracket from a first guess, then halve."""
    here, room = np.int64(0), law[-1]
    if room[0, 1] > 0 and low < 0 < high:
        guess = math.log(_up(here, x, line, law)) / room[0, 2]
        here = np.int64(min(max(guess, float(low)), float(high)))
    stride, top, bottom = np.int64(1), here, here - 1
    if here == high or _up(here, x, line, law) <= 1:
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
    more; `end` if it never does. A guess from the curvature comes first.
    """
    sign = np.int64(1) if end > peak else np.int64(-1)
    near, far, reach = np.int64(0), np.int64(1), abs(end - peak)
    bend = law[-1][0, 2]
    if bend > 0 and 1.7 / math.sqrt(bend) < reach:
        guess = np.int64(1.7 / math.sqrt(bend)) + 1
        if 1 <= height - _log_line(peak + sign * guess, x, line, law) <= 3:
            return peak + sign * guess
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
    _gather(x, line, law)
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
          which: Any, part: Any, totals: Any, above: Any, rates: Any, gaps: Any, squared: Any,
          owner: Any, widths: Any, sums: Any, room: Any) -> None:  # fmt: skip
    """Redraw every chain's table along each line in turn, in place.

    x: (chains, cells); lines: (lines, 4) cells that go up (two), cells that go down (two), -1 for
    none; cells: (chains, counts, 4); totals: (chains, parts), or no columns when nothing is tied;
    gaps: (chains, nodes); sums: (chains, counts).
    """
    for chain in range(x.shape[0]):
        law = (y, cells[chain], kind, s, rows, which, part, totals[chain], above, rates,
               gaps[chain], squared, owner, widths, sums[chain], room)  # fmt: skip
        for i in range(lines.shape[0]):
            line = lines[i]
            t = _draw(rng, x[chain], line, law)
            if t == 0:
                continue
            for k in range(4):
                if line[k] >= 0:
                    move = t if k < 2 else -t
                    x[chain, line[k]] += move
                    sums[chain, owner[line[k]]] += move
                    if totals.shape[1]:
                        totals[chain, part[line[k]]] += move
                    for level in range(above.shape[1]):
                        gaps[chain, above[line[k], level]] -= move
