"""Real K-norm noise: density ~ exp(-eps gauge) on the span of a sensitivity set, in doubles.

Exact in law and fast where the hull has been cut into cones: 2 x c to 2 x 10,
3 x 3 to 3 x 5 and 4 x 4 tables, or any set small enough for Qhull. Numerics are idealised: real
numbers are rounded to doubles, and a promise made of them must say so. For counts prefer
`KNormNoise`, which is exact and takes larger tables.

The hull of a sensitivity set cut into simplicial cones, so that real K-norm noise is a sum.

Let g_1 .. g_d be the corners of a simplex on the boundary of the hull K. On the cone they span the
gauge of sum_i e_i g_i is sum_i e_i, so noise with density ~ exp(-eps gauge) falls into the cone
with probability proportional to |det(g_1 .. g_d)| and is sum_i E_i g_i there, E_i independent
exponential with rate eps. (That is R U with R ~ Gamma(d + 1) and U uniform in K; a radius from
Gamma(d) is a known mistake, private for no eps.) Moments follow exactly.

The boundary is cut facet by facet, pulling the first vertex of every face. For two-way tables the
hull is the same after permuting rows or columns, changing signs and, for square tables, turning:
one facet of each kind is cut, and a draw is moved by a random symmetry.

Baselines: l1, l2 and l_infinity noise on real vectors (semi-dp, Algorithms 4 to 6).

Density ~ exp(-(epsilon / Delta) ||v||) with Delta the sensitivity in the same norm: epsilon-private
by the triangle inequality (Proposition 7), with idealised numerics. They know nothing of figures;
`KernelProjection.apply` takes the noise that published sums do not need (Proposition 26). They are
here to be compared with; a release takes a registered mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from flint import fmpz_mat

from congenial.data.arrays import Floats, Ints
from congenial.errors import GuaranteeError, StructureError
from congenial.privacy.tradeoff import Pure
from congenial.sampling.canonical import uniform_doubles
from congenial.sampling.exact_decisions import positive_rational
from congenial.sampling.knorm_noise import Gauge
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


_DIMENSION = 9  # tables of a larger dimension are not cut
_SIXTHS = 6  # facets of 4 x 4 tables have coefficients in sixths

# One facet { <Y, w> = 1 } of each kind for 4 x 4 tables, 6 Y row by row; `tests` holds that they
# are all: every ridge of each lies in another facet of the list.
_SQUARE_SWAPS = (
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -6),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, -6),
    (0, 0, 0, 0, 0, 0, 0, 0, -6, 0, 0, -6, 0, 0, 0, -6),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -6, 0, 0, 0, -6),
    (0, -6, -6, 0, 0, -6, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0),
    (-6, -3, 0, -3, -3, 3, 0, 0, 0, 0, 0, 0, -3, 0, 0, -6),
    (-6, -6, 0, 0, -6, -6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
)
_SQUARE_HEXAGONS = (
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -6),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -6, 0, 0, 0, -6),
    (-6, -6, 0, 0, -6, -6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    (-3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, -3),
    (0, 0, -2, 0, 0, 0, 0, 0, 0, 2, 0, -2, 0, 0, -4, -4),
    (-4, -2, 0, -2, -2, 2, 0, 0, 0, 0, 0, 0, -2, 0, 0, -4),
    (-2, 0, 0, 0, 0, 4, 0, 2, 0, 0, 0, 0, 0, 2, 0, -2),
    (-4, -2, 0, 0, -4, 0, -2, 0, 0, 0, 0, 0, 0, 2, 2, 0),
    (-4, -4, 0, 0, -4, -2, -2, 0, 0, -2, 2, 0, 0, 0, 0, 0),
)


@dataclass(frozen=True)
class Cones:
    """Simplicial cones that fill the span of `vectors`.

    corners: for each cone the d vectors that span it; weights: |det| of their coordinates times the
    number of copies under the symmetries of a table of shape `turns` (None: no symmetries).
    """

    vectors: Ints = field(repr=False)
    corners: Ints = field(repr=False)
    weights: Ints = field(repr=False)
    facets: tuple[Ints, int] = field(repr=False)  # numerators (one row each), denominator
    turns: tuple[int, int] | None = None

    @property
    def dimension(self) -> int:
        """Dimension of the span."""
        return int(self.corners.shape[1])

    @cached_property
    def volume(self) -> float:
        """Volume of the hull in orthonormal coordinates of its span."""
        basis = self.vectors[self.corners[0]].astype(float)
        stretch = math.sqrt(np.linalg.det(basis @ basis.T)) / _determinants(
            self.vectors, self.corners[:1]
        )
        total = int(self.weights.sum())
        return float(stretch[0]) * total / math.factorial(self.dimension)

    def mean_square(self) -> Fraction:
        """E ||V||_2^2 of noise at eps = 1: mean over cones of sum_ij <g_i, g_j> (1 + [i = j])."""
        g = self.vectors[self.corners]
        squares = np.sum(g.sum(axis=1) ** 2, axis=1) + np.sum(g**2, axis=(1, 2))
        return Fraction(int(squares @ self.weights), int(self.weights.sum()))

    def gauge(self, w: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """gauge of vectors in the span, shape (n, cells), by the facets."""
        numerators, denominator = self.facets
        largest = np.asarray(w, dtype=np.float64) @ numerators.T / denominator
        return np.asarray(largest.max(axis=1))


@lru_cache(maxsize=32)
def table_cones(gauge_shape: tuple[int, int], records: int) -> Cones:
    """The hull for two-way tables with rows <= columns; StructureError where it is not cut."""
    gauge = Gauge(gauge_shape, records)
    (r, c), kinds = gauge.shape, _kinds(gauge)
    orbits = [_orbit(np.array(kind).reshape(r, c)) for kind in kinds]
    facets = np.array([y for orbit in orbits for y in orbit]).reshape(-1, r * c)
    vectors = gauge.generators.reshape(-1, r * c)
    masks = _masks(vectors, facets, _SIXTHS * r * c)
    corners, weights, first = [], [], 0
    for orbit in orbits:
        cut = _pulled(masks[first], masks, gauge.dimension - 1, {})
        corners += cut
        weights += [len(orbit)] * len(cut)
        first += len(orbit)
    at = _indices(corners)
    sizes = _determinants(vectors, at) * np.array(weights)
    return Cones(vectors, at, sizes, (facets, _SIXTHS * r * c), gauge.shape)


def set_cones(vectors: npt.ArrayLike) -> Cones:
    """The hull of any finite set S = -S of integer vectors, in its span (semi-dp, Lemma 29); of
    full rank it is Proposition 9's.

    Facets come from Qhull and are made rational; each is checked in integers, and the cones against
    the volume.
    """
    from scipy.spatial import ConvexHull

    distinct = np.unique(np.asarray(vectors, dtype=np.int64), axis=0)
    distinct = distinct[distinct.any(axis=1)]
    if len(distinct) == 0 or not np.array_equal(distinct, np.unique(-distinct, axis=0)):
        raise StructureError(
            "the sensitivity set is empty or does not hold -v with every v.",
            remedy="Give the differences of all ordered pairs of adjacent tables.",
        )
    free = _coordinates(distinct)
    d = len(free)
    if d == 1:
        top = int(np.abs(distinct[:, free[0]]).max())
        outer = distinct[np.abs(distinct[:, free[0]]) == top]
        facets = np.zeros((2, distinct.shape[1]), dtype=np.int64)
        facets[:, free[0]] = 1, -1
        return Cones(outer, np.array([[0], [1]]), np.array([top, top]), (facets, top))
    hull = ConvexHull(distinct[:, free])
    outer = distinct[np.sort(hull.vertices)]
    slopes = np.unique(np.round(hull.equations[:, :-1] / -hull.equations[:, -1:], 9), axis=0)
    numerators, denominator = _rational(slopes)
    facets = np.zeros((len(numerators), distinct.shape[1]), dtype=np.int64)
    facets[:, free] = numerators
    if int((outer @ facets.T).max()) != denominator:
        raise StructureError("the facets of this hull could not be made exact.")
    masks = _masks(outer, facets, denominator)
    by_size: dict[int, list[int]] = {}
    at = _indices([s for mask in masks for s in _pulled(mask, masks, d - 1, by_size)])
    sizes = _determinants(outer, at)
    if abs(sizes.sum() / math.factorial(d) / hull.volume - 1) > 1e-6:
        raise StructureError("this hull could not be cut into cones exactly.")
    return Cones(outer, at, sizes, (facets, denominator))


# --- facets ---------------------------------------------------------------------------------------


def _kinds(gauge: Gauge) -> list[list[int]]:
    """One facet of each kind, 6 Y row by row."""
    r, c = gauge.shape
    if (r, c) == (4, 4):
        return [list(kind) for kind in (_SQUARE_HEXAGONS if gauge.hexagons else _SQUARE_SWAPS)]
    if r > 3 or gauge.dimension > _DIMENSION:
        raise StructureError(
            f"the hull for {r} x {c} tables is not cut into cones.",
            remedy="Use integer noise (KNormNoise), or the Gaussian mechanism.",
        )
    rows = []
    if r == 2 or gauge.hexagons:  # some cells of one row
        for k in range(1, c // 2 + 1):
            y = np.zeros((r, c), dtype=np.int64)
            y[0, :k] = _SIXTHS
            rows.append(y.reshape(-1).tolist())
        return rows
    for width in range(1, c):  # three rows, swaps only: columns in two or three classes
        for two in range(min(width, c - width) + 1):
            if c - width - two >= width:
                y = np.zeros((r, c), dtype=np.int64)
                y[1, : width + two] = y[2, :two] = _SIXTHS
                rows.append(y.reshape(-1).tolist())
    return rows


def _orbit(y: Ints) -> list[tuple[int, ...]]:
    """All facets that symmetries make of one: r c Y with zero margins, which makes them unique."""
    r, c = y.shape
    centred = r * c * y - r * y.sum(axis=1, keepdims=True) - c * y.sum(axis=0, keepdims=True)
    start = tuple((centred + y.sum()).reshape(-1).tolist())
    places = np.arange(r * c).reshape(r, c)
    moves = []
    for i in range(r - 1):
        moves.append(places[[*range(i), i + 1, i, *range(i + 2, r)]].reshape(-1))
    for j in range(c - 1):
        moves.append(places[:, [*range(j), j + 1, j, *range(j + 2, c)]].reshape(-1))
    if r == c:
        moves.append(places.T.reshape(-1))
    reached, queue = {start}, [start]
    while queue:
        matrix = np.array(queue.pop())
        for other in [-matrix, *(matrix[move] for move in moves)]:
            key = tuple(other.tolist())
            if key not in reached:
                reached.add(key)
                queue.append(key)
    return [start, *sorted(reached - {start})]


def _rational(slopes: npt.NDArray[np.float64]) -> tuple[Ints, int]:
    """Facets over a common denominator."""
    parts = [[Fraction(float(v)).limit_denominator(1000) for v in row] for row in slopes]
    denominator = math.lcm(*(v.denominator for row in parts for v in row))
    return np.array([[int(v * denominator) for v in row] for row in parts]), denominator


# --- cutting --------------------------------------------------------------------------------------


def _coordinates(vectors: Ints) -> list[int]:
    """Cells that tell the vectors of the span apart: pivots of the echelon form."""
    echelon, _, rank = fmpz_mat(vectors.tolist()).rref()
    rows = np.array([[int(echelon[i, j]) for j in range(vectors.shape[1])] for i in range(rank)])
    return [int(np.flatnonzero(row)[0]) for row in rows]


def _determinants(vectors: Ints, corners: Ints) -> Ints:
    """|det| of the corners' coordinates, which are small integers."""
    own = vectors[:, _coordinates(vectors)]
    sizes: Ints = np.rint(np.abs(np.linalg.det(own[corners].astype(float)))).astype(np.int64)
    return sizes


