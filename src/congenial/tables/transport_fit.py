"""Whole counts of the children of one node: least squares, then the nearest whole numbers.

A transport problem has whole vertices, so whole counts with the row and column sums always exist
where real ones do, and the nearest ones are found exactly. Steps of the least squares fit are
limited; should it stop far from the sums, its values are first made to have them (`filled`).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from math import e, pi
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError

STEPS = 300
GOAL = 1e-6  # largest violation of a sum at which the real fit stops
ENOUGH = 1e-2  # largest violation that rounding to whole numbers takes
TIES = 1e-6  # fractions nearer to each other than this are told apart by chance
STEP, OFF = 16 / pi, 1 / e  # of targets, as numbers by which ties are broken
GRID = 2.0**-26  # of real cells before rounding: sums of their differences are exact


@dataclass(frozen=True, eq=False)
class Children:
    """Children of one node: what they should be near to, and the sums they must have.

    `targets[d, v]` with precision `p[d]` per cell and `q[d]` per sum of a group; `groups[v]`
    numbers the groups, `blocks[v]` the blocks of known sum (-1: none); `rows[d, block]` are these.
    `columns[v]` are the parent's counts, None for a node without a parent.
    """

    targets: Floats = field(repr=False)
    p: Floats
    q: Floats
    groups: Ints
    blocks: Ints
    rows: Ints = field(repr=False)
    columns: Ints | None = field(repr=False, default=None)

    @property
    def allowed(self) -> Any:
        """Cells that can hold somebody: no known sum that contains them is zero."""
        block = np.where(self.blocks >= 0, self.blocks, 0)
        open_rows = (self.rows[:, block] > 0) if self.rows.shape[1] else np.ones((1, 1), bool)
        allowed = np.where(self.blocks >= 0, open_rows, True)
        if self.columns is not None:
            allowed = allowed & (self.columns > 0)
        return np.ascontiguousarray(np.broadcast_to(allowed, self.targets.shape))


def real_fit(children: Children) -> tuple[Floats, float]:
    """The nonnegative least squares fit, and the largest violation of a sum that is left."""
    from congenial.tables.transport_kernels import KnownSums, TransportProblem, fit  # compiles

    order = np.argsort(children.groups, kind="stable")
    starts = np.searchsorted(children.groups[order], np.arange(children.groups.max() + 2))
    scale = float(children.p.max())
    columns = children.columns
    problem = TransportProblem(
        np.ascontiguousarray(children.targets[:, order]),
        np.ascontiguousarray(children.allowed[:, order]),
        np.ascontiguousarray(children.p / scale),
        np.ascontiguousarray(children.q / scale),
        starts,
        np.ascontiguousarray(children.blocks[order]),
    )
    targets = np.zeros(len(order)) if columns is None else columns[order].astype(float)
    rows = np.ascontiguousarray(children.rows, dtype=float)
    sums = KnownSums(rows, targets, columns is not None)
    x, worst = fit(problem, sums, STEPS, GOAL)
    fitted = np.empty_like(x)
    fitted[:, order] = x
    return fitted, float(worst)


def whole_fit(children: Children) -> Ints:
    """Whole counts near the least squares fit, with every known sum."""
    x, worst = real_fit(children)
    whole = np.zeros(x.shape, dtype=np.int64)
    allowed = children.allowed
    x = without_ties(x, children.targets)
    for block in np.unique(children.blocks):
        inside = np.flatnonzero(children.blocks == block)
        if worst > ENOUGH and block >= 0 and children.columns is not None:
            sums = children.rows[:, block], children.columns[inside]
            x[:, inside] = filled(x[:, inside], *sums)
        whole[:, inside] = _round(children, x, allowed, inside, int(block))
    return whole


def filled(x: Floats, rows: Ints, columns: Ints) -> Ints:
    """Whole numbers near x with these sums: as much of x as fits, and what is missing in order.

    >>> filled(np.array([[9.0, 1.0, 1.0], [0.0, 2.0, 0.0]]), np.array([4, 2]), np.array([3, 2, 1]))
    array([[3, 0, 1],
           [0, 2, 0]])
    """
    z = np.maximum(x, 0)
    z = np.floor(z * _less(rows, z.sum(axis=1))[:, None])
    z = np.floor(z * _less(columns, z.sum(axis=0)) + 1e-9).astype(np.int64)
    left, wanted = rows - z.sum(axis=1), columns - z.sum(axis=0)
    ends = np.cumsum(left)[:, None], np.cumsum(wanted)
    starts = ends[0] - left[:, None], ends[1] - wanted
    return np.asarray(z + np.maximum(np.minimum(*ends) - np.maximum(*starts), 0))


def _less(sums: Ints, have: Floats) -> Floats:
    """The factors, at most 1, by which sums that are too large come down."""
    return np.asarray(np.minimum(1.0, sums / np.maximum(have, 1e-300)))


def without_ties(x: Floats, targets: Floats) -> Floats:
    """x on a grid, moved by so little that fractions which were equal differ, everywhere alike."""
    return np.asarray(np.rint((x + TIES * _chances(targets)) / GRID) * GRID)


def _chances(targets: Floats) -> Floats:
    """Numbers between 0 and 1 by which ties are broken: no cell is favoured over many releases.

    A function of the targets, so that whoever has these can fit again. Their last bits differ
    between processors, and estimates are often simple fractions: rounded to steps that no fraction
    is the middle of, both give the same numbers.
    """
    seed = zlib.crc32(np.rint(targets * STEP + OFF).astype(np.int64).tobytes())
    return np.random.default_rng(seed).random(targets.shape)


def as_near_as_the_fit(children: Children, counts: Ints) -> bool:
    """Whether counts with the right sums are as near as the fit, ties and rounding aside."""
    fitted = whole_fit(children)
    least = distance(children, fitted)
    slack = 4 * TIES * fitted.size * float((children.p + children.q).max()) + 1e-9 * least
    return distance(children, counts) <= least + slack


def distance(children: Children, counts: Ints) -> float:
    """What the fit makes small: precisions times squared distances of cells and groups' sums."""
    off = counts - children.targets
    sums = np.zeros((len(off), int(children.groups.max()) + 1))
    np.add.at(sums.T, children.groups, off.T)
    return float(children.p @ (off**2).sum(axis=1) + children.q @ (sums**2).sum(axis=1))


def _round(children: Children, x: Floats, allowed: Any, inside: Ints, block: int) -> Ints:
    """Nearest whole numbers in one block; sums that are not known are left open."""
    from congenial.tables.transport_kernels import apportion_rows, nearest_whole

    part, free = np.ascontiguousarray(x[:, inside]), np.ascontiguousarray(allowed[:, inside])
    columns = None if children.columns is None else children.columns[inside]
    if block < 0 and columns is None:
        return np.asarray(np.where(free, np.floor(part + 0.5), 0).astype(np.int64))
    if block < 0:  # only columns are known: each is apportioned on its own
        rounded, done = apportion_rows(np.ascontiguousarray(part.T), free.T.copy(), columns)
        rounded = rounded.T
    elif columns is None:
        rounded, done = apportion_rows(part, free, children.rows[:, block].copy())
    else:
        weight, rows = children.p / children.p.max(), children.rows[:, block].copy()
        rounded, done = nearest_whole(part, free, weight, rows, columns)
    if not done:
        raise StructureError(
            "no whole counts have the sums that the figures and the coarser counts ask for.",
            remedy="Check that all figures come from one dataset.",
        )
    return np.asarray(rounded)
