"""Trade-off functions: what a release lets the best test find out.

Orientation of semi-dp (Cho, Awan), used everywhere in this package: f(alpha) = T(P, Q)(alpha) = inf
{ 1 - E_Q phi : E_P phi <= 1 - alpha }, increasing, convex, at most alpha; larger is more private.
Most of the literature uses f(1 - alpha); only `accounting` converts.

The families are `Pure`, `Approximate`, `Gaussian`, `ZeroConcentrated`, `Nothing` and
`PiecewiseLinear`; `at_most` decides f <= g. Perfect privacy is `Pure(0)`. Parameters
are attributes (`eps`, `dlt`, `mu`, `rho`), because `epsilon(delta)` and `delta(epsilon)` are the
questions one asks of any promise; both answers round upwards.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from congenial.data.arguments import NUMBER, REAL, SEQUENCE, Rule, check_fields, pairs_of, takes
from congenial.errors import GuaranteeError
from congenial.privacy import piecewise_algebra as pw
from congenial.privacy.conversions import (
    approximate_delta,
    gaussian_delta,
    gaussian_epsilon,
    pure_to_gdp,
    zcdp_delta,
    zcdp_epsilon,
)
from congenial.privacy.gaussian_draw import lattice_delta, lattice_epsilon
from congenial.privacy.numbers import (
    ULP,
    FloatArray,
    Number,
    above,
    below,
    group_size,
    multiply_up,
    number,
    parameter,
    probability,
    small,
    smallest,
    stored,
)

_GRID = 256


class Tradeoff(ABC):
    """A promise f: no test tells two adjacent databases apart better than f allows.

    f(alpha) is the least error of the second kind that a test can have whose error of the first
    kind is at most 1 - alpha: increasing, convex, at most alpha; larger is more private. `f <= g`:
    g promises at least as much. `epsilon(delta)` and `delta(epsilon)` round up, `group(k)` is for k
    persons, `accounting.tensor(f, g)` both releases together.
    """

    def __call__(self, alpha: ArrayLike) -> FloatArray:
        """f(alpha) for one or many alpha in [0, 1]."""
        levels = np.asarray(alpha, dtype=np.float64)
        if levels.size and not (np.all(levels >= 0) and np.all(levels <= 1)):
            raise GuaranteeError("alpha is outside [0, 1].", remedy="Give 1 - type I error.")
        return np.asarray(np.clip(self._value(levels), 0.0, levels))

    @abstractmethod
    def _value(self, alpha: FloatArray) -> FloatArray: ...

    @abstractmethod
    def delta(self, epsilon: Number) -> float:
        """Least delta known at epsilon, rounded up: sup of alpha - e^epsilon f(alpha)."""

    def epsilon(self, delta: float) -> float:
        """Least epsilon known with (epsilon, delta) implied, rounded up; inf if there is none."""
        target = probability(delta)
        return smallest(lambda eps: self.delta(eps) <= target)

    @property
    def total_variation(self) -> float:
        """Greatest advantage of any test, delta(0)."""
        return self.delta(0)

    @abstractmethod
    def group(self, k: int) -> Tradeoff:
        """What k steps between adjacent databases leave: f composed with itself k times."""

    def symmetrise(self) -> Tradeoff:
        """The promise that covers both orders of a pair; the named families already do."""
        return self

    def __le__(self, other: Tradeoff) -> bool:
        """Whether f <= g everywhere, i.e. `other` promises at least as much: `order.at_most`."""
        if not isinstance(other, Tradeoff):
            return NotImplemented

        return at_most(self, other)

    @property
    @abstractmethod
    def words(self) -> str:
        """The promise in a few words."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; rationals as "p/q"."""

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Tradeoff:
        """Inverse of `to_dict`.

        >>> Tradeoff.from_dict(Pure("1/3").to_dict())
        Pure(eps=Fraction(1, 3))
        """
        kind = data.get("kind")
        if kind == "pure":
            return Pure(data["epsilon"])
        if kind == "approximate":
            return Approximate(data["epsilon"], data["delta"])
        if kind == "gaussian":
            return Gaussian(data["mu"])
        if kind == "zero-concentrated":
            return ZeroConcentrated(data["rho"])
        if kind == "gaussian-draw":
            return GaussianDraw(data["rho"])
        if kind == "piecewise-linear":
            points, pieces = ([tuple(x) for x in data[k]] for k in ("points", "pieces"))
            return PiecewiseLinear(pw.read(points), pw.read(pieces))
        if kind == "nothing":
            return Nothing()
        raise GuaranteeError(
            f"the kind of trade-off function {kind!r} is not known.",
            remedy="Read the file with the version that wrote it.",
        )


