"""Trade-off functions: what a release lets the best test find out.

Orientation of semi-dp (Cho, Awan), used everywhere in this package: f(alpha) = T(P, Q)(alpha) = inf
{ 1 - E_Q phi : E_P phi <= 1 - alpha }, increasing, convex, at most alpha; larger is more private.
Most of the literature uses f(1 - alpha); only `accounting` converts.

The classes are families: `Pure`, `Approximate`, `Gaussian`, `ZeroConcentrated`, `PiecewiseLinear`
and `Nothing`. Perfect privacy is `Pure(0)`. Parameters are attributes (`eps`, `dlt`, `mu`, `rho`),
because `epsilon(delta)` and `delta(epsilon)` are the questions one asks of any promise; both
answers round upwards.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from congenial.errors import GuaranteeError
from congenial.privacy import _piecewise as pw
from congenial.privacy.conversions import (
    ULP,
    FloatArray,
    Number,
    above,
    add_up,
    below,
    gaussian_delta,
    gaussian_epsilon,
    gdp_to_zcdp,
    multiply_up,
    parameter,
    pure_to_gdp,
    pure_to_zcdp,
    smallest,
    zcdp_delta,
    zcdp_epsilon,
)

_GRID = 256


class Tradeoff(ABC):
    """A promise f: no test tells two adjacent databases apart better than f allows."""

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
        target = _probability(delta)
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

    def tensor(self, other: Tradeoff) -> Tradeoff:
        """Both releases together: T(P1 x P2, Q1 x Q2), or the best lower bound known.

        Exact within a family and between discrete pairs (pure, (epsilon, delta), piecewise linear);
        zCDP absorbs pure and Gaussian parts; anything else is a numerical lower bound from
        `accounting.compose`. Two pure promises give a piecewise-linear f that is above f_{eps1 +
        eps2} and touches it where the likelihood ratio is extreme.

        >>> both = Pure(1).tensor(Pure(1))
        >>> round(both.epsilon(0), 9), round(both.epsilon(0.05), 4)
        (2.0, 1.9018)
        """
        for one, two in ((self, other), (other, self)):
            if isinstance(one, Nothing) or two == Pure(0):
                return one
        if isinstance(self, Gaussian) and isinstance(other, Gaussian):
            return Gaussian(math.hypot(above(self.mu), above(other.mu)) * (1 + 2 * ULP))
        if isinstance(self, ZeroConcentrated) or isinstance(other, ZeroConcentrated):
            rhos = [_as_rho(self), _as_rho(other)]
            if rhos[0] is not None and rhos[1] is not None:
                return ZeroConcentrated(add_up(rhos[0], rhos[1]))
        if isinstance(self, _Discrete) and isinstance(other, _Discrete):
            return PiecewiseLinear.from_pieces(pw.product(self.pieces, other.pieces))
        from congenial.privacy.accounting import compose  # accounting reads the classes below

        return compose([self, other]).tradeoff()

    def __le__(self, other: Tradeoff) -> bool:
        """Whether f <= g everywhere, i.e. `other` promises at least as much.

        Decided by parameters within a family; a convex f is below a piecewise-linear g when it is
        at g's corners; a piecewise-linear f is below g when g implies each (epsilon, delta) line of
        f.
        """
        if not isinstance(other, Tradeoff):
            return NotImplemented
        if self == other or isinstance(self, Nothing) or other == Pure(0):
            return True
        if isinstance(other, Nothing) or self == Pure(0):
            return False
        if isinstance(other, _Discrete):
            return _below_at_corners(self, other)
        if isinstance(self, _Discrete):
            return _lines_implied(self, other)
        return _smooth_order(self, other)

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
        if kind == "piecewise-linear":
            points, pieces = ([tuple(x) for x in data[k]] for k in ("points", "pieces"))
            return PiecewiseLinear(_pairs(points), _pairs(pieces))
        if kind == "nothing":
            return Nothing()
        raise GuaranteeError(
            f"a trade-off function of kind {kind!r} is not known.",
            remedy="Read the file with the version that wrote it.",
        )


class _Discrete(Tradeoff):
    """A promise attained by a pair of discrete distributions."""

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
        return PiecewiseLinear.from_pieces(self.pieces)

    def group(self, k: int) -> Tradeoff:
        """f composed with itself k times, exactly (piecewise linear)."""
        return self.piecewise().group(k)


@dataclass(frozen=True, init=False)
class Pure(_Discrete):
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
        return _randomised_response(self.eps, Fraction(0))

    def delta(self, epsilon: Number) -> float:
        """(e^eps - e^epsilon)_+ / (1 + e^eps)."""
        return _approximate_delta(self.eps, Fraction(0), parameter(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        """eps + ln(1 - delta (1 + e^{-eps})), at least 0."""
        return above(self.eps) if _probability(delta) == 0 else super().epsilon(delta)

    def group(self, k: int) -> Pure:
        """Pure(k eps)."""
        return Pure(multiply_up(Fraction(_steps(k)), self.eps))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"epsilon = {_show(self.eps)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "pure", "epsilon": _store(self.eps)}


@dataclass(frozen=True, init=False)
class Approximate(_Discrete):
    """(eps, dlt): f(alpha) = max(0, 1 - dlt - e^eps + e^eps alpha, e^{-eps}(alpha - dlt))."""

    eps: Number
    dlt: Number

    def __init__(self, epsilon: Number | str, delta: Number | str) -> None:
        object.__setattr__(self, "eps", parameter(epsilon, "epsilon"))
        object.__setattr__(self, "dlt", parameter(delta, "delta"))
        _probability(float(self.dlt))

    @property
    def pieces(self) -> pw.Pairs:
        """Randomised response that reveals the truth with probability delta."""
        return _randomised_response(self.eps, self.dlt)

    def delta(self, epsilon: Number) -> float:
        """delta + (1 - delta)(e^eps - e^epsilon)_+ / (1 + e^eps)."""
        return _approximate_delta(self.eps, self.dlt, parameter(epsilon, "epsilon"))

    def epsilon(self, delta: float) -> float:
        """Least epsilon at delta; inf below the promise's own delta."""
        target = _probability(delta)
        if target < self.dlt:
            return math.inf
        return min(above(self.eps), super().epsilon(target))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"(epsilon, delta) = ({_show(self.eps)}, {_show(self.dlt)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "approximate", "epsilon": _store(self.eps), "delta": _store(self.dlt)}


