"""How much exact integer noise varies, given the figures that its table shows.

One number v per table, such that the noise has covariance v x projection on what the figures leave
open, or at most that. With the precision 1 / v everything in this room applies to either family.

- Discrete Gaussian of parameter sigma^2 on any lattice L: at most sigma^2 x projection, because its
  moment generating function is at most exp(sigma^2 |w|^2 / 2) in every direction w. *Proof.*
  Completing the square, it is exp(sigma^2 |w|^2 / 2) r(sigma^2 w) / r(0), with r(c) the sum of
  exp(-|x - c|^2 / (2 sigma^2)) over x in L; r is a Fourier series with positive coefficients
  (Poisson summation), so r(c) <= r(0). The same with a variance of its own for each cell.
- Double geometric of parameter eps, one known sum of k cells: exchangeable, so exactly
  v_k (I - J / k) (`sampling.sums.cell_variance`). Groups of several sizes: at most the largest v_k.
- Double geometric, known sums that cross: at most m = 1/eps^2 + 1/(eps sinh eps) times the
  projection, at most 2/eps^2. *Proof.* e^(-eps |x|) is a mixture of exp(-x^2 / (2 t)) over t > 0,
  also on the integers; so noise x in a lattice L (x integer, A x = 0) is a mixture of discrete
  Gaussians on L with variances t_i per cell. Given t its mean is 0 and its covariance at most S(t),
  the covariance of Gaussians with variances t given A x = 0, and S is concave and increasing in t
  (a Schur complement). So Cov(x) <= E[S(t)] <= S(E[t]), t in its law given x in L. Without figures
  the t_i are independent with E[t_i] = E[E[t_i | x_i]] = E[|x_i|/eps + 1/eps^2] = m. Given x in L
  their law has the further weight W(t) = P(x in L | t), which falls in every t_i (below). So does
  its mean over the others given t_i, and a falling weight lowers a mean (Chebyshev's inequality
  for sums): E[t_i | x in L] <= m.
- Double geometric, both margins of tables of r x c groups of k cells: permuting levels, or cells of
  a group, leaves two invariant parts, contrasts inside groups and sums of groups, on each of which
  the covariance is a multiple of the projection. The larger multiple comes from draws of the public
  law with public seeds (standard error below 1 %): 2 / eps^2 is up to 4 times as much. Other
  crossing figures, and samplers that are slow, keep the bound.
- *W falls in every t_i.* [x in L] is the mean of exp(2 pi i <w, x>) over the w modulo 1 with
  <w, y> whole for every y in L (the characters of Z^n / L). Under t the x_i are independent, so
  W(t) is the mean over these w of the product of f_i(w_i), where f_i(w) = theta(w) / theta(0) and
  theta(w) is the sum of exp(-k^2 / (2 t_i)) cos(2 pi k w) over all integers k. By Jacobi's
  triple product f_i(w) is the product over n >= 1 of 1 - 2 (1 - cos(2 pi w)) a / (1 + a)^2 with
  a = exp(-(2 n - 1) / (2 t_i)). Every factor is at least
  ((1 - a) / (1 + a))^2 > 0 and falls in t_i, because a < 1 grows with t_i and a / (1 + a)^2 with a.
  So every product falls, and their mean. (That variances are smaller on a sublattice follows: the
  derivative of log W by t_i is (E[x_i^2 | x in L] - E[x_i^2]) / (2 t_i^2).)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod, sinh
from typing import Literal

import numpy as np

from congenial.errors import StructureError
from congenial.figures.support import Support
from congenial.sampling.conditioned import ConditionedNoise, TiedNoise
from congenial.sampling.discrete import cell_law
from congenial.sampling.randomness import SeededRandomness
from congenial.sampling.sums import cell_variance

Family = Literal["discrete_gaussian", "double_geometric"]
Basis = Literal["exact", "bound", "simulated"]
NUMBERS = 400_000  # numbers drawn for the variance of noise given crossing figures
FEWEST, MOST = 400, 40_000  # draws
SEED = 20200701  # public: everybody gets the same variances


@dataclass(frozen=True)
class NoiseVariance:
    """Variance of a table's noise per direction that figures leave open: exact, or a bound."""

    value: float
    basis: Basis


