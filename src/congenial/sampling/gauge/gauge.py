"""The gauge of the hull of S on two-way tables with both margins published: the norm of K-norm
noise.

S(A_a) holds the integer r x c tables with zero margins and l1 norm at most 2a: for a = 2 the swaps
(+1 -1 / -1 +1), for a = 3 also the hexagons, which semi-dp, Proposition 32, misses where
min(r, c) >= 3 (docs/errata). gauge(w) = inf { t : w in t hull(S) } is the linear programme

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
rationals. For the hull of any other set see `public.hull`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.inversion import Floats, Ints
from congenial.sampling.two_way.lattice_gaussian import checked_shape, zero_margins

_LISTED = 1 << 18  # generators that are written down at most
_CELLS = 1000  # coordinates for which the certified bounds have been derived


def swaps(r: int, c: int) -> Ints:
    """All r x c tables +1 at (i, j), (k, l) and -1 at (i, l), (k, j); shape (n, r, c)."""
    found = [
        (i, k, j, m) for i, k in combinations(range(r), 2) for j, m in permutations(range(c), 2)
    ]
    out = np.zeros((len(found), r, c), dtype=np.int64)
    for g, (i, k, j, m) in zip(out, found, strict=True):
        g[i, j] = g[k, m] = 1
        g[i, m] = g[k, j] = -1
    return out


def hexagons(r: int, c: int) -> Ints:
    """All r x c tables with one +1 and one -1 in each of three rows and three columns."""
    found = [
        (rows, columns, shift)
        for rows in combinations(range(r), 3)
        for columns in permutations(range(c), 3)
        for shift in (1, 2)
    ]
    out = np.zeros((len(found), r, c), dtype=np.int64)
    for g, (rows, columns, shift) in zip(out, found, strict=True):
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
        given = np.asarray(w)
        if given.shape[-2:] != self.shape:
            raise StructureError(
                f"a table of shape {given.shape[-2:]} was given, {self.shape} is needed.",
                remedy="Give one value per cell.",
            )
        real = given.astype(np.float64)
        norm = np.abs(real).sum(axis=(-2, -1))
        if np.issubdtype(given.dtype, np.integer):
            inside = zero_margins(given)
        else:
            off = np.abs(real.sum(axis=-1)).max(axis=-1) + np.abs(real.sum(axis=-2)).max(axis=-1)
            inside = off <= 1e-9 * norm
        return np.where(inside, self._values(real.reshape(-1, *self.shape)).reshape(norm.shape),
                        np.inf)[()]  # fmt: skip

    def _values(self, tables: Floats) -> Floats:
        from congenial.sampling.gauge import gauge_kernels as kernels

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
        """Which compiled form applies (`gauge_kernels`)."""
        from congenial.sampling.gauge import gauge_kernels as kernels

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
        from congenial.sampling.gauge import gauge_kernels as kernels
        from congenial.sampling.gauge.exact_gauge import exact_gauge

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
