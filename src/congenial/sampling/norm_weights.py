"""Normalisers of noise in the l2 and in the largest-entry norm, given published sums.

**l2.** exp(-r ||u||) is a mixture of Gaussian weights: with t of the Levy density
f(t) = r / (2 sqrt(pi)) t^(-3/2) exp(-r^2 / (4 t)), the integral of f(t) exp(-t ||u||^2) is
exp(-r ||u||). So Z = 1 + integral of f(t) (Theta(t) - 1), where Theta(t) is the normaliser of
discrete Gaussian noise with variance 1 / (2 t) given the same sums, which is known. In log t both
ends fall off faster than any exponential, and the trapezoidal rule converges as fast.

**Largest entry.** The points with largest entry at most m are those of m times a polytope, the
cube cut by the equations. Where every corner of it is whole (equations that form the incidence
matrix of a graph with two sides, so that they are totally unimodular), their number is a
polynomial in m of degree k (Ehrhart), so Z = h(q) / (1 - q)^k with q = exp(-rate) and k + 1
coefficients h that counts up to m = k give exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np

from congenial.errors import StructureError
from congenial.figures.lattice import Ints
from congenial.figures.support import Support
from congenial.sampling.conditioned_noise import ConditionedNoise
from congenial.sampling.discrete import DiscreteGaussian
from congenial.sampling.inversion import Floats

_STEP = 0.25  # in log t; halving it changes nothing that doubles show
_NEGLIGIBLE = 34.0  # -log of what is left out at either end, relative to the largest weight
_MOST_STATES = 20_000  # partial sums kept while tables are counted


def log_sum_of_lengths(square: Fraction, support: Support) -> float | None:
    """log of the sum of exp(-sqrt(square) ||u||_2), to 1e-6; None where Gaussian noise has none."""
    k, r2 = support.degrees_of_freedom, float(square)
    # f Theta peaks near t = r2 / (2 (k + 1)); r2 / (4 t) and 2 t end it on either side
    low = math.log(r2 / (4 * (_NEGLIGIBLE + 4 * (k + 1))))
    high = math.log(_NEGLIGIBLE / 2 + 2)
    points = np.arange(low, max(high, low + 1), _STEP)
    logs = []
    for x in points.tolist():
        theta = _log_theta(math.exp(x), support)
        if theta is None:
            return None
        levy = math.log(r2 / (4 * math.pi)) / 2 - x / 2 - r2 / (4 * math.exp(x))
        logs.append(levy + _log_less_one(theta))
    return _log_of_one_and(np.array(logs) + math.log(_STEP))


def _log_less_one(log: float) -> float:
    """log(e^log - 1); -inf where nothing is left."""
    if log <= 0:
        return -math.inf
    return log if log > 40 else math.log(math.expm1(log))


def _log_of_one_and(logs: Floats) -> float:
    return float(np.logaddexp.reduce(np.append(logs, 0.0)))


def _log_theta(t: float, support: Support) -> float | None:
    """log of the sum of exp(-t ||u||_2^2) over the tables whose published sums are zero."""
    variance = Fraction(1 / (2 * t))
    try:
        return ConditionedNoise(DiscreteGaussian(variance), support).log_Z
    except StructureError:
        return None


def log_sum_of_largest(rate: Fraction, support: Support) -> float | None:
    """log of the sum of exp(-rate ||u||_inf); None where no polynomial is known."""
    if not all(_of_two_sides(kind.pattern.equations) for kind in support.ties.kinds):
        return None
    k = support.degrees_of_freedom
    counts = [_within(m, support) for m in range(k + 1)]
    if None in counts:
        return None
    q = math.exp(-float(rate))
    h = [
        sum((-1) ** i * math.comb(k + 1, i) * (counts[j - i] or 0) for i in range(j + 1))
        for j in range(k + 1)
    ]
    return math.log(math.fsum(c * q**j for j, c in enumerate(h))) - k * math.log1p(-q)


def _of_two_sides(equations: Ints) -> bool:
    """Whether every group is in one sum, or in two sums of different sides."""
    if not np.all((equations == 0) | (equations == 1)):
        return False
    rows = _less_what_they_contain(equations)
    if np.any(rows.sum(axis=0) > 2):
        return False
    meets = (rows @ rows.T > 0) & ~np.eye(len(rows), dtype=bool)
    side = np.zeros(len(rows), dtype=np.int64)
    for start in range(len(rows)):
        if not side[start]:
            side[start], waiting = 1, [start]
            while waiting:
                row = waiting.pop()
                if np.any(side[meets[row]] == side[row]):
                    return False
                waiting += np.flatnonzero(meets[row] & (side == 0)).tolist()
                side[meets[row]] = -side[row]
    return True


def _less_what_they_contain(equations: Ints) -> Ints:
    """The same equations, of which no sum contains another: that one is taken off."""
    rows = np.unique(equations, axis=0)
    for _ in range(rows.size):  # every step takes at least one group off a sum
        inside = np.all(rows[:, None] >= rows[None], axis=2) & rows.any(axis=1)
        inside &= ~np.eye(len(rows), dtype=bool)
        if not inside.any():
            break
        larger, smaller = np.argwhere(inside)[0]
        rows[larger] -= rows[smaller]
    return np.unique(rows[rows.any(axis=1)], axis=0)


def _within(m: int, support: Support) -> int | None:
    """How many tables with zero sums have no entry beyond m; None where that takes too long."""
    number: int = (2 * m + 1) ** support.loose
    cell = [1] * (2 * m + 1)
    for size in support.sizes[~support.tied].tolist():
        number *= _summed(cell, size)[m * size]
    for tie in support.ties:
        found = _tied(m, support.sizes[tie.groups], tie.equations)
        if found is None:
            return None
        number *= found
    return number


def _summed(cell: list[int], size: int) -> list[int]:
    """In how many ways `size` entries have each sum."""
    found = [1]
    for _ in range(size):
        longer = [0] * (len(found) + len(cell) - 1)
        for i, ways in enumerate(found):
            for j, more in enumerate(cell):
                longer[i + j] += ways * more
        found = longer
    return found


def _tied(m: int, sizes: Ints, equations: Ints) -> int | None:
    """How many entries of tied groups satisfy the equations, group by group."""
    reached: Counter[tuple[int, ...]] = Counter({(0,) * len(equations): 1})
    left = m * equations @ sizes  # what later groups can still make good
    for group, size in enumerate(sizes.tolist()):
        ways, column = _summed([1] * (2 * m + 1), size), equations[:, group].tolist()
        left = left - m * size * equations[:, group]
        further: Counter[tuple[int, ...]] = Counter()
        for sums, before in reached.items():
            for i, more in enumerate(ways):
                to = tuple(s + (i - m * size) * c for s, c in zip(sums, column, strict=True))
                if all(abs(s) <= most for s, most in zip(to, left.tolist(), strict=True)):
                    further[to] += before * more
        reached = further
        if len(reached) > _MOST_STATES:
            return None
    return reached[(0,) * len(equations)]
