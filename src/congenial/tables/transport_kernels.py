"""Compiled loops: nonnegative least squares on a transport polytope, its nearest whole numbers, and
moves of people between cells.

The units (children of a node) are rows d, the cells of each are columns v. Columns are sorted into
groups whose sums have a precision of their own, and into blocks whose sums are known per unit:

    min  sum_d [ p_d |x_d - t_d|^2 + q_d sum_G (sum_G (x_d - t_d))^2 ] / 2,   x >= 0,
         sum over a block of x_d = rows[d, block],   sum over d of x_dv = columns[v]

**Dual.** With multipliers `along` (rows) and `across` (columns), g_dv = along[d, block of v] +
across[v], the Lagrangian falls apart into units and groups. Inside one group, with S the sum of
x - t over it, p (x_v - t_v) + q S = g_v where x_v > 0: so x_v = max(0, t_v + g_v / p - (q / p) S).
S is the only unknown; as a function of S the right-hand sum is convex and piecewise linear, so
Newton's steps reach it in at most as many steps as the group has cells (`_cells`). The dual is
concave and its gradient is what rows and columns lack (`_shortfalls`).

**Newton** (`_newton`). The gradient is piecewise linear. On a piece, dx_d = W_d dg_d with W_d zero
between groups and, among a group's k positive cells, (I - q / (p + k q) 11') / p
(`_unit_jacobian`). Rows enter one unit only and are eliminated there: with R adding up blocks,
gain = (R W R')^-1 R W leaves the Schur complement W - W R' gain for the columns (`_unit_gains`).
Steps are halved until the dual does not fall (semismooth Newton; Qi and Sun 1993).

**Whole numbers** (`nearest_whole`). Without columns, floors and the largest fractions up are the
nearest (`apportion_rows`). Columns are then made right by one unit after the other, each along the
cheapest chain of exchanges from a column with too many to one with too few: for separable convex
costs, successive shortest paths keep the flow optimal among those with the sums reached so far
(Ahuja, Magnanti and Orlin 1993, section 9.7 and chapter 14). So the result is the nearest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from congenial.data.loops import loop


class TransportProblem(NamedTuple):
    """Targets of units and cells, with their precisions; columns sorted by groups."""

    targets: Any  # (units, cells)
    allowed: Any  # (units, cells): cells that can hold somebody
    p: Any  # per unit: of a cell
    q: Any  # per unit: of a group's sum, beyond that
    starts: Any  # of the groups, and the end of the last
    blocks: Any  # block of each cell, -1 for none


class KnownSums(NamedTuple):
    """Sums that are known: per unit and block, and per column where `has_columns`."""

    rows: Any
    columns: Any
    has_columns: bool


@loop
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
            value += 0.5 * p * (x[v] - t[v]) * (x[v] - t[v]) - g[v] * x[v]
        value += 0.5 * q * moved * moved
    return value


@loop
def _evaluate(problem, sums, along, across, x):  # type: ignore[no-untyped-def]
    """Cells given multipliers of rows (along) and columns (across), and the dual's value."""
    (units, cells), blocks = problem.targets.shape, problem.blocks
    g = np.empty(cells)
    value, linear = 0.0, 0.0
    for d in range(units):
        for v in range(cells):
            g[v] = across[v, 0] + (along[d, blocks[v]] if blocks[v] >= 0 else 0.0)
        t, allowed, p, q = problem.targets[d], problem.allowed[d], problem.p[d], problem.q[d]
        value += _cells(t, allowed, p, q, g, problem.starts, x[d])
        for b in range(sums.rows.shape[1]):
            linear += along[d, b] * sums.rows[d, b]
    value += linear
    if sums.has_columns:
        linear = 0.0
        for v in range(cells):
            linear += across[v, 0] * sums.columns[v]
        value += linear
    return value


@loop
def _shortfalls(problem, sums, x, short, lack):  # type: ignore[no-untyped-def]
    """What rows and columns lack, filled in, and the largest of it."""
    blocks, columns_fixed = problem.blocks, sums.rows.shape[1]
    (units, cells), worst = x.shape, 0.0
    for d in range(units):
        for b in range(columns_fixed):
            short[d, b] = sums.rows[d, b]
    for v in range(cells):
        total = 0.0
        for d in range(units):
            total += x[d, v]
            if blocks[v] >= 0:
                short[d, blocks[v]] -= x[d, v]
        lack[v] = sums.columns[v] - total if sums.has_columns else 0.0
        worst = max(worst, abs(lack[v]))
    for d in range(units):
        for b in range(columns_fixed):
            worst = max(worst, abs(short[d, b]))
    return worst


