"""Piecewise-linear trade-off functions: any f of a discrete pair, checked at construction.

The algebra on corners and masses is in `_piecewise`; this is the promise made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from congenial.data.argument_rules import REAL, SEQUENCE, Rule, check_fields, pairs_of, takes
from congenial.data.arguments import NUMBER
from congenial.errors import GuaranteeError
from congenial.privacy import piecewise_algebra as pw
from congenial.privacy.numbers import ULP, FloatArray, Number, below, group_size, parameter, stored
from congenial.privacy.tradeoff import DiscreteTradeoff


def _number(value: Any) -> bool:
    return isinstance(value, (*NUMBER, str, Decimal))


CORNERS = pairs_of(Rule("a number", _number), Rule("a number", _number))
MASSES = pairs_of(REAL, REAL)


@dataclass(frozen=True)
class PiecewiseLinear(DiscreteTradeoff):
    """Any piecewise-linear f, by its corners from (0, 0) to (1, f(1)).

    Checked: convex, nondecreasing, f(alpha) <= alpha (to 1e-12 for floats, exactly for rationals).
    A promise is symmetric; T(P, Q) of one ordered pair need not be: see `is_symmetric` and
    `symmetrise`. `delta` and `epsilon` always cover both orders. `masses` is for `from_pieces`
    only.
    """

    points: pw.Pairs
    masses: pw.Pairs = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, points=CORNERS, masses=MASSES)
        points = pw.read(self.points)
        _check_corners(points)
        if self.masses:
            _check_masses(self.masses)
        else:
            _check_convex(points)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "masses", self.masses or pw.pieces_of(points))

    @classmethod
    @takes(GuaranteeError, pieces=MASSES)
    def from_pieces(cls, pieces: pw.Pairs) -> PiecewiseLinear:
        """f of the pair with these masses (p, q), in any order."""
        merged = pw.merge(pieces)
        return cls(pw.points_of(merged), merged)

    @property
    def pieces(self) -> pw.Pairs:
        """Masses (p, q) of the pair, by rising q/p."""
        return self.masses

    @property
    def corners(self) -> pw.Pairs:
        """Corners (alpha, f(alpha)), from (0, 0) to (1, f(1))."""
        return self.points

    @cached_property
    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        pieces = pw.as_array(self.pieces)
        return pieces, pw.losses(pieces)

    @property
    def rounding(self) -> float:
        """Relative rounding that `delta` allows for."""
        return 64 * ULP * (len(self.pieces) + 2)

    def delta(self, epsilon: Number) -> float:
        """sum of (p - e^epsilon q)_+, the larger of both orders."""
        eps = below(parameter(epsilon, "epsilon"))
        pieces, loss = self._arrays
        return max(
            pw.hockey_stick(pieces[:, 0], loss, eps, self.rounding),
            pw.hockey_stick(pieces[:, 1], -loss, eps, self.rounding),
        )

    def group(self, k: int) -> PiecewiseLinear:
        """f composed with itself k times, exactly (slopes multiply)."""
        points = self.points
        for _ in range(group_size(k) - 1):
            points = pw.compose_points(self.points, points)
        if k == 1:
            return self
        pieces = pw.pieces_of(points)
        pieces = pw.mirror_upper(pieces) if self.is_symmetric else pieces
        return PiecewiseLinear.from_pieces(pieces)

    @property
    def is_symmetric(self) -> bool:
        """Whether T(P, Q) = T(Q, P), to 1e-12 for floats."""
        mirror = pw.points_of(pw.mirrored(self.pieces))
        if pw.is_exact(self.points):
            return pw.lower_hull(mirror) == pw.lower_hull(self.points)
        mine, theirs = pw.as_array(self.points), pw.as_array(mirror)
        levels = np.concatenate((mine[:, 0], theirs[:, 0]))
        gap = self(levels) - np.interp(levels, theirs[:, 0], theirs[:, 1])
        return bool(np.max(np.abs(gap)) <= pw.TOLERANCE)

    def symmetrise(self) -> PiecewiseLinear:
        """Greatest convex function below T(P, Q) and T(Q, P): the promise that covers both orders.

        This is the biconjugate of min(f, f^{-1}) (Dong et al. 2022, A.1), symmetric by
        construction.
        """
        mirror = pw.points_of(pw.mirrored(self.pieces))
        hull = pw.lower_hull(self.points + mirror)
        return PiecewiseLinear.from_pieces(pw.mirror_upper(pw.pieces_of(hull)))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"a trade-off function with {len(self.points)} corners"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; masses beside corners, whose differences would lose digits."""
        return {
            "kind": "piecewise-linear",
            "points": [[stored(a), stored(f)] for a, f in self.points],
            "pieces": [[stored(p), stored(q)] for p, q in self.pieces],
        }


