"""The l2 loss by a Metropolis walk over whole tables, as the paper draws it. Studies only.

A move takes a step from one whole to another, or changes one part; without a public sum it changes
any one cell. Sizes of steps are log-uniform, so that small and large counties both move.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np


@numba.njit(cache=True)
def weight(count: Any, shape: Any) -> Any:
    """log of a cell's factor of the Dirichlet-multinomial law; 0 where there is no prior."""
    if shape == 0.0:
        return 0.0
    return math.lgamma(count + shape) - math.lgamma(count + 1.0)


@numba.njit(cache=True)
def walk(truth: Any, rate: Any, shapes: Any, tied: Any, plan: Any, rng: Any) -> Any:
    """States of one walk from the truth, shape (draws, cells): wholes first, then their parts.

    tied: wholes keep their sum and 0 <= part <= whole. plan: (draws, moves before the first, moves
    between two, largest step).
    """
    draws, burn_in, thin, largest = plan
    cells = truth.size
    size = cells // 2
    y, out = truth.copy(), np.empty((draws, cells), dtype=np.int64)
    square = 0.0
    for move in range(burn_in + thin * draws):
        step = int(math.exp(rng.random() * math.log(largest)))
        if rng.random() < 0.5:
            step = -step
        first = int(rng.random() * cells)
        other = -1
        if tied and first < size:  # a step from one whole to another
            other = int(rng.random() * size)
        allowed = other != first
        if tied and allowed:
            allowed = _inside(y, first, step, size) and (
                other < 0 or _inside(y, other, -step, size)
            )
        if allowed:
            change = _square(y, truth, first, step)
            log_ratio = _prior(y, shapes, first, step)
            if other >= 0:
                change += _square(y, truth, other, -step)
                log_ratio += _prior(y, shapes, other, -step)
            after = max(square + change, 0.0)
            log_ratio -= rate * (math.sqrt(after) - math.sqrt(square))
            if math.log(1.0 - rng.random()) < log_ratio:
                y[first] += step
                if other >= 0:
                    y[other] -= step
                square = after
        if move >= burn_in and (move - burn_in) % thin == thin - 1:
            out[(move - burn_in) // thin] = y
    return out


@numba.njit(cache=True)
def _inside(y: Any, cell: Any, step: Any, size: Any) -> Any:
    """Whether 0 <= part <= whole still holds after a step of one cell."""
    if cell < size:
        return y[cell] + step >= y[cell + size]
    return 0 <= y[cell] + step <= y[cell - size]


@numba.njit(cache=True)
def _square(y: Any, truth: Any, cell: Any, step: Any) -> Any:
    """What a step adds to the squared distance from the truth."""
    away = float(y[cell] - truth[cell])
    return step * (2.0 * away + step)


@numba.njit(cache=True)
def _prior(y: Any, shapes: Any, cell: Any, step: Any) -> Any:
    """What a step adds to the log of the prior."""
    return weight(y[cell] + step, shapes[cell]) - weight(y[cell], shapes[cell])
