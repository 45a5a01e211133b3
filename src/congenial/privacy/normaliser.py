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

**Any difference** is a sum of such steps that agree in sign (Graver), so that the walk from s to s'
stays among conforming tables: its price is at most the largest sum of pi_N over the ways to write
||s - s'||_1 as a sum of norms. It is never above eps_cell ||s - s'||_1, the paper's factor 2.
docs/explanation/what-a-mandate-costs.md has this in full; tests/privacy/test_normaliser.py
enumerates it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil

from congenial.public.support import Support

_DIGITS = 60
_GRID = 2**40  # prices are rounded up to a multiple of 2^-40, far above the error of 60 digits


@dataclass(frozen=True)
class Price:
    """A bound on log Z(s')/Z(s), rounded up, with where it comes from."""

    value: Fraction
    basis: str


def normaliser_price(
    eps_cell: Fraction, support: Support, distance: int, replaced: bool = True
) -> Price:
    """What m >= 0 costs over pairs whose released tables differ by at most `distance` in l1.

    `support` says which steps there are: inside a group of known total, between groups tied by
    several figures, or into cells in no published sum. `replaced`: people move, so that as much
    leaves cells as enters them.
    """
    with localcontext(Context(prec=_DIGITS)):
        if support.ties:
            balanced = all(tie.balanced for tie in support.ties) and not support.loose
            price = _partitions(eps_cell, distance, 2 if balanced else 1)
            basis = "a proved bound; enumerations show less"
        elif support.groups and int(support.sizes.max(initial=0)) > 1:
            price, basis = (distance // 2) * _pi(eps_cell, 2), "proved, and sharp for large groups"
        else:
            gains = distance // 2 if replaced else distance
            price, basis = gains * _pi(eps_cell, 1), "proved, and sharp"
        rounded = Fraction(ceil(Fraction(price) * _GRID) + 1, _GRID)
    cap = distance * eps_cell
    return Price(cap, "the paper's factor 2") if cap < rounded else Price(rounded, basis)


def largest_eps_cell(
    epsilon: Fraction, support: Support, distance: int, replaced: bool = True
) -> Fraction:
    """The largest eps_cell (to 2^-40 of epsilon, rounded down) whose prices sum to <= epsilon."""
    low, high = epsilon / (2 * distance), epsilon / distance  # factor 2, and no price at all
    for _ in range(40):
        middle = (low + high) / 2
        price = normaliser_price(middle, support, distance, replaced).value
        if middle * distance + price <= epsilon:
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
