"""Trade-off functions: what a release lets the best test find out.

Orientation of semi-dp (Cho, Awan), used everywhere in this package: f(alpha) = T(P, Q)(alpha) = inf
{ 1 - E_Q phi : E_P phi <= 1 - alpha }, increasing, convex, at most alpha; larger is more private.
Most of the literature uses f(1 - alpha); only `accounting` converts.

The families are `Pure`, `Approximate`, `Gaussian`, `ZeroConcentrated` and `Nothing` here, and
`PiecewiseLinear` in `piecewise`; `order` decides f <= g. Perfect privacy is `Pure(0)`. Parameters
are attributes (`eps`, `dlt`, `mu`, `rho`), because `epsilon(delta)` and `delta(epsilon)` are the
questions one asks of any promise; both answers round upwards.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from congenial.errors import GuaranteeError
from congenial.privacy import piecewise_algebra as pw
from congenial.privacy.conversions import (
    approximate_delta,
    gaussian_delta,
    gaussian_epsilon,
    gdp_to_zcdp,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_epsilon,
)
from congenial.privacy.numbers import (
    ULP,
    FloatArray,
    Number,
    above,
    add_up,
    group_size,
    multiply_up,
    number,
    parameter,
    probability,
    small,
    smallest,
    stored,
)

if TYPE_CHECKING:
    from congenial.privacy.piecewise import PiecewiseLinear

_GRID = 256


class Tradeoff(ABC):
    """A promise f: no test tells two adjacent databases apart better than f allows.

    f(alpha) is the least error of the second kind that a test can have whose error of the first
    kind is at most 1 - alpha: increasing, convex, at most alpha; larger is more private. `f <= g`:
    g promises at least as much. `epsilon(delta)` and `delta(epsilon)` round up, `f.tensor(g)` is
    both releases together, `group(k)` is for k persons.
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
        if isinstance(self, DiscreteTradeoff) and isinstance(other, DiscreteTradeoff):
            return _piecewise_linear(pw.product(self.pieces, other.pieces))
        from congenial.privacy.accounting import compose  # accounting reads the classes below

        return compose([self, other]).tradeoff()

    def __le__(self, other: Tradeoff) -> bool:
        """Whether f <= g everywhere, i.e. `other` promises at least as much: `order.at_most`."""
        if not isinstance(other, Tradeoff):
            return NotImplemented
        from congenial.privacy.order import at_most  # order reads the classes below

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
        if kind == "piecewise-linear":
            from congenial.privacy.piecewise import PiecewiseLinear  # a subclass

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
    from congenial.privacy.piecewise import PiecewiseLinear  # a subclass of the classes above

    return PiecewiseLinear.from_pieces(pieces)


def _as_rho(promise: Tradeoff) -> Number | None:
    if isinstance(promise, ZeroConcentrated):
        return promise.rho
    if isinstance(promise, Gaussian):
        return gdp_to_zcdp(promise.mu)
    return pure_to_zcdp(promise.eps) if isinstance(promise, Pure) else None
