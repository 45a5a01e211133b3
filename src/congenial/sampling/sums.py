"""The law of the noise in a sum of cells, for statements about error (never for drawing).

One group of k cells that sums to zero, a subset of m of them: P(X = x) ~ D_m(x) D_(k-m)(x), where
D_m is the law of the sum of m independent double geometrics. Its generating function [(1 - a z)(1
- a/z)]^(-m) satisfies a first-order differential equation, hence

    (1 + a^2) x D(x) = a (x - 1 + m) D(x - 1) + a (x + 1 - m) D(x + 1),

of which D is the decaying solution: the ratios D(x)/D(x-1) follow by a backward (stable)
recurrence, with small relative error everywhere, in time linear in the support. Independent groups
are then convolved.

Accuracy: `Pmf.error` bounds the absolute error of any probability read from the law: tails cut off
(at most 1e-15 each per convolution), plus rounding. A fast Fourier transform of length n has a
relative error of O(log n) rounding units in the Euclidean norm, which Cauchy-Schwarz turns into a
bound for sums of entries. Mass is renormalised to one.

**Tied groups.** Groups of k_g cells whose totals are T_g = d_g t, t whole and free: total, female
and voting age leave four groups with d = (1, -1, -1, 1). A sum takes m_g cells of each. Given t the
groups are independent, so with D_m the law of the sum of m independent cells

    P(e) ~ sum over t of the convolution over g of x -> D_m_g(x) D_(k_g - m_g)(d_g t - x).

All terms are positive. For double geometric cells every D has a small relative error, so
the law has one too. For discrete Gaussian ones the error e of a D is absolute. Put in its place,
the error has l1 norm 2 e at most and adds, over all t, at most 2 e times the largest probabilities
of the other groups' totals: little, beside the mass that is left.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import gcd, prod

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.discrete import CellLaw, DiscreteGaussian, DoubleGeometric
from congenial.sampling.exact_decisions import ball, positive_rational, working_precision
from congenial.sampling.grouped_noise import legendre

_UNIT = 2.0**-52  # rounding unit
_WIDEST = 1e6  # largest standard deviation for which a law is tabulated
_DIRECT = 256  # shorter laws are convolved by direct summation


@dataclass(frozen=True)
class Pmf:
    """A law on the integers lo, lo + 1, ...; any probability read from it is within `error`.

    `error` bounds what was cut off and rounded together, for the probability of any event.

    >>> import numpy as np
    >>> law = Pmf(-1, np.array([0.25, 0.5, 0.25]))
    >>> law.hi, law.mean, law.variance
    (1, 0.0, 0.5)
    """

    lo: int
    probs: Floats
    error: float = 0.0

    @property
    def hi(self) -> int:
        """The largest integer with a tabulated probability."""
        return self.lo + len(self.probs) - 1

    @property
    def _x(self) -> Floats:
        return np.arange(self.lo, self.hi + 1, dtype=float)

    @cached_property
    def mean(self) -> float:
        """E X."""
        return float(self._x @ self.probs)

    @cached_property
    def variance(self) -> float:
        """E X^2 - (E X)^2."""
        return float((self._x - self.mean) ** 2 @ self.probs)

    @property
    def mean_abs(self) -> float:
        """E |X|."""
        return float(np.abs(self._x) @ self.probs)

    def within(self, h: int) -> float:
        """P(|X| <= h)."""
        start, stop = max(self.lo, -h), min(self.hi, h)
        return (
            float(self.probs[start - self.lo : stop - self.lo + 1].sum()) if start <= stop else 0.0
        )

    def interval(self, level: float) -> int:
        """Return the smallest h with P(|X| <= h) >= level, numerical error counted against it.

        >>> Pmf(-1, np.array([0.25, 0.5, 0.25])).interval(0.9)
        1
        """
        if not 0 < level < 1 - self.error:
            raise StructureError(
                f"level {level} is outside 0 .. {1 - self.error:.13f}.",
                remedy="Give a level such as 0.95.",
            )
        mass = np.zeros(max(-self.lo, self.hi, 0) + 1)
        np.add.at(mass, np.abs(np.arange(self.lo, self.hi + 1)), self.probs)
        return int(np.searchsorted(np.cumsum(mass), level + self.error, side="left"))


def cell_variance(k: int, eps_cell: Fraction | int) -> float:
    """Variance of one cell's noise in a group of k cells that sums to zero.

    Equal to E_Q [2 Q (Q + k)(k - 1) / (k^2 (k + 1))] with Q as in `SharedTotal`; the moments of Q
    come from Legendre polynomials (z = coth eps_cell, n = k - 1, rho = P_(n-1)(z)/P_n(z)):
    E Q = [n (z - rho) + k (z - 1)] / 2,  4 Var Q = (n + k)(z^2 - 1) - n^2 (1 - 2 z rho + rho^2).
    """
    eps = positive_rational("eps_cell", eps_cell)
    if k < 1:
        raise StructureError(f"a group of {k} cells does not exist.", remedy="Give k >= 1.")
    if k == 1:
        return 0.0
    n = k - 1
    with working_precision(256 + 4 * int(1 / eps).bit_length() + 2 * math.ceil(float(eps))):
        z = 1 / ball(eps).tanh()
        rho = legendre(n - 1, eps) / legendre(n, eps)
        mean = (n * (z - rho) + k * (z - 1)) / 2
        spread = ((n + k) * (z * z - 1) - n * n * (1 - 2 * z * rho + rho * rho)) / 4
        moment = spread + mean * mean + k * mean
        return float(2 * moment * n / (k * k * (k + 1)))


def subset_variance(parts: Sequence[tuple[int, int]], eps_cell: Fraction | int) -> float:
    """Variance of the noise in a sum over m of the k cells of each group, parts = (m, k) per group.

    m (k - m)/(k - 1) cell variances per group: cells are exchangeable with correlation -1/(k - 1).
    """
    terms = []
    for (m, k), times in Counter(parts).items():
        _check_part(m, k)
        if 0 < m < k:
            terms.append(times * m * (k - m) / (k - 1) * cell_variance(k, eps_cell))
    return math.fsum(terms)


def iid_sum_law(m: int, law: CellLaw) -> Pmf:
    """The law of the sum of m independent draws of `law` (m >= 0).

    In closed form for the double geometric law, by repeated convolution for the discrete Gaussian,
    with the error of both in `Pmf.error`. Sums so wide that a table of them would not fit are
    refused (`StructureError`).

    >>> from fractions import Fraction
    >>> law = DoubleGeometric(Fraction(1))
    >>> round(iid_sum_law(3, law).variance / (3 * law.variance), 6)
    1.0
    """
    if m < 0:
        raise StructureError(f"a sum of {m} terms does not exist.", remedy="Give m >= 0.")
    sd = math.sqrt(m * law.variance)
    _check_width(sd)
    if m == 0:
        return Pmf(0, np.ones(1))
    if isinstance(law, DoubleGeometric):
        half = _half_width(sd, float(law.eps))
        logs = _log_double_geometric_sum(m, float(law.eps), half)
        return _symmetric(logs, gain=1 + 1 / float(law.eps))
    half = math.ceil(9 * math.sqrt(float(law.sigma2))) + 2
    return _power(_symmetric(np.asarray(law.log_pmf(np.arange(half + 1)))), m)


def subset_sum_law(parts: Sequence[tuple[int, int]], law: CellLaw, independent: int = 0) -> Pmf:
    """The law of the noise in a sum over m of the k cells of each group, parts = (m, k) per group,
    and over `independent` cells that belong to no group; `law` is that of an unconditioned cell.

    Groups are independent and each sums to zero. Equal parts are combined by repeated squaring.
    Refused beyond a standard deviation of 1e6 (`subset_variance` has no such limit).

    >>> subset_sum_law([(3, 3)], DoubleGeometric(Fraction(1, 4))).interval(0.95)
    0
    """
    for m, k in set(parts):
        _check_part(m, k)
    spread = sum(m * (k - m) / k for m, k in parts) + independent
    _check_width(math.sqrt(spread * law.variance))
    total = iid_sum_law(independent, law)
    for (m, k), times in sorted(Counter(parts).items()):
        if 0 < m < k:
            total = _convolve(total, _power(_group_law(min(m, k - m), k, law), times))
    return total


def _check_part(m: int, k: int) -> None:
    if not (k >= 1 and 0 <= m <= k):
        raise StructureError(
            f"{m} of {k} cells is not a subset of a group.", remedy="Give 0 <= m <= k, k >= 1."
        )


def _check_width(sd: float) -> None:
    if sd > _WIDEST:
        raise StructureError(
            "the noise in this sum has a standard deviation above 1e6; its law is not tabulated.",
            remedy="Use its variance (subset_variance), or a larger epsilon.",
        )


def _half_width(sd: float, rate: float) -> int:
    """Beyond 9 sd + 45/rate a log-concave law with tails ~ exp(-rate |x|) has less than 1e-18
    of mass.
    """
    return math.ceil(9 * sd + 45 / rate) + 2


@lru_cache(maxsize=256)
def _group_law(m: int, k: int, law: CellLaw) -> Pmf:
    """One group, m of k cells: the normalised product D_m D_(k-m)."""
    if isinstance(law, DiscreteGaussian):
        return _product(iid_sum_law(m, law), iid_sum_law(k - m, law))
    rate = float(law.eps)
    half = _half_width(math.sqrt(subset_variance([(m, k)], law.eps)), 2 * rate)
    logs = _log_double_geometric_sum(m, rate, half) + _log_double_geometric_sum(k - m, rate, half)
    return _symmetric(logs, gain=2 + 2 / rate)


def _product(p: Pmf, q: Pmf) -> Pmf:
    """The normalised product of two laws centred at zero.

    An absolute error e in one factor changes probabilities by at most e times the other's largest
    value over the normaliser, and both are largest at zero.
    """
    half = min(p.hi, q.hi, -p.lo, -q.lo)  # rounding may trim one side further than the other
    left, right = p.probs[-half - p.lo : half - p.lo + 1], q.probs[-half - q.lo : half - q.lo + 1]
    both = left * right
    mass = float(both.sum())
    error = 2 * (p.error * float(q.probs.max()) + q.error * float(p.probs.max())) / mass
    return _trim(-half, both / mass, error, 1e-18)


def _log_double_geometric_sum(m: int, eps: float, half: int) -> Floats:
    """log D_m(x) - log D_m(0) for x = 0 .. half, by the backward recurrence of the ratios.

    A step forgets a share of about eps of an earlier error, so a ratio carries at most some
    1 + 1/eps roundings.
    """
    a = math.exp(-eps)
    ratios = np.empty(half)
    # the start is forgotten at the rate of the product of r^2, i.e. after some standard deviations
    start = half + math.ceil(25 / eps + 10 * math.sqrt(2 * a * m) / (1 - a)) + 50
    r = a
    for x in range(start, 0, -1):
        r = a * (x - 1 + m) / ((1 + a * a) * x - a * (x + 1 - m) * r)
        if x <= half:
            ratios[x - 1] = r
    return np.concatenate([[0.0], np.cumsum(np.log(ratios))])


def _symmetric(log_half: Floats, gain: float = 1.0) -> Pmf:
    """The normalised symmetric law with the given log weights at 0, 1, 2, ...

    A log weight at x carries about x roundings, each amplified by at most `gain`, so probabilities
    are off by at most that times E |X|.
    """
    half = np.exp(log_half - log_half.max())
    probs = np.concatenate([half[:0:-1], half])
    law = _trim(1 - len(half), probs / probs.sum(), 0.0, 1e-18)
    return Pmf(law.lo, law.probs, law.error + 4 * gain * _UNIT * (1 + law.mean_abs))


def _trim(lo: int, probs: Floats, error: float, cut: float) -> Pmf:
    """Cut at most `cut` of mass on each side and spread it over the rest."""
    start = int(np.searchsorted(np.cumsum(probs), cut))
    stop = len(probs) - int(np.searchsorted(np.cumsum(probs[::-1]), cut))
    masses = probs[start:stop]
    return Pmf(lo + start, masses / masses.sum(), error + 2 * cut)


def _convolve(p: Pmf, q: Pmf) -> Pmf:
    """The law of a sum of two independent variables."""
    error = p.error + q.error
    if min(len(p.probs), len(q.probs)) <= _DIRECT:
        terms = min(len(p.probs), len(q.probs))
        probs = np.convolve(p.probs, q.probs)  # positive terms: relative error terms * _UNIT
        return _trim(p.lo + q.lo, probs, error + terms * _UNIT, 1e-18)
    from scipy.fft import irfft, next_fast_len, rfft

    n = len(p.probs) + len(q.probs) - 1
    size = next_fast_len(n, real=True)
    probs = irfft(rfft(p.probs, size) * rfft(q.probs, size), size)[:n]
    # each entry is off by at most about 4 log2(size) _UNIT ||p|| ||q|| (Euclidean norms); summed
    # over a range of entries that is at most the square root of its length times as much
    norms = float(np.linalg.norm(p.probs) * np.linalg.norm(q.probs))
    rounding = 12 * math.log2(size) * _UNIT * norms * math.sqrt(size)
    return _trim(p.lo + q.lo, np.maximum(probs, 0.0), error + rounding, 1e-15)


def _power(law: Pmf, times: int) -> Pmf:
    """The law of the sum of `times` >= 1 independent copies, by repeated squaring."""
    result: Pmf | None = None
    while True:
        if times & 1:
            result = law if result is None else _convolve(result, law)
        times >>= 1
        if times == 0:
            assert result is not None
            return result
        law = _convolve(law, law)


_MOST_WORK = 4e9  # products summed for one law
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
    masses = np.zeros(2 * reach + 1)
    for t in range(-far, far + 1):
        term = _given(t, parts)
        if term is not None:
            lo, weights = term
            masses[lo + reach : lo + reach + len(weights)] += weights
    mass = float(masses.sum())
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
    inside = np.flatnonzero(masses)
    window = masses[inside[0] : inside[-1] + 1]
    return Pmf(int(inside[0]) - reach, window / mass, error)


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
    for law in {id(single): single for single in laws}.values():
        total = _convolve(total, _power(law, often[id(law)]))
    return total
