"""The same questions as linear programmes: slow, and written without looking at the fast code."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

SLACK = 1e-9  # far below the least difference of masses in the tests


def apart(x, y, norm):
    """All distances between rows of x and rows of y."""
    gap = np.abs(np.atleast_2d(x)[:, None, :] - np.atleast_2d(y)[None, :, :])
    if norm == "hamming":
        return (gap > 0).sum(axis=2).astype(float)
    if norm == "l2":
        return np.sqrt((gap**2).sum(axis=2))
    return gap.max(axis=2) if norm == "linf" else gap.sum(axis=2)


def matched(p, q, allowed):
    """The largest mass that a coupling of p and q puts on allowed pairs."""
    n, m = allowed.shape
    rows = [np.kron(np.eye(n)[i], np.ones(m)) for i in range(n)]
    rows += [np.kron(np.ones(n), np.eye(m)[j]) for j in range(m)]
    found = linprog(
        -allowed.reshape(-1).astype(float),
        A_eq=np.array(rows),
        b_eq=np.array([*map(float, p), *map(float, q)]),
        bounds=(0, None),
        method="highs",
    )
    return -found.fun


def least_w(x, p, y, q, delta=Fraction(0), norm="l1"):
    """The least distance w with matched mass at least 1 - delta, by bisection over distances."""
    d = apart(x, y, norm)
    candidates = np.unique(np.append(d, 0.0))
    low, high = 0, len(candidates) - 1
    while low < high:
        middle = (low + high) // 2
        if matched(p, q, d <= candidates[middle] + 1e-12) >= 1 - float(delta) - SLACK:
            high = middle
        else:
            low = middle + 1
    return candidates[low]


def random_law(rng, n, total, dimension, span):
    """n points with whole coordinates below span, masses out of `total` (some may be zero)."""
    cuts = np.sort(rng.integers(0, total + 1, n - 1))
    weights = np.diff(np.concatenate([[0], cuts, [total]]))
    return rng.integers(0, span, (n, dimension)), [int(w) for w in weights]
