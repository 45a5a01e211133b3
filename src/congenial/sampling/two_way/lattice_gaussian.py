"""Discrete Gaussian noise given sums: zero in each group of cells, or zero row and column sums.

p(u) ~ exp(-||u||^2/(2 sigma2)) on the integer lattice that the sums leave: A_{k-1} for k cells with
a fixed sum, A_{r-1} (x) A_{c-1} for a table with both margins. It is rho = Delta_2^2/(2 sigma2)
zCDP; it is not Gaussian differential privacy. Draws are exact (H = 0), see
`klein`; their running time depends on public parameters alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.inversion import Floats, Ints, positive_rational
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.tree.groups import Groups
from congenial.sampling.two_way.klein import LINE, Klein, chain, line_noise, log_rho, table_noise

_CLOSE = 1e-6  # bounds of log Z this close are printed as one number


@lru_cache(maxsize=4096)
def log_normaliser(k: int, sigma2: Fraction) -> float:
    """Return log of the sum of exp(-||u||^2/(2 sigma2)) over integer u in k cells with sum 0.

    sigma2 >= 8: the bounds of `Klein` agree to 1e-16. Below: the mean over N points of
    theta(j/N)^k, theta(x) = sum_n exp(-n^2/(2 sigma2)) e^(2 pi i n x) > 0, is the sum over u with
    sum 0 mod N. A sum of S != 0 contributes at most exp(-S^2/(2 k sigma2)) Z (split u into its mean
    and the rest, which lies in a coset of the lattice), so N = 10 sqrt(k sigma2) + 2 leaves a
    relative error below 1e-20.

    >>> round(log_normaliser(2, Fraction(1)), 6) == round(
    ...     math.log(sum(math.exp(-(n * n)) for n in range(-9, 10))), 6)
    True
    """
    if k == 1:
        return 0.0
    if sigma2 >= 8:
        j = np.arange(1, k, dtype=float)
        return math.fsum(log_rho(float(sigma2) * j / (j + 1)))
    n = math.ceil(10 * math.sqrt(k * sigma2)) + 2
    x = np.arange(n) / n
    s = float(sigma2)
    m = np.arange(-30, 31)
    if s < 0.1:  # away from its peak theta is a sum of waves close to 1
        waves = np.cos(2 * np.pi * np.outer(x, m[31:]))
        logs = np.log1p(2 * waves @ np.exp(-(m[31:] ** 2) / (2 * s)))
    else:
        peaks = np.exp(-2 * np.pi**2 * s * (x[:, None] + m) ** 2).sum(axis=1)
        logs = 0.5 * math.log(2 * math.pi * s) + np.log(peaks)
    top = float(logs.max())
    return k * top + math.log(math.fsum(np.exp(k * (logs - top))) / n)


class GroupedGaussian(Groups):
    """Discrete Gaussian noise on cells, given that each group of cells sums to zero.

    labels: as for `GroupedNoise` (0, 1, 2, ... for the groups, -1 for a cell without noise; a group
    of one cell gets 0). Density, for u with all group sums 0 and u = 0 on cells that are not free:
    p(u) = exp(-||u||^2/(2 sigma2)) / prod over groups of Z_k. A draw is linear in the cells; groups
    are independent, and each is accepted on its own.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> u = GroupedGaussian([0, 0, 1, 1, 1, -1], 4).draw(SeededRandomness(1))
    >>> (int(u[:2].sum()), int(u[2:5].sum()), int(u[5]))
    (0, 0, 0)
    """

    def __init__(self, labels: npt.ArrayLike, sigma2: Fraction | int) -> None:
        super().__init__(labels)
        self.sigma2 = positive_rational("sigma2", sigma2)
        order = np.argsort(self.labels, kind="stable")[int(np.sum(self.labels < 0)) :]
        starts = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]
        # cells of the groups of one size, one row per group, and their sampler
        self._parts: list[tuple[Ints, Klein]] = []
        for k in np.unique(self.sizes[self.sizes >= 2]):
            members = order[starts[self.sizes == k][:, None] + np.arange(k)]
            self._parts.append((members, Klein(LINE, chain(int(k)), self.sigma2)))

    def _log_normaliser(self, k: int) -> float:
        return log_normaliser(k, self.sigma2)

    def _log_weight(self, noise: Ints) -> Floats:
        norm: Floats = (noise.astype(float) ** 2).sum(axis=-1)
        return -norm / (2 * float(self.sigma2))

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells): sizes in ascending order, all draws of all
        groups of one size at a time, by `Klein.draw`.
        """
        out = np.zeros((n, self.cells), dtype=np.int64)
        for members, sampler in self._parts:
            groups, k = members.shape
            z = sampler.draw(randomness, n * groups).reshape(n * groups, k - 1)
            out[:, members] = line_noise(z).reshape(n, groups, k)
        return out