class DiscreteTradeoff(Tradeoff):
    """A promise attained by a pair of discrete distributions.

    Its corners are a finite list, so that composition and order are exact for rational numbers.
    """

    @property
    @abstractmethod
    def pieces(self) -> pw.Pairs:
        """Masses (p, q) of the pair, by rising q/p."""

    @property
    def corners(self) -> pw.Pairs:
        """Corners (alpha, f(alpha)), from (0, 0) to (1, f(1))."""
        return pw.points_of(self.pieces)

    def _value(self, alpha: FloatArray) -> FloatArray:
        corners = pw.as_array(self.corners)
        return np.interp(alpha, corners[:, 0], corners[:, 1])

    def piecewise(self) -> PiecewiseLinear:
        """The same function as a `PiecewiseLinear`."""
        return _piecewise_linear(self.pieces)

    def group(self, k: int) -> Tradeoff:
        """f composed with itself k times, exactly (piecewise linear)."""
        return self.piecewise().group(k)


@dataclass(frozen=True, init=False)
class Pure(DiscreteTradeoff):
    """Pure epsilon: f(alpha) = max(1 - e^eps + e^eps alpha, e^{-eps} alpha).

    Beyond eps = 745, e^{-eps} is below every float and its products are taken as no promise.

    `group(k)` stays in the family, Pure(k eps): the tightest *pure* promise, exact in rationals.
    The composed f is larger between its ends; `piecewise().group(k)` gives it.

    >>> Pure(1).words
    'epsilon = 1'
    """

    eps: Number

    def __init__(self, epsilon: Number | str) -> None:
        object.__setattr__(self, "eps", parameter(epsilon, "epsilon"))

    @property
    def pieces(self) -> pw.Pairs:
        """Randomised response, the pair that attains f."""
        return pw.randomised_response(self.eps, Fraction(0))

    def delta(self, epsilon: Number) -> float:
        """(e^eps - e^epsilon)_+ / (1 + e^eps)."""
        return approximate_delta(self.eps, Fraction(0), parameter(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        """eps + ln(1 - delta (1 + e^{-eps})), at least 0."""
        return above(self.eps) if probability(delta) == 0 else super().epsilon(delta)

    def group(self, k: int) -> Pure:
        """Pure(k eps)."""
        return Pure(multiply_up(Fraction(group_size(k)), self.eps))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"epsilon = {number(self.eps)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "pure", "epsilon": stored(self.eps)}


@dataclass(frozen=True, init=False)
class Approximate(DiscreteTradeoff):
    """(eps, dlt): f(alpha) = max(0, 1 - dlt - e^eps + e^eps alpha, e^{-eps}(alpha - dlt)).

    Every event's probability obeys P(E) <= e^eps Q(E) + dlt, both ways. dlt = 0 is `Pure`; a dlt
    near 1 / n allows publishing one record outright.

    >>> Approximate(1, "1e-6").words
    '(epsilon, delta) = (1, 1e-06)'
    """

    eps: Number
    dlt: Number

    def __init__(self, epsilon: Number | str, delta: Number | str) -> None:
        object.__setattr__(self, "eps", parameter(epsilon, "epsilon"))
        object.__setattr__(self, "dlt", parameter(delta, "delta"))
        probability(float(self.dlt))

    @property
    def pieces(self) -> pw.Pairs:
        """Randomised response that reveals the truth with probability delta."""
        return pw.randomised_response(self.eps, self.dlt)

    def delta(self, epsilon: Number) -> float:
        """delta + (1 - delta)(e^eps - e^epsilon)_+ / (1 + e^eps)."""
        return approximate_delta(self.eps, self.dlt, parameter(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        """Least epsilon at delta; inf below the promise's own delta."""
        target = probability(delta)
        if target < self.dlt:
            return math.inf
        return min(above(self.eps), super().epsilon(target))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"(epsilon, delta) = ({number(self.eps)}, {small(float(self.dlt))})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "approximate", "epsilon": stored(self.eps), "delta": stored(self.dlt)}


@dataclass(frozen=True, init=False)
class Gaussian(Tradeoff):
    """mu-Gaussian differential privacy: G_mu(alpha) = Phi(Phi^{-1}(alpha) - mu).

    As hard as telling N(0, 1) from N(mu, 1) by one draw. mu adds in squares over releases.

    >>> round(float(Gaussian(1)(0.95)), 3)
    0.74
    """

    mu: Number

    def __init__(self, mu: Number | str) -> None:
        object.__setattr__(self, "mu", parameter(mu, "mu"))

    def _value(self, alpha: FloatArray) -> FloatArray:
        from scipy.special import ndtr, ndtri

        return np.asarray(ndtr(ndtri(alpha) - above(self.mu)))

    def delta(self, epsilon: Number) -> float:
        """`conversions.gaussian_delta` (exact)."""
        return gaussian_delta(self.mu, epsilon)

    def epsilon(self, delta: float) -> float:
        """`conversions.gaussian_epsilon` (exact)."""
        return gaussian_epsilon(self.mu, delta)

    def group(self, k: int) -> Gaussian:
        """G_{k mu} (exact)."""
        return Gaussian(multiply_up(Fraction(group_size(k)), self.mu))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"mu = {number(self.mu)} (Gaussian differential privacy)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "gaussian", "mu": stored(self.mu)}


@dataclass(frozen=True, init=False)
class ZeroConcentrated(Tradeoff):
    """rho-zCDP: Renyi divergences, both ways, of at most rho alpha at every order alpha > 1.

    It is not itself a trade-off function. Called as one, it gives the best lower bound known here:
    the supremum over epsilon of f_{epsilon, delta(epsilon)} with `conversions.zcdp_delta`.
    """

    rho: Number

    def __init__(self, rho: Number | str) -> None:
        object.__setattr__(self, "rho", parameter(rho, "rho"))

    def _value(self, alpha: FloatArray) -> FloatArray:
        corners = pw.as_array(self.piecewise().points)
        return np.interp(alpha, corners[:, 0], corners[:, 1])

    def piecewise(self) -> PiecewiseLinear:
        """The implied lower bound as a function: envelope of 256 of its (epsilon, delta) lines."""
        far = zcdp_epsilon(self.rho, 1e-300)
        # Denser towards 0, where the corners of f are.
        epsilon = far * np.linspace(0.0, 1.0, _GRID) ** 2
        delta = np.array([zcdp_delta(self.rho, float(eps)) for eps in epsilon])
        return _piecewise_linear(pw.envelope(epsilon, delta))

    def delta(self, epsilon: Number) -> float:
        """`conversions.zcdp_delta`."""
        return zcdp_delta(self.rho, epsilon)

    def epsilon(self, delta: float) -> float:
        """`conversions.zcdp_epsilon`."""
        return zcdp_epsilon(self.rho, delta)

    def group(self, k: int) -> ZeroConcentrated:
        """k^2 rho (Bun and Steinke 2016, Prop 1.9)."""
        return ZeroConcentrated(multiply_up(Fraction(group_size(k) ** 2), self.rho))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"rho = {number(self.rho)} (zero-concentrated)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "zero-concentrated", "rho": stored(self.rho)}


@dataclass(frozen=True, init=False)
class GaussianDraw(ZeroConcentrated):
    """rho-zCDP by one draw of discrete Gaussian noise, which promises more at each delta.

    epsilon and delta are the smaller of `gaussian_draw`'s bound and the conversion from rho.
    Together with other releases, and for groups of people, it counts as its rho.

    >>> tuple(round(f("1/2").epsilon(1e-3), 2) for f in (ZeroConcentrated, GaussianDraw))
    (3.54, 3.27)
    """

    def delta(self, epsilon: Number) -> float:
        """`gaussian_draw.lattice_delta`."""
        return lattice_delta(self.rho, epsilon)

    def epsilon(self, delta: float) -> float:
        """`gaussian_draw.lattice_epsilon`."""
        return lattice_epsilon(self.rho, delta)

    def basis_at(self, delta: float) -> str:
        """On what the epsilon stated at this delta rests, in words."""
        if self.epsilon(delta) < zcdp_epsilon(self.rho, delta):
            return "the bound for one draw of discrete Gaussian noise"
        return "the conversion from rho"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "gaussian-draw", "rho": stored(self.rho)}


@dataclass(frozen=True)
class Nothing(Tradeoff):
    """No promise: f = 0, epsilon infinite."""

    words = "no promise"

    def _value(self, alpha: FloatArray) -> FloatArray:
        return np.zeros_like(alpha)

    def delta(self, epsilon: Number) -> float:
        """Always 1."""
        parameter(epsilon, "epsilon")
        return 1.0

    def group(self, k: int) -> Nothing:
        """Nothing stays nothing."""
        group_size(k)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "nothing"}


# --- shared steps ------------------------------------------------------------------------------


def _piecewise_linear(pieces: pw.Pairs) -> PiecewiseLinear:

    return PiecewiseLinear.from_pieces(pieces)


# ---- Piecewise ----
# Piecewise-linear trade-off functions: any f of a discrete pair, checked at construction.
#
# The algebra on corners and masses is in `_piecewise`; this is the promise made of it.


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


# ---- The order of promises: whether one trade-off function is below another everywhere ----


def at_most(f: Tradeoff, g: Tradeoff) -> bool:
    """Whether f <= g everywhere, i.e. g promises at least as much; `f <= g` calls this.

    Decided by parameters within a family; a convex f is below a piecewise-linear g when it is at
    g's corners; a piecewise-linear f is below g when g implies each (epsilon, delta) line of f.
    Promises that no closed form compares are refused.
    """
    if f == g or isinstance(f, Nothing) or g == Pure(0):
        return True
    if isinstance(g, Nothing) or f == Pure(0):
        return False
    if isinstance(g, DiscreteTradeoff):
        return _below_at_corners(f, g)
    if isinstance(f, DiscreteTradeoff):
        return _lines_implied(f, g)
    return _smooth_order(f, g)


def _below_at_corners(f: Tradeoff, g: DiscreteTradeoff) -> bool:
    """Whether convex f is below piecewise-linear g: it is when it is at g's corners."""
    if isinstance(f, Pure) and isinstance(g, Pure):
        return f.eps >= g.eps
    if isinstance(f, Gaussian) and isinstance(g, Pure):
        return f.mu >= pure_to_gdp(g.eps)
    if isinstance(f, Pure | Approximate) and isinstance(g, Pure | Approximate):
        f_dlt, g_dlt = (x.dlt if isinstance(x, Approximate) else Fraction(0) for x in (f, g))
        if f_dlt < g_dlt:
            return False
        if f.eps >= g.eps:
            return True
    if isinstance(f, DiscreteTradeoff) and pw.is_exact(f.corners) and pw.is_exact(g.corners):
        return all(pw.value_at(f.corners, alpha) <= value for alpha, value in g.corners)
    if isinstance(f, PiecewiseLinear) and not f.is_symmetric:
        corners = pw.as_array(g.corners)
        return bool(np.all(f(corners[:, 0]) <= corners[:, 1] + pw.TOLERANCE))
    # f is symmetric, so a corner beyond the diagonal is checked at its mirror image, where the
    # small masses have all their digits: a violation of probability 1e-20 is still one.
    for pieces in (g.pieces, pw.mirrored(g.pieces)):
        corners = pw.as_array(pw.points_of(pieces))
        near = corners[corners.sum(axis=1) <= 1 + pw.TOLERANCE]
        if np.any(f(near[:, 0]) > near[:, 1] * (1 + pw.TOLERANCE)):
            return False
    return True


def _lines_implied(f: DiscreteTradeoff, g: Tradeoff) -> bool:
    """Whether every line e^{-eps}(alpha - delta) of piecewise-linear f holds for g."""
    target = f if not isinstance(f, PiecewiseLinear) else f.symmetrise()
    alpha = value = 0.0
    for p, q in pw.as_array(target.pieces):
        if 0 < q <= p and g.delta(max(0.0, math.log(p / q))) > alpha - value * p / q:
            return False
        alpha, value = alpha + p, value + q
    return True


def _smooth_order(f: Tradeoff, g: Tradeoff) -> bool:
    if isinstance(f, Gaussian) and isinstance(g, Gaussian):
        return f.mu >= g.mu
    if isinstance(f, ZeroConcentrated) and isinstance(g, ZeroConcentrated):
        if not isinstance(f, GaussianDraw) or isinstance(g, GaussianDraw):
            return f.rho >= g.rho
        if f.rho < g.rho:
            return False  # f promises more of either kind
    if isinstance(f, ZeroConcentrated) and isinstance(g, Gaussian):
        # mu^2/2 <= rho is enough; otherwise delta of zCDP falls faster than that of G_mu.
        return Fraction(g.mu) ** 2 <= 2 * Fraction(f.rho)
    if isinstance(f, Gaussian) and isinstance(g, ZeroConcentrated) and g <= f:
        return False  # f is strictly above g
    raise GuaranteeError(
        f"{f.words} and {g.words} cannot be compared exactly.",
        remedy="Compare epsilon at a delta of your choice.",
    )
