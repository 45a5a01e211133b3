"""Real K-norm noise: density ~ exp(-eps gauge) on the span of a sensitivity set, in doubles.

Exact in law and fast where the hull has been cut into cones (`cones`): 2 x c to 2 x 10,
3 x 3 to 3 x 5 and 4 x 4 tables, or any set small enough for Qhull. Numerics are idealised: real
numbers are rounded to doubles, and a promise made of them must say so. For counts prefer
`KNormNoise`, which is exact and takes larger tables.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.papers.semi_dp.cones import Cones, set_cones, table_cones
from congenial.sampling.canonical import uniform_doubles
from congenial.sampling.exact_decisions import positive_rational
from congenial.sampling.inversion import Floats
from congenial.sampling.lattice_gaussian import checked_shape
from congenial.sampling.randomness import Randomness

_CHUNK = 1 << 13  # draws made at a time; their corners then stay in the cache


class KNormReal:
    """Noise with density exp(-eps gauge(v)) / (d! vol(K) / eps^d) on the span of S.

    `KNormReal.table((r, c), eps, records)` for two-way tables given both margins, where K is the
    hull of S(A_records); `KNormReal.of_set(vectors, eps)` for any S = -S (semi-dp, Algorithm 2;
    Proposition 9 when S has full rank). The density is with respect to orthonormal coordinates of
    the span.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> v = KNormReal.table((3, 4), 1, records=3).draw_many(SeededRandomness(1), 5)
    >>> bool(np.abs(v.sum(axis=1)).max() < 1e-12)
    True
    """

    def __init__(self, cones: Cones, eps: Fraction | int, shape: tuple[int, ...]) -> None:
        self.eps = positive_rational("eps", eps)
        self.cones = cones
        self.shape = shape
        self._turned = cones.turns is not None and shape != cones.turns

    @classmethod
    def table(cls, shape: tuple[int, int], eps: Fraction | int, records: int = 3) -> KNormReal:
        """For r x c tables with both margins published, adjacent databases `records` apart."""
        r, c = checked_shape(shape)
        return cls(table_cones((min(r, c), max(r, c)), records), eps, (r, c))

    @classmethod
    def of_set(cls, vectors: npt.ArrayLike, eps: Fraction | int) -> KNormReal:
        """For any finite sensitivity set: one integer vector per row."""
        cones = set_cones(vectors)
        return cls(cones, eps, (cones.vectors.shape[1],))

    @property
    def log_Z(self) -> float:
        """log of the integral of exp(-eps gauge)."""
        d = self.cones.dimension
        return math.lgamma(d + 1) + math.log(self.cones.volume) - d * math.log(self.eps)

    @property
    def mean_square(self) -> Fraction:
        """E ||V||_2^2, exactly."""
        return self.cones.mean_square() / self.eps**2

    def log_density(self, v: npt.ArrayLike) -> Any:
        """-eps gauge(v) - log_Z for v of shape (..., *shape) in the span; -inf off it."""
        vector = np.asarray(v, dtype=np.float64)
        if vector.shape[vector.ndim - len(self.shape) :] != self.shape:
            raise StructureError(
                f"noise of shape {vector.shape} was given, {self.shape} is needed.",
                remedy="Give one value per cell.",
            )
        turned = vector.swapaxes(-1, -2) if self._turned else vector
        flat = turned.reshape(-1, math.prod(self.shape))
        logs = -float(self.eps) * self.cones.gauge(flat) - self.log_Z
        rest = flat - flat @ self._onto @ self._onto.T
        off = np.abs(rest).max(axis=1) > 1e-9 * (1 + np.abs(flat).max(axis=1))
        logs[off] = -np.inf
        return logs.reshape(vector.shape[: vector.ndim - len(self.shape)])[()]

    @cached_property
    def _onto(self) -> Floats:
        """An orthonormal basis of the span, one per column."""
        basis: Floats = np.linalg.qr(self.cones.vectors[self.cones.corners[0]].T.astype(float))[0]
        return basis

    def draw_many(self, randomness: Randomness, n: int) -> Floats:
        """n independent draws, shape (n, *shape)."""
        parts = [self._chunk(randomness, min(_CHUNK, n - start)) for start in range(0, n, _CHUNK)]
        flat = np.concatenate(parts) if parts else np.empty((0, math.prod(self.shape)))
        if self.cones.turns is None:
            return flat.reshape(n, *self.shape)
        tables = flat.reshape(n, *self.cones.turns)
        return np.ascontiguousarray(tables.swapaxes(1, 2) if self._turned else tables)

    def _chunk(self, randomness: Randomness, n: int) -> Floats:
        """A cone, an exponential weight for each of its corners, and a random symmetry."""
        d, cells = self.cones.dimension, self.cones.vectors.shape[1]
        steps = np.cumsum(self.cones.weights)
        cone = np.searchsorted(steps, uniform_doubles(randomness, n) * steps[-1], side="right")
        weights = -np.log(uniform_doubles(randomness, n * d)).reshape(n, d) / float(self.eps)
        corners = self.cones.corners[cone]
        out = np.zeros((n, cells))
        for i in range(d):
            out += weights[:, i, None] * self._vectors[corners[:, i]]
        return out if self.cones.turns is None else self._moved(out, randomness)

    @cached_property
    def _vectors(self) -> Floats:
        return self.cones.vectors.astype(np.float64)

    def _moved(self, flat: Floats, randomness: Randomness) -> Floats:
        """Rows and columns permuted, sign changed and, if square, turned, all at random."""
        assert self.cones.turns is not None
        n, (r, c) = len(flat), self.cones.turns
        rows = np.argsort(randomness.words(n * r).reshape(n, r), axis=1)
        columns = np.argsort(randomness.words(n * c).reshape(n, c), axis=1)
        bits = randomness.words(n)
        place = rows[:, :, None] * c + columns[:, None, :]
        if r == c:
            place = np.where((bits & np.uint64(2) > 0)[:, None, None],
                             place.swapaxes(1, 2), place)  # fmt: skip
        moved = np.take_along_axis(flat, place.reshape(n, -1), axis=1)
        sign = np.where(bits & np.uint64(1) > 0, 1.0, -1.0)
        return np.asarray(moved * sign[:, None])
