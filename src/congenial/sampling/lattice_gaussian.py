"""Discrete Gaussian noise given sums: zero in each group of cells, or zero row and column sums.

p(u) ~ exp(-||u||^2/(2 sigma2)) on the integer lattice that the sums leave: A_{k-1} for k cells with
a fixed sum, A_{r-1} (x) A_{c-1} for a table with both margins. It is rho = Delta_2^2/(2 sigma2)
zCDP; it is not Gaussian differential privacy. Draws are exact (H = 0) by Klein's sampler (Gentry,
Peikert and Vaikuntanathan 2008) with an acceptance step; their running time depends on public
parameters alone.

**Lattice.** A_{k-1} = {u in Z^k : sum u = 0} has the basis b_i = e_i - e_{i+1}, i = 1 .. k-1. Its
Gram matrix is tridiagonal, so Gram-Schmidt is bidiagonal:

    b*_i = b_i + (i-1)/i b*_{i-1},    ||b*_i||^2 = (i+1)/i,    mu_{i,i-1} = -(i-1)/i.

For a tensor product the b_i (x) d_j have the Gram-Schmidt vectors b*_i (x) d*_j and the products of
coefficients, so coordinate (i, j) meets only (i+1, j), (i, j+1) and (i+1, j+1). With
alpha_i = i/(i+1), beta_j = j/(j+1) (alpha = 1 for a lattice Z, which makes A_{k-1} itself the case
Z (x) A_{k-1}), u = sum z_ij b_i (x) d_j has

    ||u||^2 = sum (z_ij - c_ij)^2 / (alpha_i beta_j),
    c_ij = alpha_i z_{i+1,j} + beta_j z_{i,j+1} - alpha_i beta_j z_{i+1,j+1}.

**Proposal.** From the last coordinate to the first draw z ~ exp(-(z - c)^2 / (2 s^2)) on Z with
s^2 = sigma2 alpha_i beta_j. The product of these is q(u) = exp(-||u||^2/(2 sigma2)) / prod
rho_ij(Z - c_ij), with rho_ij(S) = sum over S of exp(-x^2/(2 s_ij^2)).

**Acceptance.** By Poisson summation rho(Z - c) <= rho(Z). Accepting u with probability
A(u) = prod rho_ij(Z - c_ij)/rho_ij(Z) leaves q(u) A(u) = exp(-||u||^2/(2 sigma2)) / prod
rho_ij(Z): proportional to the target, exactly. Without it the law is off by the ratio of these
products (log ratio .37 at sigma = .7). P(accept) = Z / prod rho_ij(Z), which also brackets Z.

**One coordinate.** With B = 2^b <= sigma/4 (or B = 1), write z - c = +-(k B + o + rest): a sign, a
block k >= 0 of law ~ exp(-k^2 B^2/(2 sigma2)) (s < sigma, so this is an envelope), a uniform place
o in the block; accept with exp(-(z - c)^2/(2 s^2) + k^2 B^2/(2 sigma2)). All in integers: c = m/D
with D = (i+1)(j+1). Blocks come from `ExactLaw`; a word gives sign, place and the start of a lazily
refined uniform for the acceptance. Doubles decide what they can decide with certainty, ball
arithmetic the rest: H = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from congenial.errors import RandomnessError, StructureError
from congenial.sampling.discrete import DiscreteGaussian
from congenial.sampling.exact_decisions import ball, below, positive_rational
from congenial.sampling.grouped_noise import Groups
from congenial.sampling.inversion import Floats, Ints
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness

SLACK = 2.0**-46  # relative error allowed to doubles, per unit of exponent; they make 2^-50
_RAREST = math.log(1e-4)  # a lattice where fewer proposals survive is refused
_BATCH = 1 << 18  # coordinates drawn at a time


class KleinBlock(DiscreteGaussian):
    """p(k) ~ exp(-k^2 / (2 sigma2)) on k >= 0."""

    lowest = 0


def chain(k: int) -> Ints:
    """Rows (i, i + 1) = numerator and denominator of alpha_i for A_{k-1}, i = 1 .. k-1."""
    i = np.arange(1, k, dtype=np.int64)
    return np.stack([i, i + 1], axis=1)


LINE: Ints = np.array([[1, 1]], dtype=np.int64)  # the lattice Z


def log_rho(s2: Floats) -> Floats:
    """log of the sum of exp(-x^2/(2 s2)) over the integers; relative error 1e-14.

    The direct sum for s2 < 1/4, else the sum over the dual, by Poisson summation.
    """
    k = np.arange(1, 12, dtype=float)
    out = np.empty_like(s2)
    small = s2 < 0.25
    out[small] = np.log1p(2 * np.exp(-k * k / (2 * s2[small][:, None])).sum(axis=1))
    s = s2[~small][:, None]
    dual = 2 * np.exp(-2 * math.pi**2 * s * k * k).sum(axis=1)
    out[~small] = 0.5 * np.log(2 * math.pi * s[:, 0]) + np.log1p(dual)
    return out


@dataclass(frozen=True, eq=False)
class Klein:
    """The sampler for one lattice: rows and columns as given by `chain` or `LINE`.

    `draw(randomness, n)` returns coordinates z of shape (n, rows, columns). Everything that takes
    time depends on the shape and on sigma2 alone, which are public.
    """

    rows: Ints
    columns: Ints
    sigma2: Fraction
    slack: float = SLACK

    def __post_init__(self) -> None:
        reach = 16 * math.sqrt(float(self.sigma2) * (len(self.rows) + 1) * (len(self.columns) + 1))
        if reach > self.largest:
            raise StructureError(
                f"sigma2 = {self.sigma2} makes noise too wide for 64 bits in a table of this size.",
                remedy="Use a smaller sigma2, or a smaller table.",
            )
        if self.log_acceptance < _RAREST:
            raise StructureError(
                f"at sigma2 = {self.sigma2} fewer than one proposal in 10,000 would be accepted "
                "in a table of this size.",
                remedy="Use sigma2 >= 1, or a smaller table.",
            )

    @cached_property
    def largest(self) -> int:
        """A coordinate beyond this would not be safe in 64-bit arithmetic."""
        return int((1 << 59) // (int(self.rows[-1, 1]) * int(self.columns[-1, 1])))

    @cached_property
    def variances(self) -> Floats:
        """s_ij^2 = sigma2 alpha_i beta_j."""
        alpha, beta = (f[:, 0] / f[:, 1] for f in (self.rows, self.columns))
        out: Floats = float(self.sigma2) * np.outer(alpha, beta)
        return out

    @cached_property
    def log_Z_bounds(self) -> tuple[float, float]:
        """log Z lies between these.

        Above: sum log rho_ij(Z). Below: 0 (the term u = 0), and d/2 log(2 pi sigma2) - log det (the
        term 0 of the sum over the dual lattice), which is sum 1/2 log(2 pi s_ij^2).
        """
        s2 = self.variances.ravel()
        return max(0.0, 0.5 * math.fsum(np.log(2 * math.pi * s2))), math.fsum(log_rho(s2))

    @cached_property
    def log_acceptance(self) -> float:
        """A lower bound of log P(accept) = log Z - sum log rho_ij(Z)."""
        low, high = self.log_Z_bounds
        return low - high

    @cached_property
    def sure(self) -> int:
        """A word below this accepts whatever the centres: 1 - A(u) <= sum of 4 q/(1 - q^3)."""
        q = np.exp(-2 * math.pi**2 * self.variances.ravel())
        bound = 1.001 * math.fsum(4 * q / (1 - q**3))
        return max(0, (1 << 64) - math.ceil(Fraction(bound) * (1 << 64)) - 1) if bound < 1 else 0

    @cached_property
    def shift(self) -> int:
        """b: blocks have 2^b places, the largest power of two <= sigma/4, or one."""
        b = 0
        while self.sigma2 >= 16 << (2 * (b + 1)):
            b += 1
        return b

    @cached_property
    def block(self) -> KleinBlock:
        """The law of the block number."""
        return KleinBlock(self.sigma2 / (1 << (2 * self.shift)))

    def draw(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws of the coordinates.

        Words: draws are made in chunks of about 2^18 coordinates. A chunk takes blocks by
        `ExactLaw.draw` and as many words, in batches; a proposal for a coordinate takes one of
        each, the acceptance of a table one word and no block (its block is thrown away). Open
        decisions take further words one at a time. What is left of a batch is thrown away.
        """
        out = np.empty((n, len(self.rows), len(self.columns)), dtype=np.int64)
        step = max(1, _BATCH // (len(self.rows) * len(self.columns)))
        for start in range(0, n, step):
            self._fill(out[start : start + step], randomness)
        return out

    def _fill(self, z: Ints, randomness: Randomness) -> None:
        from congenial.sampling import lattice_kernels as kernels

        task, pos, at = 0, z[0].size, 0
        need = int(z.size * 1.3) + 64
        blocks, words = self.block.draw(randomness, need), randomness.words(need)
        inverse = 1 / (2 * self.variances)
        while True:
            status, task, pos, at = kernels.klein(
                z, task, pos, blocks, words, at, self.rows, self.columns, inverse,
                1 / (2 * float(self.sigma2)), self.shift, np.uint64(self.sure), self.slack,
                self.largest,
            )  # fmt: skip
            if status == kernels.DONE:
                return
            if status == kernels.MORE:
                more = max(64, need // 8)
                blocks, words = self.block.draw(randomness, more), randomness.words(more)
                at = 0
            elif status == kernels.OPEN:
                word, k = int(words[at - 1]), int(blocks[at - 1])
                pos -= self._place(z[task], pos - 1, k, word, randomness)
            elif status == kernels.ACCEPT:
                log_p = partial(self.log_accept, z[task])
                task += below(int(words[at - 1]), 64, log_p, randomness)
                pos = z[0].size
            else:
                raise RandomnessError(
                    "a draw does not fit 64 bits; nothing was released.", remedy="Try again."
                )

    def _centre(self, z: Ints, i: int, j: int) -> tuple[int, int]:
        """(m, D) with c_ij = m / D, in Python integers."""
        (p, dp), (q, dq) = self.rows[i].tolist(), self.columns[j].tolist()
        down = int(z[i + 1, j]) if i + 1 < len(z) else 0
        right = int(z[i, j + 1]) if j + 1 < len(z[0]) else 0
        both = int(z[i + 1, j + 1]) if i + 1 < len(z) and j + 1 < len(z[0]) else 0
        return p * dq * down + dp * q * right - p * q * both, dp * dq

    def _s2(self, i: int, j: int) -> Fraction:
        (p, dp), (q, dq) = self.rows[i].tolist(), self.columns[j].tolist()
        return self.sigma2 * Fraction(p * q, dp * dq)

    def _place(self, z: Ints, pos: int, k: int, word: int, randomness: Randomness) -> int:
        """One open proposal in ball arithmetic: write z and return 1 if accepted, else 0."""
        i, j = divmod(pos, z.shape[1])
        m, d = self._centre(z, i, j)
        o = k * (1 << self.shift) + ((word >> 1) & ((1 << self.shift) - 1))
        x = -((-m) // d) + o if word & 1 == 0 else -((-m) // d) - 1 - o
        log_p = -((Fraction(x) - Fraction(m, d)) ** 2) / (2 * self._s2(i, j)) + Fraction(
            k * k << (2 * self.shift)
        ) / (2 * self.sigma2)
        bits = 63 - self.shift
        if below(word >> (1 + self.shift), bits, lambda: ball(log_p), randomness):
            z[i, j] = x
            return 1
        return 0

    def log_accept(self, z: Ints) -> Any:
        """log A(u) as a ball at the working precision."""
        total = arb(0)
        for i in range(z.shape[0]):
            for j in range(z.shape[1]):
                m, d = self._centre(z, i, j)
                total += _log_ratio(self._s2(i, j), Fraction(m % d, d))
        return total


def _log_ratio(s2: Fraction, c: Fraction) -> Any:
    """log rho(Z - c)/rho(Z) as a ball: sums over |x| <= reach, and a ball for what is beyond."""
    reach = 2 + math.ceil(math.sqrt(2 * float(s2) * (ctx.prec + 40)))

    def rho(centre: Fraction) -> Any:
        total = arb(0)
        for x in range(-reach, reach + 2):
            total += (-ball((x - centre) ** 2 / (2 * s2))).exp()
        # beyond reach the terms at least halve: they are below exp(-(reach^2)/(2 s2)) to start with
        last = (-ball(Fraction(reach * reach) / (2 * s2))).exp()
        tail = last / (1 - (-ball(Fraction(reach) / s2)).exp())
        return total + arb(0).union(2 * tail)

    return (rho(c) / rho(Fraction(0))).log()


def table_noise(z: Ints) -> Ints:
    """u = sum z_ij (e_i - e_{i+1}) (x) (e_j - e_{j+1}), for leading batch axes too."""
    wide = np.pad(z, [(0, 0)] * (z.ndim - 2) + [(1, 1), (1, 1)])
    across = wide[..., 1:] - wide[..., :-1]
    out: Ints = across[..., 1:, :] - across[..., :-1, :]
    return out


def line_noise(z: Ints) -> Ints:
    """u = sum z_j (e_j - e_{j+1}) along the last axis."""
    out = np.empty((*z.shape[:-1], z.shape[-1] + 1), dtype=np.int64)
    out[..., :-1], out[..., -1] = z, 0
    out[..., 1:] -= z
    return out


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
