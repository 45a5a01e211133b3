"""The paper's Algorithm 1 and its rejection sampler, compiled. Studies only: not for a release.

A proposal is drawn cell by cell, small counts first, and given up at the first negative cell. A
cell's noise is read off a table by 16 bits where these decide it, and by inversion of 64 bits more
where they do not.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

OPEN = np.iinfo(np.int16).min  # the 16 bits do not decide


@numba.njit(cache=True)
def invert(v: Any, a: Any) -> Any:
    """The smallest u with F(u) >= v for the double geometric law: the corrected quantile."""
    if v <= 1.0 / (1.0 + a):
        return int(np.ceil((-np.log(v) - np.log1p(a)) / np.log(a)))
    return int(np.ceil((np.log1p(-v) + np.log1p(a)) / np.log(a))) - 1


@numba.njit(cache=True)
def propose(words: Any, at: Any, proposal: Any, u: Any, sums: Any) -> Any:
    """One proposal into u: (words used, whether it conforms).

    proposal: (decided noise, a, what the printed quantile adds to positive values, cells in the
    order they are drawn, counts, cells that are solved for with how, rows of A).
    """
    table, a, hole, cells, s, solve, rows = proposal
    bits, left = np.uint64(0), 0
    sums[:] = 0
    for cell in cells:
        if left == 0:
            bits, left = words[at], 4
            at += 1
        piece = int(bits & np.uint64(0xFFFF))
        bits >>= np.uint64(16)
        left -= 1
        noise = int(table[piece])
        if noise == OPEN:
            v = (piece + (float(words[at]) + 0.5) * 2.0**-64) * 2.0**-16
            noise = invert(v, a)
            at += 1
        if noise > 0:
            noise += hole
        if s[cell] + noise < 0:
            return at, False
        u[cell] = noise
        for r in range(rows.shape[0]):
            sums[r] += rows[r, cell] * noise
    for j in range(solve.shape[0]):
        cell, noise = solve[j, 0], 0
        for r in range(rows.shape[0]):
            noise -= solve[j, 1 + r] * sums[r]
        if s[cell] + noise < 0:
            return at, False
        u[cell] = noise
    return at, True


@numba.njit(cache=True)
def norms(u: Any, solve: Any) -> Any:
    """||u||_1 inside the index set, and on the cells that are solved for."""
    outer = 0
    for j in range(solve.shape[0]):
        outer += abs(u[solve[j, 0]])
    return np.abs(u).sum() - outer, outer


@numba.njit(cache=True)
def chain(
    words: Any, proposal: Any, law: Any, state: Any, trace: Any, distance: Any, start: Any
) -> Any:
    """Steps of Algorithm 1 until words or room run out: (next step, accepted).

    law: eps of p and of q. state is updated; trace gets it after each step (if it has room),
    distance its l1 norm.
    """
    eps, eps_q = law
    solve = proposal[5]
    u, sums = np.zeros_like(state), np.zeros(solve.shape[0], np.int64)
    at, accepted, t = 0, 0, start
    reserve = 2 * state.size + 2
    inner, outer = norms(state, solve)
    while t < distance.size and at + reserve < words.size:
        at, fits = propose(words, at, proposal, u, sums)
        if fits:
            inside, outside = norms(u, solve)
            log_ratio = (eps_q - eps) * (inside - inner) - eps * (outside - outer)
            v = (float(words[at]) + 0.5) * 2.0**-64
            at += 1
            if np.log(v) < log_ratio:
                state[:] = u
                inner, outer = inside, outside
                accepted += 1
        distance[t] = inner + outer
        if trace.shape[0]:
            trace[t] = state
        t += 1
    return t, accepted


@numba.njit(cache=True)
def reject(words: Any, proposal: Any, law: Any, out: Any, start: Any) -> Any:
    """Exact draws by rejection from the chain's own proposal: (next draw, proposals).

    p/q is exp(-eps outer - (eps - eps_q) inner) up to a constant, largest at u = 0 if eps_q <= eps.
    """
    eps, eps_q = law
    solve = proposal[5]
    u, sums = np.zeros(out.shape[1], np.int64), np.zeros(solve.shape[0], np.int64)
    at, proposals, row = 0, 0, start
    reserve = 2 * u.size + 2
    while row < out.shape[0] and at + reserve < words.size:
        at, fits = propose(words, at, proposal, u, sums)
        proposals += 1
        if fits:
            inside, outside = norms(u, solve)
            v = (float(words[at]) + 0.5) * 2.0**-64
            at += 1
            if np.log(v) < -eps * outside - (eps - eps_q) * inside:
                out[row] = u
                row += 1
    return row, proposals


@numba.njit(cache=True)
def decided(a: Any) -> Any:
    """The noise that 16 bits decide, OPEN where they do not."""
    out = np.empty(1 << 16, np.int16)
    for piece in range(1 << 16):
        first = invert((piece + 2.0**-40) * 2.0**-16, a)
        last = invert((piece + 1 - 2.0**-36) * 2.0**-16, a)
        sure = first == last and abs(first) < 10_000 and 0 < piece < (1 << 16) - 1
        out[piece] = first if sure else OPEN
    return out


@numba.njit(cache=True)
def poisson(v: Any, f: Any) -> Any:
    """h with sum_j min(v_i, v_j) (h_i - h_j) / n = f_i and sum h = 0; v ascending, sum f = 0.

    Forward substitution: states before i enter by flow and carried, those after it by the total,
    which the condition on the sum makes known.
    """
    n = v.size
    h = np.empty(n)
    flow, carried, total = 0.0, 0.0, 0.0
    for i in range(n):
        h[i] = (f[i] + carried - v[i] * total) / (flow + v[i] * (n - i) / n)
        flow += v[i] / n
        carried += v[i] * h[i] / n
        total += h[i] / n
    return h
