"""Compiled loops over single latent counts: the law of a count given its released value.

A latent count has weight c^x G(x + a)/G(x + 1) [G(n - x + b)/G(n - x + 1)] under the model, which
covers the count models used here:

    Poisson(c)                     a = 0, no n            negative binomial (q)       c = q, a = r
    binomial (n trials)            a = b = 0, c = odds    beta-binomial               c = 1, a, b
    multinomial part of total t    a = 0, c = p           Dirichlet-multinomial part  c = 1, a

(a = 0 and b = 0 leave the factor out of the numerator; n = -1: unbounded). Where a modelled count
is the sum of k latent ones, all ways to split it being equally likely, G(x + 1) becomes G(x + k):
there are G(x + k) / (G(x + 1) G(k)) such ways. Times the noise at y - x that is the law of the true
count given the release. Windows end where what is left is below 1e-18 of the mass; weights are
built from positive factors only.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

L1, L2, TABLE = 0, 1, 2  # kinds of noise: s^-|u|, exp(-s u^2), a table of log weights
TINY = 1e-18
FAR = np.int64(1) << 60
HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


@numba.njit(cache=True, error_model="numpy")
def _log_gamma(z: Any) -> Any:
    """log G(z): Stirling's series from 16 on, where what it leaves out is below 1e-11."""
    if z < 16:
        return math.lgamma(z)
    w = 1 / (z * z)
    return (z - 0.5) * math.log(z) - z + HALF_LOG_2_PI + (1 / 12 - (1 / 360 - w / 1260) * w) / z


@numba.njit(cache=True, error_model="numpy")
def _model_step(x: Any, cell: Any, k: Any) -> Any:
    """Weight at x + 1 over weight at x under the model, for a count that is a sum of k."""
    c, a, n, b = cell
    if n >= 0 and x >= n:
        return 0.0
    r = c
    if a != k:
        r /= x + k
        if a > 0:
            r *= x + a
    if n >= 0:
        r *= n - x
        if b > 0:
            r /= n - 1 - x + b
    return r


@numba.njit(cache=True, error_model="numpy")
def _log_model(x: Any, cell: Any, k: Any) -> Any:
    """Log weight of a count x under the model, for a count that is a sum of k."""
    c, a, n, b = cell
    w = 0.0 if x == 0 or c == 1 else x * math.log(c)
    if a != k:
        w -= _log_gamma(x + k)
        if a > 0:
            w += _log_gamma(x + a)
    if n >= 0:
        w -= _log_gamma(n - x + 1.0)
        if b > 0:
            w += _log_gamma(n - x + b)
    return w


@numba.njit(cache=True, error_model="numpy")
def _noise_step(x: Any, y: Any, kind: Any, s: Any, row: Any) -> Any:
    """Noise weight at y - x - 1 over that at y - x."""
    d = y - x
    if kind == L1:
        if d >= 1:
            return s
        return 1 / s if d <= 0 else s ** (2 * d - 1)
    if kind == L2:
        return math.exp(s * (2 * d - 1))
    reach = row.size // 2
    u = np.int64(d) + reach
    if u - 1 < 0:
        return 0.0
    if u >= row.size:
        return np.inf
    return math.exp(row[u - 1] - row[u])


@numba.njit(cache=True, error_model="numpy")
def _log_noise(x: Any, y: Any, kind: Any, s: Any, row: Any) -> Any:
    """Log weight of the noise at y - x."""
    d = y - x
    if kind == L1:
        return -math.log(s) * abs(d)
    if kind == L2:
        return -s * d * d
    u = np.int64(d) + row.size // 2
    return row[u] if 0 <= u < row.size else -np.inf


