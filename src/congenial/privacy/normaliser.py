"""The normaliser price: what conditioning on nonnegative counts adds to the loss.

p_s(m) = a^||m - s||_1 / Z(s) on the conforming tables m >= 0, a = exp(-eps_cell). The loss between
conforming s and s' is eps_cell ||s - s'||_1 + log Z(s')/Z(s); the second term is zero without the
sign condition, because the conforming tables are then a translate of one lattice.

**A step g** (s' = s + g, g in the lattice of differences, l1 norm N). Fix m up to the line m + t g.
Its weights h(t) for s become h(t - 1) for s', so the two sums over the allowed t = lo .. hi have
the ratio 1 + (h(lo - 1) - h(hi)) / sum h. One step below lo some cell i with g_i > 0 turns
negative: its own term changes by at least 2 - g_i, the others by at least -(N - g_i) in all, hence
h(lo - 1) <= a^(2 - N) h(lo); and h falls by at most a^N a step. Together

    log Z(s')/Z(s) <= pi_N = log(1 + e^((N - 2) eps_cell) - e^(-2 eps_cell)).

N = 2 is one person who moves inside a group: log(2 - e^(-2 eps_cell)), which is sharp. N = 4 is a
swap between two margins, N = 6 a hexagon. N = 1 is a cell in no published sum, where only a gain
counts: log(1 + e^(-eps_cell) - e^(-2 eps_cell)).

Bounds l_i <= m_i <= u_i of single cells change nothing: put l_i in place of 0; and if an upper
bound breaks one step below lo, then g_i < 0, and the mirror image m_i -> u_i - m_i of the same
argument holds. In cells in no published sum a loss then counts too. Bounds on sums of cells have no
better proof than the factor 2.

**Any difference** is a sum of such steps that agree in sign (Graver), so that the walk from s to s'
stays among conforming tables (cell by cell it lies between s and s'): its price is at most the
largest sum of pi_N over the ways to write ||s - s'||_1 as a sum of norms. It is never above
eps_cell ||s - s'||_1, the paper's factor 2, which holds for any set of tables whatever.
docs/explanation/what-a-mandate-costs.md has this in full; tests/privacy/test_normaliser.py
enumerates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil

import numpy as np

from congenial.figures.invariants import Invariants
from congenial.figures.limits import FAR, Limits, limits
from congenial.figures.support import LOOSE, Support, support
from congenial.privacy.enumerated_price import Enumerated, enumerate_pairs

ZERO = Fraction(0)
FACTOR_TWO = "the paper's factor 2"

_DIGITS = 60
_GRID = 2**40  # prices are rounded up to a multiple of 2^-40, far above the error of 60 digits


@dataclass(frozen=True)
class Price:
    """What signs and bounds add to the loss, rounded up, with where it comes from.

    `bound`: the proved bound, where enumeration shows that less is enough.
    """

    value: Fraction
    basis: str
    bound: Fraction | None = None


@dataclass(frozen=True, eq=False)
class Conditions:
    """What a release of counts was conditioned on, and how far look-alikes are apart.

    `distance`: largest l1 distance of two look-alike released tables. `replaced`: people move, so
    that as much leaves cells as enters them. `enumerated`: all pairs, where they can be listed.
    """

    support: Support
    limits: Limits
    distance: int
    replaced: bool = True
    enumerated: Enumerated | None = None

    @classmethod
    def of(
        cls, mandates: Invariants, table: tuple[str, ...], distance: int, replaced: bool = True
    ) -> Conditions:
        """Those of counts over `table` given the mandates and m >= 0."""
        return cls(
            support(mandates, table),
            limits(mandates, table),
            distance,
            replaced,
            enumerate_pairs(mandates, table, replaced),
        )

    @property
    def exact(self) -> bool:
        """Whether `loss` is attained by some pair, up to rounding."""
        return self.enumerated is not None and self.enumerated.exact

    def loss(self, eps_cell: Fraction) -> Fraction:
        """The loss of one such release alone: both prices together."""
        if self.enumerated is not None:
            return self.enumerated.worst(eps_cell, self.distance)
        return eps_cell * self.distance + normaliser_price(eps_cell, self).value

    def price(self, eps_cell: Fraction) -> Price:
        """What it adds to the adjacency price eps_cell * distance, for one such release alone."""
        proved = normaliser_price(eps_cell, self)
        if self.enumerated is None:
            return proved
        more = max(self.enumerated.worst(eps_cell, self.distance) - eps_cell * self.distance, ZERO)
        kind = "exact, by" if self.enumerated.exact else "a bound by"
        basis = f"{kind} enumeration of {self.enumerated.tables} tables"
        return Price(more, basis, proved.value)

    def normaliser(self, eps_cell: Fraction) -> Fraction:
        """A bound on log Z(s')/Z(s), to be added to any joint adjacency price."""
        proved = normaliser_price(eps_cell, self).value
        if self.enumerated is None:
            return proved
        return min(proved, self.enumerated.normaliser(eps_cell, self.distance))


def normaliser_price(eps_cell: Fraction, given: Conditions) -> Price:
    """The proved bound on log Z(s')/Z(s) for tables at most `given.distance` apart.

    The support says which steps there are: inside a group of known total, between groups tied by
    several figures, or into cells in no published sum.
    """
    known, distance = given.support, given.distance
    cap = Price(distance * eps_cell, FACTOR_TWO)
    if given.limits.sums:
        return Price(cap.value, f"{FACTOR_TWO}: nothing better is proved for bounds on sums")
    with localcontext(Context(prec=_DIGITS)):
        if known.ties:
            balanced = all(tie.pattern.balanced for tie in known.ties) and not known.loose
            price = _partitions(eps_cell, distance, 2 if balanced else 1)
            basis = "a proved bound; enumerations show less"
        elif known.groups and int(known.sizes.max(initial=0)) > 1:
            price, basis = (distance // 2) * _pi(eps_cell, 2), "proved, and sharp for large groups"
            if known.loose and distance % 2:  # two steps of norm 1 never cost more than one of 2
                price += _pi(eps_cell, 1)
        else:
            free = known.labels.reshape(-1) == LOOSE
            capped = bool(np.any(given.limits.high[free] < FAR))
            gains = distance if capped or not given.replaced else distance // 2
            price, basis = gains * _pi(eps_cell, 1), "proved, and sharp"
        rounded = Fraction(ceil(Fraction(price) * _GRID) + 1, _GRID)
    return cap if cap.value < rounded else Price(rounded, basis)


def largest_eps_cell(epsilon: Fraction, given: Conditions) -> Fraction:
    """The largest eps_cell (to 2^-40 of epsilon, rounded down) whose prices sum to <= epsilon."""
    # Enumerated losses are computed in doubles: keep away from the edge, where machines may differ.
    aim = epsilon if given.enumerated is None else epsilon - Fraction(1, 2**34)
    low, high = epsilon / (2 * given.distance), epsilon / given.distance
    if given.loss(low) > aim:  # the factor 2 itself, so near to the edge
        low = aim / (2 * given.distance)
    for _ in range(40):
        middle = (low + high) / 2
        if given.loss(middle) <= aim:
            low = middle
        else:
            high = middle
    return low.limit_denominator(10**9) if low.limit_denominator(10**9) <= low else low


def _exp(x: Fraction) -> Decimal:
    return (Decimal(x.numerator) / Decimal(x.denominator)).exp()


def _pi(eps_cell: Fraction, norm: int) -> Decimal:
    """log(1 + e^((N - 2) eps_cell) - e^(-2 eps_cell))."""
    return (1 + _exp((norm - 2) * eps_cell) - _exp(-2 * eps_cell)).ln()


def _partitions(eps_cell: Fraction, distance: int, unit: int) -> Decimal:
    """max of sum pi_N over the ways to write `distance` as a sum of norms, multiples of `unit`."""
    best = [Decimal(0)]
    for k in range(1, distance // unit + 1):
        best.append(max(best[k - p] + _pi(eps_cell, unit * p) for p in range(1, k + 1)))
    return best[-1]
