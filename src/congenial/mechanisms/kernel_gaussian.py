"""Gaussian noise on the kernel of the figures, G_mu; and the projection of any additive noise.

semi-dp, Propositions 26 and 28 (Algorithm 1). Two corrections: the noise is projected on the kernel
of the figures, not on the span of S, which can be smaller when conforming databases are not all
connected (docs/errata), and it is calibrated to the true Delta_2 of the declared adjacency. A
projection shortens noise in the l2 norm; in other norms it may not.
"""

from __future__ import annotations

import math
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import fmpz_mat

from congenial.data.arrays import Floats, Ints
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.integers import kernel
from congenial.figures.lattice import is_grid
from congenial.figures.support import LOOSE, Pattern, Support
from congenial.mechanisms.congenial import Conditioned
from congenial.mechanisms.error_laws import NormalSum
from congenial.mechanisms.families import GAUSSIAN
from congenial.mechanisms.mechanism import ErrorLaw, register
from congenial.sampling.canonical import uniform_doubles
from congenial.sampling.randomness import Randomness

# ---- Kernel grid ----
# Real noise on the kernel of the figures, put on a grid: nothing in its last bits, sums exact.
#
# Sums of a count and a real draw exist in double precision for some counts and not for others,
# and show it in their low-order bits. So noise v on the kernel is rounded to R(v), a multiple of
# `step` whose published sums are zero exactly. R is equivariant: R(v + step * w) = R(v) + step *
# w for every whole table w of the kernel. With 1 / step whole, y = phi(x) + R(v) = x_0 + R(phi(x)
# - x_0 + v) for any conforming x_0: the rounded release is a function of the one with real
# numbers, which is free, and all conforming tables share one lattice of results.

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
        out = np.zeros_like(sums)
        for tie, grid in self._ties:
            at = np.searchsorted(self._group, tie.groups)
            out[..., at] = grid.apply(sums[..., at])
        return out


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


_COARSE = 1 / 64  # of a standard deviation: rounding by less adds 1 / 4,000 to the variance
_OFF = 1e-7  # a sum of real noise this far from zero, relative to the noise, is off the kernel


def _inverse(equations: Ints, sizes: Ints) -> Floats:
    """(E D E^T)^+ of one tie."""
    return np.asarray(np.linalg.pinv((equations * sizes) @ equations.T))


class KernelProjection:
    """Orthogonal projection of tables on { u : every published sum of u is zero }.

    With s the group sums of u, D their sizes and E all equations between them (of ties, and one
    for each group of known total), each cell of a group loses the group's entry of E^T (E D E^T)^+
    E s: of a group of known total, its mean. Frozen cells become zero, loose cells stay.

    Proposition 26: if phi(x) + e is f-private among conforming databases, so is phi(x) + P e,
    because phi(x) - P phi(x) is the same for all of them.
    """

    def __init__(self, support: Support) -> None:
        self.support = support
        self._flat = support.labels.reshape(-1)
        self._inside = np.flatnonzero(self._flat >= 0)
        self._group = self._flat[self._inside]
        alone = np.flatnonzero(~support.tied)
        rows = [sp.identity(support.groups, format="csr")[alone]]
        solve = [sp.diags_array(1 / np.maximum(support.sizes[alone], 1))]
        for tie in support.ties:
            equations = sp.csr_matrix(tie.equations, dtype=np.float64)
            at = (equations.data, tie.groups[equations.indices], equations.indptr)
            rows.append(sp.csr_matrix(at, shape=(len(tie.equations), support.groups)))
            solve.append(_inverse(tie.equations, support.sizes[tie.groups]))
        self._E = sp.vstack(rows, format="csr")
        self._solve = sp.block_diag(solve, format="csr")

    @property
    def rank(self) -> int:
        """Dimension of the kernel."""
        return self.support.degrees_of_freedom

    def sums(self, u: Any) -> Floats:
        """Group sums of tables u, shape (..., cells)."""
        out = np.zeros((self.support.groups, *u.shape[:-1]))
        np.add.at(out, self._group, np.moveaxis(u[..., self._inside], -1, 0))
        return np.moveaxis(out, 0, -1)

    def apply(self, u: Any) -> Floats:
        """P u for tables of shape (..., cells)."""
        values = np.asarray(u, dtype=np.float64)
        sums = self.sums(values)
        missed = self._E @ sums.reshape(math.prod(sums.shape[:-1]), sums.shape[-1]).T
        shift = (self._E.T @ (self._solve @ missed)).T.reshape(sums.shape)
        out = np.where((self._flat >= 0) | (self._flat == LOOSE), values, 0.0)
        out[..., self._inside] -= shift[..., self._group]
        return np.asarray(out)

    def holds(self, u: Any) -> Any:
        """Whether real tables lie in the kernel, up to rounding."""
        values = np.asarray(u, dtype=np.float64)
        size = 1 + np.abs(values).max(axis=-1)
        return np.abs(values - self.apply(values)).max(axis=-1) <= _OFF * size

    def squared_lengths(self, index: Any, sums: int) -> Floats:
        """||P 1_i||^2 for the 0-1 tables of several sums of cells (`index` as in `error_laws`)."""
        flat = np.asarray(index).reshape(-1)
        counted = (flat >= 0) & ((self._flat >= 0) | (self._flat == LOOSE))
        total = np.bincount(flat[counted], minlength=sums).astype(np.float64)
        inside = (flat >= 0) & (self._flat >= 0)
        at = (np.ones(np.count_nonzero(inside)), (flat[inside], self._flat[inside]))
        missed = sp.csr_matrix(at, shape=(sums, self.support.groups)) @ self._E.T
        total -= np.asarray(missed.multiply(missed @ self._solve).sum(axis=1)).reshape(-1)
        return np.where(total < 1e-9, 0.0, total)  # a published sum: zero up to rounding


