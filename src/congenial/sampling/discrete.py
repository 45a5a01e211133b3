"""The two noise laws: double geometric (discrete Laplace) and discrete Gaussian, drawn exactly.

How a draw is made is in `inversion`; here are the weights, and densities and moments for inference.

**Wide Gaussian noise** is drawn in blocks of B = 2^b numbers. A block k >= 0 of law ~ exp(-k^2 B^2
/ (2 sigma2)), which has a table, a uniform place o in it and a sign give x = k B + o or -1 - (k B +
o): every whole number once. As |x| >= k B it is accepted with exp(-(x^2 - k^2 B^2) / (2 sigma2)) <=
1, which leaves exp(-x^2 / (2 sigma2)). With a standard deviation of 64 blocks or more 99 % are. One
word gives sign, place and the start of the uniform for the acceptance; doubles decide what they can
decide with certainty, ball arithmetic the rest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Floats, Ints
from congenial.data.loops import loop
from congenial.errors import GuaranteeError, StructureError
from congenial.sampling.exact_decisions import (
    ball,
    below,
    exp_ball,
    positive_rational,
    working_precision,
)
from congenial.sampling.inversion import _CHUNK, ExactLaw, _checked, _fits_a_table
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness

BLOCKS = 1 << 14  # largest variance of a block's number
LARGEST = 46  # bits of the widest standard deviation: draws are far below 2^62
SLACK = 2.0**-46  # error allowed to doubles in an acceptance; they make less than 2^-49


@dataclass(frozen=True)
class DoubleGeometric(ExactLaw):
    """The double geometric (discrete Laplace) law p(u) = (1 - a)/(1 + a) a^|u|, a = exp(-eps).

    Any positive rational eps. Ratios of neighbouring probabilities are exactly exp(+-eps).

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> DoubleGeometric(Fraction(1, 2)).draw(SeededRandomness(1), 3).shape
    (3,)
    """

    eps: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", positive_rational("eps", self.eps))

    def _ratio(self, x: int) -> Any:
        return exp_ball(-self.eps if x >= 0 else self.eps)

    def _ratios(self, x: Ints) -> Floats:
        with working_precision(128):
            down, up = (float(exp_ball(e)) for e in (-self.eps, self.eps))
        return np.where(x >= 0, down, up)

    def _log_weight(self, x: int) -> Any:
        return -ball(self.eps * abs(x))

    def _log_weights(self, x: Ints) -> Floats:
        return np.abs(x) * -float(self.eps)

    @property
    def variance(self) -> float:
        """2 a / (1 - a)^2 = 1 / (2 sinh(eps/2)^2)."""
        return 0.5 / math.sinh(float(self.eps) / 2) ** 2 if self.eps < 700 else 0.0

    def log_pmf(self, x: npt.ArrayLike) -> Floats:
        """log p(x) = log tanh(eps/2) - eps |x|."""
        eps = float(self.eps)
        return np.asarray(math.log(math.tanh(eps / 2)) - eps * np.abs(np.asarray(x)), dtype=float)

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """F(x): a^-x/(1 + a) for x < 0, 1 - a^(x+1)/(1 + a) otherwise."""
        eps, at = float(self.eps), np.asarray(x, dtype=float)
        tail = np.exp(-eps * np.where(at < 0, -at, at + 1)) / (1 + math.exp(-eps))
        return np.asarray(np.where(at < 0, tail, 1 - tail), dtype=float)


@dataclass(frozen=True)
class DiscreteGaussian(ExactLaw):
    """The discrete Gaussian p(u) ~ exp(-u^2 / (2 sigma2)) on the integers, any positive rational
    sigma2.

    Its variance is a little below sigma2 (far below for sigma2 < 1). Canonne, Kamath and Steinke
    (2020).
    """

    sigma2: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma2", positive_rational("sigma2", self.sigma2))

    def _ratio(self, x: int) -> Any:
        return (-ball((2 * x + 1) / (2 * self.sigma2))).exp()

    def _ratios(self, x: Ints) -> Floats:
        return np.asarray(np.exp((2 * x + 1) * -float(1 / (2 * self.sigma2))))

    def _log_weight(self, x: int) -> Any:
        return -ball(x * x / (2 * self.sigma2))

    def _log_weights(self, x: Ints) -> Floats:
        at = x.astype(np.float64)
        return at * at * -float(1 / (2 * self.sigma2))

    def draw(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws: from a table, or in blocks if it would be too wide."""
        if self.lowest is not None or _fits_a_table(self):
            return super().draw(randomness, n)
        return self._draw_in_blocks(randomness, n)

    def _draw_in_blocks(self, randomness: Randomness, n: int) -> Ints:
        """Words, for up to 2^16 outstanding draws at a time: their blocks; a word each; and further
        words, in order, for acceptances that these do not decide.
        """
        shift = max(0, math.ceil(math.log2(self.sigma2 / BLOCKS) / 2))
        if shift + math.log2(BLOCKS) / 2 > LARGEST:
            raise GuaranteeError(
                "the noise asked for is so wide that it may not fit 64 bits.",
                remedy="Ask for a larger epsilon (a smaller variance).",
            )
        law, accepted, missing = HalfGaussian(self.sigma2 / 4**shift), [np.empty(0, np.int64)], n
        while missing > 0:
            size = min(missing + missing // 32 + 8, _CHUNK)
            blocks, words = law.draw(randomness, size), randomness.words(size)
            _checked(int(blocks.max()) + 1 << shift)
            x, kept = np.empty(size, np.int64), np.empty(size, np.int8)
            place_in_blocks(blocks, words, shift, float(1 / (2 * self.sigma2)), SLACK, x, kept)
            for i in np.flatnonzero(kept < 0).tolist():
                kept[i] = self._is_kept(
                    int(x[i]), int(blocks[i]) << shift, words[i], shift, randomness
                )
            accepted.append(x[kept == 1])
            missing -= accepted[-1].size
        return np.concatenate(accepted)[:n]

    def _is_kept(self, x: int, start: int, word: Any, shift: int, randomness: Randomness) -> bool:
        """Whether an open proposal x in the block that begins at `start` is accepted."""
        log_p = Fraction(start * start - x * x) / (2 * self.sigma2)
        return below(int(word) >> (1 + shift), 63 - shift, lambda: ball(log_p), randomness)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """(log normaliser, variance): direct sums for sigma2 < 1, else their Poisson-summed
        twins.
        """
        s = float(self.sigma2)
        j = np.arange(1, 40, dtype=float)
        if s < 1:
            w = np.exp(-j * j / (2 * s))
            z = 1 + 2 * w.sum()
            return float(np.log1p(2 * w.sum())), float(2 * (j * j * w).sum() / z)
        w = np.exp(-2 * math.pi**2 * s * j * j)
        z = 1 + 2 * w.sum()
        slope = -4 * math.pi**2 * float((j * j * w).sum()) / z  # d log z / d sigma2
        return 0.5 * math.log(2 * math.pi * s) + math.log(z), s + 2 * s * s * slope

    @property
    def variance(self) -> float:
        """Sum of u^2 p(u)."""
        return self._moments[1]

    def log_pmf(self, x: npt.ArrayLike) -> Floats:
        """log p(x) = -x^2 / (2 sigma2) - log sum_j exp(-j^2 / (2 sigma2))."""
        at = np.asarray(x, dtype=float)
        return np.asarray(-at * at / (2 * float(self.sigma2)) - self._moments[0], dtype=float)

    def cdf(self, x: npt.ArrayLike) -> Floats:
        """F(x), absolute error below 1e-12: the sum itself, or Euler-Maclaurin for sigma2 > 1e4."""
        at = np.asarray(x, dtype=float)
        upper = self._upper_tail(np.where(at < 0, -at, at + 1))  # P(X >= |.|)
        return np.asarray(np.where(at < 0, upper, 1 - upper), dtype=float)

    def _upper_tail(self, start: Floats) -> Floats:
        """P(X >= start) for start >= 0."""
        s = float(self.sigma2)
        if s <= 1e4:
            reach = int(40 * math.sqrt(s)) + 2
            sums = np.append(np.cumsum(np.exp(self.log_pmf(np.arange(reach)))[::-1])[::-1], 0.0)
            return np.asarray(sums[np.minimum(start, reach).astype(np.int64)])
        from scipy.special import erfc

        f = np.exp(-start * start / (2 * s))
        t = start / s
        f1, f3 = -t * f, (3 * t / s - t**3) * f  # first and third derivatives
        integral = math.sqrt(math.pi * s / 2) * erfc(start / math.sqrt(2 * s))
        return np.asarray((integral + f / 2 - f1 / 12 + f3 / 720) * math.exp(-self._moments[0]))


class HalfGaussian(DiscreteGaussian):
    """p(k) ~ exp(-k^2 / (2 sigma2)) on k >= 0: the number of a block, to be drawn and no more."""

    lowest = 0


@loop
def place_in_blocks(
    blocks: Any, words: Any, shift: int, inverse: float, slack: float, x: Any, kept: Any
) -> None:
    """The number that each block and word propose, and whether it is kept: 1, 0, or -1 where
    doubles do not tell. inverse: 1 / (2 sigma2).
    """
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    unit = 2.0 ** (shift - 63)
    for i in range(words.size):
        word = words[i]
        start = blocks[i] << shift
        negative = np.int64(word & np.uint64(1))
        beyond = np.int64((word >> np.uint64(1)) & mask) + negative
        size = start + beyond
        x[i] = -size if negative else size
        loss = float(beyond) * (2.0 * float(start) + float(beyond)) * inverse
        low = float(word >> np.uint64(1 + shift)) * unit
        high = low + unit
        if high <= 1.0 - loss - slack:  # exp(-loss) is larger
            kept[i] = 1
        else:
            p = math.exp(-loss)
            if high <= p - slack:
                kept[i] = 1
            elif low >= p + slack:
                kept[i] = 0
            else:
                kept[i] = -1


CellLaw = DoubleGeometric | DiscreteGaussian  # what a cell of a table may get on its own


def cell_law(family: str, parameter: Fraction) -> CellLaw:
    """Noise of a cell on its own; `parameter` is the rate (eps per cell), or the variance."""
    if family == "double_geometric":
        return DoubleGeometric(parameter)
    if family == "discrete_gaussian":
        return DiscreteGaussian(parameter)
    raise StructureError(f"'{family}' is not a law on the integers.")


class IndependentCells(IntegerLaw):
    """p(u) = prod_i w(u_i) / Z, all cells of one exact law."""

    log_ratio_error = 0.0

    def __init__(self, cell: CellLaw, cells: int) -> None:
        self.cell, self.cells = cell, cells

    @property
    def log_Z(self) -> float:
        """The normaliser of one cell, as often as there are cells; w(0) = 1."""
        return -self.cells * float(self.cell.log_pmf(0))

    def log_density(self, u: Any) -> Any:
        """Sum over cells of the log mass; u has shape (..., cells)."""
        return np.sum(self.cell.log_pmf(u), axis=-1)

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        return self.cell.draw(randomness, n * self.cells).reshape(n, self.cells)
