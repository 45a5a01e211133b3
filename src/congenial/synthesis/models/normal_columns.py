"""Continuous columns: a normal law, or a linear regression, on a scale that suits skewed data.

Scales: "identity"; "log" (positive numbers); "root", the signed square root, and "asinh", which
take zeros and negatives too. Parameters are on the scale. Oscillations do not depend on units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from congenial.data.arguments import NOT_NEGATIVE, TEXT, check_fields, expect
from congenial.data.arrays import Floats
from congenial.data.attribute import Attribute
from congenial.errors import GuaranteeError
from congenial.synthesis.models.count_columns import needs_theta
from congenial.synthesis.models.level_columns import ends, log_normal_mass
from congenial.synthesis.record_model import ContextModel, Grid, LevelModel

Map = Callable[[Floats], Floats]


def _log(y: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y > 0, np.log(np.where(y > 0, y, 1.0)), -np.inf)


def _root(y: Floats) -> Floats:
    return np.asarray(np.sign(y) * np.sqrt(np.abs(y)))


def _square(z: Floats) -> Floats:
    return np.asarray(np.sign(z) * z * z)


SCALES: dict[str, tuple[Map, Map]] = {
    "identity": (np.asarray, np.asarray),
    "log": (_log, np.exp),
    "root": (_root, _square),
    "asinh": (np.arcsinh, np.sinh),
}


def _check(scale: str, sd: Grid | None) -> None:
    if scale not in SCALES:
        raise GuaranteeError(
            f"scale {scale!r} is not known.", remedy=f"Use one of {', '.join(SCALES)}."
        )
    expect(sd, (Grid, type(None)), "sd", "Give a Grid or None.", GuaranteeError)
    if sd is not None and sd.low <= 0:
        raise GuaranteeError(
            "the standard deviation may be 0, where every record is impossible.",
            remedy="Give its grid a positive low end.",
        )


def _log_density(z: Floats, mean: Floats, sd: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(-0.5 * math.log(2 * math.pi) - np.log(sd) - 0.5 * ((z - mean) / sd) ** 2)


def normal_oscillation(z: Floats, low: Floats, high: Floats, sd: Grid) -> Floats:
    """Of log N(z; mean, sd) over mean in [low, high] and sd in its grid's range.

    With d the distance |z - mean|: the largest value is at the least d, and at sd = d cut to the
    range; the least is at the largest d and one end of the range.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        near = np.maximum(np.maximum(low - z, z - high), 0.0)
        far = np.maximum(np.abs(z - low), np.abs(z - high))
        best = np.clip(near, sd.low, sd.high)
        top = -np.log(best) - 0.5 * (near / best) ** 2
        worst = [-math.log(end) - 0.5 * (far / end) ** 2 for end in (sd.low, sd.high)]
        osc = top - np.minimum(*worst)
    return np.where(np.isnan(osc), np.inf, osc)


@dataclass(frozen=True)
class NormalColumn(ContextModel):
    """T(y) ~ N(mean, sd^2) on a scale T; normal-inverse-gamma prior, Jeffreys' by default.

    sd^2 ~ InverseGamma(prior_shape, prior_scale), mean | sd ~ N(prior_mean, sd^2 / prior_records).
    On levels, P(level) is the mass of its interval. On the scale "log" levels at or below 0 have
    none: put them in a `Spike`.
    """

    kind: ClassVar[str] = "normal"
    mean: Grid | None = None
    sd: Grid | None = None
    scale: str = "identity"
    prior_mean: float = 0.0
    prior_records: float = 0.0
    prior_shape: float = -0.5
    prior_scale: float = 0.0

    def __post_init__(self) -> None:
        _check(self.scale, self.sd)

    def log_prior(self, theta: Floats) -> Floats:
        """-(2 shape + 2) log sd - (scale + records (mean - m0)^2 / 2) / sd^2, a density of sd."""
        mean, sd = theta.T
        spread = self.prior_scale + 0.5 * self.prior_records * (mean - self.prior_mean) ** 2
        return np.asarray(-(2 * self.prior_shape + 2) * np.log(sd) - spread / sd**2)

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """log density of T(y)."""
        z = SCALES[self.scale][0](np.asarray(records, dtype=float))[None, :]
        return _log_density(z, theta[:, :1], theta[:, 1:])

    def oscillation(self, records: Any) -> Floats:
        """Closed form over the whole rectangle; at least that over the grid."""
        mean, sd = needs_theta(self.mean, "mean"), needs_theta(self.sd, "sd")
        z = SCALES[self.scale][0](np.asarray(records, dtype=float))
        return normal_oscillation(z, np.asarray(mean.low), np.asarray(mean.high), sd)

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Independent draws of (mean, sd)."""
        z = SCALES[self.scale][0](np.asarray(records, dtype=float))
        used = weights > 0
        z, w = z[used], weights[used]
        total = self.prior_records + float(w.sum())
        shape = self.prior_shape + 0.5 * float(w.sum())
        if not (total > 0 and shape > 0):
            raise GuaranteeError(
                "the weighted posterior is improper.",
                remedy="Give prior_records, prior_shape and prior_scale above 0.",
            )
        centre = (self.prior_records * self.prior_mean + float(w @ z)) / total
        spread = float(w @ (z - centre) ** 2)
        spread += self.prior_records * (self.prior_mean - centre) ** 2
        sd = np.sqrt((self.prior_scale + 0.5 * spread) / generator.gamma(shape, size=draws))
        mean = centre + sd / math.sqrt(total) * generator.standard_normal(draws)
        return np.column_stack([mean, sd])

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """New values, back on their own scale."""
        z = theta[0] + theta[1] * generator.standard_normal(len(records))
        return SCALES[self.scale][1](z)

    def log_levels(self, theta: Floats, attribute: Attribute) -> Floats:
        """log mass of each level's interval."""
        return _interval_mass(attribute, self.scale, theta[:, :1], theta[:, 1:])


