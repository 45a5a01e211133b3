"""The order of promises: whether one trade-off function is below another everywhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from congenial.errors import GuaranteeError
from congenial.privacy import piecewise_algebra as pw
from congenial.privacy.conversions import pure_to_gdp
from congenial.privacy.piecewise import PiecewiseLinear
from congenial.privacy.tradeoff import (
    Approximate,
    DiscreteTradeoff,
    Gaussian,
    Nothing,
    Pure,
    Tradeoff,
    ZeroConcentrated,
)


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
        return f.rho >= g.rho
    if isinstance(f, ZeroConcentrated) and isinstance(g, Gaussian):
        # mu^2/2 <= rho is enough; otherwise delta of zCDP falls faster than that of G_mu.
        return Fraction(g.mu) ** 2 <= 2 * Fraction(f.rho)
    if isinstance(f, Gaussian) and isinstance(g, ZeroConcentrated) and g <= f:
        return False  # f is strictly above g
    raise GuaranteeError(
        f"{f.words} and {g.words} cannot be compared exactly.",
        remedy="Compare epsilon at a delta of your choice.",
    )