@dataclass(frozen=True)
class PiecewiseLinear(_Discrete):
    """Any piecewise-linear f, by its corners from (0, 0) to (1, f(1)).

    Checked: convex, nondecreasing, f(alpha) <= alpha (to 1e-12 for floats, exactly for rationals).
    A promise is symmetric; T(P, Q) of one ordered pair need not be: see `is_symmetric` and
    `symmetrise`. `delta` and `epsilon` always cover both orders. `masses` is for `from_pieces`
    only.
    """

    points: pw.Pairs
    masses: pw.Pairs = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        points = _pairs(self.points)
        _check_corners(points)
        if self.masses:
            _check_masses(self.masses)
        else:
            _check_convex(points)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "masses", self.masses or pw.pieces_of(points))

    @classmethod
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
            _hockey_stick(pieces[:, 0], loss, eps, self.rounding),
            _hockey_stick(pieces[:, 1], -loss, eps, self.rounding),
        )

    def group(self, k: int) -> PiecewiseLinear:
        """f composed with itself k times, exactly (slopes multiply)."""
        points = self.points
        for _ in range(_steps(k) - 1):
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
            "points": [[_store(a), _store(f)] for a, f in self.points],
            "pieces": [[_store(p), _store(q)] for p, q in self.pieces],
        }


@dataclass(frozen=True, init=False)
class Gaussian(Tradeoff):
    """mu-Gaussian differential privacy: G_mu(alpha) = Phi(Phi^{-1}(alpha) - mu)."""

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
        return Gaussian(multiply_up(Fraction(_steps(k)), self.mu))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"mu = {_show(self.mu)} (Gaussian differential privacy)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "gaussian", "mu": _store(self.mu)}


@dataclass(frozen=True, init=False)
class ZeroConcentrated(Tradeoff):
    """rho-zCDP: Renyi divergence at most rho alpha at every order alpha > 1.

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
        return PiecewiseLinear.from_pieces(pw.envelope(epsilon, delta))

    def delta(self, epsilon: Number) -> float:
        """`conversions.zcdp_delta`."""
        return zcdp_delta(self.rho, epsilon)

    def epsilon(self, delta: float) -> float:
        """`conversions.zcdp_epsilon`."""
        return zcdp_epsilon(self.rho, delta)

    def group(self, k: int) -> ZeroConcentrated:
        """k^2 rho (Bun and Steinke 2016, Prop 1.9)."""
        return ZeroConcentrated(multiply_up(Fraction(_steps(k) ** 2), self.rho))

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return f"rho = {_show(self.rho)} (zero-concentrated)"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "zero-concentrated", "rho": _store(self.rho)}


@dataclass(frozen=True)
class Nothing(Tradeoff):
    """No promise: f = 0, epsilon infinite."""

    def _value(self, alpha: FloatArray) -> FloatArray:
        return np.zeros_like(alpha)

    def delta(self, epsilon: Number) -> float:
        """Always 1."""
        parameter(epsilon, "epsilon")
        return 1.0

    def group(self, k: int) -> Nothing:
        """Nothing stays nothing."""
        _steps(k)
        return self

    @property
    def words(self) -> str:
        """The promise in a few words."""
        return "no promise"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"kind": "nothing"}


def from_pair(p: Sequence[Number], q: Sequence[Number]) -> PiecewiseLinear:
    """T(P, Q) of two distributions on the same finite set (Neyman and Pearson), exact for
    rationals.

    One ordered pair: `symmetrise()` covers both orders. An audit compares it with a promise by
    `promise <= from_pair(p, q)`.

    >>> half, quarter = Fraction(1, 2), Fraction(1, 4)
    >>> from_pair([half, half], [quarter, 1 - quarter]).points[1]
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


