"""The seam to dp-accounting: what unlike promises add up to, as (epsilon, delta) numbers.

All Gaussian parts merge into one G_mu and all zCDP parts into one rho. Discrete parts (pure,
(epsilon, delta), piecewise linear) are multiplied out where that stays small; then, with Gaussian
noise beside them, delta(epsilon) = sum_i p_i delta_mu(epsilon - ln(p_i/q_i)) holds exactly. Where
it does not stay small, dp-accounting's privacy-loss distributions round every loss *up* to a grid
of INTERVAL, so k parts cost at most k INTERVAL in epsilon, and FFT_ERROR per part is added to delta
for its convolutions: a delta below that needs another route. zCDP has no privacy-loss distribution:
its (epsilon, delta) lines form a trade-off function that joins the discrete parts, or everything is
turned into zCDP. Of all valid bounds the smallest counts; basis "numerical bound".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError
from congenial.privacy import piecewise_algebra as pw
from congenial.privacy.conversions import gaussian_delta_at, gdp_to_zcdp, pure_to_zcdp, zcdp_delta
from congenial.privacy.numbers import ULP, Number, above, add_up, below, parameter, smallest
from congenial.privacy.tradeoff import (
    Approximate,
    DiscreteTradeoff,
    Gaussian,
    Nothing,
    PiecewiseLinear,
    Pure,
    Tradeoff,
    ZeroConcentrated,
)

INTERVAL = 1e-4
FFT_ERROR = 1e-12
_MAX_PIECES = 4096
_GRID = 128


@dataclass(frozen=True)
class Composition:
    """Several releases on the same pairs; `epsilon(delta)` and `delta(epsilon)` round up.

    delta(epsilon) is the least of several proved bounds: the product of trade-off functions,
    concentrated privacy, and adding up. `tradeoff()` is a function below the joint one.
    """

    parts: tuple[Tradeoff, ...]

    basis = "numerical bound"

    def delta(self, epsilon: Number) -> float:
        """Least delta found at epsilon."""
        eps = below(parameter(epsilon, "epsilon"))
        if any(isinstance(x, Nothing) for x in self.parts):
            return 1.0
        if len(self.parts) == 1:
            return self.parts[0].delta(eps)
        bounds = [1.0, self._product_delta(eps), self._concentrated_delta(eps)]
        bounds.append(self._basic_delta(eps))
        return min(bounds)

    def epsilon(self, delta: float) -> float:
        """Least epsilon found at delta; inf if there is none."""
        target = float(parameter(delta, "delta"))
        if len(self.parts) == 1:
            return self.parts[0].epsilon(target)
        if self.delta(1e9) > target:
            return math.inf
        return smallest(lambda eps: self.delta(eps) <= target)

    def tradeoff(self) -> Tradeoff:
        """A piecewise-linear f below the joint one: 128 of its (epsilon, delta) lines."""
        floor = self.delta(1e9)
        if floor >= 1:
            return Nothing()
        far = self.epsilon(min(1.0, max(1e-18, floor * (1 + 1e-6))))
        epsilon = far * np.linspace(0.0, 1.0, _GRID)
        delta = np.array([self.delta(float(eps)) for eps in epsilon])
        return PiecewiseLinear.from_pieces(pw.envelope(epsilon, delta))

    # --- the routes -----------------------------------------------------------------------------

    @cached_property
    def _mu(self) -> float:
        squares = sum(Fraction(x.mu) ** 2 for x in self.parts if isinstance(x, Gaussian))
        return math.sqrt(above(Fraction(squares))) * (1 + 2.0**-51)

    @cached_property
    def _rho(self) -> Number:
        total: Number = Fraction(0)
        for part in self.parts:
            total = add_up(total, part.rho) if isinstance(part, ZeroConcentrated) else total
        return total

    @cached_property
    def _discrete(self) -> tuple[DiscreteTradeoff, ...]:
        parts = tuple(x for x in self.parts if isinstance(x, DiscreteTradeoff))
        return (*parts, ZeroConcentrated(self._rho).piecewise()) if self._rho else parts

    @cached_property
    def _pieces(self) -> pw.Pairs | None:
        """The discrete parts multiplied out, or None when that is too large."""
        pieces: pw.Pairs = ((Fraction(1), Fraction(1)),)
        for part in self._discrete:
            if len(pieces) * len(part.pieces) > 64 * _MAX_PIECES:
                return None
            pieces = pw.product(pieces, part.pieces)
            if len(pieces) > _MAX_PIECES:
                return None
        return pieces

    @cached_property
    def _joint(self) -> PiecewiseLinear:
        return PiecewiseLinear.from_pieces(self._pieces or ())

    def _product_delta(self, eps: float) -> float:
        if self._pieces is None:
            return self._grid_delta(eps)
        if self._mu == 0:
            return self._joint.delta(eps)
        pieces = pw.as_array(self._pieces)
        rounding = 2.0**-46 * (len(pieces) + 2)
        both = []
        for column, sign in ((0, 1.0), (1, -1.0)):
            loss = sign * pw.losses(pieces)
            finite = np.isfinite(loss)
            revealed = float(np.sum(pieces[np.isposinf(loss), column]))
            slack = rounding * (1 + np.abs(loss[finite]))
            rest = gaussian_delta_at(self._mu, eps - loss[finite] - slack)
            both.append(revealed + float(np.sum(pieces[finite, column] * rest)))
        return max(both) * (1 + rounding)

    @cached_property
    def _concentrated(self) -> tuple[Number, float] | None:
        """All parts as one rho, and the deltas of (epsilon, delta) parts that are paid on top."""
        rho, unbroken = add_up(self._rho, gdp_to_zcdp(self._mu)), Fraction(1)
        for part in self.parts:
            if isinstance(part, Approximate):
                unbroken *= 1 - Fraction(part.dlt)
                rho = add_up(rho, pure_to_zcdp(part.eps))
            elif isinstance(part, DiscreteTradeoff):
                worst = part.eps if isinstance(part, Pure) else part.epsilon(0.0)
                if math.isinf(worst):
                    return None
                rho = add_up(rho, pure_to_zcdp(worst))
        return rho, above(1 - unbroken)

    def _concentrated_delta(self, eps: float) -> float:
        """delta_0 + (1 - delta_0) delta_rho(epsilon): revealed outright, or else zCDP."""
        if self._concentrated is None:
            return 1.0
        rho, revealed = self._concentrated
        return revealed + zcdp_delta(rho, eps) * (1 - revealed) * (1 + 2.0**-50)

    def _basic_delta(self, eps: float) -> float:
        """Sum of epsilons: the only finite route to delta = 0 when the product is too large."""
        total, unbroken = Fraction(0), Fraction(1)
        for part in self.parts:
            if not isinstance(part, Pure | Approximate):
                return 1.0
            total += Fraction(part.eps)
            unbroken *= 1 - (Fraction(part.dlt) if isinstance(part, Approximate) else 0)
        return above(1 - unbroken) if total <= Fraction(eps) else 1.0

    def _grid_delta(self, eps: float) -> float:
        # ln and the division by INTERVAL may fall short of a grid point by rounding.
        short = 1e-12 * len(self.parts) * (1 + eps)
        value = float(self._grid.get_delta_for_epsilon(max(0.0, eps - short)))
        return max(0.0, value) + FFT_ERROR * len(self.parts)

    @cached_property
    def _grid(self) -> Any:
        """dp-accounting's distribution of the product, pessimistic in every part."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        total = pld.identity(INTERVAL)
        if self._mu:
            total = total.compose(
                pld.from_gaussian_mechanism(1 / self._mu, value_discretization_interval=INTERVAL)
            )
        for part in self._discrete:
            total = total.compose(_distribution(part))
        return total


