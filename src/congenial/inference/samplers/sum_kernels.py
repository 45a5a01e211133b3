"""Compiled loops over trees of sums: independent counts given what they sum to, drawn exactly.

The law of a sum is the convolution of the laws of its two halves, down to single counts. Going back
from the root, a sum s splits into l and s - l with weight left(l) right(s - l): an exact draw, with
nothing to reject, of all counts of a group given its total.

Laws end where what is left is below 1e-18 of their mass (as in `count_kernels`), and are built from
positive numbers only. A forest is the tuple

    left, right       children of each node, -1 for a single count; children have smaller numbers
    low, begin, size  first value of each node's law, and where its weights are in `pool`
    unit, mean, spread, pool   what the weights were divided by; moments of the law; all weights
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from congenial.inference.samplers.count_kernels import TINY, cell_law


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
    made, work = y.size, 0.0
    for g in range(roots.size):
        row = np.arange(starts[g], starts[g + 1])
        while row.size > 1:
            half = row.size // 2
            for i in range(half):
                one, two = row[2 * i], row[2 * i + 1]
                work += laws[one].size * float(laws[two].size)
                if work > most:
                    return roots, (left, right, low, begin, size, unit, unit, unit, unit), False
                law = _convolve(laws[one], laws[two])
                first, last = _trim(law)
                unit[made] = law.max()
                laws.append(law[first:last] / unit[made])
                left[made], right[made], low[made] = one, two, low[one] + low[two] + first
                row[i] = made
                made += 1
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
        one = pool[begin[a] : begin[a] + size[a]]
        two = pool[begin[b] : begin[b] + size[b]]
        share = spread[a] / max(spread[a] + spread[b], 1e-300)
        for i in range(sums.shape[1]):
            total = sums[node, i]
            near = np.int64(round(mean[a] + share * (total - mean[a] - mean[b])))
            target = rng.random() * law[total - low[node]] * unit[node]
            sums[a, i] = _split(total, one, low[a], two, low[b], near, target)
            sums[b, i] = total - sums[a, i]