# --- shared steps ------------------------------------------------------------------------------


def _randomised_response(eps: Number, dlt: Number) -> pw.Pairs:
    if eps == 0 and isinstance(dlt, Fraction):
        half = (1 - dlt) / 2
        pieces: pw.Pairs = ((dlt, Fraction(0)), (half, half), (half, half), (Fraction(0), dlt))
        return pw.merge(pieces)
    ratio = math.exp(-above(eps))
    rest, slack = 1 - float(dlt), above(dlt)
    high, low = rest / (1 + ratio), rest * ratio / (1 + ratio)
    return tuple(x for x in ((slack, 0.0), (high, low), (low, high), (0.0, slack)) if any(x))


def _approximate_delta(eps: Number, dlt: Number, epsilon: Number) -> float:
    if epsilon >= eps:
        return above(dlt)
    gap = above(Fraction(eps) - Fraction(epsilon))
    split = -math.expm1(-gap) / (1 + math.exp(-above(eps)))
    slack = above(dlt)
    return min(1.0, (slack + (1 - slack) * split) * (1 + 8 * ULP))


def _hockey_stick(mass: FloatArray, loss: FloatArray, eps: float, rounding: float) -> float:
    """sum mass (1 - e^{eps - loss})_+ with loss and mass raised by the rounding allowed for."""
    with np.errstate(invalid="ignore"):
        gap = np.maximum(0.0, loss + rounding * (1 + np.abs(loss) * (loss < np.inf)) - eps)
    gap = np.where(np.isposinf(loss), np.inf, np.where(np.isneginf(loss), 0.0, gap))
    return min(1.0, float(np.sum(mass * -np.expm1(-gap))) * (1 + rounding))


def _as_rho(promise: Tradeoff) -> Number | None:
    if isinstance(promise, ZeroConcentrated):
        return promise.rho
    if isinstance(promise, Gaussian):
        return gdp_to_zcdp(promise.mu)
    return pure_to_zcdp(promise.eps) if isinstance(promise, Pure) else None


def _below_at_corners(f: Tradeoff, g: _Discrete) -> bool:
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
    if isinstance(f, _Discrete) and pw.is_exact(f.corners) and pw.is_exact(g.corners):
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


def _lines_implied(f: _Discrete, g: Tradeoff) -> bool:
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
        return f.rho >= g.rho
    if isinstance(f, ZeroConcentrated) and isinstance(g, Gaussian):
        # mu^2/2 <= rho is enough; otherwise delta of zCDP falls faster than that of G_mu.
        return Fraction(g.mu) ** 2 <= 2 * Fraction(f.rho)
    if isinstance(f, Gaussian) and isinstance(g, ZeroConcentrated) and g <= f:
        return False  # f is strictly above g
    raise GuaranteeError(
        f"{f.words} and {g.words} are not comparable in closed form.",
        remedy="Compare epsilon at a delta of your choice.",
    )


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
            remedy="Build the function with from_pair or from its corners.",
        )


def _pairs(rows: Sequence[tuple[Any, Any]]) -> pw.Pairs:
    read = [(parameter(a, "alpha"), parameter(f, "f")) for a, f in rows]
    if all(isinstance(x, Fraction) for pair in read for x in pair):
        return tuple(read)
    return tuple((float(a), float(f)) for a, f in read)


def _probability(delta: float) -> float:
    value = float(parameter(delta, "delta"))
    if value > 1:
        raise GuaranteeError(f"delta = {delta} is above 1.", remedy="Give 0 <= delta <= 1.")
    return value


def _steps(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise GuaranteeError(f"a group of {k}.", remedy="Give a whole number, at least 1.")
    return int(k)


def _show(value: Number) -> str:
    return str(value) if isinstance(value, Fraction) else f"{value:.12g}"


def _store(value: Number) -> str | float:
    return f"{value.numerator}/{value.denominator}" if isinstance(value, Fraction) else value
