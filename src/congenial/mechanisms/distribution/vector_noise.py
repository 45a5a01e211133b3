"""Noise for a vector of statistics: independent Gaussian or Laplace along orthogonal directions.

Z = D (scales * W), D with orthonormal columns, W standard normal or Laplace; D need not span all
of R^m. `dither` adds uniform noise over the grid a statistic lives on: statistics that are whole
numbers, or means of such, have no density, and noise along fewer directions than statistics could
be stripped from them by looking for the grid. Uniform noise over one grid step closes that hole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np

from congenial.data.arrays import Floats
from congenial.sampling.randomness import Randomness, open_uniform

Family = Literal["gaussian", "laplace", "none"]

_LOG_GRID = np.linspace(-75.0, 75.0, 601)  # of the integration variable of `expected_norm`


@dataclass(frozen=True, eq=False)
class VectorNoise:
    """The law of Z; `scales` are standard deviations (Gaussian) or Laplace scales.

    `extra`: the scale of further Laplace noise in every statistic (Theorem 4.7), 0 for none.
    """

    family: Family
    directions: Floats
    scales: Floats
    dither: Floats
    extra: float = 0.0

    @classmethod
    def gaussian(cls, covariance: Any) -> Self:
        """N(0, covariance); directions without variance are dropped."""
        matrix = np.asarray(covariance, dtype=np.float64)
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        keep = values > 0
        if not keep.any():
            return cls.none(len(matrix))
        return cls("gaussian", vectors[:, keep], np.sqrt(values[keep]), np.zeros(len(matrix)))

    @classmethod
    def laplace(cls, directions: Any, scales: Any) -> Self:
        """Independent Laplace noise along orthonormal directions (columns)."""
        columns = np.asarray(directions, dtype=np.float64)
        widths = np.broadcast_to(np.asarray(scales, dtype=np.float64), columns.shape[1:]).copy()
        return cls("laplace", columns, widths, np.zeros(len(columns)))

    @classmethod
    def none(cls, dimension: int) -> Self:
        """No noise at all."""
        return cls("none", np.zeros((dimension, 0)), np.zeros(0), np.zeros(dimension))

    def dithered(self, spacing: Any) -> VectorNoise:
        """The same with uniform noise of one grid step per statistic."""
        widths = np.asarray(spacing, dtype=np.float64)
        return replace(self, dither=widths)

    # ---- moments -----------------------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """Number of statistics."""
        return len(self.directions)

    @property
    def rank(self) -> int:
        """Number of directions with noise, the dither aside."""
        return int(np.count_nonzero(self.scales))

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of Z without the dither."""
        variance = self.scales**2 * (2 if self.family == "laplace" else 1)
        return (self.directions * variance) @ self.directions.T

    @cached_property
    def total_covariance(self) -> Floats:
        """Covariance of everything that is added."""
        return self.covariance + np.diag(self.dither**2 / 12 + 2 * self.extra**2)

    def least_deviation(self, spacing: Any) -> float:
        """Least standard deviation of Z over directions, in units of the grid; inf without grid."""
        grid = np.asarray(spacing, dtype=np.float64)
        on_grid = grid > 0
        if not on_grid.any():
            return math.inf
        unit = np.where(on_grid, grid, 1.0)
        inverse = self.covariance / np.outer(unit, unit)
        return math.sqrt(max(0.0, float(np.linalg.eigvalsh(inverse[np.ix_(on_grid, on_grid)])[0])))

    def expected_norm(self, weights: Any = None) -> float:
        """E ||W^{1/2} Z||_2 without the dither; weights W (a matrix) default to the identity.

        E sqrt(Q) = (1 / (2 sqrt pi)) int (1 - E exp(-t Q)) t^{-3/2} dt, with the product form of
        the Laplace transform where the directions stay orthogonal; otherwise by a fixed
        low-discrepancy rule (relative error about 1e-3).
        """
        if self.rank == 0 and not self.extra:
            return 0.0
        factor = self.directions * self.scales
        if self.extra:
            return self._sampled_norm(np.eye(self.dimension) if weights is None else weights)
        gram = factor.T @ factor if weights is None else factor.T @ np.asarray(weights) @ factor
        if self.family == "gaussian":
            return _norm_from_transform(np.linalg.eigvalsh(gram), _gaussian_log_transform)
        diagonal = np.diag(gram)
        if np.allclose(gram, np.diag(diagonal), rtol=0, atol=1e-12 * diagonal.max()):
            return _norm_from_transform(diagonal, _laplace_log_transform)
        draws = _laplace_quantiles(_points(self.rank))
        return float(np.sqrt(np.einsum("ij,jk,ik->i", draws, gram, draws)).mean())

    def _sampled_norm(self, weights: Any) -> float:
        """The same with the extra noise, by the low-discrepancy rule."""
        from scipy.special import ndtri

        points = _points(len(self.scales) + self.dimension)
        laplace = _laplace_quantiles(points)
        own = laplace if self.family == "laplace" else ndtri(points)
        r = len(self.scales)
        noise = (own[:, :r] * self.scales) @ self.directions.T + laplace[:, r:] * self.extra
        return float(np.sqrt(np.einsum("ij,jk,ik->i", noise, weights, noise)).mean())

    def mean_square(self, weights: Any = None) -> float:
        """E Z' W Z, the dither included."""
        total = self.total_covariance
        return float(np.trace(total if weights is None else np.asarray(weights) @ total))

    # ---- use ---------------------------------------------------------------------------------

    def draw(self, randomness: Randomness, draws: int) -> Floats:
        """Independent draws of Z and the dither, one row each; numerics are idealised."""
        from scipy.special import ndtri

        r, m = len(self.scales), self.dimension
        uniform = _uniform(randomness, draws * (r + 2 * m)).reshape(draws, r + 2 * m)
        own, spread, more = uniform[:, :r], uniform[:, r : r + m], uniform[:, r + m :]
        standard = _laplace_quantiles(own) if self.family == "laplace" else ndtri(own)
        noise: Floats = (standard * self.scales) @ self.directions.T
        return noise + (spread - 0.5) * self.dither + _laplace_quantiles(more) * self.extra

    def interval(self, component: int, level: float) -> float:
        """Half-width h with P(|noise in one statistic| <= h) >= level."""
        from scipy.special import ndtr, ndtri

        weights = self.directions[component] * self.scales
        margin = float(self.dither[component]) / 2
        normal = weights if self.family == "gaussian" else weights[:0]
        laplace = np.append(weights if self.family == "laplace" else weights[:0], self.extra)
        laplace = laplace[laplace != 0]
        size = math.sqrt(float(np.sum(weights**2)) + self.extra**2)
        if size == 0:
            return margin
        if not len(laplace):
            return float(ndtri(0.5 + level / 2)) * size + margin
        # a Laplace variable is a normal one with an exponential variance
        exponential = -np.log(_points(len(laplace)))
        spread = np.sqrt(exponential @ (2 * laplace**2) + float(np.sum(normal**2)))
        low, high = 0.0, size
        while float(ndtr(-high / spread).mean()) * 2 > 1 - level:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            wide = float(ndtr(-middle / spread).mean()) * 2 <= 1 - level
            low, high = (low, middle) if wide else (middle, high)
        return high + margin

    def log_density(self, z: Any) -> Floats:
        """Log density of Z within the span of its directions, -inf off it; without the dither."""
        rows = np.atleast_2d(np.asarray(z, dtype=np.float64))
        inside = rows @ self.directions
        away = np.abs(rows - inside @ self.directions.T).max(axis=1)
        reach = 1e-9 * np.maximum(1.0, np.abs(rows).max(axis=1))
        standard = inside / self.scales
        if self.family == "laplace":
            log = -np.abs(standard).sum(axis=1) - np.log(2 * self.scales).sum()
        else:
            log = -(standard**2).sum(axis=1) / 2
            log = log - np.log(np.sqrt(2 * math.pi) * self.scales).sum()
        return np.where(away <= reach, log, -np.inf)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the law an analyst needs."""
        return {
            "family": self.family,
            "directions": self.directions.tolist(),
            "scales": self.scales.tolist(),
            "dither": self.dither.tolist(),
            "extra": self.extra,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`. Raises ValueError for what is no law."""
        scales, dither = (np.array(data[key], dtype=np.float64) for key in ("scales", "dither"))
        directions = np.array(data["directions"], dtype=np.float64)
        extra, family = float(data["extra"]), data["family"]
        sizes = np.array([*scales.ravel(), *dither.ravel(), extra])
        if scales.ndim != 1 or dither.ndim != 1 or not (sizes >= 0).all():
            raise ValueError("widths of noise are lists of numbers that are not below zero")
        if family not in get_args(Family):
            raise ValueError(f"a family of noise {family!r} is not known")
        return cls(family, directions.reshape(len(dither), len(scales)), scales, dither, extra)


