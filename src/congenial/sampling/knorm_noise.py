"""Integer K-norm noise on two-way tables given both margins, drawn exactly.

p(u) ~ exp(-eps gauge(u)) on integer r x c tables with zero row and column sums, where the gauge is
that of the hull of S: the smallest norm ball that holds every difference of adjacent
tables, hence the least noise of this kind at eps (semi-dp, section 4.2, on the integers and with
the true S).

**Thinning.** Every generator has l1 norm at most L (4 for swaps, 6 with hexagons), so gauge(u) >=
||u||_1 / L. Propose double geometric noise given the margins at eps / L per cell (`TwoWayNoise`)
and keep it with probability exp(-eps (gauge(u) - ||u||_1 / L)). A fifth to four fifths are kept.
Doubles with certified bounds decide what is clear, rationals and ball arithmetic the rest: H = 0.
Running time depends on the shape, eps and chance, never on data.

**The gauge.** S(A_a) holds the integer r x c tables with zero margins and l1 norm at most 2a: for a
= 2 the swaps (+1 -1 / -1 +1), for a = 3 also the hexagons, which semi-dp, Proposition 32, misses
where min(r, c) >= 3 (docs/errata). gauge(w) = inf { t : w in t hull(S) } is the linear programme

    min sum lambda_g  with  sum lambda_g g = w, lambda >= 0;
    its dual: max <Y, w>  with  <Y, g> <= 1 for every generator g.

A dual point is feasible for the swaps when d(i, k) + d(k, i) <= 1, d(i, k) = max over j of
Y_ij - Y_kj, and for the hexagons when also d(i, k) + d(k, m) + d(m, i) <= 1.

**Closed forms.** 2 x c: ||w||_1 / 4. 3 x c with hexagons: half the largest l1 norm of a row (a
table splits uniquely into steps from row to row in one column, which form a circulation on three
points; opposite triangles replace three pairs). 3 x c with swaps only: the larger of
sum_j max(0, w_1j, -w_2j) and sum_j max(0, w_2j, -w_1j) (put Y_1j = 0 and shift Y_2j, Y_3j into
[0, 1]; all columns share the band s <= Y_2j - Y_3j <= s + 1, the optimum is convex in s and so is
attained at s = 0 or -1). Otherwise the programme is solved, in doubles with certified bounds or in
rationals. `papers.sensitivity_spaces` has the hull of any other set.

Decisions that doubles leave open are made in rationals (`exact_gauge`): the simplex method from the
basis where the doubles stopped, nearly always optimal already; ties are broken lexicographically,
so it ends (Dantzig, Orden and Wolfe 1955).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpq, fmpq_mat, fmpz_mat

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.exact_decisions import ball, below, first_kept, positive_rational
from congenial.sampling.lattice_gaussian import checked_shape, checked_tables, zero_margins
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way_noise import TwoWayNoise

_LISTED = 1 << 18  # generators that are written down at most
_CELLS = 1000  # coordinates for which the certified bounds have been derived


def swaps(r: int, c: int) -> Ints:
    """All r x c tables +1 at (i, j), (k, l) and -1 at (i, l), (k, j); shape (n, r, c)."""
    moves = [
        (i, k, j, m) for i, k in combinations(range(r), 2) for j, m in permutations(range(c), 2)
    ]
    out = np.zeros((len(moves), r, c), dtype=np.int64)
    for g, (i, k, j, m) in zip(out, moves, strict=True):
        g[i, j] = g[k, m] = 1
        g[i, m] = g[k, j] = -1
    return out


def hexagons(r: int, c: int) -> Ints:
    """All r x c tables with one +1 and one -1 in each of three rows and three columns."""
    moves = [
        (rows, columns, shift)
        for rows in combinations(range(r), 3)
        for columns in permutations(range(c), 3)
        for shift in (1, 2)
    ]
    out = np.zeros((len(moves), r, c), dtype=np.int64)
    for g, (rows, columns, shift) in zip(out, moves, strict=True):
        for t in range(3):
            g[rows[t], columns[t]] += 1
            g[rows[t], columns[(t + shift) % 3]] -= 1
    return out


class Gauge:
    """gauge of hull(S(A_records)) on r x c tables with zero row and column sums.

    records: 2 (swaps) or 3 (hexagons too). At least two rows and two columns.

    >>> float(Gauge((3, 3), 2).value([[1, -1, 0], [0, 1, -1], [-1, 0, 1]]))
    2.0
    >>> Gauge((3, 3), 3).exact([[1, -1, 0], [0, 1, -1], [-1, 0, 1]])
    Fraction(1, 1)
    """

    def __init__(self, shape: tuple[int, int], records: int) -> None:
        self.shape = checked_shape(shape)
        if min(self.shape) < 2:
            raise StructureError(
                f"both margins fix every cell of a {self.shape[0]} x {self.shape[1]} table.",
                remedy="Publish the table exactly.",
            )
        if records not in (2, 3):
            raise StructureError(
                f"the hull of tables that differ in {records} records is not built.",
                remedy="Use 2 or 3 records, or another mechanism.",
            )
        self.records = records
        self.hexagons = records == 3 and min(self.shape) >= 3

    @property
    def dimension(self) -> int:
        """Dimension of the tables with zero margins."""
        return (self.shape[0] - 1) * (self.shape[1] - 1)

    @property
    def longest(self) -> int:
        """The largest l1 norm of a generator: gauge(w) >= ||w||_1 / longest."""
        return 6 if self.hexagons else 4

    @property
    def closed(self) -> bool:
        """Whether there is a closed form."""
        return min(self.shape) <= 3

    @cached_property
    def generators(self) -> Ints:
        """S without 0: shape (n, r, c). Refused where it is too large to be written down."""
        (r, c), number = self.shape, self.number
        if number > _LISTED:
            raise StructureError(
                f"S has {number:,} tables, too many to list.",
                remedy="Use value() or exact(), which make them on demand.",
            )
        if not self.hexagons:
            return swaps(r, c)
        return np.concatenate([swaps(r, c), hexagons(r, c)])

    @property
    def number(self) -> int:
        """How many tables S holds besides 0: 2 C(r,2) C(c,2), and 12 C(r,3) C(c,3) hexagons."""
        r, c = self.shape
        pairs = r * (r - 1) * c * (c - 1) // 2
        triples = r * (r - 1) * (r - 2) * c * (c - 1) * (c - 2) // 3
        return pairs + (triples if self.hexagons else 0)

    def value(self, w: npt.ArrayLike) -> Any:
        """gauge of real tables, shape (..., r, c), in doubles; inf where a margin is not zero.

        Margins of real tables may be off by 1e-9 of the norm.
        """
        weights = np.asarray(w)
        if weights.shape[-2:] != self.shape:
            raise StructureError(
                f"a table of shape {weights.shape[-2:]} was given, {self.shape} is needed.",
                remedy="Give one value per cell.",
            )
        real = weights.astype(np.float64)
        norm = np.abs(real).sum(axis=(-2, -1))
        if np.issubdtype(weights.dtype, np.integer):
            inside = zero_margins(weights)
        else:
            off = np.abs(real.sum(axis=-1)).max(axis=-1) + np.abs(real.sum(axis=-2)).max(axis=-1)
            inside = off <= 1e-9 * norm
        return np.where(inside, self._values(real.reshape(-1, *self.shape)).reshape(norm.shape),
                        np.inf)[()]  # fmt: skip

    def _values(self, tables: Floats) -> Floats:
        from congenial.sampling import two_way_kernels as kernels

        if min(self.shape) == 2:
            plain: Floats = np.abs(tables).sum(axis=(1, 2)) / 4
            return plain
        self._refuse_if_large()
        out = np.empty(len(tables))
        kernels.values(self.turned(tables), self.kind, out)
        return out

    def _refuse_if_large(self) -> None:
        if not self.closed and self.dimension > _CELLS:
            raise StructureError(
                f"the gauge of a {self.shape[0]} x {self.shape[1]} table is not computed.",
                remedy=f"At most {_CELLS} free cells.",
            )

    @property
    def kind(self) -> int:
        """Which compiled form applies (`two_way_kernels`)."""
        from congenial.sampling import two_way_kernels as kernels

        if min(self.shape) == 3:
            return kernels.THREE_HEXAGONS if self.hexagons else kernels.THREE_SWAPS
        return kernels.HEXAGONS if self.hexagons else kernels.SWAPS

    def turned(self, tables: Any) -> Any:
        """Tables with the shorter side as rows, as the compiled forms take them."""
        return np.ascontiguousarray(tables.swapaxes(1, 2) if self._turn else tables)

    @property
    def _turn(self) -> bool:
        return self.shape[0] > self.shape[1]

    def exact(self, w: npt.ArrayLike) -> Fraction:
        """gauge of one integer table with zero margins, exactly."""
        from congenial.sampling import two_way_kernels as kernels

        table = np.asarray(w, dtype=np.int64)
        if table.shape != self.shape or not zero_margins(table):
            raise StructureError(
                f"a {self.shape[0]} x {self.shape[1]} table with zero margins is needed.",
                remedy="Subtract two tables with the same margins.",
            )
        if self.closed:
            doubled = 2 * float(self._values(table[None].astype(np.float64))[0])
            return Fraction(int(doubled), 2)  # closed forms are sums of integers, or half of one
        self._refuse_if_large()
        turned = self.turned(table[None])[0]
        basis = np.empty((self.dimension, self.dimension))
        kernels.bracket(turned.astype(np.float64), self.hexagons, -1.0, np.inf, basis)
        return exact_gauge(turned, self.hexagons, basis)


Rational = Any  # flint's fmpq


def exact_gauge(w: Ints, hexagons: bool, basis: Floats) -> Fraction:
    """gauge(w) of an integer table with zero margins.

    basis: rows are generators in coordinates (the cells outside the last row and column), a start;
    if it does not serve, the corner swaps do.
    """
    b = [int(v) for v in w[:-1, :-1].reshape(-1)]
    start = _started(b, [[int(v) for v in row] for row in basis])
    if start is None:
        signs = [1 if v >= 0 else -1 for v in b]
        start = _started(b, [[s * (k == m) for m in range(len(b))] for k, s in enumerate(signs)])
    assert start is not None
    x, inverse = start
    n = len(b)
    # `inverse` as it changes, times the matrix it started from: the identity breaks ties
    ties = [[fmpq(int(k == m)) for m in range(n)] for k in range(n)]
    while True:
        y = np.zeros(w.shape, dtype=object) + fmpq(0)
        y[:-1, :-1] = np.array([sum(column, fmpq(0)) for column in zip(*inverse, strict=True)],
                               dtype=object).reshape(w.shape[0] - 1, w.shape[1] - 1)  # fmt: skip
        best, generator = _separate(y, hexagons)
        if best <= 1:
            total = sum(x, fmpq(0))
            return Fraction(int(total.p), int(total.q))
        _pivot([int(v) for v in generator[:-1, :-1].reshape(-1)], x, inverse, ties)


def _started(b: list[int], basis: list[list[int]]) -> tuple[list[Any], list[list[Any]]] | None:
    """x and the inverse of a basis, or None if it is none or x is not feasible."""
    columns = fmpz_mat(basis).transpose()
    if columns.det() == 0:
        return None
    inverse = fmpq_mat(columns).inv()
    x = inverse * fmpq_mat(fmpz_mat([[v] for v in b]))
    starts = [x[k, 0] for k in range(len(b))]
    return None if min(starts) < 0 else (starts, inverse.tolist())


def _separate(y: Any, hexagons: bool) -> tuple[Rational, Ints]:
    """The largest <Y, g> over generators g, and one that attains it."""
    r = y.shape[0]
    at, d = {}, {}
    for i in range(r):
        for k in range(r):
            gaps = list(y[i] - y[k])
            d[i, k] = max(gaps)
            at[i, k] = gaps.index(d[i, k])
    cycles: list[tuple[int, ...]] = [(i, k) for i in range(r) for k in range(i + 1, r)]
    best = max(cycles, key=lambda rows: _around(d, rows))
    if hexagons:
        triples = [
            (i, k, m)
            for i in range(r)
            for k in range(i + 1, r)
            for m in range(i + 1, r)
            if m != k and len({at[i, k], at[k, m], at[m, i]}) == 3
        ]
        best = max([best, *triples], key=lambda rows: _around(d, rows))
    g = np.zeros(y.shape, dtype=np.int64)
    for i, k in zip(best, (*best[1:], best[0]), strict=True):
        g[i, at[i, k]] += 1
        g[k, at[i, k]] -= 1
    return _around(d, best), g


def _around(d: dict[tuple[int, int], Rational], rows: tuple[int, ...]) -> Rational:
    return sum((d[step] for step in zip(rows, (*rows[1:], rows[0]), strict=True)), fmpq(0))


def _pivot(g: list[int], x: list[Any], inverse: list[list[Any]], ties: list[list[Any]]) -> None:
    """Bring g into the basis, in place."""
    n = len(x)
    step = [sum((a * v for a, v in zip(row, g, strict=True) if v), fmpq(0)) for row in inverse]
    able = [k for k in range(n) if step[k] > 0]
    out = min(able, key=lambda k: [x[k] / step[k], *(t / step[k] for t in ties[k])])
    x[out] /= step[out]
    inverse[out] = [v / step[out] for v in inverse[out]]
    ties[out] = [v / step[out] for v in ties[out]]
    for k in range(n):
        if k != out and step[k] != 0:
            x[k] -= step[k] * x[out]
            inverse[k] = [v - step[k] * o for v, o in zip(inverse[k], inverse[out], strict=True)]
            ties[k] = [v - step[k] * o for v, o in zip(ties[k], ties[out], strict=True)]


_SLACK = 2.0**-40  # relative error granted to logarithms in doubles
_BATCH = 1 << 16  # proposals at a time, at most
_ENUMERATED = 6  # dimension up to which tables are counted for log Z


class KNormNoise(WeightedLaw):
    """Noise ~ exp(-eps gauge(u)) on an r x c table with zero row and column sums.

    records: how many records adjacent databases differ in, 2 or 3; eps is then the privacy loss
    between any two of them. log_Z is known for 2 x c, 3 x 3 and 3 x 4 and None otherwise
    (`log_weight` is always there). Sizes as for `TwoWayNoise`: to about 12 x 12.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> u = KNormNoise((3, 4), 1, records=3).draw(SeededRandomness(1))
    >>> bool(u.sum(axis=0).any() or u.sum(axis=1).any())
    False
    """

    log_ratio_error = 0.0

    def __init__(self, shape: tuple[int, int], eps: Fraction | int, *, records: int = 3) -> None:
        self.eps = positive_rational("eps", eps)
        self.shape = checked_shape(shape)
        self.gauge = Gauge(self.shape, records) if min(self.shape) > 1 else None
        longest = self.gauge.longest if self.gauge else 4
        self.proposals = TwoWayNoise(self.shape, self.eps / longest)
        self.judge_slack = _SLACK

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-eps gauge(u)), or None where it is not computed."""
        if self.gauge is None or min(self.shape) == 2:
            return self.proposals.log_Z
        if min(self.shape) > 3 or self.gauge.dimension > _ENUMERATED:
            return None
        q = math.exp(-float(self.eps))
        top = math.fsum(h * q**k for k, h in enumerate(numerator(self.gauge)))
        return math.log(top) - self.gauge.dimension * math.log1p(-q)

    def log_weight(self, u: npt.ArrayLike) -> Any:
        """-eps gauge(u), or -inf where a margin is not zero: the log density up to log Z.

        u has shape (..., r, c); the result has the leading shape.
        """
        noise = checked_tables(u, self.shape)
        if self.gauge is None:
            return self.proposals.log_weight(noise)
        return -float(self.eps) * self.gauge.value(noise)

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, r, c): the first n proposals that are kept.

        Words: batches of proposals by `TwoWayNoise.draw_many`, then a word for each decision, then
        what open decisions need; the size of a batch follows from how many were kept before.
        """
        if min(self.shape) <= 2:  # the bound is the gauge
            return self.proposals.draw_many(randomness, n)
        if n == 0:
            return np.empty((0, *self.shape), dtype=np.int64)
        return first_kept(n, _BATCH, partial(self._batch, randomness))

    def _batch(self, randomness: Randomness, size: int) -> Ints:
        """Those of `size` proposals that are kept."""
        from congenial.sampling import two_way_kernels as kernels

        assert self.gauge is not None
        tables: Ints = self.proposals.draw_many(randomness, size)
        words = randomness.words(size)
        verdicts = np.empty(size, dtype=np.int8)
        kernels.thin(
            self.gauge.turned(tables),
            words,
            float(self.eps),
            self.gauge.kind,
            self.judge_slack,
            verdicts,
        )
        for t in np.flatnonzero(verdicts < 0).tolist():
            log_p = partial(self._log_acceptance, self._excess(tables[t]))
            verdicts[t] = below(int(words[t]), 64, log_p, randomness)
        return np.asarray(tables[verdicts == 1])

    def _excess(self, table: Ints) -> Fraction:
        """gauge - ||u||_1 / L, exactly."""
        assert self.gauge is not None
        return self.gauge.exact(table) - Fraction(int(np.abs(table).sum()), self.gauge.longest)

    def _log_acceptance(self, excess: Fraction) -> Any:
        return -ball(self.eps * excess)


def numerator(gauge: Gauge) -> list[int]:
    """h_0 .. h_d with sum over tables of q^gauge = (sum_k h_k q^k) / (1 - q)^d, min(r, c) = 3.

    There the facets have integer coefficients: the hull is reflexive, its gauge whole on whole
    tables, and h is the same backwards (Hibi 1992), so tables are counted up to gauge d / 2 only.

    >>> numerator(Gauge((3, 3), 3))
    [1, 26, 72, 26, 1]
    """
    d, (r, c) = gauge.dimension, gauge.shape
    far = d // 2
    cells = np.array(list(product(range(-far, far + 1), repeat=d)), dtype=np.int64)
    inner = cells.reshape(-1, r - 1, c - 1)
    rows = np.concatenate([inner, -inner.sum(axis=1, keepdims=True)], axis=1)
    tables = np.concatenate([rows, -rows.sum(axis=2, keepdims=True)], axis=2)
    size = gauge.value(tables)
    within = [int(np.count_nonzero(size <= n)) for n in range(far + 1)]
    half = [
        sum((-1) ** i * math.comb(d + 1, i) * within[k - i] for i in range(k + 1))
        for k in range(far + 1)
    ]
    return [*half, *half[d - far - 1 :: -1]]
