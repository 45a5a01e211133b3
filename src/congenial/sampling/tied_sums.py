"""The law of the noise in a sum of cells of groups tied with one free sum (never for drawing).

Groups of k_g cells whose totals are T_g = d_g t, t whole and free: total, female and voting age
leave four groups with d = (1, -1, -1, 1). A sum takes m_g cells of each. Given t the groups are
independent, so with D_m the law of the sum of m independent cells

    P(e) ~ sum over t of the convolution over g of x -> D_m_g(x) D_(k_g - m_g)(d_g t - x).

All terms are positive. For double geometric cells every D has a small relative error (`sums`), so
the law has one too. For discrete Gaussian ones the error e of a D is absolute. Put in its place,
the error has l1 norm 2 e at most and adds, over all t, at most 2 e times the largest probabilities
of the other groups' totals: little, beside the mass that is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import gcd, prod

import numpy as np

from congenial.figures.lattice import Ints
from congenial.sampling.discrete import CellLaw, DoubleGeometric, Floats
from congenial.sampling.sums import Pmf, _convolve, _power, iid_sum_law

_MOST_WORK = 4e9  # products summed for one law
_UNIT = 2.0**-52
_CUT = 1e-18  # mass of a law outside its table, on each side


def direction(equations: Ints) -> Ints | None:
    """The least whole d with { T : equations @ T = 0 } = { t d }; None if more sums are free.

    >>> direction(np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])).tolist()
    [1, -1, -1, 1]
    """
    groups = equations.shape[1]
    if groups > 64 or np.linalg.matrix_rank(equations.astype(float)) != groups - 1:
        return None
    real = np.linalg.svd(equations.astype(float))[2][-1]
    real = real / np.abs(real)[np.abs(real) > 1e-9].min()
    for times in range(1, 13):  # entries of small whole ratios
        whole: Ints = np.rint(real * times).astype(np.int64)
        if not np.any(equations @ whole) and np.any(whole):
            whole //= gcd(*(int(abs(v)) for v in whole))
            return whole if whole[np.flatnonzero(whole)[0]] > 0 else -whole
    return None


@lru_cache(maxsize=256)
def tied_sum_law(
    direction: tuple[int, ...], sizes: tuple[int, ...], taken: tuple[int, ...], law: CellLaw
) -> Pmf | None:
    """The law of the noise in a sum over taken[g] of the sizes[g] cells of each group; None where
    tabulating it takes too long or its error would be too large.
    """
    left = [k - m for k, m in zip(sizes, taken, strict=True)]
    sums = {m: iid_sum_law(m, law) for m in {*taken, *left}}
    parts = [(d, sums[m], sums[n]) for d, m, n in zip(direction, taken, left, strict=True)]
    far = min((_far(p) + _far(q)) // abs(d) for d, p, q in parts if d)
    widths = [len(p.probs) for _, p, q in parts if len(p.probs) > 1 and len(q.probs) > 1]
    if _work(widths) * (2 * far + 1) > _MOST_WORK:
        return None
    reach = sum(_far(p) for _, p, _ in parts)
    found = np.zeros(2 * reach + 1)
    for t in range(-far, far + 1):
        term = _given(t, parts)
        if term is not None:
            lo, weights = term
            found[lo + reach : lo + reach + len(weights)] += weights
    mass = float(found.sum())
    if not mass:
        return None
    error = 8 * _UNIT * sum(_far(p) + _far(q) for _, p, q in parts)
    if isinstance(law, DoubleGeometric):  # each D carries some (1 + 1/eps) roundings a step
        error = error * (1 + 1 / float(law.eps)) + 4 * len(parts) * _CUT / mass
    else:
        largest = {k: float(iid_sum_law(k, law).probs.max()) for k in {*sizes}}
        error += 2 * _missed(parts, [largest[k] for k in sizes]) / mass
    if error > 1e-6:
        return None
    inside = np.flatnonzero(found)
    kept = found[inside[0] : inside[-1] + 1]
    return Pmf(int(inside[0]) - reach, kept / mass, error)


def _missed(parts: list[tuple[int, Pmf, Pmf]], largest: list[float]) -> float:
    """What the errors of the D can add to all weights; `largest` probability of each total."""
    missed = 0.0
    for g, (d, p, q) in enumerate(parts):
        others = 1.0 if d == 0 else prod(largest[:g] + largest[g + 1 :])
        missed += 2 * (p.error + q.error + 2 * _CUT) * others
    return missed


def _far(law: Pmf) -> int:
    """The largest size in its table; rounding may have cut one side more than the other."""
    return max(law.hi, -law.lo)


def _work(widths: Sequence[int]) -> float:
    """Products for one t: tables of all lengths, and convolutions of those met in part."""
    work, length = float(sum(widths)) + 100, 1
    for width in sorted(widths):
        work += length * width if length > 1 else 0
        length += width - 1
    return work


def _given(t: int, parts: list[tuple[int, Pmf, Pmf]]) -> tuple[int, Floats] | None:
    """Weights of the sum for one t, from their first place on; None if nothing is left."""
    lo, weights = 0, np.ones(1)
    for d, p, q in parts:
        first, last = max(p.lo, d * t - q.hi), min(p.hi, d * t - q.lo)
        if first > last:
            return None
        if first == last:  # all cells of the group, or none: the sum is moved, not spread
            weights = weights * (p.probs[first - p.lo] * q.probs[d * t - first - q.lo])
        else:
            own = p.probs[first - p.lo : last - p.lo + 1]
            rest = q.probs[d * t - last - q.lo : d * t - first - q.lo + 1][::-1]
            spread = own * rest
            weights = weights * spread if len(weights) == 1 else np.convolve(weights, spread)
        lo += first
    return lo, weights


def independent_sum(laws: Sequence[Pmf]) -> Pmf:
    """The law of a sum of independent variables; one law that comes often is squared repeatedly."""
    total, often = Pmf(0, np.ones(1)), Counter(map(id, laws))
    for law in {id(one): one for one in laws}.values():
        total = _convolve(total, _power(law, often[id(law)]))
    return total
