"""Statistics that minimise a convex loss, with their gradients: what the gradient mechanism needs.

L_x(y) = sum_i l(y; x_i). `spread(y)` bounds ||grad l(y; a) - grad l(y; b)||_K over any two records
a, b that the public bounds allow: how much one replaced record can move the gradient at y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from congenial.data.arrays import Floats
from congenial.errors import DataError, StructureError

Norm = Literal["l1", "l2", "linf"]


def norm_of(values: Floats, norm: Norm) -> Floats:
    """The norm over the last axis."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return np.asarray(np.linalg.norm(values, ord=order, axis=-1))


@dataclass(frozen=True)
class Box:
    """A public box that holds every value of the statistic."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        pairs = list(zip(self.low, self.high, strict=True))
        if not pairs or any(not -np.inf < a < b < np.inf for a, b in pairs):
            raise StructureError(
                "the bounds of a statistic are empty or infinite.", remedy="Give low < high."
            )


class ConvexStatistic(ABC):
    """argmin of a sum of convex losses over a public box."""

    box: Box
    norm: Norm

    @abstractmethod
    def gradient(self, data: Any, y: Floats) -> Floats:
        """The gradient of L_x at the rows of y, shape (m, dimension)."""

    @abstractmethod
    def spread(self, y: Floats) -> Floats:
        """How much one replaced record can change it, in the norm, shape (m,)."""


@dataclass(frozen=True)
class Mean(ConvexStatistic):
    """l = |y - x|^2 / 2 for records in the box: the gradient is n (y - mean)."""

    box: Box
    norm: Norm = "l2"

    def gradient(self, data: Any, y: Floats) -> Floats:
        """sum_i (y - x_i)."""
        x = _inside(data, self.box)
        return np.asarray(len(x) * y - x.sum(axis=0))

    def spread(self, y: Floats) -> Floats:
        """The diameter of the box."""
        side = np.array(self.box.high) - np.array(self.box.low)
        return np.full(len(y), float(norm_of(side, self.norm)))


@dataclass(frozen=True)
class Quantile(ConvexStatistic):
    """l = (y - x) (1{x < y} - q): the gradient counts records below y, less q n."""

    box: Box
    q: float = 0.5
    norm: Norm = "l1"

    def __post_init__(self) -> None:
        if not 0 < self.q < 1 or len(self.box.low) != 1:
            raise StructureError(
                f"q = {self.q} of {len(self.box.low)} numbers at once.",
                remedy="A quantile is of one number, 0 < q < 1.",
            )

    def gradient(self, data: Any, y: Floats) -> Floats:
        """#{x_i < y} - q n."""
        x = np.sort(_inside(data, self.box)[:, 0])
        below = np.searchsorted(x, y[:, 0], side="left")
        return np.asarray(below - self.q * len(x))[:, None]

    def spread(self, y: Floats) -> Floats:
        """One record, one count."""
        return np.ones(len(y))


@dataclass(frozen=True)
class Regression(ConvexStatistic):
    """Linear (squared loss) or logistic regression; records are rows (features..., response).

    reach: the largest norm of a feature vector. response: the largest |response| (linear; 1 for
    logistic, whose responses are 0 or 1). Records beyond these public bounds are refused.
    """

    box: Box
    reach: float
    response: float = 1.0
    kind: Literal["linear", "logistic"] = "linear"
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        if not (0 < self.reach < np.inf and 0 < self.response < np.inf):
            raise StructureError(
                f"reach = {self.reach} and response = {self.response}: both must be positive.",
                remedy="Give finite bounds above 0.",
            )
        if self.kind == "logistic" and self.response != 1:
            raise StructureError(
                f"response = {self.response}: the responses of a logistic regression are 0 or 1.",
                remedy="Leave response out, and code the responses as 0 and 1.",
            )

    def gradient(self, data: Any, y: Floats) -> Floats:
        """X' (predicted - response)."""
        x, target = self._inside(data)
        linear = y @ x.T
        predicted = linear if self.kind == "linear" else 0.5 * (1 + np.tanh(linear / 2))
        return np.asarray((predicted - target) @ x)

    def _inside(self, data: Any) -> tuple[Floats, Floats]:
        """Features and responses; records beyond the public bounds are refused."""
        rows = _finite(np.atleast_2d(np.asarray(data, dtype=float)))
        if rows.shape[1] != len(self.box.low) + 1:
            raise DataError("records and box differ in the number of columns.")
        x, target = rows[:, :-1], rows[:, -1]
        largest = float(norm_of(x, self.norm).max(initial=0.0))
        if largest > self.reach or np.abs(target).max(initial=0.0) > self.response:
            raise DataError(
                "a record is outside the public bounds of the regression.",
                remedy="Widen the bounds without looking at the data, or clip the records.",
            )
        if self.kind == "logistic" and not np.isin(target, (0.0, 1.0)).all():
            raise DataError(
                "a response of a logistic regression is neither 0 nor 1.",
                remedy="Code the two answers as 0 and 1.",
            )
        return x, target

    def spread(self, y: Floats) -> Floats:
        """Twice the largest gradient of one record: (|x' y| + |response|) |x|, or |x|."""
        if self.kind == "logistic":
            return np.full(len(y), 2 * self.reach)
        dual: dict[Norm, Norm] = {"l1": "linf", "l2": "l2", "linf": "l1"}
        steep = norm_of(y, dual[self.norm]) * self.reach + self.response
        return np.asarray(2 * self.reach * steep)


def _inside(data: Any, box: Box) -> Floats:
    x = np.asarray(data, dtype=float)
    x = _finite(x[:, None] if x.ndim == 1 else x)
    if x.ndim != 2 or x.shape[1] != len(box.low):
        raise DataError("records and box differ in the number of columns.")
    if (x < np.array(box.low)).any() or (x > np.array(box.high)).any():
        raise DataError(
            "a record is outside its public bounds.",
            remedy="Widen the bounds without looking at the data, or clip the records.",
        )
    return x


def _finite(x: Floats) -> Floats:
    if not np.isfinite(x).all():
        raise DataError(
            "a record is missing or infinite.", remedy="Leave out such records, or clip them."
        )
    return x
