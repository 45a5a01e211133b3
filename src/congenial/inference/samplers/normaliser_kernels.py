"""Compiled parts of `normaliser`: weights of one cell at the Fourier points, and priced sweeps.

A cell's transform is F_k(x) = sum over c >= 0 of A(c) e^(theta c) z_k^c e^(-rate |c - x|), z_k =
e^(2 pi i k / M). It is L + U, the sums up to x and beyond it:

    L(x + 1) = e^(-rate) L(x) + A(x + 1) e^(theta (x + 1)) z^(x + 1)
    U(x - 1) = e^(-rate) (U(x) + A(x) e^(theta x) z^x)

Each is followed in the direction in which errors shrink. Both are kept relative to a real scale
(their own value at k = 0), so that nothing underflows however far x is from where the base measure
has its mass. `log_a[c]` is log A(c) + theta c. Values are kept at every `block`-th x.

`law` is the tuple (log_a, first, rows, rate, the M roots of unity, block, L, scales of L, U, scales
of U): the tables of all cells of a group, one after the other; those of cell j start at first[j]
and rows[j].
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.inference.samplers.line_kernels import _draw

FAINT = 1e-11  # probabilities of the total below this are lost in rounding


@numba.njit(cache=True, error_model="numpy")
def _lift(rate: Any, scale: Any, weight: Any) -> Any:
    """log(e^(scale - rate) + e^weight)."""
    first, second = scale - rate, weight
    top = max(first, second)
    if top == -np.inf:
        return top
    return top + math.log(math.exp(first - top) + math.exp(second - top))


@numba.njit(cache=True, error_model="numpy")
def _advance(values: Any, power: Any, roots: Any, old: Any, new: Any) -> None:
    """values * old + power * new for every k, and power moved on by one count; in place."""
    for k in range(values.size):
        values[k] = values[k] * old + power[k] * new
        power[k] *= roots[k]


@numba.njit(cache=True, error_model="numpy")
def _retreat(values: Any, power: Any, roots: Any, old: Any, new: Any) -> None:
    """The same, and power moved back by one count."""
    for k in range(values.size):
        values[k] = values[k] * old + power[k] * new
        power[k] *= roots[k].conjugate()


@numba.njit(cache=True, error_model="numpy")
def _phase(power: Any, c: Any, roots: Any) -> None:
    """power[k] = z_k^c."""
    step, at = c % roots.size, 0
    for k in range(power.size):
        power[k] = roots[at]
        at += step
        if at >= roots.size:
            at -= roots.size


@numba.njit(cache=True, error_model="numpy")
def tabulate(log_a: Any, rate: Any, points: Any, roots: Any, block: Any) -> Any:
    """L and U at x = 0, block, 2 block, ... and their log scales, from both ends of `log_a`."""
    last = log_a.size - 1
    blocks = last // block + 1
    low, high = np.zeros((blocks, points), np.complex128), np.zeros((blocks, points), np.complex128)
    low_scale, high_scale = np.full(blocks, -np.inf), np.full(blocks, -np.inf)
    power, value, scale = np.ones(points, np.complex128), np.zeros(points, np.complex128), -np.inf
    for x in range(last + 1):
        lifted = _lift(rate, scale, log_a[x])
        old, new = math.exp(scale - rate - lifted), math.exp(log_a[x] - lifted)
        _advance(value, power, roots, old, new)
        scale = lifted
        if x % block == 0:
            low[x // block], low_scale[x // block] = value, scale
    _phase(power, last, roots)
    value[:], scale = 0, -np.inf
    for x in range(last, -1, -1):  # U(x) holds the terms above x
        if x % block == 0:
            high[x // block], high_scale[x // block] = value, scale
        lifted = _lift(0.0, scale, log_a[x])
        _retreat(value, power, roots, math.exp(scale - lifted), math.exp(log_a[x] - lifted))
        scale = lifted - rate
    return low, low_scale, high, high_scale


@numba.njit(cache=True, error_model="numpy")
def transform(j: Any, x: Any, law: Any, out: Any, room: Any) -> Any:
    """out[k] = F_k(x) / F_0(x) of cell j; returns log F_0(x). room: scratch, five rows."""
    log_a, first, rows, rate, roots, block, low, low_scale, high, high_scale = law
    below, above, power = room[0], room[1], room[2]
    start, at = first[j], x // block
    row, top = rows[j] + at, (at + 1) * block
    _phase(power, at * block + 1, roots)
    below[:], scale = low[row], low_scale[row]
    for c in range(at * block + 1, x + 1):
        lifted = _lift(rate, scale, log_a[start + c])
        old, new = math.exp(scale - rate - lifted), math.exp(log_a[start + c] - lifted)
        _advance(below, power, roots, old, new)
        scale = lifted
    if row + 1 < rows[j + 1]:
        above[:], upper = high[row + 1], high_scale[row + 1]
    else:
        above[:], upper, top = 0.0, -np.inf, first[j + 1] - start - 1
    _phase(power, top, roots)
    for c in range(top, x, -1):
        lifted = _lift(0.0, upper, log_a[start + c])
        old, new = math.exp(upper - lifted), math.exp(log_a[start + c] - lifted)
        _retreat(above, power, roots, old, new)
        upper = lifted - rate
    whole = _lift(0.0, scale, upper)
    lower, upper_share = math.exp(scale - whole), math.exp(upper - whole)
    for k in range(out.size):
        out[k] = below[k] * lower + above[k] * upper_share
    return whole


@numba.njit(cache=True, error_model="numpy")
def chance(shares: Any, total: Any, roots: Any, product: Any) -> Any:
    """P(sum = total) under the tilted laws: the mean over the circle of the product of `shares`."""
    _phase(product, -total, roots)
    for j in range(shares.shape[0]):
        for k in range(product.size):
            product[k] *= shares[j, k]
    mass = product[0].real
    for k in range(1, product.size):
        mass += product[k].real if 2 * k == roots.size else 2 * product[k].real
    return mass / roots.size


@numba.njit(cache=True, error_model="numpy")
def prepare(x: Any, law: Any, shares: Any, logs: Any, room: Any) -> None:
    """The transforms of every cell at x, and their scales."""
    for j in range(x.size):
        logs[j] = transform(j, x[j], law, shares[j], room)


@numba.njit(cache=True, error_model="numpy")
def prices(tables: Any, law: Any, total: Any, shares: Any, room: Any) -> Any:
    """log Z of each row up to one constant; nan where the chance of the total is lost."""
    out, logs = np.empty(tables.shape[0]), np.empty(tables.shape[1])
    for i in range(tables.shape[0]):
        prepare(tables[i], law, shares, logs, room)
        likely = chance(shares, total, law[4], room[0])
        out[i] = logs.sum() + math.log(likely) if likely > FAINT else np.nan
    return out


@numba.njit(cache=True, error_model="numpy")
def sweep(x: Any, lines: Any, rng: Any, weights: Any, law: Any, place: Any, limits: Any, total: Any,
          shares: Any, logs: Any, room: Any, done: Any, pending: Any) -> Any:  # fmt: skip
    """Redraw one chain's table along lines inside one group, keeping each with Z(x) / Z(x').

    weights: the law of the table without the normaliser, as in `_lines`. place: each cell's number
    in the group. shares, logs: the transforms at x and their scales, kept up to date. Starts at
    line `done` with the move `pending`, if it is not 0. Stops at a move that leaves the tables:
    returns the line it came to, that move, and how many moves were kept, made, and too faint.
    """
    accepted = tried = faint = 0
    roots = law[4]
    now = math.log(max(chance(shares, total, roots, room[0]), FAINT / 100))
    for i in range(done, lines.shape[0]):
        line = lines[i]
        t = pending if pending != 0 else _draw(rng, x, line, weights)
        pending = 0
        if t == 0:
            continue
        a, b = place[line[0]], place[line[2]]
        if x[line[0]] + t > limits[a] or x[line[2]] - t > limits[b]:
            return i, t, accepted, tried, faint
        tried += 1
        room[3], room[4] = shares[a], shares[b]
        first = transform(a, x[line[0]] + t, law, shares[a], room)
        second = transform(b, x[line[2]] - t, law, shares[b], room)
        likely = chance(shares, total, roots, room[0])
        faint += likely < FAINT
        there = math.log(max(likely, FAINT / 100))
        gain = logs[a] + logs[b] + now - first - second - there
        if math.log(1 - rng.random()) <= gain:
            x[line[0]] += t
            x[line[2]] -= t
            logs[a], logs[b], now = first, second, there
            accepted += 1
        else:
            shares[a], shares[b] = room[3], room[4]
    return lines.shape[0], 0, accepted, tried, faint