def compose(tradeoffs: Sequence[Tradeoff]) -> Composition:
    """What these promises, about the same pairs, add up to.

    >>> both = compose([Gaussian(1), Pure(1)])
    >>> 2 < both.epsilon(1e-6) < Gaussian(1).epsilon(1e-6) + 1
    True
    """
    expect(tradeoffs, Iterable, "the promises", "Give a list of them.", GuaranteeError)
    parts = tuple(tradeoffs)
    for part in parts:
        if not isinstance(part, Tradeoff):
            raise GuaranteeError(
                f"{type(part).__name__} is not a trade-off function.",
                remedy="Give Pure, Approximate, Gaussian, ZeroConcentrated or PiecewiseLinear.",
            )
    useful = tuple(x for x in parts if x != Pure(0))
    return Composition(useful or (Pure(0),))


def tensor(first: Tradeoff, second: Tradeoff) -> Tradeoff:
    """Both releases together: T(P1 x P2, Q1 x Q2), or the best lower bound known.

    Exact within a family and between discrete pairs (pure, (epsilon, delta), piecewise linear);
    zCDP absorbs pure and Gaussian parts; anything else is a numerical lower bound (`compose`). Two
    pure promises give a piecewise-linear f that is above f_{eps1 + eps2} and touches it where the
    likelihood ratio is extreme.

    >>> both = tensor(Pure(1), Pure(1))
    >>> round(both.epsilon(0), 9), round(both.epsilon(0.05), 4)
    (2.0, 1.9018)
    """
    for promise, other in ((first, second), (second, first)):
        if isinstance(promise, Nothing) or other == Pure(0):
            return promise
    if isinstance(first, Gaussian) and isinstance(second, Gaussian):
        return Gaussian(math.hypot(above(first.mu), above(second.mu)) * (1 + 2 * ULP))
    if isinstance(first, ZeroConcentrated) or isinstance(second, ZeroConcentrated):
        rhos = [_as_rho(first), _as_rho(second)]
        if rhos[0] is not None and rhos[1] is not None:
            return ZeroConcentrated(add_up(rhos[0], rhos[1]))
    if isinstance(first, DiscreteTradeoff) and isinstance(second, DiscreteTradeoff):
        return PiecewiseLinear.from_pieces(pw.product(first.pieces, second.pieces))
    return compose([first, second]).tradeoff()


def _as_rho(promise: Tradeoff) -> Number | None:
    if isinstance(promise, ZeroConcentrated):
        return promise.rho
    if isinstance(promise, Gaussian):
        return gdp_to_zcdp(promise.mu)
    return pure_to_zcdp(promise.eps) if isinstance(promise, Pure) else None


def _distribution(part: DiscreteTradeoff) -> Any:
    """A part for dp-accounting, whose pair is (upper, lower), its loss ln(upper/lower)."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(part, Pure | Approximate):
        dlt = above(part.dlt) if isinstance(part, Approximate) else 0.0
        bound = common.DifferentialPrivacyParameters(above(part.eps), dlt)
        return pld.from_privacy_parameters(bound, INTERVAL)
    pieces = pw.as_array(part.pieces)
    with np.errstate(divide="ignore"):
        logs = np.log(pieces)
    return pld.from_two_probability_mass_functions(
        dict(enumerate(logs[:, 1].tolist())),
        dict(enumerate(logs[:, 0].tolist())),
        value_discretization_interval=INTERVAL,
        symmetric=False,
    )