def noise_variance(family: Family, scale: Fraction, found: Support) -> NoiseVariance:
    """The variance of noise on a table with the figures that `found` says it shows.

    `scale` is sigma^2 of a discrete Gaussian, eps of a double geometric.
    """
    basis = variance_basis(family, found)
    if family == "discrete_gaussian":
        return NoiseVariance(float(scale), basis)
    if found.ties:
        simulated = simulated_variance(scale, found)
        return NoiseVariance(simulated or mixing_mean(float(scale)), basis)
    sizes = _sizes(found)
    values = [size / (size - 1) * cell_variance(size, scale) for size in sizes]
    if found.loose or not sizes:
        values.append(cell_law(family, scale).variance)
    return NoiseVariance(max(values), basis)


def simulated_variance(scale: Fraction, found: Support) -> float | None:
    """The largest variance per direction of any part of a table, of double geometric noise whose
    ties are margins of groups of one size; None for other ties, or where the sampler is slow.

    Kept with the support.
    """
    remembered: dict[Fraction, float | None] = vars(found).setdefault("_simulated_variances", {})
    if scale not in remembered:
        remembered[scale] = _simulated_variance(scale, found)
    return remembered[scale]


def _simulated_variance(scale: Fraction, found: Support) -> float | None:
    cell = cell_law("double_geometric", scale)
    try:
        noise = ConditionedNoise(cell, found)
    except StructureError:
        return None
    if noise.is_slow or not _are_margins(found):
        return None
    values = [size / (size - 1) * cell_variance(size, scale) for size in _sizes(found)]
    if found.loose:
        values.append(cell.variance)
    return max([*values, *(_tied_variance(tie_noise) for tie_noise, _ in noise.ties())])


def _are_margins(found: Support) -> bool:
    """Whether every tie fixes both margins of a table of groups of one size."""
    return all(
        kind.pattern.shape is not None
        and len(kind.pattern.shape) == 2
        and kind.groups.shape[1] == prod(kind.pattern.shape)
        and bool(np.all(found.sizes[kind.groups] == found.sizes[kind.groups][:, :1]))
        for kind in found.ties.kinds
    )


def _tied_variance(sampler: TiedNoise) -> float:
    """The larger of the variances of contrasts inside groups and of sums of groups."""
    assert sampler.shape is not None
    rows, columns = sampler.shape
    n = int(np.clip(NUMBERS // sampler.cells, FEWEST, MOST))
    drawn = sampler.draw_many(SeededRandomness(SEED), n).reshape(n, rows * columns, -1)
    size = drawn.shape[2]
    sums = drawn.sum(axis=2).astype(float) ** 2 / size
    between, every = float(sums.sum()) / n, float(np.sum(drawn.astype(float) ** 2)) / n
    values = [between / ((rows - 1) * (columns - 1))] if rows > 1 and columns > 1 else [0.0]
    if size > 1:
        values.append((every - between) / (rows * columns * (size - 1)))
    return max(values)


def variance_basis(family: Family, found: Support) -> Basis:
    """Whether the variance is exact: one kind of cells, in sums of one size or in none; simulated
    under margins, unless the sampler is slow; else a bound.
    """
    if family == "double_geometric" and found.ties and _are_margins(found):
        return "simulated"
    kinds = len(_sizes(found)) + (found.loose > 0)
    exact = family == "double_geometric" and not found.ties and kinds <= 1
    return "exact" if exact else "bound"


def _sizes(found: Support) -> list[int]:
    """Sizes of groups that leave anything open."""
    return [int(size) for size in np.unique(found.sizes[~found.tied]) if size > 1]


def mixing_mean(eps: float) -> float:
    """Mean variance of the Gaussians of which a double geometric is a mixture.

    Between its own variance and 2 / eps^2.

    >>> round(mixing_mean(1.0), 4)
    1.8509
    """
    return 1 / eps**2 + (1 / (eps * sinh(eps)) if eps < 700 else 0.0)
