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

Compiled loops over trees of sums: independent counts given what they sum to, drawn exactly.

The law of a sum is the convolution of the laws of its two halves, down to single counts. Going back
from the root, a sum s splits into l and s - l with weight left(l) right(s - l): an exact draw, with
nothing to reject, of all counts of a group given its total.

Laws end where what is left is below 1e-18 of their mass (as in `count_kernels`), and are built from
positive numbers only. A forest is the tuple

    left, right       children of each node, -1 for a single count; children have smaller numbers
    low, begin, size  first value of each node's law, and where its weights are in `pool`
    unit, mean, spread, pool   what the weights were divided by; moments of the law; all weights

Compiled loops over counts that follow each other: each drawn given those before it.

A count x has weight exp(-r^2 (x - c)^2 / 2) G(x + a) / G(x + 1) on 0, 1, 2, ...; its centre c
depends on the counts before. Weights are added up from the centre outwards, until what is left is
below 1e-18 of them. Far enough from 0 the factor of the model is left to the weight of the whole
draw: the sum of the others is then known.
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


@numba.njit(cache=True, error_model="numpy")
def _tilted_law(j: Any, tilt: Any, y: Any, cells: Any, kind: Any, s: Any, rows: Any,
                which: Any) -> Any:  # fmt: skip
    """First value and weights of the count j, times exp(tilt x); a gap is filled with zeros."""
    cell = cells[j].copy()
    cell[0] *= math.exp(tilt)
    first, length, second, weights, _ = cell_law(y[j], cell, kind, s[j], rows[which[j]])
    if length == 0:
        return second, weights
    whole = np.zeros(second - first + weights.size - length)
    whole[:length] = weights[:length]
    whole[second - first :] = weights[length:]
    return first, whole


@numba.njit(cache=True, error_model="numpy")
def _moments(low: Any, weights: Any) -> Any:
    """Mean and variance of a law."""
    total = first = second = 0.0
    top = weights.argmax()
    for i in range(weights.size):
        total += weights[i]
        first += weights[i] * (i - top)
        second += weights[i] * (i - top) ** 2
    return low + top + first / total, second / total - (first / total) ** 2


@numba.njit(cache=True, error_model="numpy")
def tilted_moments(tilts: Any, y: Any, cells: Any, kind: Any, s: Any, rows: Any,
                   which: Any) -> Any:  # fmt: skip
    """Mean and variance of every count, (cells, 2)."""
    out = np.empty((y.size, 2))
    for j in range(y.size):
        low, weights = _tilted_law(j, tilts[j], y, cells, kind, s, rows, which)
        out[j, 0], out[j, 1] = _moments(low, weights)
    return out


@numba.njit(cache=True, error_model="numpy")
def _convolve(a: Any, b: Any) -> Any:
    """The law of a sum."""
    out = np.zeros(a.size + b.size - 1)
    if a.size > b.size:
        a, b = b, a
    for i in range(a.size):
        for k in range(b.size):
            out[i + k] += a[i] * b[k]
    return out


@numba.njit(cache=True, error_model="numpy")
def _trim(weights: Any) -> Any:
    """How many weights to leave out at each end: together they are below TINY of the mass."""
    most = 0.5 * TINY * weights.sum()
    left, mass = 0, weights[0]
    while mass <= most:
        left += 1
        mass += weights[left]
    right, mass = weights.size, weights[-1]
    while mass <= most:
        right -= 1
        mass += weights[right - 1]
    return left, right


@numba.njit(cache=True, error_model="numpy")
def _end_to_end(laws: Any, begin: Any, size: Any) -> Any:
    """All weights in one array."""
    pool = np.empty(size.sum())
    for i in range(size.size):
        pool[begin[i] : begin[i] + size[i]] = laws[i]
    return pool


