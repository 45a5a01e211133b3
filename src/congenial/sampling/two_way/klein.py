"""Klein's sampler with its acceptance step on A_{r-1} (x) A_{c-1} and on A_{k-1}, compiled.

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
from functools import cached_property, partial
from typing import Any

import numpy as np
from flint import arb, ctx

from congenial.errors import RandomnessError, StructureError
from congenial.sampling.decide import below
from congenial.sampling.inversion import ExactLaw, Floats, Ints, ball
from congenial.sampling.randomness import Randomness

SLACK = 2.0**-46  # relative error allowed to doubles, per unit of exponent; they make 2^-50
_RAREST = math.log(1e-4)  # a lattice where fewer proposals survive is refused
_BATCH = 1 << 18  # coordinates drawn at a time


@dataclass(frozen=True)
class KleinBlock(ExactLaw):
    """p(k) ~ exp(-k^2 / (2 tau2)) on k >= 0."""

    tau2: Fraction
    lowest = 0

    def _ratio(self, x: int) -> Any:
        return (-ball((2 * x + 1) / (2 * self.tau2))).exp()

    def _log_weight(self, x: int) -> Any:
        return -ball(x * x / (2 * self.tau2))


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
        from congenial.sampling.two_way import klein_kernels as kernels

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
