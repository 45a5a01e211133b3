"""Baselines: l1, l2 and l_infinity noise on real vectors (semi-dp, Algorithms 4 to 6).

Density ~ exp(-(epsilon / Delta) ||v||) with Delta the sensitivity in the same norm: epsilon-private
by the triangle inequality (Proposition 7), with idealised numerics. They know nothing of figures;
`KernelProjection.apply` takes the noise that published sums do not need (Proposition 26). They are
here to be compared with; a release takes a registered mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from congenial.errors import GuaranteeError
from congenial.privacy.tradeoff import Pure
from congenial.sampling.canonical import uniform_doubles
from congenial.sampling.inversion import Floats
from congenial.sampling.randomness import Randomness

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
