"""Compiled loops: nonnegative least squares on a transport polytope, and its nearest whole numbers.

The units (children of a node) are rows d, the cells of each are columns v. Columns are sorted into
groups whose sums have a precision of their own, and into blocks whose sums are known per unit.

    min  sum_d [ p_d |x_d - t_d|^2 + q_d sum_G (sum_G (x_d - t_d))^2 ] / 2,   x >= 0,
         sum over a block of x_d = rows[d, block],   sum over d of x_dv = columns[v]

is solved through its concave dual by semismooth Newton steps; given multipliers, a group's cells
are x_v = max(0, a_v - (q/p) S) with S the shift of the group's sum, found in at most as many steps
as the group has cells. Rounding is exact: shortest augmenting paths for convex costs.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def _cells(t: Any, allowed: Any, p: float, q: float, g: Any, starts: Any, x: Any) -> float:
    """The cells of one unit given multipliers g, and the Lagrangian's value without constants."""
    value = 0.0
    for group in range(starts.size - 1):
        lo, hi = starts[group], starts[group + 1]
        shift = 0.0
        if q > 0.0:
            for _ in range(hi - lo + 2):
                total, active = 0.0, 0
                for v in range(lo, hi):
                    total -= t[v]
                    if allowed[v] and t[v] + g[v] / p - q / p * shift > 0.0:
                        total += t[v] + g[v] / p
                        active += 1
                new = total / (1.0 + active * q / p)
                if abs(new - shift) <= 1e-12 * (1.0 + abs(new)):
                    shift = new
                    break
                shift = new
        moved = 0.0
        for v in range(lo, hi):
            x[v] = max(0.0, t[v] + g[v] / p - q / p * shift) if allowed[v] else 0.0
            moved += x[v] - t[v]
            value += 0.5 * p * (x[v] - t[v]) ** 2 - g[v] * x[v]
        value += 0.5 * q * moved * moved
    return value


@numba.njit(cache=True)
def _evaluate(t, allowed, p, q, starts, blocks, along, across, x):  # type: ignore[no-untyped-def]
    """Cells of all units given multipliers of rows (along) and columns (across)."""
    units, cells = t.shape
    g = np.empty(cells)
    value = 0.0
    for d in range(units):
        for v in range(cells):
            g[v] = across[v] + (along[d, blocks[v]] if blocks[v] >= 0 else 0.0)
        value += _cells(t[d], allowed[d], p[d], q[d], g, starts, x[d])
    return value


@numba.njit(cache=True)
def _unit_jacobian(x, p, q, starts, W):  # type: ignore[no-untyped-def]
    """Derivative of one unit's cells by their multipliers: zero between groups."""
    W[:] = 0.0
    for group in range(starts.size - 1):
        lo, hi = starts[group], starts[group + 1]
        active = 0
        for v in range(lo, hi):
            active += x[v] > 0.0
        less = q / (p + q * active)
        for v in range(lo, hi):
            if x[v] > 0.0:
                W[v, v] += 1.0 / p
                for w in range(lo, hi):
                    if x[w] > 0.0:
                        W[v, w] -= less / p


@numba.njit(cache=True)
def fit(t, allowed, p, q, starts, blocks, rows, columns, use_columns, steps, goal):  # type: ignore[no-untyped-def]
    """Real cells, and the largest violation of a row or column."""
    units, cells = t.shape
    count = rows.shape[1]
    along, across = np.zeros((units, count)), np.zeros(cells)
    x, trial = np.empty_like(t), np.empty_like(t)
    value = _evaluate(t, allowed, p, q, starts, blocks, along, across, x)
    W = np.empty((cells, cells))
    worst = 0.0
    for _ in range(steps):
        schur, right = np.zeros((cells, cells)), np.zeros(cells)
        short = np.zeros((units, count))
        worst, dual = 0.0, value
        for d in range(units):
            for b in range(count):
                short[d, b] = rows[d, b]
                dual += along[d, b] * rows[d, b]
            for v in range(cells):
                if blocks[v] >= 0:
                    short[d, blocks[v]] -= x[d, v]
            for b in range(count):
                worst = max(worst, abs(short[d, b]))
        if use_columns:
            for v in range(cells):
                right[v] = columns[v] - x[:, v].sum()
                worst = max(worst, abs(right[v]))
                dual += across[v] * columns[v]
        if worst < goal:
            break
        gains = np.zeros((units, count, cells))
        inverses = np.zeros((units, count, count))
        for d in range(units):
            _unit_jacobian(x[d], p[d], q[d], starts, W)
            if count:
                RW = np.zeros((count, cells))
                RWR = np.zeros((count, count))
                for v in range(cells):
                    if blocks[v] >= 0:
                        RW[blocks[v]] += W[v]
                for v in range(cells):
                    if blocks[v] >= 0:
                        RWR[:, blocks[v]] += RW[:, v]
                for b in range(count):
                    RWR[b, b] += 1e-9 / p[d]
                inverses[d] = np.linalg.inv(RWR)
                gains[d] = inverses[d] @ RW
                right -= gains[d].T @ short[d]
                if use_columns:
                    schur += W - RW.T @ gains[d]
            elif use_columns:
                schur += W
        move = np.zeros(cells)
        if use_columns:
            ridge = 1e-10 * np.trace(schur) / cells + 1e-9
            for v in range(cells):
                schur[v, v] += ridge
            move = np.linalg.solve(schur, right)
        turn = np.empty((units, count))
        for d in range(units):
            turn[d] = inverses[d] @ short[d] - gains[d] @ move
        size = 1.0
        for _ in range(40):
            new = _evaluate(
                t, allowed, p, q, starts, blocks, along + size * turn, across + size * move, trial
            )
            now = new + ((along + size * turn) * rows).sum()
            if use_columns:
                now += ((across + size * move) * columns).sum()
            if now >= dual - 1e-10 * abs(dual) - 1e-9:
                break
            size *= 0.5
        along += size * turn
        across += size * move
        value = new
        x[:] = trial
    return x, worst


