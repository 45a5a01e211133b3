"""Canonical noise: for a promise f, the noise that spends exactly f on a statistic that moves by 1.

F is canonical for a symmetric f when T(F, F(. - 1)) = f with a threshold test, shifts by less cost
less, and F(x) = 1 - F(-x) (semi-dp, Definition 35; Awan and Vadhan 2023). Which one is used:
Tulap for pure epsilon and (epsilon, delta), the normal for G_mu, and Lemma 36 for every other f,
made symmetric first, as the lemma needs (docs/errata). Tulap is the only choice for delta = 0, one
of several for delta > 0; Lemma 36 applied to G_mu gives another one than the normal.

Numerics: `cdf` and `quantile` are doubles; `draw` gives real numbers rounded to doubles, so a
promise made of them must call its numerics idealised. Tulap noise at delta = 0 is an exact double
geometric integer plus a uniform on (-1/2, 1/2): an integer release with that law carries the
promise exactly, and adding the uniform afterwards is free.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.arguments import takes
from congenial.data.arrays import Floats
from congenial.errors import GuaranteeError
from congenial.privacy.tradeoff import (
    Approximate,
    Gaussian,
    Nothing,
    Pure,
    Tradeoff,
    ZeroConcentrated,
)
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.randomness import Randomness, open_uniform

_BISECTIONS = 200
_STEPS = 100_000  # quantiles further out than this many unit steps are refused


def uniform_doubles(randomness: Randomness, n: int) -> Floats:
    """n numbers uniform on (0, 1): 53 random bits centred in their cell, never 0 or 1."""
    return open_uniform(randomness.words(n))


class CanonicalNoise(ABC):
    """The law F of N: statistic + Delta N is f-private for every statistic of sensitivity Delta."""

    numerics = "real numbers are drawn without rounding (numerics are idealised)"

    @property
    @abstractmethod
    def tradeoff(self) -> Tradeoff:
        """The promise f."""

    @abstractmethod
    def _lower(self, x: Floats) -> Floats:
        """F(x) for x <= 0."""

    @abstractmethod
    def _lower_quantile(self, p: Floats) -> Floats:
        """The x <= 0 with F(x) = p, for 0 < p <= 1/2."""

    def cdf(self, x: npt.ArrayLike) -> Any:
        """F(x) = P(N <= x); the upper half by symmetry."""
        at = np.asarray(x, dtype=np.float64)
        low = self._lower(-np.abs(at))
        return np.where(at <= 0, low, 1 - low)[()]

    def quantile(self, p: npt.ArrayLike) -> Any:
        """Smallest x with F(x) >= p, for p in (0, 1)."""
        level = np.asarray(p, dtype=np.float64)
        if level.size and not (np.all(level > 0) and np.all(level < 1)):
            raise GuaranteeError(
                "a quantile needs a probability between 0 and 1.", remedy="Give 0 < p < 1."
            )
        x = self._lower_quantile(np.minimum(level, 1 - level))
        return np.where(level <= 0.5, x, -x)[()]

    def draw(self, randomness: Randomness, n: int) -> Floats:
        """n independent draws, by inverting F on 53 random bits."""
        return np.asarray(self.quantile(uniform_doubles(randomness, n)))


class Tulap(CanonicalNoise):
    """Canonical noise for f_{eps, delta}, eps > 0: double geometric plus uniform, cut at both ends.

    b = e^-eps, q = 2 delta b / (1 - b + 2 delta b). For x <= 0, with [x] the nearest integer and
    q = 0: F(x) = b^{-[x]} (b + (x - [x] + 1/2)(1 - b)) / (1 + b); for q > 0 that law given that it
    lies between its q/2 and 1 - q/2 quantiles. Source: Awan and Slavkovic 2018; semi-dp, 5.3.

    >>> round(float(Tulap(1).cdf(-2.3)), 6)
    0.048905
    """

    def __init__(self, epsilon: Fraction | float, delta: Fraction | float = 0) -> None:
        if not 0 < epsilon < math.inf or not 0 <= delta < 1:
            raise GuaranteeError(
                f"Tulap noise for (epsilon, delta) = ({epsilon}, {delta}) does not exist.",
                remedy="Give epsilon > 0 and 0 <= delta < 1.",
            )
        self.epsilon, self.delta = Fraction(epsilon), Fraction(delta)
        self._b, self._rest = math.exp(-float(epsilon)), -math.expm1(-float(epsilon))  # 1 - b
        self._keep = self._rest / (self._rest + 2 * float(delta) * self._b)  # 1 - q

    @property
    def tradeoff(self) -> Tradeoff:
        """f_{eps, delta}."""
        return Approximate(self.epsilon, self.delta) if self.delta else Pure(self.epsilon)

    def _lower(self, x: Floats) -> Floats:
        near = np.rint(x)
        down = float(self.epsilon) * near
        inside = self._b + (x - near + 0.5) * self._rest
        if self._keep > 0.5:  # a small tail stays exact
            whole = np.exp(down) * inside / (1 + self._b)
            return np.asarray(np.maximum(0.0, (whole - (1 - self._keep) / 2) / self._keep))
        # F without the cut is close to 1/2 everywhere: its distance from there
        below = (np.expm1(down) * inside + (x - near) * self._rest) / (1 + self._b)
        return np.asarray(np.maximum(0.0, 0.5 + below / self._keep))

    def _lower_quantile(self, p: Floats) -> Floats:
        scaled = ((1 - self._keep) / 2 + self._keep * p) * (1 + self._b)  # b^(k+1) <= scaled <= b^k
        drop = self._rest / 2 + (1 + self._b) * self._keep * (0.5 - p)  # 1 - scaled
        log = np.where(drop < 0.5, np.log1p(-np.minimum(drop, 0.5)), np.log(scaled))
        k = np.maximum(0.0, np.floor(log / -float(self.epsilon)))
        part = 1 + np.expm1(log + float(self.epsilon) * k) / self._rest
        return np.asarray(np.minimum(0.0, np.clip(part, 0.0, 1.0) - 0.5 - k))

    def draw(self, randomness: Randomness, n: int) -> Floats:
        """n draws: exact double geometric integers plus 53-bit uniforms, those beyond the cut
        drawn again; by inversion where most would be.
        """
        if self._keep < 0.5:
            return super().draw(randomness, n)
        edge = -float(self._lower_quantile(np.array(2.0**-1074))) if self.delta else math.inf
        out = np.empty(0)
        while len(out) < n:
            missing = n - len(out)
            whole = DoubleGeometric(self.epsilon).draw(randomness, missing)
            drawn = whole + uniform_doubles(randomness, missing) - 0.5
            out = np.concatenate([out, drawn[np.abs(drawn) <= edge]])
        return out


class CanonicalNormal(CanonicalNoise):
    """Canonical noise for G_mu: N(0, 1 / mu^2)."""

    def __init__(self, mu: Fraction | float) -> None:
        if not 0 < mu < math.inf:
            raise GuaranteeError(f"mu = {mu} is not positive.", remedy="Give mu > 0.")
        self.mu = mu

    @property
    def tradeoff(self) -> Tradeoff:
        """G_mu."""
        return Gaussian(self.mu)

    def _lower(self, x: Floats) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr(float(self.mu) * x))

    def _lower_quantile(self, p: Floats) -> Floats:
        from scipy.special import ndtri

        return np.asarray(ndtri(p) / float(self.mu))


class Constructed(CanonicalNoise):
    """Canonical noise for any symmetric f that is not trivial (semi-dp, Lemma 36).

    F is linear from c to 1 - c on [-1/2, 1/2], where f(1 - c) = c, and F(x) = f(F(x + 1)) to the
    left. A cdf takes as many evaluations of f as x has units; where f is itself a numerical lower
    bound the noise is private for that bound.
    """

    def __init__(self, f: Tradeoff) -> None:
        # zCDP is no trade-off function: the noise is made for the one it implies
        self._f = f.piecewise() if isinstance(f, ZeroConcentrated) else f.symmetrise()
        if isinstance(f, Nothing) or float(self._f(0.5)) >= 0.5 - 1e-15:
            raise GuaranteeError(
                f"no canonical noise belongs to {f.words}.",
                remedy="Give a promise between perfect privacy and none.",
            )

    @property
    def tradeoff(self) -> Tradeoff:
        """f, made symmetric."""
        return self._f

    @cached_property
    def c(self) -> float:
        """The fixed point f(1 - c) = c, by bisection: f(1 - c) - c falls."""
        low, high = 0.0, 0.5
        for _ in range(_BISECTIONS):
            half = (low + high) / 2
            low, high = (half, high) if float(self._f(1 - half)) > half else (low, half)
        return (low + high) / 2

    def _lower(self, x: Floats) -> Floats:
        steps = np.maximum(0, np.ceil(-x - 0.5))
        t = x + steps
        value = np.atleast_1d(self.c * (0.5 - t) + (1 - self.c) * (t + 0.5))
        left = np.atleast_1d(steps).copy()
        while np.any(left > 0):
            moving = left > 0
            value[moving] = self._f(np.clip(value[moving], 0.0, 1.0))
            left[moving & (value == 0)] = 0
            left[moving] -= 1
        return np.asarray(value.reshape(np.shape(x)))

    def _lower_quantile(self, p: Floats) -> Floats:
        value, x = np.atleast_1d(np.array(p)), np.zeros(np.size(p))
        for _ in range(_STEPS):
            moving = value < self.c
            if not np.any(moving):
                break
            value[moving] = 1 - self._f(1 - value[moving])  # f^-1, f being symmetric
            x[moving] -= 1
        else:
            raise GuaranteeError("a quantile lies too far out.", remedy="Use a larger p.")
        x += (value - self.c) / (1 - 2 * self.c) - 0.5
        return np.asarray(x.reshape(np.shape(p)))


@takes(GuaranteeError, f=Tradeoff)
def canonical_noise(f: Tradeoff) -> CanonicalNoise:
    """The canonical noise for f: `Tulap`, `CanonicalNormal`, or `Constructed` for anything else.

    >>> type(canonical_noise(Pure(1))).__name__
    'Tulap'
    """
    if isinstance(f, Pure) and f.eps > 0:
        return Tulap(f.eps)
    if isinstance(f, Approximate) and f.eps > 0:
        return Tulap(f.eps, f.dlt)
    if isinstance(f, Gaussian) and f.mu > 0:
        return CanonicalNormal(f.mu)
    return Constructed(f)
