"""The normaliser price: what conditioning on nonnegative counts adds to the loss.

p_s(m) = a^||m - s||_1 / Z(s) on the conforming tables m >= 0, a = exp(-eps_cell). The loss between
conforming s and s' is eps_cell ||s - s'||_1 + log Z(s')/Z(s); the second term is zero without the
sign condition, because the conforming tables are then a translate of one lattice.

**A step g** (s' = s + g, g in the lattice of differences, l1 norm N). Fix m up to the line m + t g.
Its weights h(t) for s become h(t - 1) for s', so the two sums over the allowed t = lo .. hi have
the ratio 1 + (h(lo - 1) - h(hi)) / sum h. One step below lo some cell i with g_i > 0 turns
negative; at lo it has a value v, 0 <= v <= g_i - 1. Its distance from s_i >= 0 falls from
s_i + g_i - v to |v - s_i|: by g_i if v <= s_i, otherwise by g_i - 2 (v - s_i) >= 2 - g_i. All other
cells move by N - g_i, so h(lo - 1) <= a^(2 - N) h(lo). One step changes the distance by at most N:
h(lo + j) >= q^j h(lo), q = a^N. With L = hi - lo and R = h(hi) / h(lo) >= q^L, the sum over
h(lo) is at least (1 - q^L) / (1 - q) + R. It remains that R (1 + a^(2 - N) - a^2) >= a^(2 - N) q^L,
which holds since R >= q^L and a <= 1. (If hi is infinite, R and q^L are 0; if g only lowers cells
there is no lo, and the ratio is below 1.) Together

    log Z(s')/Z(s) <= pi_N = log(1 + e^((N - 2) eps_cell) - e^(-2 eps_cell)).

N = 2 is one person who moves inside a group of known total, N = 4 a swap between two margins, N = 6
a hexagon. N = 1 is a cell in no published sum, where only a gain counts:
log(1 + e^(-eps_cell) - e^(-2 eps_cell)). Where the published sums have a simple structure the
largest ratio of a step is known better, or exactly (below): one line, one sum over c
cells, the margins of two rows.

Bounds l_i <= m_i <= u_i of single cells change nothing: put l_i in place of 0; and if an upper
bound breaks one step below lo, then g_i < 0, and the mirror image m_i -> u_i - m_i of the same
argument holds. In cells in no published sum a loss then counts too. Bounds on sums of cells have no
better proof than the factor 2.

**Any difference** is a sum of such steps that agree in sign (Graver), so that the walk from s to s'
stays among conforming tables (cell by cell it lies between s and s'): its price is at most the
largest sum of steps' prices over the ways to write ||s - s'||_1 as a sum of norms. It is never
above eps_cell ||s - s'||_1, the paper's factor 2, which holds for any set of tables whatever.
docs/explanation/what-an-exact-figure-costs.md states these as Claims 1 to 6 (4 to 6 are proved
below, at "Normaliser ratios"); tests/privacy/test_normaliser.py enumerates them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal, getcontext, localcontext
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import (
    COUNT,
    EXACT,
    FLAG,
    PLAIN_NAMES,
    check_fields,
    optional,
    takes,
)
from congenial.data.arrays import Ints
from congenial.errors import GuaranteeError
from congenial.figures.figures import Figures
from congenial.figures.integers import rational_kernel
from congenial.figures.limits import FAR, Limits, conforming_tables, limits
from congenial.figures.support import LOOSE, Support, Tie, support

# ---- Enumerated normaliser ----
# The exact loss of counts given signs and bounds, where all conforming tables can be listed.
#
# p_s(m) = a^||m - s||_1 / Z(s) on the listed tables. The largest log ratio between s and s' is at
# m = s: eps_cell ||s - s'||_1 + log Z(s') / Z(s). Tables that see the same numbers of tables at
# each distance have the same Z for every eps_cell, so pairs fall into few kinds, and any eps_cell
# is then judged at once.

MOST_TABLES = 3000  # all pairs of which are compared
_LOSS_GRID = 2**36  # losses are rounded up by one or two units of 2^-36, see `_up`


@dataclass(frozen=True, eq=False)
class Enumerated:
    """Kinds of pairs of listed tables: (kind of s, kind of s', distance), and each kind's Z.

    `around[k, d]`: tables at distance d from a table of kind k. `exact`: the pairs at most some
    distance apart are those of look-alikes, and not more.
    """

    tables: int
    exact: bool
    around: Ints = field(repr=False)
    pairs: Ints = field(repr=False)

    def worst(self, eps_cell: Fraction, distance: int) -> Fraction:
        """The largest log ratio between tables at most `distance` apart, rounded up."""
        return self._largest(eps_cell, distance, lambda apart: float(eps_cell) * apart)

    def normaliser(self, eps_cell: Fraction, distance: int) -> Fraction:
        """The largest log Z(s') / Z(s) between them, rounded up."""
        return self._largest(eps_cell, distance, np.zeros_like)

    def _largest(self, eps_cell: Fraction, distance: int, more: Callable[[Any], Any]) -> Fraction:
        near = self.pairs[self.pairs[:, 2] <= distance]
        if not len(near):
            return Fraction(0)
        log_Z = np.log(self.around @ np.exp(-float(eps_cell) * np.arange(self.around.shape[1])))
        return _up(float((more(near[:, 2]) + log_Z[near[:, 1]] - log_Z[near[:, 0]]).max()))


def _up(value: float) -> Fraction:
    """On a grid, upwards by one unit at least.

    Every Z is a sum of at most a few hundred positive terms, one of which is 1. An exponent below
    700 is off by at most 2^-43 and exp, sums and logarithms by less; terms that underflow do not
    count. So `value` is off by less than 2^-40 for losses up to 100.
    """
    return Fraction(ceil(value * _LOSS_GRID) + 1, _LOSS_GRID)


@lru_cache(maxsize=16)
def enumerate_pairs(figures: Figures, table: tuple[str, ...], replaced: bool) -> Enumerated | None:
    """All pairs of tables over `table` that `figures` allow; None if they are too many.

    `replaced`: look-alikes have the same number of people.
    """
    listed = conforming_tables(figures, table)
    if listed is None or not 1 < len(listed) <= MOST_TABLES:
        return None
    apart = _distances(listed)
    widest = int(apart.max()) + 1
    counts = np.stack([np.bincount(row, minlength=widest) for row in apart])
    around, kind = np.unique(counts, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    people = listed.sum(axis=1)
    met = set()
    for i, row in enumerate(apart):
        alike = (people == people[i]) if replaced else np.ones(len(listed), dtype=bool)
        alike[i] = False
        codes = np.unique(kind[alike] * widest + row[alike])
        met |= {(int(kind[i]), code) for code in codes.tolist()}
    pairs = np.array([(k, code // widest, code % widest) for k, code in sorted(met)])
    return Enumerated(len(listed), _seen(figures, table), around, pairs.reshape(-1, 3))


def _distances(listed: Ints) -> Ints:
    """l1 distances of all pairs."""
    apart = np.zeros((len(listed), len(listed)), dtype=np.int64)
    for cell in listed.T:
        apart += np.abs(cell[:, None] - cell[None, :])
    return apart


def _seen(figures: Figures, table: tuple[str, ...]) -> bool:
    """Whether the table shows, in full, everything the figures speak of.

    Then every listed table is that of some conforming database, and tables at distance 2 d are
    those of databases d records apart.
    """
    bases = {axis.base for axis in figures.schema.axes(table) if axis.name == axis.base}
    return set(figures.bases) <= bases


# ---- Normaliser ratios ----
# The largest ratio Z(s')/Z(s) that one step can cause, for each structure of published sums.
#
# p_s(m) = a^||m - s||_1 / Z(s) on the conforming tables, a = exp(-eps_cell). One person who moves
# from cell j to cell i of a group makes s' = s + e_i - e_j; write r = a^2, c for the group's
# cells and n for its total:
#
# - **any step** of l1 norm N (`any_step`): at most 1 + a^(2 - N) - a^2;
# - **one line** (`line_steps`): the conforming tables are m + t g, t whole between two ends. With
#   q = a^||g||_1, k steps reach at most 1 + q - q^(k + 1), which long lines approach;
# - **one sum** (`one_sum`): 1 + (1 - r) (1 - (1 + w_n) / z_n), z_n = w_0 + ... + w_n,
#   w_j = C(j + c - 2, c - 2) r^j. Attained by s = (n, 0, ..., 0), s' = (n - 1, 1, 0, ..., 0). It
#   grows with n, to 2 - r - (1 - r)^c;
# - **one sum, cells with bounds of their own** (`bounded_sum`): at most
#   2 - r - (1 - r)^2 (1 + r) / v_c, where v_c is the sum of a^||d||_1 over all whole d with sum
#   zero. The margins of two rows and c columns are this too: the first row is a table of c cells
#   with one sum, no cell above its column's total, and every change counts twice: r = a^4.
#
# *Proof for one line.* The tables are x = 0, ..., L - 1 with
# Z(x) = (1 + q - q^(x + 1) - q^(L - x)) / (1 - q), concave and symmetric, so Z(x + k) / Z(x) is
# largest at x = 0: (1 + q - q^(k + 1) - q^(L - k)) / (1 - q^L), which grows with L.
#
# *Proof for one sum.* Z(s') - Z(s) is the weight of tables with m_i = -1 and m_j >= 1, minus that
# of tables with m_j = 0. Fix by how much D the other cells exceed their true sum. (1) With s_i = 0
# and all else equal, the first weight is larger, the second the same and Z(s) smaller, for every D;
# so let s_i = 0. (2) Then the difference is (1 - r) Z(s) P_s(0 < m_j < s_j), by the cells'
# generating functions. (3) Compare s with t, where all n people are in cell j. The weights a^|m -
# s_k| are log-concave in m. Measured from zero, the ratio of the weights for 0 to those for s_k
# falls in m; measured from s_k, it rises in m - s_k. Convolution of log-concave weights keeps both
# orders. By the first, P(m_j = 0) / P(0 < m_j < s_j) is at least as large under s as under t; by
# the second so is P(m_j >= s_j) / P(0 < m_j < s_j). Under t the interval is wider still. So P_s(0 <
# m_j < s_j) <= P_t(0 < m_j < n). It grows with n because z is log-concave in n.
#
# *Proof with bounds.* On a line with D as above the ratio is at most 2 - r (as for any step), and
# at most 1 + r (1 - r) if D = 0: the weight is r^|x| for x from some -l <= 0 to some h >= 1, and
# r^(l + 1) - r^h is at most r (1 - r) times its sum. D = 0 has at least the weight of the tables in
# which no other cell differs, at least 1 + r; all tables together have at most v_c.
#
# Everything is computed in decimals of the current context's precision, far below what the caller
# rounds up by.

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
        term, total = ONE, ONE
        for j in range(1, people + 1):
            term *= r * (j + cells - 2) / j
            total += term
        return total
    with localcontext(prec=getcontext().prec + cells * (2 - (1 - r).adjusted())):
        total = (1 - r ** (people + 1)) / (1 - r)
        for k in range(1, cells - 1):
            total = (total - comb(people + k, k) * r ** (people + 1)) / (1 - r)
    return +total


ZERO = Fraction(0)
FACTOR_TWO = "the paper's factor 2"
SHARP = "proved, and sharp"
ON_A_LINE = "proved, and sharp: conforming tables lie on one line"
IN_A_GROUP = "proved, and sharp for one move inside a group"
TWO_ROWS = "a proved bound for the margins of two rows"
A_BOUND = "a proved bound; enumerations show less"

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

    def __post_init__(self) -> None:
        check_fields(
            self,
            GuaranteeError,
            support=Support,
            limits=Limits,
            distance=COUNT,
            replaced=FLAG,
            enumerated=optional(Enumerated),
        )

    @classmethod
    @takes(GuaranteeError, figures=Figures, table=PLAIN_NAMES, distance=COUNT, replaced=FLAG)
    def of(
        cls, figures: Figures, table: tuple[str, ...], distance: int, replaced: bool = True
    ) -> Conditions:
        """Those of counts over `table` given the figures and m >= 0."""
        return cls(
            support(figures, table),
            limits(figures, table),
            distance,
            replaced,
            enumerate_pairs(figures, table, replaced),
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


@takes(GuaranteeError, eps_cell=EXACT, given=Conditions)
def normaliser_price(eps_cell: Fraction, given: Conditions) -> Price:
    """The proved bound on log Z(s')/Z(s) for tables at most `given.distance` apart.

    The support says which steps there are: inside a group of known total, between groups tied by
    several figures, or into cells in no published sum.
    """
    with localcontext(Context(prec=_DIGITS)):
        on_a_line = _line(eps_cell, given)
        if on_a_line is None and given.limits.sums:
            return _for_sums(eps_cell, given)
        return _rounded(eps_cell, given, on_a_line or _walk(given, *_steps(eps_cell, given)))


def _for_sums(eps_cell: Fraction, given: Conditions) -> Price:
    basis = f"{FACTOR_TWO}: no better factor is proved for bounds on sums"
    return Price(given.distance * eps_cell, basis)


def _rounded(eps_cell: Fraction, given: Conditions, found: tuple[Decimal, str]) -> Price:
    """On the grid, upwards, and never above the factor 2."""
    cap = Price(given.distance * eps_cell, FACTOR_TWO)
    rounded = Fraction(ceil(Fraction(found[0]) * _GRID) + 1, _GRID)
    return cap if cap.value < rounded else Price(rounded, found[1])


@takes(GuaranteeError, epsilon=EXACT, given=Conditions)
def largest_eps_cell(epsilon: Fraction, given: Conditions) -> Fraction:
    """The largest eps_cell (to 2^-40 of epsilon, rounded down) whose prices sum to <= epsilon.

    Counts given that they are not negative, p(m) ~ exp(-eps_cell ||m - s||_1), cost eps_cell times
    the distance of look-alikes for the exponents, and what the normalisers Z(s) differ by on top:
    at most as much again. The result lies between epsilon / (2 distance) and epsilon / distance.

    >>> from congenial import Schema, Table, publish, total
    >>> schema = Schema.from_dict({"bin": {"levels": ["a", "b", "c"]}})
    >>> figures = publish(Table(schema, ["bin"], [40, 30, 30]), total())
    >>> given = Conditions.of(figures, ("bin",), distance=2)
    >>> scale = largest_eps_cell(Fraction(1), given)
    >>> given.loss(scale) <= 1, scale > Fraction(1, 4)
    (True, True)
    """
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


def _line(eps_cell: Fraction, given: Conditions) -> tuple[Decimal, str] | None:
    """The price where conforming tables differ in one direction only."""
    structure = given.support
    if structure.degrees_of_freedom != 1 or structure.loose:
        return None
    norm = 2
    if structure.ties:
        norm = int(abs(rational_kernel(sp.csr_matrix(structure.ties[0].equations))).sum())
    return line_steps(eps_cell, norm, given.distance // norm), ON_A_LINE


def _walk(given: Conditions, prices: dict[int, Decimal], basis: str) -> tuple[Decimal, str]:
    """The largest sum of steps' prices over the ways to write the distance as a sum of norms."""
    best = [Decimal(0)]
    for d in range(1, given.distance + 1):
        reached = [best[d - norm] + price for norm, price in prices.items() if norm <= d]
        best.append(max(best[-1], *reached) if reached else best[-1])
    return best[-1], basis


def _steps(eps_cell: Fraction, given: Conditions) -> tuple[dict[int, Decimal], str]:
    """The price of the dearest step of each norm, and what is known of these prices."""
    structure, basis = given.support, SHARP
    if not all(_two_rows(tie, structure) for tie in structure.ties):
        return _by_norm(eps_cell, given), A_BOUND
    prices = _into_loose(eps_cell, given)
    inside = _inside_groups(eps_cell, given)
    if inside is not None:
        prices[2], basis = max(inside, prices.get(2, inside)), IN_A_GROUP
    if structure.ties:
        widths = {len(tie.groups) // 2 for tie in structure.ties}
        prices[4], basis = max(bounded_sum(eps_cell, c, times=2) for c in widths), TWO_ROWS
    return prices, basis


def _by_norm(eps_cell: Fraction, given: Conditions) -> dict[int, Decimal]:
    """The same from the norms of steps alone."""
    structure = given.support
    if structure.ties:
        balanced = all(tie.pattern.balanced for tie in structure.ties) and not structure.loose
        norms = range(1, given.distance + 1)
        return {n: any_step(eps_cell, n) for n in norms if n % 2 == 0 or not balanced}
    if not np.any(structure.sizes > 1):
        return _into_loose(eps_cell, given)
    alone = {1: any_step(eps_cell, 1)} if structure.loose else {}
    return alone | {2: any_step(eps_cell, 2)}


def _into_loose(eps_cell: Fraction, given: Conditions) -> dict[int, Decimal]:
    """Somebody enters a cell in no published sum, having left another one or from outside."""
    structure = given.support
    if not structure.loose:
        return {}
    free = structure.labels.reshape(-1) == LOOSE
    capped = bool(np.any(given.limits.high[free] < FAR))
    return {2 if given.replaced and not capped else 1: any_step(eps_cell, 1)}


def _two_rows(tie: Tie, known: Support) -> bool:
    """Whether a tie says the margins of two rows (or columns) of single cells."""
    shape = tie.shape
    single = bool(np.all(known.sizes[tie.groups] == 1))
    return shape is not None and len(shape) == 2 and min(shape) == 2 and single


def _inside_groups(eps_cell: Fraction, given: Conditions) -> Decimal | None:
    """The price of one move inside the group where it costs most; None if nobody can move."""
    structure = given.support
    wide = ~structure.tied & (structure.sizes > 1)
    if given.limits.boxed:
        sizes = {int(c) for c in structure.sizes[wide]}
        return max((bounded_sum(eps_cell, c) for c in sizes), default=None)
    most: dict[int, int | None] = {}
    for group in np.flatnonzero(wide).tolist():
        c, n = (
            int(structure.sizes[group]),
            None if structure.totals is None else int(structure.totals[group]),
        )
        if n != 0:
            most[c] = n if n is None else max(n, most.get(c) or 0)
    return max((one_sum(eps_cell, c, n) for c, n in most.items()), default=None)
