"""Compiled loop of `lattice_chain`."""

from __future__ import annotations

import numba
import numpy as np

from congenial.sampling.inversion import Floats, Ints


@numba.njit(cache=True)
def run_chain(u: Ints, moves: Ints, rate: float, l1: bool, uniform: Floats) -> None:
    """Sweeps over all moves: the step along a move is redrawn given everything else."""
    count, cells = moves.shape
    for d in range(u.shape[0]):
        for at in range(uniform.shape[1]):
            move = moves[at % count]
            size = 0.0
            peak = 0
            for i in range(cells):
                size += abs(move[i]) if l1 else move[i] * move[i]
                if move[i] != 0:
                    peak = max(peak, abs(u[d, i]))
            reach = peak + int(40.0 / (rate * size) if l1 else np.sqrt(40.0 / (rate * size))) + 2
            top, best = -np.inf, 0
            logs = np.empty(2 * reach + 1)
            for t in range(-reach, reach + 1):
                weight = 0.0
                for i in range(cells):
                    if move[i] != 0:
                        value = u[d, i] + t * move[i]
                        weight += abs(value) if l1 else float(value) * value
                logs[t + reach] = -rate * weight
                top = max(top, -rate * weight)
            total = 0.0
            for k in range(2 * reach + 1):
                logs[k] = np.exp(logs[k] - top)
                total += logs[k]
            left = uniform[d, at] * total
            for k in range(2 * reach + 1):
                left -= logs[k]
                best = k - reach
                if left <= 0:
                    break
            for i in range(cells):
                u[d, i] += best * move[i]
