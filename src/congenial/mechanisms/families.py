"""The families of noise in tables, a row each: which promises they serve, how much noise it takes.

Every parameter rounds towards more noise. A rate is epsilon per cell (for other norms, per unit of
the norm), a variance is sigma squared; descriptions write either under its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from congenial.errors import GuaranteeError
from congenial.pairs.pairs import Adjacency
from congenial.privacy.description import Family
from congenial.privacy.gaussian_draw import lattice_rho
from congenial.privacy.numbers import below
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated

Parameter = Callable[[Tradeoff, Adjacency, tuple[str, ...]], Fraction]


def positive_epsilon(target: Tradeoff) -> Fraction:
    """epsilon per person of a pure target; refused where it asks for nothing."""
    assert isinstance(target, Pure)
    if target.eps <= 0:
        raise GuaranteeError(
            f"epsilon = {target.eps} would release no information at all.",
            remedy="Use a positive epsilon, or publish only the exact figures.",
        )
    return Fraction(target.eps)


def rate(target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
    """eps_cell = epsilon per person / Delta_1(S): the two are never confused."""
    return positive_epsilon(target) / adjacency.l1(table).value


def rate_per_gauge(target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:  # noqa: ARG001
    """epsilon per unit of gauge: every difference has gauge at most 1."""
    return positive_epsilon(target)


def rate_squared(target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
    """(epsilon per person / Delta_2(S))^2: its root need not be rational."""
    return positive_epsilon(target) ** 2 / adjacency.l2_squared(table).value


def rate_of_largest(target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
    """Epsilon per person / Delta_inf(S)."""
    return positive_epsilon(target) / adjacency.linf(table).value


def zcdp_variance(target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
    """sigma^2 = Delta_2(S)^2 / (2 rho); an (epsilon, delta) target by the largest rho that
    one draw may have (`lattice_rho`).
    """
    if isinstance(target, ZeroConcentrated):
        rho = Fraction(target.rho)
    else:
        assert isinstance(target, Approximate)
        rho = _round_down(lattice_rho(target.eps, below(target.dlt)))
    if rho <= 0:
        raise GuaranteeError(
            f"{target.words} leaves no room for a Gaussian release.",
            remedy="Use a positive rho, or a positive epsilon with delta.",
        )
    return adjacency.l2_squared(table).value / (2 * rho)


def _round_down(value: float) -> Fraction:
    """Six significant digits, towards more noise: a parameter people can read back."""
    exact = Fraction(value)
    unit = Fraction(1)
    while exact and exact / unit < 10**5:
        unit /= 10
    return exact // unit * unit


def gaussian_variance(target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]) -> Fraction:
    """sigma^2 = Delta_2(S)^2 / mu^2."""
    assert isinstance(target, Gaussian)
    mu = Fraction(target.mu)
    if mu <= 0:
        raise GuaranteeError("mu = 0 would release no information at all.", remedy="Use mu > 0.")
    return adjacency.l2_squared(table).value / mu**2


@dataclass(frozen=True)
class NoiseFamily:
    """A law of noise: its name in descriptions, the promises it serves, and its parameter.

    The norm, the formula in words and the name of the parameter belong to the name
    (`privacy.description.LAWS`), which the ledger reads too.
    """

    name: Family
    targets: tuple[type[Tradeoff], ...]
    parameter: Parameter


DOUBLE_GEOMETRIC = NoiseFamily("double_geometric", (Pure,), rate)
DISCRETE_GAUSSIAN = NoiseFamily("discrete_gaussian", (ZeroConcentrated, Approximate), zcdp_variance)
LAPLACE = NoiseFamily("laplace", (Pure,), rate)
GAUSSIAN = NoiseFamily("gaussian", (Gaussian,), gaussian_variance)
K_NORM = NoiseFamily("k_norm_3", (Pure,), rate_per_gauge)
L2_NORM = NoiseFamily("l2_norm", (Pure,), rate_squared)
LINF_NORM = NoiseFamily("linf_norm", (Pure,), rate_of_largest)
