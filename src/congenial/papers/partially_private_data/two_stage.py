"""Post-processing baseline: noisy wholes and parts made to agree with a public sum, in two stages.

Stage 1: the nearest real table with sum(wholes) = s and whole >= part >= 0. For a multiplier the
problem splits into pairs, each a projection onto a cone in closed form, and the sum falls in it:
bisection. Stage 2: round down, and add 1 to as many wholes as the sum asks for. The problem is
totally unimodular; what each whole costs with its best part is known, so the K smallest
marginal costs are optimal. Values within `SNAP` of an integer are snapped to it first, because a
floor turns 2.999999 into 2.

partially-private-data, section 4.2, with a sum sign, a plus and the floor offset put back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.inversion import Floats, Ints

SNAP = 1e-6


def nearest_real(wholes: npt.ArrayLike, parts: npt.ArrayLike, total: int) -> tuple[Floats, Floats]:
    """argmin of the l2 distance, for each row: wholes and parts of shape (..., J).

    >>> c, d = nearest_real([[4.0, -2.0]], [[1.0, 3.0]], 3)
    >>> (c.round(6) + 0).tolist(), (d.round(6) + 0).tolist()
    ([[3.0, 0.0]], [[1.0, 0.0]])
    """
    c, d = np.broadcast_arrays(np.asarray(wholes, float), np.asarray(parts, float))
    if total < 0:
        raise StructureError("a sum of counts is negative.", remedy="Give 0 or more.")
    low = np.min(c - np.abs(d), axis=-1) - total - 1.0
    high = np.max(np.abs(c) + np.abs(d), axis=-1) + 1.0
    for _ in range(200):
        middle = (low + high) / 2
        above = _cone(c - middle[..., None], d)[0].sum(axis=-1) >= total
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        if np.all(high - low <= 1e-12 * (1 + np.abs(high))):
            break
    return _cone(c - low[..., None], d)


def _cone(c: Floats, d: Floats) -> tuple[Floats, Floats]:
    """The nearest (whole, part) with whole >= part >= 0."""
    tied = (d > 0) & (c < d)
    middle = np.maximum((c + d) / 2, 0)
    whole = np.where(tied, middle, np.maximum(c, 0))
    return whole, np.where(tied, middle, np.maximum(d, 0))


def rounded(wholes: npt.ArrayLike, parts: npt.ArrayLike, total: int) -> tuple[Ints, Ints]:
    """The nearest whole table above the floors in l1, with the same sum and order."""
    c, d = _snapped(np.asarray(wholes, float)), _snapped(np.asarray(parts, float))
    floor_c, floor_d = np.floor(c), np.floor(d)
    f_c, f_d = c - floor_c, d - floor_d
    tied = floor_c <= floor_d  # the part may only go up with its whole
    free = np.minimum(f_d, 1 - f_d)
    without = f_c + np.where(tied, f_d, free)
    marginal = 1 - f_c + free - without
    needed = (total - floor_c.sum(axis=-1)).astype(np.int64)
    if np.any((needed < 0) | (needed > c.shape[-1])):
        raise StructureError("the wholes do not add up to the sum.", remedy="Project them first.")
    rank = np.argsort(np.argsort(marginal, axis=-1, kind="stable"), axis=-1, kind="stable")
    up = rank < needed[..., None]
    part_up = (f_d > 0.5) & (up | ~tied)
    return (floor_c + up).astype(np.int64), (floor_d + part_up).astype(np.int64)


def _snapped(values: Floats) -> Floats:
    near = np.round(values)
    return np.where(np.abs(values - near) < SNAP, near, values)


def two_stage(wholes: npt.ArrayLike, parts: npt.ArrayLike, total: int) -> tuple[Any, Any]:
    """Both stages: whole tables with this sum and 0 <= part <= whole."""
    return rounded(*nearest_real(wholes, parts, total), total)