@numba.njit(cache=True, error_model="numpy")
def _log_weight(x: Any, y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    """Log weight of a count x, model and noise together."""
    return _log_model(x, cell, 1.0) + _log_noise(x, y, kind, s, row)


@numba.njit(cache=True, error_model="numpy")
def _step(x: Any, y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    return _model_step(x, cell, 1.0) * _noise_step(x, y, kind, s, row)


@numba.njit(cache=True, error_model="numpy")
def _peak(low: Any, high: Any, near: Any, y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    """Smallest x in low .. high whose step up is at most 1, for steps that fall with x."""
    x = min(max(near, low), high)
    stride = 1
    if x == high or _step(x, y, cell, kind, s, row) <= 1:
        top, bottom = x, x - 1
        while bottom >= low and _step(bottom, y, cell, kind, s, row) <= 1:
            top, stride = bottom, 2 * stride
            bottom = top - stride
        bottom = max(bottom, low - 1)
    else:
        bottom, top = x, x + 1
        while top < high and _step(top, y, cell, kind, s, row) > 1:
            bottom, stride = top, 2 * stride
            top = bottom + stride
        top = min(top, high)
    while top - bottom > 1:
        middle = bottom + (top - bottom) // 2
        if _step(middle, y, cell, kind, s, row) <= 1:
            top = middle
        else:
            bottom = middle
    return top


@numba.njit(cache=True, error_model="numpy")
def _ends(
    seed: Any, low: Any, high: Any, room: Any, y: Any, cell: Any, kind: Any, s: Any, row: Any
) -> Any:
    """How far left and right of a seed the weights stay above TINY * room times the seed's."""
    left, w = seed, 1.0
    while left > low:
        w /= _step(left - 1, y, cell, kind, s, row)
        if not w > TINY * room:
            break
        left -= 1
    right, w = seed, 1.0
    while right < high:
        w *= _step(right, y, cell, kind, s, row)
        if not w > TINY * room:
            break
        right += 1
    return left, right


@numba.njit(cache=True, error_model="numpy")
def _bump(low: Any, high: Any, y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    """Where the noise makes a second peak when the model's weights are highest at 0 (a < 1)."""
    centre = min(max(np.int64(round(y)), low), high)
    if kind == L2:
        # the step's logarithm is concave; it is largest where (x + a)(x + 1) = (1 - a) / (2 s)
        crest = np.int64(math.sqrt(max((1 - cell[1]) / (2 * s), 0.0)))
        crest = min(max(crest, low), centre)
        if centre == crest or _step(crest, y, cell, kind, s, row) <= 1:
            return crest if centre == crest else low
        return _peak(crest, high, centre, y, cell, kind, s, row)
    while centre > low and _step(centre - 1, y, cell, kind, s, row) < 1 and kind == TABLE:
        centre -= 1
    return centre


@numba.njit(cache=True, error_model="numpy")
def cell_law(y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    """The law of one count given its released value, up to what is below 1e-18.

    Returns (first, length, second, weights, log_scale): weights[:length] belong to first, first +
    1, ..., the others to second, second + 1, ...; times exp(log_scale) they are the joint weights.
    """
    n, a, b = cell[2], cell[1], cell[3]
    low, high = np.int64(0), FAR if n < 0 else np.int64(n)
    if kind == TABLE:
        reach = row.size // 2
        low = max(low, np.int64(y) - reach)
        high = min(high, np.int64(y) + reach)
    if low > high:
        return low, 0, low, np.empty(0), -np.inf
    if b > 0 and (a < 1 or b < 1):  # spikes possible at 0 and at n
        return _scan(low, high, y, cell, kind, s, row)
    if 0 < a < 1:
        seed = _bump(low, high, y, cell, kind, s, row)
        ahead = _log_weight(low, y, cell, kind, s, row) - _log_weight(seed, y, cell, kind, s, row)
        room = math.exp(min(max(ahead, 0.0), 600.0))
        left, right = _ends(seed, low, high, room, y, cell, kind, s, row)
        spike = low - 1
        w = math.exp(min(ahead, 600.0))
        while spike + 1 < left and w > TINY * max(room, 1.0):
            spike += 1
            w *= _step(spike, y, cell, kind, s, row)
    else:
        seed = _peak(low, high, np.int64(round(y)), y, cell, kind, s, row)
        left, right = _ends(seed, low, high, 1.0, y, cell, kind, s, row)
        spike = low - 1
    return _fill(low, spike, left, right, seed, y, cell, kind, s, row)


@numba.njit(cache=True, error_model="numpy")
def _fill(
    low: Any, spike: Any, left: Any, right: Any, seed: Any,
    y: Any, cell: Any, kind: Any, s: Any, row: Any,
) -> Any:  # fmt: skip
    """Weights on low .. spike and left .. right, and the logarithm of their unit."""
    first = spike - low + 1
    weights = np.empty(first + right - left + 1)
    unit = _log_weight(seed, y, cell, kind, s, row)
    w = 1.0
    if first > 0:
        ahead = _log_weight(low, y, cell, kind, s, row) - unit
        unit += max(ahead, 0.0)
        w = math.exp(min(ahead, 0.0))
        for i in range(first):
            weights[i] = w
            w *= _step(low + i, y, cell, kind, s, row)
        w = math.exp(min(-ahead, 0.0))
    weights[first + seed - left] = w
    up = down = w
    for x in range(seed, right):
        up *= _step(x, y, cell, kind, s, row)
        weights[first + x + 1 - left] = up
    for x in range(seed - 1, left - 1, -1):
        down /= _step(x, y, cell, kind, s, row)
        weights[first + x - left] = down
    return low, first, left, weights, unit


@numba.njit(cache=True, error_model="numpy")
def _scan(low: Any, high: Any, y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    """Weights on all of low .. high, for laws with a spike at either end."""
    logs = np.empty(high - low + 1)
    for x in range(low, high + 1):
        logs[x - low] = _log_weight(x, y, cell, kind, s, row)
    top = logs.max()
    return low, 0, low, np.exp(logs - top), top


@numba.njit(cache=True, error_model="numpy")
def _log_mass(y: Any, cell: Any, kind: Any, s: Any, row: Any) -> Any:
    """Log of the sum over x of the joint weights, relative error about 1e-13, without a table."""
    n, a = cell[2], cell[1]
    if n >= 0 or kind == TABLE or 0 < a < 1:  # short, or with two peaks: by the table
        law = cell_law(y, cell, kind, s, row)
        return law[4] + math.log(law[3].sum()) if law[3].size else -np.inf
    seed = _peak(0, FAR, np.int64(round(y)), y, cell, kind, s, row)
    total = w = 1.0
    x = seed
    while w > 1e-14:
        w *= _step(x, y, cell, kind, s, row)
        total += w
        x += 1
    w, x = 1.0, seed
    while x > 0 and w > 1e-14:
        x -= 1
        w /= _step(x, y, cell, kind, s, row)
        total += w
    return _log_weight(seed, y, cell, kind, s, row) + math.log(total)


@numba.njit(cache=True, error_model="numpy")
def log_marginals(y: Any, cells: Any, kind: Any, s: Any, rows: Any, which: Any) -> Any:
    """log sum over x of model(x) noise(y - x), for each parameter draw (rows of cells) and cell.

    cells: (draws, cells, 4). Constants in the model's weights are left out (see `_log_weight`).
    """
    out = np.empty(cells.shape[:2])
    for i in range(cells.shape[0]):
        for j in range(cells.shape[1]):
            out[i, j] = _log_mass(y[j], cells[i, j], kind, s[j], rows[which[j]])
    return out


@numba.njit(cache=True, error_model="numpy")
def draw_counts(y: Any, cells: Any, kind: Any, s: Any, rows: Any, which: Any, uniforms: Any) -> Any:
    """Independent draws of every count given its released value; uniforms: (cells, draws)."""
    out = np.empty(uniforms.shape, np.int64)
    for j in range(y.size):
        first, length, second, weights, _ = cell_law(y[j], cells[j], kind, s[j], rows[which[j]])
        cdf = np.cumsum(weights)
        size = cdf.size
        guide = np.searchsorted(cdf, np.arange(size + 1) * (cdf[-1] / (size + 1)), side="right")
        for i in range(uniforms.shape[1]):
            v = uniforms[j, i]
            target = v * cdf[-1]
            k = min(guide[np.int64(v * (size + 1))], size - 1)
            while k < size - 1 and cdf[k] <= target:
                k += 1
            out[j, i] = first + k if k < length else second + (k - length)
    return out
