"""Theorem A.1 of congenial-dp as a checker: the epsilon that a monotone noise density attains.

If f decreases in |x| and f(x) e^{alpha |x|} increases, then f(x - a)/f(x - b) <= e^{alpha |a - b|}
for all x: the least such alpha is the steepest fall of log f per unit of distance, and no smaller
one holds. `attained` finds it on a grid for any density of |x|; `TwoBins` is the paper's example,
the two-bin histogram with a fixed total under Laplace noise, in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.errors import GuaranteeError

Floats = npt.NDArray[np.float64]
LogDensity = Callable[[Floats], Any]

_POINTS = 4096  # grid points per doubling of the range
_DOUBLINGS = 16


@dataclass(frozen=True)
class Attained:
    """What Theorem A.1 says of a density.

    decreasing: condition (i) holds on the grid, without which the theorem says nothing. alpha: the
    least constant of condition (ii), in epsilon per unit of distance; infinite for a density whose
    fall keeps getting steeper (Gaussian noise) or that has a hole. at: where the fall is steepest,
    infinite if it is only approached far out.
    """

    decreasing: bool
    alpha: float
    at: float
    basis: str = "numerical bound"

    def epsilon(self, distance: float = 1.0) -> float:
        """alpha |a - b|: the attained epsilon between values `distance` apart."""
        if not self.decreasing:
            raise GuaranteeError(
                "the density is not monotone: Theorem A.1 says nothing about it.",
                remedy="Bound the ratio of densities directly.",
            )
        return self.alpha * distance


def attained(log_density: LogDensity, scale: float = 1.0, whole: bool = False) -> Attained:
    """Check conditions (i) and (ii) for a density given as log f(|x|), -inf where there is none.

    scale: a typical size of the noise, where the grid is finest. whole: noise on the integers
    (steps of one). The range doubles 16 times; a steepest fall that is only approached is taken to
    its limit, and one that keeps growing is infinite. Numerical: a fall steeper than its
    surroundings between two points of the grid (4096 per doubling, finer at the steepest) would be
    missed.

    >>> round(attained(lambda x: -0.5 * x, scale=2.0).epsilon(), 9)
    0.5
    """
    reach = max(64.0, 16 * scale) if whole else 16 * scale
    steepest, at, history = 0.0, 0.0, []
    for doubling in range(_DOUBLINGS):
        x = _grid(0.0 if doubling == 0 else reach / 2, reach, whole)
        with np.errstate(all="ignore"):
            logs = np.asarray(log_density(x), dtype=float)
            rising = np.diff(logs) > 1e-12 * (1 + np.abs(logs[1:]))
        if np.any(rising):
            return Attained(False, math.inf, float(x[1 + int(np.argmax(rising))]))
        if np.any(np.isneginf(logs)):
            return Attained(True, math.inf, float(x[int(np.argmax(np.isneginf(logs)))]))
        here, where = _steepest(log_density, x, logs, whole)
        if here > steepest * (1 + 1e-11):
            steepest, at = here, where
        history.append(steepest)
        reach *= 2
    return Attained(True, *_limit(history, at))


def _limit(history: list[float], at: float) -> tuple[float, float]:
    """Where the steepest fall over ever larger ranges tends to, and the place it is reached."""
    last, before = history[-1] - history[-2], history[-2] - history[-3]
    if last <= 1e-9 * history[-1]:
        first = next(i for i, h in enumerate(history) if h >= history[-1] * (1 - 1e-9))
        return history[-1], at if first == 0 else math.inf
    if last < 0.9 * before:  # the rest of a geometric series of what is still to come
        ratio = last / before
        return history[-1] + last * ratio / (1 - ratio), math.inf
    return math.inf, math.inf


def _steepest(log_density: LogDensity, x: Floats, logs: Floats, whole: bool) -> tuple[float, float]:
    """The steepest fall of log f per unit on a grid, looked at once more on a finer one."""
    fall = -np.diff(logs) / np.diff(x)
    most = int(np.argmax(fall >= fall.max() * (1 - 1e-10)))  # the first, up to rounding
    if whole or not math.isfinite(fall[most]):
        return float(fall[most]), float(x[most])
    fine = np.linspace(x[max(0, most - 1)], x[min(len(x) - 1, most + 2)], _POINTS + 1)
    finer = -np.diff(np.asarray(log_density(fine), dtype=float)) / np.diff(fine)
    best = int(np.argmax(finer >= finer.max() * (1 - 1e-10)))
    # rounding makes differences over tiny steps noisy: trust the finer grid only where it says more
    noise = 4e-16 * float(np.abs(logs[most + 1])) / float(fine[1] - fine[0])
    if finer[best] - noise > fall[most]:
        return float(finer[best]), float(fine[best])
    return float(fall[most]), float(x[most])


def _grid(low: float, high: float, whole: bool) -> Floats:
    if whole:  # all integers near zero, further out as many of them as grid points, in pairs
        starts = np.unique(np.floor(np.linspace(low, high, _POINTS // 2)))
        return np.unique(np.concatenate([starts, starts + 1.0]))
    return np.linspace(low, high, _POINTS + 1)


@dataclass(frozen=True)
class TwoBins:
    """Example 4.1: counts (s_1, s_2) with a fixed sum, Laplace noise u_i of scale 2/epsilon each.

    The released first count is s_1 + v; the second is the total minus it. Conditioning on the
    total: v ~ Lap(1/epsilon). Projecting, member beta of the l1 family: v = beta u_1 - (1 - beta)
    u_2, of which beta = 1/2 is least squares. All have mean zero (erratum to Table 2: the mean of
    the l2 projection is (s_1, s_2), not their average).
    """

    epsilon: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise GuaranteeError(
                f"epsilon = {self.epsilon} is not positive.", remedy="Use a positive number."
            )

    def log_density(self, x: Any, beta: float | None = None) -> Any:
        """log density of v: conditioned for beta = None, else the l1 family (A.1), (A.2).

        (A.1) is a difference of two exponentials over 2 beta - 1; written with expm1 it is stable
        up to beta = 1/2, where it becomes (A.2).
        """
        eps, at = self.epsilon, np.abs(np.asarray(x, dtype=float))
        if beta is None:
            return math.log(eps / 2) - eps * at  # (4.6)
        high = max(_checked(beta), 1 - beta)
        rest = 1 - high
        if rest == 0.0:
            return math.log(eps / 4) - eps / 2 * at  # one Laplace variable of scale 2/eps
        # (A.1): e^{-eps x / 2 high} / 4 * eps * (high - rest e^{-tau x}) / (high - rest)
        gap = high - rest
        tau = eps * gap / (2 * high * rest)
        t = tau * at
        share = np.where(t == 0, 1.0, -np.expm1(-t) / np.where(t == 0, 1.0, t))
        shape = 1 + eps * at / (2 * high) * share  # 1 + rest (1 - e^{-tau x}) / gap
        return math.log(eps / 4) - eps / (2 * high) * at + np.log(shape)

    def signed_gamma_mixture(self, x: Any) -> Any:
        """(4.7): half Lap(1/epsilon), half a gamma(2, 1/epsilon) with a random sign."""
        eps, at = self.epsilon, np.abs(np.asarray(x, dtype=float))
        return 0.5 * (eps / 2) * np.exp(-eps * at) + 0.5 * (eps**2 / 2) * at * np.exp(-eps * at)

    def variance(self, beta: float | None = None) -> float:
        """2/epsilon^2 conditioned; 8 (beta^2 + (1 - beta)^2)/epsilon^2 in the family."""
        if beta is None:
            return 2 / self.epsilon**2
        return 8 * (_checked(beta) ** 2 + (1 - beta) ** 2) / self.epsilon**2

    def attained(self, beta: float | None = None) -> float:
        """The epsilon really attained: epsilon, or epsilon / (2 max(beta, 1 - beta))."""
        return self.epsilon if beta is None else self.epsilon / (2 * max(_checked(beta), 1 - beta))

    def variance_conditioned_at(self, beta: float) -> float:
        """Variance of conditioning calibrated to what member beta attains: always the smaller.

        8 max(beta, 1 - beta)^2/epsilon^2. So conditioning does dominate the l1 family at equal
        attained epsilon (erratum to section 4).
        """
        return TwoBins(self.attained(beta)).variance()


def _checked(beta: float) -> float:
    if not 0.0 <= beta <= 1.0:
        raise GuaranteeError(f"beta = {beta} is not in [0, 1].", remedy="Use a share.")
    return beta


def attained_curve(epsilon: float = 1.0, points: int = 101) -> list[dict[str, float]]:
    """Rows for the plot of attained epsilon against beta: closed form and checker side by side."""
    bins, rows = TwoBins(epsilon), []
    for beta in np.linspace(0, 1, points).tolist():
        loss = attained(partial(bins.log_density, beta=beta), scale=2 / epsilon)
        rows.append(
            {
                "beta": beta,
                "attained": bins.attained(beta),
                "checked": loss.epsilon(),
                "variance": bins.variance(beta),
                "variance_conditioned": bins.variance_conditioned_at(beta),
            }
        )
    return rows
