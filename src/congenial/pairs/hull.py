"""The convex hull of a sensitivity space: its vertices, its gauge, and the containment order.

The hull K of a finite set S = -S is a norm ball in span(S) (semi-dp, Lemma 29), and the smallest
one that contains S: no K-norm mechanism needs less noise (Definition 8, Theorem 31). Linear
programmes are solved in doubles; `sampling.gauge` has certified ones for two-way tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf
from typing import Any, Literal

import numpy as np

from congenial.errors import StructureError
from congenial.figures.integers import Lattice
from congenial.figures.lattice import Ints

Ball = Literal["hull", "l1", "l2", "linf"]

LARGEST_HULL = 5_000  # points
_SMALL = 1e-7


@dataclass(frozen=True, eq=False)
class Hull:
    """The hull of points (rows) that come with their opposites."""

    points: Ints = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.points) > LARGEST_HULL:
            raise StructureError(
                f"a hull of {len(self.points)} differences is too large.",
                remedy="Use a norm: its sensitivity is known without the hull.",
            )

    @property
    def dimension(self) -> int:
        """Of the space the points are in."""
        return int(self.points.shape[1])

    @cached_property
    def _axes(self) -> list[int]:
        """Coordinates that determine the others in the span of the points."""
        return sorted(Lattice(self.dimension).add(self.points.T @ self.points).rows)

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return len(self._axes)

    @cached_property
    def vertices(self) -> Ints:
        """The points that are no mixture of others.

        A longest point is a vertex; for another one a linear programme looks for a direction in
        which it is farther than all others.
        """
        points = np.unique(self.points, axis=0)
        points = points[np.any(points, axis=1)]
        if not len(points):
            return self.points[:1]  # S = {0}
        squares = np.square(points).sum(axis=1)
        kept = squares == squares.max()
        number = {point.tobytes(): k for k, point in enumerate(points)}
        seen = points[:, self._axes].astype(float)
        for k in np.flatnonzero(~kept):
            opposite = number[(-points[k]).tobytes()]
            kept[k] = kept[opposite] if opposite < k else self._extreme(seen, int(k))
        return np.asarray(points[kept])

    @staticmethod
    def _extreme(points: Any, k: int) -> bool:
        """Whether some direction has its only maximum at point k."""
        from scipy.optimize import linprog

        others = np.delete(points, k, axis=0)
        size = points.shape[1]
        found = linprog(
            np.append(np.zeros(size), -1.0),  # largest lead over all others
            A_ub=np.column_stack([others - points[k], np.ones(len(others))]),
            b_ub=np.zeros(len(others)),
            bounds=[(-1, 1)] * size + [(0, None)],
        )
        return bool(found.status == 0 and -found.fun > _SMALL)

    def gauge(self, vector: Any) -> float:
        """inf { c >= 0 : vector in c K }; infinite outside the span.

        min sum of weights with sum of weights * vertices = vector.
        """
        from scipy.optimize import linprog

        wanted = np.asarray(vector, dtype=float).reshape(-1)
        corners = self.vertices.astype(float)
        if not np.any(wanted):
            return 0.0
        found = linprog(np.ones(len(corners)), A_eq=corners.T, b_eq=wanted)
        return float(found.fun) if found.status == 0 else inf


def contains(larger: Ball, smaller: Ball, radii: dict[Ball, Fraction], hull: Hull) -> bool | None:
    """Whether the ball of one norm, scaled to its sensitivity, holds that of another (Definition
    8); None where that is not decided.

    `radii` holds Delta_1, Delta_2 squared (under "l2") and Delta_inf of the same sensitivity space;
    the hull has radius 1. If `larger` holds `smaller`, noise in the norm of `smaller` is preferred:
    less entropy, smaller variance in every direction.
    """
    if larger == smaller or smaller == "hull":
        return True
    if larger == "hull":
        return _inside_hull(smaller, radii, hull)
    d, r = hull.dimension, radii
    # Squares of: radius of the larger ball, farthest point of the smaller one in that norm.
    outer = r["l2"] if larger == "l2" else r[larger] ** 2
    inner = r["l2"] if smaller == "l2" else r[smaller] ** 2
    spread = {("l2", "linf"): d, ("l1", "linf"): d**2, ("l1", "l2"): d}
    return bool(inner * spread.get((larger, smaller), 1) <= outer)


def _inside_hull(ball: Ball, radii: dict[Ball, Fraction], hull: Hull) -> bool | None:
    """Whether a ball lies in the hull: never when the hull is flat."""
    if hull.rank < hull.dimension:
        return False
    size = hull.dimension
    radius = float(radii[ball]) ** (0.5 if ball == "l2" else 1)
    if ball == "linf" and size > 12:
        return None
    corners = np.eye(size)
    if ball == "linf":
        signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * size)).reshape(size, -1).T
        corners = signs
    inside = all(hull.gauge(radius * corner) <= 1 + _SMALL for corner in corners)
    return None if ball == "l2" and inside else inside