@loop
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


@loop
def _solve(matrix, right):  # type: ignore[no-untyped-def]
    """Put matrix^-1 right in the place of `right`; uses up the matrix, which is positive definite.

    Elimination in the upper triangle. It compiles in a tenth of the time of a call of LAPACK.
    """
    size, many = right.shape
    for i in range(size):
        for k in range(i + 1, size):
            times = matrix[i, k] / matrix[i, i]
            if times != 0.0:
                for j in range(k, size):
                    matrix[k, j] -= times * matrix[i, j]
                for j in range(many):
                    right[k, j] -= times * right[i, j]
    for i in range(size - 1, -1, -1):
        for j in range(many):
            for k in range(i + 1, size):
                right[i, j] -= matrix[i, k] * right[k, j]
            right[i, j] /= matrix[i, i]


@loop
def _unit_gains(W, blocks, ridge, seen, inverse, gain):  # type: ignore[no-untyped-def]
    """One unit's rows eliminated: (R W R')^-1, with gain = (R W R')^-1 R W, and seen = R W."""
    (count, cells), RWR = seen.shape, np.zeros((seen.shape[0], seen.shape[0]))
    seen[:] = 0.0
    gain[:] = 0.0
    inverse[:] = 0.0
    for v in range(cells):
        if blocks[v] >= 0:
            for w in range(cells):
                seen[blocks[v], w] += W[v, w]
    for v in range(cells):
        if blocks[v] >= 0:
            for b in range(count):
                RWR[b, blocks[v]] += seen[b, v]
    for b in range(count):
        RWR[b, b] += ridge
        inverse[b, b] = 1.0
    _solve(RWR, inverse)
    for b in range(count):
        for a in range(count):
            if inverse[b, a] != 0.0:
                for v in range(cells):
                    gain[b, v] += inverse[b, a] * seen[a, v]


@loop
def _newton(problem, has_columns, x, short, lack, along, across):  # type: ignore[no-untyped-def]
    """The Newton step of the multipliers, filled in: rows are eliminated unit by unit, columns
    solved for, with a little added where nothing settles them.
    """
    p, q, starts, blocks = problem.p, problem.q, problem.starts, problem.blocks
    (units, cells), count = x.shape, short.shape[1]
    W, schur, trace = np.empty((cells, cells)), np.zeros((cells, cells)), 0.0
    values, gains = np.empty((count, cells)), np.empty((units, count, cells))
    inverses = np.empty((units, count, count))
    for v in range(cells):
        across[v, 0] = lack[v]
    for d in range(units):
        _unit_jacobian(x[d], p[d], q[d], starts, W)
        _unit_gains(W, blocks, 1e-9 / p[d], values, inverses[d], gains[d])
        for v in range(cells):
            for w in range(cells):
                schur[v, w] += W[v, w]
        for b in range(count):
            for v in range(cells):
                across[v, 0] -= gains[d, b, v] * short[d, b]
                if values[b, v] != 0.0:
                    for w in range(cells):
                        schur[v, w] -= values[b, v] * gains[d, b, w]
    for v in range(cells):
        trace += schur[v, v]
    for v in range(cells):
        schur[v, v] += 1e-10 * trace / cells + 1e-9
    if has_columns:
        _solve(schur, across)
    else:
        across[:] = 0.0
    for d in range(units):
        for b in range(count):
            along[d, b] = 0.0
            for a in range(count):
                along[d, b] += inverses[d, b, a] * short[d, a]
            for v in range(cells):
                along[d, b] -= gains[d, b, v] * across[v, 0]


@loop
def _moved(at, step, size, found):  # type: ignore[no-untyped-def]
    """Fill in at + size * step, for multipliers of rows or columns."""
    for d in range(at.shape[0]):
        for b in range(at.shape[1]):
            found[d, b] = at[d, b] + size * step[d, b]