@register
class KernelGaussian(Conditioned):
    """A real-valued table that agrees with every published figure; G_mu with idealised numerics.

    Formula: y = phi(x) + R(P e), e independent N(0, sigma^2), P the projection on the kernel of the
    figures, sigma = Delta_2(S) / mu, R the rounding to a grid that keeps every published sum
    (`KernelGrid`).

    Formal guarantee: G_mu between any two conforming databases of the adjacency: P e given the
    kernel is a spherical normal law there, and differences u of conforming tables have ||u||_2 <=
    Delta_2(S); rounding is free. Published sums are exact. For counts prefer `congenial_gaussian`,
    whose numerics are exact too; it is zCDP. `log_density` is that of phi(x) + P e.

    Edge cases: frozen cells stay zero, cells that no figure touches get independent noise.
    Source: semi-dp, Proposition 28; docs/errata.
    """

    name = "kernel_gaussian"
    noise_family = GAUSSIAN
    citation = "Cho and Awan 2024 (semi-dp), Proposition 28, corrected; Dong, Roth, Su 2022"

    sampler = "independent normal noise, projected on what the figures leave free, on a grid"

    def refuse_unfit(self) -> None:
        """Refuse figures that the rounding keeps at a price that its error law would show."""
        moved = self.grid.deviation * self.description.grid
        if moved > _COARSE * float(self.description.variance) ** 0.5:
            raise StructureError(
                "the weights of the published figures are so large that rounding would show "
                "beside the noise.",
                remedy=REMEDY,
            )

    @cached_property
    def grid(self) -> KernelGrid:
        """What puts noise on the grid."""
        return KernelGrid(self.support, self.description.grid)

    @cached_property
    def projection(self) -> KernelProjection:
        """The projection on the kernel of the figures."""
        return KernelProjection(self.support)

    def noise(self, randomness: Randomness, draws: int) -> Any:
        """Independent draws of u: array of shape (draws, *shape)."""
        from scipy.special import ndtri

        cells = self.support.labels.size
        normal = ndtri(uniform_doubles(randomness, draws * cells)).reshape(draws, cells)
        plain = normal * float(self.description.variance) ** 0.5
        return self.grid.apply(self.projection.apply(plain)).reshape(draws, *self.shape)

    def log_density(self, y: Any, table: Table) -> Any:
        """log density in orthonormal coordinates of the kernel; -inf off it."""
        u = np.asarray(y, dtype=np.float64) - self.query(table)
        u = u.reshape(*u.shape[: u.ndim - len(self.shape)], -1)
        variance = float(self.description.variance)
        logs = -np.sum(u**2, axis=-1) / (2 * variance)
        logs = logs - self.projection.rank * math.log(2 * math.pi * variance) / 2
        return np.where(self.projection.holds(u), logs, -np.inf)[()]

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:
        """Normal, with variance sigma^2 ||P 1||^2."""
        lengths = self.projection.squared_lengths(index, sums) * float(self.description.variance)
        laws = {variance: NormalSum(variance) for variance in np.unique(lengths).tolist()}
        return [laws[variance] for variance in lengths.tolist()]