@numba.njit(cache=True)
def _apportion(x, allowed, total, z):  # type: ignore[no-untyped-def]
    """Whole z >= 0 nearest x with a given sum: the cheapest unit up or down, one at a time."""
    have = 0
    for i in range(x.size):
        z[i] = max(0, int(np.floor(x[i] + 0.5))) if allowed[i] else 0
        have += z[i]
    while have != total:
        best, cost = -1, np.inf
        for i in range(x.size):
            if not allowed[i]:
                continue
            if have < total:
                price = 2.0 * (z[i] - x[i]) + 1.0
            elif z[i] > 0:
                price = 1.0 - 2.0 * (z[i] - x[i])
            else:
                continue
            if price < cost - 1e-12:
                best, cost = i, price
        if best < 0:
            return False
        step = 1 if have < total else -1
        z[best] += step
        have += step
    return True


@numba.njit(cache=True)
def apportion_rows(x, allowed, rows):  # type: ignore[no-untyped-def]
    """Whole z >= 0 nearest x with these row sums, and whether they exist."""
    z = np.zeros(x.shape, np.int64)
    for d in range(x.shape[0]):
        if not _apportion(x[d], allowed[d], rows[d], z[d]):
            return z, False
    return z, True


@numba.njit(cache=True)
def _exchange(x, z, allowed, weight, i, j, cost, who):  # type: ignore[no-untyped-def]
    """The cheapest unit that moves one from column i to column j."""
    cost[i, j] = np.inf
    for d in range(x.shape[0]):
        if z[d, i] > 0 and allowed[d, j]:
            price = weight[d] * (2.0 * (z[d, j] - x[d, j]) - 2.0 * (z[d, i] - x[d, i]) + 2.0)
            if price < cost[i, j]:
                cost[i, j] = price
                who[i, j] = d


@numba.njit(cache=True)
def nearest_whole(x, allowed, weight, rows, columns):  # type: ignore[no-untyped-def]
    """Whole z >= 0 with these row and column sums and the least sum of weight (z - x)^2."""
    cells = x.shape[1]
    z, fine = apportion_rows(x, allowed, rows)
    if not fine or rows.sum() != columns.sum():
        return z, False
    have = z.sum(axis=0)
    cost, who = np.empty((cells, cells)), np.zeros((cells, cells), np.int64)
    for i in range(cells):
        for j in range(cells):
            _exchange(x, z, allowed, weight, i, j, cost, who)
    distance, before = np.empty(cells), np.empty(cells, np.int64)
    while True:
        for v in range(cells):
            distance[v] = 0.0 if have[v] > columns[v] else np.inf
            before[v] = -1
        for _ in range(cells):
            changed = False
            for i in range(cells):
                if distance[i] < np.inf:
                    for j in range(cells):
                        if i != j and distance[i] + cost[i, j] < distance[j] - 1e-9 * weight[0]:
                            distance[j] = distance[i] + cost[i, j]
                            before[j] = i
                            changed = True
            if not changed:
                break
        last = -1
        for v in range(cells):
            if have[v] < columns[v] and (last < 0 or distance[v] < distance[last]):
                last = v
        if last < 0:
            return z, True
        if distance[last] == np.inf:
            return z, False
        j = last
        touched = np.zeros(cells, np.bool_)
        while before[j] >= 0:
            i = before[j]
            z[who[i, j], i] -= 1
            z[who[i, j], j] += 1
            touched[i] = touched[j] = True
            j = i
        have[j] -= 1
        have[last] += 1
        for i in range(cells):
            for j in range(cells):
                if touched[i] or touched[j]:
                    _exchange(x, z, allowed, weight, i, j, cost, who)
