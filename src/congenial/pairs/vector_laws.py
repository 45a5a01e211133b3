"""Laws of a vector of statistics: what one believes about the figures before the data are seen.

A Gaussian law has a mean and a covariance, given by an expert or fitted; a discrete law has points
and masses, given or sampled. Laws are public: a promise about them names them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import (
    ARRAY,
    FINITE,
    REAL,
    Rule,
    check_arguments,
    either,
    one_of,
    optional,
)
from congenial.data.attribute import check_name
from congenial.data.rational import exact
from congenial.errors import StructureError

Floats = NDArray[np.float64]
ROUNDING = Fraction(1, 10**9)  # masses whose sum is this close to 1 were rounded

WORTH = Rule("a number, 0 or more", lambda one: REAL.holds(one) and one >= 0)  # 0: not known
GAUSSIAN: dict[str, Rule | type] = {
    "mean": either(ARRAY, FINITE, np.ndarray),
    "covariance": either(ARRAY, FINITE, np.ndarray),
    "worth": optional(WORTH),
}
DISCRETE: dict[str, Rule | type] = {
    "points": ARRAY,
    "masses": optional(one_of(list, tuple, np.ndarray)),
}


@dataclass(frozen=True)
class Law(ABC):
    """The law of the statistics in one scenario, called `label`."""

    label: str

    @property
    @abstractmethod
    def mean(self) -> Floats:
        """Expected statistics."""

    @property
    @abstractmethod
    def covariance(self) -> Floats:
        """Covariance of the statistics."""

    @property
    def dimension(self) -> int:
        """Number of statistics."""
        return len(self.mean)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data."""

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Law:
        """Inverse of `to_dict`."""
        if "points" in data:
            return DiscreteLaw.of(data["label"], data["points"], data["masses"])
        return GaussianLaw.of(data["label"], data["mean"], data["covariance"])