@dataclass(frozen=True)
class LinearRegression(LevelModel):
    """T(y) ~ N(b0 + b1 x1 + ... , sd^2), with predictors x the numbers of the parents' levels.

    `coefficients` holds one grid for b0 and one per parent. On the grid the prior is flat in the
    coefficients and 1/sd in sd; in local mode coefficients have the precision `ridge` (in units of
    1 / sd^2) around 0, and records are rows (x1, ..., y).
    """

    shared = True

    kind: ClassVar[str] = "regression"
    coefficients: tuple[Grid, ...] = ()
    sd: Grid | None = None
    scale: str = "identity"
    ridge: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, scale=TEXT, ridge=NOT_NEGATIVE)
        _check(self.scale, self.sd)

    def log_prior(self, theta: Floats) -> Floats:
        """-log sd, less ridge |b|^2 / (2 sd^2)."""
        b, sd = theta[:, :-1], theta[:, -1]
        return np.asarray(-np.log(sd) - 0.5 * self.ridge * (b**2).sum(axis=1) / sd**2)

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """log density of T(y) given the predictors."""
        x, z = self._design(records)
        return _log_density(z[None, :], theta[:, :-1] @ x.T, theta[:, -1:])

    def oscillation(self, records: Any) -> Floats:
        """As for a normal law whose mean runs over the range of b'x."""
        x, z = self._design(records)
        self._check_predictors(x.shape[1] - 1)
        low = np.array([grid.low for grid in self.coefficients])
        high = np.array([grid.high for grid in self.coefficients])
        least = np.where(x > 0, x * low, x * high).sum(axis=1)
        most = np.where(x > 0, x * high, x * low).sum(axis=1)
        return normal_oscillation(z, least, most, needs_theta(self.sd, "sd"))

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Independent draws of (b, sd), normal-inverse-gamma."""
        x, z = self._design(records)
        used = weights > 0
        x, z, w = x[used], z[used], weights[used]
        precision = (x * w[:, None]).T @ x + self.ridge * np.eye(x.shape[1])
        shape = 0.5 * (float(w.sum()) - (0 if self.ridge > 0 else x.shape[1]))
        if shape <= 0 or np.linalg.matrix_rank(precision) < len(precision):
            raise GuaranteeError(
                "the weighted regression is not determined: too little weight, or a predictor "
                "without variation.",
                remedy="Drop the predictor, or give ridge > 0.",
            )
        centre = np.linalg.solve(precision, (x * w[:, None]).T @ z)
        spread = float(w @ (z - x @ centre) ** 2) + self.ridge * float(centre @ centre)
        sd = np.sqrt(0.5 * spread / generator.gamma(shape, size=draws))
        noise = generator.standard_normal((draws, x.shape[1]))
        b = centre + sd[:, None] * np.linalg.solve(np.linalg.cholesky(precision).T, noise.T).T
        return np.column_stack([b, sd])

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """Rows with the same predictors and a new y."""
        rows = np.array(records, dtype=float)
        x, _ = self._design(rows)
        z = x @ theta[:-1] + theta[-1] * generator.standard_normal(len(rows))
        rows[:, -1] = SCALES[self.scale][1](z)
        return rows

    def log_probability(
        self, theta: Floats, attribute: Attribute, predictors: Floats | None = None
    ) -> Floats:
        """log mass of each level's interval given one context's predictors."""
        x = np.concatenate([[1.0], np.zeros(0) if predictors is None else predictors])
        self._check_predictors(len(x) - 1)
        return _interval_mass(attribute, self.scale, theta[:, :-1] @ x[:, None], theta[:, -1:])

    def _design(self, records: Any) -> tuple[Floats, Floats]:
        rows = np.asarray(records, dtype=float)
        x = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
        return x, SCALES[self.scale][0](rows[:, -1])

    def _check_predictors(self, given: int) -> None:
        if given != len(self.coefficients) - 1:
            raise GuaranteeError(
                f"the regression has {len(self.coefficients)} coefficients for {given} predictors.",
                remedy="Give one grid for the constant and one per predictor.",
            )


def _interval_mass(attribute: Attribute, scale: str, mean: Floats, sd: Floats) -> Floats:
    low, high = (SCALES[scale][0](end) for end in ends(attribute))
    numbered = ~np.isnan(low)
    low, high = np.where(numbered, low, 0.0), np.where(numbered, high, 0.0)
    mass = log_normal_mass((low - mean) / sd, (high - mean) / sd)
    return np.where(numbered, mass, -np.inf)