def _uniform(randomness: Randomness, count: int) -> Floats:
    """53 random bits centred in their cell: never 0 or 1."""
    return open_uniform(randomness.words(count))


def _gaussian_log_transform(t: Floats, variances: Floats) -> Floats:
    return np.asarray(-np.log1p(2 * np.outer(t, variances)).sum(axis=1) / 2)


def _laplace_log_transform(t: Floats, squares: Floats) -> Floats:
    from scipy.special import erfcx

    # E exp(-t b^2 W^2) = sqrt(pi) x erfcx(x) with x = 1 / (2 b sqrt t); a series where it is near 1
    x = 1 / (2 * np.sqrt(np.outer(t, squares)))
    u = 1 / (2 * x**2)
    series = -u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u)))
    plain = np.log(math.sqrt(math.pi) * x * erfcx(np.minimum(x, 1e6)))
    return np.asarray(np.where(x > 30, np.log1p(np.maximum(series, -0.5)), plain).sum(axis=1))


def _norm_from_transform(squares: Any, log_transform: Any) -> float:
    unit = float(squares.sum())
    scaled = np.maximum(squares, 0) / unit
    t = np.exp(_LOG_GRID)
    with np.errstate(under="ignore"):
        terms = -np.expm1(log_transform(t, scaled[scaled > 0])) * np.exp(-_LOG_GRID / 2)
    step = _LOG_GRID[1] - _LOG_GRID[0]
    return float(math.sqrt(unit) * terms.sum() * step / (2 * math.sqrt(math.pi)))


def _points(dimension: int) -> Floats:
    from scipy.stats import qmc

    points = qmc.Sobol(dimension, scramble=False).random_base2(14)
    return np.asarray((points + 2.0**-15) % 1.0)


def _laplace_quantiles(uniform: Floats) -> Floats:
    centred = uniform - 0.5
    return np.asarray(-np.sign(centred) * np.log1p(-2 * np.abs(centred)))