@takes(GuaranteeError, p=SEQUENCE, q=SEQUENCE)
def tradeoff_between(p: Sequence[Number], q: Sequence[Number]) -> PiecewiseLinear:
    """T(P, Q) of two distributions on the same finite set (Neyman and Pearson), exact for
    rationals.

    T(P, Q)(alpha) = inf { 1 - E_Q phi : E_P phi <= 1 - alpha } over tests phi. One ordered pair:
    `symmetrise()` covers both orders. An audit compares it with a promise by `promise <=
    tradeoff_between(p, q)`. Probabilities that do not add up to one (exactly for rationals, to 1e-9
    for floats) are refused.

    >>> half, quarter = Fraction(1, 2), Fraction(1, 4)
    >>> tradeoff_between([half, half], [quarter, 1 - quarter]).points[1]
    (Fraction(1, 2), Fraction(1, 4))
    """
    if len(p) != len(q) or not len(p):
        raise GuaranteeError(
            f"the two distributions have {len(p)} and {len(q)} outcomes.",
            remedy="Give both on the same finite set.",
        )
    pieces = tuple(
        (parameter(a, "a probability"), parameter(b, "a probability"))
        for a, b in zip(p, q, strict=True)
    )
    slack = 0.0 if pw.is_exact(pieces) else 1e-9
    for k in (0, 1):
        if abs(sum((Fraction(x[k]) for x in pieces), Fraction(-1))) > slack:
            raise GuaranteeError("probabilities do not add up to one.", remedy="Normalise them.")
    return PiecewiseLinear.from_pieces(pieces)


def _check_corners(points: pw.Pairs) -> None:
    slack = 0 if pw.is_exact(points) else pw.TOLERANCE
    if len(points) < 2 or points[0] != (0, 0) or points[-1][0] != 1:
        raise GuaranteeError(
            "a trade-off function starts at (0, 0) and ends at alpha = 1.",
            remedy="Give corners (alpha, f) from (0, 0) to (1, f(1)).",
        )
    for (a0, f0), (a1, f1) in pairwise(points):
        if not a0 < a1:
            raise GuaranteeError("corners are out of order.", remedy="Sort them by alpha.")
        if f1 - f0 < -slack or f1 > a1 + slack:
            raise GuaranteeError(
                "a trade-off function never falls and stays below alpha.",
                remedy="Check the orientation: alpha is 1 minus the type I error.",
            )


def _check_convex(points: pw.Pairs) -> None:
    rounding = 0 if pw.is_exact(points) else 8 * ULP
    for (a0, f0), (a1, f1), (a2, f2) in zip(points[:-2], points[1:-1], points[2:], strict=True):
        # Slopes compared without division; the slack is the rounding of the four differences.
        gap = (f2 - f1) * (a1 - a0) - (f1 - f0) * (a2 - a1)
        if gap < -rounding * (a2 - a0 + f2 - f0):
            raise GuaranteeError("the corners are not convex.", remedy="Take their lower hull.")


def _check_masses(masses: pw.Pairs) -> None:
    """A pair of distributions by rising slope makes f convex; corners of floats could not tell."""
    pieces = pw.as_array(masses)
    loss = pw.losses(pieces)
    falls = bool(np.all(loss[1:] <= loss[:-1] + pw.TOLERANCE))
    if not falls or np.any(np.abs(pieces.sum(axis=0) - 1) > 1e-9):
        raise GuaranteeError(
            "the masses are not two distributions sorted by slope.",
            remedy="Build the function with tradeoff_between or from its corners.",
        )