@dataclass(frozen=True)
class GaussianLaw(Law):
    """N(mean, covariance). `worth`: the number of independent datasets a fit is worth.

    None for a law that is given and not fitted. Build it with `GaussianLaw.of`. Only the error of
    the fit needs `worth`, before anything is drawn: no file has it.

    >>> GaussianLaw.of("p = 0.45", [100, 101], [[22, -6], [-6, 13]]).covariance.trace()
    np.float64(35.0)
    """

    centre: tuple[float, ...]
    spread: tuple[tuple[float, ...], ...]
    worth: float | None = None

    def __post_init__(self) -> None:
        check_name(self.label, "law")
        mean, covariance = np.array(self.centre), np.array(self.spread)
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)):
            raise StructureError(
                f"law {self.label!r}: the covariance does not have one row and column per "
                "statistic.",
                remedy="Give a square matrix with one row per statistic.",
            )
        finite = np.isfinite(mean).all() and np.isfinite(covariance).all()
        if not finite or not np.allclose(covariance, covariance.T, rtol=1e-9, atol=0):
            raise StructureError(
                f"law {self.label!r}: mean or covariance is not finite, or not symmetric.",
                remedy="Give finite numbers and a symmetric matrix.",
            )
        least = np.linalg.eigvalsh(covariance)[0] if len(mean) else 0.0
        if least < -1e-9 * max(1e-300, np.abs(covariance).max()):
            raise StructureError(
                f"law {self.label!r}: the covariance has a negative eigenvalue.",
                remedy="Give a positive definite matrix.",
            )

    @classmethod
    def of(cls, label: str, mean: Any, covariance: Any, worth: float | None = None) -> GaussianLaw:
        """From arrays; the covariance is symmetrised in the last digit."""
        given = {"mean": mean, "covariance": covariance, "worth": worth}
        check_arguments("GaussianLaw.of", given, GAUSSIAN, StructureError)
        spread = np.atleast_2d(np.asarray(covariance, dtype=np.float64))
        if spread.ndim == 2 and spread.shape[0] == spread.shape[1]:
            close = np.allclose(spread, spread.T, rtol=1e-9, atol=0)
            spread = (spread + spread.T) / 2 if close else spread
        centre = np.atleast_1d(np.asarray(mean, dtype=np.float64))
        return cls(label, tuple(centre.tolist()), tuple(map(tuple, spread.tolist())), worth)

    @cached_property
    def mean(self) -> Floats:
        """Expected statistics."""
        return _frozen(self.centre)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the statistics."""
        return _frozen(self.spread)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "label": self.label,
            "mean": list(self.centre),
            "covariance": [list(row) for row in self.spread],
        }


@dataclass(frozen=True)
class DiscreteLaw(Law):
    """Finitely many points with masses that add up to one; build it with `DiscreteLaw.of`.

    >>> DiscreteLaw.of("mu", [1, 2, 3, 100], [0.6, 0.2, 0, 0.2]).mean.tolist()
    [21.0]
    """

    atoms: tuple[tuple[float, ...], ...]
    masses: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        check_name(self.label, "law")
        if not self.atoms or len(self.atoms) != len(self.masses):
            raise StructureError(
                f"law {self.label!r} has {len(self.atoms)} points and {len(self.masses)} masses.",
                remedy="Give one mass per point.",
            )
        if len({len(atom) for atom in self.atoms}) != 1 or not np.isfinite(self.points).all():
            raise StructureError(
                f"law {self.label!r}: its points differ in length or are not finite.",
                remedy="Give one finite number per statistic.",
            )
        if min(self.masses) < 0 or sum(self.masses) != 1:
            raise StructureError(
                f"law {self.label!r}: its masses are negative or do not add up to 1.",
                remedy="Give probabilities.",
            )

    @classmethod
    def of(cls, label: str, points: Any, masses: Sequence[Any] | None = None) -> DiscreteLaw:
        """From points (a sample if no masses are given); equal points are merged, zeros dropped.

        Masses are read exactly (0.1 is one tenth); a rounding gap of at most 1e-9 is scaled away.
        """
        given = {"points": points, "masses": masses}
        check_arguments("DiscreteLaw.of", given, DISCRETE, StructureError)
        table = np.asarray(points, dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        weights = [Fraction(1, max(1, len(table)))] * len(table)
        if masses is not None:
            weights = [Fraction(exact(one, f"law {label!r}, masses")) for one in masses]
        total = sum(weights, Fraction(0))
        if 0 < abs(total - 1) <= ROUNDING:
            weights = [one / total for one in weights]
        if len(weights) != len(table):
            return cls(label, tuple(map(tuple, table.tolist())), tuple(weights))
        merged: dict[tuple[float, ...], Fraction] = {}
        for atom, mass in zip(map(tuple, table.tolist()), weights, strict=True):
            if mass:
                merged[atom] = merged.get(atom, Fraction(0)) + mass
        return cls(label, tuple(merged), tuple(merged.values()))

    @cached_property
    def points(self) -> Floats:
        """The points, one row each."""
        return _frozen(self.atoms)

    @cached_property
    def probabilities(self) -> Floats:
        """The masses as floats."""
        return _frozen([float(mass) for mass in self.masses])

    @cached_property
    def mean(self) -> Floats:
        """Expected statistics."""
        return _frozen(self.probabilities @ self.points)

    @cached_property
    def covariance(self) -> Floats:
        """Covariance of the statistics."""
        centred = self.points - self.mean
        return _frozen((centred * self.probabilities[:, None]).T @ centred)

    @cached_property
    def exact_mean(self) -> tuple[Fraction, ...]:
        """Expected statistics without rounding: points are taken as the doubles they are."""
        columns = zip(*self.atoms, strict=True)
        return tuple(
            sum((m * Fraction(x) for m, x in zip(self.masses, column, strict=True)), Fraction(0))
            for column in columns
        )

    def shifted_to(self, other: DiscreteLaw) -> bool:
        """Whether `other` is this law translated, exactly: a point that is off tells them apart."""
        if len(self.atoms) != len(other.atoms):
            return False
        one, two = (sorted(zip(law.atoms, law.masses, strict=True)) for law in (self, other))
        first = _step(one[0][0], two[0][0])
        return all(
            mine == theirs and _step(here, there) == first
            for (here, mine), (there, theirs) in zip(one, two, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "label": self.label,
            "points": [list(atom) for atom in self.atoms],
            "masses": [f"{m.numerator}/{m.denominator}" for m in self.masses],
        }


def _step(one: Sequence[float], other: Sequence[float]) -> list[Fraction]:
    """other - one, without rounding."""
    return [Fraction(y) - Fraction(x) for x, y in zip(one, other, strict=True)]


def _frozen(values: Any) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array
