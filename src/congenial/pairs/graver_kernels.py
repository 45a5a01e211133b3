"""Compiled completion of a lattice basis to a set that contains its Graver basis."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def _reduce(vector: Any, rows: Any, norms: Any, count: int) -> Any:
    """Subtract rows (or their negatives) that agree in sign and fit, in place; the norm left."""
    norm = np.abs(vector).sum()
    k = 0
    while norm > 0 and k < count:
        step = 0
        if norms[k] <= norm:
            for sign in (1, -1):
                fits = True
                for c in range(len(vector)):
                    g = sign * rows[k, c]
                    if (g > 0 and vector[c] < g) or (g < 0 and vector[c] > g):
                        fits = False
                        break
                if fits:
                    step = sign
                    break
        if step == 0:
            k += 1
            continue
        for c in range(len(vector)):
            vector[c] -= step * rows[k, c]
        norm -= norms[k]  # the row agreed in sign: nothing cancelled
        k = 0
    return norm


@numba.njit(cache=True)
def complete(basis: Any, most: int) -> Any:
    """Pottier's completion; an empty array if it needs more than `most` rows, up to sign."""
    size = basis.shape[1]
    rows = np.zeros((most, size), dtype=np.int64)
    norms = np.zeros(most, dtype=np.int64)
    count = len(basis)
    if count > most:
        return rows[:0]
    rows[:count] = basis
    for k in range(count):
        norms[k] = np.abs(rows[k]).sum()
    i = 1
    while i < count:
        for j in range(i):
            for sign in (1, -1):
                agree = True
                for c in range(size):
                    if sign * rows[i, c] * rows[j, c] < 0:
                        agree = False
                        break
                if agree:
                    continue  # their sum reduces to nothing
                vector = rows[i] + sign * rows[j]
                norm = _reduce(vector, rows, norms, count)
                if norm > 0:
                    if count == most:
                        return rows[:0]
                    rows[count] = vector
                    norms[count] = norm
                    count += 1
        i += 1
    return rows[:count]
