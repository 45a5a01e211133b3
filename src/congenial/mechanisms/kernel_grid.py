"""Real noise on the kernel of the figures, put on a grid: nothing in its last bits, sums exact.

Sums of a count and a real draw exist in double precision for some counts and not for others, and
show it in their low-order bits. So noise v on the kernel is rounded to R(v), a multiple of `step`
whose published sums are zero exactly. R is equivariant: R(v + step * w) = R(v) + step * w for every
whole table w of the kernel. With 1 / step whole, y = phi(x) + R(v) = x_0 + R(phi(x) - x_0 + v) for
any conforming x_0: the rounded release is a function of the one with real numbers, which is free,
and all conforming tables share one lattice of results.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from flint import fmpz_mat

from congenial.errors import StructureError
from congenial.figures.integers import kernel
from congenial.figures.lattice import Ints, is_grid
from congenial.figures.support import LOOSE, Support
from congenial.figures.ties import Pattern
from congenial.sampling.inversion import Floats

REMEDY = "Use mechanism = 'congenial_gaussian' with rho, or release fewer categories."
LARGEST_TIE = 2_000  # groups whose equations are solved in whole numbers of Python


class KernelGrid:
    """R on tables of shape (..., cells); cells move by a few steps (`deviation`).

    Inside a group running sums are rounded and their differences taken, the last one being the
    group's own sum: 0, or for tied groups a rounded solution of the equations.
    """

    def __init__(self, support: Support, step: float) -> None:
        self.support, self.step = support, step
        flat = support.labels.reshape(-1)
        self._loose = np.flatnonzero(flat == LOOSE)
        inside = np.flatnonzero(flat >= 0)
        self._cells = inside[np.argsort(flat[inside], kind="stable")]
        label = flat[self._cells]
        self._ends = np.flatnonzero(np.diff(label, append=-1))
        self._group = label[self._ends]
        self._place = np.searchsorted(self._group, label)  # which of the groups a cell is in
        grids = {pattern: TieGrid(pattern) for pattern in {tie.pattern for tie in support.ties}}
        self._ties = [(tie, grids[tie.pattern]) for tie in support.ties]

    @property
    def deviation(self) -> float:
        """About by how much the worst cell moves, in steps: much only where weights are large."""
        return 1 + max((grid.deviation for _, grid in self._ties), default=0.0)

    def apply(self, v: Any) -> Floats:
        """R(v) for tables v of the kernel."""
        units = np.asarray(v, dtype=np.float64) / self.step
        out = np.zeros_like(units)
        out[..., self._loose] = np.round(units[..., self._loose])
        running = np.cumsum(units[..., self._cells], axis=-1)
        before = np.zeros((*running.shape[:-1], len(self._ends)))
        before[..., 1:] = running[..., self._ends[:-1]]
        ends = running[..., self._ends] - before  # the groups' own sums
        whole = np.round(running - before[..., self._place])
        whole[..., self._ends] = self._sums(ends)
        parts = np.diff(whole, axis=-1, prepend=0.0)
        starts = self._ends[:-1] + 1
        parts[..., starts] = whole[..., starts]
        out[..., self._cells] = parts
        return np.asarray(out * self.step)

    def _sums(self, sums: Floats) -> Floats:
        """Whole sums of the groups that satisfy every equation: 0 where a group stands alone."""
        found = np.zeros_like(sums)
        for tie, grid in self._ties:
            at = np.searchsorted(self._group, tie.groups)
            found[..., at] = grid.apply(sums[..., at])
        return found


class TieGrid:
    """Whole solutions T of `equations @ T = 0` near real ones, equivariantly.

    For the margins of a complete table of groups sums over corners are rounded and differences
    taken; a margin that is zero stays so. Otherwise coordinates in a short basis of the solutions.
    """

    def __init__(self, pattern: Pattern) -> None:
        features, shape = pattern.features, pattern.shape
        self.shape: tuple[int, ...] | None = None
        if features is not None and shape is not None and is_grid(features):
            self.shape = shape
            self._places: Ints = np.ravel_multi_index(tuple(features.T), shape)
            return
        sums = pattern.equations.shape[1]
        if sums > LARGEST_TIE:
            raise StructureError(
                f"{sums:,} sums are tied by equations other than margins; real-valued noise "
                f"allows at most {LARGEST_TIE:,}.",
                remedy=REMEDY,
            )
        self._basis = short_basis(pattern.equations).astype(np.float64)
        self._coordinates = np.linalg.pinv(self._basis)

    @property
    def deviation(self) -> float:
        """About by how much the worst sum moves, in steps: each rounding moves by 1 / sqrt(12)."""
        if self.shape is not None:
            return float((2 ** len(self.shape) / 12) ** 0.5)
        return float(((self._basis**2).sum(axis=0).max(initial=0) / 12) ** 0.5)

    def apply(self, sums: Floats) -> Floats:
        """Whole sums that satisfy the equations, for real ones that do up to rounding."""
        if self.shape is None:
            return np.asarray(np.round(sums @ self._coordinates) @ self._basis)
        table = np.zeros((*sums.shape[:-1], prod(self.shape)))
        table[..., self._places] = sums
        table = table.reshape(*sums.shape[:-1], *self.shape)
        axes = range(table.ndim - len(self.shape), table.ndim)
        for axis in axes:
            table = np.cumsum(table, axis=axis)
        table = np.round(table)
        for axis in axes:
            table = np.diff(table, axis=axis, prepend=0.0)
        return np.asarray(table.reshape(*sums.shape[:-1], -1)[..., self._places])


def short_basis(equations: Ints) -> Ints:
    """A basis of all whole solutions, one row per vector; reduced where it is not short."""
    try:
        basis = kernel(equations).basis
        if np.abs(basis).max(initial=0) <= 1:
            return basis
        reduced = fmpz_mat(basis.tolist()).lll().tolist()
        return np.array([[int(v) for v in row] for row in reduced], dtype=np.int64)
    except OverflowError:
        raise StructureError(
            "the published figures have weights too large for noise on real numbers.",
            remedy=REMEDY,
        ) from None
