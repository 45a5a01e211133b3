"""The table behind `congenial convert`: one promise in the parameters of other families."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError
from congenial.privacy.conversions import (
    classical_gaussian_mu,
    classical_gaussian_sigma_ratio,
    gaussian_mu,
    gdp_to_zcdp,
    pure_to_gdp,
    pure_to_zcdp,
    pure_to_zcdp_bun_steinke,
    zcdp_epsilon_bun_steinke,
    zcdp_rho,
)
from congenial.privacy.gaussian_draw import lattice_epsilon, lattice_rho
from congenial.privacy.numbers import Number, above, below
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated


@dataclass(frozen=True)
class Conversion:
    """One line of a conversion: what, how much, by which formula, and in which direction.

    Directions differ and are not to be mixed up: "follows" says that whoever keeps the source keeps
    this too, "enough" that whoever keeps this keeps the source. `convert` makes them.

    >>> from congenial.privacy import Pure
    >>> line = convert(Pure(1), "rho")[0]
    >>> line.name, round(line.value, 4), line.note
    ('rho', 0.4621, 'follows from the source')
    """

    name: str
    value: Number
    formula: str
    note: str


_IMPLIED = "follows from the source"
_SUFFICIENT = "enough: a mechanism with this value keeps the source"
_ONE_DRAW = "for one release of discrete Gaussian noise"
_LATTICE = "bound for one draw, over all offsets"


def convert(
    source: Tradeoff, to: str, delta: float | None = None, classical: bool = False
) -> list[Conversion]:
    """Convert a promise to "epsilon", "rho", "mu" or "total variation".

    Each row says whether it is implied by the source or sufficient for it (calibration): an
    (epsilon, delta) promise implies no rho and no mu, but can be reached by one. `classical=True`
    appends the textbook formula where it is valid. Impossible conversions are refused.
    """
    expect(source, Tradeoff, "the promise", "Give for example Pure(1).", GuaranteeError)
    expect(to, str, "what to convert to", "Give text.", GuaranteeError)
    rows: dict[str, Callable[[], list[Conversion]]] = {
        "epsilon": lambda: _to_epsilon(source, delta, classical),
        "rho": lambda: _to_rho(source, classical),
        "mu": lambda: _to_mu(source, classical),
        "total variation": lambda: [
            Conversion("total variation", source.delta(0), "delta at epsilon = 0", _IMPLIED)
        ],
    }
    if to not in rows:
        raise GuaranteeError(
            f"no conversion to {to!r}.", remedy=f"Choose one of: {', '.join(rows)}."
        )
    return rows[to]()


def _to_epsilon(source: Tradeoff, delta: float | None, classical: bool) -> list[Conversion]:
    if delta is None:
        value = source.epsilon(0.0)
        if math.isinf(value):
            raise GuaranteeError(
                f"{source.words} does not give an epsilon without delta.",
                remedy="Say at which delta, for example 1e-9.",
            )
        return [Conversion("epsilon", value, "greatest privacy loss", _IMPLIED)]
    name = f"epsilon at delta = {delta:g}"
    formula = {
        Gaussian: "Balle and Wang (2018), exact",
        ZeroConcentrated: "Canonne, Kamath and Steinke (2020)",
    }.get(type(source), "tangent of the trade-off function, exact")
    rows = [Conversion(name, source.epsilon(delta), formula, _IMPLIED)]
    if isinstance(source, ZeroConcentrated):
        drawn = lattice_epsilon(source.rho, delta)
        rows.append(Conversion(name, drawn, _LATTICE, _ONE_DRAW))
    if classical and isinstance(source, ZeroConcentrated):
        value = zcdp_epsilon_bun_steinke(source.rho, delta)
        rows.append(Conversion(name, value, "Bun and Steinke (2016), classical", _IMPLIED))
    if classical and isinstance(source, Gaussian):
        value = above(source.mu) * classical_gaussian_sigma_ratio(delta)
        if value <= 1:  # the textbook statement is proved there only
            rows.append(Conversion(name, value, "mu sqrt(2 ln(1.25/delta)), classical", _IMPLIED))
    return rows


def _to_rho(source: Tradeoff, classical: bool) -> list[Conversion]:
    if isinstance(source, ZeroConcentrated):
        return [Conversion("rho", source.rho, "the source itself", _IMPLIED)]
    if isinstance(source, Gaussian):
        return [Conversion("rho", gdp_to_zcdp(source.mu), "mu^2 / 2, exact", _IMPLIED)]
    if isinstance(source, Approximate) and source.dlt > 0:
        value = zcdp_rho(source.eps, below(source.dlt))
        drawn = lattice_rho(source.eps, below(source.dlt))
        return [
            Conversion("rho", value, "Canonne, Kamath and Steinke (2020)", _SUFFICIENT),
            Conversion("rho", drawn, _LATTICE, f"enough {_ONE_DRAW}"),
        ]
    eps = source.eps if isinstance(source, Pure) else source.epsilon(0.0)
    if math.isinf(eps):
        raise GuaranteeError(f"{source.words} does not give a rho.", remedy="Convert to epsilon.")
    rows = [Conversion("rho", pure_to_zcdp(eps), "epsilon tanh(epsilon / 2)", _IMPLIED)]
    if classical:
        classic = pure_to_zcdp_bun_steinke(eps)
        rows.append(Conversion("rho", classic, "epsilon^2 / 2, Bun and Steinke (2016)", _IMPLIED))
    return rows


def _to_mu(source: Tradeoff, classical: bool) -> list[Conversion]:
    if isinstance(source, Gaussian):
        return [Conversion("mu", source.mu, "the source itself", _IMPLIED)]
    if isinstance(source, Approximate) and source.dlt > 0:
        exact = gaussian_mu(source.eps, below(source.dlt))
        rows = [Conversion("mu", exact, "Balle and Wang (2018), exact", _SUFFICIENT)]
        if classical and source.eps <= 1:
            value = classical_gaussian_mu(source.eps, below(source.dlt))
            rows.append(
                Conversion("mu", value, "epsilon / sqrt(2 ln(1.25/delta)), classical", _SUFFICIENT)
            )
        return rows
    eps = source.eps if isinstance(source, Pure) else source.epsilon(0.0)
    if math.isinf(eps):
        raise GuaranteeError(f"{source.words} does not give a mu.", remedy="Convert to epsilon.")
    return [Conversion("mu", pure_to_gdp(eps), "-2 Phi^{-1}(1 / (1 + e^epsilon))", _IMPLIED)]
