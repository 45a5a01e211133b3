"""The gauge of a two-way table in rational arithmetic, for decisions that doubles leave open.

The simplex method of `gauge_kernels` on rationals, from the basis where the doubles stopped, which
is nearly always optimal already. Ties are broken lexicographically, so it ends (Dantzig, Orden and
Wolfe 1955).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat, fmpz_mat

from congenial.sampling.inversion import Floats, Ints

Rational = Any  # flint's fmpq


def exact_gauge(w: Ints, hexagons: bool, basis: Floats) -> Fraction:
    """gauge(w) of an integer table with zero margins.

    basis: rows are generators in coordinates (the cells outside the last row and column), a start;
    if it does not serve, the corner swaps do.
    """
    b = [int(v) for v in w[:-1, :-1].reshape(-1)]
    start = _started(b, [[int(v) for v in row] for row in basis])
    if start is None:
        signs = [1 if v >= 0 else -1 for v in b]
        start = _started(b, [[s * (k == m) for m in range(len(b))] for k, s in enumerate(signs)])
    assert start is not None
    x, inverse = start
    n = len(b)
    # `inverse` as it changes, times the matrix it started from: the identity breaks ties
    ties = [[fmpq(int(k == m)) for m in range(n)] for k in range(n)]
    while True:
        y = np.zeros(w.shape, dtype=object) + fmpq(0)
        y[:-1, :-1] = np.array([sum(column, fmpq(0)) for column in zip(*inverse, strict=True)],
                               dtype=object).reshape(w.shape[0] - 1, w.shape[1] - 1)  # fmt: skip
        best, generator = _separate(y, hexagons)
        if best <= 1:
            total = sum(x, fmpq(0))
            return Fraction(int(total.p), int(total.q))
        _pivot([int(v) for v in generator[:-1, :-1].reshape(-1)], x, inverse, ties)


def _started(b: list[int], basis: list[list[int]]) -> tuple[list[Any], list[list[Any]]] | None:
    """x and the inverse of a basis, or None if it is none or x is not feasible."""
    columns = fmpz_mat(basis).transpose()
    if columns.det() == 0:
        return None
    inverse = fmpq_mat(columns).inv()
    x = inverse * fmpq_mat(fmpz_mat([[v] for v in b]))
    found = [x[k, 0] for k in range(len(b))]
    return None if min(found) < 0 else (found, inverse.tolist())


def _separate(y: Any, hexagons: bool) -> tuple[Rational, Ints]:
    """The largest <Y, g> over generators g, and one that attains it."""
    r = y.shape[0]
    at, d = {}, {}
    for i in range(r):
        for k in range(r):
            gaps = list(y[i] - y[k])
            d[i, k] = max(gaps)
            at[i, k] = gaps.index(d[i, k])
    cycles: list[tuple[int, ...]] = [(i, k) for i in range(r) for k in range(i + 1, r)]
    best = max(cycles, key=lambda rows: _around(d, rows))
    if hexagons:
        triples = [
            (i, k, m)
            for i in range(r)
            for k in range(i + 1, r)
            for m in range(i + 1, r)
            if m != k and len({at[i, k], at[k, m], at[m, i]}) == 3
        ]
        best = max([best, *triples], key=lambda rows: _around(d, rows))
    g = np.zeros(y.shape, dtype=np.int64)
    for i, k in zip(best, (*best[1:], best[0]), strict=True):
        g[i, at[i, k]] += 1
        g[k, at[i, k]] -= 1
    return _around(d, best), g


def _around(d: dict[tuple[int, int], Rational], rows: tuple[int, ...]) -> Rational:
    return sum((d[step] for step in zip(rows, (*rows[1:], rows[0]), strict=True)), fmpq(0))


def _pivot(g: list[int], x: list[Any], inverse: list[list[Any]], ties: list[list[Any]]) -> None:
    """Bring g into the basis, in place."""
    n = len(x)
    step = [sum((a * v for a, v in zip(row, g, strict=True) if v), fmpq(0)) for row in inverse]
    able = [k for k in range(n) if step[k] > 0]
    out = min(able, key=lambda k: [x[k] / step[k], *(t / step[k] for t in ties[k])])
    x[out] /= step[out]
    inverse[out] = [v / step[out] for v in inverse[out]]
    ties[out] = [v / step[out] for v in ties[out]]
    for k in range(n):
        if k != out and step[k] != 0:
            x[k] -= step[k] * x[out]
            inverse[k] = [v - step[k] * o for v, o in zip(inverse[k], inverse[out], strict=True)]
            ties[k] = [v - step[k] * o for v, o in zip(ties[k], ties[out], strict=True)]
