"""The largest ratio Z(s')/Z(s) that one step can cause, for each structure of published sums.

p_s(m) = a^||m - s||_1 / Z(s) on the conforming tables, a = exp(-eps_cell). One person who moves
from cell j to cell i of a group makes s' = s + e_i - e_j; write r = a^2, c for the group's cells
and n for its total. docs/explanation/what-an-exact-figure-costs.md proves what is used here:

- **any step** of l1 norm N (`any_step`): at most 1 + a^(2 - N) - a^2;
- **one line** (`line_steps`): the conforming tables are m + t g, t whole between two ends. With
  q = a^||g||_1, k steps reach at most 1 + q - q^(k + 1), which long lines approach;
- **one sum** (`one_sum`): 1 + (1 - r) (1 - (1 + w_n) / z_n), z_n = w_0 + ... + w_n,
  w_j = C(j + c - 2, c - 2) r^j. Attained by s = (n, 0, ..., 0), s' = (n - 1, 1, 0, ..., 0). It
  grows with n, to 2 - r - (1 - r)^c;
- **one sum, cells with bounds of their own** (`bounded_sum`): at most
  2 - r - (1 - r)^2 (1 + r) / v_c, where v_c is the sum of a^||d||_1 over all whole d with sum zero.
  The margins of two rows and c columns are this too: the first row is a table of c cells with one
  sum, no cell above its column's total, and every change counts twice, so that r = a^4.

Everything is computed in decimals of the current context's precision, far below what the caller
rounds up by.
"""

from __future__ import annotations

from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from math import comb

ONE = Decimal(1)
MOST_TERMS = 3000  # of a sum over people
MOST_CELLS = 300  # of a recursion over cells


def power(eps_cell: Fraction, times: int) -> Decimal:
    """e^(times * eps_cell)."""
    exponent = times * eps_cell
    return (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()


def any_step(eps_cell: Fraction, norm: int) -> Decimal:
    """pi_N = log(1 + e^((N - 2) eps_cell) - e^(-2 eps_cell)), for a step of l1 norm N."""
    return (1 + power(eps_cell, norm - 2) - power(eps_cell, -2)).ln()


def line_steps(eps_cell: Fraction, norm: int, steps: int) -> Decimal:
    """log(1 + q - q^(k + 1)) for k steps along a line whose direction has l1 norm `norm`."""
    q = power(eps_cell, -norm)
    return (1 + q - q ** (steps + 1)).ln()


def one_sum(eps_cell: Fraction, cells: int, people: int | None) -> Decimal:
    """The price of one move among `cells` cells with the sum `people`; None for any sum."""
    r = power(eps_cell, -2)
    if people is None or (people > MOST_TERMS and cells > MOST_CELLS):
        return (2 - r - (1 - r) ** cells).ln()
    last = comb(people + cells - 2, cells - 2) * r**people
    return (1 + (1 - r) * (1 - (1 + last) / _weights(r, cells, people))).ln()


def bounded_sum(eps_cell: Fraction, cells: int, times: int = 1) -> Decimal:
    """The same with bounds of single cells; each move changes `times` as much as one person."""
    r = power(eps_cell, -2 * times)
    if cells > MOST_CELLS:
        return (2 - r).ln()
    both_ways = sum((comb(cells - 1, k) ** 2 * r**k for k in range(cells)), Decimal(0))
    return (2 - r - (1 - r) ** (cells + 1) * (1 + r) / both_ways).ln()


def _weights(r: Decimal, cells: int, people: int) -> Decimal:
    """z_n: term by term, or for many people by (1 - r) z(c) = z(c - 1) - r w_n(c), from c = 2.

    Each step of the recursion may lose as many digits as 1 / (1 - r) has, so they are added first.
    """
    if people <= MOST_TERMS:
        term, found = ONE, ONE
        for j in range(1, people + 1):
            term *= r * (j + cells - 2) / j
            found += term
        return found
    with localcontext(prec=getcontext().prec + cells * (2 - (1 - r).adjusted())):
        found = (1 - r ** (people + 1)) / (1 - r)
        for k in range(1, cells - 1):
            found = (found - comb(people + k, k) * r ** (people + 1)) / (1 - r)
    return +found
