"""Integer K-norm noise on two-way tables given both margins, drawn exactly.

p(u) ~ exp(-eps gauge(u)) on integer r x c tables with zero row and column sums, where the gauge is
that of the hull of S (`gauge`): the smallest norm ball that holds every difference of adjacent
tables, hence the least noise of this kind at eps (semi-dp, section 4.2, on the integers and with
the true S).

**Thinning.** Every generator has l1 norm at most L (4 for swaps, 6 with hexagons), so gauge(u) >=
||u||_1 / L. Propose double geometric noise given the margins at eps / L per cell (`TwoWayNoise`)
and keep it with probability exp(-eps (gauge(u) - ||u||_1 / L)). A fifth to four fifths are kept.
Doubles with certified bounds decide what is clear, rationals and ball arithmetic the rest: H = 0.
Running time depends on the shape, eps and chance, never on data.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.sampling.decide import below
from congenial.sampling.gauge.gauge import Gauge
from congenial.sampling.inversion import Ints, ball, positive_rational
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness
from congenial.sampling.two_way.lattice_gaussian import checked_shape, checked_tables
from congenial.sampling.two_way.two_way import TwoWayNoise

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
        out = np.empty((0, *self.shape), dtype=np.int64)
        made, kept = 1, 1
        while len(out) < n:
            size = math.ceil(1.1 * (n - len(out)) * made / kept) + 2
            tables = self._batch(randomness, min(size, _BATCH))
            made, kept = made + min(size, _BATCH), kept + len(tables)
            out = np.concatenate([out, tables])
        return out[:n]

    def _batch(self, randomness: Randomness, size: int) -> Ints:
        """Those of `size` proposals that are kept."""
        from congenial.sampling.gauge import gauge_kernels as kernels

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