@loop
def fit(problem, sums, steps, goal):  # type: ignore[no-untyped-def]
    """Real cells, and the largest violation of a row or column that is left."""
    t, rows = problem.targets, sums.rows
    along, turn, tried = np.zeros(rows.shape), np.empty(rows.shape), np.empty(rows.shape)
    column = (t.shape[1], 1)
    across, move, moved = np.zeros(column), np.empty(column), np.empty(column)
    x, trial = np.empty(t.shape), np.empty(t.shape)
    short, lack = np.empty(rows.shape), np.empty(t.shape[1])
    dual = _evaluate(problem, sums, along, across, x)
    worst = _shortfalls(problem, sums, x, short, lack)
    for _ in range(steps):
        if worst < goal:
            break
        _newton(problem, sums.has_columns, x, short, lack, turn, move)
        size, now = 1.0, dual
        for _ in range(40):
            _moved(along, turn, size, tried)
            _moved(across, move, size, moved)
            now = _evaluate(problem, sums, tried, moved, trial)
            if now >= dual - 1e-10 * abs(dual) - 1e-9:
                break
            size *= 0.5
        _moved(along, turn, size, along)
        _moved(across, move, size, across)
        dual = now
        x, trial = trial, x
        worst = _shortfalls(problem, sums, x, short, lack)
    return x, worst


@loop
def _unit_by_unit(x, allowed, total, z, have):  # type: ignore[no-untyped-def]
    """The cheapest unit up or down until the sum is right; whether it can be."""
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


def apportion_rows(x: Any, allowed: Any, rows: Any) -> Any:
    """Whole z >= 0 nearest x with these row sums, and whether they exist.

    Floors, and the largest fractions up: a first unit up from the floor costs less than any second
    one or any unit down. Where that does not do, the cheapest unit up or down, one at a time.
    """
    z = np.where(allowed, np.maximum(np.floor(x), 0.0), 0.0).astype(np.int64)
    order = np.argsort(np.where(allowed, z - x, 1.0), axis=1)
    ups = np.minimum(rows - z.sum(axis=1), allowed.sum(axis=1))
    up = np.arange(x.shape[1]) < ups[:, None]
    np.put_along_axis(z, order, np.take_along_axis(z, order, axis=1) + up, axis=1)
    have = z.sum(axis=1)
    for d in np.flatnonzero(have != rows):
        if not _unit_by_unit(x[d], allowed[d], rows[d], z[d], have[d]):
            return z, False
    return z, True


class Rounding(NamedTuple):
    """Real cells, whole ones so far, cells that can hold somebody, and the weight of each unit."""

    x: Any
    z: Any
    allowed: Any
    weight: Any


@loop
def _exchange(state, i, j, cost, who):  # type: ignore[no-untyped-def]
    """The cheapest unit that moves one from column i to column j."""
    x, z, allowed, weight = state.x, state.z, state.allowed, state.weight
    cost[i, j] = np.inf
    for d in range(x.shape[0]):
        if z[d, i] > 0 and allowed[d, j]:
            price = weight[d] * (2.0 * (z[d, j] - x[d, j]) - 2.0 * (z[d, i] - x[d, i]) + 2.0)
            if price < cost[i, j]:
                cost[i, j] = price
                who[i, j] = d


@loop
def _passes(before, last, column):  # type: ignore[no-untyped-def]
    """Whether the path to `last` passes a column."""
    while last >= 0:
        if last == column:
            return True
        last = before[last]
    return False


@loop
def _shortest(cost, have, columns, before):  # type: ignore[no-untyped-def]
    """Distances from columns with too many; `before` is the column a shortest path comes from.

    Paths never close: rounding could make a cycle look shorter than nothing.
    """
    cells = have.size
    distance = np.empty(cells)
    for v in range(cells):
        distance[v] = 0.0 if have[v] > columns[v] else np.inf
        before[v] = -1
    for _ in range(cells):
        changed = False
        for i in range(cells):
            if distance[i] < np.inf:
                for j in range(cells):
                    shorter = i != j and distance[i] + cost[i, j] < distance[j] - 1e-9
                    if shorter and not _passes(before, i, j):
                        distance[j] = distance[i] + cost[i, j]
                        before[j] = i
                        changed = True
        if not changed:
            break
    return distance


@loop
def _move_along(z, before, who, last, touched):  # type: ignore[no-untyped-def]
    """Move one unit along the path that ends at a column; the column it starts from."""
    touched[:] = False
    j = last
    while before[j] >= 0:
        i = before[j]
        z[who[i, j], i] -= 1
        z[who[i, j], j] += 1
        touched[i] = touched[j] = True
        j = i
    return j


@loop
def _reach_columns(state, have, columns):  # type: ignore[no-untyped-def]
    """Move units along cheapest chains until the columns sum up, in place; whether they can."""
    z, cells = state.z, have.size
    cost, who = np.empty((cells, cells)), np.zeros((cells, cells), np.int64)
    before, touched = np.empty(cells, np.int64), np.ones(cells, np.bool_)
    while True:
        for i in range(cells):
            for j in range(cells):
                if touched[i] or touched[j]:
                    _exchange(state, i, j, cost, who)
        distance = _shortest(cost, have, columns, before)
        last = -1
        for v in range(cells):
            if have[v] < columns[v] and (last < 0 or distance[v] < distance[last]):
                last = v
        if last < 0:
            return True
        if distance[last] == np.inf:
            return False
        have[_move_along(z, before, who, last, touched)] -= 1
        have[last] += 1