class TwoWayGaussian(WeightedLaw):
    """Discrete Gaussian noise on an r x c table, given that all row and column sums are zero.

    Density p(u) = exp(-||u||^2/(2 sigma2)) / Z. log_Z is None unless sigma is large enough for the
    bounds `log_Z_bounds` to agree (sigma2 >= 4 does for any size) or min(r, c) <= 2; `log_weight`
    is always there. A proposal is linear in the cells; a table where sigma is so small that fewer
    than one in 10,000 would be accepted is refused (300 x 300: below sigma of about .72).

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> u = TwoWayGaussian((3, 5), 4).draw(SeededRandomness(1))
    >>> bool(u.sum(axis=0).any() or u.sum(axis=1).any())
    False
    """

    log_ratio_error = 0.0

    def __init__(self, shape: tuple[int, int], sigma2: Fraction | int) -> None:
        self.sigma2 = positive_rational("sigma2", sigma2)
        self.shape = checked_shape(shape)
        r, c = self.shape
        self._sampler = Klein(chain(r), chain(c), self.sigma2) if min(r, c) > 1 else None

    @property
    def log_Z_bounds(self) -> tuple[float, float]:
        """log Z lies between these."""
        return self._sampler.log_Z_bounds if self._sampler else (0.0, 0.0)

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-||u||^2/(2 sigma2)), or None where it is not known to 5e-7."""
        if min(self.shape) == 2:  # rows u and -u: one row at half the variance
            return log_normaliser(max(self.shape), self.sigma2 / 2)
        low, high = self.log_Z_bounds
        return (low + high) / 2 if high - low <= _CLOSE else None

    def log_weight(self, u: npt.ArrayLike) -> Any:
        """-||u||^2/(2 sigma2), or -inf off the lattice: the log density up to log Z.

        u has shape (..., r, c); the result has the leading shape.
        """
        noise = checked_tables(u, self.shape)
        norm = (noise.astype(float) ** 2).sum(axis=(-2, -1))
        return np.where(zero_margins(noise), -norm / (2 * float(self.sigma2)), -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, r, c), by `Klein.draw`."""
        if self._sampler is None:
            return np.zeros((n, *self.shape), dtype=np.int64)
        return table_noise(self._sampler.draw(randomness, n))


def checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """(r, c) as integers >= 1, or StructureError."""
    if len(shape) != 2 or any(int(k) != k or k < 1 for k in shape):
        raise StructureError(
            f"shape {shape!r} is not that of a two-way table.", remedy="Give (rows, columns) >= 1."
        )
    return int(shape[0]), int(shape[1])


def checked_tables(u: npt.ArrayLike, shape: tuple[int, int]) -> Ints:
    """u as integers of shape (..., r, c), or StructureError."""
    noise = np.asarray(u, dtype=np.int64)
    if noise.shape[-2:] != shape:
        raise StructureError(
            f"a table of shape {noise.shape[-2:]} was given, {shape} is needed.",
            remedy="Give one value per cell.",
        )
    return noise


def zero_margins(noise: Ints) -> npt.NDArray[np.bool_]:
    """Whether all row and column sums are zero, for each table of a batch."""
    off = noise.sum(axis=-1).any(axis=-1) | noise.sum(axis=-2).any(axis=-1)
    return np.asarray(~off)