def _masks(vectors: Ints, facets: Ints, denominator: int) -> list[int]:
    """For each facet the vectors on it, as the bits of a number."""
    on = vectors @ facets.T == denominator
    return [
        int.from_bytes(np.packbits(column, bitorder="little").tobytes(), "little")
        for column in on.T
    ]


def _pulled(face: int, facets: list[int], d: int, known: dict[int, list[int]]) -> list[int]:
    """A face of dimension d cut into simplices by pulling its first vertex; facets: those of the
    polytope it is a facet of.
    """
    if face.bit_count() == d + 1:
        return [face]
    if face not in known:
        parts = {face & other for other in facets if face & other != face}
        inner: list[int] = []
        for part in sorted(parts, key=int.bit_count, reverse=True):
            if part.bit_count() >= d and not any(part & other == part for other in inner):
                inner.append(part)
        first = face & -face
        known[face] = [
            first | simplex
            for part in inner
            if not part & first
            for simplex in _pulled(part, inner, d - 1, known)
        ]
    return known[face]


def _indices(simplices: list[int]) -> Ints:
    """The places of the bits of each number."""
    return np.array([[i for i in range(s.bit_length()) if s >> i & 1] for s in simplices])


Norm = Literal["l1", "l2", "linf"]


@dataclass(frozen=True)
class NormNoise:
    """Noise on R^d with density ~ exp(-(epsilon / sensitivity) ||v||).

    norm: "l1" (independent Laplace), "l2" (a Gamma(d) radius in a uniform direction) or "linf" (a
    Gamma(d + 1) radius times a uniform point of the cube).

    >>> NormNoise("l2", 4, 2.0, 1.0).mean_square
    80.0
    """

    norm: Norm
    dimension: int
    sensitivity: float
    epsilon: float

    def __post_init__(self) -> None:
        if self.norm not in ("l1", "l2", "linf"):
            raise GuaranteeError(f"norm '{self.norm}' is not known.", remedy="l1, l2 or linf.")
        if self.dimension < 1 or not self.sensitivity > 0 or not self.epsilon > 0:
            raise GuaranteeError(
                f"{self.dimension} cells, sensitivity {self.sensitivity} and epsilon "
                f"{self.epsilon} make no noise.",
                remedy="All three must be positive; where S = {0} publish the table exactly.",
            )

    @property
    def scale(self) -> float:
        """Delta / epsilon."""
        return self.sensitivity / self.epsilon

    @property
    def tradeoff(self) -> Pure:
        """What it promises on a query of that sensitivity."""
        return Pure(self.epsilon)

    @property
    def mean_square(self) -> float:
        """E ||V||_2^2."""
        d, s2 = self.dimension, self.scale**2
        if self.norm == "l1":
            return 2 * d * s2
        if self.norm == "l2":
            return d * (d + 1) * s2
        return d * (d + 1) * (d + 2) * s2 / 3

    def draw(self, randomness: Randomness, n: int) -> Floats:
        """n independent draws, shape (n, d)."""
        d = self.dimension
        signs = np.where(randomness.words(n * d) & np.uint64(1) > 0, 1.0, -1.0).reshape(n, d)
        if self.norm == "l1":
            return np.asarray(self.scale * signs * _exponential(randomness, n * d).reshape(n, d))
        if self.norm == "l2":
            from scipy.special import ndtri

            z = ndtri(uniform_doubles(randomness, n * d)).reshape(n, d)
            radius = _exponential(randomness, n * d).reshape(n, d).sum(axis=1)
            return np.asarray(self.scale * (radius / np.linalg.norm(z, axis=1))[:, None] * z)
        inside = uniform_doubles(randomness, n * d).reshape(n, d)
        radius = _exponential(randomness, n * (d + 1)).reshape(n, d + 1).sum(axis=1)
        return np.asarray(self.scale * radius[:, None] * signs * inside)

    def log_density(self, v: npt.ArrayLike) -> Any:
        """-||v|| / scale - log(d! vol(unit ball) scale^d), for v of shape (..., d)."""
        at, d = np.abs(np.asarray(v, dtype=np.float64)), self.dimension
        if self.norm == "l1":
            size, log_ball = at.sum(axis=-1), d * math.log(2) - math.lgamma(d + 1)
        elif self.norm == "l2":
            size = np.sqrt((at**2).sum(axis=-1))
            log_ball = d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)
        else:
            size, log_ball = at.max(axis=-1), d * math.log(2)
        return -size / self.scale - math.lgamma(d + 1) - log_ball - d * math.log(self.scale)


def _exponential(randomness: Randomness, n: int) -> Floats:
    return np.asarray(-np.log(uniform_doubles(randomness, n)))