def nearest_whole(x: Any, allowed: Any, weight: Any, rows: Any, columns: Any) -> Any:
    """Whole z >= 0 with these row and column sums and the least sum of weight (z - x)^2."""
    z, fine = apportion_rows(x, allowed, rows)
    if not fine or rows.sum() != columns.sum():
        return z, False
    return z, _reach_columns(Rounding(x, z, allowed, weight), z.sum(axis=0), columns)


# ---- people who move between cells of tables that cross ------------------------------------------


class CellIndex(NamedTuple):
    """Which cells each cell of each table adds up, and which cells people may move between.

    Cell number c of table b adds up members[b, starts[b, c] : starts[b, c + 1]]. The cells of class
    k (told apart by no figure) are classes[k] .. classes[k + 1] - 1; `free` cells no figure counts.
    """

    numbers: Any  # (tables, cells): the cell of the table that a cell belongs to
    members: Any
    starts: Any
    classes: Any
    free: Any


@loop
def move_people(z, pull, index, moves):  # type: ignore[no-untyped-def]
    """Move people one at a time, `z` in place, where the sum of squared distances falls most.

    With o_b the distances of table b's cells, pull_i is the sum over b of o_b at the cell that i
    belongs to: half the derivative by z_i. One person more in i and one less in j changes the sum
    by 2 (pull_i - pull_j) + 2 |tables that tell i and j apart|; one more (less) in i alone by
    2 pull_i + |tables| (-2 pull_i + |tables|). Stops where nothing falls.
    """
    for _ in range(moves):
        gain, up, down = _best_alone(z, pull, index)
        other, enter, leave = _best_exchange(z, pull, index)
        if other < gain or (other == gain and enter < up):
            gain, up, down = other, enter, leave
        if gain >= 0.0:
            break
        _pulled(pull, index, up, down)
        if up >= 0:
            z[up] += 1
        if down >= 0:
            z[down] -= 1


@loop
def _pulled(pull, index, up, down):  # type: ignore[no-untyped-def]
    """The pulls after one person more in a cell and one less in another; -1 for none."""
    for b in range(index.numbers.shape[0]):
        enter = index.numbers[b, up] if up >= 0 else -1
        leave = index.numbers[b, down] if down >= 0 else -1
        if enter == leave:
            continue
        if enter >= 0:
            for k in range(index.starts[b, enter], index.starts[b, enter + 1]):
                pull[index.members[b, k]] += 1.0
        if leave >= 0:
            for k in range(index.starts[b, leave], index.starts[b, leave + 1]):
                pull[index.members[b, k]] -= 1.0


@loop
def _best_alone(z, pull, index):  # type: ignore[no-untyped-def]
    """The best move in or out of a cell that no figure counts: gain, cell entered, cell left."""
    enter, leave, tables = -1, -1, index.numbers.shape[0]
    for i in index.free:
        if enter < 0 or pull[i] < pull[enter]:
            enter = i
        if z[i] > 0 and (leave < 0 or pull[i] > pull[leave]):
            leave = i
    if enter < 0:
        return 0.0, -1, -1
    if leave >= 0 and -pull[leave] <= pull[enter]:
        return -2.0 * pull[leave] + tables, -1, leave
    return 2.0 * pull[enter] + tables, enter, -1


@loop
def _best_exchange(z, pull, index):  # type: ignore[no-untyped-def]
    """The best move between two cells that no figure tells apart: gain, cell entered, cell left.

    "Best" before the tables that tell the two apart are counted, which is quick and nearly so.
    """
    best, up, down = np.inf, -1, -1
    for k in range(index.classes.size - 1):
        enter, leave, low, high = -1, -1, np.inf, -np.inf
        for i in range(index.classes[k], index.classes[k + 1]):
            if pull[i] < low:
                enter, low = i, pull[i]
            if pull[i] > high and z[i] > 0:
                leave, high = i, pull[i]
        if low - high < best:
            best, up, down = low - high, enter, leave
    if up == down:
        return 0.0, -1, -1
    apart = 0
    for b in range(index.numbers.shape[0]):
        apart += index.numbers[b, up] != index.numbers[b, down]
    return 2.0 * best + 2.0 * apart, up, down