@numba.njit(cache=True, error_model="numpy")
def grow(starts: Any, tilts: Any, most: Any, y: Any, cells: Any, kind: Any, s: Any, rows: Any,
         which: Any) -> Any:  # fmt: skip
    """The trees of all groups: roots, forest, and whether all of it took at most `most` products.

    Counts starts[g] .. starts[g + 1] - 1 are those of group g; single counts have the first nodes.
    """
    nodes = 2 * y.size - (starts.size - 1)
    left, right = np.full(nodes, -1), np.full(nodes, -1)
    low, begin, size = np.zeros((3, nodes), np.int64)
    unit = np.ones(nodes)
    roots = np.zeros(starts.size - 1, np.int64)
    laws = [np.empty(0) for _ in range(0)]
    for j in range(y.size):
        low[j], law = _tilted_law(j, tilts[j], y, cells, kind, s, rows, which)
        laws.append(law / law.max())
    node, work = y.size, 0.0
    for g in range(roots.size):
        row = np.arange(starts[g], starts[g + 1])
        while row.size > 1:
            half = row.size // 2
            for i in range(half):
                a, b = row[2 * i], row[2 * i + 1]
                work += laws[a].size * float(laws[b].size)
                if work > most:
                    return roots, (left, right, low, begin, size, unit, unit, unit, unit), False
                law = _convolve(laws[a], laws[b])
                first, last = _trim(law)
                unit[node] = law.max()
                laws.append(law[first:last] / unit[node])
                left[node], right[node], low[node] = a, b, low[a] + low[b] + first
                row[i] = node
                node += 1
            if row.size % 2:
                row[half] = row[-1]
            row = row[: (row.size + 1) // 2]
        roots[g] = row[0]
    mean, spread = np.empty(nodes), np.empty(nodes)
    for i in range(nodes):
        size[i] = laws[i].size
        begin[i] = begin[i - 1] + size[i - 1] if i else 0
        mean[i], spread[i] = _moments(low[i], laws[i])
    pool = _end_to_end(laws, begin, size)
    return roots, (left, right, low, begin, size, unit, mean, spread, pool), True


@numba.njit(cache=True, error_model="numpy")
def _split(total: Any, one: Any, low_one: Any, two: Any, low_two: Any, near: Any,
           target: Any) -> Any:  # fmt: skip
    """The first part of a total: weights are added up from `near` outwards until they pass target.

    Any order of adding up draws the same law; this one is soon done.
    """
    low = max(low_one, total - low_two - two.size + 1)
    high = min(low_one + one.size - 1, total - low_two)
    here = min(max(near, low), high)
    i, k = here - low_one, total - here - low_two
    mass = one[i] * two[k]
    if mass > target:
        return here
    both = min(high - here, here - low)
    for step in range(1, both + 1):
        mass += one[i + step] * two[k - step]
        if mass > target:
            return here + step
        mass += one[i - step] * two[k + step]
        if mass > target:
            return here - step
    for step in range(both + 1, high - here + 1):
        mass += one[i + step] * two[k - step]
        if mass > target:
            return here + step
    for step in range(both + 1, here - low + 1):
        mass += one[i - step] * two[k + step]
        if mass > target:
            return here - step
    return here  # rounding: the weights add up to less than their known sum


@numba.njit(cache=True, error_model="numpy")
def split_down(rng: Any, sums: Any, forest: Any) -> None:
    """Draw all nodes given the roots, in place; sums: (nodes, draws)."""
    left, right, low, begin, size, unit, mean, spread, pool = forest
    for node in range(left.size - 1, -1, -1):
        a, b = left[node], right[node]
        if a < 0:
            continue
        law = pool[begin[node] : begin[node] + size[node]]
        first = pool[begin[a] : begin[a] + size[a]]
        second = pool[begin[b] : begin[b] + size[b]]
        share = spread[a] / max(spread[a] + spread[b], 1e-300)
        for i in range(sums.shape[1]):
            total = sums[node, i]
            near = np.int64(round(mean[a] + share * (total - mean[a] - mean[b])))
            target = rng.random() * law[total - low[node]] * unit[node]
            sums[a, i] = _split(total, first, low[a], second, low[b], near, target)
            sums[b, i] = total - sums[a, i]


SMOOTH = 0.7  # up to this r the weights of all integers sum to sqrt(2 pi) / r within 1e-17
CLEAR = 4.5  # standard deviations from 0 beyond which counts below 0 are drawn, to be thrown away
FLAT = 9.0  # beyond which the factor of the model hardly bends


@numba.njit(cache=True, error_model="numpy")
def _mode(c: Any, r: Any, a: Any) -> Any:
    """Where weights are highest, a spike at 0 aside: at the centre, or above it where a > 1."""
    low = max(np.int64(round(c)), np.int64(0))
    high = low if a <= 1 else max(low, np.int64(math.ceil(c + math.log(a) / (r * r))))
    while low < high:
        x = low + (high - low) // 2
        if math.log((x + a) / (x + 1)) > r * r * (x - c + 0.5):
            low = x + 1
        else:
            high = x
    return low


@numba.njit(cache=True, error_model="numpy")
def _sums(here: Any, c: Any, r: Any, a: Any) -> Any:
    """Sums of w, w (x - here) and w (x - here)^2, weights w over that of `here`."""
    shrink = math.exp(-r * r)
    total, first, second = 1.0, 0.0, 0.0
    w, step, x = 1.0, math.exp(-r * r * (here - c + 0.5)), here
    while w > TINY * total:
        w *= step * (x + a) / (x + 1)
        step *= shrink
        x += 1
        total += w
        first += w * (x - here)
        second += w * (x - here) ** 2
    w, step, x = 1.0, math.exp(r * r * (here - c - 0.5)), here
    while x > 0 and w > TINY * total:
        w *= step * x / (x - 1 + a)
        step *= shrink
        x -= 1
        total += w
        first += w * (x - here)
        second += w * (x - here) ** 2
    return total, first, second


@numba.njit(cache=True, error_model="numpy")
def count_moments(centre: Any, sd: Any, shapes: Any) -> Any:
    """Mean and variance of each count, (counts, 2)."""
    out = np.empty((centre.size, 2))
    for j in range(centre.size):
        here = _mode(centre[j], 1 / sd[j], shapes[j])
        total, first, second = _sums(here, centre[j], 1 / sd[j], shapes[j])
        out[j, 0] = here + first / total
        out[j, 1] = second / total - (first / total) ** 2
    return out


@numba.njit(cache=True, error_model="numpy")
def _total(here: Any, c: Any, r: Any, whole: Any) -> Any:
    """The sum over 0, 1, ... of flat weights, over that of `here`: the whole, less what is below 0.

    whole: the sum over all integers.
    """
    shrink, w = math.exp(-r * r), math.exp(0.5 * r * r * ((here - c) ** 2 - (1 + c) ** 2))
    step, total = math.exp(-r * r * (1.5 + c)), whole
    while w > TINY * whole:
        total -= w
        w *= step
        step *= shrink
    return total


@numba.njit(cache=True, error_model="numpy")
def _outwards(target: Any, here: Any, c: Any, r: Any, a: Any, least: Any) -> Any:
    """Where weights, over that of `here` and added up from it outwards, pass the target.

    Counts are not below `least`, and weights fall on both sides of `here`.
    """
    tiny = TINY * (1 + target)
    target -= 1.0
    shrink, more = math.exp(-r * r), math.exp(-r * r * (here - c + 0.5))
    high, up = here, 1.0
    low, down, less = here, 1.0, math.exp(r * r * (here - c - 0.5))
    while target >= 0:
        up *= more if a == 1 else more * (high + a) / (high + 1)
        more *= shrink
        high += 1
        target -= up
        if target < 0:
            return high
        if low > least:
            down *= less if a == 1 else less * low / (low - 1 + a)
            less *= shrink
            low -= 1
            target -= down
            if target < 0:
                return low
        if up <= tiny and (low == least or down <= tiny):
            break  # rounding: the weights add up to less than their known sum
    return here


@numba.njit(cache=True, error_model="numpy")
def draw_count(rng: Any, c: Any, r: Any, a: Any) -> Any:
    """A count, and the logarithm of what its weight is too small by (in units of sqrt(2 pi) / r).

    That is the sum of all weights; or, far from 0, the factor of the model at the count, which is 0
    below 0.
    """
    here = max(np.int64(round(c)), np.int64(0))
    smooth = c > 0 and r <= SMOOTH
    whole = math.exp(0.5 * (r * (here - c)) ** 2 + HALF_LOG_2_PI) / r if smooth else 0.0
    if smooth and c * r > (CLEAR if a == 1 else FLAT):
        x = _outwards(rng.random() * whole, here, c, r, 1.0, -FAR)
        if x < 0:
            return x, -np.inf
        return x, 0.0 if a == 1 else _log_gamma(x + a) - _log_gamma(x + 1.0)
    if a == 1 and smooth:
        total = _total(here, c, r, whole)
    else:
        here = _mode(c, r, a)
        total = _sums(here, c, r, a)[0]
    mass = math.log(total * r) - HALF_LOG_2_PI - 0.5 * (r * (here - c)) ** 2
    if a != 1:
        mass += _log_gamma(here + a) - _log_gamma(here + 1.0)
    return _outwards(rng.random() * total, here, c, r, a, np.int64(0)), mass


@numba.njit(cache=True, error_model="numpy")
def draw_block(rng: Any, first: Any, pull: Any, factor: Any, centre: Any, law: Any, away: Any,
               log_weights: Any) -> None:  # fmt: skip
    """Counts first, first + 1, ... of every draw, given those before, in place.

    factor: R of all counts; away: counts minus centre, (counts, draws); pull: R times away over the
    counts before the block, (counts of the block, draws). law: origin o, slope b, bend k and shape
    a of each count: exp(b (x - o) - k (x - o)^2 / 2) stands for the factor of the model in R and in
    the centre, and is divided out.
    """
    for row in range(pull.shape[0]):
        j = first + row
        for k in range(first, j):
            for i in range(away.shape[1]):
                pull[row, i] += factor[j, k] * away[k, i]
        origin, slope, bend, a = law[j]
        square = factor[j, j] ** 2
        r = math.sqrt(square - bend)
        for i in range(away.shape[1]):
            e = centre[j] - pull[row, i] / factor[j, j] - origin
            lean = (square * e - slope) / r
            x, mass = draw_count(rng, origin + lean / r, r, a)
            away[j, i] = x - centre[j]
            log_weights[i] += mass + 0.5 * (lean * lean - square * e * e)
