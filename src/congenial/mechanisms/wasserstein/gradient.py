"""The Wasserstein K-norm gradient mechanism: means, quantiles, regressions.

p(y | x) ~ exp(-epsilon ||grad L_x(y)||_K / (2 sigma_y)), sigma_y = Delta_z spread(y), Delta_z in
records (partially-private-data, Theorem 10). It is Theorem 9 with the loss ||grad L||_K / sigma_y,
which changes by at most 1, so it holds on any base measure; here uniform on a public grid in the
box. The release is a point of that grid: the promise is about the grid's law, not about a limit.

Numerics: log weights are doubles, right within H (`log_ratio_error`). The draw proposes by integer
weights out of 2^62 and accepts by the ratio; a ratio below `_SURE` is decided from the log weight
in ball arithmetic, however small it is. So every point of the grid is drawn with its probability,
within H, and none is left out. The promise counts 2 H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from congenial.data.arguments import COUNT, check_fields
from congenial.data.arrays import Floats
from congenial.errors import GuaranteeError, StructureError
from congenial.mechanisms.wasserstein.convex_statistics import ConvexStatistic, norm_of
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.mechanisms.wasserstein.secret_promise import promise, usable
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import rational
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.exact_decisions import ball, below
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.transport.delta_z import DistanceBound, delta_z

_MOST = 1 << 20  # points of a grid
_WHOLE = 1 << 62
_SURE = 2.0**-30  # ratios above it are compared with a word of 64 bits: an error of 2^-34 of them
H = Fraction(1, 2**20)  # bound on the error of a log density; data for which it fails are refused


@dataclass(frozen=True, eq=False)
class WassersteinGradient:
    """A statistic near its best value, on a public grid.

    bound: Delta_z at level "database", in records. points: of the grid, per coordinate.

    Edge cases: one to three coordinates, at most 2^20 points in all. Source: Theorem 10; Reimherr
    and Awan 2019. Asymptotics (Theorem 11) need Delta_z bounded as n grows.
    """

    pairs: SecretPairs
    bound: DistanceBound
    statistic: ConvexStatistic
    epsilon: Fraction
    points: int = 1024

    name = "wasserstein_gradient"
    log_ratio_error = H

    def __post_init__(self) -> None:
        fields = {"pairs": SecretPairs, "bound": DistanceBound, "statistic": ConvexStatistic}
        check_fields(self, StructureError, **fields, points=COUNT)
        object.__setattr__(self, "epsilon", rational(self.epsilon))
        if self.epsilon <= 2 * H:
            raise GuaranteeError(f"epsilon = {self.epsilon} is not above the numerical error.")
        if self.bound.measure != "records":
            raise GuaranteeError(
                f"Delta_z in {self.bound.measure}: gradients are bounded by changed records.",
                remedy="Compute delta_z at level 'database'.",
            )
        if self.points < 2 or self.points ** len(self.statistic.box.low) > _MOST:
            raise StructureError(
                f"a grid of {self.points} points in {len(self.statistic.box.low)} coordinates is "
                "too small or too large.",
                remedy=f"Use 2 or more, and at most {_MOST:,} in all.",
            )
        usable(self.bound)

    @classmethod
    def calibrate(
        cls, pairs: SecretPairs, epsilon: object, statistic: ConvexStatistic, points: int = 1024
    ) -> WassersteinGradient:
        """With Delta_z of the scenarios, in records."""
        return cls(pairs, delta_z(pairs), statistic, epsilon, points)  # type: ignore[arg-type]

    @property
    def rate(self) -> float:
        """(epsilon - 2 H) / (2 Delta_z), rounded down."""
        return float((self.epsilon - 2 * H) / (2 * usable(self.bound))) * (1 - 2.0**-50)

    @cached_property
    def guarantee(self) -> Guarantee:
        """epsilon given the public figures, numerics included."""
        assumptions = (
            f"Delta_z = {self.bound.value:g} records",
            "bounds of the records and the grid were chosen without the data",
        )
        return promise(self.pairs, self.epsilon, self.bound, more=assumptions)

    @property
    def description(self) -> RecordDescription:
        """The law; one replaced record costs 2 rate, and the numerics, on every database."""
        box = self.statistic.box
        law = {
            "statistic": type(self.statistic).__name__.lower(),
            "norm": self.statistic.norm,
            "rate": repr(self.rate),
            "grid": {"low": list(box.low), "high": list(box.high), "points": self.points},
            "delta_z": {"value": self.bound.value, "measure": self.bound.measure},
        }
        loss = (self.epsilon - 2 * H) / usable(self.bound) + 2 * H
        return RecordDescription(self.name, self.pairs.schema, law, epsilon=loss)

    @cached_property
    def grid(self) -> Floats:
        """The public points, shape (points ** dimension, dimension)."""
        box = self.statistic.box
        axes = [np.linspace(a, b, self.points) for a, b in zip(box.low, box.high, strict=True)]
        return np.stack([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)

    def log_density(self, data: Any) -> Floats:
        """log p(y | x) on the whole grid."""
        logs = self._logs(data)
        return np.asarray(logs - np.log(np.exp(logs).sum()))

    def _logs(self, data: Any) -> Floats:
        statistic, parts = self.statistic, []
        self._check_numerics(len(data))
        for start in range(0, len(self.grid), 1 << 14):  # keeps the matrix of predictions small
            y = self.grid[start : start + (1 << 14)]
            steep = norm_of(statistic.gradient(data, y), statistic.norm)
            parts.append(-self.rate * steep / statistic.spread(y))
        logs = np.concatenate(parts)
        return np.asarray(logs - logs.max())

    def check_data(self, data: Any) -> None:
        """Refuse records that no draw takes: beyond the public bounds, or too many for numerics."""
        self._check_numerics(len(data))
        self.statistic.gradient(data, self.grid[:1])

    def _check_numerics(self, n: int) -> None:
        """A gradient is a sum of n terms no larger than box and records: n^2 units, times rate."""
        low, high = np.array(self.statistic.box.low), np.array(self.statistic.box.high)
        offset = 1 + float((np.maximum(np.abs(low), np.abs(high)) / (high - low)).max())
        if self.rate * 2 * n * (n + 64) * offset * 2.0**-52 > H:
            raise StructureError(
                f"the rounding errors of {n:,} records exceed what the promise allows for.",
                remedy="Use a smaller epsilon, a box nearer to 0, or a sample of the records.",
            )

    def draw(self, data: Any, randomness: Randomness, draws: int) -> Floats:
        """Independent draws of y, shape (draws, dimension)."""
        logs = self._logs(data)
        weights = np.exp(logs)
        scale = (_WHOLE - 4 * weights.size) / (math.fsum(weights) * (1 + 2.0**-40))
        n = np.floor(weights * scale).astype(np.uint64) + np.uint64(1)
        ratios = weights * scale / n  # far below 1 only where n = 1 stands for much less
        ends = np.cumsum(n)
        whole, accepted, missing = int(ends[-1]), [np.empty(0, dtype=np.int64)], draws
        while missing > 0:
            words = randomness.words(2 * max(missing, 16)).reshape(-1, 2)
            u = words[:, 0] >> np.uint64(2)
            words, u = words[u < np.uint64(whole)], u[u < np.uint64(whole)]
            at = np.searchsorted(ends, u, side="right")
            accept = words[:, 1] * 2.0**-64 < ratios[at]
            for i in np.flatnonzero(ratios[at] < _SURE).tolist():
                ratio = partial(_log_ratio, float(logs[at[i]]), scale)
                accept[i] = below(int(words[i, 1]), 64, ratio, randomness)
            accepted.append(at[accept][:missing])
            missing -= accepted[-1].size
        return np.asarray(self.grid[np.concatenate(accepted)])

    def release(
        self, data: Any, randomness: Randomness | None = None, name: str = "release"
    ) -> ValuesRelease:
        """Draw once: the only call that spends privacy."""
        source = SystemRandomness() if randomness is None else randomness
        values = tuple(float(v) for v in self.draw(data, source, 1)[0])
        return ValuesRelease(
            name, self.description, self.guarantee, source.label, source.publishable, values
        )


def _log_ratio(log_weight: float, scale: float) -> Any:
    """log of the weight over its integer weight 1, as a ball."""
    return ball(Fraction(log_weight)) + ball(Fraction(scale)).log()
